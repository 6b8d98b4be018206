//! A plan, carried out.

use std::path::Path;

use lakebed_layout::alter_layout;
use lakebed_model::{Instant, TableName};
use lakebed_plan::Layout;
use serde_json::Value;

use super::{W1, actions, names, on_log};
use crate::support::{Run, empty_lake, lakebed, read_commits, runtime, small_lake_copy};

/// Versions of the tables that a plan is about.
fn versions(lake: &Path) -> Vec<(String, usize)> {
    let tables = ["customer", "lineitem", "orders", "supplier"];
    tables.map(|table| (table.to_owned(), read_commits(&lake.join(table)).len())).to_vec()
}

#[test]
fn plan_is_written_emitted_tried_applied_and_then_done() {
    let lake = small_lake_copy();
    let lake = lake.path();
    let options = ["--lake", ".", "--json", "--out", "plan.json"];
    let plan = on_log(lake, "plan", W1, &options).json();
    let written = std::fs::read_to_string(lake.join("plan.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), plan);
    let chosen = actions(&plan);
    assert!(!chosen.is_empty());

    let emitted = lakebed(lake, &["apply", "plan.json", "--lake", ".", "--emit", "spark-sql"]);
    let expected: Vec<String> =
        plan["actions"].as_array().unwrap().iter().flat_map(spark_sql).collect();
    assert_eq!(emitted.succeeded().stdout, expected.join("\n") + "\n");

    let options = ["apply", "plan.json", "--emit", "spark-sql", "--json"];
    let emitted = lakebed(lake, &options).json();
    assert_eq!(emitted["plan"], plan["id"]);
    let statements = emitted["statements"].as_array().unwrap();
    let bare = expected.iter().map(|statement| statement.trim_end_matches(';'));
    assert!(statements.iter().map(|s| s.as_str().unwrap()).eq(bare), "{emitted}");

    let before = versions(lake);
    let dry = lakebed(lake, &["apply", "plan.json", "--lake", ".", "--dry-run", "--json"]).json();
    assert_eq!((&dry["dry_run"], &dry["plan"]), (&true.into(), &plan["id"]));
    assert_eq!(versions(lake), before, "neither printing nor trying changes a table");

    let applied = lakebed(lake, &["apply", "plan.json", "--lake", ".", "--json"]).json();
    let tables = applied["tables"].as_array().unwrap();
    assert_eq!(tables.len(), chosen.len());
    for (table, action) in tables.iter().zip(&chosen) {
        let name = table["table"].as_str().unwrap();
        assert_eq!(&format!("{name} {}", names(&table["cluster_by"])), action);
        // CREATE, ALTER and one commit per bin.
        let commits = read_commits(&lake.join(name)).len();
        assert_eq!(table["version"].as_u64(), u64::try_from(commits - 1).ok());
        assert!(commits >= 3 && table["rewritten_bytes"].as_u64() > Some(0), "{table}");
    }

    let after = versions(lake);
    let again = lakebed(lake, &["apply", "plan.json", "--lake", ".", "--json"]).json();
    for table in again["tables"].as_array().unwrap() {
        assert_eq!((&table["files_in"], &table["rewritten_bytes"]), (&0.into(), &0.into()));
    }
    assert_eq!(versions(lake), after, "a plan that is carried out has nothing left to do");
}

#[test]
fn cuts_are_emitted_as_a_comment_of_the_statement_that_leaves_them_out() {
    let (lake, _) = planned_lake();
    let lake = lake.path();
    let text = std::fs::read_to_string(lake.join("plan.json")).unwrap();
    let mut plan: Value = serde_json::from_str(&text).unwrap();
    for action in plan["actions"].as_array_mut().unwrap() {
        if layout_of(action).cluster_by.len() == 2 {
            action["to"]["cuts"] = serde_json::json!([5, 2]);
        }
    }
    std::fs::write(lake.join("cut.json"), plan.to_string()).unwrap();
    let emitted = lakebed(lake, &["apply", "cut.json", "--emit", "spark-sql"]);
    let expected: Vec<String> =
        plan["actions"].as_array().unwrap().iter().flat_map(spark_sql).collect();
    assert_eq!(emitted.succeeded().stdout, expected.join("\n") + "\n");
    assert!(
        emitted.stdout.contains("-- planned as (l_orderkey in 5 parts, "),
        "{}",
        emitted.stdout
    );
}

/// Cuts are told in a comment, which is part of the statement that leaves them out.
fn spark_sql(action: &Value) -> [String; 3] {
    let layout = layout_of(action);
    let columns: Vec<String> = layout.cluster_by.iter().map(|name| format!("`{name}`")).collect();
    let table = action["table"].as_str().unwrap();
    let note = if layout.cuts.is_empty() {
        String::new()
    } else {
        let rest = "Spark cannot cut and gives all columns the same resolution";
        format!("-- planned as ({}); {rest}\n", layout.keys())
    };
    [
        format!("{note}ALTER TABLE `{table}` CLUSTER BY ({});", columns.join(", ")),
        format!("OPTIMIZE `{table}` FULL;"),
        format!("ANALYZE TABLE `{table}` COMPUTE STATISTICS;"),
    ]
}

/// The layout that an action leads to.
fn layout_of(action: &Value) -> Layout {
    let parts = action["to"]["cuts"].as_array().unwrap().iter();
    let parts = parts.map(|parts| u32::try_from(parts.as_u64().unwrap()).unwrap()).collect();
    Layout::cut(
        names(&action["to"]["cluster_by"]).split(',').map(ToOwned::to_owned).collect(),
        parts,
    )
}

#[test]
fn file_that_is_no_plan_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plan.json"), "{\"id\": 7}\n").unwrap();
    insta::assert_snapshot!(lakebed(folder.path(), &["apply", "plan.json"]).failure(), @r"
    exit code 2
    error: failed to read `plan.json`: not a plan: invalid type: integer `7`, expected a string at line 1 column 8
    help: correct the file at the place named above
    ");
}

/// Writes the plan of the first window into a copy of the small lake.
fn planned_lake() -> (tempfile::TempDir, Vec<String>) {
    let lake = small_lake_copy();
    let options = ["--lake", ".", "--json", "--out", "plan.json"];
    let plan = on_log(lake.path(), "plan", W1, &options).json();
    let table = |action: &String| action.split(' ').next().unwrap_or_default().to_owned();
    let tables = actions(&plan).iter().map(table).collect();
    (lake, tables)
}

fn apply(lake: &Path) -> Run {
    lakebed(lake, &["apply", "plan.json", "--lake", ".", "--json"])
}

/// What cannot be done is found before anything is done.
#[test]
fn plan_that_no_longer_fits_is_refused_before_any_table_is_touched() {
    let (lake, tables) = planned_lake();
    let lake = lake.path();
    let last = tables.last().unwrap();
    let before = versions(lake);
    std::fs::rename(lake.join(last), lake.join("elsewhere")).unwrap();
    let text = apply(lake).failure();
    let expected = format!("exit code 2\nerror: failed to find table `{last}`: the lake has ");
    assert!(text.starts_with(&expected), "{text}");
    std::fs::rename(lake.join("elsewhere"), lake.join(last)).unwrap();
    assert_eq!(versions(lake), before);

    assert_eq!(last, "orders");
    lakebed(lake, &["--lake", ".", "sql", "ALTER TABLE orders CLUSTER BY (o_clerk)"]).succeeded();
    let before = versions(lake);
    let text = lakebed(lake, &["apply", "plan.json", "--lake", "."]).failure();
    assert_eq!(
        text,
        "exit code 4\n\
         error: failed to apply the plan to table `orders`: it is clustered by (o_clerk), the plan was made for no layout\n\
         help: plan again: the table's layout has changed\n"
    );
    assert_eq!(versions(lake), before);
}

#[test]
fn tables_that_grew_beyond_the_plans_budget_are_refused() {
    let (lake, _) = planned_lake();
    let lake = lake.path();
    let path = lake.join("plan.json");
    let mut plan: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    plan["settings"]["rewrite_budget_bytes"] = 1_024.into();
    std::fs::write(&path, plan.to_string()).unwrap();
    let before = versions(lake);
    let text = lakebed(lake, &["apply", "plan.json", "--lake", "."]).failure();
    assert!(
        text.starts_with("exit code 3\nerror: failed to apply the plan: its tables are "),
        "{text}"
    );
    assert!(text.contains(" by now, its rewrite budget is 1.0 KiB\nhelp: plan again"), "{text}");
    assert_eq!(versions(lake), before);
}

/// The second table's files are gone: the first is done, and said to be.
#[test]
fn what_was_done_before_a_failure_is_reported() {
    let (lake, tables) = planned_lake();
    let lake = lake.path();
    let [first, .., last] = tables.as_slice() else { panic!("{tables:?}") };
    for entry in std::fs::read_dir(lake.join(last)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "parquet") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let run = apply(lake);
    assert_ne!(run.code, 0);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (&report["complete"], &report["tables"][0]["table"]),
        (&false.into(), &first.as_str().into())
    );
    let done = report["tables"].as_array().unwrap().len();
    assert_eq!(done, tables.len() - 1);
    let text = lakebed(lake, &["apply", "plan.json", "--lake", "."]);
    let line =
        format!("{done} of {} tables are done; the plan can be applied again\n", tables.len());
    assert!(text.stdout.ends_with(&line), "{}", text.stdout);
}

/// Keys without a rewrite are what an interrupted apply leaves: the work is still there to be done.
#[test]
fn keys_that_are_set_but_not_laid_out_are_still_planned_and_budgeted() {
    let (lake, tables) = planned_lake();
    let lake = lake.path();
    let text = std::fs::read_to_string(lake.join("plan.json")).unwrap();
    let mut plan: Value = serde_json::from_str(&text).unwrap();
    let mut opened = empty_lake();
    opened.add_folder(lake).unwrap();
    for action in plan["actions"].as_array().unwrap() {
        let table = TableName::new(action["table"].as_str().unwrap());
        let now = Instant::from_epoch_ms(1);
        runtime(alter_layout(&opened, &table, &layout_of(action), now)).unwrap();
    }
    let dry = lakebed(lake, &["apply", "plan.json", "--lake", ".", "--dry-run", "--json"]).json();
    for table in dry["tables"].as_array().unwrap() {
        assert!(table["rewritten_bytes"].as_u64() > Some(0), "{table}");
    }
    plan["settings"]["rewrite_budget_bytes"] = 1_024.into();
    std::fs::write(lake.join("small.json"), plan.to_string()).unwrap();
    let run = lakebed(lake, &["apply", "small.json", "--lake", "."]);
    assert_eq!(run.code, 3, "{}", run.stderr);

    let again = on_log(lake, "plan", W1, &["--lake", ".", "--json"]).json();
    let planned: Vec<String> = actions(&again);
    let first = |action: &String| action.split(' ').next().unwrap_or_default().to_owned();
    assert_eq!(planned.iter().map(first).collect::<Vec<_>>(), tables);
    apply(lake).succeeded();
    let done = on_log(lake, "plan", W1, &["--lake", ".", "--json"]).json();
    assert_eq!(actions(&done), [""; 0]);
}

#[test]
fn layouts_that_cannot_be_are_refused() {
    let (lake, _) = planned_lake();
    let lake = lake.path();
    let text = std::fs::read_to_string(lake.join("plan.json")).unwrap();
    let plan: Value = serde_json::from_str(&text).unwrap();
    let before = versions(lake);
    for (field, value, fault) in [
        ("cluster_by", serde_json::json!([]), "has no clustering columns"),
        ("partition_by", serde_json::json!(["a"]), "partitions, which a clustered table cannot be"),
        (
            "cuts",
            serde_json::json!([3]),
            "has other cuts than one number above 0 for each of two to four columns",
        ),
    ] {
        let mut edited = plan.clone();
        edited["actions"][0]["to"][field] = value;
        std::fs::write(lake.join("edited.json"), edited.to_string()).unwrap();
        let text = lakebed(lake, &["apply", "edited.json", "--lake", "."]).failure();
        let start = "exit code 2\nerror: failed to apply the plan to table `";
        assert!(
            text.starts_with(start) && text.contains(&format!("its layout {fault}\n")),
            "{text}"
        );
    }
    assert_eq!(versions(lake), before);
}
