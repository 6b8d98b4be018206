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
    datatypes::{DataType, TimeUnit},
};
use parquet::{basic::Type as PhysicalType, schema::types::ColumnDescriptor};

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
}

/// Where a row lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the array.
    pub(crate) batch: u32,
    /// Row of the array.
    pub(crate) row: u32,
}

/// Values of one kind.
#[derive(Debug)]
pub(super) enum Values<'v> {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Bytes(Vec<&'v [u8]>),
}

/// One column of a row group.
#[derive(Debug)]
pub(crate) struct FlatColumn<'v> {
    /// The values of the rows that have one.
    pub(super) values: Values<'v>,
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

impl<'v> FlatColumn<'v> {
    /// Gathers the values of some rows in order; `None` where the column cannot be encoded here.
    pub(crate) fn gather(
        sources: &[&'v dyn Array],
        places: &[Place],
        descriptor: &ColumnDescriptor,
    ) -> Option<Self> {
        let (data_type, physical) = (sources.first()?.data_type(), descriptor.physical_type());
        if !is_flat(data_type, physical) || descriptor.max_rep_level() > 0 {
            return None;
        }
        let valid = validity(sources, places);
        if descriptor.max_def_level() != 1 && (valid.is_some() || descriptor.max_def_level() > 1) {
            return None;
        }
        let rows = Rows { sources, places, valid: valid.as_deref() };
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
            DataType::Utf8 => Values::Bytes(rows.bytes::<Utf8Type>()),
            DataType::Binary => Values::Bytes(rows.bytes::<BinaryType>()),
            _ => return None,
        };
        Some(Self { values, valid, rows: places.len() })
    }

    /// Returns how many rows have no value.
    pub(crate) fn null_count(&self) -> usize {
        let values = match &self.values {
            Values::Int32(values) => values.len(),
            Values::Int64(values) => values.len(),
            Values::Bytes(values) => values.len(),
        };
        self.rows - values
    }

    /// Finds rows with the smallest and the largest value; none where no row has a value.
    pub(crate) fn extremes(&self) -> Option<[usize; 2]> {
        let values = match &self.values {
            Values::Int32(values) => extremes(values),
            Values::Int64(values) => extremes(values),
            Values::Bytes(values) => extremes(values),
        };
        let Some(valid) = &self.valid else { return values };
        let row_of = |value: usize| {
            valid.iter().enumerate().filter(|(_, valid)| **valid).nth(value).map(|(row, _)| row)
        };
        let [min, max] = values?;
        Some([row_of(min)?, row_of(max)?])
    }
}

fn extremes<T: Value>(values: &[T]) -> Option<[usize; 2]> {
    let (min, max) = (values.iter().min()?, values.iter().max()?);
    let position = |wanted: &T| values.iter().position(|value| value == wanted);
    Some([position(min)?, position(max)?])
}

/// The rows of one column that are gathered.
struct Rows<'r, 'v> {
    sources: &'r [&'v dyn Array],
    places: &'r [Place],
    valid: Option<&'r [bool]>,
}

impl<'v> Rows<'_, 'v> {
    fn numbers<S: ArrowPrimitiveType, V>(&self, stored: impl Fn(S::Native) -> V) -> Vec<V> {
        let sources: Vec<&[S::Native]> = self
            .sources
            .iter()
            .map(|source| {
                let array: &PrimitiveArray<S> = source.as_primitive();
                array.values().as_ref()
            })
            .collect();
        self.each(|place| stored(sources[place.batch as usize][place.row as usize]))
    }

    fn bytes<S: ByteArrayType<Offset = i32>>(&self) -> Vec<&'v [u8]> {
        let sources: Vec<(&'v [i32], &'v [u8])> = self
            .sources
            .iter()
            .map(|source| {
                let array: &'v GenericByteArray<S> = source.as_bytes();
                (array.value_offsets(), array.value_data())
            })
            .collect();
        let offset = |offset: i32| usize::try_from(offset).unwrap_or(0);
        self.each(|place| {
            let (offsets, data) = sources[place.batch as usize];
            let row = place.row as usize;
            &data[offset(offsets[row])..offset(offsets[row + 1])]
        })
    }

    /// Reads the rows that have a value.
    fn each<V>(&self, read: impl Fn(Place) -> V) -> Vec<V> {
        match self.valid {
            None => self.places.iter().map(|place| read(*place)).collect(),
            Some(valid) => {
                let rows = self.places.iter().zip(valid).filter(|(_, valid)| **valid);
                rows.map(|(place, _)| read(*place)).collect()
            }
        }
    }
}

fn validity(sources: &[&dyn Array], places: &[Place]) -> Option<Vec<bool>> {
    let nulls: Vec<_> = sources.iter().map(|source| source.nulls()).collect();
    if sources.iter().all(|source| source.null_count() == 0) {
        return None;
    }
    let is_valid = |place: &Place| {
        nulls[place.batch as usize].is_none_or(|nulls| nulls.is_valid(place.row as usize))
    };
    let valid: Vec<bool> = places.iter().map(is_valid).collect();
    (!valid.iter().all(|valid| *valid)).then_some(valid)
}
