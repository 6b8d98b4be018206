//! Constants that queries compare columns with.

use std::{cmp::Ordering, fmt};

/// A constant of a query, in the domain it is compared in.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// A truth value.
    Boolean(bool),
    /// An integer of any width up to 64 bits.
    Integer(i64),
    /// A decimal: `unscaled` · 10^−`scale`.
    Decimal {
        /// The digits as an integer.
        unscaled: i128,
        /// How many of the digits follow the point.
        scale: u8,
    },
    /// A floating-point number.
    Float(f64),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since the Unix epoch, UTC.
    Timestamp(i64),
    /// Text.
    Text(String),
}

impl Literal {
    /// Parses `yyyy-mm-dd` into a [`Literal::Date`].
    #[must_use]
    pub fn parse_date(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let year: i64 = parts.next()?.parse().ok()?;
        let month: i64 = parts.next()?.parse().ok()?;
        let day: i64 = parts.next()?.parse().ok()?;
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        let days = days_from_civil(year, month, day);
        if crate::clock::civil_from_days(days) != (year, month, day) {
            return None;
        }
        i32::try_from(days).ok().map(Self::Date)
    }

    /// Parses `yyyy-mm-dd[T ]hh:mm:ss[.fraction][Z]` into a [`Literal::Timestamp`]; a text without a
    /// zone is taken as UTC, one with an offset is not understood.
    #[must_use]
    pub fn parse_timestamp(text: &str) -> Option<Self> {
        let (date, time) = text.split_once(['T', ' '])?;
        let Self::Date(days) = Self::parse_date(date)? else { return None };
        let time = time.strip_suffix('Z').unwrap_or(time);
        let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
        let mut parts = clock.splitn(3, ':').map(str::parse::<i64>);
        let (hour, minute, second) =
            (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
        if !fraction.chars().all(|c| c.is_ascii_digit()) || hour > 23 || minute > 59 || second > 60
        {
            return None;
        }
        let micros: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
        let seconds = i64::from(days) * 86_400 + hour * 3_600 + minute * 60 + second;
        Some(Self::Timestamp(seconds * 1_000_000 + micros))
    }

    /// Parses plain digits such as `-12.34` into a [`Literal::Decimal`] of a scale; further digits
    /// and exponents are not understood.
    #[must_use]
    pub fn parse_decimal(text: &str, scale: u8) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.trim_end_matches('0');
        let digits = usize::from(scale);
        if fraction.len() > digits {
            return None;
        }
        let unscaled = format!("{whole}{fraction:0<digits$}").parse().ok()?;
        Some(Self::Decimal { unscaled, scale })
    }

    /// Orders two literals; numbers of different kinds compare by value, other kinds do not mix.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => Some(a.cmp(b)),
            (Self::Integer(a), Self::Integer(b)) | (Self::Timestamp(a), Self::Timestamp(b)) => {
                Some(a.cmp(b))
            }
            (Self::Date(a), Self::Date(b)) => Some(a.cmp(b)),
            (Self::Date(a), Self::Timestamp(b)) => Some((i64::from(*a) * 86_400_000_000).cmp(b)),
            (Self::Timestamp(a), Self::Date(b)) => Some(a.cmp(&(i64::from(*b) * 86_400_000_000))),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Decimal { unscaled: a, scale: s }, Self::Decimal { unscaled: b, scale: t })
                if s == t =>
            {
                Some(a.cmp(b))
            }
            _ => Some(self.as_number()?.total_cmp(&other.as_number()?)),
        }
    }

    /// Returns the position of an orderable literal on the number line; text and truth values have none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "positions are used for estimates only")]
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(v) | Self::Timestamp(v) => Some(*v as f64),
            Self::Decimal { unscaled, scale } => {
                Some(*unscaled as f64 / 10f64.powi(i32::from(*scale)))
            }
            Self::Float(v) => Some(*v),
            Self::Date(v) => Some(f64::from(*v)),
            Self::Boolean(_) | Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(v) => write!(f, "{v}"),
            Self::Integer(v) => write!(f, "{v}"),
            Self::Decimal { unscaled, scale } => {
                let digits = usize::from(*scale);
                let sign = if *unscaled < 0 { "-" } else { "" };
                let text = format!("{:0width$}", unscaled.unsigned_abs(), width = digits + 1);
                let (whole, part) = text.split_at(text.len() - digits);
                if digits == 0 {
                    write!(f, "{sign}{whole}")
                } else {
                    write!(f, "{sign}{whole}.{part}")
                }
            }
            Self::Float(v) => write!(f, "{v}"),
            Self::Date(v) => {
                let (year, month, day) = crate::clock::civil_from_days(i64::from(*v));
                write!(f, "{year:04}-{month:02}-{day:02}")
            }
            Self::Timestamp(v) => {
                f.write_str(&crate::Instant::from_epoch_ms(v.div_euclid(1_000)).to_rfc3339())
            }
            Self::Text(v) => write!(f, "'{}'", v.replace('\'', "''")),
        }
    }
}

/// One end of a range.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The value at the end.
    pub value: Literal,
    /// Whether the value itself belongs to the range.
    pub inclusive: bool,
}

/// An interval of values; a missing end is unbounded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ValueRange {
    /// The lower end.
    pub low: Option<Bound>,
    /// The upper end.
    pub high: Option<Bound>,
}

impl ValueRange {
    /// Builds the range that holds one value.
    #[must_use]
    pub fn point(value: Literal) -> Self {
        Self {
            low: Some(Bound { value: value.clone(), inclusive: true }),
            high: Some(Bound { value, inclusive: true }),
        }
    }

    /// Narrows this range to what both ranges hold.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        Self {
            low: tighter(self.low.as_ref(), other.low.as_ref(), Ordering::Greater),
            high: tighter(self.high.as_ref(), other.high.as_ref(), Ordering::Less),
        }
    }

    /// Tells whether a column whose values lie in `[min, max]` may hold a value of this range.
    ///
    /// Unknown ends and values of kinds that do not compare answer `true`: skipping must be safe.
    #[must_use]
    pub fn may_match(&self, min: Option<&Literal>, max: Option<&Literal>) -> bool {
        let below = match (&self.low, max) {
            (Some(low), Some(max)) => match max.compare(&low.value) {
                Some(Ordering::Less) => true,
                Some(Ordering::Equal) => !low.inclusive,
                _ => false,
            },
            _ => false,
        };
        let above = match (&self.high, min) {
            (Some(high), Some(min)) => match min.compare(&high.value) {
                Some(Ordering::Greater) => true,
                Some(Ordering::Equal) => !high.inclusive,
                _ => false,
            },
            _ => false,
        };
        !(below || above)
    }
}

impl fmt::Display for ValueRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.low {
            Some(Bound { value, inclusive: true }) => write!(f, "[{value}, ")?,
            Some(Bound { value, inclusive: false }) => write!(f, "({value}, ")?,
            None => f.write_str("(-∞, ")?,
        }
        match &self.high {
            Some(Bound { value, inclusive: true }) => write!(f, "{value}]"),
            Some(Bound { value, inclusive: false }) => write!(f, "{value})"),
            None => f.write_str("∞)"),
        }
    }
}

fn tighter(a: Option<&Bound>, b: Option<&Bound>, wanted: Ordering) -> Option<Bound> {
    match (a, b) {
        (Some(a), Some(b)) => Some(match a.value.compare(&b.value) {
            Some(Ordering::Equal) => {
                Bound { value: a.value.clone(), inclusive: a.inclusive && b.inclusive }
            }
            Some(order) if order == wanted => a.clone(),
            _ => b.clone(),
        }),
        (one, None) | (None, one) => one.cloned(),
    }
}

/// The inverse of `civil_from_days`; same source.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::{Bound, Literal, ValueRange};

    fn range(low: i64, high: i64) -> ValueRange {
        ValueRange {
            low: Some(Bound { value: Literal::Integer(low), inclusive: true }),
            high: Some(Bound { value: Literal::Integer(high), inclusive: false }),
        }
    }

    #[test]
    fn dates_parse_and_print_back() {
        assert_eq!(Literal::parse_date("1994-01-01"), Some(Literal::Date(8766)));
        assert_eq!(Literal::parse_date("1994-02-30"), None);
        assert_eq!(Literal::Date(8766).to_string(), "1994-01-01");
    }

    #[test]
    fn timestamps_and_decimals_parse() {
        let micros = |text| Literal::parse_timestamp(text);
        assert_eq!(micros("1970-01-01T00:00:01.5Z"), Some(Literal::Timestamp(1_500_000)));
        assert_eq!(micros("1969-12-31 23:59:59"), Some(Literal::Timestamp(-1_000_000)));
        assert_eq!(micros("1970-01-01T00:00:01+02:00"), None);
        let decimal = |text| Literal::parse_decimal(text, 2);
        assert_eq!(decimal("-12.3"), Some(Literal::Decimal { unscaled: -1230, scale: 2 }));
        assert_eq!(decimal("-0.05"), Some(Literal::Decimal { unscaled: -5, scale: 2 }));
        assert_eq!(decimal("7.0"), Some(Literal::Decimal { unscaled: 700, scale: 2 }));
        assert_eq!(decimal("0.001"), None);
        assert_eq!(decimal("1e3"), None);
    }

    #[test]
    fn decimals_print_with_their_scale() {
        assert_eq!(Literal::Decimal { unscaled: -5, scale: 2 }.to_string(), "-0.05");
        assert_eq!(Literal::Decimal { unscaled: 1234, scale: 2 }.to_string(), "12.34");
    }

    #[test]
    fn a_range_matches_only_spans_that_meet_it() {
        let r = range(10, 20);
        let span = |a, b| r.may_match(Some(&Literal::Integer(a)), Some(&Literal::Integer(b)));
        assert!(span(0, 10) && span(19, 30) && span(12, 13));
        assert!(!span(0, 9) && !span(20, 30));
        assert!(r.may_match(None, None));
        assert!(r.may_match(Some(&Literal::Text("x".into())), None));
    }

    #[test]
    fn intersection_keeps_the_tighter_ends() {
        let both = range(10, 20).intersect(&range(15, 30));
        assert_eq!(both.to_string(), "[15, 20)");
    }
}
