//! Everything a Lakebed policy plugin needs, so that an author writes one function.
//!
//! A plugin is a component for `wasm32-wasip2` that imports nothing. This crate brings what `std`
//! would have brought with imports: an allocator, a panic handler, the bindings of the five worlds.
//!
//! ```ignore
//! #![no_std]
//! extern crate alloc;
//! use alloc::vec::Vec;
//! use lakebed_guest::{NoSettings, Plugin, PluginError, scorer::{Edges, Scorer}};
//!
//! struct ByFrequency;
//!
//! impl Plugin for ByFrequency {
//!     const NAME: &'static str = "by-frequency";
//!     const VERSION: &'static str = env!("CARGO_PKG_VERSION");
//!     const DOC: &'static str = "Scores an edge by how many statements join over it.";
//!     type Settings = NoSettings;
//!     fn configure(_: NoSettings) -> Result<Self, PluginError> {
//!         Ok(Self)
//!     }
//! }
//!
//! impl Scorer for ByFrequency {
//!     fn score(&self, edges: &Edges) -> Result<Vec<f64>, PluginError> {
//!         Ok(edges.frequency.clone())
//!     }
//! }
//!
//! lakebed_guest::export_scorer!(ByFrequency);
//! ```
//!
//! One crate per world holds its bindings, because the generated export macros of two worlds cannot share
//! a crate; this one puts them under one roof.
//!
//! Speed: the host interrupts a plugin at loop back edges, so a loop that does one element per round
//! pays for the check on every element. [`kernels`] work on eight elements per round; prefer them,
//! and prefer `if a > b { a } else { b }` to `f64::max`, which is a library call here.
#![no_std]

pub use lakebed_guest_aggregator::{self as aggregator, export_aggregator};
pub use lakebed_guest_core::{
    Batch, Bits, Column, ColumnType, NoSettings, Plugin, PluginError, Values, VarBytes, kernels,
};
pub use lakebed_guest_cost_model::{self as cost_model, export_cost_model};
pub use lakebed_guest_drift_meter::{self as drift_meter, export_drift_meter};
pub use lakebed_guest_row_filter::{self as row_filter, export_row_filter};
pub use lakebed_guest_scorer::{self as scorer, export_scorer};
