//! Folds over maps: the values of each map key are folded as a column's would be.
//!
//! Keys of one side only are kept, and a key stays when its sum is zero. A key that stands twice in
//! one map counts twice. A null map adds nothing, an empty one nothing either, but a group with any
//! map has a map; a group of nulls is null. Entries leave in the order of their keys, so the same
//! rows give the same bytes. `map_count` counts entries, by the rule of [`Count`]: null is an entry
//! not yet counted.
//!
//! Worked example: {a: 1, b: 3} and {b: 4, c: 0} give {a: 1, b: 7, c: 0} by `map_sum`.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray, MapArray, StructArray, UInt32Array, new_empty_array},
    buffer::{NullBuffer, OffsetBuffer},
    compute::{cast, take},
    datatypes::{DataType, Field},
};

use super::{
    Count, Extreme, FoldFactory, GroupFold, MAP_COUNT, MAP_MAX, MAP_MIN, MAP_SUM, Sum, unnest,
};
use crate::{CompactError, group_table::GroupTable};

/// Folds the values of a map column key by key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MapFold {
    /// Adds values.
    Sum,
    /// Counts entries.
    Count,
    /// Keeps the smallest value.
    Min,
    /// Keeps the largest value.
    Max,
}

impl FoldFactory for MapFold {
    fn name(&self) -> &str {
        match self {
            Self::Sum => MAP_SUM,
            Self::Count => MAP_COUNT,
            Self::Min => MAP_MIN,
            Self::Max => MAP_MAX,
        }
    }

    fn open(&self, column: &Field) -> Result<Box<dyn GroupFold>, CompactError> {
        let refused =
            || CompactError::fold_type(self.name(), column, "maps whose keys can be grouped");
        let DataType::Map(entries, is_sorted) = column.data_type() else { return Err(refused()) };
        let DataType::Struct(fields) = entries.data_type() else { return Err(refused()) };
        let [key, value] = fields.iter().as_slice() else { return Err(refused()) };
        if !GroupTable::accepts(key.data_type()) {
            return Err(refused());
        }
        // A fault names the column and not the `value` of its entries.
        let named = value.as_ref().clone().with_name(format!("{}.value", column.name()));
        let inner = match self {
            Self::Sum => Sum.open(&named)?,
            Self::Count => Count.open(&named)?,
            Self::Min => Extreme::Min.open(&named)?,
            Self::Max => Extreme::Max.open(&named)?,
        };
        let key_types = [&DataType::UInt32, key.data_type()];
        Ok(Box::new(GroupMaps {
            entries: Arc::clone(entries),
            is_sorted: *is_sorted,
            keys: GroupTable::new(key_types.into_iter())?,
            inner,
            has_map: Vec::new(),
            entry_groups: Vec::new(),
        }))
    }
}

struct GroupMaps {
    entries: Arc<Field>,
    is_sorted: bool,
    /// Numbers each pair of a group and a map key; the inner fold's groups.
    keys: GroupTable,
    inner: Box<dyn GroupFold>,
    has_map: Vec<bool>,
    entry_groups: Vec<u32>,
}

impl GroupFold for GroupMaps {
    fn update(
        &mut self,
        values: &ArrayRef,
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), CompactError> {
        self.has_map.resize(total_groups, false);
        let maps = values.as_map();
        let (owners, places) = unnest(maps, maps.offsets(), groups, |group| {
            self.has_map[group as usize] = true;
        });
        if owners.is_empty() {
            return Ok(());
        }
        let pick = |column: &ArrayRef| {
            take(column, &places, None).map_err(CompactError::arrow("take the entries of maps"))
        };
        let (keys, values) = (pick(maps.keys())?, pick(maps.values())?);
        let owners: ArrayRef = Arc::new(UInt32Array::from(owners));
        self.keys.assign(&[owners, keys], &mut self.entry_groups)?;
        self.inner.update(&values, &self.entry_groups, self.keys.len())
    }

    fn evaluate(&mut self) -> Result<ArrayRef, CompactError> {
        let DataType::Struct(fields) = self.entries.data_type() else {
            return Ok(new_empty_array(self.entries.data_type()));
        };
        // An error's group is a pair; what it belongs to is the pair's first part.
        let folded = if self.keys.len() == 0 {
            new_empty_array(fields[1].data_type())
        } else {
            self.inner.evaluate().map_err(|error| self.with_outer_group(error))?
        };
        // In this order entries lie by group, then by key.
        let order = self.keys.in_key_order();
        let mut columns = self.keys.key_columns(&order)?.into_iter();
        let (Some(owners), Some(keys)) = (columns.next(), columns.next()) else {
            return Ok(new_empty_array(self.entries.data_type()));
        };
        let mut lengths = vec![0_usize; self.has_map.len()];
        for owner in owners.as_primitive::<arrow::datatypes::UInt32Type>().values() {
            lengths[*owner as usize] += 1;
        }
        let values = take(&folded, &UInt32Array::from(order), None)
            .map_err(CompactError::arrow("put map values in key order"))?;
        let keys = cast(&keys, fields[0].data_type())
            .map_err(CompactError::arrow("encode map keys as the table does"))?;
        let entries = StructArray::try_new(fields.clone(), vec![keys, values], None)
            .map_err(CompactError::arrow("assemble the entries of maps"))?;
        let nulls = NullBuffer::from(std::mem::take(&mut self.has_map));
        let maps = MapArray::try_new(
            Arc::clone(&self.entries),
            OffsetBuffer::from_lengths(lengths),
            entries,
            Some(nulls).filter(|nulls| nulls.null_count() > 0),
            self.is_sorted,
        );
        Ok(Arc::new(maps.map_err(CompactError::arrow("assemble maps"))?))
    }

    fn size_bytes(&self) -> usize {
        self.keys.size_bytes()
            + self.inner.size_bytes()
            + self.has_map.capacity()
            + self.entry_groups.capacity() * size_of::<u32>()
    }
}

impl GroupMaps {
    fn with_outer_group(&self, mut error: CompactError) -> CompactError {
        if let CompactError::Overflow { group, .. } = &mut error
            && let Ok(columns) = self.keys.key_columns(&[*group])
            && let Some(owner) = columns.first()
        {
            *group = owner.as_primitive::<arrow::datatypes::UInt32Type>().value(0);
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{Array, ArrayRef, Int64Builder, MapBuilder, StringBuilder},
        datatypes::Field,
        util::display::array_value_to_string,
    };

    use super::{FoldFactory, MapFold};

    type Entries<'a> = &'a [(&'a str, Option<i64>)];

    fn maps(rows: &[Option<Entries<'_>>]) -> ArrayRef {
        let mut builder = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        for row in rows {
            for (key, value) in row.unwrap_or_default() {
                builder.keys().append_value(key);
                builder.values().append_option(*value);
            }
            builder.append(row.is_some()).unwrap();
        }
        Arc::new(builder.finish())
    }

    #[track_caller]
    fn check(fold: MapFold, rows: &[Option<Entries<'_>>], groups: &[u32], expected: &[&str]) {
        let values = maps(rows);
        let total = expected.len();
        let mut folding = fold.open(&Field::new("m", values.data_type().clone(), true)).unwrap();
        folding.update(&values, groups, total).unwrap();
        let folded = folding.evaluate().unwrap();
        let shown = |at| match folded.is_null(at) {
            true => "null".to_owned(),
            false => array_value_to_string(&folded, at).unwrap(),
        };
        assert_eq!((0..total).map(shown).collect::<Vec<_>>(), expected);
        // Once more over the result: it stands.
        let mut again = fold.open(&Field::new("m", values.data_type().clone(), true)).unwrap();
        again
            .update(&folded, &(0..u32::try_from(total).unwrap()).collect::<Vec<_>>(), total)
            .unwrap();
        assert_eq!(&again.evaluate().unwrap(), &folded);
    }

    #[test]
    fn entries_fold_key_by_key_and_zero_stays() {
        let first: Entries<'_> = &[("b", Some(1)), ("a", Some(0))];
        let second: Entries<'_> = &[("b", Some(-1)), ("c", Some(25)), ("c", Some(5)), ("d", None)];
        let rows = [Some(first), Some(second), None, Some(&[] as Entries<'_>), None];
        let groups = [0, 0, 1, 2, 0];
        check(MapFold::Sum, &rows, &groups, &["{a: 0, b: 0, c: 30, d: }", "null", "{}"]);
        check(MapFold::Min, &rows, &groups, &["{a: 0, b: -1, c: 5, d: }", "null", "{}"]);
        check(MapFold::Max, &rows, &groups, &["{a: 0, b: 1, c: 25, d: }", "null", "{}"]);
        check(MapFold::Count, &rows, &groups, &["{a: 0, b: 0, c: 30, d: 1}", "null", "{}"]);
    }

    #[test]
    fn sums_of_entries_that_do_not_fit_are_refused() {
        let values = maps(&[Some(&[("k", Some(i64::MAX))]), Some(&[("k", Some(1))])]);
        let field = Field::new("m", values.data_type().clone(), true);
        let mut folding = MapFold::Sum.open(&field).unwrap();
        folding.update(&values, &[3, 3], 4).unwrap();
        let error = folding.evaluate().unwrap_err();
        assert_eq!(error.group(), Some(3));
        assert_eq!(
            error.to_string(),
            "sum of column \"m.value\" does not fit Int64 in 1 of 1 groups: the first result is 9223372036854775808"
        );
    }
}
