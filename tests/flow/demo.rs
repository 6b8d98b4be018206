//! The main job from end to end: one run of `demo`, looked at from several sides.

use std::{path::Path, sync::OnceLock};

use serde_json::Value;

use super::names;
use crate::support::{count_and_sum, empty_lake, lakebed, read_commits};

/// The report of one small demo, made once.
fn demo() -> &'static Value {
    static REPORT: OnceLock<Value> = OnceLock::new();
    REPORT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let report = run(folder.path());
        let kept = Path::new(report["folder"].as_str().expect("where the lake is"));
        assert_eq!(kept, std::path::absolute(folder.path().join("lake")).unwrap());
        check_lake(&folder.path().join("lake"));
        report
    })
}

fn run(folder: &Path) -> Value {
    lakebed(folder, &["demo", "--scale-factor", "0.01", "--dir", "lake", "--json"]).json()
}

/// `--dir` leaves the lake, and its tables hold all rows of scale factor 0.01.
#[track_caller]
fn check_lake(lake: &Path) {
    let mut opened = empty_lake();
    opened.add_folder(lake).unwrap();
    let rows = |table: &str, key: &str| {
        count_and_sum(&opened, key, &lakebed_model::TableName::new(table)).0
    };
    assert_eq!((rows("lineitem", "l_orderkey"), rows("orders", "o_orderkey")), (60_175, 15_000));
    assert_eq!((rows("customer", "c_custkey"), rows("supplier", "s_suppkey")), (1_500, 100));
    assert!(read_commits(&lake.join("lineitem")).len() > 1, "lineitem was rewritten");
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name}: {}", value[name]))
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name}: {}", value[name]))
}

#[test]
fn every_statement_has_the_same_answer_before_and_after() {
    let queries = list(demo(), "queries");
    assert_eq!(queries.len(), 40);
    for query in queries {
        assert_eq!(query["same_result"], true, "{query}");
        let figure = |name: &str| query[name].as_u64().expect("a count");
        assert!(figure("files_after") <= figure("files_total"), "{query}");
        assert!(figure("files_before") <= figure("files_total_before"), "{query}");
        for name in ["bytes_before", "bytes_after", "ms_before", "ms_after"] {
            figure(name);
        }
    }
    let ids: Vec<&str> = queries.iter().filter_map(|query| query["id"].as_str()).collect();
    assert_eq!((ids[0], ids[39]), ("Q01", "Q40"));
}

#[test]
fn clustering_skips_more_files_and_reads_fewer_bytes() {
    let report = demo();
    let (before, after) =
        (number(report, "skipping_rate_before"), number(report, "skipping_rate_after"));
    assert!((0.0..1.0).contains(&before) && after <= 1.0 && after > before, "{before} {after}");
    assert!(number(report, "skipping_rate_after_joins") > before);
    let ratio = number(report, "bytes_ratio");
    assert!(ratio > 0.0 && ratio < 1.0, "{ratio}");
    let sum = |name: &str| -> f64 {
        list(report, "queries").iter().map(|query| number(query, name)).sum()
    };
    assert!((sum("bytes_after") / sum("bytes_before") - ratio).abs() < 1e-9);
}

#[test]
fn tables_are_reported_with_their_keys_and_what_the_rewrite_cost() {
    let tables = list(demo(), "tables");
    assert_eq!(tables.len(), 8);
    for table in tables {
        let clustered = !list(table, "cluster_by").is_empty();
        assert_eq!(clustered, number(table, "rewritten_bytes") > 0.0, "{table}");
        assert!(number(table, "files") > 0.0 && number(table, "bytes") > 0.0, "{table}");
        assert!(!table["because"].as_str().unwrap().is_empty(), "{table}");
    }
    let keys = |name: &str| {
        let table = tables.iter().find(|table| table["table"] == name).expect("the table");
        names(&table["cluster_by"])
    };
    assert!(keys("lineitem").contains("l_orderkey"), "{}", keys("lineitem"));
    assert!(keys("orders").contains("o_orderkey"), "{}", keys("orders"));
    assert_eq!(keys("nation"), "", "nobody asked for it");
}

#[test]
fn drift_to_the_later_window_names_the_new_join() {
    let [drift] = list(demo(), "drift") else { panic!("{}", demo()["drift"]) };
    assert_eq!((&drift["from"], &drift["to"]), (&"w1".into(), &"w3".into()));
    assert_eq!(drift["replan"], true);
    assert!(number(drift, "distance") > 0.1, "{drift}");
    let new = names(&drift["new_edges"]);
    for part in ["lineitem", "partsupp", "l_partkey", "ps_partkey", "l_suppkey", "ps_suppkey"] {
        assert!(new.contains(part), "{new}");
    }
}

/// 1 000 sensors with readings every 14 hours: those of 30 days are kept, folded to a row a sensor.
#[test]
fn native_and_guest_compaction_leave_the_same_rows() {
    let compaction = &demo()["compaction"];
    assert_eq!(compaction["same_rows"], true, "{compaction}");
    assert_eq!(compaction["rows_in"], 100_000);
    assert_eq!(
        (&compaction["rows_native"], &compaction["rows_wasm"]),
        (&1_000.into(), &1_000.into())
    );
}

#[test]
fn an_impossible_scale_factor_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(
        lakebed(folder.path(), &["demo", "--scale-factor", "0"]).failure(),
        @r"
    exit code 2
    error: failed to generate TPC-H at scale factor 0
    help: choose a scale factor between 0.001 and 100
    "
    );
}

/// The bar of the shipped log at its own scale factor, measured by running the queries.
#[test]
fn demo_at_its_own_scale_meets_the_bar() {
    let folder = tempfile::tempdir().unwrap();
    let report = lakebed(folder.path(), &["demo", "--dir", "lake", "--json"]).json();
    assert!(number(&report, "skipping_rate_before") <= 0.05, "{report}");
    assert!(number(&report, "skipping_rate_after") >= 0.61, "{report}");
    assert!(number(&report, "skipping_rate_after_joins") >= 0.67, "{report}");
    assert!(number(&report, "bytes_ratio") <= 0.30, "{report}");
    let queries = list(&report, "queries");
    assert_eq!(queries.iter().filter(|query| query["same_result"] == true).count(), 40);
    for records in ["history", "plans", "drift"] {
        let kept = folder.path().join("lake").join("_lakebed").join(records);
        assert!(!read_commits(&kept).is_empty(), "{records}");
    }
}
