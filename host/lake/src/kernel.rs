//! What the Delta kernel reads for us below deltalake's own API.

use std::{collections::BTreeSet, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, StructArray},
    datatypes::{Int32Type, Int64Type},
};
use delta_kernel::{
    DeltaResult, Engine, EngineData, FileMeta,
    actions::get_all_actions_schema,
    engine::arrow_data::ArrowEngineData,
    schema::SchemaRef,
    snapshot::{Snapshot, SnapshotRef},
};
use lakebed_layout::action::{DeletionVector, RemoveFile, decoded_path};
use url::Url;

use crate::stores::with_container_in_host;

/// Removed files of a log, as far back as its last checkpoint knows them.
pub(crate) struct Tombstones {
    pub(crate) removes: Vec<RemoveFile>,
    /// The checkpoint they start from.
    pub(crate) checkpoint: Option<u64>,
}

/// Returns a location as the kernel and the engine know it: the path ends with a slash, and the host
/// names the store.
pub(crate) fn folder(location: &Url) -> Url {
    let mut root = with_container_in_host(location);
    if !root.path().ends_with('/') {
        root.set_path(&format!("{}/", root.path()));
    }
    root
}

/// Reads a table's protocol and metadata at a version. Blocks.
pub(crate) fn snapshot(engine: &dyn Engine, root: Url, version: u64) -> DeltaResult<SnapshotRef> {
    Snapshot::builder_for(root).at_version(version).build(engine)
}

/// Reads a table's protocol and metadata at the newest version. Blocks.
pub(crate) fn newest(engine: &dyn Engine, root: Url) -> DeltaResult<SnapshotRef> {
    Snapshot::builder_for(root).build(engine)
}

/// Reads the `remove` actions of a version's log. Blocks.
pub(crate) fn tombstones(engine: &dyn Engine, root: Url, version: u64) -> DeltaResult<Tombstones> {
    let snapshot = snapshot(engine, root, version)?;
    let schema = get_all_actions_schema().project(&["remove"])?;
    let mut removes = Vec::new();
    for batch in snapshot.log_segment().read_actions(engine, schema)? {
        removes.extend(removes_of(&record_batch(batch?.actions)?));
    }
    let checkpoint = snapshot.log_segment().checkpoint_version;
    Ok(Tombstones { removes, checkpoint })
}

/// Reads the names of the sidecars that a file of a checkpoint refers to. Blocks.
///
/// Fails when the file is no checkpoint, for instance because it was cut off.
pub(crate) fn sidecars(engine: &dyn Engine, file: FileMeta) -> DeltaResult<BTreeSet<String>> {
    let schema: SchemaRef = get_all_actions_schema().project(&["sidecar"])?;
    let is_json = file.location.path().ends_with(".json");
    let files = [file];
    let batches = if is_json {
        engine.json_handler().read_json_files(&files, schema, None)?
    } else {
        engine.parquet_handler().read_parquet_files(&files, schema, None)?
    };
    let mut names = BTreeSet::new();
    for batch in batches {
        let batch = record_batch(batch?)?;
        let Some(sidecars) = action(&batch, "sidecar") else { continue };
        let Some(paths) = Texts::of(sidecars, "path") else { continue };
        let present = (0..sidecars.len()).filter(|row| sidecars.is_valid(*row));
        // They always lie in one folder; a path is allowed, and must mean the same.
        let name = |path: String| decoded_path(path.rsplit('/').next().unwrap_or(&path));
        names.extend(present.filter_map(|row| paths.get(row)).map(name));
    }
    Ok(names)
}

pub(crate) fn record_batch(data: Box<dyn EngineData>) -> DeltaResult<RecordBatch> {
    Ok(ArrowEngineData::try_from_engine_data(data)?.record_batch().clone())
}

fn action<'b>(batch: &'b RecordBatch, name: &str) -> Option<&'b StructArray> {
    batch.column_by_name(name)?.as_struct_opt()
}

fn removes_of(batch: &RecordBatch) -> Vec<RemoveFile> {
    let Some(removes) = action(batch, "remove") else { return Vec::new() };
    let Some(paths) = Texts::of(removes, "path") else { return Vec::new() };
    let times = removes.column_by_name("deletionTimestamp");
    let times = times.and_then(|column| column.as_primitive_opt::<Int64Type>());
    let vectors = Vectors::of(removes);
    let read = |row: usize| {
        Some(RemoveFile {
            path: paths.get(row)?,
            deletion_timestamp: times.filter(|t| t.is_valid(row)).map(|t| t.value(row)),
            data_change: true,
            extended_file_metadata: None,
            partition_values: None,
            size: None,
            stats: None,
            tags: None,
            deletion_vector: vectors.as_ref().and_then(|vectors| vectors.get(row)),
            base_row_id: None,
            default_row_commit_version: None,
        })
    };
    (0..removes.len()).filter(|row| removes.is_valid(*row)).filter_map(read).collect()
}

/// A column of deletion vectors. Some writers put a struct of nulls, or an empty storage type, where
/// there is none.
pub(crate) struct Vectors<'b> {
    vectors: &'b StructArray,
    storage_type: Texts,
    path_or_inline_dv: Texts,
}

impl<'b> Vectors<'b> {
    pub(crate) fn of(parent: &'b StructArray) -> Option<Self> {
        let vectors = parent.column_by_name("deletionVector")?.as_struct_opt()?;
        let storage_type = Texts::of(vectors, "storageType")?;
        let path_or_inline_dv = Texts::of(vectors, "pathOrInlineDv")?;
        Some(Self { vectors, storage_type, path_or_inline_dv })
    }

    pub(crate) fn get(&self, row: usize) -> Option<DeletionVector> {
        if self.vectors.is_null(row) {
            return None;
        }
        let storage_type = self.storage_type.get(row).filter(|t| !t.is_empty())?;
        let whole = |name: &str| {
            let column = self.vectors.column_by_name(name)?.as_primitive_opt::<Int32Type>()?;
            column.is_valid(row).then(|| column.value(row))
        };
        let cardinality = self.vectors.column_by_name("cardinality");
        let cardinality = cardinality.and_then(|column| column.as_primitive_opt::<Int64Type>());
        Some(DeletionVector {
            storage_type,
            path_or_inline_dv: self.path_or_inline_dv.get(row).unwrap_or_default(),
            offset: whole("offset"),
            size_in_bytes: whole("sizeInBytes").unwrap_or_default(),
            cardinality: cardinality.filter(|c| c.is_valid(row)).map_or(0, |c| c.value(row)),
        })
    }
}

/// A column of text, whichever of Arrow's layouts it has.
pub(crate) struct Texts(ArrayRef);

impl Texts {
    pub(crate) fn of(parent: &StructArray, name: &str) -> Option<Self> {
        Self::new(parent.column_by_name(name)?)
    }

    pub(crate) fn new(column: &dyn Array) -> Option<Self> {
        arrow::compute::cast(column, &arrow::datatypes::DataType::Utf8).ok().map(Self)
    }

    pub(crate) fn get(&self, row: usize) -> Option<String> {
        let column = self.0.as_string_opt::<i32>()?;
        column.is_valid(row).then(|| column.value(row).to_owned())
    }
}

/// Runs what blocks beside the async threads; a task that died is the kernel's fault too.
pub(crate) async fn blocking<T: Send + 'static>(
    engine: Arc<dyn Engine>,
    work: impl FnOnce(&dyn Engine) -> DeltaResult<T> + Send + 'static,
) -> DeltaResult<T> {
    tokio::task::spawn_blocking(move || work(engine.as_ref()))
        .await
        .unwrap_or_else(|error| Err(delta_kernel::Error::generic(error.to_string())))
}
