//! One row of an export, with typed access by name.

use lakebed_model::Instant;
use serde_json::{Map, Value};

use crate::time;

/// Named values; names are in lower case. What is null or empty is absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    fields: Map<String, Value>,
    /// The line, or the row's number in forms without lines.
    place: u64,
}

/// The unit of instants and durations that are bare numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Millis,
    Micros,
}

impl Row {
    /// Takes an object whose names are in lower case.
    pub(super) const fn of_object(fields: Map<String, Value>, place: u64) -> Self {
        Self { fields, place }
    }

    /// Takes names in lower case and texts, as CSV has them.
    pub(super) fn of_texts(fields: impl Iterator<Item = (String, String)>, place: u64) -> Self {
        // `\N` is how several databases write a null.
        let present = fields.filter(|(_, text)| !text.is_empty() && text != "\\N");
        Self { fields: present.map(|(name, text)| (name, Value::String(text))).collect(), place }
    }

    /// Returns the line, or the row's number.
    pub(crate) const fn place(&self) -> u64 {
        self.place
    }

    /// Returns the names of the fields.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(String::as_str)
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// Tells whether a field has a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// Returns a text that is not blank, or a number as text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = match self.value(name)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        (!text.trim().is_empty()).then_some(text)
    }

    /// Returns a word such as a status, in lower case.
    pub(crate) fn word(&self, name: &str) -> Option<String> {
        self.text(name).map(|text| text.trim().to_lowercase())
    }

    /// Returns a number that is not negative, rounded to a whole one.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        match self.value(name)? {
            Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            Value::String(text) => {
                let text = text.trim();
                text.parse().ok().or_else(|| whole(text.parse().ok()?))
            }
            _ => None,
        }
    }

    /// Returns a truth value: `true`, `t`, `yes`, `1`, and their opposites.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.value(name)? {
            Value::Bool(flag) => Some(*flag),
            Value::Number(number) => Some(number.as_i64()? != 0),
            Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "t" | "yes" | "1" => Some(true),
                "false" | "f" | "no" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns a point in time in any spelling that [`time`] knows; bare numbers are of this unit.
    pub(crate) fn instant(&self, name: &str, unit: Unit) -> Option<Instant> {
        let ms = match self.value(name)? {
            Value::Number(number) => scaled(number.as_f64()?, unit)?,
            Value::String(text) => match text.trim().parse::<f64>() {
                Ok(number) => scaled(number, unit)?,
                Err(_) => time::parse_ms(text)?,
            },
            _ => return None,
        };
        Some(Instant::from_epoch_ms(ms))
    }

    /// Returns a duration in milliseconds; bare numbers are of this unit.
    pub(crate) fn duration_ms(&self, name: &str, unit: Unit) -> Option<u64> {
        let number = match self.value(name)? {
            Value::Number(number) => number.as_f64()?,
            Value::String(text) => match text.trim().parse::<f64>() {
                Ok(number) => number,
                Err(_) => return time::parse_duration_ms(text),
            },
            _ => return None,
        };
        let ms = match unit {
            Unit::Seconds => number * 1e3,
            Unit::Millis => number,
            Unit::Micros => number / 1e3,
        };
        whole(ms)
    }

    /// Returns the row inside a field: an object, or a text that is one.
    pub(crate) fn row(&self, name: &str) -> Option<Self> {
        self.nested(self.value(name)?)
    }

    /// Returns the rows inside a field: a list of objects, or a text that is one.
    pub(crate) fn rows(&self, name: &str) -> Vec<Self> {
        match self.value(name) {
            Some(Value::Array(items)) => {
                items.iter().filter_map(|item| self.nested(item)).collect()
            }
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(Value::Array(items)) => {
                    items.iter().filter_map(|item| self.nested(item)).collect()
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Returns the rows inside the members of this row, with the members' names.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, Self)> {
        self.fields.iter().filter_map(|(name, value)| Some((name.as_str(), self.nested(value)?)))
    }

    /// Returns the texts of a list.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let Some(Value::Array(items)) = self.value(name) else { return Vec::new() };
        items.iter().filter_map(|item| Some(item.as_str()?.to_owned())).collect()
    }

    fn nested(&self, value: &Value) -> Option<Self> {
        let parsed;
        let object = match value {
            Value::Object(object) => object,
            Value::String(text) if text.trim_start().starts_with('{') => {
                parsed = serde_json::from_str::<Map<String, Value>>(text).ok()?;
                &parsed
            }
            _ => return None,
        };
        let fields = object.iter().map(|(name, value)| (name.to_lowercase(), value.clone()));
        Some(Self { fields: fields.collect(), place: self.place })
    }
}

fn scaled(number: f64, unit: Unit) -> Option<i64> {
    let ms = match unit {
        Unit::Seconds => number * 1e3,
        Unit::Millis => number,
        Unit::Micros => number / 1e3,
    };
    // Nobody ran a query in the year 10 000: such a number is of another unit, or none.
    (ms.abs() < 2.5e14).then(|| nearest(ms))
}

#[expect(clippy::cast_possible_truncation, reason = "the caller bounds it, and `as` saturates")]
fn nearest(ms: f64) -> i64 {
    ms.round() as i64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and negative numbers are refused"
)]
fn whole(number: f64) -> Option<u64> {
    (number >= 0.0).then(|| number.round() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Row, Unit};

    fn row(value: serde_json::Value) -> Row {
        Row::of_object(value.as_object().unwrap().clone(), 1)
    }

    #[test]
    fn figures_are_read_from_numbers_and_texts() {
        let row =
            row(json!({"a": 7, "b": "8", "c": "9.6", "d": -1, "e": "x", "f": null, "g": 1.5e3}));
        let counts = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| row.count(name));
        assert_eq!(counts, [Some(7), Some(8), Some(10), None, None, None, Some(1_500), None]);
    }

    #[test]
    fn instants_are_read_in_every_unit_and_spelling() {
        let row = row(json!({
            "seconds": "1.7145576005E9", "millis": 1_714_557_600_500_i64, "micros": 1_714_557_600_500_000_i64,
            "iso": "2024-05-01T10:00:00.5Z", "zone": "2024-05-01 03:00:00.500 -0700", "utc": "2024-05-01 10:00:00.5 UTC",
            "mail": "Wed, 01 May 2024 03:00:00 -0700", "no": "soon",
        }));
        let at = |name: &str, unit| row.instant(name, unit).map(lakebed_model::Instant::epoch_ms);
        let expected = Some(1_714_557_600_500);
        assert_eq!(at("seconds", Unit::Seconds), expected);
        assert_eq!(at("millis", Unit::Millis), expected);
        assert_eq!(at("micros", Unit::Micros), expected);
        for name in ["iso", "zone", "utc"] {
            assert_eq!(at(name, Unit::Millis), expected, "{name}");
        }
        assert_eq!(at("mail", Unit::Millis), Some(1_714_557_600_000));
        assert_eq!(at("no", Unit::Millis), None);
        assert_eq!(at("micros", Unit::Seconds), None, "a number that is no time in its unit");
    }

    #[test]
    fn objects_are_read_from_values_and_from_texts() {
        let row =
            row(json!({"a": {"B": 1}, "b": "{\"B\": 2}", "c": "[{\"B\": 3}]", "d": [{"B": 4}]}));
        assert_eq!(row.row("a").unwrap().count("b"), Some(1));
        assert_eq!(row.row("b").unwrap().count("b"), Some(2));
        assert_eq!(row.rows("c")[0].count("b"), Some(3));
        assert_eq!(row.rows("d")[0].count("b"), Some(4));
    }
}
