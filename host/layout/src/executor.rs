//! The hand-over of a rewrite to whoever runs it.
//!
//! A [`RewriteTask`] is plain data and serializable, so that another process (Ballista, a user's
//! Spark) can run it; choosing the files and committing the result stay with the coordinator in
//! [`crate::optimize()`]. A task names every decision: an executor adds none.

use std::{collections::BTreeMap, fmt};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    BloomFilter, ColumnMapping, IteratorTask, TableSnapshot,
    action::{AddFile, DeletionVector},
    cuts::Cuts,
};

/// How rows are put in order before they are cut into files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "curve")]
pub enum RowOrder {
    /// As they come: compaction without keys.
    Unordered,
    /// By the values of one column, nulls first.
    Plain {
        /// The column.
        key: String,
    },
    /// Along a Hilbert curve over the ranks of two to four columns, nulls first.
    Hilbert {
        /// The columns.
        keys: Vec<String>,
        /// Bits of each coordinate.
        bits: u32,
    },
    /// By weighted cuts over the ranks of two to four columns, nulls first. Files end where cells do
    /// ([`lakebed_plan::cuts`]).
    Cuts {
        /// The columns, the outermost first.
        keys: Vec<String>,
        /// Parts of each, which are scaled to the task's files.
        parts: Vec<u32>,
    },
}

impl RowOrder {
    /// Chooses the order for a table: by its cuts, else by its clustering columns.
    #[must_use]
    pub fn for_table(snapshot: &TableSnapshot) -> Self {
        match snapshot.cuts() {
            Some(Cuts { columns: keys, parts }) => Self::Cuts { keys, parts },
            None => Self::for_keys(&snapshot.cluster_by()),
        }
    }

    /// Chooses the order for clustering columns: none, one or several.
    #[must_use]
    pub fn for_keys(keys: &[String]) -> Self {
        match keys {
            [] => Self::Unordered,
            [key] => Self::Plain { key: key.clone() },
            keys => Self::Hilbert { keys: keys.to_vec(), bits: crate::curve::BITS },
        }
    }

    /// Returns the columns rows are ordered by.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        match self {
            Self::Unordered => Vec::new(),
            Self::Plain { key } => vec![key.clone()],
            Self::Hilbert { keys, .. } | Self::Cuts { keys, .. } => keys.clone(),
        }
    }
}

/// Who reads the files of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileReader {
    /// The engine's own scan: columns by name, types as they are.
    #[default]
    Engine,
    /// A reader that finds columns by field id, reads older types as newer ones and knows the
    /// positions of rows.
    FileByFile,
}

/// Columns of files, unknown to the schema, that hold the ids of rows which were rewritten
/// (PROTOCOL.md, "Row Tracking").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowTrackingColumns {
    /// The id of each row.
    pub row_id: String,
    /// The version that last changed each row.
    pub row_commit_version: String,
}

/// A file to read, with the rows that no longer count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputFile {
    /// Path as in the log.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Rows that must come out of the scan, where the statistics tell.
    pub live_rows: Option<u64>,
    /// Which rows are deleted.
    #[serde(default)]
    pub deletion_vector: Option<DeletionVector>,
    /// First row id, with row tracking.
    #[serde(default)]
    pub base_row_id: Option<i64>,
    /// Version of the rows that do not say another, with row tracking.
    #[serde(default)]
    pub default_row_commit_version: Option<i64>,
    /// Values of the partition columns, which the file itself does not hold, by physical name.
    #[serde(default)]
    pub partition_values: BTreeMap<String, Option<String>>,
}

/// One bin's rewrite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RewriteTask {
    /// The table's name.
    pub table: String,
    /// The table's URL.
    pub location: String,
    /// The version whose files are read.
    pub version: u64,
    /// The files to replace.
    pub inputs: Vec<InputFile>,
    /// The order of the rows.
    pub order: RowOrder,
    /// How many files to write, of equal rows, or of a cell each where rows are cut.
    pub target_files: u64,
    /// Columns whose statistics every file must carry, besides the leading ones.
    pub stats_columns: Vec<String>,
    /// How many leading columns get statistics.
    pub indexed_columns: usize,
    /// Columns of which every row group has a Bloom filter.
    #[serde(default)]
    pub bloom_filters: Vec<BloomFilter>,
    /// How the new files name their columns.
    #[serde(default)]
    pub column_mapping: ColumnMapping,
    /// Who reads the files.
    #[serde(default)]
    pub reader: FileReader,
    /// Where the new files hold the ids of their rows, in a table that tracks rows.
    #[serde(default)]
    pub row_tracking: Option<RowTrackingColumns>,
    /// Prefix for the new files' names; unique per task.
    pub file_prefix: String,
    /// Tags for the new files.
    pub tags: BTreeMap<String, String>,
    /// `clusteringProvider` of the new files.
    pub clustering_provider: Option<String>,
    /// `modificationTime` of the new files, epoch milliseconds.
    pub modification_time: i64,
    /// `false` unless the rows themselves change (iterator compaction).
    pub data_change: bool,
    /// What rows to keep and how to fold them; none for a mere rearrangement.
    pub iterators: Option<IteratorTask>,
}

/// What a rewrite produced; nothing of it is visible before it is committed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RewriteOutput {
    /// The new files, complete with statistics and tags.
    pub adds: Vec<AddFile>,
    /// Rows read, after deletion vectors.
    pub rows_in: u64,
    /// Rows written.
    pub rows_out: u64,
    /// Rows in and out of each iterator.
    pub steps: Vec<StepReport>,
}

/// Rows that passed one iterator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepReport {
    /// The iterator's name.
    pub name: String,
    /// Rows that reached it.
    pub rows_in: u64,
    /// Rows that left it.
    pub rows_out: u64,
    /// Rows dropped because the value it judges by is null.
    pub null_rows_dropped: u64,
}

/// A rewrite that failed; its files were deleted as far as possible.
#[derive(Debug, thiserror::Error)]
#[error("run rewrite of {files} files ({bytes} bytes)")]
pub struct ExecutorError {
    /// Input files of the task.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The cause.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Runs rewrites.
///
/// Implementers read exactly the task's inputs at its version, keep the multiset of rows unless the
/// task has iterators, write exactly the files they return, and commit nothing. On an error they delete what they wrote.
#[async_trait]
pub trait Executor: Send + Sync + fmt::Debug {
    /// Runs one task.
    async fn rewrite(&self, task: &RewriteTask) -> Result<RewriteOutput, ExecutorError>;
}
