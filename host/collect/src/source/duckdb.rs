//! DuckDB: the table `duckdb_logs` with entries of type `QueryLog`, and profiles in JSON.
//!
//! The log has texts and times, no figures. A profile has one statement with its plan: rows per
//! scan, and the join conditions, which count where the text cannot be read. It has no time either;
//! that of its file is taken. Profiles of 2.0 and of earlier versions differ in their names.

use std::collections::BTreeMap;

use lakebed_model::{ColumnRef, JoinKind, JoinUse};

use super::rows::{Entry, Refusal, Row, RowSource, Stated, TableFacts, Unit, joins_of};

pub(super) static SOURCE: RowSource = RowSource {
    name: "duckdb",
    dialect: "duckdb",
    recognizes: |head| {
        let is_log =
            ["message", "timestamp", "type", "log_level"].iter().all(|name| head.has(name));
        let is_old = head.has("query_name") && head.has("latency");
        is_log || is_old || (head.has("operator") && head.has("query"))
    },
    required: &[&["message", "query_name", "query"], &["timestamp", "latency", "operator"]],
    entry,
};

fn entry(row: &Row) -> Result<Entry, Refusal> {
    if !row.has("message") {
        return profile(row);
    }
    if row.word("type").is_some_and(|kind| kind != "querylog") {
        return Err(Refusal::Irrelevant);
    }
    let started = Entry::started(row, "timestamp", Unit::Seconds)?;
    Ok(Entry { sql: row.text("message"), session: row.text("connection_id"), ..started })
}

fn profile(row: &Row) -> Result<Entry, Refusal> {
    let query = row.row("query");
    let (sql, seconds, roots) = match &query {
        Some(query) => (
            query.text("sql"),
            query.duration_ms("total_time", Unit::Seconds),
            row.rows("operator"),
        ),
        None => (
            row.text("query_name"),
            row.duration_ms("latency", Unit::Seconds),
            row.rows("children"),
        ),
    };
    let mut plan = Plan::default();
    for root in &roots {
        plan.visit(root, 0);
    }
    Ok(Entry {
        place: row.place(),
        at_file_time: true,
        sql: Some(sql.ok_or(Refusal::Malformed)?),
        duration_ms: seconds,
        tables: plan.tables.into_values().collect(),
        stated: Stated { joins: plan.joins, ..Stated::default() },
        ..Entry::default()
    })
}

/// A join condition is one of columns, but a node below it may have renamed them.
const CONFIDENCE: f64 = 0.7;
const MAX_DEPTH: usize = 100;

#[derive(Default)]
struct Plan {
    tables: BTreeMap<String, TableFacts>,
    joins: Vec<JoinUse>,
}

impl Plan {
    /// Notes scans and joins; returns the columns that the node passes on, by name.
    fn visit(&mut self, node: &Row, depth: usize) -> Vec<ColumnRef> {
        if depth > MAX_DEPTH {
            return Vec::new();
        }
        let kind = node.word("operator_type").or_else(|| node.word("type")).unwrap_or_default();
        let info = node.row("extra_info").unwrap_or_default();
        if kind == "table_scan" {
            return self.scan(node, &info);
        }
        let children = node.rows("children");
        let below: Vec<Vec<ColumnRef>> =
            children.iter().map(|child| self.visit(child, depth + 1)).collect();
        match (kind.as_str(), below.as_slice()) {
            ("hash_join", [left, right]) => self.join(&info, left, right),
            // What these give is named anew.
            ("projection" | "hash_group_by" | "perfect_hash_group_by" | "window" | "union", _) => {
                return Vec::new();
            }
            _ => {}
        }
        below.into_iter().flatten().collect()
    }

    fn scan(&mut self, node: &Row, info: &Row) -> Vec<ColumnRef> {
        let Some(table) = info.word("table") else { return Vec::new() };
        let names = listed(info, "projections");
        let facts = self.tables.entry(table.clone()).or_default();
        facts.name.clone_from(&table);
        facts.columns.extend(names.iter().cloned());
        facts.columns.sort();
        facts.columns.dedup();
        let rows = node.count("operator_rows_scanned").or_else(|| node.count("rows_scanned"));
        facts.rows_out = match (facts.rows_out, rows) {
            (Some(before), Some(rows)) => Some(before + rows),
            (before, rows) => before.or(rows),
        };
        names.into_iter().map(|name| ColumnRef::new(table.clone(), name)).collect()
    }

    fn join(&mut self, info: &Row, left: &[ColumnRef], right: &[ColumnRef]) {
        let kind = match info.word("join type").as_deref() {
            Some("inner") => JoinKind::Inner,
            Some("left") => JoinKind::LeftOuter,
            Some("right") => JoinKind::RightOuter,
            Some("outer" | "full") => JoinKind::FullOuter,
            Some("semi" | "right_semi") => JoinKind::LeftSemi,
            Some("anti" | "right_anti") => JoinKind::LeftAnti,
            _ => return,
        };
        let mut pairs = Vec::new();
        for condition in listed(info, "conditions") {
            let sides = condition.split_once(" = ");
            let sides =
                sides.and_then(|(one, other)| only_named(left, one).zip(only_named(right, other)));
            pairs.extend(sides.map(|(one, other)| (one.clone(), other.clone())));
        }
        self.joins.extend(joins_of(&pairs, kind, None, CONFIDENCE));
    }
}

/// One value is printed as a text, several as a list.
fn listed(info: &Row, name: &str) -> Vec<String> {
    let texts = info.texts(name);
    let texts = if texts.is_empty() { info.text(name).into_iter().collect() } else { texts };
    texts.into_iter().map(|text| text.trim().to_lowercase()).collect()
}

fn only_named<'c>(columns: &'c [ColumnRef], name: &str) -> Option<&'c ColumnRef> {
    let mut named = columns.iter().filter(|column| column.column == name.trim());
    named.next().filter(|_| named.next().is_none())
}
