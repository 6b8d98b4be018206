//! Ranks and keys of rows: one number per row, by which rows are sorted whatever their order is.
//!
//! 1. A sample of each key column is sorted; a value's position among the sample's distinct values is
//!    its rank. Nulls come first.
//! 2. Hilbert: the share of sample rows below a rank, scaled to [`BITS`] bits, is a coordinate, so
//!    that skewed numbers and strings spread evenly; those of two to four columns become one index
//!    ([`lakebed_plan::curve::hilbert_index`], by [`HilbertTables`]).
//! 3. Cuts: the ranks lead to a cell, whose number stands above [`CELL_SHIFT`] bits, and to a place in
//!    it ([`lakebed_plan::cuts::Cells`]). A file ends where that number changes.
//!
//! The planner simulates with the same functions.

use arrow::{
    array::{ArrayRef, UInt64Array},
    error::ArrowError,
};
use lakebed_plan::{
    curve::{HilbertTables, quantize},
    cuts::Cells,
};

pub use lakebed_plan::cuts::CELL_SHIFT;

use crate::{
    RowOrder,
    ordinal::{self, Ordinals},
};

/// Bits of each coordinate, as the simulator has them: four columns fill a 64-bit key.
pub use lakebed_plan::curve::DEFAULT_BITS as BITS;

/// Maps values of one column to ranks.
#[derive(Debug)]
struct ColumnRanks {
    known: Known,
    /// Ranks of what comes before the known values: one for nulls, where the sample has some.
    ranks_before: usize,
    /// Sample rows below the value of each rank, and in the end all sample rows.
    rows_below: Vec<u64>,
}

/// Distinct values of a sample, ascending.
#[derive(Debug)]
enum Known {
    Numbers { values: Vec<u64>, index: RadixIndex },
    Bytes { values: Vec<Box<[u8]>>, prefixes: Vec<u64>, index: RadixIndex, skip: usize },
}

/// Finds where in a sorted list a number lies: its leading bits narrow the search to a few values.
#[derive(Debug)]
struct RadixIndex {
    least: u64,
    shift: u32,
    /// First position whose value has at least these leading bits; one more at the end.
    starts: Vec<u32>,
}

/// Computes keys for batches of one rewrite: the same ranks for all of them.
#[derive(Debug)]
pub struct CurveKeys {
    columns: Vec<ColumnRanks>,
    curve: Curve,
}

#[derive(Debug)]
enum Curve {
    Hilbert {
        tables: HilbertTables,
        /// Per column, the coordinate of each rank.
        coordinates: Vec<Vec<u32>>,
    },
    Cuts(Cells),
}

impl CurveKeys {
    /// Learns the keys of a rewrite's order from aligned samples, one array per key column; `None`
    /// for orders that need no keys: none, and by one column.
    ///
    /// # Errors
    /// Fails when a column's type has no row order.
    pub fn for_order(
        order: &RowOrder,
        target_files: u64,
        samples: &[ArrayRef],
    ) -> Result<Option<Self>, ArrowError> {
        match order {
            RowOrder::Unordered | RowOrder::Plain { .. } => Ok(None),
            RowOrder::Hilbert { bits, .. } => Self::from_samples(samples, *bits).map(Some),
            RowOrder::Cuts { parts, .. } => Self::cuts(samples, parts, target_files).map(Some),
        }
    }

    /// Learns a Hilbert curve from aligned samples.
    ///
    /// # Errors
    /// Fails when a column's type has no row order.
    pub fn from_samples(samples: &[ArrayRef], bits: u32) -> Result<Self, ArrowError> {
        let (columns, _) = learn(samples)?;
        let coordinates = columns.iter().map(|column| column.coordinates(bits)).collect();
        let tables = HilbertTables::new(columns.len().max(1), bits);
        Ok(Self { columns, curve: Curve::Hilbert { tables, coordinates } })
    }

    /// Learns the cells of weighted cuts from aligned samples.
    fn cuts(samples: &[ArrayRef], parts: &[u32], target_files: u64) -> Result<Self, ArrowError> {
        if samples.is_empty() {
            // Without rows there is nothing to learn, and no key will be asked for.
            return Self::from_samples(samples, BITS);
        }
        if samples.len() != parts.len() {
            return Err(other_columns(samples.len(), parts.len()));
        }
        let (columns, ranks) = learn(samples)?;
        let ranks: Vec<&[u32]> = ranks.iter().map(Vec::as_slice).collect();
        let files = u32::try_from(target_files).unwrap_or(u32::MAX);
        Ok(Self { columns, curve: Curve::Cuts(Cells::new(&ranks, parts, files)) })
    }

    /// Computes one key per row.
    ///
    /// # Errors
    /// Fails when the columns are not of the sampled types.
    pub fn keys(&self, columns: &[ArrayRef]) -> Result<UInt64Array, ArrowError> {
        if columns.len() != self.columns.len() {
            return Err(other_columns(columns.len(), self.columns.len()));
        }
        let ranks: Vec<Vec<u32>> = self
            .columns
            .iter()
            .zip(columns)
            .map(|(known, column)| known.ranks_of(column))
            .collect::<Result<_, _>>()?;
        let rows = columns.first().map_or(0, |column| column.len());
        let mut point = vec![0; ranks.len()];
        let key = |row: usize| match &self.curve {
            Curve::Hilbert { tables, coordinates } => {
                for (place, (ranks, coordinates)) in
                    point.iter_mut().zip(ranks.iter().zip(coordinates))
                {
                    *place = coordinates[ranks[row] as usize];
                }
                tables.index(&point)
            }
            Curve::Cuts(cells) => {
                for (place, ranks) in point.iter_mut().zip(&ranks) {
                    *place = ranks[row];
                }
                cells.key(&point)
            }
        };
        Ok((0..rows).map(key).collect::<Vec<u64>>().into())
    }
}

fn other_columns(found: usize, expected: usize) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("{found} columns for an order by {expected}"))
}

/// Learns each column, and ranks the sample's own rows.
fn learn(samples: &[ArrayRef]) -> Result<(Vec<ColumnRanks>, Vec<Vec<u32>>), ArrowError> {
    let learned: Vec<_> = samples.iter().map(ColumnRanks::from_sample).collect::<Result<_, _>>()?;
    Ok(learned.into_iter().unzip())
}

impl ColumnRanks {
    fn from_sample(sample: &ArrayRef) -> Result<(Self, Vec<u32>), ArrowError> {
        let ordinals = Ordinals::of(sample)?;
        let mut order: Vec<usize> =
            (0..ordinals.len()).filter(|row| !ordinals.is_null(*row)).collect();
        order.sort_unstable_by(|a, b| ordinals.compare(*a, &ordinals, *b));
        let nulls = ordinals.len() - order.len();
        let ranks_before = usize::from(nulls > 0);
        let mut rows_below = vec![0; ranks_before];
        let mut distinct: Vec<usize> = Vec::new();
        let mut ranks = vec![0; ordinals.len()];
        for (below, row) in order.into_iter().enumerate() {
            let is_new =
                distinct.last().is_none_or(|last| ordinals.compare(*last, &ordinals, row).is_ne());
            if is_new {
                distinct.push(row);
                rows_below.push((nulls + below) as u64);
            }
            ranks[row] = rank(ranks_before + distinct.len() - 1);
        }
        rows_below.push(ordinals.len() as u64);
        let known = Known::new(&ordinals, &distinct);
        Ok((Self { known, ranks_before, rows_below }, ranks))
    }

    /// Ranks values; those between two sampled ones rank as the upper one.
    fn ranks_of(&self, column: &ArrayRef) -> Result<Vec<u32>, ArrowError> {
        let ordinals = Ordinals::of(column)?;
        let rank_of = |row: usize| match ordinals.is_null(row) {
            true => 0,
            false => rank(self.ranks_before + self.known.values_below(&ordinals, row)),
        };
        Ok((0..ordinals.len()).map(rank_of).collect())
    }

    /// Returns the coordinate of each rank, that above the last value included.
    fn coordinates(&self, bits: u32) -> Vec<u32> {
        let total = self.rows_below.last().copied().unwrap_or(0);
        self.rows_below.iter().map(|below| quantize(*below, total, bits)).collect()
    }
}

impl Known {
    fn new(ordinals: &Ordinals, distinct: &[usize]) -> Self {
        match ordinals {
            Ordinals::Numbers { values, .. } => {
                let values: Vec<u64> = distinct.iter().map(|row| values[*row]).collect();
                let index = RadixIndex::new(&values);
                Self::Numbers { values, index }
            }
            Ordinals::Bytes(all) => {
                let values: Vec<Box<[u8]>> =
                    distinct.iter().map(|row| all.value(*row).into()).collect();
                let skip = match values.as_slice() {
                    [first, .., last] => first.iter().zip(last).take_while(|(a, b)| a == b).count(),
                    _ => 0,
                };
                let prefixes: Vec<u64> = values.iter().map(|v| ordinal::prefix(v, skip)).collect();
                let index = RadixIndex::new(&prefixes);
                Self::Bytes { values, prefixes, index, skip }
            }
        }
    }

    /// Counts the known values that are smaller than a row's.
    fn values_below(&self, ordinals: &Ordinals, row: usize) -> usize {
        match (self, ordinals) {
            (Self::Numbers { values, index }, Ordinals::Numbers { values: rows, .. }) => {
                index.below(values, rows[row])
            }
            (Self::Bytes { values, prefixes, index, skip }, Ordinals::Bytes(rows)) => {
                let wanted = rows.value(row);
                // What does not begin as all known values do lies below or above all of them.
                if let Some(first) = values.first() {
                    let common = &first[..*skip];
                    let begin = &wanted[..wanted.len().min(*skip)];
                    if begin != common {
                        return if begin < common { 0 } else { values.len() };
                    }
                }
                let prefix = ordinal::prefix(wanted, *skip);
                let from = index.below(prefixes, prefix);
                let alike = prefixes[from..].partition_point(|known| *known == prefix);
                from + values[from..from + alike].partition_point(|known| **known < *wanted)
            }
            _ => 0,
        }
    }
}

impl RadixIndex {
    /// Leading bits that are looked up.
    const BITS: u32 = 14;

    fn new(values: &[u64]) -> Self {
        let least = values.first().copied().unwrap_or(0);
        let span = values.last().map_or(0, |last| last - least);
        let shift = (u64::BITS - span.leading_zeros()).saturating_sub(Self::BITS);
        let mut starts: Vec<u32> = Vec::new();
        for (position, value) in values.iter().enumerate() {
            let bucket = usize::try_from((value - least) >> shift).unwrap_or(usize::MAX);
            while starts.len() <= bucket {
                starts.push(u32::try_from(position).unwrap_or(u32::MAX));
            }
        }
        starts.push(u32::try_from(values.len()).unwrap_or(u32::MAX));
        Self { least, shift, starts }
    }

    /// Counts the values smaller than one.
    fn below(&self, values: &[u64], wanted: u64) -> usize {
        let Some(offset) = wanted.checked_sub(self.least) else { return 0 };
        let bucket = usize::try_from(offset >> self.shift).unwrap_or(usize::MAX);
        match (self.starts.get(bucket), self.starts.get(bucket.saturating_add(1))) {
            (Some(from), Some(to)) => {
                let (from, to) = (*from as usize, *to as usize);
                from + values[from..to].partition_point(|value| *value < wanted)
            }
            _ => values.len(),
        }
    }
}

fn rank(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::{CELL_SHIFT, CurveKeys};
    use crate::RowOrder;

    fn array(values: Vec<Option<i64>>) -> ArrayRef {
        Arc::new(Int64Array::from(values))
    }

    #[track_caller]
    fn check_coordinates(sample: &ArrayRef, probe: &ArrayRef, expected: &[u32]) {
        let (column, _) = super::ColumnRanks::from_sample(sample).unwrap();
        let coordinates = column.coordinates(2);
        let ranks = column.ranks_of(probe).unwrap();
        let found: Vec<u32> = ranks.iter().map(|rank| coordinates[*rank as usize]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn ranks_follow_shares_of_rows_not_values() {
        let skewed = array(vec![Some(1), Some(2), Some(3), Some(1_000_000)]);
        let probe = array(vec![None, Some(1), Some(2), Some(3), Some(500), Some(2_000_000)]);
        check_coordinates(&skewed, &probe, &[0, 0, 1, 2, 3, 3]);
    }

    #[test]
    fn nulls_come_first_and_together() {
        let sample = array(vec![None, None, Some(5), Some(9)]);
        let probe = array(vec![Some(9), None, Some(5), Some(-1)]);
        check_coordinates(&sample, &probe, &[3, 0, 2, 2]);
    }

    #[test]
    fn close_rows_get_close_keys() {
        let xs = array((0..64).map(|n| Some(n % 8)).collect());
        let ys: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..64).map(|n| format!("value {}", n / 8))));
        let keys = CurveKeys::from_samples(&[Arc::clone(&xs), Arc::clone(&ys)], 3).unwrap();
        let mut computed: Vec<u64> =
            keys.keys(&[xs, ys]).unwrap().values().iter().copied().collect();
        computed.sort_unstable();
        let every_cell: Vec<u64> = (0..64).collect();
        assert_eq!(computed, every_cell);
    }

    #[test]
    fn keys_of_cuts_number_the_cells_above_their_places() {
        let xs = array((0..64).map(Some).collect());
        let ys: ArrayRef =
            Arc::new(StringArray::from_iter((0..64).map(|n| (n % 4 > 0).then(|| n.to_string()))));
        let order = RowOrder::Cuts { keys: vec!["x".into(), "y".into()], parts: vec![4, 2] };
        let learn =
            |files| CurveKeys::for_order(&order, files, &[Arc::clone(&xs), Arc::clone(&ys)]);
        let keys = learn(8).unwrap().unwrap().keys(&[Arc::clone(&xs), Arc::clone(&ys)]).unwrap();
        let mut rows_of_cell = [0; 8];
        for (row, key) in keys.values().iter().enumerate() {
            let cell = usize::try_from(key >> CELL_SHIFT).unwrap();
            rows_of_cell[cell] += 1;
            assert_eq!(cell / 2, row / 16, "x decides first");
            // Four of the 16 rows of a part have no y, and nulls are the smallest.
            assert!(row % 4 > 0 || cell.is_multiple_of(2), "row {row} in cell {cell}");
        }
        assert_eq!(rows_of_cell, [8; 8]);
        let one = learn(1).unwrap().unwrap().keys(&[Arc::clone(&xs), Arc::clone(&ys)]).unwrap();
        assert!(one.values().iter().all(|key| key >> CELL_SHIFT == 0));
        let unordered = CurveKeys::for_order(&RowOrder::Unordered, 8, &[]).unwrap();
        assert!(unordered.is_none());
        let error = CurveKeys::for_order(&order, 8, &[xs]).unwrap_err();
        assert_eq!(error.to_string(), "Invalid argument error: 1 columns for an order by 2");
    }
}
