//! Turns layout decisions into liquid-clustered Delta commits, against an abstract lake.
//!
//! Everything here but [`optimize`], [`auto_compact()`], [`alter_clustering`] and the traits [`Lake`] and [`Executor`]
//! is pure: [`select()`] chooses files with a reason each, [`curve`] orders rows, [`zcube`] stamps
//! files, [`cuts`] keeps how they are cut, [`conflict`] judges what concurrent commits mean for ours. This crate never sees an
//! object store, a Parquet file or a query engine.
//!
//! Spans: `optimize{table}`, with one `info` line per commit, `debug` per selected file and `warn`
//! per conflict (fields `table`, `attempt`, `version`).

pub mod action;
mod alter;
mod auto_compact;
mod bloom;
mod bounds;
pub mod columns;
mod commit;
mod compaction;
pub mod conflict;
pub mod curve;
pub mod cuts;
pub mod ddl;
mod error;
mod executor;
pub mod interval;
mod iterators;
mod lake;
mod layer;
pub mod log_files;
mod moves;
mod optimize;
pub mod ordinal;
mod overlap;
pub mod properties;
#[cfg(test)]
mod repeat_tests;
mod select;
mod settings;
mod sizing;
mod snapshot;
pub mod statement;
mod succession;
mod task;
pub mod testing;
pub mod vacuum;
#[cfg(test)]
mod vacuum_tests;
mod writes;
pub mod zcube;

pub use alter::{
    AlterOutcome, alter_clustering, alter_clustering_of, alter_layout, set_properties,
};
pub use auto_compact::{AutoCompact, AutoCompaction, auto_compact};
pub use bloom::BloomFilter;
pub use columns::ColumnMapping;
pub use commit::{Change, Replacement, commit_actions, commit_change, commit_replacement};
pub use compaction::{CompactOptions, CompactReport, compact};
pub use error::LayoutError;
pub use executor::{
    Executor, ExecutorError, FileReader, InputFile, RewriteOutput, RewriteTask, RowOrder,
    RowTrackingColumns, StepReport,
};
pub use iterators::{IteratorFold, IteratorStep, IteratorTask};
pub use lake::{Commit, Lake, LakeFault, PutOutcome};
pub use optimize::{
    BinReport, DEFAULT_FILE_SIZE, MAX_ATTEMPTS, OptimizeOptions, OptimizeReport, engine_info,
    optimize,
};
pub use select::{Bin, Reason, Selection, SelectionPolicy, pending_bytes, select};
pub use settings::ClusteringSettings;
pub use sizing::FileSizing;
pub use snapshot::{DEFAULT_CHECKPOINT_INTERVAL, TableSnapshot};
pub use succession::{ROW_TRACKING_DOMAIN, row_id_high_water_mark};
pub use task::input_file;
pub use writes::WriteOptions;
