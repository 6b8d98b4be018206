//! Cuts a stream of rows into Parquet files: of equal rows where it is known how many there are, else of
//! a size.
//!
//! The stream is read once, and its rows are gathered into row groups, of which several are encoded at
//! once ([`FileSet`]). Memory holds those.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::{RecordBatch, RecordBatchOptions},
    datatypes::{Schema, SchemaRef},
};
use datafusion::{
    error::{DataFusionError, Result},
    execution::SendableRecordBatchStream,
};
use futures::StreamExt;
use lakebed_layout::{BloomFilter, ColumnMapping, action::AddFile, columns};
use object_store::ObjectStore;
use parquet::{
    basic::{Compression, ZstdLevel},
    file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder},
    schema::types::ColumnPath,
};

use crate::{change_data::CHANGE_TYPE, file_set::FileSet, meter::Meter, stats::StatsCollector};

/// Fewest rows of a data page: smaller pages cost more in headers than they prune.
const PAGE_ROWS_MIN: u64 = 512;
/// Most rows of a data page, the Parquet default.
const PAGE_ROWS_MAX: u64 = 20_000;
/// Rows of a data page where nobody knows how many the file will have.
const PAGE_ROWS_UNKNOWN: u64 = 4_096;
/// Bytes in memory after which a row group ends in any case: several are held at once.
const GATHERED_BYTES_MAX: usize = 128 << 20;
/// Pages a file is divided into where its size allows.
const PAGES_PER_FILE: u64 = 16;
/// Row groups a file is divided into where its size allows, so that readers without page indexes skip
/// within it too.
pub(crate) const ROW_GROUPS_PER_FILE: u64 = 8;
/// Fewest rows of a row group: each has a dictionary of its own.
const ROW_GROUP_ROWS_MIN: u64 = 1 << 16;
/// Fewest bytes of a row group where files are cut by size.
pub(crate) const ROW_GROUP_BYTES_MIN: u64 = 1 << 20;

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
    /// Columns with Bloom filters.
    pub(crate) bloom_filters: Vec<BloomFilter>,
    /// How files name their columns.
    pub(crate) column_mapping: ColumnMapping,
    /// Most rows of a row group.
    pub(crate) row_group_rows: usize,
    /// Row groups encoded at once, and as many more wait for their place.
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

impl WriteSpec {
    /// Prepares for the statistics of a file; columns that the table does not show have none.
    pub(crate) fn statistics(&self) -> Result<StatsCollector> {
        let shown = self.schema.fields().len().saturating_sub(self.hidden_columns);
        let schema = Schema::new(self.schema.fields()[..shown].to_vec());
        let (leading, named) = (self.indexed_columns, self.stats_columns.as_slice());
        StatsCollector::new(&schema, leading, named, self.column_mapping)
    }

    /// Names a file of this job; files of changes have names of their own.
    pub(crate) fn file_name(&self, number: usize) -> String {
        let last = self.schema.fields().last();
        let is_change = last.is_some_and(|column| column.name() == CHANGE_TYPE);
        let kind = if is_change { "cdc" } else { "part" };
        format!("{kind}-{number:05}-{}-c000.zstd.parquet", self.prefix)
    }

    /// Describes a file that was written.
    pub(crate) fn added(&self, path: String, size: u64, stats: String) -> AddFile {
        let tags = self.tags.iter().map(|(key, value)| (key.clone(), Some(value.clone())));
        AddFile {
            path,
            partition_values: BTreeMap::new(),
            size,
            modification_time: self.modification_time,
            data_change: self.data_change,
            stats: Some(stats),
            tags: (!self.tags.is_empty()).then(|| tags.collect()),
            deletion_vector: None,
            base_row_id: None,
            default_row_commit_version: None,
            clustering_provider: self.clustering_provider.clone(),
        }
    }
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

/// Writes a stream into files.
///
/// On an error every file of the job is deleted as far as possible.
pub(crate) async fn write_files(
    stream: SendableRecordBatchStream,
    cut: Cut<'_>,
    spec: &WriteSpec,
) -> Result<Written> {
    let running = spec.meter.begin(None);
    let mut files = FileSet::new(spec)?;
    let written = match Box::pin(fill(stream, cut, &mut files, spec)).await {
        Ok(()) => files.finish().await,
        Err(error) => Err(error),
    };
    if written.is_err() {
        files.discard().await;
    }
    drop(running);
    written
}

/// Gathers row groups from a stream and has them written.
async fn fill(
    mut stream: SendableRecordBatchStream,
    cut: Cut<'_>,
    files: &mut FileSet<'_>,
    spec: &WriteSpec,
) -> Result<()> {
    match cut {
        Cut::Rows(rows) => files.expect(rows.iter().copied()),
        Cut::Bytes(bytes) => files.cut_by_size(bytes),
    }
    let mut group = Gathered::default();
    while let Some(batch) = stream.next().await {
        let mut batch = batch?;
        spec.meter.check()?;
        spec.meter.read(batch.num_rows());
        while batch.num_rows() > 0 {
            let row_bytes = batch.get_array_memory_size() / batch.num_rows();
            let room = files.row_group_room(row_bytes)?.saturating_sub(group.rows).max(1);
            let part = batch.slice(0, room.min(batch.num_rows()));
            batch = batch.slice(part.num_rows(), batch.num_rows() - part.num_rows());
            group.add(part, row_bytes);
            let is_full = group.rows >= files.row_group_room(row_bytes)?;
            if is_full || group.bytes >= GATHERED_BYTES_MAX {
                files.write_row_group(std::mem::take(&mut group).batches).await?;
            }
        }
    }
    if group.rows > 0 {
        files.write_row_group(group.batches).await?;
    }
    Ok(())
}

/// Rows of a row group to come.
#[derive(Default)]
struct Gathered {
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl Gathered {
    fn add(&mut self, batch: RecordBatch, row_bytes: usize) {
        self.rows += batch.num_rows();
        self.bytes += batch.num_rows() * row_bytes;
        self.batches.push(batch);
    }
}

/// The level of all files' compression: higher ones cost several times as much for a few percent.
pub(crate) fn compression_level() -> ZstdLevel {
    ZstdLevel::default()
}

/// Returns how files are written, of which it may be known how many rows they will have.
pub(crate) fn properties(rows: Option<u64>, schema: &Schema, spec: &WriteSpec) -> WriterProperties {
    let page_rows = match rows {
        None | Some(0) => PAGE_ROWS_UNKNOWN,
        Some(rows) => (rows / PAGES_PER_FILE).clamp(PAGE_ROWS_MIN, PAGE_ROWS_MAX),
    };
    let page_rows = usize::try_from(page_rows).unwrap_or(usize::MAX);
    let group_rows = row_group_rows(rows.unwrap_or(0), spec.row_group_rows);
    let common = WriterProperties::builder()
        .set_compression(Compression::ZSTD(compression_level()))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_max_row_group_row_count(Some(group_rows))
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(page_rows.min(1_024))
        .set_created_by(lakebed_layout::engine_info().to_owned());
    // A footer's bounds leave NaN out, which engines take for larger than they say.
    let floats = columns::leaves(schema).into_iter().filter(|path| {
        columns::column_type(schema, &columns::join_name(path)).is_some_and(|t| t.is_floating())
    });
    let common = floats.fold(common, |properties, path| {
        properties.set_column_statistics_enabled(path.into(), EnabledStatistics::None)
    });
    spec.bloom_filters
        .iter()
        .fold(common, |properties, filter| with_bloom_filter(properties, filter, group_rows, spec))
        .build()
}

/// How many rows the row groups of a file have: equal ones, but for the last.
pub(crate) fn row_group_rows(rows: u64, most: usize) -> usize {
    let most = most.max(1);
    let groups = (rows / ROW_GROUP_ROWS_MIN).clamp(1, ROW_GROUPS_PER_FILE);
    match usize::try_from(rows.div_ceil(groups)) {
        Ok(equal) if equal > 0 => equal.min(most),
        _ => most,
    }
}

/// The writer makes room for as many values as a row group has rows and cuts the filter down to those
/// that came.
fn with_bloom_filter(
    properties: WriterPropertiesBuilder,
    filter: &BloomFilter,
    group_rows: usize,
    spec: &WriteSpec,
) -> WriterPropertiesBuilder {
    let path = columns::split_name(&filter.column);
    let Some(path) = spec.column_mapping.physical_path(&spec.schema, &path) else {
        return properties;
    };
    let path = ColumnPath::new(path);
    let group_rows = count(group_rows);
    let distinct = filter.distinct_max.map_or(group_rows, |most| most.min(group_rows));
    properties
        .set_column_bloom_filter_enabled(path.clone(), true)
        .set_column_bloom_filter_fpp(path.clone(), filter.false_positives)
        .set_column_bloom_filter_max_ndv(path, distinct)
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

/// Divides rows into `files` equal parts, the first ones larger by one where needed.
pub(crate) fn equal_parts(rows: u64, files: u64) -> Vec<u64> {
    let files = files.clamp(1, rows.max(1));
    (0..files).map(|file| rows * (file + 1) / files - rows * file / files).collect()
}

pub(crate) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use arrow::datatypes::{DataType, Field, Schema};
    use lakebed_layout::{BloomFilter, ColumnMapping, testing::mapped_field};
    use object_store::memory::InMemory;
    use parquet::schema::types::ColumnPath;

    use super::{WriteSpec, equal_parts, properties, row_group_rows};
    use crate::physical::physical_schema;

    /// Under column mapping files have other names; a field of a struct has a filter as well.
    #[test]
    fn bloom_filters_go_by_the_names_of_files() {
        let inner: Vec<Field> = vec![mapped_field("id", DataType::Utf8, 2)];
        let outer = mapped_field("who", DataType::Struct(inner.into()), 1);
        let filter = |column: &str| BloomFilter {
            column: column.to_owned(),
            false_positives: 0.02,
            distinct_max: Some(300),
        };
        let spec = WriteSpec {
            store: Arc::new(InMemory::new()),
            prefix: String::new(),
            schema: Arc::new(Schema::new(vec![outer])),
            hidden_columns: 0,
            indexed_columns: 1,
            stats_columns: Vec::new(),
            bloom_filters: vec![filter("who.id"), filter("who.gone")],
            column_mapping: ColumnMapping::Name,
            row_group_rows: 1 << 20,
            threads: 1,
            meter: Arc::default(),
            tags: BTreeMap::new(),
            clustering_provider: None,
            modification_time: 0,
            data_change: true,
        };
        let schema = physical_schema(&spec.schema, spec.column_mapping);
        let made = properties(Some(1_000), &schema, &spec);
        let of = |path: &[&str]| {
            let path = ColumnPath::new(path.iter().map(|part| (*part).to_owned()).collect());
            made.bloom_filter_properties(&path).map(|found| found.ndv())
        };
        assert_eq!(of(&["col-1", "col-2"]), Some(300));
        assert_eq!(of(&["who", "id"]), None);
        assert_eq!(of(&["who", "gone"]), None);
    }

    #[test]
    fn row_groups_are_eight_where_each_has_rows_enough() {
        for (rows, most, expected) in [
            (0, 1 << 20, 1 << 20),
            (1_000, 1 << 20, 1_000),
            (1 << 17, 1 << 20, 1 << 16),
            (1_000_001, 1 << 20, 125_001),
            (100_000_000, 1 << 20, 1 << 20),
            (200_000, 65_536, 65_536),
        ] {
            assert_eq!(row_group_rows(rows, most), expected, "{rows}");
        }
    }

    #[test]
    fn parts_are_equal_and_sum_up() {
        assert_eq!(equal_parts(10, 3), [3, 3, 4]);
        assert_eq!(equal_parts(2, 5), [1, 1]);
        assert_eq!(equal_parts(0, 4), [0]);
    }
}
