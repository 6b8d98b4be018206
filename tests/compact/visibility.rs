//! Rows with labels: whoever may not see them compacts them away.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Run, lakebed, read_commits, rows, sql, stable};

fn notes() -> TempDir {
    let lake = tempfile::tempdir().unwrap();
    let statements = [
        "CREATE TABLE notes (k INT, label STRING, n BIGINT) CLUSTER BY (k)",
        "INSERT INTO notes VALUES (1, '', 1), (1, 'red', 2), (1, 'red', 4), (2, 'red&blue', 8)",
        "INSERT INTO notes VALUES (2, 'red|(blue&green)', 16), (3, NULL, 32), (1, 'blue', 64)",
    ];
    sql(&lake, &statements).succeeded();
    lake
}

fn compact(lake: &TempDir, chain: &str) -> Run {
    compact_with(lake, chain, &["--json"])
}

fn compact_with(lake: &TempDir, chain: &str, more: &[&str]) -> Run {
    fs::write(lake.path().join("chain.toml"), chain).unwrap();
    let arguments = ["--lake", ".", "compact", "notes", "--chain", "chain.toml"];
    lakebed(lake.path(), &[&arguments, more].concat())
}

fn visibility(more: &str) -> String {
    format!("[[iterator]]\nfilter = \"visibility\"\ncolumn = \"label\"\n{more}\n")
}

#[test]
fn rows_that_nobody_asked_for_may_see_go_and_are_counted() {
    let lake = notes();
    let report = compact(&lake, &visibility("authorizations = [\"red\"]")).json();
    let expected =
        json!([{"name": "visibility", "rows_in": 7, "rows_out": 4, "null_rows_dropped": 1}]);
    assert_eq!(report["steps"], expected);
    let mut left: Vec<Value> =
        rows(&lake, "notes").iter().map(|row| serde_json::from_str(row).unwrap()).collect();
    left.sort_by_key(|row| row["n"].as_i64());
    let numbers: Vec<i64> = left.iter().map(|row| row["n"].as_i64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 4, 16]);
}

#[test]
fn every_set_of_authorizations_must_see_a_row_and_nulls_may_stay() {
    let lake = notes();
    let chain = "authorizations = [[\"red\"], [\"blue\", \"green\"]]\nnulls = \"keep\"";
    let report = compact(&lake, &visibility(chain)).json();
    assert_eq!(report["rows_out"], 3, "the empty label, `red|(blue&green)` and the null");
}

#[test]
fn rows_are_folded_within_their_labels() {
    let lake = notes();
    let chain = visibility("authorizations = [\"red\", \"blue\"]\nnulls = \"keep\"");
    let chain = format!("row_keys = [\"k\"]\n{chain}[[iterator]]\naggregate = {{ n = \"sum\" }}\n");
    compact(&lake, &chain).succeeded();
    let mut sums: Vec<i64> = rows(&lake, "notes")
        .iter()
        .map(|row| serde_json::from_str::<Value>(row).unwrap()["n"].as_i64().unwrap())
        .collect();
    sums.sort_unstable();
    assert_eq!(sums, [1, 6, 8, 16, 32, 64]);
}

#[track_caller]
fn refused(label: &str, chain: &str) -> String {
    let lake = notes();
    sql(&lake, &[&format!("INSERT INTO notes VALUES (9, '{label}', 0)")]).succeeded();
    let before = (rows(&lake, "notes"), read_commits(&lake.path().join("notes")).len());
    let text = stable(&compact_with(&lake, chain, &[]).failure(), lake.path());
    let after = (rows(&lake, "notes"), read_commits(&lake.path().join("notes")).len());
    assert_eq!(after, before);
    text
}

#[test]
fn labels_and_settings_that_cannot_be_read_change_nothing() {
    let text = refused("red|", &visibility("authorizations = [\"red\"]"));
    let expected = "label \"red|\" of column \"label\" is no access expression";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("found the end at position 4"), "{text}");
    for (chain, expected) in [
        (visibility(""), "missing field `authorizations`"),
        (visibility("authorizations = 5"), "a list of authorizations, or a list of such lists"),
        (visibility("authorizations = []\ninvalid = \"hide\""), "unknown variant `hide`"),
        (visibility("authorisations = []"), "unknown field `authorisations`"),
        (visibility("authorizations = [\"\"]"), "is empty"),
        (
            "[[iterator]]\nfilter = \"visible\"\n".to_owned(),
            "expected one of `age-off`, `visibility`",
        ),
        ("[[iterator]]\ncolumn = \"label\"\n".to_owned(), "plugin = "),
    ] {
        let text = refused("", &chain);
        assert!(text.starts_with("exit code 2") && text.contains(expected), "{chain}\n{text}");
    }
    let drop = visibility("authorizations = [\"red\"]\ninvalid = \"drop\"");
    let lake = notes();
    sql(&lake, &["INSERT INTO notes VALUES (9, 'red|', 0)"]).succeeded();
    assert_eq!(compact(&lake, &drop).json()["steps"][0]["null_rows_dropped"], 2);
}
