//! Between the columns of a table and those of its files: other names, other ids, older types.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, AsArray, LargeListArray, ListArray, MapArray, StructArray, new_null_array,
    },
    compute::{CastOptions, cast_with_options},
    datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef},
    error::ArrowError,
};
use datafusion::error::{DataFusionError, Result};
use lakebed_layout::ColumnMapping;
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

/// Returns the schema that files of a table have: physical names and field ids, nothing of the log.
pub(crate) fn physical_schema(schema: &Schema, mapping: ColumnMapping) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| physical_field(field, mapping));
    Arc::new(Schema::new(fields.collect::<Fields>()))
}

fn physical_field(field: &FieldRef, mapping: ColumnMapping) -> FieldRef {
    let id = mapping.field_id(field);
    let metadata = id.map(|id| (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string()));
    let data_type = physical_type(field.data_type(), mapping);
    let physical = Field::new(mapping.physical_name(field), data_type, field.is_nullable());
    Arc::new(physical.with_metadata(metadata.into_iter().collect()))
}

fn physical_type(data_type: &DataType, mapping: ColumnMapping) -> DataType {
    match data_type {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| physical_field(field, mapping)).collect())
        }
        DataType::List(item) => DataType::List(physical_field(item, mapping)),
        DataType::LargeList(item) => DataType::LargeList(physical_field(item, mapping)),
        DataType::Map(entries, sorted) => DataType::Map(physical_field(entries, mapping), *sorted),
        other => other.clone(),
    }
}

/// Puts the same values under other names of nested fields.
pub(crate) fn retyped(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(Arc::clone(array));
    }
    Ok(match data_type {
        DataType::Struct(fields) => {
            let nested = array.as_struct();
            let columns = nested.columns().iter().zip(fields);
            let columns = columns
                .map(|(column, field)| retyped(column, field.data_type()))
                .collect::<Result<_>>()?;
            rebuilt(fields, columns, nested)?
        }
        DataType::List(item) => {
            let list = array.as_list::<i32>();
            let values = retyped(list.values(), item.data_type())?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, nulls)?)
        }
        DataType::LargeList(item) => {
            let list = array.as_list::<i64>();
            let values = retyped(list.values(), item.data_type())?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Arc::new(LargeListArray::try_new(Arc::clone(item), offsets, values, nulls)?)
        }
        DataType::Map(entries, sorted) => {
            let map = array.as_map();
            let pairs: ArrayRef = Arc::new(map.entries().clone());
            let pairs = retyped(&pairs, entries.data_type())?.as_struct().clone();
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, *sorted)?)
        }
        _ => cast_exactly(array, data_type)?,
    })
}

fn rebuilt(fields: &Fields, columns: Vec<ArrayRef>, like: &StructArray) -> Result<ArrayRef> {
    let nulls = like.nulls().cloned();
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, like.len())?))
}

/// A value that does not fit is an error, never a null.
fn cast_exactly(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(array, data_type, &options)?)
}

/// Finds a table's column among those of a file.
pub(crate) fn find_column(
    fields: &Fields,
    target: &Field,
    mapping: ColumnMapping,
) -> Option<usize> {
    let by_name = || {
        let name = mapping.physical_name(target);
        fields.iter().position(|field| field.name() == name)
    };
    match (mapping, mapping.field_id(target)) {
        (ColumnMapping::Id, Some(id)) => {
            fields.iter().position(|field| field_id(field) == Some(id))
        }
        _ => by_name(),
    }
}

/// Returns the id that a file carries for a column.
pub(crate) fn field_id(field: &Field) -> Option<i32> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY)?.parse().ok()
}

/// Reads a file's column as the table has it today: today's names, today's types, nulls for fields
/// that the file does not have.
pub(crate) fn to_logical(
    array: &ArrayRef,
    from: &Field,
    target: &Field,
    mapping: ColumnMapping,
) -> Result<ArrayRef> {
    Ok(match (array.data_type(), target.data_type()) {
        (DataType::Struct(have), DataType::Struct(want)) => {
            let nested = array.as_struct();
            let columns = want
                .iter()
                .map(|field| match find_column(have, field, mapping) {
                    Some(at) => to_logical(nested.column(at), &have[at], field, mapping),
                    None => Ok(new_null_array(field.data_type(), nested.len())),
                })
                .collect::<Result<_>>()?;
            rebuilt(want, columns, nested)?
        }
        (DataType::List(have), DataType::List(want)) => {
            let list = array.as_list::<i32>();
            let values = to_logical(list.values(), have, want, mapping)?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Arc::new(ListArray::try_new(Arc::clone(want), offsets, values, nulls)?)
        }
        (DataType::Map(have, _), DataType::Map(want, sorted)) => {
            let map = array.as_map();
            let pairs = map_entries(map, have, want, mapping)?;
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Arc::new(MapArray::try_new(Arc::clone(want), offsets, pairs, nulls, *sorted)?)
        }
        (have, want) if have.is_nested() || want.is_nested() => {
            return Err(DataFusionError::from(ArrowError::SchemaError(format!(
                "column `{}` of a file has type {have}, the table's `{}` has {want}",
                from.name(),
                target.name()
            ))));
        }
        (_, want) => cast_exactly(array, want)?,
    })
}

/// Keys and values of a map go by their places: their names are up to the writer.
fn map_entries(
    map: &MapArray,
    have: &Field,
    want: &Field,
    mapping: ColumnMapping,
) -> Result<StructArray> {
    let (DataType::Struct(have), DataType::Struct(want)) = (have.data_type(), want.data_type())
    else {
        return Ok(map.entries().clone());
    };
    let columns = map
        .entries()
        .columns()
        .iter()
        .zip(have.iter().zip(want))
        .map(|(column, (have, want))| to_logical(column, have, want, mapping))
        .collect::<Result<Vec<_>>>()?;
    Ok(StructArray::try_new(want.clone(), columns, map.entries().nulls().cloned())?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{
            ArrayRef, AsArray, Date32Array, Decimal128Array, Int8Array, Int32Array, StringArray,
            StructArray,
        },
        datatypes::{DataType, Field, Fields, Schema, TimeUnit},
    };
    use lakebed_layout::{ColumnMapping, testing::mapped_field as mapped};

    use super::{field_id, physical_schema, retyped, to_logical};

    #[test]
    fn a_batch_goes_to_physical_names_and_back() {
        let inner: Fields = vec![mapped("code", DataType::Int32, 2)].into();
        let outer = mapped("who", DataType::Struct(inner.clone()), 1);
        let schema = Arc::new(Schema::new(vec![outer.clone()]));
        let codes: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
        let nulls = Some(vec![true, true, false].into());
        let who: ArrayRef = Arc::new(StructArray::new(inner, vec![codes], nulls));
        let physical = physical_schema(&schema, ColumnMapping::Id);
        let field = physical.field(0).clone();
        let written = retyped(&who, field.data_type()).unwrap();
        assert_eq!((field.name().as_str(), field_id(&field)), ("col-1", Some(1)));
        let DataType::Struct(children) = field.data_type() else { panic!("no struct") };
        assert_eq!((children[0].name().as_str(), field_id(&children[0])), ("col-2", Some(2)));
        for mapping in [ColumnMapping::Name, ColumnMapping::Id] {
            assert_eq!(&to_logical(&written, &field, &outer, mapping).unwrap(), &who);
        }
    }

    #[test]
    fn older_types_are_read_as_newer_ones() {
        let target = |data_type| Field::new("c", data_type, true);
        let check = |array: ArrayRef, wanted: DataType, expected: &str| {
            let from = target(array.data_type().clone());
            let read = to_logical(&array, &from, &target(wanted), ColumnMapping::None).unwrap();
            let shown = arrow::util::display::array_value_to_string(&read, 0).unwrap();
            assert_eq!(shown, expected);
        };
        check(Arc::new(Int8Array::from(vec![-7])), DataType::Int64, "-7");
        check(Arc::new(Int32Array::from(vec![7])), DataType::Float64, "7.0");
        check(Arc::new(Int32Array::from(vec![-7])), DataType::Decimal128(12, 1), "-7.0");
        let decimal = Decimal128Array::from(vec![-125]).with_precision_and_scale(5, 2).unwrap();
        check(Arc::new(decimal), DataType::Decimal128(12, 4), "-1.2500");
        let instant = DataType::Timestamp(TimeUnit::Microsecond, None);
        check(Arc::new(Date32Array::from(vec![1])), instant, "1970-01-02T00:00:00");
    }

    #[test]
    fn a_value_that_does_not_fit_is_no_null() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
        let field = |data_type| Field::new("c", data_type, true);
        let from = field(DataType::Utf8);
        assert!(to_logical(&text, &from, &field(DataType::Int32), ColumnMapping::None).is_err());
        let nested = field(DataType::Struct(Fields::empty()));
        let error = to_logical(&text, &from, &nested, ColumnMapping::None).unwrap_err();
        assert!(error.to_string().contains("column `c` of a file has type Utf8"), "{error}");
    }

    #[test]
    fn fields_that_a_file_lacks_are_null() {
        let values: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let have: Fields = vec![Field::new("x", DataType::Int32, true)].into();
        let file: ArrayRef = Arc::new(StructArray::new(have.clone(), vec![values], None));
        let want: Fields =
            vec![Field::new("y", DataType::Utf8, true), Field::new("x", DataType::Int64, true)]
                .into();
        let from = Field::new("s", DataType::Struct(have), true);
        let target = Field::new("s", DataType::Struct(want), true);
        let read = to_logical(&file, &from, &target, ColumnMapping::None).unwrap();
        let read = read.as_struct();
        assert_eq!((read.column(0).null_count(), read.column(1).null_count()), (2, 0));
    }
}
