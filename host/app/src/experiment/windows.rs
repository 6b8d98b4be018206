//! `windows`: how much of the tables three real windows read before a layout, under the plan's, and
//! under the paper's.
//!
//! 1. TPC-H at scale factor 0.1 is written in shuffled order, in the file counts of 2 MB files at
//!    scale factor 1; the logs' key ranges are those of 0.1. (`--quick` draws windows of the same
//!    templates for scale factor 0.02.)
//! 2. Every statement of a window is run. Each window starts from the tables as they were written.
//! 3. On copies of the lake they are run again: after the plan for this window and its rewrite; after
//!    the keys that the paper's planner chooses on window 1 and, because its OPTIMIZE without FULL
//!    moves no file that has other keys, keeps; after its choice for the window itself, moved; and
//!    clustered by dates alone.
//! 4. Skipping is the mean over statements of 1 − files read / files of the tables scanned. Bytes are
//!    those fetched, so row groups and pages count. All answers must be equal.

use std::collections::BTreeMap;

use lakebed_layout::Lake;
use lakebed_model::{Bytes, TableName, Workload};
use lakebed_plan::Layout;

use super::{
    Experiment, ExperimentReport, ExperimentSettings, Goal, Running,
    dice::Dice,
    lakes::{Executed, OwnLake, described, layouts_of},
    paper::{self, PaperTable},
    plot::{Plot, Series, Shape},
    replay::ratio,
    report::{markdown_table, shown},
    shipped::{ShippedLog, W1, W3, W5},
    templates::{DATES, ORDER_KEYS, PART_KEYS, Weights},
    tpch::RowOrder,
};
use crate::error::Error;

const SCALE_FACTOR: f64 = 0.1;
const QUICK_SCALE_FACTOR: f64 = 0.02;

/// The experiment.
#[derive(Debug, Clone, Copy)]
pub struct Windows;

/// A window, its goal, and the names of its figures.
struct Window {
    log: ShippedLog,
    /// What `--quick` draws instead of the log.
    weights: Weights,
    goal: f64,
    ours: &'static str,
    before: &'static str,
    ajlo: &'static str,
    ajlo_moved: &'static str,
    dates: &'static str,
    bytes: &'static str,
    bytes_ajlo: &'static str,
}

const WINDOWS: [Window; 3] = [
    Window {
        log: W1,
        weights: ORDER_KEYS,
        goal: 0.62,
        ours: "w1_skipping",
        before: "w1_skipping_before",
        ajlo: "w1_skipping_ajlo",
        ajlo_moved: "w1_skipping_ajlo_moved",
        dates: "w1_skipping_dates",
        bytes: "bytes_ratio_w1",
        bytes_ajlo: "bytes_ratio_w1_ajlo",
    },
    Window {
        log: W3,
        weights: PART_KEYS,
        goal: 0.58,
        ours: "w3_skipping",
        before: "w3_skipping_before",
        ajlo: "w3_skipping_ajlo",
        ajlo_moved: "w3_skipping_ajlo_moved",
        dates: "w3_skipping_dates",
        bytes: "bytes_ratio_w3",
        bytes_ajlo: "bytes_ratio_w3_ajlo",
    },
    Window {
        log: W5,
        weights: DATES,
        goal: 0.61,
        ours: "w5_skipping",
        before: "w5_skipping_before",
        ajlo: "w5_skipping_ajlo",
        ajlo_moved: "w5_skipping_ajlo_moved",
        dates: "w5_skipping_dates",
        bytes: "bytes_ratio_w5",
        bytes_ajlo: "bytes_ratio_w5_ajlo",
    },
];
const BYTES_GOAL: f64 = 0.36;
const QUICK_LEAVES_OUT: &str = "--quick: scale factor 0.02 and windows drawn from the logs' \
     templates; the paper's choice moved and the layout by dates were left out";

impl Experiment for Windows {
    fn name(&self) -> &'static str {
        "windows"
    }

    fn about(&self) -> &'static str {
        "files and bytes that three logged windows read before and after their plans"
    }

    fn run(&self, settings: ExperimentSettings) -> Running<'_> {
        Box::pin(measure(settings))
    }
}

/// One layout of all tables, run.
struct Run {
    name: &'static str,
    layouts: Vec<(TableName, Layout)>,
    executed: Executed,
}

async fn measure(settings: ExperimentSettings) -> Result<ExperimentReport, Error> {
    let mut report = ExperimentReport::default();
    for window in &WINDOWS {
        report.goals.push(Goal::AtLeast(window.ours, window.goal));
        report.goals.push(Goal::AtMost(window.bytes, BYTES_GOAL));
    }
    let scale_factor = if settings.quick { QUICK_SCALE_FACTOR } else { SCALE_FACTOR };
    let order = RowOrder::Shuffled(settings.seed);
    let base = Box::pin(OwnLake::tpch(scale_factor, order)).await?;
    let mut dice = Dice::new(settings.seed);
    let mut kept: Vec<(TableName, Layout)> = Vec::new();
    for window in &WINDOWS {
        let name = window.log.window;
        let workload = if settings.quick {
            base.drawn(name, &window.weights, scale_factor, &mut dice).await?
        } else {
            base.shipped(&window.log).await?
        };
        let own = paper_plan(&base, &workload).await?;
        if kept.is_empty() {
            kept.clone_from(&own);
        }
        let runs =
            Box::pin(run_window(&base, window, &workload, &kept, &own, settings.quick)).await?;
        figures(&mut report, window, &workload, &runs);
        report.sections.push(format!("## {name}\n\n{}", table(&workload, &runs)));
        report.sections.push(by_template(&workload, &runs));
        for run in &runs {
            report.notes.push(format!("{name}, {}: {}", run.name, described(&run.layouts)));
        }
    }
    if settings.quick {
        report.notes.push(QUICK_LEAVES_OUT.to_owned());
    }
    fell_short(&mut report);
    report.plots.push(plot(&report));
    Ok(report)
}

/// Runs a window's statements under every layout; the first run is that of the tables as written,
/// the second that of the plan.
async fn run_window(
    base: &OwnLake,
    window: &Window,
    workload: &Workload,
    kept: &[(TableName, Layout)],
    own: &[(TableName, Layout)],
    quick: bool,
) -> Result<Vec<Run>, Error> {
    let before = base.run(workload, "before").await?;
    let plan = Box::pin(base.plan(workload)).await?;
    let mut layouts = vec![("plan", layouts_of(&plan)), ("AJLO", kept.to_vec())];
    if !quick {
        if own != kept {
            layouts.push(("AJLO, moved", own.to_vec()));
        }
        layouts.push(("dates", dates()));
    }
    let mut runs = vec![Run { name: "before", layouts: Vec::new(), executed: before }];
    for (name, layouts) in layouts {
        let lake = Box::pin(base.copy()).await?;
        Box::pin(lake.lay_all(&layouts)).await?;
        let executed = lake.run(workload, name).await?;
        executed
            .check_answers(&runs[0].executed, &format!("{} under {name}", window.log.window))?;
        runs.push(Run { name, layouts, executed });
    }
    Ok(runs)
}

/// The static layout by dates that the paper compares with.
pub(super) fn dates() -> Vec<(TableName, Layout)> {
    [("orders", "o_orderdate"), ("lineitem", "l_shipdate")]
        .map(|(table, key)| (TableName::new(table), Layout::clustered(vec![key.to_owned()])))
        .to_vec()
}

/// What the paper's planner chooses for a workload.
pub(super) async fn paper_plan(
    lake: &OwnLake,
    workload: &Workload,
) -> Result<Vec<(TableName, Layout)>, Error> {
    let graph = lake.graph(workload).await?;
    let mut tables = BTreeMap::new();
    for table in graph.tables() {
        if lake.pipeline.lake.contains(table) {
            let snapshot = lake.pipeline.lake.snapshot(table).await?;
            let files = u64::try_from(snapshot.files.len()).unwrap_or(u64::MAX);
            let bytes = snapshot.bytes().as_f64();
            tables.insert(table.clone(), PaperTable { bytes, files });
        }
    }
    Ok(paper::plan(&graph, &tables))
}

fn figures(report: &mut ExperimentReport, window: &Window, workload: &Workload, runs: &[Run]) {
    let before = &runs[0].executed;
    for run in runs {
        let figure = match run.name {
            "before" => window.before,
            "plan" => window.ours,
            "AJLO" => window.ajlo,
            "AJLO, moved" => window.ajlo_moved,
            _ => window.dates,
        };
        report.measured(figure, run.executed.skipping());
        match run.name {
            "plan" => report.measured(window.bytes, run.executed.bytes_ratio(before)),
            "AJLO" => report.measured(window.bytes_ajlo, run.executed.bytes_ratio(before)),
            _ => {}
        }
    }
    debug_assert_eq!(before.replayed.len(), workload.records.len(), "statements with their text");
}

fn table(workload: &Workload, runs: &[Run]) -> String {
    let before = &runs[0].executed;
    let has_join = |statement: usize| !workload.records[statement].joins.is_empty();
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            let cost = run.executed.cost();
            vec![
                run.name.to_owned(),
                shown(run.executed.skipping()),
                shown(run.executed.skipping_of(has_join)),
                format!("{} of {}", cost.files_read, cost.files_total),
                Bytes(cost.bytes_read).to_string(),
                shown(run.executed.bytes_ratio(before)),
                run.executed.elapsed_ms().to_string(),
            ]
        })
        .collect();
    markdown_table(
        &["layout", "skipped", "of joins", "files read", "bytes read", "of before", "ms"],
        &rows,
    )
}

/// Files and bytes per template, so that one sees who loses.
fn by_template(workload: &Workload, runs: &[Run]) -> String {
    let mut templates: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (position, one) in runs[0].executed.replayed.iter().enumerate() {
        let record = &workload.records[one.statement];
        templates.entry(record.fingerprint.as_str()).or_default().push(position);
    }
    let mut rows: Vec<Vec<String>> = templates
        .values()
        .map(|positions| {
            let first = runs[0].executed.replayed[positions[0]].statement;
            let mut row =
                vec![super::demo::label(&workload.records[first]), positions.len().to_string()];
            row.extend(runs.iter().map(|run| {
                let costs = positions.iter().map(|position| run.executed.replayed[*position].cost);
                let sum = costs.fold(lakebed_lake::ScanCost::default(), |sum, cost| sum.plus(cost));
                let skipped = 1.0 - ratio(sum.files_read, sum.files_total);
                format!("{skipped:.2}, {}", Bytes(sum.bytes_read))
            }));
            row
        })
        .collect();
    rows.sort();
    let mut header = vec!["statements (skipped, bytes read)", "runs"];
    header.extend(runs.iter().map(|run| run.name));
    markdown_table(&header, &rows)
}

fn fell_short(report: &mut ExperimentReport) {
    for goal in report.goals.clone() {
        if report.is_met(goal) == Some(false) {
            let value = report.figures[goal.figure()];
            report.notes.push(format!(
                "{} is {}, the goal was {}",
                goal.figure(),
                shown(value),
                super::report::wanted(goal)
            ));
        }
    }
}

fn plot(report: &ExperimentReport) -> Plot {
    let value = |figure: &str| report.figures.get(figure).copied().unwrap_or(f64::NAN);
    let series = |name: &str, figure: fn(&Window) -> &'static str| {
        Series::new(name, WINDOWS.iter().map(|window| value(figure(window))).collect())
    };
    let groups = WINDOWS.iter().map(|window| window.log.window.to_owned()).collect();
    let series = vec![
        series("plan", |window| window.ours),
        series("AJLO as written", |window| window.ajlo),
        series("AJLO, moved", |window| window.ajlo_moved),
        series("dates", |window| window.dates),
        series("before", |window| window.before),
    ];
    Plot {
        name: "skipping".to_owned(),
        title: "Files skipped, mean over 40 statements, executed".to_owned(),
        x_label: "window".to_owned(),
        y_label: "share of files skipped".to_owned(),
        shape: Shape::Bars(groups, series),
        goal: None,
    }
}
