//! What Lakebed keeps of its own work: Delta tables under `_lakebed/`.

use std::path::Path;

use serde_json::Value;

use super::{W1, W3, on_log};
use crate::support::{Run, lakebed, project, read_commits, small_lake_copy};

/// Counts the rows of a table of records, as any engine would.
#[track_caller]
fn rows(lake: &Path, records: &str, column: &str) -> Vec<Value> {
    let location = lake.join("_lakebed").join(records);
    assert!(!read_commits(&location).is_empty(), "no table {}", location.display());
    let config = format!("[tables]\nrecords = {:?}\n", location.display().to_string());
    std::fs::write(lake.join("records.toml"), config).unwrap();
    let sql = format!("SELECT {column} FROM records");
    lakebed(lake, &["--config", "records.toml", "--json", "sql", &sql]).json_lines()
}

#[test]
fn collected_statements_are_appended_to_the_history() {
    let lake = tempfile::tempdir().unwrap();
    let collect = || -> Run { on_log(lake.path(), "collect", W1, &["--into", "."]) };
    assert!(collect().succeeded().stdout.starts_with("40 records appended to "));
    assert_eq!(rows(lake.path(), "history", "id").len(), 40);
    collect().succeeded();
    assert_eq!(rows(lake.path(), "history", "id").len(), 80);
    let joins = rows(lake.path(), "history", "joins");
    let orders = joins.iter().filter(|row| row["joins"].as_str().unwrap().contains("o_orderkey"));
    assert_eq!(orders.count(), 56, "28 statements, twice");
}

#[test]
fn what_collect_prints_for_programs_ends_with_the_parse_report() {
    let lake = tempfile::tempdir().unwrap();
    let run = on_log(lake.path(), "collect", W1, &["--json"]);
    let lines = run.json_lines();
    assert_eq!((lines.len(), run.stderr.as_str()), (41, ""));
    assert_eq!(lines[40]["parse"]["statements"], 40);
    let kept = on_log(lake.path(), "collect", W1, &["--json", "--into", "."]).json();
    assert_eq!((&kept["records"], &kept["version"]), (&40.into(), &0.into()));
    assert_eq!(
        (&kept["table"], &kept["parse"]),
        (&"./_lakebed/history".into(), &lines[40]["parse"])
    );
}

#[test]
fn plans_and_drift_are_kept_and_are_no_tables_of_the_lake() {
    let lake = small_lake_copy();
    let path = lake.path();
    let plan = on_log(path, "plan", W1, &["--lake", ".", "--json"]).json();
    assert_eq!(rows(path, "plans", "id"), [serde_json::json!({ "id": plan["id"] })]);

    let later = project(W3).display().to_string();
    let drift = on_log(path, "drift", W1, &[&later, "--lake", ".", "--json"]).json();
    assert_eq!(drift["replan"], true);
    let kept = rows(path, "drift", "replan, distance, meter");
    let expected = serde_json::json!({
        "replan": true, "distance": drift["distance"], "meter": drift["meter"]["name"],
    });
    assert_eq!(kept, [expected]);

    let nope = lakebed(path, &["--lake", ".", "sql", "DESCRIBE DETAIL nope"]);
    assert!(!nope.stderr.contains("_lakebed") && !nope.stderr.contains("plans"), "{}", nope.stderr);
}

#[test]
fn first_writers_of_a_history_at_once_lose_no_record() {
    let lake = tempfile::tempdir().unwrap();
    // A crash before the first commit leaves an empty log.
    std::fs::create_dir_all(lake.path().join("_lakebed/history/_delta_log")).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                on_log(lake.path(), "collect", W1, &["--into", "."]).succeeded();
            });
        }
    });
    assert_eq!(rows(lake.path(), "history", "id").len(), 120);
}
