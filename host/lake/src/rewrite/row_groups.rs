//! Writes sorted rows into files, one row group per task.
//!
//! 1. The rows are cut into files, and each file into row groups of about equal rows.
//! 2. Several row groups are encoded at once, each column after the other: its values are gathered
//!    from where they lie, counted into the statistics and compressed. A file therefore uses all
//!    threads, and memory holds a few encoded row groups and a column of each.
//! 3. Encoded row groups go to their file in order, and from there to storage.

use std::{
    collections::VecDeque,
    io,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use arrow::{array::Array, compute::interleave, datatypes::SchemaRef};
use datafusion::error::{DataFusionError, Result};
use futures::{StreamExt, TryStreamExt, stream};
use lakebed_layout::action::AddFile;
use object_store::{ObjectStoreExt, buffered::BufWriter, path::Path};
use parquet::{
    arrow::{
        ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata,
        arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves},
    },
    file::writer::SerializedFileWriter,
};
use tokio::io::AsyncWriteExt;

use super::{held::SortedRows, narrow::widen};
use crate::{
    physical::{physical_schema, retyped},
    stats::StatsCollector,
    write::{Planned, WriteSpec, Written, properties, row_group_rows},
};

/// Most bytes of one column of a row group: Arrow's offsets have 31 bits.
const COLUMN_BYTES_MAX: usize = 1 << 30;

/// The files of one rewrite, filled one after the other.
pub(super) struct FileSet<'s> {
    spec: &'s WriteSpec,
    /// Rows of each file to come.
    targets: VecDeque<u64>,
    names: Vec<String>,
    /// Files begun and not ended, in order.
    open: VecDeque<OpenFile>,
    written: Written,
}

struct OpenFile {
    name: String,
    rows_left: u64,
    /// Rows of a row group.
    row_group_rows: usize,
    parquet: SerializedFileWriter<Shared>,
    factory: Arc<ArrowRowGroupWriterFactory>,
    /// Row groups begun.
    row_groups: usize,
    buffer: Shared,
    upload: BufWriter,
    stats: StatsCollector,
}

/// A row group to encode.
struct Job {
    rows: Range<usize>,
    factory: Arc<ArrowRowGroupWriterFactory>,
    row_group: usize,
}

struct Encoded {
    chunks: Vec<ArrowColumnChunk>,
    stats: StatsCollector,
    rows: usize,
}

/// What is needed to encode, whatever the file.
struct Encoder {
    rows: SortedRows,
    logical: SchemaRef,
    physical: SchemaRef,
    stats: StatsCollector,
}

impl<'s> FileSet<'s> {
    pub(super) fn new(spec: &'s WriteSpec) -> Self {
        Self {
            spec,
            targets: VecDeque::new(),
            names: Vec::new(),
            open: VecDeque::new(),
            written: Written::default(),
        }
    }

    /// Says how many rows the next files have; rows beyond that are a file of their own.
    pub(super) fn expect(&mut self, parts: Vec<u64>) {
        self.targets.extend(parts.into_iter().filter(|rows| *rows > 0));
    }

    /// Writes rows that come after all written so far.
    pub(super) async fn write(&mut self, rows: SortedRows) -> Result<()> {
        let total = rows.len();
        let physical = physical_schema(&self.spec.schema, self.spec.column_mapping);
        let encoder = Arc::new(Encoder {
            logical: Arc::clone(&self.spec.schema),
            stats: self.spec.statistics()?,
            physical,
            rows,
        });
        // Row groups of all files are one queue: the end of a file makes nobody wait.
        let mut jobs: Vec<(usize, Job)> = Vec::new();
        let mut from = 0;
        while from < total {
            if self.open.back().is_none_or(|file| file.rows_left == 0) {
                let file = self.begin()?;
                self.open.push_back(file);
            }
            let position = self.open.len() - 1;
            let Some(file) = self.open.back_mut() else { break };
            let room = usize::try_from(file.rows_left).unwrap_or(usize::MAX);
            let until = total.min(from.saturating_add(room));
            jobs.extend(file.jobs(from..until, &encoder).into_iter().map(|job| (position, job)));
            from = until;
        }
        let encode = |(position, job): (usize, Job)| {
            let encoder = Arc::clone(&encoder);
            async move {
                tokio::task::spawn_blocking(move || {
                    Ok::<_, DataFusionError>((position, encoder.encode(job)?))
                })
                .await
                .map_err(|error| DataFusionError::External(Box::new(error)))?
            }
        };
        let at_once = 2 * self.spec.threads.max(1);
        let mut encoded = stream::iter(jobs).map(encode).buffered(at_once);
        let mut ended = 0;
        while let Some((position, group)) = encoded.try_next().await? {
            self.spec.meter.check()?;
            self.spec.meter.write(group.rows);
            while ended < position {
                self.end().await?;
                ended += 1;
            }
            if let Some(file) = self.open.front_mut() {
                file.append(group).await?;
            }
        }
        while self.open.front().is_some_and(|file| file.rows_left == 0) {
            self.end().await?;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<OpenFile> {
        let rows = self.targets.pop_front();
        let name = format!("part-{:05}-{}-c000.zstd.parquet", self.names.len(), self.spec.prefix);
        self.names.push(name.clone());
        OpenFile::new(name, rows, self.spec)
    }

    async fn end(&mut self) -> Result<()> {
        let Some(file) = self.open.pop_front() else { return Ok(()) };
        let (add, rows) = file.finish(self.spec).await?;
        self.written.adds.push(add);
        self.written.rows += rows;
        Ok(())
    }

    /// Ends the last file and returns all of them.
    pub(super) async fn finish(&mut self) -> Result<Written> {
        while !self.open.is_empty() {
            self.end().await?;
        }
        Ok(std::mem::take(&mut self.written))
    }

    /// Deletes what was written, as far as possible.
    pub(super) async fn discard(self) {
        for file in self.open {
            let mut upload = file.upload;
            if let Err(error) = upload.abort().await {
                tracing::debug!(name = file.name, %error, "upload not aborted");
            }
        }
        for name in self.names {
            if let Err(error) = self.spec.store.delete(&Path::from(name.as_str())).await {
                tracing::debug!(name, %error, "file of the failed job not deleted");
            }
        }
    }
}

impl OpenFile {
    fn new(name: String, rows: Option<u64>, spec: &WriteSpec) -> Result<Self> {
        let (planned, rows_left) = (rows.unwrap_or(0), rows.unwrap_or(u64::MAX));
        let schema = physical_schema(&spec.schema, spec.column_mapping);
        let mut properties = properties(Planned { rows: planned, bytes: None }, &schema, spec);
        let parquet_schema = ArrowSchemaConverter::new().convert(&schema)?;
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        let buffer = Shared::default();
        let parquet = SerializedFileWriter::new(
            buffer.clone(),
            parquet_schema.root_schema_ptr(),
            Arc::new(properties),
        )?;
        let factory = Arc::new(ArrowRowGroupWriterFactory::new(&parquet, schema));
        let upload = BufWriter::new(Arc::clone(&spec.store), Path::from(name.as_str()));
        Ok(Self {
            name,
            rows_left,
            row_group_rows: row_group_rows(planned, spec.row_group_rows),
            parquet,
            factory,
            row_groups: 0,
            buffer,
            upload,
            stats: spec.statistics()?,
        })
    }

    /// Divides rows into row groups of this file, and counts them as its own.
    fn jobs(&mut self, rows: Range<usize>, encoder: &Encoder) -> Vec<Job> {
        let most = (COLUMN_BYTES_MAX / encoder.rows.average_row_bytes.max(1))
            .clamp(1, self.row_group_rows);
        let groups = rows.len().div_ceil(most);
        let bound = |group: usize| rows.start + rows.len() * group / groups;
        let job = |group| Job {
            rows: bound(group)..bound(group + 1),
            factory: Arc::clone(&self.factory),
            row_group: self.row_groups + group,
        };
        let jobs = (0..groups).map(job).collect();
        self.row_groups += groups;
        self.rows_left = self.rows_left.saturating_sub(rows.len() as u64);
        jobs
    }

    async fn append(&mut self, encoded: Encoded) -> Result<()> {
        let mut group = self.parquet.next_row_group()?;
        for chunk in encoded.chunks {
            chunk.append_to_row_group(&mut group)?;
        }
        group.close()?;
        self.stats.merge(encoded.stats)?;
        Ok(self.upload.write_all(&self.buffer.take()).await?)
    }

    async fn finish(mut self, spec: &WriteSpec) -> Result<(AddFile, u64)> {
        self.parquet.finish()?;
        let size = self.parquet.bytes_written() as u64;
        self.upload.write_all(&self.buffer.take()).await?;
        self.upload.shutdown().await?;
        let rows = self.stats.rows();
        let add = spec.added(self.name, size, self.stats.finish()?);
        Ok((add, rows))
    }
}

impl Encoder {
    fn encode(&self, job: Job) -> Result<Encoded> {
        let places = self.rows.places(job.rows);
        let mut stats = self.stats.clone();
        stats.add_rows(places.len());
        let mut writers = job.factory.create_column_writers(job.row_group)?.into_iter();
        let mut chunks = Vec::with_capacity(writers.len());
        for (column, (logical, physical)) in
            self.logical.fields().iter().zip(self.physical.fields()).enumerate()
        {
            let sources: Vec<&dyn Array> =
                self.rows.batches.iter().map(|batch| batch.column(column).as_ref()).collect();
            let values = widen(interleave(&sources, &places)?, logical.data_type())?;
            stats.update_column(logical.name(), &values)?;
            let values = retyped(&values, physical.data_type())?;
            for leaf in compute_leaves(physical, &values)? {
                let mut writer = writers.next().ok_or_else(|| {
                    DataFusionError::Internal("a column has more leaves than its schema".to_owned())
                })?;
                writer.write(&leaf)?;
                chunks.push(writer.close()?);
            }
        }
        Ok(Encoded { chunks, stats, rows: places.len() })
    }
}

/// Bytes that the Parquet writer has put out and storage has not taken yet.
#[derive(Debug, Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
