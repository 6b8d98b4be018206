//! What `lakebed sql` keeps of the statements it runs, and reads back.

use std::{fs, path::Path};

use serde_json::Value;

use crate::support::{lakebed, small_lake_copy};

const JOIN: &str =
    "SELECT count(*) FROM orders JOIN lineitem ON o_orderkey = l_orderkey WHERE o_orderkey < 100";
const LOOKUP: &str = "SELECT o_orderkey FROM orders WHERE o_orderkey = 7";

#[track_caller]
fn collected(lake: &Path) -> Vec<Value> {
    lakebed(lake, &["--lake", ".", "--json", "collect", "."]).json_lines()
}

#[test]
fn statements_of_our_own_engine_are_read_back_from_the_lake() {
    let lake = small_lake_copy();
    let path = lake.path();
    let shown = lakebed(path, &["--lake", ".", "sql", LOOKUP]);
    let figures = shown.succeeded().stdout.lines().last().unwrap().to_owned();
    lakebed(
        path,
        &[
            "--lake",
            ".",
            "sql",
            JOIN,
            "SET spark.databricks.delta.autoCompact.enabled = false",
            "DESCRIBE DETAIL orders",
        ],
    )
    .succeeded();
    let failed = lakebed(path, &["--lake", ".", "sql", "SELECT nope FROM orders"]);
    assert_eq!(failed.code, 2, "{}", failed.stderr);

    let lines = collected(path);
    let [lookup, join, report] = lines.as_slice() else { panic!("{lines:#?}") };
    assert_eq!((&lookup["source"], &lookup["sql"]), (&"lakebed".into(), &LOOKUP.into()));
    let scan = &lookup["scans"][0];
    assert_eq!(scan["filters"][0]["range"], "[7, 7]");
    // The figures are those that the run printed.
    let read = scan["files_read"].as_u64().unwrap();
    assert!(figures.starts_with(&format!("{read} of ")), "{figures}");
    assert!(scan["bytes_read"].as_u64().unwrap() > 0);
    assert!(lookup["duration_ms"].is_u64());
    assert_eq!(join["joins"][0]["pairs"], serde_json::json!([["l_orderkey", "o_orderkey"]]));
    assert_eq!(
        (&report["parse"]["statements"], &report["parse"]["skipped"]["failed"]),
        (&2.into(), &1.into())
    );

    let graph = lakebed(path, &["--lake", ".", "--json", "graph", "."]).json();
    assert_eq!(graph["edges"][0]["frequency"], 1);
}

/// Versions are those that the statement saw, not the newest.
#[test]
fn own_history_has_the_versions_of_tables() {
    let lake = small_lake_copy();
    let path = lake.path();
    lakebed(
        path,
        &[
            "--lake",
            ".",
            "sql",
            "DELETE FROM orders WHERE o_orderkey = 1",
            "SELECT count(*) FROM orders VERSION AS OF 0",
            LOOKUP,
        ],
    )
    .succeeded();
    fs::write(path.join("records.toml"), "[tables]\nrecords = \"_lakebed/statements\"\n").unwrap();
    let sql = "SELECT kind, table_versions, origin FROM records ORDER BY started_at";
    let rows = lakebed(path, &["--config", "records.toml", "--json", "sql", sql]).json_lines();
    let kinds: Vec<&str> = rows.iter().map(|row| row["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["DELETE", "SELECT", "SELECT"]);
    assert_eq!(rows[1]["table_versions"], "{\"orders\":0}");
    let newest: Value = serde_json::from_str(rows[2]["table_versions"].as_str().unwrap()).unwrap();
    assert!(newest["orders"].as_u64() > Some(0), "{newest}");
    assert!(rows.iter().all(|row| row["origin"] == "user"));
}

#[test]
fn own_history_is_kept_without_constants_or_not_at_all_where_the_configuration_says_so() {
    for (setting, kept) in
        [("redacted", Some("SELECT o_orderkey FROM orders WHERE o_orderkey = ?")), ("off", None)]
    {
        let lake = small_lake_copy();
        let path = lake.path();
        fs::write(
            path.join("lakebed.toml"),
            format!("[lake]\nfolder = \".\"\nhistory = \"{setting}\"\n"),
        )
        .unwrap();
        lakebed(path, &["sql", LOOKUP]).succeeded();
        match kept {
            Some(kept) => {
                let lines = lakebed(path, &["--json", "collect", "."]).json_lines();
                assert_eq!(lines[0]["sql"], kept);
            }
            None => assert!(!path.join("_lakebed").exists()),
        }
    }
}

#[test]
fn rows_that_stand_in_a_statement_are_not_kept() {
    let lake = tempfile::tempdir().unwrap();
    let path = lake.path();
    lakebed(path, &["--lake", ".", "sql", "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (4711)"])
        .succeeded();
    assert!(!path.join("_lakebed").exists());
}

#[test]
fn queries_of_our_own_records_are_nobodys_workload() {
    let lake = small_lake_copy();
    let path = lake.path();
    let sql =
        format!("SELECT count(*) FROM delta.`{}`", path.join("_lakebed/statements").display());
    lakebed(path, &["--lake", ".", "sql", LOOKUP, &sql]).succeeded();
    let lines = collected(path);
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert_eq!(lines[1]["parse"]["statements"], 1);
}
