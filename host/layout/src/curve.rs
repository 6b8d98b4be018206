//! Ranks and curve keys of rows.
//!
//! 1. A sample of each key column is sorted; a value's rank is the share of sample rows below it,
//!    scaled to [`BITS`] bits. Skewed numbers and strings spread evenly that way, nulls come first.
//! 2. The ranks of two to four columns become one Hilbert index
//!    ([`lakebed_plan::curve::hilbert_index`], the same function the planner simulates with).

use arrow::{
    array::{ArrayRef, UInt64Array},
    error::ArrowError,
    row::{OwnedRow, RowConverter, SortField},
};

/// Bits of each coordinate, as the simulator has them: four columns fill a 64-bit key.
pub use lakebed_plan::curve::DEFAULT_BITS as BITS;

/// Maps values of one column to ranks.
#[derive(Debug)]
struct ColumnRanks {
    converter: RowConverter,
    /// Distinct sample values, ascending.
    values: Vec<OwnedRow>,
    /// Rank of the value at the same position.
    ranks: Vec<u32>,
    /// Rank of everything above the last value.
    above: u32,
}

/// Computes Hilbert keys for batches of one rewrite: the same ranks for all of them.
#[derive(Debug)]
pub struct CurveKeys {
    columns: Vec<ColumnRanks>,
    bits: u32,
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
            .collect::<Result<_, _>>()?;
        Ok(Self { columns, bits })
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
                lakebed_plan::curve::hilbert_index(&point, self.bits)
            })
            .collect::<Vec<u64>>()
            .into())
    }
}

impl ColumnRanks {
    fn from_sample(sample: &ArrayRef, bits: u32) -> Result<Self, ArrowError> {
        let converter = RowConverter::new(vec![SortField::new(sample.data_type().clone())])?;
        let rows = converter.convert_columns(std::slice::from_ref(sample))?;
        let mut order: Vec<usize> = (0..rows.num_rows()).collect();
        order.sort_unstable_by(|a, b| rows.row(*a).cmp(&rows.row(*b)));
        let total = order.len() as u64;
        let rank = |below: usize| lakebed_plan::curve::quantize(below as u64, total, bits);
        let mut values: Vec<OwnedRow> = Vec::new();
        let mut ranks = Vec::new();
        for (below, index) in order.iter().enumerate() {
            let row = rows.row(*index);
            if values.last().is_none_or(|last| last.row() != row) {
                values.push(row.owned());
                ranks.push(rank(below));
            }
        }
        Ok(Self { converter, values, ranks, above: rank(order.len()) })
    }

    fn ranks_of(&self, column: &ArrayRef) -> Result<Vec<u32>, ArrowError> {
        let rows = self.converter.convert_columns(std::slice::from_ref(column))?;
        Ok(rows
            .iter()
            .map(|row| {
                let position = self.values.partition_point(|value| value.row() < row);
                self.ranks.get(position).copied().unwrap_or(self.above)
            })
            .collect())
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
