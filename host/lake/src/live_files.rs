//! The live files of a version, read in one pass over its log and held compactly.
//!
//! The kernel replays the log; its batches become files one by one and are dropped. deltalake's own
//! state would keep them, with the statistics of all columns parsed, and decode paths, which a
//! `remove` must spell as the `add` did. Files that have the same tags share them.

use std::collections::{BTreeMap, BTreeSet};

use arrow::{
    array::{Array, AsArray, MapArray, RecordBatch, StructArray},
    compute::filter_record_batch,
    datatypes::Int64Type,
    error::ArrowError,
};
use delta_kernel::{
    DeltaResult, Engine,
    scan::{ScanMetadata, StatsOptions},
    snapshot::SnapshotRef,
};
use lakebed_layout::action::{AddFile, Tags};

use crate::kernel::{Texts, Vectors, record_batch};

/// Lists the live files of a version, by path. Blocks.
pub(crate) fn read(engine: &dyn Engine, snapshot: &SnapshotRef) -> DeltaResult<Vec<AddFile>> {
    let mut files = read_with(engine, snapshot, StatsOptions::json_only())?;
    // Some checkpoints have statistics as columns only. Making text of those costs more, and whether
    // it is necessary is known only afterwards.
    let has_checkpoint = snapshot.log_segment().checkpoint_version.is_some();
    if has_checkpoint && files.iter().any(|file| file.stats.is_none()) {
        files = read_with(engine, snapshot, StatsOptions::all())?;
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn read_with(
    engine: &dyn Engine,
    snapshot: &SnapshotRef,
    stats: StatsOptions,
) -> DeltaResult<Vec<AddFile>> {
    let scan = SnapshotRef::clone(snapshot).scan_builder();
    let scan = scan.with_stats(stats).without_row_transforms().build()?;
    let mut list = FileList::default();
    for batch in scan.scan_metadata(engine)? {
        list.extend(&selected(batch?)?)?;
    }
    Ok(list.files)
}

/// Takes the files of a batch that are live.
fn selected(batch: ScanMetadata) -> DeltaResult<RecordBatch> {
    let (data, mut selection) = batch.scan_files.into_parts();
    let batch = record_batch(data)?;
    selection.resize(batch.num_rows(), true);
    Ok(filter_record_batch(&batch, &selection.into())?)
}

#[derive(Debug, Default)]
struct FileList {
    files: Vec<AddFile>,
    /// Tags that files had so far.
    tags: BTreeSet<Tags>,
}

impl FileList {
    fn extend(&mut self, batch: &RecordBatch) -> DeltaResult<()> {
        let batch = StructArray::from(batch.clone());
        let columns = Columns::of(&batch).ok_or_else(|| {
            ArrowError::SchemaError(format!("no files in {:?}", batch.data_type()))
        })?;
        self.files.reserve(batch.len());
        for row in 0..batch.len() {
            let Some(path) = columns.path.get(row) else { continue };
            let tags = columns.tags.get(row).map(|tags| self.shared(tags.into_iter().collect()));
            self.files.push(AddFile {
                path,
                partition_values: columns.partition_values.get(row).unwrap_or_default(),
                size: whole(columns.size, row).and_then(|n| n.try_into().ok()).unwrap_or(0),
                modification_time: whole(columns.modification_time, row).unwrap_or(0),
                // Not among what the kernel shows of a file.
                data_change: true,
                stats: columns.stats.as_ref().and_then(|stats| stats.get(row)),
                tags,
                deletion_vector: columns.vectors.as_ref().and_then(|vectors| vectors.get(row)),
                base_row_id: whole(columns.base_row_id, row),
                default_row_commit_version: whole(columns.default_row_commit_version, row),
                clustering_provider: columns.provider.as_ref().and_then(|p| p.get(row)),
            });
        }
        Ok(())
    }

    fn shared(&mut self, tags: Tags) -> Tags {
        if let Some(known) = self.tags.get(&tags) {
            return known.clone();
        }
        self.tags.insert(tags.clone());
        tags
    }
}

/// The columns of the kernel's `scan_row_schema`.
struct Columns<'b> {
    path: Texts,
    size: Option<&'b dyn Array>,
    modification_time: Option<&'b dyn Array>,
    stats: Option<Texts>,
    vectors: Option<Vectors<'b>>,
    partition_values: TextMaps,
    tags: TextMaps,
    base_row_id: Option<&'b dyn Array>,
    default_row_commit_version: Option<&'b dyn Array>,
    provider: Option<Texts>,
}

impl<'b> Columns<'b> {
    fn of(batch: &'b StructArray) -> Option<Self> {
        let constants = batch.column_by_name("fileConstantValues")?.as_struct_opt()?;
        Some(Self {
            path: Texts::of(batch, "path")?,
            size: batch.column_by_name("size").map(AsRef::as_ref),
            modification_time: batch.column_by_name("modificationTime").map(AsRef::as_ref),
            stats: Texts::of(batch, "stats"),
            vectors: Vectors::of(batch),
            partition_values: TextMaps::of(constants, "partitionValues"),
            tags: TextMaps::of(constants, "tags"),
            base_row_id: constants.column_by_name("baseRowId").map(AsRef::as_ref),
            default_row_commit_version: constants
                .column_by_name("defaultRowCommitVersion")
                .map(AsRef::as_ref),
            provider: Texts::of(constants, "clusteringProvider"),
        })
    }
}

fn whole(column: Option<&dyn Array>, row: usize) -> Option<i64> {
    let column = column?.as_primitive_opt::<Int64Type>()?;
    column.is_valid(row).then(|| column.value(row))
}

/// A column of maps from text to text.
struct TextMaps(Option<(MapArray, Texts, Texts)>);

impl TextMaps {
    fn of(parent: &StructArray, name: &str) -> Self {
        let read = || {
            let maps = parent.column_by_name(name)?.as_map_opt()?.clone();
            let keys = Texts::new(maps.keys())?;
            let values = Texts::new(maps.values())?;
            Some((maps, keys, values))
        };
        Self(read())
    }

    fn get(&self, row: usize) -> Option<BTreeMap<String, Option<String>>> {
        let (maps, keys, values) = self.0.as_ref()?;
        let range = maps.value_offsets().get(row..row + 2)?;
        let (start, end) = (usize::try_from(range[0]).ok()?, usize::try_from(range[1]).ok()?);
        let entry = |at: usize| Some((keys.get(at)?, values.get(at)));
        maps.is_valid(row).then(|| (start..end).filter_map(entry).collect())
    }
}
