//! Views and temporary tables stand for what they were made of.

use super::{Dialect, edges_of, lineage};
use crate::{
    EmptyCatalog,
    lineage::sql::{LineageReader, SqlText},
};
use lakebed_model::Instant;

/// Reads statements in order, all of one session unless said, and returns the last one's edges.
fn last_edges(dialect: Dialect, session: Option<&str>, statements: &[&str]) -> Vec<String> {
    let mut reader = LineageReader::new(&EmptyCatalog);
    let mut edges = Vec::new();
    for (at, sql) in (1..).zip(statements) {
        let text = SqlText { sql, dialect, session, at: Instant::from_epoch_ms(at) };
        edges = reader.read(&text).map(|found| edges_of(&found.joins)).unwrap_or_default();
    }
    edges
}

#[test]
fn a_view_is_known_to_everybody_under_any_qualifier() {
    let view = "CREATE OR REPLACE VIEW s.v (k, w) AS SELECT a.id, b.x FROM a JOIN b ON a.j = b.j";
    let join = "SELECT 1 FROM main.s.v JOIN c ON v.k = c.k AND c.w = v.w";
    let expected = ["a.id=c.k inner", "a.j=b.j inner", "b.x=c.w inner"];
    assert_eq!(last_edges(Dialect::Databricks, None, &[view, join]), expected);
}

#[test]
fn views_of_views_and_cached_tables_are_followed() {
    assert_eq!(
        last_edges(
            Dialect::Spark,
            Some("s"),
            &[
                "CREATE VIEW v AS SELECT id AS k FROM a",
                "CREATE TEMPORARY VIEW w AS SELECT k AS m FROM v",
                "SELECT 1 FROM w JOIN b ON w.m = b.n",
            ]
        ),
        ["a.id=b.n inner"]
    );
}

#[test]
fn a_stored_table_and_a_common_table_of_the_name_are_no_view() {
    let made = "CREATE TABLE t AS SELECT id AS k FROM a";
    let join = "SELECT 1 FROM t JOIN b ON t.k = b.k";
    assert_eq!(last_edges(Dialect::Spark, Some("s"), &[made, join]), ["b.k=t.k inner"]);
    let view = "CREATE VIEW v AS SELECT id AS k FROM a";
    let join = "WITH v AS (SELECT k FROM z) SELECT 1 FROM v JOIN b ON v.k = b.k";
    assert_eq!(last_edges(Dialect::Spark, Some("s"), &[view, join]), ["b.k=z.k inner"]);
}

#[test]
fn temporary_tables_hold_within_a_script_without_session() {
    let script =
        "CREATE TEMP TABLE t AS SELECT id AS k FROM a; SELECT 1 FROM t JOIN b ON t.k = b.k";
    let found = lineage(script, Dialect::Redshift, &EmptyCatalog).unwrap();
    assert_eq!(edges_of(&found.joins), ["a.id=b.k inner"]);
    let script = "SELECT id AS k INTO TEMP t FROM a; SELECT 1 FROM t JOIN b ON t.k = b.k";
    let found = lineage(script, Dialect::Postgres, &EmptyCatalog).unwrap();
    assert_eq!(edges_of(&found.joins), ["a.id=b.k inner"]);
}

#[test]
fn a_text_that_was_read_before_a_view_was_made_is_read_anew() {
    let join = "SELECT 1 FROM v JOIN b ON v.k = b.k";
    let view = "CREATE VIEW v AS SELECT id AS k FROM a";
    assert_eq!(last_edges(Dialect::Spark, None, &[join]), ["b.k=v.k inner"]);
    assert_eq!(last_edges(Dialect::Spark, None, &[join, view, join]), ["a.id=b.k inner"]);
}

#[test]
fn views_that_name_each_other_come_to_an_end() {
    let mut statements: Vec<String> = vec!["CREATE VIEW v0 AS SELECT id FROM a".to_owned()];
    for n in 1..40 {
        let m = n - 1;
        let sql = format!("CREATE VIEW v{n} AS SELECT x.id FROM v{m} x JOIN v{m} y ON x.id = y.id");
        statements.push(sql);
    }
    statements.push("SELECT 1 FROM v39 JOIN b ON v39.id = b.id".to_owned());
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    last_edges(Dialect::Spark, Some("s"), &statements);
}
