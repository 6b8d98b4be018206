//! What scripts see: the only types that become JSON. Names and meanings are a contract.
//!
//! Bytes are integers, times are integers in milliseconds, instants are RFC 3339 in UTC.

use std::collections::BTreeMap;

use lakebed_graph::{DriftReport, EdgeKey, JoinGraph};
use lakebed_model::{Bytes, ParseReport, QueryRecord, QueryStatus, Workload};
use lakebed_plan::{Layout, LayoutPlan, PlannedAction, Savings};
use lakebed_sandbox::Plugin;
use serde::{Deserialize, Serialize};

/// A stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowView {
    /// First statement.
    pub from: String,
    /// Last statement.
    pub to: String,
}

impl From<lakebed_model::Window> for WindowView {
    fn from(window: lakebed_model::Window) -> Self {
        Self { from: window.from.to_rfc3339(), to: window.to.to_rfc3339() }
    }
}

/// A plugin in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PluginView {
    /// The world.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub world: Option<String>,
    /// The plugin's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `sha256:…` of its bytes.
    pub digest: String,
}

impl PluginView {
    /// Describes a plugin without its world.
    #[must_use]
    pub fn new(plugin: &Plugin) -> Self {
        Self {
            world: None,
            name: plugin.name().to_owned(),
            version: plugin.version().to_owned(),
            digest: plugin.digest().to_owned(),
        }
    }

    /// Describes a plugin and its world.
    #[must_use]
    pub fn with_world(plugin: &Plugin) -> Self {
        Self { world: Some(plugin.world().as_str().to_owned()), ..Self::new(plugin) }
    }
}

/// How much of a history could be read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParseView {
    statements: u64,
    parsed: u64,
    partial: u64,
    unparsed: u64,
    skipped: SkippedView,
    malformed_lines: u64,
    truncated: bool,
    reasons: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct SkippedView {
    system: u64,
    failed: u64,
    cached: u64,
    duplicate: u64,
}

impl From<&ParseReport> for ParseView {
    fn from(report: &ParseReport) -> Self {
        Self {
            statements: report.statements,
            parsed: report.parsed,
            partial: report.partial,
            unparsed: report.unparsed,
            skipped: SkippedView {
                system: report.skipped.system,
                failed: report.skipped.failed,
                cached: report.skipped.cached,
                duplicate: report.skipped.duplicate,
            },
            malformed_lines: report.malformed_lines,
            truncated: report.truncated,
            reasons: report.reasons.clone(),
        }
    }
}

/// One statement of `collect`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordView {
    /// Unique id.
    pub id: String,
    /// When it started.
    pub ts: String,
    /// The log source.
    pub source: String,
    /// Its text.
    pub sql: Option<String>,
    /// Identity without constants.
    pub fingerprint: String,
    /// Wall time.
    pub duration_ms: Option<u64>,
    /// `finished`, `failed` or `unknown`.
    pub status: &'static str,
    /// Joins between base tables.
    pub joins: Vec<JoinView>,
    /// Scans with their filters.
    pub scans: Vec<ScanView>,
    /// Confidence of the lineage, 0 to 1.
    pub confidence: f64,
}

/// A join of a statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JoinView {
    left: String,
    right: String,
    pairs: Vec<(String, String)>,
    kind: &'static str,
    strategy: Option<&'static str>,
    planned_strategy: Option<&'static str>,
}

/// A scan of a statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScanView {
    table: Option<String>,
    columns: Vec<String>,
    filters: Vec<ScanFilterView>,
    bytes_read: Option<u64>,
    files_read: Option<u64>,
    rows_out: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ScanFilterView {
    column: String,
    operator: &'static str,
    range: Option<String>,
    inferred: bool,
}

impl From<&QueryRecord> for RecordView {
    fn from(record: &QueryRecord) -> Self {
        Self {
            id: record.id.clone(),
            ts: record.started_at.to_rfc3339(),
            source: record.source.clone(),
            sql: record.sql.clone(),
            fingerprint: record.fingerprint.clone(),
            duration_ms: record.duration_ms,
            status: match record.status {
                QueryStatus::Finished => "finished",
                QueryStatus::Failed => "failed",
                QueryStatus::Unknown => "unknown",
            },
            joins: record
                .joins
                .iter()
                .map(|join| JoinView {
                    left: join.left.to_string(),
                    right: join.right.to_string(),
                    pairs: join.pairs.clone(),
                    kind: join.kind.as_str(),
                    strategy: join.strategy.map(lakebed_model::JoinStrategy::as_str),
                    planned_strategy: join
                        .planned_strategy
                        .map(lakebed_model::JoinStrategy::as_str),
                })
                .collect(),
            scans: record
                .scans
                .iter()
                .map(|scan| ScanView {
                    table: scan.table.as_ref().map(ToString::to_string),
                    columns: scan.columns.clone(),
                    filters: scan
                        .filters
                        .iter()
                        .map(|filter| ScanFilterView {
                            column: filter.column.column.clone(),
                            operator: filter.operator.as_str(),
                            range: filter.range.as_ref().map(ToString::to_string),
                            inferred: filter.inferred,
                        })
                        .collect(),
                    bytes_read: scan.bytes_read,
                    files_read: scan.files_read,
                    rows_out: scan.rows_out,
                })
                .collect(),
            confidence: record.confidence,
        }
    }
}

/// `graph --json`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphView {
    window: WindowView,
    parse: ParseView,
    scorer: PluginView,
    edges: Vec<EdgeView>,
    filters: Vec<FilterView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct EdgeView {
    left: String,
    right: String,
    pairs: Vec<(String, String)>,
    kinds: BTreeMap<&'static str, u64>,
    strategies: BTreeMap<&'static str, u64>,
    planned_strategies: BTreeMap<&'static str, u64>,
    frequency: u64,
    rows_product_mean: f64,
    cost_ms_mean: f64,
    bytes_mean: f64,
    score: f64,
    confidence: f64,
    queries: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct FilterView {
    table: String,
    column: String,
    operator: &'static str,
    frequency: u64,
    inferred: u64,
}

impl GraphView {
    /// Shows a scored graph.
    #[must_use]
    pub fn new(workload: &Workload, graph: &JoinGraph, scorer: &Plugin) -> Self {
        let strategies = |counts: &BTreeMap<lakebed_model::JoinStrategy, u64>| {
            let mut all =
                BTreeMap::from([("sort_merge", 0), ("broadcast", 0), ("shuffle_hash", 0)]);
            all.extend(counts.iter().map(|(strategy, count)| (strategy.as_str(), *count)));
            all
        };
        Self {
            window: workload.window.into(),
            parse: (&workload.report).into(),
            scorer: PluginView::new(scorer),
            edges: graph
                .edges()
                .iter()
                .map(|edge| EdgeView {
                    left: edge.stats.left.to_string(),
                    right: edge.stats.right.to_string(),
                    pairs: edge.stats.pairs.clone(),
                    kinds: edge.stats.kinds.iter().map(|(kind, n)| (kind.as_str(), *n)).collect(),
                    strategies: strategies(&edge.stats.strategies),
                    planned_strategies: strategies(&edge.stats.planned_strategies),
                    frequency: edge.stats.frequency,
                    rows_product_mean: edge.stats.rows_product_mean,
                    cost_ms_mean: edge.stats.cost_ms_mean,
                    bytes_mean: edge.stats.bytes_mean,
                    score: edge.score,
                    confidence: edge.stats.confidence,
                    queries: edge.stats.queries.clone(),
                })
                .collect(),
            filters: graph
                .filters()
                .iter()
                .map(|filter| FilterView {
                    table: filter.table.to_string(),
                    column: filter.column.clone(),
                    operator: filter.operator.as_str(),
                    frequency: filter.frequency,
                    inferred: filter.inferred,
                })
                .collect(),
        }
    }
}

/// A table's layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayoutView {
    /// Clustering columns.
    pub cluster_by: Vec<String>,
    /// Partition columns.
    pub partition_by: Vec<String>,
}

impl From<&Layout> for LayoutView {
    fn from(layout: &Layout) -> Self {
        Self { cluster_by: layout.cluster_by.clone(), partition_by: layout.partition_by.clone() }
    }
}

impl From<LayoutView> for Layout {
    fn from(view: LayoutView) -> Self {
        Self { cluster_by: view.cluster_by, partition_by: view.partition_by }
    }
}

/// `plan --json`, and the file that `apply` reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanView {
    /// Identity of inputs and actions.
    pub id: String,
    /// What the plan was made from.
    pub inputs: PlanInputsView,
    settings: SettingsView,
    /// Formulas used.
    pub plugins: Vec<PluginView>,
    search: String,
    npv_bytes: i64,
    upper_bound_bytes: i64,
    gap: f64,
    proven: bool,
    /// What to do.
    pub actions: Vec<ActionView>,
    /// What not, and why.
    pub rejected: Vec<RejectionView>,
}

/// What a plan was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanInputsView {
    /// Table → version.
    pub snapshot_versions: BTreeMap<String, u64>,
    window: WindowView,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SettingsView {
    rewrite_budget_bytes: Option<u64>,
    storage_budget_bytes: Option<u64>,
    horizon_windows: u32,
    discount_rate: f64,
}

/// One action of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionView {
    /// The table.
    pub table: String,
    from: LayoutView,
    to: LayoutView,
    group: u32,
    rewrite_bytes: u64,
    storage_bytes: u64,
    saves_bytes_per_window: SavesView,
    npv_bytes: i64,
    break_even_queries: u64,
    because: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavesView {
    expected: u64,
    low: u64,
    high: u64,
}

/// A layout that was not chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RejectionView {
    table: String,
    to: LayoutView,
    why: String,
}

impl PlanView {
    /// Shows a plan and the formulas it was made with.
    #[must_use]
    pub fn new(plan: &LayoutPlan, plugins: &[&Plugin]) -> Self {
        let settings = plan.settings;
        Self {
            id: plan.id.clone(),
            inputs: PlanInputsView {
                snapshot_versions: plan
                    .snapshot_versions
                    .iter()
                    .map(|(table, version)| (table.to_string(), *version))
                    .collect(),
                window: plan.window.into(),
            },
            settings: SettingsView {
                rewrite_budget_bytes: settings.rewrite_budget.map(|bytes| bytes.0),
                storage_budget_bytes: settings.storage_budget.map(|bytes| bytes.0),
                horizon_windows: settings.horizon_windows.get(),
                discount_rate: settings.discount_rate,
            },
            plugins: plugins.iter().map(|plugin| PluginView::with_world(plugin)).collect(),
            search: plan.search.clone(),
            npv_bytes: whole(plan.npv_bytes),
            upper_bound_bytes: whole(plan.upper_bound_bytes),
            gap: plan.gap,
            proven: plan.proven,
            actions: plan.actions.iter().map(ActionView::from).collect(),
            rejected: plan
                .rejected
                .iter()
                .map(|rejection| RejectionView {
                    table: rejection.table.to_string(),
                    to: (&rejection.to).into(),
                    why: rejection.why.clone(),
                })
                .collect(),
        }
    }
}

impl From<&PlannedAction> for ActionView {
    fn from(action: &PlannedAction) -> Self {
        Self {
            table: action.table.to_string(),
            from: (&action.from).into(),
            to: (&action.to).into(),
            group: action.group,
            rewrite_bytes: action.rewrite_bytes.0,
            storage_bytes: action.storage_bytes.0,
            saves_bytes_per_window: SavesView {
                expected: action.saves.expected.0,
                low: action.saves.low.0,
                high: action.saves.high.0,
            },
            npv_bytes: whole(action.npv_bytes),
            break_even_queries: action.break_even_queries,
            because: action.because.clone(),
        }
    }
}

impl From<ActionView> for PlannedAction {
    fn from(view: ActionView) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "values under 8 PiB are exact")]
        let npv_bytes = view.npv_bytes as f64;
        Self {
            table: lakebed_model::TableName::new(view.table),
            from: view.from.into(),
            to: view.to.into(),
            group: view.group,
            rewrite_bytes: Bytes(view.rewrite_bytes),
            storage_bytes: Bytes(view.storage_bytes),
            saves: Savings {
                expected: Bytes(view.saves_bytes_per_window.expected),
                low: Bytes(view.saves_bytes_per_window.low),
                high: Bytes(view.saves_bytes_per_window.high),
            },
            npv_bytes,
            break_even_queries: view.break_even_queries,
            because: view.because,
        }
    }
}

/// `drift --json`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriftView {
    meter: PluginView,
    distance: f64,
    threshold: f64,
    replan: bool,
    new_edges: Vec<String>,
    gone_edges: Vec<String>,
    edges: Vec<EdgeDriftView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct EdgeDriftView {
    left: String,
    right: String,
    pairs: Vec<(String, String)>,
    before: f64,
    after: f64,
    part: f64,
}

impl DriftView {
    /// Shows a measurement.
    #[must_use]
    pub fn new(report: &DriftReport, meter: &Plugin) -> Self {
        let names = |edges: &[EdgeKey]| edges.iter().map(ToString::to_string).collect();
        Self {
            meter: PluginView::new(meter),
            distance: report.distance,
            threshold: report.threshold,
            replan: report.replan,
            new_edges: names(&report.new_edges),
            gone_edges: names(&report.gone_edges),
            edges: report
                .edges
                .iter()
                .map(|edge| EdgeDriftView {
                    left: edge.left.to_string(),
                    right: edge.right.to_string(),
                    pairs: edge.pairs.clone(),
                    before: edge.before,
                    after: edge.after,
                    part: edge.part,
                })
                .collect(),
        }
    }
}

/// `demo --json`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoView {
    /// The rewritten tables.
    pub tables: Vec<DemoTableView>,
    /// Every statement of the log, replayed.
    pub queries: Vec<DemoQueryView>,
    /// Mean over the statements of 1 − files read / files of the tables scanned.
    pub skipping_rate_before: f64,
    /// The same after the rewrite.
    pub skipping_rate_after: f64,
    /// The same after the rewrite, over statements with a join.
    pub skipping_rate_after_joins: f64,
    /// Bytes read after / before.
    pub bytes_ratio: f64,
    /// Drift between the shipped windows.
    pub drift: Vec<DemoDriftView>,
    /// The plan after the drift.
    pub replanned: Vec<DemoReplanView>,
    /// The iterator compaction, once with a native filter and once with a guest.
    pub compaction: DemoCompactionView,
}

/// A table of the demo.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoTableView {
    /// Its name.
    pub table: String,
    /// Its clustering columns.
    pub cluster_by: Vec<String>,
    /// Its live files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that were rewritten.
    pub rewritten_bytes: u64,
    /// The plan's reason, or why the table was left alone.
    pub because: String,
}

/// A statement of the demo.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoQueryView {
    /// Its template and number.
    pub id: String,
    /// Whether it joins tables.
    pub joins: bool,
    /// Files read before.
    pub files_before: u64,
    /// Files read after.
    pub files_after: u64,
    /// Files of the tables scanned, after.
    pub files_total: u64,
    /// Files of the tables scanned, before.
    pub files_total_before: u64,
    /// Bytes read before.
    pub bytes_before: u64,
    /// Bytes read after.
    pub bytes_after: u64,
    /// Wall time before.
    pub ms_before: u64,
    /// Wall time after.
    pub ms_after: u64,
    /// Whether the answers are equal.
    pub same_result: bool,
}

/// A drift measurement of the demo.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoDriftView {
    /// Earlier window.
    pub from: String,
    /// Later window.
    pub to: String,
    /// The distance.
    pub distance: f64,
    /// Whether to plan again.
    pub replan: bool,
    /// Joins that are new.
    pub new_edges: Vec<String>,
}

/// A table's layout in the plan after the drift.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoReplanView {
    /// The table.
    pub table: String,
    /// Its columns now.
    pub from: Vec<String>,
    /// Its columns in the new plan.
    pub to: Vec<String>,
}

/// The demo's compaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoCompactionView {
    /// The iterators in string form.
    pub iterators: String,
    /// Rows before.
    pub rows_in: u64,
    /// Rows after, with the native filter.
    pub rows_native: u64,
    /// Rows after, with the guest.
    pub rows_wasm: u64,
    /// Whether both left the same rows.
    pub same_rows: bool,
    /// Wall time of the native run.
    pub ms_native: u64,
    /// Wall time of the run with the guest.
    pub ms_wasm: u64,
}

/// Rounds a formula's bytes to whole ones.
#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which is right here")]
fn whole(bytes: f64) -> i64 {
    bytes.round() as i64
}
