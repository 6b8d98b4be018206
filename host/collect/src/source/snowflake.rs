//! Snowflake: `QUERY_HISTORY` of `ACCOUNT_USAGE` or `INFORMATION_SCHEMA`.
//!
//! The view has no column for a reused result. A SELECT that succeeded without a byte or a
//! micro-partition, of a table that has none to scan, was answered from the result cache or from
//! metadata: either way no layout changes it. `PARTITIONS_SCANNED` counts micro-partitions, which
//! are Snowflake's files.

use super::rows::{Entry, LeftOut, Refusal, Row, RowSource, TableFacts, Unit};

/// The source's name.
pub(crate) const NAME: &str = "snowflake";

pub(super) static SOURCE: RowSource = RowSource {
    name: NAME,
    dialect: "snowflake",
    recognizes: |head| {
        let own = [
            "bytes_scanned",
            "execution_status",
            "partitions_scanned",
            "query_parameterized_hash",
            "total_elapsed_time",
            "warehouse_name",
        ];
        head.has("query_text") && head.has("query_id") && own.iter().any(|name| head.has(name))
    },
    required: &[&["query_text"], &["start_time"]],
    entry,
};

fn entry(row: &Row) -> Result<Entry, Refusal> {
    let started = Entry::started(row, "start_time", Unit::Seconds)?;
    let status = row.word("execution_status").unwrap_or_default();
    if status.starts_with("fail") || status.starts_with("incident") {
        return Err(LeftOut::Failed.into());
    }
    if row.flag("is_client_generated_statement") == Some(true) {
        return Err(LeftOut::System.into());
    }
    let is_select = row.word("query_type").is_none_or(|kind| kind == "select");
    let reads_nothing =
        row.count("bytes_scanned") == Some(0) && row.count("partitions_total") == Some(0);
    if is_select && reads_nothing {
        return Err(LeftOut::Cached.into());
    }
    let namespace = [row.word("database_name"), row.word("schema_name")];
    Ok(Entry {
        id: row.text("query_id"),
        sql: row.text("query_text"),
        duration_ms: row.count("execution_time").or_else(|| row.count("total_elapsed_time")),
        running: matches!(status.as_str(), "running" | "queued" | "blocked" | "resuming_warehouse"),
        // Without a schema the database says nothing of a bare name.
        namespace: if namespace[1].is_some() {
            namespace.into_iter().flatten().collect()
        } else {
            Vec::new()
        },
        session: row.text("session_id"),
        total: TableFacts {
            bytes_read: row.count("bytes_scanned"),
            files_read: row.count("partitions_scanned"),
            ..TableFacts::default()
        },
        ..started
    })
}
