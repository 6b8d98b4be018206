//! What scripts see: the only types that become JSON. Names and meanings are a contract.
//!
//! Bytes are integers, times are integers in milliseconds, instants are RFC 3339 in UTC.

mod common;
mod demo;
mod drift;
mod experiment;
mod graph;
mod history;
mod plan;

pub use common::{PluginView, WindowView};
pub use demo::{
    DemoCompactionView, DemoDriftView, DemoQueryView, DemoReplanView, DemoTableView, DemoView,
};
pub use drift::DriftView;
pub use experiment::ExperimentView;
pub use graph::GraphView;
pub use history::{JoinView, ParseView, RecordView, ScanView};
pub use plan::{ActionView, LayoutView, PlanInputsView, PlanView, RejectionView};
