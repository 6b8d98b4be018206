//! Ranking of edges: the trait, and what is checked of every answer.

use std::{error::Error, fmt};

use crate::{Edge, EdgeStats, GraphError};

#[cfg(test)]
pub(crate) mod jis;

/// Gives every edge a number by which edges are ranked.
///
/// Implementers get all edges of a window at once, in the order of their names, and must return one
/// finite value per edge in the same order. The same list must give the same values. They must not
/// rely on figures being normalized: they are raw.
pub trait EdgeScorer: fmt::Debug {
    /// Returns the scorer's name, for example `ajlo-jis`.
    fn name(&self) -> &str;

    /// Scores the edges of a window.
    ///
    /// # Errors
    /// Fails when the formula cannot be computed, for example because a guest trapped.
    fn score(&self, edges: &[EdgeStats]) -> Result<Vec<f64>, ScoreError>;
}

/// A scorer that could not answer.
#[derive(Debug, thiserror::Error)]
#[error("score {edge_count} edges with `{scorer}`")]
pub struct ScoreError {
    /// Name of the scorer.
    pub scorer: String,
    /// Edges it was given.
    pub edge_count: usize,
    /// What happened.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// A figure that scorers rank edges by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// F, statements.
    Frequency,
    /// D, product of row counts.
    RowsProduct,
    /// C, cost.
    Cost,
    /// Bytes read.
    Bytes,
}

impl Figure {
    /// Returns the figure's name in machine output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Frequency => "frequency",
            Self::RowsProduct => "rows_product_mean",
            Self::Cost => "cost_ms_mean",
            Self::Bytes => "bytes_mean",
        }
    }
}

/// A window in which min-max normalization makes a product of the figures zero for every edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Degeneracy {
    /// There is one edge: smallest and largest are the same.
    SingleEdge,
    /// These figures have the same value on every edge.
    Constant(Vec<Figure>),
}

impl fmt::Display for Degeneracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SingleEdge => f.write_str("the window has a single edge"),
            Self::Constant(figures) => {
                let names: Vec<&str> = figures.iter().map(|figure| figure.as_str()).collect();
                write!(f, "every edge has the same {}", names.join(" and "))
            }
        }
    }
}

pub(crate) fn degeneracy(edges: &[Edge]) -> Option<Degeneracy> {
    if edges.len() < 2 {
        return edges.first().map(|_| Degeneracy::SingleEdge);
    }
    let constant = |value: fn(&EdgeStats) -> f64| {
        let first = value(&edges[0].stats);
        edges.iter().all(|edge| value(&edge.stats).total_cmp(&first).is_eq())
    };
    let figures: Vec<Figure> = [
        (Figure::Frequency, constant(|stats| stats.weight)),
        (Figure::RowsProduct, constant(|stats| stats.rows_product_mean)),
        (Figure::Cost, constant(|stats| stats.cost_ms_mean)),
    ]
    .into_iter()
    .filter_map(|(figure, is_constant)| is_constant.then_some(figure))
    .collect();
    if figures.is_empty() { None } else { Some(Degeneracy::Constant(figures)) }
}

pub(crate) fn check_scores(
    scorer: &str,
    edges: &[EdgeStats],
    scores: &[f64],
) -> Result<(), GraphError> {
    if scores.len() != edges.len() {
        return Err(GraphError::ScoreCount {
            scorer: scorer.to_owned(),
            expected: edges.len(),
            found: scores.len(),
        });
    }
    match edges.iter().zip(scores).find(|(_, score)| !score.is_finite()) {
        Some((stats, score)) => Err(GraphError::ScoreNotFinite {
            scorer: scorer.to_owned(),
            edge: stats.key(),
            score: *score,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
