//! `tpch22`: the 22 questions of TPC-H on shuffled tables, and on the lake that their plan makes of them.
//!
//! 1. The tables are written in shuffled order. The 22 statements are the history; the plan is made
//!    from them with the defaults, and applied to a copy.
//! 2. Each statement runs on both lakes in turn, before and after, several times. Its time is the
//!    median of these runs; between two medians lies noise, which is stated: the median of
//!    |a run − its median| on the tables as written, as a share of that. The processor's time of the
//!    whole process is given beside, because it waits for nobody.
//! 3. All answers must be equal but for the last digits of floating-point sums, of which there are
//!    none: TPC-H's money is decimal.

use lakebed_model::{Bytes, Workload};

use super::{
    Experiment, ExperimentReport, ExperimentSettings, Goal, Running,
    lakes::{OwnLake, described, layouts_of},
    plot::{Plot, Series, Shape},
    replay::{Run, cpu_ms, rerun},
    report::{markdown_table, shown},
    tpch::RowOrder,
};
use crate::error::Error;

const QUESTIONS: &str = include_str!("tpch22.sql");
const SCALE_FACTOR: f64 = 1.0;
const QUICK_SCALE_FACTOR: f64 = 0.02;
const RUNS: usize = 5;
const QUICK_RUNS: usize = 3;

/// The experiment.
#[derive(Debug, Clone, Copy)]
pub struct Tpch22;

impl Experiment for Tpch22 {
    fn name(&self) -> &'static str {
        "tpch22"
    }

    fn about(&self) -> &'static str {
        "bytes and time of the 22 TPC-H questions before and after their plan"
    }

    fn run(&self, settings: ExperimentSettings) -> Running<'_> {
        Box::pin(measure(settings))
    }
}

/// One statement on both lakes.
#[derive(Debug, Default)]
struct Question {
    before: Vec<Run>,
    after: Vec<Run>,
}

async fn measure(settings: ExperimentSettings) -> Result<ExperimentReport, Error> {
    let scale_factor = if settings.quick { QUICK_SCALE_FACTOR } else { SCALE_FACTOR };
    let order = RowOrder::Shuffled(settings.seed);
    let base = Box::pin(OwnLake::tpch(scale_factor, order)).await?;
    let workload = history(&base).await?;
    let plan = Box::pin(base.plan(&workload)).await?;
    let layouts = layouts_of(&plan);
    let lake = Box::pin(base.copy()).await?;
    let rewriting = Box::pin(lake.lay_all(&layouts)).await?;
    let mut questions: Vec<Question> =
        workload.records.iter().map(|_| Question::default()).collect();
    let runs = if settings.quick { QUICK_RUNS } else { RUNS };
    let mut sessions = [base.pipeline.lake.session(), lake.pipeline.lake.session()];
    // The first round is not counted: it reads files that no cache has yet.
    for round in 0..=runs {
        for (record, question) in workload.records.iter().zip(&mut questions) {
            let sql = record.sql.as_deref().unwrap_or_default();
            let [on_base, on_lake] = &mut sessions;
            let before = rerun(on_base, sql).await?;
            let after = rerun(on_lake, sql).await?;
            if before.rows != after.rows {
                return Err(Error::Mismatch { what: format!("the answer changed of {sql}") });
            }
            if round > 0 {
                question.before.push(before);
                question.after.push(after);
            }
        }
    }
    let mut report = report(&questions);
    report.notes.insert(0, format!("scale factor {scale_factor}, {runs} runs, all answers equal"));
    report.notes.push(format!(
        "the plan: {}; {} rewritten in {:.1} s",
        described(&layouts),
        rewriting.bytes,
        rewriting.seconds
    ));
    for rejection in &plan.rejected {
        report.notes.push(format!("not {} ({}): {}", rejection.table, rejection.to, rejection.why));
    }
    if cpu_ms().is_none() {
        report.notes.push("this system does not tell the processor's time".to_owned());
    }
    if settings.quick {
        report
            .notes
            .push("--quick: a small scale factor; its times are mostly planning".to_owned());
    }
    Ok(report)
}

/// Collects the 22 statements as a log.
async fn history(base: &OwnLake) -> Result<Workload, Error> {
    let statements: Vec<&str> =
        QUESTIONS.split(";\n").map(str::trim).filter(|text| !text.is_empty()).collect();
    let workload = base.collect("tpch22", &statements).await?;
    let report = &workload.report;
    if report.parsed != 22 {
        return Err(Error::Mismatch {
            what: format!("{} of 22 statements read in full: {:?}", report.parsed, report.reasons),
        });
    }
    Ok(workload)
}

fn report(questions: &[Question]) -> ExperimentReport {
    let mut report = ExperimentReport {
        goals: vec![
            Goal::AtMost("bytes_vs_unorganized", 0.8),
            Goal::AtMost("worst_query_time_ratio", 1.05),
        ],
        ..ExperimentReport::default()
    };
    let sum = |figure: &dyn Fn(&Question) -> f64| questions.iter().map(figure).sum::<f64>();
    let bytes = |runs: &[Run]| median(runs, |run| run.cost.bytes_read as f64);
    let bytes_ratio = sum(&|q| bytes(&q.after)) / sum(&|q| bytes(&q.before));
    let time_ratio = sum(&|q| wall(&q.after)) / sum(&|q| wall(&q.before));
    report.measured("bytes_vs_unorganized", bytes_ratio);
    report.measured("time_ratio", time_ratio);
    let worst = |ratio: &dyn Fn(&Question) -> f64| {
        let each = questions.iter().enumerate().map(|(number, q)| (ratio(q), number + 1));
        each.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((1.0, 0))
    };
    let wall_ratio = |q: &Question| wall(&q.after) / wall(&q.before).max(1.0);
    let (ratio, number) = worst(&wall_ratio);
    report.measured("worst_query_time_ratio", ratio);
    let noise = |q: &Question| {
        let middle = wall(&q.before);
        let mut off: Vec<f64> = q.before.iter().map(|run| (run.wall_ms - middle).abs()).collect();
        off.sort_unstable_by(f64::total_cmp);
        off[off.len() / 2] / middle.max(1.0)
    };
    let noises: Vec<f64> = questions.iter().map(noise).collect();
    let mean_noise = noises.iter().sum::<f64>() / noises.len().max(1) as f64;
    report.measured("time_noise", mean_noise);
    report.notes.push(format!(
        "the slowest beside before is Q{number:02}: {ratio:.3} times; a run is off its median by \
         {:.1} % on average, by {:.1} % where most",
        mean_noise * 100.0,
        noises.iter().copied().fold(0.0, f64::max) * 100.0
    ));
    if questions.iter().flat_map(|q| &q.before).all(|run| run.cpu_ms.is_some()) {
        let cpu_ratio = |q: &Question| cpu(&q.after) / cpu(&q.before).max(10.0);
        let (ratio, number) = worst(&cpu_ratio);
        report.measured("cpu_ratio", sum(&|q| cpu(&q.after)) / sum(&|q| cpu(&q.before)));
        report.measured("worst_query_cpu_ratio", ratio);
        report.notes.push(format!(
            "by the processor's time, told in steps of 10 ms, the slowest is Q{number:02}: {ratio:.3}"
        ));
    }
    report.sections.push(format!("## By question\n\n{}", by_question(questions, &noises)));
    report.plots.push(plot(questions));
    report
}

fn by_question(questions: &[Question], noises: &[f64]) -> String {
    let rows: Vec<Vec<String>> = questions
        .iter()
        .zip(noises)
        .enumerate()
        .map(|(number, (question, noise))| {
            let bytes = |runs: &[Run]| runs.first().map_or(0, |run| run.cost.bytes_read);
            let files = |runs: &[Run]| {
                let cost = runs.first().map(|run| run.cost).unwrap_or_default();
                format!("{} of {}", cost.files_read, cost.files_total)
            };
            let (before, after) = (&question.before, &question.after);
            vec![
                format!("Q{:02}", number + 1),
                files(before),
                files(after),
                Bytes(bytes(before)).to_string(),
                Bytes(bytes(after)).to_string(),
                shown(bytes(after) as f64 / bytes(before).max(1) as f64),
                format!("{:.0}", wall(before)),
                format!("{:.0}", wall(after)),
                shown(wall(after) / wall(before).max(1.0)),
                shown(*noise),
                format!("{:.0}", cpu(before)),
                format!("{:.0}", cpu(after)),
            ]
        })
        .collect();
    let header = [
        "question",
        "files before",
        "files after",
        "bytes before",
        "bytes after",
        "ratio",
        "ms before",
        "ms after",
        "ratio",
        "noise",
        "processor ms before",
        "after",
    ];
    markdown_table(&header, &rows)
}

fn plot(questions: &[Question]) -> Plot {
    let ratio = |figure: fn(&[Run]) -> f64| {
        questions.iter().map(|q| figure(&q.after) / figure(&q.before).max(1.0)).collect()
    };
    let bytes = |runs: &[Run]| median(runs, |run| run.cost.bytes_read as f64);
    Plot {
        name: "ratios".to_owned(),
        title: "After the plan, as a share of before".to_owned(),
        x_label: "question".to_owned(),
        y_label: "after / before".to_owned(),
        shape: Shape::Bars(
            (1..=questions.len()).map(|number| number.to_string()).collect(),
            vec![Series::new("bytes read", ratio(bytes)), Series::new("time", ratio(wall))],
        ),
        goal: Some((1.0, "as before".to_owned())),
    }
}

fn wall(runs: &[Run]) -> f64 {
    median(runs, |run| run.wall_ms)
}

fn cpu(runs: &[Run]) -> f64 {
    // Told in steps of 10 ms: the mean of several runs tells more than their median.
    runs.iter().filter_map(|run| run.cpu_ms).sum::<f64>() / runs.len().max(1) as f64
}

fn median(runs: &[Run], figure: impl Fn(&Run) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(figure).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
