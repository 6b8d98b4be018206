//! Iterator compaction: a rewrite that changes rows, so a logical change of the table.
//!
//! All live files are one bin: an aggregation must see every row of a key, and an age-off looks at
//! every row anyway. The commit says `dataChange = true`; with an aggregation a concurrent append
//! makes it start over ([`Scope::WholeTable`]), with filters only it does not.

use lakebed_compact::{Chain, ChainConfig};
use lakebed_model::{Bytes, Instant, TableName};
use serde_json::{Value, json};

use crate::{
    Executor, FileSizing, IteratorTask, Lake, LayoutError, Replacement, RewriteOutput, RewriteTask,
    StepReport, TableSnapshot,
    action::AddFile,
    commit::{commit_replacement, discard_output},
    conflict::Scope,
    optimize::MAX_ATTEMPTS,
    sizing,
    task::{self, rewrite_task},
};

/// One compaction to run.
#[derive(Debug, Clone)]
pub struct CompactOptions {
    /// The chain.
    pub chain: ChainConfig,
    /// Columns that identify a row; looked at only by an aggregation.
    pub row_keys: Vec<String>,
    /// Size of a file where the table does not say.
    pub default_file_size: FileSizing,
    /// The job's one `now`.
    pub now: Instant,
}

/// What a compaction did.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactReport {
    /// The table.
    pub table: TableName,
    /// The table's version after it.
    pub version: u64,
    /// Whether anything was committed: a chain that drops and folds nothing commits nothing.
    pub committed: bool,
    /// Rows read.
    pub rows_in: u64,
    /// Rows written.
    pub rows_out: u64,
    /// Files replaced and their bytes.
    pub files_in: u64,
    /// Bytes of the files replaced.
    pub bytes_in: Bytes,
    /// Files written.
    pub files_out: u64,
    /// Bytes of the files written.
    pub bytes_out: Bytes,
    /// Rows in and out of each step.
    pub steps: Vec<StepReport>,
    /// What the table's owner should know.
    pub warnings: Vec<String>,
}

/// Runs a chain over a table.
///
/// # Errors
/// Fails when the chain does not fit the table, when the table must not be changed, when the lake
/// or the executor fails, or when other writers keep winning.
pub async fn compact(
    lake: &dyn Lake,
    executor: &dyn Executor,
    table: &TableName,
    options: &CompactOptions,
) -> Result<CompactReport, LayoutError> {
    let clock_ms = lake.monotonic_ms();
    for attempt in 1..=MAX_ATTEMPTS {
        let snapshot = TableSnapshot { clock_ms, ..lake.snapshot(table).await? };
        check_changeable(&snapshot)?;
        let chain = Chain::validate(&options.chain, &snapshot.schema, &options.row_keys).map_err(
            |source| LayoutError::Chain { table: table.to_string(), source: Box::new(source) },
        )?;
        if chain.is_aggregating()
            && let Some(reason) = snapshot.value_refusal()
        {
            return Err(LayoutError::Protected { table: table.to_string(), reason });
        }
        let warnings = chain.warnings().iter().map(ToString::to_string).collect();
        let inputs: Vec<&AddFile> = snapshot.files.iter().collect();
        let mut report = CompactReport {
            table: table.clone(),
            version: snapshot.version,
            committed: false,
            rows_in: 0,
            rows_out: 0,
            files_in: 0,
            bytes_in: Bytes(0),
            files_out: 0,
            bytes_out: Bytes(0),
            steps: Vec::new(),
            warnings,
        };
        if inputs.is_empty() {
            return Ok(report);
        }
        let target = snapshot.target_file_size(options.default_file_size);
        let mut plain = rewrite_task(lake, &snapshot, snapshot.files.iter(), target, options.now);
        // Fewer rows come out than go in: the files are as small as they turn out.
        plain.tags.remove(sizing::PLANNED_BYTES);
        plain.tags.remove(sizing::LAYER_BYTES);
        let rewrite = RewriteTask {
            data_change: true,
            iterators: Some(IteratorTask::new(
                &options.chain,
                &options.row_keys,
                options.now.epoch_ms(),
            )),
            ..plain
        };
        let output = task::run(lake, executor, &snapshot, &rewrite).await?;
        report.rows_in = output.rows_in;
        report.rows_out = output.rows_out;
        report.steps.clone_from(&output.steps);
        if output.rows_in == output.rows_out && !chain.is_aggregating() {
            discard_output(lake, table, &output).await;
            return Ok(report);
        }
        let scope = if chain.is_aggregating() { Scope::WholeTable } else { Scope::Rearrange };
        let info = info(&snapshot, &inputs, &output, options);
        match commit_replacement(lake, &snapshot, &inputs, &output, scope, info).await? {
            Replacement::Committed { version } => {
                let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
                report.version = version;
                report.committed = true;
                report.files_in = count(inputs.len());
                report.bytes_in = snapshot.bytes();
                report.files_out = count(output.adds.len());
                report.bytes_out = output.adds.iter().map(|add| Bytes(add.size)).sum();
                tracing::info!(%table, version, rows_in = report.rows_in, rows_out = report.rows_out, "compacted");
                return Ok(report);
            }
            Replacement::Replan => {
                tracing::warn!(%table, attempt, "rows changed meanwhile, compacting again");
                lake.pause(attempt).await;
            }
        }
    }
    Err(LayoutError::TooManyConflicts { table: table.to_string(), attempts: MAX_ATTEMPTS })
}

/// A table whose changes others rely on must not lose rows behind their back.
fn check_changeable(snapshot: &TableSnapshot) -> Result<(), LayoutError> {
    let reason = if let Some(reason) = snapshot.write_refusal() {
        reason
    } else if snapshot.tracks_rows() {
        "it tracks rows (delta.enableRowTracking); rows that iterators make have no ids".to_owned()
    } else if snapshot.is_on("delta.appendOnly") {
        "it is append-only (delta.appendOnly); compaction with iterators removes rows".to_owned()
    } else if snapshot.is_on("delta.enableChangeDataFeed") {
        "its change data feed is on (delta.enableChangeDataFeed); rows removed by iterators would be missing there".to_owned()
    } else {
        return Ok(());
    };
    Err(LayoutError::Protected { table: snapshot.table.to_string(), reason })
}

/// Writes the chain as its owner did: in the string form if it can say it, else its steps as JSON.
fn chain_text(options: &CompactOptions) -> String {
    options.chain.to_string_form().unwrap_or_else(|| {
        let task = IteratorTask::new(&options.chain, &options.row_keys, options.now.epoch_ms());
        serde_json::to_string(&task.steps).unwrap_or_else(|_| "unknown".to_owned())
    })
}

fn info(
    snapshot: &TableSnapshot,
    inputs: &[&AddFile],
    output: &RewriteOutput,
    options: &CompactOptions,
) -> Value {
    json!({
        "timestamp": options.now.epoch_ms(),
        "operation": "COMPACT",
        "operationParameters": {
            "iterators": chain_text(options),
            "rowKeys": options.row_keys.join(","),
            "now": options.now.epoch_ms().to_string(),
        },
        "readVersion": snapshot.version,
        "isolationLevel": "Serializable",
        "isBlindAppend": false,
        "operationMetrics": {
            "numRemovedFiles": inputs.len().to_string(),
            "numAddedFiles": output.adds.len().to_string(),
            "numInputRows": output.rows_in.to_string(),
            "numOutputRows": output.rows_out.to_string(),
        },
    })
}
