//! `lakebed experiment`.

use std::{collections::BTreeMap, fs};

use crate::support::lakebed;

/// Runs a small form of an experiment and returns its figures; it must write a table and a plot.
#[track_caller]
fn figures(name: &str) -> BTreeMap<String, f64> {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--json", "experiment", name, "--quick", "--out", "found"];
    let view = lakebed(folder.path(), &arguments).json();
    assert_eq!(view["quick"], true);
    let found = folder.path().join("found");
    assert!(fs::read_to_string(found.join(format!("{name}.md"))).unwrap().contains("| --- |"));
    let is_plot = |file: &fs::DirEntry| file.file_name().to_string_lossy().ends_with(".svg");
    assert!(fs::read_dir(&found).unwrap().flatten().any(|file| is_plot(&file)));
    let figures = view["figures"].as_object().unwrap();
    figures.iter().map(|(name, value)| (name.clone(), value.as_f64().unwrap())).collect()
}

#[test]
fn plans_skip_more_than_the_paper_in_every_window() {
    let found = figures("windows");
    for (window, least) in [("w1", 0.60), ("w3", 0.56), ("w5", 0.59)] {
        let skipping = found[&format!("{window}_skipping")];
        assert!(skipping >= least, "{window}: {found:?}");
        assert!(skipping > found[&format!("{window}_skipping_ajlo")] + 0.05, "{window}: {found:?}");
        assert!(found[&format!("bytes_ratio_{window}")] <= 0.45, "{window}: {found:?}");
        assert!(found[&format!("{window}_skipping_before")] < 0.1, "{window}: {found:?}");
    }
}

#[test]
fn predicted_files_are_near_those_read() {
    let found = figures("simulation");
    assert!(found["points"] > 100.0, "{found:?}");
    assert!(found["error_mean"] <= 0.02 && found["error_p95"] <= 0.07, "{found:?}");
    assert!(found["coverage_same"] >= 0.9 && found["coverage_fresh"] >= 0.8, "{found:?}");
}

#[test]
fn a_layout_by_joins_and_dates_reads_less_than_either() {
    let found = figures("ajlo");
    assert!(found["bytes_vs_b0n"] <= 0.8 && found["bytes_vs_b0s"] <= 0.4, "{found:?}");
    assert!(found["bytes_vs_ajlo"] <= 0.8, "{found:?}");
    assert!(found["q01_q07_bytes_vs_b2"] <= -0.5, "{found:?}");
    assert!(found["skipping"] > found["ajlo_skipping"] + 0.1, "{found:?}");
    assert!(found["ajlo_skipping"] > found["b0s_skipping"] + 0.3, "{found:?}");
}

/// How long iterators take says little on a small table; that native and guest leave as many rows is
/// checked by the experiment itself.
#[test]
fn iterators_are_timed_against_plain_compaction() {
    let found = figures("iterators");
    assert_eq!((found["rows_narrow"], found["rows_wide"]), (100_000.0, 10_000.0));
    for table in ["narrow", "wide"] {
        assert!(found[&format!("{table}_plain_rows_per_second")] > 0.0, "{found:?}");
        for chain in ["age_off", "age_off_wasm", "visibility", "sum", "sum_wasm"] {
            let ratio = found[&format!("{table}_{chain}_ratio")];
            assert!(ratio.is_finite() && ratio > 0.0, "{chain}: {found:?}");
        }
    }
}

#[test]
fn tpc_h_reads_no_more_bytes_after_its_plan() {
    let found = figures("tpch22");
    assert!(found["bytes_vs_unorganized"] <= 0.9, "{found:?}");
    assert!(found["worst_query_time_ratio"] > 0.0 && found["time_ratio"] > 0.0, "{found:?}");
}

#[test]
fn an_experiment_measures_and_writes_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let run = lakebed(
        folder.path(),
        &["--json", "experiment", "collect", "--quick", "--seed", "7", "--out", "found"],
    );
    let view = run.json();
    assert_eq!((&view["experiment"], &view["seed"]), (&"collect".into(), &7.into()));
    let figures = view["figures"].as_object().unwrap();
    for figure in [
        "raw_mb_per_second_per_core",
        "decompression_share",
        "statements_per_second_warm",
        "statements_per_second_cold",
    ] {
        assert!(figures[figure].as_f64().unwrap() > 0.0, "{figure}");
    }
    assert!(figures["decompression_share"].as_f64().unwrap() < 1.0);
    assert!(view["machine"]["cores"].as_u64().unwrap() > 0);
    for goal in view["goals"].as_array().unwrap() {
        let measured = figures.contains_key(goal["figure"].as_str().unwrap());
        assert_eq!(goal["met"].is_boolean(), measured, "{goal}");
    }
    let written = fs::read_to_string(folder.path().join("found/collect.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), view);
    let table = fs::read_to_string(folder.path().join("found/collect.md")).unwrap();
    assert!(table.contains("| `raw_mb_per_second_per_core` |"), "{table}");
}

#[test]
fn an_unknown_experiment_lists_the_others() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(lakebed(folder.path(), &["experiment", "luck"]).failure(), @r"
    exit code 2
    error: failed to run experiment `luck`: there is no such experiment
    help: choose one of: ajlo (the paper's ten statements under its layouts and ours), collect (speed and memory of reading Spark event logs and SQL text), drift (verdicts on six windows whose changes are declared, and the cost of moving by them), iterators (what filters and folds cost a compaction, native and as guests), planner (value of plans against the best there is, on graphs of the paper's sizes and a large one), simulation (files that the planner predicts under a layout against those read once it is there), tpch22 (bytes and time of the 22 TPC-H questions before and after their plan), windows (files and bytes that three logged windows read before and after their plans)
    ");
}

#[test]
fn plans_are_as_good_as_the_best_and_the_papers_greedy_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let run = |seed: &str| {
        let arguments =
            ["--json", "experiment", "planner", "--quick", "--seed", seed, "--out", "found"];
        lakebed(folder.path(), &arguments).json()
    };
    let view = run("0");
    let figure = |name: &str| view["figures"][name].as_f64().unwrap_or_else(|| panic!("{name}"));
    assert!(figure("mean_ratio") >= 0.999 && figure("min_ratio") >= 0.99, "{view}");
    assert!(figure("min_ratio_seeded") >= 0.99, "{view}");
    assert!(figure("mean_ratio_greedy") < figure("mean_ratio"), "{view}");
    assert!(figure("min_ratio_greedy") < 0.571, "the trap is one of the graphs: {view}");
    assert!((0.0..0.2).contains(&figure("large_gap")), "{view}");
    assert!(figure("large_vs_greedy") >= 1.0, "{view}");

    let table = fs::read_to_string(folder.path().join("found/planner.md")).unwrap();
    assert!(table.contains("\n| C6 | 1.000 | 1.000 | 0.570 |\n"), "{table}");
    for plot in ["nine", "all"] {
        assert!(table.contains(&format!("(planner-{plot}.svg)")), "{table}");
        let svg = fs::read_to_string(folder.path().join(format!("found/planner-{plot}.svg")));
        assert!(svg.unwrap().starts_with("<svg "), "{plot}");
    }

    let again = run("0");
    for (name, value) in view["figures"].as_object().unwrap() {
        assert!(name == "large_ms" || *value == again["figures"][name], "{name}");
    }
}

#[test]
fn drift_is_told_from_noise_and_moving_by_regret_costs_little_more_than_foresight() {
    let folder = tempfile::tempdir().unwrap();
    // Three seeds of 120 statements are few: seed 0 draws an unchanged window that is further from the
    // one before than 99 of 100 pairs are by chance.
    let arguments = ["--json", "experiment", "drift", "--quick", "--seed", "1", "--out", "found"];
    let view = lakebed(folder.path(), &arguments).json();
    let figure = |name: &str| view["figures"][name].as_f64().unwrap_or_else(|| panic!("{name}"));
    assert!(figure("precision") >= 0.95 && figure("recall") >= 0.95, "{view}");
    assert!((1.0..=1.15).contains(&figure("cost_vs_offline")), "{view}");
    assert!(figure("cost_vs_offline") < figure("cost_vs_offline_paper_rule"), "{view}");
    assert!(figure("cost_vs_offline") < figure("cost_vs_offline_never"), "{view}");
    assert!(figure("moves") >= 1.0, "{view}");
    let table = fs::read_to_string(folder.path().join("found/drift.md")).unwrap();
    assert!(table.contains("\n| regret | ") && table.contains("(drift-cost.svg)"), "{table}");
}
