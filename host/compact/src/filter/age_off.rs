//! Age-off: a row stays while `now − value < period`.
//!
//! 1. Units: an integer column holds seconds since 1970-01-01 UTC and its unit is never guessed;
//!    timestamps carry their unit; dates count as the midnight, UTC, that begins them; a timestamp
//!    without zone is read as UTC.
//! 2. The comparison is turned around to `value > now − period`, so that one threshold per batch is
//!    computed in 128 bits, where no period is too long, and rounded down to the column's unit:
//!    for a whole `value`, `value > x` and `value > ⌊x⌋` are the same.
//! 3. A threshold outside the column's range keeps every value or none.
//!
//! Worked example: now = 2 s and period = 1 s give the threshold 1000 ms. In a millisecond column
//! 1001 stays; 1000, whose age is exactly the period, goes.

use std::slice;

use arrow::{
    array::{Array, ArrowPrimitiveType, AsArray, BooleanArray},
    buffer::BooleanBuffer,
    datatypes::{
        DataType, Date32Type, Date64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
    record_batch::RecordBatch,
};
use lakebed_model::{ColumnSpan, Instant, Literal};

use super::{AGE_OFF, RowFilter};
use crate::{CompactError, NullRule, Warning};

const NANOSECONDS_PER_MS: i128 = 1_000_000;
const NANOSECONDS_PER_SECOND: i128 = 1_000_000_000;
const NANOSECONDS_PER_DAY: i128 = 86_400 * NANOSECONDS_PER_SECOND;
/// 100 Julian years.
const CENTURY_NANOSECONDS: i128 = 36_525 * NANOSECONDS_PER_DAY;

/// Drops rows whose age has reached a period.
#[derive(Debug, Clone)]
pub struct AgeOff {
    column: String,
    period_seconds: u64,
    nulls: NullRule,
    now: Instant,
}

/// What a file's statistics say of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanVerdict {
    /// Every row goes: the file can be removed unread.
    AllExpired,
    /// Every row stays: the filter need not run.
    NoneExpired,
    /// The rows must be read.
    Unknown,
}

impl AgeOff {
    /// Builds the filter for one job, which has one `now`.
    #[must_use]
    pub const fn new(column: String, period_seconds: u64, nulls: NullRule, now: Instant) -> Self {
        Self { column, period_seconds, nulls, now }
    }

    /// Tells whether a column of this type holds times.
    #[must_use]
    pub const fn accepts(data_type: &DataType) -> bool {
        unit_nanoseconds(data_type).is_some()
    }

    /// Judges all rows of a file by its statistics for the column; `rows` counts them.
    ///
    /// Delta writes timestamps in statistics cut to milliseconds, so both ends are widened by one.
    #[must_use]
    pub fn judge_span(&self, span: &ColumnSpan, rows: Option<u64>) -> SpanVerdict {
        let is_free_of_nulls = span.null_count == Some(0);
        let is_all_nulls = rows.is_some() && span.null_count == rows;
        match self.nulls {
            NullRule::Drop if is_all_nulls => return SpanVerdict::AllExpired,
            NullRule::Keep if is_all_nulls => return SpanVerdict::NoneExpired,
            _ => {}
        }
        let threshold = self.threshold_nanoseconds();
        let latest = span.max.as_ref().and_then(literal_nanoseconds);
        if latest.is_some_and(|(value, slack)| value + slack <= threshold)
            && (is_free_of_nulls || self.nulls == NullRule::Drop)
        {
            return SpanVerdict::AllExpired;
        }
        let earliest = span.min.as_ref().and_then(literal_nanoseconds);
        if earliest.is_some_and(|(value, slack)| value - slack > threshold)
            && (is_free_of_nulls || self.nulls == NullRule::Keep)
        {
            return SpanVerdict::NoneExpired;
        }
        SpanVerdict::Unknown
    }

    fn threshold_nanoseconds(&self) -> i128 {
        i128::from(self.now.epoch_ms()) * NANOSECONDS_PER_MS
            - i128::from(self.period_seconds) * NANOSECONDS_PER_SECOND
    }

    /// Tells which values lie after an instant; null where the value is null.
    fn later_than(
        &self,
        values: &dyn Array,
        instant_nanoseconds: i128,
    ) -> Result<BooleanArray, CompactError> {
        let wrong_type = || CompactError::AgeOffType {
            column: self.column.clone(),
            data_type: values.data_type().clone(),
        };
        let unit = unit_nanoseconds(values.data_type()).ok_or_else(wrong_type)?;
        let threshold = instant_nanoseconds.div_euclid(unit);
        Ok(match values.data_type() {
            DataType::Int8 => greater::<Int8Type>(values, threshold),
            DataType::Int16 => greater::<Int16Type>(values, threshold),
            DataType::Int32 => greater::<Int32Type>(values, threshold),
            DataType::Int64 => greater::<Int64Type>(values, threshold),
            DataType::UInt8 => greater::<UInt8Type>(values, threshold),
            DataType::UInt16 => greater::<UInt16Type>(values, threshold),
            DataType::UInt32 => greater::<UInt32Type>(values, threshold),
            DataType::UInt64 => greater::<UInt64Type>(values, threshold),
            DataType::Date32 => greater::<Date32Type>(values, threshold),
            DataType::Date64 => greater::<Date64Type>(values, threshold),
            DataType::Timestamp(TimeUnit::Second, _) => {
                greater::<TimestampSecondType>(values, threshold)
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                greater::<TimestampMillisecondType>(values, threshold)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                greater::<TimestampMicrosecondType>(values, threshold)
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                greater::<TimestampNanosecondType>(values, threshold)
            }
            _ => return Err(wrong_type()),
        })
    }
}

impl RowFilter for AgeOff {
    fn name(&self) -> &str {
        AGE_OFF
    }

    fn columns(&self) -> &[String] {
        slice::from_ref(&self.column)
    }

    fn keep(&self, batch: &RecordBatch) -> Result<BooleanArray, CompactError> {
        let answer = self.later_than(batch.column(0), self.threshold_nanoseconds())?;
        let (is_later, nulls) = answer.into_parts();
        Ok(match (self.nulls, nulls) {
            (NullRule::Keep, Some(nulls)) => BooleanArray::new(&is_later | &!nulls.inner(), None),
            (_, nulls) => BooleanArray::new(is_later, nulls),
        })
    }

    fn doubt(&self, sample: &RecordBatch) -> Option<Warning> {
        let values = sample.column(0);
        let horizon = i128::from(self.now.epoch_ms()) * NANOSECONDS_PER_MS + CENTURY_NANOSECONDS;
        let is_far = self.later_than(values, horizon).ok()?;
        let known = values.len() - values.null_count();
        (is_far.true_count() * 2 > known)
            .then(|| Warning::FarFuture { column: self.column.clone() })
    }
}

/// Returns how long one step of the column's values is, if they are times.
const fn unit_nanoseconds(data_type: &DataType) -> Option<i128> {
    match data_type {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Timestamp(TimeUnit::Second, _) => Some(NANOSECONDS_PER_SECOND),
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => {
            Some(NANOSECONDS_PER_MS)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => Some(1_000),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Some(1),
        DataType::Date32 => Some(NANOSECONDS_PER_DAY),
        _ => None,
    }
}

/// Returns an instant from statistics and how far the true one may lie from it.
fn literal_nanoseconds(literal: &Literal) -> Option<(i128, i128)> {
    match literal {
        Literal::Integer(seconds) => Some((i128::from(*seconds) * NANOSECONDS_PER_SECOND, 0)),
        Literal::Date(days) => Some((i128::from(*days) * NANOSECONDS_PER_DAY, 0)),
        Literal::Timestamp(microseconds) => {
            Some((i128::from(*microseconds) * 1_000, NANOSECONDS_PER_MS))
        }
        _ => None,
    }
}

fn greater<T>(values: &dyn Array, threshold: i128) -> BooleanArray
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i128> + PartialOrd,
{
    let values = values.as_primitive::<T>();
    match T::Native::try_from(threshold) {
        Ok(threshold) => BooleanArray::from_unary(values, |value| value > threshold),
        Err(_) => {
            // Out of range below every value, or above.
            let is_later = if threshold < 0 {
                BooleanBuffer::new_set(values.len())
            } else {
                BooleanBuffer::new_unset(values.len())
            };
            BooleanArray::new(is_later, values.nulls().cloned())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Date32Array, Date64Array, Int8Array, Int32Array, TimestampMicrosecondArray,
        TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt64Array,
    };
    use lakebed_model::{ColumnSpan, Instant, Literal};

    use super::{AgeOff, RowFilter, SpanVerdict};
    use crate::{
        NullRule, Warning,
        testing::{batch, integers, texts},
    };

    fn age_off(period_seconds: u64, nulls: NullRule, now_ms: i64) -> AgeOff {
        AgeOff::new("t".to_owned(), period_seconds, nulls, Instant::from_epoch_ms(now_ms))
    }

    /// Checks what happens to each value when now is 1000 s and the period 10 s.
    #[track_caller]
    fn check(values: ArrayRef, expected: &[Option<bool>]) {
        let answer = age_off(10, NullRule::Drop, 1_000_000).keep(&batch(vec![("t", values)]));
        assert_eq!(answer.unwrap().iter().collect::<Vec<_>>(), expected);
    }

    const KEEP: Option<bool> = Some(true);
    const DROP: Option<bool> = Some(false);

    #[test]
    fn row_goes_when_its_age_is_exactly_the_period() {
        // Ages: 11, 10, 9, 0, and one second ahead of now.
        check(integers([989, 990, 991, 1_000, 1_001]), &[DROP, DROP, KEEP, KEEP, KEEP]);
    }

    #[test]
    fn extreme_negative_and_null_times_are_judged_without_wrapping() {
        check(
            integers([Some(i64::MIN), Some(-1), Some(0), Some(i64::MAX), None]),
            &[DROP, DROP, DROP, KEEP, None],
        );
    }

    #[test]
    fn every_unit_has_the_same_boundary() {
        let expected = [DROP, KEEP, None];
        let second = TimestampSecondArray::from(vec![Some(990), Some(991), None]);
        check(Arc::new(second), &expected);
        let milli = TimestampMillisecondArray::from(vec![Some(990_000), Some(990_001), None]);
        check(Arc::new(milli), &expected);
        let micro =
            TimestampMicrosecondArray::from(vec![Some(990_000_000), Some(990_000_001), None]);
        check(Arc::new(micro.clone()), &expected);
        check(Arc::new(micro.with_timezone("UTC")), &expected);
        let nano = TimestampNanosecondArray::from(vec![
            Some(990_000_000_000),
            Some(990_000_000_001),
            None,
        ]);
        check(Arc::new(nano), &expected);
        check(Arc::new(Int32Array::from(vec![Some(990), Some(991), None])), &expected);
        check(Arc::new(UInt64Array::from(vec![Some(990), Some(991), None])), &expected);
        check(Arc::new(Date64Array::from(vec![Some(990_000), Some(990_001), None])), &expected);
    }

    #[test]
    fn fractions_of_a_second_count_in_a_column_of_seconds() {
        // now = 1000.5 s: the value 990 is 10.5 s old, 991 is 9.5 s old.
        let filter = age_off(10, NullRule::Drop, 1_000_500);
        let answer = filter.keep(&batch(vec![("t", integers([990, 991]))])).unwrap();
        assert_eq!(answer.iter().collect::<Vec<_>>(), [DROP, KEEP]);
    }

    #[test]
    fn dates_count_from_their_midnight() {
        // Day 100 begins at 8 640 000 s. One day old exactly at day 101's midnight.
        let dates: ArrayRef = Arc::new(Date32Array::from(vec![99, 100, 101]));
        let judge = |now_ms| {
            let filter = age_off(86_400, NullRule::Drop, now_ms);
            let answer = filter.keep(&batch(vec![("t", Arc::clone(&dates))])).unwrap();
            answer.iter().flatten().collect::<Vec<_>>()
        };
        assert_eq!(judge(101 * 86_400_000 - 1), [false, true, true]);
        assert_eq!(judge(101 * 86_400_000), [false, false, true]);
    }

    #[test]
    fn thresholds_outside_a_narrow_column_keep_all_or_none() {
        let bytes: ArrayRef = Arc::new(Int8Array::from(vec![Some(-128), Some(127), None]));
        check(Arc::clone(&bytes), &[DROP, DROP, None]);
        let judge = |period| {
            let filter = age_off(period, NullRule::Drop, 0);
            let answer = filter.keep(&batch(vec![("t", Arc::clone(&bytes))])).unwrap();
            answer.iter().collect::<Vec<_>>()
        };
        // Threshold −128 s, −129 s, and the longest period there is.
        assert_eq!(judge(128), [DROP, KEEP, None]);
        assert_eq!(judge(129), [KEEP, KEEP, None]);
        assert_eq!(judge(u64::MAX), [KEEP, KEEP, None]);
        let ancient: ArrayRef = Arc::new(UInt64Array::from(vec![0, u64::MAX]));
        let kept = age_off(1, NullRule::Drop, 0).keep(&batch(vec![("t", ancient)])).unwrap();
        assert_eq!(kept.true_count(), 2);
    }

    #[test]
    fn rows_without_a_time_stay_for_ever_where_asked() {
        let sliced = integers([Some(1), None, Some(995), Some(5)]).slice(1, 3);
        let answer = age_off(10, NullRule::Keep, 1_000_000).keep(&batch(vec![("t", sliced)]));
        assert_eq!(answer.unwrap().iter().collect::<Vec<_>>(), [KEEP, KEEP, DROP]);
    }

    #[test]
    fn columns_that_hold_no_time_are_refused() {
        let error = age_off(1, NullRule::Drop, 0).keep(&batch(vec![("t", texts(["x"]))]));
        assert_eq!(
            error.unwrap_err().to_string(),
            "ageoff column \"t\" has type Utf8: need an integer (seconds), Timestamp or Date"
        );
    }

    #[test]
    fn milliseconds_in_a_column_of_seconds_raise_a_doubt() {
        let filter = age_off(10, NullRule::Drop, 1_800_000_000_000);
        let doubt = |values| filter.doubt(&batch(vec![("t", values)]));
        let seconds = [Some(1_800_000_000), Some(1_700_000_000), None, Some(1_800_000_000_000)];
        assert_eq!(doubt(integers(seconds)), None);
        let milliseconds = [Some(1_800_000_000_000), None, Some(1_700_000_000_000)];
        let expected = Warning::FarFuture { column: "t".to_owned() };
        assert_eq!(doubt(integers(milliseconds)), Some(expected));
        assert_eq!(doubt(integers([None::<i64>])), None);
    }

    #[track_caller]
    fn check_span(
        nulls: NullRule,
        (min, max): (Option<Literal>, Option<Literal>),
        null_count: Option<u64>,
        expected: SpanVerdict,
    ) {
        let span = ColumnSpan { min, max, null_count };
        assert_eq!(age_off(10, nulls, 1_000_000).judge_span(&span, Some(7)), expected, "{span:?}");
    }

    #[test]
    fn statistics_judge_a_file_only_where_they_prove_it() {
        use SpanVerdict::{AllExpired, NoneExpired, Unknown};
        let seconds = |min, max| (Some(Literal::Integer(min)), Some(Literal::Integer(max)));
        check_span(NullRule::Drop, seconds(1, 990), Some(0), AllExpired);
        check_span(NullRule::Drop, seconds(1, 991), Some(0), Unknown);
        check_span(NullRule::Drop, seconds(990, 999), Some(0), Unknown);
        check_span(NullRule::Drop, seconds(991, 999), Some(0), NoneExpired);
        check_span(NullRule::Drop, (None, None), Some(0), Unknown);
        // Nulls go with the expired, or stay with the others, as the rule says.
        check_span(NullRule::Drop, seconds(1, 990), None, AllExpired);
        check_span(NullRule::Keep, seconds(1, 990), Some(1), Unknown);
        check_span(NullRule::Drop, seconds(991, 999), None, Unknown);
        check_span(NullRule::Keep, seconds(991, 999), None, NoneExpired);
        check_span(NullRule::Drop, (None, None), Some(7), AllExpired);
        check_span(NullRule::Keep, (None, None), Some(7), NoneExpired);
    }

    #[test]
    fn timestamps_cut_to_milliseconds_do_not_expire_early() {
        use SpanVerdict::{AllExpired, NoneExpired, Unknown};
        let micros = |min, max| (Some(Literal::Timestamp(min)), Some(Literal::Timestamp(max)));
        // The threshold is 990 000 000 µs; a true maximum may be up to a millisecond larger.
        check_span(NullRule::Drop, micros(0, 990_000_000), Some(0), Unknown);
        check_span(NullRule::Drop, micros(0, 989_999_000), Some(0), AllExpired);
        check_span(NullRule::Drop, micros(990_001_000, 995_000_000), Some(0), Unknown);
        check_span(NullRule::Drop, micros(990_002_000, 995_000_000), Some(0), NoneExpired);
    }
}
