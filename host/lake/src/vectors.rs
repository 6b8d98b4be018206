//! Deletion vectors: rows of a file that are hidden, written anew with more of them.
//!
//! Positions count the rows of the file, hidden ones included (PROTOCOL.md, "Deletion Vectors").

use std::{collections::BTreeSet, sync::Arc};

use datafusion::{common::cast::as_boolean_array, error::DataFusionError};
use delta_kernel::{
    Engine,
    actions::deletion_vector_writer::{KernelDeletionVector, StreamingDeletionVectorWriter},
};
use futures::StreamExt;
use lakebed_layout::{
    TableSnapshot,
    action::{AddFile, DeletionVector},
};
use object_store::{ObjectStoreExt, path::Path};
use uuid::Uuid;

use crate::{
    DeltaLake, LakeError,
    delete::{Attempt, Touched, check_rows},
    files::deleted_rows,
    kernel,
    stats::with_loose_bounds,
    tables::storage_fault,
};

/// Files with more hidden rows, not yet committed.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    /// The files' new entries.
    pub(crate) adds: Vec<AddFile>,
    /// The new file with the vectors.
    pub(crate) created: Vec<String>,
}

impl DeltaLake {
    /// Hides the rows for which a predicate is true; each file comes with how many those are.
    pub(crate) async fn hide_rows(
        &self,
        attempt: Attempt<'_>,
        parts: &[Touched<'_>],
        predicate: &str,
    ) -> Result<Hidden, LakeError> {
        let snapshot = attempt.snapshot;
        let id = Uuid::new_v4();
        let mut bytes = Vec::new();
        let mut hidden = Hidden::default();
        let mut writer = StreamingDeletionVectorWriter::new(&mut bytes);
        for Touched { file, gone: expected } in parts {
            let gone = self.hidden_positions(snapshot, file).await?;
            let found = self.matching_positions(attempt, file, predicate, &gone).await?;
            check_rows(snapshot, *expected, found.len() as u64)?;
            let mut vector = KernelDeletionVector::new();
            vector.add_deleted_row_indexes(gone.iter().chain(&found).copied());
            let written = writer.write_deletion_vector(vector).map_err(|error| {
                self.vector_fault("write the deletion vector of", snapshot, error)
            })?;
            hidden.adds.push(AddFile {
                data_change: true,
                stats: file.stats.as_deref().map(with_loose_bounds),
                deletion_vector: Some(DeletionVector {
                    storage_type: "u".to_owned(),
                    path_or_inline_dv: z85::encode(id.as_bytes()),
                    offset: Some(written.offset),
                    size_in_bytes: written.size_in_bytes,
                    cardinality: written.cardinality,
                }),
                ..(*file).clone()
            });
        }
        writer
            .finalize()
            .map_err(|error| self.vector_fault("write the deletion vectors of", snapshot, error))?;
        let name = format!("deletion_vector_{id}.bin");
        let store = self.writable(&snapshot.table).await?;
        store
            .put(&Path::from(name.as_str()), bytes.into())
            .await
            .map_err(|error| self.vector_fault("write the deletion vectors of", snapshot, error))?;
        hidden.created.push(name);
        Ok(hidden)
    }

    /// Reads which rows of a file are hidden already, in order.
    async fn hidden_positions(
        &self,
        snapshot: &TableSnapshot,
        file: &AddFile,
    ) -> Result<BTreeSet<u64>, LakeError> {
        let Some(vector) = file.deletion_vector.clone() else { return Ok(BTreeSet::new()) };
        let engine = self.log_store(&snapshot.table)?.engine(None);
        let root = kernel::folder(self.location(&snapshot.table)?);
        let read = move |engine: &dyn Engine| deleted_rows(&vector, engine, &root);
        let rows = kernel::blocking(engine, read)
            .await
            .map_err(|error| self.vector_fault("read a deletion vector of", snapshot, error))?;
        Ok(rows.into_iter().collect())
    }

    /// Evaluates a predicate for every visible row of a file, in the file's order.
    async fn matching_positions(
        &self,
        attempt: Attempt<'_>,
        file: &AddFile,
        predicate: &str,
        hidden: &BTreeSet<u64>,
    ) -> Result<Vec<u64>, LakeError> {
        let fail = |source: DataFusionError| attempt.refused(source);
        let context = self.session_with(1).into_context();
        let scan = self.file_scan(attempt.snapshot, std::slice::from_ref(file), 1).await?;
        let (frame, condition) = attempt.opened(&context, Arc::new(scan), predicate).await?;
        // As a column: a filter would be pushed into the scan, and skipped rows do not count.
        let frame = frame.select(vec![condition.is_true().alias("hit")]).map_err(fail)?;
        let mut rows = frame.execute_stream().await.map_err(fail)?;
        let mut position = 0_u64;
        let mut found = Vec::new();
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(fail)?;
            for hit in as_boolean_array(batch.column(0)).map_err(fail)? {
                while hidden.contains(&position) {
                    position += 1;
                }
                if hit == Some(true) {
                    found.push(position);
                }
                position += 1;
            }
        }
        Ok(found)
    }

    fn vector_fault(
        &self,
        action: &str,
        snapshot: &TableSnapshot,
        error: impl std::error::Error + Send + Sync + 'static,
    ) -> LakeError {
        match self.location(&snapshot.table) {
            Ok(location) => storage_fault(action, &snapshot.table, location, error).into(),
            Err(unknown) => unknown.into(),
        }
    }
}
