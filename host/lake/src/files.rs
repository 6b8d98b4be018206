//! Reads files one by one, knowing each row's position.
//!
//! The engine's scan matches columns by name, refuses tables whose types were widened and does not
//! tell rows apart. This one reads what such tables need:
//!
//! 1. Columns are found by physical name, or by field id where the table says so
//!    ([`crate::physical`]), and read as today's types.
//! 2. Rows that a deletion vector hides are dropped by position.
//! 3. With row tracking every row gets its id and its version: the materialized ones where the file
//!    has them, else the file's base id plus the row's position and the file's version.
//! 4. Partition columns, which files do not hold, have the value that the log gives the file.
//!
//! Nothing is skipped: whoever asks for rows gets those of every file.

use std::{fmt, sync::Arc};

use arrow::{
    array::{
        Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions,
        StringArray, new_null_array,
    },
    compute::{CastOptions, cast_with_options, filter_record_batch},
    datatypes::{DataType, Field, FieldRef, Fields, Int64Type, Schema, SchemaRef, TimeUnit},
};
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    common::{ScalarValue, tree_node::TreeNodeRecursion},
    datasource::{
        TableType, listing::PartitionedFile,
        physical_plan::parquet::DefaultParquetFileReaderFactory,
        physical_plan::parquet::ParquetFileReaderFactory,
    },
    error::{DataFusionError, Result},
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::Expr,
    physical_expr::EquivalenceProperties,
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
        execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions},
        metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet},
        stream::RecordBatchStreamAdapter,
    },
};
use delta_kernel::{Engine, actions::deletion_vector::DeletionVectorDescriptor};
use deltalake::logstore::LogStoreRef;
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use lakebed_layout::{ColumnMapping, InputFile, RowTrackingColumns, action::DeletionVector};
use object_store::{ObjectStore, path::Path};
use parquet::arrow::{
    ParquetRecordBatchStreamBuilder, ProjectionMask,
    arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions},
    async_reader::AsyncFileReader,
};

use url::Url;

use crate::{
    kernel,
    physical::{field_id, find_column, to_logical},
};

/// What a scan reads, and as what.
#[derive(Debug, Clone)]
pub(crate) struct FileScan {
    store: Arc<dyn ObjectStore>,
    /// Columns of the table, then those of row tracking.
    schema: SchemaRef,
    /// How many of them are the table's.
    table_columns: usize,
    /// Which one has the path of a row's file, if it was asked for.
    file_column: Option<usize>,
    mapping: ColumnMapping,
    partitions: Vec<Arc<[SourceFile]>>,
}

/// One file of a scan.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    pub(crate) file: InputFile,
    /// Positions of rows that are deleted, rising.
    pub(crate) deleted: Arc<[u64]>,
}

/// What to scan.
#[derive(Debug)]
pub(crate) struct FileScanSpec {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Logical columns of the table.
    pub(crate) schema: SchemaRef,
    pub(crate) mapping: ColumnMapping,
    /// Where row ids and versions are materialized, when they are wanted.
    pub(crate) row_tracking: Option<RowTrackingColumns>,
    pub(crate) files: Vec<SourceFile>,
    /// How many files are read at once; with one, rows come in the order of the files.
    pub(crate) partitions: usize,
}

impl FileScan {
    pub(crate) fn new(spec: FileScanSpec) -> Self {
        let table_columns = spec.schema.fields().len();
        let mut fields: Vec<FieldRef> = spec.schema.fields().iter().cloned().collect();
        fields.extend(spec.row_tracking.iter().flat_map(row_tracking_fields));
        let count = spec.partitions.max(1).min(spec.files.len().max(1));
        let mut partitions: Vec<Vec<SourceFile>> = vec![Vec::new(); count];
        for (position, file) in spec.files.into_iter().enumerate() {
            partitions[position % count].push(file);
        }
        Self {
            store: spec.store,
            schema: Arc::new(Schema::new(fields)),
            table_columns,
            file_column: None,
            mapping: spec.mapping,
            partitions: partitions.into_iter().map(Into::into).collect(),
        }
    }

    /// Adds a column with the path of each row's file, as the log spells it.
    pub(crate) fn with_file_column(mut self, name: &str) -> Self {
        let mut fields: Vec<FieldRef> = self.schema.fields().iter().cloned().collect();
        self.file_column = Some(fields.len());
        fields.push(Arc::new(Field::new(name, DataType::Utf8, false)));
        self.schema = Arc::new(Schema::new(fields));
        self
    }
}

/// The columns that hold row ids and versions in files; tables do not show them.
pub(crate) fn row_tracking_fields(columns: &RowTrackingColumns) -> [FieldRef; 2] {
    [&columns.row_id, &columns.row_commit_version]
        .map(|name| Arc::new(Field::new(name, DataType::Int64, true)))
}

#[async_trait]
impl TableProvider for FileScan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns: Vec<usize> =
            projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let schema = Arc::new(self.schema.project(&columns)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(self.partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Arc::new(FileScanExec {
            scan: self.clone(),
            columns,
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

/// The scan as the engine runs it.
#[derive(Debug)]
struct FileScanExec {
    scan: FileScan,
    columns: Vec<usize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DisplayAs for FileScanExec {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: usize = self.scan.partitions.iter().map(|files| files.len()).sum();
        write!(f, "FileScanExec: files={files}")
    }
}

impl ExecutionPlan for FileScanExec {
    fn name(&self) -> &'static str {
        "FileScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let files = self.scan.partitions.get(partition).cloned().unwrap_or_default();
        let scanned = MetricBuilder::new(&self.metrics).counter("count_files_scanned", partition);
        let reader = Arc::new(Reader {
            files: DefaultParquetFileReaderFactory::new(Arc::clone(&self.scan.store)),
            partition,
            metrics: self.metrics.clone(),
            mapping: self.scan.mapping,
            columns: self.columns.clone(),
            all: Arc::clone(&self.scan.schema),
            table_columns: self.scan.table_columns,
            file_column: self.scan.file_column,
            schema: Arc::clone(&self.schema),
            batch_rows: context.session_config().batch_size(),
        });
        let batches = stream::iter(files.to_vec())
            .then(move |source| {
                scanned.add(1);
                let reader = Arc::clone(&reader);
                async move { reader.open(source).await }
            })
            .try_flatten();
        let schema = Arc::clone(&self.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches.boxed())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// What the files of one partition are read into.
struct Reader {
    files: DefaultParquetFileReaderFactory,
    partition: usize,
    metrics: ExecutionPlanMetricsSet,
    mapping: ColumnMapping,
    /// All columns of the scan.
    all: SchemaRef,
    /// How many of them are the table's.
    table_columns: usize,
    /// Which one has the path of the file.
    file_column: Option<usize>,
    /// Which of them are wanted.
    columns: Vec<usize>,
    /// Those.
    schema: SchemaRef,
    batch_rows: usize,
}

impl Reader {
    /// Opens a file as a stream of batches.
    async fn open(
        self: Arc<Self>,
        source: SourceFile,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let path = Path::from_url_path(&source.file.path)
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        let mut file = PartitionedFile::new("", source.file.size);
        file.object_meta.location = path;
        let mut input: Box<dyn AsyncFileReader> =
            self.files.create_reader(self.partition, file, None, &self.metrics)?;
        let options = ArrowReaderOptions::new();
        let metadata = input.get_metadata(None).await?;
        let inferred = ArrowReaderMetadata::try_new(Arc::clone(&metadata), options.clone())?;
        let typed = Arc::new(in_microseconds(inferred.schema()));
        let metadata = ArrowReaderMetadata::try_new(metadata, options.with_schema(typed))?;
        let have = metadata.schema().fields().clone();
        if self.mapping == ColumnMapping::Id && !have.iter().any(|field| field_id(field).is_some())
        {
            return Err(DataFusionError::Execution(format!(
                "file `{}` has no field ids, by which the table finds its columns (delta.columnMapping.mode = id)",
                source.file.path
            )));
        }
        let origins: Vec<Option<usize>> =
            self.columns.iter().map(|at| self.origin(*at, &have)).collect();
        let mut roots: Vec<usize> = origins.iter().flatten().copied().collect();
        roots.sort_unstable();
        roots.dedup();
        let mask = ProjectionMask::roots(
            metadata.metadata().file_metadata().schema_descr(),
            roots.iter().copied(),
        );
        let batches = ParquetRecordBatchStreamBuilder::new_with_metadata(input, metadata)
            .with_batch_size(self.batch_rows)
            .with_projection(mask)
            .build()?;
        let mut rows_before = 0u64;
        let read = batches.map(move |batch| {
            let batch = batch?;
            let rows = u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
            let read = self.read(
                &batch,
                &Chunk {
                    origins: &origins,
                    roots: &roots,
                    have: &have,
                    source: &source,
                    rows_before,
                },
            );
            rows_before += rows;
            read
        });
        Ok(read.boxed())
    }

    /// Finds a column of the scan in a file.
    fn origin(&self, at: usize, have: &Fields) -> Option<usize> {
        let field = self.all.field(at);
        if at < self.table_columns {
            find_column(have, field, self.mapping)
        } else if self.file_column == Some(at) {
            None
        } else {
            have.iter().position(|column| column.name() == field.name())
        }
    }

    /// Returns the value that a column has in every row of a file, if it is one of the file's.
    fn constant(&self, at: usize, file: &InputFile) -> Result<Option<ScalarValue>> {
        if self.file_column == Some(at) {
            return Ok(Some(ScalarValue::from(file.path.as_str())));
        }
        let field = self.all.field(at);
        let name = self.mapping.physical_name(field);
        match file.partition_values.get(name) {
            Some(value) if at < self.table_columns => {
                partition_value(value.as_deref(), field.data_type()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Makes a batch of the table from one of a file.
    fn read(&self, batch: &RecordBatch, chunk: &Chunk<'_>) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let columns = self
            .columns
            .iter()
            .zip(chunk.origins)
            .map(|(at, origin)| {
                let target = self.all.field(*at);
                if let Some(constant) = self.constant(*at, &chunk.source.file)? {
                    return constant.to_array_of_size(rows);
                }
                let column = match origin {
                    Some(root) => {
                        let place = chunk.roots.binary_search(root).unwrap_or(0);
                        let mapping = self.mapping;
                        to_logical(batch.column(place), &chunk.have[*root], target, mapping)?
                    }
                    None => new_null_array(target.data_type(), rows),
                };
                match at.checked_sub(self.table_columns) {
                    None => Ok(column),
                    Some(0) => chunk.filled(&column, chunk.source.file.base_row_id, 1),
                    Some(_) => {
                        chunk.filled(&column, chunk.source.file.default_row_commit_version, 0)
                    }
                }
            })
            .collect::<Result<Vec<ArrayRef>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let read = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        match chunk.kept(rows) {
            Some(kept) => Ok(filter_record_batch(&read, &kept)?),
            None => Ok(read),
        }
    }
}

/// Reads the value of a partition column (PROTOCOL.md, "Partition Value Serialization"); the empty
/// text is null.
fn partition_value(text: Option<&str>, data_type: &DataType) -> Result<ScalarValue> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return ScalarValue::try_from(data_type);
    };
    if *data_type == DataType::Binary {
        // One character for each byte.
        let bytes = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect();
        return Ok(ScalarValue::Binary(Some(bytes)));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let one: ArrayRef = Arc::new(StringArray::from(vec![text]));
    ScalarValue::try_from_array(&cast_with_options(&one, data_type, &options)?, 0)
}

/// Some rows of a file.
struct Chunk<'c> {
    /// For each wanted column the file's one.
    origins: &'c [Option<usize>],
    /// Columns of the file that were read, rising.
    roots: &'c [usize],
    have: &'c Fields,
    source: &'c SourceFile,
    rows_before: u64,
}

impl Chunk<'_> {
    /// Which rows no deletion vector hides; `None` for all.
    fn kept(&self, rows: usize) -> Option<BooleanArray> {
        let deleted = &self.source.deleted;
        let end = self.rows_before + u64::try_from(rows).unwrap_or(u64::MAX);
        let from = deleted.partition_point(|row| *row < self.rows_before);
        let to = deleted.partition_point(|row| *row < end);
        if from == to {
            return None;
        }
        let mut kept = vec![true; rows];
        for row in &deleted[from..to] {
            if let Some(keep) =
                usize::try_from(row - self.rows_before).ok().and_then(|row| kept.get_mut(row))
            {
                *keep = false;
            }
        }
        Some(BooleanArray::from(kept))
    }

    /// Fills in row ids or versions that are not materialized: `first`, and `step` more per position.
    fn filled(&self, column: &ArrayRef, first: Option<i64>, step: i64) -> Result<ArrayRef> {
        if column.null_count() == 0 {
            return Ok(Arc::clone(column));
        }
        let Some(first) = first else {
            return Err(DataFusionError::Execution(format!(
                "file `{}` has rows without an id, and the log gives it no base row id",
                self.source.file.path
            )));
        };
        let position = i64::try_from(self.rows_before).unwrap_or(i64::MAX);
        let own = column.as_primitive::<Int64Type>().iter().zip(position..);
        let filled = own.map(|(own, position)| own.unwrap_or(first + step * position));
        Ok(Arc::new(Int64Array::from_iter_values(filled)))
    }
}

/// Spark's 96-bit timestamps reach further than nanoseconds do.
fn in_microseconds(schema: &Schema) -> Schema {
    fn field(old: &FieldRef) -> FieldRef {
        Arc::new(old.as_ref().clone().with_data_type(data_type(old.data_type())))
    }
    fn data_type(old: &DataType) -> DataType {
        match old {
            DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
                DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
            DataType::List(item) => DataType::List(field(item)),
            DataType::LargeList(item) => DataType::LargeList(field(item)),
            DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
            other => other.clone(),
        }
    }
    Schema::new(schema.fields().iter().map(field).collect::<Fields>())
}

/// Reads which rows the files' deletion vectors hide.
pub(crate) async fn with_deleted_rows(
    log_store: LogStoreRef,
    location: &Url,
    files: Vec<InputFile>,
) -> Result<Vec<SourceFile>> {
    let root = kernel::folder(location);
    let read = move |engine: &dyn Engine| -> delta_kernel::DeltaResult<Vec<SourceFile>> {
        let source = |file: InputFile| {
            let vector = file.deletion_vector.as_ref();
            let deleted = vector.map(|vector| deleted_rows(vector, engine, &root));
            Ok(SourceFile { deleted: deleted.transpose()?.unwrap_or_default().into(), file })
        };
        files.into_iter().map(source).collect()
    };
    kernel::blocking(log_store.engine(None), read)
        .await
        .map_err(|error| DataFusionError::External(Box::new(error)))
}

/// Reads the positions that a deletion vector hides, rising. Blocks.
pub(crate) fn deleted_rows(
    vector: &DeletionVector,
    engine: &dyn Engine,
    root: &Url,
) -> delta_kernel::DeltaResult<Vec<u64>> {
    let descriptor = DeletionVectorDescriptor::try_new(
        vector.storage_type.parse()?,
        vector.path_or_inline_dv.clone(),
        vector.offset,
        vector.size_in_bytes,
        vector.cardinality,
    )?;
    descriptor.row_indexes(engine.storage_handler(), root)
}
