//! Iterator chains: which rows a compaction keeps, and how it folds those that share a key.
//!
//! A [`ChainConfig`] is what a user wrote (the string form parses with [`str::parse`], TOML is read
//! by the app). [`Chain::validate`] checks it against one table, [`Chain::bind`] turns its names
//! into running code, native or a plugin's, and [`ChainRun`] pushes batches through.
//!
//! **The law.** Compaction runs on any subset of a table's files, in any order and again and again,
//! so every chain must satisfy `f(a ∪ b) = f(f(a) ∪ f(b))`, and `f(f(a)) = f(a)`. Each native fold
//! is built to keep it; what cannot (a plain row count) is refused with a way out. A partial result
//! is therefore an ordinary row of the table, and merging two is folding them once more.
//!
//! This crate never sees a file, a table version or a clock: `now` is an argument of
//! [`Chain::bind`], once per job.
//!
//! Tracing: `debug` when a run finishes (`rows_in`, `rows_out`, `groups`, `state_bytes`), `warn` for
//! each [`Warning`] that shows only in the data (`column`).

mod bind;
mod chain;
mod config;
mod error;
mod filter;
mod fold;
mod folded;
mod group_table;
mod run;
mod warning;

#[cfg(test)]
mod latest_tests;
#[cfg(test)]
mod law_tests;
#[cfg(test)]
mod plugin_tests;
#[cfg(test)]
mod testing;

pub use bind::{BoundChain, NoPlugins, Plugins};
pub use chain::Chain;
pub use config::{
    ChainConfig, ColumnFold, FilterSpec, Fold, NullRule, Step, SyntaxError, parse_string_form,
};
pub use error::CompactError;
pub use filter::{
    ALL_FILTERS, AgeOff, ExpressionError, InvalidRule, RowFilter, SpanVerdict, Visibility,
};
pub use fold::{
    ALL_FOLDS, Average, Count, End, Extreme, FirstLast, FoldFactory, GroupFold, MapFold, Sum, Top,
};
pub use folded::FoldedBatches;
pub use run::{ChainRun, StepCounts};
pub use warning::Warning;
