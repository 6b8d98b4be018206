//! Join criteria of a plan in Trino's JSON.
//!
//! 1. Symbols are unique within a plan. A scan's details assign them: `custkey_1 := custkey:bigint`,
//!    with the connector's handle on the right; the column is the part of it that the symbol is
//!    named after.
//! 2. A join's descriptor has the criteria: `("custkey" = "custkey_1") AND …`. A symbol that no scan
//!    assigned is computed, and such a comparison makes no edge.

use std::collections::BTreeMap;

use lakebed_model::{ColumnRef, JoinKind, JoinStrategy, JoinUse};

use crate::source::rows::{Row, joins_of};

/// Criteria are as sure as a resolved plan, but the origin of a symbol is told by its name.
const CONFIDENCE: f64 = 0.8;
const MAX_DEPTH: usize = 100;

/// Reads the joins of all fragments.
pub(super) fn joins(plan: &Row) -> Vec<JoinUse> {
    // A plan is one node, or an object of fragments, each a node.
    let fragments: Vec<Row> = match plan.has("name") {
        true => vec![plan.clone()],
        false => plan.members().map(|(_, fragment)| fragment).collect(),
    };
    let mut nodes = Vec::new();
    for fragment in fragments {
        gather(fragment, 0, &mut nodes);
    }
    let mut columns = BTreeMap::new();
    for node in &nodes {
        assignments(node, &mut columns);
    }
    nodes.iter().flat_map(|node| join(node, &columns)).collect()
}

fn gather(node: Row, depth: usize, nodes: &mut Vec<Row>) {
    if depth < MAX_DEPTH {
        for child in node.rows("children") {
            gather(child, depth + 1, nodes);
        }
    }
    nodes.push(node);
}

/// Notes which column each symbol of a scan is.
fn assignments(node: &Row, columns: &mut BTreeMap<String, ColumnRef>) {
    if !node.word("name").is_some_and(|name| name.contains("scan")) {
        return;
    }
    let Some(table) = node.row("descriptor").and_then(|descriptor| descriptor.word("table")) else {
        return;
    };
    // `catalog:schema:table`, some connectors with dots, a few with more behind a blank.
    let table = table.split_whitespace().next().unwrap_or_default().replace(':', ".");
    for detail in node.texts("details") {
        let Some((symbol, handle)) = detail.split_once(" := ") else { continue };
        let symbol = symbol.trim().trim_matches('"').to_lowercase();
        let handle = handle.to_lowercase();
        let column = handle.split([':', ' ', ',']).find(|part| is_named_after(&symbol, part));
        if let Some(column) = column {
            columns.insert(symbol.clone(), ColumnRef::new(table.clone(), column));
        }
    }
}

/// Trino names a symbol like its column, with a number behind it where the name is taken.
fn is_named_after(symbol: &str, column: &str) -> bool {
    let rest = if column.is_empty() { None } else { symbol.strip_prefix(column) };
    rest.is_some_and(|rest| {
        let number = rest.strip_prefix('_').unwrap_or("x");
        rest.is_empty() || (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    })
}

fn join(node: &Row, columns: &BTreeMap<String, ColumnRef>) -> Vec<JoinUse> {
    let name = node.word("name").unwrap_or_default();
    let kind = match name.as_str() {
        "innerjoin" => JoinKind::Inner,
        "leftjoin" => JoinKind::LeftOuter,
        "rightjoin" => JoinKind::RightOuter,
        "fulljoin" => JoinKind::FullOuter,
        "semijoin" => JoinKind::LeftSemi,
        _ => return Vec::new(),
    };
    let Some(descriptor) = node.row("descriptor") else { return Vec::new() };
    let strategy = match descriptor.word("distribution").as_deref() {
        Some("replicated") => Some(JoinStrategy::Broadcast),
        Some("partitioned") => Some(JoinStrategy::ShuffleHash),
        _ => None,
    };
    let criteria = descriptor.word("criteria").unwrap_or_default();
    let mut pairs = Vec::new();
    for criterion in criteria.split(" and ") {
        let sides = criterion.trim().trim_matches(['(', ')']).split_once(" = ");
        let column = |symbol: &str| columns.get(symbol.trim().trim_matches(['"', '(', ')']));
        let sides = sides.and_then(|(left, right)| column(left).zip(column(right)));
        pairs.extend(sides.map(|(left, right)| (left.clone(), right.clone())));
    }
    joins_of(&pairs, kind, strategy, CONFIDENCE)
}
