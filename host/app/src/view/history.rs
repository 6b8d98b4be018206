//! `collect`: the parse report and the records.

use std::collections::{BTreeMap, BTreeSet};

use lakebed_model::{Damage, ParseReport, QueryRecord, QueryStatus};
use serde::Serialize;

/// How much of a history could be read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParseView {
    statements: u64,
    parsed: u64,
    partial: u64,
    unparsed: u64,
    skipped: SkippedView,
    parse_rate: Option<f64>,
    malformed_lines: u64,
    over_limit_lines: u64,
    damaged_stretches: u64,
    unreadable_logs: u64,
    unknown_records: u64,
    open_executions: u64,
    truncated: bool,
    damage: Vec<DamageView>,
    reasons: BTreeMap<String, u64>,
    examples: BTreeMap<String, String>,
    notes: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct SkippedView {
    system: u64,
    failed: u64,
    cached: u64,
    duplicate: u64,
    explain: u64,
    metadata: u64,
    own: u64,
    no_plan: u64,
    outside_window: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct DamageView {
    file: String,
    line: u64,
    offset_bytes: u64,
    what: String,
}

impl From<&Damage> for DamageView {
    fn from(damage: &Damage) -> Self {
        let Damage { file, line, offset_bytes, what } = damage.clone();
        Self { file, line, offset_bytes, what }
    }
}

impl From<&ParseReport> for ParseView {
    fn from(report: &ParseReport) -> Self {
        let skipped = &report.skipped;
        Self {
            statements: report.statements,
            parsed: report.parsed,
            partial: report.partial,
            unparsed: report.unparsed,
            skipped: SkippedView {
                system: skipped.system,
                failed: skipped.failed,
                cached: skipped.cached,
                duplicate: skipped.duplicate,
                explain: skipped.explain,
                metadata: skipped.metadata,
                own: skipped.own,
                no_plan: skipped.no_plan,
                outside_window: skipped.outside_window,
            },
            parse_rate: report.parse_rate(),
            malformed_lines: report.malformed_lines,
            over_limit_lines: report.over_limit_lines,
            damaged_stretches: report.damaged_stretches,
            unreadable_logs: report.unreadable_logs,
            unknown_records: report.unknown_records,
            open_executions: report.open_executions,
            truncated: report.truncated,
            damage: report.damage.iter().map(DamageView::from).collect(),
            reasons: report.reasons.clone(),
            examples: report.examples.clone(),
            notes: report.notes.clone(),
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
    cast: bool,
    null_safe: bool,
    expressions: Vec<(String, String)>,
    rows_out: Option<u64>,
    spill_bytes: Option<u64>,
    confidence: f64,
}

/// A scan of a statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScanView {
    table: Option<String>,
    columns: Vec<String>,
    filters: Vec<ScanFilterView>,
    bytes_read: Option<u64>,
    files_read: Option<u64>,
    bytes_total: Option<u64>,
    files_total: Option<u64>,
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
                    cast: join.notes.cast,
                    null_safe: join.notes.null_safe,
                    expressions: join.notes.expressions.clone(),
                    rows_out: join.notes.rows_out,
                    spill_bytes: join.notes.spill_bytes,
                    confidence: join.confidence,
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
                    bytes_total: scan.bytes_total,
                    files_total: scan.files_total,
                    rows_out: scan.rows_out,
                })
                .collect(),
            confidence: record.confidence,
        }
    }
}
