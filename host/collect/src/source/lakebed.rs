//! Lakebed's own engine: the statements that `lakebed sql` kept under `_lakebed/statements` of a lake.
//!
//! The records are a Delta table that is only ever appended to. Its files are read as they lie there:
//! a statement's id is unique, so a file that a rewrite left behind adds nothing.

use std::path::{Path, PathBuf};

use super::rows::{Entry, LeftOut, Refusal, Row, RowSource, TableFacts, Unit};

pub(super) static SOURCE: RowSource = RowSource {
    name: "lakebed",
    dialect: "spark",
    recognizes: |head| head.has("table_versions") && head.has("sql") && head.has("origin"),
    required: &[&["id"], &["started_at"], &["sql"]],
    entry,
};

/// Finds the files of a lake's own history, by name; `None` where a folder is no lake that has one.
pub(crate) fn history_of(folder: &Path) -> Option<Vec<PathBuf>> {
    let records = folder.join("_lakebed").join("statements");
    let mut files: Vec<PathBuf> = std::fs::read_dir(records)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "parquet"))
        .collect();
    files.sort();
    (!files.is_empty()).then_some(files)
}

fn entry(row: &Row) -> Result<Entry, Refusal> {
    let started = Entry::started(row, "started_at", Unit::Millis)?;
    if row.word("origin").is_some_and(|origin| origin != "user") {
        return Err(LeftOut::Own.into());
    }
    if row.word("status").is_some_and(|status| status == "failed") {
        return Err(LeftOut::Failed.into());
    }
    Ok(Entry {
        id: row.text("id"),
        sql: row.text("sql"),
        duration_ms: row.count("duration_ms"),
        total: TableFacts {
            bytes_read: row.count("bytes_read"),
            files_read: row.count("files_read"),
            ..TableFacts::default()
        },
        ..started
    })
}
