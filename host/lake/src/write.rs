//! Cuts a stream of rows into Parquet files, several encoded at once: of equal rows where it is known
//! how many there are, else of a size.
//!
//! The stream is read once; each file has a task with a short queue, so that while one file's last
//! rows are encoded the next one fills. Memory is bounded by the queues and one row group per task.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow::{
    array::{RecordBatch, RecordBatchOptions},
    datatypes::{Schema, SchemaRef},
};
use datafusion::{
    error::{DataFusionError, Result},
    execution::SendableRecordBatchStream,
};
use futures::StreamExt;
use lakebed_layout::{ColumnMapping, action::AddFile, columns};
use object_store::{ObjectStore, ObjectStoreExt, buffered::BufWriter, path::Path};
use parquet::{
    arrow::AsyncArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::{EnabledStatistics, WriterProperties},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinHandle,
};

use crate::{
    meter::Meter,
    physical::{physical_schema, to_physical},
    stats::StatsCollector,
};

/// Fewest rows of a data page: smaller pages cost more in headers than they prune.
const PAGE_ROWS_MIN: u64 = 512;
/// Most rows of a data page, the Parquet default.
const PAGE_ROWS_MAX: u64 = 20_000;
/// Rows handed to an encoder at once where files are cut by size.
const PORTION_ROWS: usize = 1_024;
/// Pages a file is divided into where its size allows.
const PAGES_PER_FILE: u64 = 16;

/// How the files of one job are written.
#[derive(Debug, Clone)]
pub(crate) struct WriteSpec {
    /// The table's folder.
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Unique part of the names.
    pub(crate) prefix: String,
    /// Logical schema of the table, then columns that it does not show.
    pub(crate) schema: SchemaRef,
    /// How many columns it does not show.
    pub(crate) hidden_columns: usize,
    /// Leading leaf columns with statistics.
    pub(crate) indexed_columns: usize,
    /// Further columns with statistics.
    pub(crate) stats_columns: Vec<String>,
    /// How files name their columns.
    pub(crate) column_mapping: ColumnMapping,
    /// Rows of a row group.
    pub(crate) row_group_rows: usize,
    /// Files encoded at once.
    pub(crate) threads: usize,
    /// Counts the rows, and says when to stop.
    pub(crate) meter: Arc<Meter>,
    /// `add.tags`
    pub(crate) tags: BTreeMap<String, String>,
    /// `add.clusteringProvider`
    pub(crate) clustering_provider: Option<String>,
    /// `add.modificationTime`
    pub(crate) modification_time: i64,
    /// `add.dataChange`
    pub(crate) data_change: bool,
}

/// Files written, uncommitted.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) adds: Vec<AddFile>,
    pub(crate) rows: u64,
}

/// Where one file ends and the next begins.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut<'c> {
    /// At these row counts; rows beyond their sum go into the last file.
    Rows(&'c [u64]),
    /// Once a file is about this large.
    Bytes(u64),
}

struct OpenFile {
    rows_left: u64,
    /// Size so far, a few batches behind.
    size: Arc<AtomicU64>,
    queue: mpsc::Sender<RecordBatch>,
}

/// What a job has begun, in the order of its files.
#[derive(Default)]
struct Begun {
    names: Vec<String>,
    tasks: VecDeque<JoinHandle<Result<AddFile>>>,
}

/// Writes a stream into files.
///
/// On an error every file of the job is deleted as far as possible.
pub(crate) async fn write_files(
    stream: SendableRecordBatchStream,
    cut: Cut<'_>,
    spec: &WriteSpec,
) -> Result<Written> {
    let running = spec.meter.begin(None);
    let mut begun = Begun::default();
    let result = Box::pin(write_all(stream, cut, spec, &mut begun)).await;
    if result.is_err() {
        discard(begun, spec).await;
    }
    drop(running);
    result
}

/// Deletes the files of a failed job, after their tasks: a file still being written would come back.
async fn discard(begun: Begun, spec: &WriteSpec) {
    for task in begun.tasks {
        if let Err(error) = joined(task.await) {
            tracing::debug!(%error, "another file of the failed job failed");
        }
    }
    for name in begun.names {
        if let Err(error) = spec.store.delete(&Path::from(name.as_str())).await {
            tracing::debug!(name, %error, "file of the failed job not deleted");
        }
    }
}

async fn write_all(
    mut stream: SendableRecordBatchStream,
    cut: Cut<'_>,
    spec: &WriteSpec,
    begun: &mut Begun,
) -> Result<Written> {
    let slots = Arc::new(Semaphore::new(spec.threads.max(1)));
    let (rows_per_file, file_bytes) = match cut {
        Cut::Rows(rows) => (rows, u64::MAX),
        Cut::Bytes(bytes) => (&[][..], bytes.max(1)),
    };
    // A size is known only of what is encoded, so rows go there in small portions.
    let step = if file_bytes == u64::MAX { usize::MAX } else { PORTION_ROWS };
    let mut targets: Vec<u64> = rows_per_file.iter().rev().copied().filter(|r| *r > 0).collect();
    let mut open: Option<OpenFile> = None;
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        let batch = conform(&batch?, &spec.schema)?;
        spec.meter.check()?;
        spec.meter.read(batch.num_rows());
        spec.meter.write(batch.num_rows());
        rows += count(batch.num_rows());
        let mut offset = 0;
        while offset < batch.num_rows() {
            let mut file = match open.take() {
                Some(file) => file,
                None => {
                    let planned = targets.pop().unwrap_or(0);
                    let limit = if targets.is_empty() { u64::MAX } else { planned };
                    start_file(planned, limit, begun, &slots, spec).await?
                }
            };
            let room = usize::try_from(file.rows_left).unwrap_or(usize::MAX).min(step);
            let part = batch.slice(offset, room.min(batch.num_rows() - offset));
            offset += part.num_rows();
            file.rows_left -= count(part.num_rows());
            if file.queue.send(part).await.is_err() {
                drop(file);
                return Err(first_error(begun).await);
            }
            if file.rows_left > 0 && file.size.load(Ordering::Relaxed) < file_bytes {
                open = Some(file);
            }
        }
    }
    drop(open);
    let mut adds = Vec::with_capacity(begun.tasks.len());
    while let Some(task) = begun.tasks.pop_front() {
        adds.push(joined(task.await)?);
    }
    Ok(Written { adds, rows })
}

async fn start_file(
    planned: u64,
    rows_left: u64,
    begun: &mut Begun,
    slots: &Arc<Semaphore>,
    spec: &WriteSpec,
) -> Result<OpenFile> {
    let permit = Arc::clone(slots)
        .acquire_owned()
        .await
        .map_err(|error| DataFusionError::External(Box::new(error)))?;
    let name = format!("part-{:05}-{}-c000.zstd.parquet", begun.names.len(), spec.prefix);
    begun.names.push(name.clone());
    let (queue, batches) = mpsc::channel(2);
    let size = Arc::new(AtomicU64::new(0));
    let encoding = encode(name, planned, batches, Arc::clone(&size), permit, spec.clone());
    begun.tasks.push_back(tokio::spawn(Box::pin(encoding)));
    Ok(OpenFile { rows_left, size, queue })
}

async fn encode(
    name: String,
    rows: u64,
    mut batches: mpsc::Receiver<RecordBatch>,
    size: Arc<AtomicU64>,
    permit: OwnedSemaphorePermit,
    spec: WriteSpec,
) -> Result<AddFile> {
    let shown = spec.schema.fields().len().saturating_sub(spec.hidden_columns);
    let mut stats = StatsCollector::new(
        &Schema::new(spec.schema.fields()[..shown].to_vec()),
        spec.indexed_columns,
        &spec.stats_columns,
        spec.column_mapping,
    )?;
    let schema = physical_schema(&spec.schema, spec.column_mapping);
    let path = Path::from(name.as_str());
    let target = BufWriter::new(Arc::clone(&spec.store), path);
    let mut writer = AsyncArrowWriter::try_new(
        target,
        Arc::clone(&schema),
        Some(properties(rows, &schema, &spec)),
    )?;
    let written: Result<()> = async {
        while let Some(batch) = batches.recv().await {
            stats.update(&batch)?;
            writer.write(&to_physical(&batch, &schema)?).await?;
            size.store(
                count(writer.bytes_written() + writer.in_progress_size()),
                Ordering::Relaxed,
            );
        }
        writer.flush().await?;
        Ok(())
    }
    .await;
    if let Err(error) = written {
        if let Err(abort) = writer.into_inner().abort().await {
            tracing::debug!(name, %abort, "upload not aborted");
        }
        return Err(error);
    }
    // An upload whose end fails has nothing left to abort, and `abort` would panic.
    writer.finish().await?;
    drop(permit);
    Ok(AddFile {
        path: name,
        partition_values: BTreeMap::new(),
        size: count(writer.bytes_written()),
        modification_time: spec.modification_time,
        data_change: spec.data_change,
        stats: Some(stats.finish()?),
        tags: (!spec.tags.is_empty())
            .then(|| spec.tags.iter().map(|(k, v)| (k.clone(), Some(v.clone()))).collect()),
        deletion_vector: None,
        base_row_id: None,
        default_row_commit_version: None,
        clustering_provider: spec.clustering_provider.clone(),
    })
}

pub(crate) fn properties(rows: u64, schema: &Schema, spec: &WriteSpec) -> WriterProperties {
    let page_rows = (rows / PAGES_PER_FILE).clamp(PAGE_ROWS_MIN, PAGE_ROWS_MAX);
    let page_rows = usize::try_from(page_rows).unwrap_or(usize::MAX);
    let common = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_max_row_group_row_count(Some(spec.row_group_rows))
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(page_rows.min(1_024))
        .set_created_by(lakebed_layout::engine_info().to_owned());
    // A footer's bounds leave NaN out, which engines take for larger than they say.
    let floats = columns::leaves(schema).into_iter().filter(|path| {
        columns::column_type(schema, &columns::join_name(path)).is_some_and(|t| t.is_floating())
    });
    floats
        .fold(common, |properties, path| {
            properties.set_column_statistics_enabled(path.into(), EnabledStatistics::None)
        })
        .build()
}

/// Gives a batch the table's types: a scan may hand out views or dictionaries of them.
pub(crate) fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    let columns = schema
        .fields()
        .iter()
        .map(|field| {
            let column = batch.column_by_name(field.name()).ok_or_else(|| {
                DataFusionError::Internal(format!(
                    "column `{}` is missing in a batch",
                    field.name()
                ))
            })?;
            Ok(arrow::compute::cast(column, field.data_type())?)
        })
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// Finds out why a file's task went before its rows came.
async fn first_error(begun: &mut Begun) -> DataFusionError {
    while let Some(task) = begun.tasks.pop_front() {
        if let Err(error) = joined(task.await) {
            return error;
        }
    }
    DataFusionError::Internal("a file's queue closed early".to_owned())
}

fn joined(result: std::result::Result<Result<AddFile>, tokio::task::JoinError>) -> Result<AddFile> {
    result.map_err(|error| DataFusionError::External(Box::new(error)))?
}

/// Divides rows into `files` equal parts, the first ones larger by one where needed.
pub(crate) fn equal_parts(rows: u64, files: u64) -> Vec<u64> {
    let files = files.clamp(1, rows.max(1));
    (0..files).map(|file| rows * (file + 1) / files - rows * file / files).collect()
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::equal_parts;

    #[test]
    fn parts_are_equal_and_sum_up() {
        assert_eq!(equal_parts(10, 3), [3, 3, 4]);
        assert_eq!(equal_parts(2, 5), [1, 1]);
        assert_eq!(equal_parts(0, 4), [0]);
    }
}
