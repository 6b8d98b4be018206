//! Runs a [`RewriteTask`] with DataFusion on this machine.
//!
//! 1. One scan of the key columns counts the rows and takes every n-th as the sample for ranks.
//! 2. A second scan reads the rows, computes the curve key, sorts by it (spilling when memory is
//!    short) and drops it again.
//! 3. The sorted stream is cut into files of equal rows ([`crate::write`]).

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, RecordBatch, UInt32Array, UInt64Array},
    compute::{concat, take},
    datatypes::{DataType, SchemaRef},
};
use async_trait::async_trait;
use datafusion::{
    catalog::TableProvider,
    common::ScalarValue,
    error::{DataFusionError, Result},
    logical_expr::{
        ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, SortExpr,
        Volatility,
    },
    prelude::{DataFrame, SessionContext, col},
};
use deltalake::{delta_datafusion::DeltaScanNext, logstore::LogStoreRef};
use futures::StreamExt;
use lakebed_layout::{
    ColumnMapping, Executor, ExecutorError, FileReader, InputFile, RewriteOutput, RewriteTask,
    RowOrder, RowTrackingColumns, columns::split_name, curve::CurveKeys,
};
use lakebed_model::TableName;

use crate::{
    DeltaLake, chain,
    files::{FileScan, FileScanSpec, with_deleted_rows},
    session,
    write::{Cut, WriteSpec, equal_parts, write_files},
};

/// Rows of the sample that ranks are learned from.
const SAMPLE_ROWS: u64 = 1 << 16;
const KEY_COLUMN: &str = "__lakebed_curve_key";

#[async_trait]
impl Executor for DeltaLake {
    async fn rewrite(
        &self,
        task: &RewriteTask,
    ) -> std::result::Result<RewriteOutput, ExecutorError> {
        Box::pin(self.run_rewrite(task)).await.map_err(|source| ExecutorError {
            files: task.inputs.len(),
            bytes: task.inputs.iter().map(|input| input.size).sum(),
            source: source.into(),
        })
    }
}

impl DeltaLake {
    async fn run_rewrite(&self, task: &RewriteTask) -> Result<RewriteOutput> {
        let table = TableName::new(&task.table);
        let context = session::plain(self);
        let request = ScanRequest {
            table: &table,
            version: task.version,
            inputs: &task.inputs,
            reader: task.reader,
            column_mapping: task.column_mapping,
            row_tracking: task.row_tracking.as_ref(),
        };
        let scan = self.scan_files(&context, request).await?;
        let schema = scan.schema();
        let keys = task.order.keys();
        let frame = context.read_table(Arc::clone(&scan))?;
        let (planned_rows, sample) = sample_keys(frame, &keys, task).await?;
        let frame = context.read_table(scan)?;
        let (frame, chained) = match &task.iterators {
            None => (frame, None),
            Some(iterators) => {
                let input = frame.execute_stream().await?;
                let (kept, counts) = chain::run(input, iterators, self.plugins.as_ref())?;
                (context.read_table(Arc::new(kept))?, Some(counts))
            }
        };
        let stream = order(frame, &task.order, &sample)?.execute_stream().await?;
        let spec = self.write_spec(task, schema)?;
        let parts = equal_parts(planned_rows, task.target_files);
        let written = write_files(stream, Cut::Rows(&parts), &spec).await?;
        let counts = chained
            .map(|counts| counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone());
        let (rows_in, steps) = counts.map_or((planned_rows, Vec::new()), |c| (c.rows_in, c.steps));
        tracing::debug!(
            table = task.table,
            files = written.adds.len(),
            rows = written.rows,
            "rewritten"
        );
        Ok(RewriteOutput { adds: written.adds, rows_in, rows_out: written.rows, steps })
    }

    fn write_spec(&self, task: &RewriteTask, schema: SchemaRef) -> Result<WriteSpec> {
        let log_store = self.log_store(&TableName::new(&task.table)).map_err(external)?;
        Ok(WriteSpec {
            store: log_store.object_store(None),
            prefix: task.file_prefix.clone(),
            schema,
            hidden_columns: task.row_tracking.as_ref().map_or(0, |_| 2),
            indexed_columns: task.indexed_columns,
            stats_columns: task.stats_columns.clone(),
            column_mapping: task.column_mapping,
            row_group_rows: self.options.row_group_rows,
            threads: self.options.threads.get(),
            tags: task.tags.clone(),
            clustering_provider: task.clustering_provider.clone(),
            modification_time: task.modification_time,
            data_change: task.data_change,
        })
    }

    /// Scans exactly some files of a version.
    pub(crate) async fn scan_files(
        &self,
        context: &SessionContext,
        request: ScanRequest<'_>,
    ) -> Result<Arc<dyn TableProvider>> {
        let log_store = self.log_store(request.table).map_err(external)?;
        if request.reader == FileReader::FileByFile {
            let partitions = context.copied_config().target_partitions();
            return self.scan_file_by_file(log_store, request, partitions).await;
        }
        let scan = DeltaScanNext::builder()
            .with_log_store(log_store)
            .with_session(Arc::new(context.state()))
            .with_table_version(request.version)
            .with_file_paths(request.inputs.iter().map(|input| input.path.clone()))
            .build()
            .await?;
        Ok(Arc::new(scan))
    }

    async fn scan_file_by_file(
        &self,
        log_store: LogStoreRef,
        request: ScanRequest<'_>,
        partitions: usize,
    ) -> Result<Arc<dyn TableProvider>> {
        let schema = self.schema_at(request.table, request.version).await.map_err(external)?;
        let location = self.location(request.table).map_err(external)?;
        let store = log_store.object_store(None);
        let files = with_deleted_rows(log_store, location, request.inputs.to_vec()).await?;
        Ok(Arc::new(FileScan::new(FileScanSpec {
            store,
            schema,
            mapping: request.column_mapping,
            row_tracking: request.row_tracking.cloned(),
            files,
            partitions,
        })))
    }
}

/// Some files of a table to scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanRequest<'r> {
    pub(crate) table: &'r TableName,
    pub(crate) version: u64,
    pub(crate) inputs: &'r [InputFile],
    pub(crate) reader: FileReader,
    pub(crate) column_mapping: ColumnMapping,
    /// Where row ids are read from and written to, when they are wanted.
    pub(crate) row_tracking: Option<&'r RowTrackingColumns>,
}

/// Counts rows and takes every n-th row's keys.
async fn sample_keys(
    frame: DataFrame,
    keys: &[String],
    task: &RewriteTask,
) -> Result<(u64, Vec<ArrayRef>)> {
    let expected: Option<u64> = task.inputs.iter().map(|input| input.live_rows).sum();
    if let (Some(rows), RowOrder::Unordered | RowOrder::Plain { .. }) = (expected, &task.order) {
        return Ok((rows, Vec::new()));
    }
    let step = expected.map_or(16, |rows| (rows / SAMPLE_ROWS).max(1));
    let projected = frame.select(key_expressions(keys))?;
    let mut stream = projected.execute_stream().await?;
    let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::new(); keys.len()];
    let mut rows = 0u64;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        let picked = every_nth(&batch, rows, step);
        rows += u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
        for (part, column) in parts.iter_mut().zip(batch.columns()) {
            part.push(take(column, &picked, None)?);
        }
    }
    let sample = parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| {
            let arrays: Vec<&dyn Array> = part.iter().map(AsRef::as_ref).collect();
            Ok(concat(&arrays)?)
        })
        .collect::<Result<_>>()?;
    Ok((rows, sample))
}

pub(crate) fn every_nth(batch: &RecordBatch, rows_before: u64, step: u64) -> UInt32Array {
    let first = (step - rows_before % step) % step;
    let length = u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    (first..length).step_by(step).map(|row| u32::try_from(row).unwrap_or(u32::MAX)).collect()
}

fn order(frame: DataFrame, order: &RowOrder, sample: &[ArrayRef]) -> Result<DataFrame> {
    let keys = key_expressions(&order.keys());
    let ties = keys.iter().map(|key| key.clone().sort(true, true));
    match order {
        RowOrder::Unordered => Ok(frame),
        RowOrder::Plain { .. } => frame.sort(ties.collect()),
        RowOrder::Hilbert { bits, .. } => {
            let names: Vec<Expr> = frame.schema().columns().into_iter().map(Expr::Column).collect();
            let curve = CurveKeys::from_samples(sample, *bits)?;
            let function = ScalarUDF::from(CurveFunction::new(curve, keys.len()));
            let first = col(KEY_COLUMN).sort(true, true);
            let sort: Vec<SortExpr> = std::iter::once(first).chain(ties).collect();
            frame.with_column(KEY_COLUMN, function.call(keys))?.sort(sort)?.select(names)
        }
    }
}

/// A name of several parts is a field of a struct.
fn key_expressions(keys: &[String]) -> Vec<Expr> {
    use datafusion::functions::core::expr_ext::FieldAccessor;
    keys.iter()
        .map(|key| {
            let mut parts = split_name(key).into_iter();
            let first = parts.next().unwrap_or_else(|| key.clone());
            let first = Expr::Column(datafusion::common::Column::new_unqualified(first));
            parts.fold(first, |expression, part| expression.field(part)).alias(key)
        })
        .collect()
}

/// The curve as a function of the engine.
#[derive(Debug)]
struct CurveFunction {
    curve: CurveKeys,
    signature: Signature,
    identity: usize,
}

impl CurveFunction {
    fn new(curve: CurveKeys, columns: usize) -> Self {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let identity = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Self { curve, signature: Signature::any(columns, Volatility::Immutable), identity }
    }
}

/// Two curves are the same function only when they are one object: their ranks differ.
impl PartialEq for CurveFunction {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl Eq for CurveFunction {}

impl std::hash::Hash for CurveFunction {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.identity.hash(state);
    }
}

impl ScalarUDFImpl for CurveFunction {
    fn name(&self) -> &'static str {
        "lakebed_curve_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let keys: UInt64Array = self.curve.keys(&columns)?;
        if args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_))) {
            return Ok(ColumnarValue::Scalar(ScalarValue::UInt64(keys.values().first().copied())));
        }
        Ok(ColumnarValue::Array(Arc::new(keys)))
    }
}

fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
