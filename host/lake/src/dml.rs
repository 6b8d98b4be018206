//! INSERT and DELETE: rows join and leave a table in commits that are judged like rewrites.
//!
//! A DELETE asks which files hold matching rows (files that statistics exclude are never opened),
//! removes files without a row left, and writes the others anew or, where the table has deletion
//! vectors on, hides their rows.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::AsArray,
    datatypes::{DataType, Field, Int64Type},
};
use datafusion::{
    common::{ScalarValue, tree_node::TreeNode},
    error::DataFusionError,
    functions_aggregate::count::count_all,
    logical_expr::{Expr, cast, lit},
    prelude::{DataFrame, SessionContext, col},
};
use deltalake::delta_datafusion::DeltaScanNext;
use lakebed_layout::{
    AutoCompaction, Change, FileSizing, Lake, LayoutError, MAX_ATTEMPTS, Replacement,
    TableSnapshot, WriteOptions, action::AddFile, commit_change, conflict::Scope, input_file,
};
use lakebed_model::{Bytes, Instant, TableName};
use serde_json::json;

use crate::{DeltaLake, LakeError, create::streams_of, kernel, rules::Rules, write::Cut};

/// Column of a scan with the file that a row is from.
const FILE: &str = "__lakebed_file";

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
        check_numbers(table, query)?;
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

    /// Deletes the rows for which a predicate is true; all rows without one.
    ///
    /// # Errors
    /// Fails when the table must not be written or is append-only, when the predicate makes no sense,
    /// when storage does, or when other writers keep winning; then nothing is left.
    pub async fn delete(
        &self,
        table: &TableName,
        predicate: Option<&str>,
        options: impl Into<WriteOptions>,
        now: Instant,
    ) -> Result<DmlReport, LakeError> {
        let options = options.into();
        check_numbers(table, predicate.unwrap_or_default())?;
        for attempt in 1..=MAX_ATTEMPTS {
            let snapshot = self.snapshot(table).await?;
            check_deletable(&snapshot)?;
            let size = options.default_file_size;
            if let Some(mut report) = self.delete_once(&snapshot, predicate, size, now).await? {
                let added = usize::try_from(report.files_added).unwrap_or(usize::MAX);
                report.auto_compaction = self.after_write(&snapshot, added, &options, now).await;
                return Ok(report);
            }
            tracing::warn!(%table, attempt, "files of the delete changed, planning again");
            self.pause(attempt).await;
        }
        let table = table.to_string();
        Err(LayoutError::TooManyConflicts { table, attempts: MAX_ATTEMPTS }.into())
    }

    /// One attempt; `None` when another writer touched a file of it.
    async fn delete_once(
        &self,
        snapshot: &TableSnapshot,
        predicate: Option<&str>,
        default_file_size: FileSizing,
        now: Instant,
    ) -> Result<Option<DmlReport>, LakeError> {
        let touched = match predicate {
            None => snapshot.files.iter().map(|file| (file, live_rows(file))).collect(),
            Some(predicate) => self.matches(snapshot, predicate).await?,
        };
        if touched.is_empty() {
            return Ok(Some(DmlReport { version: snapshot.version, ..DmlReport::default() }));
        }
        let is_whole = |(file, rows): &&(&AddFile, Option<u64>)| live_rows(file) == *rows;
        let parts: Vec<(&AddFile, u64)> = touched
            .iter()
            .filter(|entry| !is_whole(entry))
            .map(|(file, rows)| (*file, rows.unwrap_or(0)))
            .collect();
        let mut report = DmlReport {
            rows: touched.iter().filter_map(|(_, rows)| *rows).sum(),
            files_removed: count(touched.len()),
            ..DmlReport::default()
        };
        let mut change = Change {
            removes: touched.iter().map(|(file, _)| *file).collect(),
            restated: Vec::new(),
            adds: Vec::new(),
            data_change: true,
            created: Vec::new(),
            scope: Scope::Rearrange,
            commit_info: serde_json::Value::Null,
        };
        if let (Some(predicate), false) = (predicate, parts.is_empty()) {
            if has_vectors(snapshot) {
                let hidden = self.hide_rows(snapshot, &parts, predicate).await?;
                report.vectors_added = count(hidden.adds.len());
                report.files_removed -= report.vectors_added;
                change.adds = hidden.adds;
                change.created = hidden.created;
            } else {
                let size = snapshot.target_file_size(default_file_size);
                let output = self.without_rows(snapshot, &parts, predicate, size, now).await?;
                report.rows_copied = output.rows_out;
                report.files_added = count(output.adds.len());
                change.created = output.adds.iter().map(|add| add.path.clone()).collect();
                change.adds = output.adds;
            }
        }
        change.commit_info = delete_info(snapshot, predicate, &report, now);
        match commit_change(self, snapshot, change).await? {
            Replacement::Committed { version } => Ok(Some(DmlReport { version, ..report })),
            Replacement::Replan => Ok(None),
        }
    }

    /// Counts the matching rows of every file that has some.
    async fn matches<'s>(
        &self,
        snapshot: &'s TableSnapshot,
        predicate: &str,
    ) -> Result<Vec<(&'s AddFile, Option<u64>)>, LakeError> {
        let fail = |source| refused(snapshot, predicate, source);
        if snapshot.files.is_empty() {
            return Ok(Vec::new());
        }
        // A scan of which statistics leave no file forgets the column that names files, and the
        // engine panics; so one matching row is looked for first.
        let context = self.session().into_context();
        let frame = self.predicate_frame(&context, snapshot, &snapshot.files, false).await?;
        let condition = frame.parse_sql_expr(predicate).map_err(fail)?;
        refuse_nulls(snapshot, &condition)?;
        let first = frame.filter(condition).and_then(|frame| frame.limit(0, Some(1)));
        if Box::pin(first.map_err(fail)?.count()).await.map_err(fail)? == 0 {
            return Ok(Vec::new());
        }
        let context = self.session().into_context();
        let frame = self.predicate_frame(&context, snapshot, &snapshot.files, true).await?;
        let condition = frame.parse_sql_expr(predicate).map_err(fail)?;
        let counted = frame
            .filter(condition)
            .and_then(|frame| frame.aggregate(vec![col(FILE)], vec![count_all().alias("n")]))
            .and_then(|frame| frame.select(vec![cast(col(FILE), DataType::Utf8), col("n")]))
            .map_err(fail)?;
        let batches = Box::pin(counted.collect()).await.map_err(fail)?;
        let by_id: BTreeMap<String, &AddFile> =
            snapshot.files.iter().map(|file| (file_id(snapshot, file), file)).collect();
        let mut found = Vec::new();
        for batch in &batches {
            let ids = batch.column(0).as_string::<i32>();
            let counts = batch.column(1).as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let id = ids.value(row);
                let file = by_id.get(id).ok_or_else(|| {
                    fail(DataFusionError::Internal(format!(
                        "file `{id}` of the scan is not in the log"
                    )))
                })?;
                found.push((*file, u64::try_from(counts.value(row)).ok()));
            }
        }
        found.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
        Ok(found)
    }

    /// Writes files anew without their matching rows.
    async fn without_rows(
        &self,
        snapshot: &TableSnapshot,
        parts: &[(&AddFile, u64)],
        predicate: &str,
        file_size: Bytes,
        now: Instant,
    ) -> Result<lakebed_layout::RewriteOutput, LakeError> {
        let fail = |source| refused(snapshot, predicate, source);
        let files: Vec<AddFile> = parts.iter().map(|(file, _)| (*file).clone()).collect();
        let context = self.session().into_context();
        let frame = self.predicate_frame(&context, snapshot, &files, false).await?;
        let condition = frame.parse_sql_expr(predicate).map_err(fail)?;
        let columns: Vec<Expr> =
            snapshot.schema.fields().iter().map(|field| quoted_column(field.name())).collect();
        let kept = frame
            .filter(condition.is_not_true())
            .and_then(|frame| frame.select(columns))
            .map_err(fail)?;
        let rows = kept.execute_stream().await.map_err(fail)?;
        let output = self.write_appended(snapshot, rows, Cut::Bytes(file_size.0), now).await?;
        let expected: Option<u64> =
            parts.iter().map(|(file, gone)| Some(live_rows(file)?.saturating_sub(*gone))).sum();
        if let Some(expected) = expected.filter(|expected| *expected != output.rows_out) {
            let paths: Vec<String> = output.adds.iter().map(|add| add.path.clone()).collect();
            self.discard(&snapshot.table, &paths).await;
            return Err(LayoutError::RowCount {
                table: snapshot.table.to_string(),
                rows_in: expected,
                rows_out: output.rows_out,
            }
            .into());
        }
        Ok(output)
    }

    /// Opens files under the table's name, with the column [`FILE`] where it is asked for.
    pub(crate) async fn predicate_frame(
        &self,
        context: &SessionContext,
        snapshot: &TableSnapshot,
        files: &[AddFile],
        with_file: bool,
    ) -> Result<DataFrame, LakeError> {
        let table = &snapshot.table;
        let fail = |source| LakeError::Engine { action: "scan", table: table.to_string(), source };
        let scan = DeltaScanNext::builder()
            .with_log_store(self.log_store(table)?)
            .with_session(Arc::new(context.state()))
            .with_table_version(snapshot.version)
            .with_file_paths(files.iter().map(input_file).map(|input| input.path));
        let scan = if with_file { scan.with_file_column(FILE) } else { scan };
        let scan = scan.build().await.map_err(fail)?;
        let short = table.as_str().rsplit(['.', '/']).find(|part| !part.is_empty());
        let name = datafusion::common::TableReference::bare(short.unwrap_or(table.as_str()));
        context.register_table(name.clone(), Arc::new(scan)).map_err(fail)?;
        context.table(name).await.map_err(fail)
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

/// The engine reads numbers with a point as floats, which keep 15 digits: more must not be compared
/// with what is stored, or stored, unseen.
fn check_numbers(table: &TableName, text: &str) -> Result<(), LayoutError> {
    const EXACT_DIGITS: usize = 15;
    let is_part = |c: char| c.is_alphanumeric() || c == '.' || c == '_';
    let is_long = |word: &&str| {
        let digits = word.trim_start_matches(['0', '.']).chars().filter(char::is_ascii_digit);
        word.contains('.')
            && word.chars().all(|c| c.is_ascii_digit() || c == '.')
            && digits.count() > EXACT_DIGITS
    };
    // Texts between apostrophes hold no numbers: every second part is one.
    let outside = text.split('\'').step_by(2);
    let found = outside.flat_map(|part| part.split(|c| !is_part(c))).find(is_long);
    let Some(number) = found else { return Ok(()) };
    Err(LayoutError::NotAllowed {
        statement: format!("use the number {number}"),
        table: table.to_string(),
        class: "LAKEBED_INEXACT_NUMBER",
        reason: format!(
            "it has more than {EXACT_DIGITS} digits and would be rounded; write \
             CAST('{number}' AS DECIMAL(38, 10)) or as the column's type is"
        ),
    })
}

/// The engine drops a conjunct that is always null, and with it the rows that it should have kept.
fn refuse_nulls(snapshot: &TableSnapshot, condition: &Expr) -> Result<(), LakeError> {
    let is_null = |part: &Expr| Ok(matches!(part, Expr::Literal(value, _) if value.is_null()));
    let found = condition.exists(is_null).map_err(|source| LakeError::Engine {
        action: "read the predicate for",
        table: snapshot.table.to_string(),
        source,
    })?;
    if !found {
        return Ok(());
    }
    Err(LayoutError::NotAllowed {
        statement: "run DELETE with NULL in its predicate".to_owned(),
        table: snapshot.table.to_string(),
        class: "LAKEBED_NULL_LITERAL",
        reason: "a comparison with NULL is never true; write IS NULL where that is meant"
            .to_owned(),
    }
    .into())
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

fn check_deletable(snapshot: &TableSnapshot) -> Result<(), LayoutError> {
    snapshot.refuse(snapshot.write_refusal().or_else(|| snapshot.delete_refusal()))?;
    if snapshot.is_on("delta.appendOnly") {
        return Err(LayoutError::NotAllowed {
            statement: "run DELETE".to_owned(),
            table: snapshot.table.to_string(),
            class: "DELTA_CANNOT_MODIFY_APPEND_ONLY",
            reason: "the table is append-only; SET TBLPROPERTIES ('delta.appendOnly' = 'false') \
                     allows deletes"
                .to_owned(),
        });
    }
    Ok(())
}

/// The property alone decides: the feature may stay in a protocol whose owner wants no new vectors.
fn has_vectors(snapshot: &TableSnapshot) -> bool {
    snapshot.is_on("delta.enableDeletionVectors") && snapshot.has_feature("deletionVectors")
}

fn live_rows(file: &AddFile) -> Option<u64> {
    input_file(file).live_rows
}

/// How the scan names a file: its URL.
pub(crate) fn file_id(snapshot: &TableSnapshot, file: &AddFile) -> String {
    let root = &snapshot.location;
    url::Url::parse(root)
        .and_then(|root| kernel::folder(&root).join(&file.path))
        .map_or_else(|_| format!("{root}{}", file.path), |url| url.to_string())
}

pub(crate) fn quoted_column(name: &str) -> Expr {
    Expr::Column(datafusion::common::Column::new_unqualified(name))
}

pub(crate) fn refused(
    snapshot: &TableSnapshot,
    predicate: &str,
    source: DataFusionError,
) -> LakeError {
    let sql = format!("DELETE FROM {} WHERE {predicate}", snapshot.table);
    LakeError::Query { sql, source }
}

/// delta-spark's `DELETE` history entry (`DeltaOperations.scala`).
fn delete_info(
    snapshot: &TableSnapshot,
    predicate: Option<&str>,
    report: &DmlReport,
    now: Instant,
) -> serde_json::Value {
    let predicates: Vec<&str> = predicate.into_iter().collect();
    json!({
        "timestamp": now.epoch_ms(),
        "operation": "DELETE",
        "operationParameters": {
            "predicate": serde_json::to_string(&predicates).unwrap_or_default(),
        },
        "readVersion": snapshot.version,
        "isolationLevel": "WriteSerializable",
        "isBlindAppend": false,
        "operationMetrics": {
            "numDeletedRows": report.rows.to_string(),
            "numCopiedRows": report.rows_copied.to_string(),
            "numAddedFiles": report.files_added.to_string(),
            "numRemovedFiles": report.files_removed.to_string(),
            "numDeletionVectorsAdded": report.vectors_added.to_string(),
        },
    })
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
