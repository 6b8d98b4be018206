//! When to move: what each rule says of windows whose changes are declared, and what it costs.
//!
//! 1. TPC-H tables are generated in shuffled order, and six windows of statements are drawn for each
//!    seed (`windows`); the statements are read as a log of SQL text is.
//! 2. Layouts: the tables as they are, and the planner's own plan for each of the three mixes, made
//!    from draws that are in no window.
//! 3. What every statement reads under every layout: exact from the files' statistics for the tables
//!    as they are, simulated on samples of the tables' rows for the plans. A move costs the bytes of
//!    the tables that are rewritten.
//! 4. Each rule goes through the windows (`policy`), and is held against the cheapest course for
//!    someone who knows all windows beforehand.

mod policy;
mod windows;

use std::{collections::BTreeMap, path::Path, path::PathBuf};

use lakebed_collect::CollectOptions;
use lakebed_graph::{
    DEFAULT_THRESHOLD, DriftMeter, EdgeScorer, JoinGraph, RegretSettings, compare, noise_floor,
};
use lakebed_model::{Bytes, TableName, Workload};
use lakebed_plan::{
    LakeEvidence, Layout, Settings, SplitMix64, TableEvidence,
    benefit::{BenefitModel, Replay, Simulate},
    logged_scans,
};
use lakebed_sandbox::World;

use self::{
    policy::{Course, Spending},
    windows::{MIX_OF, MIXES, WINDOWS, draw, is_changed},
};
use super::{
    Experiment, ExperimentReport, ExperimentSettings, Goal, Running,
    plot::{Plot, Series, Shape},
    replay::ratio,
    report::markdown_table,
    tpch,
};
use crate::{
    config::Config,
    error::Error,
    pipeline::{Pipeline, blocking},
    plugged::PluggedScorer,
    progress::Progress,
};

/// The experiment.
#[derive(Debug, Clone, Copy)]
pub struct DriftRules;

impl Experiment for DriftRules {
    fn name(&self) -> &'static str {
        "drift"
    }

    fn about(&self) -> &'static str {
        "verdicts on six windows whose changes are declared, and the cost of moving by them"
    }

    fn run(&self, settings: ExperimentSettings) -> Running<'_> {
        Box::pin(measure(settings))
    }
}

/// Share of the bytes at stake that must have moved: the weighted meter's scale is not the paper's.
const WEIGHTED_THRESHOLD: f64 = 0.2;
/// Statements after which regret is counted.
const STRETCH: usize = 4;
/// Draws behind a noise floor.
const ROUNDS: usize = 100;
const REGRET: RegretSettings = RegretSettings { margin: 0.1, dwell: 2 };
/// A window in which each mix is at its first.
const WINDOW_OF_MIX: [usize; MIXES] = [0, 2, 4];

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct Scale {
    factor: f64,
    seeds: usize,
    statements: usize,
}

impl Scale {
    const fn of(settings: ExperimentSettings) -> Self {
        if settings.quick {
            Self { factor: 0.01, seeds: 3, statements: 120 }
        } else {
            Self { factor: 0.1, seeds: 20, statements: 200 }
        }
    }
}

/// Layouts of all tables: the tables' own where there is none.
type LakeLayout = BTreeMap<TableName, Layout>;

/// One seed's verdicts and costs.
#[derive(Debug)]
struct Run {
    ours: Vec<bool>,
    paper: Vec<bool>,
    spending: [Spending; 4],
}

async fn measure(settings: ExperimentSettings) -> Result<ExperimentReport, Error> {
    let scale = Scale::of(settings);
    let folder = tempfile::Builder::new().prefix("lakebed-drift-").tempdir();
    let folder = folder.map_err(|source| Error::File {
        action: "create a folder for tables in",
        path: std::env::temp_dir(),
        source,
    })?;
    let mut pipeline = Pipeline::new(Config::default(), Progress::hidden()).await?;
    let (now, progress) = (pipeline.now, pipeline.progress.clone());
    tpch::write_tables(&mut pipeline.lake, folder.path(), scale.factor, now, &progress).await?;
    let (evidence, layouts) = planned(&pipeline, folder.path(), settings.seed, scale).await?;
    let mut runs = Vec::new();
    for seed in 0..scale.seeds {
        let random = SplitMix64::new(settings.seed.wrapping_mul(1_000) + 1 + seed as u64);
        let windows = window_logs(&pipeline, folder.path(), random, scale).await?;
        let (pipeline, evidence) = (pipeline.clone(), evidence.clone());
        let layouts = layouts.clone();
        let draws = SplitMix64::new(seed as u64);
        runs.push(
            blocking("measuring drift", move || {
                let course = course(&windows, &evidence, &layouts);
                judge(&pipeline, windows, &evidence, &course, draws)
            })
            .await?,
        );
    }
    Ok(report(&runs, scale))
}

/// Plans each mix from statements that are in no window, and keeps what is known of the tables.
async fn planned(
    pipeline: &Pipeline,
    folder: &Path,
    seed: u64,
    scale: Scale,
) -> Result<(LakeEvidence, Vec<LakeLayout>), Error> {
    let mut random = SplitMix64::new(seed ^ 0xD21F);
    let mut workloads = Vec::new();
    let mut all = Workload::default();
    for window in WINDOW_OF_MIX {
        let lines = draw(&mut random, window, scale.statements, scale.factor);
        let workload = collected(pipeline, folder, &lines).await?;
        all.records.extend(workload.records.iter().cloned());
        workloads.push(workload);
    }
    let rows = pipeline.row_counts(&all).await?;
    let graph = pipeline.graph(&all, &rows, None).await?;
    let evidence = pipeline.evidence(&all, &graph, &[]).await?;
    let mut layouts = vec![LakeLayout::new()];
    for workload in workloads {
        let graph = pipeline.graph(&workload, &rows, None).await?;
        let settings = Settings::without_budgets();
        let plan = pipeline.plan(&graph, &workload, evidence.clone(), settings, None).await?;
        layouts.push(plan.actions.into_iter().map(|action| (action.table, action.to)).collect());
    }
    // A mix that does not care about a table leaves it as another mix has it.
    let mut whole = LakeLayout::new();
    for layout in layouts.iter().rev() {
        whole.extend(layout.iter().map(|(table, layout)| (table.clone(), layout.clone())));
    }
    for layout in layouts.iter_mut().skip(1) {
        for (table, other) in &whole {
            layout.entry(table.clone()).or_insert_with(|| other.clone());
        }
    }
    Ok((evidence, layouts))
}

async fn window_logs(
    pipeline: &Pipeline,
    folder: &Path,
    mut random: SplitMix64,
    scale: Scale,
) -> Result<Vec<Workload>, Error> {
    let mut windows = Vec::with_capacity(WINDOWS);
    for window in 0..WINDOWS {
        let lines = draw(&mut random, window, scale.statements, scale.factor);
        windows.push(collected(pipeline, folder, &lines).await?);
    }
    Ok(windows)
}

async fn collected(pipeline: &Pipeline, folder: &Path, lines: &str) -> Result<Workload, Error> {
    let path: PathBuf = folder.join("statements.jsonl");
    std::fs::write(&path, lines).map_err(|source| Error::File {
        action: "write",
        path: path.clone(),
        source,
    })?;
    pipeline.collect(&[path], &CollectOptions::default()).await
}

/// Works out what every statement reads under every layout, and what moves cost.
fn course(windows: &[Workload], evidence: &LakeEvidence, layouts: &[LakeLayout]) -> Course {
    let reads = windows.iter().map(|window| reads(window, evidence, layouts)).collect();
    let price = |from: &LakeLayout, to: &LakeLayout| {
        let moved = evidence.tables.iter().filter(|table| {
            let [from, to] =
                [from, to].map(|layout| layout_of(layout, table).unwrap_or(&table.current));
            !to.is_same_as(from)
        });
        moved.map(|table| table.bytes).sum::<Bytes>().as_f64()
    };
    let prices =
        layouts.iter().map(|from| layouts.iter().map(|to| price(from, to)).collect()).collect();
    Course { reads, prices }
}

fn layout_of<'l>(layout: &'l LakeLayout, table: &TableEvidence) -> Option<&'l Layout> {
    layout.get(&table.table)
}

fn reads(window: &Workload, evidence: &LakeEvidence, layouts: &[LakeLayout]) -> Vec<Vec<f64>> {
    let mut reads = vec![vec![0.0; layouts.len()]; window.records.len()];
    let scans = logged_scans(window);
    for table in &evidence.tables {
        let Some(scans) = scans.get(&table.table) else { continue };
        let now = Replay.prepare(table, scans).readings(&table.current);
        let what_if = Simulate.prepare(table, scans);
        for (index, layout) in layouts.iter().enumerate() {
            let then = layout_of(layout, table).map(|layout| what_if.readings(layout));
            let readings = then.as_ref().unwrap_or(&now);
            for (scan, reading) in scans.iter().zip(readings) {
                reads[scan.statement][index] += reading.bytes;
            }
        }
    }
    reads
}

/// Takes every rule through the windows.
fn judge(
    pipeline: &Pipeline,
    mut windows: Vec<Workload>,
    evidence: &LakeEvidence,
    course: &Course,
    mut random: SplitMix64,
) -> Result<Run, Error> {
    at_stake(&mut windows, evidence, course);
    let in_bytes = Some(r#"{"scale":"bytes"}"#);
    let bytes = pipeline.plugins.load(World::Scorer, "scorer-bytes-saved", in_bytes)?;
    let bytes = PluggedScorer::new(bytes);
    let jis = pipeline.plugins.scorer(Some("scorer-ajlo-jis"))?;
    let weighted = pipeline.plugins.drift_meter(Some("drift-meter-weighted"))?;
    let paper_meter = pipeline.plugins.drift_meter(Some("drift-meter-ajlo"))?;
    let rows: BTreeMap<TableName, u64> =
        evidence.tables.iter().map(|table| (table.table.clone(), table.rows)).collect();
    let compared =
        |before: &Workload, after: &Workload, scorer: &dyn EdgeScorer, meter: &dyn DriftMeter| {
            let graph = |window: &Workload| JoinGraph::build(window, &rows).scored(scorer);
            compare(&graph(before)?, &graph(after)?, meter, DEFAULT_THRESHOLD)
        };
    let (mut ours, mut paper) = (vec![false], vec![false]);
    for pair in windows.windows(2) {
        let [before, after] = pair else { continue };
        let drift = compared(before, after, &bytes, &weighted)?;
        let floor = noise_floor(
            before,
            after,
            ROUNDS,
            |below| random.below(below),
            |a, b| compared(a, b, &bytes, &weighted).map(|drift| drift.distance),
        )?;
        ours.push(drift.above_noise(floor.max(WEIGHTED_THRESHOLD)).replan);
        paper.push(compared(before, after, &jis, &paper_meter)?.replan);
    }
    let layout_of_window = MIX_OF.map(|mix| mix + 1);
    let spending = [
        course.offline(),
        course.by_regret(STRETCH, REGRET, &layout_of_window),
        course.by_verdicts(&paper),
        course.as_it_is(),
    ];
    Ok(Run { ours, paper, spending })
}

/// Says of every statement what the engine's log would say of the tables as they are: the bytes of
/// the tables it scans, whatever a layout lets it skip, and a time in proportion to what it reads.
///
/// Bytes that a layout skips must not count: the next window would look changed by our own move.
fn at_stake(windows: &mut [Workload], evidence: &LakeEvidence, course: &Course) {
    let sizes: BTreeMap<&TableName, u64> =
        evidence.tables.iter().map(|table| (&table.table, table.bytes.0)).collect();
    for (window, reads) in windows.iter_mut().zip(&course.reads) {
        for (record, reads) in window.records.iter_mut().zip(reads) {
            record.duration_ms = Some(Bytes::from_f64(reads[0] / 1e4).0);
            for scan in &mut record.scans {
                scan.bytes_read = scan.table.as_ref().and_then(|table| sizes.get(table).copied());
            }
        }
    }
}

/// Right and wrong verdicts.
#[derive(Debug, Clone, Copy, Default)]
struct Verdicts {
    hits: u64,
    false_alarms: u64,
    misses: u64,
}

impl Verdicts {
    fn of<'v>(verdicts: impl Iterator<Item = &'v Vec<bool>>) -> Self {
        let mut counted = Self::default();
        for verdicts in verdicts {
            for (window, &says) in verdicts.iter().enumerate().skip(1) {
                match (says, is_changed(window)) {
                    (true, true) => counted.hits += 1,
                    (true, false) => counted.false_alarms += 1,
                    (false, true) => counted.misses += 1,
                    (false, false) => {}
                }
            }
        }
        counted
    }

    fn precision(self) -> f64 {
        ratio(self.hits, self.hits + self.false_alarms)
    }

    fn recall(self) -> f64 {
        ratio(self.hits, self.hits + self.misses)
    }
}

const RULES: [&str; 4] = ["knows all windows", "regret", "paper's rule", "never moves"];

fn report(runs: &[Run], scale: Scale) -> ExperimentReport {
    let mut report = ExperimentReport {
        goals: vec![
            Goal::AtLeast("precision", 0.95),
            Goal::AtLeast("recall", 0.95),
            Goal::AtMost("cost_vs_offline", 1.15),
        ],
        ..ExperimentReport::default()
    };
    let ours = Verdicts::of(runs.iter().map(|run| &run.ours));
    let paper = Verdicts::of(runs.iter().map(|run| &run.paper));
    report.measured("precision", ours.precision());
    report.measured("recall", ours.recall());
    report.measured("precision_paper_rule", paper.precision());
    report.measured("recall_paper_rule", paper.recall());
    let mean = |figure: &dyn Fn(&Run) -> f64| {
        runs.iter().map(figure).sum::<f64>() / ratio(runs.len() as u64, 1)
    };
    let against =
        |rule: usize| mean(&|run: &Run| run.spending[rule].total() / run.spending[0].total());
    report.measured("cost_vs_offline", against(1));
    report.measured("cost_vs_offline_paper_rule", against(2));
    report.measured("cost_vs_offline_never", against(3));
    for (rule, figure) in ["moves_offline", "moves", "moves_paper_rule"].into_iter().enumerate() {
        report.measured(figure, mean(&|run: &Run| ratio(run.spending[rule].moves as u64, 1)));
    }
    let by_window = |rule: usize| -> Vec<f64> {
        (0..WINDOWS)
            .map(|window| mean(&|run: &Run| run.spending[rule].by_window[window] / 1e6))
            .collect()
    };
    let costs: Vec<Vec<f64>> = (0..RULES.len()).map(by_window).collect();
    let names: Vec<String> = (1..=WINDOWS).map(|window| format!("W{window}")).collect();
    let rows: Vec<Vec<String>> = RULES
        .iter()
        .zip(&costs)
        .map(|(rule, costs)| {
            let costs = costs.iter().map(|megabytes| format!("{megabytes:.1}"));
            std::iter::once((*rule).to_owned()).chain(costs).collect()
        })
        .collect();
    let mut header = vec!["MB scanned and rewritten"];
    header.extend(names.iter().map(String::as_str));
    report.sections.push(markdown_table(&header, &rows));
    let series = RULES.iter().zip(costs).map(|(rule, costs)| Series::new(*rule, costs)).collect();
    report.plots.push(Plot {
        name: "cost".to_owned(),
        title: "Bytes scanned and rewritten, by window and rule".to_owned(),
        x_label: "window; W3, W5 and W6 have another mix than the one before".to_owned(),
        y_label: "MB, mean over seeds".to_owned(),
        shape: Shape::Bars(names, series),
        goal: None,
    });
    report.notes.push(format!(
        "{} seeds, {} statements a window, TPC-H at scale factor {}; W3, W5 and W6 are declared \
         changed, W2 and W4 not",
        scale.seeds, scale.statements, scale.factor
    ));
    report.notes.push(format!(
        "a window counts as changed when {:.0} % of the bytes at stake on its joins moved, and more \
         than 99 of 100 pairs of windows drawn from the same statements are apart; the paper's rule is \
         its own, {DEFAULT_THRESHOLD:.2}",
        100.0 * WEIGHTED_THRESHOLD
    ));
    report.notes.push(format!(
        "all rules choose among the same layouts, the plans for the three mixes; reads under these \
         are simulated on samples, not executed. Regret is counted every {STRETCH} statements and \
         sees a layout only after {STRETCH} statements of its mix; the paper's rule decides between \
         windows"
    ));
    report
}
