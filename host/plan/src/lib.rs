//! Join graph and evidence → layout plan: which tables to cluster by what, why, and why not.
//!
//! One call, [`plan`], in seven steps:
//! 1. **ranges** — what each logged scan asks of its table, carried over join equalities;
//! 2. **candidates** — per table, every set of one to four columns worth simulating, and weighted cuts
//!    by the most promising ones;
//! 3. **benefit** — bytes read now, replayed on file statistics, minus bytes read under a candidate,
//!    simulated on a sample, with an interval;
//! 4. **cost** — net present value of each candidate, by a [`CostModel`];
//! 5. **search** — one option per table within the budgets, by a [`Search`] that also says how far
//!    from the best it may be;
//! 6. **groups** — tables whose new layouts serve the same join;
//! 7. **explain** — a sentence for every action and every refusal.
//!
//! The crate is pure: no clock, no environment, no async; randomness comes from a constant seed.
//! The same input gives the same plan, byte for byte. It never opens a file: what it knows of one
//! is its size and its statistics ([`lakebed_model::FileView`]).
//!
//! Tracing: `debug` "candidates simulated" per table with `table`, `scans`, `candidates`; `info`
//! "layout planned" with `tables`, `actions`, `npv_bytes`, `gap`, `proven`, `nodes`.

pub mod benefit;
pub mod contract;
pub mod curve;
pub mod cuts;
pub mod search;

mod candidates;
mod cost;
mod error;
mod even;
mod evidence;
mod explain;
mod identity;
mod outcome;
mod planner;
mod random;
mod ranges;
#[cfg(test)]
mod testing;

pub use benefit::BenefitEstimate;
pub use candidates::{MAX_INTERESTING_COLUMNS, MAX_KEYS};
pub use cost::{
    CandidateFacts, CostError, CostModel, DEFAULT_DISCOUNT_RATE, DEFAULT_HORIZON_WINDOWS, Settings,
};
pub use error::PlanError;
pub use evidence::{LakeEvidence, Layout, TableEvidence, TableSample};
pub use outcome::{LayoutPlan, PlannedAction, Rejection, Savings};
pub use planner::plan;
pub use random::SplitMix64;
pub use ranges::{LoggedScan, logged_scans};
pub use search::Search;
