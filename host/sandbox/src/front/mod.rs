//! A typed front per world: checks of the arguments, the call, checks of the result.

mod aggregator;
mod cost_model;
mod drift_meter;
mod live;
mod row_filter;
mod scorer;
mod wire;

pub use aggregator::{AggregatorStream, EmitTo, FoldSignature};
pub use cost_model::{CandidateColumns, PricingSettings};
pub use drift_meter::Reading;
pub use row_filter::RowFilterStream;
pub use scorer::EdgeColumns;

pub(crate) use live::{Description, Prepared};
