//! Athena: what `aws athena get-query-execution` and `batch-get-query-execution` print.

use super::rows::{Entry, LeftOut, Refusal, Row, RowSource, TableFacts, Unit};

pub(super) static SOURCE: RowSource = RowSource {
    name: "athena",
    dialect: "athena",
    recognizes: |head| head.has("queryexecutionid") && head.has("status"),
    required: &[&["query"], &["status"]],
    entry,
};

fn entry(row: &Row) -> Result<Entry, Refusal> {
    let status = row.row("status").ok_or(Refusal::Malformed)?;
    let started = status.instant("submissiondatetime", Unit::Seconds).ok_or(Refusal::Malformed)?;
    let state = status.word("state").unwrap_or_default();
    if matches!(state.as_str(), "failed" | "cancelled") {
        return Err(LeftOut::Failed.into());
    }
    let statistics = row.row("statistics").unwrap_or_default();
    let reuse = statistics.row("resultreuseinformation");
    if reuse.and_then(|reuse| reuse.flag("reusedpreviousresult")) == Some(true) {
        return Err(LeftOut::Cached.into());
    }
    let context = row.row("queryexecutioncontext").unwrap_or_default();
    let database = context.word("database");
    let catalog = database.as_ref().and_then(|_| context.word("catalog"));
    Ok(Entry {
        id: row.text("queryexecutionid"),
        sql: row.text("query"),
        duration_ms: statistics.count("engineexecutiontimeinmillis"),
        running: matches!(state.as_str(), "queued" | "running"),
        namespace: catalog.into_iter().chain(database).collect(),
        total: TableFacts {
            bytes_read: statistics.count("datascannedinbytes"),
            ..TableFacts::default()
        },
        ..Entry::at(row, started)
    })
}
