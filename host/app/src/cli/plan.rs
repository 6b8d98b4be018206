//! `lakebed plan SOURCE… [--budget SIZE] [--storage-budget SIZE] [--search NAME] [--tables …] [--out FILE]`

use std::path::PathBuf;

use clap::Args;
use lakebed_model::Bytes;
use lakebed_plan::LayoutPlan;

use super::{Output, Sources, output::parse_summary, parse_size};
use crate::{error::Error, pipeline::Pipeline, records};

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
    /// Search with this instead of the configuration's (`exact`, `seeded`, `greedy`)
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
    arguments.sources.check(&workload.report)?;
    let rows = pipeline.row_counts(&workload).await?;
    let graph = pipeline.graph(&workload, &rows, None).await?;
    let evidence = pipeline.evidence(&workload, &graph, &arguments.tables).await?;
    let search = arguments.search.as_deref();
    let plan = pipeline.plan(&graph, &workload, evidence, settings, search).await?;
    let view = records::plan_view(pipeline, &plan)?;
    if let Some(path) = &arguments.out {
        let text = serde_json::to_string_pretty(&view).map_err(std::io::Error::from)?;
        std::fs::write(path, text + "\n").map_err(|source| Error::File {
            action: "write plan",
            path: path.clone(),
            source,
        })?;
    }
    records::keep_plan(pipeline, &plan).await;
    if output.is_json() {
        return output.document(&view);
    }
    output.line(parse_summary(&workload.report))?;
    print_plan(&plan, output)
}

fn nothing_to_do(plan: &LayoutPlan) -> &'static str {
    if !plan.snapshot_versions.is_empty() {
        "nothing to do, for these reasons:"
    } else if plan.rejected.is_empty() {
        "nothing to do: no statement of the history reads a table"
    } else {
        "nothing to do: of the history's tables none could be planned for; \
         [lake] folder or --lake says where they lie"
    }
}

pub(super) fn print_plan(plan: &LayoutPlan, output: &mut Output) -> Result<(), Error> {
    if plan.actions.is_empty() {
        output.line(nothing_to_do(plan))?;
    }
    for action in &plan.actions {
        output.line(format!("• {}", action.because))?;
    }
    for rejection in &plan.rejected {
        let keys = rejection.to.keys();
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
