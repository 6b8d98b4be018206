//! Lineage from plans, on logs that Spark wrote.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use lakebed_model::{JoinUse, QueryRecord, Workload};

use crate::{CollectOptions, EmptyCatalog, collect};

const ALL: CollectOptions = CollectOptions { format: None, window_ms: None };

fn workload(path: &str) -> Workload {
    let log = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
    collect(&[log], &ALL, &EmptyCatalog).unwrap()
}

/// `lineitem–orders l_orderkey=o_orderkey inner`, with what is noted of the join.
fn shown(join: &JoinUse) -> String {
    let pairs: Vec<String> = join.pairs.iter().map(|(l, r)| format!("{l}={r}")).collect();
    let mut text =
        format!("{}–{} {} {}", join.left, join.right, pairs.join(","), join.kind.as_str());
    if join.notes.cast {
        text.push_str(" cast");
    }
    if join.notes.null_safe {
        text.push_str(" null-safe");
    }
    if join.confidence < 1.0 {
        text.push_str(&format!(" {:.2}", join.confidence));
    }
    text
}

fn edges(record: &QueryRecord) -> Vec<String> {
    let edges: BTreeSet<String> = record.joins.iter().map(shown).collect();
    edges.into_iter().collect()
}

/// Statements per edge.
fn frequencies(workload: &Workload) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for edge in workload.records.iter().flat_map(edges) {
        *found.entry(edge).or_default() += 1;
    }
    found
}

/// The numbers are sums of the weights of the templates that have the edge: Q03, Q04 and Q06 join
/// customers to orders, Q01, Q02 and Q04 to Q07 orders to their lines, Q07 lines to suppliers, Q11
/// lines to what suppliers stock.
#[test]
fn edges_of_the_six_windows_are_as_frequent_as_their_templates() {
    #[track_caller]
    fn check(log: &str, orders: u64, lines: u64, suppliers: u64, stock: u64) {
        let expected = [
            ("customer–orders c_custkey=o_custkey inner", orders),
            ("lineitem–orders l_orderkey=o_orderkey inner", lines),
            ("lineitem–partsupp l_partkey=ps_partkey,l_suppkey=ps_suppkey inner", stock),
            ("lineitem–supplier l_suppkey=s_suppkey inner", suppliers),
        ];
        let expected: BTreeMap<String, u64> = expected
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(edge, count)| (edge.to_owned(), count))
            .collect();
        let workload = workload(log);
        assert_eq!(frequencies(&workload), expected, "{log}");
        assert_eq!((workload.report.statements, workload.report.parsed), (40, 40), "{log}");
    }
    check("examples/logs/w1", 4 + 5 + 3, 6 + 6 + 5 + 5 + 3 + 3, 3, 0);
    check("tests/data/logs/windows/w2.zstd", 4 + 5 + 3, 7 + 5 + 5 + 5 + 3 + 3, 3, 0);
    check("examples/logs/w3", 2 + 3 + 2, 3 + 3 + 3 + 2 + 2 + 2, 2, 17);
    check("tests/data/logs/windows/w4.zstd", 2 + 3 + 2, 2 + 3 + 3 + 2 + 2 + 2, 2, 18);
    check("tests/data/logs/windows/w5.zstd", 2 + 2 + 1, 2 + 2 + 2 + 2 + 1 + 1, 1, 0);
    check("tests/data/logs/windows/w6.zstd", 4 + 5 + 3, 6 + 6 + 5 + 5 + 3 + 3, 3, 0);
}

/// Expected: what the SQL of each statement joins.
#[test]
fn each_awkward_shape_has_its_edges() {
    const LINES: &str = "lineitem–orders l_orderkey=o_orderkey inner";
    const ORDERS: &str = "customer–orders c_custkey=o_custkey inner";
    let expected: [&[&str]; 14] = [
        // orders JOIN lineitem
        &[LINES],
        // CTE over orders JOIN customer JOIN lineitem
        &[ORDERS, LINES],
        // lineitem JOIN partsupp ON both keys
        &["lineitem–partsupp l_partkey=ps_partkey,l_suppkey=ps_suppkey inner"],
        // orders LEFT SEMI JOIN lineitem … AND l_quantity > 45
        &["lineitem–orders l_orderkey=o_orderkey left_semi"],
        // customer WHERE NOT EXISTS orders
        &["customer–orders c_custkey=o_custkey left_anti"],
        // orders FULL OUTER JOIN customer
        &["customer–orders c_custkey=o_custkey full_outer"],
        // (lineitem GROUP BY l_orderkey AS k) JOIN orders JOIN customer
        &[ORDERS, LINES],
        // (o_orderkey UNION ALL o_orderkey + 0) JOIN lineitem: half of the rows are computed
        &["lineitem–orders l_orderkey=o_orderkey inner 0.50"],
        // lineitem JOIN lineitem
        &["lineitem–lineitem l_orderkey=l_orderkey inner"],
        // CAST(l_orderkey AS STRING) = CAST(o_orderkey AS STRING)
        &["lineitem–orders l_orderkey=o_orderkey inner cast"],
        // l_orderkey <=> o_orderkey
        &["lineitem–orders l_orderkey=o_orderkey inner null-safe"],
        // (lineitem with row_number()) JOIN orders
        &[LINES],
        // l_orderkey + 1 = o_orderkey
        &[],
        // part JOIN partsupp JOIN supplier JOIN nation
        &[
            "nation–supplier n_nationkey=s_nationkey inner",
            "part–partsupp p_partkey=ps_partkey inner",
            "partsupp–supplier ps_suppkey=s_suppkey inner",
        ],
    ];
    let workload = workload("tests/data/logs/shapes.zstd");
    let found: Vec<Vec<String>> = workload.records.iter().map(edges).collect();
    assert_eq!(found, expected);
    assert_eq!((workload.report.statements, workload.report.parsed), (14, 14));
}

/// The queries of `tpch22-edges.toml`: for each list its strings.
fn tpch_edges() -> BTreeMap<String, BTreeMap<String, Vec<String>>> {
    let text = include_str!("../../../tests/data/logs/tpch22-edges.toml");
    let mut queries: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    let mut query = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            query = name.replace('q', "query");
            queries.entry(query.clone()).or_default();
        } else if let Some((list, values)) = line.split_once(" = ") {
            let values = values.split('"').skip(1).step_by(2).map(str::to_owned).collect();
            queries.get_mut(&query).unwrap().insert(list.to_owned(), values);
        }
    }
    queries
}

/// Columns that equalities connect, each with the least of its class.
fn classes(equalities: &[(String, String)]) -> BTreeMap<String, String> {
    let mut class: BTreeMap<String, String> = BTreeMap::new();
    for (left, right) in equalities {
        let of = |class: &BTreeMap<String, String>, column: &String| {
            class.get(column).unwrap_or(column).clone()
        };
        let (a, b) = (of(&class, left), of(&class, right));
        let (least, other) = if a < b { (a, b) } else { (b, a) };
        for column in [left, right] {
            class.entry(column.clone()).or_insert_with(|| least.clone());
        }
        for known in class.values_mut().filter(|known| **known == other) {
            known.clone_from(&least);
        }
    }
    class
}

#[test]
fn tpch_queries_have_the_edges_of_their_text_up_to_transitivity() {
    let workload = workload("tests/data/logs/tpch22.zstd");
    assert_eq!((workload.report.statements, workload.report.parsed), (22, 22));
    assert_eq!(workload.report.reasons, BTreeMap::new());
    let expected = tpch_edges();
    for (index, record) in workload.records.iter().enumerate() {
        let name = format!("query{:02}", index + 1);
        let none = BTreeMap::new();
        let lists = expected.get(&name).unwrap_or(&none);
        let stated: Vec<(String, String)> = lists
            .iter()
            .filter(|(list, _)| ["edges", "self"].contains(&list.as_str()))
            .flat_map(|(_, edges)| edges)
            .map(|edge| {
                let (left, right) = edge.split_once('=').unwrap();
                (left.to_owned(), right.to_owned())
            })
            .collect();
        let found: Vec<(String, String)> = record
            .joins
            .iter()
            .flat_map(|join| {
                join.pairs.iter().map(|(left, right)| {
                    (format!("{}.{left}", join.left), format!("{}.{right}", join.right))
                })
            })
            .collect();
        assert_eq!(classes(&found), classes(&stated), "{name}");
        for composite in lists.get("composite").into_iter() {
            let pairs = |join: &&JoinUse| {
                composite.iter().all(|edge| {
                    join.pairs.iter().any(|(left, right)| {
                        let (l, r) =
                            (format!("{}.{left}", join.left), format!("{}.{right}", join.right));
                        *edge == format!("{l}={r}") || *edge == format!("{r}={l}")
                    })
                })
            };
            assert!(record.joins.iter().find(pairs).is_some(), "{name} {composite:?}");
        }
    }
}
