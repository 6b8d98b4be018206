//! Statements that change a table's rows or rules.

use std::{collections::BTreeMap, path::Path, time::Duration};

use arrow::datatypes::Schema;
use lakebed_lake::{CreateReport, DeleteClause, DeltaLake, DmlReport, NewTable};
use lakebed_layout::{
    AlterOutcome, AutoCompaction, ColumnMapping, Lake, LayoutError, alter_clustering_of,
    set_properties as set,
    statement::{CreateTable, TableReference},
    vacuum::VacuumOptions,
};
use lakebed_model::TableName;
use serde_json::json;

use super::bin_view;
use crate::{cli::output::Output, config::is_url, error::Error, pipeline::Pipeline};

pub(super) async fn create_table(
    pipeline: &mut Pipeline,
    reference: &TableReference,
    create: CreateTable,
    output: &mut Output,
) -> Result<(), Error> {
    let (name, location) = place(pipeline, reference, create.location.as_deref())?;
    let table = TableName::new(&name);
    if !create.partitioned_by.is_empty() {
        return Err(partitioned(&name, &create).into());
    }
    if pipeline.lake.contains(&table) && create.if_not_exists {
        let version = pipeline.lake.snapshot(&table).await?.version;
        let report = CreateReport { version, ..CreateReport::default() };
        return created(&name, &report, false, output);
    }
    let CreateTable { columns, cluster_by, comment, properties, query, .. } = create;
    let schema: Schema =
        Schema::new(columns.into_iter().map(|c| c.into_field()).collect::<Vec<_>>());
    let new = NewTable {
        name: table,
        location,
        schema: schema.into(),
        cluster_by,
        key_types: pipeline.key_types(),
        comment,
        properties,
    };
    let report = match query {
        None => CreateReport {
            version: pipeline.lake.create_empty_table(new, pipeline.now).await?,
            ..CreateReport::default()
        },
        Some(query) => {
            let options = pipeline.write_options()?;
            Box::pin(pipeline.lake.create_table_as(new, &query, options, pipeline.now)).await?
        }
    };
    created(&name, &report, true, output)
}

/// Finds a new table's name and location: what the statement says, the configuration's, or a folder
/// of its name in the lake.
fn place(
    pipeline: &Pipeline,
    reference: &TableReference,
    location: Option<&str>,
) -> Result<(String, String), Error> {
    let name = match reference {
        TableReference::Location(location) => return Ok((location.clone(), location.clone())),
        TableReference::Name(name) => pipeline.lake.named(name).to_string(),
    };
    if let Some(location) = location {
        return Ok((name, location.to_owned()));
    }
    if let Ok(known) = pipeline.lake.location(&TableName::new(&name)) {
        return Ok((name, known.to_string()));
    }
    let Some(folder) = pipeline.config.lake_folder() else {
        return Err(Error::Usage {
            what: format!("create table `{name}`: nothing says where"),
            help:
                "name a lake with --lake or [lake] folder, or add LOCATION 'path' to the statement"
                    .to_owned(),
        });
    };
    // The lake's tables go by their own names, whatever catalog and schema a statement puts before.
    let short = name.rsplit('.').next().unwrap_or(&name).to_owned();
    if short.is_empty() || short.starts_with('_') || short.contains(['/', '\\', '%']) {
        return Err(Error::Usage {
            what: format!("create table `{name}`: its folder would be `{short}`"),
            help: "choose a name without / \\ % that does not begin with _, or add LOCATION 'path'"
                .to_owned(),
        });
    }
    let location = match is_url(&folder) {
        true => format!("{}/{short}", folder.trim_end_matches('/')),
        false => Path::new(&folder).join(&short).to_string_lossy().into_owned(),
    };
    Ok((short, location))
}

fn partitioned(name: &str, create: &CreateTable) -> LayoutError {
    let columns = create.partitioned_by.join(", ");
    let (class, reason) = if create.cluster_by.is_empty() {
        (
            "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            "Lakebed writes no partitioned tables: use CLUSTER BY",
        )
    } else {
        (
            "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
            "a table is clustered or partitioned, not both: leave PARTITIONED BY out",
        )
    };
    LayoutError::NotAllowed {
        statement: format!("run CREATE TABLE … PARTITIONED BY ({columns})"),
        table: name.to_owned(),
        class,
        reason: reason.to_owned(),
    }
}

fn created(
    name: &str,
    report: &CreateReport,
    is_new: bool,
    output: &mut Output,
) -> Result<(), Error> {
    let CreateReport { version, rows, files, auto_compaction } = report;
    if output.is_json() {
        return output.document(&json!({
            "statement": "CREATE TABLE", "table": name, "version": version, "created": is_new,
            "rows": rows, "files_added": files,
            "auto_compaction": auto_compaction.as_ref().map(compaction_view),
        }));
    }
    output.line(if is_new {
        format!("{name} is created with {rows} rows (version {version})")
    } else {
        format!("{name} exists already (version {version})")
    })?;
    compaction_line(name, auto_compaction.as_ref(), output)
}

fn compaction_view(compaction: &AutoCompaction) -> serde_json::Value {
    let bins: Vec<serde_json::Value> = compaction.bins.iter().map(bin_view).collect();
    json!({ "version": compaction.version, "bins": bins, "failure": compaction.failure })
}

/// Tells what an auto-compaction did, if it did anything.
fn compaction_line(
    table: &str,
    compaction: Option<&AutoCompaction>,
    output: &mut Output,
) -> Result<(), Error> {
    let Some(AutoCompaction { bins, failure, .. }) = compaction else { return Ok(()) };
    for bin in bins {
        output.line(format!(
            "{table}: {} small files ({}) became {} ({}) in version {}",
            bin.files_in, bin.bytes_in, bin.files_out, bin.bytes_out, bin.version
        ))?;
    }
    match failure {
        Some(failure) => output.line(format!(
            "{table}: small files were not merged, the rows are written all the same: failed to {failure}"
        )),
        None => Ok(()),
    }
}

pub(super) async fn cluster_by(
    pipeline: &Pipeline,
    lake: &DeltaLake,
    table: &TableName,
    columns: &[String],
    output: &mut Output,
) -> Result<(), Error> {
    let types = pipeline.key_types();
    let outcome = alter_clustering_of(lake, table, columns, types, pipeline.now).await?;
    let (version, changed) = version_of(&outcome);
    let columns = lake.snapshot(table).await?.cluster_by();
    if output.is_json() {
        return output.document(&json!({
            "statement": "ALTER TABLE CLUSTER BY",
            "table": table.as_str(),
            "version": version,
            "changed": changed,
            "cluster_by": columns,
        }));
    }
    let keys = columns.join(", ");
    output.line(match (changed, columns.is_empty()) {
        (true, true) => format!("{table} has no clustering columns from version {version} on"),
        (true, false) => format!(
            "{table} is clustered by ({keys}) from version {version} on; OPTIMIZE lays out what is new, OPTIMIZE FULL all rows"
        ),
        (false, _) => format!("{table} had these clustering columns already (version {version})"),
    })
}

pub(super) async fn set_properties(
    pipeline: &Pipeline,
    lake: &DeltaLake,
    table: &TableName,
    properties: &BTreeMap<String, String>,
    output: &mut Output,
) -> Result<(), Error> {
    let outcome = set(lake, table, properties, pipeline.now).await?;
    let (version, changed) = version_of(&outcome);
    if output.is_json() {
        return output.document(&json!({
            "statement": "ALTER TABLE SET TBLPROPERTIES",
            "table": table.as_str(),
            "version": version,
            "changed": changed,
        }));
    }
    output.line(if changed {
        format!("{table} has these properties from version {version} on")
    } else {
        format!("{table} had these properties already (version {version})")
    })
}

const fn version_of(outcome: &AlterOutcome) -> (u64, bool) {
    match outcome {
        AlterOutcome::Committed { version } => (*version, true),
        AlterOutcome::Unchanged { version } => (*version, false),
    }
}

/// Dropping a column is left to the engine that made the table.
pub(super) async fn drop_column(
    lake: &DeltaLake,
    table: &TableName,
    column: &str,
) -> Result<(), Error> {
    let snapshot = lake.snapshot(table).await?;
    let is_key = snapshot.cluster_by().iter().any(|key| key.eq_ignore_ascii_case(column));
    let (class, reason) = if snapshot.column_mapping() == ColumnMapping::None {
        (
            "DELTA_UNSUPPORTED_DROP_COLUMN",
            "the table has no column mapping, so its files would keep the column",
        )
    } else if is_key {
        (
            "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
            "it is a clustering column: choose others with ALTER TABLE … CLUSTER BY first",
        )
    } else {
        (
            "DELTA_UNSUPPORTED_DROP_COLUMN",
            "Lakebed changes no schemas: drop it with the engine that made the table",
        )
    };
    Err(LayoutError::NotAllowed {
        statement: format!("drop column `{column}`"),
        table: table.to_string(),
        class,
        reason: reason.to_owned(),
    }
    .into())
}

pub(super) async fn insert(
    pipeline: &Pipeline,
    lake: &DeltaLake,
    table: &TableName,
    columns: Option<&[String]>,
    query: &str,
    output: &mut Output,
) -> Result<(), Error> {
    let options = pipeline.write_options()?;
    let report = Box::pin(lake.insert(table, columns, query, options, pipeline.now)).await?;
    if output.is_json() {
        return output.document(&document("INSERT", table, &report));
    }
    let DmlReport { version, rows, files_added, auto_compaction, .. } = report;
    output.line(format!(
        "{rows} rows inserted into {table} in {files_added} files (version {version})"
    ))?;
    compaction_line(table.as_str(), auto_compaction.as_ref(), output)
}

pub(super) async fn delete(
    pipeline: &Pipeline,
    lake: &DeltaLake,
    table: &TableName,
    clause: DeleteClause<'_>,
    output: &mut Output,
) -> Result<(), Error> {
    let options = pipeline.write_options()?;
    let report = Box::pin(lake.delete(table, clause, options, pipeline.now)).await?;
    if output.is_json() {
        return output.document(&document("DELETE", table, &report));
    }
    let DmlReport {
        version,
        rows,
        rows_copied,
        files_added,
        files_removed,
        vectors_added,
        auto_compaction,
        ..
    } = report;
    output.line(format!(
        "{rows} rows deleted from {table}: {files_removed} files left, {files_added} joined with \
         {rows_copied} rows copied, {vectors_added} got a deletion vector (version {version})"
    ))?;
    compaction_line(table.as_str(), auto_compaction.as_ref(), output)
}

fn document(statement: &str, table: &TableName, report: &DmlReport) -> serde_json::Value {
    json!({
        "statement": statement,
        "table": table.as_str(),
        "version": report.version,
        "rows": report.rows,
        "rows_copied": report.rows_copied,
        "files_added": report.files_added,
        "files_removed": report.files_removed,
        "deletion_vectors_added": report.vectors_added,
        "auto_compaction": report.auto_compaction.as_ref().map(compaction_view),
        "change_files_added": report.change_files,
    })
}

pub(super) async fn analyze(
    pipeline: &Pipeline,
    lake: &DeltaLake,
    table: &TableName,
    output: &mut Output,
) -> Result<(), Error> {
    let report = Box::pin(lake.analyze(table, pipeline.now)).await?;
    if output.is_json() {
        return output.document(&json!({
            "statement": "ANALYZE TABLE",
            "table": table.as_str(),
            "version": report.version,
            "files": report.files,
            "files_analyzed": report.files_analyzed,
        }));
    }
    output.line(format!(
        "{table}: statistics of {} of {} files computed (version {})",
        report.files_analyzed, report.files, report.version
    ))
}

pub(super) async fn vacuum(
    pipeline: &Pipeline,
    lake: &DeltaLake,
    table: &TableName,
    retain_hours: Option<u64>,
    dry_run: bool,
    output: &mut Output,
) -> Result<(), Error> {
    const HOUR_SECONDS: u64 = 3_600;
    let options = VacuumOptions {
        retain: retain_hours.map(|hours| Duration::from_secs(hours.saturating_mul(HOUR_SECONDS))),
        dry_run,
        retention_check: pipeline.config.settings.clustering.retention_check,
        now: pipeline.now,
    };
    let report = Box::pin(lake.vacuum(table, &options)).await?;
    if output.is_json() {
        return output.document(&json!({
            "statement": "VACUUM",
            "table": table.as_str(),
            "version": report.version,
            "dry_run": report.dry_run,
            "retention_ms": u64::try_from(report.retention.as_millis()).unwrap_or(u64::MAX),
            "files": report.files,
            "bytes": report.bytes.0,
        }));
    }
    for file in report.files.iter().filter(|_| dry_run) {
        output.line(file)?;
    }
    let verb = if dry_run { "would be deleted" } else { "deleted" };
    output.line(format!("{table}: {} files ({}) {verb}", report.files.len(), report.bytes))
}
