//! CREATE TABLE, INSERT, DELETE, ANALYZE and time travel through `lakebed sql`.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Run, files_of, lakebed, read_commits, stable};

/// Runs statements on the lake in a folder.
#[track_caller]
fn sql(lake: &Path, statements: &[&str]) -> Run {
    let mut arguments = vec!["--lake", ".", "--json", "sql"];
    arguments.extend(statements);
    lakebed(lake, &arguments)
}

#[track_caller]
fn rows(lake: &Path, query: &str) -> Vec<Value> {
    sql(lake, &[query]).json_lines()
}

/// Returns the text of a failure without the folder's name.
#[track_caller]
fn failure(lake: &Path, statement: &str) -> String {
    stable(&lakebed(lake, &["--lake", ".", "sql", statement]).failure(), lake)
}

#[test]
fn table_is_created_filled_clustered_and_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path();
    let create = "CREATE TABLE db.t (id BIGINT NOT NULL COMMENT 'key', name STRING, price DECIMAL(10,2)) \
                  USING delta CLUSTER BY (id, Name) TBLPROPERTIES ('delta.appendOnly' = 'false') COMMENT 'things'";
    let created = sql(lake, &[create]).json();
    assert_eq!((&created["table"], &created["created"]), (&"t".into(), &true.into()));
    let detail = sql(lake, &["DESCRIBE DETAIL t"]).json();
    assert_eq!(detail["clusteringColumns"], json!(["id", "name"]));
    assert_eq!(
        detail["tableFeatures"],
        json!(["appendOnly", "clustering", "domainMetadata", "invariants"])
    );
    assert_eq!((&detail["minReaderVersion"], &detail["numFiles"]), (&1.into(), &0.into()));

    let inserted = sql(lake, &["INSERT INTO t VALUES (1, 'a', 1.5), (2, NULL, 2.25)"]).json();
    assert_eq!((&inserted["rows"], &inserted["version"]), (&2.into(), &1.into()));
    sql(lake, &["INSERT INTO t (name, id) SELECT name, id + 10 FROM t"]).succeeded();
    assert_eq!(
        rows(lake, "SELECT * FROM t ORDER BY id"),
        [
            json!({"id": 1, "name": "a", "price": 1.5}),
            json!({"id": 2, "name": null, "price": 2.25}),
            json!({"id": 11, "name": "a", "price": null}),
            json!({"id": 12, "name": null, "price": null}),
        ]
    );
    let optimized = sql(lake, &["OPTIMIZE t"]).json();
    assert_eq!(optimized["bins"][0]["reasons"]["unclustered"], 2);

    let deleted = sql(lake, &["DELETE FROM t WHERE t.name IS NULL"]).json();
    assert_eq!((&deleted["rows"], &deleted["rows_copied"]), (&2.into(), &2.into()));
    let again = sql(lake, &["DELETE FROM t WHERE name IS NULL"]).json();
    assert_eq!((&again["rows"], &again["version"]), (&0.into(), &deleted["version"]));
    let all = sql(lake, &["DELETE FROM t"]).json();
    assert_eq!(
        (&all["rows"], &all["files_removed"], &all["files_added"]),
        (&2.into(), &1.into(), &0.into())
    );
    assert!(rows(lake, "SELECT * FROM t").is_empty());
    assert_eq!(rows(lake, "SELECT count(*) AS n FROM t VERSION AS OF 2"), [json!({"n": 4})]);
    sql(lake, &["OPTIMIZE t", "OPTIMIZE t FULL"]).succeeded();

    let history = sql(lake, &["DESCRIBE HISTORY t"]).json();
    let operations: Vec<&str> = history["history"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["commitInfo"]["operation"].as_str())
        .collect();
    assert_eq!(operations, ["DELETE", "DELETE", "OPTIMIZE", "WRITE", "WRITE", "CREATE TABLE"]);
}

#[test]
fn table_from_a_query_has_its_columns_and_rows() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path();
    let query = "SELECT x AS k, x % 7 AS g, CAST(x AS STRING) AS s, named_struct('a', x) AS n, array(x) AS l \
                 FROM (SELECT unnest(generate_series(1, 1000)) AS x)";
    let create = format!("CREATE TABLE t CLUSTER BY (g, n.a) AS {query}");
    let created = sql(lake, &[&create]).json();
    assert_eq!((&created["rows"], &created["version"]), (&1_000.into(), &0.into()));
    sql(lake, &["OPTIMIZE t"]).succeeded();
    assert_eq!(
        rows(
            lake,
            "SELECT count(*) AS n, sum(k) AS k, max(n.a) AS a, count(DISTINCT g) AS g FROM t"
        ),
        [json!({"n": 1_000, "k": 500_500, "a": 1_000, "g": 7})]
    );
    let text = failure(lake, &create);
    assert!(text.starts_with("exit code 2\nerror: failed to create table `t`: "), "{text}");
    let once = sql(lake, &["CREATE TABLE IF NOT EXISTS t (a INT)"]).json();
    assert_eq!(once["created"], false);
    let elsewhere = lake.join("other").join("u");
    let create = format!("CREATE TABLE u (a TIMESTAMP_NTZ) LOCATION '{}'", elsewhere.display());
    sql(lake, &[&create, "INSERT INTO u VALUES (TIMESTAMP '2026-01-01 00:00:00')"]).succeeded();
    let by_path = format!("SELECT count(*) AS n FROM delta.`{}`", elsewhere.display());
    assert_eq!(rows(lake, &by_path), [json!({"n": 1})]);
}

#[test]
fn large_inserts_are_cut_into_files_of_the_tables_size() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path();
    let create =
        "CREATE TABLE t (k BIGINT, s STRING) TBLPROPERTIES ('delta.targetFileSize' = '65536')";
    let insert = "INSERT INTO t SELECT x, sha2(CAST(x AS STRING), 256) FROM (SELECT unnest(generate_series(1, 20000)) AS x)";
    sql(lake, &[create, insert]).succeeded();
    let detail = sql(lake, &["DESCRIBE DETAIL t"]).json();
    assert!(detail["numFiles"].as_u64() >= Some(3), "{detail}");
    assert_eq!(
        rows(lake, "SELECT count(*) AS n, sum(k) AS k FROM t"),
        [json!({"n": 20_000, "k": 200_010_000})]
    );
}

/// Nothing of a statement that breaks a rule is left, not even a file.
#[test]
fn rows_that_break_a_rule_are_refused_whole() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path();
    let create = "CREATE TABLE t (a INT NOT NULL, b INT, s STRUCT<x: INT NOT NULL>) \
                  TBLPROPERTIES ('delta.constraints.small' = 'b < 10')";
    sql(lake, &[create, "INSERT INTO t VALUES (1, 1, named_struct('x', 1)), (2, 2, NULL)"])
        .succeeded();
    let before = files_of(&lake.join("t"));
    for (values, cause) in [
        (
            "(3, 3, NULL), (NULL, 4, NULL)",
            "[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] column `a` must not be null, row 2 is",
        ),
        (
            "(3, 3, named_struct('x', CAST(NULL AS INT)))",
            "[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] column `s.x` must not be null, row 1 is",
        ),
        (
            "(3, 10, NULL)",
            "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] constraint `small` (b < 10) does not hold for row 1: a = 3, b = 10, s =",
        ),
        (
            "(3, NULL, NULL)",
            "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] constraint `small` (b < 10) does not hold for row 1: a = 3, b = , s =",
        ),
        ("(9999999999, 1, NULL)", "9999999999"),
    ] {
        let text = failure(lake, &format!("INSERT INTO t VALUES {values}"));
        assert!(text.starts_with("exit code 2\n") && text.contains(cause), "{values}: {text}");
    }
    assert_eq!(files_of(&lake.join("t")), before);
    for (statement, reason) in [
        ("INSERT INTO t VALUES (1)", "the query gives 1 columns, expected 3: a, b, s"),
        ("INSERT INTO t (a, c) VALUES (1, 2)", "there is no column `c`, the table has a, b, s"),
        ("INSERT INTO t (a, A) VALUES (1, 2)", "column `A` is listed twice"),
    ] {
        let expected = format!(
            "exit code 2\nerror: failed to insert into table `t`: {reason}\nhelp: give the query the table's columns, or list others\n"
        );
        assert_eq!(failure(lake, statement), expected);
    }
}

#[test]
fn delete_hides_rows_where_the_table_has_deletion_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path();
    let create = "CREATE TABLE t (k BIGINT) CLUSTER BY (k) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')";
    let insert = "INSERT INTO t SELECT unnest(generate_series(1, 1000))";
    sql(lake, &[create, insert]).succeeded();
    let parquet =
        || files_of(&lake.join("t")).iter().filter(|name| name.ends_with(".parquet")).count();
    let before = parquet();
    for (predicate, gone, left) in
        [("k % 10 = 0", 100, 900), ("k <= 15", 14, 886), ("k BETWEEN 11 AND 21", 5, 881)]
    {
        let deleted = sql(lake, &[&format!("DELETE FROM t WHERE {predicate}")]).json();
        assert_eq!(
            (&deleted["rows"], &deleted["deletion_vectors_added"]),
            (&gone.into(), &1.into()),
            "{predicate}"
        );
        assert_eq!(rows(lake, "SELECT count(*) AS n FROM t"), [json!({"n": left})]);
        assert!(
            rows(lake, &format!("SELECT k FROM t WHERE {predicate}")).is_empty(),
            "{predicate}"
        );
    }
    assert_eq!(parquet(), before, "no data file is written");
    assert_eq!(
        rows(lake, "SELECT sum(k) AS s FROM t"),
        [json!({"s": (22..=1_000).filter(|k| k % 10 != 0).sum::<i64>()})]
    );
    let purged = sql(lake, &["OPTIMIZE t"]).json();
    assert_eq!(purged["bins"][0]["reasons"]["deleted_rows"], 1);
    assert_eq!(rows(lake, "SELECT count(*) AS n FROM t"), [json!({"n": 881})]);
    sql(lake, &["DELETE FROM t WHERE k > 0"]).succeeded();
    assert_eq!(rows(lake, "SELECT count(*) AS n FROM t"), [json!({"n": 0})]);
}

#[test]
fn older_versions_can_be_read_by_number_and_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path();
    sql(
        lake,
        &["CREATE TABLE t (k INT)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2), (3)"],
    )
    .succeeded();
    let count =
        |table: &str| rows(lake, &format!("SELECT count(*) AS n FROM {table}"))[0]["n"].clone();
    for (table, expected) in [
        ("t VERSION AS OF 0", 0),
        ("t FOR VERSION AS OF 1", 1),
        ("t@v2", 3),
        ("t TIMESTAMP AS OF '1970-01-02'", -1),
        ("t VERSION AS OF 9", -1),
        ("t TIMESTAMP AS OF '2999-01-01'", -1),
    ] {
        if expected < 0 {
            let text = failure(lake, &format!("SELECT count(*) FROM {table}"));
            assert!(text.starts_with("exit code 2\nerror: failed to read table `t` at "), "{text}");
        } else {
            assert_eq!(count(table), expected, "{table}");
        }
    }
    let joined = "SELECT count(*) AS n FROM t@v1 a JOIN t b ON a.k <= b.k";
    assert_eq!(rows(lake, joined), [json!({"n": 3})]);
}

#[test]
fn files_without_statistics_get_them_by_analyze() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path();
    sql(lake, &["CREATE TABLE t (k INT, s STRING)", "INSERT INTO t VALUES (1, 'a'), (5, NULL)"])
        .succeeded();
    let log = lake.join("t/_delta_log").join(format!("{:020}.json", 1));
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            let mut action: Value = serde_json::from_str(line).unwrap();
            if let Some(add) = action.get_mut("add").and_then(Value::as_object_mut) {
                add.remove("stats");
            }
            action.to_string()
        })
        .collect();
    std::fs::write(&log, lines.join("\n")).unwrap();
    let report = sql(lake, &["ANALYZE TABLE t COMPUTE STATISTICS"]).json();
    assert_eq!(
        (&report["files"], &report["files_analyzed"], &report["version"]),
        (&1.into(), &1.into(), &2.into())
    );
    let commits = read_commits(&lake.join("t"));
    let stats = crate::support::adds(&commits[2])[0].stats.clone().unwrap();
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(
        stats,
        json!({"numRecords": 2, "minValues": {"k": 1, "s": "a"}, "maxValues": {"k": 5, "s": "a"}, "nullCount": {"k": 0, "s": 1}})
    );
    let again = sql(lake, &["ANALYZE TABLE t COMPUTE STATISTICS"]).json();
    assert_eq!((&again["files_analyzed"], &again["version"]), (&0.into(), &2.into()));
    assert_eq!(rows(lake, "SELECT count(*) AS n FROM t"), [json!({"n": 2})]);
}

/// The refusals of delta-spark, each with its error class.
#[test]
fn what_delta_refuses_is_refused_with_its_class() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path();
    let create = "CREATE TABLE q (a INT, b INT, c BINARY, d BOOLEAN, e ARRAY<INT>, f MAP<STRING, INT>, \
                  g INT, h INT, s STRUCT<x: INT>) CLUSTER BY (a)";
    sql(lake, &[create, "CREATE TABLE p (a INT)"]).succeeded();
    for (statement, class) in [
        ("ALTER TABLE q CLUSTER BY (a, b, g, h, s.x)", "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"),
        ("ALTER TABLE q CLUSTER BY (nope)", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("ALTER TABLE q CLUSTER BY (a, a)", "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ("ALTER TABLE q CLUSTER BY (c)", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        ("ALTER TABLE q CLUSTER BY (d)", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        ("ALTER TABLE q CLUSTER BY (e)", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        ("ALTER TABLE q CLUSTER BY (f)", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        ("ALTER TABLE q CLUSTER BY (s)", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        (
            "CREATE TABLE z (a INT, b INT) USING delta PARTITIONED BY (a) CLUSTER BY (b)",
            "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
        ),
        ("OPTIMIZE q WHERE a > 1", "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"),
        ("OPTIMIZE q ZORDER BY (g)", "DELTA_CLUSTERING_WITH_ZORDER_BY"),
        ("OPTIMIZE p FULL", "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"),
        ("ALTER TABLE q DROP COLUMN a", "DELTA_UNSUPPORTED_DROP_COLUMN"),
        (
            "CREATE TABLE y (a INT, b INT) CLUSTER BY (b) TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1')",
            "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
        ),
        (
            "ALTER TABLE p SET TBLPROPERTIES ('delta.feature.clustering' = 'supported')",
            "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        ),
        ("DELETE FROM q WHERE", "expected a predicate"),
    ] {
        let text = failure(lake, statement);
        assert!(text.starts_with("exit code 2\n") && text.contains(class), "{statement}: {text}");
        assert!(text.contains("\nhelp: "), "{text}");
    }
    for (table, commits) in [("q", 1), ("p", 1)] {
        assert_eq!(read_commits(&lake.join(table)).len(), commits);
    }
    assert!(!lake.join("z").exists() && !lake.join("y/_delta_log").exists());
}

#[test]
fn properties_survive_and_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path();
    sql(
        lake,
        &["CREATE TABLE t (a INT, b INT) CLUSTER BY (b) COMMENT 'kept' TBLPROPERTIES ('x' = '1')"],
    )
    .succeeded();
    let set =
        sql(lake, &["ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly' = 'true', 'x' = '2')"])
            .json();
    assert_eq!((&set["version"], &set["changed"]), (&1.into(), &true.into()));
    let detail = sql(lake, &["DESCRIBE DETAIL t"]).json();
    assert_eq!(detail["properties"], json!({"delta.appendOnly": "true", "x": "2"}));
    assert_eq!(detail["clusteringColumns"], json!(["b"]));
    sql(lake, &["INSERT INTO t VALUES (1, 2)", "OPTIMIZE t"]).succeeded();
    let text = failure(lake, "DELETE FROM t");
    assert!(text.contains("[DELTA_CANNOT_MODIFY_APPEND_ONLY]"), "{text}");
    let text =
        failure(lake, "ALTER TABLE t SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1')");
    assert!(text.contains("[DELTA_CLUSTERING_COLUMN_MISSING_STATS]"), "{text}");
    let vectors =
        sql(lake, &["ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"]);
    vectors.succeeded();
    let detail = sql(lake, &["DESCRIBE DETAIL t"]).json();
    assert_eq!((&detail["minReaderVersion"], &detail["minWriterVersion"]), (&3.into(), &7.into()));
    assert_eq!(rows(lake, "SELECT b FROM t"), [json!({"b": 2})]);
}

#[test]
fn settings_hold_for_the_statements_that_follow() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path();
    let key = "spark.microsoft.delta.optimize.clustering.strategy.incremental";
    let set = format!("SET {key} = false");
    let shown = format!("SET {key}");
    let run = sql(lake, &[&set, "RESET", &shown]);
    let documents: Vec<Value> = serde_json::Deserializer::from_str(&run.succeeded().stdout)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(documents[0]["settings"], json!({ key: "false" }));
    assert_eq!(documents[2]["settings"], json!({ key: "true" }));
    let text = failure(
        lake,
        "SET lakebed.optimize.clustering.strategy.incremental.autoRecluster.minOffendingFiles = 1",
    );
    assert!(
        text.starts_with("exit code 2\n") && text.contains("a whole number of at least 2"),
        "{text}"
    );
    let text = failure(lake, "SET spark.sql.shuffle.partitions = 5");
    assert!(
        text.starts_with("exit code 2\n")
            && text.contains("there is no such setting; the nearest is"),
        "{text}"
    );
}

#[test]
fn vacuum_deletes_what_no_version_within_the_retention_needs() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path();
    let statements = [
        "CREATE TABLE t (k INT) CLUSTER BY (k)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (2)",
        "OPTIMIZE t",
    ];
    sql(lake, &statements).succeeded();
    let parquet =
        || files_of(&lake.join("t")).iter().filter(|name| name.ends_with(".parquet")).count();
    assert_eq!(sql(lake, &["VACUUM t DRY RUN"]).json()["files"], json!([]));
    let text = failure(lake, "VACUUM t RETAIN 0 HOURS");
    assert!(text.starts_with("exit code 3\n"), "{text}");
    assert!(text.contains("[DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT]"), "{text}");
    assert_eq!(parquet(), 3);
    let off = "SET spark.databricks.delta.retentionDurationCheck.enabled = false";
    let run = sql(lake, &[off, "VACUUM t RETAIN 0 HOURS"]);
    let vacuumed: Value = serde_json::Deserializer::from_str(&run.succeeded().stdout)
        .into_iter()
        .last()
        .unwrap()
        .unwrap();
    assert_eq!(vacuumed["files"].as_array().unwrap().len(), 2, "{vacuumed}");
    assert_eq!(parquet(), 1);
    assert_eq!(rows(lake, "SELECT sum(k) AS s FROM t"), [json!({"s": 3})]);
}

#[test]
fn names_whose_folder_would_lie_elsewhere_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path();
    for name in ["`../t`", "``", "`_t`", "`a%20b`"] {
        let text = failure(lake, &format!("CREATE TABLE {name} (a INT)"));
        assert!(text.starts_with("exit code 2\n"), "{text}");
    }
}
