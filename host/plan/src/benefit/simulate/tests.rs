use std::collections::{BTreeMap, BTreeSet};

use lakebed_model::{Bound, Bytes, Literal, TableName, ValueRange};

use super::Simulate;
use crate::{
    Layout, LoggedScan, TableEvidence, TableSample, benefit::BenefitModel, random::SplitMix64,
    ranges::ColumnRange,
};

pub(super) type Column = Vec<Option<Literal>>;

fn integers(values: impl IntoIterator<Item = i64>) -> Column {
    values.into_iter().map(|value| Some(Literal::Integer(value))).collect()
}

fn shuffled(count: i64, seed: u64) -> Column {
    let mut values: Vec<i64> = (0..count).collect();
    let mut random = SplitMix64::new(seed);
    for last in (1..values.len()).rev() {
        values.swap(last, random.below(last + 1));
    }
    integers(values)
}

pub(super) fn evidence(target_files: u64, columns: &[(&str, Column)]) -> TableEvidence {
    TableEvidence {
        table: TableName::new("t"),
        version: 0,
        current: Layout::default(),
        bytes: Bytes(target_files * 1000),
        rows: 1_000_000,
        files: Vec::new(),
        target_files,
        eligible_columns: BTreeSet::new(),
        sample: TableSample {
            rows: columns[0].1.len(),
            columns: columns.iter().map(|(name, v)| ((*name).to_owned(), v.clone())).collect(),
        },
        pending: Bytes(0),
        protected: None,
    }
}

fn scan(column: &str, low: Option<(i64, bool)>, high: Option<(i64, bool)>) -> LoggedScan {
    let bound = |end: Option<(i64, bool)>| {
        end.map(|(value, inclusive)| Bound { value: Literal::Integer(value), inclusive })
    };
    let range = ValueRange { low: bound(low), high: bound(high) };
    let range = ColumnRange { range, inferred: false };
    LoggedScan { statement: 0, ranges: BTreeMap::from([(column.to_owned(), range)]) }
}

fn between(column: &str, low: i64, high: i64) -> LoggedScan {
    scan(column, Some((low, true)), Some((high, true)))
}

fn files_read(evidence: &TableEvidence, keys: &[&str], scans: &[LoggedScan]) -> Vec<f64> {
    let layout = Layout::clustered(keys.iter().map(|&key| key.to_owned()).collect());
    let readings = Simulate.prepare(evidence, scans).readings(&layout);
    for reading in &readings {
        assert!((reading.bytes - reading.files * 1000.0).abs() < 1e-6, "{reading:?}");
    }
    readings.iter().map(|reading| reading.files).collect()
}

#[track_caller]
fn check(evidence: &TableEvidence, keys: &[&str], scans: &[LoggedScan], expected: &[f64]) {
    let found = files_read(evidence, keys, scans);
    let is_same = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9);
    assert!(is_same, "by {keys:?}: {found:?}, expected {expected:?}");
}

#[test]
fn dense_sample_by_one_key_reads_the_files_that_hold_the_range() {
    let table = evidence(10, &[("k", shuffled(500, 1)), ("other", shuffled(500, 2))]);
    // Files hold 0 to 49, 50 to 99, …
    let scans = [
        between("k", 50, 149),
        between("k", 49, 50),
        between("k", 50, 50),
        scan("k", Some((99, false)), None),
        scan("k", None, Some((50, false))),
        scan("k", None, Some((50, true))),
        between("k", 9000, 9999),
        between("other", 200, 299),
        LoggedScan { statement: 0, ranges: BTreeMap::new() },
    ];
    check(&table, &["k"], &scans, &[2.0, 2.0, 1.0, 8.0, 1.0, 2.0, 0.0, 10.0, 10.0]);
}

#[test]
fn sparse_sample_widens_spans_by_a_gap_on_both_sides() {
    // Eight rows a file: ranks 1 to 8, 9 to 16, …; each span grows by one rank at both ends, so the
    // ranks 9 to 16 meet three files.
    let table = evidence(10, &[("k", shuffled(80, 1))]);
    check(&table, &["k"], &[between("k", 8, 15), between("k", 11, 12)], &[3.0, 1.0]);
}

#[test]
fn sample_too_sparse_for_the_files_predicts_coarser_reading() {
    // 40 rows make 5 pseudo-files of 20 files each; the ranks 1 to 4 lie in the first only.
    let table = evidence(100, &[("k", shuffled(40, 1))]);
    check(&table, &["k"], &[between("k", 0, 3)], &[20.0]);
}

#[test]
fn range_between_two_sampled_values_reads_the_file_that_spans_it() {
    let evens = evidence(2, &[("k", integers((0..100).map(|value| value * 2)))]);
    // Files hold 0 to 98 and 100 to 198; 99 lies in neither.
    let scans = [between("k", 51, 51), between("k", 99, 99)];
    check(&evens, &["k"], &scans, &[1.0, 0.0]);
}

#[test]
fn nulls_lie_first_and_are_in_no_range() {
    let mut values: Column = vec![None; 100];
    values.extend(integers(0..100));
    let table = evidence(4, &[("k", values)]);
    check(&table, &["k"], &[between("k", 0, 99), scan("k", None, Some((10, true)))], &[2.0, 1.0]);
}

#[test]
fn without_keys_or_with_values_of_mixed_kinds_everything_is_read() {
    let mut mixed = integers(0..250);
    mixed.extend((0..250).map(|day| Some(Literal::Date(day))));
    let table = evidence(10, &[("k", shuffled(500, 1)), ("mixed", mixed)]);
    check(&table, &[], &[between("k", 100, 399)], &[10.0]);
    check(&table, &["mixed"], &[between("mixed", 5, 5)], &[10.0]);
    let text =
        ColumnRange { range: ValueRange::point(Literal::Text("x".to_owned())), inferred: false };
    let by_text = LoggedScan { statement: 0, ranges: BTreeMap::from([("k".to_owned(), text)]) };
    check(&table, &["k"], &[by_text], &[10.0]);
    let mut empty = evidence(10, &[("k", Vec::new())]);
    empty.sample.columns.clear();
    check(&empty, &["k"], &[between("k", 1, 2)], &[10.0]);
}

#[test]
fn two_keys_on_the_curve_serve_both_columns() {
    // Two independent columns over 100 files make about 10 × 10 squares: a range over a fifth of one
    // column meets 2 to 4 rows of squares, a range over a tenth 1 to 3.
    let table = evidence(100, &[("k", shuffled(10_000, 1)), ("day", shuffled(10_000, 2))]);
    let scans = [between("k", 3100, 5099), between("day", 4200, 5199)];
    let [by_key, by_day] = files_read(&table, &["k", "day"], &scans)[..] else { panic!() };
    assert!((20.0..=42.0).contains(&by_key), "{by_key}");
    assert!((10.0..=32.0).contains(&by_day), "{by_day}");
}

fn cut(columns: &[&str], parts: &[u32]) -> Layout {
    Layout::cut(columns.iter().map(|&column| column.to_owned()).collect(), parts.to_vec())
}

#[track_caller]
fn check_cut(evidence: &TableEvidence, layout: &Layout, scans: &[LoggedScan], expected: &[f64]) {
    let readings = Simulate.prepare(evidence, scans).readings(layout);
    let found: Vec<f64> = readings.iter().map(|reading| reading.files).collect();
    let is_same =
        found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9);
    assert!(found.len() == expected.len() && is_same, "{layout}: {found:?}, expected {expected:?}");
}

#[test]
fn cuts_read_whole_parts_of_each_key() {
    let table = evidence(100, &[("k", shuffled(10_000, 1)), ("day", shuffled(10_000, 2))]);
    let scans = [between("k", 400, 1199), between("k", 399, 400), between("day", 100, 200)];
    check_cut(&table, &cut(&["k", "day"], &[25, 4]), &scans, &[8.0, 2.0, 25.0]);
    check_cut(&table, &cut(&["day", "k"], &[4, 25]), &scans[2..], &[25.0]);
    // A column that is not in the sample is no key.
    check_cut(&table, &cut(&["gone", "k"], &[4, 25]), &scans[..1], &[8.0]);
    check_cut(&table, &cut(&["gone", "away"], &[4, 25]), &scans[..1], &[100.0]);
}

#[test]
fn cell_of_several_files_is_read_whole_or_not_at_all() {
    // 4 000 of 5 000 rows are 5 000, which nothing divides.
    let hot = (0..500).chain(std::iter::repeat_n(5_000, 4_000)).chain(9_000..9_500);
    let table = evidence(10, &[("k", integers(hot)), ("same", integers([7; 5_000]))]);
    let scans = [between("k", 5_000, 5_000), between("k", 0, 9), between("k", 9_000, 9_000)];
    check_cut(&table, &cut(&["k", "same"], &[5, 2]), &scans, &[8.0, 1.0, 1.0]);
}

#[test]
fn proposed_cuts_follow_what_scans_ask() {
    let table = evidence(100, &[("k", shuffled(10_000, 1)), ("day", shuffled(10_000, 2))]);
    let mut scans: Vec<LoggedScan> =
        (0..12).map(|n| between("k", n * 800, n * 800 + 399)).collect();
    scans.extend((0..3).map(|n| between("day", n * 3_000, n * 3_000 + 999)));
    let keys = ["k".to_owned(), "day".to_owned()];
    let what_if = Simulate.prepare(&table, &scans);
    let guesses = what_if.cuts(&keys, &[1.0; 15]);
    let best = &guesses[0];
    assert_eq!(best.layout.cluster_by, keys);
    assert!(best.layout.cuts[0] > 2 * best.layout.cuts[1], "{}", best.layout);
    let saved = |layout: &Layout| -> f64 {
        what_if.readings(layout).iter().map(|reading| 1.0 - reading.files / 100.0).sum()
    };
    assert!((saved(&best.layout) - best.promises).abs() < 0.3, "{best:?}");
    assert!(saved(&best.layout) > saved(&Layout::clustered(keys.to_vec())), "{best:?}");
    // When only the last scans count, the other key has the most parts.
    let weights: Vec<f64> = (0..15).map(|scan| f64::from(u8::from(scan >= 12))).collect();
    let guesses = what_if.cuts(&keys, &weights);
    assert!(guesses.iter().any(|guess| guess.layout.cluster_by[0] == "day"), "{guesses:?}");
    assert!(what_if.cuts(&keys[..1], &weights).is_empty());
    assert!(what_if.cuts(&["k".to_owned(), "gone".to_owned()], &weights).is_empty());
}
