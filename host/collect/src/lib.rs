//! Query logs in, one [`Workload`](lakebed_model::Workload) out.
//!
//! A [`LogSource`] turns one log into [`Statement`]s, line by line; a lineage reader
//! ([`lineage::sql`] for text, a plan reader for Spark's event log) turns each statement into
//! equality joins and filters between *base* columns. [`collect()`] puts the logs together: read in
//! parallel, format and codec by content, what is nobody's workload and duplicates out, time window,
//! table names as short as they are unique.
//!
//! What is absent: this crate never executes a query, never opens a table and never reads the
//! clock; a statement that it cannot read is counted with its reason, never dropped in silence.
//!
//! Spans and events: `collect` (fields `paths`, `statements`, `unparsed`), `debug` per log (`log`,
//! `source`), `warn` per log that was cut or holds malformed lines.

mod catalog;
mod collect;
mod error;
mod example;
mod fingerprint;
pub mod lineage;
mod names;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod reading_tests;
mod redact;
pub mod source;
#[cfg(test)]
mod tests;
mod time;
mod twice;
mod window;
mod workers;

pub use catalog::{Catalog, ColumnType, EmptyCatalog};
pub use collect::{CollectOptions, collect};
pub use error::CollectError;
pub use fingerprint::{of_sql as fingerprint, of_sql_in as fingerprint_in, redacted};
pub use redact::text as redacted_text;
pub use source::{
    ALL_SOURCES, Access, LogHead, LogNote, LogPath, LogSource, Reading, Statement,
    decompressed_bytes,
};
