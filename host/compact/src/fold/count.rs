//! Count: how many rows of the original table stand behind a row.
//!
//! Counting rows breaks the law: a thousand rows become one row that says 1000, and the next
//! compaction would count that one row and say 1. So the column itself must tell a row that was
//! never counted from a count. The rule is `count = Σ coalesce(value, 1)` over a nullable Int64
//! column: null stands for one row not yet counted, a value for that many rows. Writers leave the
//! column null; other engines may rewrite the files in between. Unlike `count(column)` in SQL this
//! counts rows, not values. A column of another type, or one that is NOT NULL, is refused.
//!
//! Worked example: null, null, null give 3; later 3, null give 4; counting rows would give 2.

use std::{mem, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array},
    datatypes::{DataType, Field, Int64Type},
};

use super::{COUNT, FoldFactory, GroupFold};
use crate::CompactError;

/// Counts rows, so that counting counts again adds them up.
#[derive(Debug, Clone, Copy)]
pub struct Count;

impl FoldFactory for Count {
    fn name(&self) -> &str {
        COUNT
    }

    fn open(&self, column: &Field) -> Result<Box<dyn GroupFold>, CompactError> {
        if column.data_type() != &DataType::Int64 || !column.is_nullable() {
            return Err(CompactError::CountColumn {
                column: column.name().clone(),
                data_type: column.data_type().clone(),
                is_nullable: column.is_nullable(),
            });
        }
        Ok(Box::new(GroupCounts { column: column.name().clone(), counts: Vec::new() }))
    }
}

#[derive(Debug)]
struct GroupCounts {
    column: String,
    counts: Vec<i128>,
}

impl GroupFold for GroupCounts {
    fn update(
        &mut self,
        values: &ArrayRef,
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), CompactError> {
        self.counts.resize(total_groups, 0);
        let values = values.as_primitive::<Int64Type>();
        for (row, group) in groups.iter().enumerate() {
            let count = if values.is_null(row) { 1 } else { values.value(row) };
            self.counts[*group as usize] += i128::from(count);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ArrayRef, CompactError> {
        let counts = mem::take(&mut self.counts);
        let narrowed: Vec<Option<i64>> =
            counts.iter().map(|count| i64::try_from(*count).ok()).collect();
        let overflowed_groups = narrowed.iter().filter(|count| count.is_none()).count();
        if let Some(group) = narrowed.iter().position(Option::is_none) {
            return Err(CompactError::Overflow {
                fold: COUNT,
                column: self.column.clone(),
                data_type: DataType::Int64,
                result: counts[group].to_string(),
                group: u32::try_from(group).expect("group numbers are u32"),
                overflowed_groups,
                total_groups: counts.len(),
            });
        }
        Ok(Arc::new(Int64Array::from_iter_values(narrowed.into_iter().flatten())))
    }

    fn size_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<i128>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{ArrayRef, AsArray, Int64Array},
        datatypes::{DataType, Field, Int64Type},
    };

    use super::{Count, FoldFactory};
    use crate::testing::integers;

    #[track_caller]
    fn check(values: ArrayRef, expected: i64) -> ArrayRef {
        let mut fold = Count.open(&Field::new("n", DataType::Int64, true)).unwrap();
        fold.update(&values, &vec![0; values.len()], 1).unwrap();
        let counts = fold.evaluate().unwrap();
        assert_eq!(counts.as_primitive::<Int64Type>().values(), &[expected]);
        counts
    }

    #[test]
    fn counting_again_keeps_the_count_over_five_rounds() {
        let mut counted = check(Arc::new(Int64Array::new_null(1_000)), 1_000);
        for rows in [1_003, 1_006, 1_009, 1_012, 1_015] {
            let before = Some(counted.as_primitive::<Int64Type>().value(0));
            counted = check(integers([before, None, None, None]), rows);
            // With nothing new the count stands; counting rows would now say 1.
            counted = check(counted, rows);
        }
    }

    #[test]
    fn rows_not_yet_counted_add_to_the_counts_of_others() {
        check(integers([Some(3), None]), 4);
        check(integers([Some(0), Some(5)]), 5);
    }

    #[test]
    fn counts_beyond_the_column_are_refused() {
        let mut fold = Count.open(&Field::new("n", DataType::Int64, true)).unwrap();
        fold.update(&integers([Some(i64::MAX), None]), &[0, 0], 1).unwrap();
        assert_eq!(
            fold.evaluate().unwrap_err().to_string(),
            "count of column \"n\" does not fit Int64 in 1 of 1 groups: the first result is 9223372036854775808"
        );
    }
}
