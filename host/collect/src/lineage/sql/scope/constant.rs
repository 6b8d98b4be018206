//! Constants of a text, as the planner would fold them.

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, DataType, DateTimeField, Expr, Function, Interval, UnaryOperator, Value,
};
use lakebed_model::Literal;

use super::condition::unnested;
use crate::{
    ColumnType,
    lineage::{literal, sql::rewrite::PARAMETER},
};

/// Constants nested deeper than this are left unread.
const MAX_DEPTH: usize = 64;

/// Returns the constant that an expression is.
pub(super) fn constant(expr: &Expr) -> Option<Literal> {
    at_depth(expr, MAX_DEPTH)
}

/// Tells whether a value stands here that the text does not have.
pub(super) fn is_parameter(expr: &Expr) -> bool {
    match unnested(expr) {
        Expr::Value(value) => matches!(value.value, Value::Placeholder(_)),
        Expr::Cast { expr, .. } => is_parameter(expr),
        Expr::Function(Function { name, .. }) => name.to_string() == PARAMETER,
        _ => false,
    }
}

/// Brings a constant to the domain of the column it is compared with.
pub(super) fn fitted(literal: Literal, kind: Option<ColumnType>) -> Option<Literal> {
    let literal = literal::coerced(literal, kind)?;
    Some(match (literal, kind) {
        (Literal::Integer(value), Some(ColumnType::Float)) => {
            #[expect(clippy::cast_precision_loss, reason = "the column holds such values only")]
            let value = value as f64;
            Literal::Float(value)
        }
        (Literal::Integer(value), Some(ColumnType::Decimal { scale })) => {
            rescaled(value.into(), 0, scale)
        }
        (Literal::Decimal { unscaled, scale: from }, Some(ColumnType::Decimal { scale })) => {
            rescaled(unscaled, from, scale)
        }
        (literal @ Literal::Decimal { .. }, Some(ColumnType::Float)) => {
            literal.as_number().map_or(literal, Literal::Float)
        }
        (Literal::Date(days), Some(ColumnType::Timestamp)) => {
            Literal::Timestamp(i64::from(days) * DAY_MICROS)
        }
        (literal, _) => literal,
    })
}

const DAY_MICROS: i64 = 86_400_000_000;

/// Writes a decimal with as many digits as its column has; more digits stay.
fn rescaled(unscaled: i128, from: u8, to: u8) -> Literal {
    let exponent = u32::from(to.saturating_sub(from));
    match 10_i128.checked_pow(exponent).and_then(|power| unscaled.checked_mul(power)) {
        Some(unscaled) => Literal::Decimal { unscaled, scale: from.max(to) },
        None => Literal::Decimal { unscaled, scale: from },
    }
}

fn at_depth(expr: &Expr, depth: usize) -> Option<Literal> {
    let depth = depth.checked_sub(1)?;
    match unnested(expr) {
        Expr::Value(value) => of_value(&value.value),
        Expr::Prefixed { value, .. } => at_depth(value, depth),
        Expr::TypedString(typed) => {
            let text = typed.value.value.clone().into_string()?;
            cast(Literal::Text(text), &typed.data_type)
        }
        Expr::Cast { expr, data_type, .. } => cast(at_depth(expr, depth)?, data_type),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => negated(at_depth(expr, depth)?),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => at_depth(expr, depth),
        Expr::BinaryOp { left, op, right } => {
            let left = at_depth(left, depth)?;
            let sign = match op {
                BinaryOperator::Plus => 1,
                BinaryOperator::Minus => -1,
                BinaryOperator::Multiply => return product(&left, &at_depth(right, depth)?),
                _ => return None,
            };
            match unnested(right) {
                Expr::Interval(interval) => shifted(left, &Span::of(interval)?, sign),
                other => sum(left, at_depth(other, depth)?, sign),
            }
        }
        _ => None,
    }
}

fn of_value(value: &Value) -> Option<Literal> {
    match value {
        Value::Number(digits, _) => {
            let digits = digits.clone();
            if let Ok(integer) = digits.parse() {
                return Some(Literal::Integer(integer));
            }
            let scale = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            u8::try_from(scale)
                .ok()
                .and_then(|scale| Literal::parse_decimal(&digits, scale))
                .or_else(|| digits.parse().ok().map(Literal::Float))
        }
        Value::Boolean(value) => Some(Literal::Boolean(*value)),
        Value::Null | Value::Placeholder(_) | Value::HexStringLiteral(_) => None,
        other => other.clone().into_string().map(Literal::Text),
    }
}

fn cast(literal: Literal, to: &DataType) -> Option<Literal> {
    match (literal, to) {
        (Literal::Text(text), DataType::Date | DataType::Date32) => {
            Literal::parse_date(text.get(..10)?)
        }
        (Literal::Timestamp(micros), DataType::Date | DataType::Date32) => {
            i32::try_from(micros.div_euclid(DAY_MICROS)).ok().map(Literal::Date)
        }
        (
            Literal::Text(text),
            DataType::Timestamp(..) | DataType::Datetime(_) | DataType::TimestampNtz(_),
        ) => Literal::parse_timestamp(&text).or_else(|| cast(Literal::parse_date(&text)?, to)),
        (
            Literal::Date(days),
            DataType::Timestamp(..) | DataType::Datetime(_) | DataType::TimestampNtz(_),
        ) => Some(Literal::Timestamp(i64::from(days) * DAY_MICROS)),
        (
            Literal::Text(text),
            DataType::Int(_) | DataType::Integer(_) | DataType::BigInt(_) | DataType::SmallInt(_),
        ) => text.trim().parse().ok().map(Literal::Integer),
        (literal, _) => Some(literal),
    }
}

fn negated(literal: Literal) -> Option<Literal> {
    Some(match literal {
        Literal::Integer(value) => Literal::Integer(value.checked_neg()?),
        Literal::Decimal { unscaled, scale } => {
            Literal::Decimal { unscaled: unscaled.checked_neg()?, scale }
        }
        Literal::Float(value) => Literal::Float(-value),
        _ => return None,
    })
}

fn sum(left: Literal, right: Literal, sign: i64) -> Option<Literal> {
    match (left, right) {
        (Literal::Integer(a), Literal::Integer(b)) => {
            a.checked_add(b.checked_mul(sign)?).map(Literal::Integer)
        }
        (Literal::Date(days), Literal::Integer(count)) => {
            let days = i64::from(days).checked_add(count.checked_mul(sign)?)?;
            i32::try_from(days).ok().map(Literal::Date)
        }
        (
            Literal::Decimal { unscaled: a, scale: s },
            Literal::Decimal { unscaled: b, scale: t },
        ) => {
            let scale = s.max(t);
            let (Literal::Decimal { unscaled: a, .. }, Literal::Decimal { unscaled: b, .. }) =
                (rescaled(a, s, scale), rescaled(b, t, scale))
            else {
                return None;
            };
            let unscaled = a.checked_add(b.checked_mul(sign.into())?)?;
            Some(Literal::Decimal { unscaled, scale })
        }
        (decimal @ Literal::Decimal { .. }, Literal::Integer(b)) => {
            sum(decimal, Literal::Decimal { unscaled: b.into(), scale: 0 }, sign)
        }
        (Literal::Integer(a), decimal @ Literal::Decimal { .. }) => {
            sum(Literal::Decimal { unscaled: a.into(), scale: 0 }, decimal, sign)
        }
        _ => None,
    }
}

fn product(left: &Literal, right: &Literal) -> Option<Literal> {
    match (left, right) {
        (Literal::Integer(a), Literal::Integer(b)) => a.checked_mul(*b).map(Literal::Integer),
        _ => None,
    }
}

/// A length of time in calendar units.
struct Span {
    months: i64,
    micros: i64,
}

impl Span {
    fn of(interval: &Interval) -> Option<Self> {
        if interval.last_field.is_some() {
            return None;
        }
        let text = match unnested(&interval.value) {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => digits.clone(),
                other => other.clone().into_string()?,
            },
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
                let Literal::Integer(count) = constant(expr)? else { return None };
                count.checked_neg()?.to_string()
            }
            _ => return None,
        };
        let mut words = text.split_whitespace();
        let count: i64 = words.next()?.parse().ok()?;
        let unit = match (words.next(), &interval.leading_field) {
            (Some(unit), None) => unit.to_ascii_lowercase(),
            (None, Some(field)) => match field {
                DateTimeField::Custom(name) => name.value.to_ascii_lowercase(),
                known => known.to_string().to_ascii_lowercase(),
            },
            _ => return None,
        };
        if words.next().is_some() {
            return None;
        }
        Self::new(count, unit.strip_suffix('s').unwrap_or(&unit))
    }

    fn new(count: i64, unit: &str) -> Option<Self> {
        let months = |factor: i64| Some(Self { months: count.checked_mul(factor)?, micros: 0 });
        let micros = |factor: i64| Some(Self { months: 0, micros: count.checked_mul(factor)? });
        match unit {
            "year" => months(12),
            "quarter" => months(3),
            "month" => months(1),
            "week" => micros(7 * DAY_MICROS),
            "day" => micros(DAY_MICROS),
            "hour" => micros(3_600_000_000),
            "minute" => micros(60_000_000),
            "second" => micros(1_000_000),
            _ => None,
        }
    }
}

fn shifted(literal: Literal, span: &Span, sign: i64) -> Option<Literal> {
    match literal {
        Literal::Date(days) => {
            let days = month_shifted(days.into(), span.months.checked_mul(sign)?)?;
            if span.micros % DAY_MICROS != 0 {
                return None;
            }
            let days = days.checked_add((span.micros / DAY_MICROS).checked_mul(sign)?)?;
            i32::try_from(days).ok().map(Literal::Date)
        }
        Literal::Timestamp(micros) => {
            let (days, rest) = (micros.div_euclid(DAY_MICROS), micros.rem_euclid(DAY_MICROS));
            let days = month_shifted(days, span.months.checked_mul(sign)?)?;
            days.checked_mul(DAY_MICROS)?
                .checked_add(rest)?
                .checked_add(span.micros.checked_mul(sign)?)
                .map(Literal::Timestamp)
        }
        // Where a date is written as plain text, the interval makes it one.
        Literal::Text(text) => match Literal::parse_date(&text) {
            Some(date) => shifted(date, span, sign),
            None => shifted(Literal::parse_timestamp(&text)?, span, sign),
        },
        _ => None,
    }
}

/// Adds calendar months; the day is cut to the month's length.
fn month_shifted(days: i64, months: i64) -> Option<i64> {
    if months == 0 {
        return Some(days);
    }
    let text = Literal::Date(i32::try_from(days).ok()?).to_string();
    let mut parts = text.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let total = year.checked_mul(12)?.checked_add(month - 1)?.checked_add(months)?;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    if !(0..=9999).contains(&year) {
        return None;
    }
    (1..=day).rev().take(4).find_map(|day| {
        match Literal::parse_date(&format!("{year:04}-{month:02}-{day:02}"))? {
            Literal::Date(days) => Some(i64::from(days)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{Expr, constant};
    use datafusion_sql::sqlparser::{dialect::GenericDialect, parser::Parser};

    fn parsed(sql: &str) -> Expr {
        Parser::new(&GenericDialect {}).try_with_sql(sql).unwrap().parse_expr().unwrap()
    }

    #[track_caller]
    fn check(sql: &str, expected: &str) {
        let found = constant(&parsed(sql)).map_or("none".to_owned(), |c| c.to_string());
        assert_eq!(found, expected, "{sql}");
    }

    #[test]
    fn arithmetic_of_constants_is_folded() {
        check("1200 + 11", "1211");
        check("-(5)", "-5");
        check("0.06 - 0.01", "0.05");
        check("1.5 + 1", "2.5");
        check("'a'", "'a'");
        check("1e3", "1000");
        check("a + 1", "none");
        check("9223372036854775807 + 1", "none");
    }

    #[test]
    fn dates_move_by_intervals() {
        check("DATE '1998-12-01' - INTERVAL '90' DAY", "1998-09-02");
        check("DATE '1994-01-01' + INTERVAL '1' YEAR", "1995-01-01");
        check("CAST('2000-01-31' AS DATE) + INTERVAL '1 month'", "2000-02-29");
        check("CAST('2000-02-28' AS DATE) + INTERVAL 30 DAYS", "2000-03-29");
        check("'2000-03-01' - INTERVAL 1 DAY", "2000-02-29");
        check("DATE '2000-01-01' + 5", "2000-01-06");
    }
}
