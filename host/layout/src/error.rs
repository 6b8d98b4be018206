//! What can go wrong between a plan and a commit.

use crate::{LakeFault, executor::ExecutorError};

/// A layout operation that did not happen.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// Delta's `DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS`.
    #[error(
        "cluster table `{table}` by {count} columns [DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS]: at most {limit} are allowed"
    )]
    TooManyColumns {
        /// The table.
        table: String,
        /// How many were given.
        count: usize,
        /// How many may be.
        limit: usize,
    },
    /// Delta's `DELTA_DUPLICATE_COLUMNS_FOUND`.
    #[error("cluster table `{table}` by `{column}` twice [DELTA_DUPLICATE_COLUMNS_FOUND]")]
    DuplicateColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// Cuts that are not those of the clustering columns.
    #[error(
        "cut table `{table}` by ({columns}) into {parts:?} parts: expected one number above 0 for each of two to four columns"
    )]
    Cuts {
        /// The table.
        table: String,
        /// The numbers of parts.
        parts: Vec<u32>,
        /// The clustering columns.
        columns: String,
    },
    /// The column does not exist.
    #[error(
        "cluster table `{table}` by `{column}` [DELTA_COLUMN_NOT_FOUND_IN_SCHEMA]: the table has no such column; it has {known}"
    )]
    UnknownColumn {
        /// The table.
        table: String,
        /// The column asked for.
        column: String,
        /// The columns there are.
        known: String,
    },
    /// Delta's `DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED`.
    #[error(
        "cluster table `{table}` by `{column}` [DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED]: data type {data_type} {reason}"
    )]
    UnsupportedType {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Its type.
        data_type: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Delta's `DELTA_CLUSTERING_COLUMN_MISSING_STATS`.
    #[error(
        "cluster table `{table}` by `{column}` [DELTA_CLUSTERING_COLUMN_MISSING_STATS]: statistics are collected for {collected}"
    )]
    MissingStats {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Which columns have statistics, and what to do.
        collected: String,
    },
    /// Delta's `DELTA_OPTIMIZE_FULL_NOT_SUPPORTED`.
    #[error(
        "run OPTIMIZE `{table}` FULL [DELTA_OPTIMIZE_FULL_NOT_SUPPORTED]: the table has no clustering columns; set some with ALTER TABLE {table} CLUSTER BY (…)"
    )]
    FullWithoutColumns {
        /// The table.
        table: String,
    },
    /// A table property that a statement may not set.
    #[error("set property `{property}` of table `{table}`: {reason}")]
    Property {
        /// The table.
        table: String,
        /// The property.
        property: String,
        /// Why not.
        reason: String,
    },
    /// A statement that Delta does not allow on this table.
    #[error("{statement} on table `{table}` [{class}]: {reason}")]
    NotAllowed {
        /// What was asked for.
        statement: String,
        /// The table.
        table: String,
        /// Delta's error class.
        class: &'static str,
        /// Why not, and what to do instead.
        reason: String,
    },
    /// The table must not be written by this engine.
    #[error("rewrite table `{table}`: {reason}")]
    Protected {
        /// The table.
        table: String,
        /// Why.
        reason: String,
    },
    /// A table that numbers its rows must be told how many a file has.
    #[error("commit to table `{table}`: new file `{path}` does not say how many rows need ids")]
    UncountedRows {
        /// The table.
        table: String,
        /// The file.
        path: String,
    },
    /// Files of the table must not be deleted by this engine.
    #[error("vacuum table `{table}`: {reason}")]
    VacuumRefused {
        /// The table.
        table: String,
        /// Why.
        reason: String,
    },
    /// A retention that would take files away from readers and running writers.
    #[error(
        "vacuum table `{table}` [DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT]: a retention of {asked} is shorter than the {minimum} for which readers and running writers may need removed files"
    )]
    RetentionTooShort {
        /// The table.
        table: String,
        /// The retention asked for.
        asked: String,
        /// The table's own.
        minimum: String,
    },
    /// A property that is no duration.
    #[error(
        "read property {property} of table `{table}`: expected a duration such as `interval 7 days`, found `{value}`"
    )]
    InvalidInterval {
        /// The table.
        table: String,
        /// The property.
        property: &'static str,
        /// Its value.
        value: String,
    },
    /// A deletion vector whose file cannot be told.
    #[error(
        "vacuum table `{table}`: cannot tell which file holds the deletion vector `{vector}` of `{path}`; nothing was deleted"
    )]
    DeletionVectorPlace {
        /// The table.
        table: String,
        /// The data file.
        path: String,
        /// The vector as the log spells it.
        vector: String,
    },
    /// Rows would be lost or invented.
    #[error(
        "rewrite table `{table}`: {rows_in} rows went in and {rows_out} came out; nothing was committed"
    )]
    RowCount {
        /// The table.
        table: String,
        /// Rows read.
        rows_in: u64,
        /// Rows written.
        rows_out: u64,
    },
    /// A concurrent commit forbids ours.
    #[error(
        "commit to table `{table}`: version {version} of another writer {what}; nothing was committed"
    )]
    Aborted {
        /// The table.
        table: String,
        /// The winner's version.
        version: u64,
        /// What the winner did.
        what: String,
    },
    /// Other writers kept winning.
    #[error(
        "commit to table `{table}`: other writers won {attempts} times in a row; nothing of the last attempt was committed"
    )]
    TooManyConflicts {
        /// The table.
        table: String,
        /// How often we tried.
        attempts: u32,
    },
    /// Storage says that a version exists and does not show it.
    #[error(
        "commit to table `{table}`: version {version} exists, but could not be read {attempts} times in a row; files prepared for it were left"
    )]
    UnreadableVersion {
        /// The table.
        table: String,
        /// The version.
        version: u64,
        /// How often it was looked for.
        attempts: u32,
    },
    /// The lake answered with an error.
    #[error(transparent)]
    Lake(#[from] LakeFault),
    /// The executor answered with an error.
    #[error("rewrite files of table `{table}`")]
    Executor {
        /// The table.
        table: String,
        /// What happened.
        #[source]
        source: ExecutorError,
    },
    /// An iterator chain does not fit its table.
    #[error("compact table `{table}`")]
    Chain {
        /// The table.
        table: String,
        /// What does not fit.
        #[source]
        source: Box<lakebed_compact::CompactError>,
    },
    /// There is no such setting.
    #[error("set `{key}`: there is no such setting; the nearest is `{nearest}`")]
    UnknownSetting {
        /// The name asked for.
        key: String,
        /// The setting that was perhaps meant.
        nearest: String,
    },
    /// A setting does not take this value.
    #[error("set `{key}` to `{value}`: it takes {expected}")]
    SettingValue {
        /// The setting.
        key: String,
        /// The value.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
    /// A statement of ours could not be read.
    #[error("parse statement at byte {position}: expected {expected}, found {found}")]
    Statement {
        /// Byte offset.
        position: usize,
        /// What could have stood there.
        expected: String,
        /// What stands there.
        found: String,
    },
}
