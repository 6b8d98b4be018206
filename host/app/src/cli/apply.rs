//! `lakebed apply [PLAN] [--dry-run] [--emit spark-sql]`

use std::{
    io::{Read, stdin},
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use lakebed_layout::cuts::Cuts;
use lakebed_model::Bytes;
use lakebed_plan::PlannedAction;
use serde::Serialize;
use serde_json::json;

use super::{Output, output::Align};
use crate::{
    error::Error,
    pipeline::{AppliedAction, Pipeline, quoted, rewritten_bytes},
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
    /// Whether every table of the plan is in `tables`.
    complete: bool,
    tables: Vec<AppliedView>,
}

#[derive(Debug, Serialize)]
struct AppliedView {
    table: String,
    cluster_by: Vec<String>,
    cuts: Vec<u32>,
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
    let budgets = plan.budgets();
    let actions: Vec<PlannedAction> = plan.actions.into_iter().map(Into::into).collect();
    check_layouts(&actions)?;
    if let Some(Dialect::SparkSql) = arguments.emit {
        let statements: Vec<String> = actions.iter().flat_map(spark_sql).collect();
        if output.is_json() {
            return output.document(&json!({"plan": id, "statements": statements}));
        }
        return statements.iter().try_for_each(|statement| output.line(format!("{statement};")));
    }
    let sizes = pipeline.check(&actions).await?;
    let needed: Bytes = sizes.iter().copied().sum();
    for (budget, limit) in budgets {
        if let Some(limit) = limit.filter(|limit| needed > *limit) {
            return Err(Error::OverBudget { needed, budget, limit });
        }
    }
    if arguments.dry_run {
        return print_dry_run(id, &actions, &sizes, output);
    }
    let mut applied = Vec::new();
    let done = pipeline.apply(&actions, &mut applied).await;
    if output.is_json() {
        let tables = applied.iter().map(AppliedView::from).collect();
        let complete = done.is_ok();
        output.document(&ApplyView { plan: id, dry_run: false, complete, tables })?;
        return done;
    }
    print_applied(&applied, output)?;
    if done.is_err() {
        output.line(format!(
            "{} of {} tables are done; the plan can be applied again",
            applied.len(),
            actions.len()
        ))?;
    }
    done
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

/// A plan may have been edited by hand.
fn check_layouts(actions: &[PlannedAction]) -> Result<(), Error> {
    for action in actions {
        let table = &action.table;
        let fault = if action.to.cluster_by.is_empty() {
            "has no clustering columns"
        } else if !action.to.partition_by.is_empty() {
            "partitions, which a clustered table cannot be"
        } else if Cuts::checked(table.as_str(), &action.to.cluster_by, &action.to.cuts).is_err() {
            "has other cuts than one number above 0 for each of two to four columns"
        } else {
            continue;
        };
        return Err(Error::Usage {
            what: format!("apply the plan to table `{table}`: its layout {fault}"),
            help: "set cluster_by and cuts of the action's `to`, or plan again".to_owned(),
        });
    }
    Ok(())
}

/// `OPTIMIZE … FULL` because a change of keys alone leaves old files as they are.
fn spark_sql(action: &PlannedAction) -> [String; 3] {
    let columns: Vec<String> = action.to.cluster_by.iter().map(|column| quoted(column)).collect();
    let table = quoted(action.table.as_str());
    // A comment of a statement, not a statement of its own, which Spark would refuse.
    let note = if action.to.cuts.is_empty() {
        String::new()
    } else {
        format!(
            "-- planned as ({}); Spark cannot cut and gives all columns the same resolution\n",
            action.to.keys()
        )
    };
    [
        format!("{note}ALTER TABLE {table} CLUSTER BY ({})", columns.join(", ")),
        format!("OPTIMIZE {table} FULL"),
        format!("ANALYZE TABLE {table} COMPUTE STATISTICS"),
    ]
}

fn print_dry_run(
    plan: String,
    actions: &[PlannedAction],
    sizes: &[Bytes],
    output: &mut Output,
) -> Result<(), Error> {
    let actions = actions.iter().zip(sizes);
    if output.is_json() {
        let tables = actions
            .map(|(action, size)| AppliedView {
                table: action.table.to_string(),
                cluster_by: action.to.cluster_by.clone(),
                cuts: action.to.cuts.clone(),
                version: None,
                files_in: 0,
                files_out: 0,
                rewritten_bytes: size.0,
            })
            .collect();
        return output.document(&ApplyView { plan, dry_run: true, complete: true, tables });
    }
    for (action, size) in actions {
        output.line(format!("would rewrite {size} — {}", action.because))?;
    }
    Ok(())
}

impl From<&AppliedAction> for AppliedView {
    fn from(applied: &AppliedAction) -> Self {
        let bins = &applied.optimized.bins;
        Self {
            table: applied.action.table.to_string(),
            cluster_by: applied.action.to.cluster_by.clone(),
            cuts: applied.action.to.cuts.clone(),
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
                one.action.to.keys(),
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
