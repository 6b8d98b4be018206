//! Ranks and curve keys of rows.
//!
//! 1. A sample of each key column is sorted; a value's rank is the share of sample rows below it,
//!    scaled to [`BITS`] bits. Skewed numbers and strings spread evenly that way, nulls come first.
//! 2. The ranks of two to four columns become one Hilbert index
//!    ([`lakebed_plan::curve::hilbert_index`], the same function the planner simulates with,
//!    here by [`HilbertTables`]).

use arrow::{
    array::{ArrayRef, UInt64Array},
    error::ArrowError,
};

use lakebed_plan::curve::HilbertTables;

use crate::ordinal::{self, Ordinals};

/// Bits of each coordinate, as the simulator has them: four columns fill a 64-bit key.
pub use lakebed_plan::curve::DEFAULT_BITS as BITS;

/// Maps values of one column to ranks.
#[derive(Debug)]
struct ColumnRanks {
    known: Known,
    /// Rank of the known value at the same position.
    ranks: Vec<u32>,
    /// Rank of nulls.
    null: u32,
    /// Rank of everything above the last value.
    above: u32,
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

/// Computes Hilbert keys for batches of one rewrite: the same ranks for all of them.
#[derive(Debug)]
pub struct CurveKeys {
    columns: Vec<ColumnRanks>,
    tables: HilbertTables,
}

impl CurveKeys {
    /// Learns ranks from aligned samples, one array per key column.
    ///
    /// # Errors
    /// Fails when a column's type has no row order.
    pub fn from_samples(samples: &[ArrayRef], bits: u32) -> Result<Self, ArrowError> {
        let columns = samples
            .iter()
            .map(|sample| ColumnRanks::from_sample(sample, bits))
            .collect::<Result<Vec<_>, _>>()?;
        let tables = HilbertTables::new(columns.len().max(1), bits);
        Ok(Self { columns, tables })
    }

    /// Computes one key per row.
    ///
    /// # Errors
    /// Fails when the columns are not of the sampled types.
    pub fn keys(&self, columns: &[ArrayRef]) -> Result<UInt64Array, ArrowError> {
        if columns.len() != self.columns.len() {
            return Err(ArrowError::InvalidArgumentError(format!(
                "{} columns for a curve of {}",
                columns.len(),
                self.columns.len()
            )));
        }
        let ranks: Vec<Vec<u32>> = self
            .columns
            .iter()
            .zip(columns)
            .map(|(known, column)| known.ranks_of(column))
            .collect::<Result<_, _>>()?;
        let rows = columns.first().map_or(0, |column| column.len());
        let mut point = vec![0; ranks.len()];
        Ok((0..rows)
            .map(|row| {
                for (coordinate, column) in point.iter_mut().zip(&ranks) {
                    *coordinate = column[row];
                }
                self.tables.index(&point)
            })
            .collect::<Vec<u64>>()
            .into())
    }
}

impl ColumnRanks {
    fn from_sample(sample: &ArrayRef, bits: u32) -> Result<Self, ArrowError> {
        let ordinals = Ordinals::of(sample)?;
        let total = ordinals.len() as u64;
        let rank = |below: usize| lakebed_plan::curve::quantize(below as u64, total, bits);
        let mut order: Vec<usize> =
            (0..ordinals.len()).filter(|row| !ordinals.is_null(*row)).collect();
        order.sort_unstable_by(|a, b| ordinals.compare(*a, &ordinals, *b));
        let nulls = ordinals.len() - order.len();
        let mut distinct: Vec<usize> = Vec::new();
        let mut ranks = Vec::new();
        for (below, row) in order.into_iter().enumerate() {
            let is_new =
                distinct.last().is_none_or(|last| ordinals.compare(*last, &ordinals, row).is_ne());
            if is_new {
                distinct.push(row);
                ranks.push(rank(nulls + below));
            }
        }
        let known = Known::new(&ordinals, &distinct);
        Ok(Self { known, ranks, null: rank(0), above: rank(ordinals.len()) })
    }

    fn ranks_of(&self, column: &ArrayRef) -> Result<Vec<u32>, ArrowError> {
        let ordinals = Ordinals::of(column)?;
        let rank = |row: usize| {
            if ordinals.is_null(row) {
                return self.null;
            }
            let position = self.known.values_below(&ordinals, row);
            self.ranks.get(position).copied().unwrap_or(self.above)
        };
        Ok((0..ordinals.len()).map(rank).collect())
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::CurveKeys;

    fn array(values: Vec<Option<i64>>) -> ArrayRef {
        Arc::new(Int64Array::from(values))
    }

    #[test]
    fn ranks_follow_shares_of_rows_not_values() {
        let skewed = array(vec![Some(1), Some(2), Some(3), Some(1_000_000)]);
        let column = super::ColumnRanks::from_sample(&skewed, 2).unwrap();
        let probe = array(vec![None, Some(1), Some(2), Some(3), Some(500), Some(2_000_000)]);
        assert_eq!(column.ranks_of(&probe).unwrap(), [0, 0, 1, 2, 3, 3]);
    }

    #[test]
    fn nulls_come_first_and_together() {
        let sample = array(vec![None, None, Some(5), Some(9)]);
        let column = super::ColumnRanks::from_sample(&sample, 2).unwrap();
        let probe = array(vec![Some(9), None, Some(5), Some(-1)]);
        assert_eq!(column.ranks_of(&probe).unwrap(), [3, 0, 2, 2]);
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
}
