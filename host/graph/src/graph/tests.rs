use std::collections::BTreeMap;

use lakebed_model::{
    ColumnRef, FilterOperator, FilterUse, Instant, JoinKind, JoinNotes, JoinStrategy, JoinUse,
    QueryRecord, QueryStatus, ScanUse, TableName, Window, Workload,
};

use super::JoinGraph;
use crate::{Degeneracy, EdgeScorer, EdgeStats, Figure, GraphError, ScoreError};

fn join(left: (&str, &str), right: (&str, &str)) -> JoinUse {
    JoinUse {
        left: TableName::new(left.0),
        right: TableName::new(right.0),
        pairs: vec![(left.1.to_owned(), right.1.to_owned())],
        kind: JoinKind::Inner,
        strategy: Some(JoinStrategy::SortMerge),
        planned_strategy: None,
        hint: None,
        confidence: 1.0,
        notes: JoinNotes::default(),
    }
}

fn scan(table: &str, bytes_read: u64, rows_out: u64) -> ScanUse {
    ScanUse {
        table: Some(TableName::new(table)),
        bytes_read: Some(bytes_read),
        rows_out: Some(rows_out),
        ..ScanUse::default()
    }
}

fn filter(table: &str, column: &str, inferred: bool) -> FilterUse {
    FilterUse {
        column: ColumnRef::new(table, column),
        operator: FilterOperator::Range,
        range: None,
        inferred,
    }
}

fn record(id: &str, duration_ms: u64, joins: Vec<JoinUse>, scans: Vec<ScanUse>) -> QueryRecord {
    QueryRecord {
        id: id.to_owned(),
        started_at: Instant::default(),
        source: "test".to_owned(),
        sql: None,
        fingerprint: String::new(),
        duration_ms: Some(duration_ms),
        status: QueryStatus::Finished,
        joins,
        scans,
        confidence: 1.0,
    }
}

fn graph(records: Vec<QueryRecord>) -> JoinGraph {
    JoinGraph::build(&Workload { records, ..Workload::default() }, &BTreeMap::new())
}

fn orders_lineitem() -> JoinUse {
    join(("lineitem", "l_orderkey"), ("orders", "o_orderkey"))
}

fn customer_orders() -> JoinUse {
    join(("customer", "c_custkey"), ("orders", "o_custkey"))
}

/// Scores an edge by its frequency.
#[derive(Debug)]
struct ByFrequency;

impl EdgeScorer for ByFrequency {
    fn name(&self) -> &'static str {
        "by-frequency"
    }

    fn score(&self, edges: &[EdgeStats]) -> Result<Vec<f64>, ScoreError> {
        Ok(edges.iter().map(|edge| edge.frequency as f64).collect())
    }
}

/// Returns these values whatever it is given.
#[derive(Debug)]
struct Says(Vec<f64>);

impl EdgeScorer for Says {
    fn name(&self) -> &'static str {
        "says"
    }

    fn score(&self, _: &[EdgeStats]) -> Result<Vec<f64>, ScoreError> {
        Ok(self.0.clone())
    }
}

#[test]
fn older_statements_count_less_where_a_half_life_is_given() {
    let at = |id: &str, epoch_ms: i64, join: JoinUse| QueryRecord {
        started_at: Instant::from_epoch_ms(epoch_ms),
        ..record(id, 10, vec![join], Vec::new())
    };
    let workload = Workload {
        window: Window { from: Instant::from_epoch_ms(0), to: Instant::from_epoch_ms(200) },
        records: vec![
            at("old", 0, customer_orders()),
            at("older", 100, customer_orders()),
            at("new", 200, orders_lineitem()),
        ],
        half_life_ms: Some(100),
        ..Workload::default()
    };
    let graph = JoinGraph::build(&workload, &BTreeMap::new());
    let counts = |table: &str| {
        let edge = graph.edges().iter().find(|edge| edge.stats.left.as_str() == table).unwrap();
        (edge.stats.frequency, edge.stats.weight)
    };
    assert_eq!(counts("customer"), (2, 0.75));
    assert_eq!(counts("lineitem"), (1, 1.0));
}

#[test]
fn edge_counts_each_statement_once_and_averages_over_statements() {
    let mut flipped = orders_lineitem();
    flipped.strategy = Some(JoinStrategy::Broadcast);
    flipped.planned_strategy = Some(JoinStrategy::SortMerge);
    flipped.kind = JoinKind::LeftSemi;
    flipped.confidence = 0.5;
    flipped.hint = Some(JoinStrategy::Broadcast);
    let graph = graph(vec![
        record(
            "b",
            100,
            vec![orders_lineitem(), flipped.clone()],
            vec![scan("lineitem", 10, 600), scan("orders", 5, 150), scan("customer", 1000, 9)],
        ),
        record("a", 300, vec![flipped], vec![scan("lineitem", 30, 60)]),
    ]);
    let [edge] = graph.edges() else { panic!("one edge, got {:?}", graph.edges()) };
    let stats = &edge.stats;
    assert_eq!(stats.key().to_string(), "lineitem ⋈ orders on l_orderkey = o_orderkey");
    assert_eq!(stats.frequency, 2);
    assert_eq!(stats.queries, ["a", "b"]);
    assert_eq!(stats.kinds, BTreeMap::from([(JoinKind::Inner, 1), (JoinKind::LeftSemi, 2)]));
    assert_eq!(
        stats.strategies,
        BTreeMap::from([(JoinStrategy::SortMerge, 1), (JoinStrategy::Broadcast, 2)])
    );
    assert_eq!(stats.planned_strategies, BTreeMap::from([(JoinStrategy::SortMerge, 2)]));
    assert_eq!(stats.notes.hints, BTreeMap::from([(JoinStrategy::Broadcast, 2)]));
    // Means by hand: (600 · 150 + 60 · 150) / 2 rows, orders of the second from the window; (100 + 300) / 2 ms; ((10 + 5) + 30) / 2 bytes; (1 + 0.5) / 2.
    let figures = [stats.rows_product_mean, stats.cost_ms_mean, stats.bytes_mean, stats.confidence];
    assert_eq!(figures.map(f64::to_bits), [49_500.0, 200.0, 22.5, 0.75].map(f64::to_bits));
}

#[test]
fn rows_are_those_that_a_statement_counts_else_the_tables_own() {
    let counted = |id: &str, scans| record(id, 1, vec![orders_lineitem()], scans);
    let records = vec![
        counted("a", vec![scan("lineitem", 1, 7), scan("lineitem", 1, 5), scan("orders", 1, 3)]),
        counted("b", vec![scan("lineitem", 1, 11)]),
        counted("c", Vec::new()),
    ];
    let rows = BTreeMap::from([(TableName::new("orders"), 100)]);
    let graph = JoinGraph::build(&Workload { records, ..Workload::default() }, &rows);
    // 7 · 3, then 11 · the 100 that the table has, then the most lines of the window · 100.
    let mean = (21.0 + 1_100.0 + 1_100.0) / 3.0;
    assert_eq!(graph.edges()[0].stats.rows_product_mean.to_bits(), f64::to_bits(mean));
}

#[test]
fn what_nothing_tells_of_an_edge_is_the_mean_of_the_others() {
    let mut silent = record("a", 0, vec![orders_lineitem()], vec![]);
    silent.duration_ms = None;
    let second = join(("customer", "c_custkey"), ("orders", "o_custkey"));
    let third = join(("lineitem", "l_suppkey"), ("supplier", "s_suppkey"));
    let scans = vec![scan("lineitem", 8, 99), scan("supplier", 2, 1)];
    let graph = graph(vec![
        silent,
        record("b", 100, vec![second], vec![]),
        record("c", 300, vec![third], scans),
    ]);
    let figures: Vec<(String, [f64; 3], &[Figure])> = graph
        .edges()
        .iter()
        .map(|edge| {
            let EdgeStats { rows_product_mean, cost_ms_mean, bytes_mean, assumed, .. } =
                &edge.stats;
            let figures = [*rows_product_mean, *cost_ms_mean, *bytes_mean];
            (edge.stats.key().to_string(), figures.map(f64::round), assumed.as_slice())
        })
        .collect();
    // Orders has no scan, so only the third edge knows its rows.
    let expected: [(&str, [f64; 3], &[Figure]); 3] = [
        (
            "customer ⋈ orders on c_custkey = o_custkey",
            [99.0, 100.0, 10.0],
            &[Figure::RowsProduct, Figure::Bytes],
        ),
        (
            "lineitem ⋈ orders on l_orderkey = o_orderkey",
            [99.0, 200.0, 10.0],
            &[Figure::RowsProduct, Figure::Cost, Figure::Bytes],
        ),
        ("lineitem ⋈ supplier on l_suppkey = s_suppkey", [99.0, 300.0, 10.0], &[]),
    ];
    assert_eq!(format!("{figures:?}"), format!("{expected:?}"));
}

#[test]
fn failed_statements_and_joins_without_equality_are_left_out() {
    let mut failed = record("a", 1, vec![orders_lineitem()], vec![scan("lineitem", 1, 1)]);
    failed.status = QueryStatus::Failed;
    let mut cross = orders_lineitem();
    cross.pairs.clear();
    let graph = graph(vec![failed, record("b", 1, vec![cross], Vec::new())]);
    assert_eq!(graph.statements(), 1);
    assert!(graph.edges().is_empty());
    assert_eq!(graph.tables(), [TableName::new("lineitem"), TableName::new("orders")]);
}

#[test]
fn pairs_of_one_join_are_one_edge_in_any_order() {
    let pair = |left: &str, right: &str| (left.to_owned(), right.to_owned());
    let mut one = join(("lineitem", ""), ("partsupp", ""));
    one.pairs = vec![pair("l_suppkey", "ps_suppkey"), pair("l_partkey", "ps_partkey")];
    let mut other = one.clone();
    other.pairs.reverse();
    let graph = graph(vec![record("a", 1, vec![one], vec![]), record("b", 1, vec![other], vec![])]);
    let [edge] = graph.edges() else { panic!("one edge, got {:?}", graph.edges()) };
    assert_eq!(
        edge.stats.key().to_string(),
        "lineitem ⋈ partsupp on l_partkey = ps_partkey and l_suppkey = ps_suppkey"
    );
    assert_eq!(edge.stats.columns_of(&TableName::new("lineitem")), ["l_partkey", "l_suppkey"]);
    assert_eq!(edge.stats.columns_of(&TableName::new("partsupp")), ["ps_partkey", "ps_suppkey"]);
}

#[test]
fn filters_count_statements_and_tell_inferred_ones() {
    let with = |id: &str, filters: Vec<FilterUse>| {
        let scan = ScanUse { filters, ..scan("lineitem", 1, 1) };
        record(id, 1, vec![], vec![scan])
    };
    let graph = graph(vec![
        with("a", vec![filter("lineitem", "l_orderkey", true), filter("lineitem", "k", false)]),
        with(
            "b",
            vec![filter("lineitem", "l_orderkey", true), filter("lineitem", "l_orderkey", false)],
        ),
    ]);
    let seen: Vec<_> = graph
        .filters()
        .iter()
        .map(|stats| (stats.column.as_str(), stats.frequency, stats.inferred))
        .collect();
    assert_eq!(seen, [("l_orderkey", 2, 1), ("k", 1, 0)]);
}

#[test]
fn classes_and_components_follow_the_equalities() {
    let graph = graph(vec![
        record("a", 1, vec![orders_lineitem(), customer_orders()], vec![]),
        record("b", 1, vec![join(("employee", "id"), ("employee", "manager"))], vec![]),
        record("c", 1, vec![], vec![scan("part", 1, 1)]),
        record("d", 1, vec![join(("lineitem", "l_orderkey"), ("shipment", "order"))], vec![]),
    ]);
    let classes: Vec<Vec<String>> = graph
        .column_classes()
        .iter()
        .map(|class| class.iter().map(ToString::to_string).collect())
        .collect();
    assert_eq!(
        classes,
        [
            vec!["customer.c_custkey", "orders.o_custkey"],
            vec!["employee.id", "employee.manager"],
            vec!["lineitem.l_orderkey", "orders.o_orderkey", "shipment.order"],
        ]
    );
    let components: Vec<Vec<String>> = graph
        .components()
        .iter()
        .map(|group| group.iter().map(ToString::to_string).collect())
        .collect();
    assert_eq!(
        components,
        [vec!["customer", "lineitem", "orders", "shipment"], vec!["employee"], vec!["part"]]
    );
    assert_eq!(graph.edges_of(&TableName::new("employee")).len(), 1);
    assert_eq!(graph.edges_of(&TableName::new("lineitem")).len(), 2);
    assert!(graph.edges_of(&TableName::new("part")).is_empty());
    assert!(graph.edges_of(&TableName::new("nowhere")).is_empty());
}

#[test]
fn scored_edges_are_sorted_by_score_then_names() {
    let graph = graph(vec![
        record("a", 1, vec![orders_lineitem()], vec![]),
        record("b", 1, vec![orders_lineitem(), customer_orders()], vec![]),
        record("c", 1, vec![join(("part", "p"), ("partsupp", "p"))], vec![]),
    ]);
    let names = |graph: &JoinGraph| -> Vec<String> {
        graph.edges().iter().map(|edge| edge.stats.left.to_string()).collect()
    };
    assert_eq!(names(&graph), ["customer", "lineitem", "part"]);
    assert_eq!(graph.scorer(), None);
    let scored = graph.scored(&ByFrequency).unwrap();
    assert_eq!(names(&scored), ["lineitem", "customer", "part"]);
    assert_eq!(scored.scorer(), Some("by-frequency"));
    let at_orders: Vec<f64> =
        scored.edges_of(&TableName::new("orders")).iter().map(|edge| edge.score).collect();
    assert_eq!(
        at_orders.iter().map(|s| s.to_bits()).collect::<Vec<_>>(),
        [2f64, 1.0].map(f64::to_bits)
    );
}

#[track_caller]
fn check_refused(scores: &[f64], expected: &str) {
    let graph = graph(vec![record("a", 1, vec![orders_lineitem()], vec![])]);
    let error: GraphError = graph.scored(&Says(scores.to_vec())).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn scores_that_are_no_ranking_are_refused() {
    check_refused(
        &[1.0, 2.0],
        "use the scores of `says`: 2 values for 1 edges, expected one per edge",
    );
    check_refused(
        &[f64::NAN],
        "use the score of `says` for lineitem ⋈ orders on l_orderkey = o_orderkey: NaN is not finite",
    );
    check_refused(
        &[f64::INFINITY],
        "use the score of `says` for lineitem ⋈ orders on l_orderkey = o_orderkey: inf is not finite",
    );
}

#[test]
fn graph_without_edges_is_scored_without_asking() {
    let scored = graph(vec![]).scored(&Says(vec![7.0])).unwrap();
    assert!(scored.edges().is_empty() && scored.components().is_empty());
}

#[test]
fn windows_that_normalization_flattens_are_told() {
    let one = graph(vec![record("a", 1, vec![orders_lineitem()], vec![])]);
    assert_eq!(one.degenerate(), Some(Degeneracy::SingleEdge));
    let equal = graph(vec![
        record("a", 1, vec![orders_lineitem()], vec![]),
        record("b", 2, vec![customer_orders()], vec![]),
    ]);
    let reason = equal.degenerate().unwrap();
    assert_eq!(reason, Degeneracy::Constant(vec![Figure::Frequency, Figure::RowsProduct]));
    assert_eq!(reason.to_string(), "every edge has the same frequency and rows_product_mean");
    assert_eq!(graph(vec![]).degenerate(), None);
}
