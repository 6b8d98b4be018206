//! How far a window's edges moved from an earlier window's.

use std::{cmp::Ordering, collections::BTreeMap, error::Error, fmt};

use lakebed_model::TableName;

mod noise;
mod regret;

pub use noise::noise_floor;
pub use regret::{Regret, RegretSettings, Standing};

use crate::{Edge, EdgeKey, GraphError, JoinGraph};

/// Distance above which a new plan is worth making (the paper's δ, "Workload Drift Detector").
pub const DEFAULT_THRESHOLD: f64 = 0.10;

/// Measures the distance between two lists of edge scores.
///
/// Implementers get the scores of the same edges before and after, 0 where an edge is absent, and
/// must return a finite distance of at least 0 and one part of that kind per edge. The same lists
/// must give the same reading.
pub trait DriftMeter: fmt::Debug {
    /// Returns the meter's name.
    fn name(&self) -> &str;

    /// Measures two lists of the same length, which is at least 1.
    ///
    /// # Errors
    /// Fails when the formula cannot be computed, for example because a guest trapped.
    fn measure(&self, before: &[f64], after: &[f64]) -> Result<DriftReading, DriftError>;
}

/// What a meter says.
#[derive(Debug, Clone, PartialEq)]
pub struct DriftReading {
    /// The distance of the two lists.
    pub distance: f64,
    /// Each edge's own distance, in the order given.
    pub parts: Vec<f64>,
}

/// A meter that could not answer.
#[derive(Debug, thiserror::Error)]
#[error("measure the drift of {edge_count} edges with `{meter}`")]
pub struct DriftError {
    /// Name of the meter.
    pub meter: String,
    /// Edges it was given.
    pub edge_count: usize,
    /// What happened.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// One edge in two windows.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeDrift {
    /// The table whose name sorts first.
    pub left: TableName,
    /// The other table.
    pub right: TableName,
    /// Column of `left`, column of `right`.
    pub pairs: Vec<(String, String)>,
    /// The score in the earlier window, 0 if absent.
    pub before: f64,
    /// The score in the later window, 0 if absent.
    pub after: f64,
    /// The edge's own distance.
    pub part: f64,
}

/// The distance of two windows and the verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct DriftReport {
    /// Name of the meter.
    pub meter: String,
    /// The distance.
    pub distance: f64,
    /// The largest distance at which the present plan still stands.
    pub threshold: f64,
    /// Whether the distance is above the threshold.
    pub replan: bool,
    /// Edges of the later window only, best first.
    pub new_edges: Vec<EdgeKey>,
    /// Edges of the earlier window only, best first.
    pub gone_edges: Vec<EdgeKey>,
    /// All edges in the order in which to look at them again: new ones first, best first; then the
    /// others, the most moved first, then by name.
    pub edges: Vec<EdgeDrift>,
}

impl DriftReport {
    /// Raises the threshold to a noise floor, and judges anew.
    #[must_use]
    pub fn above_noise(self, floor: f64) -> Self {
        let threshold = self.threshold.max(floor);
        Self { threshold, replan: self.distance > threshold, ..self }
    }
}

/// Compares the scores of two windows over the union of their edges.
///
/// # Errors
/// Fails when the threshold is negative or no number, when the meter fails, or when its reading is
/// not one distance and one part per edge.
pub fn compare(
    before: &JoinGraph,
    after: &JoinGraph,
    meter: &dyn DriftMeter,
    threshold: f64,
) -> Result<DriftReport, GraphError> {
    if !is_distance(threshold) {
        return Err(GraphError::Threshold { threshold });
    }
    let union = union(before, after);
    let before_scores: Vec<f64> = union.values().map(|seen| seen.before.unwrap_or(0.0)).collect();
    let after_scores: Vec<f64> = union.values().map(|seen| seen.after.unwrap_or(0.0)).collect();
    let reading = if union.is_empty() {
        DriftReading { distance: 0.0, parts: Vec::new() }
    } else {
        meter.measure(&before_scores, &after_scores)?
    };
    check_reading(meter.name(), union.len(), &reading)?;
    let replan = reading.distance > threshold;
    tracing::info!(
        meter = meter.name(),
        distance = reading.distance,
        threshold,
        replan,
        "drift measured"
    );
    let mut moved: Vec<Moved> = union
        .into_iter()
        .zip(reading.parts)
        .map(|((key, seen), part)| Moved { key, seen, part })
        .collect();
    moved.sort_by(Moved::by_priority);
    let keys = |wanted: fn(&Seen) -> bool| {
        moved.iter().filter(|edge| wanted(&edge.seen)).map(|edge| edge.key.clone()).collect()
    };
    let new_edges = keys(Seen::is_new);
    let mut gone: Vec<&Moved> = moved.iter().filter(|edge| edge.seen.after.is_none()).collect();
    gone.sort_by(|a, b| {
        let score = |edge: &Moved| edge.seen.before.unwrap_or(0.0);
        score(b).total_cmp(&score(a)).then_with(|| a.key.cmp(&b.key))
    });
    let gone_edges = gone.into_iter().map(|edge| edge.key.clone()).collect();
    Ok(DriftReport {
        meter: meter.name().to_owned(),
        distance: reading.distance,
        threshold,
        replan,
        new_edges,
        gone_edges,
        edges: moved.into_iter().map(Moved::into_drift).collect(),
    })
}

/// An edge's scores in the two windows, where it is present.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    before: Option<f64>,
    after: Option<f64>,
}

impl Seen {
    fn is_new(&self) -> bool {
        self.before.is_none()
    }
}

#[derive(Debug)]
struct Moved {
    key: EdgeKey,
    seen: Seen,
    part: f64,
}

impl Moved {
    fn by_priority(a: &Self, b: &Self) -> Ordering {
        let rank = |edge: &Self| {
            if edge.seen.is_new() { edge.seen.after.unwrap_or(0.0) } else { edge.part }
        };
        b.seen
            .is_new()
            .cmp(&a.seen.is_new())
            .then_with(|| rank(b).total_cmp(&rank(a)))
            .then_with(|| a.key.cmp(&b.key))
    }

    fn into_drift(self) -> EdgeDrift {
        let EdgeKey { left, right, pairs } = self.key;
        EdgeDrift {
            left,
            right,
            pairs,
            before: self.seen.before.unwrap_or(0.0),
            after: self.seen.after.unwrap_or(0.0),
            part: self.part,
        }
    }
}

fn union(before: &JoinGraph, after: &JoinGraph) -> BTreeMap<EdgeKey, Seen> {
    let mut union: BTreeMap<EdgeKey, Seen> = BTreeMap::new();
    for Edge { stats, score } in before.edges() {
        union.entry(stats.key()).or_default().before = Some(*score);
    }
    for Edge { stats, score } in after.edges() {
        union.entry(stats.key()).or_default().after = Some(*score);
    }
    union
}

fn check_reading(meter: &str, expected: usize, reading: &DriftReading) -> Result<(), GraphError> {
    if reading.parts.len() != expected {
        return Err(GraphError::PartCount {
            meter: meter.to_owned(),
            expected,
            found: reading.parts.len(),
        });
    }
    match std::iter::once(&reading.distance).chain(&reading.parts).find(|v| !is_distance(**v)) {
        Some(value) => Err(GraphError::NoDistance { meter: meter.to_owned(), value: *value }),
        None => Ok(()),
    }
}

fn is_distance(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

#[cfg(test)]
mod tests;
