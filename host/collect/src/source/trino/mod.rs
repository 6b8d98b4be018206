//! Trino: `QueryCompletedEvent`, as event listeners write it.
//!
//! `ioMetadata.inputs` has what each table was read for. Joins come from the statement's text; where
//! it cannot be read, from the criteria of `jsonPlan`.

mod plan;

use super::rows::{Entry, LeftOut, Refusal, Row, RowSource, Stated, TableFacts, Unit};

pub(super) static SOURCE: RowSource = RowSource {
    name: "trino",
    dialect: "trino",
    recognizes: |head| {
        head.has("metadata")
            && (head.has("statistics") || head.has("iometadata"))
            && !head.has("run")
    },
    required: &[&["metadata"], &["createtime", "executionstarttime"]],
    entry,
};

fn entry(row: &Row) -> Result<Entry, Refusal> {
    let started = Entry::started(row, "executionstarttime", Unit::Seconds)
        .or_else(|_| Entry::started(row, "createtime", Unit::Seconds))?;
    let metadata = row.row("metadata").ok_or(Refusal::Malformed)?;
    let state = metadata.word("querystate").unwrap_or_default();
    // The event of a query's creation tells of the same query.
    if !matches!(state.as_str(), "finished" | "failed") {
        return Err(Refusal::Irrelevant);
    }
    if state == "failed" || row.has("failureinfo") {
        return Err(LeftOut::Failed.into());
    }
    let statistics = row.row("statistics").unwrap_or_default();
    let inputs = row.row("iometadata").map(|io| io.rows("inputs")).unwrap_or_default();
    let context = row.row("context").unwrap_or_default();
    let schema = context.word("schema");
    let catalog = schema.as_ref().and_then(|_| context.word("catalog"));
    let end = row.instant("endtime", Unit::Seconds);
    let elapsed =
        end.and_then(|end| u64::try_from(end.epoch_ms() - started.started_at.epoch_ms()).ok());
    let joins = metadata.row("jsonplan").map(|plan| plan::joins(&plan)).unwrap_or_default();
    Ok(Entry {
        id: metadata.text("queryid"),
        sql: metadata.text("query"),
        duration_ms: elapsed.or_else(|| statistics.duration_ms("walltime", Unit::Seconds)),
        namespace: catalog.into_iter().chain(schema).collect(),
        total: TableFacts {
            bytes_read: statistics.count("physicalinputbytes"),
            rows_out: statistics.count("physicalinputrows"),
            ..TableFacts::default()
        },
        tables: inputs.iter().filter_map(table).collect(),
        stated: Stated { joins, ..Stated::default() },
        ..started
    })
}

fn table(input: &Row) -> Option<TableFacts> {
    let names = ["catalogname", "schema", "table"].map(|name| input.word(name));
    let name = names.into_iter().flatten().collect::<Vec<_>>().join(".");
    input.has("table").then(|| TableFacts {
        name,
        // Newer versions have columns with their types, older ones just names.
        columns: match input.texts("columns") {
            names if names.is_empty() => {
                input.rows("columns").iter().filter_map(|column| column.word("name")).collect()
            }
            names => names.into_iter().map(|name| name.to_lowercase()).collect(),
        },
        bytes_read: input.count("physicalinputbytes"),
        rows_out: input.count("physicalinputrows"),
        ..TableFacts::default()
    })
}
