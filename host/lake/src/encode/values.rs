//! The values of one column, flat: without nulls, in the type that Parquet stores.

use std::hash::Hash;

use arrow::{
    array::{
        Array, ArrowPrimitiveType, AsArray, GenericByteArray, PrimitiveArray,
        types::{
            BinaryType, ByteArrayType, Date32Type, Decimal64Type, Int8Type, Int16Type, Int32Type,
            Int64Type, TimestampMicrosecondType, Utf8Type,
        },
    },
    datatypes::{ArrowNativeType, DataType, TimeUnit},
};
use parquet::{basic::Type as PhysicalType, schema::types::ColumnDescriptor};

use super::placed::Placed;

/// A value as Parquet's PLAIN encoding stores it.
pub(super) trait Value: Copy + Ord + Hash {
    /// Returns the value as an integer, where it is one.
    fn integer(&self) -> Option<i64>;
    /// Returns how many bytes the encoding takes.
    fn plain_bytes(&self) -> usize;
    /// Appends the encoding.
    fn put_plain(&self, out: &mut Vec<u8>);
    /// Appends the value's bytes, as statistics have them.
    fn put_bytes(&self, out: &mut Vec<u8>);
    /// Finds the smallest and the largest value.
    fn min_and_max(values: &[Self]) -> Option<(Self, Self)> {
        Some((*values.iter().min()?, *values.iter().max()?))
    }
}

macro_rules! integer_value {
    ($type:ty) => {
        impl Value for $type {
            fn integer(&self) -> Option<i64> {
                Some(i64::from(*self))
            }

            fn plain_bytes(&self) -> usize {
                size_of::<$type>()
            }

            fn put_plain(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn put_bytes(&self, out: &mut Vec<u8>) {
                self.put_plain(out);
            }
        }
    };
}
integer_value!(i32);
integer_value!(i64);

impl Value for &[u8] {
    fn integer(&self) -> Option<i64> {
        None
    }

    fn plain_bytes(&self) -> usize {
        size_of::<u32>() + self.len()
    }

    fn put_plain(&self, out: &mut Vec<u8>) {
        // Arrow's offsets of text have 31 bits.
        let length = u32::try_from(self.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(self);
    }

    fn put_bytes(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    /// Nearly all values are told apart by their first eight bytes.
    fn min_and_max(values: &[Self]) -> Option<(Self, Self)> {
        let first = *values.first()?;
        let mut min = (prefix(first), first);
        let mut max = min;
        for value in values {
            let start = prefix(value);
            if start < min.0 || (start == min.0 && *value < min.1) {
                min = (start, value);
            }
            if start > max.0 || (start == max.0 && *value > max.1) {
                max = (start, value);
            }
        }
        Some((min.1, max.1))
    }
}

/// Returns the first eight bytes as a number that sorts as they do; what is shorter ends with zeros.
fn prefix(value: &[u8]) -> u64 {
    match value.first_chunk() {
        Some(start) => u64::from_be_bytes(*start),
        None => {
            let mut start = [0; 8];
            start[..value.len()].copy_from_slice(value);
            u64::from_be_bytes(start)
        }
    }
}

/// Values of one kind.
#[derive(Debug)]
pub(super) enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    /// Copied into one place: they are looked at several times, and each look at where they came from
    /// would miss the cache.
    Bytes {
        data: Vec<u8>,
        ends: Vec<usize>,
    },
}

/// One column of a row group.
#[derive(Debug)]
pub(crate) struct FlatColumn {
    /// The values of the rows that have one.
    pub(super) values: Values,
    /// Which rows have a value; none where all have.
    pub(super) valid: Option<Vec<bool>>,
    /// All rows.
    pub(super) rows: usize,
}

/// Tells whether columns of a type are encoded here.
fn is_flat(held: &DataType, physical: PhysicalType) -> bool {
    match held {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Date32 => {
            physical == PhysicalType::INT32
        }
        DataType::Int64 | DataType::Timestamp(TimeUnit::Microsecond, _) => {
            physical == PhysicalType::INT64
        }
        DataType::Decimal64(..) => matches!(physical, PhysicalType::INT32 | PhysicalType::INT64),
        DataType::Utf8 | DataType::Binary => physical == PhysicalType::BYTE_ARRAY,
        _ => false,
    }
}

impl FlatColumn {
    /// Gathers the values of some rows in order; `None` where the column cannot be encoded here.
    pub(crate) fn gather(
        sources: &[&dyn Array],
        placed: &Placed,
        descriptor: &ColumnDescriptor,
    ) -> Option<Self> {
        let (data_type, physical) = (sources.first()?.data_type(), descriptor.physical_type());
        if !is_flat(data_type, physical) || descriptor.max_rep_level() > 0 {
            return None;
        }
        let valid = validity(sources, placed);
        if descriptor.max_def_level() != 1 && (valid.is_some() || descriptor.max_def_level() > 1) {
            return None;
        }
        let rows = Rows { sources, placed, valid: valid.as_deref() };
        let values = match data_type {
            DataType::Int8 => Values::Int32(rows.numbers::<Int8Type, _>(i32::from)),
            DataType::Int16 => Values::Int32(rows.numbers::<Int16Type, _>(i32::from)),
            DataType::Int32 => Values::Int32(rows.numbers::<Int32Type, _>(|value| value)),
            DataType::Date32 => Values::Int32(rows.numbers::<Date32Type, _>(|value| value)),
            DataType::Int64 => Values::Int64(rows.numbers::<Int64Type, _>(|value| value)),
            DataType::Timestamp(..) => {
                Values::Int64(rows.numbers::<TimestampMicrosecondType, _>(|value| value))
            }
            DataType::Decimal64(..) if physical == PhysicalType::INT32 => {
                let wide = rows.numbers::<Decimal64Type, _>(|value| value);
                Values::Int32(wide.into_iter().map(i32::try_from).collect::<Result<_, _>>().ok()?)
            }
            DataType::Decimal64(..) => {
                Values::Int64(rows.numbers::<Decimal64Type, _>(|value| value))
            }
            DataType::Utf8 => rows.bytes::<Utf8Type>(),
            DataType::Binary => rows.bytes::<BinaryType>(),
            _ => return None,
        };
        Some(Self { values, valid, rows: placed.len() })
    }

    /// Returns how many rows have no value.
    pub(crate) fn null_count(&self) -> usize {
        let values = match &self.values {
            Values::Int32(values) => values.len(),
            Values::Int64(values) => values.len(),
            Values::Bytes { ends, .. } => ends.len(),
        };
        self.rows - values
    }

    /// Returns the rows of two values.
    pub(super) fn rows_of(&self, values: [usize; 2]) -> Option<[usize; 2]> {
        let Some(valid) = &self.valid else { return Some(values) };
        let row_of = |value: usize| {
            valid.iter().enumerate().filter(|(_, valid)| **valid).nth(value).map(|(row, _)| row)
        };
        Some([row_of(values[0])?, row_of(values[1])?])
    }
}

/// The rows of one column that are gathered.
struct Rows<'r> {
    sources: &'r [&'r dyn Array],
    placed: &'r Placed,
    valid: Option<&'r [bool]>,
}

impl Rows<'_> {
    fn numbers<S: ArrowPrimitiveType, V: Copy + Default>(
        &self,
        stored: impl Fn(S::Native) -> V,
    ) -> Vec<V> {
        let mut values = vec![V::default(); self.placed.len()];
        self.placed.visit_runs(|batch, rows, positions| {
            let array: &PrimitiveArray<S> = self.sources[batch].as_primitive();
            for (value, position) in array.values()[rows].iter().zip(positions) {
                values[position.as_usize()] = stored(*value);
            }
        });
        match self.valid {
            None => values,
            Some(valid) => {
                let with_value = values.into_iter().zip(valid).filter(|(_, valid)| **valid);
                with_value.map(|(value, _)| value).collect()
            }
        }
    }

    /// Lengths first, so that each run's bytes can be copied to where they belong.
    fn bytes<S: ByteArrayType<Offset = i32>>(&self) -> Values {
        let is_valid = |position: usize| self.valid.is_none_or(|valid| valid[position]);
        let mut lengths = vec![0_u32; self.placed.len()];
        self.placed.visit_runs(|batch, rows, positions| {
            let array: &GenericByteArray<S> = self.sources[batch].as_bytes();
            let offsets = &array.value_offsets()[rows.start..=rows.end];
            for (offsets, position) in offsets.windows(2).zip(positions) {
                let position = position.as_usize();
                if is_valid(position) {
                    lengths[position] = u32::try_from(offsets[1] - offsets[0]).unwrap_or(0);
                }
            }
        });
        let mut ends = Vec::with_capacity(lengths.len());
        let mut end = 0;
        for length in &lengths {
            end += length.as_usize();
            ends.push(end);
        }
        let mut data = vec![0; end];
        self.placed.visit_runs(|batch, rows, positions| {
            let array: &GenericByteArray<S> = self.sources[batch].as_bytes();
            let offsets = &array.value_offsets()[rows.start..=rows.end];
            let bytes: &[u8] = array.value_data();
            for (from, position) in offsets.iter().zip(positions) {
                let position = position.as_usize();
                let (from, length) = (from.as_usize(), lengths[position].as_usize());
                let end = ends[position];
                data[end - length..end].copy_from_slice(&bytes[from..from + length]);
            }
        });
        if let Some(valid) = self.valid {
            let mut valid = valid.iter();
            ends.retain(|_| valid.next().is_some_and(|valid| *valid));
        }
        Values::Bytes { data, ends }
    }
}

fn validity(sources: &[&dyn Array], placed: &Placed) -> Option<Vec<bool>> {
    if sources.iter().all(|source| source.null_count() == 0) {
        return None;
    }
    let mut valid = vec![true; placed.len()];
    placed.visit_runs(|batch, rows, positions| {
        let Some(nulls) = sources[batch].nulls() else { return };
        for (row, position) in rows.zip(positions) {
            valid[position.as_usize()] = nulls.is_valid(row);
        }
    });
    (!valid.iter().all(|valid| *valid)).then_some(valid)
}
