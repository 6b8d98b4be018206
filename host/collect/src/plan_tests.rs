//! Lineage from plans, on logs that Spark wrote.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use lakebed_model::{JoinStrategy, JoinUse, QueryRecord, Workload};

use crate::{CollectOptions, EmptyCatalog, collect};

const ALL: CollectOptions = CollectOptions {
    format: None,
    window_ms: None,
    slide_ms: 0,
    half_life_ms: None,
    threads: None,
    redact: false,
};

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
            "partsupp–supplier ps_suppkey=s_suppkey inner",
            "part–partsupp p_partkey=ps_partkey inner",
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
        if let Some(composite) = lists.get("composite") {
            let has_all = |join: &JoinUse| {
                composite.iter().all(|edge| {
                    join.pairs.iter().any(|(left, right)| {
                        let (l, r) =
                            (format!("{}.{left}", join.left), format!("{}.{right}", join.right));
                        *edge == format!("{l}={r}") || *edge == format!("{r}={l}")
                    })
                })
            };
            assert!(record.joins.iter().any(has_all), "{name} {composite:?}");
        }
        let kinds: BTreeSet<String> =
            record.joins.iter().map(|join| join.kind.as_str().replace('_', " ")).collect();
        if let Some([kind]) = lists.get("kind").map(Vec::as_slice) {
            assert_eq!(kinds, BTreeSet::from([kind.clone()]), "{name}");
        }
    }
}

/// Expected kinds: `IN` and `EXISTS` of the queries' text are semi joins, their negations anti joins.
/// Spark also joins what follows from them: of query 18 the lines to the large orders' lines, of
/// query 20 the lines to the forest parts.
#[test]
fn tpch_queries_with_subqueries_have_the_kinds_of_their_text() {
    let expected: [(usize, &[&str]); 5] = [
        (
            16,
            &[
                "partsupp–supplier ps_suppkey=s_suppkey left_anti",
                "part–partsupp p_partkey=ps_partkey inner",
            ],
        ),
        (
            18,
            &[
                "customer–orders c_custkey=o_custkey inner",
                "lineitem–lineitem l_orderkey=l_orderkey left_semi",
                "lineitem–orders l_orderkey=o_orderkey inner",
                "lineitem–orders l_orderkey=o_orderkey left_semi",
            ],
        ),
        (
            20,
            &[
                "lineitem–part l_partkey=p_partkey left_semi",
                "lineitem–partsupp l_partkey=ps_partkey,l_suppkey=ps_suppkey inner",
                "nation–supplier n_nationkey=s_nationkey inner",
                "partsupp–supplier ps_suppkey=s_suppkey left_semi",
                "part–partsupp p_partkey=ps_partkey left_semi",
            ],
        ),
        (
            21,
            &[
                "lineitem–lineitem l_orderkey=l_orderkey left_anti",
                "lineitem–lineitem l_orderkey=l_orderkey left_semi",
                "lineitem–orders l_orderkey=o_orderkey inner",
                "lineitem–supplier l_suppkey=s_suppkey inner",
                "nation–supplier n_nationkey=s_nationkey inner",
            ],
        ),
        (22, &["customer–orders c_custkey=o_custkey left_anti"]),
    ];
    let workload = workload("tests/data/logs/tpch22.zstd");
    for (number, expected) in expected {
        assert_eq!(edges(&workload.records[number - 1]), expected, "query {number}");
    }
}

/// 62.5 GB of 312.4 GB in 366 of 1836 files: dynamic pruning left out the rest.
#[test]
fn query_72_has_its_time_and_what_pruning_left_out() {
    let workload = workload("tests/data/logs/nds_q72_dataproc_2_2.zstd");
    let record = &workload.records[0];
    assert_eq!(record.duration_ms, Some(71_125));
    let sales = &record.scans[0];
    assert_eq!(sales.table.as_ref().unwrap().as_str(), "catalog_sales");
    assert_eq!((sales.files_read, sales.files_total), (Some(366), Some(1_836)));
    let bytes = (sales.bytes_read, sales.bytes_total);
    assert_eq!(bytes, (Some(62_493_428_378), Some(312_360_059_348)));
    // Rows that left the join, and what it and its sorts spilled.
    let largest = &record.joins[0];
    assert_eq!(shown(largest), "catalog_sales–inventory cs_item_sk=inv_item_sk inner");
    assert_eq!(largest.notes.rows_out, Some(5_241_443_564));
    assert_eq!(largest.notes.spill_bytes, Some(0));
}

#[test]
fn old_versions_and_accelerators_are_read() {
    let spark2 = workload("tests/data/logs/spark2-eventlog.zstd");
    let salaries = "simple1.csv–simple2.csv salary=salary inner";
    assert_eq!(frequencies(&spark2), BTreeMap::from([(salaries.to_owned(), 2)]));
    assert_eq!((spark2.report.statements, spark2.report.parsed), (4, 4));

    // Eight shows of files, and no join.
    let nested = workload("tests/data/logs/complex_dec_eventlog.zstd");
    assert_eq!((nested.report.statements, nested.report.parsed), (8, 8));
    assert_eq!(frequencies(&nested), BTreeMap::new());
    assert_eq!(nested.records[0].scans[0].bytes_read, Some(6_775));

    // The accelerator joins rows that a program made: there is no table to lay out.
    let rows = workload("tests/data/logs/rapids_join_eventlog.zstd");
    assert_eq!((rows.records.len(), rows.report.skipped.system), (0, 1));
}

/// The statements of `shapes` have no text: the plan alone tells what a join carried over.
#[test]
fn filters_that_a_join_carries_over_are_told_without_text() {
    let workload = workload("tests/data/logs/shapes.zstd");
    let filters = |record: usize| -> Vec<String> {
        let filters = workload.records[record].filters();
        filters
            .map(|f| format!("{} {}", f.column, if f.inferred { "inferred" } else { "own" }))
            .collect()
    };
    // WHERE o.o_orderkey BETWEEN …
    assert_eq!(filters(0), ["orders.o_orderkey own", "lineitem.l_orderkey inferred"]);
    // WHERE o_custkey BETWEEN … in the CTE
    assert_eq!(filters(1), ["customer.c_custkey inferred", "orders.o_custkey own"]);
    // WHERE l_partkey BETWEEN …
    assert_eq!(filters(2), ["lineitem.l_partkey own", "partsupp.ps_partkey inferred"]);
    // l_quantity > 45
    assert_eq!(filters(3), ["lineitem.l_quantity own"]);
}

/// A log as it is but for one field of its events.
fn without(log: &str, field: &str) -> Workload {
    let log = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(log);
    let bytes = zstd::decode_all(std::fs::File::open(log).unwrap()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app-1");
    std::fs::write(&path, text.replace(&format!("\"{field}\":"), "\"left out\":")).unwrap();
    collect(&[path], &ALL, &EmptyCatalog).unwrap()
}

/// The tree and the long text are read by different code up to the walk.
#[test]
fn a_plan_says_the_same_as_tree_and_as_text() {
    fn lineage(workload: &Workload) -> Vec<(Vec<String>, BTreeSet<String>)> {
        let filter = |f: &lakebed_model::FilterUse| {
            let range = f.range.as_ref().map(ToString::to_string);
            format!("{} {} {range:?}", f.column, f.operator.as_str())
        };
        let lineage = |record| (edges(record), record.filters().map(filter).collect());
        workload.records.iter().map(lineage).collect()
    }
    for log in ["tpch22", "shapes", "windows/w4"] {
        let log = format!("tests/data/logs/{log}.zstd");
        let both = lineage(&workload(&log));
        assert_eq!(lineage(&without(&log, "sparkPlanInfo")), both, "{log}");
        let tree = without(&log, "physicalPlanDescription");
        // The tree alone does not say what the aggregate of one shape, and that of query 15, calls
        // its key: that is said to be lost.
        let partial = if log.contains("windows") { 0 } else { 1 };
        assert_eq!(tree.report.partial, partial, "{log}");
        if partial == 0 {
            assert_eq!(lineage(&tree), both, "{log}");
        }
    }
}

/// A log of one execution: its plan, then lines, then its end.
fn one_execution(plan: &serde_json::Value, text: &str, lines: &[serde_json::Value]) -> Workload {
    const SQL: &str = "org.apache.spark.sql.execution.ui.SparkListener";
    let mut events = vec![serde_json::json!({
        "Event": format!("{SQL}SQLExecutionStart"), "executionId": 1, "description": "q",
        "physicalPlanDescription": text, "sparkPlanInfo": plan, "time": 1_000,
    })];
    events.extend_from_slice(lines);
    events.push(serde_json::json!({
        "Event": format!("{SQL}SQLExecutionEnd"), "executionId": 1, "time": 4_000,
    }));
    // Spark writes the event's name first.
    let lines: Vec<String> = events
        .iter()
        .map(|event| {
            let mut event = event.as_object().unwrap().clone();
            let name = event.remove("Event").unwrap();
            let rest = serde_json::to_string(&event).unwrap();
            format!("{{\"Event\":{name},{}", &rest[1..])
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app-1");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    collect(&[path], &ALL, &EmptyCatalog).unwrap()
}

fn operator(
    text: &str,
    metrics: &[(&str, u64)],
    children: Vec<serde_json::Value>,
) -> serde_json::Value {
    let name = text.split(['[', '(']).next().unwrap().trim();
    let metrics: Vec<serde_json::Value> = metrics
        .iter()
        .map(|(name, id)| serde_json::json!({"name": name, "accumulatorId": id}))
        .collect();
    serde_json::json!({
        "nodeName": name, "simpleString": text, "children": children, "metadata": {}, "metrics": metrics,
    })
}

fn stage(counts: &[(u64, &str, u64)]) -> serde_json::Value {
    let counts: Vec<serde_json::Value> = counts
        .iter()
        .map(|(id, name, value)| serde_json::json!({"ID": id, "Name": name, "Value": value.to_string()}))
        .collect();
    serde_json::json!({
        "Event": "SparkListenerStageCompleted", "Stage Info": {"Stage ID": 0, "Accumulables": counts},
    })
}

/// Photon counts files in its tasks, under names of its own, and says what it pruned.
#[test]
fn counts_of_photon_belong_to_their_scan() {
    let scan = |table: &str, column: &str, first: u64| {
        let metrics = [
            ("rows output", first),
            ("files read", first + 1),
            ("files pruned", first + 2),
            ("size of files read", first + 3),
            ("size of files pruned", first + 4),
        ];
        operator(&format!("PhotonScan parquet {table}[{column}]"), &metrics, Vec::new())
    };
    let join = operator(
        "PhotonShuffledHashJoin [a#1], [b#2], Inner, BuildRight",
        &[("rows output", 30)],
        vec![scan("db.t", "a#1", 10), scan("db.u", "b#2", 20)],
    );
    let workload = one_execution(
        &join,
        "",
        &[stage(&[
            (10, "rows output", 500),
            (11, "files read", 3),
            (12, "files pruned", 7),
            (13, "size of files read", 300),
            (14, "size of files pruned", 700),
            (20, "rows output", 5),
            (21, "files read", 1),
            (30, "rows output", 50),
        ])],
    );
    let record = &workload.records[0];
    assert_eq!(edges(record), ["t–u a=b inner"]);
    assert_eq!((record.duration_ms, record.joins[0].notes.rows_out), (Some(3_000), Some(50)));
    let scans: Vec<String> = record
        .scans
        .iter()
        .map(|s| {
            format!(
                "files {:?} of {:?}, bytes {:?} of {:?}, rows {:?}",
                s.files_read, s.files_total, s.bytes_read, s.bytes_total, s.rows_out
            )
        })
        .collect();
    assert_eq!(
        scans,
        [
            "files Some(3) of Some(10), bytes Some(300) of Some(1000), rows Some(500)",
            "files Some(1) of None, bytes None of None, rows Some(5)",
        ]
    );
}

/// What a sort spills belongs to the join that it is made for, and to no other.
#[test]
fn spills_belong_to_the_join_that_sorts() {
    let spill = |id| [("spill size", id)];
    let scan = |text: &str, id| operator(text, &[("number of output rows", id)], Vec::new());
    let sort = |id, child| operator("Sort [a#1 ASC NULLS FIRST]", &spill(id), vec![child]);
    let wrapped = |child| operator("WholeStageCodegen (1)", &[], vec![child]);
    let inner = operator(
        "SortMergeJoin [a#1], [b#2], Inner",
        &[("number of output rows", 30), ("spill size", 31)],
        vec![
            wrapped(sort(32, scan("Scan parquet db.t[a#1]", 33))),
            wrapped(sort(34, scan("Scan parquet db.u[b#2]", 35))),
        ],
    );
    let aggregate =
        operator("HashAggregate(keys=[a#1], functions=[], output=[a#1])", &spill(40), vec![inner]);
    let outer = operator(
        "BroadcastHashJoin [a#1], [c#3], Inner, BuildRight",
        &[("number of output rows", 50)],
        vec![aggregate, scan("Scan parquet db.v[c#3]", 51)],
    );
    let counts = [
        (31, "spill size", 1),
        (32, "spill size", 20),
        (34, "spill size", 300),
        (40, "spill size", 4_000),
    ];
    let workload = one_execution(&outer, "", &[stage(&counts)]);
    let spilled: Vec<(String, Option<u64>)> = workload.records[0]
        .joins
        .iter()
        .map(|join| (shown(join), join.notes.spill_bytes))
        .collect();
    assert_eq!(
        spilled,
        [("t–u a=b inner".to_owned(), Some(321)), ("t–v a=c inner".to_owned(), None)]
    );
}

/// A log that lost the tree still has the text, and the text both plans.
#[test]
fn a_plan_of_which_only_the_text_is_left_is_read() {
    let text = "== Physical Plan ==\n\
         AdaptiveSparkPlan isFinalPlan=true\n\
         +- == Final Plan ==\n   \
            BroadcastHashJoin [k#1L], [j#2L], Inner, BuildRight, false\n   \
            :- FileScan parquet spark_catalog.db.t[k#1L] Batched: true, PushedFilters: [GreaterThan(k,5)], ReadSchema: struct<k:bigint>\n   \
            +- FileScan parquet spark_catalog.db.u[j#2L]\n\
         +- == Initial Plan ==\n   \
            SortMergeJoin [k#1L], [j#2L], Inner\n   \
            :- FileScan parquet spark_catalog.db.t[k#1L]\n   \
            +- FileScan parquet spark_catalog.db.u[j#2L]\n";
    for plan in [serde_json::Value::Null, serde_json::json!([])] {
        let workload = one_execution(&plan, text, &[]);
        let join = &workload.records[0].joins[0];
        assert_eq!(shown(join), "t–u k=j inner");
        let strategies = (join.planned_strategy, join.strategy);
        assert_eq!(strategies, (Some(JoinStrategy::SortMerge), Some(JoinStrategy::Broadcast)));
        let filters: Vec<String> =
            workload.records[0].filters().map(|f| f.column.to_string()).collect();
        assert_eq!(filters, ["t.k"]);
    }
}

/// One table under a catalog name, and by its folder as two clients spell it.
#[test]
fn scans_of_one_folder_are_one_table() {
    let scan = |text: &str| operator(text, &[], Vec::new());
    let at = |place: &str, name: &str, column: &str| {
        let mut node = scan(&format!("Scan parquet {name}[{column}]"));
        node["metadata"] =
            serde_json::json!({"Location": format!("PreparedDeltaFileIndex [{place}]")});
        node
    };
    let join = operator(
        "SortMergeJoin [a#1], [c#3], Inner",
        &[],
        vec![
            operator(
                "SortMergeJoin [a#1], [b#2], Inner",
                &[],
                vec![
                    at("s3://lake/sales/orders", "main.sales.orders", "a#1"),
                    at("s3a://lake/sales/orders/", "", "b#2"),
                ],
            ),
            at("s3a://lake/sales/items", "", "c#3"),
        ],
    );
    let workload = one_execution(&join, "", &[]);
    assert_eq!(edges(&workload.records[0]), ["items–orders c=a inner", "orders–orders a=b inner"]);
}
