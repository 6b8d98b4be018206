//! `lakebed collect SOURCE… [--format F] [--since 7d] [--into LAKE]`

use std::path::PathBuf;

use clap::Args;
use lakebed_model::Workload;
use serde_json::json;

use super::{Output, Sources, output::parse_summary};
use crate::{
    error::Error,
    pipeline::Pipeline,
    records,
    view::{ParseView, RecordView},
};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    sources: Sources,
    /// Append the records to the history table of the lake in this folder
    #[arg(long, value_name = "LAKE")]
    into: Option<PathBuf>,
}

pub(super) async fn run(
    pipeline: &Pipeline,
    arguments: Arguments,
    output: &mut Output,
) -> Result<(), Error> {
    let sources = &arguments.sources;
    let workload = pipeline.collect(&sources.sources, &sources.options()).await?;
    print(pipeline, &arguments, &workload, output).await?;
    sources.check(&workload.report)
}

async fn print(
    pipeline: &Pipeline,
    arguments: &Arguments,
    workload: &Workload,
    output: &mut Output,
) -> Result<(), Error> {
    let parse = ParseView::from(&workload.report);
    if let Some(folder) = &arguments.into {
        let version = records::append_history(pipeline, folder, workload).await?;
        let table = folder.join("_lakebed").join("history");
        let (table, records) = (table.display().to_string(), workload.records.len());
        if output.is_json() {
            return output.document(&json!({
                "table": table, "version": version, "records": records, "parse": parse,
            }));
        }
        output.line(format!("{records} records appended to {table} (version {version})"))?;
        return output.line(parse_summary(&workload.report));
    }
    if output.is_json() {
        for record in &workload.records {
            output.json_line(&RecordView::from(record))?;
        }
        return output.json_line(&json!({ "parse": parse }));
    }
    for record in &workload.records {
        output.line(summary(record))?;
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
