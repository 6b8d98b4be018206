//! `simulation`: how far the predicted files of a layout are from those that are read once it is there.
//!
//! 1. TPC-H at scale factor 0.1, shuffled. Statements are those of the logs w1, w3 and w5, and fresh
//!    windows drawn from their templates. The simulator sees what a plan sees: a sample of the rows
//!    and the logged ranges.
//! 2. Layouts of four kinds: what the plan chooses for each window; one key per table; Hilbert curves
//!    of two and three keys; weighted cuts. Some are what one would choose, some are drawn at random.
//! 3. Each layout is predicted, then made on a copy by the real rewrite, and every statement is run.
//!    The error of a statement and a table is |predicted − read|, both as shares of its files. Tables
//!    that a layout does not touch are left out: their error is nothing.
//! 4. The interval of a saving, by bootstrap over the log's statements, is held against what the same
//!    window saved, and against what fresh windows saved: it should cover 90 % of those.

use std::collections::{BTreeMap, BTreeSet};

use lakebed_model::{TableName, Workload};
use lakebed_plan::{
    Layout, LoggedScan, TableEvidence,
    benefit::{BenefitModel, Simulate, estimate},
    logged_scans,
};

use super::{
    Experiment, ExperimentReport, ExperimentSettings, Goal, Running,
    dice::Dice,
    lakes::{Executed, OwnLake, described, layouts_of},
    plot::{Plot, Series, Shape},
    replay::ratio,
    report::{markdown_table, shown},
    shipped::{W1, W3, W5},
    templates::{DATES, ORDER_KEYS, PART_KEYS},
    tpch::RowOrder,
};
use crate::error::Error;

const SCALE_FACTOR: f64 = 0.1;
const QUICK_SCALE_FACTOR: f64 = 0.02;
/// Fresh windows drawn per logged one.
const FRESH: usize = 1;
/// Random layouts of each kind.
const RANDOM: usize = 2;

/// The experiment.
#[derive(Debug, Clone, Copy)]
pub struct Simulation;

impl Experiment for Simulation {
    fn name(&self) -> &'static str {
        "simulation"
    }

    fn about(&self) -> &'static str {
        "files that the planner predicts under a layout against those read once it is there"
    }

    fn run(&self, settings: ExperimentSettings) -> Running<'_> {
        Box::pin(measure(settings))
    }
}

/// Statements that are run together, and what they ask of each table.
struct Asked {
    workload: Workload,
    scans: BTreeMap<TableName, Vec<LoggedScan>>,
    before: Executed,
    /// The logged window that it is, or is like.
    like: usize,
    is_fresh: bool,
}

/// Layouts of several tables that are made at once.
struct Trial {
    kind: &'static str,
    layouts: Vec<(TableName, Layout)>,
}

/// One statement's reading of one table.
#[derive(Debug)]
struct Point {
    kind: &'static str,
    layout: String,
    statement: String,
    predicted: f64,
    read: f64,
}

impl Point {
    fn error(&self) -> f64 {
        (self.predicted - self.read).abs()
    }
}

#[derive(Debug, Default)]
struct Found {
    points: Vec<Point>,
    /// Whether the interval covered what the same window saved, and what fresh ones did.
    same: Vec<bool>,
    fresh: Vec<bool>,
}

async fn measure(settings: ExperimentSettings) -> Result<ExperimentReport, Error> {
    let order = RowOrder::Shuffled(settings.seed);
    let base = Box::pin(OwnLake::tpch(scale_factor(settings), order)).await?;
    let asked = Box::pin(questions(&base, settings)).await?;
    let evidence = Box::pin(evidence(&base, &asked)).await?;
    let mut found = Found::default();
    for trial in Box::pin(trials(&base, &asked, &evidence, settings)).await? {
        let lake = Box::pin(base.copy()).await?;
        Box::pin(lake.lay_all(&trial.layouts)).await?;
        for one in &asked {
            let after = lake.run(&one.workload, trial.kind).await?;
            after.check_answers(&one.before, &described(&trial.layouts))?;
            compare(&trial, &asked, one, &after, &evidence, &mut found);
        }
    }
    Ok(report(&found, settings))
}

/// Collects the logged windows and draws fresh ones, and runs them on the tables as written.
async fn questions(base: &OwnLake, settings: ExperimentSettings) -> Result<Vec<Asked>, Error> {
    let mut dice = Dice::new(settings.seed);
    let kinds = [(W1, ORDER_KEYS), (W3, PART_KEYS), (W5, DATES)];
    let kinds = if settings.quick { &kinds[1..2] } else { &kinds[..] };
    let fresh = if settings.quick { 1 } else { FRESH };
    let mut asked = Vec::new();
    for (like, (log, weights)) in kinds.iter().enumerate() {
        for number in 0..=fresh {
            let is_fresh = number > 0;
            let workload = if is_fresh || settings.quick {
                let name = format!("{}-{number}", log.window);
                base.drawn(&name, weights, scale_factor(settings), &mut dice).await?
            } else {
                base.shipped(log).await?
            };
            let scans = logged_scans(&workload);
            let before = base.run(&workload, "before").await?;
            asked.push(Asked { workload, scans, before, like, is_fresh });
        }
    }
    Ok(asked)
}

const fn scale_factor(settings: ExperimentSettings) -> f64 {
    if settings.quick { QUICK_SCALE_FACTOR } else { SCALE_FACTOR }
}

/// Samples the tables once, for the columns that any logged statement names.
async fn evidence(
    base: &OwnLake,
    asked: &[Asked],
) -> Result<BTreeMap<TableName, TableEvidence>, Error> {
    let logged = asked.iter().filter(|one| !one.is_fresh);
    let records = logged.flat_map(|one| one.workload.records.iter().cloned()).collect();
    let all = Workload { records, ..Workload::default() };
    let graph = base.graph(&all).await?;
    let evidence = Box::pin(base.pipeline.evidence(&all, &graph, &[])).await?;
    let several = evidence.tables.into_iter().filter(|table| table.target_files > 1);
    Ok(several.map(|table| (table.table.clone(), table)).collect())
}

async fn trials(
    base: &OwnLake,
    asked: &[Asked],
    evidence: &BTreeMap<TableName, TableEvidence>,
    settings: ExperimentSettings,
) -> Result<Vec<Trial>, Error> {
    let mut trials = Vec::new();
    for one in asked.iter().filter(|one| !one.is_fresh) {
        let plan = Box::pin(base.plan(&one.workload)).await?;
        trials.push(Trial { kind: "planned", layouts: layouts_of(&plan) });
    }
    let curve = |keys: &[&str]| Layout::clustered(keys.iter().map(|&key| key.into()).collect());
    let cut = |keys: &[&str], parts: &[u32]| {
        Layout::cut(keys.iter().map(|&key| key.into()).collect(), parts.to_vec())
    };
    let all = |kind, layouts: [(&str, Layout); 4]| Trial {
        kind,
        layouts: layouts
            .into_iter()
            .map(|(table, layout)| (TableName::new(table), layout))
            .collect(),
    };
    if !settings.quick {
        for keys in [
            ["l_orderkey", "o_orderkey", "c_custkey", "ps_partkey"],
            ["l_partkey", "o_custkey", "c_custkey", "ps_suppkey"],
            ["l_shipdate", "o_orderdate", "c_custkey", "ps_partkey"],
        ] {
            let tables = ["lineitem", "orders", "customer", "partsupp"];
            let layouts = [0, 1, 2, 3].map(|at| (tables[at], curve(&keys[at..=at])));
            trials.push(all("one key", layouts));
        }
    }
    trials.push(all(
        "Hilbert",
        [
            ("lineitem", curve(&["l_orderkey", "l_shipdate"])),
            ("orders", curve(&["o_orderkey", "o_custkey"])),
            ("customer", curve(&["c_custkey"])),
            ("partsupp", curve(&["ps_partkey", "ps_suppkey"])),
        ],
    ));
    trials.push(all(
        "cuts",
        [
            ("lineitem", cut(&["l_partkey", "l_orderkey", "l_shipdate"], &[10, 5, 2])),
            ("orders", cut(&["o_orderkey", "o_custkey", "o_orderdate"], &[4, 3, 3])),
            ("customer", curve(&["c_custkey"])),
            ("partsupp", cut(&["ps_partkey", "ps_suppkey"], &[5, 4])),
        ],
    ));
    let mut dice = Dice::new(settings.seed.wrapping_add(1));
    for _ in 0..if settings.quick { 0 } else { RANDOM } {
        for kind in ["Hilbert", "cuts"] {
            let layouts = evidence
                .iter()
                .filter_map(|(table, evidence)| {
                    Some((table.clone(), random(kind, evidence, &mut dice)?))
                })
                .collect();
            trials.push(Trial { kind, layouts });
        }
    }
    Ok(trials)
}

/// Draws two or three keys, and parts for them.
fn random(kind: &str, evidence: &TableEvidence, dice: &mut Dice) -> Option<Layout> {
    let mut keys: Vec<String> = evidence.sample.columns.keys().cloned().collect();
    if keys.len() < 2 {
        return keys.pop().map(|key| Layout::clustered(vec![key]));
    }
    dice.shuffle(&mut keys);
    keys.truncate(2 + dice.below(2));
    if kind != "cuts" {
        return Some(Layout::clustered(keys));
    }
    let parts = keys.iter().map(|_| *dice.one_of(&[2, 3, 4, 6, 9])).collect();
    Some(Layout::cut(keys, parts))
}

/// Holds what was read against what was predicted.
fn compare(
    trial: &Trial,
    asked: &[Asked],
    one: &Asked,
    after: &Executed,
    evidence: &BTreeMap<TableName, TableEvidence>,
    found: &mut Found,
) {
    for (table, layout) in &trial.layouts {
        let Some(evidence) = evidence.get(table) else { continue };
        let none = Vec::new();
        let scans = one.scans.get(table).unwrap_or(&none);
        let readings = Simulate.prepare(evidence, scans).readings(layout);
        let mut predicted: BTreeMap<usize, f64> = BTreeMap::new();
        for (scan, reading) in scans.iter().zip(&readings) {
            *predicted.entry(scan.statement).or_insert(0.0) +=
                reading.files / lossless(evidence.target_files);
        }
        let mut saved = 0.0;
        for (before, after) in one.before.replayed.iter().zip(&after.replayed) {
            let (Some(was), Some(is)) = (before.tables.get(table), after.tables.get(table)) else {
                continue;
            };
            // A statement may scan a table twice; then its files count twice.
            let scans = ratio(was.files_total, evidence.files.len() as u64);
            let read = |cost: &lakebed_lake::ScanCost| ratio(cost.files_read, cost.files_total);
            saved += scans * (read(was) - read(is)) * evidence.bytes.as_f64();
            let Some(predicted) = predicted.get(&after.statement) else { continue };
            found.points.push(Point {
                kind: trial.kind,
                layout: format!("{table} ({})", layout.keys()),
                statement: super::demo::label(&one.workload.records[after.statement]),
                predicted: predicted / scans.max(1.0),
                read: read(is),
            });
        }
        let logged = asked.iter().find(|other| !other.is_fresh && other.like == one.like);
        let Some(logged) = logged.and_then(|logged| logged.scans.get(table)) else { continue };
        let interval = estimate(evidence, logged, layout);
        // Whoever knows a saving to a byte is not wrong by less.
        let is_covered = interval.low_bytes - 1.0 <= saved && saved <= interval.high_bytes + 1.0;
        if one.is_fresh { &mut found.fresh } else { &mut found.same }.push(is_covered);
    }
}

fn report(found: &Found, settings: ExperimentSettings) -> ExperimentReport {
    let mut report = ExperimentReport {
        goals: vec![
            Goal::AtMost("error_p95", 0.05),
            Goal::AtMost("error_mean", 0.02),
            Goal::AtLeast("coverage_fresh", 0.85),
        ],
        ..ExperimentReport::default()
    };
    let errors = sorted(found.points.iter().map(Point::error));
    report.measured("error_p95", percentile(&errors, 0.95));
    report.measured("error_mean", mean(&errors));
    report.measured("error_max", percentile(&errors, 1.0));
    let signed: Vec<f64> = found.points.iter().map(|point| point.predicted - point.read).collect();
    report.measured("bias", mean(&signed));
    report.measured("points", lossless(errors.len() as u64));
    let share = |covered: &[bool]| {
        ratio(covered.iter().filter(|covered| **covered).count() as u64, covered.len() as u64)
    };
    report.measured("coverage_same", share(&found.same));
    report.measured("coverage_fresh", share(&found.fresh));
    report.notes.push(format!(
        "coverage: {} savings of the windows planned for, {} of fresh ones; the interval is meant \
         to hold 90 %",
        found.same.len(),
        found.fresh.len()
    ));
    if settings.quick {
        report
            .notes
            .push("--quick: scale factor 0.02, one window, drawn, and fewer layouts".to_owned());
    }
    report.sections.push(format!("## By kind of layout\n\n{}", by_kind(found)));
    report.sections.push(format!("## The worst\n\n{}", worst(found)));
    report.plots.push(plot(found));
    report
}

fn kinds(found: &Found) -> BTreeSet<&'static str> {
    found.points.iter().map(|point| point.kind).collect()
}

fn by_kind(found: &Found) -> String {
    let rows: Vec<Vec<String>> = kinds(found)
        .into_iter()
        .map(|kind| {
            let points = || found.points.iter().filter(move |point| point.kind == kind);
            let errors = sorted(points().map(Point::error));
            let signed: Vec<f64> = points().map(|point| point.predicted - point.read).collect();
            vec![
                kind.to_owned(),
                errors.len().to_string(),
                shown(mean(&errors)),
                shown(percentile(&errors, 0.95)),
                shown(percentile(&errors, 1.0)),
                shown(mean(&signed)),
            ]
        })
        .collect();
    markdown_table(&["layouts", "readings", "mean", "p95", "largest", "bias"], &rows)
}

fn worst(found: &Found) -> String {
    let mut groups: BTreeMap<(&str, &str), Vec<&Point>> = BTreeMap::new();
    for point in &found.points {
        groups.entry((&point.layout, &point.statement)).or_default().push(point);
    }
    let mut groups: Vec<(f64, String, String, usize, f64)> = groups
        .into_iter()
        .map(|((layout, statement), points)| {
            let errors: Vec<f64> = points.iter().map(|point| point.error()).collect();
            let signed: Vec<f64> =
                points.iter().map(|point| point.predicted - point.read).collect();
            (mean(&errors), layout.to_owned(), statement.to_owned(), errors.len(), mean(&signed))
        })
        .collect();
    groups.sort_by(|a, b| b.0.total_cmp(&a.0));
    let rows: Vec<Vec<String>> = groups
        .into_iter()
        .take(12)
        .map(|(error, layout, statement, readings, bias)| {
            vec![format!("{layout}: {statement}"), readings.to_string(), shown(error), shown(bias)]
        })
        .collect();
    markdown_table(&["layout: statements", "readings", "mean error", "bias"], &rows)
}

fn plot(found: &Found) -> Plot {
    let series = kinds(found)
        .into_iter()
        .map(|kind| {
            let points = found.points.iter().filter(|point| point.kind == kind);
            let errors = sorted(points.map(Point::error));
            let count = lossless(errors.len().max(1) as u64);
            let ranked = errors.iter().enumerate();
            let values =
                ranked.map(|(rank, error)| (lossless(rank as u64 + 1) / count, *error)).collect();
            Series::new(kind, values)
        })
        .collect();
    Plot {
        name: "error".to_owned(),
        title: "Error of predicted files, per statement and table".to_owned(),
        x_label: "share of readings with no larger error".to_owned(),
        y_label: "error, as a share of the table's files".to_owned(),
        shape: Shape::Lines(series),
        goal: Some((0.05, "goal for 95 %".to_owned())),
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / lossless(values.len().max(1) as u64)
}

/// The smallest value that a share of the sorted values does not exceed.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank among values that are in memory"
)]
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = (lossless(sorted.len() as u64) * share).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(0.0)
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn lossless(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::{mean, percentile};

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let found = [percentile(&values, 0.95), percentile(&values, 1.0), percentile(&values, 0.0)];
        assert_eq!(found.map(f64::to_bits), [19.0_f64, 20.0, 1.0].map(f64::to_bits));
        assert!((mean(&values) - 10.5).abs() < 1e-12);
        assert!(percentile(&[], 0.5).abs() < 1e-12);
    }
}
