//! From text to queries that the planner accepts.
//!
//! What the planner refuses though lineage does not need it is removed or respelled: `SORT BY` and
//! its kin, time travel, samples, hints, bare `SEMI` and `ANTI` joins, `= ANY (query)`, `LATERAL
//! VIEW` (its columns become computed ones). Date arithmetic by function becomes intervals, which
//! fold to constants. Statements that read tables to write one become the query they read with.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::{
    ast::{
        BinaryOperator, Delete, Expr, FromTable, FunctionArg, FunctionArgExpr, FunctionArguments,
        Join, JoinConstraint, JoinOperator, LateralView, Merge, Query, Select, SetExpr, Statement,
        TableFactor, TableWithJoins, Update, UpdateTableFromKind, VisitMut as _, VisitorMut,
    },
    dialect::GenericDialect,
    parser::{Parser, ParserError},
    tokenizer::{Token, TokenWithSpan, Tokenizer},
};

use super::{Dialect, LineageError};

/// Parses a text and returns the queries in it; statements that read no table are left out.
pub(super) fn queries(sql: &str, dialect: Dialect) -> Result<Vec<Query>, LineageError> {
    let statements = parse(sql, dialect)?;
    let mut queries: Vec<Query> = statements.into_iter().filter_map(query_of).collect();
    for query in &mut queries {
        let _ = query.visit(&mut Respell);
    }
    Ok(queries)
}

/// Parses a text into statements, with quoted names in lower case where the dialect folds them.
pub(super) fn parse(sql: &str, dialect: Dialect) -> Result<Vec<Statement>, LineageError> {
    let rules = dialect.rules();
    let mut tokens = Tokenizer::new(&*rules, sql).tokenize_with_location().map_err(|error| {
        LineageError::Parse {
            line: error.location.line,
            column: error.location.column,
            message: error.message,
        }
    })?;
    for token in &mut tokens {
        fold_case(token, dialect);
    }
    Parser::new(&*rules)
        .with_tokens_with_locations(tokens)
        .parse_statements()
        .map_err(|error| parse_error(&error, sql))
}

fn fold_case(token: &mut TokenWithSpan, dialect: Dialect) {
    if let Token::Word(word) = &mut token.token
        && word.quote_style.is_some()
        && !dialect.quoted_names_keep_case(&word.value)
    {
        word.value = word.value.to_lowercase();
    }
}

/// The parser puts the position behind its message, except at the end of the text.
fn parse_error(error: &ParserError, sql: &str) -> LineageError {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
        ParserError::RecursionLimitExceeded => "expressions are nested too deeply",
    };
    let (message, place) = text.split_once(" at Line: ").unwrap_or((text, ""));
    let place = place
        .split_once(", Column: ")
        .and_then(|(line, column)| Some((line.parse().ok()?, column.trim().parse().ok()?)));
    let (line, column) = place.unwrap_or_else(|| end_of(sql));
    LineageError::Parse { line, column, message: message.to_owned() }
}

/// The position after the last character, both counts from 1.
fn end_of(sql: &str) -> (u64, u64) {
    let breaks = sql.bytes().filter(|byte| *byte == b'\n').count();
    let last = sql.rsplit('\n').next().unwrap_or_default().chars().count();
    (breaks as u64 + 1, last as u64 + 1)
}

fn query_of(statement: Statement) -> Option<Query> {
    match statement {
        Statement::Query(query) => Some(*query),
        Statement::Insert(insert) => insert.source.map(|query| *query),
        Statement::CreateTable(table) => table.query.map(|query| *query),
        Statement::CreateView(view) => Some(*view.query),
        Statement::Merge(merge) => Some(query_of_merge(merge)),
        Statement::Update(update) => Some(query_of_update(update)),
        Statement::Delete(delete) => Some(query_of_delete(delete)),
        _ => None,
    }
}

fn query_of_merge(merge: Merge) -> Query {
    let join = Join {
        relation: merge.source,
        global: false,
        join_operator: JoinOperator::Inner(JoinConstraint::On(*merge.on)),
    };
    select_from(vec![TableWithJoins { relation: merge.table, joins: vec![join] }], None)
}

fn query_of_update(update: Update) -> Query {
    let mut tables = vec![update.table];
    if let Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) =
        update.from
    {
        tables.extend(from);
    }
    select_from(tables, update.selection)
}

fn query_of_delete(delete: Delete) -> Query {
    let (FromTable::WithFromKeyword(mut tables) | FromTable::WithoutKeyword(mut tables)) =
        delete.from;
    tables.extend(delete.using.into_iter().flatten());
    select_from(tables, delete.selection)
}

fn select_from(tables: Vec<TableWithJoins>, selection: Option<Expr>) -> Query {
    let mut query = fixed_query("SELECT 1");
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = tables;
        select.selection = selection;
    }
    query
}

/// Parses a query of ours.
fn fixed_query(sql: &str) -> Query {
    Parser::new(&GenericDialect {})
        .try_with_sql(sql)
        .and_then(|mut parser| parser.parse_query())
        .map(|query| *query)
        .expect("a query written in this file parses")
}

struct Respell;

impl VisitorMut for Respell {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.sort_by.clear();
        select.cluster_by.clear();
        select.distribute_by.clear();
        let views = std::mem::take(&mut select.lateral_views);
        select.from.extend(views.iter().map(computed_columns));
        for table in &mut select.from {
            respell_joins(&mut table.joins);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { version, sample, index_hints, with_hints, partitions, .. } => {
                *version = None;
                *sample = None;
                index_hints.clear();
                with_hints.clear();
                partitions.clear();
            }
            TableFactor::Derived { sample, .. } => *sample = None,
            TableFactor::NestedJoin { table_with_joins, .. } => {
                respell_joins(&mut table_with_joins.joins);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(respelled) = any_as_in(expr).or_else(|| date_function(expr)) {
            *expr = respelled;
        }
        ControlFlow::Continue(())
    }
}

/// `x = ANY (query)` is `x IN (query)`.
fn any_as_in(expr: &Expr) -> Option<Expr> {
    let Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } = expr else {
        return None;
    };
    let Expr::Subquery(subquery) = right.as_ref() else { return None };
    Some(Expr::InSubquery { expr: left.clone(), subquery: subquery.clone(), negated: false })
}

/// `add_months(d, 3)` is `d + INTERVAL '3' MONTH`; `date_add` and `date_sub` count days.
fn date_function(expr: &Expr) -> Option<Expr> {
    let Expr::Function(function) = expr else { return None };
    let (sign, unit) = match function.name.to_string().to_lowercase().as_str() {
        "add_months" => ("+", "MONTH"),
        "date_add" => ("+", "DAY"),
        "date_sub" => ("-", "DAY"),
        _ => return None,
    };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [date, FunctionArg::Unnamed(FunctionArgExpr::Expr(count))] = list.args.as_slice() else {
        return None;
    };
    let count: i32 = count.to_string().parse().ok()?;
    let text = format!("({date} {sign} INTERVAL '{count}' {unit})");
    Parser::new(&GenericDialect {}).try_with_sql(&text).ok()?.parse_expr().ok()
}

fn respell_joins(joins: &mut [Join]) {
    for join in joins {
        let operator = &mut join.join_operator;
        *operator = match std::mem::replace(operator, JoinOperator::CrossJoin(JoinConstraint::None))
        {
            JoinOperator::Semi(constraint) => JoinOperator::LeftSemi(constraint),
            JoinOperator::Anti(constraint) => JoinOperator::LeftAnti(constraint),
            JoinOperator::StraightJoin(constraint) => JoinOperator::Inner(constraint),
            same => same,
        };
    }
}

/// Stands for the columns that a `LATERAL VIEW` computes.
fn computed_columns(view: &LateralView) -> TableWithJoins {
    let mut columns: Vec<String> =
        view.lateral_col_alias.iter().map(|alias| alias.value.to_lowercase()).collect();
    if columns.is_empty() {
        columns = ["pos", "col", "key", "value"].map(str::to_owned).into();
    }
    let items: Vec<String> =
        columns.iter().map(|column| format!("'' AS \"{}\"", column.replace('"', ""))).collect();
    let name = view.lateral_view_name.to_string().to_lowercase().replace(['"', '`'], "");
    let text = format!("SELECT 1 FROM (SELECT {}) AS \"{name}\"", items.join(", "));
    match *fixed_query(&text).body {
        SetExpr::Select(select) => select.from.into_iter().next(),
        _ => None,
    }
    .expect("the text above has one table")
}

#[cfg(test)]
mod tests {
    use super::{Dialect, queries};

    #[track_caller]
    fn check(dialect: Dialect, sql: &str, expected: &[&str]) {
        let found: Vec<String> =
            queries(sql, dialect).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_lineage_does_not_need_is_removed() {
        check(
            Dialect::Spark,
            "SELECT a FROM `T` DISTRIBUTE BY a SORT BY a",
            &["SELECT a FROM `t`"],
        );
        check(
            Dialect::Spark,
            "SELECT 1 FROM a SEMI JOIN b ON a.x = b.x",
            &["SELECT 1 FROM a LEFT SEMI JOIN b ON a.x = b.x"],
        );
    }

    #[test]
    fn date_functions_become_intervals_and_any_becomes_in() {
        check(
            Dialect::Spark,
            "SELECT 1 FROM t WHERE d < add_months(DATE'1996-04-01', 3) AND e > date_sub(f, 7)",
            &["SELECT 1 FROM t WHERE d < (DATE '1996-04-01' + INTERVAL '3' MONTH) AND \
               e > (f - INTERVAL '7' DAY)"],
        );
        check(
            Dialect::Postgres,
            "SELECT 1 FROM t WHERE a = ANY (SELECT b FROM s)",
            &["SELECT 1 FROM t WHERE a IN (SELECT b FROM s)"],
        );
    }

    #[test]
    fn lateral_views_become_computed_columns() {
        check(
            Dialect::Spark,
            "SELECT x FROM t LATERAL VIEW explode(xs) v AS x",
            &["SELECT x FROM t, (SELECT '' AS \"x\") AS \"v\""],
        );
    }

    #[test]
    fn writing_statements_become_what_they_read() {
        check(Dialect::Spark, "INSERT INTO t SELECT a FROM s", &["SELECT a FROM s"]);
        check(Dialect::Spark, "CREATE TABLE t AS SELECT a FROM s", &["SELECT a FROM s"]);
        check(
            Dialect::Spark,
            "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN DELETE",
            &["SELECT 1 FROM t INNER JOIN s ON t.k = s.k"],
        );
        check(Dialect::Spark, "DELETE FROM t WHERE a < 5", &["SELECT 1 FROM t WHERE a < 5"]);
        check(Dialect::Spark, "UPDATE t SET a = 1 WHERE b = 2", &["SELECT 1 FROM t WHERE b = 2"]);
        check(Dialect::Spark, "SHOW TABLES", &[]);
    }

    #[track_caller]
    fn check_error(sql: &str, expected: &str) {
        let error = queries(sql, Dialect::Generic).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_syntax_error_has_its_position() {
        check_error(
            "SELECT a\nFROM t WHERE )",
            "parse SQL at line 2, column 14: Expected: an expression, found: )",
        );
        check_error(
            "SELECT a\nFROM",
            "parse SQL at line 2, column 5: Expected: identifier, found: EOF",
        );
        check_error("SELECT 'a", "parse SQL at line 1, column 8: Unterminated string literal");
    }
}
