//! Chains that run: in string form, in TOML, native and as guests.

use super::{
    Readings,
    readings::{OLD, YOUNG},
};
use crate::support::{commits, files_of};
use lakebed_layout::action::Action;

const STRING: &str = "ageoff='updated_at','3600','updated_at'=MAX,'q'=SUM";
const NATIVE: &str = r#"
row_keys = ["sensor"]
[[iterator]]
filter = "age-off"
column = "updated_at"
period = "1h"
[[iterator]]
aggregate = { updated_at = "max", q = "sum" }
"#;
/// The same chain with both formulas as guests.
const GUESTS: &str = r#"
row_keys = ["sensor"]
[[iterator]]
plugin = "row-filter-age-off"
config = { column = "updated_at", period_seconds = 3600 }
[[iterator]]
aggregate = { updated_at = "max", q = { plugin = "aggregator-sum" } }
"#;

/// Sensor 1 keeps 10 + 20, sensor 2 keeps 5, sensor 3 is gone.
fn six_compacted() -> Vec<(i64, i64, i64)> {
    vec![(1, YOUNG + 1, 30), (2, YOUNG, 5)]
}

#[test]
fn string_form_filters_and_folds_a_table() {
    let readings = Readings::six();
    let run = readings.compact(&["--iterators", STRING, "--row-keys", "sensor", "--json"]);
    let report = run.json();
    assert_eq!(readings.rows(), six_compacted());
    assert_eq!((&report["rows_in"], &report["rows_out"]), (&6.into(), &2.into()));
    assert_eq!((&report["files_in"], &report["files_out"]), (&2.into(), &1.into()));
    assert_eq!((&report["version"], &report["committed"]), (&1.into(), &true.into()));
    let steps = report["steps"].as_array().unwrap();
    let counts: Vec<_> =
        steps.iter().map(|s| (s["rows_in"].clone(), s["rows_out"].clone())).collect();
    assert_eq!(counts, [(6.into(), 3.into()), (3.into(), 2.into())]);
}

#[test]
fn commit_of_a_compaction_says_that_rows_changed() {
    let readings = Readings::six();
    readings.compact(&["--iterators", STRING, "--row-keys", "sensor"]).succeeded();
    let commit = commits(&readings.table_path(), 1);
    for action in &commit {
        match action {
            Action::Add(add) => assert!(add.data_change),
            Action::Remove(remove) => assert!(remove.data_change),
            Action::CommitInfo(info) => {
                assert_eq!(info["operation"], "COMPACT");
                assert_eq!(info["operationParameters"]["rowKeys"], "sensor");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(commit.len(), 4, "commitInfo, two removes, one add");
}

#[test]
fn compacting_again_changes_nothing_more() {
    let readings = Readings::six();
    for _ in 0..2 {
        readings.compact(&["--iterators", STRING, "--row-keys", "sensor"]).succeeded();
        assert_eq!(readings.rows(), six_compacted());
    }
}

#[test]
fn filter_alone_needs_no_row_keys_and_a_second_run_commits_nothing() {
    let readings = Readings::six();
    let iterators = ["--iterators", "ageoff='updated_at','3600',", "--json"];
    assert_eq!(readings.compact(&iterators).json()["rows_out"], 3);
    let kept = [(1, YOUNG, 10), (1, YOUNG + 1, 20), (2, YOUNG, 5)];
    assert_eq!(readings.rows(), kept);
    let files = files_of(&readings.table_path());
    let again = readings.compact(&iterators).json();
    assert_eq!((&again["committed"], &again["version"]), (&false.into(), &1.into()));
    assert_eq!((files_of(&readings.table_path()), readings.rows()), (files, kept.to_vec()));
}

#[test]
fn aggregation_alone_folds_every_row() {
    let readings = Readings::six();
    let iterators = ",'updated_at'=MIN,'q'=MAX";
    readings.compact(&["--iterators", iterators, "--row-keys", "sensor"]).succeeded();
    assert_eq!(readings.rows(), [(1, OLD, 100), (2, OLD, 50), (3, OLD, 7)]);
}

#[test]
fn row_keys_may_stand_in_the_configuration() {
    let readings = Readings::six();
    let config = "[compact.row_keys]\nreadings = [\"sensor\"]\n";
    std::fs::write(readings.path().join("lakebed.toml"), config).unwrap();
    readings.compact(&["--iterators", STRING]).succeeded();
    assert_eq!(readings.rows(), six_compacted());
}

#[test]
fn native_chain_and_guests_leave_the_same_rows_with_the_same_counts() {
    let (native, guests) = (Readings::six(), Readings::six());
    let counts = |run: crate::support::Run| {
        let text = run.succeeded().stdout.clone();
        let arrow = text.find(" files (").expect("a report");
        text[..arrow].to_owned()
    };
    let (by_native, by_guests) =
        (counts(native.compact_by(NATIVE)), counts(guests.compact_by(GUESTS)));
    assert_eq!(native.rows(), six_compacted());
    assert_eq!(guests.rows(), six_compacted());
    insta::assert_snapshot!(by_native, @r"
    age-off: 6 rows in, 3 out
    aggregate: 3 rows in, 2 out
    readings: 6 rows became 2, 2
    ");
    insta::assert_snapshot!(by_guests, @r"
    age-off: 6 rows in, 3 out
    aggregate: 3 rows in, 2 out
    readings: 6 rows became 2, 2
    ");
}

/// Many groups and both signs, so that guest and host exchange more than one batch.
#[test]
fn aggregator_guest_sums_as_the_native_fold_does() {
    let rows: Vec<(i64, i64, i64)> =
        (0..30_000).map(|n| (n % 997, YOUNG + n, (n % 7 - 3) * 1_000_000_007)).collect();
    let (first, second) = rows.split_at(11_111);
    let (native, guest) =
        (Readings::create(&[first, second], &[]), Readings::create(&[first, second], &[]));
    let chain = |fold: &str| {
        format!(
            "row_keys = [\"sensor\"]\n[[iterator]]\naggregate = {{ updated_at = \"max\", q = {fold} }}\n"
        )
    };
    native.compact_by(&chain("\"sum\"")).succeeded();
    guest.compact_by(&chain("{ plugin = \"aggregator-sum\" }")).succeeded();
    let found = native.rows();
    assert_eq!(found, guest.rows());
    assert_eq!(found.len(), 997);
    let total: i64 = found.iter().map(|row| row.2).sum();
    assert_eq!(total, rows.iter().map(|row| row.2).sum::<i64>());
}

#[test]
fn chain_may_name_plugins_as_the_configuration_does() {
    let readings = Readings::six();
    let config = "[plugins.iterators]\nretention = \"row-filter-age-off\"\n";
    std::fs::write(readings.path().join("lakebed.toml"), config).unwrap();
    let chain = "[[iterator]]\nplugin = \"retention\"\nconfig = { column = \"updated_at\", period_seconds = 3600 }\n";
    readings.compact_by(chain).succeeded();
    assert_eq!(readings.rows().len(), 3);
}
