//! Writes rows into files, one row group per task.
//!
//! 1. The rows, in the order given, are cut into files, and each file into row groups of about equal
//!    rows.
//! 2. Several row groups are encoded at once, each column after the other: its values are gathered
//!    from where they lie, counted into the statistics and compressed, by our own encoder where it
//!    knows the type and by the Parquet crate's otherwise. A file therefore uses all threads, and
//!    memory holds a few encoded row groups and a column of each.
//! 3. Encoded row groups go to their file in order, and from there to storage.

use std::{
    collections::VecDeque,
    io,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use arrow::{
    array::{Array, ArrayRef, RecordBatch},
    compute::interleave,
    datatypes::{Field, SchemaRef},
};
use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use futures::{StreamExt, stream::FuturesOrdered};
use lakebed_layout::action::AddFile;
use object_store::{ObjectStoreExt, buffered::BufWriter, path::Path};
use parquet::{
    arrow::{
        ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata,
        arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves},
    },
    file::writer::{SerializedFileWriter, SerializedRowGroupWriter},
    schema::types::ColumnDescPtr,
};
use tokio::{io::AsyncWriteExt, task::JoinHandle};

use crate::{
    encode::{Chunk, ChunkWriter, FlatColumn, Place, Placed},
    narrow::{narrow, narrow_schema, widen},
    physical::{physical_schema, retyped},
    stats::StatsCollector,
    write::{
        ROW_GROUP_BYTES_MIN, ROW_GROUPS_PER_FILE, WriteSpec, Written, compression_level, conform,
        properties, row_group_rows,
    },
};

/// Most bytes of one column of a row group: Arrow's offsets have 31 bits.
const COLUMN_BYTES_MAX: usize = 1 << 30;

/// The files of one rewrite, filled one after the other.
pub(crate) struct FileSet<'s> {
    spec: &'s WriteSpec,
    encoder: Arc<Encoder>,
    /// Rows of each file to come.
    targets: VecDeque<u64>,
    names: Vec<String>,
    /// Files begun and not ended, in order.
    open: VecDeque<OpenFile>,
    /// Row groups being encoded, in order, each with the number of its file.
    encoding: FuturesOrdered<JoinHandle<Result<(usize, Encoded)>>>,
    written: Written,
    /// Bytes at which a file ends, where no rows are expected.
    file_bytes: Option<u64>,
    /// Rows and bytes of all row groups encoded so far.
    encoded: (u64, u64),
}

/// Rows in the order in which they are to be written.
pub(crate) trait OrderedRows: Send + Sync {
    /// Returns where they lie, in the types in which rows are held.
    fn batches(&self) -> &[RecordBatch];
    /// Returns how many they are.
    fn len(&self) -> usize;
    /// Lists where the rows of a part lie.
    fn places(&self, part: Range<usize>) -> Vec<Place>;
    /// Returns the bytes of a row in memory, on average.
    fn average_row_bytes(&self) -> usize;
}

struct OpenFile {
    name: String,
    /// Rows that may still be added.
    rows_left: u64,
    /// Rows being encoded.
    rows_encoding: u64,
    /// Rows of a row group.
    row_group_rows: usize,
    parquet: SerializedFileWriter<Shared>,
    factory: Arc<ArrowRowGroupWriterFactory>,
    format: Arc<Format>,
    /// Row groups begun.
    row_groups: usize,
    buffer: Shared,
    upload: BufWriter,
    stats: StatsCollector,
}

/// What our own encoder must know of a file.
struct Format {
    /// The file's leaf columns; none where a column has a Bloom filter, which we leave to the crate.
    leaves: Vec<Option<ColumnDescPtr>>,
    page_rows: usize,
}

/// The rows of a row group.
enum JobRows {
    /// Some of many that are held.
    Part(Arc<dyn OrderedRows>, Range<usize>),
    /// All of these, as a scan gave them.
    All(Vec<RecordBatch>),
}

/// A row group to encode.
struct Job {
    rows: JobRows,
    factory: Arc<ArrowRowGroupWriterFactory>,
    format: Arc<Format>,
    row_group: usize,
}

/// A column of a row group, encoded by us or by the crate.
enum EncodedColumn {
    Own(Chunk),
    Crate(ArrowColumnChunk),
}

struct Encoded {
    columns: Vec<EncodedColumn>,
    stats: StatsCollector,
    rows: usize,
}

/// What is needed to encode, whatever the file.
struct Encoder {
    logical: SchemaRef,
    /// How rows are held.
    held: SchemaRef,
    physical: SchemaRef,
    stats: StatsCollector,
}

impl<'s> FileSet<'s> {
    pub(crate) fn new(spec: &'s WriteSpec) -> Result<Self> {
        let encoder = Encoder {
            logical: Arc::clone(&spec.schema),
            held: narrow_schema(&spec.schema),
            physical: physical_schema(&spec.schema, spec.column_mapping),
            stats: spec.statistics()?,
        };
        Ok(Self {
            spec,
            encoder: Arc::new(encoder),
            targets: VecDeque::new(),
            names: Vec::new(),
            open: VecDeque::new(),
            encoding: FuturesOrdered::new(),
            written: Written::default(),
            file_bytes: None,
            encoded: (0, 0),
        })
    }

    /// Says how many rows the next files have; rows beyond that are a file of their own.
    pub(crate) fn expect(&mut self, parts: impl IntoIterator<Item = u64>) {
        self.targets.extend(parts.into_iter().filter(|rows| *rows > 0));
    }

    /// Writes rows that come after all written so far, and lets go of them.
    pub(crate) async fn write(&mut self, rows: Arc<dyn OrderedRows>) -> Result<()> {
        let mut from = 0;
        while from < rows.len() {
            let until = rows.len().min(from.saturating_add(self.room()?));
            let Some(file) = self.open.back_mut() else { break };
            for job in file.jobs(from..until, &rows) {
                self.start(job).await?;
            }
            from = until;
        }
        while !self.encoding.is_empty() {
            self.take_encoded().await?;
        }
        Ok(())
    }

    /// Ends each file once it has about so many bytes.
    pub(crate) fn cut_by_size(&mut self, bytes: u64) {
        self.file_bytes = Some(bytes.max(1));
    }

    /// Returns how many rows the next row group has at most, of rows of about so many bytes in memory.
    pub(crate) fn row_group_room(&mut self, row_bytes: usize) -> Result<usize> {
        let room = self.room()?;
        let most = self.open.back().map_or(room, |file| room.min(file.row_group_rows));
        let Some(file_bytes) = self.file_bytes else { return Ok(most) };
        let rows = row_group_bytes(file_bytes) / self.encoded_row_bytes(row_bytes);
        Ok(usize::try_from(rows).unwrap_or(usize::MAX).clamp(1, most.max(1)))
    }

    /// Writes a row group of rows that come after all written so far, as a scan gave them: no more of
    /// them than there is room for.
    pub(crate) async fn write_row_group(&mut self, batches: Vec<RecordBatch>) -> Result<()> {
        self.room()?;
        let rows = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        let Some(file) = self.open.back_mut() else { return Ok(()) };
        let job = file.job(JobRows::All(batches), rows);
        self.start(job).await?;
        let Some(file_bytes) = self.file_bytes else { return Ok(()) };
        if self.encoded == (0, 0) {
            // From the first row group it is known how many bytes a row takes.
            self.take_encoded().await?;
        }
        let row_bytes = self.encoded_row_bytes(0);
        let Some(file) = self.open.back_mut() else { return Ok(()) };
        let expected = file.parquet.bytes_written() as u64 + file.rows_encoding * row_bytes;
        if expected + row_group_bytes(file_bytes) / 2 >= file_bytes {
            file.rows_left = 0;
        }
        Ok(())
    }

    /// Returns how many bytes of a file a row takes, from those written or else from its size in memory.
    fn encoded_row_bytes(&self, row_bytes: usize) -> u64 {
        match self.encoded {
            (0, _) => (row_bytes as u64 / 3).max(1),
            (rows, bytes) => (bytes / rows).max(1),
        }
    }

    /// Returns how many rows the last file still takes, and begins one where there is none.
    fn room(&mut self) -> Result<usize> {
        if self.open.back().is_none_or(|file| file.rows_left == 0) {
            let file = self.begin()?;
            self.open.push_back(file);
        }
        let rows_left = self.open.back().map_or(0, |file| file.rows_left);
        Ok(usize::try_from(rows_left).unwrap_or(usize::MAX))
    }

    /// Begins to encode a row group of the last file, as soon as a thread is free for it. Row groups of
    /// all files are one queue: the end of a file makes nobody wait.
    async fn start(&mut self, job: Job) -> Result<()> {
        while self.encoding.len() >= 2 * self.spec.threads.max(1) {
            self.take_encoded().await?;
        }
        let (encoder, file) = (Arc::clone(&self.encoder), self.names.len() - 1);
        let task = tokio::task::spawn_blocking(move || Ok((file, encoder.encode(job)?)));
        self.encoding.push_back(task);
        Ok(())
    }

    /// Appends the next row group to its file.
    async fn take_encoded(&mut self) -> Result<()> {
        let Some(encoded) = self.encoding.next().await else { return Ok(()) };
        let (file, group) =
            encoded.map_err(|error| DataFusionError::External(Box::new(error)))??;
        self.spec.meter.check()?;
        self.spec.meter.write(group.rows);
        self.encoded.0 += group.rows as u64;
        self.encoded.1 += group.bytes();
        while self.names.len() - self.open.len() < file {
            self.end().await?;
        }
        match self.open.front_mut() {
            Some(file) => file.append(group).await,
            None => Ok(()),
        }
    }

    fn begin(&mut self) -> Result<OpenFile> {
        let rows = self.targets.pop_front();
        let name = self.spec.file_name(self.names.len());
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
    pub(crate) async fn finish(&mut self) -> Result<Written> {
        while !self.encoding.is_empty() {
            self.take_encoded().await?;
        }
        while !self.open.is_empty() {
            self.end().await?;
        }
        Ok(std::mem::take(&mut self.written))
    }

    /// Deletes what was written, as far as possible.
    pub(crate) async fn discard(self) {
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
        let schema = physical_schema(&spec.schema, spec.column_mapping);
        let mut properties = properties(rows, &schema, spec);
        let parquet_schema = ArrowSchemaConverter::new().convert(&schema)?;
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        let buffer = Shared::default();
        let properties = Arc::new(properties);
        let parquet = SerializedFileWriter::new(
            buffer.clone(),
            parquet_schema.root_schema_ptr(),
            Arc::clone(&properties),
        )?;
        let has_bloom_filter =
            |leaf: &ColumnDescPtr| properties.bloom_filter_properties(leaf.path()).is_some();
        let leaves = parquet.schema_descr().columns().iter();
        let format = Arc::new(Format {
            leaves: leaves
                .map(|leaf| (!has_bloom_filter(leaf)).then(|| ColumnDescPtr::clone(leaf)))
                .collect(),
            page_rows: properties.data_page_row_count_limit(),
        });
        let factory = Arc::new(ArrowRowGroupWriterFactory::new(&parquet, schema));
        let upload = BufWriter::new(Arc::clone(&spec.store), Path::from(name.as_str()));
        Ok(Self {
            name,
            rows_left: rows.unwrap_or(u64::MAX),
            rows_encoding: 0,
            row_group_rows: row_group_rows(rows.unwrap_or(0), spec.row_group_rows),
            parquet,
            factory,
            format,
            row_groups: 0,
            buffer,
            upload,
            stats: spec.statistics()?,
        })
    }

    /// Divides rows into row groups of this file, and counts them as its own.
    fn jobs(&mut self, part: Range<usize>, rows: &Arc<dyn OrderedRows>) -> Vec<Job> {
        let most =
            (COLUMN_BYTES_MAX / rows.average_row_bytes().max(1)).clamp(1, self.row_group_rows);
        let groups = part.len().div_ceil(most);
        let bound = |group: usize| part.start + part.len() * group / groups;
        let group = |group| {
            let part = bound(group)..bound(group + 1);
            let length = part.len();
            self.job(JobRows::Part(Arc::clone(rows), part), length)
        };
        (0..groups).map(group).collect()
    }

    /// Makes the next row group of this file, and counts its rows.
    fn job(&mut self, rows: JobRows, count: usize) -> Job {
        self.rows_left = self.rows_left.saturating_sub(count as u64);
        self.rows_encoding += count as u64;
        self.row_groups += 1;
        Job {
            rows,
            factory: Arc::clone(&self.factory),
            format: Arc::clone(&self.format),
            row_group: self.row_groups - 1,
        }
    }

    async fn append(&mut self, encoded: Encoded) -> Result<()> {
        self.rows_encoding -= encoded.rows as u64;
        let mut group = self.parquet.next_row_group()?;
        for column in encoded.columns {
            column.append_to(&mut group)?;
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

impl Encoded {
    fn bytes(&self) -> u64 {
        let bytes = |column: &EncodedColumn| match column {
            EncodedColumn::Own(chunk) => chunk.close.bytes_written,
            EncodedColumn::Crate(chunk) => chunk.close().bytes_written,
        };
        self.columns.iter().map(bytes).sum()
    }
}

impl EncodedColumn {
    fn append_to(self, group: &mut SerializedRowGroupWriter<'_, Shared>) -> Result<()> {
        match self {
            Self::Own(Chunk { bytes, close, .. }) => {
                group.append_column(&Bytes::from(bytes), close)?;
            }
            Self::Crate(chunk) => chunk.append_to_row_group(group)?,
        }
        Ok(())
    }
}

impl Encoder {
    fn encode(&self, job: Job) -> Result<Encoded> {
        match &job.rows {
            JobRows::Part(rows, part) => {
                self.encode_places(&job, rows.batches(), &Placed::new(rows.places(part.clone())))
            }
            JobRows::All(batches) => {
                let hold = |batch| Ok(narrow(&conform(batch, &self.logical)?, &self.held)?);
                let batches: Vec<RecordBatch> = batches.iter().map(hold).collect::<Result<_>>()?;
                let place = |(batch, rows): (u32, usize)| {
                    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
                    (0..rows).map(move |row| Place { batch, row })
                };
                let rows = batches.iter().map(RecordBatch::num_rows);
                let places: Vec<Place> = (0..).zip(rows).flat_map(place).collect();
                self.encode_places(&job, &batches, &Placed::new(places))
            }
        }
    }

    fn encode_places(
        &self,
        job: &Job,
        batches: &[RecordBatch],
        placed: &Placed,
    ) -> Result<Encoded> {
        let places = placed.places();
        let mut stats = self.stats.clone();
        stats.add_rows(places.len());
        let mut writers = job.factory.create_column_writers(job.row_group)?.into_iter();
        let mut own = ChunkWriter::new(compression_level(), job.format.page_rows)?;
        let mut columns = Vec::with_capacity(writers.len());
        for (column, (logical, physical)) in
            self.logical.fields().iter().zip(self.physical.fields()).enumerate()
        {
            let sources: Vec<&dyn Array> =
                batches.iter().map(|batch| batch.column(column).as_ref()).collect();
            let leaf = job.format.leaves.get(columns.len()).and_then(Option::as_ref);
            let flat =
                leaf.and_then(|leaf| Some((leaf, FlatColumn::gather(&sources, placed, leaf)?)));
            if let Some((leaf, flat)) = flat {
                let chunk = own.encode(&flat, leaf)?;
                let bounds = chunk.extremes.map(|rows| rows.map(|row| places[row]));
                let bounds =
                    bounds.map(|places| gathered(&sources, &places, logical)).transpose()?;
                stats.update_bounds(logical.name(), bounds.as_ref(), flat.null_count())?;
                columns.push(EncodedColumn::Own(chunk));
                drop(writers.next());
                continue;
            }
            let values = gathered(&sources, places, logical)?;
            stats.update_column(logical.name(), &values)?;
            let values = retyped(&values, physical.data_type())?;
            for leaf in compute_leaves(physical, &values)? {
                let mut writer = writers.next().ok_or_else(|| {
                    DataFusionError::Internal("a column has more leaves than its schema".to_owned())
                })?;
                writer.write(&leaf)?;
                columns.push(EncodedColumn::Crate(writer.close()?));
            }
        }
        Ok(Encoded { columns, stats, rows: places.len() })
    }
}

/// Copies the values of some rows, in the type of their column.
fn gathered(sources: &[&dyn Array], places: &[Place], column: &Field) -> Result<ArrayRef> {
    let index = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let places: Vec<(usize, usize)> =
        places.iter().map(|place| (index(place.batch), index(place.row))).collect();
    Ok(widen(interleave(sources, &places)?, column.data_type())?)
}

/// Bytes of a row group of a file that is cut by size.
fn row_group_bytes(file_bytes: u64) -> u64 {
    (file_bytes / ROW_GROUPS_PER_FILE).max(ROW_GROUP_BYTES_MIN).min(file_bytes)
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
