//! INSERT: rows join a table in one commit.

use arrow::datatypes::{DataType, Field};
use datafusion::{
    common::ScalarValue,
    logical_expr::{Expr, cast, lit},
    prelude::DataFrame,
};
use lakebed_layout::{AutoCompaction, Lake, TableSnapshot, WriteOptions};
use lakebed_model::{Instant, TableName};

use crate::{DeltaLake, LakeError, create::streams_of, rules::Rules};

/// What an INSERT or DELETE did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DmlReport {
    /// The version that holds it; the version read when nothing had to be done.
    pub version: u64,
    /// Rows inserted or deleted.
    pub rows: u64,
    /// Rows written again because their file lost others.
    pub rows_copied: u64,
    /// Files that joined.
    pub files_added: u64,
    /// Files that left.
    pub files_removed: u64,
    /// Files of which rows are hidden now.
    pub vectors_added: u64,
    /// What followed the write, where it is switched on.
    pub auto_compaction: Option<AutoCompaction>,
    /// Files with the deleted rows, for readers of the change data feed.
    pub change_files: u64,
}

impl DeltaLake {
    /// Appends the rows of a query.
    ///
    /// Columns are taken by position: all of the table's, or those in `columns`, where the others
    /// become null. Values are cast to the table's types; one that does not fit ends the statement.
    ///
    /// # Errors
    /// Fails when the table must not be written, when the query fails or gives other columns, when a
    /// row breaks a rule of the table, or when storage does; then nothing is left.
    pub async fn insert(
        &self,
        table: &TableName,
        columns: Option<&[String]>,
        query: &str,
        options: impl Into<WriteOptions>,
        now: Instant,
    ) -> Result<DmlReport, LakeError> {
        let options = options.into();
        let fail = |source| LakeError::Query { sql: query.to_owned(), source };
        let snapshot = self.snapshot(table).await?;
        snapshot.refuse(snapshot.write_refusal().or_else(|| snapshot.value_refusal()))?;
        let mut session = self.session();
        let frame = aligned(session.frame(query).await?, &snapshot, columns)?;
        let rules = Rules::new(&snapshot, session.context()).map_err(fail)?;
        let gathered = options.gathers_rows(&snapshot);
        let streams = streams_of(frame, gathered).await.map_err(fail)?;
        let streams = streams.into_iter().map(|rows| rules.clone().checked(rows)).collect();
        let output = self.write_streams(&snapshot, streams, &options, now).await?;
        let rows = output.rows_out;
        let files_added = u64::try_from(output.adds.len()).unwrap_or(u64::MAX);
        if rows == 0 {
            return Ok(DmlReport { version: snapshot.version, ..DmlReport::default() });
        }
        let version = self.commit_append(&snapshot, &output, now).await?;
        let auto_compaction = self.after_write(&snapshot, output.adds.len(), &options, now).await;
        Ok(DmlReport { version, rows, files_added, auto_compaction, ..DmlReport::default() })
    }
}

/// Gives a query's columns the table's order, names and types.
fn aligned(
    frame: DataFrame,
    snapshot: &TableSnapshot,
    columns: Option<&[String]>,
) -> Result<DataFrame, LakeError> {
    let table = snapshot.table.to_string();
    let fields = snapshot.schema.fields();
    let fault = |reason: String| LakeError::Insert { table: table.clone(), reason };
    let names: Vec<String> = match columns {
        Some(columns) => columns.to_vec(),
        None => fields.iter().map(|field| field.name().clone()).collect(),
    };
    let given: Vec<Expr> = frame.schema().columns().into_iter().map(Expr::Column).collect();
    if given.len() != names.len() {
        return Err(fault(format!(
            "the query gives {} columns, expected {}: {}",
            given.len(),
            names.len(),
            names.join(", ")
        )));
    }
    for (position, name) in names.iter().enumerate() {
        let known = fields.iter().any(|field| field.name().eq_ignore_ascii_case(name));
        if !known {
            let all: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            return Err(fault(format!(
                "there is no column `{name}`, the table has {}",
                all.join(", ")
            )));
        }
        if names[..position].iter().any(|other| other.eq_ignore_ascii_case(name)) {
            return Err(fault(format!("column `{name}` is listed twice")));
        }
    }
    let selected: Vec<Expr> = fields
        .iter()
        .map(|field| {
            let position = names.iter().position(|name| name.eq_ignore_ascii_case(field.name()));
            let value = position.map_or_else(|| lit(ScalarValue::Null), |at| given[at].clone());
            // Whether a value may be missing is checked row by row, with a better message.
            cast(value, relaxed(field.data_type())).alias(field.name())
        })
        .collect();
    frame.select(selected).map_err(|source| LakeError::Engine {
        action: "fit the rows to",
        table: table.clone(),
        source,
    })
}

/// The same type with nothing in it that must not be null.
fn relaxed(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Struct(fields) => DataType::Struct(
            fields
                .iter()
                .map(|field| Field::new(field.name(), relaxed(field.data_type()), true))
                .collect(),
        ),
        other => other.clone(),
    }
}
