//! Min and max: the first or last value of a group in one total order, nulls aside.
//!
//! The order is the same whatever order the rows come in: text and binary by bytes, `false` before
//! `true`, `−0.0` before `+0.0`, and every NaN after every number (NaNs among themselves by their
//! bits). A group of nulls stays null.

use std::{cmp::Ordering, fmt, mem, sync::Arc};

use arrow::{
    array::{
        Array, ArrayAccessor, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray,
        BooleanArray, LargeBinaryArray, PrimitiveArray,
    },
    compute::{CastOptions, cast, cast_with_options},
    datatypes::{
        DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
        Decimal256Type, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
        TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};

use super::{FoldFactory, GroupFold, MAX, MIN};
use crate::CompactError;

/// Keeps the smallest or the largest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// Keeps the smallest value.
    Min,
    /// Keeps the largest value.
    Max,
}

impl Extreme {
    /// Returns how a value compares with the one kept if it is to replace it.
    const fn replacing(self) -> Ordering {
        match self {
            Self::Min => Ordering::Less,
            Self::Max => Ordering::Greater,
        }
    }
}

impl FoldFactory for Extreme {
    fn name(&self) -> &str {
        match self {
            Self::Min => MIN,
            Self::Max => MAX,
        }
    }

    fn open(&self, column: &Field) -> Result<Box<dyn GroupFold>, CompactError> {
        let data_type = column.data_type();
        let value_type = match data_type {
            DataType::Dictionary(_, value_type) => value_type,
            other => other,
        };
        let opened = open_primitive(value_type, *self).or_else(|| match value_type {
            DataType::Boolean => {
                Some(Box::new(GroupBooleans { replacing: self.replacing(), kept: Vec::new() })
                    as Box<dyn GroupFold>)
            }
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Some(Box::new(GroupBytes {
                replacing: self.replacing(),
                data_type: value_type.clone(),
                kept: Vec::new(),
                bytes: 0,
            })),
            _ => None,
        });
        let takes = "numbers, text, binary, truth values, dates and times";
        let fold = opened.ok_or_else(|| CompactError::fold_type(self.name(), column, takes))?;
        if value_type == data_type {
            return Ok(fold);
        }
        Ok(Box::new(Unpacked { fold, value_type: value_type.clone(), packed: data_type.clone() }))
    }
}

fn open_primitive(data_type: &DataType, extreme: Extreme) -> Option<Box<dyn GroupFold>> {
    macro_rules! whole {
        ($primitive:ty) => {
            open_ordered::<$primitive, _>(data_type, extreme, |a, b| a.compare(b))
        };
    }
    macro_rules! float {
        ($primitive:ty) => {
            // NaNs first compare as NaN-ness, so that a negative NaN is no small number.
            open_ordered::<$primitive, _>(data_type, extreme, |a, b| {
                a.is_nan().cmp(&b.is_nan()).then(a.compare(b))
            })
        };
    }
    Some(match data_type {
        DataType::Int8 => whole!(Int8Type),
        DataType::Int16 => whole!(Int16Type),
        DataType::Int32 => whole!(Int32Type),
        DataType::Int64 => whole!(Int64Type),
        DataType::UInt8 => whole!(UInt8Type),
        DataType::UInt16 => whole!(UInt16Type),
        DataType::UInt32 => whole!(UInt32Type),
        DataType::UInt64 => whole!(UInt64Type),
        DataType::Float32 => float!(Float32Type),
        DataType::Float64 => float!(Float64Type),
        DataType::Decimal32(..) => whole!(Decimal32Type),
        DataType::Decimal64(..) => whole!(Decimal64Type),
        DataType::Decimal128(..) => whole!(Decimal128Type),
        DataType::Decimal256(..) => whole!(Decimal256Type),
        DataType::Date32 => whole!(Date32Type),
        DataType::Date64 => whole!(Date64Type),
        DataType::Time32(TimeUnit::Second) => whole!(Time32SecondType),
        DataType::Time32(TimeUnit::Millisecond) => whole!(Time32MillisecondType),
        DataType::Time64(TimeUnit::Microsecond) => whole!(Time64MicrosecondType),
        DataType::Time64(TimeUnit::Nanosecond) => whole!(Time64NanosecondType),
        DataType::Timestamp(TimeUnit::Second, _) => whole!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => whole!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => whole!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => whole!(TimestampNanosecondType),
        _ => return None,
    })
}

fn open_ordered<T, F>(data_type: &DataType, extreme: Extreme, order: F) -> Box<dyn GroupFold>
where
    T: ArrowPrimitiveType,
    F: Fn(T::Native, T::Native) -> Ordering + Send + 'static,
{
    Box::new(GroupPrimitives::<T, F> {
        replacing: extreme.replacing(),
        order,
        data_type: data_type.clone(),
        kept: Vec::new(),
    })
}

struct GroupPrimitives<T: ArrowPrimitiveType, F> {
    replacing: Ordering,
    order: F,
    data_type: DataType,
    kept: Vec<Option<T::Native>>,
}

impl<T, F> GroupFold for GroupPrimitives<T, F>
where
    T: ArrowPrimitiveType,
    F: Fn(T::Native, T::Native) -> Ordering + Send,
{
    fn update(
        &mut self,
        values: &ArrayRef,
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), CompactError> {
        self.kept.resize(total_groups, None);
        for_each_value(values.as_primitive::<T>(), groups, |group, value| {
            let kept = &mut self.kept[group as usize];
            if kept.is_none_or(|kept| (self.order)(value, kept) == self.replacing) {
                *kept = Some(value);
            }
        });
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ArrayRef, CompactError> {
        let array = PrimitiveArray::<T>::from_iter(mem::take(&mut self.kept));
        Ok(Arc::new(array.with_data_type(self.data_type.clone())))
    }

    fn size_bytes(&self) -> usize {
        self.kept.capacity() * size_of::<Option<T::Native>>()
    }
}

impl<T: ArrowPrimitiveType, F> fmt::Debug for GroupPrimitives<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupPrimitives")
            .field("data_type", &self.data_type)
            .field("groups", &self.kept.len())
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct GroupBooleans {
    replacing: Ordering,
    kept: Vec<Option<bool>>,
}

impl GroupFold for GroupBooleans {
    fn update(
        &mut self,
        values: &ArrayRef,
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), CompactError> {
        self.kept.resize(total_groups, None);
        for_each_value(values.as_boolean(), groups, |group, value| {
            let kept = &mut self.kept[group as usize];
            if kept.is_none_or(|kept| value.cmp(&kept) == self.replacing) {
                *kept = Some(value);
            }
        });
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ArrayRef, CompactError> {
        Ok(Arc::new(BooleanArray::from(mem::take(&mut self.kept))))
    }

    fn size_bytes(&self) -> usize {
        self.kept.capacity() * size_of::<Option<bool>>()
    }
}

/// Text and binary, compared as bytes: UTF-8 sorts as its bytes do.
#[derive(Debug)]
struct GroupBytes {
    replacing: Ordering,
    data_type: DataType,
    kept: Vec<Option<Box<[u8]>>>,
    bytes: usize,
}

impl GroupBytes {
    fn absorb<'a, A>(&mut self, values: A, groups: &[u32])
    where
        A: ArrayAccessor,
        A::Item: AsRef<[u8]> + 'a,
    {
        for_each_value(values, groups, |group, value| {
            let value = value.as_ref();
            let kept = &mut self.kept[group as usize];
            if kept.as_deref().is_none_or(|kept| value.cmp(kept) == self.replacing) {
                self.bytes += value.len();
                self.bytes -= kept.replace(value.into()).map_or(0, |old| old.len());
            }
        });
    }
}

impl GroupFold for GroupBytes {
    fn update(
        &mut self,
        values: &ArrayRef,
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), CompactError> {
        self.kept.resize(total_groups, None);
        match values.data_type() {
            DataType::Utf8 => self.absorb(values.as_string::<i32>(), groups),
            DataType::LargeUtf8 => self.absorb(values.as_string::<i64>(), groups),
            DataType::Utf8View => self.absorb(values.as_string_view(), groups),
            DataType::Binary => self.absorb(values.as_binary::<i32>(), groups),
            DataType::LargeBinary => self.absorb(values.as_binary::<i64>(), groups),
            DataType::BinaryView => self.absorb(values.as_binary_view(), groups),
            _ => self.absorb(values.as_fixed_size_binary(), groups),
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ArrayRef, CompactError> {
        let kept = LargeBinaryArray::from_iter(mem::take(&mut self.kept));
        self.bytes = 0;
        // Not `safe`, which would turn what does not fit into nulls.
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(&kept, &self.data_type, &strict)
            .map_err(CompactError::arrow("store the smallest or largest values"))
    }

    fn size_bytes(&self) -> usize {
        self.kept.capacity() * size_of::<Option<Box<[u8]>>>() + self.bytes
    }
}

/// Folds the values that a dictionary column stands for.
struct Unpacked {
    fold: Box<dyn GroupFold>,
    value_type: DataType,
    packed: DataType,
}

impl GroupFold for Unpacked {
    fn update(
        &mut self,
        values: &ArrayRef,
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), CompactError> {
        let unpacked =
            cast(values, &self.value_type).map_err(CompactError::arrow("unpack a dictionary"))?;
        self.fold.update(&unpacked, groups, total_groups)
    }

    fn evaluate(&mut self) -> Result<ArrayRef, CompactError> {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(&self.fold.evaluate()?, &self.packed, &strict)
            .map_err(CompactError::arrow("pack a dictionary"))
    }

    fn size_bytes(&self) -> usize {
        self.fold.size_bytes()
    }
}

fn for_each_value<A: ArrayAccessor>(values: A, groups: &[u32], mut take: impl FnMut(u32, A::Item)) {
    match values.nulls() {
        Some(nulls) if nulls.null_count() > 0 => {
            nulls.valid_indices().for_each(|row| take(groups[row], values.value(row)));
        }
        _ => groups.iter().enumerate().for_each(|(row, group)| take(*group, values.value(row))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{
            Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, BooleanArray, Date32Array,
            Decimal128Array, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int32Array,
            StringArray, StringViewArray, TimestampMicrosecondArray,
        },
        compute::concat,
        datatypes::{DataType, Field, Float64Type, Int8Type},
    };

    use super::{Extreme, FoldFactory};

    fn fold(extreme: Extreme, values: &ArrayRef) -> ArrayRef {
        let mut fold = extreme.open(&Field::new("v", values.data_type().clone(), true)).unwrap();
        fold.update(values, &vec![0; values.len()], 1).unwrap();
        assert!(fold.size_bytes() > 0);
        fold.evaluate().unwrap()
    }

    /// Checks values in their order from smallest to largest; nulls may stand anywhere.
    #[track_caller]
    fn check(values: impl Array + 'static, min: usize, max: usize) {
        let values: ArrayRef = Arc::new(values);
        let backwards: Vec<ArrayRef> =
            (0..values.len()).rev().map(|at| values.slice(at, 1)).collect();
        let backwards: Vec<&dyn Array> = backwards.iter().map(AsRef::as_ref).collect();
        let backwards = concat(&backwards).unwrap();
        for order in [&values, &backwards] {
            assert_eq!(&fold(Extreme::Min, order), &values.slice(min, 1));
            assert_eq!(&fold(Extreme::Max, order), &values.slice(max, 1));
        }
    }

    #[test]
    fn text_and_binary_compare_as_bytes() {
        // U+FF5E lies before U+10000 in UTF-8 and after it in UTF-16.
        let texts = vec![None, Some(""), Some("A"), Some("a"), Some("\u{ff5e}"), Some("\u{10000}")];
        check(StringArray::from(texts.clone()), 1, 5);
        check(StringViewArray::from(texts), 1, 5);
        let bytes: Vec<Option<&[u8]>> =
            vec![Some(&[0]), None, Some(&[0, 0]), Some(&[127]), Some(&[200])];
        check(BinaryArray::from(bytes.clone()), 0, 4);
        check(BinaryViewArray::from(bytes), 0, 4);
        let fixed = [[0_u8, 9], [1, 0], [200, 0]].map(Some);
        check(
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed.into_iter(), 2).unwrap(),
            0,
            2,
        );
    }

    #[test]
    fn numbers_dates_times_and_truth_values_have_ends() {
        check(Int32Array::from(vec![Some(i32::MIN), None, Some(-1), Some(i32::MAX)]), 0, 3);
        check(Date32Array::from(vec![-1, 0, 8_766]), 0, 2);
        check(TimestampMicrosecondArray::from(vec![-1, 0, 1]).with_timezone("UTC"), 0, 2);
        check(BooleanArray::from(vec![Some(false), None, Some(true)]), 0, 2);
        let decimal = Decimal128Array::from(vec![-1_001, 0, 998]);
        check(decimal.with_precision_and_scale(10, 2).unwrap(), 0, 2);
    }

    #[test]
    fn dictionary_columns_stay_dictionaries() {
        let values: DictionaryArray<Int8Type> =
            vec![Some("a"), None, Some("b"), Some("c"), Some("b")].into_iter().collect();
        let values: ArrayRef = Arc::new(values);
        let largest = fold(Extreme::Max, &values);
        assert_eq!(largest.data_type(), values.data_type());
        let largest = largest.as_dictionary::<Int8Type>().downcast_dict::<StringArray>().unwrap();
        assert_eq!(largest.into_iter().next(), Some(Some("c")));
    }

    #[test]
    fn floats_have_one_order_whatever_order_they_come_in() {
        let negative_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63);
        let in_order =
            [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f64::INFINITY, negative_nan, f64::NAN];
        for first in in_order {
            for second in in_order {
                let position = |value: f64| {
                    in_order.iter().position(|other| other.to_bits() == value.to_bits()).unwrap()
                };
                let values: ArrayRef = Arc::new(Float64Array::from(vec![first, second]));
                let ends = [Extreme::Min, Extreme::Max].map(|extreme| {
                    position(fold(extreme, &values).as_primitive::<Float64Type>().value(0))
                });
                let (first, second) = (position(first), position(second));
                assert_eq!(ends, [first.min(second), first.max(second)]);
            }
        }
    }

    #[test]
    fn a_group_of_nulls_is_null_and_its_neighbors_are_not() {
        // Text beside nulls in groups that are not in order.
        let values: ArrayRef = Arc::new(StringArray::from(vec![None, Some("b"), None, Some("a")]));
        let mut fold = Extreme::Min.open(&Field::new("v", DataType::Utf8, true)).unwrap();
        fold.update(&values, &[2, 0, 1, 0], 3).unwrap();
        let expected: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, None]));
        assert_eq!(&fold.evaluate().unwrap(), &expected);
    }

    #[test]
    fn types_without_an_order_are_refused() {
        let list = DataType::new_list(DataType::Int8, true);
        let error = Extreme::Min.open(&Field::new("v", list, true)).err().unwrap();
        assert_eq!(
            error.to_string(),
            "min is not defined for column \"v\" of type List(Int8): it takes numbers, text, binary, truth values, dates and times"
        );
    }
}
