//! What follows a write, and into how many files it goes.

use std::{fs, path::Path};

use lakebed_layout::{Lake, zcube};
use lakebed_model::Instant;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Numbers, lakebed, runtime, sql};

const NOW: Instant = Instant::from_epoch_ms(1_796_000_000_000);

/// Runs one statement in a folder with a configuration.
#[track_caller]
fn run(folder: &Path, statement: &str) -> Value {
    lakebed(folder, &["--lake", ".", "--json", "sql", statement]).json()
}

fn configure(folder: &TempDir, settings: &str) {
    fs::write(folder.path().join("lakebed.toml"), settings).unwrap();
}

/// Inserts ten rows several times, and returns what followed each.
#[track_caller]
fn insert(folder: &Path, times: i64) -> Vec<Value> {
    let statement = |n: i64| {
        let values: Vec<String> = (0..10).map(|k| format!("({}, {n})", n * 10 + k)).collect();
        format!("INSERT INTO t VALUES {}", values.join(", "))
    };
    (0..times).map(|n| run(folder, &statement(n))["auto_compaction"].clone()).collect()
}

fn bins(compaction: &Value) -> usize {
    compaction["bins"].as_array().map_or(0, Vec::len)
}

const PROPERTY: &str = "TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'true')";
const FIVE: &str = "[settings]\nlakebed.autoCompact.minNumFiles = 5\n";

#[test]
fn inserts_merge_small_files_once_there_are_enough() {
    let folder = tempfile::tempdir().unwrap();
    configure(&folder, FIVE);
    run(folder.path(), &format!("CREATE TABLE t (k BIGINT, v BIGINT) {PROPERTY}"));
    let followed = insert(folder.path(), 5);
    assert!(followed[..4].iter().all(|compaction| bins(compaction) == 0), "{followed:?}");
    let bin = &followed[4]["bins"][0];
    assert_eq!(
        (&bin["files_in"], &bin["files_out"], &bin["cube"]),
        (&json!(5), &json!(1), &Value::Null)
    );
    assert_eq!(followed[4]["failure"], Value::Null);
    assert_eq!(followed[4]["version"], json!(6));
    let sums = sql(&folder, &["SELECT count(*) AS n, sum(k) AS k FROM t"]).json_lines();
    assert_eq!(sums, [json!({"n": 50, "k": 1_225})]);
    let history = run(folder.path(), "DESCRIBE HISTORY t");
    let newest = &history["history"][0]["commitInfo"];
    assert_eq!(newest["operation"], "OPTIMIZE");
    assert_eq!(newest["operationParameters"]["auto"], true);
}

#[test]
fn session_switches_it_on_and_off() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "CREATE TABLE t (k BIGINT, v BIGINT)");
    assert!(insert(folder.path(), 2).iter().all(Value::is_null));
    let statements = [
        "SET lakebed.autoCompact.enabled = true",
        "SET lakebed.autoCompact.minNumFiles = 3",
        "INSERT INTO t VALUES (1, 1)",
    ];
    let text = sql(&folder, &statements).succeeded().stdout.clone();
    assert!(text.contains("\"files_in\": 3") || text.contains("\"files_in\":3"), "{text}");
    run(folder.path(), &format!("ALTER TABLE t SET {PROPERTY}"));
    configure(&folder, &format!("{FIVE}lakebed.autoCompact.enabled = false\n"));
    assert!(insert(folder.path(), 6).iter().all(Value::is_null));
}

#[test]
fn merged_files_of_a_clustered_table_are_left_for_optimize() {
    let folder = tempfile::tempdir().unwrap();
    configure(&folder, FIVE);
    run(folder.path(), &format!("CREATE TABLE t (k BIGINT, v BIGINT) CLUSTER BY (k) {PROPERTY}"));
    let followed = insert(folder.path(), 5);
    assert_eq!(bins(&followed[4]), 1, "{followed:?}");
    let mut lake = crate::support::empty_lake();
    let table = lakebed_model::TableName::new("t");
    lake.add_table("t", &folder.path().join("t").to_string_lossy()).unwrap();
    let files = runtime(lake.snapshot(&table)).unwrap().files;
    assert_eq!((files.len(), &files[0].clustering_provider), (1, &None));
    assert_eq!(files[0].tag(zcube::ZCUBE_ID), None);
    let report = run(folder.path(), "OPTIMIZE t");
    assert_eq!(report["bins"][0]["reasons"]["unclustered"], 1, "{report}");
    // Clustered files are not merged away from their cube again.
    let followed = insert(folder.path(), 4);
    assert!(followed.iter().all(|compaction| bins(compaction) == 0), "{followed:?}");
}

#[test]
fn a_delete_that_writes_files_anew_and_a_table_from_a_query_merge_too() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "CREATE TABLE t (k BIGINT, v BIGINT)");
    insert(folder.path(), 5);
    configure(&folder, &format!("{FIVE}lakebed.autoCompact.enabled = true\n"));
    let deleted = run(folder.path(), "DELETE FROM t WHERE k = 3");
    assert_eq!(bins(&deleted["auto_compaction"]), 1, "{deleted}");
    let nothing = run(folder.path(), "DELETE FROM t WHERE k = 3");
    assert_eq!(nothing["auto_compaction"], Value::Null);
    configure(
        &folder,
        "[settings]\nlakebed.autoCompact.enabled = true\nlakebed.autoCompact.minNumFiles = 2\n\
         lakebed.optimizeWrite.binSize = \"1KiB\"\n",
    );
    let created = run(
        folder.path(),
        "CREATE TABLE u AS SELECT x AS k, sha2(CAST(x AS STRING), 256) AS s \
         FROM (SELECT unnest(generate_series(1, 20000)) AS x)",
    );
    assert!(created["files_added"].as_u64() > Some(2), "{created}");
    assert_eq!(created["auto_compaction"]["bins"][0]["files_out"], 1, "{created}");
    let sums = sql(&folder, &["SELECT count(*) AS n, sum(k) AS k FROM u"]).json_lines();
    assert_eq!(sums, [json!({"n": 20_000, "k": 200_010_000})]);
}

#[test]
fn its_failure_fails_no_write() {
    let folder = tempfile::tempdir().unwrap();
    configure(&folder, FIVE);
    run(folder.path(), &format!("CREATE TABLE t (k BIGINT, v BIGINT) {PROPERTY}"));
    insert(folder.path(), 4);
    let name = crate::support::files_of(&folder.path().join("t")).remove(0);
    fs::remove_file(folder.path().join("t").join(name)).unwrap();
    let inserted = run(folder.path(), "INSERT INTO t VALUES (1, 1)");
    assert_eq!((&inserted["rows"], &inserted["version"]), (&json!(1), &json!(5)));
    let failure = inserted["auto_compaction"]["failure"].as_str().expect("a failure");
    assert!(failure.starts_with("rewrite files of table `t`"), "{failure}");
    assert_eq!(run(folder.path(), "DESCRIBE DETAIL t")["numFiles"], 5);
}

#[test]
fn appends_of_a_program_go_by_the_tables_property() {
    let folder = tempfile::tempdir().unwrap();
    let properties = [("delta.autoOptimize.autoCompact", "auto")];
    let table = Numbers::create_with(folder.path(), 1, 10, &properties);
    for n in 1..55 {
        let rows = vec![Numbers::rows(n * 10, n * 10 + 10)];
        runtime(table.lake.append(&table.table, rows, NOW)).expect("an append");
    }
    let files = runtime(table.lake.snapshot(&table.table)).unwrap().files.len();
    assert_eq!(files, 1 + 5, "fifty became one");
    assert_eq!(table.keys(), (0..550).collect::<Vec<_>>());
}

#[test]
fn optimized_write_gathers_what_threads_would_write_apart() {
    let folder = tempfile::tempdir().unwrap();
    Numbers::create(folder.path(), 4, 4_000);
    let files = |settings: &str, statement: &str| {
        configure(&folder, &format!("[engine]\nthreads = 4\n{settings}"));
        run(folder.path(), statement)["files_added"].as_u64().expect("files")
    };
    let off = "[settings]\nspark.microsoft.delta.optimizeWrite.enabled = false\n";
    let on = "[settings]\nspark.databricks.delta.optimizeWrite.enabled = true\n";
    assert_eq!(files("", "CREATE TABLE usual AS SELECT * FROM t"), 1);
    assert_eq!(files(off, "CREATE TABLE apart AS SELECT * FROM t"), 4);
    let property = "TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'false')";
    let create = format!("CREATE TABLE own {property} AS SELECT * FROM t");
    assert_eq!(files("", &create), 4);
    assert_eq!(files("", "INSERT INTO own SELECT * FROM t"), 4);
    assert_eq!(files(on, "INSERT INTO own SELECT * FROM t"), 1);
    assert_eq!(files(off, "INSERT INTO own VALUES (1, 2, 3)"), 1);
    let bin = format!("{on}lakebed.optimizeWrite.binSize = 20000\n");
    assert!(files(&bin, "INSERT INTO own SELECT * FROM t") > 1);
    for (table, times) in [("usual", 1), ("apart", 1), ("own", 4)] {
        let query =
            format!("SELECT count(*) AS n, sum(k) AS k FROM {table} WHERE v <> 2 OR w <> 3");
        let sums = sql(&folder, &[&query]).json_lines();
        assert_eq!(sums[0]["n"], 16_000 * times, "{table}");
        assert_eq!(sums[0]["k"], 127_992_000_i64 * times, "{table}");
    }
}

/// A row that breaks a rule ends the whole statement, whichever thread meets it.
#[test]
fn rows_that_break_a_rule_leave_no_file_of_any_thread() {
    let folder = tempfile::tempdir().unwrap();
    Numbers::create(folder.path(), 4, 4_000);
    configure(
        &folder,
        "[engine]\nthreads = 4\n[settings]\nlakebed.optimizeWrite.enabled = false\n",
    );
    run(
        folder.path(),
        "CREATE TABLE u (k BIGINT) TBLPROPERTIES ('delta.constraints.small' = 'k < 15999')",
    );
    let arguments = ["--lake", ".", "sql", "INSERT INTO u SELECT k FROM t"];
    let failure = lakebed(folder.path(), &arguments).failure();
    assert!(failure.contains("constraint `small` (k < 15999) does not hold"), "{failure}");
    assert_eq!(crate::support::files_of(&folder.path().join("u")), Vec::<String>::new());
}

#[test]
fn bloom_filters_are_set_by_statement_and_told_by_queries() {
    let folder = tempfile::tempdir().unwrap();
    let create = "CREATE TABLE t (k BIGINT, s STRING) CLUSTER BY (k) \
                  TBLPROPERTIES ('parquet.bloom.filter.enabled#s' = 'true')";
    run(folder.path(), create);
    run(
        folder.path(),
        "INSERT INTO t SELECT x, concat('c-', CAST(x * 7919 % 1000 AS STRING)) \
         FROM (SELECT unnest(generate_series(1, 1000)) AS x)",
    );
    run(folder.path(), "OPTIMIZE t");
    let arguments = ["--lake", ".", "sql", "SELECT k FROM t WHERE s = 'c-5x'"];
    let text = lakebed(folder.path(), &arguments).succeeded().stdout.clone();
    assert!(text.contains("; Bloom filters ruled 1 row groups out"), "{text}");
    let alter = "ALTER TABLE t SET TBLPROPERTIES ('parquet.bloom.filter.enabled#gone' = 'true')";
    let failure = lakebed(folder.path(), &["--lake", ".", "sql", alter]).failure();
    assert!(failure.starts_with("exit code 2\n"), "{failure}");
    assert!(failure.contains("it names no column of the table"), "{failure}");
}
