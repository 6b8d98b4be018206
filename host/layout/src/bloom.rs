//! Bloom filters of a table's files: which columns have one, by properties with parquet-mr's names.
//! Pure.
//!
//! `parquet.bloom.filter.enabled#COLUMN` = true switches one on, for a key of many values that queries
//! look up by equality but that is no clustering column. `parquet.bloom.filter.fpp#COLUMN` is the
//! share of lookups that may find a row group in vain, 0.01 by default.
//! `parquet.bloom.filter.expected.ndv#COLUMN` bounds the distinct values per row group that a filter
//! has room for; without it there is room for as many as the row group has rows. Filters are cut down
//! to the values that came, so the bound saves memory while writing and space only where it is meant to.
//!
//! A filter compares bytes: floats have two zeros and many NaN, and have none.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Schema};
use serde::{Deserialize, Serialize};

use crate::{
    LayoutError, TableSnapshot,
    columns::{column_type, fields},
};

const ENABLED: &str = "parquet.bloom.filter.enabled";
const FALSE_POSITIVES: &str = "parquet.bloom.filter.fpp";
const DISTINCT: &str = "parquet.bloom.filter.expected.ndv";
/// What all its properties begin with.
const PREFIX: &str = "parquet.bloom.filter.";
/// parquet-mr's default.
const DEFAULT_FALSE_POSITIVES: f64 = 0.01;

/// A filter that every row group of new files carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BloomFilter {
    /// The column, as a dotted name.
    pub column: String,
    /// Share of lookups of absent values that find a row group in vain.
    pub false_positives: f64,
    /// Most distinct values of a row group, where known.
    pub distinct_max: Option<u64>,
}

impl TableSnapshot {
    /// Lists the Bloom filters of new files. What another engine has set and makes no sense here is
    /// left out.
    #[must_use]
    pub fn bloom_filters(&self) -> Vec<BloomFilter> {
        let of = |name: &str, column: &str| self.properties.get(&format!("{name}#{column}"));
        let switched_on = self.properties.iter().filter_map(|(key, value)| {
            let column = key.strip_prefix(ENABLED)?.strip_prefix('#')?;
            value.trim().eq_ignore_ascii_case("true").then_some(column)
        });
        let carries = |column: &&str| {
            let can = column_type(&self.schema, column).is_some_and(|t| may_carry(&t));
            if !can {
                tracing::warn!(table = %self.table, column, "no Bloom filter: no such column, or not of its type");
            }
            can
        };
        switched_on
            .filter(carries)
            .map(|column| BloomFilter {
                column: column.to_owned(),
                false_positives: of(FALSE_POSITIVES, column)
                    .and_then(|text| share(text))
                    .unwrap_or(DEFAULT_FALSE_POSITIVES),
                distinct_max: of(DISTINCT, column).and_then(|text| count(text)),
            })
            .collect()
    }
}

/// Checks the properties about Bloom filters that a statement sets.
///
/// # Errors
/// Fails with the first one that is unknown, names no column that may carry a filter, or has a value
/// out of range.
pub(crate) fn check(
    table: &str,
    schema: &Schema,
    properties: &BTreeMap<String, String>,
) -> Result<(), LayoutError> {
    for (property, value) in properties.iter().filter(|(key, _)| key.starts_with(PREFIX)) {
        if let Some(reason) = fault(schema, property, value) {
            return Err(LayoutError::Property {
                table: table.to_owned(),
                property: property.clone(),
                reason,
            });
        }
    }
    Ok(())
}

/// What is wrong with one property.
fn fault(schema: &Schema, property: &str, value: &str) -> Option<String> {
    let (name, column) = property.split_once('#').unwrap_or((property, ""));
    let expected = match name {
        ENABLED => {
            let is_bool = value.trim().to_ascii_lowercase().parse::<bool>().is_ok();
            (!is_bool).then_some("true or false")
        }
        FALSE_POSITIVES => share(value).is_none().then_some("a number above 0 and below 1"),
        DISTINCT => count(value).is_none().then_some("a whole number of at least 1"),
        _ => {
            return Some(format!(
                "there is no such property; Lakebed knows {ENABLED}#COLUMN, {FALSE_POSITIVES}#COLUMN and {DISTINCT}#COLUMN"
            ));
        }
    };
    if let Some(expected) = expected {
        return Some(format!("`{value}` is no value of it: expected {expected}"));
    }
    match column_type(schema, column) {
        None => {
            let known: Vec<String> = fields(schema).map(|(name, _)| name).collect();
            Some(format!(
                "it names no column of the table (as in {name}#COLUMN); it has {}",
                known.join(", ")
            ))
        }
        Some(data_type) if !may_carry(&data_type) => Some(format!(
            "column `{column}` is of type {data_type}, which has no Bloom filter: it takes whole numbers, decimals, text, binary, dates and timestamps"
        )),
        Some(_) => None,
    }
}

fn may_carry(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::Date32
            | DataType::Timestamp(..)
            | DataType::Decimal128(..)
    ) || data_type.is_integer()
}

fn share(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|share| *share > 0.0 && *share < 1.0)
}

fn count(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow::datatypes::{DataType, Field, Schema};

    use super::{BloomFilter, check};
    use crate::testing::snapshot;

    fn properties(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn columns_that_are_switched_on_have_filters() {
        let mut table = snapshot(&[], Vec::new());
        table.properties = properties(&[
            ("parquet.bloom.filter.enabled#s", "TRUE"),
            ("parquet.bloom.filter.fpp#s", "0.001"),
            ("parquet.bloom.filter.enabled#a", "true"),
            ("parquet.bloom.filter.expected.ndv#a", "1000"),
            ("parquet.bloom.filter.fpp#a", "2"),
            ("parquet.bloom.filter.enabled#b", "false"),
            ("parquet.bloom.filter.enabled#gone", "true"),
        ]);
        let filter = |column: &str, false_positives, distinct_max| BloomFilter {
            column: column.to_owned(),
            false_positives,
            distinct_max,
        };
        let expected = [filter("a", 0.01, Some(1_000)), filter("s", 0.001, None)];
        assert_eq!(table.bloom_filters(), expected);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_would() {
        let nested = DataType::Struct(vec![Field::new("id", DataType::Int64, true)].into());
        let schema = Schema::new(vec![
            Field::new("k", DataType::Int64, true),
            Field::new("x", DataType::Float64, true),
            Field::new("s", nested, true),
        ]);
        for (key, value, reason) in [
            (
                "parquet.bloom.filter.enabled#x",
                "true",
                "column `x` is of type Float64, which has no Bloom filter: it takes whole numbers, decimals, text, binary, dates and timestamps",
            ),
            (
                "parquet.bloom.filter.enabled",
                "true",
                "it names no column of the table (as in parquet.bloom.filter.enabled#COLUMN); it has k, x, s, s.id",
            ),
            (
                "parquet.bloom.filter.enabled#k",
                "yes",
                "`yes` is no value of it: expected true or false",
            ),
            (
                "parquet.bloom.filter.fpp#k",
                "1",
                "`1` is no value of it: expected a number above 0 and below 1",
            ),
            (
                "parquet.bloom.filter.expected.ndv#k",
                "0",
                "`0` is no value of it: expected a whole number of at least 1",
            ),
            (
                "parquet.bloom.filter.max.bytes",
                "1",
                "there is no such property; Lakebed knows parquet.bloom.filter.enabled#COLUMN, parquet.bloom.filter.fpp#COLUMN and parquet.bloom.filter.expected.ndv#COLUMN",
            ),
        ] {
            let error = check("t", &schema, &properties(&[(key, value)])).unwrap_err();
            assert_eq!(error.to_string(), format!("set property `{key}` of table `t`: {reason}"));
        }
        let fine = [("parquet.bloom.filter.enabled#s.id", "true"), ("my.own", "x")];
        check("t", &schema, &properties(&fine)).unwrap();
    }
}
