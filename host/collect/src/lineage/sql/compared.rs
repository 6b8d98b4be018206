//! The columns that a text compares with constants, by name alone.

use std::{collections::BTreeSet, ops::ControlFlow};

use datafusion_sql::sqlparser::ast::{BinaryOperator, Expr, Visit, visit_expressions};

use super::{Dialect, rewrite};

/// Returns the names, in lower case, or `None` when the text does not parse.
pub(crate) fn compared_columns(sql: &str) -> Option<BTreeSet<String>> {
    let statements = rewrite::parse(sql, Dialect::Databricks).ok()?;
    let mut columns = BTreeSet::new();
    each_comparison(&statements, &mut |column, _| {
        columns.insert(column);
    });
    Some(columns)
}

/// Calls back with each column that is compared with something free of columns, and the latter.
pub(super) fn each_comparison<V: Visit>(tree: &V, found: &mut dyn FnMut(String, &Expr)) {
    let _ = visit_expressions(tree, |expr| -> ControlFlow<()> {
        match expr {
            Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                pair(left, right, found);
                pair(right, left, found);
            }
            Expr::Between { expr, low, high, .. } => {
                pair(expr, low, found);
                pair(expr, high, found);
            }
            Expr::InList { expr, list, .. } => {
                for value in list {
                    pair(expr, value, found);
                }
            }
            Expr::Like { expr, pattern, .. } | Expr::ILike { expr, pattern, .. } => {
                pair(expr, pattern, found);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
}

/// Returns the last part of a column's name, in lower case.
pub(super) fn column_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(name.value.to_lowercase()),
        Expr::CompoundIdentifier(parts) => parts.last().map(|name| name.value.to_lowercase()),
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => column_name(inner),
        _ => None,
    }
}

fn pair(column: &Expr, other: &Expr, found: &mut dyn FnMut(String, &Expr)) {
    if let Some(name) = column_name(column)
        && is_constant(other)
    {
        found(name, other);
    }
}

fn is_constant(expr: &Expr) -> bool {
    let flow = visit_expressions(expr, |part| match part {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Subquery(_)
        | Expr::Exists { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    flow.is_continue()
}

const fn is_comparison(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
            | BinaryOperator::Spaceship
    )
}

#[cfg(test)]
mod tests {
    use super::compared_columns;

    #[track_caller]
    fn check(sql: &str, expected: &[&str]) {
        let found = compared_columns(sql).unwrap();
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn columns_compared_with_constants_are_listed_and_join_keys_are_not() {
        check(
            "SELECT 1 FROM a JOIN b ON a.k = b.k WHERE a.X BETWEEN 1 AND 2 AND 5 < y \
             AND z IN ('p') AND d < DATE'1994-01-01' + INTERVAL '1' YEAR AND n LIKE 'q%'",
            &["d", "n", "x", "y", "z"],
        );
    }

    #[test]
    fn comparisons_with_a_subquery_are_no_constants() {
        check("SELECT 1 FROM a WHERE a.x > (SELECT avg(y) FROM b)", &[]);
        assert!(compared_columns("SELECT ) FROM").is_none());
    }
}
