//! Types of columns: from the catalog, from Arrow, and guessed from what a text does with them.

use std::{collections::BTreeMap, ops::ControlFlow};

use datafusion_common::arrow::datatypes::{DataType, TimeUnit};
use datafusion_sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Query, UnaryOperator, Value, visit_expressions,
};

use super::compared::{column_name, each_comparison};
use crate::ColumnType;

/// The Arrow type that stands for a column type while a statement is planned.
pub(super) fn to_arrow(kind: ColumnType) -> DataType {
    match kind {
        ColumnType::Boolean => DataType::Boolean,
        ColumnType::Integer => DataType::Int64,
        ColumnType::Decimal { scale } => {
            DataType::Decimal128(38, i8::try_from(scale.min(38)).unwrap_or(0))
        }
        ColumnType::Float => DataType::Float64,
        ColumnType::Date => DataType::Date32,
        ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        ColumnType::Text | ColumnType::Other => DataType::Utf8,
    }
}

/// The column type of an Arrow type.
pub(super) fn from_arrow(kind: &DataType) -> ColumnType {
    match kind {
        DataType::Boolean => ColumnType::Boolean,
        kind if kind.is_integer() => ColumnType::Integer,
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
            ColumnType::Decimal { scale: u8::try_from(*scale).unwrap_or(0) }
        }
        kind if kind.is_floating() => ColumnType::Float,
        DataType::Date32 | DataType::Date64 => ColumnType::Date,
        DataType::Timestamp(..) => ColumnType::Timestamp,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnType::Text,
        _ => ColumnType::Other,
    }
}

/// Guesses the types of columns of unknown tables, by the column's name alone: first from
/// constants they are compared with, then from arithmetic and functions.
pub(super) fn guess(query: &Query) -> BTreeMap<String, ColumnType> {
    let mut guesses = BTreeMap::new();
    each_comparison(query, &mut |column, constant| {
        if let Some(kind) = type_of_constant(constant) {
            guesses.entry(column).or_insert(kind);
        }
    });
    let _ = visit_expressions(query, |expr| -> ControlFlow<()> {
        match expr {
            Expr::BinaryOp { left, op, right } if is_arithmetic(op) => {
                let is_date = [left, right].iter().any(|side| matches!(***side, Expr::Interval(_)));
                let kind = if is_date { ColumnType::Date } else { ColumnType::Float };
                for column in [left, right].iter().filter_map(|side| column_name(side)) {
                    guesses.entry(column).or_insert(kind);
                }
            }
            Expr::Extract { expr, .. } => {
                if let Some(column) = column_name(expr) {
                    guesses.entry(column).or_insert(ColumnType::Date);
                }
            }
            Expr::Function(function) => guess_argument(function, &mut guesses),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    guesses
}

fn guess_argument(function: &Function, guesses: &mut BTreeMap<String, ColumnType>) {
    let name = function.name.to_string().to_lowercase();
    let kind = match name.as_str() {
        "sum" | "avg" | "mean" | "stddev" | "variance" | "abs" | "round" | "floor" | "ceil" => {
            ColumnType::Float
        }
        "year" | "month" | "day" | "quarter" | "date_trunc" | "add_months" | "date_add"
        | "date_part" => ColumnType::Date,
        _ => return,
    };
    let FunctionArguments::List(list) = &function.args else { return };
    for argument in &list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument
            && let Some(column) = column_name(expr)
        {
            guesses.entry(column).or_insert(kind);
        }
    }
}

fn type_of_constant(expr: &Expr) -> Option<ColumnType> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) if digits.to_string().contains(['.', 'e', 'E']) => {
                Some(ColumnType::Float)
            }
            Value::Number(..) => Some(ColumnType::Integer),
            Value::Boolean(_) => Some(ColumnType::Boolean),
            Value::Null | Value::Placeholder(_) => None,
            _ => Some(ColumnType::Text),
        },
        Expr::TypedString(typed) => type_of_name(&typed.data_type),
        Expr::Cast { data_type, .. } => type_of_name(data_type),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr }
        | Expr::Nested(expr) => type_of_constant(expr),
        Expr::BinaryOp { left, .. } => type_of_constant(left),
        _ => None,
    }
}

fn type_of_name(name: &SqlType) -> Option<ColumnType> {
    match name {
        SqlType::Date | SqlType::Date32 => Some(ColumnType::Date),
        SqlType::Timestamp(..) | SqlType::Datetime(_) | SqlType::TimestampNtz(_) => {
            Some(ColumnType::Timestamp)
        }
        _ => None,
    }
}

const fn is_arithmetic(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
    )
}
