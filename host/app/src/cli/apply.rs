//! `lakebed apply [PLAN] [--dry-run] [--emit spark-sql]`

use std::{
    io::{Read, stdin},
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use lakebed_plan::PlannedAction;
use serde::Serialize;

use super::{Output, output::Align};
use crate::{
    error::Error,
    pipeline::{AppliedAction, Pipeline, rewritten_bytes},
    view::PlanView,
};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A plan written by `lakebed plan --out` or `--json`; standard input without it
    #[arg(value_name = "PLAN")]
    plan: Option<PathBuf>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the statements for another engine instead of running them
    #[arg(long, value_enum, value_name = "DIALECT")]
    emit: Option<Dialect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Dialect {
    /// Spark SQL for Delta 3.3 and later
    SparkSql,
}

#[derive(Debug, Serialize)]
struct ApplyView {
    plan: String,
    dry_run: bool,
    tables: Vec<AppliedView>,
}

#[derive(Debug, Serialize)]
struct AppliedView {
    table: String,
    cluster_by: Vec<String>,
    version: Option<u64>,
    files_in: u64,
    files_out: u64,
    rewritten_bytes: u64,
}

pub(super) async fn run(
    pipeline: &Pipeline,
    arguments: Arguments,
    output: &mut Output,
) -> Result<(), Error> {
    let plan = read_plan(arguments.plan.as_deref())?;
    let id = plan.id.clone();
    let actions: Vec<PlannedAction> = plan.actions.into_iter().map(Into::into).collect();
    if let Some(Dialect::SparkSql) = arguments.emit {
        for action in &actions {
            output.line(spark_sql(action))?;
        }
        return Ok(());
    }
    if arguments.dry_run {
        return print_dry_run(pipeline, id, &actions, output);
    }
    let applied = pipeline.apply(&actions).await?;
    if output.is_json() {
        let tables = applied.iter().map(AppliedView::from).collect();
        return output.document(&ApplyView { plan: id, dry_run: false, tables });
    }
    print_applied(&applied, output)
}

fn read_plan(path: Option<&std::path::Path>) -> Result<PlanView, Error> {
    let (path, text) = match path {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|source| Error::File {
                action: "read plan",
                path: path.to_owned(),
                source,
            })?;
            (path.to_owned(), text)
        }
        None => {
            let mut text = String::new();
            stdin().lock().read_to_string(&mut text)?;
            (PathBuf::from("-"), text)
        }
    };
    serde_json::from_str(&text)
        .map_err(|error| Error::Content { path, reason: format!("not a plan: {error}") })
}

/// `OPTIMIZE … FULL` because a change of keys alone leaves old files as they are.
fn spark_sql(action: &PlannedAction) -> String {
    let columns: Vec<String> = action.to.cluster_by.iter().map(|column| quoted(column)).collect();
    let table = quoted(action.table.as_str());
    format!(
        "ALTER TABLE {table} CLUSTER BY ({});\nOPTIMIZE {table} FULL;\nANALYZE TABLE {table} COMPUTE STATISTICS;",
        columns.join(", ")
    )
}

fn quoted(name: &str) -> String {
    name.split('.')
        .map(|part| format!("`{}`", part.replace('`', "``")))
        .collect::<Vec<_>>()
        .join(".")
}

fn print_dry_run(
    pipeline: &Pipeline,
    plan: String,
    actions: &[PlannedAction],
    output: &mut Output,
) -> Result<(), Error> {
    for action in actions {
        pipeline.lake.location(&action.table)?;
    }
    if output.is_json() {
        let tables = actions
            .iter()
            .map(|action| AppliedView {
                table: action.table.to_string(),
                cluster_by: action.to.cluster_by.clone(),
                version: None,
                files_in: 0,
                files_out: 0,
                rewritten_bytes: action.rewrite_bytes.0,
            })
            .collect();
        return output.document(&ApplyView { plan, dry_run: true, tables });
    }
    for action in actions {
        output.line(format!("would rewrite {} — {}", action.rewrite_bytes, action.because))?;
    }
    Ok(())
}

impl From<&AppliedAction> for AppliedView {
    fn from(applied: &AppliedAction) -> Self {
        let bins = &applied.optimized.bins;
        Self {
            table: applied.action.table.to_string(),
            cluster_by: applied.action.to.cluster_by.clone(),
            version: Some(applied.optimized.version),
            files_in: bins.iter().map(|bin| bin.files_in).sum(),
            files_out: bins.iter().map(|bin| bin.files_out).sum(),
            rewritten_bytes: rewritten_bytes(&applied.optimized).0,
        }
    }
}

fn print_applied(applied: &[AppliedAction], output: &mut Output) -> Result<(), Error> {
    let rows = applied
        .iter()
        .map(|one| {
            let view = AppliedView::from(one);
            vec![
                view.table,
                view.cluster_by.join(", "),
                view.files_in.to_string(),
                view.files_out.to_string(),
                rewritten_bytes(&one.optimized).to_string(),
                view.version.map_or(String::new(), |version| version.to_string()),
            ]
        })
        .collect();
    let header = [
        ("table", Align::Left),
        ("clustered by", Align::Left),
        ("files in", Align::Right),
        ("files out", Align::Right),
        ("rewritten", Align::Right),
        ("version", Align::Right),
    ];
    output.table(&header, rows)
}
