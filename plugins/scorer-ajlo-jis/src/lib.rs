//! The Join Importance Score of adaptive join-aware layout (N. Mahore, SSRN 7030626, 2026).
//!
//! For edge (i, j) of a window, with F statements, D mean product of the row counts, C mean cost:
//!
//! 1. X̂ = (X − Xmin) / (Xmax − Xmin + ε) for X in {F, C}
//! 2. D̂ = the same of log10(D + 1)
//! 3. JIS = F̂ · D̂ · Ĉ, a dimensionless number from 0 to 1
//!
//! The formula is kept to the letter, and so are its edges: what is weakest in one statistic scores 0,
//! and in a window of one edge, or of edges that are equal in one statistic, all score 0.
//!
//! Worked example: F = 0, 5, 10; D = 0, 9, 99; C = 0, 50, 100 ms. The middle edge has
//! F̂ = 5 / 10, D̂ = log10(10) / log10(100), Ĉ = 50 / 100, so JIS = 0.5 · 0.5 · 0.5 = 0.125.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

use alloc::{format, vec::Vec};

use lakebed_guest::{
    Plugin, PluginError, kernels,
    scorer::{Edges, Scorer},
};
use serde::Deserialize;

/// ε: keeps the quotient defined where all edges are equal; far below any real spread.
const EPSILON: f64 = 1e-9;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    epsilon: Option<f64>,
}

#[derive(Debug)]
struct AjloJis {
    epsilon: f64,
}

impl Plugin for AjloJis {
    const NAME: &'static str = "ajlo-jis";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "Join Importance Score: the product of frequency, row product (log10) \
        and cost, each scaled to 0..1 over the window. Settings: epsilon (default 1e-9), added to \
        each scale's width.";
    type Settings = Settings;

    fn configure(settings: Settings) -> Result<Self, PluginError> {
        let epsilon = settings.epsilon.unwrap_or(EPSILON);
        if epsilon.is_finite() && epsilon > 0.0 {
            Ok(Self { epsilon })
        } else {
            Err(PluginError::InvalidConfig(format!(
                "epsilon is {epsilon}, expected a number above 0"
            )))
        }
    }
}

impl Scorer for AjloJis {
    fn score(&self, edges: &Edges) -> Result<Vec<f64>, PluginError> {
        let rows_log10: Vec<f64> =
            edges.rows_product_mean.iter().map(|product| libm::log10(product + 1.0)).collect();
        let mut scores = Vec::with_capacity(edges.count());
        scores.resize(edges.count(), 1.0);
        for statistic in [&edges.frequency, &rows_log10, &edges.cost_ms_mean] {
            self.multiply_scaled(&mut scores, statistic);
        }
        Ok(scores)
    }
}

impl AjloJis {
    /// Multiplies each score with its edge's place between the smallest and the largest value.
    fn multiply_scaled(&self, scores: &mut [f64], values: &[f64]) {
        let Some((low, high)) = kernels::extremes(values) else { return };
        let width = high - low + self.epsilon;
        for (score, value) in scores.iter_mut().zip(values) {
            *score *= (value - low) / width;
        }
    }
}

lakebed_guest::export_scorer!(AjloJis);
