//! Reports about other engines of Delta and its like, each with the test that shows the right
//! behaviour here. "Not tested" says why.
//!
//! | report | test |
//! | --- | --- |
//! | trinodb/trino#31253 | `spark_tables::deletion_vector_is_purged_and_its_remove_repeats_it` |
//! | delta-io/delta-kernel-rs#1003 | `statistics::skipping_finds_the_same_rows_as_reading_everything` |
//! | lance-format/lance#6653 | `writers::file_deleted_between_rewrite_and_commit_does_not_come_back` |
//! | delta-io/delta#7101 | `statistics::skipping_finds_the_same_rows_as_reading_everything`, `lake::stats::zeros_bound_both_signs_and_nan_bounds_nothing` |
//! | trinodb/trino#31252 | `lake::checkpoint_tests::checkpoint_keeps_all_that_a_clustered_table_needs` |
//! | delta-io/delta-kernel-rs#2588 | `statistics::keys_have_statistics_beyond_the_indexed_columns` |
//! | delta-io/delta-kernel-rs#1745 | `statistics::children_of_a_null_struct_are_null_and_bound_nothing` |
//! | delta-io/delta-rs#4757 | `lake::stats::decimals_keep_every_digit`, `statistics::skipping_finds_the_same_rows_as_reading_everything` |
//! | delta-io/delta#4304 | `layout::repeat_tests::cost_of_appends_follows_the_new_data`, `layout::select::tests::closed_cubes_lose_only_files_with_deleted_rows` |
//! | delta-io/delta#5781 | `statements::delete_hides_rows_where_the_table_has_deletion_vectors` |
//! | delta-io/delta#7506 | `layout::succession::row_ids_begin_above_the_mark_of_whoever_won` |
//! | delta-io/delta-rs#4646 | `vacuum::files_with_odd_names_stay_while_they_live_and_go_when_they_do_not` |
//! | duckdb/duckdb-delta#50 | `kept::column_mapped_table_is_written_with_physical_names`, `kept::table_mapped_by_id_keeps_nested_and_renamed_columns` |
//! | delta-io/delta-rs#4586 | `shapes::nested_fields_that_must_not_be_null_are_optional_in_files` |
//! | delta-io/delta#2777 | `metadata::cluster_by_none_keeps_the_domain_with_no_columns_and_files_as_they_are`, `spark_tables::table_whose_clustering_was_dropped_gets_keys_again` |
//! | apache/spark#47288 | `clustering_keys_survive_other_changes_of_the_table` |
//! | earth-mover/icechunk#2099 | `faults::commit_whose_answer_was_lost_is_found_and_its_files_stay`, `layout::optimize::a_commit_that_answers_as_a_lost_race_is_ours_all_the_same` |
//! | delta-io/delta#606 | `lake::checkpoint_tests::log_is_cut_at_the_last_checkpoint_before_the_retention` |
//! | delta-io/delta#5723 | `protected::feature_nobody_knows_yet_is_refused`, `protected::reader_feature_nobody_knows_yet_is_refused` |
//! | delta-io/delta-rs#4149 | `file_without_rows_is_rewritten_away` |
//! | delta-io/delta-rs#2700 | `layout::optimize::fifty_appends_in_a_row_do_not_wear_a_commit_out` |
//! | apache/paimon#4802 | `writers::append_between_rewrite_and_commit_is_kept_once` |
//! | delta-io/delta-rs#4659 | `lake::stats::instants_before_the_epoch_and_without_a_fraction_have_three_digits` |
//! | delta-io/delta-rs#1411 | `lake::stats::infinities_and_nan_of_either_sign_are_no_bounds` |
//! | apache/arrow-rs#5047 | `lake::stats::zeros_bound_both_signs_and_nan_bounds_nothing` |
//! | delta-io/delta#2100 | `empty_partition_values_are_null_and_the_marker_is_a_value` |
//! | delta-io/delta#1247 | `nulls_of_a_key_are_in_no_bound_and_in_no_way` |
//! | delta-io/delta#3577 | `statements::what_delta_refuses_is_refused_with_its_class` |
//! | delta-io/delta-rs#2849 | `statistics::names_with_dots_are_not_confused_with_paths`, `layout::columns::lists_are_read_as_identifiers` |
//! | databendlabs/databend#10020 | `shapes::column_dropped_and_added_again_starts_empty` |
//! | PostHog/posthog#74674 | `shapes::column_that_must_not_be_null_but_is_missing_is_named` |
//! | delta-io/delta-rs#4652 | `nested_field_named_as_a_key_or_a_partition_is_neither` |
//! | trinodb/trino#30685 | `vectors_of_a_checkpoint_hide_rows_after_the_property_is_off` |
//! | delta-io/delta-kernel-rs#669 | `lake::checkpoint_tests::checkpoint_keeps_all_that_a_clustered_table_needs` |
//! | delta-io/delta-rs#4747 | `layout::vacuum_tests::hidden_files_and_folders_are_passed_by` |
//! | Qbeast-io/qbeast-spark#313 | `kept::generated_columns_and_constraints_do_not_bind_a_rewrite` |
//! | lakehq/sail#1773 | `layout::succession::files_without_a_row_count_get_no_ids` |
//! | delta-io/delta-rs#2386 | not tested: a file of one row group is all that a test can afford |
//! | delta-io/delta-rs#1498 | `lake::stats::bytes_have_no_bounds` |
//! | apache/arrow-rs#7356 | `column_that_is_null_throughout_a_file_is_read_as_nulls` |
//! | StarRocks/starrocks#42281 | `kept::generated_columns_and_constraints_do_not_bind_a_rewrite`, `kept::identity_columns_keep_their_values_and_their_mark` |
//! | delta-io/delta-kernel-rs#2749 | `statistics::skipping_finds_the_same_rows_as_reading_everything` |
//! | delta-io/delta#5249 | `lake::stats::instants_before_the_epoch_and_without_a_fraction_have_three_digits` for what is written; what others wrote is read by the Delta kernel |
//! | apache/hudi#9977 | `arrays_within_structs_come_out_of_a_rewrite_as_they_went_in` |
//! | delta-io/kafka-delta-ingest#227 | not tested: no process here lives longer than its statements |

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::kept::last_commit;
use crate::support::{
    Numbers, adds, clustered_table, lakebed, project, read_commits, removes, rows, sql,
};

fn lake() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn stats(add: &lakebed_layout::action::AddFile) -> Value {
    serde_json::from_str(add.stats.as_deref().expect("statistics")).expect("JSON")
}

/// Changes every action of every commit of a table.
fn change_log(lake: &TempDir, table: &str, change: impl Fn(&str, &mut Value)) {
    let folder = lake.path().join(table);
    for version in 0..read_commits(&folder).len() {
        let path = folder.join("_delta_log").join(format!("{version:020}.json"));
        let text = fs::read_to_string(&path).unwrap();
        let line = |line: &str| {
            let mut action: Value = serde_json::from_str(line).unwrap();
            for (name, body) in action.as_object_mut().unwrap() {
                change(name, body);
            }
            format!("{action}\n")
        };
        let changed: String = text.lines().map(line).collect();
        fs::write(path, changed).unwrap();
    }
}

/// apache/spark#47288, with a nested key.
#[test]
fn clustering_keys_survive_other_changes_of_the_table() {
    let lake = lake();
    let create = "CREATE TABLE t (c1 STRING, c2 STRUCT<x: INT>) CLUSTER BY (c1, c2.x)";
    sql(&lake, &[create]).succeeded();
    for statement in [
        "ALTER TABLE t SET TBLPROPERTIES ('delta.checkpointInterval' = '2')",
        "INSERT INTO t VALUES ('a', named_struct('x', 1)), ('b', NULL)",
        "ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "DELETE FROM t WHERE c1 = 'a'",
        "ANALYZE TABLE t COMPUTE STATISTICS",
        "OPTIMIZE t",
    ] {
        sql(&lake, &[statement]).succeeded();
        let detail = sql(&lake, &["DESCRIBE DETAIL t"]).json();
        assert_eq!(detail["clusteringColumns"], json!(["c1", "c2.x"]), "{statement}");
    }
}

/// delta-io/delta-rs#4149: a file of no rows leaves with the next rewrite and does not come back.
#[test]
fn file_without_rows_is_rewritten_away() {
    let lake = lake();
    Numbers::create(lake.path(), 3, 10);
    let folder = lake.path().join("t");
    fs::copy(project("tests/data/clustered-tables/no-rows.parquet"), folder.join("none.parquet"))
        .unwrap();
    let add = json!({"add": {"path": "none.parquet", "partitionValues": {}, "size": 264,
        "modificationTime": 1, "dataChange": true, "stats": "{\"numRecords\":0}"}});
    let info = json!({"commitInfo": {"timestamp": 1, "operation": "WRITE"}});
    let log = folder.join("_delta_log").join(format!("{:020}.json", 1));
    fs::write(log, format!("{info}\n{add}\n")).unwrap();
    let before = rows(&lake, "t");
    assert_eq!(before.len(), 30);
    let report = sql(&lake, &["DELETE FROM t WHERE k < 5"]).json();
    assert_eq!(report["rows"], 5);
    sql(&lake, &["ALTER TABLE t CLUSTER BY (k)", "OPTIMIZE t"]).succeeded();
    let optimize = last_commit(&lake, "t");
    assert!(removes(&optimize).iter().any(|remove| remove.path == "none.parquet"));
    assert!(adds(&optimize).iter().all(|add| add.rows() > Some(0)));
    assert_eq!(rows(&lake, "t").len(), 25);
    sql(&lake, &["DELETE FROM t", "OPTIMIZE t", "OPTIMIZE t FULL"]).succeeded();
    assert_eq!(sql(&lake, &["DESCRIBE DETAIL t"]).json()["numFiles"], 0);
}

/// delta-io/delta#2100.
#[test]
fn empty_partition_values_are_null_and_the_marker_is_a_value() {
    let table = "change-data-partitioned";
    let marker = "__HIVE_DEFAULT_PARTITION__";
    for (vectors, written, expected) in [
        (false, json!(null), json!(null)),
        (false, json!(""), json!(null)),
        (true, json!(""), json!(null)),
        (false, json!(marker), json!(marker)),
    ] {
        let lake = clustered_table(table);
        change_log(&lake, table, |name, action| {
            if name == "metaData" {
                action["configuration"]["delta.enableDeletionVectors"] = json!(vectors.to_string());
            }
            if matches!(name, "add" | "remove") && action["partitionValues"]["p"].is_null() {
                action["partitionValues"]["p"] = written.clone();
            }
        });
        let counts = || {
            let query = format!(
                "SELECT p, count(*) AS n FROM `{table}` GROUP BY p ORDER BY n DESC LIMIT 2"
            );
            sql(&lake, &[&query]).json_lines()
        };
        let [first, second] = counts().try_into().unwrap();
        assert_eq!(first, json!({"p": expected, "n": 10}), "{written}");
        assert_eq!(second["p"], "a");
        sql(&lake, &[&format!("DELETE FROM `{table}` WHERE k = 3 OR k = 4")]).succeeded();
        assert_eq!(counts()[1], json!({"p": expected, "n": 8}), "{written}");
        let commit = last_commit(&lake, table);
        assert!(
            adds(&commit)
                .iter()
                .all(|add| add.partition_values["p"].as_deref() == written.as_str())
        );
    }
}

/// delta-io/delta#1247: half of the rows have no value of the second key.
#[test]
fn nulls_of_a_key_are_in_no_bound_and_in_no_way() {
    let lake = lake();
    let create = "CREATE TABLE t (id BIGINT, data BIGINT) CLUSTER BY (id, data) \
                  TBLPROPERTIES ('delta.targetFileSize' = '4096')";
    let insert = "INSERT INTO t SELECT x, CASE WHEN x % 2 = 0 THEN x END \
                  FROM (SELECT unnest(generate_series(0, 9999)) AS x)";
    sql(&lake, &[create, insert]).succeeded();
    let before = rows(&lake, "t");
    sql(&lake, &["OPTIMIZE t"]).succeeded();
    assert_eq!(rows(&lake, "t"), before);
    let commit = last_commit(&lake, "t");
    let files = adds(&commit);
    assert!(files.len() >= 4, "{}", files.len());
    let mut nulls = 0;
    for file in &files {
        let stats = stats(file);
        nulls += stats["nullCount"]["data"].as_u64().unwrap();
        for side in ["minValues", "maxValues"] {
            let bound = &stats[side]["data"];
            assert!(bound.is_u64() || stats["nullCount"]["data"] == stats["numRecords"], "{stats}");
        }
    }
    assert_eq!(nulls, 5_000);
    let arguments =
        ["--lake", ".", "--json", "explain", "t", "--where", "data BETWEEN 100 AND 200"];
    let phases = lakebed(lake.path(), &arguments).json()["phases"].clone();
    assert!(phases[1]["files"].as_u64() < phases[0]["files"].as_u64(), "{phases}");
    let found = sql(&lake, &["SELECT count(*) AS n FROM t WHERE data BETWEEN 100 AND 200"]);
    assert_eq!(found.json_lines(), [json!({"n": 51})]);
}

/// delta-io/delta-rs#4652.
#[test]
fn nested_field_named_as_a_key_or_a_partition_is_neither() {
    let values = "VALUES ('a', named_struct('date', 'x'), 1), ('b', named_struct('date', 'a'), 2)";
    let lake = lake();
    let create = "CREATE TABLE t (date STRING, p STRUCT<date: STRING>, k INT) CLUSTER BY (date)";
    sql(&lake, &[create, &format!("INSERT INTO t {values}"), "OPTIMIZE t"]).succeeded();
    let commit = last_commit(&lake, "t");
    let bounds = stats(adds(&commit)[0]);
    assert_eq!(bounds["maxValues"], json!({"date": "b", "p": {"date": "x"}, "k": 2}));
    sql(&lake, &["DELETE FROM t WHERE date = 'a' AND p.date = 'x'"]).succeeded();
    assert_eq!(rows(&lake, "t"), [r#"{"date":"b","p":{"date":"a"},"k":2}"#]);

    // The same files as one partition of a table.
    let create = "CREATE TABLE u (p STRUCT<date: STRING>, k INT)";
    let insert =
        "INSERT INTO u VALUES (named_struct('date', 'x'), 1), (named_struct('date', 'a'), 2)";
    sql(&lake, &[create, insert]).succeeded();
    change_log(&lake, "u", |name, action| match name {
        "metaData" => {
            let mut schema: Value =
                serde_json::from_str(action["schemaString"].as_str().unwrap()).unwrap();
            let column =
                json!({"name": "date", "type": "string", "nullable": true, "metadata": {}});
            schema["fields"].as_array_mut().unwrap().insert(0, column);
            action["schemaString"] = json!(schema.to_string());
            action["partitionColumns"] = json!(["date"]);
        }
        "add" => action["partitionValues"] = json!({"date": "a"}),
        _ => {}
    });
    assert_eq!(rows(&lake, "u").len(), 2);
    let report = sql(&lake, &["DELETE FROM u WHERE date = 'a' AND p.date = 'a'"]).json();
    assert_eq!((&report["rows"], &report["rows_copied"]), (&json!(1), &json!(1)));
    assert_eq!(rows(&lake, "u"), [r#"{"date":"a","p":{"date":"x"},"k":1}"#]);
    let failure = sql(&lake, &["OPTIMIZE u"]).failure();
    assert!(failure.starts_with("exit code 3\n") && failure.contains("partitioned by (date)"));
}

/// trinodb/trino#30685: the property only says whether new vectors are made.
#[test]
fn vectors_of_a_checkpoint_hide_rows_after_the_property_is_off() {
    let lake = lake();
    Numbers::create_with(lake.path(), 2, 100, &[("delta.enableDeletionVectors", "true")]);
    sql(&lake, &["DELETE FROM t WHERE k % 10 = 0"]).succeeded();
    let off = "ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', \
               'delta.checkpointInterval' = '1')";
    sql(&lake, &[off, "INSERT INTO t VALUES (1000, 0, 0)"]).succeeded();
    let log = lake.path().join("t").join("_delta_log");
    assert!(log.join(format!("{:020}.checkpoint.parquet", 3)).exists());
    for version in 0..=3 {
        fs::remove_file(log.join(format!("{version:020}.json"))).unwrap();
    }
    assert_eq!(rows(&lake, "t").len(), 181);
    let deleted = sql(&lake, &["DELETE FROM t WHERE k % 10 = 1"]).json();
    assert_eq!((&deleted["rows"], &deleted["deletion_vectors_added"]), (&json!(20), &json!(0)));
    assert_eq!(rows(&lake, "t").len(), 161);
    sql(&lake, &["OPTIMIZE t"]).succeeded();
    assert_eq!(rows(&lake, "t").len(), 161);
}

/// apache/arrow-rs#7356.
#[test]
fn column_that_is_null_throughout_a_file_is_read_as_nulls() {
    let lake = lake();
    let statements = [
        "CREATE TABLE t (a INT, b STRING, c DECIMAL(20, 2)) CLUSTER BY (b)",
        "INSERT INTO t SELECT x, NULL AS b, NULL AS c FROM (SELECT unnest(generate_series(1, 100)) AS x)",
        "INSERT INTO t VALUES (101, 'x', 1.50)",
    ];
    sql(&lake, &statements).succeeded();
    let counts = "SELECT count(*) AS n, count(b) AS b, count(c) AS c, sum(a) AS a FROM t";
    let expected = [json!({"n": 101, "b": 1, "c": 1, "a": 5_151})];
    assert_eq!(sql(&lake, &[counts]).json_lines(), expected);
    sql(&lake, &["OPTIMIZE t"]).succeeded();
    assert_eq!(sql(&lake, &[counts]).json_lines(), expected);
    let found = sql(&lake, &["SELECT a FROM t WHERE b IS NOT NULL AND c < 2"]);
    assert_eq!(found.json_lines(), [json!({"a": 101})]);
}

/// apache/hudi#9977: null, empty and long arrays, in several files.
#[test]
fn arrays_within_structs_come_out_of_a_rewrite_as_they_went_in() {
    let lake = lake();
    let create = "CREATE TABLE t (id STRUCT<value: STRING>, s STRUCT<a: ARRAY<STRUCT<b: STRING>>>) \
                  CLUSTER BY (id.value) TBLPROPERTIES ('delta.targetFileSize' = '16384')";
    let insert = "INSERT INTO t SELECT named_struct('value', sha2(CAST(x AS STRING), 256)), \
                  CASE WHEN x % 7 = 0 THEN NULL \
                       WHEN x % 7 = 1 THEN named_struct('a', NULL) \
                       WHEN x % 7 = 2 THEN named_struct('a', array()) \
                       ELSE named_struct('a', array(named_struct('b', CAST(x AS STRING)), \
                            named_struct('b', NULL), NULL)) END \
                  FROM (SELECT unnest(generate_series(1, 3000)) AS x)";
    sql(&lake, &[create, insert, insert]).succeeded();
    let before = rows(&lake, "t");
    assert_eq!(before.len(), 6_000);
    assert!(before.iter().any(|row| row.ends_with(r#""s":null}"#)));
    assert!(before.iter().any(|row| row.ends_with(r#""s":{"a":[]}}"#)));
    sql(&lake, &["OPTIMIZE t"]).succeeded();
    assert!(adds(&last_commit(&lake, "t")).len() > 1);
    assert_eq!(rows(&lake, "t"), before);
    sql(&lake, &["DELETE FROM t WHERE s.a IS NULL"]).succeeded();
    let left: Vec<&String> = before
        .iter()
        .filter(|row| !row.ends_with(r#""s":null}"#) && !row.ends_with(r#""a":null}}"#))
        .collect();
    assert_eq!(rows(&lake, "t").iter().collect::<Vec<_>>(), left);
}
