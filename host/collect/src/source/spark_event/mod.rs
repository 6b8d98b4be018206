//! Spark's event log: JSON lines in one file or a rolling folder, plain, zstd or gzip.
//!
//! Lines are told apart by their first bytes; only SQL events, the application's start and the row
//! counts of finished stages are parsed, which is about one line in fifty of a busy log.

mod event;
mod execution;
mod json;
mod reader;

pub(super) use reader::SparkEventLog;
