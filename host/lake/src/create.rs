//! New tables and appends, committed the same way as rewrites.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use deltalake::kernel::{StructType, engine::arrow_conversion::TryIntoKernel};
use futures::stream;
use lakebed_layout::{
    Lake, LakeFault, LayoutError, PutOutcome, Replacement, RewriteOutput, TableSnapshot,
    action::{Action, AddFile, Protocol},
    commit_replacement,
    conflict::Scope,
    ddl,
};
use lakebed_model::{Instant, TableName};
use serde_json::json;

use crate::{
    DeltaLake, LakeError,
    tables::storage_fault,
    write::{WriteSpec, write_files},
};

/// A table to create.
#[derive(Debug, Clone)]
pub struct NewTable {
    /// Its name in the lake.
    pub name: TableName,
    /// Path or URL.
    pub location: String,
    /// Its columns.
    pub schema: SchemaRef,
    /// Table properties.
    pub properties: BTreeMap<String, String>,
}

impl DeltaLake {
    /// Creates a table with rows in one commit: each inner list becomes one file.
    ///
    /// With `target_files`, `delta.targetFileSize` is set so that a rewrite of the whole table gives
    /// about that many files.
    ///
    /// # Errors
    /// Fails when the location holds a table already, or storage fails; then nothing is left.
    pub async fn create_table(
        &mut self,
        new: NewTable,
        files: Vec<Vec<RecordBatch>>,
        target_files: Option<u64>,
        now: Instant,
    ) -> Result<u64, LakeError> {
        self.add_table(new.name.as_str(), &new.location)?;
        let table = &new.name;
        let location = self.location(table)?.clone();
        if let Ok(path) = location.to_file_path() {
            std::fs::create_dir_all(&path)
                .map_err(|error| storage_fault("create", table, &location, error))?;
        }
        let indexed = ddl::DEFAULT_INDEXED_COLUMNS;
        let adds = self.write_appended(table, &new.schema, files, indexed, now).await?;
        let mut properties = new.properties.clone();
        if let Some(files) = target_files {
            let bytes: u64 = adds.iter().map(|add| add.size).sum();
            let size = bytes.div_ceil(files.max(1)).max(1);
            properties.insert("delta.targetFileSize".to_owned(), size.to_string());
        }
        let kernel_schema: StructType =
            new.schema.as_ref().try_into_kernel().map_err(|error: arrow::error::ArrowError| {
                storage_fault("describe the schema of", table, &location, error)
            })?;
        let schema_text = serde_json::to_string(&kernel_schema)
            .map_err(|error| storage_fault("describe the schema of", table, &location, error))?;
        let id = self.unique_id();
        let mut actions = vec![
            Action::CommitInfo(json!({
                "timestamp": now.epoch_ms(),
                "operation": "CREATE TABLE AS SELECT",
                "operationParameters": {
                    "isManaged": "false", "partitionBy": "[]",
                    "properties": serde_json::to_string(&properties).unwrap_or_default(),
                },
                "isolationLevel": "Serializable",
                "isBlindAppend": true,
                "engineInfo": lakebed_layout::engine_info(),
            })),
            Action::Protocol(Protocol {
                min_reader_version: 1,
                min_writer_version: 2,
                reader_features: None,
                writer_features: None,
            }),
            Action::Metadata(json!({
                "id": id,
                "format": { "provider": "parquet", "options": {} },
                "schemaString": schema_text,
                "partitionColumns": [],
                "configuration": properties,
                "createdTime": now.epoch_ms(),
            })),
        ];
        let paths: Vec<String> = adds.iter().map(|add| add.path.clone()).collect();
        actions.extend(adds.into_iter().map(|add| Action::Add(Box::new(add))));
        match self.put_if_absent(table, 0, &actions).await {
            Ok(PutOutcome::Committed) => Ok(0),
            // A put that was retried after its answer was lost says that the version exists.
            Ok(PutOutcome::Exists) => match self.is_born_as(table, &id).await? {
                true => Ok(0),
                false => {
                    self.discard(table, &paths).await;
                    Err(LakeError::TableExists {
                        table: table.to_string(),
                        location: location.to_string(),
                    })
                }
            },
            Err(fault) => {
                self.abandon(table, &paths).await;
                Err(fault.into())
            }
        }
    }

    /// Appends rows in one file and one commit; returns the version.
    ///
    /// # Errors
    /// Fails when the table must not be written, another writer changed its rules meanwhile, or
    /// storage fails; then nothing is left.
    pub async fn append(
        &self,
        table: &TableName,
        batches: Vec<RecordBatch>,
        now: Instant,
    ) -> Result<u64, LakeError> {
        let snapshot = self.snapshot(table).await?;
        if let Some(reason) = snapshot.write_refusal() {
            return Err(LayoutError::Protected { table: table.to_string(), reason }.into());
        }
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let indexed = ddl::indexed_columns(&snapshot);
        let schema = Arc::clone(&snapshot.schema);
        let adds = self.write_appended(table, &schema, vec![batches], indexed, now).await?;
        let rows = u64::try_from(rows).unwrap_or(u64::MAX);
        let output = RewriteOutput { adds, rows_in: rows, rows_out: rows, steps: Vec::new() };
        self.commit_append(&snapshot, &output, now).await
    }

    async fn commit_append(
        &self,
        snapshot: &TableSnapshot,
        output: &RewriteOutput,
        now: Instant,
    ) -> Result<u64, LakeError> {
        let info = json!({
            "timestamp": now.epoch_ms(),
            "operation": "WRITE",
            "operationParameters": { "mode": "Append" },
            "readVersion": snapshot.version,
            "isolationLevel": "Serializable",
            "isBlindAppend": true,
            "operationMetrics": {
                "numFiles": output.adds.len().to_string(),
                "numOutputRows": output.rows_out.to_string(),
            },
        });
        let replaced =
            commit_replacement(self, snapshot, &[], output, Scope::Rearrange, info).await?;
        match replaced {
            Replacement::Committed { version } => Ok(version),
            // Nothing is replaced, so nobody can have touched what is.
            Replacement::Replan => Err(LayoutError::TooManyConflicts {
                table: snapshot.table.to_string(),
                attempts: 1,
            }
            .into()),
        }
    }

    /// Tells whether a table's first version carries an id of ours. A log that cannot be read does
    /// not tell.
    async fn is_born_as(&self, table: &TableName, id: &str) -> Result<bool, LakeFault> {
        let location = self.location(table)?;
        let entry = self.log_store(table)?.read_commit_entry(0).await;
        let entry =
            entry.map_err(|error| storage_fault("read the log of", table, location, error))?;
        Ok(entry.is_some_and(|bytes| String::from_utf8_lossy(&bytes).contains(id)))
    }

    /// Deletes the files of a table that was not created, unless its log says that it was.
    async fn abandon(&self, table: &TableName, paths: &[String]) {
        let unborn = match self.log_store(table) {
            Ok(store) => matches!(store.read_commit_entry(0).await, Ok(None)),
            Err(_) => false,
        };
        if unborn {
            self.discard(table, paths).await;
        }
    }

    async fn write_appended(
        &self,
        table: &TableName,
        schema: &SchemaRef,
        files: Vec<Vec<RecordBatch>>,
        indexed_columns: usize,
        now: Instant,
    ) -> Result<Vec<AddFile>, LakeError> {
        let rows_per_file: Vec<u64> = files
            .iter()
            .map(|file| file.iter().map(|b| u64::try_from(b.num_rows()).unwrap_or(0)).sum())
            .collect();
        let spec = WriteSpec {
            store: self.log_store(table)?.object_store(None),
            prefix: self.unique_id(),
            schema: Arc::clone(schema),
            indexed_columns,
            stats_columns: Vec::new(),
            row_group_rows: self.options.row_group_rows,
            threads: self.options.threads.get(),
            tags: BTreeMap::new(),
            clustering_provider: None,
            modification_time: now.epoch_ms(),
            data_change: true,
        };
        let batches = stream::iter(files.into_iter().flatten().map(Ok));
        let rows = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), batches));
        let written =
            Box::pin(write_files(rows, &rows_per_file, &spec)).await.map_err(|source| {
                LakeError::Engine { action: "write files of", table: table.to_string(), source }
            })?;
        Ok(written.adds)
    }
}
