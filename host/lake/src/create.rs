//! New tables and appends, committed the same way as rewrites.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
};
use datafusion::{
    error::DataFusionError, execution::SendableRecordBatchStream,
    physical_plan::stream::RecordBatchStreamAdapter, prelude::DataFrame,
};
use deltalake::kernel::{StructType, engine::arrow_conversion::TryIntoKernel};
use futures::stream;
use lakebed_layout::{
    AutoCompaction, BloomFilter, ColumnMapping, FileSizing, Lake, LakeFault, LayoutError,
    PutOutcome, Replacement, RewriteOutput, TableSnapshot, WriteOptions,
    action::{Action, AddFile},
    auto_compact, commit_replacement,
    conflict::Scope,
    ddl::{self, KeyTypes, StatsColumns},
    properties,
};
use lakebed_model::{Instant, TableName};
use serde_json::json;

use crate::{
    DeltaLake, LakeError,
    rules::Rules,
    tables::storage_fault,
    write::{Cut, WriteSpec, write_files},
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
    /// Clustering columns, as dotted names.
    pub cluster_by: Vec<String>,
    /// Which types these may have.
    pub key_types: KeyTypes,
    /// Description.
    pub comment: Option<String>,
    /// Table properties.
    pub properties: BTreeMap<String, String>,
}

impl Default for NewTable {
    fn default() -> Self {
        Self {
            name: TableName::new(""),
            location: String::new(),
            schema: Arc::new(Schema::empty()),
            cluster_by: Vec::new(),
            key_types: KeyTypes::Plain,
            comment: None,
            properties: BTreeMap::new(),
        }
    }
}

/// What new files say of their columns.
#[derive(Debug, Clone)]
pub(crate) struct Naming {
    stats: StatsColumns,
    bloom_filters: Vec<BloomFilter>,
    column_mapping: ColumnMapping,
}

/// What a CREATE TABLE … AS SELECT did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CreateReport {
    /// The table's version afterwards.
    pub version: u64,
    /// Rows written.
    pub rows: u64,
    /// Files written.
    pub files: u64,
    /// What followed the write, where it is switched on.
    pub auto_compaction: Option<AutoCompaction>,
}

impl Naming {
    pub(crate) fn of(snapshot: &TableSnapshot) -> Self {
        Self {
            stats: ddl::stats_columns(snapshot),
            bloom_filters: snapshot.bloom_filters(),
            column_mapping: snapshot.column_mapping(),
        }
    }
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
        mut new: NewTable,
        files: Vec<Vec<RecordBatch>>,
        target_files: Option<u64>,
        now: Instant,
    ) -> Result<u64, LakeError> {
        self.prepare_new(&mut new)?;
        let rows_per_file: Vec<u64> = files
            .iter()
            .map(|file| file.iter().map(|b| u64::try_from(b.num_rows()).unwrap_or(0)).sum())
            .collect();
        let rows = in_memory(&new.schema, files.into_iter().flatten().collect());
        let adds = self.write_new(&new, rows, Cut::Rows(&rows_per_file), now).await?;
        if let Some(files) = target_files {
            let bytes: u64 = adds.iter().map(|add| add.size).sum();
            let size = bytes.div_ceil(files.max(1)).max(1);
            new.properties.insert("delta.targetFileSize".to_owned(), size.to_string());
        }
        self.commit_new(&new, "CREATE TABLE AS SELECT", adds, now).await
    }

    /// Creates a table without rows.
    ///
    /// # Errors
    /// Fails as [`DeltaLake::create_table`].
    pub async fn create_empty_table(
        &mut self,
        mut new: NewTable,
        now: Instant,
    ) -> Result<u64, LakeError> {
        self.prepare_new(&mut new)?;
        self.commit_new(&new, "CREATE TABLE", Vec::new(), now).await
    }

    /// Creates a table from a query; its columns are those of the answer.
    ///
    /// # Errors
    /// Fails as [`DeltaLake::create_table`], and when the query fails.
    pub async fn create_table_as(
        &mut self,
        mut new: NewTable,
        query: &str,
        options: impl Into<WriteOptions>,
        now: Instant,
    ) -> Result<CreateReport, LakeError> {
        let options = options.into();
        let mut session = self.session();
        let frame = session.frame(query).await?;
        new.schema = Arc::new(storable(frame.schema().as_arrow()));
        self.prepare_new(&mut new)?;
        let created = as_if_created(&new);
        let streams = streams_of(frame, options.gathers_rows(&created))
            .await
            .map_err(|source| LakeError::Query { sql: query.to_owned(), source })?;
        let output = self.write_streams(&created, streams, &options, now).await?;
        let (rows, files) = (output.rows_out, output.adds.len());
        let version = self.commit_new(&new, "CREATE TABLE AS SELECT", output.adds, now).await?;
        let auto_compaction = self.after_write(&created, files, &options, now).await;
        Ok(CreateReport {
            version,
            rows,
            files: u64::try_from(files).unwrap_or(u64::MAX),
            auto_compaction,
        })
    }

    /// Merges small files after a commit that added some, where that is switched on.
    pub(crate) async fn after_write(
        &self,
        written: &TableSnapshot,
        files_added: usize,
        options: &WriteOptions,
        now: Instant,
    ) -> Option<AutoCompaction> {
        if files_added == 0 {
            return None;
        }
        Box::pin(auto_compact(self, self, written, options, now)).await
    }

    /// Checks a table's definition and makes its folder.
    fn prepare_new(&mut self, new: &mut NewTable) -> Result<(), LakeError> {
        let snapshot = as_if_created(new);
        ddl::check_columns(new.name.as_str(), new.schema.fields())?;
        properties::check_new(new.name.as_str(), &new.schema, &new.properties)?;
        new.cluster_by = ddl::resolved(&snapshot, &new.cluster_by, new.key_types)?;
        self.add_table(new.name.as_str(), &new.location)?;
        let location = self.location(&new.name)?.clone();
        if let Ok(path) = location.to_file_path() {
            std::fs::create_dir_all(&path)
                .map_err(|error| storage_fault("create", &new.name, &location, error))?;
        }
        Ok(())
    }

    async fn commit_new(
        &self,
        new: &NewTable,
        operation: &str,
        adds: Vec<AddFile>,
        now: Instant,
    ) -> Result<u64, LakeError> {
        let table = &new.name;
        let location = self.location(table)?.clone();
        let id = self.unique_id();
        let paths: Vec<String> = adds.iter().map(|add| add.path.clone()).collect();
        let mut actions = match first_actions(new, operation, &id, &adds, now) {
            Ok(actions) => actions,
            Err(error) => {
                self.discard(table, &paths).await;
                return Err(storage_fault("describe the schema of", table, &location, error).into());
            }
        };
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
            Err(fault) => match self.is_born_as(table, &id).await {
                Ok(true) => Ok(0),
                Ok(false) => {
                    self.discard(table, &paths).await;
                    Err(fault.into())
                }
                // The files of a table that may be there stay.
                Err(_) => Err(fault.into()),
            },
        }
    }

    async fn write_new(
        &self,
        new: &NewTable,
        rows: SendableRecordBatchStream,
        cut: Cut<'_>,
        now: Instant,
    ) -> Result<Vec<AddFile>, LakeError> {
        let naming = Naming::of(&as_if_created(new));
        let spec = self.new_rows_spec(&new.name, Arc::clone(&new.schema), naming, now).await?;
        self.write_rows(&new.name, &spec, rows, cut).await
    }

    /// Appends rows in one file and one commit; returns its version. Small files are merged afterwards
    /// where the table's properties say so.
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
        snapshot.refuse(snapshot.write_refusal().or_else(|| snapshot.value_refusal()))?;
        let rules = Rules::new(&snapshot, self.session().context()).map_err(|source| {
            LakeError::Engine {
                action: "read the constraints of",
                table: table.to_string(),
                source,
            }
        })?;
        let rows = rules.checked(in_memory(&snapshot.schema, batches));
        let output = self.write_appended(&snapshot, rows, Cut::Rows(&[]), now).await?;
        let version = self.commit_append(&snapshot, &output, now).await?;
        let options = WriteOptions::from(FileSizing::Adaptive);
        self.after_write(&snapshot, output.adds.len(), &options, now).await;
        Ok(version)
    }

    /// Writes the rows of several threads as new files of a table, to be committed by the caller: each
    /// stream into files of its own.
    pub(crate) async fn write_streams(
        &self,
        snapshot: &TableSnapshot,
        streams: Vec<SendableRecordBatchStream>,
        options: &WriteOptions,
        now: Instant,
    ) -> Result<RewriteOutput, LakeError> {
        let cut = options.file_size(snapshot).0;
        let (schema, naming) = (Arc::clone(&snapshot.schema), Naming::of(snapshot));
        let mut spec = self.new_rows_spec(&snapshot.table, schema, naming, now).await?;
        spec.threads = (spec.threads / streams.len().max(1)).max(1);
        let mut jobs = Vec::with_capacity(streams.len());
        for rows in streams {
            let spec = WriteSpec { prefix: self.unique_id(), ..spec.clone() };
            let (lake, table) = (self.clone(), snapshot.table.clone());
            jobs.push(tokio::spawn(Box::pin(async move {
                lake.write_rows(&table, &spec, rows, Cut::Bytes(cut)).await
            })));
        }
        let mut adds = Vec::new();
        let mut failed = None;
        for job in jobs {
            // All end before anything is deleted: a file still being written would come back.
            match job.await {
                Ok(Ok(written)) => adds.extend(written),
                Ok(Err(error)) => failed = failed.or(Some(error)),
                Err(error) => {
                    failed = failed.or(Some(LakeError::Engine {
                        action: "write files of",
                        table: snapshot.table.to_string(),
                        source: DataFusionError::External(Box::new(error)),
                    }));
                }
            }
        }
        if let Some(error) = failed {
            let paths: Vec<String> = adds.into_iter().map(|add| add.path).collect();
            self.discard(&snapshot.table, &paths).await;
            return Err(error);
        }
        let rows = adds.iter().filter_map(AddFile::rows).sum();
        Ok(RewriteOutput { adds, rows_in: rows, rows_out: rows, steps: Vec::new() })
    }

    /// Writes rows as new files of a table, to be committed by the caller.
    pub(crate) async fn write_appended(
        &self,
        snapshot: &TableSnapshot,
        rows: SendableRecordBatchStream,
        cut: Cut<'_>,
        now: Instant,
    ) -> Result<RewriteOutput, LakeError> {
        let naming = Naming::of(snapshot);
        let schema = Arc::clone(&snapshot.schema);
        let spec = self.new_rows_spec(&snapshot.table, schema, naming, now).await?;
        let adds = self.write_rows(&snapshot.table, &spec, rows, cut).await?;
        let rows = adds.iter().filter_map(AddFile::rows).sum();
        Ok(RewriteOutput { adds, rows_in: rows, rows_out: rows, steps: Vec::new() })
    }

    pub(crate) async fn commit_append(
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

    /// Describes the files of new rows: in the order they come in, clustered by nobody.
    pub(crate) async fn new_rows_spec(
        &self,
        table: &TableName,
        schema: SchemaRef,
        naming: Naming,
        now: Instant,
    ) -> Result<WriteSpec, LakeError> {
        Ok(WriteSpec {
            store: self.writable(table).await?,
            prefix: self.unique_id(),
            schema,
            hidden_columns: 0,
            indexed_columns: naming.stats.leading,
            stats_columns: naming.stats.named,
            bloom_filters: naming.bloom_filters,
            column_mapping: naming.column_mapping,
            row_group_rows: self.options.row_group_rows,
            threads: self.options.threads.get(),
            meter: Arc::clone(&self.options.meter),
            tags: BTreeMap::new(),
            clustering_provider: None,
            modification_time: now.epoch_ms(),
            data_change: true,
        })
    }

    async fn write_rows(
        &self,
        table: &TableName,
        spec: &WriteSpec,
        rows: SendableRecordBatchStream,
        cut: Cut<'_>,
    ) -> Result<Vec<AddFile>, LakeError> {
        let written = Box::pin(write_files(rows, cut, spec)).await.map_err(|source| {
            LakeError::Engine { action: "write files of", table: table.to_string(), source }
        })?;
        Ok(written.adds)
    }
}

/// Runs a query as one stream, or as one per thread.
pub(crate) async fn streams_of(
    frame: DataFrame,
    gathered: bool,
) -> Result<Vec<SendableRecordBatchStream>, DataFusionError> {
    if gathered {
        Ok(vec![frame.execute_stream().await?])
    } else {
        frame.execute_stream_partitioned().await
    }
}

fn in_memory(schema: &SchemaRef, batches: Vec<RecordBatch>) -> SendableRecordBatchStream {
    let batches = stream::iter(batches.into_iter().map(Ok));
    Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), batches))
}

/// The table as it will be, for the checks that tables undergo.
fn as_if_created(new: &NewTable) -> TableSnapshot {
    TableSnapshot {
        table: new.name.clone(),
        location: new.location.clone(),
        version: 0,
        schema: Arc::clone(&new.schema),
        cuts_domain: None,
        in_commit_timestamp: None,
        row_id_high_water_mark: None,
        clock_ms: 0,
        protocol: properties::protocol_for(&new.schema, &new.properties, &new.cluster_by),
        metadata: serde_json::Value::Null,
        properties: new.properties.clone(),
        partition_columns: Vec::new(),
        clustering: (!new.cluster_by.is_empty()).then(|| ddl::domain(&new.cluster_by)),
        files: Vec::new(),
    }
}

/// The actions of version 0, all but the files.
fn first_actions(
    new: &NewTable,
    operation: &str,
    id: &str,
    adds: &[AddFile],
    now: Instant,
) -> Result<Vec<Action>, Box<dyn std::error::Error + Send + Sync>> {
    let schema: StructType = new.schema.as_ref().try_into_kernel()?;
    let schema = serde_json::to_string(&schema)?;
    let rows: u64 = adds.iter().filter_map(AddFile::rows).sum();
    let mut metadata = json!({
        "id": id,
        "format": { "provider": "parquet", "options": {} },
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": new.properties,
        "createdTime": now.epoch_ms(),
    });
    if let Some(comment) = &new.comment {
        metadata["description"] = json!(comment);
    }
    let mut actions = vec![
        Action::CommitInfo(json!({
            "timestamp": now.epoch_ms(),
            "operation": operation,
            "operationParameters": {
                "isManaged": "false",
                "description": new.comment,
                "partitionBy": "[]",
                "clusterBy": serde_json::to_string(&new.cluster_by)?,
                "properties": serde_json::to_string(&new.properties)?,
            },
            "isolationLevel": "Serializable",
            "isBlindAppend": true,
            "operationMetrics": {
                "numFiles": adds.len().to_string(),
                "numOutputRows": rows.to_string(),
                "numOutputBytes": adds.iter().map(|add| add.size).sum::<u64>().to_string(),
            },
            "engineInfo": lakebed_layout::engine_info(),
        })),
        Action::Protocol(properties::protocol_for(&new.schema, &new.properties, &new.cluster_by)),
        Action::Metadata(metadata),
    ];
    if !new.cluster_by.is_empty() {
        actions.push(Action::DomainMetadata(ddl::domain(&new.cluster_by)));
    }
    Ok(actions)
}

/// The columns of an answer as Delta can store them: no views, no unsigned or wide integers, times in
/// microseconds; a column without a type holds nothing but nulls and becomes text.
fn storable(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| storable_field(field)).collect::<Vec<_>>();
    Schema::new(fields)
}

fn storable_field(field: &Field) -> Field {
    Field::new(field.name(), storable_type(field.data_type()), true)
}

fn storable_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Null | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 => DataType::Float32,
        DataType::Date64 => DataType::Date32,
        DataType::Timestamp(_, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| "UTC".into()))
        }
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Dictionary(_, values) => storable_type(values),
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => {
            let element = storable_type(element.data_type());
            DataType::List(Arc::new(Field::new("element", element, true)))
        }
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| storable_field(field)).collect())
        }
        DataType::Map(entries, sorted) => {
            let entry = |pairs: &DataType| match pairs {
                DataType::Struct(pair) => DataType::Struct(
                    pair.iter()
                        .map(|f| {
                            Field::new(f.name(), storable_type(f.data_type()), f.is_nullable())
                        })
                        .collect(),
                ),
                other => other.clone(),
            };
            let pairs = Field::new(entries.name(), entry(entries.data_type()), false);
            DataType::Map(Arc::new(pairs), *sorted)
        }
        other => other.clone(),
    }
}
