//! Sum: adds the values of a group, nulls aside; a group of nulls stays null.
//!
//! The table's column keeps its type, so a sum must fit it, and there is no wrapping. Integers and
//! decimals are added in a wider type and checked once at the end: the order of the rows can then
//! neither cause an overflow nor hide one (`MAX + 1 − 1` is `MAX` in every order). What does not
//! fit in one job is refused even if rows that another job holds would bring it back.
//!
//! Floats are added in 64 bits; their last digits depend on the order.

use std::{fmt, mem, sync::Arc};

use arrow::{
    array::{
        Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanBufferBuilder,
        PrimitiveArray,
    },
    buffer::NullBuffer,
    datatypes::{
        ArrowNativeType, DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
        Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
        UInt16Type, UInt32Type, UInt64Type, i256,
    },
};

use super::{FoldFactory, GroupFold, SUM};
use crate::CompactError;

/// Adds values.
#[derive(Debug, Clone, Copy)]
pub struct Sum;

impl FoldFactory for Sum {
    fn name(&self) -> &str {
        SUM
    }

    fn open(&self, column: &Field) -> Result<Box<dyn GroupFold>, CompactError> {
        Ok(match column.data_type() {
            DataType::Int8 => open::<Int8Type>(column, None),
            DataType::Int16 => open::<Int16Type>(column, None),
            DataType::Int32 => open::<Int32Type>(column, None),
            DataType::Int64 => open::<Int64Type>(column, None),
            DataType::UInt8 => open::<UInt8Type>(column, None),
            DataType::UInt16 => open::<UInt16Type>(column, None),
            DataType::UInt32 => open::<UInt32Type>(column, None),
            DataType::UInt64 => open::<UInt64Type>(column, None),
            DataType::Float32 => open::<Float32Type>(column, None),
            DataType::Float64 => open::<Float64Type>(column, None),
            DataType::Decimal32(precision, _) => open::<Decimal32Type>(column, Some(*precision)),
            DataType::Decimal64(precision, _) => open::<Decimal64Type>(column, Some(*precision)),
            DataType::Decimal128(precision, _) => open::<Decimal128Type>(column, Some(*precision)),
            DataType::Decimal256(precision, _) => open::<Decimal256Type>(column, Some(*precision)),
            _ => {
                return Err(CompactError::fold_type(SUM, column, "integers, decimals and floats"));
            }
        })
    }
}

fn open<T>(column: &Field, precision: Option<u8>) -> Box<dyn GroupFold>
where
    T: ArrowPrimitiveType,
    T::Native: Summand,
{
    let ten = T::Native::usize_as(10);
    // The largest precision of each decimal type leaves room for 10^precision itself.
    let limit =
        precision.map(|digits| ten.pow_wrapping(u32::from(digits)).sub_wrapping(T::Native::ONE));
    Box::new(GroupSums::<T> {
        column: column.name().clone(),
        data_type: column.data_type().clone(),
        limit,
        totals: Vec::new(),
        has_value: BooleanBufferBuilder::new(0),
    })
}

struct GroupSums<T: ArrowPrimitiveType<Native: Summand>> {
    column: String,
    data_type: DataType,
    /// The largest magnitude that the column's precision allows.
    limit: Option<T::Native>,
    totals: Vec<<T::Native as Summand>::Total>,
    has_value: BooleanBufferBuilder,
}

impl<T> GroupFold for GroupSums<T>
where
    T: ArrowPrimitiveType<Native: Summand>,
{
    fn update(
        &mut self,
        values: &ArrayRef,
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), CompactError> {
        self.totals.resize(total_groups, Default::default());
        self.has_value.resize(total_groups);
        let values = values.as_primitive::<T>();
        let mut add = |group: u32, value: T::Native| {
            value.add_to(&mut self.totals[group as usize]);
            self.has_value.set_bit(group as usize, true);
        };
        match values.nulls() {
            Some(nulls) if nulls.null_count() > 0 => {
                let natives = values.values();
                nulls.valid_indices().for_each(|row| add(groups[row], natives[row]));
            }
            _ => groups.iter().zip(values.values()).for_each(|(group, value)| add(*group, *value)),
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ArrayRef, CompactError> {
        let totals = mem::take(&mut self.totals);
        let mut results: Vec<T::Native> = Vec::with_capacity(totals.len());
        let mut overflowed_groups = 0;
        let mut first_overflow = None;
        for (group, total) in totals.iter().enumerate() {
            let fitting = T::Native::narrow(*total).filter(|result| self.is_within_limit(*result));
            if fitting.is_none() {
                overflowed_groups += 1;
                first_overflow.get_or_insert((group, *total));
            }
            results.push(fitting.unwrap_or_default());
        }
        if let Some((group, total)) = first_overflow {
            return Err(CompactError::Overflow {
                fold: SUM,
                column: self.column.clone(),
                data_type: self.data_type.clone(),
                result: T::Native::describe(total),
                group: u32::try_from(group).expect("group numbers are u32"),
                overflowed_groups,
                total_groups: totals.len(),
            });
        }
        let nulls = NullBuffer::new(self.has_value.finish());
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        let array = PrimitiveArray::<T>::new(results.into(), nulls);
        Ok(Arc::new(array.with_data_type(self.data_type.clone())))
    }

    fn size_bytes(&self) -> usize {
        self.totals.capacity() * size_of::<<T::Native as Summand>::Total>()
            + self.has_value.capacity() / 8
    }
}

impl<T> GroupSums<T>
where
    T: ArrowPrimitiveType<Native: Summand>,
{
    fn is_within_limit(&self, result: T::Native) -> bool {
        self.limit.is_none_or(|limit| result.is_le(limit) && result.is_ge(limit.neg_wrapping()))
    }
}

/// A value that is added in a type wide enough for any number of rows.
pub(super) trait Summand: ArrowNativeTypeOp {
    /// The wider type.
    type Total: Copy + Default + Send;

    /// Adds the value.
    fn add_to(self, total: &mut Self::Total);

    /// Returns the total if it fits the value's own type.
    fn narrow(total: Self::Total) -> Option<Self>;

    /// Renders the total for an error message.
    fn describe(total: Self::Total) -> String;
}

macro_rules! summand_in_128_bits {
    ($($native:ty),+) => {$(
        impl Summand for $native {
            type Total = i128;

            fn add_to(self, total: &mut i128) {
                *total += i128::from(self);
            }

            fn narrow(total: i128) -> Option<Self> {
                Self::try_from(total).ok()
            }

            fn describe(total: i128) -> String {
                total.to_string()
            }
        }
    )+};
}

summand_in_128_bits!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Summand for i128 {
    type Total = i256;

    fn add_to(self, total: &mut i256) {
        *total = total.wrapping_add(i256::from_i128(self));
    }

    fn narrow(total: i256) -> Option<Self> {
        total.to_i128()
    }

    fn describe(total: i256) -> String {
        format!("{total} (unscaled)")
    }
}

/// A sum of 256-bit values: the sum modulo 2^256, and how often it left the range.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Carried {
    low: i256,
    carry: i64,
}

impl Summand for i256 {
    type Total = Carried;

    fn add_to(self, total: &mut Carried) {
        let sum = total.low.wrapping_add(self);
        // Two numbers of one sign whose sum has the other have left the range on their side.
        if total.low.is_negative() == self.is_negative() && sum.is_negative() != self.is_negative()
        {
            total.carry += if self.is_negative() { -1 } else { 1 };
        }
        total.low = sum;
    }

    fn narrow(total: Carried) -> Option<Self> {
        (total.carry == 0).then_some(total.low)
    }

    fn describe(total: Carried) -> String {
        match total.carry {
            0 => format!("{} (unscaled)", total.low),
            carry => format!("{} + {carry}·2^256 (unscaled)", total.low),
        }
    }
}

impl Summand for f64 {
    type Total = Self;

    fn add_to(self, total: &mut Self) {
        *total += self;
    }

    fn narrow(total: Self) -> Option<Self> {
        Some(total)
    }

    fn describe(total: Self) -> String {
        total.to_string()
    }
}

impl Summand for f32 {
    type Total = f64;

    fn add_to(self, total: &mut f64) {
        *total += f64::from(self);
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounds, and overflows to infinity, as f32 addition does"
    )]
    fn narrow(total: f64) -> Option<Self> {
        Some(total as Self)
    }

    fn describe(total: f64) -> String {
        total.to_string()
    }
}

impl<T: ArrowPrimitiveType<Native: Summand>> fmt::Debug for GroupSums<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupSums")
            .field("column", &self.column)
            .field("groups", &self.totals.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{
            Array, ArrayRef, AsArray, Decimal32Array, Decimal128Array, Decimal256Array,
            Float32Array, Int8Array, Int32Array, Int64Array, UInt64Array,
        },
        datatypes::{Decimal256Type, Field, Float32Type, i256},
    };

    use super::{FoldFactory, Sum};
    use crate::CompactError;

    /// Sums all values into one group.
    fn sum(values: ArrayRef) -> Result<ArrayRef, CompactError> {
        let mut fold = Sum.open(&Field::new("q", values.data_type().clone(), true)).unwrap();
        fold.update(&values, &vec![0; values.len()], 1).unwrap();
        fold.evaluate()
    }

    #[track_caller]
    fn check(values: impl Array + 'static, expected: impl Array) {
        let total = sum(Arc::new(values)).unwrap();
        assert_eq!(total.to_data(), expected.to_data());
    }

    #[track_caller]
    fn check_overflow(values: impl Array + 'static, expected: &str) {
        assert_eq!(sum(Arc::new(values)).unwrap_err().to_string(), expected);
    }

    #[test]
    fn totals_keep_the_type_of_their_column() {
        check(Int32Array::from(vec![200, 300]), Int32Array::from(vec![500]));
        check(UInt64Array::from(vec![u64::MAX - 1, 1]), UInt64Array::from(vec![u64::MAX]));
        let decimal = |values: Vec<i128>| {
            Decimal128Array::from(values).with_precision_and_scale(12, 2).unwrap()
        };
        check(decimal(vec![1_999, -1_001]), decimal(vec![998]));
    }

    #[test]
    fn nulls_are_passed_over_and_a_group_of_nulls_is_null() {
        check(Int64Array::from(vec![Some(1), None, Some(2)]), Int64Array::from(vec![3]));
        check(Int64Array::from(vec![None, None]), Int64Array::from(vec![None]));
        // Sliced arrays have their nulls at an offset.
        let sliced = Int64Array::from(vec![Some(9), None, Some(4)]).slice(1, 2);
        check(sliced, Int64Array::from(vec![4]));
    }

    #[test]
    fn totals_that_fit_do_not_overflow_on_the_way() {
        for values in [[i64::MAX, 1, -1], [1, i64::MAX, -1], [-1, 1, i64::MAX], [1, -1, i64::MAX]] {
            check(Int64Array::from(values.to_vec()), Int64Array::from(vec![i64::MAX]));
        }
        let largest = i256::from_string(&"9".repeat(76)).unwrap();
        let decimal = |values: Vec<i256>| {
            Decimal256Array::from(values).with_precision_and_scale(76, 0).unwrap()
        };
        // Seven times 10^76 leaves the 256 bits, on either side.
        let minus = largest.wrapping_neg();
        for (plus, minus) in [(largest, minus), (minus, largest)] {
            let values = [vec![plus; 7], vec![minus; 6]].concat();
            let total = sum(Arc::new(decimal(values))).unwrap();
            assert_eq!(total.as_primitive::<Decimal256Type>().value(0), plus);
        }
    }

    #[test]
    fn totals_that_do_not_fit_are_refused_and_never_wrapped() {
        check_overflow(
            Int64Array::from(vec![i64::MAX, 1]),
            "sum of column \"q\" does not fit Int64 in 1 of 1 groups: the first result is 9223372036854775808",
        );
        check_overflow(
            Int32Array::from(vec![i32::MAX, 1]),
            "sum of column \"q\" does not fit Int32 in 1 of 1 groups: the first result is 2147483648",
        );
        check_overflow(
            Int8Array::from(vec![-128, -1]),
            "sum of column \"q\" does not fit Int8 in 1 of 1 groups: the first result is -129",
        );
        check_overflow(
            UInt64Array::from(vec![u64::MAX, 1]),
            "sum of column \"q\" does not fit UInt64 in 1 of 1 groups: the first result is 18446744073709551616",
        );
    }

    #[test]
    fn decimal_totals_keep_within_the_declared_precision() {
        let decimal = |values: Vec<i128>, precision| {
            Decimal128Array::from(values).with_precision_and_scale(precision, 2).unwrap()
        };
        check_overflow(
            decimal(vec![9_999_999_999, 1], 10),
            "sum of column \"q\" does not fit Decimal128(10, 2) in 1 of 1 groups: the first result is 10000000000 (unscaled)",
        );
        check_overflow(
            decimal(vec![-9_999_999_999, -1], 10),
            "sum of column \"q\" does not fit Decimal128(10, 2) in 1 of 1 groups: the first result is -10000000000 (unscaled)",
        );
        // Two values of 10^38 − 1 leave the 128 bits.
        let largest = 10i128.pow(38) - 1;
        check_overflow(
            decimal(vec![largest, largest], 38),
            "sum of column \"q\" does not fit Decimal128(38, 2) in 1 of 1 groups: the first result is 199999999999999999999999999999999999998 (unscaled)",
        );
        check(decimal(vec![largest - 1, 1], 38), decimal(vec![largest], 38));
        let small = Decimal32Array::from(vec![999, 1]).with_precision_and_scale(3, 0).unwrap();
        check_overflow(
            small,
            "sum of column \"q\" does not fit Decimal32(3, 0) in 1 of 1 groups: the first result is 1000",
        );
    }

    #[test]
    fn totals_beyond_256_bits_are_refused_though_the_rest_would_fit() {
        // 12 · (10^76 − 1) is 1.2 · 10^77; less 2^256 = 1.158 · 10^77 it would be a number of 76 digits.
        let largest = i256::from_string(&"9".repeat(76)).unwrap();
        for value in [largest, largest.wrapping_neg()] {
            let values = Decimal256Array::from(vec![value; 12]);
            let total = sum(Arc::new(values.with_precision_and_scale(76, 0).unwrap()));
            assert!(matches!(total, Err(CompactError::Overflow { .. })));
        }
    }

    #[test]
    fn groups_that_overflow_are_counted() {
        let mut fold = Sum.open(&Field::new("q", arrow::datatypes::DataType::Int8, true)).unwrap();
        let values: ArrayRef = Arc::new(Int8Array::from(vec![127, 127, 127, 1, 1]));
        fold.update(&values, &[0, 1, 2, 1, 2], 3).unwrap();
        let error = fold.evaluate().unwrap_err();
        assert_eq!(error.group(), Some(1));
        assert_eq!(
            error.to_string(),
            "sum of column \"q\" does not fit Int8 in 2 of 3 groups: the first result is 128"
        );
    }

    #[test]
    fn small_floats_are_not_lost_to_a_narrow_total() {
        // In 32 bits 16 777 216 + 1 stays 16 777 216.
        let total = sum(Arc::new(Float32Array::from(vec![16_777_216.0, 1.0, 1.0]))).unwrap();
        let total = total.as_primitive::<Float32Type>().value(0);
        assert_eq!(total.to_bits(), 16_777_218.0_f32.to_bits());
    }
}
