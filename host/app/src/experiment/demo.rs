//! The main job end to end on generated tables and a real Spark event log: measured, never estimated.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use lakebed_compact::{ChainConfig, FilterSpec, NullRule, Step};
use lakebed_graph::{DriftReport, JoinGraph};
use lakebed_lake::NewTable;
use lakebed_layout::{CompactOptions, Lake, compact};
use lakebed_model::{Bytes, Instant, TableName, Workload};
use lakebed_plan::LayoutPlan;
use lakebed_sandbox::World;

use super::{
    replay::{Replayed, now, ratio, replay, rows_of, skipping_rate},
    shipped::{ShippedLog, W1, W3},
    tpch,
};
use crate::{
    error::Error,
    pipeline::{AppliedAction, Pipeline, RoadReport, blocking, rewritten_bytes},
    records,
    view::{
        DemoCompactionView, DemoDriftView, DemoQueryView, DemoReplanView, DemoTableView, DemoView,
    },
};

/// Two windows of one workload: W1 and, when a new join column has appeared, W3.
const LOGS: [ShippedLog; 2] = [W1, W3];
const TABLES: [&str; 8] =
    ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"];

/// Everything the demo decided and measured.
#[derive(Debug)]
pub struct DemoReport {
    /// What `--json` prints.
    pub view: DemoView,
    /// The history.
    pub workload: Workload,
    /// Its joins.
    pub graph: JoinGraph,
    /// The first plan.
    pub plan: LayoutPlan,
    /// The drift to the later window.
    pub drift: DriftReport,
    /// The plan after the drift.
    pub replan: LayoutPlan,
}

/// Runs the demo in a folder that has no tables yet.
///
/// # Errors
/// Fails with the first step that fails.
pub async fn run(
    pipeline: &mut Pipeline,
    folder: &Path,
    scale_factor: f64,
) -> Result<DemoReport, Error> {
    let settings = pipeline.config.plan_settings()?;
    let (progress, started) = (pipeline.progress.clone(), pipeline.now);
    tpch::write_tables(&mut pipeline.lake, folder, scale_factor, started, &progress).await?;
    let logs: Vec<PathBuf> =
        LOGS.iter().map(|log| log.unpack(&folder.join("logs"))).collect::<Result<_, _>>()?;

    let history = pipeline.collect(&logs[..1], &Default::default()).await?;
    let before = replay(&pipeline.lake, &history, "running the log's queries", &progress).await?;
    let RoadReport { workload, graph, plan, applied } =
        Box::pin(pipeline.road(&logs[..1], settings)).await?;
    let after = replay(&pipeline.lake, &workload, "running them again", &progress).await?;

    let later = pipeline.collect(&logs[1..], &Default::default()).await?;
    let rows = pipeline.row_counts(&later).await?;
    let later_graph = pipeline.graph(&later, &rows, None).await?;
    let threshold = pipeline.config.drift.threshold;
    let (drift, _) = pipeline.drift(&graph, &later_graph, None, threshold).await?;
    let evidence = pipeline.evidence(&later, &later_graph, &[]).await?;
    let replan = pipeline.plan(&later_graph, &later, evidence, settings, None).await?;
    records::keep_drift(pipeline, &drift).await;
    records::keep_plan(pipeline, &replan).await;
    let compaction = compaction(pipeline, folder).await?;

    let queries = queries(&workload, &before, &after);
    let joining = after.iter().filter(|one| !workload.records[one.statement].joins.is_empty());
    let bytes = |replayed: &[Replayed]| replayed.iter().map(|one| one.cost.bytes_read).sum();
    let view = DemoView {
        folder: None,
        tables: tables(pipeline, &plan, &applied).await?,
        skipping_rate_before: skipping_rate(&before),
        skipping_rate_after: skipping_rate(&after),
        skipping_rate_after_joins: skipping_rate(joining),
        bytes_ratio: ratio(bytes(&after), bytes(&before)),
        queries,
        drift: vec![DemoDriftView {
            from: LOGS[0].window.to_owned(),
            to: LOGS[1].window.to_owned(),
            distance: drift.distance,
            replan: drift.replan,
            new_edges: drift.new_edges.iter().map(ToString::to_string).collect(),
        }],
        replanned: replan
            .actions
            .iter()
            .map(|action| DemoReplanView {
                table: action.table.to_string(),
                from: action.from.cluster_by.clone(),
                to: action.to.cluster_by.clone(),
                cuts: action.to.cuts.clone(),
            })
            .collect(),
        compaction,
    };
    Ok(DemoReport { view, workload, graph, plan, drift, replan })
}

fn queries(workload: &Workload, before: &[Replayed], after: &[Replayed]) -> Vec<DemoQueryView> {
    before
        .iter()
        .zip(after)
        .map(|(before, after)| DemoQueryView {
            id: format!("Q{:02}", before.statement + 1),
            joins: !workload.records[before.statement].joins.is_empty(),
            files_before: before.cost.files_read,
            files_after: after.cost.files_read,
            files_total: after.cost.files_total,
            files_total_before: before.cost.files_total,
            bytes_before: before.cost.bytes_read,
            bytes_after: after.cost.bytes_read,
            ms_before: before.elapsed_ms,
            ms_after: after.elapsed_ms,
            same_result: before.rows == after.rows,
        })
        .collect()
}

async fn tables(
    pipeline: &Pipeline,
    plan: &LayoutPlan,
    applied: &[AppliedAction],
) -> Result<Vec<DemoTableView>, Error> {
    let mut views = Vec::new();
    for name in TABLES {
        let table = TableName::new(name);
        let snapshot = pipeline.lake.snapshot(&table).await?;
        let layout = snapshot.layout();
        let action = applied.iter().find(|one| one.action.table == table);
        let rejected = plan.rejected.iter().find(|rejection| rejection.table == table);
        views.push(DemoTableView {
            table: name.to_owned(),
            cluster_by: layout.cluster_by,
            cuts: layout.cuts,
            files: u64::try_from(snapshot.files.len()).unwrap_or(u64::MAX),
            bytes: snapshot.bytes().0,
            rewritten_bytes: action.map_or(0, |one| rewritten_bytes(&one.optimized).0),
            because: match (action, rejected) {
                (Some(one), _) => one.action.because.clone(),
                (None, Some(rejection)) => rejection.why.clone(),
                (None, None) => "the history does not use it".to_owned(),
            },
        });
    }
    Ok(views)
}

/// Compacts two equal tables of readings, one with the native age-off and one with the guest.
async fn compaction(pipeline: &mut Pipeline, folder: &Path) -> Result<DemoCompactionView, Error> {
    const PERIOD_SECONDS: u64 = 30 * 86_400;
    let batch = readings(pipeline.now)?;
    let rows_in = u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
    let text = format!("ageoff='updated_at','{PERIOD_SECONDS}','updated_at'=MAX,'q'=SUM");
    let native: ChainConfig = text.parse().map_err(|error: lakebed_compact::SyntaxError| {
        Error::Mismatch { what: format!("the demo's iterators `{text}`: {error}") }
    })?;
    let guest = with_guest_filter(&native);
    compile_guest(pipeline).await?;
    let mut runs = BTreeMap::new();
    for (name, chain) in [("readings_native", native), ("readings_wasm", guest)] {
        let table = TableName::new(name);
        let new = NewTable {
            name: table.clone(),
            location: folder.join(name).to_string_lossy().into_owned(),
            schema: batch.schema(),
            ..NewTable::default()
        };
        let halves = batch.num_rows() / 2;
        let files = vec![
            vec![batch.slice(0, halves)],
            vec![batch.slice(halves, batch.num_rows() - halves)],
        ];
        pipeline.lake.create_table(new, files, None, pipeline.now).await?;
        let options = CompactOptions {
            chain,
            row_keys: vec!["sensor".to_owned()],
            default_file_size: pipeline.config.file_size()?,
            now: pipeline.now,
        };
        let started = now();
        let report = Box::pin(compact(&pipeline.lake, &pipeline.lake, &table, &options)).await?;
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let sql = format!("SELECT sensor, updated_at, q FROM {name}");
        let left = rows_of(&Box::pin(pipeline.lake.session().run(&sql)).await?)?;
        runs.insert(name, (report.rows_out, elapsed_ms, left));
    }
    let (rows_native, ms_native, left_native) = runs.remove("readings_native").unwrap_or_default();
    let (rows_wasm, ms_wasm, left_wasm) = runs.remove("readings_wasm").unwrap_or_default();
    Ok(DemoCompactionView {
        iterators: text,
        rows_in,
        rows_native,
        rows_wasm,
        same_rows: left_native == left_wasm && !left_native.is_empty(),
        ms_native,
        ms_wasm,
    })
}

/// Compiles the guest once beforehand, so that the runs compare filters and not a compiler.
async fn compile_guest(pipeline: &Pipeline) -> Result<(), Error> {
    let plugins = pipeline.plugins.clone();
    let settings = r#"{"column":"updated_at","period_seconds":1}"#;
    blocking("loading plugins", move || {
        plugins.load(World::RowFilter, "row-filter-age-off", Some(settings)).map(drop)
    })
    .await
}

/// Readings of 1 000 sensors, 100 each, one every 14 hours back from now.
fn readings(now: Instant) -> Result<RecordBatch, arrow::error::ArrowError> {
    const SENSORS: i64 = 1_000;
    const READINGS: i64 = 100;
    let now_seconds = now.epoch_ms().div_euclid(1_000);
    let all = (0..SENSORS * READINGS).map(|n| (n % SENSORS, n / SENSORS));
    let sensor = Int64Array::from_iter_values(all.clone().map(|(sensor, _)| sensor));
    let updated = all.clone().map(|(sensor, age)| now_seconds - age * 14 * 3_600 - sensor);
    let updated = Int64Array::from_iter_values(updated);
    let q = Int64Array::from_iter_values(all.map(|(sensor, age)| sensor + age));
    let columns: [(&str, ArrayRef); 3] =
        [("sensor", Arc::new(sensor)), ("updated_at", Arc::new(updated)), ("q", Arc::new(q))];
    RecordBatch::try_from_iter(columns)
}

/// The same chain with the shipped guest in the place of the native filter.
fn with_guest_filter(chain: &ChainConfig) -> ChainConfig {
    let steps = chain
        .steps
        .iter()
        .map(|step| match step {
            Step::Filter(FilterSpec::AgeOff { column, period_seconds, nulls }) => {
                let nulls = if *nulls == NullRule::Keep { "keep" } else { "drop" };
                let config = serde_json::json!({
                    "column": column, "period_seconds": period_seconds, "nulls": nulls,
                });
                Step::Filter(FilterSpec::Plugin {
                    name: "row-filter-age-off".to_owned(),
                    config_json: config.to_string(),
                })
            }
            other => other.clone(),
        })
        .collect();
    ChainConfig { steps }
}

/// Groups the statements that differ in constants only.
#[must_use]
pub fn templates(report: &DemoReport) -> Vec<TemplateFigures> {
    let mut by_fingerprint: BTreeMap<&str, TemplateFigures> = BTreeMap::new();
    for (position, query) in report.view.queries.iter().enumerate() {
        let statement: usize = query.id[1..].parse::<usize>().map_or(position, |n| n - 1);
        let record = &report.workload.records[statement];
        let figures = by_fingerprint.entry(record.fingerprint.as_str()).or_insert_with(|| {
            TemplateFigures { label: label(record), first: position, ..TemplateFigures::default() }
        });
        figures.runs += 1;
        figures.files_before += query.files_before;
        figures.files_after += query.files_after;
        figures.files_total += query.files_total;
        figures.bytes_before += Bytes(query.bytes_before);
        figures.bytes_after += Bytes(query.bytes_after);
        figures.ms_before += query.ms_before;
        figures.ms_after += query.ms_after;
        figures.different += u64::from(!query.same_result);
    }
    let mut templates: Vec<TemplateFigures> = by_fingerprint.into_values().collect();
    templates.sort_by_key(|template| template.first);
    templates
}

/// Sums over the runs of one template.
#[derive(Debug, Clone, Default)]
pub struct TemplateFigures {
    /// Its tables and what it filters.
    pub label: String,
    first: usize,
    /// How often it ran.
    pub runs: u64,
    /// Files read before.
    pub files_before: u64,
    /// Files read after.
    pub files_after: u64,
    /// Files of the tables scanned.
    pub files_total: u64,
    /// Bytes read before.
    pub bytes_before: Bytes,
    /// Bytes read after.
    pub bytes_after: Bytes,
    /// Wall time before.
    pub ms_before: u64,
    /// Wall time after.
    pub ms_after: u64,
    /// Runs whose answer changed.
    pub different: u64,
}

/// Names a statement by its tables and what it filters.
pub(super) fn label(record: &lakebed_model::QueryRecord) -> String {
    let mut tables: Vec<&str> =
        record.scans.iter().filter_map(|scan| scan.table.as_ref().map(TableName::as_str)).collect();
    tables.sort_unstable();
    tables.dedup();
    let mut columns: Vec<&str> = record
        .filters()
        .filter(|filter| filter.range.is_some())
        .map(|filter| filter.column.column.as_str())
        .collect();
    columns.sort_unstable();
    columns.dedup();
    format!("{} by {}", tables.join(" ⋈ "), columns.join(", "))
}
