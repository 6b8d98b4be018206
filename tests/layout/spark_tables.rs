//! Tables that Spark clustered: read right, left alone where they are well, rewritten without loss.

use lakebed_lake::DeltaLake;
use lakebed_model::TableName;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    adds, clustered_table, commits, count_and_sum, empty_lake, read_commits, removes, rows, sql,
};

fn opened(lake: &TempDir) -> DeltaLake {
    let mut opened = empty_lake();
    opened.add_folder(lake.path()).unwrap();
    opened
}

/// Runs statements on a copy of a table and asserts that its rows are as before: `count` of them,
/// whose `order_id` sum up to `sum`.
#[track_caller]
fn check(table: &str, statements: &[&str], count: usize, sum: i64) -> TempDir {
    let lake = clustered_table(table);
    let before = rows(&lake, table);
    assert_eq!(before.len(), count, "as Spark left it");
    sql(&lake, statements).succeeded();
    assert_eq!(rows(&lake, table), before);
    assert_eq!(count_and_sum(&opened(&lake), "order_id", &TableName::new(table)), (count, sum));
    lake
}

/// Sum of 0, 1, …, n − 1.
const fn sum_below(n: i64) -> i64 {
    n * (n - 1) / 2
}

#[test]
fn tables_in_good_order_are_left_alone() {
    for (table, keys, versions) in
        [("one-key", json!(["customer_id"]), 5), ("two-keys", json!(["order_date", "region"]), 6)]
    {
        let lake = check(table, &[&format!("OPTIMIZE `{table}`")], 6_000, sum_below(6_000));
        assert_eq!(read_commits(&lake.path().join(table)).len(), versions, "no commit");
        let detail = sql(&lake, &[&format!("DESCRIBE DETAIL `{table}`")]).json();
        assert_eq!((&detail["clusteringColumns"], &detail["numFiles"]), (&keys, &1.into()));
    }
}

#[test]
fn other_keys_and_full_rewrite_what_spark_clustered() {
    let statements =
        ["ALTER TABLE `one-key` CLUSTER BY (order_date, region)", "OPTIMIZE `one-key` FULL"];
    let lake = check("one-key", &statements, 6_000, sum_below(6_000));
    let optimize = commits(&lake.path().join("one-key"), 6);
    assert_eq!((removes(&optimize).len(), adds(&optimize).len()), (1, 1));
}

#[test]
fn other_keys_without_full_leave_spark_files_as_they_are() {
    let statements = ["ALTER TABLE `two-keys` CLUSTER BY (customer_id)", "OPTIMIZE `two-keys`"];
    let lake = check("two-keys", &statements, 6_000, sum_below(6_000));
    assert_eq!(read_commits(&lake.path().join("two-keys")).len(), 7, "the ALTER only");
}

#[test]
fn table_whose_clustering_was_dropped_gets_keys_again() {
    let statements = ["ALTER TABLE `none` CLUSTER BY (order_id)", "OPTIMIZE `none`"];
    let lake = clustered_table("none");
    let detail = sql(&lake, &["DESCRIBE DETAIL `none`"]).json();
    assert_eq!(detail["clusteringColumns"], json!([]));
    let lake = check("none", &statements, 4_000, sum_below(4_000));
    let detail = sql(&lake, &["DESCRIBE DETAIL `none`"]).json();
    assert_eq!(
        (&detail["clusteringColumns"], &detail["numRecords"]),
        (&json!(["order_id"]), &4_000.into())
    );
}

/// 572 of the 4 000 rows are multiples of 7 and deleted: 14 %, over the threshold of 5 %.
#[test]
fn deletion_vector_is_purged_and_its_remove_repeats_it() {
    let deleted = 7 * sum_below(572);
    let table = "deletion-vectors";
    let lake =
        check(table, &["OPTIMIZE `deletion-vectors`"], 4_000 - 572, sum_below(4_000) - deleted);
    let path = lake.path().join(table);
    let before = commits(&path, 4);
    let vector = adds(&before)[0].deletion_vector.clone();
    assert_eq!(vector.as_ref().map(|vector| vector.cardinality), Some(572));
    let optimize = commits(&path, 5);
    let removed = removes(&optimize);
    assert_eq!(removed.len(), 1);
    assert_eq!(removed[0].deletion_vector, vector, "path and vector are the file's identity");
    let added = adds(&optimize);
    assert!(added.iter().all(|add| add.deletion_vector.is_none() && !add.data_change));
    assert_eq!(added.iter().filter_map(|add| add.rows()).sum::<u64>(), 3_428);
    let history = sql(&lake, &["DESCRIBE HISTORY `deletion-vectors`"]).json();
    let operations: Vec<&str> = history["history"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry: &Value| entry["commitInfo"]["operation"].as_str())
        .collect();
    assert_eq!(operations, ["OPTIMIZE", "DELETE", "OPTIMIZE", "WRITE", "WRITE", "CREATE TABLE"]);
}
