//! The order of a rewrite as one integer per row.

use arrow::{
    array::{Array, ArrayRef, RecordBatch},
    compute::{concat, take},
    error::ArrowError,
};
use lakebed_layout::{
    RowOrder,
    columns::split_name,
    curve::{BITS, CurveKeys},
    ordinal::{CommonPrefix, Ordinals},
};

use super::{every_nth, held::key_columns};
use crate::write::count;

/// Gives rows their keys: ascending keys are the order of the rows.
#[derive(Debug)]
pub(super) struct RowKeys {
    paths: Vec<Vec<String>>,
    function: KeyFunction,
}

#[derive(Debug)]
enum KeyFunction {
    /// The values of one column; text begins to differ after some bytes.
    Values { skip: usize },
    /// A place on a curve through the ranks of several columns.
    Curve(CurveKeys),
}

impl RowKeys {
    /// Learns what the order needs to know from the rows themselves.
    pub(super) fn learn(
        order: &RowOrder,
        batches: &[RecordBatch],
        target_files: u64,
    ) -> Result<Self, ArrowError> {
        let paths: Vec<Vec<String>> = order.keys().iter().map(|key| split_name(key)).collect();
        if matches!(order, RowOrder::Plain { .. } | RowOrder::Unordered) {
            let mut common = CommonPrefix::default();
            for batch in batches {
                for column in key_columns(batch, &paths)? {
                    common.add(&Ordinals::of(&column)?);
                }
                if common.is_settled() {
                    break;
                }
            }
            return Ok(Self { paths, function: KeyFunction::Values { skip: common.length() } });
        }
        let mut sample = Sample::new(paths.clone());
        let rows: u64 = batches.iter().map(|batch| count(batch.num_rows())).sum();
        let step = (rows / sample_rows(order, target_files)).max(1);
        for batch in batches {
            sample.take_every(batch, step)?;
        }
        Self::from_sample(order, target_files, &sample.columns()?)
    }

    /// Uses a sample of the key columns, which is all there is when the rows do not fit in memory.
    ///
    /// A single column is ranked too then: its values need not tell how rows spread over files.
    pub(super) fn from_sample(
        order: &RowOrder,
        target_files: u64,
        sample: &[ArrayRef],
    ) -> Result<Self, ArrowError> {
        let paths: Vec<Vec<String>> = order.keys().iter().map(|key| split_name(key)).collect();
        let curve = match CurveKeys::for_order(order, target_files, sample)? {
            Some(curve) => curve,
            None => CurveKeys::from_samples(sample, BITS)?,
        };
        Ok(Self { paths, function: KeyFunction::Curve(curve) })
    }

    /// Returns the keys of a sample's own rows.
    pub(super) fn of_columns(&self, columns: &[ArrayRef]) -> Result<Vec<u64>, ArrowError> {
        match &self.function {
            KeyFunction::Curve(curve) => Ok(curve.keys(columns)?.values().to_vec()),
            KeyFunction::Values { skip } => match columns {
                [column] => Ok(Ordinals::of(column)?.prefixes(*skip)),
                _ => Ok(Vec::new()),
            },
        }
    }

    /// Returns each row's key, and the values to compare where equal keys do not mean equal values.
    pub(super) fn of(
        &self,
        batch: &RecordBatch,
    ) -> Result<(Vec<u64>, Option<Ordinals>), ArrowError> {
        let columns = key_columns(batch, &self.paths)?;
        match (&self.function, columns.as_slice()) {
            (KeyFunction::Curve(curve), columns) => {
                Ok((curve.keys(columns)?.values().to_vec(), None))
            }
            (KeyFunction::Values { skip }, [column]) => {
                let ordinals = Ordinals::of(column)?;
                let keys = ordinals.prefixes(*skip);
                let exact = ordinals.is_exact();
                Ok((keys, (!exact).then_some(ordinals)))
            }
            (KeyFunction::Values { .. }, _) => Ok((vec![0; batch.num_rows()], None)),
        }
    }
}

/// Rows of the sample that ranks are learned from.
const SAMPLE_ROWS: u64 = 1 << 16;
/// Rows of the sample per cell: cells then differ in size by a tenth.
const SAMPLE_ROWS_PER_CELL: u64 = 100;

/// Returns how many rows to learn an order from.
pub(super) fn sample_rows(order: &RowOrder, target_files: u64) -> u64 {
    match order {
        RowOrder::Cuts { .. } => SAMPLE_ROWS.max(SAMPLE_ROWS_PER_CELL.saturating_mul(target_files)),
        _ => SAMPLE_ROWS,
    }
}

/// Every n-th row's keys.
#[derive(Debug)]
pub(super) struct Sample {
    paths: Vec<Vec<String>>,
    parts: Vec<Vec<ArrayRef>>,
    rows: u64,
}

impl Sample {
    pub(super) fn new(paths: Vec<Vec<String>>) -> Self {
        Self { parts: vec![Vec::new(); paths.len()], paths, rows: 0 }
    }

    pub(super) fn take_every(&mut self, batch: &RecordBatch, step: u64) -> Result<(), ArrowError> {
        let picked = every_nth(batch, self.rows, step);
        self.rows += count(batch.num_rows());
        for (part, column) in self.parts.iter_mut().zip(key_columns(batch, &self.paths)?) {
            part.push(take(&column, &picked, None)?);
        }
        Ok(())
    }

    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn columns(&self) -> Result<Vec<ArrayRef>, ArrowError> {
        self.parts
            .iter()
            .filter(|part| !part.is_empty())
            .map(|part| concat(&part.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>()))
            .collect()
    }
}
