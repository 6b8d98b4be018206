//! Where the rows of a row group lie, seen from the arrays that they come from.
//!
//! Read in the order of the row group, the next values of many arrays are wanted at once, and those lie
//! at like offsets of like allocations: they push each other out of the cache. Rows that come
//! from one array lie side by side in it, though, once its rows are in order. Each such run is therefore
//! read in one go, and its values are dealt out to their places. Those lie in a window of the row group
//! that stays in the cache.
//! Example: places (0, 7), (1, 3), (0, 8) are two runs, rows 7 and 8 of array 0 for positions 0 and 2
//! and row 3 of array 1 for position 1.

use std::ops::Range;

use arrow::datatypes::ArrowNativeType;

/// Rows of a window: of eight bytes each they take half of a common second-level cache.
const WINDOW_ROWS: usize = 1 << 15;

/// Where a row lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the array.
    pub(crate) batch: u32,
    /// Row of the array.
    pub(crate) row: u32,
}

/// Where rows lie, in the order in which they are wanted.
#[derive(Debug)]
pub(crate) struct Placed {
    places: Vec<Place>,
    runs: Vec<Run>,
    /// The positions of each run's rows, one run after the other.
    positions: Vec<u32>,
}

/// Rows that lie side by side in one array, and go to one window.
#[derive(Debug, PartialEq)]
struct Run {
    batch: usize,
    rows: Range<usize>,
}

impl Placed {
    pub(crate) fn new(places: Vec<Place>) -> Self {
        let batches = places.iter().map(|place| place.batch.as_usize() + 1).max().unwrap_or(0);
        let mut placed =
            Self { positions: vec![0; places.len()], runs: Vec::new(), places: Vec::new() };
        let mut last = vec![None; batches];
        for (number, window) in places.chunks(WINDOW_ROWS).enumerate() {
            placed.add(window, number * WINDOW_ROWS, &mut last);
        }
        placed.places = places;
        placed
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Visits each run: the number of its array, its rows, and the positions that they are wanted at.
    pub(super) fn visit_runs(&self, mut visit: impl FnMut(usize, Range<usize>, &[u32])) {
        let mut rest = self.positions.as_slice();
        for run in &self.runs {
            let (positions, others) = rest.split_at(run.rows.len());
            rest = others;
            visit(run.batch, run.rows.clone(), positions);
        }
    }

    /// Adds the runs of a window. `last` is empty before and after: the number of each array's last run.
    fn add(&mut self, window: &[Place], from: usize, last: &mut [Option<usize>]) {
        let first_run = self.runs.len();
        let mut run_of = Vec::with_capacity(window.len());
        for place in window {
            let (batch, row) = (place.batch.as_usize(), place.row.as_usize());
            let number = match last[batch] {
                Some(number) if self.runs[number].rows.end == row => number,
                _ => {
                    self.runs.push(Run { batch, rows: row..row });
                    self.runs.len() - 1
                }
            };
            self.runs[number].rows.end += 1;
            last[batch] = Some(number);
            run_of.push(number - first_run);
        }
        let mut next = from;
        let mut slots = Vec::with_capacity(self.runs.len() - first_run);
        for run in &self.runs[first_run..] {
            slots.push(next);
            next += run.rows.len();
            last[run.batch] = None;
        }
        for (position, run) in (from..).zip(run_of) {
            self.positions[slots[run]] = u32::try_from(position).unwrap_or(u32::MAX);
            slots[run] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, Placed, Run, WINDOW_ROWS};

    fn placed(places: &[(u32, u32)]) -> Placed {
        Placed::new(places.iter().map(|(batch, row)| Place { batch: *batch, row: *row }).collect())
    }

    #[test]
    fn rows_side_by_side_are_one_run() {
        let placed = placed(&[(0, 7), (1, 3), (0, 8)]);
        assert_eq!(placed.runs, [Run { batch: 0, rows: 7..9 }, Run { batch: 1, rows: 3..4 }]);
        assert_eq!(placed.positions, [0, 2, 1]);
    }

    #[test]
    fn rows_in_any_order_are_visited_once() {
        let windows = u32::try_from(2 * WINDOW_ROWS + 1_000).unwrap();
        let scattered: Vec<(u32, u32)> =
            (0..windows).map(|n| (n * 7 % 5, n * 2_654_435_761 % 100_003)).collect();
        let ordered: Vec<(u32, u32)> = (0..windows).map(|n| (n % 5, n / 5)).collect();
        for places in [&scattered, &ordered] {
            let placed = placed(places);
            let mut found = vec![None; places.len()];
            placed.visit_runs(|batch, rows, positions| {
                for (row, position) in rows.zip(positions) {
                    let row = u32::try_from(row).unwrap();
                    let slot = &mut found[usize::try_from(*position).unwrap()];
                    assert_eq!(slot.replace((u32::try_from(batch).unwrap(), row)), None);
                }
            });
            let expected: Vec<Option<(u32, u32)>> = places.iter().copied().map(Some).collect();
            assert_eq!(found, expected);
        }
        assert_eq!(placed(&ordered).runs.len(), 15);
        assert_eq!(placed(&[]).runs, []);
    }
}
