//! Lakebed's own records: history, plans and drift, kept as Delta tables under `_lakebed/` of the
//! lake's folder.
//!
//! A record that cannot be kept is a warning: the work it tells of is done.

use std::{path::Path, sync::Arc};

use arrow::{
    array::{
        ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
        TimestampMicrosecondArray,
    },
    datatypes::{DataType, Field, Schema, TimeUnit},
    error::ArrowError,
};
use lakebed_graph::DriftReport;
use lakebed_lake::RecordTable;
use lakebed_model::Workload;
use lakebed_plan::LayoutPlan;

use crate::{
    error::Error,
    pipeline::Pipeline,
    view::{PlanView, RecordView},
};

/// Appends a history's statements to the history table of the lake in a folder.
///
/// # Errors
/// Fails when the table cannot be written.
pub async fn append_history(
    pipeline: &Pipeline,
    folder: &Path,
    workload: &Workload,
) -> Result<u64, Error> {
    let records = history_batch(workload)?;
    let folder = folder.to_string_lossy();
    Ok(pipeline.lake.record(&folder, RecordTable::History, records, pipeline.now).await?)
}

/// Keeps a history, when the lake is a folder.
pub async fn keep_history(pipeline: &Pipeline, workload: &Workload) {
    keep(pipeline, RecordTable::History, history_batch(workload)).await;
}

/// Keeps a plan, when the lake is a folder.
pub async fn keep_plan(pipeline: &Pipeline, plan: &LayoutPlan) {
    match plan_view(pipeline, plan) {
        Ok(view) => keep(pipeline, RecordTable::Plans, plan_batch(pipeline, &view)).await,
        Err(error) => tracing::warn!(%error, "plan not kept"),
    }
}

/// Keeps a measurement, when the lake is a folder.
pub async fn keep_drift(pipeline: &Pipeline, report: &DriftReport) {
    keep(pipeline, RecordTable::Drift, drift_batch(pipeline, report)).await;
}

/// Shows a plan with the formulas that made it.
///
/// # Errors
/// Fails when a formula cannot be loaded.
pub fn plan_view(pipeline: &Pipeline, plan: &LayoutPlan) -> Result<PlanView, Error> {
    let scorer = pipeline.plugins.scorer(None)?;
    let cost = pipeline.plugins.cost_model()?;
    Ok(PlanView::new(plan, &[scorer.plugin(), cost.plugin()]))
}

async fn keep(pipeline: &Pipeline, table: RecordTable, records: Result<RecordBatch, ArrowError>) {
    let Some(folder) = pipeline.config.lake_folder() else { return };
    let kept = match records {
        Ok(records) => {
            let kept = pipeline.lake.record(&folder, table, records, pipeline.now).await;
            kept.map(drop).map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = kept {
        tracing::warn!(error, table = table.as_str(), "record not kept under _lakebed");
    }
}

fn instant(name: &str) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true)
}

fn now(pipeline: &Pipeline) -> ArrayRef {
    let micros = pipeline.now.epoch_ms() * 1_000;
    Arc::new(TimestampMicrosecondArray::from(vec![micros]).with_timezone("UTC"))
}

fn plan_batch(pipeline: &Pipeline, view: &PlanView) -> Result<RecordBatch, ArrowError> {
    let text =
        serde_json::to_string(view).map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
    let schema = Schema::new(vec![
        Field::new("id", DataType::Utf8, true),
        instant("made_at"),
        Field::new("plan", DataType::Utf8, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![view.id.as_str()])),
        now(pipeline),
        Arc::new(StringArray::from(vec![text])),
    ];
    RecordBatch::try_new(Arc::new(schema), columns)
}

fn drift_batch(pipeline: &Pipeline, report: &DriftReport) -> Result<RecordBatch, ArrowError> {
    let schema = Schema::new(vec![
        instant("at"),
        Field::new("meter", DataType::Utf8, true),
        Field::new("distance", DataType::Float64, true),
        Field::new("replan", DataType::Boolean, true),
        Field::new("new_edges", DataType::Utf8, true),
    ]);
    let names: Vec<String> = report.new_edges.iter().map(ToString::to_string).collect();
    let columns: Vec<ArrayRef> = vec![
        now(pipeline),
        Arc::new(StringArray::from(vec![report.meter.as_str()])),
        Arc::new(Float64Array::from(vec![report.distance])),
        Arc::new(BooleanArray::from(vec![report.replan])),
        Arc::new(StringArray::from(vec![names.join("; ")])),
    ];
    RecordBatch::try_new(Arc::new(schema), columns)
}

/// One row per statement; joins and scans as JSON text.
fn history_batch(workload: &Workload) -> Result<RecordBatch, ArrowError> {
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
}
