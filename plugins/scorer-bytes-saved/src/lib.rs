//! Scores an edge by the bytes that a better layout could save on it.
//!
//! score = F · B · confidence ÷ the largest such product of the window, from 0 to 1, with F
//! statements and B mean bytes their scans read. Dividing by the largest, and not by the width of the
//! window, keeps what the Join Importance Score loses: the weakest edge keeps its weight, and a
//! window of one edge scores 1. If no edge reads anything, all score 0.
//!
//! With the setting `scale = "bytes"` the products stay as they are, in bytes, so that scores of two
//! windows can be compared: by a ratio to its own largest, a window of half as many joins looks the
//! same.
//!
//! Worked example: F = 10, 5, 1; B = 100, 100, 50 bytes; confidence 1, 0.5, 1. The products are 1000,
//! 250 and 50, so the scores are 1, 0.25 and 0.05.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

use alloc::{format, string::String, vec::Vec};

use lakebed_guest::{
    Plugin, PluginError, kernels,
    scorer::{Edges, Scorer},
};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    scale: Option<String>,
}

#[derive(Debug)]
struct BytesSaved {
    is_ratio: bool,
}

impl Plugin for BytesSaved {
    const NAME: &'static str = "bytes-saved";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "Bytes read over the edge in the window, weighted by confidence, as a \
        ratio to the largest. Settings: scale, `largest` (the default) or `bytes`, which leaves the \
        products in bytes.";
    type Settings = Settings;

    fn configure(settings: Settings) -> Result<Self, PluginError> {
        match settings.scale.as_deref() {
            None | Some("largest") => Ok(Self { is_ratio: true }),
            Some("bytes") => Ok(Self { is_ratio: false }),
            Some(other) => Err(PluginError::InvalidConfig(format!(
                "scale is `{other}`, expected `largest` or `bytes`"
            ))),
        }
    }
}

impl Scorer for BytesSaved {
    fn score(&self, edges: &Edges) -> Result<Vec<f64>, PluginError> {
        let mut scores: Vec<f64> = edges
            .frequency
            .iter()
            .zip(&edges.bytes_mean)
            .zip(&edges.confidence)
            .map(|((frequency, bytes), confidence)| frequency * bytes * confidence)
            .collect();
        if self.is_ratio
            && let Some((_, largest)) = kernels::extremes(&scores)
            && largest > 0.0
        {
            scores.iter_mut().for_each(|score| *score /= largest);
        }
        Ok(scores)
    }
}

lakebed_guest::export_scorer!(BytesSaved);
