//! `lakebed collect SOURCE… [--format F] [--since 7d] [--into LAKE]`

use std::{path::PathBuf, sync::Arc};

use arrow::{
    array::{
        ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    },
    datatypes::{DataType, Field, Schema, TimeUnit},
};
use clap::Args;
use lakebed_collect::CollectOptions;
use lakebed_lake::RecordTable;
use lakebed_model::Workload;

use super::{Output, output::parse_summary, parse_window};
use crate::{error::Error, pipeline::Pipeline, view::RecordView};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Query logs: Spark event logs (files or eventlog_v2_… folders) or JSON lines
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<PathBuf>,
    /// Read the logs as this format instead of recognizing it
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Keep the statements of this long before the newest one, such as `7d`
    #[arg(long, value_name = "DURATION", value_parser = parse_window)]
    since: Option<u64>,
    /// Append the records to the history table of the lake in this folder
    #[arg(long, value_name = "LAKE")]
    into: Option<PathBuf>,
}

pub(super) async fn run(
    pipeline: &Pipeline,
    arguments: Arguments,
    output: &mut Output,
) -> Result<(), Error> {
    let options = CollectOptions { format: arguments.format, window_ms: arguments.since };
    let workload = pipeline.collect(&arguments.sources, &options).await?;
    if let Some(folder) = &arguments.into {
        let records = history_batch(&workload)?;
        let folder = folder.to_string_lossy();
        let version =
            pipeline.lake.record(&folder, RecordTable::History, records, pipeline.now).await?;
        if !output.is_json() {
            output.line(format!(
                "{} records appended to {folder}/_lakebed/history (version {version})",
                workload.records.len()
            ))?;
        }
    } else if output.is_json() {
        for record in &workload.records {
            output.json_line(&RecordView::from(record))?;
        }
    } else {
        for record in &workload.records {
            output.line(summary(record))?;
        }
    }
    if output.is_json() {
        tracing::warn!("{}", parse_summary(&workload.report));
        return Ok(());
    }
    output.line(parse_summary(&workload.report))
}

fn summary(record: &lakebed_model::QueryRecord) -> String {
    let tables: Vec<String> = record
        .scans
        .iter()
        .filter_map(|scan| {
            let table = scan.table.as_ref()?;
            let files = scan.files_read.map_or(String::new(), |files| format!(" ({files} files)"));
            Some(format!("{table}{files}"))
        })
        .collect();
    format!(
        "{} {:>6} ms  {} joins  {}",
        record.started_at.to_rfc3339(),
        record.duration_ms.map_or("?".to_owned(), |ms| ms.to_string()),
        record.joins.len(),
        tables.join(", ")
    )
}

/// One row per statement; joins and scans as JSON text.
fn history_batch(workload: &Workload) -> Result<RecordBatch, Error> {
    let views: Vec<RecordView> = workload.records.iter().map(RecordView::from).collect();
    let json = |value: Result<String, serde_json::Error>| value.unwrap_or_default();
    let started = workload.records.iter().map(|r| r.started_at.epoch_ms() * 1_000);
    let text = |values: Vec<Option<String>>| Arc::new(StringArray::from(values)) as ArrayRef;
    let columns: Vec<ArrayRef> = vec![
        text(views.iter().map(|v| Some(v.id.clone())).collect()),
        Arc::new(TimestampMicrosecondArray::from_iter_values(started).with_timezone("UTC")),
        text(views.iter().map(|v| Some(v.source.clone())).collect()),
        text(views.iter().map(|v| v.sql.clone()).collect()),
        text(views.iter().map(|v| Some(v.fingerprint.clone())).collect()),
        Arc::new(Int64Array::from_iter(
            views.iter().map(|v| v.duration_ms.and_then(|ms| i64::try_from(ms).ok())),
        )),
        text(views.iter().map(|v| Some(v.status.to_owned())).collect()),
        text(views.iter().map(|v| Some(json(serde_json::to_string(&v.joins)))).collect()),
        text(views.iter().map(|v| Some(json(serde_json::to_string(&v.scans)))).collect()),
        Arc::new(Float64Array::from_iter_values(views.iter().map(|v| v.confidence))),
    ];
    let utf8 = |name: &str| Field::new(name, DataType::Utf8, true);
    let schema = Schema::new(vec![
        utf8("id"),
        Field::new(
            "started_at",
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            true,
        ),
        utf8("source"),
        utf8("sql"),
        utf8("fingerprint"),
        Field::new("duration_ms", DataType::Int64, true),
        utf8("status"),
        utf8("joins"),
        utf8("scans"),
        Field::new("confidence", DataType::Float64, true),
    ]);
    RecordBatch::try_new(Arc::new(schema), columns)
        .map_err(|error| Error::Output(std::io::Error::other(error)))
}
