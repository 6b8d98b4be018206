//! Spark's event log: JSON lines in one file, a rolling folder or the pieces of Databricks, in any codec.
//!
//! Lines are told apart by their first bytes; only SQL events, starts of applications and jobs, failed
//! jobs and the row counts of finished stages are parsed, which is about one line in fifty of a busy log.

mod event;
mod execution;
mod json;
mod reader;

pub(super) use reader::SparkEventLog;
