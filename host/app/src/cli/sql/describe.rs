//! DESCRIBE DETAIL and DESCRIBE HISTORY.

use lakebed_lake::DeltaLake;
use lakebed_layout::{Lake, TableSnapshot};
use lakebed_model::TableName;
use serde_json::{Value, json};

use crate::{
    cli::output::{Align, Output},
    error::Error,
};

pub(super) async fn detail(
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
    let mut detail = json!({
        "statement": "DESCRIBE DETAIL",
        "format": "delta",
        "table": snapshot.table.as_str(),
        "version": snapshot.version,
        "location": snapshot.location,
        "partitionColumns": snapshot.partition_columns,
        "clusteringColumns": snapshot.cluster_by(),
        "lakebedCuts": cuts(snapshot),
        "numFiles": snapshot.files.len(),
        "sizeInBytes": snapshot.bytes().0,
        "numRecords": snapshot.rows(),
        "properties": snapshot.properties,
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "tableFeatures": features,
    });
    if let Some(reason) = snapshot.ignored_cuts() {
        detail["lakebedCutsIgnored"] = json!(reason);
    }
    detail
}

/// A row of our own: the parts of each clustering column, the outermost first.
fn cuts(snapshot: &TableSnapshot) -> Value {
    let cuts =
        snapshot.cuts().into_iter().flat_map(|cuts| cuts.columns.into_iter().zip(cuts.parts));
    cuts.map(|(column, parts)| json!({ "column": column, "parts": parts })).collect()
}

pub(super) async fn history(
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
