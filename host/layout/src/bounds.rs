//! Reads the ranges of a file's clustering columns from its statistics, exactly.
//!
//! Whole numbers, decimals, dates and timestamps become integers of their own unit, so lengths of
//! ranges have no rounding; floats stay floats, strings stay strings. A file without both bounds of
//! every key has no ranges: nothing can be said about it.

use std::{cmp::Ordering, fmt};

use arrow::datatypes::{DataType, Schema};
use lakebed_model::Literal;
use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

use crate::{ColumnMapping, action::AddFile, columns};

/// Digits that every number of so many has exactly as a float.
const EXACT_DIGITS: usize = 15;

/// A bound of a column's values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bound {
    /// A number in the column's unit: ones, 10^−scale, days or microseconds.
    Whole(i128),
    /// A floating-point number.
    Float(f64),
    /// Text, ordered by its bytes as Delta orders strings.
    Text(String),
}

impl Bound {
    /// Orders two bounds of one column.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }
}

/// The values of one column in one file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyRange {
    pub(crate) low: Bound,
    pub(crate) high: Bound,
}

impl KeyRange {
    pub(crate) fn is_point(&self) -> bool {
        self.low.order(&self.high).is_eq()
    }
}

#[derive(Debug)]
struct Key {
    data_type: DataType,
}

/// Reads ranges of a table's clustering columns.
#[derive(Debug)]
pub(crate) struct RangeReader {
    keys: Vec<Key>,
    /// Where the statistics have the bounds: for each key the lower and the upper one.
    wanted: Vec<Vec<String>>,
}

impl RangeReader {
    /// Prepares for column names; a column that the schema lacks leaves all files unjudged.
    pub(crate) fn new(schema: &Schema, mapping: ColumnMapping, cluster_by: &[String]) -> Self {
        let type_of = |path: &[String]| columns::column_type(schema, &columns::join_name(path));
        let key = |path: &Vec<String>| Key { data_type: type_of(path).unwrap_or(DataType::Null) };
        let sides = |path: &Vec<String>| {
            let path = mapping.physical_path(schema, path).unwrap_or_else(|| path.clone());
            ["minValues", "maxValues"].map(|side| [&[side.to_owned()], path.as_slice()].concat())
        };
        // A struct has the ranges of its fields, arrays and maps have none.
        let has_range = |path: &Vec<String>| {
            !matches!(
                type_of(path),
                Some(DataType::List(_) | DataType::LargeList(_) | DataType::Map(..))
            )
        };
        let leaves = |name: &String| match columns::leaves_of(schema, name) {
            leaves if leaves.is_empty() => vec![columns::split_name(name)],
            leaves => leaves,
        };
        let paths: Vec<_> = cluster_by.iter().flat_map(leaves).filter(has_range).collect();
        Self {
            keys: paths.iter().map(key).collect(),
            wanted: paths.iter().flat_map(sides).collect(),
        }
    }

    /// Reads the ranges of all keys; `None` where a bound is missing or makes no sense.
    pub(crate) fn read(&self, file: &AddFile) -> Option<Vec<KeyRange>> {
        if self.keys.is_empty() {
            return None;
        }
        let text = file.stats.as_deref()?;
        let has_decimals =
            self.keys.iter().any(|key| matches!(key.data_type, DataType::Decimal128(..)));
        let values = if has_decimals {
            picked(&with_long_numbers_quoted(text), &self.wanted)?
        } else {
            picked(text, &self.wanted)?
        };
        let range = |(key, sides): (&Key, &[Option<Value>])| {
            let [low, high] = sides else { return None };
            let low = bound(low.as_ref()?, &key.data_type)?;
            let high = bound(high.as_ref()?, &key.data_type)?;
            low.order(&high).is_le().then_some(KeyRange { low, high })
        };
        self.keys.iter().zip(values.chunks_exact(2)).map(range).collect()
    }
}

fn bound(value: &Value, data_type: &DataType) -> Option<Bound> {
    match data_type {
        DataType::Date32 => match Literal::parse_date(value.as_str()?)? {
            Literal::Date(days) => Some(Bound::Whole(i128::from(days))),
            _ => None,
        },
        DataType::Timestamp(..) => micros(value.as_str()?).map(|t| Bound::Whole(i128::from(t))),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            Some(Bound::Text(value.as_str()?.to_owned()))
        }
        DataType::Decimal128(_, scale) => {
            let scale = i32::from(*scale);
            let digits = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            unscaled(&digits, scale).map(Bound::Whole)
        }
        // Both zeros are one number.
        DataType::Float32 | DataType::Float64 => {
            let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
            number.filter(|v| v.is_finite()).map(|v| Bound::Float(v + 0.0))
        }
        other if other.is_integer() => {
            let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
            number.map(|v| Bound::Whole(i128::from(v)))
        }
        _ => None,
    }
}

/// Reads the values at some paths of a JSON object; the rest is passed over without being kept, which
/// for statistics of many columns is most of it. `None` where the text is no JSON object, or something
/// else stands where an object should.
fn picked(text: &str, paths: &[Vec<String>]) -> Option<Vec<Option<Value>>> {
    let mut found = vec![None; paths.len()];
    let wanted = paths.iter().map(Vec::as_slice).enumerate().collect();
    let mut reader = serde_json::Deserializer::from_str(text);
    Pick { wanted, found: &mut found }.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(found)
}

/// The ends of paths into one object, each with its place among those found.
type Wanted<'p> = Vec<(usize, &'p [String])>;

struct Pick<'p, 'f> {
    wanted: Wanted<'p>,
    found: &'f mut [Option<Value>],
}

impl<'de> DeserializeSeed<'de> for Pick<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { wanted, found } = self;
        while let Some(below) = map.next_key_seed(Below(&wanted))? {
            match below.first() {
                None => drop(map.next_value::<IgnoredAny>()?),
                Some((_, [])) => {
                    let value: Value = map.next_value()?;
                    for (place, _) in below {
                        found[place] = Some(value.clone());
                    }
                }
                Some(_) => map.next_value_seed(Pick { wanted: below, found: &mut *found })?,
            }
        }
        Ok(())
    }
}

/// The paths that go on below a name.
struct Below<'p, 'w>(&'w Wanted<'p>);

impl<'de, 'p> DeserializeSeed<'de> for Below<'p, '_> {
    type Value = Wanted<'p>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Wanted<'p>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, 'p> Visitor<'de> for Below<'p, '_> {
    type Value = Wanted<'p>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Wanted<'p>, E> {
        let below = |(place, path): &(usize, &'p [String])| match path {
            [first, rest @ ..] if first == name => Some((*place, rest)),
            _ => None,
        };
        Ok(self.0.iter().filter_map(below).collect())
    }
}

/// Makes strings of the numbers that a float cannot hold: JSON readers round them.
fn with_long_numbers_quoted(text: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '-' | '0'..='9' => rest.find(|c| !is_number(c)).unwrap_or(rest.len()),
            other => other.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if first != '"' && token.len() > EXACT_DIGITS {
            out.extend(["\"", token, "\""]);
        } else {
            out.push_str(token);
        }
        rest = after;
    }
    out
}

/// The length of the JSON string that a text begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Reads a timestamp as delta-spark writes it, with or without `Z` or an offset such as `-08:00`.
fn micros(text: &str) -> Option<i64> {
    let (instant, offset_minutes) =
        match text.len().checked_sub(6).map(|at| text.split_at_checked(at)) {
            Some(Some((instant, offset)))
                if offset.starts_with(['+', '-']) && text.contains('T') =>
            {
                let (hours, minutes) = offset[1..].split_once(':')?;
                let size = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
                (instant, if offset.starts_with('-') { -size } else { size })
            }
            _ => (text, 0),
        };
    match Literal::parse_timestamp(instant)? {
        Literal::Timestamp(micros) => micros.checked_sub(offset_minutes * 60_000_000),
        _ => None,
    }
}

/// Reads a decimal, with or without an exponent, as an integer of 10^−`scale`.
fn unscaled(text: &str, scale: i32) -> Option<i128> {
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction_digits = i32::try_from(fraction.len()).ok()?;
    let value: i128 = format!("{whole}{fraction}").parse().ok()?;
    let shift = scale.checked_add(exponent)?.checked_sub(fraction_digits)?;
    let factor = 10i128.checked_pow(shift.unsigned_abs())?;
    if shift < 0 { Some(value.div_euclid(factor)) } else { value.checked_mul(factor) }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
    use serde_json::json;

    use super::{Bound, KeyRange, RangeReader, with_long_numbers_quoted};
    use crate::ColumnMapping;
    use crate::testing::plain_file;

    #[track_caller]
    fn check(data_type: DataType, minimum: &str, maximum: &str, expected: Option<(Bound, Bound)>) {
        let schema = Schema::new(vec![Field::new("k", data_type, true)]);
        let mut file = plain_file("f", 1);
        file.stats = Some(format!(
            "{{\"numRecords\":2,\"minValues\":{{\"k\":{minimum}}},\"maxValues\":{{\"k\":{maximum}}}}}"
        ));
        let ranges = RangeReader::new(&schema, ColumnMapping::None, &["k".to_owned()]).read(&file);
        assert_eq!(ranges, expected.map(|(low, high)| vec![KeyRange { low, high }]));
    }

    fn whole(low: i128, high: i128) -> Option<(Bound, Bound)> {
        Some((Bound::Whole(low), Bound::Whole(high)))
    }

    #[test]
    fn every_type_is_read_in_its_own_unit() {
        check(DataType::Int64, "-5", "9007199254740993", whole(-5, 9_007_199_254_740_993));
        check(DataType::Date32, "\"1970-01-02\"", "\"1970-02-01\"", whole(1, 31));
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        check(
            zoned.clone(),
            "\"1970-01-01T00:00:00.001Z\"",
            "\"1970-01-01T01:00:00.000+01:00\"",
            None,
        );
        check(
            zoned,
            "\"1970-01-01T00:00:00.001Z\"",
            "\"1969-12-31T16:00:01.000-08:00\"",
            whole(1_000, 1_000_000),
        );
        let local = DataType::Timestamp(TimeUnit::Microsecond, None);
        check(local, "\"1970-01-01 00:00:00\"", "\"1970-01-01T00:00:00.5\"", whole(0, 500_000));
        check(DataType::Float64, "-0.0", "1.5", Some((Bound::Float(0.0), Bound::Float(1.5))));
        check(
            DataType::Utf8,
            "\"a\"",
            "\"b\"",
            Some((Bound::Text("a".into()), Bound::Text("b".into()))),
        );
        let money = DataType::Decimal128(12, 2);
        check(money.clone(), "-1.25", "1E+3", whole(-125, 100_000));
        check(money, "0", "1.1e1", whole(0, 1_100));
        let long = DataType::Decimal128(38, 2);
        check(
            long,
            "-123456789012345678901234567890123456.78",
            "12345678901234567890.01",
            whole(
                -12_345_678_901_234_567_890_123_456_789_012_345_678,
                1_234_567_890_123_456_789_001,
            ),
        );
    }

    #[test]
    fn missing_and_senseless_bounds_cannot_be_judged() {
        check(DataType::Int64, "null", "5", None);
        check(DataType::Int64, "6", "5", None);
        check(DataType::Boolean, "false", "true", None);
        check(DataType::Utf8, "1", "2", None);
        let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
        let reader = RangeReader::new(&schema, ColumnMapping::None, &["k".to_owned()]);
        assert_eq!(reader.read(&plain_file("f", 1)), None);
        let mut bare = plain_file("f", 1);
        bare.stats = None;
        assert_eq!(reader.read(&bare), None);
    }

    #[test]
    fn only_long_numbers_outside_of_strings_are_quoted() {
        let text = r#"{"a\"1234567890123456":-1234567890.123456,"b":[15,"é"]}"#;
        let quoted = r#"{"a\"1234567890123456":"-1234567890.123456","b":[15,"é"]}"#;
        assert_eq!(with_long_numbers_quoted(text), quoted);
    }

    #[test]
    fn nested_columns_and_names_with_dots_are_found() {
        let inner = Fields::from(vec![Field::new("city", DataType::Int64, true)]);
        let schema = Schema::new(vec![
            Field::new("user", DataType::Struct(inner), true),
            Field::new("a.b", DataType::Int64, true),
        ]);
        let mut file = plain_file("f", 1);
        let values = |n: i64| json!({ "user": { "city": n }, "a.b": n + 1 });
        file.stats = Some(json!({ "minValues": values(1), "maxValues": values(2) }).to_string());
        let ranges =
            RangeReader::new(&schema, ColumnMapping::None, &["user.city".into(), "`a.b`".into()])
                .read(&file)
                .unwrap();
        let range = |low, high| KeyRange { low: Bound::Whole(low), high: Bound::Whole(high) };
        assert_eq!(ranges, [range(1, 2), range(2, 3)]);
    }
}
