//! The steps of chain files beyond age-off and sums, on real tables.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Run, lakebed, read_commits, rows, sql, stable};

fn lake(statements: &[&str]) -> TempDir {
    let lake = tempfile::tempdir().unwrap();
    sql(&lake, statements).succeeded();
    lake
}

fn run(lake: &TempDir, chain: &str, more: &[&str]) -> Run {
    fs::write(lake.path().join("chain.toml"), chain).unwrap();
    let arguments = ["--lake", ".", "compact", "t", "--chain", "chain.toml"];
    lakebed(lake.path(), &[&arguments, more].concat())
}

fn compact(lake: &TempDir, chain: &str) -> Value {
    run(lake, chain, &["--json"]).json()
}

fn values(lake: &TempDir) -> Vec<Value> {
    let mut all: Vec<Value> =
        rows(lake, "t").iter().map(|row| serde_json::from_str(row).unwrap()).collect();
    all.sort_by_key(|row| row["k"].as_i64());
    all
}

/// Three versions of key 1, a deleted key 2, and a key 3 that came back.
fn versions() -> TempDir {
    lake(&[
        "CREATE TABLE t (k INT, version BIGINT, v STRING, gone BOOLEAN) CLUSTER BY (k)",
        "INSERT INTO t VALUES (1, 2, 'b', false), (1, 1, 'a', false), (2, 1, 'x', false)",
        "INSERT INTO t VALUES (1, 3, 'c', NULL), (2, 2, 'x', true), (3, 1, 'y', true), (3, 2, 'z', false)",
    ])
}

const LATEST: &str =
    "row_keys = [\"k\"]\n[[iterator]]\nlatest_by = \"version\"\ndelete_marker = \"gone\"\n";

#[test]
fn latest_row_of_each_key_stays_and_deleted_keys_go() {
    let lake = versions();
    let report = compact(&lake, LATEST);
    let step = |name, rows_in, rows_out| json!({"name": name, "rows_in": rows_in, "rows_out": rows_out, "null_rows_dropped": 0});
    assert_eq!(report["steps"], json!([step("latest-by", 7, 3), step("delete-markers", 3, 2)]));
    let kept: Vec<Value> = values(&lake).iter().map(|row| row["v"].clone()).collect();
    assert_eq!(kept, ["c", "z"]);
    // A change that comes later wins over what was kept, and one that comes too late does not.
    sql(&lake, &["INSERT INTO t VALUES (1, 2, 'late', false), (3, 9, 'end', false)"]).succeeded();
    compact(&lake, LATEST);
    let kept: Vec<Value> = values(&lake).iter().map(|row| row["v"].clone()).collect();
    assert_eq!(kept, ["c", "end"]);
}

#[test]
fn history_tells_the_chain_and_its_instant() {
    let lake = versions();
    compact(&lake, LATEST);
    let log = read_commits(&lake.path().join("t"));
    let text = format!("{:?}", log.last().unwrap());
    assert!(text.contains("latest_by") && text.contains("delete_marker"), "{text}");
    assert!(text.contains("\"now\""), "{text}");
}

#[test]
fn predicate_keeps_the_rows_for_which_it_holds() {
    let lake = lake(&[
        "CREATE TABLE t (k INT, `Value` DOUBLE, v STRING) CLUSTER BY (k)",
        "INSERT INTO t VALUES (1, 1.5, 'x'), (2, -1.0, 'x'), (3, NULL, 'x'), (4, 9.0, 'y')",
    ]);
    let chain = "[[iterator]]\nfilter = \"predicate\"\nkeep = \"`Value` > 0 AND v = 'x'\"\n";
    let report = compact(&lake, chain);
    let expected =
        json!([{"name": "predicate", "rows_in": 4, "rows_out": 1, "null_rows_dropped": 1}]);
    assert_eq!(report["steps"], expected);
    assert_eq!(values(&lake).len(), 1);
    assert_eq!(compact(&lake, chain)["committed"], false);
}

#[test]
fn predicates_that_cannot_be_used_change_nothing() {
    let lake = versions();
    let before = read_commits(&lake.path().join("t")).len();
    for (keep, expected) in [
        ("version >", "predicate \"version >\" cannot be used"),
        ("nothing = 1", "nothing"),
        ("version + 1", "it gives"),
        ("k IN (SELECT 1)", "query in its predicate"),
        ("rand() < 0.5", "must say the same"),
    ] {
        let chain = format!("[[iterator]]\nfilter = \"predicate\"\nkeep = \"{keep}\"\n");
        let text = stable(&run(&lake, &chain, &[]).failure(), lake.path());
        assert!(text.starts_with("exit code 2") && text.contains(expected), "{keep}\n{text}");
    }
    assert_eq!(read_commits(&lake.path().join("t")).len(), before);
}

#[test]
fn first_last_top_average_and_maps_fold_alike_when_compacted_again() {
    let lake = lake(&[
        "CREATE TABLE t (k INT, at BIGINT, v STRING, best ARRAY<INT>, mean STRUCT<sum: DOUBLE, count: BIGINT>, m MAP<STRING, BIGINT>) CLUSTER BY (k)",
        "INSERT INTO t SELECT 1, 4, 'd', array(5, 1), named_struct('sum', CAST(3 AS DOUBLE), 'count', CAST(NULL AS BIGINT)), map('a', CAST(1 AS BIGINT))",
        "INSERT INTO t SELECT 1, 2, 'b', array(9, 5), named_struct('sum', CAST(5 AS DOUBLE), 'count', CAST(NULL AS BIGINT)), map('a', CAST(-1 AS BIGINT), 'b', CAST(2 AS BIGINT))",
    ]);
    let chain = "row_keys = [\"k\"]\n[[iterator]]\naggregate = { at = \"max\", v = { last = \"at\" }, best = { top = 3 }, mean = \"avg\", m = \"map_sum\" }\n";
    compact(&lake, chain);
    let once = values(&lake);
    assert_eq!((&once[0]["v"], &once[0]["best"]), (&json!("d"), &json!([9, 5, 5])));
    assert_eq!(once[0]["mean"], json!({"sum": 8.0, "count": 2}));
    sql(&lake, &["INSERT INTO t SELECT 1, 3, 'c', array(6), named_struct('sum', CAST(1 AS DOUBLE), 'count', CAST(NULL AS BIGINT)), map('b', CAST(1 AS BIGINT))"]).succeeded();
    compact(&lake, chain);
    let again = values(&lake);
    assert_eq!((&again[0]["v"], &again[0]["best"]), (&json!("d"), &json!([9, 6, 5])));
    assert_eq!(again[0]["mean"], json!({"sum": 9.0, "count": 3}));
}

#[track_caller]
fn refused(chain: &str, expected: &str) {
    let lake = versions();
    let before = read_commits(&lake.path().join("t")).len();
    let text = stable(&run(&lake, chain, &[]).failure(), lake.path());
    assert!(text.starts_with("exit code 2") && text.contains(expected), "{chain}\n{text}");
    assert_eq!(read_commits(&lake.path().join("t")).len(), before);
}

#[test]
fn steps_that_do_not_fit_are_refused_before_anything_is_read() {
    let keyed = |step: &str| format!("row_keys = [\"k\"]\n[[iterator]]\n{step}\n");
    let aggregate = |v: &str, version: &str| {
        keyed(&format!("aggregate = {{ gone = \"max\", version = \"{version}\", v = {v} }}"))
    };
    refused(&aggregate("\"last\"", "max"), "`last` needs more");
    refused(&aggregate("{ last = \"version\" }", "sum"), "which must be folded by max");
    refused(&aggregate("{ top = 0 }", "max"), "{ top = N }");
    refused(&aggregate("{ top = 3 }", "max"), "it takes an ARRAY");
    refused(&aggregate("\"avg\"", "max"), "an average of averages is wrong");
    refused(&aggregate("\"map_sum\"", "max"), "it takes maps");
    refused(&keyed("latest_by = \"k\""), "latest-by column \"k\" is a row key");
    refused(&keyed("latest_by = \"version\"\ndelete_marker = \"v\""), "need a BOOLEAN");
    refused(&keyed("latest_by = []"), "latest-by needs the columns that order rows");
    refused("[[iterator]]\nlatest_by = \"version\"\n", "set row_keys");
}
