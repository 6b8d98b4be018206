//! VACUUM: deletes files that no version within the retention needs.
//!
//! 1. List the folder, then read the table: what was committed before the listing is in the table.
//! 2. Collect what is needed ([`lakebed_layout::vacuum`]): live files, and files removed within the
//!    retention as the last checkpoint and every commit since the cut-off tell them. The commits
//!    matter where the retention asked for is longer than the one by which checkpoints forget.
//! 3. Commit `VACUUM START`, read what others committed meanwhile, and pass by what it brought back.
//! 4. Delete, count what went, commit `VACUUM END`.
//!
//! A crash between 3 and 4 leaves some files for the next VACUUM.

use std::{collections::BTreeSet, time::Duration};

use lakebed_layout::{
    Lake, LakeFault, LayoutError, Replacement, TableSnapshot,
    action::Action,
    commit_actions,
    conflict::{Intent, Scope},
    log_files::LogFiles,
    vacuum::{self, Ending, Needed, StoredFile, VacuumOptions},
};
use lakebed_model::{Bytes, TableName};
use serde_json::Value;

use crate::{
    DeltaLake, LakeError, kernel,
    storage::Storage,
    tables::{storage_fault, table_fault},
};

/// How often the end of a VACUUM is committed anew after the table's rules changed.
const END_ATTEMPTS: u32 = 3;

/// What a VACUUM did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VacuumReport {
    /// The table.
    pub table: TableName,
    /// The version of `VACUUM END`; of the table, in a dry run.
    pub version: u64,
    /// Whether nothing was to be deleted.
    pub dry_run: bool,
    /// How long removed files stay.
    pub retention: Duration,
    /// Files that nobody needs, by their paths in the table's folder. After a run: those that this
    /// run deleted.
    pub files: Vec<String>,
    /// Their bytes.
    pub bytes: Bytes,
    /// Folders looked through.
    pub folders: usize,
}

/// The choice of a run.
struct Choice {
    files: Vec<StoredFile>,
    folders: usize,
}

impl DeltaLake {
    /// Deletes files of a table's folder that no version within the retention needs.
    ///
    /// # Errors
    /// Fails before anything is deleted when the table has features that may need files this engine
    /// knows nothing of, when the retention is too short, when a deletion vector's file cannot be
    /// told, when another writer changed the table's rules meanwhile, or when storage fails. Fails
    /// after the deletion when a file could not be deleted; the others are gone.
    pub async fn vacuum(
        &self,
        table: &TableName,
        options: &VacuumOptions,
    ) -> Result<VacuumReport, LakeError> {
        let location = self.location(table)?;
        let storage = self.storage(table)?;
        let stored = storage
            .list("", |folder| folder == "_delta_log")
            .await
            .map_err(|error| storage_fault("list files of", table, location, error))?;
        let snapshot = self.snapshot(table).await?;
        if let Some(reason) = vacuum::refusal(&snapshot) {
            return Err(LayoutError::VacuumRefused { table: table.to_string(), reason }.into());
        }
        let retention = vacuum::retention(&snapshot, options)?;
        let cutoff_ms = retention.cutoff_ms(options.now);
        let mut needed = Needed::of_snapshot(&snapshot)?;
        self.add_removed(&mut needed, &snapshot, &storage, cutoff_ms).await?;
        let columns = &snapshot.partition_columns;
        let files = vacuum::choose(&stored, &needed, columns, cutoff_ms);
        let choice = Choice { files, folders: vacuum::count_folders(&stored, columns) };
        let mut report = VacuumReport {
            table: table.clone(),
            version: snapshot.version,
            dry_run: options.dry_run,
            retention: retention.effective,
            files: choice.files.iter().map(|file| file.path.clone()).collect(),
            bytes: choice.files.iter().map(|file| Bytes(file.size)).sum(),
            folders: choice.folders,
        };
        if options.dry_run {
            return Ok(report);
        }
        let start = vacuum::start_info(&snapshot, options, retention, &choice.files);
        self.commit_info(&snapshot, start).await?;
        for commit in self.commits_since(table, snapshot.version).await? {
            needed.add_actions(&snapshot, &commit.actions)?;
        }
        let files = vacuum::choose(&choice.files, &needed, columns, cutoff_ms);
        let choice = Choice { files, ..choice };
        (report.files, report.version) =
            self.delete_chosen(&snapshot, &storage, &choice, options).await?;
        let gone: BTreeSet<&str> = report.files.iter().map(String::as_str).collect();
        let gone = choice.files.iter().filter(|file| gone.contains(file.path.as_str()));
        report.bytes = gone.map(|file| Bytes(file.size)).sum();
        tracing::info!(%table, files = report.files.len(), bytes = report.bytes.0, "vacuumed");
        Ok(report)
    }

    /// Adds files that left the table at or after the cut-off.
    async fn add_removed(
        &self,
        needed: &mut Needed,
        snapshot: &TableSnapshot,
        storage: &Storage,
        cutoff_ms: i64,
    ) -> Result<(), LakeError> {
        let table = &snapshot.table;
        let location = self.location(table)?;
        let store = self.log_store(table)?;
        let (root, version) = (kernel::folder(location), snapshot.version);
        let read =
            move |engine: &dyn delta_kernel::Engine| kernel::tombstones(engine, root, version);
        let tombstones = kernel::blocking(store.engine(None), read)
            .await
            .map_err(|error| table_fault("read removed files of", table, location, error.into()))?;
        for remove in &tombstones.removes {
            needed.add_removed(snapshot, remove, cutoff_ms)?;
        }
        let Some(checkpoint) = tombstones.checkpoint else { return Ok(()) };
        let log = storage
            .list("_delta_log", |_| true)
            .await
            .map_err(|error| storage_fault("list the log of", table, location, error))?;
        for version in LogFiles::new(&log).commits_between(cutoff_ms, checkpoint) {
            // Cleaned up since it was listed: then it is older than any retention.
            let Some(actions) = self.read_commit(table, version).await? else { continue };
            for action in actions {
                if let Action::Remove(remove) = action {
                    needed.add_removed(snapshot, &remove, cutoff_ms)?;
                }
            }
        }
        Ok(())
    }

    async fn delete_chosen(
        &self,
        snapshot: &TableSnapshot,
        storage: &Storage,
        choice: &Choice,
        options: &VacuumOptions,
    ) -> Result<(Vec<String>, u64), LakeError> {
        let table = &snapshot.table;
        let paths = choice.files.iter().map(|file| file.path.clone()).collect();
        let deleted = storage.delete("", paths).await;
        let ending = Ending {
            files_deleted: deleted.paths.len(),
            folders: choice.folders,
            complete: deleted.failures.is_empty(),
        };
        let end = self.commit_end(snapshot, options, ending).await;
        if let Some((path, error)) = deleted.failures.into_iter().next() {
            return Err(LakeFault::Storage {
                action: format!(
                    "delete `{path}` ({} of {} unneeded files are gone) of",
                    ending.files_deleted,
                    choice.files.len()
                ),
                table: table.to_string(),
                location: self.location(table)?.to_string(),
                source: error,
            }
            .into());
        }
        Ok((deleted.paths.into_iter().collect(), end?))
    }

    /// Commits the end; what others changed meanwhile does not undo it.
    async fn commit_end(
        &self,
        snapshot: &TableSnapshot,
        options: &VacuumOptions,
        ending: Ending,
    ) -> Result<u64, LakeError> {
        let mut result =
            self.commit_info(snapshot, vacuum::end_info(snapshot, options, ending)).await;
        for attempt in 1..END_ATTEMPTS {
            if !matches!(result, Err(LakeError::Layout(LayoutError::Aborted { .. }))) {
                break;
            }
            self.pause(attempt).await;
            let newer = self.snapshot(&snapshot.table).await?;
            result = self.commit_info(&newer, vacuum::end_info(&newer, options, ending)).await;
        }
        result
    }

    /// Commits a history entry and nothing else.
    async fn commit_info(&self, snapshot: &TableSnapshot, info: Value) -> Result<u64, LakeError> {
        let intent = Intent { inputs: BTreeSet::new(), scope: Scope::Rearrange };
        let actions = vec![Action::CommitInfo(info)];
        match commit_actions(self, snapshot, &intent, actions, &[]).await? {
            Replacement::Committed { version } => Ok(version),
            // Nothing is replaced, so nobody can have touched what is.
            Replacement::Replan => Err(LayoutError::TooManyConflicts {
                table: snapshot.table.to_string(),
                attempts: 1,
            }
            .into()),
        }
    }
}
