//! Workload → join graph: which tables are joined on which columns, how often, and how that moves.
//!
//! A node is a table, an edge is the set of column equalities of one join ([`EdgeStats`]). The
//! graph is built by [`JoinGraph::build`], ranked by an [`EdgeScorer`] and compared with an earlier
//! one by [`compare`]. The formulas themselves are not here: a scorer or a meter sees a whole list
//! and gives a whole list back, so that a sandboxed guest can be one.
//!
//! The crate is pure: no clock, no environment, no async, and `petgraph` does not show in its API.
//! It never sees a file or a byte of table data.
//!
//! Tracing: `info` "join graph built" with `statements`, `tables`, `edges`, `filters`; `info`
//! "join graph scored" with `scorer`, `edges`; `warn` "scores will not tell edges apart" with
//! `reason`; `info` "drift measured" with `meter`, `distance`, `threshold`, `replan`.

mod build;
mod drift;
mod edge;
mod error;
mod graph;
mod score;

pub use drift::{
    DEFAULT_THRESHOLD, DriftError, DriftMeter, DriftReading, DriftReport, EdgeDrift, Regret,
    RegretSettings, Standing, compare, noise_floor,
};
pub use edge::{Edge, EdgeKey, EdgeNotes, EdgeStats, FilterStats};
pub use error::GraphError;
pub use graph::JoinGraph;
pub use score::{Degeneracy, EdgeScorer, Figure, ScoreError};
