//! The change data feed: rows that a commit deletes, written for readers of changes.
//!
//! Such files lie in `_change_data` and have the table's columns and `_change_type` (PROTOCOL.md, "Add
//! CDC File"). None lies in a folder of its partition: deltalake reads their paths undecoded. Where a
//! commit has one, readers look at nothing else of it, so the rows of files that go whole are written
//! as well.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::logical_expr::{Expr, lit};
use lakebed_layout::{Change, action::AddFile};

use crate::{
    DeltaLake, LakeError,
    delete::{Attempt, Place, Touched, by_partition, check_rows, quoted_column},
};

const FOLDER: &str = "_change_data";
/// What happened to a row.
pub(crate) const CHANGE_TYPE: &str = "_change_type";

impl DeltaLake {
    /// Writes the rows that a DELETE takes away.
    pub(crate) async fn write_deleted(
        &self,
        attempt: Attempt<'_>,
        touched: &[Touched<'_>],
        change: &mut Change<'_>,
    ) -> Result<(), LakeError> {
        let snapshot = attempt.snapshot;
        let fail = |source| attempt.refused(source);
        for group in by_partition(touched) {
            let files: Vec<AddFile> = group.iter().map(|entry| entry.file.clone()).collect();
            let scan = self.file_scan(snapshot, &files, self.options.threads.get()).await?;
            let context = self.session().into_context();
            let frame = match attempt.clause.predicate {
                None => attempt.frame(&context, Arc::new(scan)).await?,
                Some(text) => {
                    let (frame, condition) = attempt.opened(&context, Arc::new(scan), text).await?;
                    frame.filter(condition).map_err(fail)?
                }
            };
            let mut place = Place {
                folder: FOLDER.to_owned(),
                partition_values: files[0].partition_values.clone(),
                hidden: Vec::new(),
            };
            let mut columns: Vec<Expr> =
                place.schema(snapshot).fields().iter().map(|f| quoted_column(f.name())).collect();
            columns.push(lit("delete").alias(CHANGE_TYPE));
            place.hidden.push(Arc::new(Field::new(CHANGE_TYPE, DataType::Utf8, false)));
            let rows = frame.select(columns).map_err(fail)?.execute_stream().await.map_err(fail)?;
            let files = self.write_at(attempt, rows, place).await?;
            let written = files.iter().filter_map(AddFile::rows).sum();
            change.created.extend(files.iter().map(|file| file.path.clone()));
            change.changes.extend(files);
            check_rows(snapshot, group.iter().map(|entry| entry.gone).sum(), written)?;
        }
        Ok(())
    }
}
