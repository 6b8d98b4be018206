//! A Delta table's state as `layout` wants it.

use std::{collections::BTreeMap, sync::Arc};

use arrow::datatypes::SchemaRef;
use delta_kernel::{
    DeltaResult, Engine, engine::arrow_conversion::TryIntoArrow, snapshot::SnapshotRef,
};
use lakebed_layout::{
    LakeFault, ROW_TRACKING_DOMAIN, TableSnapshot,
    action::{DomainMetadata, Protocol},
    columns::{join_name, split_name},
    cuts, ddl, row_id_high_water_mark,
};
use lakebed_model::TableName;
use url::Url;

use crate::{
    kernel, live_files,
    tables::{storage_fault, table_fault},
};

/// Reads everything [`TableSnapshot`] holds of a version.
pub(crate) async fn read(
    table: &TableName,
    location: &Url,
    engine: Arc<dyn Engine>,
    version: SnapshotRef,
) -> Result<TableSnapshot, LakeFault> {
    let mut read = without_files(table, location, &version)?;
    let feature = |name| read.has_feature(name);
    let wanted = Wanted {
        domains: feature("clustering") || feature("rowTracking"),
        timestamp: feature("inCommitTimestamp"),
    };
    let known = SnapshotRef::clone(&version);
    let hidden = kernel::blocking(Arc::clone(&engine), move |engine| wanted.read(engine, &known))
        .await
        .map_err(|error| storage_fault("read metadata domains of", table, location, error))?;
    let clustering = hidden.domains.get(ddl::DOMAIN).map(|domain| logical(&read, domain));
    read.clustering = clustering
        .transpose()
        .map_err(|error| storage_fault("read metadata domains of", table, location, error))?;
    read.cuts_domain = hidden.domains.get(cuts::DOMAIN).cloned();
    let mark = hidden.domains.get(ROW_TRACKING_DOMAIN);
    read.row_id_high_water_mark = mark.and_then(|mark| row_id_high_water_mark(&mark.configuration));
    read.in_commit_timestamp = hidden.in_commit_timestamp;
    read.files = kernel::blocking(engine, move |engine| live_files::read(engine, &version))
        .await
        .map_err(|error| table_fault("read files of", table, location, error.into()))?;
    Ok(read)
}

/// Takes what the kernel has read already.
fn without_files(
    table: &TableName,
    location: &Url,
    version: &SnapshotRef,
) -> Result<TableSnapshot, LakeFault> {
    let configuration = version.table_configuration();
    let (protocol, metadata) = (configuration.protocol(), configuration.metadata());
    let names = |features: &[delta_kernel::table_features::TableFeature]| -> Vec<String> {
        // `as_ref` would call every feature that the kernel does not know `unknown`.
        features.iter().map(ToString::to_string).collect()
    };
    Ok(TableSnapshot {
        table: table.clone(),
        location: location.to_string(),
        version: version.version(),
        schema: schema(table, location, version)?,
        protocol: Protocol {
            min_reader_version: protocol.min_reader_version(),
            min_writer_version: protocol.min_writer_version(),
            reader_features: protocol.reader_features().map(names),
            writer_features: protocol.writer_features().map(names),
        },
        metadata: serde_json::to_value(metadata).unwrap_or_default(),
        properties: metadata.configuration().iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        partition_columns: metadata.partition_columns().to_vec(),
        clustering: None,
        cuts_domain: None,
        in_commit_timestamp: None,
        row_id_high_water_mark: None,
        clock_ms: 0,
        files: Vec::new(),
    })
}

/// Returns the columns of a version.
pub(crate) fn schema(
    table: &TableName,
    location: &Url,
    version: &SnapshotRef,
) -> Result<SchemaRef, LakeFault> {
    let schema = version.schema().as_ref().try_into_arrow();
    let schema = schema.map_err(|error| {
        table_fault("read the schema of", table, location, delta_kernel::Error::from(error).into())
    })?;
    Ok(Arc::new(schema))
}

/// What is read of a version beside its files, where its features give reason.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    domains: bool,
    timestamp: bool,
}

#[derive(Debug, Default)]
struct Hidden {
    domains: BTreeMap<String, DomainMetadata>,
    in_commit_timestamp: Option<i64>,
}

impl Wanted {
    /// deltalake refuses to show `delta.*` domains; the kernel shows all in one pass over the log.
    fn read(self, engine: &dyn Engine, version: &SnapshotRef) -> DeltaResult<Hidden> {
        let mut hidden = Hidden::default();
        if self.domains {
            let found = version.get_domain_metadatas_internal(engine, None)?.into_values();
            let domain = |found: delta_kernel::actions::DomainMetadata| {
                let (domain, configuration) = (found.domain(), found.configuration().to_owned());
                let action =
                    DomainMetadata { domain: domain.to_owned(), configuration, removed: false };
                (domain.to_owned(), action)
            };
            hidden.domains = found.map(domain).collect();
        }
        if self.timestamp {
            // A table without its time can be read; only writers need it.
            hidden.in_commit_timestamp = version.get_in_commit_timestamp(engine).unwrap_or(None);
        }
        Ok(hidden)
    }
}

/// Names the clustering columns as statements do; the log has their physical names.
fn logical(table: &TableSnapshot, domain: &DomainMetadata) -> Result<DomainMetadata, String> {
    let names = ddl::parse_domain(domain);
    let logical = |name: &String| {
        let path = table.column_mapping().logical_path(&table.schema, &split_name(name));
        path.map(|path| join_name(&path))
            .ok_or_else(|| format!("clustering column `{name}` is not in the schema"))
    };
    names.iter().map(logical).collect::<Result<Vec<_>, _>>().map(|names| ddl::domain(&names))
}
