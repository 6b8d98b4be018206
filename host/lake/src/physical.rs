//! What files hold: physical names and field ids.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, AsArray, LargeListArray, ListArray, MapArray, RecordBatch,
        RecordBatchOptions, StructArray,
    },
    compute::{CastOptions, cast_with_options},
    datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef},
};
use datafusion::error::Result;
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

/// Gives a batch of a table the names of its files; the columns are in one order.
pub(crate) fn to_physical(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns: Vec<ArrayRef> =
        columns.map(|(column, field)| retyped(column, field.data_type())).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// Puts the same values under other names of nested fields.
fn retyped(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
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
