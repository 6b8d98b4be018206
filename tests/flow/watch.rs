//! The loop: what one round decides, does and remembers.

use std::path::Path;

use serde_json::Value;

use crate::support::{lakebed, read_commits, small_lake_copy};

const DAY_MS: u64 = 86_400_000;

/// Statements that join orders to lineitem on the first day, and lineitem to partsupp on the second.
fn write_log(lake: &Path, days: u64) {
    let line = |n: u64| {
        let (day, low) = (n / 20, n % 20);
        let sql = if day == 0 {
            let (low, high) = (low * 1000, low * 1000 + 9_000);
            format!(
                "SELECT count(*) FROM orders JOIN lineitem ON o_orderkey = l_orderkey \
                 WHERE o_orderkey BETWEEN {low} AND {high}"
            )
        } else {
            let (low, high) = (low * 50, low * 50 + 300);
            format!(
                "SELECT count(*) FROM lineitem JOIN partsupp ON l_partkey = ps_partkey \
                 AND l_suppkey = ps_suppkey WHERE l_partkey BETWEEN {low} AND {high}"
            )
        };
        let ts = 1_700_000_000_000 + day * DAY_MS + low * 1000;
        serde_json::json!({"ts": ts, "sql": sql, "dialect": "spark"}).to_string()
    };
    let lines: Vec<String> = (0..days * 20).map(line).collect();
    std::fs::write(lake.join("log.jsonl"), lines.join("\n")).unwrap();
}

fn watch(lake: &Path, more: &[&str]) -> Value {
    let mut arguments = vec!["--lake", ".", "--json", "watch", "log.jsonl", "--once"];
    arguments.extend(more);
    lakebed(lake, &arguments).json()
}

#[test]
fn rounds_plan_first_then_stand_then_follow_a_new_join() {
    let lake = small_lake_copy();
    let lake = lake.path();
    write_log(lake, 1);
    let first = watch(lake, &["--window", "12h"]);
    assert_eq!((&first["decision"], &first["drift"]), (&"first".into(), &Value::Null));
    let tables = first["tables"].as_array().unwrap();
    assert!(tables.iter().any(|table| table["table"] == "lineitem"), "{first}");
    for table in tables {
        let bytes = |figure: &str| table[figure].as_f64().unwrap();
        assert!(bytes("rewritten_bytes") > 0.0 && table["rows"].as_u64() > Some(0), "{table}");
        let (before, predicted) = (bytes("reads_before_bytes"), bytes("reads_predicted_bytes"));
        let achieved = bytes("reads_achieved_bytes");
        assert!(predicted < before && achieved < before, "{table}");
        assert!((predicted - achieved).abs() <= 0.15 * before, "{table}");
    }
    let outcomes = read_commits(&lake.join("_lakebed/outcomes"));
    assert!(!outcomes.is_empty(), "predicted and achieved are kept side by side");

    // The same log once more: the plan finds nothing left to do.
    let again = watch(lake, &["--window", "12h"]);
    assert_eq!(again["tables"].as_array().map(Vec::len), Some(0), "{again}");

    write_log(lake, 2);
    let versions = read_commits(&lake.join("lineitem")).len();
    let moved = watch(lake, &["--window", "24h"]);
    assert_eq!(moved["decision"], "drifted");
    assert!(moved["drift"]["new_edges"][0].as_str().unwrap().contains("partsupp"), "{moved}");
    assert!(read_commits(&lake.join("lineitem")).len() > versions, "{moved}");

    // Ten seconds against the ten before: the same join.
    let stands = watch(lake, &["--window", "10s"]);
    assert_eq!((&stands["decision"], &stands["plan"]), (&"stands".into(), &Value::Null));
}

#[test]
fn round_without_budget_rewrites_nothing_and_an_endless_watch_needs_a_period() {
    let lake = small_lake_copy();
    let lake = lake.path();
    write_log(lake, 1);
    let round = watch(lake, &["--budget", "0"]);
    assert_eq!(
        (&round["decision"], round["tables"].as_array().map(Vec::len)),
        (&"first".into(), Some(0))
    );
    assert!(round["plan"].is_string(), "{round}");
    let text = lakebed(lake, &["--lake", ".", "watch", "log.jsonl"]).failure();
    assert_eq!(
        text,
        "exit code 2\n\
         error: failed to watch without knowing how often\n\
         help: give --once, --window 7d or --every 1d\n"
    );
}
