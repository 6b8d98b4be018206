//! Databricks: `system.query.history`, and what `databricks query-history list` prints.
//!
//! Times without the waiting for compute are taken where they are known. Statements that were
//! answered from the result cache read nothing; text may be withheld (customer-managed keys).

use super::rows::{Entry, LeftOut, Refusal, Row, RowSource, TableFacts, Unit};

pub(super) static SOURCE: RowSource = RowSource {
    name: "databricks",
    dialect: "databricks",
    recognizes: |head| {
        (head.has("statement_id") && head.has("statement_text"))
            || (head.has("query_text") && head.has("query_start_time_ms"))
    },
    required: &[&["statement_text", "query_text"], &["start_time", "query_start_time_ms"]],
    entry,
};

fn entry(row: &Row) -> Result<Entry, Refusal> {
    let started = Entry::started(row, "start_time", Unit::Millis)
        .or_else(|_| Entry::started(row, "query_start_time_ms", Unit::Millis))?;
    let metrics = row.row("metrics").unwrap_or_default();
    let status = row.word("execution_status").or_else(|| row.word("status")).unwrap_or_default();
    if matches!(status.as_str(), "failed" | "canceled") {
        return Err(LeftOut::Failed.into());
    }
    let is_cached = row.flag("from_result_cache").or_else(|| metrics.flag("result_from_cache"));
    if is_cached == Some(true) {
        return Err(LeftOut::Cached.into());
    }
    let count = |column: &str, metric: &str| row.count(column).or_else(|| metrics.count(metric));
    Ok(Entry {
        id: row.text("statement_id").or_else(|| row.text("query_id")),
        sql: row.text("statement_text").or_else(|| row.text("query_text")),
        duration_ms: row
            .count("execution_duration_ms")
            .or_else(|| metrics.count("execution_time_ms"))
            .or_else(|| row.count("total_duration_ms"))
            .or_else(|| row.count("duration")),
        running: matches!(status.as_str(), "running" | "queued" | "started"),
        session: row.text("session_id"),
        total: TableFacts {
            bytes_read: count("read_bytes", "read_bytes"),
            files_read: count("read_files", "read_files_count"),
            rows_out: count("read_rows", "rows_read_count"),
            ..TableFacts::default()
        },
        ..started
    })
}
