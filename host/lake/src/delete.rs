//! DELETE: rows leave a table in one commit that is judged like a rewrite.
//!
//! 1. Ask which files hold matching rows; files that statistics exclude are never opened.
//! 2. Files without a row left are removed. The others are written anew, partition by partition, or,
//!    where the table has deletion vectors on, their rows are hidden ([`crate::vectors`]). A row that
//!    is written anew keeps its id and version where the table tracks rows.
//! 3. Where the table has a change data feed, the deleted rows are written for its readers
//!    ([`crate::change_data`]).

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::AsArray,
    datatypes::{DataType, FieldRef, Int64Type, Schema, SchemaRef},
};
use datafusion::{
    catalog::TableProvider,
    common::{Column, TableReference},
    error::DataFusionError,
    execution::SendableRecordBatchStream,
    functions_aggregate::count::count_all,
    logical_expr::{Expr, cast},
    prelude::{DataFrame, SessionContext, col},
};
use lakebed_layout::{
    Change, FileReader, InputFile, Lake, LayoutError, MAX_ATTEMPTS, Replacement, TableSnapshot,
    WriteOptions, action::AddFile, commit_change, conflict::Scope, input_file,
};
use lakebed_model::{Bytes, Instant, TableName};
use object_store::{path::Path, prefix::PrefixStore};
use serde_json::json;

use crate::{
    DeltaLake, DmlReport, LakeError,
    create::Naming,
    files::{FileScan, row_tracking_fields},
    kernel, literals, predicate,
    rewrite::ScanRequest,
    scan::engine_scan,
    write::{Cut, count, write_files},
};

/// Column of a scan with the file that a row is from.
const FILE: &str = "__lakebed_file";

/// Which rows a DELETE is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeleteClause<'c> {
    /// The table's name in the predicate, where it is not its own.
    pub alias: Option<&'c str>,
    /// What is true of the rows; all rows where there is none.
    pub predicate: Option<&'c str>,
}

/// A file with rows to delete.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touched<'s> {
    pub(crate) file: &'s AddFile,
    /// How many; not known where all rows go and statistics do not say how many those are.
    pub(crate) gone: Option<u64>,
}

impl Touched<'_> {
    /// Tells whether no row stays.
    fn is_whole(&self) -> bool {
        live_rows(self.file) == self.gone
    }
}

/// One attempt of a DELETE.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) snapshot: &'a TableSnapshot,
    pub(crate) clause: DeleteClause<'a>,
    file_size: Bytes,
    now: Instant,
}

/// Where some rows are written to.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Folder in the table's, as the log spells it; empty for the table's own.
    pub(crate) folder: String,
    pub(crate) partition_values: BTreeMap<String, Option<String>>,
    /// Columns that the table does not show.
    pub(crate) hidden: Vec<FieldRef>,
}

impl DeltaLake {
    /// Deletes the rows for which a predicate is true; all rows without one.
    ///
    /// # Errors
    /// Fails when the table must not be written or is append-only, when the predicate makes no sense,
    /// when storage does, or when other writers keep winning; then nothing is left.
    pub async fn delete(
        &self,
        table: &TableName,
        clause: DeleteClause<'_>,
        options: impl Into<WriteOptions>,
        now: Instant,
    ) -> Result<DmlReport, LakeError> {
        let options = options.into();
        if let Some(text) = clause.predicate {
            let refused = predicate::check_text(table, text).map_err(|source| {
                let sql = format!("DELETE FROM {table} WHERE {text}");
                LakeError::Query { sql, source }
            })?;
            if let Some(error) = refused {
                return Err(error.into());
            }
        }
        for attempt in 1..=MAX_ATTEMPTS {
            let snapshot = self.snapshot(table).await?;
            check_deletable(&snapshot)?;
            let file_size = snapshot.target_file_size(options.default_file_size);
            let this = Attempt { snapshot: &snapshot, clause, file_size, now };
            if let Some(mut report) = self.delete_once(this).await? {
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
    async fn delete_once(&self, attempt: Attempt<'_>) -> Result<Option<DmlReport>, LakeError> {
        let snapshot = attempt.snapshot;
        let touched = match attempt.clause.predicate {
            None => snapshot.files.iter().map(all_of).collect(),
            Some(predicate) => self.matches(attempt, predicate).await?,
        };
        if touched.is_empty() {
            return Ok(Some(DmlReport { version: snapshot.version, ..DmlReport::default() }));
        }
        let mut report = DmlReport {
            rows: touched.iter().filter_map(|entry| entry.gone).sum(),
            files_removed: count(touched.len()),
            ..DmlReport::default()
        };
        let mut change = Change {
            removes: touched.iter().map(|entry| entry.file).collect(),
            restated: Vec::new(),
            adds: Vec::new(),
            changes: Vec::new(),
            data_change: true,
            created: Vec::new(),
            scope: Scope::Rearrange,
            commit_info: serde_json::Value::Null,
        };
        let prepared = self.prepare(attempt, &touched, &mut change, &mut report).await;
        if let Err(error) = prepared {
            self.discard(&snapshot.table, &change.created).await;
            return Err(error);
        }
        change.commit_info = delete_info(attempt, &report);
        match commit_change(self, snapshot, change).await? {
            Replacement::Committed { version } => Ok(Some(DmlReport { version, ..report })),
            Replacement::Replan => Ok(None),
        }
    }

    /// Writes what a DELETE needs; what was written is in `change` even when more of it fails.
    async fn prepare(
        &self,
        attempt: Attempt<'_>,
        touched: &[Touched<'_>],
        change: &mut Change<'_>,
        report: &mut DmlReport,
    ) -> Result<(), LakeError> {
        let parts: Vec<Touched<'_>> =
            touched.iter().filter(|entry| !entry.is_whole()).copied().collect();
        if let (Some(predicate), false) = (attempt.clause.predicate, parts.is_empty()) {
            // A file with a vector must say how many rows it has.
            let can_hide = has_vectors(attempt.snapshot);
            let (hide, copy): (Vec<Touched<'_>>, Vec<Touched<'_>>) =
                parts.iter().partition(|part| can_hide && part.file.rows().is_some());
            self.copy_rows(attempt, &copy, predicate, change).await?;
            report.files_added = count(change.adds.len());
            report.rows_copied = change.adds.iter().filter_map(AddFile::rows).sum();
            if !hide.is_empty() {
                let hidden = self.hide_rows(attempt, &hide, predicate).await?;
                report.vectors_added = count(hidden.adds.len());
                report.files_removed -= report.vectors_added;
                change.adds.extend(hidden.adds);
                change.created.extend(hidden.created);
            }
        }
        // Readers take removed files for deleted rows, but not all of them look at what a deletion
        // vector had hidden before.
        let is_plain = parts.is_empty() && touched.iter().all(|e| e.file.deletion_vector.is_none());
        if attempt.snapshot.has_change_data_feed() && !is_plain {
            self.write_deleted(attempt, touched, change).await?;
            report.change_files = count(change.changes.len());
        }
        Ok(())
    }

    /// Counts the matching rows of every file that has some.
    async fn matches<'s>(
        &self,
        attempt: Attempt<'s>,
        predicate: &str,
    ) -> Result<Vec<Touched<'s>>, LakeError> {
        let snapshot = attempt.snapshot;
        let table = &snapshot.table;
        let fail = |source| attempt.refused(source);
        if snapshot.files.is_empty() {
            return Ok(Vec::new());
        }
        if snapshot.reader() == FileReader::Engine {
            // A scan of which statistics leave no file forgets the column that names files, and the
            // engine panics; so one matching row is looked for first.
            let context = self.session().into_context();
            let scan = engine_scan(self.log_store(table)?, &context, snapshot.version, None);
            let scan = scan.await.map_err(fail)?;
            let (frame, condition) = attempt.opened(&context, scan, predicate).await?;
            let first = frame.filter(condition).and_then(|frame| frame.limit(0, Some(1)));
            if Box::pin(first.map_err(fail)?.count()).await.map_err(fail)? == 0 {
                return Ok(Vec::new());
            }
        }
        let context = self.session().into_context();
        let scan: Arc<dyn TableProvider> = match snapshot.reader() {
            FileReader::Engine => {
                engine_scan(self.log_store(table)?, &context, snapshot.version, Some(FILE))
                    .await
                    .map_err(fail)?
            }
            FileReader::FileByFile => {
                let threads = self.options.threads.get();
                let scan = self.file_scan(snapshot, &snapshot.files, threads).await?;
                Arc::new(scan.with_file_column(FILE))
            }
        };
        let (frame, condition) = attempt.opened(&context, scan, predicate).await?;
        let counted = frame
            .filter(condition)
            .and_then(|frame| frame.aggregate(vec![col(FILE)], vec![count_all().alias("n")]))
            .and_then(|frame| frame.select(vec![cast(col(FILE), DataType::Utf8), col("n")]))
            .map_err(fail)?;
        let batches = Box::pin(counted.collect()).await.map_err(fail)?;
        let by_id: BTreeMap<String, &AddFile> =
            snapshot.files.iter().map(|file| (scan_name(snapshot, file), file)).collect();
        let mut found = Vec::new();
        for batch in &batches {
            let ids = batch.column(0).as_string::<i32>();
            let counts = batch.column(1).as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let id = ids.value(row);
                let file = by_id.get(id).ok_or_else(|| {
                    let what = format!("file `{id}` of the scan is not in the log");
                    fail(DataFusionError::Internal(what))
                })?;
                found.push(Touched { file, gone: u64::try_from(counts.value(row)).ok() });
            }
        }
        found.sort_by(|a, b| a.file.path.cmp(&b.file.path));
        Ok(found)
    }

    /// Writes files anew without their matching rows.
    async fn copy_rows(
        &self,
        attempt: Attempt<'_>,
        parts: &[Touched<'_>],
        predicate: &str,
        change: &mut Change<'_>,
    ) -> Result<(), LakeError> {
        let snapshot = attempt.snapshot;
        let fail = |source| attempt.refused(source);
        let hidden: Vec<FieldRef> =
            snapshot.row_tracking_columns().iter().flat_map(row_tracking_fields).collect();
        for group in by_partition(parts) {
            let files: Vec<AddFile> = group.iter().map(|part| part.file.clone()).collect();
            let scan = self.file_scan(snapshot, &files, self.options.threads.get()).await?;
            let context = self.session().into_context();
            let (frame, condition) = attempt.opened(&context, Arc::new(scan), predicate).await?;
            let place = Place {
                folder: folder_of(&files[0].path).to_owned(),
                partition_values: files[0].partition_values.clone(),
                hidden: hidden.clone(),
            };
            let columns = place.schema(snapshot).fields().clone();
            let kept = frame
                .filter(condition.is_not_true())
                .and_then(|frame| frame.select(columns.iter().map(|f| quoted_column(f.name()))))
                .map_err(fail)?;
            let rows = kept.execute_stream().await.map_err(fail)?;
            let adds = self.write_at(attempt, rows, place).await?;
            let written = adds.iter().filter_map(AddFile::rows).sum();
            change.created.extend(adds.iter().map(|add| add.path.clone()));
            change.adds.extend(adds);
            let stays = |part: &Touched<'_>| {
                Some(live_rows(part.file)?.saturating_sub(part.gone.unwrap_or(0)))
            };
            check_rows(snapshot, group.iter().map(stays).sum(), written)?;
        }
        Ok(())
    }

    /// Writes rows as new files of one partition, to be committed by the caller.
    pub(crate) async fn write_at(
        &self,
        attempt: Attempt<'_>,
        rows: SendableRecordBatchStream,
        place: Place,
    ) -> Result<Vec<AddFile>, LakeError> {
        let Attempt { snapshot, file_size, now, .. } = attempt;
        let table = &snapshot.table;
        let engine = |source| LakeError::Engine {
            action: "write files of",
            table: table.to_string(),
            source,
        };
        let schema = place.schema(snapshot);
        let mut spec = self.new_rows_spec(table, schema, Naming::of(snapshot), now).await?;
        spec.hidden_columns = place.hidden.len();
        if !place.folder.is_empty() {
            let folder = Path::from_url_path(&place.folder)
                .map_err(|error| engine(DataFusionError::External(Box::new(error))))?;
            spec.store = Arc::new(PrefixStore::new(spec.store, folder));
        }
        let written = write_files(rows, Cut::Bytes(file_size.0), &spec);
        let mut adds = Box::pin(written).await.map_err(engine)?.adds;
        for add in &mut adds {
            if !place.folder.is_empty() {
                add.path = format!("{}/{}", place.folder, add.path);
            }
            add.partition_values = place.partition_values.clone();
        }
        Ok(adds)
    }

    /// Scans some files one by one, with the ids of rows where the table tracks them.
    pub(crate) async fn file_scan(
        &self,
        snapshot: &TableSnapshot,
        files: &[AddFile],
        partitions: usize,
    ) -> Result<FileScan, LakeError> {
        let table = &snapshot.table;
        let row_tracking = snapshot.row_tracking_columns();
        let inputs: Vec<InputFile> = files.iter().map(input_file).collect();
        let request = ScanRequest {
            table,
            version: snapshot.version,
            inputs: &inputs,
            reader: FileReader::FileByFile,
            column_mapping: snapshot.column_mapping(),
            row_tracking: row_tracking.as_ref(),
        };
        self.scan_one_by_one(request, Arc::clone(&snapshot.schema), partitions).await.map_err(
            |source| LakeError::Engine { action: "scan", table: table.to_string(), source },
        )
    }
}

impl Attempt<'_> {
    /// Opens a scan under the name that the predicate has for it, and reads the predicate.
    pub(crate) async fn opened(
        &self,
        context: &SessionContext,
        scan: Arc<dyn TableProvider>,
        text: &str,
    ) -> Result<(DataFrame, Expr), LakeError> {
        let fail = |source| self.refused(source);
        let frame = self.frame(context, scan).await?;
        let condition = literals::expression(context, text, frame.schema()).map_err(fail)?;
        predicate::check(&self.snapshot.table, &condition)?;
        Ok((frame, condition))
    }

    /// Opens a scan under the table's name in the statement.
    pub(crate) async fn frame(
        &self,
        context: &SessionContext,
        scan: Arc<dyn TableProvider>,
    ) -> Result<DataFrame, LakeError> {
        let table = &self.snapshot.table;
        let fail = |source| LakeError::Engine { action: "scan", table: table.to_string(), source };
        let short = table.as_str().rsplit(['.', '/']).find(|part| !part.is_empty());
        let name = self.clause.alias.unwrap_or_else(|| short.unwrap_or(table.as_str()));
        let name = TableReference::bare(name);
        context.register_table(name.clone(), scan).map_err(fail)?;
        context.table(name).await.map_err(fail)
    }

    /// An error of the engine with the statement that it is about.
    pub(crate) fn refused(&self, source: DataFusionError) -> LakeError {
        let alias = self.clause.alias.map(|alias| format!(" {alias}")).unwrap_or_default();
        let predicate = self.clause.predicate.map(|text| format!(" WHERE {text}"));
        let table = &self.snapshot.table;
        let sql = format!("DELETE FROM {table}{alias}{}", predicate.unwrap_or_default());
        LakeError::Query { sql, source }
    }
}

impl Place {
    /// Returns the columns of its files.
    pub(crate) fn schema(&self, snapshot: &TableSnapshot) -> SchemaRef {
        let is_stored = |field: &&FieldRef| !snapshot.partition_columns.contains(field.name());
        let stored = snapshot.schema.fields().iter().filter(is_stored).chain(&self.hidden);
        Arc::new(Schema::new(stored.cloned().collect::<Vec<FieldRef>>()))
    }
}

/// Groups files by their partitions.
pub(crate) fn by_partition<'t>(touched: &[Touched<'t>]) -> Vec<Vec<Touched<'t>>> {
    let mut groups: BTreeMap<&BTreeMap<String, Option<String>>, Vec<Touched<'t>>> = BTreeMap::new();
    for entry in touched {
        groups.entry(&entry.file.partition_values).or_default().push(*entry);
    }
    groups.into_values().collect()
}

/// Returns the folder of a file as the log spells it; the table's own for a file that lies elsewhere.
fn folder_of(path: &str) -> &str {
    let is_elsewhere = path.starts_with('/') || path.contains(":/");
    path.rsplit_once('/').filter(|_| !is_elsewhere).map_or("", |(folder, _)| folder)
}

/// Fails when other rows were written than were counted.
pub(crate) fn check_rows(
    snapshot: &TableSnapshot,
    expected: Option<u64>,
    written: u64,
) -> Result<(), LayoutError> {
    match expected.filter(|expected| *expected != written) {
        None => Ok(()),
        Some(rows_in) => Err(LayoutError::RowCount {
            table: snapshot.table.to_string(),
            rows_in,
            rows_out: written,
        }),
    }
}

fn check_deletable(snapshot: &TableSnapshot) -> Result<(), LayoutError> {
    snapshot.refuse(snapshot.delete_refusal())?;
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

fn all_of(file: &AddFile) -> Touched<'_> {
    Touched { file, gone: live_rows(file) }
}

/// How a scan names a file: the engine by its URL, ours by its path.
fn scan_name(snapshot: &TableSnapshot, file: &AddFile) -> String {
    if snapshot.reader() == FileReader::FileByFile {
        return file.path.clone();
    }
    let root = &snapshot.location;
    url::Url::parse(root)
        .and_then(|root| kernel::folder(&root).join(&file.path))
        .map_or_else(|_| format!("{root}{}", file.path), |url| url.to_string())
}

pub(crate) fn quoted_column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// delta-spark's `DELETE` history entry (`DeltaOperations.scala`).
fn delete_info(attempt: Attempt<'_>, report: &DmlReport) -> serde_json::Value {
    let predicates: Vec<&str> = attempt.clause.predicate.into_iter().collect();
    let mut info = json!({
        "timestamp": attempt.now.epoch_ms(),
        "operation": "DELETE",
        "operationParameters": {
            "predicate": serde_json::to_string(&predicates).unwrap_or_default(),
        },
        "readVersion": attempt.snapshot.version,
        "isolationLevel": "WriteSerializable",
        "isBlindAppend": false,
        "operationMetrics": {
            "numDeletedRows": report.rows.to_string(),
            "numCopiedRows": report.rows_copied.to_string(),
            "numAddedFiles": report.files_added.to_string(),
            "numRemovedFiles": report.files_removed.to_string(),
            "numDeletionVectorsAdded": report.vectors_added.to_string(),
            "numAddedChangeFiles": report.change_files.to_string(),
        },
    });
    if attempt.snapshot.row_tracking_columns().is_some() {
        info["tags"] = json!({ "delta.rowTracking.preserved": "true" });
    }
    info
}

#[cfg(test)]
mod tests {
    use lakebed_layout::testing::{FakeLake, plain_file};
    use lakebed_model::TableName;

    /// The engine has the container of an Azure table in the host of its URLs.
    #[tokio::test]
    async fn files_are_named_as_the_engine_names_them() {
        let lake = FakeLake::new(&[], vec![]);
        let snapshot = lakebed_layout::Lake::snapshot(&lake, &TableName::new("t")).await.unwrap();
        for (location, expected) in [
            ("file:///lake/t", "file:///lake/t/f%20g"),
            ("s3://bucket/t/", "s3://bucket/t/f%20g"),
            (
                "abfss://box@account.dfs.core.windows.net/t",
                "abfss://box.account.dfs.core.windows.net/t/f%20g",
            ),
        ] {
            let location = location.to_owned();
            let snapshot = lakebed_layout::TableSnapshot { location, ..snapshot.clone() };
            assert_eq!(super::scan_name(&snapshot, &plain_file("f%20g", 1)), expected);
        }
    }
}
