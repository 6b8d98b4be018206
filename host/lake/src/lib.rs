//! Delta tables on an object store: the only crate that executes DataFusion and knows deltalake.
//!
//! [`DeltaLake`] implements `layout`'s [`Lake`](lakebed_layout::Lake) and
//! [`Executor`](lakebed_layout::Executor), samples tables for `plan`, runs queries with the metrics
//! of their scans, and lowers iterator chains of `compact`. It decides nothing: which files, which
//! keys and what a conflict means come from the stages before it.
//!
//! Spans: `rewrite{table}`, `query`, `sample{table}`; fields `files`, `rows`, `bytes`.

mod analyze;
mod chain;
mod change_data;
mod checkpoint;
#[cfg(test)]
mod checkpoint_tests;
mod condition;
mod create;
mod delete;
mod dialect;
mod dml;
mod encode;
mod error;
mod evidence;
mod fetch;
mod file_set;
mod files;
mod guarded;
mod history;
mod integers;
mod kernel;
mod lift;
mod literals;
mod live_files;
mod log;
mod meter;
mod narrow;
mod physical;
mod predicate;
mod rewrite;
mod rules;
mod scan;
mod session;
mod snapshot;
mod stats;
mod storage;
#[cfg(test)]
mod store_tests;
mod stores;
mod tables;
mod vacuum;
mod vectors;
mod versions;
mod write;
#[cfg(test)]
mod write_tests;

pub use analyze::AnalyzeReport;
pub use create::{CreateReport, NewTable};
pub use delete::DeleteClause;
pub use dml::DmlReport;
pub use error::{LakeError, is_out_of_memory, is_violation};
pub use evidence::SampleOptions;
pub use guarded::{StoreProblem, is_of_storage, store_problem};
pub use history::RecordTable;
pub use meter::{Interrupted, Meter};
pub use rules::Violation;
pub use session::{QueryOutcome, QuerySession, ScanCost};
pub use stores::{OptionRefusal, StoreOptions};
pub use tables::{DeltaLake, LakeOptions};
pub use vacuum::VacuumReport;
