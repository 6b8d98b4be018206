//! From the planner's conditions to tests of base columns.

use datafusion_common::ScalarValue;
use datafusion_expr::{BinaryExpr, Expr, Operator, expr::InList};
use lakebed_model::{FilterOperator, Literal};

use super::rewrite::PARAMETER;

use crate::{
    ColumnType,
    lineage::{
        literal,
        predicate::{Predicate, Test},
    },
};

/// Finds the base column that an expression passes on, with the type its table stores it in.
pub(super) type ColumnOf<'a> = dyn FnMut(&Expr) -> Option<(String, Option<ColumnType>)> + 'a;

/// Reads a condition.
pub(super) fn read(expr: &Expr, column_of: &mut ColumnOf<'_>) -> Predicate {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            Predicate::And(vec![read(left, column_of), read(right, column_of)])
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Predicate::Or(vec![read(left, column_of), read(right, column_of)])
        }
        Expr::Not(inner) => read(inner, column_of).negated(),
        Expr::IsNotNull(_) | Expr::Literal(..) => Predicate::Always,
        Expr::IsNull(inner) => match column_of(inner) {
            Some((column, _)) => Predicate::Column(column, Test::is_null()),
            None => opaque(expr, column_of),
        },
        other => sharp(other, column_of).unwrap_or_else(|| opaque(other, column_of)),
    }
}

/// A test of one column against constants.
fn sharp(expr: &Expr, column_of: &mut ColumnOf<'_>) -> Option<Predicate> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            if let Some(test) = parameter_test(*op, left, right) {
                let side = if is_parameter(left) { right } else { left };
                return column_of(side).map(|(column, _)| Predicate::Column(column, test));
            }
            let (side, operator, value) = match (constant(left), constant(right)) {
                (None, Some(value)) => (left, *op, value),
                (Some(value), None) => (right, op.swap()?, value),
                _ => return None,
            };
            let (column, kind) = column_of(side)?;
            let value = literal::coerced(value, kind)?;
            let test = match operator {
                Operator::Eq | Operator::IsNotDistinctFrom => Test::equal(value),
                Operator::Lt => Test::at_most(value, false),
                Operator::LtEq => Test::at_most(value, true),
                Operator::Gt => Test::at_least(value, false),
                Operator::GtEq => Test::at_least(value, true),
                _ => return None,
            };
            Some(Predicate::Column(column, test))
        }
        Expr::Between(between) if !between.negated => {
            let (column, kind) = column_of(&between.expr)?;
            if is_parameter(&between.low) && is_parameter(&between.high) {
                return Some(Predicate::Column(column, Test::unknown(FilterOperator::Range)));
            }
            let bound = |end: &Expr| literal::coerced(constant(end)?, kind);
            let low = Test::at_least(bound(&between.low)?, true);
            let high = Test::at_most(bound(&between.high)?, true);
            Some(Predicate::And(vec![
                Predicate::Column(column.clone(), low),
                Predicate::Column(column, high),
            ]))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let (column, kind) = column_of(expr)?;
            if list.iter().any(is_parameter) {
                return Some(Predicate::Column(column, Test::unknown(FilterOperator::In)));
            }
            let values = list.iter().map(|value| literal::coerced(constant(value)?, kind));
            Some(Predicate::Column(column, Test::one_of(values.collect::<Option<_>>()?)))
        }
        Expr::Like(like) if !like.negated && !like.case_insensitive => {
            let (column, _) = column_of(&like.expr)?;
            let Some(Literal::Text(pattern)) = constant(&like.pattern) else { return None };
            let prefix = pattern.strip_suffix('%')?;
            // An escape before a wildcard, or a wildcard inside, is no plain prefix.
            let plain = !prefix.is_empty() && !prefix.contains(['%', '_', '\\']);
            plain.then(|| Predicate::Column(column, Test::prefix(prefix)))
        }
        _ => None,
    }
}

/// A comparison with a value that the text does not have.
fn parameter_test(operator: Operator, left: &Expr, right: &Expr) -> Option<Test> {
    if is_parameter(left) == is_parameter(right) {
        return None;
    }
    match operator {
        Operator::Eq | Operator::IsNotDistinctFrom => Some(Test::unknown(FilterOperator::Equal)),
        Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => {
            Some(Test::unknown(FilterOperator::Range))
        }
        _ => None,
    }
}

fn is_parameter(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(function) => function.name() == PARAMETER,
        Expr::Cast(cast) => is_parameter(&cast.expr),
        Expr::Alias(alias) => is_parameter(&alias.expr),
        _ => false,
    }
}

/// Mentions every base column below an expression.
fn opaque(expr: &Expr, column_of: &mut ColumnOf<'_>) -> Predicate {
    let columns = expr.column_refs().into_iter().cloned().map(Expr::Column);
    let mut names: Vec<String> =
        columns.filter_map(|column| column_of(&column)).map(|(name, _)| name).collect();
    names.sort();
    Predicate::Opaque(names)
}

fn constant(expr: &Expr) -> Option<Literal> {
    match expr {
        Expr::Literal(value, _) => from_scalar(value),
        Expr::Cast(cast) => match cast.expr.as_ref() {
            Expr::Literal(value, _) => from_scalar(&value.cast_to(cast.field.data_type()).ok()?),
            _ => None,
        },
        Expr::Alias(alias) => constant(&alias.expr),
        _ => None,
    }
}

fn from_scalar(value: &ScalarValue) -> Option<Literal> {
    match value {
        ScalarValue::Boolean(value) => value.map(Literal::Boolean),
        ScalarValue::Int8(value) => value.map(|v| Literal::Integer(v.into())),
        ScalarValue::Int16(value) => value.map(|v| Literal::Integer(v.into())),
        ScalarValue::Int32(value) => value.map(|v| Literal::Integer(v.into())),
        ScalarValue::Int64(value) => value.map(Literal::Integer),
        ScalarValue::UInt8(value) => value.map(|v| Literal::Integer(v.into())),
        ScalarValue::UInt16(value) => value.map(|v| Literal::Integer(v.into())),
        ScalarValue::UInt32(value) => value.map(|v| Literal::Integer(v.into())),
        ScalarValue::UInt64(value) => i64::try_from((*value)?).ok().map(Literal::Integer),
        ScalarValue::Float32(value) => value.map(|v| Literal::Float(v.into())),
        ScalarValue::Float64(value) => value.map(Literal::Float),
        ScalarValue::Decimal128(value, _, scale) => {
            let scale = u8::try_from(*scale).ok()?;
            value.map(|unscaled| Literal::Decimal { unscaled, scale })
        }
        ScalarValue::Utf8(value) | ScalarValue::LargeUtf8(value) | ScalarValue::Utf8View(value) => {
            value.clone().map(Literal::Text)
        }
        ScalarValue::Date32(value) => value.map(Literal::Date),
        ScalarValue::Date64(value) => {
            i32::try_from((*value)?.div_euclid(86_400_000)).ok().map(Literal::Date)
        }
        ScalarValue::TimestampSecond(value, _) => scaled(*value, 1_000_000, 1),
        ScalarValue::TimestampMillisecond(value, _) => scaled(*value, 1_000, 1),
        ScalarValue::TimestampMicrosecond(value, _) => scaled(*value, 1, 1),
        ScalarValue::TimestampNanosecond(value, _) => scaled(*value, 1, 1_000),
        _ => None,
    }
}

fn scaled(value: Option<i64>, times: i64, per: i64) -> Option<Literal> {
    Some(Literal::Timestamp(value?.checked_mul(times)?.div_euclid(per)))
}
