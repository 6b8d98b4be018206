//! Describes a rewrite to an executor, and checks what comes back: the same for every operation.

use lakebed_model::{Bytes, Instant};

use crate::{
    Executor, FileReader, InputFile, Lake, LayoutError, RewriteOutput, RewriteTask, RowOrder,
    TableSnapshot, action::AddFile, commit::discard_output, cuts, ddl, sizing, zcube,
};

/// From so many files on, reading a table's log is work that counts.
const LONG_LOG_FILES: usize = 1_000;
/// Bytes of inputs that are read in the time in which the log is read again for one of its files.
const BYTES_PER_LOG_FILE: u64 = 4 << 10;

/// Describes a file to an executor.
pub fn input_file(file: &AddFile) -> InputFile {
    InputFile {
        path: file.path.clone(),
        size: file.size,
        live_rows: file.rows().map(|rows| rows.saturating_sub(file.deleted_rows())),
        deletion_vector: file.deletion_vector.clone(),
        base_row_id: file.base_row_id,
        default_row_commit_version: file.default_row_commit_version,
        partition_values: file.partition_values.clone(),
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
    let row_tracking = snapshot.row_tracking_columns();
    let stats = ddl::stats_columns(snapshot);
    let cube = (!cluster_by.is_empty()).then(|| lake.unique_id());
    let mut bytes = 0_u64;
    let inputs: Vec<InputFile> =
        files.inspect(|file| bytes += sizing::live_bytes(file)).map(input_file).collect();
    let target_files = bytes.div_ceil(target.0.max(1)).max(1);
    let file_prefix = lake.unique_id();
    let mut tags = cube.as_deref().map(|cube| zcube::tags(cube, &cluster_by)).unwrap_or_default();
    tags.insert(zcube::REWRITE.to_owned(), file_prefix.clone());
    tags.extend(snapshot.cuts().map(|cuts| (cuts::TAG.to_owned(), cuts.tag())));
    tags.insert(sizing::PLANNED_BYTES.to_owned(), bytes.div_ceil(target_files).to_string());
    tags.insert(sizing::LAYER_BYTES.to_owned(), bytes.to_string());
    RewriteTask {
        table: snapshot.table.to_string(),
        location: snapshot.location.clone(),
        version: snapshot.version,
        inputs,
        order: RowOrder::for_table(snapshot),
        target_files,
        indexed_columns: stats.leading,
        stats_columns: stats.named,
        bloom_filters: snapshot.bloom_filters(),
        column_mapping: snapshot.column_mapping(),
        reader: if row_tracking.is_some() || costs_less_than_log(snapshot, bytes) {
            FileReader::FileByFile
        } else {
            snapshot.reader()
        },
        row_tracking,
        file_prefix,
        tags,
        clustering_provider: cube.map(|_| zcube::PROVIDER.to_owned()),
        modification_time: now.epoch_ms(),
        data_change: false,
        iterators: None,
    }
}

/// Tells whether so many bytes cost less than reading the log again, which the engine does to find files
/// that are known here: it reads large ones faster, but not enough for that.
fn costs_less_than_log(snapshot: &TableSnapshot, bytes: u64) -> bool {
    let files = snapshot.files.len();
    let worth = u64::try_from(files).unwrap_or(u64::MAX).saturating_mul(BYTES_PER_LOG_FILE);
    files >= LONG_LOG_FILES && bytes <= worth
}

/// Makes a rewrite one that only merges files: their rows stay as they come, and the new files are
/// not said to be clustered.
pub(crate) fn leave_unclustered(task: &mut RewriteTask) {
    task.order = RowOrder::Unordered;
    task.tags.remove(zcube::ZCUBE_ID);
    task.tags.remove(zcube::ZCUBE_ZORDER_BY);
    task.clustering_provider = None;
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

#[cfg(test)]
mod tests {
    use lakebed_model::{Bytes, Instant};

    use super::rewrite_task;
    use crate::{
        FileReader,
        testing::{FakeLake, plain_file, snapshot},
    };

    #[track_caller]
    fn check(files: usize, input_bytes: u64, expected: FileReader) {
        let mut all = vec![plain_file("a", input_bytes)];
        all.extend((1..files).map(|n| plain_file(&format!("f{n}"), 1 << 30)));
        let table = snapshot(&["a"], all);
        let inputs = table.files.iter().take(1);
        let (target, now) = (Bytes(1 << 30), Instant::from_epoch_ms(1));
        let task = rewrite_task(&FakeLake::default(), &table, inputs, target, now);
        assert_eq!(task.reader, expected, "{files} files");
    }

    #[test]
    fn few_bytes_are_read_without_reading_a_long_log_again() {
        check(100, 4 << 10, FileReader::Engine);
        check(100_000, 4 << 20, FileReader::FileByFile);
        check(100_000, 390 << 20, FileReader::FileByFile);
        check(100_000, 391 << 20, FileReader::Engine);
    }
}
