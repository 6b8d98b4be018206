//! A plan, carried out.

use std::path::Path;

use super::{W1, actions, names, on_log};
use crate::support::{lakebed, read_commits, small_lake_copy};

/// Versions of the tables that a plan is about.
fn versions(lake: &Path) -> Vec<(String, usize)> {
    let tables = ["customer", "lineitem", "orders", "supplier"];
    tables.map(|table| (table.to_owned(), read_commits(&lake.join(table)).len())).to_vec()
}

#[test]
fn plan_is_written_emitted_tried_applied_and_then_done() {
    let lake = small_lake_copy();
    let lake = lake.path();
    let options = ["--lake", ".", "--json", "--out", "plan.json"];
    let plan = on_log(lake, "plan", W1, &options).json();
    let written = std::fs::read_to_string(lake.join("plan.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), plan);
    let chosen = actions(&plan);
    assert!(!chosen.is_empty());

    let emitted = lakebed(lake, &["apply", "plan.json", "--lake", ".", "--emit", "spark-sql"]);
    let statements: Vec<&str> = emitted.succeeded().stdout.lines().collect();
    let expected: Vec<String> = chosen.iter().flat_map(|action| spark_sql(action)).collect();
    assert_eq!(statements, expected);

    let before = versions(lake);
    let dry = lakebed(lake, &["apply", "plan.json", "--lake", ".", "--dry-run", "--json"]).json();
    assert_eq!((&dry["dry_run"], &dry["plan"]), (&true.into(), &plan["id"]));
    assert_eq!(versions(lake), before, "neither printing nor trying changes a table");

    let applied = lakebed(lake, &["apply", "plan.json", "--lake", ".", "--json"]).json();
    let tables = applied["tables"].as_array().unwrap();
    assert_eq!(tables.len(), chosen.len());
    for (table, action) in tables.iter().zip(&chosen) {
        let name = table["table"].as_str().unwrap();
        assert_eq!(&format!("{name} {}", names(&table["cluster_by"])), action);
        // CREATE, ALTER and one commit per bin.
        let commits = read_commits(&lake.join(name)).len();
        assert_eq!(table["version"].as_u64(), u64::try_from(commits - 1).ok());
        assert!(commits >= 3 && table["rewritten_bytes"].as_u64() > Some(0), "{table}");
    }

    let after = versions(lake);
    let again = lakebed(lake, &["apply", "plan.json", "--lake", ".", "--json"]).json();
    for table in again["tables"].as_array().unwrap() {
        assert_eq!((&table["files_in"], &table["rewritten_bytes"]), (&0.into(), &0.into()));
    }
    assert_eq!(versions(lake), after, "a plan that is carried out has nothing left to do");
}

fn spark_sql(action: &str) -> [String; 3] {
    let (table, columns) = action.split_once(' ').unwrap();
    let columns: Vec<String> = columns.split(',').map(|column| format!("`{column}`")).collect();
    [
        format!("ALTER TABLE `{table}` CLUSTER BY ({});", columns.join(", ")),
        format!("OPTIMIZE `{table}` FULL;"),
        format!("ANALYZE TABLE `{table}` COMPUTE STATISTICS;"),
    ]
}

#[test]
fn file_that_is_no_plan_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plan.json"), "{\"id\": 7}\n").unwrap();
    insta::assert_snapshot!(lakebed(folder.path(), &["apply", "plan.json"]).failure(), @r"
    exit code 2
    error: failed to read `plan.json`: not a plan: invalid type: integer `7`, expected a string at line 1 column 8
    help: correct the file at the place named above
    ");
}
