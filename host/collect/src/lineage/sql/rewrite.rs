//! From text to queries that the planner accepts.
//!
//! What the planner refuses though lineage does not need it is removed or respelled: `SORT BY` and
//! its kin, samples, limits, bare `SEMI` and `ANTI` joins, `= ANY (query)`, `LATERAL VIEW` (its
//! columns become computed ones). Parameters become calls of a function nobody knows. Date arithmetic
//! by function becomes intervals, which fold to constants; long chains of `OR` become lists and
//! balanced trees. Statements that read tables to write one become the query they read with.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::{
    ast::{
        BinaryOperator, DateTimeField, Delete, Expr, FromTable, Function, FunctionArg,
        FunctionArgExpr, FunctionArguments, Ident, Interval, Join, JoinConstraint, JoinOperator,
        LateralView, Merge, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
        TableWithJoins, Update, UpdateTableFromKind, Value, ValueWithSpan, VisitMut as _,
        VisitorMut,
    },
    dialect::GenericDialect,
    parser::{Parser, ParserError},
    tokenizer::{Span, Token, TokenWithSpan, Tokenizer},
};

use super::{
    Dialect, LineageError,
    bounded::Bounded,
    chains,
    depth::{Depth, MAX_DEPTH},
    scope::Hints,
    template, tokens,
};

/// The function that stands for a value which the text does not have.
pub(super) const PARAMETER: &str = "__lakebed_parameter";

/// A text in tokens, fit for the parser.
pub(super) struct Text {
    tokens: Vec<TokenWithSpan>,
    dialect: Dialect,
    end: (u64, u64),
    pub(super) depth: Depth,
    pub(super) hints: Hints,
}

impl Text {
    /// Reads the tokens of a text.
    pub(super) fn read(sql: &str, dialect: Dialect) -> Result<Self, LineageError> {
        let filled = template::replaced(sql);
        let tokens = Tokenizer::new(&*dialect.token_rules(), &filled)
            .tokenize_with_location()
            .map_err(|error| LineageError::Parse {
                line: error.location.line,
                column: error.location.column,
                message: error.message,
            })?;
        let depth = Depth::of(&tokens);
        if !depth.is_bounded() {
            return Err(LineageError::TooDeep {
                levels: depth.levels,
                links: depth.links,
                tokens: depth.tokens,
            });
        }
        let hints = Hints::read(&tokens);
        let tokens = tokens::respelled(tokens, dialect);
        Ok(Self { tokens, dialect, end: end_of(&filled), depth, hints })
    }

    /// Parses each statement; one that fails does not take the others with it.
    pub(super) fn statements(&self) -> (Vec<Statement>, Vec<LineageError>) {
        let (mut statements, mut failures) = (Vec::new(), Vec::new());
        for part in self.tokens.split(|token| token.token == Token::SemiColon) {
            if part.iter().all(|token| matches!(token.token, Token::Whitespace(_) | Token::EOF)) {
                continue;
            }
            match self.parse(part) {
                Ok(mut parsed) => statements.append(&mut parsed),
                Err(error) => failures.push(error),
            }
        }
        (statements, failures)
    }

    /// Parses by the dialect's grammar, else by that of a relative: what an engine accepts is often
    /// newer than what the parser knows of its dialect.
    fn parse(&self, part: &[TokenWithSpan]) -> Result<Vec<Statement>, LineageError> {
        let attempt = |dialect: Dialect| {
            Parser::new(&Bounded::new(dialect.rules(), part.len()))
                .with_recursion_limit(4 * MAX_DEPTH)
                .with_tokens_with_locations(part.to_vec())
                .parse_statements()
        };
        let error = match attempt(self.dialect) {
            Ok(statements) => return Ok(statements),
            Err(error) => error,
        };
        const RELATIVES: [Dialect; 4] =
            [Dialect::Generic, Dialect::Databricks, Dialect::DuckDb, Dialect::Snowflake];
        RELATIVES
            .into_iter()
            .filter(|dialect| *dialect != self.dialect)
            .find_map(|dialect| attempt(dialect).ok())
            .ok_or_else(|| parse_error(&error, self.end))
    }
}

/// Parses a text into statements.
pub(super) fn parse(sql: &str, dialect: Dialect) -> Result<Vec<Statement>, LineageError> {
    let text = Text::read(sql, dialect)?;
    let (statements, failures) = text.statements();
    match failures.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(statements),
    }
}

/// Makes a query acceptable to the planner.
pub(super) fn respell(query: &mut Query) {
    let _ = query.visit(&mut Respell);
}

/// The parser puts the position behind its message, except at the end of the text.
fn parse_error(error: &ParserError, end: (u64, u64)) -> LineageError {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
        ParserError::RecursionLimitExceeded => "expressions are nested too deeply",
    };
    let (message, place) = text.split_once(" at Line: ").unwrap_or((text, ""));
    let place = place
        .split_once(", Column: ")
        .and_then(|(line, column)| Some((line.parse().ok()?, column.trim().parse().ok()?)));
    let (line, column) = place.unwrap_or(end);
    LineageError::Parse { line, column, message: redacted(message) }
}

/// Keeps what the parser expected; what it found may be a constant of the statement.
fn redacted(message: &str) -> String {
    let Some((expected, found)) = message.split_once(", found: ") else {
        return message.chars().filter(|c| !c.is_ascii_digit()).collect();
    };
    let is_word = |found: &str| {
        let letters = found.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
        letters || found.chars().all(|c| c.is_ascii_punctuation() && !"'\"`$".contains(c))
    };
    let found = if is_word(found) { found } else { "a constant or name" };
    format!("{expected}, found: {found}")
}

/// The position after the last character, both counts from 1.
fn end_of(sql: &str) -> (u64, u64) {
    let breaks = sql.bytes().filter(|byte| *byte == b'\n').count();
    let last = sql.rsplit('\n').next().unwrap_or_default().chars().count();
    (breaks as u64 + 1, last as u64 + 1)
}

/// Returns the query that a statement reads tables with.
pub(super) fn query_of(statement: Statement) -> Option<Query> {
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
    let mut query = select_from(tables, update.selection);
    // Values that are set may be read from elsewhere.
    let values = update.assignments.into_iter().map(|assignment| assignment.value);
    let read = values.filter(|value| !matches!(value, Expr::Value(_) | Expr::Identifier(_)));
    let items: Vec<SelectItem> = read
        .enumerate()
        .map(|(index, expr)| SelectItem::ExprWithAlias {
            expr,
            alias: Ident::new(format!("__lakebed_set_{index}")),
        })
        .collect();
    if let SetExpr::Select(select) = query.body.as_mut()
        && !items.is_empty()
    {
        select.projection = items;
    }
    query
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
        .map(|mut query| {
            let _ = query.visit(&mut Nowhere);
            query
        })
        .expect("a query written in this file parses")
}

/// Takes the places off constants that are in no text.
struct Nowhere;

impl VisitorMut for Nowhere {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        value.span = Span::empty();
        ControlFlow::Continue(())
    }
}

struct Respell;

impl VisitorMut for Respell {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        query.limit_clause = None;
        query.fetch = None;
        query.locks.clear();
        query.for_clause = None;
        query.settings = None;
        query.format_clause = None;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.optimizer_hints.clear();
        select.select_modifiers = None;
        select.top = None;
        select.into = None;
        select.value_table_mode = None;
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
        chains::rebuild(expr);
        name_date_parts(expr);
        if let Some(respelled) =
            any_as_in(expr).or_else(|| date_function(expr)).or_else(|| parameter(expr))
        {
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
        "add_months" => (BinaryOperator::Plus, DateTimeField::Month),
        "date_add" => (BinaryOperator::Plus, DateTimeField::Day),
        "date_sub" => (BinaryOperator::Minus, DateTimeField::Day),
        _ => return None,
    };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(date)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(count)),
    ] = list.args.as_slice()
    else {
        return None;
    };
    // The place says that this constant has a part in the interval.
    let span = place_of(count);
    let count: i32 = count.to_string().parse().ok()?;
    let value = Value::SingleQuotedString(count.to_string());
    let interval = Interval {
        value: Box::new(Expr::Value(ValueWithSpan { value, span })),
        leading_field: Some(unit),
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    };
    Some(Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(date.clone()),
        op: sign,
        right: Box::new(Expr::Interval(interval)),
    })))
}

/// Where a number stands, with or without a sign.
fn place_of(number: &Expr) -> Span {
    match number {
        Expr::Value(value) => value.span,
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) => place_of(expr),
        _ => Span::empty(),
    }
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

/// Units of time, which some engines take as bare words where others take names of columns.
const DATE_PARTS: [&str; 24] = [
    "year",
    "years",
    "yy",
    "yyyy",
    "quarter",
    "quarters",
    "qq",
    "month",
    "months",
    "mm",
    "week",
    "weeks",
    "day",
    "days",
    "dd",
    "hour",
    "hours",
    "minute",
    "minutes",
    "second",
    "seconds",
    "millisecond",
    "microsecond",
    "dayofweek",
];

/// `datediff(day, a, b)`: the unit is no column.
fn name_date_parts(expr: &mut Expr) {
    let Expr::Function(function) = expr else { return };
    let name = function.name.to_string().to_lowercase();
    let takes_unit = ["date", "time", "last_day", "trunc"].iter().any(|part| name.contains(part));
    let FunctionArguments::List(list) = &mut function.args else { return };
    if !takes_unit || list.args.len() < 2 {
        return;
    }
    for argument in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(unit)) = argument
            && let Expr::Identifier(word) = unit
            && DATE_PARTS.contains(&word.value.to_lowercase().as_str())
        {
            *unit = Expr::value(Value::SingleQuotedString(word.value.to_lowercase()));
        }
    }
}

fn parameter(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Value(value) if matches!(value.value, Value::Placeholder(_)) => {
            Some(unknown_value(PARAMETER))
        }
        _ => None,
    }
}

/// A call of a function nobody knows.
pub(super) fn unknown_value(name: &str) -> Expr {
    let mut query = fixed_query("SELECT f()");
    let SetExpr::Select(select) = query.body.as_mut() else { return Expr::value(Value::Null) };
    match select.projection.pop() {
        Some(SelectItem::UnnamedExpr(Expr::Function(function))) => {
            Expr::Function(Function { name: vec![Ident::new(name)].into(), ..function })
        }
        _ => Expr::value(Value::Null),
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
    use super::{Dialect, LineageError, Text, parse, query_of, respell};

    fn queries(sql: &str, dialect: Dialect) -> Result<Vec<String>, LineageError> {
        let text = |statement| {
            let mut query = query_of(statement)?;
            respell(&mut query);
            Some(query.to_string())
        };
        Ok(parse(sql, dialect)?.into_iter().filter_map(text).collect())
    }

    #[track_caller]
    fn check(dialect: Dialect, sql: &str, expected: &[&str]) {
        assert_eq!(queries(sql, dialect).unwrap(), expected);
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
        // Before a join, and one behind the other.
        check(
            Dialect::Spark,
            "SELECT x FROM t LATERAL VIEW OUTER explode(f(xs)) v AS x LATERAL VIEW posexplode(ys) w \
             AS p, y JOIN s ON v.x = s.x LATERAL VIEW explode(zs) z",
            &[
                "SELECT x FROM t CROSS JOIN (SELECT '' AS x) v CROSS JOIN (SELECT '' AS p, '' AS y) w \
               JOIN s ON v.x = s.x, (SELECT '' AS \"pos\", '' AS \"col\", '' AS \"key\", \
               '' AS \"value\") AS \"z\"",
            ],
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

    #[test]
    fn one_bad_statement_leaves_the_others() {
        let text = Text::read("SELECT a FROM t; SELECT ) FROM; SELECT b FROM s", Dialect::Spark);
        let (statements, failures) = text.unwrap().statements();
        assert_eq!((statements.len(), failures.len()), (2, 1));
    }

    #[test]
    fn time_travel_is_removed_wherever_the_dialect_puts_it() {
        check(
            Dialect::BigQuery,
            "SELECT 1 FROM d.o AS x FOR SYSTEM_TIME AS OF TIMESTAMP_SUB(CURRENT_TIMESTAMP(), \
             INTERVAL 1 HOUR) JOIN d.c y ON x.a = y.a",
            &["SELECT 1 FROM d.o AS x JOIN d.c y ON x.a = y.a"],
        );
        check(
            Dialect::Databricks,
            "SELECT 1 FROM d.o VERSION AS OF 10 AS x, d.o@v3 z, d.p TIMESTAMP AS OF '2024-01-01' q",
            &["SELECT 1 FROM d.o AS x, d.o z, d.p q"],
        );
        check(
            Dialect::Snowflake,
            "SELECT 1 FROM d.o AT(OFFSET => -60) x JOIN p BEFORE(STATEMENT => 'id') y ON x.a = y.a",
            &["SELECT 1 FROM d.o x JOIN p y ON x.a = y.a"],
        );
        check(
            Dialect::Trino,
            "SELECT 1 FROM o FOR VERSION AS OF 123 x JOIN p FOR TIMESTAMP AS OF DATE '2024-01-01' \
             - INTERVAL '1' DAY y ON x.a = y.a",
            &["SELECT 1 FROM o x JOIN p y ON x.a = y.a"],
        );
    }

    #[test]
    fn parameters_are_calls_of_a_function_nobody_knows() {
        let parameter = super::PARAMETER;
        check(
            Dialect::Databricks,
            "SELECT 1 FROM t WHERE a = :p AND b = '${x}' AND c = {{ y }} LIMIT ?",
            &[&format!(
                "SELECT 1 FROM t WHERE a = {parameter}() AND b = {parameter}() AND c = {parameter}()"
            )],
        );
        check(
            Dialect::Postgres,
            "SELECT 1 FROM t WHERE a = $1 AND b = %(x)s AND c = ?",
            &[&format!(
                "SELECT 1 FROM t WHERE a = {parameter}() AND b = {parameter}() AND c = {parameter}()"
            )],
        );
    }

    #[test]
    fn units_of_date_functions_are_no_columns() {
        check(
            Dialect::Snowflake,
            "SELECT DATEDIFF(day, a, b) FROM t",
            &["SELECT DATEDIFF('day', a, b) FROM t"],
        );
    }

    #[track_caller]
    fn check_error(sql: &str, expected: &str) {
        let error = queries(sql, Dialect::Generic).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_syntax_error_has_its_position_and_no_constant() {
        check_error(
            "SELECT a\nFROM t WHERE )",
            "parse SQL at line 2, column 14: Expected: an expression, found: )",
        );
        check_error(
            "SELECT a\nFROM",
            "parse SQL at line 2, column 5: Expected: identifier, found: EOF",
        );
        check_error("SELECT 'a", "parse SQL at line 1, column 8: Unterminated string literal");
        check_error(
            "SELECT a FROM t WHERE b 'secret'",
            "parse SQL at line 1, column 25: Expected: end of statement, found: a constant or name",
        );
    }
}
