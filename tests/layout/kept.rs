//! Tables with features that a rewrite keeps: what the log says afterwards, and that no row changed.

use serde_json::{Value, json};

use crate::support::{Numbers, change_first_version, lakebed, read_commits, runtime};

const ENABLED: [&str; 5] =
    ["appendOnly", "invariants", "clustering", "domainMetadata", "inCommitTimestamp"];

/// Time of each version by the table's own account; it must be in the first action.
#[track_caller]
fn in_commit_timestamps(folder: &std::path::Path) -> Vec<i64> {
    let first = |commit: Vec<lakebed_layout::action::Action>| {
        let first: Value = serde_json::from_str(&commit[0].to_line()).unwrap();
        first["commitInfo"]["inCommitTimestamp"].as_i64().expect("a time in the first action")
    };
    read_commits(&folder.join("t")).into_iter().map(first).collect()
}

#[track_caller]
fn check_in_commit_timestamps(first: i64) -> Vec<i64> {
    let folder = tempfile::tempdir().unwrap();
    let numbers = Numbers::create(folder.path(), 4, 100);
    change_first_version(&folder.path().join("t"), |name, action| match name {
        "commitInfo" => action["inCommitTimestamp"] = json!(first),
        "protocol" => {
            *action =
                json!({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ENABLED});
        }
        "metaData" => action["configuration"]["delta.enableInCommitTimestamps"] = json!("true"),
        _ => {}
    });
    let statements = ["--lake", ".", "sql", "ALTER TABLE t CLUSTER BY (v, w)", "OPTIMIZE t"];
    lakebed(folder.path(), &statements).succeeded();
    let now = lakebed_model::Instant::from_epoch_ms(1);
    runtime(numbers.lake.append(&numbers.table, vec![Numbers::rows(400, 500)], now)).unwrap();
    lakebed(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t"]).succeeded();
    assert_eq!(numbers.keys(), (0..500).collect::<Vec<i64>>());
    in_commit_timestamps(folder.path())
}

#[test]
fn in_commit_timestamps_rise_even_after_a_version_from_the_future() {
    let far = 9_000_000_000_000;
    assert_eq!(check_in_commit_timestamps(far), (far..=far + 4).collect::<Vec<i64>>());
}

#[test]
fn in_commit_timestamps_are_the_times_of_the_attempts() {
    let times = check_in_commit_timestamps(1_000);
    assert_eq!((times.len(), times[0]), (5, 1_000));
    assert!(times[1] > 1_700_000_000_000, "the clock of the command: {times:?}");
    assert_eq!(times[3], times[2] + 1, "an append that claims to be of 1970");
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
}
