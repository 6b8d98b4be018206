//! First and last, and the latest row: what belongs to the smallest or largest value of other columns.
//!
//! 1. A row's ordering columns and its value are encoded together (arrow's row format), so that one
//!    comparison of bytes orders rows by the ordering columns and breaks ties by the value. The order
//!    is total: rows come in any order and in any pieces, and the same one is kept.
//! 2. The winner keeps its place in that order only if its ordering value is stored with it. So the
//!    ordering column of `last` must itself be folded by `max`, that of `first` by `min`
//!    ([`crate::Chain::validate`] sees to it), and the latest row keeps all its columns together.
//! 3. A null ordering value loses against any other; a null value is a value, and the smallest.
//!
//! Worked example: (4, "d") then (2, "b") give first "b" at 2, last "d" at 4; a later (3, "c")
//! changes neither, though it lies between the pieces.

use arrow::{
    array::{ArrayRef, AsArray},
    compute::{SortOptions, cast},
    datatypes::{DataType, Field},
    row::{RowConverter, SortField},
};

use super::{FIRST, FoldFactory, GroupFold, LAST};
use crate::{CompactError, group_table::GroupTable};

/// Keeps the value of the first or the last row in the order of another column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstLast {
    /// Which end is kept.
    pub end: End,
    /// The column that orders the rows.
    pub by: String,
}

/// An end of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The smallest.
    First,
    /// The largest.
    Last,
}

impl FoldFactory for FirstLast {
    fn name(&self) -> &str {
        match self.end {
            End::First => FIRST,
            End::Last => LAST,
        }
    }

    fn other_columns(&self) -> &[String] {
        std::slice::from_ref(&self.by)
    }

    fn open(&self, column: &Field) -> Result<Box<dyn GroupFold>, CompactError> {
        WinningRows::check(self.name(), column)?;
        Ok(Box::new(GroupValues {
            data_type: column.data_type().clone(),
            rows: None,
            end: self.end,
        }))
    }
}

struct GroupValues {
    data_type: DataType,
    end: End,
    rows: Option<WinningRows>,
}

impl GroupFold for GroupValues {
    fn update(
        &mut self,
        values: &ArrayRef,
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), CompactError> {
        // The run lends the value first, then the ordering column.
        let mut columns = values.as_struct().columns().to_vec();
        columns.rotate_left(1);
        if self.rows.is_none() {
            let types: Vec<DataType> =
                columns.iter().map(|column| column.data_type().clone()).collect();
            self.rows = Some(WinningRows::new(&types, self.end)?);
        }
        let Some(rows) = &mut self.rows else { return Ok(()) };
        rows.update(&columns, groups, total_groups)
    }

    fn evaluate(&mut self) -> Result<ArrayRef, CompactError> {
        let columns = match self.rows.take() {
            Some(mut rows) => rows.take_columns()?,
            None => Vec::new(),
        };
        let value = columns
            .into_iter()
            .next_back()
            .unwrap_or_else(|| arrow::array::new_empty_array(&self.data_type));
        // The row format forgets encodings such as dictionaries.
        cast(&value, &self.data_type)
            .map_err(CompactError::arrow("encode values as the table does"))
    }

    fn size_bytes(&self) -> usize {
        self.rows.as_ref().map_or(0, WinningRows::size_bytes)
    }
}

/// The row of each group at one end of the order of all its columns, most significant first.
#[derive(Debug)]
pub(crate) struct WinningRows {
    converter: RowConverter,
    end: End,
    kept: Vec<Option<Box<[u8]>>>,
    bytes: usize,
}

impl WinningRows {
    /// Checks that a column has an order, for the step or fold that goes by it.
    pub(crate) fn check(fold: &str, column: &Field) -> Result<(), CompactError> {
        if GroupTable::accepts(column.data_type()) {
            return Ok(());
        }
        Err(CompactError::fold_type(fold, column, "types that have an order, so no maps"))
    }

    /// Starts without rows, for columns of these types.
    pub(crate) fn new(types: &[DataType], end: End) -> Result<Self, CompactError> {
        // Nulls lose: they come first where the last wins, and last where the first does.
        let options = SortOptions { descending: false, nulls_first: end == End::Last };
        let fields = types
            .iter()
            .map(|data_type| SortField::new_with_options(data_type.clone(), options))
            .collect();
        let converter =
            RowConverter::new(fields).map_err(CompactError::arrow("encode ordered rows"))?;
        Ok(Self { converter, end, kept: Vec::new(), bytes: 0 })
    }

    pub(crate) fn update(
        &mut self,
        columns: &[ArrayRef],
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), CompactError> {
        self.kept.resize(total_groups, None);
        let rows = self
            .converter
            .convert_columns(columns)
            .map_err(CompactError::arrow("encode ordered rows"))?;
        for (row, group) in rows.iter().zip(groups) {
            let (row, kept) = (row.as_ref(), &mut self.kept[*group as usize]);
            let wins = kept.as_deref().is_none_or(|kept| match self.end {
                End::First => row < kept,
                End::Last => row > kept,
            });
            if wins {
                self.bytes += row.len();
                self.bytes -= kept.replace(row.into()).map_or(0, |old| old.len());
            }
        }
        Ok(())
    }

    /// Returns the columns of the winners, by group; every group has one.
    pub(crate) fn take_columns(&mut self) -> Result<Vec<ArrayRef>, CompactError> {
        let (parser, kept) = (self.converter.parser(), std::mem::take(&mut self.kept));
        self.bytes = 0;
        let rows = kept.iter().flatten().map(|row| parser.parse(row));
        self.converter.convert_rows(rows).map_err(CompactError::arrow("decode ordered rows"))
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.converter.size() + self.kept.capacity() * size_of::<Option<Box<[u8]>>>() + self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{ArrayRef, AsArray, StructArray},
        datatypes::{DataType, Field},
    };

    use super::{End, FirstLast, FoldFactory};
    use crate::testing::{integers, texts};

    #[track_caller]
    fn check(end: End, by: Vec<Option<i64>>, values: Vec<Option<&str>>, expected: Option<&str>) {
        let mut order: Vec<usize> = (0..by.len()).collect();
        for _ in 0..by.len() {
            order.rotate_left(1);
            let (by, values): (ArrayRef, ArrayRef) = (
                integers(order.iter().map(|at| by[*at])),
                texts(order.iter().map(|at| values[*at])),
            );
            let pair = StructArray::try_from(vec![("v", values), ("t", by)]).unwrap();
            let pair: ArrayRef = Arc::new(pair);
            let factory = FirstLast { end, by: "t".to_owned() };
            let mut fold = factory.open(&Field::new("v", DataType::Utf8, true)).unwrap();
            fold.update(&pair, &vec![0; order.len()], 1).unwrap();
            let kept = fold.evaluate().unwrap();
            assert_eq!(kept.as_string::<i32>().iter().next(), Some(expected));
        }
    }

    #[test]
    fn ends_are_kept_and_ties_go_by_the_value() {
        let by = vec![Some(4), Some(2), Some(3), None];
        let values = vec![Some("d"), Some("b"), Some("c"), Some("z")];
        check(End::First, by.clone(), values.clone(), Some("b"));
        check(End::Last, by, values, Some("d"));
        check(End::Last, vec![Some(8), Some(8)], vec![Some("x"), Some("y")], Some("y"));
        check(End::First, vec![Some(8), Some(8)], vec![Some("x"), Some("y")], Some("x"));
        check(End::Last, vec![Some(9), Some(8)], vec![None, Some("y")], None);
        check(End::Last, vec![None, None], vec![Some("x"), None], Some("x"));
    }
}
