//! Plans for a real lake.

use serde_json::Value;

use super::{W1, W1_FLIPS, actions, names, on_log};
use crate::support::{lakebed, small_lake, small_lake_copy};

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
    let plan = plan(W1, &["--tables", "Orders"]);
    assert_eq!(actions(&plan), chosen);
    assert_eq!(reason(&plan, "lineitem"), "not among the tables asked for");
}

fn reason<'p>(plan: &'p Value, table: &str) -> &'p str {
    let rejected = plan["rejected"].as_array().unwrap();
    let found = rejected.iter().find(|rejection| rejection["table"] == table);
    found.and_then(|rejection| rejection["why"].as_str()).unwrap_or_default()
}

#[test]
fn plan_without_actions_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let text = on_log(folder.path(), "plan", W1, &[]).succeeded().stdout.clone();
    assert!(text.contains("\nnothing to do: of the history's tables none could be planned for; [lake] folder or --lake says where they lie\n– not customer: not in the lake\n"), "{text}");
    let lake = small_lake_copy();
    let text = on_log(lake.path(), "plan", W1, &["--lake", ".", "--budget", "0"]);
    let text = &text.succeeded().stdout;
    assert!(text.contains("\nnothing to do, for these reasons:\n"), "{text}");
    assert!(text.contains("of the rewrite budget, 0 B left\n"), "{text}");
}

/// A table that cannot be read costs its own place in the plan and nobody else's.
#[test]
fn table_that_cannot_be_read_is_left_out_with_the_reason() {
    let lake = small_lake_copy();
    let lake = lake.path();
    let commit = lake.join("customer/_delta_log").join(format!("{:020}.json", 0));
    std::fs::write(commit, "no JSON\n").unwrap();
    let run = on_log(lake, "plan", W1, &["--lake", ".", "--json"]);
    let plan = run.json();
    check_join_keys(&plan);
    let why = reason(&plan, "customer");
    assert!(why.starts_with("cannot read table `customer` at file://"), "{why}");
    assert!(why.contains(": its log is damaged: "), "{why}");

    let sql =
        "SELECT 1 FROM orders o JOIN customer c ON o.o_custkey = c.c_custkey WHERE o_orderkey < 9";
    let line = serde_json::json!({"ts": "2026-11-29T10:00:00Z", "sql": sql});
    std::fs::write(lake.join("log.jsonl"), format!("{line}\n")).unwrap();
    let run = lakebed(lake, &["graph", "log.jsonl", "--lake", ".", "--json"]);
    let graph = run.json();
    assert_eq!(graph["edges"][0]["pairs"], serde_json::json!([["c_custkey", "o_custkey"]]));
    assert!(run.stderr.contains(" WARN cannot read table `customer` at file://"), "{}", run.stderr);
}

#[test]
fn greedy_is_never_better_than_exact() {
    let greedy = plan(W1, &["--search", "greedy"]);
    assert_eq!(greedy["search"], "greedy");
    let exact = plan(W1, &[]);
    assert!(greedy["npv_bytes"].as_i64() <= exact["npv_bytes"].as_i64());
}

/// A file that is gone, a checkpoint that is none and a folder that is not there are no storage that
/// may answer later.
#[test]
fn table_without_its_files_or_its_folder_is_left_out_too() {
    let lake = small_lake_copy();
    let lake = lake.path();
    let data = std::fs::read_dir(lake.join("customer")).unwrap().map(|entry| entry.unwrap().path());
    for file in data.filter(|path| path.extension().is_some_and(|kind| kind == "parquet")) {
        std::fs::remove_file(file).unwrap();
    }
    let log = lake.join("supplier/_delta_log");
    std::fs::write(log.join(format!("{:020}.checkpoint.parquet", 0)), "no Parquet").unwrap();
    std::fs::write(log.join("_last_checkpoint"), r#"{"version":0,"size":1}"#).unwrap();
    std::fs::write(lake.join("lakebed.toml"), "[tables]\npart = \"/nope/part\"\n").unwrap();
    let plan = on_log(lake, "plan", W1, &["--lake", ".", "--json"]).json();
    check_join_keys(&plan);
    for (table, why) in [
        ("customer", "cannot sample table `customer`: "),
        ("supplier", "cannot read table `supplier` at "),
    ] {
        assert!(reason(&plan, table).starts_with(why), "{}", plan["rejected"]);
    }
    let text = lakebed(lake, &["--lake", ".", "sql", "SELECT * FROM part"]).failure();
    let expected =
        "exit code 2\nerror: failed to find table `part`: there is nothing at file:///nope/part/\n";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn protected_tables_are_neither_planned_for_nor_rewritten() {
    let lake = small_lake_copy();
    let lake = lake.path();
    on_log(lake, "plan", W1, &["--lake", ".", "--out", "plan.json"]).succeeded();
    std::fs::write(lake.join("lakebed.toml"), "[plan]\nprotect = [\"Orders\"]\n").unwrap();
    let plan = on_log(lake, "plan", W1, &["--lake", ".", "--json"]).json();
    assert!(!actions(&plan).is_empty() && !actions(&plan).concat().contains("orders "));
    assert_eq!(reason(&plan, "orders"), "the table is protected by the configuration");
    let text = lakebed(lake, &["apply", "plan.json", "--lake", "."]).failure();
    assert_eq!(
        text,
        "exit code 3\n\
         error: failed to apply the plan to table `orders`: it is protected\n\
         help: plan again, or take the table out of `protect` under [plan]\n"
    );
}

/// JIS of a single edge is 0 by its formula.
#[test]
fn single_join_is_ranked_by_bytes_and_said_to_be() {
    let lake = small_lake_copy();
    let lake = lake.path();
    let line = |n: u64| {
        let sql = format!(
            "SELECT count(*) FROM orders JOIN lineitem ON o_orderkey = l_orderkey \
             WHERE o_orderkey BETWEEN {} AND {}",
            n * 1000,
            n * 1000 + 5000
        );
        serde_json::json!({"ts": 1_700_000_000_000_u64 + n, "sql": sql, "dialect": "spark"})
    };
    let lines: Vec<String> = (0..9).map(|n| line(n).to_string()).collect();
    std::fs::write(lake.join("log.jsonl"), lines.join("\n")).unwrap();
    let run = lakebed(lake, &["plan", "log.jsonl", "--lake", ".", "--json"]);
    let plan = run.json();
    assert_eq!(actions(&plan), ["lineitem l_orderkey", "orders o_orderkey"]);
    assert!(run.stderr.contains("joins are ranked by bytes instead"), "{}", run.stderr);
}
