//! Why a graph cannot be scored or compared.

use crate::{DriftError, EdgeKey, ScoreError};

/// A failure of this crate; the text fits after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// The scorer itself failed.
    #[error(transparent)]
    Score(#[from] ScoreError),
    /// The scorer gave too few or too many values.
    #[error(
        "use the scores of `{scorer}`: {found} values for {expected} edges, expected one per edge"
    )]
    ScoreCount {
        /// Name of the scorer.
        scorer: String,
        /// Edges given.
        expected: usize,
        /// Values returned.
        found: usize,
    },
    /// The scorer gave a value that is no number.
    #[error("use the score of `{scorer}` for {edge}: {score} is not finite")]
    ScoreNotFinite {
        /// Name of the scorer.
        scorer: String,
        /// The edge.
        edge: EdgeKey,
        /// The value returned.
        score: f64,
    },
    /// The drift meter itself failed.
    #[error(transparent)]
    Drift(#[from] DriftError),
    /// The meter gave too few or too many parts.
    #[error(
        "use the reading of `{meter}`: {found} parts for {expected} edges, expected one per edge"
    )]
    PartCount {
        /// Name of the meter.
        meter: String,
        /// Edges given.
        expected: usize,
        /// Parts returned.
        found: usize,
    },
    /// The meter gave a distance or a part that is no distance.
    #[error("use the reading of `{meter}`: {value} is not a finite number of at least 0")]
    NoDistance {
        /// Name of the meter.
        meter: String,
        /// The value returned.
        value: f64,
    },
    /// The threshold is no distance.
    #[error("compare with threshold {threshold}: expected a finite number of at least 0")]
    Threshold {
        /// The value given.
        threshold: f64,
    },
}
