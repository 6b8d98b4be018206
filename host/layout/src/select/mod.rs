//! Chooses the files an OPTIMIZE rewrites, with a reason for each. Pure.
//!
//! 1. A file is selected when it is unclustered, when deletion vectors hide more than
//!    `deleted_rows_ratio` of its rows whatever its state, or — FULL only — when it was clustered
//!    under other columns or cuts or by another provider, or is at least twice the target size.
//! 2. **Incremental** (the default): small files of open cubes join when they are a small share of what
//!    is rewritten, when enough of them are of like size, or when together they make a healthy file;
//!    clustered files whose ranges overlap join when anything else is selected ([`crate::overlap`]).
//!    What is well clustered stays. Cost therefore follows the new data, not the table.
//! 3. **Standard** (`strategy.incremental = false`) and **FULL**: all files of open cubes join when
//!    anything is selected or the cubes are several, as delta-spark does it (delta#4304); FULL also
//!    joins the rewrites of one cube, because an incremental cube grows by many.
//! 4. A closed cube (100 GiB) gets no more files and loses only those of 1.
//! 5. The selected files are packed in order of cube and path into bins. An incremental bin joins
//!    the largest open cube until that is closed; every other bin is a new cube.
//!
//! Doing it twice changes nothing the second time: whatever selects a file is gone after its rewrite.

mod choice;
mod pack;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use lakebed_model::Bytes;

use self::choice::Choice;
use crate::{
    ClusteringSettings, LayoutError, TableSnapshot,
    action::AddFile,
    bounds::RangeReader,
    layer,
    zcube::{CLOSED_CUBE_BYTES, TARGET_CUBE_BYTES},
};

/// A file of less than the target size divided by this is small.
const SMALL: u64 = 4;

/// Why a file is rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// No clustering implementation has touched it.
    Unclustered,
    /// It is far under the target size.
    Small,
    /// Deletion vectors hide too many of its rows.
    DeletedRows,
    /// Its ranges overlap those of other clustered files.
    Overlap,
    /// It was clustered under other columns.
    StaleKeys,
    /// Another provider clustered it.
    OtherProvider,
    /// It is clustered, but far over the target size: another engine merged it.
    Oversized,
    /// Its cube is open, and the whole cube is rewritten.
    OpenCube,
}

impl Reason {
    /// Returns the reason's name in machine output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unclustered => "unclustered",
            Self::Small => "small",
            Self::DeletedRows => "deleted_rows",
            Self::Overlap => "overlap",
            Self::StaleKeys => "stale_keys",
            Self::OtherProvider => "other_provider",
            Self::Oversized => "oversized",
            Self::OpenCube => "open_cube",
        }
    }
}

/// The numbers selection goes by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelectionPolicy {
    /// Whether stale and foreign files are rewritten too, and open cubes as a whole.
    pub full: bool,
    /// The size a file should have.
    pub target_file_size: Bytes,
    /// The strategy and its thresholds.
    pub settings: ClusteringSettings,
    /// A cube of this size is closed.
    pub closed_cube_bytes: u64,
    /// Largest bin, unless its cube would stay open.
    pub bin_bytes_max: u64,
}

impl SelectionPolicy {
    /// Builds the usual policy for a target size.
    #[must_use]
    pub fn new(full: bool, target_file_size: Bytes) -> Self {
        Self {
            full,
            target_file_size,
            settings: ClusteringSettings::default(),
            closed_cube_bytes: CLOSED_CUBE_BYTES,
            bin_bytes_max: TARGET_CUBE_BYTES,
        }
    }

    fn takes_whole_cubes(&self) -> bool {
        self.full || !self.settings.strategy_incremental
    }

    fn is_small(&self, counted_bytes: u64) -> bool {
        counted_bytes < self.target_file_size.0 / SMALL
    }

    fn is_small_layer(&self, bytes: u64) -> bool {
        layer::is_small(bytes, self.target_file_size)
    }
}

/// Files that are rewritten together.
#[derive(Debug, Clone, PartialEq)]
pub struct Bin {
    /// The files, each with its reason.
    pub files: Vec<(AddFile, Reason)>,
    /// The open cube that the new files join; none for a cube of their own.
    pub cube: Option<String>,
}

impl Bin {
    /// Sums the files' sizes.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.files.iter().map(|(file, _)| Bytes(file.size)).sum()
    }

    /// Counts the files by reason.
    #[must_use]
    pub fn reasons(&self) -> BTreeMap<Reason, u64> {
        let mut counts = BTreeMap::new();
        for (_, reason) in &self.files {
            *counts.entry(*reason).or_default() += 1;
        }
        counts
    }
}

/// What an OPTIMIZE would do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selection {
    /// The bins, in the order they are committed.
    pub bins: Vec<Bin>,
}

/// Sums the files that OPTIMIZE FULL would rewrite: those that do not follow the declared columns yet,
/// none where none are declared.
///
/// # Errors
/// Fails as [`select`].
pub fn pending_bytes(snapshot: &TableSnapshot, target: Bytes) -> Result<Bytes, LayoutError> {
    if snapshot.cluster_by().is_empty() {
        return Ok(Bytes(0));
    }
    let selection = select(snapshot, &SelectionPolicy::new(true, target))?;
    Ok(selection.bins.iter().map(Bin::bytes).sum())
}

/// Selects files and packs them into bins.
///
/// # Errors
/// Fails when FULL is asked for a table without clustering columns.
pub fn select(
    snapshot: &TableSnapshot,
    policy: &SelectionPolicy,
) -> Result<Selection, LayoutError> {
    let cluster_by = snapshot.cluster_by();
    if policy.full && cluster_by.is_empty() {
        return Err(LayoutError::FullWithoutColumns { table: snapshot.table.to_string() });
    }
    let mut choice = Choice::new(snapshot, policy, &cluster_by);
    if cluster_by.is_empty() {
        choice.drop_if_files_would_not_get_fewer();
    } else if policy.takes_whole_cubes() {
        choice.take_open_cubes();
    } else {
        choice.take_small_files();
        choice.take_overlapping_files(&RangeReader::new(
            &snapshot.schema,
            snapshot.column_mapping(),
            &cluster_by,
        ));
    }
    let bins = choice.pack();
    for (file, reason) in bins.iter().flat_map(|bin| &bin.files) {
        tracing::debug!(table = %snapshot.table, path = file.path, reason = reason.as_str(), "file selected");
    }
    Ok(Selection { bins })
}
