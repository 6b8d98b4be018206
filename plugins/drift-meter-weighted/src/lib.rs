//! Drift weighted by what is at stake: the weighted Jaccard distance of two windows.
//!
//! Drift = Σ |a − b| / Σ max(a, b) over the edges of both windows, from 0 to 1, where a and b are an
//! edge's scores before and after; 0 where all scores are 0. An edge moves the distance by its share
//! of the scores, so a tiny edge that comes and goes is noise, and the main one is not. With scores
//! in bytes (`scorer-bytes-saved` with `scale = "bytes"`) that share is one of bytes read.
//!
//! The parts add up to the distance: |a − b| / Σ max(a, b).
//!
//! Worked example: before 100, 50, 0; after 100, 40, 2. The sum of the larger ones is 152, the parts
//! are 0, 10 / 152 and 2 / 152, the distance is 0.0789. The mean relative change would be 0.4.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

use alloc::{format, vec::Vec};

use lakebed_guest::{
    NoSettings, Plugin, PluginError,
    drift_meter::{DriftMeter, Reading},
};

#[derive(Debug)]
struct WeightedDrift;

impl Plugin for WeightedDrift {
    const NAME: &'static str = "weighted";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "Weighted Jaccard distance of the scores of both windows, 0 to 1: every \
        edge counts by its score. No settings.";
    type Settings = NoSettings;

    fn configure(_: NoSettings) -> Result<Self, PluginError> {
        Ok(Self)
    }
}

impl DriftMeter for WeightedDrift {
    fn measure(&self, before: &[f64], after: &[f64]) -> Result<Reading, PluginError> {
        let mut parts = Vec::with_capacity(before.len());
        let mut largest = 0.0;
        for (edge, (&before, &after)) in before.iter().zip(after).enumerate() {
            if before < 0.0 || after < 0.0 {
                return Err(PluginError::InvalidInput(format!(
                    "edge {edge} has scores {before} and {after}, expected none below 0"
                )));
            }
            let (small, large) = if before > after { (after, before) } else { (before, after) };
            largest += large;
            parts.push(large - small);
        }
        if largest > 0.0 {
            parts.iter_mut().for_each(|part| *part /= largest);
        }
        Ok(Reading { distance: parts.iter().sum(), parts })
    }
}

lakebed_guest::export_drift_meter!(WeightedDrift);
