//! `lakebed sql STATEMENT…`

use arrow::{
    array::RecordBatch,
    json::{WriterBuilder, writer::LineDelimited},
    util::pretty::pretty_format_batches,
};
use clap::Args;
use lakebed_lake::DeltaLake;
use lakebed_layout::{
    AlterOutcome, BinReport, Lake, TableSnapshot, alter_clustering, optimize,
    statement::{Statement, TableReference},
};
use lakebed_model::TableName;
use serde_json::{Value, json};

use super::{Output, output::Align};
use crate::{
    error::Error,
    pipeline::{Extent, Pipeline},
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
    for text in &arguments.statements {
        match Statement::parse(text)? {
            Statement::Query { sql } => Box::pin(query(pipeline, &sql, output)).await?,
            Statement::ClusterBy { table, columns } => {
                let (lake, table) = resolve(pipeline, &table)?;
                cluster_by(pipeline, &lake, &table, &columns, output).await?;
            }
            Statement::Optimize { table, full } => {
                let (lake, table) = resolve(pipeline, &table)?;
                Box::pin(run_optimize(pipeline, &lake, &table, full, output)).await?;
            }
            Statement::DescribeDetail { table } => {
                let (lake, table) = resolve(pipeline, &table)?;
                describe_detail(&lake, &table, output).await?;
            }
            Statement::DescribeHistory { table } => {
                let (lake, table) = resolve(pipeline, &table)?;
                describe_history(&lake, &table, output).await?;
            }
        }
    }
    Ok(())
}

/// A table of the lake, or one given by its location.
fn resolve(pipeline: &Pipeline, table: &TableReference) -> Result<(DeltaLake, TableName), Error> {
    match table {
        TableReference::Name(name) => Ok((pipeline.lake.clone(), TableName::new(name))),
        TableReference::Location(location) => {
            let mut lake = pipeline.lake.clone();
            lake.add_table(location, location)?;
            Ok((lake, TableName::new(location)))
        }
    }
}

async fn query(pipeline: &Pipeline, sql: &str, output: &mut Output) -> Result<(), Error> {
    let answer = Box::pin(pipeline.lake.session().run(sql)).await?;
    let batches: Vec<&RecordBatch> = answer.batches.iter().collect();
    if output.is_json() {
        let mut writer =
            WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
        writer.write_batches(&batches).and_then(|()| writer.finish())?;
        let text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
        return if text.is_empty() { Ok(()) } else { output.line(text.trim_end()) };
    }
    let table = pretty_format_batches(&answer.batches)?;
    output.line(table.to_string())?;
    let cost = answer.cost;
    output.line(format!(
        "{} of {} files read, {}",
        cost.files_read,
        cost.files_total,
        lakebed_model::Bytes(cost.bytes_read)
    ))
}

async fn cluster_by(
    pipeline: &Pipeline,
    lake: &DeltaLake,
    table: &TableName,
    columns: &[String],
    output: &mut Output,
) -> Result<(), Error> {
    let outcome = alter_clustering(lake, table, columns, pipeline.now).await?;
    let (version, changed) = match outcome {
        AlterOutcome::Committed { version } => (version, true),
        AlterOutcome::Unchanged { version } => (version, false),
    };
    if output.is_json() {
        return output.document(&json!({
            "statement": "ALTER TABLE CLUSTER BY",
            "table": table.as_str(),
            "version": version,
            "changed": changed,
            "cluster_by": columns,
        }));
    }
    let keys = columns.join(", ");
    output.line(match (changed, columns.is_empty()) {
        (true, true) => format!("{table} has no clustering columns from version {version} on"),
        (true, false) => format!(
            "{table} is clustered by ({keys}) from version {version} on; OPTIMIZE lays out what is new, OPTIMIZE FULL all rows"
        ),
        (false, _) => format!("{table} had these clustering columns already (version {version})"),
    })
}

async fn run_optimize(
    pipeline: &Pipeline,
    lake: &DeltaLake,
    table: &TableName,
    full: bool,
    output: &mut Output,
) -> Result<(), Error> {
    let extent = if full { Extent::Full } else { Extent::Incremental };
    let options = pipeline.optimize_options(extent)?;
    let report = optimize(lake, lake, table, &options).await?;
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

async fn describe_detail(
    lake: &DeltaLake,
    table: &TableName,
    output: &mut Output,
) -> Result<(), Error> {
    let snapshot = lake.snapshot(table).await?;
    let detail = detail_view(&snapshot);
    if output.is_json() {
        return output.document(&detail);
    }
    let rows = detail
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| vec![name.clone(), plain(value)])
        .collect();
    output.table(&[("detail", Align::Left), ("value", Align::Left)], rows)
}

/// The columns of delta-spark's DESCRIBE DETAIL, as far as the log tells them.
fn detail_view(snapshot: &TableSnapshot) -> Value {
    let protocol = &snapshot.protocol;
    let mut features: Vec<&String> = protocol
        .reader_features
        .iter()
        .flatten()
        .chain(protocol.writer_features.iter().flatten())
        .collect();
    features.sort();
    features.dedup();
    json!({
        "statement": "DESCRIBE DETAIL",
        "format": "delta",
        "table": snapshot.table.as_str(),
        "version": snapshot.version,
        "location": snapshot.location,
        "partitionColumns": snapshot.partition_columns,
        "clusteringColumns": snapshot.cluster_by(),
        "numFiles": snapshot.files.len(),
        "sizeInBytes": snapshot.bytes().0,
        "numRecords": snapshot.rows(),
        "properties": snapshot.properties,
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "tableFeatures": features,
    })
}

async fn describe_history(
    lake: &DeltaLake,
    table: &TableName,
    output: &mut Output,
) -> Result<(), Error> {
    let history = lake.commit_infos(table).await?;
    if output.is_json() {
        let entries: Vec<Value> = history
            .into_iter()
            .map(|(version, info)| json!({"version": version, "commitInfo": info}))
            .collect();
        return output.document(&json!({
            "statement": "DESCRIBE HISTORY", "table": table.as_str(), "history": entries,
        }));
    }
    let text = |info: &Value, key: &str| info.get(key).map(plain).unwrap_or_default();
    let rows = history
        .iter()
        .map(|(version, info)| {
            let at = info
                .get("timestamp")
                .and_then(Value::as_i64)
                .map_or(String::new(), |ms| lakebed_model::Instant::from_epoch_ms(ms).to_rfc3339());
            vec![
                version.to_string(),
                at,
                text(info, "operation"),
                text(info, "operationParameters"),
                text(info, "engineInfo"),
            ]
        })
        .collect();
    let header = [
        ("version", Align::Right),
        ("timestamp", Align::Left),
        ("operation", Align::Left),
        ("parameters", Align::Left),
        ("engine", Align::Left),
    ];
    output.table(&header, rows)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name}={}", plain(value)))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}
