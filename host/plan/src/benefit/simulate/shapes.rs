//! Which numbers of parts are worth simulating: all of them, weighed on paper.
//!
//! 1. Each key alone: a range over rows a to b of N touches the parts ⌊a·n/N⌋ to ⌊(b−1)·n/N⌋ of n.
//! 2. Taking keys as independent, a scan reads the product of the touched shares of its keys. For
//!    every n₁ × n₂ (× n₃) that makes about as many cells as there are files, the sum over scans of
//!    what is not read is what the shape promises.
//! 3. The best shapes by that sum, and the best by the sum in which each scan counts with its
//!    share of its statement's bytes, are handed to the simulation, the key with the most parts
//!    outermost: its borders then are the same in all files. The best one is also handed over
//!    inside out, because dependent keys are divided differently by the other order.
//!
//! Cuts of four keys are left out: where files are few they leave three parts a key, as a curve does.

use super::{Interval, RankedColumn};
use crate::{Layout, benefit::Guess};

/// Keys of a layout of cuts at most.
pub(super) const MAX_CUT_KEYS: usize = 3;
/// Shapes taken by each of the two sums.
const SHAPES: usize = 4;
/// Parts of a key at least: with one it would be no key.
const MIN_PARTS: u32 = 2;
/// Scans that shapes are weighed on at most, evenly spread over the window.
const MAX_SCANS: usize = 400;

/// A key, and per scan the rows before and after the first and the last one in its range.
#[derive(Debug)]
pub(super) struct KeyRanges {
    name: String,
    rows: u64,
    ranges: Vec<Option<(u64, u64)>>,
}

impl KeyRanges {
    /// Reads the ranges of one key from the scans.
    pub(super) fn new(
        name: &str,
        column: &RankedColumn<'_>,
        asked: Option<usize>,
        scans: &[&[Interval]],
    ) -> Self {
        let below = column.rows_below();
        let rows = below.last().copied().unwrap_or(0);
        let range = |intervals: &&[Interval]| {
            let wanted = intervals.iter().find(|wanted| Some(wanted.asked) == asked)?;
            let at = |rank: u32| below[(rank as usize).min(below.len() - 1)];
            Some((at(wanted.low), at(wanted.high + 1)))
        };
        Self { name: name.to_owned(), rows, ranges: scans.iter().map(range).collect() }
    }

    /// The share of `parts` equal parts that a scan touches.
    fn touched(&self, scan: usize, parts: u32) -> f64 {
        let Some((from, to)) = self.ranges[scan] else { return 1.0 };
        let part = |row: u64| row * u64::from(parts) / self.rows.max(1);
        // A range between two sampled values lies in one part.
        let last = part(to.max(from + 1) - 1);
        (last.saturating_sub(part(from)) + 1) as f64 / f64::from(parts)
    }
}

/// Picks every n-th scan, so that there are not too many.
pub(super) fn thinned<T>(scans: &[T]) -> impl Iterator<Item = &T> {
    scans.iter().step_by(scans.len().div_ceil(MAX_SCANS).max(1))
}

/// Proposes layouts, the most promising first.
pub(super) fn promising(keys: &[KeyRanges], weights: &[f64], files: u32) -> Vec<Guess> {
    let mut shapes: Vec<(f64, f64, Vec<u32>)> = Vec::new();
    let mut shape = Vec::new();
    each_shape(keys.len(), files, &mut shape, &mut |shape: &[u32]| {
        let (mut saved, mut weighted) = (0.0, 0.0);
        for (scan, weight) in weights.iter().enumerate() {
            let read: f64 =
                keys.iter().zip(shape).map(|(key, parts)| key.touched(scan, *parts)).product();
            saved += 1.0 - read;
            weighted += weight * (1.0 - read);
        }
        shapes.push((saved, weighted, shape.to_vec()));
    });
    let mut taken: Vec<(f64, Vec<u32>)> = Vec::new();
    shapes.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.2.cmp(&b.2)));
    let by_weight: Vec<_> = shapes.iter().take(SHAPES).cloned().collect();
    shapes.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.2.cmp(&b.2)));
    for (saved, _, shape) in shapes.into_iter().take(SHAPES).chain(by_weight) {
        if !taken.iter().any(|(_, known)| *known == shape) {
            taken.push((saved, shape));
        }
    }
    let mut guesses: Vec<Guess> =
        taken.iter().map(|(saved, shape)| guess(keys, shape, *saved)).collect();
    if let Some(best) = guesses.first() {
        let mut inside_out = best.clone();
        inside_out.layout.cluster_by.reverse();
        inside_out.layout.cuts.reverse();
        guesses.push(inside_out);
    }
    guesses
}

fn guess(keys: &[KeyRanges], shape: &[u32], promises: f64) -> Guess {
    let mut cuts: Vec<(u32, &str)> =
        shape.iter().copied().zip(keys.iter().map(|key| key.name.as_str())).collect();
    cuts.sort_by_key(|(parts, _)| std::cmp::Reverse(*parts));
    let (parts, columns) = cuts.into_iter().map(|(parts, name)| (parts, name.to_owned())).unzip();
    Guess { layout: Layout::cut(columns, parts), promises }
}

/// Visits every shape whose product is as near to the files as its last part can bring it.
fn each_shape(keys: usize, files: u32, shape: &mut Vec<u32>, visit: &mut impl FnMut(&[u32])) {
    let left = f64::from(files) / shape.iter().copied().map(f64::from).product::<f64>();
    let is_enough = |parts: u32| left / f64::from(parts) >= f64::from(MIN_PARTS) - 0.5;
    if shape.len() + 1 == keys {
        let last = (MIN_PARTS..=files).take_while(|parts| f64::from(*parts) <= left + 0.5).last();
        if let Some(last) = last {
            shape.push(last);
            visit(shape.as_slice());
            shape.pop();
        }
        return;
    }
    for parts in (MIN_PARTS..=files).take_while(|parts| is_enough(*parts)) {
        shape.push(parts);
        each_shape(keys, files, shape, visit);
        shape.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::each_shape;

    #[track_caller]
    fn check(keys: usize, files: u32, expected: &[&[u32]]) {
        let mut found: Vec<Vec<u32>> = Vec::new();
        each_shape(keys, files, &mut Vec::new(), &mut |shape: &[u32]| found.push(shape.to_vec()));
        assert_eq!(found, expected);
    }

    #[test]
    fn shapes_fill_the_files_as_nearly_as_whole_parts_can() {
        check(2, 3, &[&[2, 2]]);
        check(2, 2, &[]);
        check(2, 12, &[&[2, 6], &[3, 4], &[4, 3], &[5, 2], &[6, 2], &[7, 2], &[8, 2]]);
        check(3, 9, &[&[2, 2, 2], &[2, 3, 2], &[3, 2, 2]]);
        check(3, 5, &[]);
    }
}
