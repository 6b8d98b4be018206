//! Describes a rewrite to an executor, and checks what comes back: the same for every operation.

use lakebed_model::{Bytes, Instant};

use crate::{
    Executor, InputFile, Lake, LayoutError, RewriteOutput, RewriteTask, RowOrder, TableSnapshot,
    action::AddFile, commit::discard_output, ddl, zcube,
};

/// Describes a file to an executor.
pub fn input_file(file: &AddFile) -> InputFile {
    InputFile {
        path: file.path.clone(),
        size: file.size,
        live_rows: file.rows().map(|rows| rows.saturating_sub(file.deleted_rows())),
    }
}

/// Describes the rewrite of files in the table's own order into files of a target size, as a new
/// cube where the table has keys.
pub(crate) fn rewrite_task<'f>(
    lake: &dyn Lake,
    snapshot: &TableSnapshot,
    files: impl Iterator<Item = &'f AddFile>,
    target: Bytes,
    now: Instant,
) -> RewriteTask {
    let cluster_by = snapshot.cluster_by();
    let cube = (!cluster_by.is_empty()).then(|| lake.unique_id());
    let inputs: Vec<InputFile> = files.map(input_file).collect();
    let bytes: u64 = inputs.iter().map(|input| input.size).sum();
    RewriteTask {
        table: snapshot.table.to_string(),
        location: snapshot.location.clone(),
        version: snapshot.version,
        inputs,
        order: RowOrder::for_keys(&cluster_by),
        target_files: bytes.div_ceil(target.0.max(1)).max(1),
        indexed_columns: ddl::indexed_columns(snapshot),
        file_prefix: lake.unique_id(),
        tags: cube.as_deref().map(|cube| zcube::tags(cube, &cluster_by)).unwrap_or_default(),
        clustering_provider: cube.map(|_| zcube::PROVIDER.to_owned()),
        stats_columns: cluster_by,
        modification_time: now.epoch_ms(),
        data_change: false,
        iterators: None,
    }
}

/// Runs a rewrite; one that read other rows than the statistics tell is discarded.
pub(crate) async fn run(
    lake: &dyn Lake,
    executor: &dyn Executor,
    snapshot: &TableSnapshot,
    task: &RewriteTask,
) -> Result<RewriteOutput, LayoutError> {
    let table = || snapshot.table.to_string();
    let output = executor
        .rewrite(task)
        .await
        .map_err(|source| LayoutError::Executor { table: table(), source })?;
    let known: Option<u64> = task.inputs.iter().map(|input| input.live_rows).sum();
    if let Some(rows_in) = known.filter(|known| *known != output.rows_in) {
        discard_output(lake, &snapshot.table, &output).await;
        return Err(LayoutError::RowCount { table: table(), rows_in, rows_out: output.rows_in });
    }
    Ok(output)
}
