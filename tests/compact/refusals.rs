//! What compaction refuses, in which words, and that the table is as before.

use std::{fs, sync::Arc};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use lakebed_lake::NewTable;
use lakebed_model::{Instant, TableName};

use super::{Readings, readings::YOUNG};
use crate::support::{Run, empty_lake, files_of, lakebed, read_commits, runtime, stable};

/// Shows a failed run after checking that the table is as it was.
#[track_caller]
fn refused(readings: &Readings, run: impl Fn() -> Run) -> String {
    let before = (readings.rows(), files_of(&readings.table_path()));
    let text = without_sizes(&stable(&run().failure(), readings.path()));
    assert_eq!((readings.rows(), files_of(&readings.table_path())), before);
    assert_eq!(read_commits(&readings.table_path()).len(), 1, "no commit");
    text
}

/// File sizes change with the version of the Parquet writer.
fn without_sizes(text: &str) -> String {
    let Some((start, rest)) = text.split_once(" files (") else { return text.to_owned() };
    format!("{start} files (…{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[track_caller]
fn refused_iterators(iterators: &str) -> String {
    let readings = Readings::six();
    refused(&readings, || readings.compact(&["--iterators", iterators, "--row-keys", "sensor"]))
}

#[test]
fn unknown_column_is_named_with_the_columns_there_are() {
    insta::assert_snapshot!(refused_iterators("ageoff='updatd_at','3600',"), @r#"
    exit code 2
    error: failed to compact table `readings`
    caused by: ageoff column "updatd_at" is not in the table: columns are "sensor", "updated_at", "q"; did you mean "updated_at"?
    help: correct the iterators or the row keys
    "#);
}

#[test]
fn column_without_an_aggregation_is_named() {
    insta::assert_snapshot!(refused_iterators(",'q'=SUM"), @r#"
    exit code 2
    error: failed to compact table `readings`
    caused by: columns without aggregation: "updated_at"; with any aggregation every column that is no row key needs one
    help: correct the iterators or the row keys
    "#);
}

#[test]
fn syntax_error_shows_its_place() {
    insta::assert_snapshot!(refused_iterators("ageoff='updated_at',one hour"), @r#"
    exit code 2
    ERROR in the iterators
    ageoff='updated_at',one hour
                        ^
    error: failed to compact table `readings`
    caused by: ageoff period "one hour" at position 20 is not a whole number of seconds from 0 to 9223372036854775807
    help: correct the iterators or the row keys
    "#);
}

#[test]
fn aggregation_without_row_keys_is_refused() {
    let readings = Readings::six();
    let run = || readings.compact(&["--iterators", ",'updated_at'=MAX,'q'=SUM"]);
    insta::assert_snapshot!(refused(&readings, run), @r"
    exit code 2
    error: failed to compact table `readings`
    caused by: aggregation needs row keys: set row_keys
    help: correct the iterators or the row keys
    ");
}

#[test]
fn append_only_table_is_refused() {
    let rows = [(1, YOUNG, 1)];
    let readings = Readings::create(&[&rows], &[("delta.appendOnly", "true")]);
    let run = || readings.compact(&["--iterators", "ageoff='updated_at','3600',"]);
    insta::assert_snapshot!(refused(&readings, run), @r"
    exit code 3
    error: failed to rewrite table `readings`: it is append-only (delta.appendOnly); compaction with iterators removes rows
    help: leave this table to the engine that wrote it, or remove the feature there
    ");
}

#[test]
fn sum_that_does_not_fit_names_the_row_key_and_leaves_the_table() {
    let (first, second) = ([(1, YOUNG, 1), (7, YOUNG, i64::MAX)], [(7, YOUNG, 1)]);
    let readings = Readings::create(&[&first, &second], &[]);
    let run = || {
        let iterators = ",'updated_at'=MAX,'q'=SUM";
        readings.compact(&["--iterators", iterators, "--row-keys", "sensor"])
    };
    insta::assert_snapshot!(refused(&readings, run), @r#"
    exit code 2
    error: failed to rewrite files of table `readings`
    caused by: run rewrite of 2 files (… bytes)
    caused by: fold the rows with row key sensor=7
    caused by: sum of column "q" does not fit Int64 in 1 of 2 groups: the first result is 9223372036854775808
    help: correct the iterators or the rows named above
    "#);
}

#[test]
fn guest_that_is_not_there_is_named() {
    let readings = Readings::six();
    let run = || readings.compact_by("[[iterator]]\nplugin = \"ageof\"\n");
    insta::assert_snapshot!(refused(&readings, run), @r#"
    exit code 2
    error: failed to rewrite files of table `readings`
    caused by: run rewrite of 2 files (… bytes)
    caused by: run plugin "ageof"
    caused by: load row-filter plugin `ageof`: neither a shipped plugin nor a file
    help: shipped are: row-filter-age-off, row-filter-hash-sample, row-filter-visibility; or give the path of a component
    "#);
}

#[test]
fn guest_that_overflows_leaves_the_table() {
    let (first, second) = ([(7, YOUNG, i64::MAX)], [(7, YOUNG, 1)]);
    let readings = Readings::create(&[&first, &second], &[]);
    let chain = "row_keys = [\"sensor\"]\n[[iterator]]\naggregate = { updated_at = \"max\", q = { plugin = \"aggregator-sum\" } }\n";
    insta::assert_snapshot!(refused(&readings, || readings.compact_by(chain)), @r#"
    exit code 2
     WARN plugin failed error=call `accumulator.evaluate` of plugin `aggregator-sum`: it reports invalid input: the sum of group 0 is 9223372036854775808, expected at most 64 bits
    error: failed to rewrite files of table `readings`
    caused by: run rewrite of 2 files (… bytes)
    caused by: run plugin "sum"
    caused by: call `accumulator.evaluate` of plugin `aggregator-sum`: it reports invalid input: the sum of group 0 is 9223372036854775808, expected at most 64 bits
    help: correct the data or the settings that the plugin names
    "#);
}

/// The guest sees whole batches of 8 192 rows, which it answers well, and fails at the rest: by then
/// rows are on their way into a file.
#[test]
fn guest_that_fails_in_the_middle_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut lake = empty_lake();
    let rows = Int64Array::from_iter_values(0..20_001);
    let batch = RecordBatch::try_from_iter([("a", Arc::new(rows) as ArrayRef)]).unwrap();
    let new = NewTable {
        name: TableName::new("t"),
        location: folder.path().join("t").to_string_lossy().into_owned(),
        schema: batch.schema(),
        ..NewTable::default()
    };
    runtime(lake.create_table(new, vec![vec![batch]], None, Instant::from_epoch_ms(1))).unwrap();
    let before = files_of(&folder.path().join("t"));
    let mut guests = lakebed_bundle::evil().iter();
    let tail = guests.find(|guest| guest.name == "tail").expect("the bundle has the attack");
    fs::write(folder.path().join("tail.wasm"), tail.wasm).unwrap();
    fs::write(folder.path().join("chain.toml"), "[[iterator]]\nplugin = \"tail.wasm\"\n").unwrap();
    let run = lakebed(folder.path(), &["--lake", ".", "compact", "t", "--chain", "chain.toml"]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_eq!(files_of(&folder.path().join("t")), before, "no orphan");
    assert_eq!(read_commits(&folder.path().join("t")).len(), 1);
}
