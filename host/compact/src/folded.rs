//! The rows that an aggregation leaves, and the checks on them.

use std::{num::NonZeroUsize, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, UInt32Array},
    compute::{cast, take},
    datatypes::{Field, Schema, SchemaRef},
    record_batch::{RecordBatch, RecordBatchOptions},
    util::display::array_value_to_string,
};

use crate::{
    CompactError, StepCounts,
    bind::{BoundAggregation, BoundFolding},
    group_table::GroupTable,
};

/// The folded rows, batch by batch, sorted by row keys. Keys are decoded as they are asked for.
#[derive(Debug)]
pub struct FoldedBatches {
    schema: SchemaRef,
    batch_rows_max: NonZeroUsize,
    folded: Option<Folded>,
    next: usize,
    counts: Vec<StepCounts>,
}

/// Groups with their results.
#[derive(Debug)]
pub(crate) struct Folded {
    table: GroupTable,
    aggregation: BoundAggregation,
    /// In the order of [`BoundAggregation::result_columns`], by group number.
    results: Vec<ArrayRef>,
    groups_in_key_order: Vec<u32>,
}

impl FoldedBatches {
    pub(crate) const fn new(
        schema: SchemaRef,
        batch_rows_max: NonZeroUsize,
        folded: Option<Folded>,
        counts: Vec<StepCounts>,
    ) -> Self {
        Self { schema, batch_rows_max, folded, next: 0, counts }
    }

    /// Returns the counts of the whole run, step by step.
    #[must_use]
    pub fn counts(&self) -> &[StepCounts] {
        &self.counts
    }

    /// Returns how many rows all batches have together.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.folded.as_ref().map_or(0, Folded::row_count)
    }
}

impl Iterator for FoldedBatches {
    type Item = Result<RecordBatch, CompactError>;

    fn next(&mut self) -> Option<Self::Item> {
        let folded = self.folded.as_ref()?;
        let rest = folded.groups_in_key_order.get(self.next..).filter(|rest| !rest.is_empty())?;
        let groups = &rest[..rest.len().min(self.batch_rows_max.get())];
        self.next += groups.len();
        Some(folded.batch(&self.schema, groups))
    }
}

impl Folded {
    pub(crate) fn new(
        table: GroupTable,
        aggregation: BoundAggregation,
        results: Vec<ArrayRef>,
    ) -> Self {
        let groups_in_key_order = table.in_key_order();
        Self { table, aggregation, results, groups_in_key_order }
    }

    pub(crate) fn row_count(&self) -> usize {
        self.groups_in_key_order.len()
    }

    /// Drops the rows whose delete marker is true.
    pub(crate) fn drop_deleted(&mut self) {
        let BoundFolding::Latest(latest) = &self.aggregation.folding else { return };
        let marks = latest.delete_marker.and_then(|place| self.results.get(place));
        let Some(marks) = marks.and_then(|marks| marks.as_boolean_opt()) else { return };
        self.groups_in_key_order.retain(|group| {
            let group = *group as usize;
            marks.is_null(group) || !marks.value(group)
        });
    }

    fn batch(&self, schema: &SchemaRef, groups: &[u32]) -> Result<RecordBatch, CompactError> {
        let mut columns: Vec<(usize, ArrayRef)> = Vec::with_capacity(schema.fields().len());
        let keys = self.table.key_columns(groups)?;
        for (index, key) in self.aggregation.row_keys.iter().zip(keys) {
            // The row format forgets encodings such as dictionaries.
            let key = cast(&key, schema.field(*index).data_type())
                .map_err(CompactError::arrow("encode the row keys as the table does"))?;
            columns.push((*index, key));
        }
        let positions = UInt32Array::from(groups.to_vec());
        for (index, result) in self.aggregation.result_columns().into_iter().zip(&self.results) {
            let values = take(result, &positions, None)
                .map_err(CompactError::arrow("put folded values in key order"))?;
            columns.push((index, values));
        }
        columns.sort_unstable_by_key(|(index, _)| *index);
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        assemble(schema, columns, groups.len())
    }
}

/// Puts columns together under the table's schema, which also checks its NOT NULLs.
pub(crate) fn assemble(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    row_count: usize,
) -> Result<RecordBatch, CompactError> {
    let options = RecordBatchOptions::new().with_row_count(Some(row_count));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(CompactError::arrow("assemble a batch with the table's columns"))
}

/// Checks what a fold gave against the column it is for.
pub(crate) fn check_result(
    result: &ArrayRef,
    fold: &str,
    column: &Field,
    group_count: usize,
) -> Result<(), CompactError> {
    if result.len() != group_count {
        return Err(CompactError::FoldLength {
            fold: fold.to_owned(),
            column: column.name().clone(),
            expected_groups: group_count,
            found_groups: result.len(),
        });
    }
    if result.data_type() != column.data_type() {
        return Err(CompactError::FoldResultType {
            fold: fold.to_owned(),
            column: column.name().clone(),
            expected: column.data_type().clone(),
            found: result.data_type().clone(),
        });
    }
    let null_groups = result.logical_null_count();
    if null_groups > 0 && !column.is_nullable() {
        return Err(CompactError::NullResult {
            fold: fold.to_owned(),
            column: column.name().clone(),
            null_groups,
        });
    }
    Ok(())
}

/// Says which row key a fault belongs to; a key that cannot be shown is left out.
pub(crate) fn in_group(
    table: &GroupTable,
    aggregation: &BoundAggregation,
    schema: &Schema,
    group: u32,
    error: CompactError,
) -> CompactError {
    let Ok(keys) = table.key_columns(&[group]) else { return error };
    let named = aggregation.row_keys.iter().zip(&keys).map(|(index, key)| {
        let value = array_value_to_string(key, 0).unwrap_or_else(|_| "?".to_owned());
        let value = if key.is_null(0) { "null".to_owned() } else { value };
        format!("{}={value}", schema.field(*index).name())
    });
    let key = named.collect::<Vec<_>>().join(", ");
    CompactError::InGroup { key, source: Box::new(error) }
}
