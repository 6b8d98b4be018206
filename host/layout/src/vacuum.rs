//! Which files of a table's folder nobody needs any more. Pure.
//!
//! 1. *Needed* is what the newest version holds, and what left the table within the retention: for
//!    each the data file and the file of its deletion vector.
//! 2. Of the files there are, those go that are not needed, not hidden, and were last modified before
//!    the retention began: a younger one may belong to a commit that is still being prepared.
//! 3. Hidden is every file or folder that begins with `_` or `.`, as in delta-spark, but not
//!    `_change_data` and not the folder of a partition column. Files of `_change_data` go by their
//!    age alone.
//!
//! Paths of the log are URL-encoded, those of a listing are not; both are compared decoded. A path
//! that is a whole URL keeps every file that ends as it does: a file of another table is not in the
//! listing, and a name kept in vain costs less than one lost to two spellings of one place.

use std::{collections::BTreeSet, time::Duration};

use lakebed_model::Instant;
use serde_json::{Value, json};

use crate::{
    LayoutError, TableSnapshot,
    action::{Action, AddFile, DeletionVector, RemoveFile, decoded_path},
    interval,
};

/// Retention of removed files where neither statement nor table says one, as in delta-spark.
pub const DEFAULT_RETENTION: Duration = Duration::from_secs(7 * 24 * 3_600);
const RETENTION_PROPERTY: &str = "delta.deletedFileRetentionDuration";

/// Features that say nothing about which files a version needs: VACUUM keeps them by not touching
/// what they are about. Those that a rewrite keeps are fine as well.
const HARMLESS: [&str; 11] = [
    "allowColumnDefaults",
    "changeDataFeed",
    "columnMapping",
    "generatedColumns",
    "identityColumns",
    "rowTracking",
    "typeWidening",
    "typeWidening-preview",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
];

/// Settings of one VACUUM.
#[derive(Debug, Clone, Copy)]
pub struct VacuumOptions {
    /// How long a removed file stays; `None` for what the table says.
    pub retain: Option<Duration>,
    /// Only tell what would be deleted.
    pub dry_run: bool,
    /// Refuse a retention shorter than the table's own.
    pub retention_check: bool,
    /// The job's time.
    pub now: Instant,
}

/// How long removed files stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// In this run.
    pub effective: Duration,
    /// Where a statement does not say.
    pub configured: Duration,
}

impl Retention {
    /// Returns the time before which files may go, in epoch milliseconds.
    #[must_use]
    pub fn cutoff_ms(&self, now: Instant) -> i64 {
        now.epoch_ms().saturating_sub(epoch_ms(self.effective))
    }
}

/// A file as a listing tells it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredFile {
    /// Path relative to the table's folder, as storage spells it (not URL-encoded).
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// When it was last written, epoch milliseconds.
    pub modified_ms: i64,
}

/// Decides on the retention of a run.
///
/// # Errors
/// Fails when the table's property is no duration, or when the retention asked for is shorter than
/// the table's and the check is on.
pub fn retention(
    snapshot: &TableSnapshot,
    options: &VacuumOptions,
) -> Result<Retention, LayoutError> {
    let table = || snapshot.table.to_string();
    let configured = match snapshot.properties.get(RETENTION_PROPERTY) {
        None => DEFAULT_RETENTION,
        Some(value) => interval::parse(value).ok_or_else(|| LayoutError::InvalidInterval {
            table: table(),
            property: RETENTION_PROPERTY,
            value: value.clone(),
        })?,
    };
    let effective = options.retain.unwrap_or(configured);
    if options.retention_check && effective < configured {
        return Err(LayoutError::RetentionTooShort {
            table: table(),
            asked: interval::render(effective),
            minimum: interval::render(configured),
        });
    }
    Ok(Retention { effective, configured })
}

/// Tells why this engine must not delete files of the table, if so.
#[must_use]
pub fn refusal(snapshot: &TableSnapshot) -> Option<String> {
    let mut unkept = snapshot.unkept_features();
    unkept.retain(|feature| !HARMLESS.contains(&feature.as_str()));
    if unkept.is_empty() {
        return None;
    }
    Some(format!(
        "it uses table features that may need files this engine knows nothing of: {}",
        unkept.join(", ")
    ))
}

/// The files that some version within the retention needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needed {
    paths: BTreeSet<String>,
}

impl Needed {
    /// Collects what the live files of a version need.
    ///
    /// # Errors
    /// As [`Needed::add`].
    pub fn of_snapshot(snapshot: &TableSnapshot) -> Result<Self, LayoutError> {
        let mut needed = Self::default();
        for file in &snapshot.files {
            needed.add(snapshot, file)?;
        }
        Ok(needed)
    }

    /// Adds a file that joined the table.
    ///
    /// # Errors
    /// Fails when the place of its deletion vector cannot be told: then nothing may be deleted.
    pub fn add(&mut self, snapshot: &TableSnapshot, file: &AddFile) -> Result<(), LayoutError> {
        self.insert(snapshot, &file.path, file.deletion_vector.as_ref())
    }

    /// Adds a file that left the table at or after the cut-off. One that does not say when counts as
    /// gone before, as in delta-spark.
    ///
    /// # Errors
    /// As [`Needed::add`].
    pub fn add_removed(
        &mut self,
        snapshot: &TableSnapshot,
        file: &RemoveFile,
        cutoff_ms: i64,
    ) -> Result<(), LayoutError> {
        if file.deletion_timestamp.unwrap_or(0) < cutoff_ms {
            return Ok(());
        }
        self.insert(snapshot, &file.path, file.deletion_vector.as_ref())
    }

    /// Adds what commits made since the snapshot hold.
    ///
    /// # Errors
    /// As [`Needed::add`].
    pub fn add_actions(
        &mut self,
        snapshot: &TableSnapshot,
        actions: &[Action],
    ) -> Result<(), LayoutError> {
        for action in actions {
            match action {
                Action::Add(file) => self.add(snapshot, file)?,
                Action::Remove(file) => self.add_removed(snapshot, file, i64::MIN)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn insert(
        &mut self,
        snapshot: &TableSnapshot,
        path: &str,
        vector: Option<&DeletionVector>,
    ) -> Result<(), LayoutError> {
        self.insert_path(path);
        let Some(vector) = vector else { return Ok(()) };
        match vector.storage_type.as_str() {
            // No vector at all, as some writers put it, or one that lies in the log.
            "" | "i" => {}
            "p" => self.insert_path(&vector.path_or_inline_dv),
            "u" => {
                let file = vector_file(&vector.path_or_inline_dv);
                self.paths.insert(file.ok_or_else(|| unreadable(snapshot, path, vector))?);
            }
            _ => return Err(unreadable(snapshot, path, vector)),
        }
        Ok(())
    }

    fn insert_path(&mut self, encoded: &str) {
        let decoded = decoded_path(encoded);
        if !is_absolute(&decoded) {
            self.paths.insert(decoded);
            return;
        }
        let ends = decoded.match_indices('/').map(|(at, _)| decoded[at + 1..].to_owned());
        self.paths.extend(ends.filter(|end| !end.is_empty()));
    }
}

fn unreadable(snapshot: &TableSnapshot, path: &str, vector: &DeletionVector) -> LayoutError {
    LayoutError::DeletionVectorPlace {
        table: snapshot.table.to_string(),
        path: path.to_owned(),
        vector: vector.unique_id(),
    }
}

/// RFC 3986: a scheme is a letter, then letters, digits, `+`, `-`, `.`, then a colon. Delta asks for
/// a colon in a relative path to be encoded only by some writers, so the slash after it is asked for.
fn is_absolute(path: &str) -> bool {
    let scheme = path.split_once(":/").map(|(scheme, _)| scheme);
    path.starts_with('/')
        || scheme.is_some_and(|scheme| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        })
}

/// Returns the file of a vector with a relative path (PROTOCOL.md, "Deletion Vector Descriptor
/// Schema"): an optional folder, then a UUID in 20 characters of Z85.
fn vector_file(descriptor: &str) -> Option<String> {
    let at = descriptor.len().checked_sub(20).filter(|at| descriptor.is_char_boundary(*at))?;
    let (folder, encoded) = descriptor.split_at(at);
    let mut hex = String::with_capacity(36);
    for (index, byte) in decode_z85(encoded)?.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            hex.push('-');
        }
        hex.push_str(&format!("{byte:02x}"));
    }
    let name = format!("deletion_vector_{hex}.bin");
    Some(if folder.is_empty() { name } else { format!("{folder}/{name}") })
}

/// Decodes Z85 (ZeroMQ RFC 32): five characters are the base-85 digits of four big-endian bytes.
fn decode_z85(text: &str) -> Option<Vec<u8>> {
    const DIGITS: &str =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    for group in text.as_bytes().chunks(5) {
        let mut value = 0_u32;
        for character in group {
            let digit = DIGITS.bytes().position(|digit| digit == *character)?;
            value = value.checked_mul(85)?.checked_add(u32::try_from(digit).ok()?)?;
        }
        bytes.extend(value.to_be_bytes());
    }
    Some(bytes)
}

/// Tells whether VACUUM must pass a file by because of a name on its way.
#[must_use]
pub fn is_hidden(path: &str, partition_columns: &[String]) -> bool {
    path.split('/').any(|name| {
        let is_partition = || {
            partition_columns.iter().any(|column| {
                name.strip_prefix(column.as_str()).is_some_and(|r| r.starts_with('='))
            })
        };
        name.starts_with(['_', '.']) && name != "_change_data" && !is_partition()
    })
}

/// Chooses the files to delete from a listing, in its order.
#[must_use]
pub fn choose(
    stored: &[StoredFile],
    needed: &Needed,
    partition_columns: &[String],
    cutoff_ms: i64,
) -> Vec<StoredFile> {
    let is_unneeded = |file: &&StoredFile| {
        file.modified_ms < cutoff_ms
            && !needed.paths.contains(&file.path)
            && !is_hidden(&file.path, partition_columns)
    };
    stored.iter().filter(is_unneeded).cloned().collect()
}

/// Counts the folders that a listing went through, the table's own among them.
#[must_use]
pub fn count_folders(stored: &[StoredFile], partition_columns: &[String]) -> usize {
    let visible = stored.iter().filter(|file| !is_hidden(&file.path, partition_columns));
    let folders: BTreeSet<&str> =
        visible.flat_map(|f| f.path.match_indices('/').map(|(at, _)| &f.path[..at])).collect();
    folders.len() + 1
}

/// delta-spark's `VACUUM START` history entry (`DeltaOperations.scala`).
#[must_use]
pub fn start_info(
    snapshot: &TableSnapshot,
    options: &VacuumOptions,
    retention: Retention,
    chosen: &[StoredFile],
) -> Value {
    let mut parameters = json!({
        "retentionCheckEnabled": options.retention_check,
        "defaultRetentionMillis": epoch_ms(retention.configured),
    });
    if let Some(retain) = options.retain {
        parameters["specifiedRetentionMillis"] = json!(epoch_ms(retain));
    }
    let bytes: u64 = chosen.iter().map(|file| file.size).sum();
    let metrics = json!({
        "numFilesToDelete": chosen.len().to_string(),
        "sizeOfDataToDelete": bytes.to_string(),
    });
    info(snapshot, options, "VACUUM START", parameters, metrics)
}

/// How a VACUUM ended, for its `VACUUM END` entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// Files that are gone.
    pub files_deleted: usize,
    /// Folders looked through.
    pub folders: usize,
    /// Whether every chosen file is gone.
    pub complete: bool,
}

/// delta-spark's `VACUUM END` history entry (`DeltaOperations.scala`).
#[must_use]
pub fn end_info(snapshot: &TableSnapshot, options: &VacuumOptions, ending: Ending) -> Value {
    let status = if ending.complete { "COMPLETED" } else { "FAILED" };
    let metrics = json!({
        "numDeletedFiles": ending.files_deleted.to_string(),
        "numVacuumedDirectories": ending.folders.to_string(),
    });
    info(snapshot, options, "VACUUM END", json!({ "status": status }), metrics)
}

fn info(
    snapshot: &TableSnapshot,
    options: &VacuumOptions,
    operation: &str,
    parameters: Value,
    metrics: Value,
) -> Value {
    json!({
        "timestamp": options.now.epoch_ms(),
        "operation": operation,
        "operationParameters": parameters,
        "readVersion": snapshot.version,
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": true,
        "operationMetrics": metrics,
    })
}

fn epoch_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
