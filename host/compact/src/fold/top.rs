//! Top-n: the n largest elements of a list column.
//!
//! The column is an ARRAY. The elements of all lists of a group are put together, nulls left out, and
//! the n largest stay, the largest first; equal elements stay as often as they stand. The n largest of
//! the n largest of parts are the n largest of all, so pieces may be compacted first. Elements of
//! floats are in total order: −NaN, numbers with −0.0 before +0.0, NaN. A group of null lists is null.
//!
//! Worked example with n = 3: [5, 1] and [9, 5, 2] give [9, 5, 5].

use std::{num::NonZeroUsize, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, ListArray},
    buffer::{NullBuffer, OffsetBuffer},
    compute::{SortOptions, cast, take},
    datatypes::{DataType, Field, FieldRef},
    row::{RowConverter, SortField},
};

use super::{FoldFactory, GroupFold, TOP, unnest};
use crate::{CompactError, group_table::GroupTable};

/// Keeps the largest elements.
#[derive(Debug, Clone, Copy)]
pub struct Top {
    /// How many stay.
    pub count: NonZeroUsize,
}

impl FoldFactory for Top {
    fn name(&self) -> &str {
        TOP
    }

    fn open(&self, column: &Field) -> Result<Box<dyn GroupFold>, CompactError> {
        let element = match column.data_type() {
            DataType::List(element) if GroupTable::accepts(element.data_type()) => element,
            _ => {
                let takes = "an ARRAY whose elements have an order";
                return Err(CompactError::fold_type(TOP, column, takes));
            }
        };
        // Largest first, so that the smallest bytes are kept.
        let options = SortOptions { descending: true, nulls_first: false };
        let field = SortField::new_with_options(element.data_type().clone(), options);
        let converter = RowConverter::new(vec![field])
            .map_err(CompactError::arrow("encode elements of lists"))?;
        Ok(Box::new(GroupTops {
            count: self.count.get(),
            element: Arc::clone(element),
            converter,
            kept: Vec::new(),
            bytes: 0,
        }))
    }
}

struct GroupTops {
    count: usize,
    element: FieldRef,
    converter: RowConverter,
    /// Of each group that has a list, its elements in order.
    kept: Vec<Option<Vec<Box<[u8]>>>>,
    bytes: usize,
}

impl GroupFold for GroupTops {
    fn update(
        &mut self,
        values: &ArrayRef,
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), CompactError> {
        self.kept.resize(total_groups, None);
        let lists = values.as_list::<i32>();
        let (owners, places) = unnest(lists, lists.offsets(), groups, |group| {
            self.kept[group as usize].get_or_insert_default();
        });
        let elements = take(lists.values(), &places, None)
            .map_err(CompactError::arrow("take the elements of lists"))?;
        let rows = self
            .converter
            .convert_columns(std::slice::from_ref(&elements))
            .map_err(CompactError::arrow("encode elements of lists"))?;
        for (at, group) in owners.into_iter().enumerate().filter(|(at, _)| elements.is_valid(*at)) {
            let row = rows.row(at);
            let kept = self.kept[group as usize].get_or_insert_default();
            let place = kept.partition_point(|other| other.as_ref() <= row.as_ref());
            if place < self.count {
                self.bytes += row.as_ref().len();
                kept.insert(place, row.as_ref().into());
                if kept.len() > self.count {
                    self.bytes -= kept.pop().map_or(0, |last| last.len());
                }
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ArrayRef, CompactError> {
        let kept = std::mem::take(&mut self.kept);
        let lengths: Vec<usize> =
            kept.iter().map(|list| list.as_ref().map_or(0, Vec::len)).collect();
        let nulls = NullBuffer::from_iter(kept.iter().map(Option::is_some));
        let parser = self.converter.parser();
        let rows = kept.iter().flatten().flatten().map(|row| parser.parse(row));
        let decoded = self
            .converter
            .convert_rows(rows)
            .map_err(CompactError::arrow("decode elements of lists"))?;
        // The row format forgets encodings such as dictionaries.
        let elements = cast(&decoded[0], self.element.data_type())
            .map_err(CompactError::arrow("encode elements as the table does"))?;
        let lists = ListArray::try_new(
            Arc::clone(&self.element),
            OffsetBuffer::from_lengths(lengths),
            elements,
            Some(nulls).filter(|nulls| nulls.null_count() > 0),
        );
        Ok(Arc::new(lists.map_err(CompactError::arrow("assemble lists"))?))
    }

    fn size_bytes(&self) -> usize {
        let elements: usize = self.kept.iter().flatten().map(Vec::capacity).sum();
        self.kept.capacity() * size_of::<Option<Vec<Box<[u8]>>>>()
            + elements * size_of::<Box<[u8]>>()
            + self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroUsize, sync::Arc};

    use arrow::{
        array::{Array, ArrayRef, ListArray},
        datatypes::{DataType, Field, Int64Type},
        util::display::array_value_to_string,
    };

    use super::{FoldFactory, Top};

    type List = Option<Vec<Option<i64>>>;

    fn lists(rows: Vec<List>) -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows))
    }

    #[track_caller]
    fn fold(values: &ArrayRef, groups: &[u32], total_groups: usize) -> ArrayRef {
        let top = Top { count: NonZeroUsize::new(3).unwrap() };
        let mut folding = top.open(&Field::new("l", values.data_type().clone(), true)).unwrap();
        folding.update(values, groups, total_groups).unwrap();
        folding.evaluate().unwrap()
    }

    #[test]
    fn largest_elements_stay_as_often_as_they_stand() {
        let rows = lists(vec![
            Some(vec![Some(5), Some(1), None]),
            None,
            Some(vec![Some(9), Some(5), Some(2)]),
            Some(vec![]),
        ]);
        let folded = fold(&rows, &[0, 1, 0, 2], 3);
        let shown: Vec<String> = (0..3)
            .map(|at| match folded.is_null(at) {
                true => "null".to_owned(),
                false => array_value_to_string(&folded, at).unwrap(),
            })
            .collect();
        assert_eq!(shown, ["[9, 5, 5]", "null", "[]"]);
        assert_eq!(&fold(&folded, &[0, 1, 2], 3), &folded);
    }

    #[test]
    fn columns_without_lists_are_refused() {
        let top = Top { count: NonZeroUsize::MIN };
        let error = top.open(&Field::new("q", DataType::Int64, true)).err().unwrap();
        assert_eq!(
            error.to_string(),
            "top is not defined for column \"q\" of type Int64: it takes an ARRAY whose elements have an order"
        );
    }
}
