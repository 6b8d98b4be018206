//! The drift of adaptive join-aware layout (N. Mahore, SSRN 7030626, 2026).
//!
//! Drift = mean over the edges of both windows of |a − b| / max(a, b, ε), from 0 to 1, where a and b
//! are an edge's scores before and after. An edge that comes or goes contributes 1; an edge of score
//! 0 in both windows contributes 0. Two windows without edges have distance 0.
//!
//! Worked example: before 1.0, 0.5, 0; after 1.0, 0.4, 0.2. The parts are 0, 0.1 / 0.5 = 0.2 and 1;
//! the distance is 1.2 / 3 = 0.4.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

use alloc::{format, vec::Vec};

use lakebed_guest::{
    Plugin, PluginError,
    drift_meter::{DriftMeter, Reading},
};
use serde::Deserialize;

/// ε: scores below it count as absent.
const EPSILON: f64 = 1e-9;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    epsilon: Option<f64>,
}

#[derive(Debug)]
struct AjloDrift {
    epsilon: f64,
}

impl Plugin for AjloDrift {
    const NAME: &'static str = "ajlo";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "Mean relative change of the scores over the edges of both windows, \
        0 to 1. Settings: epsilon (default 1e-9), the smallest divisor.";
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

impl DriftMeter for AjloDrift {
    fn measure(&self, before: &[f64], after: &[f64]) -> Result<Reading, PluginError> {
        let mut parts = Vec::with_capacity(before.len());
        for (edge, (&before, &after)) in before.iter().zip(after).enumerate() {
            if before < 0.0 || after < 0.0 {
                return Err(PluginError::InvalidInput(format!(
                    "edge {edge} has scores {before} and {after}, expected none below 0"
                )));
            }
            let (small, large) = if before > after { (after, before) } else { (before, after) };
            let divisor = if large > self.epsilon { large } else { self.epsilon };
            parts.push((large - small) / divisor);
        }
        let distance =
            if parts.is_empty() { 0.0 } else { parts.iter().sum::<f64>() / parts.len() as f64 };
        Ok(Reading { distance, parts })
    }
}

lakebed_guest::export_drift_meter!(AjloDrift);
