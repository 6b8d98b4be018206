//! Predictions on a sample against the same layout of all rows: what the sample alone costs.

use std::collections::BTreeMap;

use lakebed_model::{Bound, Literal, ValueRange};

use super::{
    Simulate,
    tests::{Column, evidence},
};
use crate::{
    Layout, LoggedScan,
    benefit::{BenefitModel, Reading},
    random::SplitMix64,
    ranges::ColumnRange,
};

/// Rows of a table as lineitem has them: about four of an order, dates independent of its key.
fn lines(rows: usize, seed: u64) -> Vec<(&'static str, Column)> {
    let mut random = SplitMix64::new(seed);
    let mut columns: Vec<(&'static str, Column)> =
        ["order", "part", "day", "quantity"].map(|name| (name, Vec::with_capacity(rows))).to_vec();
    let (mut order, mut left, mut placed) = (0_i64, 0, 0);
    for _ in 0..rows {
        if left == 0 {
            // Order keys are sparse: 8 of 32 are used.
            order += if order % 32 == 8 { 25 } else { 1 };
            left = 1 + random.below(7);
            placed = random.below(2_406);
        }
        left -= 1;
        let day = i64::try_from(placed + 1 + random.below(121)).unwrap();
        let number =
            |below: usize, random: &mut SplitMix64| i64::try_from(random.below(below)).unwrap();
        let values = [order, number(20_000, &mut random), day, number(50, &mut random)];
        for ((_, column), value) in columns.iter_mut().zip(values) {
            column.push(Some(Literal::Integer(value)));
        }
    }
    columns
}

fn every(step: usize, columns: &[(&'static str, Column)]) -> Vec<(&'static str, Column)> {
    columns
        .iter()
        .map(|(name, values)| (*name, values.iter().skip(3).step_by(step).cloned().collect()))
        .collect()
}

fn scans(columns: &[(&'static str, Column)], seed: u64) -> Vec<LoggedScan> {
    let mut random = SplitMix64::new(seed);
    let mut scans = Vec::new();
    for (name, values) in columns {
        for share in [0.02, 0.05, 0.2, 0.5] {
            for _ in 0..6 {
                let integer = |value: &Option<Literal>| match value {
                    Some(Literal::Integer(value)) => *value,
                    _ => 0,
                };
                let top = values.iter().map(integer).max().unwrap() as f64;
                let low = whole(random.unit() * top * (1.0 - share));
                let high = low + whole(top * share);
                let bound = |value| Some(Bound { value: Literal::Integer(value), inclusive: true });
                let range = ValueRange { low: bound(low), high: bound(high) };
                let range = ColumnRange { range, inferred: false };
                let ranges = BTreeMap::from([((*name).to_owned(), range)]);
                scans.push(LoggedScan { statement: scans.len(), ranges });
            }
        }
    }
    scans
}

#[expect(clippy::cast_possible_truncation, reason = "values are below a million")]
fn whole(number: f64) -> i64 {
    number as i64
}

fn layouts() -> Vec<Layout> {
    let names = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect::<Vec<_>>();
    let mut layouts = Vec::new();
    for keys in [
        &["order"][..],
        &["part"],
        &["day"],
        &["order", "day"],
        &["order", "part"],
        &["part", "day"],
        &["day", "quantity"],
        &["order", "part", "day"],
        &["order", "part", "day", "quantity"],
    ] {
        layouts.push(Layout::clustered(names(keys)));
    }
    for (keys, parts) in [
        (&["order", "day"][..], &[25, 4][..]),
        (&["day", "order"], &[12, 8]),
        (&["part", "order", "day"], &[10, 5, 2]),
        (&["order", "quantity"], &[10, 10]),
        (&["order", "part", "day"], &[5, 5, 4]),
    ] {
        layouts.push(Layout::cut(names(keys), parts.to_vec()));
    }
    layouts
}

#[test]
fn a_sample_of_a_hundred_rows_a_file_predicts_what_all_rows_give() {
    const FILES: u64 = 100;
    let all = lines(60_000, 1);
    let sample = every(6, &all);
    let scans = scans(&sample, 2);
    let (truth, guess) = (evidence(FILES, &all), evidence(FILES, &sample));
    let (truth, guess) = (Simulate.prepare(&truth, &scans), Simulate.prepare(&guess, &scans));
    let mut errors: Vec<f64> = Vec::new();
    for layout in layouts() {
        let (truth, guess) = (truth.readings(&layout), guess.readings(&layout));
        let error = |(t, g): (&Reading, &Reading)| (g.files - t.files).abs() / FILES as f64;
        errors.extend(truth.iter().zip(&guess).map(error));
    }
    errors.sort_unstable_by(f64::total_cmp);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let p95 = errors[errors.len() * 95 / 100];
    assert!(mean <= 0.01 && p95 <= 0.04, "mean {mean}, 95 % below {p95}");
}
