//! Rewrites a table bin by bin and commits each bin on its own.
//!
//! 1. Read the table, [`select()`] bins. None: done, no commit.
//! 2. Per bin: hand a [`RewriteTask`] to the executor, check that no row was lost.
//! 3. Commit ([`crate::commit_replacement`]); a touched input goes back to 1 for what is left.
//! 4. Whatever does not end in a commit deletes its files. A crash leaves orphans, which no reader
//!    sees and VACUUM removes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use lakebed_model::{Bytes, Instant, TableName};
use serde_json::{Value, json};

use crate::{
    Bin, ClusteringSettings, Executor, FileSizing, Lake, LayoutError, Reason, Replacement,
    RewriteOutput, Selection, SelectionPolicy, TableSnapshot,
    action::AddFile,
    commit::{commit_replacement, discard_output},
    conflict::Scope,
    layer, moves, select,
    task::{self, rewrite_task},
    zcube,
};

/// How often a job is planned anew, without having committed anything since, before giving up.
pub const MAX_ATTEMPTS: u32 = 10;
/// Size of a file where a table does not say: large enough for object stores, small enough to skip.
pub const DEFAULT_FILE_SIZE: Bytes = Bytes(128 << 20);

/// Returns the `engineInfo` of our commits.
#[must_use]
pub const fn engine_info() -> &'static str {
    concat!("Lakebed/", env!("CARGO_PKG_VERSION"))
}

/// Settings of one OPTIMIZE.
#[derive(Debug, Clone, Copy)]
pub struct OptimizeOptions {
    /// Also rewrite files made under other columns or by other providers.
    pub full: bool,
    /// Size of a file where the table does not say (`delta.targetFileSize`).
    pub default_file_size: FileSizing,
    /// The strategy and its thresholds.
    pub settings: ClusteringSettings,
    /// The job's time.
    pub now: Instant,
}

/// One committed bin.
#[derive(Debug, Clone, PartialEq)]
pub struct BinReport {
    /// Files replaced.
    pub files_in: u64,
    /// Their bytes.
    pub bytes_in: Bytes,
    /// Files written.
    pub files_out: u64,
    /// Their bytes.
    pub bytes_out: Bytes,
    /// Why the files were replaced.
    pub reasons: BTreeMap<Reason, u64>,
    /// The cube that holds the new files; none for a table without keys.
    pub cube: Option<String>,
    /// The version that holds the bin.
    pub version: u64,
    /// Wall time of the rewrite and its commit.
    pub elapsed_ms: u64,
}

/// What an OPTIMIZE did.
#[derive(Debug, Clone, PartialEq)]
pub struct OptimizeReport {
    /// The table.
    pub table: TableName,
    /// The newest version this run read or wrote.
    pub version: u64,
    /// The bins; empty when there was nothing to do.
    pub bins: Vec<BinReport>,
}

/// Rewrites what needs it.
///
/// # Errors
/// Fails when the table must not be written, when the lake or the executor fails, when another
/// writer changed the table's rules meanwhile, or when other writers keep winning. Bins committed
/// before a failure stay committed.
pub async fn optimize(
    lake: &dyn Lake,
    executor: &dyn Executor,
    table: &TableName,
    options: &OptimizeOptions,
) -> Result<OptimizeReport, LayoutError> {
    let mut report = OptimizeReport { table: table.clone(), version: 0, bins: Vec::new() };
    let warned = AtomicBool::new(false);
    let choose = |snapshot: &TableSnapshot| -> Result<Work, LayoutError> {
        if let Some(reason) = snapshot.ignored_cuts().filter(|_| !warned.swap(true, Relaxed)) {
            tracing::warn!(%table, "the cuts of the table are ignored: {reason}");
        }
        let target = snapshot.target_file_size(options.default_file_size);
        let policy = SelectionPolicy {
            settings: options.settings,
            ..SelectionPolicy::new(options.full, target)
        };
        Ok(Work { selection: select(snapshot, &policy)?, target, purpose: Purpose::Layout })
    };
    rewrite_bins(lake, executor, options, &choose, &mut report).await?;
    Ok(report)
}

/// Why bins are rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To put their rows in the table's order.
    Layout,
    /// To make fewer files, after a write.
    Merge,
}

/// What is to be done in one version of a table.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) selection: Selection,
    /// The size a file should have.
    pub(crate) target: Bytes,
    pub(crate) purpose: Purpose,
}

/// Reads the table, rewrites and commits what `choose` finds, and plans again as often as other
/// writers touch it. `report` tells what was committed even where this fails.
pub(crate) async fn rewrite_bins(
    lake: &dyn Lake,
    executor: &dyn Executor,
    options: &OptimizeOptions,
    choose: &(dyn Fn(&TableSnapshot) -> Result<Work, LayoutError> + Sync),
    report: &mut OptimizeReport,
) -> Result<(), LayoutError> {
    let table = report.table.clone();
    let clock_ms = lake.monotonic_ms();
    let mut done = BTreeSet::new();
    let mut attempt = 1;
    while attempt <= MAX_ATTEMPTS {
        let mut snapshot = TableSnapshot { clock_ms, ..lake.snapshot(&table).await? };
        report.version = report.version.max(snapshot.version);
        snapshot.refuse(snapshot.write_refusal())?;
        // What this run has written is in order, and must not look like something left to do.
        let is_done = |file: &AddFile| file.tag(zcube::REWRITE).is_some_and(|r| done.contains(r));
        snapshot.files.retain(|file| !is_done(file));
        let work = choose(&snapshot)?;
        let bins_before = report.bins.len();
        let mut replan = false;
        for bin in &work.selection.bins {
            match rewrite_bin(lake, executor, &snapshot, bin, &work, options).await? {
                Some((rewrite, bin)) => {
                    report.version = report.version.max(bin.version);
                    report.bins.push(bin);
                    done.insert(rewrite);
                }
                None => {
                    replan = true;
                    break;
                }
            }
        }
        if !replan {
            return Ok(());
        }
        tracing::warn!(%table, attempt, "inputs changed, planning again");
        lake.pause(attempt).await;
        attempt = if report.bins.len() > bins_before { 1 } else { attempt + 1 };
    }
    Err(LayoutError::TooManyConflicts { table: table.to_string(), attempts: MAX_ATTEMPTS })
}

/// Rewrites and commits one bin, and names the rewrite; `None` when its inputs changed meanwhile.
async fn rewrite_bin(
    lake: &dyn Lake,
    executor: &dyn Executor,
    snapshot: &TableSnapshot,
    bin: &Bin,
    work: &Work,
    options: &OptimizeOptions,
) -> Result<Option<(String, BinReport)>, LayoutError> {
    let started_ms = lake.monotonic_ms();
    let inputs: Vec<&AddFile> = bin.files.iter().map(|(file, _)| file).collect();
    let target = match work.purpose {
        Purpose::Layout if !options.full && options.settings.strategy_incremental => {
            layer::target(snapshot, &inputs, work.target)
        }
        _ => work.target,
    };
    let mut rewrite = rewrite_task(lake, snapshot, inputs.iter().copied(), target, options.now);
    match work.purpose {
        Purpose::Merge => task::leave_unclustered(&mut rewrite),
        Purpose::Layout => {
            if let Some(cube) = &bin.cube {
                rewrite.tags.insert(zcube::ZCUBE_ID.to_owned(), cube.clone());
            }
            if !rewrite.order.keys().is_empty() {
                let left = moves::left_after(inputs.iter().copied());
                rewrite.tags.insert(moves::TAG.to_owned(), left.to_string());
            }
        }
    }
    let cube = rewrite.tags.get(zcube::ZCUBE_ID).cloned();
    let output = task::run(lake, executor, snapshot, &rewrite).await?;
    if output.rows_in != output.rows_out {
        discard_output(lake, &snapshot.table, &output).await;
        return Err(LayoutError::RowCount {
            table: snapshot.table.to_string(),
            rows_in: output.rows_in,
            rows_out: output.rows_out,
        });
    }
    let info = optimize_info(snapshot, &inputs, &output, options, work.purpose);
    let bytes_out = output.adds.iter().map(|add| Bytes(add.size)).sum();
    let files_out = count(output.adds.len());
    match commit_replacement(lake, snapshot, &inputs, &output, Scope::Rearrange, info).await? {
        Replacement::Replan => Ok(None),
        Replacement::Committed { version } => {
            tracing::info!(table = %snapshot.table, version, files_in = inputs.len(), files_out, "bin committed");
            let report = BinReport {
                files_in: count(inputs.len()),
                bytes_in: bin.bytes(),
                files_out,
                bytes_out,
                reasons: bin.reasons(),
                cube,
                version,
                elapsed_ms: lake.monotonic_ms().saturating_sub(started_ms),
            };
            Ok(Some((rewrite.file_prefix, report)))
        }
    }
}

/// delta-spark's `OPTIMIZE` history entry (`DeltaOperations.scala`): parameters and metrics are text.
fn optimize_info(
    snapshot: &TableSnapshot,
    inputs: &[&AddFile],
    output: &RewriteOutput,
    options: &OptimizeOptions,
    purpose: Purpose,
) -> Value {
    let mut sizes: Vec<u64> = output.adds.iter().map(|add| add.size).collect();
    sizes.sort_unstable();
    let quantile = |percent: usize| {
        sizes.get((sizes.len().saturating_sub(1)) * percent / 100).copied().unwrap_or(0).to_string()
    };
    let cluster_by = match purpose {
        Purpose::Layout => snapshot.cluster_by(),
        Purpose::Merge => Vec::new(),
    };
    let cluster_by = serde_json::to_string(&cluster_by).unwrap_or_default();
    let removed_vectors = inputs.iter().filter(|file| file.deletion_vector.is_some()).count();
    let mut info = json!({
        "timestamp": options.now.epoch_ms(),
        "operation": "OPTIMIZE",
        "operationParameters": {
            "predicate": "[]",
            "zOrderBy": "[]",
            "clusterBy": cluster_by,
            "auto": purpose == Purpose::Merge,
            "isFull": options.full,
        },
        "readVersion": snapshot.version,
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": false,
        "operationMetrics": {
            "numRemovedFiles": inputs.len().to_string(),
            "numRemovedBytes": inputs.iter().map(|f| f.size).sum::<u64>().to_string(),
            "numAddedFiles": sizes.len().to_string(),
            "numAddedBytes": sizes.iter().sum::<u64>().to_string(),
            "numDeletionVectorsRemoved": removed_vectors.to_string(),
            "minFileSize": quantile(0),
            "p25FileSize": quantile(25),
            "p50FileSize": quantile(50),
            "p75FileSize": quantile(75),
            "maxFileSize": quantile(100),
        },
    });
    if snapshot.row_tracking_columns().is_some() {
        info["tags"] = json!({ "delta.rowTracking.preserved": "true" });
    }
    info
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use lakebed_model::{Bytes, Instant, TableName};

    use super::{OptimizeOptions, OptimizeReport, optimize};
    use crate::{
        ClusteringSettings, LayoutError,
        action::Action,
        ddl,
        testing::{Call, FakeLake, plain_file},
    };

    /// The fake lake never waits, so a future is ready when first polled.
    fn ready<F: Future>(future: F) -> F::Output {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the fake lake waited"),
        }
    }

    fn run(lake: &FakeLake) -> Result<OptimizeReport, LayoutError> {
        let options = OptimizeOptions {
            full: false,
            default_file_size: Bytes(1_000).into(),
            settings: ClusteringSettings::default(),
            now: Instant::from_epoch_ms(1),
        };
        ready(optimize(lake, lake, &TableName::new("t"), &options))
    }

    fn two_files() -> FakeLake {
        FakeLake::new(&["a"], vec![plain_file("f1", 500), plain_file("f2", 500)])
    }

    fn rows(lake: &FakeLake) -> u64 {
        lake.live().iter().filter_map(crate::action::AddFile::rows).sum()
    }

    #[test]
    fn optimize_twice_does_nothing_the_second_time() {
        let lake = two_files();
        let report = run(&lake).unwrap();
        assert_eq!((report.bins.len(), report.version, lake.live().len()), (1, 1, 1));
        assert_eq!(run(&lake).unwrap().bins, []);
        assert_eq!((lake.version(), rows(&lake)), (1, 200));
    }

    #[test]
    fn new_data_joins_the_open_cube() {
        let lake = two_files();
        let first = run(&lake).unwrap().bins[0].cube.clone();
        lake.append(vec![plain_file("f3", 900)]);
        let second = run(&lake).unwrap();
        assert_eq!(second.bins[0].cube, first);
        assert_eq!((second.bins[0].files_in, lake.live().len()), (1, 2));
    }

    #[test]
    fn concurrent_append_neither_loses_nor_doubles_rows() {
        let lake = two_files();
        lake.rival(1, vec![Action::Add(Box::new(plain_file("f3", 500)))]);
        let report = run(&lake).unwrap();
        assert_eq!((report.version, rows(&lake), lake.live().len()), (2, 300, 2));
        assert_eq!(lake.unreferenced(), Vec::<String>::new());
    }

    #[test]
    fn fifty_appends_in_a_row_do_not_wear_a_commit_out() {
        let lake = two_files();
        for put in 1..=50 {
            lake.rival(put, vec![Action::Add(Box::new(plain_file(&format!("r{put}"), 500)))]);
        }
        let report = run(&lake).unwrap();
        assert_eq!((report.version, rows(&lake), lake.live().len()), (51, 5_200, 51));
        assert_eq!(lake.unreferenced(), Vec::<String>::new());
    }

    #[test]
    fn commit_that_may_be_ours_keeps_its_files_when_the_log_cannot_be_read() {
        let lake = two_files();
        lake.fail(Call::PutAnsweredExists, 1);
        lake.fail(Call::CommitsSince, 2);
        assert!(run(&lake).is_err());
        assert_eq!((rows(&lake), lake.version()), (200, 1));
        assert_eq!(lake.missing(), Vec::<String>::new());
    }

    #[test]
    fn commit_that_arrives_after_the_log_was_read_finds_its_files() {
        let lake = two_files();
        lake.fail(Call::PutUnsettled, 1);
        assert_eq!(
            run(&lake).unwrap_err().to_string(),
            "write version 1 of table `t` at memory:///t: storage did not say whether it was written; \
             files prepared for it were left"
        );
        assert_eq!((rows(&lake), lake.version()), (200, 0));
        lake.arrive();
        assert_eq!((rows(&lake), lake.version()), (200, 1));
        assert_eq!(lake.missing(), Vec::<String>::new());
    }

    #[test]
    fn version_that_exists_and_cannot_be_seen_ends_the_commit() {
        let lake = two_files();
        for put in 1..=100 {
            lake.fail(Call::PutDenied, put);
        }
        assert_eq!(
            run(&lake).unwrap_err().to_string(),
            "commit to table `t`: version 1 exists, but could not be read 10 times in a row; files prepared for it were left"
        );
        assert_eq!((rows(&lake), lake.version()), (200, 0));
    }

    #[test]
    fn concurrent_delete_of_an_input_replans_the_bin() {
        let lake = two_files();
        let gone = plain_file("f1", 500).to_remove(1, true);
        lake.rival(1, vec![Action::Remove(Box::new(gone))]);
        run(&lake).unwrap();
        assert_eq!((rows(&lake), lake.live().len()), (100, 1));
        assert_eq!(lake.unreferenced(), Vec::<String>::new());
    }

    #[test]
    fn changed_clustering_columns_abort_and_clean_up() {
        let lake = two_files();
        lake.rival(1, vec![Action::DomainMetadata(ddl::domain(&["b".into()]))]);
        assert_eq!(
            run(&lake).unwrap_err().to_string(),
            "commit to table `t`: version 1 of another writer changed the clustering columns; nothing was committed"
        );
        assert_eq!((rows(&lake), lake.unreferenced()), (200, vec![]));
    }

    #[test]
    fn every_fault_leaves_all_rows_and_no_file_behind() {
        for call in [Call::Snapshot, Call::CommitsSince, Call::Put] {
            let lake = two_files();
            lake.fail(call, 1);
            assert!(run(&lake).is_err(), "{call:?}");
            assert_eq!((rows(&lake), lake.version()), (200, 0), "{call:?}");
            assert_eq!(lake.unreferenced(), Vec::<String>::new(), "{call:?}");
        }
    }

    #[test]
    fn a_commit_that_answers_as_a_lost_race_is_ours_all_the_same() {
        let lake = two_files();
        lake.fail(Call::PutAnsweredExists, 1);
        assert_eq!(run(&lake).unwrap().version, 1);
        assert_eq!((rows(&lake), lake.live().len(), lake.version()), (200, 1, 1));
        assert_eq!(lake.unreferenced(), Vec::<String>::new());
    }

    #[test]
    fn a_commit_whose_answer_was_lost_is_found_in_the_log() {
        let lake = two_files();
        lake.fail(Call::PutAnswerLost, 1);
        assert_eq!(run(&lake).unwrap().version, 1);
        assert_eq!((rows(&lake), lake.live().len()), (200, 1));
    }
}
