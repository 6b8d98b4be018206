//! The paper's own planner as a baseline: one join key per table, edge by edge.
//!
//! N. Mahore, "Adaptive Join-Aware Physical Layout Optimization for Lakehouse Systems" (SSRN 7030626,
//! 2026), as far as it says:
//! 1. A join's candidate clusters the tables at its ends, those that are not decided yet, by its
//!    column. A join of several columns has one candidate per pair.
//! 2. It saves 30 % of what the join's statements scan of the tables that the join's column then
//!    clusters, window by window, discounted; it costs a rewrite of each table, and its old files.
//! 3. The candidate of the highest net present value is taken, then all are valued again, until none
//!    is worth anything.
//!
//! The paper leaves open what a join is worth whose other table has another key already. Here its
//! own table's share counts, which gives customer its key: the reading that skips more.
//! Joins that ran as broadcasts only, and tables of one file, are out of its scope.

use std::collections::BTreeMap;

use lakebed_graph::{Edge, JoinGraph};
use lakebed_model::{JoinStrategy, TableName};
use lakebed_plan::{DEFAULT_DISCOUNT_RATE, DEFAULT_HORIZON_WINDOWS, Layout};

/// The share that shared clustering is supposed to save.
const SCAN_REDUCTION: f64 = 0.30;

/// A table as the paper's planner sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PaperTable {
    pub(super) bytes: f64,
    pub(super) files: u64,
}

/// Plans one join key per table.
pub(super) fn plan(
    graph: &JoinGraph,
    tables: &BTreeMap<TableName, PaperTable>,
) -> Vec<(TableName, Layout)> {
    let mut keys: BTreeMap<TableName, String> = BTreeMap::new();
    let candidates: Vec<(&Edge, &(String, String))> = graph
        .edges()
        .iter()
        .filter(|edge| is_in_scope(edge, tables))
        .flat_map(|edge| edge.stats.pairs.iter().map(move |pair| (edge, pair)))
        .collect();
    loop {
        let mut best: Option<(f64, &Edge, &(String, String))> = None;
        for (edge, pair) in &candidates {
            let npv = value(edge, &keys, tables);
            if npv > 0.0 && best.is_none_or(|(most, ..)| npv > most) {
                best = Some((npv, edge, pair));
            }
        }
        let Some((_, edge, (left, right))) = best else { break };
        keys.entry(edge.stats.left.clone()).or_insert_with(|| left.clone());
        keys.entry(edge.stats.right.clone()).or_insert_with(|| right.clone());
    }
    keys.into_iter().map(|(table, key)| (table, Layout::clustered(vec![key]))).collect()
}

fn is_in_scope(edge: &Edge, tables: &BTreeMap<TableName, PaperTable>) -> bool {
    let is_large = |table| tables.get(table).is_some_and(|table| table.files > 1);
    let strategies = &edge.stats.strategies;
    let is_broadcast =
        !strategies.is_empty() && strategies.keys().all(|one| *one == JoinStrategy::Broadcast);
    !is_broadcast && is_large(&edge.stats.left) && is_large(&edge.stats.right)
}

/// The net present value of an edge's candidate beside what is decided already.
fn value(
    edge: &Edge,
    keys: &BTreeMap<TableName, String>,
    tables: &BTreeMap<TableName, PaperTable>,
) -> f64 {
    let periods = f64::from(DEFAULT_HORIZON_WINDOWS.get());
    let windows = (1.0 - (1.0 + DEFAULT_DISCOUNT_RATE).powf(-periods)) / DEFAULT_DISCOUNT_RATE;
    let undecided = [&edge.stats.left, &edge.stats.right].into_iter();
    let undecided = undecided.filter(|table| !keys.contains_key(*table));
    let bytes: f64 = undecided.filter_map(|table| Some(tables.get(table)?.bytes)).sum();
    // A rewrite costs a table's bytes, and as many again while the old files stay.
    SCAN_REDUCTION * edge.stats.weight * bytes * windows - 2.0 * bytes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lakebed_graph::JoinGraph;
    use lakebed_model::{
        Instant, JoinKind, JoinNotes, JoinStrategy, JoinUse, QueryRecord, QueryStatus, ScanUse,
        TableName, Workload,
    };

    use super::{PaperTable, plan};

    fn statement(joins: &[(&str, &str, JoinStrategy)]) -> QueryRecord {
        let side =
            |text: &str| text.split_once('.').map(|(t, c)| (TableName::new(t), c.to_owned()));
        let mut scans = Vec::new();
        let joins = joins
            .iter()
            .map(|(left, right, strategy)| {
                let ((left, a), (right, b)) = (side(left).unwrap(), side(right).unwrap());
                for table in [&left, &right] {
                    scans.push(ScanUse { table: Some(table.clone()), ..ScanUse::default() });
                }
                JoinUse {
                    left,
                    right,
                    pairs: vec![(a, b)],
                    kind: JoinKind::Inner,
                    strategy: Some(*strategy),
                    planned_strategy: None,
                    hint: None,
                    confidence: 1.0,
                    notes: JoinNotes::default(),
                }
            })
            .collect();
        QueryRecord {
            id: "q".to_owned(),
            started_at: Instant::default(),
            source: "test".to_owned(),
            sql: None,
            fingerprint: String::new(),
            duration_ms: None,
            status: QueryStatus::Finished,
            joins,
            scans,
            confidence: 1.0,
        }
    }

    #[test]
    fn the_most_used_large_join_decides_and_the_next_one_keeps_to_what_is_left() {
        use JoinStrategy::{Broadcast, SortMerge};
        let lines = ("lineitem.l_orderkey", "orders.o_orderkey", SortMerge);
        let spend = ("customer.c_custkey", "orders.o_custkey", SortMerge);
        let suppliers = ("lineitem.l_suppkey", "supplier.s_suppkey", Broadcast);
        let records = vec![
            statement(&[lines]),
            statement(&[lines, spend]),
            statement(&[spend]),
            statement(&[lines, suppliers]),
        ];
        let workload = Workload { records, ..Workload::default() };
        let table = |bytes, files| PaperTable { bytes, files };
        let tables = [
            ("lineitem", table(100.0, 10)),
            ("orders", table(30.0, 3)),
            ("customer", table(6.0, 2)),
            ("supplier", table(5.0, 2)),
        ];
        let tables: BTreeMap<TableName, PaperTable> =
            tables.into_iter().map(|(name, table)| (TableName::new(name), table)).collect();
        let plan = plan(&JoinGraph::build(&workload, &BTreeMap::new()), &tables);
        let plan: Vec<String> =
            plan.iter().map(|(table, layout)| format!("{table} {}", layout.keys())).collect();
        assert_eq!(plan, ["customer c_custkey", "lineitem l_orderkey", "orders o_orderkey"]);
    }
}
