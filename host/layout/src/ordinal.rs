//! Values of a column in a form that compares fast, in the order of the column's type.
//!
//! Numbers, dates, timestamps and narrow decimals become unsigned integers, text its bytes, anything
//! else the row format of Arrow. Nulls come first, the two zeros are one, NaN of either sign is one
//! value above all others (as Delta and Spark have it).

use std::{cmp::Ordering, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, BinaryArray, ListArray, StringArray, StructArray},
    buffer::NullBuffer,
    compute::cast,
    datatypes::{
        ArrowPrimitiveType, DataType, Date32Type, Date64Type, Decimal64Type, Decimal128Type,
        FieldRef, Fields, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType,
    },
    error::ArrowError,
    row::{RowConverter, SortField},
};

/// Most digits of a decimal whose unscaled value fits 64 bits.
pub const NARROW_DIGITS: u8 = 18;
const SIGN: u64 = 1 << 63;

/// The values of one column, ready to be compared.
#[derive(Debug, Clone)]
pub enum Ordinals {
    /// Values as integers of the same order.
    Numbers {
        /// One per row, arbitrary where the row is null.
        values: Vec<u64>,
        /// Which rows are null.
        nulls: Option<NullBuffer>,
    },
    /// Values as bytes of the same order.
    Bytes(BinaryArray),
}

impl Ordinals {
    /// Reads a column.
    ///
    /// # Errors
    /// Fails when the column's type has no order.
    pub fn of(column: &ArrayRef) -> Result<Self, ArrowError> {
        Ok(match column.data_type() {
            DataType::Int8 => numbers::<Int8Type>(column, |v| signed(v.into())),
            DataType::Int16 => numbers::<Int16Type>(column, |v| signed(v.into())),
            DataType::Int32 => numbers::<Int32Type>(column, |v| signed(v.into())),
            DataType::Int64 => numbers::<Int64Type>(column, signed),
            DataType::Date32 => numbers::<Date32Type>(column, |v| signed(v.into())),
            DataType::Date64 => numbers::<Date64Type>(column, signed),
            DataType::Timestamp(TimeUnit::Second, _) => {
                numbers::<TimestampSecondType>(column, signed)
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                numbers::<TimestampMillisecondType>(column, signed)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                numbers::<TimestampMicrosecondType>(column, signed)
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                numbers::<TimestampNanosecondType>(column, signed)
            }
            DataType::Float32 => numbers::<Float32Type>(column, |v| float(v.into())),
            DataType::Float64 => numbers::<Float64Type>(column, float),
            DataType::Decimal128(precision, _) if *precision <= NARROW_DIGITS => {
                // The cast is exact for a valid value of so few digits, and saturates for another.
                let narrow =
                    |v: i128| i64::try_from(v).unwrap_or(if v < 0 { i64::MIN } else { i64::MAX });
                numbers::<Decimal128Type>(column, |v| signed(narrow(v)))
            }
            DataType::Decimal64(..) => numbers::<Decimal64Type>(column, signed),
            DataType::Utf8 => Self::Bytes(bytes(column.as_string::<i32>())),
            DataType::LargeUtf8 | DataType::Utf8View => {
                let text = cast(column, &DataType::Utf8)?;
                Self::Bytes(bytes(text.as_string::<i32>()))
            }
            _ => Self::Bytes(rows(column)?),
        })
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers { values, .. } => values.len(),
            Self::Bytes(values) => values.len(),
        }
    }

    /// Tells whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells whether a row is null.
    #[must_use]
    pub fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Numbers { nulls, .. } => nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)),
            Self::Bytes(values) => values.is_null(row),
        }
    }

    /// Compares a row with one of another column of the same type.
    #[must_use]
    pub fn compare(&self, row: usize, other: &Self, other_row: usize) -> Ordering {
        match (self.is_null(row), other.is_null(other_row)) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => match (self, other) {
                (Self::Numbers { values, .. }, Self::Numbers { values: others, .. }) => {
                    values[row].cmp(&others[other_row])
                }
                (Self::Bytes(values), Self::Bytes(others)) => {
                    values.value(row).cmp(others.value(other_row))
                }
                (Self::Numbers { .. }, Self::Bytes(_)) => Ordering::Less,
                (Self::Bytes(_), Self::Numbers { .. }) => Ordering::Greater,
            },
        }
    }

    /// Returns an integer per row that never contradicts the order: rows of a smaller integer come
    /// first, rows of the same one are to be compared. Nulls have 0. Of text it is the eight bytes
    /// after the first `skip`, which all values must have in common.
    #[must_use]
    pub fn prefixes(&self, skip: usize) -> Vec<u64> {
        let value = |row: usize| match self {
            Self::Numbers { values, .. } => values[row],
            Self::Bytes(values) => prefix(values.value(row), skip),
        };
        (0..self.len()).map(|row| if self.is_null(row) { 0 } else { value(row) }).collect()
    }

    /// Tells whether equal [`Ordinals::prefixes`] mean equal values (but for null and the smallest).
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        matches!(self, Self::Numbers { .. })
    }
}

/// How many leading bytes all values of a column have in common.
#[derive(Debug, Clone, Default)]
pub struct CommonPrefix(Option<Vec<u8>>);

impl CommonPrefix {
    /// Takes in more values; numbers have nothing in common.
    pub fn add(&mut self, values: &Ordinals) {
        let Ordinals::Bytes(values) = values else {
            self.0 = Some(Vec::new());
            return;
        };
        for value in values.iter().flatten() {
            let common = self.0.get_or_insert_with(|| value.to_vec());
            let same = common.iter().zip(value).take_while(|(a, b)| a == b).count();
            common.truncate(same);
            if common.is_empty() {
                return;
            }
        }
    }

    /// Tells whether further values cannot change the length.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.0.as_ref().is_some_and(Vec::is_empty)
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.0.as_ref().map_or(0, Vec::len)
    }
}

/// Reads up to eight bytes of a value as a number of the same order.
pub(crate) fn prefix(value: &[u8], skip: usize) -> u64 {
    let rest = value.get(skip..).unwrap_or_default();
    let mut eight = [0; 8];
    let length = rest.len().min(8);
    eight[..length].copy_from_slice(&rest[..length]);
    u64::from_be_bytes(eight)
}

fn numbers<T: ArrowPrimitiveType>(column: &ArrayRef, order: impl Fn(T::Native) -> u64) -> Ordinals {
    let array = column.as_primitive::<T>();
    let values = array.values().iter().map(|value| order(*value)).collect();
    Ordinals::Numbers { values, nulls: array.nulls().cloned() }
}

const fn signed(value: i64) -> u64 {
    value.cast_unsigned() ^ SIGN
}

/// IEEE's total order over the bits, with one zero and one NaN.
fn float(value: f64) -> u64 {
    if value.is_nan() {
        return u64::MAX;
    }
    let bits = (value + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn bytes(text: &StringArray) -> BinaryArray {
    BinaryArray::from(text.clone())
}

/// Makes lists of entries of maps, wherever they are: the row format knows no maps.
fn without_maps(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let retyped = |field: &FieldRef, values: &ArrayRef| {
        Arc::new(field.as_ref().clone().with_data_type(values.data_type().clone()))
    };
    Ok(match column.data_type() {
        DataType::Struct(fields) => {
            let nested = column.as_struct();
            let values: Vec<ArrayRef> =
                nested.columns().iter().map(without_maps).collect::<Result<_, _>>()?;
            let fields: Fields =
                fields.iter().zip(&values).map(|(field, values)| retyped(field, values)).collect();
            let nulls = nested.nulls().cloned();
            Arc::new(StructArray::try_new_with_length(fields, values, nulls, nested.len())?)
        }
        DataType::List(item) => {
            let list = column.as_list::<i32>();
            let values = without_maps(list.values())?;
            let item = retyped(item, &values);
            Arc::new(ListArray::try_new(
                item,
                list.offsets().clone(),
                values,
                list.nulls().cloned(),
            )?)
        }
        DataType::Map(entries, _) => {
            let map = column.as_map();
            let pairs: ArrayRef = Arc::new(map.entries().clone());
            let pairs = without_maps(&pairs)?;
            let item = retyped(entries, &pairs);
            Arc::new(ListArray::try_new(item, map.offsets().clone(), pairs, map.nulls().cloned())?)
        }
        _ => ArrayRef::clone(column),
    })
}

fn rows(column: &ArrayRef) -> Result<BinaryArray, ArrowError> {
    let column = &without_maps(column)?;
    let converter = RowConverter::new(vec![SortField::new(column.data_type().clone())])?;
    let rows = converter.convert_columns(std::slice::from_ref(column))?;
    let values: BinaryArray = rows
        .iter()
        .enumerate()
        .map(|(position, row)| column.is_valid(position).then(|| row.data().to_vec()))
        .collect();
    Ok(values)
}

#[cfg(test)]
mod tests {
    use std::{cmp::Ordering, sync::Arc};

    use arrow::array::{
        ArrayRef, Date32Array, Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array,
        StringArray, TimestampMicrosecondArray,
    };

    use super::{CommonPrefix, Ordinals};

    /// Checks that a column's rows are strictly ascending, and that prefixes never contradict it.
    #[track_caller]
    fn check_ascending(column: ArrayRef) {
        let ordinals = Ordinals::of(&column).unwrap();
        let mut common = CommonPrefix::default();
        common.add(&ordinals);
        let prefixes = ordinals.prefixes(common.length());
        for row in 1..ordinals.len() {
            assert_eq!(ordinals.compare(row - 1, &ordinals, row), Ordering::Less, "row {row}");
            assert_eq!(ordinals.compare(row, &ordinals, row - 1), Ordering::Greater);
            assert!(prefixes[row - 1] <= prefixes[row], "prefix of row {row}");
        }
    }

    #[test]
    fn values_of_every_kind_keep_their_order() {
        check_ascending(Arc::new(Int64Array::from(vec![
            None,
            Some(i64::MIN),
            Some(-1),
            Some(0),
            Some(i64::MAX),
        ])));
        check_ascending(Arc::new(Int32Array::from(vec![i32::MIN, -5, 3, i32::MAX])));
        check_ascending(Arc::new(Date32Array::from(vec![-400_000, 0, 20_000])));
        check_ascending(Arc::new(
            TimestampMicrosecondArray::from(vec![-1, 0, 1]).with_timezone("UTC"),
        ));
        check_ascending(Arc::new(Float64Array::from(vec![
            f64::NEG_INFINITY,
            -1.5,
            -f64::MIN_POSITIVE,
            0.0,
            1e-300,
            2.0,
            f64::INFINITY,
            f64::NAN,
        ])));
        check_ascending(Arc::new(Float32Array::from(vec![-1.0, 0.5, f32::NAN])));
        let narrow = Decimal128Array::from(vec![-999, -1, 0, 5]);
        check_ascending(Arc::new(narrow.with_precision_and_scale(18, 2).unwrap()));
        let wide = Decimal128Array::from(vec![-(10_i128.pow(30)), -1, 0, 10_i128.pow(30)]);
        check_ascending(Arc::new(wide.with_precision_and_scale(38, 2).unwrap()));
        check_ascending(Arc::new(StringArray::from(vec![
            None,
            Some("https://a"),
            Some("https://a.example/1"),
            Some("https://a.example/2"),
            Some("https://ä"),
        ])));
    }

    #[test]
    fn zeros_are_one_value_and_so_are_nans() {
        let column: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN]));
        let ordinals = Ordinals::of(&column).unwrap();
        assert_eq!(ordinals.compare(0, &ordinals, 1), Ordering::Equal);
        assert_eq!(ordinals.compare(2, &ordinals, 3), Ordering::Equal);
    }

    #[test]
    fn common_prefix_is_left_out() {
        let column: ArrayRef = Arc::new(StringArray::from(vec!["item-0001", "item-0002"]));
        let ordinals = Ordinals::of(&column).unwrap();
        let mut common = CommonPrefix::default();
        common.add(&ordinals);
        assert_eq!((common.length(), common.is_settled()), (8, false));
        let prefixes = ordinals.prefixes(8);
        assert!(prefixes[0] < prefixes[1]);
    }
}
