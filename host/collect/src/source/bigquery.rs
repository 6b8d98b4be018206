//! BigQuery: `INFORMATION_SCHEMA.JOBS`, as `bq query --format=json` prints it or a table export has it.
//!
//! A script is a job of its own beside the jobs of its statements; only those count.
//! `referenced_tables` spells out what the text calls by a default dataset.

use super::rows::{Entry, LeftOut, Refusal, Row, RowSource, TableFacts, Unit};

pub(super) static SOURCE: RowSource = RowSource {
    name: "bigquery",
    dialect: "bigquery",
    recognizes: |head| head.has("job_id") && head.has("query"),
    required: &[&["query"], &["start_time", "creation_time"]],
    entry,
};

fn entry(row: &Row) -> Result<Entry, Refusal> {
    let started = Entry::started(row, "start_time", Unit::Seconds)
        .or_else(|_| Entry::started(row, "creation_time", Unit::Seconds))?;
    if row.has("error_result") {
        return Err(LeftOut::Failed.into());
    }
    if row.flag("cache_hit") == Some(true) {
        return Err(LeftOut::Cached.into());
    }
    if row.word("statement_type").is_some_and(|kind| kind == "script") {
        return Err(LeftOut::System.into());
    }
    let end = row.instant("end_time", Unit::Seconds);
    let duration = end.map(|end| end.epoch_ms() - started.started_at.epoch_ms());
    let session = row.row("session_info").and_then(|session| session.text("session_id"));
    let tables = row.rows("referenced_tables").iter().filter_map(table).collect();
    Ok(Entry {
        id: row.text("job_id"),
        sql: row.text("query"),
        duration_ms: duration.and_then(|ms| u64::try_from(ms).ok()),
        running: row.word("state").is_some_and(|state| state != "done"),
        session,
        total: TableFacts {
            bytes_read: row.count("total_bytes_processed"),
            ..TableFacts::default()
        },
        tables,
        ..started
    })
}

fn table(reference: &Row) -> Option<TableFacts> {
    let names = ["project_id", "dataset_id", "table_id"].map(|name| reference.word(name));
    let [Some(project), Some(dataset), Some(table)] = names else { return None };
    Some(TableFacts { name: format!("{project}.{dataset}.{table}"), ..TableFacts::default() })
}
