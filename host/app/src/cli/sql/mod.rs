//! `lakebed sql STATEMENT…`

mod change;
mod describe;
mod settings;

use std::collections::BTreeMap;

use arrow::{
    array::RecordBatch,
    json::{WriterBuilder, writer::LineDelimited},
    util::pretty::pretty_format_batches,
};
use clap::Args;
use lakebed_lake::{DeleteClause, DeltaLake, ScanCost};
use lakebed_layout::{
    BinReport, Lake, optimize,
    statement::{OptimizeClauses, Statement, TableReference},
};
use lakebed_model::TableName;
use serde_json::{Value, json};

use super::Output;
use crate::{
    error::Error,
    pipeline::{Extent, Pipeline},
    records::{OwnStatement, keep_statement},
};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Statements, run one after the other
    #[arg(required = true, value_name = "STATEMENT")]
    statements: Vec<String>,
}

pub(super) async fn run(
    pipeline: &Pipeline,
    arguments: Arguments,
    output: &mut Output,
) -> Result<(), Error> {
    // What one statement creates the next one must find.
    let mut pipeline = pipeline.clone();
    for (index, text) in arguments.statements.iter().enumerate() {
        pipeline.renew_time();
        let statement = Statement::parse(text)?;
        let kind = workload_kind(&statement);
        let start_ms = pipeline.lake.monotonic_ms();
        let outcome = Box::pin(run_one(&mut pipeline, statement, output)).await;
        if let Some(kind) = kind {
            let reads = outcome.as_ref().ok();
            let own = OwnStatement {
                sql: text,
                kind,
                id: format!("{}-{}-{index}", pipeline.now.epoch_ms(), std::process::id()),
                started_at: pipeline.now,
                duration_ms: pipeline.lake.monotonic_ms().saturating_sub(start_ms),
                finished: outcome.is_ok(),
                cost: reads.and_then(|reads| reads.cost),
                versions: reads.map(|reads| reads.versions.clone()).unwrap_or_default(),
            };
            Box::pin(keep_statement(&pipeline, own)).await;
        }
        outcome?;
    }
    Ok(())
}

/// What a statement read, where that is measured.
#[derive(Debug, Default)]
struct Reads {
    cost: Option<ScanCost>,
    versions: BTreeMap<String, u64>,
}

/// Tells what a statement does if it reads rows for somebody: only these are a workload.
fn workload_kind(statement: &Statement) -> Option<&'static str> {
    match statement {
        Statement::Query { .. } => Some("SELECT"),
        Statement::Insert { query, .. } if !is_values(query) => Some("INSERT"),
        Statement::Delete { .. } => Some("DELETE"),
        Statement::CreateTable { create, .. } if create.query.is_some() => Some("CREATE TABLE AS"),
        _ => None,
    }
}

/// Rows that stand in the statement are read from nowhere, and are nobody's business.
fn is_values(query: &str) -> bool {
    let first = query.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty());
    first.is_some_and(|word| word.eq_ignore_ascii_case("VALUES"))
}

async fn run_one(
    pipeline: &mut Pipeline,
    statement: Statement,
    output: &mut Output,
) -> Result<Reads, Error> {
    match statement {
        Statement::Query { sql } => return query(pipeline, &sql, output).await,
        Statement::CreateTable { table, create } => {
            change::create_table(pipeline, &table, *create, output).await?;
        }
        Statement::ClusterBy { table, columns } => {
            let (lake, table) = resolve(pipeline, &table)?;
            change::cluster_by(pipeline, &lake, &table, &columns, output).await?;
        }
        Statement::SetProperties { table, properties } => {
            let (lake, table) = resolve(pipeline, &table)?;
            change::set_properties(pipeline, &lake, &table, &properties, output).await?;
        }
        Statement::DropColumn { table, column } => {
            let (lake, table) = resolve(pipeline, &table)?;
            change::drop_column(&lake, &table, &column).await?;
        }
        Statement::Insert { table, columns, query } => {
            let (lake, table) = resolve(pipeline, &table)?;
            change::insert(pipeline, &lake, &table, columns.as_deref(), &query, output).await?;
        }
        Statement::Delete { table, alias, predicate } => {
            let (lake, table) = resolve(pipeline, &table)?;
            let clause = DeleteClause { alias: alias.as_deref(), predicate: predicate.as_deref() };
            change::delete(pipeline, &lake, &table, clause, output).await?;
        }
        Statement::Analyze { table } => {
            let (lake, table) = resolve(pipeline, &table)?;
            change::analyze(pipeline, &lake, &table, output).await?;
        }
        Statement::Optimize { table, clauses } => {
            let (lake, table) = resolve(pipeline, &table)?;
            run_optimize(pipeline, &lake, &table, &clauses, output).await?;
        }
        Statement::Vacuum { table, retain_hours, dry_run } => {
            let (lake, table) = resolve(pipeline, &table)?;
            change::vacuum(pipeline, &lake, &table, retain_hours, dry_run, output).await?;
        }
        Statement::Set { key, value } => settings::set(pipeline, key.as_deref(), value, output)?,
        Statement::Reset { key } => settings::reset(pipeline, key.as_deref(), output)?,
        Statement::DescribeDetail { table } => {
            let (lake, table) = resolve(pipeline, &table)?;
            describe::detail(&lake, &table, output).await?;
        }
        Statement::DescribeHistory { table } => {
            let (lake, table) = resolve(pipeline, &table)?;
            describe::history(&lake, &table, output).await?;
        }
    }
    Ok(Reads::default())
}

/// A table of the lake, or one given by its location.
fn resolve(pipeline: &Pipeline, table: &TableReference) -> Result<(DeltaLake, TableName), Error> {
    match table {
        TableReference::Name(name) => Ok((pipeline.lake.clone(), pipeline.lake.named(name))),
        TableReference::Location(location) => {
            let mut lake = pipeline.lake.clone();
            lake.add_table(location, location)?;
            Ok((lake, TableName::new(location)))
        }
    }
}

async fn query(pipeline: &Pipeline, sql: &str, output: &mut Output) -> Result<Reads, Error> {
    let answer = Box::pin(pipeline.lake.session().run(sql)).await?;
    let reads = Reads { cost: Some(answer.cost), versions: answer.versions };
    let batches: Vec<&RecordBatch> = answer.batches.iter().collect();
    if output.is_json() {
        let mut writer =
            WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
        writer.write_batches(&batches).and_then(|()| writer.finish())?;
        let text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
        if !text.is_empty() {
            output.line(text.trim_end())?;
        }
        return Ok(reads);
    }
    let table = pretty_format_batches(&answer.batches)?;
    output.line(table.to_string())?;
    let cost = answer.cost;
    let ruled_out = match cost.row_groups_ruled_out {
        0 => String::new(),
        groups => format!("; Bloom filters ruled {groups} row groups out"),
    };
    output.line(format!(
        "{} of {} files read, {}{ruled_out}",
        cost.files_read,
        cost.files_total,
        lakebed_model::Bytes(cost.bytes_read)
    ))?;
    Ok(reads)
}

async fn run_optimize(
    pipeline: &Pipeline,
    lake: &DeltaLake,
    table: &TableName,
    clauses: &OptimizeClauses,
    output: &mut Output,
) -> Result<(), Error> {
    clauses.check(table)?;
    let extent = if clauses.full { Extent::Full } else { Extent::Incremental };
    let options = pipeline.optimize_options(extent)?;
    let rows = pipeline.progress.rewrites(lake.meter());
    let report = optimize(lake, lake, table, &options).await?;
    drop(rows);
    if output.is_json() {
        let bins: Vec<Value> = report.bins.iter().map(bin_view).collect();
        return output.document(&json!({
            "statement": "OPTIMIZE",
            "table": table.as_str(),
            "version": report.version,
            "bins": bins,
        }));
    }
    if report.bins.is_empty() {
        return output.line(format!("{table}: nothing to do (version {})", report.version));
    }
    for bin in &report.bins {
        let reasons: Vec<String> =
            bin.reasons.iter().map(|(reason, n)| format!("{n} {}", reason.as_str())).collect();
        output.line(format!(
            "{table}: {} files ({}) became {} files ({}) in version {}: {}",
            bin.files_in,
            bin.bytes_in,
            bin.files_out,
            bin.bytes_out,
            bin.version,
            reasons.join(", ")
        ))?;
    }
    Ok(())
}

fn bin_view(bin: &BinReport) -> Value {
    let mut reasons = json!({
        "unclustered": 0, "small": 0, "deleted_rows": 0, "overlap": 0, "stale_keys": 0,
        "other_provider": 0, "oversized": 0, "open_cube": 0,
    });
    for (reason, count) in &bin.reasons {
        reasons[reason.as_str()] = json!(count);
    }
    json!({
        "files_in": bin.files_in,
        "bytes_in": bin.bytes_in.0,
        "files_out": bin.files_out,
        "bytes_out": bin.bytes_out.0,
        "reasons": reasons,
        "cube": bin.cube,
        "version": bin.version,
        "ms": bin.elapsed_ms,
    })
}
