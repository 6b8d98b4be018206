//! Statements that the engine below would answer otherwise than Spark does.

use std::{io::Read, process::Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{command_line, read_commits, rows, sql};

/// A lake whose table `t` was made by some statements.
#[track_caller]
fn lake(statements: &[&str]) -> TempDir {
    let lake = tempfile::tempdir().unwrap();
    if !statements.is_empty() {
        sql(&lake, statements).succeeded();
    }
    lake
}

/// Returns the schema that a table was created with.
fn schema_string(lake: &TempDir, table: &str) -> String {
    read_commits(&lake.path().join(table))[0]
        .iter()
        .find_map(|action| match action {
            lakebed_layout::action::Action::Metadata(body) => {
                body["schemaString"].as_str().map(str::to_owned)
            }
            _ => None,
        })
        .unwrap()
}

#[track_caller]
fn answer(lake: &TempDir, query: &str) -> Vec<Value> {
    sql(lake, &[query]).json_lines()
}

fn one_to_five() -> TempDir {
    lake(&[
        "CREATE TABLE t (a INT)",
        "INSERT INTO t VALUES (1), (2)",
        "INSERT INTO t VALUES (3), (4), (5)",
    ])
}

/// A comparison with NULL is never true, whatever stands beside it.
#[test]
fn nulls_in_a_predicate_take_no_row_and_keep_none() {
    for (predicate, expected) in [
        ("a > 1 AND a > NULL", 0),
        ("a > NULL AND a > 1", 0),
        ("a = 1 AND NULL", 0),
        ("a BETWEEN NULL AND 5", 0),
        ("a NOT IN (1, 2, NULL)", 0),
        ("a IN (1, 2, NULL)", 2),
        ("a > 3 OR a > NULL", 2),
        ("NOT (a > 3 AND a > NULL)", 3),
        ("a < NULL OR a IS NOT NULL", 5),
        ("a > 1 AND CAST(NULL AS BOOLEAN)", 0),
        ("a > 1 AND (a > NULL) IS NULL", 4),
    ] {
        let lake = one_to_five();
        let count = format!("SELECT count(*) AS n FROM t WHERE {predicate}");
        assert_eq!(answer(&lake, &count), [json!({"n": expected})], "{predicate}");
        let all = format!("SELECT a FROM t WHERE {predicate}");
        assert_eq!(answer(&lake, &all).len(), expected, "{predicate}");
        let copy = format!("CREATE TABLE u AS {all}");
        assert_eq!(sql(&lake, &[&copy]).json()["rows"], expected, "{predicate}");
        let insert = format!("INSERT INTO u {all}");
        assert_eq!(sql(&lake, &[&insert]).json()["rows"], expected, "{predicate}");
        let deleted = sql(&lake, &[&format!("DELETE FROM t WHERE {predicate}")]).json();
        assert_eq!(deleted["rows"], expected, "{predicate}");
        assert_eq!(rows(&lake, "t").len(), 5 - expected, "{predicate}");
        let vectors = "ALTER TABLE u SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')";
        let delete = format!("DELETE FROM u WHERE {predicate}");
        sql(&lake, &[vectors, &delete]).succeeded();
        assert!(rows(&lake, "u").is_empty(), "{predicate}");
    }
}

/// Columns of a query may have one name.
#[test]
fn expressions_that_read_alike_stand_beside_each_other() {
    let lake =
        lake(&["CREATE TABLE t (a INT, b STRING, c INT)", "INSERT INTO t VALUES (1, 'x', 2)"]);
    sql(&lake, &["INSERT INTO t SELECT a + 1, NULL, NULL FROM t"]).succeeded();
    sql(&lake, &["INSERT INTO t (c, a) SELECT a, a FROM t WHERE a = 2"]).succeeded();
    assert_eq!(
        answer(&lake, "SELECT a, b, c FROM t ORDER BY a, c NULLS FIRST"),
        [
            json!({"a": 1, "b": "x", "c": 2}),
            json!({"a": 2, "b": null, "c": null}),
            json!({"a": 2, "b": null, "c": 2}),
        ]
    );
    assert_eq!(
        answer(&lake, "SELECT count(*), count(*), 1 AS n FROM t"),
        [json!({"count(*)": 3, "count(*) (2)": 3, "n": 1})]
    );
    assert_eq!(
        answer(&lake, "SELECT sum(x) AS n FROM (SELECT a AS x, c, c FROM t)"),
        [json!({"n": 5})]
    );
}

#[test]
fn joins_using_columns_spell_them_as_other_names() {
    let lake = lake(&[
        "CREATE TABLE l (Id INT, ShipDate INT, x INT)",
        "CREATE TABLE r (Id INT, ShipDate INT, y INT)",
        "INSERT INTO l VALUES (1, 2, 3), (4, 5, 6)",
        "INSERT INTO r VALUES (1, 2, 7)",
    ]);
    for columns in ["Id", "ID", "id, shipdate", "`Id`"] {
        for join in ["JOIN", "LEFT SEMI JOIN", "RIGHT JOIN"] {
            let query = format!("SELECT count(*) AS n FROM l {join} r USING ({columns})");
            assert_eq!(answer(&lake, &query), [json!({"n": 1})], "{query}");
        }
        let nested = format!("SELECT x, y FROM (l JOIN r USING ({columns})) ORDER BY x");
        assert_eq!(answer(&lake, &nested), [json!({"x": 3, "y": 7})], "{nested}");
    }
}

/// Counting rows by the log alone must stop at a limit as well.
#[test]
fn limits_hold_over_constants() {
    let lake = one_to_five();
    for (query, expected) in [
        ("SELECT 1 AS x FROM t LIMIT 3", 3),
        ("SELECT 1 AS x FROM t LIMIT 1", 1),
        ("SELECT 1 AS x FROM t LIMIT 3 OFFSET 4", 1),
        ("SELECT 1 AS x, 'y' AS y FROM (SELECT * FROM t LIMIT 2)", 2),
        ("SELECT 1 AS x FROM t LIMIT 0", 0),
        ("SELECT 1 AS x FROM t WHERE 1 = 1 LIMIT 9", 5),
        ("SELECT * FROM (VALUES (1), (2), (3)) v(x) LIMIT 2", 2),
    ] {
        assert_eq!(answer(&lake, query).len(), expected, "{query}");
        let create = format!("CREATE TABLE IF NOT EXISTS c AS {query}");
        let copied = sql(
            &self::lake(&[]),
            &[&create.replace("FROM t", "FROM (VALUES (1), (2), (3), (4), (5)) t(a)")],
        );
        assert_eq!(copied.json()["rows"], expected, "{query}");
    }
    let counted = "SELECT count(*) AS n FROM (SELECT 1 FROM t LIMIT 2)";
    assert_eq!(answer(&lake, counted), [json!({"n": 2})]);
    assert_eq!(answer(&lake, "SELECT count(*) AS n FROM t"), [json!({"n": 5})]);
}

/// `1.10` is a DECIMAL(3,2) in Spark, `1e0` a DOUBLE.
#[test]
fn numbers_with_a_point_are_decimals_and_meet_doubles_as_doubles() {
    let lake = lake(&[
        "CREATE TABLE t (d DOUBLE, f FLOAT, e DECIMAL(20,2), i INT)",
        "INSERT INTO t VALUES (0.1, 0.5, 123456789012345678.91, 1), (1e300, 1.5, 123456789012345678.99, 2), \
         (-2.5, 2.25, 0.10, 3)",
    ]);
    for (predicate, expected) in [
        ("d = 0.1", vec![1]),
        ("d > 0.05", vec![1, 2]),
        ("d >= 1e300", vec![2]),
        ("d BETWEEN -2.5 AND 0.1", vec![1, 3]),
        ("d IN (0.1, -2.5)", vec![1, 3]),
        ("d < 99999999999999999999.5", vec![1, 3]),
        ("f > 1.25", vec![2, 3]),
        ("e <= 123456789012345678.90", vec![3]),
        ("e <= 123456789012345678.91", vec![1, 3]),
        ("e = 0.1", vec![3]),
        ("e > 1e17", vec![1, 2]),
        ("i > 1.5", vec![2, 3]),
        ("i = 2.0", vec![2]),
        ("d = e", vec![]),
        ("CASE WHEN i = 2 THEN d ELSE 0.0 END > 1.0", vec![2]),
        ("coalesce(d, 0.5) > 1.5", vec![2]),
    ] {
        let query = format!("SELECT i FROM t WHERE {predicate} ORDER BY i");
        let found: Vec<i64> =
            answer(&lake, &query).iter().map(|row| row["i"].as_i64().unwrap()).collect();
        assert_eq!(found, expected, "{predicate}");
    }
    for (expression, data_type) in [
        ("1.10", "Decimal128(3, 2)"),
        ("0.05", "Decimal128(2, 2)"),
        ("-1.5", "Decimal128(2, 1)"),
        ("1e3", "Float64"),
        ("1.5E-3", "Float64"),
        ("d * 1.1", "Float64"),
        ("sqrt(2.25)", "Float64"),
        ("CASE WHEN i = 1 THEN d ELSE 0.0 END", "Float64"),
        ("nvl(d, 0.0)", "Float64"),
    ] {
        let query = format!("SELECT arrow_typeof({expression}) AS x FROM t LIMIT 1");
        assert_eq!(answer(&lake, &query), [json!({"x": data_type})], "{expression}");
    }
    let union = "SELECT sum(x) AS s FROM (SELECT d AS x FROM t WHERE i = 2 UNION ALL SELECT 0.5)";
    assert_eq!(answer(&lake, union), [json!({"s": 1e300})]);
    let values = "SELECT max(x) AS m FROM (VALUES (0.5), (1e300)) v(x)";
    assert_eq!(answer(&lake, values), [json!({"m": 1e300})]);
    let percentile = "SELECT approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY i) AS p FROM t";
    assert_eq!(answer(&lake, percentile), [json!({"p": 2.0})]);
    let deleted =
        sql(&lake, &["DELETE FROM t WHERE e <= 123456789012345678.91 AND e > 0.1"]).json();
    assert_eq!(deleted["rows"], 1);
    let deleted = sql(&lake, &["DELETE FROM t WHERE d > 1.5"]).json();
    assert_eq!(deleted["rows"], 1);
    assert_eq!(rows(&lake, "t"), [r#"{"d":-2.5,"f":2.25,"e":0.10,"i":3}"#]);
    // More digits than the column has are rounded, more before the point are refused.
    let text = sql(&lake, &["INSERT INTO t VALUES (1, 1, 1234567890123456789.5, 9)"]).failure();
    assert!(text.starts_with("exit code 2\n"), "{text}");
    let create = "CREATE TABLE c AS SELECT 1.10 AS a, 1e0 AS b";
    sql(&lake, &[create]).succeeded();
    let schema = schema_string(&lake, "c");
    assert!(schema.contains(r#""decimal(3,2)""#) && schema.contains(r#""double""#), "{schema}");
}

/// The engine's nanoseconds end in 2262.
#[test]
fn times_reach_from_the_first_year_to_the_last() {
    let lake = lake(&[
        "CREATE TABLE t (k INT, t TIMESTAMP, d DATE)",
        "INSERT INTO t VALUES (1, TIMESTAMP '9999-12-31 23:59:59.999999', DATE '9999-12-31'), \
         (2, TIMESTAMP '0001-01-01 00:00:00', DATE '0001-01-01'), \
         (3, TIMESTAMP '2026-01-01 00:00:00', DATE '2026-01-01')",
    ]);
    for (predicate, expected) in [
        ("t > TIMESTAMP '2999-01-01 00:00:00'", vec![1]),
        ("t = TIMESTAMP '9999-12-31 23:59:59.999999'", vec![1]),
        ("t < TIMESTAMP '1600-01-01 00:00:00'", vec![2]),
        ("t < now()", vec![2, 3]),
        ("t >= DATE '2026-01-01'", vec![1, 3]),
        ("d < TIMESTAMP '2026-06-01 00:00:00'", vec![2, 3]),
        ("d = CAST(t AS DATE)", vec![1, 2, 3]),
        ("t > '9000-01-01'", vec![1]),
        ("t BETWEEN DATE '0001-01-01' AND TIMESTAMP '2500-01-01 00:00:00'", vec![2, 3]),
        ("t > CAST('3000-01-01' AS TIMESTAMP)", vec![1]),
        ("t = CAST(1767225600 AS TIMESTAMP)", vec![3]),
    ] {
        let query = format!("SELECT k FROM t WHERE {predicate} ORDER BY k");
        let found: Vec<i64> =
            answer(&lake, &query).iter().map(|row| row["k"].as_i64().unwrap()).collect();
        assert_eq!(found, expected, "{predicate}");
    }
    let deleted = sql(&lake, &["DELETE FROM t WHERE t > TIMESTAMP '2999-01-01 00:00:00'"]).json();
    assert_eq!(deleted["rows"], 1);
}

/// An instant stays one, and what has no zone has none, whatever they are compared with.
#[test]
fn timestamps_have_a_zone_and_timestamps_ntz_have_none() {
    let lake = lake(&[
        "CREATE TABLE t AS SELECT 1 AS k, TIMESTAMP '2026-01-01 00:00:00' AS a, \
         CAST('2026-01-01 00:00:00' AS TIMESTAMP_NTZ) AS b, \
         CAST('2026-01-01 02:00:00+02:00' AS TIMESTAMP) AS c, current_timestamp() AS d, \
         CAST(DATE '2026-01-01' AS TIMESTAMP_LTZ) AS e",
        "INSERT INTO t VALUES (2, TIMESTAMP '2027-01-01 00:00:00', \
         TIMESTAMP_NTZ '2027-01-01 00:00:00', NULL, NULL, NULL)",
    ]);
    let schema: Value = serde_json::from_str(&schema_string(&lake, "t")).unwrap();
    let types: Vec<&str> = schema["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["type"].as_str().unwrap())
        .collect();
    let instant = "timestamp";
    assert_eq!(types[1..], [instant, "timestamp_ntz", instant, instant, instant]);
    for (predicate, expected) in [
        ("a = TIMESTAMP '2026-01-01 00:00:00'", vec![1]),
        ("b = TIMESTAMP '2026-01-01 00:00:00'", vec![1]),
        ("b > TIMESTAMP_NTZ '2026-06-01 00:00:00'", vec![2]),
        ("a > CAST('2026-06-01' AS TIMESTAMP_NTZ)", vec![2]),
        ("b > DATE '2026-06-01'", vec![2]),
        ("a = b", vec![1, 2]),
        ("a = c", vec![1]),
        ("a IN (TIMESTAMP '2027-01-01 00:00:00', '2026-06-01')", vec![2]),
    ] {
        let query = format!("SELECT k FROM t WHERE {predicate} ORDER BY k");
        let found: Vec<i64> =
            answer(&lake, &query).iter().map(|row| row["k"].as_i64().unwrap()).collect();
        assert_eq!(found, expected, "{predicate}");
    }
}

/// Columns whose names have capitals are found as Spark finds them.
#[test]
fn names_of_columns_match_whatever_their_case() {
    let lake = lake(&[
        "CREATE TABLE MyTable (Id INT, `Full Name` STRING, Person STRUCT<FirstName: STRING>) CLUSTER BY (ID)",
        "INSERT INTO mytable (ID, person) VALUES (1, named_struct('FirstName', 'a')), (2, NULL)",
    ]);
    let one = |query: &str| answer(&lake, query);
    assert_eq!(one("SELECT Id FROM MyTable WHERE id = 1"), [json!({"Id": 1})]);
    assert_eq!(one("SELECT count(ID) AS n FROM mytable"), [json!({"n": 2})]);
    assert_eq!(
        one("SELECT person.firstname AS f FROM MyTable m WHERE M.ID = 1 AND m.`full name` IS NULL"),
        [json!({"f": "a"})]
    );
    assert_eq!(
        one("WITH x AS (SELECT Id + 1 AS id FROM MyTable) SELECT max(ID) AS m FROM x ORDER BY M"),
        [json!({"m": 3})]
    );
    assert_eq!(
        one("SELECT -Id AS id FROM MyTable ORDER BY id LIMIT 1")
            .first()
            .unwrap()
            .as_object()
            .unwrap()
            .values()
            .next(),
        Some(&json!(-2)),
        "the name that the query gives goes first"
    );
    let deleted =
        sql(&lake, &["DELETE FROM MyTable AS X WHERE x.ID = 1 AND x.Person.firstName = 'a'"]);
    assert_eq!(deleted.json()["rows"], 1);
    let deleted = sql(&lake, &["DELETE FROM MyTable WHERE MyTable.Id = 2"]);
    assert_eq!(deleted.json()["rows"], 1);
}

#[test]
fn functions_of_sparks_are_translated_or_named() {
    let lake = one_to_five();
    let rows = answer(&lake, "SELECT explode(sequence(1, 3)) AS x");
    assert_eq!(rows, [json!({"x": 1}), json!({"x": 2}), json!({"x": 3})]);
    let rows = answer(&lake, "SELECT sum(x) AS s FROM (SELECT explode(sequence(10, 1, -3)) AS x)");
    assert_eq!(rows, [json!({"s": 22})]);
    for (query, part) in [
        ("SELECT sequence(5, 1)", "there is no function `sequence` here; write generate_series"),
        ("SELECT posexplode(array(1))", "there is no function `posexplode` here; write unnest"),
        ("SELECT frobnicate(1)", "frobnicate"),
    ] {
        let text = sql(&lake, &[query]).failure();
        assert!(text.starts_with("exit code 2\n") && text.contains(part), "{text}");
    }
}

/// What cannot be a table of Delta's is refused before a folder is made.
#[test]
fn tables_that_cannot_be_are_refused_whole() {
    let lake = lake(&[]);
    for (statement, part) in [
        (
            "CREATE TABLE t (a INT, A STRING)",
            "columns `a` and `A` on table `t` [DELTA_DUPLICATE_COLUMNS_FOUND]",
        ),
        ("CREATE TABLE t (s STRUCT<x: INT, X: INT>)", "[DELTA_DUPLICATE_COLUMNS_FOUND]"),
        ("CREATE TABLE t AS SELECT 1 AS a, 2 AS `A`", "[DELTA_DUPLICATE_COLUMNS_FOUND]"),
        ("CREATE TABLE t AS SELECT INTERVAL '1' DAY AS i", "[DELTA_UNSUPPORTED_DATA_TYPES]"),
        ("CREATE TABLE t AS SELECT array(INTERVAL '1' DAY) AS i", "[DELTA_UNSUPPORTED_DATA_TYPES]"),
        ("CREATE TABLE t (i INTERVAL)", "expected a data type"),
        (
            "CREATE TABLE t (a INT) TBLPROPERTIES ('delta.enableDeletionVectors' = 'maybe')",
            "it takes true or false, found `maybe`",
        ),
        (
            "CREATE TABLE t (a INT) TBLPROPERTIES ('delta.checkpointInterval' = '-3')",
            "it takes a whole number of at least 1, found `-3`",
        ),
    ] {
        let text = sql(&lake, &[statement]).failure();
        assert!(text.starts_with("exit code 2\n") && text.contains(part), "{statement}: {text}");
        assert!(!lake.path().join("t").exists(), "{statement}");
    }
}

/// Each statement has its own time, and they rise.
#[test]
fn statements_of_one_call_have_times_of_their_own() {
    let lake = lake(&[
        "CREATE TABLE t (a INT)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (2)",
        "DELETE FROM t",
    ]);
    let times: Vec<i64> = read_commits(&lake.path().join("t"))
        .iter()
        .flatten()
        .filter_map(|action| match action {
            lakebed_layout::action::Action::CommitInfo(info) => info["timestamp"].as_i64(),
            _ => None,
        })
        .collect();
    assert_eq!(times.len(), 4);
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
}

/// A reader that closes its end, as `head` does, leaves no statement undone.
#[test]
fn statements_go_on_when_nobody_reads_their_output() {
    let lake = one_to_five();
    let select = "SELECT a.a FROM t a, t b, t c, t d, t e, t f, t g, t h";
    let arguments = [
        "--lake",
        ".",
        "--json",
        "sql",
        select,
        "INSERT INTO t VALUES (6)",
        "DELETE FROM t WHERE a = 1",
    ];
    let mut child = command_line(lake.path(), &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    // The rest, of 390 625 rows, has no reader any more.
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(rows(&lake, "t").len(), 5);
    assert_eq!(read_commits(&lake.path().join("t")).len(), 5);
}

/// Lists of columns, and names for the table.
#[test]
fn inserts_name_their_columns_and_deletes_their_table() {
    let lake = lake(&["CREATE TABLE t (a INT, b STRING, c DATE)"]);
    sql(
        &lake,
        &[
            "INSERT INTO t (b, A) VALUES ('x', 1), ('y', 2)",
            "INSERT INTO t (`c`) SELECT DATE '2026-01-01'",
        ],
    )
    .succeeded();
    assert_eq!(
        rows(&lake, "t"),
        [
            r#"{"a":1,"b":"x","c":null}"#,
            r#"{"a":2,"b":"y","c":null}"#,
            r#"{"a":null,"b":null,"c":"2026-01-01"}"#,
        ]
    );
    let deleted = sql(&lake, &["DELETE FROM t AS x WHERE x.a = 1"]).json();
    assert_eq!(deleted["rows"], 1);
    let text = sql(&lake, &["DELETE FROM t x WHERE t.a = 2"]).failure();
    assert!(text.starts_with("exit code 2\n") && text.contains("t.a"), "{text}");
    for statement in
        ["INSERT OVERWRITE t VALUES (1, 'x', NULL)", "DELETE FROM t WHERE a IN (SELECT 1)"]
    {
        let text = sql(&lake, &[statement]).failure();
        assert!(text.starts_with("exit code 2\n"), "{text}");
    }
    assert_eq!(rows(&lake, "t").len(), 2);
    let deleted = sql(&lake, &["DELETE FROM t"]).json();
    assert_eq!(deleted["rows"], 2);
}

/// Apostrophes in a query with time travel stay what they are.
#[test]
fn texts_survive_time_travel() {
    let lake =
        lake(&["CREATE TABLE t (a STRING)", "INSERT INTO t VALUES ('it''s')", "DELETE FROM t"]);
    let found = answer(&lake, "SELECT a, 'o''clock' AS b FROM t VERSION AS OF 1 WHERE a = 'it''s'");
    assert_eq!(found, [json!({"a": "it's", "b": "o'clock"})]);
}
