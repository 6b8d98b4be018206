//! Arrow arrays as the columns a guest reads, and back.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, AsArray, Float32Array, Float64Array, Int32Array, Int64Array, StringArray,
        UInt8Array,
    },
    buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer},
    compute::cast,
    datatypes::{DataType, Float32Type, Float64Type, Int32Type, Int64Type, TimeUnit, UInt8Type},
    error::ArrowError,
};
use lakebed_sandbox::{Column, ColumnType, ColumnValues, OwnedColumn, OwnedValues};

/// Arrays converted to the guest's types, with their bitmaps realigned.
#[derive(Debug)]
pub(super) struct GuestColumns {
    arrays: Vec<ArrayRef>,
    /// Values of boolean columns and validity, as bitmaps from bit 0 with zero tails.
    bits: Vec<Option<Vec<u8>>>,
    validity: Vec<Option<Vec<u8>>>,
    /// Text with offsets from 0.
    texts: Vec<Option<(Vec<i32>, Buffer)>>,
}

impl GuestColumns {
    /// Converts columns; a type that no guest type holds is refused.
    pub(super) fn new(columns: &[ArrayRef]) -> Result<Self, ArrowError> {
        let mut guest = Self {
            arrays: Vec::with_capacity(columns.len()),
            bits: Vec::new(),
            validity: Vec::new(),
            texts: Vec::new(),
        };
        for column in columns {
            let array = cast(column, &guest_type(column.data_type())?.1)?;
            let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
            guest.validity.push(nulls.map(|nulls| bitmap(nulls.inner())));
            guest.bits.push(array.as_boolean_opt().map(|values| bitmap(values.values())));
            guest.texts.push(array.as_string_opt::<i32>().map(|text| {
                let first = text.offsets().first().copied().unwrap_or(0);
                let offsets: Vec<i32> =
                    text.offsets().iter().map(|offset| offset - first).collect();
                let start = usize::try_from(first).unwrap_or(0);
                let length = usize::try_from(offsets.last().copied().unwrap_or(0)).unwrap_or(0);
                (offsets, text.values().slice_with_length(start, length))
            }));
            guest.arrays.push(array);
        }
        Ok(guest)
    }

    /// Lends the columns to a call.
    pub(super) fn lend(&self) -> Vec<Column<'_>> {
        (0..self.arrays.len())
            .map(|index| Column {
                values: self.values(index),
                validity: self.validity[index].as_deref(),
            })
            .collect()
    }

    fn values(&self, index: usize) -> ColumnValues<'_> {
        if let Some(bits) = &self.bits[index] {
            return ColumnValues::Bits(bits);
        }
        if let Some((offsets, data)) = &self.texts[index] {
            return ColumnValues::Text { offsets, data };
        }
        let array = &self.arrays[index];
        match array.data_type() {
            DataType::Int32 | DataType::Date32 => {
                ColumnValues::S32(array.as_primitive::<Int32Type>().values())
            }
            DataType::Float64 => ColumnValues::F64(array.as_primitive::<Float64Type>().values()),
            DataType::Float32 => ColumnValues::F32(array.as_primitive::<Float32Type>().values()),
            DataType::UInt8 => ColumnValues::U8(array.as_primitive::<UInt8Type>().values()),
            _ => ColumnValues::S64(array.as_primitive::<Int64Type>().values()),
        }
    }
}

/// The guest's type for an Arrow type, and the Arrow type whose memory that is.
pub(super) fn guest_type(data_type: &DataType) -> Result<(ColumnType, DataType), ArrowError> {
    Ok(match data_type {
        DataType::Boolean => (ColumnType::Bits, DataType::Boolean),
        DataType::UInt8 => (ColumnType::U8, DataType::UInt8),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Date32 => {
            (ColumnType::S32, DataType::Int32)
        }
        DataType::Int64 | DataType::Timestamp(TimeUnit::Microsecond, _) => {
            (ColumnType::S64, DataType::Int64)
        }
        DataType::Float32 => (ColumnType::F32, DataType::Float32),
        DataType::Float64 => (ColumnType::F64, DataType::Float64),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            (ColumnType::Text, DataType::Utf8)
        }
        other => {
            return Err(ArrowError::NotYetImplemented(format!(
                "columns of type {other} cannot be sent to a plugin"
            )));
        }
    })
}

/// Builds an array of a table's type from a guest's answer.
pub(super) fn from_guest(
    column: OwnedColumn,
    data_type: &DataType,
) -> Result<ArrayRef, ArrowError> {
    let OwnedColumn { values, validity } = column;
    let nulls = |rows: usize| {
        validity.map(|bits| NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, rows)))
    };
    let array: ArrayRef = match values {
        OwnedValues::S64(values) => {
            let nulls = nulls(values.len());
            Arc::new(Int64Array::new(values.into(), nulls))
        }
        OwnedValues::S32(values) => {
            let nulls = nulls(values.len());
            Arc::new(Int32Array::new(values.into(), nulls))
        }
        OwnedValues::F64(values) => {
            let nulls = nulls(values.len());
            Arc::new(Float64Array::new(values.into(), nulls))
        }
        OwnedValues::F32(values) => {
            let nulls = nulls(values.len());
            Arc::new(Float32Array::new(values.into(), nulls))
        }
        OwnedValues::U8(values) => {
            let nulls = nulls(values.len());
            Arc::new(UInt8Array::new(values.into(), nulls))
        }
        OwnedValues::Text(text) => {
            let nulls = nulls(text.offsets.len().saturating_sub(1));
            let offsets = OffsetBuffer::new(ScalarBuffer::from(text.offsets));
            Arc::new(StringArray::try_new(offsets, Buffer::from_vec(text.data), nulls)?)
        }
        OwnedValues::Bits(_) | OwnedValues::Binary(_) => {
            return Err(ArrowError::NotYetImplemented(format!(
                "a plugin's bits or bytes cannot become a column of type {data_type}"
            )));
        }
    };
    cast(&array, data_type)
}

/// Copies bits to start at bit 0, with zeros after the last one.
pub(super) fn bitmap(bits: &BooleanBuffer) -> Vec<u8> {
    let mut bytes = bits.sliced().as_slice().to_vec();
    bytes.truncate(bits.len().div_ceil(8));
    let used = bits.len() % 8;
    if used > 0
        && let Some(last) = bytes.last_mut()
    {
        *last &= (1 << used) - 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, StringArray};
    use lakebed_sandbox::{ColumnValues, OwnedColumn, OwnedValues};

    use super::{GuestColumns, bitmap, from_guest};

    #[test]
    fn sliced_bitmaps_are_realigned_with_zero_tails() {
        let bits = BooleanArray::from(vec![true; 20]);
        let sliced = bits.slice(3, 10);
        assert_eq!(bitmap(sliced.values()), [0xff, 0b11]);
    }

    #[test]
    fn sliced_text_starts_at_offset_zero() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["skip", "ab", "c"]));
        let guest = GuestColumns::new(&[text.slice(1, 2)]).unwrap();
        let lent = guest.lend();
        let ColumnValues::Text { offsets, data } = lent[0].values else { panic!("no text") };
        assert_eq!((offsets, data), ([0, 2, 3].as_slice(), b"abc".as_slice()));
    }

    #[test]
    fn integers_cross_and_come_back_with_their_nulls() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let guest = GuestColumns::new(std::slice::from_ref(&numbers)).unwrap();
        let lent = guest.lend();
        assert_eq!(lent[0].validity, Some([0b101].as_slice()));
        let owned =
            OwnedColumn { values: OwnedValues::S64(vec![1, 0, 3]), validity: Some(vec![0b101]) };
        assert_eq!(&from_guest(owned, numbers.data_type()).unwrap(), &numbers);
    }
}
