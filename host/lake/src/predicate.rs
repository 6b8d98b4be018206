//! What a predicate of a statement may hold.

use std::ops::ControlFlow;

use datafusion::{
    error::{DataFusionError, Result},
    logical_expr::Expr,
    sql::sqlparser::{
        ast::{self, visit_expressions},
        dialect::SparkSqlDialect,
        parser::Parser,
    },
};
use lakebed_layout::LayoutError;
use lakebed_model::TableName;

/// Refuses a predicate that asks other tables: each file is judged by itself.
///
/// # Errors
/// Fails when the text is no expression, or has a query in it.
pub(crate) fn check_text(table: &TableName, text: &str) -> Result<Option<LayoutError>> {
    let parse = || Parser::new(&SparkSqlDialect {}).try_with_sql(text)?.parse_expr();
    let expression = parse().map_err(|error| DataFusionError::SQL(Box::new(error), None))?;
    let found = visit_expressions(&expression, |part| match part {
        ast::Expr::Subquery(_) | ast::Expr::InSubquery { .. } | ast::Expr::Exists { .. } => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    Ok(found.is_break().then(|| LayoutError::NotAllowed {
        statement: "run DELETE with a query in its predicate".to_owned(),
        table: table.to_string(),
        class: "DELTA_UNSUPPORTED_SUBQUERY",
        reason: "rows are judged by their own columns; run the query first and list what it gives"
            .to_owned(),
    }))
}

/// Refuses a predicate that says another thing each time it is asked: it is asked more than once.
///
/// # Errors
/// Fails with Delta's error class.
pub(crate) fn check(table: &TableName, condition: &Expr) -> std::result::Result<(), LayoutError> {
    if !condition.is_volatile() {
        return Ok(());
    }
    Err(LayoutError::NotAllowed {
        statement: format!("run DELETE WHERE {condition}"),
        table: table.to_string(),
        class: "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        reason: "the predicate must say the same of a row each time it is asked".to_owned(),
    })
}
