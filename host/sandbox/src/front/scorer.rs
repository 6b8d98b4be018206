//! The world `scorer`.

use super::{
    live::{Live, Prepared},
    wire::arguments,
};
use crate::{
    Plugin, SandboxError, World,
    bindings::scorer::{Scorer, exports::lakebed::policy::scoring},
    checked,
};

/// Raw statistics of every edge of one window, one entry per edge in each list, never normalized.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EdgeColumns<'a> {
    /// F: how many statements join over the edge.
    pub frequency: &'a [f64],
    /// D: mean product of the two tables' row counts, in rows².
    pub rows_product_mean: &'a [f64],
    /// C: mean execution time of the statements.
    pub cost_ms_mean: &'a [f64],
    /// Mean of the bytes that the two tables' scans read.
    pub bytes_mean: &'a [f64],
    /// How sure the lineage is, from 0 to 1.
    pub confidence: &'a [f64],
}

impl Plugin {
    /// Scores all edges of a window in a fresh instance: one finite score per edge, in their order.
    ///
    /// # Errors
    /// Returns [`SandboxError::Argument`] when the lists differ in length or hold a NaN or infinity,
    /// and what the plugin failed at.
    pub fn score(&self, edges: &EdgeColumns<'_>) -> Result<Vec<f64>, SandboxError> {
        const FUNCTION: &str = "score";
        let Prepared::Scorer(prepared) = self.prepared() else {
            return Err(self.of_other_world(World::Scorer));
        };
        let lists = [
            ("frequency", edges.frequency),
            ("rows-product-mean", edges.rows_product_mean),
            ("cost-ms-mean", edges.cost_ms_mean),
            ("bytes-mean", edges.bytes_mean),
            ("confidence", edges.confidence),
        ];
        let edge_count = arguments(self.label(), FUNCTION, &lists)?;
        let columns = scoring::EdgeColumns {
            frequency: edges.frequency,
            rows_product_mean: edges.rows_product_mean,
            cost_ms_mean: edges.cost_ms_mean,
            bytes_mean: edges.bytes_mean,
            confidence: edges.confidence,
        };
        let mut live = Live::<Scorer>::start(self, prepared)?;
        let scores = live.call(FUNCTION, size_of_val(edges.frequency), |bindings, store| {
            bindings.lakebed_policy_scoring().call_score(store, columns)
        })?;
        live.check(FUNCTION, checked::finite(&scores, edge_count))?;
        Ok(scores)
    }
}
