//! What can go wrong with a lake beyond what `layout` has names for.

use std::error::Error;

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use lakebed_layout::{LakeFault, LayoutError};

use crate::rules::Violation;
use crate::tables::is_of_files;

/// A lake operation that failed.
#[derive(Debug, thiserror::Error)]
pub enum LakeError {
    /// A table could not be reached, read or written.
    #[error(transparent)]
    Fault(#[from] LakeFault),
    /// A layout operation was refused or lost.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The engine refused a query or failed in it.
    #[error("run query `{}`", shortened(sql))]
    Query {
        /// Its text.
        sql: String,
        /// The engine's error.
        #[source]
        source: DataFusionError,
    },
    /// The engine failed while reading or writing files of a table.
    #[error("{action} table `{table}`")]
    Engine {
        /// What was done.
        action: &'static str,
        /// The table.
        table: String,
        /// The engine's error.
        #[source]
        source: DataFusionError,
    },
    /// The table has no such version.
    #[error("read table `{table}` at {asked}: {known}")]
    NoVersion {
        /// The table.
        table: String,
        /// The version or instant asked for.
        asked: String,
        /// What there is instead.
        known: String,
    },
    /// The rows of an INSERT do not fit the table's columns.
    #[error("insert into table `{table}`: {reason}")]
    Insert {
        /// The table.
        table: String,
        /// What does not fit.
        reason: String,
    },
    /// The location is no URL and no path.
    #[error("open lake at `{location}`: {reason}")]
    Location {
        /// As given.
        location: String,
        /// Why not.
        reason: String,
    },
    /// There is no folder to spill to.
    #[error("open folder `{folder}` to spill to")]
    SpillFolder {
        /// As given.
        folder: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A lake's folder in an object store could not be listed.
    #[error("list the lake at {location}")]
    Folder {
        /// Its URL.
        location: String,
        /// The cause.
        #[source]
        source: object_store::Error,
    },
    /// Files of an object store could not be brought here.
    #[error("fetch {location}")]
    Fetch {
        /// Their URL.
        location: String,
        /// The cause.
        #[source]
        source: object_store::Error,
    },
    /// The table exists already.
    #[error("create table `{table}`: {location} holds a Delta table already")]
    TableExists {
        /// The table.
        table: String,
        /// Where.
        location: String,
    },
}

impl LakeError {
    /// Tells whether the fault is the table's own: other tables, and another try, are not affected.
    #[must_use]
    pub fn is_of_table(&self) -> bool {
        match self {
            Self::Fault(fault) => fault.is_of_table(),
            Self::Engine { source, .. } => is_of_files(source),
            _ => false,
        }
    }
}

/// Tells whether an operation failed because the engine may not use more memory.
#[must_use]
pub fn is_out_of_memory(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&cause| cause.source())
        .any(|cause| matches!(cause.downcast_ref(), Some(DataFusionError::ResourcesExhausted(_))))
}

/// Tells whether an operation failed because a row breaks a rule of its table or does not fit its
/// types.
#[must_use]
pub fn is_violation(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&cause| cause.source()).any(|cause| {
        cause.is::<Violation>()
            || matches!(
                cause.downcast_ref(),
                Some(
                    // A decimal with more digits than its column.
                    ArrowError::InvalidArgumentError(_)
                        | ArrowError::CastError(_)
                        | ArrowError::ParseError(_)
                        | ArrowError::ComputeError(_)
                        | ArrowError::ArithmeticOverflow(_)
                        | ArrowError::DivideByZero
                )
            )
    })
}

/// Cuts a statement for an error message.
fn shortened(sql: &str) -> String {
    const MAX_CHARS: usize = 120;
    let flat = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= MAX_CHARS {
        return flat;
    }
    flat.chars().take(MAX_CHARS).chain(['…']).collect()
}
