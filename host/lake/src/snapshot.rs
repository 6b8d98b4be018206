//! A Delta table's state as `layout` wants it.

use std::collections::BTreeMap;

use arrow::{
    array::{Array, AsArray},
    datatypes::DataType,
};
use deltalake::{DeltaTable, kernel::Add};
use futures::TryStreamExt;
use lakebed_layout::{
    LakeFault, ROW_TRACKING_DOMAIN, TableSnapshot,
    action::{AddFile, DeletionVector, DomainMetadata, Protocol, decoded_path},
    columns::join_name,
    cuts, ddl, row_id_high_water_mark,
};
use lakebed_model::TableName;
use url::Url;

use crate::{
    kernel,
    tables::{storage_fault, table_fault},
};

/// Reads everything [`TableSnapshot`] holds from an opened table.
pub(crate) async fn read(
    table: &TableName,
    location: &Url,
    delta: &DeltaTable,
) -> Result<TableSnapshot, LakeFault> {
    let fail = |error: deltalake::DeltaTableError| table_fault("read", table, location, error);
    let state = delta.snapshot().map_err(fail)?;
    let eager = state.snapshot();
    let protocol = eager.protocol();
    let names = |features: &[delta_kernel::table_features::TableFeature]| -> Vec<String> {
        // `as_ref` would call every feature that the kernel does not know `unknown`.
        features.iter().map(ToString::to_string).collect()
    };
    let metadata = eager.metadata();
    let properties: BTreeMap<String, String> =
        metadata.configuration().iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let protocol = Protocol {
        min_reader_version: protocol.min_reader_version(),
        min_writer_version: protocol.min_writer_version(),
        reader_features: protocol.reader_features().map(names),
        writer_features: protocol.writer_features().map(names),
    };
    let hidden = read_hidden(table, location, delta, &protocol).await?;
    Ok(TableSnapshot {
        table: table.clone(),
        location: location.to_string(),
        version: eager.version(),
        schema: eager.arrow_schema(),
        protocol,
        metadata: serde_json::to_value(metadata).unwrap_or_default(),
        properties,
        partition_columns: metadata.partition_columns().to_vec(),
        clustering: hidden.clustering.as_deref().map(ddl::domain),
        cuts_domain: hidden.cuts.map(|configuration| DomainMetadata {
            domain: cuts::DOMAIN.to_owned(),
            configuration,
            removed: false,
        }),
        in_commit_timestamp: hidden.in_commit_timestamp,
        row_id_high_water_mark: hidden.row_id_high_water_mark,
        clock_ms: 0,
        files: read_files(table, location, delta).await?,
    })
}

/// What deltalake does not show of a version.
#[derive(Debug, Default)]
struct Hidden {
    /// Clustering columns, by logical name.
    clustering: Option<Vec<String>>,
    /// Configuration of the domain with the weighted cuts.
    cuts: Option<String>,
    in_commit_timestamp: Option<i64>,
    row_id_high_water_mark: Option<i64>,
}

/// deltalake refuses to show `delta.*` domains; the kernel shows them, and the time of a commit.
async fn read_hidden(
    table: &TableName,
    location: &Url,
    delta: &DeltaTable,
    protocol: &Protocol,
) -> Result<Hidden, LakeFault> {
    let has = |feature: &str| protocol.writer_features.iter().flatten().any(|name| name == feature);
    let (clustered, stamped, tracked) =
        (has("clustering"), has("inCommitTimestamp"), has("rowTracking"));
    if !(clustered || stamped || tracked) {
        return Ok(Hidden::default());
    }
    let engine = delta.log_store().engine(None);
    let version = delta.version();
    let root = kernel::folder(location);
    let read = move || -> delta_kernel::DeltaResult<Hidden> {
        let mut builder = delta_kernel::snapshot::Snapshot::builder_for(root);
        if let Some(version) = version {
            builder = builder.at_version(version);
        }
        let engine = engine.as_ref();
        let snapshot = builder.build(engine)?;
        let mut hidden = Hidden::default();
        if clustered {
            let columns = snapshot.get_clustering_column_infos(engine)?;
            hidden.clustering = columns.map(|columns| {
                columns.iter().map(|column| join_name(column.logical_column.path())).collect()
            });
            hidden.cuts = snapshot.get_domain_metadata(cuts::DOMAIN, engine)?;
        }
        if stamped {
            // A table without its time can be read; only writers need it.
            hidden.in_commit_timestamp = snapshot.get_in_commit_timestamp(engine).unwrap_or(None);
        }
        if tracked {
            let mark = snapshot.get_domain_metadata_internal(ROW_TRACKING_DOMAIN, engine)?;
            hidden.row_id_high_water_mark = mark.as_deref().and_then(row_id_high_water_mark);
        }
        Ok(hidden)
    };
    tokio::task::spawn_blocking(read)
        .await
        .map_err(|error| storage_fault("read metadata domains of", table, location, error))?
        .map_err(|error| storage_fault("read metadata domains of", table, location, error))
}

async fn read_files(
    table: &TableName,
    location: &Url,
    delta: &DeltaTable,
) -> Result<Vec<AddFile>, LakeFault> {
    let fail =
        |error: deltalake::DeltaTableError| table_fault("read files of", table, location, error);
    let eager = delta.snapshot().map_err(fail)?.snapshot();
    let store = delta.log_store();
    let views: Vec<_> = eager.file_views(store.as_ref(), None).try_collect().await.map_err(fail)?;
    let mut raw_paths = raw_paths(eager, store.as_ref()).await.map_err(fail)?.into_iter();
    let mut files = Vec::with_capacity(views.len());
    for view in views {
        #[expect(
            deprecated,
            reason = "the only public way to a file's tags and clustering provider in deltalake 1.1"
        )]
        let add = view.add_action();
        let raw = raw_paths.next().unwrap_or_else(|| add.path.clone());
        if view.path() != decoded_path(&raw) {
            return Err(storage_fault(
                "read files of",
                table,
                location,
                format!("file `{raw}` of the log does not match `{}`", view.path()),
            ));
        }
        files.push(convert(raw, add));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// deltalake decodes paths; a `remove` must spell them as the `add` did.
async fn raw_paths(
    eager: &deltalake::kernel::EagerSnapshot,
    store: &dyn deltalake::logstore::LogStore,
) -> Result<Vec<String>, deltalake::DeltaTableError> {
    let snapshot = deltalake::kernel::Snapshot::try_new(store, Some(eager.version())).await?;
    let batches: Vec<_> = snapshot.files(store, None).try_collect().await?;
    let mut paths = Vec::new();
    for batch in &batches {
        let Some(column) = batch.column_by_name("path") else { continue };
        let column = arrow::compute::cast(column, &DataType::Utf8)?;
        let column = column.as_string::<i32>();
        paths.extend((0..column.len()).map(|row| column.value(row).to_owned()));
    }
    Ok(paths)
}

fn convert(path: String, add: Add) -> AddFile {
    AddFile {
        path,
        partition_values: add.partition_values.into_iter().collect(),
        size: u64::try_from(add.size).unwrap_or(0),
        modification_time: add.modification_time,
        data_change: add.data_change,
        stats: add.stats,
        tags: add.tags.map(|tags| tags.into_iter().collect()),
        deletion_vector: add.deletion_vector.map(|dv| DeletionVector {
            storage_type: dv.storage_type.to_string(),
            path_or_inline_dv: dv.path_or_inline_dv,
            offset: dv.offset,
            size_in_bytes: dv.size_in_bytes,
            cardinality: dv.cardinality,
        }),
        base_row_id: add.base_row_id,
        default_row_commit_version: add.default_row_commit_version,
        clustering_provider: add.clustering_provider,
    }
}
