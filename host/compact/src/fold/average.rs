//! Average that can be taken again: a sum and how many values stand behind it.
//!
//! An average of averages is wrong, so none is stored. The column is a `STRUCT<sum, count>` whose
//! `sum` is of any type that can be added and whose `count` is a BIGINT that may be null. A writer
//! puts a value into `sum` and leaves `count` null, which stands for one value; a null `sum` stands
//! for none. Folding adds both, with [`Sum`]'s checks. Readers divide: `sum(c.sum) / sum(coalesce(c.count, 1))`.
//!
//! Worked example: {3, null} and {5, null} give {8, 2}; later {1, null} gives {9, 3}, so 3 and not 2.5.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, StructArray},
    compute::{is_null, nullif},
    datatypes::{DataType, Field, Fields, Int64Type},
};

use super::{AVG, FoldFactory, GroupFold, Sum};
use crate::CompactError;

/// Adds sums and counts.
#[derive(Debug, Clone, Copy)]
pub struct Average;

impl FoldFactory for Average {
    fn name(&self) -> &str {
        AVG
    }

    fn open(&self, column: &Field) -> Result<Box<dyn GroupFold>, CompactError> {
        let takes = "a STRUCT<sum: a number, count: BIGINT> whose fields may be null, because an average of averages is wrong";
        let refused = || CompactError::fold_type(AVG, column, takes);
        let DataType::Struct(fields) = column.data_type() else { return Err(refused()) };
        let [sum, count] = fields.iter().as_slice() else { return Err(refused()) };
        let is_pair = sum.name() == "sum"
            && count.name() == "count"
            && count.data_type() == &DataType::Int64
            && sum.is_nullable()
            && count.is_nullable();
        if !is_pair {
            return Err(refused());
        }
        let named =
            |field: &Field| field.clone().with_name(format!("{}.{}", column.name(), field.name()));
        Ok(Box::new(GroupAverages {
            fields: fields.clone(),
            sums: Sum.open(&named(sum))?,
            counts: Sum.open(&named(count))?,
        }))
    }
}

struct GroupAverages {
    fields: Fields,
    sums: Box<dyn GroupFold>,
    counts: Box<dyn GroupFold>,
}

impl GroupFold for GroupAverages {
    fn update(
        &mut self,
        values: &ArrayRef,
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), CompactError> {
        let pairs = values.as_struct();
        let (sums, counts) = (pairs.column(0), pairs.column(1).as_primitive::<Int64Type>());
        let value_count = |row: usize| {
            if pairs.is_null(row) || sums.is_null(row) {
                0
            } else if counts.is_null(row) {
                1
            } else {
                counts.value(row)
            }
        };
        let value_counts: Int64Array = (0..pairs.len()).map(value_count).map(Some).collect();
        let sums = is_null(pairs)
            .and_then(|nulls| nullif(sums, &nulls))
            .map_err(CompactError::arrow("leave out the sums of null averages"))?;
        self.sums.update(&sums, groups, total_groups)?;
        self.counts.update(&(Arc::new(value_counts) as ArrayRef), groups, total_groups)
    }

    fn evaluate(&mut self) -> Result<ArrayRef, CompactError> {
        let columns = vec![self.sums.evaluate()?, self.counts.evaluate()?];
        let pairs = StructArray::try_new(self.fields.clone(), columns, None)
            .map_err(CompactError::arrow("assemble averages"))?;
        Ok(Arc::new(pairs))
    }

    fn size_bytes(&self) -> usize {
        self.sums.size_bytes() + self.counts.size_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{ArrayRef, AsArray, StructArray},
        buffer::NullBuffer,
        datatypes::{DataType, Field, Fields, Int64Type},
    };

    use super::{Average, FoldFactory};
    use crate::testing::integers;

    fn fields() -> Fields {
        Fields::from(vec![
            Field::new("sum", DataType::Int64, true),
            Field::new("count", DataType::Int64, true),
        ])
    }

    fn fold(
        sums: Vec<Option<i64>>,
        counts: Vec<Option<i64>>,
        valid: Vec<bool>,
    ) -> (Option<i64>, i64) {
        let rows = sums.len();
        let nulls = Some(NullBuffer::from(valid));
        let columns = vec![integers(sums), integers(counts)];
        let pairs: ArrayRef = Arc::new(StructArray::new(fields(), columns, nulls));
        let mut folding = Average.open(&Field::new("a", DataType::Struct(fields()), true)).unwrap();
        folding.update(&pairs, &vec![0; rows], 1).unwrap();
        let folded = folding.evaluate().unwrap();
        let column = |at: usize| {
            folded.as_struct().column(at).as_primitive::<Int64Type>().iter().next().flatten()
        };
        (column(0), column(1).unwrap())
    }

    #[test]
    fn averages_of_averages_stay_right() {
        let folded = fold(
            vec![Some(3), Some(5), None, Some(9)],
            vec![None; 4],
            vec![true, true, true, false],
        );
        assert_eq!(folded, (Some(8), 2), "nulls are no values");
        let again = fold(vec![folded.0, Some(1)], vec![Some(folded.1), None], vec![true; 2]);
        assert_eq!(again, (Some(9), 3));
        assert_eq!(fold(vec![None], vec![None], vec![true]), (None, 0));
        assert_eq!(fold(vec![None, Some(7)], vec![Some(0), None], vec![true; 2]), (Some(7), 1));
    }

    #[test]
    fn plain_numbers_are_refused_with_a_way_out() {
        let error = Average.open(&Field::new("a", DataType::Float64, true)).err().unwrap();
        assert_eq!(
            error.to_string(),
            "avg is not defined for column \"a\" of type Float64: it takes a STRUCT<sum: a number, count: BIGINT> whose fields may be null, because an average of averages is wrong"
        );
    }
}
