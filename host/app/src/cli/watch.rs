//! `lakebed watch SOURCE… [--once] [--every DURATION] [--budget SIZE]`

use std::time::Duration;

use clap::Args;
use lakebed_model::Bytes;
use serde::Serialize;

use super::{
    Output, Sources, drift::print_drift, output::Align, parse_size, parse_window, plan::print_plan,
};
use crate::{
    error::Error,
    pipeline::{Pipeline, rewritten_bytes},
    view::DriftView,
    watch::{Decision, Round, WatchOptions, round},
};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    sources: Sources,
    /// Go around once and end
    #[arg(long)]
    once: bool,
    /// Go around this often (by default once per --window)
    #[arg(long, value_name = "DURATION", value_parser = parse_window)]
    every: Option<u64>,
    /// Bytes that one round may rewrite, such as `20GiB`
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    budget: Option<Bytes>,
    /// Bytes of old files that one round may leave until VACUUM
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    storage_budget: Option<Bytes>,
    /// Measure drift with this plugin instead of the configuration's
    #[arg(long, value_name = "NAME")]
    meter: Option<String>,
    /// Distance above which to plan again (0.1 by default)
    #[arg(long, value_name = "DISTANCE")]
    threshold: Option<f64>,
}

#[derive(Debug, Serialize)]
struct RoundView {
    at: String,
    decision: &'static str,
    drift: Option<DriftView>,
    plan: Option<String>,
    tables: Vec<RewrittenView>,
}

#[derive(Debug, Serialize)]
struct RewrittenView {
    table: String,
    cluster_by: Vec<String>,
    cuts: Vec<u32>,
    version: u64,
    rewritten_bytes: u64,
    reads_before_bytes: u64,
    reads_predicted_bytes: u64,
    reads_achieved_bytes: u64,
    rows: Option<u64>,
}

pub(super) async fn run(
    pipeline: &mut Pipeline,
    arguments: Arguments,
    output: &mut Output,
) -> Result<(), Error> {
    let mut settings = pipeline.config.plan_settings()?;
    settings.rewrite_budget = arguments.budget.or(settings.rewrite_budget);
    settings.storage_budget = arguments.storage_budget.or(settings.storage_budget);
    let collect = arguments.sources.options();
    let every = arguments.every.or(collect.window_ms);
    if !arguments.once && every.is_none() {
        return Err(Error::Usage {
            what: "watch without knowing how often".to_owned(),
            help: "give --once, --window 7d or --every 1d".to_owned(),
        });
    }
    let options = WatchOptions {
        sources: arguments.sources.sources.clone(),
        collect,
        settings,
        threshold: arguments.threshold.unwrap_or(pipeline.config.drift.threshold),
        meter: arguments.meter.clone(),
    };
    loop {
        let seen = Box::pin(round(pipeline, &options)).await?;
        show(pipeline, &seen, output)?;
        let Some(every) = every.filter(|_| !arguments.once) else { return Ok(()) };
        tokio::time::sleep(Duration::from_millis(every)).await;
        pipeline.renew_time();
    }
}

fn show(pipeline: &Pipeline, seen: &Round, output: &mut Output) -> Result<(), Error> {
    let tables: Vec<RewrittenView> = seen
        .applied
        .iter()
        .zip(&seen.outcomes)
        .map(|(one, outcome)| RewrittenView {
            table: outcome.table.to_string(),
            cluster_by: one.action.to.cluster_by.clone(),
            cuts: one.action.to.cuts.clone(),
            version: one.optimized.version,
            rewritten_bytes: rewritten_bytes(&one.optimized).0,
            reads_before_bytes: outcome.reads_before.0,
            reads_predicted_bytes: outcome.reads_predicted.0,
            reads_achieved_bytes: outcome.reads_achieved.0,
            rows: outcome.rows,
        })
        .collect();
    if output.is_json() {
        let drift = seen.drift.as_ref().map(|(drift, meter)| DriftView::new(drift, meter));
        return output.document(&RoundView {
            at: pipeline.now.to_rfc3339(),
            decision: seen.decision.as_str(),
            drift,
            plan: seen.plan.as_ref().map(|plan| plan.id.clone()),
            tables,
        });
    }
    match seen.decision {
        Decision::Empty => output.line("no statement in the window: nothing to do")?,
        Decision::First => output.line("no earlier window to compare with: planning")?,
        Decision::Drifted | Decision::Stands => {}
    }
    if let Some((drift, _)) = &seen.drift {
        print_drift(drift, output)?;
    }
    if let Some(plan) = &seen.plan {
        print_plan(plan, output)?;
    }
    if tables.is_empty() {
        return Ok(());
    }
    let rows = tables
        .iter()
        .map(|view| {
            vec![
                view.table.clone(),
                Bytes(view.rewritten_bytes).to_string(),
                Bytes(view.reads_before_bytes).to_string(),
                Bytes(view.reads_predicted_bytes).to_string(),
                Bytes(view.reads_achieved_bytes).to_string(),
            ]
        })
        .collect();
    let header = [
        ("table", Align::Left),
        ("rewritten", Align::Right),
        ("window read", Align::Right),
        ("predicted", Align::Right),
        ("achieved", Align::Right),
    ];
    output.table(&header, rows)
}
