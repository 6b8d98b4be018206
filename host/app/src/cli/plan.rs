//! `lakebed plan SOURCE… [--budget SIZE] [--storage-budget SIZE] [--search NAME] [--tables …] [--out FILE]`

use std::{path::PathBuf, sync::Arc};

use arrow::{
    array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray},
    datatypes::{DataType, Field, Schema, TimeUnit},
};
use clap::Args;
use lakebed_lake::RecordTable;
use lakebed_model::Bytes;
use lakebed_plan::LayoutPlan;

use super::{Output, Sources, output::parse_summary, parse_size};
use crate::{error::Error, pipeline::Pipeline, view::PlanView};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    sources: Sources,
    /// Bytes that may be rewritten, such as `20GiB`
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    budget: Option<Bytes>,
    /// Bytes of old files that may be left until VACUUM
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    storage_budget: Option<Bytes>,
    /// Search with this instead of the configuration's (`exact`, `greedy`)
    #[arg(long, value_name = "NAME")]
    search: Option<String>,
    /// Plan for these tables only
    #[arg(long, value_name = "TABLE", value_delimiter = ',')]
    tables: Vec<String>,
    /// Write the plan to this file, for `lakebed apply`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) async fn run(
    pipeline: &Pipeline,
    arguments: Arguments,
    output: &mut Output,
) -> Result<(), Error> {
    let mut settings = pipeline.config.plan_settings()?;
    settings.rewrite_budget = arguments.budget.or(settings.rewrite_budget);
    settings.storage_budget = arguments.storage_budget.or(settings.storage_budget);
    let workload =
        pipeline.collect(&arguments.sources.sources, &arguments.sources.options()).await?;
    let rows = pipeline.row_counts(&workload).await?;
    let graph = pipeline.graph(&workload, &rows, None).await?;
    let mut evidence = pipeline.evidence(&workload, &graph).await?;
    if !arguments.tables.is_empty() {
        check_tables(pipeline, &arguments.tables)?;
        evidence.retain(|table| arguments.tables.iter().any(|name| name == table.table.as_str()));
    }
    let search = arguments.search.as_deref();
    let plan = pipeline.plan(&graph, &workload, evidence, settings, search).await?;
    let view = view(pipeline, &plan)?;
    if let Some(path) = &arguments.out {
        let text = serde_json::to_string_pretty(&view).map_err(std::io::Error::from)?;
        std::fs::write(path, text + "\n").map_err(|source| Error::File {
            action: "write plan",
            path: path.clone(),
            source,
        })?;
    }
    record(pipeline, &view).await?;
    if output.is_json() {
        return output.document(&view);
    }
    output.line(parse_summary(&workload.report))?;
    print_plan(&plan, output)
}

fn check_tables(pipeline: &Pipeline, tables: &[String]) -> Result<(), Error> {
    for name in tables {
        pipeline
            .lake
            .location(&lakebed_model::TableName::new(name))
            .map_err(lakebed_lake::LakeError::from)?;
    }
    Ok(())
}

/// Shows a plan with the formulas that made it.
pub(super) fn view(pipeline: &Pipeline, plan: &LayoutPlan) -> Result<PlanView, Error> {
    let scorer = pipeline.plugins.scorer(None)?;
    let cost = pipeline.plugins.cost_model()?;
    Ok(PlanView::new(plan, &[scorer.plugin(), cost.plugin()]))
}

/// Keeps the plan under `_lakebed/plans`, when the lake is a folder that can be written.
async fn record(pipeline: &Pipeline, view: &PlanView) -> Result<(), Error> {
    let Some(folder) = &pipeline.config.lake.folder else { return Ok(()) };
    let folder = pipeline.config.resolve(folder);
    let text = serde_json::to_string(view).map_err(std::io::Error::from)?;
    let schema = Schema::new(vec![
        Field::new("id", DataType::Utf8, true),
        Field::new("made_at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        Field::new("plan", DataType::Utf8, true),
    ]);
    let made_at = pipeline.now.epoch_ms() * 1_000;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![view.id.as_str()])),
        Arc::new(TimestampMicrosecondArray::from(vec![made_at]).with_timezone("UTC")),
        Arc::new(StringArray::from(vec![text])),
    ];
    let batch = RecordBatch::try_new(Arc::new(schema), columns)
        .map_err(|error| Error::Output(std::io::Error::other(error)))?;
    let folder = folder.to_string_lossy();
    if let Err(error) = pipeline.lake.record(&folder, RecordTable::Plans, batch, pipeline.now).await
    {
        tracing::warn!(%error, "plan not kept under _lakebed/plans");
    }
    Ok(())
}

pub(super) fn print_plan(plan: &LayoutPlan, output: &mut Output) -> Result<(), Error> {
    if plan.actions.is_empty() {
        output.line("nothing to do: no layout is worth its rewrite")?;
    }
    for action in &plan.actions {
        output.line(format!("• {}", action.because))?;
    }
    for rejection in &plan.rejected {
        let keys = rejection.to.cluster_by.join(", ");
        let keys = if keys.is_empty() { String::new() } else { format!(" by ({keys})") };
        output.line(format!("– not {}{keys}: {}", rejection.table, rejection.why))?;
    }
    let quality = if plan.proven {
        "no other choice of these candidates is better".to_owned()
    } else {
        format!("at most {:.1} % below the best", plan.gap * 100.0)
    };
    output.line(format!("plan {} by search `{}`: {quality}", plan.id, plan.search))
}
