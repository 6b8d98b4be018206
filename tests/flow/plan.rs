//! Plans for a real lake.

use serde_json::Value;

use super::{W1, W1_FLIPS, actions, names, on_log};
use crate::support::small_lake;

/// Plans from a log for the small lake, in a folder of its own.
#[track_caller]
fn plan(log: &str, more: &[&str]) -> Value {
    // A plan is kept in the lake's folder, so the small lake is named table by table.
    let folder = tempfile::tempdir().unwrap();
    let tables = ["customer", "lineitem", "orders", "part", "partsupp", "supplier"];
    let mut text = "[tables]\n".to_owned();
    for table in tables {
        let location = small_lake().join(table);
        text.push_str(&format!("{table} = {:?}\n", location.display().to_string()));
    }
    std::fs::write(folder.path().join("lakebed.toml"), text).unwrap();
    let mut arguments = vec!["--json"];
    arguments.extend(more);
    on_log(folder.path(), "plan", log, &arguments).json()
}

fn rewrite_bytes(plan: &Value) -> u64 {
    let actions = plan["actions"].as_array().into_iter().flatten();
    actions.filter_map(|action| action["rewrite_bytes"].as_u64()).sum()
}

#[track_caller]
fn check_join_keys(plan: &Value) {
    let chosen = actions(plan);
    for start in ["lineitem l_orderkey", "orders o_orderkey"] {
        assert!(chosen.iter().any(|action| action.starts_with(start)), "{start}: {chosen:?}");
    }
}

#[test]
fn plan_says_what_it_was_made_from() {
    let plan = plan(W1, &[]);
    check_join_keys(&plan);
    assert_eq!(plan["inputs"]["snapshot_versions"]["lineitem"], 0);
    let plugins = plan["plugins"].as_array().unwrap();
    let named: Vec<String> = plugins
        .iter()
        .map(|p| format!("{} {}", p["world"].as_str().unwrap(), p["name"].as_str().unwrap()))
        .collect();
    assert_eq!(named, ["scorer ajlo-jis", "cost-model npv"]);
    assert_eq!(plan["search"], "exact");
    assert!(plan["npv_bytes"].as_i64().unwrap() <= plan["upper_bound_bytes"].as_i64().unwrap());
    for action in plan["actions"].as_array().unwrap() {
        let saves = |name: &str| action["saves_bytes_per_window"][name].as_u64().unwrap();
        assert!(saves("low") <= saves("expected") && saves("expected") <= saves("high"));
        assert!(!action["because"].as_str().unwrap().is_empty());
        assert_eq!(names(&action["from"]["cluster_by"]), "");
    }
}

#[test]
fn the_same_log_gives_the_same_plan() {
    assert_eq!(plan(W1, &[]), plan(W1, &[]));
}

/// What was broadcast only because file skipping had shrunk it gains as much as in a sort-merge join.
#[test]
fn statements_that_ran_as_broadcasts_still_give_keys() {
    check_join_keys(&plan(W1_FLIPS, &[]));
}

#[test]
fn budget_bounds_what_is_rewritten() {
    let whole = plan(W1, &[]);
    let largest = rewrite_bytes(&whole);
    let half = largest / 2;
    let bounded = plan(W1, &["--budget", &half.to_string()]);
    assert!(rewrite_bytes(&bounded) <= half, "{}", bounded["actions"]);
    assert!(bounded["npv_bytes"].as_i64() <= whole["npv_bytes"].as_i64());
    assert_eq!(bounded["settings"]["rewrite_budget_bytes"], half);
    assert_eq!(actions(&plan(W1, &["--budget", "1"])), [""; 0]);
}

#[test]
fn only_the_tables_named_are_planned() {
    let chosen = actions(&plan(W1, &["--tables", "orders"]));
    assert!(matches!(chosen.as_slice(), [one] if one.starts_with("orders ")), "{chosen:?}");
}

#[test]
fn greedy_is_never_better_than_exact() {
    let greedy = plan(W1, &["--search", "greedy"]);
    assert_eq!(greedy["search"], "greedy");
    let exact = plan(W1, &[]);
    assert!(greedy["npv_bytes"].as_i64() <= exact["npv_bytes"].as_i64());
}
