//! Constants as logs print them, typed by the column they are compared with.

use lakebed_model::Literal;

use crate::{ColumnType, time};

/// Reads a constant for a column of a known type; `None` when the text is no such constant.
///
/// For a column of unknown type the text decides: integer, decimal, date, else text.
pub(crate) fn typed(text: &str, kind: Option<ColumnType>) -> Option<Literal> {
    if text == "null" {
        return None;
    }
    match kind {
        Some(ColumnType::Boolean) => text.parse().ok().map(Literal::Boolean),
        Some(ColumnType::Integer) => number(text),
        Some(ColumnType::Decimal { .. }) => number(text),
        // No range starts or ends at NaN, and an infinity bounds nothing.
        Some(ColumnType::Float) => {
            text.parse().ok().filter(|value: &f64| value.is_finite()).map(Literal::Float)
        }
        Some(ColumnType::Date) => Literal::parse_date(text.get(..10)?),
        Some(ColumnType::Timestamp) => time::parse_micros(text).map(Literal::Timestamp),
        Some(ColumnType::Text) => Some(Literal::Text(text.to_owned())),
        Some(ColumnType::Other) => None,
        None => number(text)
            .or_else(|| Literal::parse_date(text))
            .or_else(|| Some(Literal::Text(text.to_owned()))),
    }
}

/// Turns a constant into the domain of its column where its own domain is another: the text of a
/// date compared with a date column becomes a date.
pub(crate) fn coerced(literal: Literal, kind: Option<ColumnType>) -> Option<Literal> {
    match (&literal, kind) {
        (Literal::Text(text), Some(kind)) if kind != ColumnType::Text => typed(text, Some(kind)),
        (Literal::Timestamp(micros), Some(ColumnType::Date)) if micros % 86_400_000_000 == 0 => {
            i32::try_from(micros / 86_400_000_000).ok().map(Literal::Date)
        }
        _ => Some(literal),
    }
}

/// Reads an integer, or a decimal with its scale as written.
fn number(text: &str) -> Option<Literal> {
    if let Ok(integer) = text.parse() {
        return Some(Literal::Integer(integer));
    }
    let (text, exponent) = match text.split_once(['E', 'e']) {
        Some((text, exponent)) => (text, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let magnitude: i128 = format!("{whole}{fraction}").parse().ok()?;
    let unscaled = if text.starts_with('-') { -magnitude } else { magnitude };
    scaled(unscaled, i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?)
}

/// `unscaled` · 10^−`scale`. Scales below zero, as in `1E+3`, are written out.
fn scaled(unscaled: i128, scale: i32) -> Option<Literal> {
    if scale >= 0 {
        return Some(Literal::Decimal { unscaled, scale: u8::try_from(scale).ok()? });
    }
    let unscaled = unscaled.checked_mul(10_i128.checked_pow(scale.unsigned_abs())?)?;
    Some(Literal::Decimal { unscaled, scale: 0 })
}

/// Reads the columns of Spark's `struct<a:bigint,b:decimal(15,2)>`.
pub(crate) fn read_schema(text: &str) -> Vec<(String, ColumnType)> {
    let Some(inner) = text.trim().strip_prefix("struct<").and_then(|rest| rest.strip_suffix('>'))
    else {
        return Vec::new();
    };
    let mut columns = Vec::new();
    let (mut depth, mut start) = (0_usize, 0_usize);
    for (at, c) in inner.char_indices().chain(std::iter::once((inner.len(), ','))) {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                if let Some((name, kind)) = inner[start..at].split_once(':') {
                    columns.push((name.trim().to_owned(), spark_type(kind.trim())));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    columns
}

fn spark_type(name: &str) -> ColumnType {
    match name.split('(').next().unwrap_or(name) {
        "boolean" => ColumnType::Boolean,
        "tinyint" | "smallint" | "int" | "bigint" => ColumnType::Integer,
        "decimal" => {
            let scale = name.trim_end_matches(')').rsplit(',').next().map(str::trim);
            ColumnType::Decimal { scale: scale.and_then(|s| s.parse().ok()).unwrap_or(0) }
        }
        "float" | "double" => ColumnType::Float,
        "date" => ColumnType::Date,
        "timestamp" | "timestamp_ntz" => ColumnType::Timestamp,
        "string" | "char" | "varchar" => ColumnType::Text,
        _ => ColumnType::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::{coerced, read_schema, typed};
    use crate::ColumnType;
    use lakebed_model::Literal;

    #[track_caller]
    fn check(text: &str, kind: Option<ColumnType>, expected: Option<Literal>) {
        assert_eq!(typed(text, kind), expected, "{text}");
    }

    #[test]
    fn constants_take_the_type_of_their_column() {
        check("348543", Some(ColumnType::Integer), Some(Literal::Integer(348_543)));
        check("348543", Some(ColumnType::Text), Some(Literal::Text("348543".to_owned())));
        check("1994-01-01", Some(ColumnType::Date), Some(Literal::Date(8766)));
        let decimal = Literal::Decimal { unscaled: -4500, scale: 2 };
        check("-45.00", Some(ColumnType::Decimal { scale: 2 }), Some(decimal));
        check("0.5", Some(ColumnType::Float), Some(Literal::Float(0.5)));
        check(
            "1970-01-01 00:00:01.5",
            Some(ColumnType::Timestamp),
            Some(Literal::Timestamp(1_500_000)),
        );
    }

    #[test]
    fn decimals_with_exponents_are_written_out() {
        let kind = Some(ColumnType::Decimal { scale: 8 });
        check("1E-8", kind, Some(Literal::Decimal { unscaled: 1, scale: 8 }));
        check("-2.50E+3", kind, Some(Literal::Decimal { unscaled: -2500, scale: 0 }));
        check("1E+99", kind, None);
        check("1E-999", kind, None);
        check("1E", kind, None);
        check("1.5E2", Some(ColumnType::Float), Some(Literal::Float(150.0)));
        check("NaN", Some(ColumnType::Float), None);
        check("Infinity", Some(ColumnType::Float), None);
    }

    #[test]
    fn text_that_is_no_constant_of_the_type_is_refused() {
        check("null", Some(ColumnType::Text), None);
        check("abc", Some(ColumnType::Integer), None);
        check("1994-13-01", Some(ColumnType::Date), None);
        check(".", Some(ColumnType::Decimal { scale: 2 }), None);
        check("(1, 2)", Some(ColumnType::Other), None);
    }

    #[test]
    fn without_a_type_the_text_decides() {
        check("5", None, Some(Literal::Integer(5)));
        check("1994-01-01", None, Some(Literal::Date(8766)));
        check("1001-5000", None, Some(Literal::Text("1001-5000".to_owned())));
    }

    #[test]
    fn text_compared_with_a_date_column_becomes_a_date() {
        let text = Literal::Text("1994-01-01".to_owned());
        assert_eq!(coerced(text.clone(), Some(ColumnType::Date)), Some(Literal::Date(8766)));
        assert_eq!(coerced(text.clone(), Some(ColumnType::Text)), Some(text));
    }

    #[test]
    fn a_read_schema_gives_names_and_types_past_nested_columns() {
        let columns =
            read_schema("struct<a:bigint,b:decimal(15,2),c:struct<d:int,e:string>,f:date>");
        let expected = [
            ("a", ColumnType::Integer),
            ("b", ColumnType::Decimal { scale: 2 }),
            ("c", ColumnType::Other),
            ("f", ColumnType::Date),
        ];
        let expected: Vec<_> = expected.map(|(name, kind)| (name.to_owned(), kind)).into();
        assert_eq!(columns, expected);
        assert_eq!(read_schema("struct<>"), []);
    }
}
