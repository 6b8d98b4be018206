//! Lakebed's own records: history, plans, drift, and the statements of its own engine, kept as Delta tables under `_lakebed/` of the
//! lake's folder.
//!
//! A record that cannot be kept is a warning: the work it tells of is done.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use arrow::{
    array::{
        ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
        TimestampMicrosecondArray,
    },
    datatypes::{DataType, Field, Schema, TimeUnit},
    error::ArrowError,
};
use lakebed_collect::{lineage::sql::Dialect, redacted_text};
use lakebed_graph::DriftReport;
use lakebed_lake::{RecordTable, ScanCost};
use lakebed_model::{Instant, Workload};
use lakebed_plan::LayoutPlan;

use crate::{
    config::OwnHistory,
    error::Error,
    pipeline::Pipeline,
    view::{PlanView, RecordView},
    watch::Outcome,
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

/// Keeps what a plan's rewrites predicted and achieved, when the lake is a folder.
pub async fn keep_outcomes(pipeline: &Pipeline, plan: &LayoutPlan, outcomes: &[Outcome]) {
    if !outcomes.is_empty() {
        keep(pipeline, RecordTable::Outcomes, outcome_batch(pipeline, plan, outcomes)).await;
    }
}

/// One statement that our own engine ran.
#[derive(Debug)]
pub struct OwnStatement<'s> {
    /// Its text.
    pub sql: &'s str,
    /// What it does: `SELECT`, `INSERT`, `CREATE TABLE AS` or `DELETE`.
    pub kind: &'static str,
    /// Unique in the lake.
    pub id: String,
    /// When it started.
    pub started_at: Instant,
    /// Wall time.
    pub duration_ms: u64,
    /// Whether it came to its end.
    pub finished: bool,
    /// What its scans read, where that is measured.
    pub cost: Option<ScanCost>,
    /// The tables it opened, each with the version it saw.
    pub versions: BTreeMap<String, u64>,
}

/// Keeps a statement of our own engine, when the lake is a folder and its history is not switched off.
pub async fn keep_statement(pipeline: &Pipeline, statement: OwnStatement<'_>) {
    let redacted;
    let statement = match pipeline.config.lake.history {
        OwnHistory::Off => return,
        OwnHistory::Full => statement,
        OwnHistory::Redacted => {
            // A text whose constants nobody can tell apart is not kept.
            redacted = redacted_text(statement.sql, Some(Dialect::Spark)).unwrap_or_default();
            OwnStatement { sql: &redacted, ..statement }
        }
    };
    keep(pipeline, RecordTable::Statements, statement_batch(&statement)).await;
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

/// One row per table.
fn outcome_batch(
    pipeline: &Pipeline,
    plan: &LayoutPlan,
    outcomes: &[Outcome],
) -> Result<RecordBatch, ArrowError> {
    let micros = vec![pipeline.now.epoch_ms() * 1_000; outcomes.len()];
    let bytes = |figure: fn(&Outcome) -> u64| -> ArrayRef {
        let figures = outcomes.iter().map(|one| i64::try_from(figure(one)).ok());
        Arc::new(Int64Array::from_iter(figures))
    };
    let schema = Schema::new(vec![
        Field::new("plan", DataType::Utf8, true),
        instant("at"),
        Field::new("table", DataType::Utf8, true),
        Field::new("reads_before_bytes", DataType::Int64, true),
        Field::new("reads_predicted_bytes", DataType::Int64, true),
        Field::new("reads_achieved_bytes", DataType::Int64, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![plan.id.as_str(); outcomes.len()])),
        Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("UTC")),
        Arc::new(StringArray::from_iter_values(outcomes.iter().map(|one| one.table.as_str()))),
        bytes(|one| one.reads_before.0),
        bytes(|one| one.reads_predicted.0),
        bytes(|one| one.reads_achieved.0),
    ];
    RecordBatch::try_new(Arc::new(schema), columns)
}

/// One row; versions as JSON text. `origin` is whose statement it is: people's, not ours.
fn statement_batch(statement: &OwnStatement<'_>) -> Result<RecordBatch, ArrowError> {
    let versions = serde_json::to_string(&statement.versions)
        .map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
    let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
    let number = |number: Option<u64>| {
        let number = number.and_then(|number| i64::try_from(number).ok());
        Arc::new(Int64Array::from(vec![number])) as ArrayRef
    };
    let started = vec![statement.started_at.epoch_ms() * 1_000];
    let started = TimestampMicrosecondArray::from(started).with_timezone("UTC");
    let cost = statement.cost;
    let columns: Vec<(Field, ArrayRef)> = vec![
        (Field::new("id", DataType::Utf8, true), text(&statement.id)),
        (instant("started_at"), Arc::new(started)),
        (Field::new("sql", DataType::Utf8, true), text(statement.sql)),
        (Field::new("kind", DataType::Utf8, true), text(statement.kind)),
        (
            Field::new("status", DataType::Utf8, true),
            text(if statement.finished { "finished" } else { "failed" }),
        ),
        (Field::new("duration_ms", DataType::Int64, true), number(Some(statement.duration_ms))),
        (Field::new("files_read", DataType::Int64, true), number(cost.map(|cost| cost.files_read))),
        (
            Field::new("files_total", DataType::Int64, true),
            number(cost.map(|cost| cost.files_total)),
        ),
        (Field::new("bytes_read", DataType::Int64, true), number(cost.map(|cost| cost.bytes_read))),
        (Field::new("table_versions", DataType::Utf8, true), text(&versions)),
        (Field::new("origin", DataType::Utf8, true), text("user")),
    ];
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
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
