//! `lakebed drift BEFORE AFTER [--meter NAME]`

use std::path::PathBuf;

use clap::Args;
use lakebed_collect::CollectOptions;
use lakebed_graph::{DriftReport, JoinGraph};

use super::{Output, output::Align};
use crate::{error::Error, pipeline::Pipeline, records, view::DriftView};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Query log of the earlier window
    before: PathBuf,
    /// Query log of the later window
    after: PathBuf,
    /// Measure with this plugin instead of the configuration's
    #[arg(long, value_name = "NAME")]
    meter: Option<String>,
    /// Distance above which to plan again (0.1 by default)
    #[arg(long, value_name = "DISTANCE")]
    threshold: Option<f64>,
}

pub(super) async fn run(
    pipeline: &Pipeline,
    arguments: Arguments,
    output: &mut Output,
) -> Result<(), Error> {
    let threshold = arguments.threshold.unwrap_or(pipeline.config.drift.threshold);
    let before = window(pipeline, &arguments.before).await?;
    let after = window(pipeline, &arguments.after).await?;
    let (report, meter) =
        pipeline.drift(&before, &after, arguments.meter.as_deref(), threshold).await?;
    records::keep_drift(pipeline, &report).await;
    if output.is_json() {
        return output.document(&DriftView::new(&report, &meter));
    }
    print_drift(&report, output)
}

async fn window(pipeline: &Pipeline, log: &std::path::Path) -> Result<JoinGraph, Error> {
    let workload = pipeline.collect(&[log.to_owned()], &CollectOptions::default()).await?;
    let rows = pipeline.row_counts(&workload).await?;
    pipeline.graph(&workload, &rows, None).await
}

pub(super) fn print_drift(report: &DriftReport, output: &mut Output) -> Result<(), Error> {
    let verdict = if report.replan { "plan again" } else { "the plan stands" };
    output.line(format!(
        "drift {:.3} by meter `{}`, threshold {:.2}: {verdict}",
        report.distance, report.meter, report.threshold
    ))?;
    for edge in &report.new_edges {
        output.line(format!("new join: {edge}"))?;
    }
    for edge in &report.gone_edges {
        output.line(format!("gone: {edge}"))?;
    }
    let rows = report
        .edges
        .iter()
        .map(|edge| {
            let pairs: Vec<String> =
                edge.pairs.iter().map(|(left, right)| format!("{left} = {right}")).collect();
            vec![
                format!("{} ⋈ {} on {}", edge.left, edge.right, pairs.join(" and ")),
                format!("{:.3}", edge.before),
                format!("{:.3}", edge.after),
                format!("{:.3}", edge.part),
            ]
        })
        .collect();
    let header = [
        ("join", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("part", Align::Right),
    ];
    output.table(&header, rows)
}
