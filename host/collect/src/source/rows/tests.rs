//! Rows in every form, whole and damaged.

use lakebed_model::Workload;

use crate::{CollectOptions, collect, lineage::sql::tests::tpch};

/// Reads a text as a file of this name.
fn read_text(name: &str, text: &str, format: Option<&str>) -> Result<Workload, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let options =
        CollectOptions { format: format.map(ToOwned::to_owned), ..CollectOptions::default() };
    collect(&[path], &options, &tpch())
        .map_err(|error| error.to_string().replace(&folder.path().display().to_string(), "…"))
}

/// The ids that were read, how many rows were malformed, and whether the end is missing.
#[track_caller]
fn check_rows(name: &str, text: &str, ids: &[&str], malformed: u64, truncated: bool) {
    let workload = read_text(name, text, None).unwrap();
    let found: Vec<&str> = workload.records.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(found, ids, "{text}");
    let report = &workload.report;
    assert_eq!((report.malformed_lines, report.truncated), (malformed, truncated), "{text}");
}

fn row(id: u32) -> String {
    format!("{{\"id\":\"{id}\",\"ts\":{id},\"sql\":\"SELECT 1 FROM orders\"}}")
}

#[test]
fn rows_stand_in_lines_arrays_and_lists_of_documents() {
    let [one, two, three] = [row(1), row(2), row(3)];
    check_rows("a", &format!("{one}\n\n{two}\n"), &["1", "2"], 0, false);
    check_rows("a", &format!("[{one},{two}]"), &["1", "2"], 0, false);
    check_rows("a", &format!("{{\"queries\":[{one},{two}],\"next\":null}}"), &["1", "2"], 0, false);
    check_rows(
        "a",
        &format!("{{\n\"queries\": [\n  {one},\n  {two}\n]}}\n{{\n\"queries\": [{three}]}}"),
        &["1", "2", "3"],
        0,
        false,
    );
    check_rows("a", &format!("[\n{one}\n]\n[\n{two}\n]"), &["1", "2"], 0, false);
    let pretty = one.replace(',', ",\n  ").replace('{', "{\n  ");
    check_rows("a", &format!("{pretty}\n{pretty}"), &["1"], 0, false);
    // A column may be called as a list is elsewhere.
    check_rows("a", &one.replace("\"id\"", "\"events\":[],\"id\""), &["1"], 0, false);
}

#[test]
fn a_damaged_row_never_takes_its_neighbors_along() {
    let [one, two, three] = [row(1), row(2), row(3)];
    check_rows(
        "a",
        &format!("{one}\n{{\"id\":\n7\n\"x\"\nnull\n[3]\n{two}\n"),
        &["1", "2"],
        5,
        false,
    );
    check_rows("a", &format!("[{one},7,\"x\",null,{two}]"), &["1", "2"], 3, false);
    check_rows(
        "a",
        &format!("[\n{one},\n{{\"id\":oops}},\n{two},\n{three}\n]\n"),
        &["1", "2", "3"],
        1,
        false,
    );
    check_rows("a", &format!("[\n{one},\n{two}"), &["1", "2"], 0, true);
    check_rows("a", &format!("{one}\n{{\"id\":\"2\",\"ts"), &["1"], 0, true);
    check_rows("a", &format!("{one}\n{{\"id\":\"2\",\"ts\":2}}\n{three}\n"), &["1", "3"], 1, false);
    check_rows(
        "a",
        &format!("{one}\n{{\"id\":\"2\",\"ts\":\"soon\",\"sql\":\"x\"}}\n{three}\n"),
        &["1", "3"],
        1,
        false,
    );
}

#[test]
fn csv_records_span_lines_and_a_lost_quote_costs_one_line() {
    let header = "\u{feff}ID,TS,SQL,Note\r\n";
    let record =
        |id: u32| format!("{id},{id},\"SELECT \"\"o_orderkey\"\", 'a,b'\r\nFROM orders\",\r\n");
    check_rows("a", &format!("{header}{}{}", record(1), record(2)), &["1", "2"], 0, false);
    check_rows(
        "a",
        &format!("{header}{}3,3,\"SELECT lost\n{}", record(1), record(2)),
        &["1", "2"],
        1,
        false,
    );
    check_rows("a", &format!("{header}1,1\n{}", record(2)), &["2"], 1, false);
    check_rows("a", &format!("{header}{}7,7,\"SELECT 'cut", record(2)), &["2"], 1, false);
    let tabs = "id\tts\tsql\n1\t1\tSELECT o_orderkey, 2 FROM orders\n";
    check_rows("a", tabs, &["1"], 0, false);
    // As Spark writes quotes.
    let spark = "id,ts,sql,note\n1,1,\"SELECT \\\"a, b\\\" FROM orders\",x\n";
    let workload = read_text("a", spark, None).unwrap();
    assert_eq!(workload.records[0].sql.as_deref(), Some("SELECT \"a, b\" FROM orders"));
}

#[test]
fn a_missing_column_is_named_with_those_that_are_there() {
    let rows = "statement_id,statement_text,executed_by\n1,SELECT 1 FROM orders,ada@x.test\n";
    assert_eq!(
        read_text("a.csv", rows, None).unwrap_err(),
        "read log `…/a.csv` as `databricks`: it has no column `start_time` or `query_start_time_ms`, \
         only executed_by, statement_id, statement_text"
    );
    // Without a header the first row is not repeated in the message.
    let rows = "1,'ada@x.test',2024\n2,x,y\n";
    assert_eq!(
        read_text("a.csv", rows, Some("snowflake")).unwrap_err(),
        "read log `…/a.csv` as `snowflake`: it has no column `query_text`, only ?, ?, ?"
    );
}

#[test]
fn a_format_named_by_the_caller_is_believed() {
    let rows = "{\"query_id\":\"q\",\"query_text\":\"SELECT 1 FROM orders\",\"start_time\":\"2024-05-01\"}\n";
    assert!(read_text("a", rows, None).unwrap_err().starts_with("recognize log `…/a`"));
    let workload = read_text("a", rows, Some("snowflake")).unwrap();
    assert_eq!(
        (workload.records[0].id.as_str(), workload.records[0].source.as_str()),
        ("q", "snowflake")
    );
}

#[test]
fn plain_rows_know_states_namespaces_and_statements_of_ours() {
    let rows = [
        r#"{"ts":1,"id":"a","sql":"SELECT 1 FROM orders","db":"lake.sales"}"#,
        r#"{"ts":2,"id":"b","sql":"SELECT 1 FROM orders","db":"lake.web"}"#,
        r#"{"ts":3,"sql":"SELECT 1 FROM orders","status":"Cancelled"}"#,
        r#"{"ts":4,"sql":"SELECT 1 FROM orders","status":"cached"}"#,
        r#"{"ts":5,"sql":"SELECT 1 FROM orders","app":"lakebed"}"#,
        r#"{"ts":6,"sql":"-- lakebed\nSELECT 1 FROM orders"}"#,
        r#"{"ts":7,"sql":"EXPLAIN ANALYZE SELECT 1 FROM orders"}"#,
        r#"{"ts":8,"id":"c","sql":"SELECT 1 FROM orders","status":"running"}"#,
    ];
    let workload = read_text("a", &rows.join("\n"), None).unwrap();
    let tables: Vec<String> = workload
        .records
        .iter()
        .map(|record| {
            format!("{} {} {:?}", record.id, record.scans[0].table.as_ref().unwrap(), record.status)
        })
        .collect();
    assert_eq!(tables, ["a sales.orders Finished", "b web.orders Finished", "c orders Unknown"]);
    let skipped = workload.report.skipped;
    assert_eq!((skipped.own, skipped.explain, skipped.failed, skipped.cached), (2, 1, 1, 1));
}

/// Peer case datahub#7102: a temporary table is what its own session made of it.
#[test]
fn datahub_7102_temporary_tables_are_scoped_by_session_and_time() {
    let statements = [
        ("s1", "CREATE TEMP TABLE tmp AS SELECT id AS k FROM src"),
        ("s2", "CREATE TEMP TABLE tmp AS SELECT x AS k FROM other"),
        ("s1", "SELECT 1 FROM tmp JOIN dim ON tmp.k = dim.k"),
    ];
    let rows = |session: bool| -> Vec<String> {
        let row = |(ts, (name, sql)): (usize, &(&str, &str))| {
            let session = if session { format!("\"session\":\"{name}\",") } else { String::new() };
            format!(
                "{{{session}\"ts\":{ts},\"dialect\":\"postgres\",\"id\":\"{ts}\",\"sql\":\"{sql}\"}}"
            )
        };
        statements.iter().enumerate().map(row).collect()
    };
    let edges = |rows: &[String]| -> Vec<String> {
        let workload = read_text("a", &rows.join("\n"), None).unwrap();
        let joins = workload.records.iter().flat_map(|record| &record.joins);
        joins.map(|join| format!("{} {} {:?}", join.left, join.right, join.pairs)).collect()
    };
    let expected = ["dim src [(\"k\", \"id\")]"];
    assert_eq!(edges(&rows(true)), expected);
    // An export lists the newest statement first; time counts, not place.
    let newest_first: Vec<String> = rows(true).into_iter().rev().collect();
    assert_eq!(edges(&newest_first), expected);
    // Without sessions nothing links the statements.
    assert_eq!(edges(&rows(false)), ["dim tmp [(\"k\", \"k\")]"]);
}

/// A join of nothing but computed keys gives no edge, which the report says; where the tables have
/// an edge beside it, nothing is missing.
#[test]
fn a_join_of_computed_keys_only_is_told_with_its_reason() {
    let reasons = |condition: &str| {
        let sql = format!("SELECT 1 FROM orders o JOIN customer c ON {condition}");
        let text = serde_json::json!({ "ts": 1, "sql": sql }).to_string();
        let workload = read_text("a", &text, None).unwrap();
        assert_eq!(workload.report.parsed + workload.report.partial, 1);
        let found: Vec<String> = workload.report.reasons.into_keys().collect();
        (workload.records[0].joins.len(), found)
    };
    assert_eq!(
        reasons("upper(o.o_orderpriority) = c.c_name"),
        (
            0,
            vec![
                "make an edge of a computed key: upper of `orders.o_orderpriority` is compared with \
                 `customer.c_name`"
                    .to_owned()
            ]
        )
    );
    assert_eq!(
        reasons("o.o_custkey + 1 = c.c_custkey"),
        (
            0,
            vec![
                "make an edge of a computed key: + of `orders.o_custkey` is compared with \
                 `customer.c_custkey`"
                    .to_owned()
            ]
        )
    );
    let both = reasons("o.o_custkey = c.c_custkey AND upper(o.o_orderpriority) = c.c_name");
    assert_eq!(both, (1, Vec::new()));
}
