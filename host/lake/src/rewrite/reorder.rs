//! The rows of a batch in another order, in the memory that they have.
//!
//! Columns of numbers and text are copied to a scratch that stays in the cache and back. Taking them into
//! new memory instead would touch fresh pages for every row of the table, and twice the memory where
//! an allocator keeps what another thread freed.

use arrow::{
    array::{
        Array, ArrayRef, ArrowPrimitiveType, AsArray, GenericByteArray, PrimitiveArray,
        RecordBatch, RecordBatchOptions, UInt32Array, downcast_primitive,
        types::{BinaryType, ByteArrayType, Utf8Type},
    },
    buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer},
    compute::take,
    datatypes::{ArrowNativeType, DataType},
    error::ArrowError,
};

/// Puts the rows of a batch in the order of their numbers, each of which stands in it once.
pub(super) fn reordered(
    batch: RecordBatch,
    order: &UInt32Array,
) -> Result<RecordBatch, ArrowError> {
    let (schema, columns, rows) = batch.into_parts();
    let columns: Result<Vec<ArrayRef>, ArrowError> =
        columns.into_iter().map(|column| reordered_column(column, order)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns?, &options)
}

fn reordered_column(column: ArrayRef, order: &UInt32Array) -> Result<ArrayRef, ArrowError> {
    macro_rules! number {
        ($type:ty, $column:ident, $order:ident) => {
            Ok(numbers::<$type>($column, $order))
        };
    }
    downcast_primitive! {
        column.data_type() => (number, column, order),
        DataType::Utf8 => text::<Utf8Type>(column, order),
        DataType::Binary => text::<BinaryType>(column, order),
        _ => take(&column, order, None),
    }
}

fn numbers<T: ArrowPrimitiveType>(column: ArrayRef, order: &UInt32Array) -> ArrayRef {
    let array: PrimitiveArray<T> = column.as_primitive().clone();
    // The array must be the only one that knows of its memory.
    drop(column);
    let (data_type, values, nulls) = array.into_parts();
    let rows = values.len();
    let values = match values.into_inner().into_mutable() {
        Ok(mut memory) => {
            let own: &mut [T::Native] = memory.typed_data_mut();
            let scratch = own.to_vec();
            for (slot, row) in own.iter_mut().zip(order.values()) {
                *slot = scratch[row.as_usize()];
            }
            Buffer::from(memory)
        }
        Err(shared) => {
            let values = ScalarBuffer::<T::Native>::new(shared, 0, rows);
            order.values().iter().map(|row| values[row.as_usize()]).collect()
        }
    };
    let values = ScalarBuffer::new(values, 0, rows);
    let array = PrimitiveArray::<T>::new(values, reordered_nulls(nulls.as_ref(), order));
    std::sync::Arc::new(array.with_data_type(data_type))
}

fn text<T: ByteArrayType<Offset = i32>>(
    column: ArrayRef,
    order: &UInt32Array,
) -> Result<ArrayRef, ArrowError> {
    let array: &GenericByteArray<T> = column.as_bytes();
    let all = array.value_offsets().first() == Some(&0)
        && array.value_offsets().last().map(|end| end.as_usize()) == Some(array.value_data().len());
    if !all {
        return take(&column, order, None);
    }
    let array = array.clone();
    drop(column);
    let (offsets, data, nulls) = array.into_parts();
    let mut memory = match data.into_mutable() {
        Ok(memory) => memory,
        Err(shared) => {
            return take(&GenericByteArray::<T>::try_new(offsets, shared, nulls)?, order, None);
        }
    };
    let scratch = memory.as_slice().to_vec();
    let mut rest = memory.as_slice_mut();
    let mut ends = Vec::with_capacity(offsets.len());
    ends.push(0);
    let mut end = 0;
    for row in order.values() {
        let (from, to) = (offsets[row.as_usize()], offsets[row.as_usize() + 1]);
        let value = &scratch[from.as_usize()..to.as_usize()];
        let (slot, others) = rest.split_at_mut(value.len());
        slot.copy_from_slice(value);
        rest = others;
        end += to - from;
        ends.push(end);
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
    let nulls = reordered_nulls(nulls.as_ref(), order);
    let array = GenericByteArray::<T>::try_new(offsets, Buffer::from(memory), nulls)?;
    Ok(std::sync::Arc::new(array))
}

fn reordered_nulls(nulls: Option<&NullBuffer>, order: &UInt32Array) -> Option<NullBuffer> {
    let nulls = nulls?;
    let is_valid = |place: usize| nulls.is_valid(order.value(place).as_usize());
    Some(NullBuffer::new(BooleanBuffer::collect_bool(order.len(), is_valid)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{
            ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int32Array,
            RecordBatch, StringArray, StructArray, TimestampMicrosecondArray, UInt32Array,
        },
        compute::take_record_batch,
    };

    use super::reordered;

    fn batch() -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(4)]));
        let texts: ArrayRef =
            Arc::new(StringArray::from(vec![Some("a"), Some(""), None, Some("żółw")]));
        let times = TimestampMicrosecondArray::from(vec![1, 2, 3, 4]).with_timezone("UTC");
        let decimals = Decimal128Array::from(vec![10, 20, 30, 40]).with_precision_and_scale(5, 2);
        let nested = StructArray::from(vec![(
            Arc::new(arrow::datatypes::Field::new("n", numbers.data_type().clone(), true)),
            Arc::clone(&numbers),
        )]);
        RecordBatch::try_from_iter([
            ("shared", Arc::clone(&numbers)),
            ("numbers", Arc::new(Int32Array::from(vec![5, 6, 7, 8])) as ArrayRef),
            ("floats", Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5, 3.5]))),
            ("times", Arc::new(times)),
            ("decimals", Arc::new(decimals.unwrap())),
            ("texts", texts),
            ("bytes", Arc::new(BinaryArray::from(vec![&b"\xff"[..], b"", b"xyz", b"\0"]))),
            ("flags", Arc::new(BooleanArray::from(vec![true, false, true, true]))),
            ("nested", Arc::new(nested)),
        ])
        .unwrap()
    }

    #[track_caller]
    fn check(batch: impl Fn() -> RecordBatch, order: Vec<u32>) {
        let order = UInt32Array::from(order);
        let expected = take_record_batch(&batch(), &order).unwrap();
        assert_eq!(reordered(batch(), &order).unwrap(), expected);
        // Somebody else who holds the batch keeps it as it was.
        let held = batch();
        assert_eq!(reordered(held.clone(), &order).unwrap(), expected);
        assert_eq!(held, batch());
    }

    #[test]
    fn rows_of_all_kinds_of_columns_change_places_and_others_keep_theirs() {
        check(batch, vec![3, 1, 0, 2]);
        check(batch, vec![0, 1, 2, 3]);
        check(|| batch().slice(1, 2), vec![1, 0]);
        check(|| batch().slice(0, 0), vec![]);
    }
}
