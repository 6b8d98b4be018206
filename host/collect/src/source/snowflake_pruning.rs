//! Snowflake: `COLUMN_QUERY_PRUNING_HISTORY`, which columns queries filter and join, counted by hour.
//!
//! 1. Rows of one hour and one parameterized query are one statement, executed `NUM_QUERIES` times.
//! 2. `WHERE` columns are filters, of unknown operator and values, in as many executions as the row
//!    counts.
//! 3. `JOIN` columns make an edge only where there are exactly two, of two tables; the view does not
//!    say what is compared with what.
//!
//! The view counts the same executions as `QUERY_HISTORY` lists; where both are given,
//! [`collect`](fn@crate::collect) keeps those that are listed.

use std::{collections::BTreeMap, ops::ControlFlow};

use lakebed_model::{ColumnRef, FilterOperator, FilterUse, Instant, ParseReport, TableName};

use super::{
    LogHead, LogPath, LogSource, Statement,
    rows::{
        Entry, Reader, Refusal, Row, RowSource, Stated, TableFacts, Unit, check_columns, each,
        only_pair,
    },
};
use crate::{Catalog, CollectError};

/// Executions of one query in one hour beyond which the others are left out, with a reason.
const EXECUTIONS: u64 = 10_000;

/// `COLUMN_QUERY_PRUNING_HISTORY`.
#[derive(Debug, Clone, Copy)]
pub(super) struct PruningHistory;

/// The source's name.
pub(crate) const NAME: &str = "snowflake-pruning";

/// Name and columns; its rows are no statements yet.
static COLUMNS: RowSource = RowSource {
    name: NAME,
    dialect: "snowflake",
    recognizes: |head| {
        ["access_type", "column_name", "num_queries"].iter().all(|name| head.has(name))
    },
    required: &[
        &["interval_start_time"],
        &["table_name"],
        &["column_name"],
        &["access_type"],
        &["num_queries"],
    ],
    entry: |_| Err(Refusal::Malformed),
};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Query {
    hour: Instant,
    hash: String,
}

/// How often each column was accessed; `true` for a join key.
type Columns = BTreeMap<(ColumnRef, bool), u64>;

impl LogSource for PruningHistory {
    fn name(&self) -> &'static str {
        COLUMNS.name
    }

    fn recognizes(&self, head: &LogHead) -> bool {
        (COLUMNS.recognizes)(head)
    }

    fn read(
        &self,
        log: &LogPath,
        catalog: &dyn Catalog,
        sink: &mut dyn FnMut(Statement),
    ) -> Result<ParseReport, CollectError> {
        let form = LogHead::of(log)?.form;
        let mut report = ParseReport::default();
        let mut queries: BTreeMap<Query, Columns> = BTreeMap::new();
        let damage = each(form, log, &mut |row| {
            match access(&row) {
                Some((query, column, is_key, count)) => {
                    let counted =
                        queries.entry(query).or_default().entry((column, is_key)).or_default();
                    *counted = (*counted).max(count);
                }
                None => report.malformed_lines += 1,
            }
            ControlFlow::Continue(())
        })?;
        damage.count(&mut report);
        if queries.is_empty() {
            check_columns(&COLUMNS, form, log)?;
            let events = [("malformed lines".to_owned(), report.malformed_lines)].into();
            return Err(CollectError::NoSqlStatements { path: log.root.clone(), events });
        }
        let entries =
            queries.iter().flat_map(|(query, columns)| executions(query, columns)).collect();
        let (source, dialect, log_name) = (COLUMNS.name, COLUMNS.dialect, String::new());
        Reader { source, dialect, log_name, catalog, report: &mut report, sink }.read(entries);
        Ok(report)
    }
}

fn access(row: &Row) -> Option<(Query, ColumnRef, bool, u64)> {
    let hour = row.instant("interval_start_time", Unit::Seconds)?;
    let names = ["database_name", "schema_name", "table_name"];
    let table: Vec<String> = names.into_iter().filter_map(|name| row.word(name)).collect();
    row.has("table_name").then_some(())?;
    let column = ColumnRef::new(table.join("."), row.word("column_name")?);
    let is_key = match row.word("access_type")?.as_str() {
        "join" => true,
        "where" => false,
        _ => return None,
    };
    let hash = row.text("query_parameterized_hash").or_else(|| row.text("query_hash"));
    // Without a hash nothing tells which columns belong to one query: each is for itself.
    let hash = hash.unwrap_or_else(|| format!("{}.{}", column.table, column.column));
    Some((Query { hour, hash }, column, is_key, row.count("num_queries")?))
}

/// Makes an entry of each execution; the n-th has the columns that were counted at least n times.
fn executions(query: &Query, columns: &Columns) -> Vec<Entry> {
    let counted = columns.values().copied().max().unwrap_or(0);
    (0..counted.min(EXECUTIONS))
        .map(|n| {
            let present =
                || columns.iter().filter(|(_, count)| **count > n).map(|(column, _)| column);
            let mut stated = Stated::default();
            for (column, _) in present().filter(|(_, is_key)| !is_key) {
                stated.filters.push(FilterUse {
                    column: column.clone(),
                    operator: FilterOperator::Other,
                    range: None,
                    inferred: false,
                });
            }
            let keys = present().filter(|(_, is_key)| *is_key);
            let keys =
                keys.map(|(column, _)| (column.table.clone(), column.column.clone())).collect();
            only_pair(keys, &mut stated);
            if n == 0 && counted > EXECUTIONS {
                stated.losses.push(format!(
                    "more than {EXECUTIONS} executions in one hour, the others are not counted"
                ));
            }
            let mut tables: Vec<&TableName> = present().map(|(column, _)| &column.table).collect();
            tables.dedup();
            let facts =
                |table: &TableName| TableFacts { name: table.to_string(), ..TableFacts::default() };
            Entry {
                id: Some(format!("{}@{}#{}", query.hash, query.hour.to_rfc3339(), n + 1)),
                started_at: query.hour,
                place: n,
                tables: tables.into_iter().map(facts).collect(),
                stated,
                ..Entry::default()
            }
        })
        .collect()
}
