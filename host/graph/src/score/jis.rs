//! The join importance score, as an oracle for tests; the product runs it as a plugin.
//!
//! JIS = F̂ · D̂ · Ĉ with X̂ = (X − Xmin) / (Xmax − Xmin + ε) for F and C, and the same on
//! log10(D + 1) for D (N. Mahore, SSRN 7030626, 2026, "Graph and score").

use super::{EdgeScorer, ScoreError};
use crate::EdgeStats;

const EPSILON: f64 = 1e-9;

#[derive(Debug)]
pub(crate) struct Jis;

impl EdgeScorer for Jis {
    fn name(&self) -> &'static str {
        "native-jis"
    }

    fn score(&self, edges: &[EdgeStats]) -> Result<Vec<f64>, ScoreError> {
        let frequency = normalized(edges.iter().map(|edge| edge.weight));
        let rows = normalized(edges.iter().map(|edge| (edge.rows_product_mean + 1.0).log10()));
        let cost = normalized(edges.iter().map(|edge| edge.cost_ms_mean));
        Ok(frequency.iter().zip(rows).zip(cost).map(|((f, d), c)| f * d * c).collect())
    }
}

fn normalized(values: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let smallest = values.clone().fold(f64::INFINITY, f64::min);
    let largest = values.clone().fold(f64::NEG_INFINITY, f64::max);
    values.map(|value| (value - smallest) / (largest - smallest + EPSILON)).collect()
}
