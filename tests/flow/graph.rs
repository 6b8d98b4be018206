//! What `graph` finds in logs of Spark.

use std::fmt::Write as _;

use serde_json::Value;

use super::{W1, W1_FLIPS, on_log};

const Q72: &str = "tests/data/logs/nds_q72_dataproc_2_2.zstd";

/// One line per edge, by names: pairs, how many statements, and how they ran.
fn edges(graph: &Value) -> String {
    let mut lines = Vec::new();
    for edge in graph["edges"].as_array().expect("edges") {
        let mut line = format!("{}–{}", text(&edge["left"]), text(&edge["right"]));
        for pair in edge["pairs"].as_array().expect("pairs") {
            let _ = write!(line, " [{},{}]", text(&pair[0]), text(&pair[1]));
        }
        let _ = write!(line, " {}", edge["frequency"]);
        for strategy in ["sort_merge", "broadcast", "shuffle_hash"] {
            let _ = write!(line, " {strategy} {}", edge["strategies"][strategy]);
        }
        lines.push(line);
    }
    lines.sort();
    lines.join("\n")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn graph(log: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    on_log(folder.path(), "graph", log, &["--json"]).json()
}

/// Expected: the weights of the window's query templates.
#[test]
fn window_one_has_three_edges_of_forty_statements() {
    let graph = graph(W1);
    insta::assert_snapshot!(edges(&graph), @r"
    customer–orders [c_custkey,o_custkey] 12 sort_merge 12 broadcast 0 shuffle_hash 0
    lineitem–orders [l_orderkey,o_orderkey] 28 sort_merge 28 broadcast 0 shuffle_hash 0
    lineitem–supplier [l_suppkey,s_suppkey] 3 sort_merge 0 broadcast 3 shuffle_hash 0
    ");
    let parse = &graph["parse"];
    assert_eq!((&parse["statements"], &parse["parsed"]), (&40.into(), &40.into()));
    assert_eq!((&parse["truncated"], &parse["malformed_lines"]), (&false.into(), &0.into()));
}

#[test]
fn graph_names_its_scorer_and_its_edges_come_in_order() {
    let graph = graph(W1);
    assert_eq!(graph["scorer"]["name"], "ajlo-jis");
    let digest = text(&graph["scorer"]["digest"]);
    let hex = digest.strip_prefix("sha256:").expect("a digest");
    assert!(hex.len() == 64 && hex.chars().all(|c| c.is_ascii_hexdigit()), "{digest}");
    let scores: Vec<f64> =
        graph["edges"].as_array().unwrap().iter().map(|e| e["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    for edge in graph["edges"].as_array().unwrap() {
        assert!(text(&edge["left"]) <= text(&edge["right"]), "{edge}");
        let queries = edge["queries"].as_array().unwrap();
        assert_eq!(edge["frequency"].as_u64(), u64::try_from(queries.len()).ok());
    }
    let (from, to) = (text(&graph["window"]["from"]), text(&graph["window"]["to"]));
    assert!(from < to && to.ends_with('Z'), "{from} {to}");
}

#[test]
fn the_same_statements_as_broadcasts_have_the_same_edges() {
    insta::assert_snapshot!(edges(&graph(W1_FLIPS)), @r"
    customer–orders [c_custkey,o_custkey] 12 sort_merge 0 broadcast 12 shuffle_hash 0
    lineitem–orders [l_orderkey,o_orderkey] 28 sort_merge 0 broadcast 28 shuffle_hash 0
    lineitem–supplier [l_suppkey,s_suppkey] 3 sort_merge 0 broadcast 3 shuffle_hash 0
    ");
}

/// Expected: the SQL of TPC-DS query 72.
#[test]
fn query_72_has_its_eleven_edges() {
    insta::assert_snapshot!(edges(&graph(Q72)), @r"
    catalog_returns–catalog_sales [cr_item_sk,cs_item_sk] [cr_order_number,cs_order_number] 1 sort_merge 1 broadcast 0 shuffle_hash 0
    catalog_sales–customer_demographics [cs_bill_cdemo_sk,cd_demo_sk] 1 sort_merge 0 broadcast 1 shuffle_hash 0
    catalog_sales–date_dim [cs_ship_date_sk,d_date_sk] 1 sort_merge 0 broadcast 1 shuffle_hash 0
    catalog_sales–date_dim [cs_sold_date_sk,d_date_sk] 1 sort_merge 0 broadcast 1 shuffle_hash 0
    catalog_sales–household_demographics [cs_bill_hdemo_sk,hd_demo_sk] 1 sort_merge 0 broadcast 1 shuffle_hash 0
    catalog_sales–inventory [cs_item_sk,inv_item_sk] 1 sort_merge 1 broadcast 0 shuffle_hash 0
    catalog_sales–item [cs_item_sk,i_item_sk] 1 sort_merge 0 broadcast 1 shuffle_hash 0
    catalog_sales–promotion [cs_promo_sk,p_promo_sk] 1 sort_merge 0 broadcast 1 shuffle_hash 0
    date_dim–date_dim [d_week_seq,d_week_seq] 1 sort_merge 0 broadcast 1 shuffle_hash 0
    date_dim–inventory [d_date_sk,inv_date_sk] 1 sort_merge 0 broadcast 1 shuffle_hash 0
    inventory–warehouse [inv_warehouse_sk,w_warehouse_sk] 1 sort_merge 0 broadcast 1 shuffle_hash 0
    ");
}

#[test]
fn another_scorer_is_one_line_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let line = "[plugins]\nscorer = \"scorer-bytes-saved\"\n";
    std::fs::write(folder.path().join("lakebed.toml"), line).unwrap();
    let configured = on_log(folder.path(), "graph", W1, &["--json"]).json();
    assert_eq!(configured["scorer"]["name"], "bytes-saved");

    let jis = on_log(folder.path(), "graph", W1, &["--json", "--scorer", "ajlo-jis"]).json();
    assert_eq!(jis["scorer"]["name"], "ajlo-jis");
    assert_eq!(edges(&configured), edges(&jis), "a scorer changes scores only");
    assert_ne!(configured["scorer"]["digest"], jis["scorer"]["digest"]);
}

#[test]
fn a_window_keeps_the_newest_statements() {
    let folder = tempfile::tempdir().unwrap();
    let whole = graph(W1);
    let short = on_log(folder.path(), "graph", W1, &["--json", "--window", "10s"]).json();
    assert_eq!(short["window"]["to"], whole["window"]["to"]);
    let frequency = |graph: &Value| -> u64 {
        graph["edges"].as_array().unwrap().iter().filter_map(|e| e["frequency"].as_u64()).sum()
    };
    assert!(frequency(&short) < frequency(&whole));
}
