//! Planning with stub schemas.
//!
//! The scope walk says which columns tables of unknown schema must have. Where the planner misses
//! one more, its error lists what was in scope: the column is given to the table that its qualifier
//! names, or to the only table of unknown schema, and the planner is asked again.

use std::collections::{BTreeMap, BTreeSet};

use datafusion_common::{Column, DataFusionError, SchemaError, tree_node::TreeNodeRecursion};
use datafusion_expr::LogicalPlan;
use datafusion_sql::{
    planner::{ParserOptions, SqlToRel},
    sqlparser::ast::{Query, Statement},
};

use super::{
    LineageError, LineageTier,
    context::{Context, KnownTable, Table, marked_table},
    error::redacted,
};
use crate::{Catalog, ColumnType};

/// No statement misses more columns than this; the bound keeps a planner that never comes to an
/// end from taking the collector with it.
const MAX_GROWTH: usize = 512;

/// A plan and how its tables were known.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) plan: LogicalPlan,
    pub(super) tier: LineageTier,
}

/// Plans a query; `needed` are columns that tables must have besides those of the catalog, `guesses`
/// the types of columns that it misses beyond these, `read` the names of columns that the query reads, where they are known and the plan's columns do not matter.
///
/// Columns whose use tells nothing of their type are text; when the planner refuses that (`abs(x)`),
/// integers and then floats are tried.
pub(super) fn plan(
    query: &Query,
    catalog: &dyn Catalog,
    needed: &BTreeMap<String, Vec<(String, Option<ColumnType>)>>,
    guesses: &BTreeMap<String, ColumnType>,
    read: Option<&BTreeSet<String>>,
) -> Result<Planned, LineageError> {
    if let Some(read) = read
        && let Some(planned) = narrow(query, catalog, needed, read)
    {
        return Ok(planned);
    }
    let mut failure = None;
    for fallback in [ColumnType::Text, ColumnType::Integer, ColumnType::Float] {
        let typed =
            |(name, kind): &(String, Option<ColumnType>)| (name.clone(), kind.unwrap_or(fallback));
        let needed = needed
            .iter()
            .map(|(table, columns)| (table.clone(), columns.iter().map(typed).collect()))
            .collect();
        match grow(query, catalog, &needed, guesses, fallback) {
            Err(error @ LineageError::Plan { .. }) => failure = failure.or(Some(error)),
            settled => return settled,
        }
        if needed.is_empty() {
            // Nothing here is of a guessed type.
            break;
        }
    }
    Err(failure.expect("the loop ends without return only after a failure"))
}

/// Plans a query on the columns that it reads; `None` where it turns out to need others, or the
/// planner refuses it: columns that nobody names count where all are selected.
fn narrow(
    query: &Query,
    catalog: &dyn Catalog,
    needed: &BTreeMap<String, Vec<(String, Option<ColumnType>)>>,
    read: &BTreeSet<String>,
) -> Option<Planned> {
    if needed.values().flatten().any(|(_, kind)| kind.is_none()) {
        return None;
    }
    let typed = |(name, kind): &(String, Option<ColumnType>)| Some((name.clone(), (*kind)?));
    let needed = needed
        .iter()
        .map(|(table, columns)| (table.clone(), columns.iter().filter_map(typed).collect()))
        .collect();
    let context = Context::new(catalog, &needed, Some(read));
    let statement = Statement::Query(Box::new(query.clone()));
    let planner = SqlToRel::new_with_options(&context, options());
    let plan = planner.sql_statement_to_plan(statement).ok()?;
    let tier = context.tier(&plan);
    Some(Planned { plan, tier })
}

fn grow(
    query: &Query,
    catalog: &dyn Catalog,
    needed: &BTreeMap<String, Vec<(String, ColumnType)>>,
    guesses: &BTreeMap<String, ColumnType>,
    fallback: ColumnType,
) -> Result<Planned, LineageError> {
    let context = Context::new(catalog, needed, None);
    for _ in 0..MAX_GROWTH {
        let statement = Statement::Query(Box::new(query.clone()));
        let planner = SqlToRel::new_with_options(&context, options());
        let error = match planner.sql_statement_to_plan(statement) {
            Ok(plan) => {
                let tier = context.tier(&plan);
                return Ok(Planned { plan, tier });
            }
            Err(error) => error,
        };
        let Some((missing, in_scope)) = missing_column(&error) else {
            return Err(plan_error(&error));
        };
        let mut tables = context.tables.borrow_mut();
        let Some(index) = owner(missing, in_scope, &tables) else {
            return Err(plan_error(&error));
        };
        let name = missing.name.clone();
        let kind = guesses.get(&name.to_lowercase()).copied().unwrap_or(fallback);
        tables[index].columns.push((name, kind));
        tables[index].grown = true;
    }
    Err(LineageError::TooManyStubs { limit: MAX_GROWTH })
}

impl Context<'_> {
    /// How well everything in a plan is known.
    fn tier(&self, plan: &LogicalPlan) -> LineageTier {
        if reads_unknown_table(plan) {
            LineageTier::StubSchemas
        } else if self.stub_functions.get() {
            LineageTier::StubFunctions
        } else {
            LineageTier::Resolved
        }
    }
}

fn reads_unknown_table(plan: &LogicalPlan) -> bool {
    let mut unknown = false;
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            unknown |= !Table::of(scan).is_some_and(|table| table.is_known);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    unknown
}

fn options() -> ParserOptions {
    ParserOptions {
        parse_float_as_decimal: true,
        map_string_types_to_utf8view: false,
        ..ParserOptions::new()
    }
}

fn missing_column(error: &DataFusionError) -> Option<(&Column, &[Column])> {
    match error.find_root() {
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => Some((field, valid_fields)),
            _ => None,
        },
        _ => None,
    }
}

/// Says which table a missing column belongs to; `None` when none in scope can have it, or several.
fn owner(missing: &Column, in_scope: &[Column], tables: &[KnownTable]) -> Option<usize> {
    let markers = in_scope
        .iter()
        .filter_map(|column| Some((column.relation.as_ref(), marked_table(&column.name)?)))
        .filter(|(_, index)| *index < tables.len());
    let candidates: BTreeSet<usize> = match &missing.relation {
        Some(wanted) => markers
            .filter(|(relation, _)| relation.is_some_and(|relation| relation.resolved_eq(wanted)))
            .map(|(_, index)| index)
            .collect(),
        None => {
            markers.map(|(_, index)| index).filter(|index| !tables[*index].in_catalog).collect()
        }
    };
    let has_it =
        |index: &usize| tables[*index].columns.iter().any(|(name, _)| *name == missing.name);
    match candidates.iter().copied().collect::<Vec<_>>()[..] {
        [only] if !has_it(&only) => Some(only),
        _ => None,
    }
}

fn plan_error(error: &DataFusionError) -> LineageError {
    let text = error.strip_backtrace();
    LineageError::Plan { message: redacted(&text) }
}
