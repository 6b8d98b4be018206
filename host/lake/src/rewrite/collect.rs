//! Takes in the rows of a rewrite: in memory while they fit, then dealt out by key to files on disk.
//!
//! Once memory is short, the key columns are scanned for a sample, ranges of keys are drawn from it
//! so that the rows of one fit in memory, and every row goes to the file of its range. Ranges are then
//! sorted one after the other. Each row is read and written once more than in memory, however many
//! there are.

use std::sync::Arc;

use arrow::{
    array::{RecordBatch, UInt32Array},
    compute::take_record_batch,
    datatypes::SchemaRef,
};
use datafusion::{
    config::SpillCompression,
    error::{DataFusionError, Result},
    execution::{
        SendableRecordBatchStream,
        memory_pool::{MemoryConsumer, MemoryReservation},
        runtime_env::RuntimeEnv,
        spill_file::SpillFile,
    },
    physical_plan::{
        SpillManager,
        metrics::{ExecutionPlanMetricsSet, SpillMetrics},
    },
};
use futures::{StreamExt, future::try_join_all};
use tokio::sync::Mutex;

use super::keys::RowKeys;
use crate::{meter::Meter, narrow::narrow, write::conform};

/// Bytes of keys and places per row, while rows are dealt out and sorted.
const BYTES_PER_ROW: usize = 32;
/// Most ranges on disk, each with a file and a buffer.
const RANGES_MAX: usize = 512;
/// Shares of the memory: a range that is being sorted may take this one.
const RANGE_SHARE: usize = 3;
/// What a rewrite takes in any case: ranges of less would be all overhead.
const MEMORY_MIN: usize = 16 << 20;
/// Least bytes that a range gathers before they are written to its file.
const BUFFER_BYTES_MIN: usize = 256 << 10;
/// Most bytes that a range gathers.
const BUFFER_BYTES_MAX: usize = 16 << 20;

/// Rows taken in.
pub(super) enum Collected {
    /// All of them, and the memory that is reserved for them.
    InMemory(Vec<RecordBatch>, MemoryReservation),
    /// Ranges of keys, ascending, and the function that gave the keys.
    OnDisk(Vec<RangeOnDisk>, Arc<RowKeys>),
}

impl Collected {
    pub(super) fn rows(&self) -> u64 {
        let rows: usize = match self {
            Self::InMemory(batches, _) => batches.iter().map(RecordBatch::num_rows).sum(),
            Self::OnDisk(ranges, _) => ranges.iter().map(|range| range.rows).sum(),
        };
        u64::try_from(rows).unwrap_or(u64::MAX)
    }
}

/// Learns keys from a scan of its own when the rows do not fit in memory.
pub(super) trait Sampler: Send + Sync {
    /// Returns the key function, a sample of keys in ascending order, and how many rows there are.
    fn sample(&self) -> impl Future<Output = Result<(RowKeys, Vec<u64>, u64)>> + Send;
}

/// What the rows of one job are taken in with.
pub(super) struct Collector<'c, S> {
    pub(super) schema: SchemaRef,
    /// How rows are held.
    pub(super) held_schema: SchemaRef,
    pub(super) runtime: Arc<RuntimeEnv>,
    /// Memory of the whole engine, in bytes.
    pub(super) memory: usize,
    pub(super) sampler: &'c S,
    pub(super) meter: Arc<Meter>,
}

enum State {
    Memory { batches: Vec<((usize, usize), RecordBatch)>, reservation: MemoryReservation },
    Disk(Arc<Ranges>),
}

impl<S: Sampler> Collector<'_, S> {
    /// Reads streams to their ends.
    pub(super) async fn collect(
        self,
        streams: Vec<SendableRecordBatchStream>,
    ) -> Result<Collected> {
        let reservation =
            MemoryConsumer::new("rewrite").with_can_spill(true).register(&self.runtime.memory_pool);
        let state = Mutex::new(State::Memory { batches: Vec::new(), reservation });
        let reading = streams.into_iter().enumerate().map(|(number, stream)| {
            let (this, state) = (&self, &state);
            async move { this.read(number, stream, state).await }
        });
        try_join_all(reading).await?;
        Ok(match state.into_inner() {
            State::Memory { mut batches, reservation } => {
                // The streams end up interleaved as they happened to run; rows must not.
                batches.sort_unstable_by_key(|(position, _)| *position);
                let batches = batches.into_iter().map(|(_, batch)| batch).collect();
                Collected::InMemory(batches, reservation)
            }
            State::Disk(ranges) => {
                let ranges = Arc::into_inner(ranges).ok_or_else(|| {
                    DataFusionError::Internal("a range is still being written".to_owned())
                })?;
                let keys = Arc::clone(&ranges.keys);
                Collected::OnDisk(ranges.finish()?, keys)
            }
        })
    }

    async fn read(
        &self,
        number: usize,
        stream: SendableRecordBatchStream,
        state: &Mutex<State>,
    ) -> Result<()> {
        // A task of its own per stream, so that several are decoded at once.
        let (sender, mut batches) = tokio::sync::mpsc::channel(2);
        let (schema, meter) = (Arc::clone(&self.schema), Arc::clone(&self.meter));
        let held_schema = Arc::clone(&self.held_schema);
        let decoding = tokio::spawn(async move {
            let mut stream = stream;
            while let Some(batch) = stream.next().await {
                meter.check()?;
                let batch = narrow(&conform(&batch?, &schema)?, &held_schema)?;
                meter.read(batch.num_rows());
                if sender.send(batch).await.is_err() {
                    break;
                }
            }
            Ok::<(), DataFusionError>(())
        });
        let mut sequence = 0;
        while let Some(batch) = batches.recv().await {
            self.take_in((number, sequence), batch, state).await?;
            sequence += 1;
        }
        decoding.await.map_err(|error| DataFusionError::External(Box::new(error)))?
    }

    async fn take_in(
        &self,
        position: (usize, usize),
        batch: RecordBatch,
        state: &Mutex<State>,
    ) -> Result<()> {
        let ranges = match &mut *state.lock().await {
            State::Disk(ranges) => Arc::clone(ranges),
            state @ State::Memory { .. } => {
                let State::Memory { batches, reservation } = state else { return Ok(()) };
                let bytes = batch.get_array_memory_size() + batch.num_rows() * BYTES_PER_ROW;
                if reservation.try_grow(bytes).is_ok() {
                    batches.push((position, batch));
                    return Ok(());
                }
                let ranges = Arc::new(self.start_ranges(batches, reservation.size()).await?);
                for (_, held) in std::mem::take(batches) {
                    ranges.push(held).await?;
                }
                *state = State::Disk(Arc::clone(&ranges));
                ranges
            }
        };
        ranges.push(batch).await
    }

    async fn start_ranges(
        &self,
        held: &[((usize, usize), RecordBatch)],
        held_bytes: usize,
    ) -> Result<Ranges> {
        let (keys, sample, rows) = self.sampler.sample().await?;
        let held_rows: usize = held.iter().map(|(_, batch)| batch.num_rows()).sum();
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let expected = held_bytes.saturating_mul(rows / held_rows.max(1) + 1);
        let memory = self.memory.max(MEMORY_MIN);
        let count = (expected / (memory / RANGE_SHARE) + 1).clamp(2, RANGES_MAX);
        let mut starts: Vec<u64> = (1..count)
            .filter_map(|range| sample.get(range * sample.len() / count).copied())
            .collect();
        starts.dedup();
        tracing::info!(ranges = starts.len() + 1, held_bytes, "rows do not fit in memory");
        let buffer =
            (memory / RANGE_SHARE / (starts.len() + 1)).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        let spill =
            SpillManager::new(Arc::clone(&self.runtime), metrics, Arc::clone(&self.held_schema))
                .with_compression_type(SpillCompression::Lz4Frame);
        let files = (0..=starts.len()).map(|_| Mutex::new(OpenRange::default())).collect();
        Ok(Ranges { keys: Arc::new(keys), starts, files, buffer, spill })
    }
}

/// Rows being dealt out to files, one per range of keys.
struct Ranges {
    keys: Arc<RowKeys>,
    /// First key of every range but the first.
    starts: Vec<u64>,
    files: Vec<Mutex<OpenRange>>,
    /// Bytes that a range gathers before they are written.
    buffer: usize,
    spill: SpillManager,
}

#[derive(Default)]
struct OpenRange {
    gathered: Vec<RecordBatch>,
    gathered_bytes: usize,
    files: Vec<(Arc<dyn SpillFile>, usize)>,
    rows: usize,
}

/// One range of keys, all of whose rows are on disk.
pub(super) struct RangeOnDisk {
    spill: SpillManager,
    /// Files and the bytes that each has in memory.
    files: Vec<(Arc<dyn SpillFile>, usize)>,
    pub(super) rows: usize,
}

impl Ranges {
    async fn push(&self, batch: RecordBatch) -> Result<()> {
        let (keys, _) = self.keys.of(&batch)?;
        let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); self.files.len()];
        for (row, key) in (0..).zip(&keys) {
            rows_of[self.starts.partition_point(|start| start <= key)].push(row);
        }
        for (file, rows) in self.files.iter().zip(rows_of) {
            if rows.is_empty() {
                continue;
            }
            let part = take_record_batch(&batch, &UInt32Array::from(rows))?;
            let mut file = file.lock().await;
            file.rows += part.num_rows();
            file.gathered_bytes += part.get_array_memory_size();
            file.gathered.push(part);
            if file.gathered_bytes >= self.buffer {
                file.write(&self.spill)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<RangeOnDisk>> {
        let mut ranges = Vec::with_capacity(self.files.len());
        for file in self.files {
            let mut open = file.into_inner();
            open.write(&self.spill)?;
            if open.rows > 0 {
                let (files, rows) = (open.files, open.rows);
                ranges.push(RangeOnDisk { spill: self.spill.clone(), files, rows });
            }
        }
        Ok(ranges)
    }
}

impl OpenRange {
    fn write(&mut self, spill: &SpillManager) -> Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let schema = self.gathered[0].schema();
        let batch = arrow::compute::concat_batches(&schema, &self.gathered)?;
        if let Some(file) =
            spill.spill_record_batch_and_finish(std::slice::from_ref(&batch), "rewrite")?
        {
            self.files.push((file, batch.get_array_memory_size()));
        }
        self.gathered.clear();
        self.gathered_bytes = 0;
        Ok(())
    }
}

impl RangeOnDisk {
    /// Reads the rows back.
    pub(super) async fn read(self) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        for (file, bytes) in self.files {
            let mut stream = self.spill.read_spill_as_stream(file, Some(bytes))?;
            while let Some(batch) = stream.next().await {
                batches.push(batch?);
            }
        }
        Ok(batches)
    }
}
