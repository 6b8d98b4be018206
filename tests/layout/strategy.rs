//! What OPTIMIZE selects on real tables, and how the settings steer it.

use std::{collections::BTreeSet, fs, path::Path};

use lakebed_layout::{Lake, zcube};
use lakebed_model::Instant;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Numbers, lakebed, runtime};

/// A table of several clustered files, and room for a configuration beside it.
fn clustered() -> (TempDir, Numbers) {
    let folder = tempfile::tempdir().unwrap();
    let table = Numbers::create_with(folder.path(), 4, 4_000, &[("delta.targetFileSize", "20000")]);
    let statements = ["--lake", ".", "sql", "ALTER TABLE t CLUSTER BY (k)", "OPTIMIZE t FULL"];
    lakebed(folder.path(), &statements).succeeded();
    (folder, table)
}

/// Appends the rows of the whole table once more: they overlap every file.
fn append_all_keys(table: &Numbers) {
    let rows = vec![Numbers::rows(0, 16_000)];
    let now = Instant::from_epoch_ms(1_796_000_000_000);
    runtime(table.lake.append(&table.table, rows, now)).expect("an append");
}

#[track_caller]
fn optimize(folder: &Path, statement: &str) -> Value {
    lakebed(folder, &["--lake", ".", "--json", "sql", statement]).json()
}

/// Sums the counts of one reason over all bins.
fn counted(report: &Value, reason: &str) -> u64 {
    let bins = report["bins"].as_array().expect("bins");
    bins.iter().map(|bin| bin["reasons"][reason].as_u64().expect(reason)).sum()
}

fn cubes(table: &Numbers) -> BTreeSet<String> {
    let snapshot = runtime(table.lake.snapshot(&table.table)).expect("a snapshot");
    snapshot.files.iter().filter_map(|f| f.tag(zcube::ZCUBE_ID)).map(ToOwned::to_owned).collect()
}

#[test]
fn appends_join_the_cube_and_overlap_is_reclustered_once_layers_are_alike() {
    let (folder, table) = clustered();
    let mut overlapping = Vec::new();
    for _ in 0..4 {
        append_all_keys(&table);
        let report = optimize(folder.path(), "OPTIMIZE t");
        assert_eq!(counted(&report, "unclustered"), 1, "{report}");
        overlapping.push(counted(&report, "overlap"));
        assert_eq!(cubes(&table).len(), 1);
        assert_eq!(optimize(folder.path(), "OPTIMIZE t")["bins"], json!([]));
    }
    assert_eq!(overlapping[0], 0, "one layer is in order: {overlapping:?}");
    assert!(overlapping.iter().any(|files| *files >= 4), "{overlapping:?}");
    assert_eq!(table.keys().len(), 5 * 16_000);
}

#[test]
fn full_puts_a_grown_cube_in_order_once() {
    let (folder, table) = clustered();
    append_all_keys(&table);
    optimize(folder.path(), "OPTIMIZE t");
    let full = optimize(folder.path(), "OPTIMIZE t FULL");
    assert!(counted(&full, "open_cube") > 4, "{full}");
    assert_eq!(optimize(folder.path(), "OPTIMIZE t FULL")["bins"], json!([]));
    assert_eq!(cubes(&table).len(), 1);
}

#[test]
fn settings_of_the_configuration_choose_the_strategy() {
    let (folder, table) = clustered();
    let key = "spark.microsoft.delta.optimize.clustering.strategy.incremental";
    fs::write(folder.path().join("lakebed.toml"), format!("[settings]\n\"{key}\" = false\n"))
        .unwrap();
    assert_eq!(optimize(folder.path(), "OPTIMIZE t")["bins"], json!([]));
    let before = runtime(table.lake.snapshot(&table.table)).expect("a snapshot").files.len();
    append_all_keys(&table);
    let report = optimize(folder.path(), "OPTIMIZE t");
    assert_eq!(counted(&report, "open_cube"), u64::try_from(before).unwrap(), "{report}");
    assert_eq!(counted(&report, "unclustered"), 1);
    assert_eq!(optimize(folder.path(), "OPTIMIZE t")["bins"], json!([]));

    fs::write(
        folder.path().join("lakebed.toml"),
        "[settings]\nlakebed.optimize.clustering.strategy.autoRecluster = false\n",
    )
    .unwrap();
    for _ in 0..4 {
        append_all_keys(&table);
        let report = optimize(folder.path(), "OPTIMIZE t");
        assert_eq!(report["bins"][0]["files_in"], 1, "{report}");
    }
}
