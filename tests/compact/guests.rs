//! The shipped filter guests, on real tables: `row-filter-visibility` and `row-filter-hash-sample`.

use std::{collections::BTreeSet, fs, sync::Arc};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use lakebed_lake::NewTable;
use lakebed_model::{Instant, TableName};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Run, empty_lake, lakebed, project, read_commits, rows, runtime, stable};

/// A table of keys and labels, whatever the labels hold.
fn lake(rows: &[(i64, Option<&str>)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let keys: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Int64Array>());
    let labels: ArrayRef = Arc::new(rows.iter().map(|row| row.1).collect::<StringArray>());
    let columns = [("k", keys, true), ("label", labels, true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let new = NewTable {
        name: TableName::new("t"),
        location: folder.path().join("t").to_string_lossy().into_owned(),
        schema: batch.schema(),
        ..NewTable::default()
    };
    let now = Instant::from_epoch_ms(1);
    runtime(empty_lake().create_table(new, vec![vec![batch]], None, now)).unwrap();
    folder
}

fn run(lake: &TempDir, chain: &str) -> Run {
    fs::write(lake.path().join("chain.toml"), format!("[[iterator]]\n{chain}\n")).unwrap();
    lakebed(lake.path(), &["--lake", ".", "compact", "t", "--chain", "chain.toml"])
}

fn keys(lake: &TempDir) -> BTreeSet<i64> {
    rows(lake, "t")
        .iter()
        .map(|row| serde_json::from_str::<Value>(row).unwrap()["k"].as_i64().unwrap())
        .collect()
}

/// Every label of the accumulo-access cases, whatever it says there: valid or not, seen or not.
fn labels() -> Vec<String> {
    let path = project("tests/data/visibility/accumulo-access.json");
    let sets: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let mut labels = BTreeSet::new();
    gather(&sets, &mut labels);
    assert!(labels.len() > 100, "{labels:?}");
    labels.into_iter().collect()
}

fn gather(value: &Value, labels: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            labels.insert(text.clone());
        }
        Value::Array(values) => values.iter().for_each(|value| gather(value, labels)),
        Value::Object(fields) => fields.values().for_each(|value| gather(value, labels)),
        _ => {}
    }
}

#[test]
fn row_filter_visibility_judges_labels_as_the_native_filter_does() {
    let labels = labels();
    let mut values: Vec<(i64, Option<&str>)> =
        (0..).zip(&labels).map(|(k, label)| (k, Some(label.as_str()))).collect();
    values.push((9_999, None));
    for set in [r#"["A", "B", "C"]"#, r#"["red", "blue", "A\"B", "五"]"#, "[]"] {
        for nulls in ["drop", "keep"] {
            let (native, guest) = (lake(&values), lake(&values));
            let settings = format!(
                "column = \"label\"\nauthorizations = {set}\ninvalid = \"drop\"\nnulls = \"{nulls}\""
            );
            run(&native, &format!("filter = \"visibility\"\n{settings}")).succeeded();
            let inline = settings.replace('\n', ", ");
            run(&guest, &format!("plugin = \"row-filter-visibility\"\nconfig = {{ {inline} }}"))
                .succeeded();
            let kept = keys(&native);
            assert_eq!(keys(&guest), kept, "{set} {nulls}");
            assert_eq!(kept.contains(&9_999), nulls == "keep");
        }
    }
}

#[test]
fn row_filter_visibility_ends_the_job_at_a_label_that_cannot_be_read() {
    let lake = lake(&[(1, Some("red")), (2, Some("red&(blue"))]);
    let chain = "plugin = \"row-filter-visibility\"\nconfig = { column = \"label\", authorizations = [\"red\"] }";
    let text = stable(&run(&lake, chain).failure(), lake.path());
    assert!(text.contains("\"red&(blue\" is no access expression at byte 9"), "{text}");
    assert_eq!(keys(&lake), BTreeSet::from([1, 2]));
}

#[test]
fn row_filter_hash_sample_keeps_a_share_of_the_values_and_the_same_ones_again() {
    let values: Vec<(i64, Option<&str>)> = (0..4_000).map(|k| (k, None)).collect();
    let lake = lake(&values);
    let sample = |seed: u32, keep: u32| {
        format!(
            "plugin = \"row-filter-hash-sample\"\nconfig = {{ column = \"k\", keep_per_million = {keep}, seed = {seed} }}"
        )
    };
    run(&lake, &sample(7, 250_000)).succeeded();
    let kept = keys(&lake);
    // Of 4 000 draws of a quarter, 1 000 ± 5 standard deviations of 27.
    assert!((865..1_135).contains(&kept.len()), "{}", kept.len());
    let commits = read_commits(&lake.path().join("t")).len();
    run(&lake, &sample(7, 250_000)).succeeded();
    assert_eq!((keys(&lake), read_commits(&lake.path().join("t")).len()), (kept.clone(), commits));
    run(&lake, &sample(8, 500_000)).succeeded();
    let fewer = keys(&lake);
    assert!(fewer.len() < kept.len() && fewer.is_subset(&kept), "another seed chooses anew");
    let refused = run(&lake, &sample(7, 1_000_001)).failure();
    assert!(refused.contains("expected at most 1000000"), "{refused}");
}
