//! Log formats: one file or folder each, and the list of all of them.

mod athena;
mod bigquery;
mod codec;
mod databricks;
pub(crate) mod discover;
mod duckdb;
pub(crate) mod exclude;
#[cfg(test)]
pub(crate) mod fuzz;
#[cfg(test)]
mod history_tests;
mod jsonl;
pub(crate) mod lakebed;
pub(crate) mod lines;
mod openlineage;
mod redshift;
mod rows;
mod snowflake;
mod snowflake_pruning;
mod spark_event;
mod statement;
mod trino;

pub use lines::decompressed_bytes;
pub(crate) use snowflake::NAME as SNOWFLAKE;
pub(crate) use snowflake_pruning::NAME as SNOWFLAKE_PRUNING;
pub use statement::{Access, LogHead, LogNote, LogPath, Reading, Statement};

#[cfg(test)]
pub(crate) use statement::tests;

use lakebed_model::ParseReport;

use crate::{Catalog, CollectError, lineage::sql::Dialect};

/// Reads one format of query log.
///
/// Implementers must read in one pass, must give every statement that is anybody's workload to the sink
/// exactly once, and must count what they leave out, with the places of lines that are no records.
/// Memory must not grow with the log. They must not deduplicate or shorten table names:
/// [`collect`](fn@crate::collect) does, across logs, several of which are read at once, and it orders
/// what they give.
pub trait LogSource: Send + Sync + std::fmt::Debug {
    /// Returns the name that `--format` takes and that records carry.
    fn name(&self) -> &'static str;

    /// Returns the dialect of the log's statements, where it is the same for all.
    fn dialect(&self) -> Option<Dialect> {
        None
    }

    /// Tells whether a log that starts like this is of this format.
    fn recognizes(&self, head: &LogHead) -> bool;

    /// Reads the log; the report counts what was left out, not the statements that were given.
    ///
    /// # Errors
    /// Fails when the log cannot be opened, or holds no SQL statement at all. A log that is cut or
    /// damaged is no error: its whole lines are read and the report says so.
    fn read(
        &self,
        log: &LogPath,
        catalog: &dyn Catalog,
        sink: &mut dyn FnMut(Statement),
    ) -> Result<ParseReport, CollectError>;
}

/// All formats, in the order in which they are tried: those that anything with two columns could be
/// come last.
pub static ALL_SOURCES: &[&dyn LogSource] = &[
    &spark_event::SparkEventLog,
    &databricks::SOURCE,
    &snowflake::SOURCE,
    &snowflake_pruning::PruningHistory,
    &trino::SOURCE,
    &openlineage::OpenLineage,
    &athena::SOURCE,
    &bigquery::SOURCE,
    &redshift::SOURCE,
    &duckdb::SOURCE,
    &lakebed::SOURCE,
    &jsonl::JSON_LINES,
    &jsonl::CSV,
];
