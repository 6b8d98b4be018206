//! What logged scans would read under a layout that does not exist yet, tried out on a sample.
//!
//! 1. Once per table: every sample column becomes dense ranks (null 0, the smallest value 1), and
//!    every logged range becomes an interval of ranks.
//! 2. Per layout: order the sample by the key's rank, or by the Hilbert curve over equal-depth
//!    coordinates of two and more keys, and cut it into pseudo-files of equal rows; or divide it by
//!    weighted cuts. The rewriter does the same with the same functions.
//! 3. Note each pseudo-file's smallest and largest rank.
//! 4. A scan reads the share of pseudo-files whose spans meet all its intervals; that share of the
//!    table's files and bytes is the prediction.
//!
//! A sparse sample makes spans look narrower than they are. With fewer than 50 rows a pseudo-file,
//! a span is widened at both ends by its mean gap, (max − min) / (n − 1): on synthetic lineitem with
//! 12 rows a file this halves an error of 0.14.

mod shapes;

use std::{cmp::Ordering, collections::BTreeMap};

use lakebed_model::{Bound, Literal, ValueRange};

use super::{BenefitModel, Guess, Reading, WhatIf};
use crate::{
    Layout, LoggedScan, TableEvidence,
    curve::{DEFAULT_BITS, hilbert_index, quantize},
    cuts::{Cell, Cells},
};
use shapes::{KeyRanges, MAX_CUT_KEYS, promising, thinned};

/// Sample rows a pseudo-file from which its spans are taken as they are.
pub const DENSE_ROWS_PER_FILE: usize = 50;
/// Sample rows a pseudo-file has at least; fewer pseudo-files are cut from a sparser sample, which
/// predicts more reading, never less.
pub const MIN_ROWS_PER_FILE: usize = 8;
/// Pseudo-files at most: finer shares than a thousandth decide no plan.
pub const MAX_PSEUDO_FILES: usize = 1024;

/// Simulates a layout on the table's sample.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulate;

impl BenefitModel for Simulate {
    fn name(&self) -> &'static str {
        "simulate"
    }

    fn prepare<'a>(
        &self,
        evidence: &'a TableEvidence,
        scans: &'a [LoggedScan],
    ) -> Box<dyn WhatIf + 'a> {
        Box::new(Simulator::new(evidence, scans))
    }
}

#[derive(Debug)]
struct Simulator<'a> {
    evidence: &'a TableEvidence,
    columns: BTreeMap<&'a str, RankedColumn<'a>>,
    /// Columns that a scan asks about; spans are kept of these.
    asked: Vec<&'a str>,
    scans: Vec<Vec<Interval>>,
    pseudo_files: usize,
}

#[derive(Debug)]
struct RankedColumn<'a> {
    values: Vec<&'a Literal>,
    ranks: Vec<u32>,
    coordinates: Vec<u32>,
}

/// Ranks of one asked column that a scan wants; empty when `low` > `high`.
#[derive(Debug, Clone, Copy)]
struct Interval {
    asked: usize,
    low: u32,
    high: u32,
}

/// Smallest and largest rank in a pseudo-file; `None` when it holds nulls only.
type Span = Option<(u32, u32)>;

/// One pseudo-file, or several that are alike.
#[derive(Debug)]
struct PseudoFile {
    /// How many.
    files: f64,
    /// Per asked column.
    spans: Vec<Span>,
}

impl<'a> Simulator<'a> {
    fn new(evidence: &'a TableEvidence, scans: &'a [LoggedScan]) -> Self {
        let columns: BTreeMap<&str, RankedColumn<'_>> = evidence
            .sample
            .columns
            .iter()
            .filter_map(|(name, values)| Some((name.as_str(), RankedColumn::new(values)?)))
            .collect();
        let mut asked: Vec<&str> =
            scans.iter().flat_map(|scan| scan.ranges.keys()).map(String::as_str).collect();
        asked.sort_unstable();
        asked.dedup();
        asked.retain(|column| columns.contains_key(column));
        let scans = scans
            .iter()
            .map(|scan| {
                asked
                    .iter()
                    .enumerate()
                    .filter_map(|(index, column)| {
                        let wanted = scan.ranges.get(*column)?;
                        columns[column].interval(&wanted.range, index)
                    })
                    .collect()
            })
            .collect();
        let target = usize::try_from(evidence.target_files).unwrap_or(MAX_PSEUDO_FILES);
        let pseudo_files =
            target.min(evidence.sample.rows / MIN_ROWS_PER_FILE).clamp(1, MAX_PSEUDO_FILES);
        Self { evidence, columns, asked, scans, pseudo_files }
    }

    /// Returns the sample's rows in the order in which the layout lays them down.
    fn order(&self, layout: &Layout) -> Vec<usize> {
        let keys: Vec<&RankedColumn<'_>> =
            layout.cluster_by.iter().filter_map(|key| self.columns.get(key.as_str())).collect();
        let mut rows: Vec<usize> = (0..self.evidence.sample.rows).collect();
        match keys.as_slice() {
            [] => {}
            [key] => rows.sort_by_key(|&row| key.ranks[row]),
            keys => rows.sort_by_cached_key(|&row| {
                let cell: Vec<u32> = keys.iter().map(|key| key.coordinates[row]).collect();
                hilbert_index(&cell, DEFAULT_BITS)
            }),
        }
        rows
    }

    /// Lays the sample out in pseudo-files.
    fn pseudo_files(&self, layout: &Layout) -> Vec<PseudoFile> {
        if layout.cuts.is_empty() {
            let order = self.order(layout);
            let count = self.pseudo_files;
            return (0..count)
                .map(|file| {
                    let (from, to) = (order.len() * file / count, order.len() * (file + 1) / count);
                    PseudoFile { files: 1.0, spans: self.spans(&order[from..to]) }
                })
                .collect();
        }
        let (columns, parts): (Vec<&[u32]>, Vec<u32>) = layout
            .cluster_by
            .iter()
            .zip(&layout.cuts)
            .filter_map(|(key, parts)| {
                Some((self.columns.get(key.as_str())?.ranks.as_slice(), *parts))
            })
            .unzip();
        if columns.is_empty() {
            return self.pseudo_files(&Layout::default());
        }
        let cells = Cells::new(&columns, &parts, self.files());
        let file = |cell: &Cell| PseudoFile {
            files: f64::from(cell.files),
            spans: self.spans(cells.rows_of(cell)),
        };
        cells.cells().iter().map(file).collect()
    }

    /// The pseudo-files' number, which is small.
    fn files(&self) -> u32 {
        u32::try_from(self.pseudo_files).unwrap_or(u32::MAX)
    }

    /// Returns the spans of the asked columns over some rows.
    fn spans(&self, rows: &[usize]) -> Vec<Span> {
        self.asked.iter().map(|column| self.columns[column].span(rows)).collect()
    }
}

impl WhatIf for Simulator<'_> {
    fn readings(&self, layout: &Layout) -> Vec<Reading> {
        let (all_files, all_bytes) =
            (self.evidence.target_files as f64, self.evidence.bytes.as_f64());
        if self.evidence.sample.rows == 0 {
            return vec![Reading { files: all_files, bytes: all_bytes }; self.scans.len()];
        }
        let files = self.pseudo_files(layout);
        let all: f64 = files.iter().map(|file| file.files).sum();
        self.scans
            .iter()
            .map(|intervals| {
                let read = files.iter().filter(|file| do_meet(&file.spans, intervals));
                let share = read.map(|file| file.files).sum::<f64>() / all;
                Reading { files: share * all_files, bytes: share * all_bytes }
            })
            .collect()
    }

    fn cuts(&self, keys: &[String], weights: &[f64]) -> Vec<Guess> {
        if !(2..=MAX_CUT_KEYS).contains(&keys.len()) {
            return Vec::new();
        }
        let scans: Vec<&[Interval]> = thinned(&self.scans).map(Vec::as_slice).collect();
        let weights: Vec<f64> = thinned(weights).copied().collect();
        let ranges = keys.iter().map(|key| {
            let asked = self.asked.iter().position(|column| column == key);
            Some(KeyRanges::new(key, self.columns.get(key.as_str())?, asked, &scans))
        });
        let ranges: Option<Vec<KeyRanges>> = ranges.collect();
        ranges.map_or_else(Vec::new, |ranges| promising(&ranges, &weights, self.files()))
    }
}

fn do_meet(spans: &[Span], intervals: &[Interval]) -> bool {
    intervals.iter().all(|wanted| {
        spans[wanted.asked].is_some_and(|(min, max)| max >= wanted.low && min <= wanted.high)
    })
}

impl<'a> RankedColumn<'a> {
    /// Ranks a column; `None` when its values are not of one kind and so have no order.
    fn new(column: &'a [Option<Literal>]) -> Option<Self> {
        let mut values: Vec<&Literal> = column.iter().flatten().collect();
        if let Some(first) = values.first() {
            let kind = kind_of(first);
            if values.iter().any(|value| kind_of(value) != kind) {
                return None;
            }
        }
        values.sort_by(|a, b| order_of(a, b));
        values.dedup_by(|a, b| order_of(a, b).is_eq());
        let ranks: Vec<u32> = column
            .iter()
            .map(|value| value.as_ref().map_or(0, |value| rank_of(&values, value)))
            .collect();
        let rows_below = rows_below(&ranks, values.len());
        let rows = ranks.len() as u64;
        let coordinates = ranks
            .iter()
            .map(|&rank| quantize(rows_below[rank as usize], rows, DEFAULT_BITS))
            .collect();
        Some(Self { values, ranks, coordinates })
    }

    /// Counts the rows below each rank, and below the one after the last.
    fn rows_below(&self) -> Vec<u64> {
        rows_below(&self.ranks, self.values.len())
    }

    /// Turns a range into ranks; `None` when its ends do not compare with the column.
    fn interval(&self, range: &ValueRange, asked: usize) -> Option<Interval> {
        let below = |bound: &Bound, is_below: fn(Ordering, bool) -> bool| {
            let is_comparable =
                self.values.first().is_none_or(|value| value.compare(&bound.value).is_some());
            is_comparable.then(|| {
                let count = self.values.partition_point(|value| {
                    let order = value.compare(&bound.value).unwrap_or(Ordering::Equal);
                    is_below(order, bound.inclusive)
                });
                rank(count)
            })
        };
        let low = match &range.low {
            Some(bound) => {
                below(bound, |order, inclusive| order.is_lt() || (order.is_eq() && !inclusive))?
            }
            None => 0,
        };
        let high = match &range.high {
            Some(bound) => {
                below(bound, |order, inclusive| order.is_lt() || (order.is_eq() && inclusive))?
            }
            None => rank(self.values.len()),
        };
        Some(Interval { asked, low: low + 1, high })
    }

    fn span(&self, rows: &[usize]) -> Span {
        let mut span: Span = None;
        let mut count = 0u32;
        for rank in rows.iter().map(|&row| self.ranks[row]).filter(|&rank| rank > 0) {
            count += 1;
            span = Some(span.map_or((rank, rank), |(min, max)| (min.min(rank), max.max(rank))));
        }
        let (min, max) = span?;
        if rows.len() >= DENSE_ROWS_PER_FILE || count < 2 {
            return Some((min, max));
        }
        let gap = (max - min).div_ceil(count - 1);
        Some((min.saturating_sub(gap).max(1), (max + gap).min(rank(self.values.len()))))
    }
}

/// Counts the rows below each rank from 0 to that of the last value, and below the one after it.
fn rows_below(ranks: &[u32], values: usize) -> Vec<u64> {
    let mut below = vec![0u64; values + 2];
    for &rank in ranks {
        below[rank as usize + 1] += 1;
    }
    for rank in 1..below.len() {
        below[rank] += below[rank - 1];
    }
    below
}

/// Kinds that order among themselves without gaps; decimals only of one scale.
fn kind_of(value: &Literal) -> (u8, u8) {
    match value {
        Literal::Boolean(_) => (0, 0),
        Literal::Integer(_) => (1, 0),
        Literal::Decimal { scale, .. } => (2, *scale),
        Literal::Float(_) => (3, 0),
        Literal::Date(_) => (4, 0),
        Literal::Timestamp(_) => (5, 0),
        Literal::Text(_) => (6, 0),
    }
}

fn order_of(a: &Literal, b: &Literal) -> Ordering {
    a.compare(b).expect("values of one kind compare")
}

fn rank_of(values: &[&Literal], value: &Literal) -> u32 {
    rank(values.partition_point(|other| order_of(other, value).is_le()))
}

fn rank(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX - 1)
}

#[cfg(test)]
mod accuracy_tests;
#[cfg(test)]
mod tests;
