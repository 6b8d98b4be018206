//! Redshift: `SYS_QUERY_HISTORY`.
//!
//! Times are in microseconds, and instants in UTC. The view writes line breaks of a text as `\n`.

use super::rows::{Entry, LeftOut, Refusal, Row, RowSource, Unit};

pub(super) static SOURCE: RowSource = RowSource {
    name: "redshift",
    dialect: "redshift",
    recognizes: |head| {
        let own = ["elapsed_time", "result_cache_hit", "query_label", "generic_query_hash"];
        head.has("query_text") && own.iter().any(|name| head.has(name))
    },
    required: &[&["query_text"], &["start_time"]],
    entry,
};

fn entry(row: &Row) -> Result<Entry, Refusal> {
    let started = Entry::started(row, "start_time", Unit::Seconds)?;
    let status = row.word("status").unwrap_or_default();
    if matches!(status.as_str(), "failed" | "canceled") {
        return Err(LeftOut::Failed.into());
    }
    if row.flag("result_cache_hit") == Some(true) {
        return Err(LeftOut::Cached.into());
    }
    let text = row.text("query_text").map(|text| match text.contains('\n') {
        true => text,
        false => text.replace("\\n", "\n"),
    });
    let duration = row.duration_ms("execution_time", Unit::Micros);
    Ok(Entry {
        id: row.text("query_id"),
        sql: text,
        duration_ms: duration.or_else(|| row.duration_ms("elapsed_time", Unit::Micros)),
        running: matches!(status.as_str(), "planning" | "queued" | "running" | "returning"),
        session: row.text("session_id"),
        ..started
    })
}
