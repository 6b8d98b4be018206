//! Bytes a layout saves: two models of what a logged scan reads, and their difference.
//!
//! [`Replay`] is exact and knows the present layout only; [`Simulate`] predicts any layout from a
//! sample. A candidate's benefit is what the first says minus what the second says, summed over the
//! window's scans, with an interval over the statements.

mod bootstrap;
mod replay;
mod simulate;

use std::fmt;

pub(crate) use bootstrap::Resamples;
pub use replay::Replay;
pub use simulate::{DENSE_ROWS_PER_FILE, MAX_PSEUDO_FILES, MIN_ROWS_PER_FILE, Simulate};

use crate::{Layout, LoggedScan, TableEvidence};

/// What one scan reads of its table.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reading {
    /// Files; a fraction where predicted.
    pub files: f64,
    /// Bytes of whole files.
    pub bytes: f64,
}

/// Predicts what logged scans read of a table.
///
/// Implementers must give one reading per scan, in order, between nothing and the whole table, and
/// the same readings for the same input. They must err towards reading more.
pub trait BenefitModel: fmt::Debug {
    /// Returns the model's name.
    fn name(&self) -> &'static str;

    /// Does once what does not depend on the layout.
    fn prepare<'a>(
        &self,
        evidence: &'a TableEvidence,
        scans: &'a [LoggedScan],
    ) -> Box<dyn WhatIf + 'a>;
}

/// A table and its scans, ready to be asked about layouts.
pub trait WhatIf: fmt::Debug {
    /// Predicts each scan's reading under a layout.
    fn readings(&self, layout: &Layout) -> Vec<Reading>;

    /// Proposes weighted cuts by two or three keys that are worth a prediction, the most promising
    /// first; `weights` say how much each scan counts beside the others. None unless the model can
    /// tell.
    fn cuts(&self, _keys: &[String], _weights: &[f64]) -> Vec<Guess> {
        Vec::new()
    }
}

/// A layout that has been weighed, not simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct Guess {
    /// The layout.
    pub layout: Layout,
    /// The table's share that scans would not read, summed over them.
    pub promises: f64,
}

/// Estimates what a layout would save of the bytes that scans read of the files as they lie now.
#[must_use]
pub fn estimate(
    evidence: &TableEvidence,
    scans: &[LoggedScan],
    layout: &Layout,
) -> BenefitEstimate {
    let now = Replay.prepare(evidence, scans).readings(&evidence.current);
    let then = Simulate.prepare(evidence, scans).readings(layout);
    Resamples::new(scans).estimate(&now, &then)
}

/// What a layout saves in one window; negative where it reads more than the present one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BenefitEstimate {
    /// Bytes saved by the window's statements.
    pub expected_bytes: f64,
    /// The 5th percentile over resampled statements.
    pub low_bytes: f64,
    /// The 95th percentile over resampled statements.
    pub high_bytes: f64,
    /// Files that a scan reads now, on average.
    pub files_read_now: f64,
    /// Files that a scan would read, on average.
    pub files_read_then: f64,
}
