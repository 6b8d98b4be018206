//! The format for any engine: rows of `ts` and `sql`, as JSON, CSV or Parquet.
//!
//! `{"ts": …, "sql": …}` is enough. Used where present: `dialect`, `duration_ms`, `bytes_read`,
//! `files_read`, `rows_read`, `id`, `status`, `db` (a schema, or catalog and schema) and `session`;
//! other fields are ignored. `ts` is an instant in any common spelling, or milliseconds since the
//! epoch. Figures belong to the statement: they are kept where it has a single scan.

use super::{
    LogHead,
    rows::{Entry, Form, LeftOut, Refusal, Row, RowSource, TableFacts, Unit},
};

const REQUIRED: &[&[&str]] = &[&["ts"], &["sql"]];

/// The rows as JSON.
pub(super) static JSON_LINES: RowSource = RowSource {
    name: "jsonl",
    dialect: "generic",
    recognizes: |head| matches!(head.form, Form::JsonLines | Form::JsonDocument) && is_plain(head),
    required: REQUIRED,
    entry,
};

/// The rows as CSV, or as Parquet.
pub(super) static CSV: RowSource = RowSource {
    name: "csv",
    dialect: "generic",
    recognizes: |head| matches!(head.form, Form::Csv | Form::Parquet) && is_plain(head),
    required: REQUIRED,
    entry,
};

fn is_plain(head: &LogHead) -> bool {
    head.has("ts") && head.has("sql")
}

fn entry(row: &Row) -> Result<Entry, Refusal> {
    let started = Entry::started(row, "ts", Unit::Millis)?;
    let sql = row.text("sql").ok_or(Refusal::Malformed)?;
    let status = row.word("status").unwrap_or_default();
    match status.as_str() {
        "failed" | "fail" | "failure" | "error" | "canceled" | "cancelled" | "aborted" => {
            return Err(LeftOut::Failed.into());
        }
        "cached" => return Err(LeftOut::Cached.into()),
        _ => {}
    }
    if row.word("app").is_some_and(|app| app == "lakebed") {
        return Err(LeftOut::Own.into());
    }
    let namespace = row.word("db").or_else(|| row.word("schema")).unwrap_or_default();
    let parts = namespace.split('.').filter(|part| !part.is_empty());
    Ok(Entry {
        id: row.text("id"),
        sql: Some(sql),
        dialect: row.text("dialect"),
        duration_ms: row.duration_ms("duration_ms", Unit::Millis),
        running: status == "running",
        namespace: parts.map(ToOwned::to_owned).collect(),
        session: row.text("session"),
        total: TableFacts {
            bytes_read: row.count("bytes_read"),
            files_read: row.count("files_read"),
            rows_out: row.count("rows_read"),
            ..TableFacts::default()
        },
        ..started
    })
}
