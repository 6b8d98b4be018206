//! History of any engine, as JSON lines.

use super::actions;
use crate::support::{lakebed, small_lake_copy};

/// Statements whose lineage comes from their text; columns are those of the lake's tables.
fn history() -> String {
    let mut lines = String::new();
    for n in 0..20 {
        let (from, to) = (n * 3_000 + 1, n * 3_000 + 1_500);
        let sql = format!(
            "SELECT sum(l_extendedprice) FROM orders, lineitem \
             WHERE o_orderkey = l_orderkey AND o_orderkey BETWEEN {from} AND {to}"
        );
        let line = serde_json::json!({
            "ts": format!("2026-11-29T10:{n:02}:00Z"), "sql": sql, "duration_ms": 1_000 + n,
        });
        lines.push_str(&format!("{line}\n"));
    }
    lines
}

#[test]
fn text_of_statements_gives_edges_and_a_plan() {
    let lake = small_lake_copy();
    std::fs::write(lake.path().join("history.jsonl"), history()).unwrap();
    let graph = lakebed(lake.path(), &["graph", "history.jsonl", "--lake", ".", "--json"]).json();
    let [edge] = graph["edges"].as_array().unwrap().as_slice() else { panic!("{graph}") };
    assert_eq!((&edge["left"], &edge["right"]), (&"lineitem".into(), &"orders".into()));
    assert_eq!(edge["pairs"], serde_json::json!([["l_orderkey", "o_orderkey"]]));
    assert_eq!(edge["frequency"], 20);
    // 60 175 lines × 15 000 orders.
    assert_eq!(edge["rows_product_mean"], 902_625_000.0);
    // (1 000 + … + 1 019) / 20
    assert_eq!(edge["cost_ms_mean"], 1_009.5);

    let plan = lakebed(lake.path(), &["plan", "history.jsonl", "--lake", ".", "--json"]).json();
    assert_eq!(actions(&plan), ["lineitem l_orderkey", "orders o_orderkey"]);
}

#[test]
fn statement_whose_table_is_unknown_is_counted_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let lines = concat!(
        r#"{"ts":"2026-11-29T10:00:00Z","sql":"SELECT a.x FROM a JOIN b ON a.x = b.y"}"#,
        "\n",
        r#"{"ts":"2026-11-29T10:00:01Z","sql":"SELEKT"}"#,
        "\n"
    );
    std::fs::write(folder.path().join("history.jsonl"), lines).unwrap();
    let graph = lakebed(folder.path(), &["graph", "history.jsonl", "--json"]).json();
    let parse = &graph["parse"];
    assert_eq!((&parse["statements"], &parse["unparsed"]), (&2.into(), &1.into()));
    // Qualified columns need no catalog.
    let [edge] = graph["edges"].as_array().unwrap().as_slice() else { panic!("{graph}") };
    assert_eq!(edge["pairs"], serde_json::json!([["x", "y"]]));
}
