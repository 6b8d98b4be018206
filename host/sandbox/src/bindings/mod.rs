//! What wasmtime makes of `wit/`: one file per world, nothing written by hand.

pub(crate) mod aggregator;
pub(crate) mod cost_model;
pub(crate) mod drift_meter;
pub(crate) mod row_filter;
pub(crate) mod scorer;
