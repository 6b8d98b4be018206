//! What Spark's SQL means where the engine's planner reads something else, put right in the parsed text.
//!
//! 1. Names of columns match whatever the case of their letters. The engine takes names outside of
//!    back-ticks for lower-case ones, so a name that no column has as it stands is spelled as the one
//!    column that differs only by case.
//! 2. A number with an exponent is a DOUBLE; the engine was told to read others as decimals.
//! 3. Columns of a query may be called alike; the engine wants names that differ, so the second `NULL` of
//!    `SELECT NULL, NULL` becomes `NULL (2)`. An alias says what it says.
//! 4. A TIMESTAMP is an instant and a TIMESTAMP_NTZ is none; to the engine TIMESTAMP is the latter.
//! 5. `explode` is the engine's `unnest`, and `sequence` its `generate_series` where both count up.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use arrow::datatypes::{DataType, Fields};
use datafusion::{
    error::{DataFusionError, Result},
    sql::{
        parser::Statement,
        sqlparser::{
            ast::{
                DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr,
                FunctionArguments, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
                Query, Select, SelectItem, TableAlias, TableFactor, TableWithJoins, TimezoneInfo,
                TypedString, Value, VisitMut, VisitorMut,
            },
            dialect::SparkSqlDialect,
            parser::Parser,
        },
    },
};

/// Functions of Spark that the engine lacks, and what to write instead.
const ABSENT: [(&str, &str); 5] = [
    ("explode_outer", "unnest(array), which leaves out rows without elements"),
    ("inline", "unnest(array) and the fields of what it gives"),
    ("posexplode", "unnest(array)"),
    ("sequence", "generate_series(start, stop, step), which holds both ends"),
    ("stack", "VALUES or UNION ALL"),
];

/// The names of columns, fields of structs included, as tables spell them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnNames {
    by_lower_case: BTreeMap<String, BTreeSet<String>>,
}

impl ColumnNames {
    /// Adds the columns of a table.
    pub(crate) fn add(&mut self, fields: &Fields) {
        for field in fields {
            let names = self.by_lower_case.entry(field.name().to_lowercase()).or_default();
            names.insert(field.name().clone());
            self.add_nested(field.data_type());
        }
    }

    fn add_nested(&mut self, data_type: &DataType) {
        match data_type {
            DataType::Struct(fields) => self.add(fields),
            DataType::List(inner) | DataType::Map(inner, _) => self.add_nested(inner.data_type()),
            _ => {}
        }
    }

    /// Returns the one name that is meant, where it is spelled otherwise.
    fn spelled(&self, name: &Ident) -> Option<&str> {
        let known = self.by_lower_case.get(&name.value.to_lowercase())?;
        let asked = match name.quote_style {
            Some(_) => name.value.clone(),
            None => name.value.to_lowercase(),
        };
        if known.contains(&asked) || known.len() > 1 {
            return None;
        }
        known.first().map(String::as_str)
    }
}

/// Puts a statement right.
///
/// # Errors
/// Fails when it calls a function of Spark that the engine lacks.
pub(crate) fn translate_statement(statement: &mut Statement, names: &ColumnNames) -> Result<()> {
    let Statement::Statement(statement) = statement else { return Ok(()) };
    let mut tables = Tables::default();
    let _ = statement.visit(&mut tables);
    finished(statement.visit(&mut Translator { names, tables: tables.names, relation: None }))
}

/// Puts an expression right; `relation` is the name of the table whose columns it has.
///
/// # Errors
/// As [`translate_statement`].
pub(crate) fn translate_expression(
    expression: &mut Expr,
    names: &ColumnNames,
    relation: Option<&str>,
) -> Result<()> {
    let tables = relation.iter().map(|name| name.to_lowercase()).collect();
    finished(expression.visit(&mut Translator { names, tables, relation }))
}

fn finished(flow: ControlFlow<Box<DataFusionError>>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

/// Collects what tables are called, in lower case.
#[derive(Debug, Default)]
struct Tables {
    names: BTreeSet<String>,
}

impl VisitorMut for Tables {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name: ObjectName(parts), .. } = factor
            && let Some(ObjectNamePart::Identifier(last)) = parts.last()
        {
            self.names.insert(last.value.to_lowercase());
        }
        if let Some(alias) = alias_of(factor) {
            self.names.insert(alias.name.value.to_lowercase());
        }
        ControlFlow::Continue(())
    }
}

fn alias_of(factor: &mut TableFactor) -> Option<&mut TableAlias> {
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias.as_mut(),
        _ => None,
    }
}

struct Translator<'n> {
    names: &'n ColumnNames,
    tables: BTreeSet<String>,
    /// The one table there is, where it must be called exactly so.
    relation: Option<&'n str>,
}

impl Translator<'_> {
    fn spell(&self, name: &mut Ident) {
        if let Some(spelled) = self.names.spelled(name) {
            *name = Ident { quote_style: Some('`'), value: spelled.to_owned(), span: name.span };
        }
    }

    /// Spells the columns of every `USING`.
    fn spell_joins(&self, tables: &mut TableWithJoins) {
        for join in &mut tables.joins {
            let Some(JoinConstraint::Using(columns)) = constraint_of(&mut join.join_operator)
            else {
                continue;
            };
            for ObjectName(parts) in columns {
                if let [ObjectNamePart::Identifier(name)] = parts.as_mut_slice() {
                    self.spell(name);
                }
            }
        }
    }

    fn spell_columns(&self, alias: &mut TableAlias) {
        for column in &mut alias.columns {
            self.spell(&mut column.name);
        }
    }
}

impl VisitorMut for Translator<'_> {
    type Break = Box<DataFusionError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        for table in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            self.spell_columns(&mut table.alias);
        }
        ControlFlow::Continue(())
    }

    /// A name that a query gives is asked for by the same rule.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        for item in &mut select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.spell(alias);
            }
        }
        for tables in &mut select.from {
            self.spell_joins(tables);
        }
        ControlFlow::Continue(())
    }

    /// Names are told apart once they are spelled as columns are.
    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        tell_apart(&mut select.projection);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let Some(alias) = alias_of(factor) {
            self.spell_columns(alias);
        }
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            self.spell_joins(table_with_joins);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        match expression {
            Expr::Identifier(name) => self.spell(name),
            Expr::CompoundIdentifier(parts) => {
                let is_table = |name: &Ident| self.tables.contains(&name.value.to_lowercase());
                let from = usize::from(parts.first().is_some_and(is_table));
                if let (1, Some(relation), Some(first)) = (from, self.relation, parts.first_mut()) {
                    *first = Ident::with_quote('`', relation);
                }
                for name in &mut parts[from..] {
                    self.spell(name);
                }
            }
            Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. }) => {
                translate_type(data_type);
            }
            Expr::Function(function) => {
                if let Err(error) = translate_function(function) {
                    return ControlFlow::Break(Box::new(error));
                }
            }
            Expr::Value(value) => {
                if let Value::Number(digits, false) = &value.value
                    && digits.contains(['e', 'E'])
                {
                    match double(digits) {
                        Ok(double) => *expression = double,
                        Err(error) => return ControlFlow::Break(Box::new(error)),
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

const fn constraint_of(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint)
        | JoinOperator::Semi(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::Anti(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint)
        | JoinOperator::AsOf { constraint, .. }
        | JoinOperator::StraightJoin(constraint) => Some(constraint),
        JoinOperator::CrossApply
        | JoinOperator::OuterApply
        | JoinOperator::ArrayJoin
        | JoinOperator::LeftArrayJoin
        | JoinOperator::InnerArrayJoin => None,
    }
}

/// Gives expressions that read alike names that differ.
fn tell_apart(items: &mut [SelectItem]) {
    let named = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(expression) => Some(expression.to_string()),
        _ => None,
    };
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for item in items {
        let Some(name) = named(item) else { continue };
        if taken.insert(name.clone()) {
            continue;
        }
        if let SelectItem::UnnamedExpr(expression) = item {
            let name = (2..).map(|n| format!("{name} ({n})")).find(|name| !taken.contains(name));
            let name = name.unwrap_or_default();
            let (expr, alias) = (expression.clone(), Ident::with_quote('`', name.as_str()));
            *item = SelectItem::ExprWithAlias { expr, alias };
            taken.insert(name);
        }
    }
}

/// Gives times the zone that their names in Spark imply.
fn translate_type(data_type: &mut SqlType) {
    let is_named = |name: &ObjectName, wanted: &str| name.to_string().eq_ignore_ascii_case(wanted);
    match data_type {
        SqlType::Timestamp(_, zone @ TimezoneInfo::None) => *zone = TimezoneInfo::WithTimeZone,
        SqlType::TimestampNtz(precision) => {
            *data_type = SqlType::Timestamp(*precision, TimezoneInfo::WithoutTimeZone);
        }
        SqlType::Custom(name, _) if is_named(name, "timestamp_ltz") => {
            *data_type = SqlType::Timestamp(None, TimezoneInfo::WithTimeZone);
        }
        _ => {}
    }
}

fn double(digits: &str) -> Result<Expr> {
    let text = format!("CAST('{digits}' AS DOUBLE)");
    let parse = || Parser::new(&SparkSqlDialect {}).try_with_sql(&text)?.parse_expr();
    parse().map_err(|error| DataFusionError::SQL(Box::new(error), None))
}

fn translate_function(function: &mut Function) -> Result<()> {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_mut_slice() else { return Ok(()) };
    let asked = name.value.to_ascii_lowercase();
    if asked == "explode" {
        name.value = "unnest".to_owned();
        return Ok(());
    }
    if asked == "sequence" && counts_up(&function.args) {
        name.value = "generate_series".to_owned();
        return Ok(());
    }
    match ABSENT.iter().find(|(absent, _)| *absent == asked) {
        None => Ok(()),
        Some((absent, instead)) => Err(DataFusionError::Plan(format!(
            "there is no function `{absent}` here; write {instead}"
        ))),
    }
}

/// Without a step, Spark counts down where the first number is the larger one; the engine does not.
fn counts_up(arguments: &FunctionArguments) -> bool {
    let FunctionArguments::List(list) = arguments else { return false };
    let number = |argument: &FunctionArg| -> Option<i64> {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) = argument else {
            return None;
        };
        match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        }
    };
    match list.args.as_slice() {
        [first, last] => {
            matches!((number(first), number(last)), (Some(first), Some(last)) if first <= last)
        }
        [_, _, _] => true,
        _ => false,
    }
}
