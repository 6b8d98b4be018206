//! JSON lines: the format for any engine, one statement a line.
//!
//! `{"ts": …, "sql": …}` is enough; `dialect`, `duration_ms`, `bytes_read`, `id` and `status` are
//! used where present, other fields are ignored. `ts` is RFC 3339 or milliseconds since the epoch.
//! `bytes_read` belongs to the statement: it is kept where the statement has a single scan.

use std::collections::BTreeMap;

use lakebed_model::{Instant, ParseReport, QueryRecord, QueryStatus};
use serde::Deserialize;
use serde_json::Value;

use super::{
    LogHead, LogPath, LogSource, Reading, Statement,
    lines::{Line, Lines},
};
use crate::{
    Catalog, CollectError, fingerprint,
    lineage::sql::{self, Dialect, LineageError, SqlLineage},
    time,
};

const NAME: &str = "jsonl";

/// JSON lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonLines;

/// One line.
#[derive(Debug, Deserialize)]
struct Entry {
    ts: Value,
    sql: String,
    dialect: Option<String>,
    duration_ms: Option<f64>,
    bytes_read: Option<u64>,
    id: Option<String>,
    status: Option<String>,
}

impl LogSource for JsonLines {
    fn name(&self) -> &'static str {
        NAME
    }

    fn recognizes(&self, head: &LogHead) -> bool {
        head.lines.iter().any(|line| {
            let Ok(Value::Object(fields)) = serde_json::from_str(line) else { return false };
            fields.contains_key("ts") && fields.contains_key("sql")
        })
    }

    fn read(
        &self,
        log: &LogPath,
        catalog: &dyn Catalog,
        sink: &mut dyn FnMut(Statement),
    ) -> Result<ParseReport, CollectError> {
        let name = log.root.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let mut report = ParseReport::default();
        let mut lines = Lines::open(log);
        let (mut number, mut entries) = (0_u64, 0_u64);
        while let Some(line) = lines.next_line()? {
            number += 1;
            let (line, unfinished) = match line {
                Line::Whole(line) => (line, false),
                Line::Unfinished(line) => (line, true),
            };
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match parse(line) {
                Some((entry, started_at)) => {
                    entries += 1;
                    let id = entry.id.clone().unwrap_or_else(|| format!("{name}:{number}"));
                    statement(entry, id, started_at, catalog, &mut report, sink);
                }
                None if unfinished => report.truncated = true,
                None => {
                    report.malformed_lines += 1;
                    report.add_damage(lines.damage_here("no record"));
                }
            }
        }
        lines.count_damage(&mut report);
        if entries == 0 {
            let events = BTreeMap::from([("malformed lines".to_owned(), report.malformed_lines)]);
            return Err(CollectError::NoSqlStatements { path: log.root.clone(), events });
        }
        Ok(report)
    }
}

fn parse(line: &[u8]) -> Option<(Entry, i64)> {
    let entry: Entry = serde_json::from_slice(line).ok()?;
    let started_at = match &entry.ts {
        Value::String(text) => time::parse_epoch_ms(text)?,
        number => number.as_i64()?,
    };
    Some((entry, started_at))
}

fn statement(
    entry: Entry,
    id: String,
    started_at: i64,
    catalog: &dyn Catalog,
    report: &mut ParseReport,
    sink: &mut dyn FnMut(Statement),
) {
    let status = entry.status.as_deref().unwrap_or("finished").to_ascii_lowercase();
    match status.as_str() {
        "failed" | "error" | "canceled" | "cancelled" => {
            report.skipped.failed += 1;
            return;
        }
        "cached" => {
            report.skipped.cached += 1;
            return;
        }
        _ => {}
    }
    let (lineage, reading) = match lineage_of(&entry, catalog) {
        Ok(lineage) => (lineage, Reading::Full),
        Err(LineageError::NoQuery { .. }) => {
            report.skipped.system += 1;
            return;
        }
        Err(error) => (SqlLineage::unread(), Reading::Unread { reason: error.to_string() }),
    };
    let mut scans = lineage.scans;
    if let [only] = scans.as_mut_slice() {
        only.bytes_read = entry.bytes_read;
    }
    let record = QueryRecord {
        id,
        started_at: Instant::from_epoch_ms(started_at),
        source: NAME.to_owned(),
        fingerprint: fingerprint::of_sql(&entry.sql),
        sql: Some(entry.sql),
        duration_ms: entry.duration_ms.and_then(whole_ms),
        status: QueryStatus::Finished,
        joins: lineage.joins,
        scans,
        confidence: lineage.confidence,
    };
    sink(Statement { record, reading });
}

fn lineage_of(entry: &Entry, catalog: &dyn Catalog) -> Result<SqlLineage, LineageError> {
    let dialect = match &entry.dialect {
        None => Dialect::Generic,
        Some(name) => Dialect::parse(name)?,
    };
    sql::lineage(&entry.sql, dialect, catalog)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and negative durations are refused"
)]
fn whole_ms(duration_ms: f64) -> Option<u64> {
    (duration_ms >= 0.0).then(|| duration_ms.round() as u64)
}
