//! The crate on real logs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::PathBuf,
};

use lakebed_model::{JoinUse, ScanUse, Workload};

use crate::{
    CollectOptions, ColumnType, EmptyCatalog, collect,
    lineage::sql::{Dialect, lineage},
};

const ALL: CollectOptions = CollectOptions {
    format: None,
    window_ms: None,
    slide_ms: 0,
    half_life_ms: None,
    threads: None,
    redact: false,
};

fn log(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

fn workload(path: &str) -> Workload {
    collect(&[log(path)], &ALL, &EmptyCatalog).unwrap()
}

/// One line per edge: how many statements have it, and how they ran it.
fn edges(workload: &Workload) -> String {
    let mut found: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for record in &workload.records {
        for join in &record.joins {
            let pairs: Vec<String> =
                join.pairs.iter().map(|(left, right)| format!("{left}={right}")).collect();
            let edge =
                format!("{}–{} {} {}", join.left, join.right, pairs.join(","), join.kind.as_str());
            let strategy = |s: Option<lakebed_model::JoinStrategy>| s.map_or("-", |s| s.as_str());
            let how = format!("{}→{}", strategy(join.planned_strategy), strategy(join.strategy));
            *found.entry(edge).or_default().entry(how).or_default() += 1;
        }
    }
    let mut text = String::new();
    for (edge, how) in found {
        let how: Vec<String> = how.iter().map(|(how, n)| format!("{n} {how}")).collect();
        let _ = writeln!(text, "{edge}: {}", how.join(", "));
    }
    text
}

fn known() -> String {
    crate::ALL_SOURCES.iter().map(|source| source.name()).collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn check_error(paths: &[PathBuf], options: &CollectOptions, expected: &str) {
    let error = collect(paths, options, &EmptyCatalog).unwrap_err();
    let base = log("").display().to_string();
    assert_eq!(error.to_string().replace(&base, ""), expected);
}

/// Expected edges and counts: the weights of the window's query templates.
#[test]
fn window_one_has_three_edges_with_their_frequencies() {
    let workload = workload("examples/logs/w1");
    insta::assert_snapshot!(edges(&workload), @r"
    customer–orders c_custkey=o_custkey inner: 12 sort_merge→sort_merge
    lineitem–orders l_orderkey=o_orderkey inner: 28 sort_merge→sort_merge
    lineitem–supplier l_suppkey=s_suppkey inner: 3 broadcast→broadcast
    ");
    assert_eq!(workload.records.len(), 40);
    assert_eq!((workload.report.statements, workload.report.parsed), (40, 40));
    // 8 CREATE TABLE and 91 metadata queries of Delta itself.
    assert_eq!(workload.report.skipped.system, 99);
    assert!(workload.report.reasons.is_empty());
}

#[test]
fn the_same_queries_as_broadcasts_have_the_same_edges() {
    let workload = workload("tests/data/logs/w1-flips");
    insta::assert_snapshot!(edges(&workload), @r"
    customer–orders c_custkey=o_custkey inner: 12 broadcast→broadcast
    lineitem–orders l_orderkey=o_orderkey inner: 25 broadcast→broadcast, 3 sort_merge→broadcast
    lineitem–supplier l_suppkey=s_suppkey inner: 3 broadcast→broadcast
    ");
    assert_eq!(workload.records.len(), 40);
}

#[test]
fn window_three_has_a_composite_edge() {
    insta::assert_snapshot!(edges(&workload("examples/logs/w3")), @r"
    customer–orders c_custkey=o_custkey inner: 7 sort_merge→sort_merge
    lineitem–orders l_orderkey=o_orderkey inner: 15 sort_merge→sort_merge
    lineitem–partsupp l_partkey=ps_partkey,l_suppkey=ps_suppkey inner: 17 sort_merge→sort_merge
    lineitem–supplier l_suppkey=s_suppkey inner: 2 broadcast→broadcast
    ");
}

/// Two readers that share no code but the last step must tell the same story.
#[test]
fn the_text_and_the_plan_of_a_query_have_the_same_lineage() {
    let tables = crate::lineage::sql::tests::tpch();
    for path in ["examples/logs/w1", "examples/logs/w3"] {
        for record in workload(path).records {
            let sql = record.sql.as_deref().unwrap();
            let lineage = lineage(sql, Dialect::Spark, &tables).unwrap();
            let joins = |joins: &[JoinUse]| -> BTreeSet<String> {
                joins
                    .iter()
                    .map(|j| format!("{} {} {:?} {:?}", j.left, j.right, j.pairs, j.kind))
                    .collect()
            };
            let filters = |scans: &[ScanUse]| -> BTreeSet<String> {
                scans
                    .iter()
                    .flat_map(|scan| &scan.filters)
                    .map(|f| {
                        let range = f.range.as_ref().map(ToString::to_string);
                        format!("{} {:?} {range:?} {}", f.column, f.operator, f.inferred)
                    })
                    .collect()
            };
            assert_eq!(joins(&lineage.joins), joins(&record.joins), "{sql}");
            assert_eq!(filters(&lineage.scans), filters(&record.scans), "{sql}");
        }
    }
}

/// Expected edges: the SQL of TPC-DS query 72.
#[test]
fn query_72_has_its_eleven_edges_and_no_more() {
    let workload = workload("tests/data/logs/nds_q72_dataproc_2_2.zstd");
    insta::assert_snapshot!(edges(&workload), @r"
    catalog_returns–catalog_sales cr_item_sk=cs_item_sk,cr_order_number=cs_order_number right_outer: 1 sort_merge→sort_merge
    catalog_sales–customer_demographics cs_bill_cdemo_sk=cd_demo_sk inner: 1 broadcast→broadcast
    catalog_sales–date_dim cs_ship_date_sk=d_date_sk inner: 1 broadcast→broadcast
    catalog_sales–date_dim cs_sold_date_sk=d_date_sk inner: 1 broadcast→broadcast
    catalog_sales–household_demographics cs_bill_hdemo_sk=hd_demo_sk inner: 1 broadcast→broadcast
    catalog_sales–inventory cs_item_sk=inv_item_sk inner: 1 sort_merge→sort_merge
    catalog_sales–item cs_item_sk=i_item_sk inner: 1 broadcast→broadcast
    catalog_sales–promotion cs_promo_sk=p_promo_sk left_outer: 1 broadcast→broadcast
    date_dim–date_dim d_week_seq=d_week_seq inner: 1 broadcast→broadcast
    date_dim–inventory d_date_sk=inv_date_sk inner: 1 broadcast→broadcast
    inventory–warehouse inv_warehouse_sk=w_warehouse_sk inner: 1 broadcast→broadcast
    ");
    assert_eq!(workload.records.len(), 1);
    let scans: Vec<String> = workload.records[0]
        .scans
        .iter()
        .map(|scan| {
            let table = scan.table.as_ref().map_or("?", |table| table.as_str());
            format!("{table} {:?} {:?} {:?}", scan.files_read, scan.bytes_read, scan.rows_out)
        })
        .collect();
    insta::assert_snapshot!(scans.join("\n"), @r"
        catalog_sales Some(366) Some(62493428378) Some(859768935)
        inventory Some(261) Some(5452509102) Some(1033560000)
        warehouse Some(1) Some(5540) Some(22)
        item Some(1) Some(34334988) Some(360000)
        customer_demographics Some(1) Some(7776609) Some(1920800)
        household_demographics Some(1) Some(30900) Some(7200)
        date_dim Some(1) Some(1843042) Some(73049)
        date_dim Some(1) Some(1843042) Some(73049)
        date_dim Some(1) Some(1843042) Some(73049)
        promotion Some(1) Some(92573) Some(1800)
        catalog_returns Some(2104) Some(32236338190) Some(432018033)
        ");
}

#[test]
fn a_scan_has_its_filters_sizes_and_what_was_inferred() {
    let workload = workload("examples/logs/w1");
    let first = &workload.records[0];
    let mut text = format!(
        "{} {} ms {:?}\n{}\n",
        first.id,
        first.duration_ms.unwrap(),
        first.status,
        first.sql.as_deref().unwrap()
    );
    for scan in &first.scans {
        let _ = writeln!(
            text,
            "{} {} {:?} files {:?} bytes {:?} rows {:?}",
            scan.table.as_ref().unwrap(),
            scan.location.as_deref().unwrap(),
            scan.columns,
            scan.files_read,
            scan.bytes_read,
            scan.rows_out
        );
        for filter in &scan.filters {
            let _ = writeln!(
                text,
                "  {} {} {} inferred={}",
                filter.column,
                filter.operator.as_str(),
                filter.range.as_ref().unwrap(),
                filter.inferred
            );
        }
    }
    insta::assert_snapshot!(text, @r#"
    local-1795995627429/8 22728 ms Finished
    SELECT o_orderpriority, count(*) n, sum(l_extendedprice) s FROM orders o JOIN lineitem l ON o.o_orderkey = l.l_orderkey WHERE o.o_orderkey BETWEEN 348543 AND 468542 GROUP BY o_orderpriority ORDER BY 1
    orders file:/lake/tpch/orders ["o_orderkey", "o_orderpriority"] files Some(7) bytes Some(1427679) rows Some(35000)
      orders.o_orderkey range [348543, 468542] inferred=false
    lineitem file:/lake/tpch/lineitem ["l_orderkey", "l_extendedprice"] files Some(21) bytes Some(4911674) rows Some(126126)
      lineitem.l_orderkey range [348543, 468542] inferred=true
    "#);
}

#[test]
fn a_malformed_line_is_counted_and_passed_over() {
    let workload = workload("tests/data/logs/malformed_json_eventlog.zstd");
    assert_eq!(workload.report.malformed_lines, 1);
    assert!(!workload.report.truncated);
}

#[test]
fn a_cut_log_keeps_the_statements_before_the_cut() {
    let whole = log("examples/logs/w1/eventlog_v2_local-1795995627429")
        .join("events_1_local-1795995627429.zstd");
    let bytes = std::fs::read(whole).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.zstd");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let workload = collect(&[path], &ALL, &EmptyCatalog).unwrap();
    assert!(workload.report.truncated);
    assert!((10..40).contains(&workload.records.len()), "{}", workload.records.len());
}

#[test]
fn the_same_log_twice_counts_once() {
    let paths = [log("examples/logs/w1"), log("examples/logs/w1")];
    let workload = collect(&paths, &ALL, &EmptyCatalog).unwrap();
    assert_eq!(workload.records.len(), 40);
    assert_eq!(workload.report.statements, 40);
    assert_eq!(workload.report.skipped.duplicate, 40);
}

#[test]
fn a_window_keeps_the_newest_statements_in_order() {
    let options = CollectOptions { window_ms: Some(10_000), ..ALL };
    let workload = collect(&[log("examples/logs/w1")], &options, &EmptyCatalog).unwrap();
    let span = workload.window.to.epoch_ms() - workload.window.from.epoch_ms();
    assert!((1..=10_000).contains(&span), "{span}");
    assert!(workload.records.len() < 40);
    assert!(workload.records.is_sorted_by_key(|record| (record.started_at, &record.id)));
}

#[test]
fn errors_say_what_and_where() {
    let known = known();
    check_error(&[log("no/such/log")], &ALL, "read log `no/such/log`: no such file or folder");
    check_error(
        &[log("tests/data/logs/empty_eventlog")],
        &ALL,
        "find queries: no SQL statements in `tests/data/logs/empty_eventlog`, which holds \
         1 SparkListenerApplicationEnd, 1 SparkListenerApplicationStart, \
         1 SparkListenerBlockManagerAdded, 1 SparkListenerEnvironmentUpdate, \
         1 SparkListenerExecutorAdded, 1 SparkListenerLogStart, \
         1 SparkListenerResourceProfileAdded",
    );
    check_error(
        &[log("clippy.toml")],
        &ALL,
        &format!(
            "recognize log `clippy.toml`: its first line `allow-unwrap-in-tests = true` \
             belongs to no known format ({known})"
        ),
    );
    let options = CollectOptions { format: Some("excel".to_owned()), ..ALL };
    check_error(
        &[log("clippy.toml")],
        &options,
        &format!("read logs as `excel`: unknown format, expected one of {known}"),
    );
}

#[test]
fn a_folder_without_a_log_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), "x,y").unwrap();
    std::fs::write(folder.path().join("b.csv"), "x,y").unwrap();
    let error = collect(&[folder.path().to_owned()], &ALL, &EmptyCatalog).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "find a log in folder `{}`: none of its 2 files is a log of a known format \
             ({})",
            folder.path().display(),
            known()
        )
    );
}

#[test]
fn a_codec_that_is_not_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.xz");
    std::fs::write(&path, b"\xfd7zXZ\0").unwrap();
    let error = collect(std::slice::from_ref(&path), &ALL, &EmptyCatalog).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "read log `{}`: it is compressed with xz, expected plain text, zstd, gzip, lz4, snappy \
             or lzf",
            path.display()
        )
    );
}

fn json_lines(lines: &str) -> Workload {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    std::fs::write(&path, lines).unwrap();
    let column = |name: &str, kind| (name.to_owned(), kind);
    let catalog = BTreeMap::from([
        (
            "orders".to_owned(),
            vec![
                column("o_orderkey", ColumnType::Integer),
                column("o_custkey", ColumnType::Integer),
                column("o_orderdate", ColumnType::Date),
            ],
        ),
        ("lineitem".to_owned(), vec![column("l_orderkey", ColumnType::Integer)]),
    ]);
    collect(&[path], &ALL, &catalog).unwrap()
}

#[test]
fn json_lines_are_read_with_their_counts() {
    let workload = json_lines(concat!(
        r#"{"ts":"2026-11-29T10:00:01Z","sql":"SELECT 1 FROM lineitem, orders WHERE l_orderkey = o_orderkey","duration_ms":12.4,"warehouse":"x"}"#,
        "\n",
        r#"{"ts":1795900000000,"sql":"SELECT count(*) FROM sales.orders WHERE o_orderdate < '1995-01-01'","bytes_read":77,"id":"a"}"#,
        "\nnot json\n",
        r#"{"ts":1,"sql":"SELECT 1 FROM orders","status":"FAILED"}"#,
        "\n",
        r#"{"ts":2,"sql":"SHOW TABLES"}"#,
        "\n",
        r#"{"ts":3,"sql":"SELECT FROM","id":"bad"}"#,
        "\n",
        r#"{"ts":4,"sql":"SEL"#,
    ));
    let report = &workload.report;
    assert_eq!((report.statements, report.parsed, report.unparsed), (3, 2, 1));
    assert_eq!((report.skipped.failed, report.skipped.metadata), (1, 1));
    assert_eq!((report.malformed_lines, report.truncated), (1, true));
    insta::assert_snapshot!(format!("{:#?}", report.reasons), @r#"
    {
        "parse SQL at line 1, column 12: Expected: identifier, found: EOF": 1,
    }
    "#);
    insta::assert_snapshot!(edges(&workload), @"lineitem–orders l_orderkey=o_orderkey inner: 1 -→-");
    let ids: Vec<&str> = workload.records.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids, ["bad", "a", "history.jsonl:1"]);
    assert_eq!(workload.records[1].bytes_read(), Some(77));
    assert_eq!(workload.records[2].duration_ms, Some(12));
    assert_eq!(
        workload.records[1].scans[0].filters[0].range.as_ref().unwrap().to_string(),
        "(-∞, 1995-01-01)"
    );
}

/// A Spark event log of hand-written SQL events.
fn spark_log(lines: &[String]) -> Result<Workload, crate::CollectError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app-1");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    collect(&[path], &ALL, &EmptyCatalog)
}

fn event(name: &str, fields: &str) -> String {
    format!("{{\"Event\":\"org.apache.spark.sql.execution.ui.SparkListener{name}\",{fields}}}")
}

fn start(id: u64, root: u64, description: &str, plan: &str) -> String {
    event(
        "SQLExecutionStart",
        &format!(
            "\"executionId\":{id},\"rootExecutionId\":{root},\"description\":\"{description}\",\
             \"physicalPlanDescription\":\"\",\"sparkPlanInfo\":{plan},\"time\":{}",
            1_000 * (id + 1)
        ),
    )
}

fn end(id: u64, message: &str) -> String {
    event(
        "SQLExecutionEnd",
        &format!(
            "\"executionId\":{id},\"time\":{},\"errorMessage\":\"{message}\"",
            1_000 * (id + 1) + 500
        ),
    )
}

fn plan_node(name: &str, text: &str, children: &str, metrics: &str) -> String {
    format!(
        "{{\"nodeName\":\"{name}\",\"simpleString\":\"{text}\",\"children\":[{children}],\
         \"metadata\":{{}},\"metrics\":[{metrics}]}}"
    )
}

fn scan_node(table: &str, column: &str, metric: u64) -> String {
    plan_node(
        &format!("Scan parquet {table}"),
        &format!("FileScan parquet {table}[{column}]"),
        "",
        &format!(
            "{{\"name\":\"number of output rows\",\"accumulatorId\":{metric}}},\
             {{\"name\":\"number of files read\",\"accumulatorId\":{}}}",
            metric + 1
        ),
    )
}

#[test]
fn failed_statements_and_commands_are_counted_and_left_out() {
    let scan = scan_node("db.t", "a#1", 10);
    let workload = spark_log(&[
        start(0, 0, "SELECT a FROM t", &scan),
        end(0, "boom"),
        start(1, 1, "SHOW TABLES", &plan_node("Execute ShowTables", "Execute", "", "")),
        end(1, ""),
        start(2, 2, "SELECT a FROM t", &scan),
        end(2, ""),
        start(3, 3, "SELECT a FROM t", &scan),
    ])
    .unwrap();
    assert_eq!((workload.report.skipped.failed, workload.report.skipped.metadata), (1, 1));
    let shown: Vec<String> = workload
        .records
        .iter()
        .map(|record| format!("{} {:?} {:?}", record.id, record.status, record.duration_ms))
        .collect();
    assert_eq!(shown, ["app-1/2 Finished Some(500)", "app-1/3 Unknown None"]);
}

#[test]
fn nested_executions_are_folded_into_their_root() {
    let write = plan_node("Execute MergeIntoCommand", "Execute", "", "");
    let workload = spark_log(&[
        start(4, 4, "MERGE INTO t USING s ON t.a = s.b", &write),
        start(5, 4, "Delta: find touched files", &scan_node("db.t", "a#1", 10)),
        end(5, ""),
        start(6, 4, "Delta: snapshot", &plan_node("LocalTableScan", "LocalTableScan", "", "")),
        end(6, ""),
        end(4, ""),
    ])
    .unwrap();
    assert_eq!((workload.report.statements, workload.report.skipped.system), (1, 1));
    assert_eq!(workload.records[0].id, "app-1/4");
    assert_eq!(workload.records[0].scans[0].table.as_ref().unwrap().as_str(), "t");
}

#[test]
fn a_join_that_adaptive_execution_dropped_is_kept_as_planned() {
    let sides = [scan_node("db.t", "a#1", 10), scan_node("db.u", "b#2", 20)].join(",");
    let planned = plan_node("SortMergeJoin", "SortMergeJoin [a#1], [b#2], Inner", &sides, "");
    let last = plan_node("LocalTableScan", "LocalTableScan <empty>", "", "");
    let workload = spark_log(&[
        start(0, 0, "SELECT 1 FROM t, u", &planned),
        event("DriverAccumUpdates", "\"executionId\":0,\"accumUpdates\":[[11,3]]"),
        event("SQLAdaptiveExecutionUpdate", &format!("\"executionId\":0,\"sparkPlanInfo\":{last}")),
        end(0, ""),
    ])
    .unwrap();
    assert_eq!(edges(&workload), "t–u a=b inner: 1 sort_merge→-\n");
    // Only `t` was read before the other side turned out not to matter.
    let scans: Vec<_> = workload.records[0]
        .scans
        .iter()
        .map(|scan| (scan.table.clone(), scan.files_read))
        .collect();
    assert_eq!(scans, [(Some(lakebed_model::TableName::new("t")), Some(3))]);
}

#[test]
fn a_plan_deeper_than_json_parsers_like_is_read() {
    let mut plan = scan_node("db.t", "a#1", 10);
    for _ in 0..200 {
        plan = plan_node("InputAdapter", "InputAdapter", &plan, "");
    }
    let workload = spark_log(&[start(0, 0, "SELECT a FROM t", &plan), end(0, "")]).unwrap();
    assert_eq!(workload.records.len(), 1);
}

#[test]
fn no_bytes_make_a_source_panic() {
    let whole = std::fs::read(log("tests/data/logs/empty_eventlog")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    for cut in (0..whole.len()).step_by(37) {
        let mut bytes = whole[..cut].to_vec();
        bytes.extend([0xff, b'\n', b'{', b'"']);
        std::fs::write(&path, bytes).unwrap();
        for source in crate::ALL_SOURCES {
            let options = CollectOptions { format: Some(source.name().to_owned()), ..ALL };
            let _ = collect(std::slice::from_ref(&path), &options, &EmptyCatalog);
        }
    }
}
