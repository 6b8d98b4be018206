//! Two writers of one table: nothing is lost and nothing doubled, whoever wins.

use std::{collections::BTreeMap, fmt, path::Path, sync::Mutex};

use async_trait::async_trait;
use lakebed_lake::DeltaLake;
use lakebed_layout::{
    AlterOutcome, Executor, ExecutorError, Lake, LayoutError, OptimizeReport, PutOutcome,
    RewriteOutput, RewriteTask, action::Action, alter_clustering, optimize,
};
use lakebed_model::{Instant, TableName};

use crate::support::{Numbers, files_of, options, read_commits, runtime};

const FILES: i64 = 8;
const ROWS_PER_FILE: i64 = 500;
const ROWS: i64 = FILES * ROWS_PER_FILE;

/// What another writer does between our rewrite and our commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rival {
    Append,
    Optimize,
    /// Deletes the rows of the first file.
    RemoveFile,
    ChangeKeys,
}

/// Runs rewrites on the lake and lets a rival in after the first one.
struct Interrupted {
    lake: DeltaLake,
    rival: Mutex<Option<Rival>>,
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupted").finish_non_exhaustive()
    }
}

#[async_trait]
impl Executor for Interrupted {
    async fn rewrite(&self, task: &RewriteTask) -> Result<RewriteOutput, ExecutorError> {
        let output = self.lake.rewrite(task).await?;
        let rival = self.rival.lock().expect("no panic with the lock").take();
        if let Some(rival) = rival {
            act(rival, &self.lake, &TableName::new(&task.table)).await;
        }
        Ok(output)
    }
}

async fn act(rival: Rival, lake: &DeltaLake, table: &TableName) {
    let now = Instant::from_epoch_ms(1);
    match rival {
        Rival::Append => {
            let rows = vec![Numbers::rows(ROWS, ROWS + 100)];
            lake.append(table, rows, now).await.expect("an append");
        }
        Rival::Optimize => {
            let report = optimize(lake, lake, table, &options(false, 1 << 20)).await;
            assert_eq!(report.expect("an OPTIMIZE").bins.len(), 1);
        }
        Rival::RemoveFile => {
            let snapshot = lake.snapshot(table).await.expect("a table");
            let removed = Action::Remove(Box::new(snapshot.files[0].to_remove(1, true)));
            let put = lake.put_if_absent(table, snapshot.version + 1, &[removed]).await;
            assert_eq!(put.expect("a commit"), PutOutcome::Committed);
        }
        Rival::ChangeKeys => {
            let altered = alter_clustering(lake, table, &["w".to_owned()], now).await;
            assert!(matches!(altered, Ok(AlterOutcome::Committed { .. })), "{altered:?}");
        }
    }
}

/// A table clustered by `k`, whose files nobody has clustered yet.
fn clustered(folder: &Path) -> Numbers {
    let numbers = Numbers::create(folder, FILES, ROWS_PER_FILE);
    let keys = ["k".to_owned()];
    let altered = alter_clustering(&numbers.lake, &numbers.table, &keys, Instant::from_epoch_ms(1));
    assert_eq!(runtime(altered).expect("keys"), AlterOutcome::Committed { version: 1 });
    numbers
}

fn interrupted(numbers: &Numbers, rival: Rival) -> Result<OptimizeReport, LayoutError> {
    let executor = Interrupted { lake: numbers.second_writer(), rival: Mutex::new(Some(rival)) };
    runtime(optimize(&numbers.lake, &executor, &numbers.table, &options(false, 1 << 20)))
}

/// Asserts that no file joined or left the table twice, and none lies about that no commit names.
#[track_caller]
fn check_log(table: &Path) {
    let mut added: BTreeMap<String, u32> = BTreeMap::new();
    let mut removed: BTreeMap<String, u32> = BTreeMap::new();
    for action in read_commits(table).into_iter().flatten() {
        match action {
            Action::Add(add) => *added.entry(add.path).or_default() += 1,
            Action::Remove(remove) => *removed.entry(remove.path).or_default() += 1,
            _ => {}
        }
    }
    assert!(
        added.values().chain(removed.values()).all(|count| *count == 1),
        "{added:?} {removed:?}"
    );
    let named: Vec<String> = added.into_keys().collect();
    assert_eq!(files_of(table), named, "orphans, or files that are gone");
}

fn range(from: i64, to: i64) -> Vec<i64> {
    (from..to).collect()
}

#[test]
fn append_between_rewrite_and_commit_is_kept_once() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = clustered(folder.path());
    let report = interrupted(&numbers, Rival::Append).unwrap();
    // CREATE is 0, ALTER 1, the append 2.
    assert_eq!((report.bins.len(), report.version), (1, 3));
    assert_eq!(numbers.keys(), range(0, ROWS + 100));
    check_log(&folder.path().join("t"));
}

#[test]
fn file_deleted_between_rewrite_and_commit_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = clustered(folder.path());
    interrupted(&numbers, Rival::RemoveFile).unwrap();
    let keys = numbers.keys();
    assert_eq!(keys.len(), usize::try_from(ROWS - ROWS_PER_FILE).unwrap());
    let first = keys[0];
    let gone = (0..ROWS).filter(|key| keys.binary_search(key).is_err());
    let gone: Vec<i64> = gone.collect();
    let start = gone[0];
    assert_eq!(gone, range(start, start + ROWS_PER_FILE), "first key {first}");
    check_log(&folder.path().join("t"));
}

#[test]
fn optimizer_that_lost_finds_nothing_left_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = clustered(folder.path());
    let report = interrupted(&numbers, Rival::Optimize).unwrap();
    assert_eq!((report.bins.len(), report.version), (0, 2), "the rival's commit is the last");
    assert_eq!(numbers.keys(), range(0, ROWS));
    check_log(&folder.path().join("t"));
}

#[test]
fn other_keys_between_rewrite_and_commit_abort_without_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = clustered(folder.path());
    let error = interrupted(&numbers, Rival::ChangeKeys).unwrap_err();
    insta::assert_snapshot!(
        error,
        @"commit to table `t`: version 2 of another writer changed the clustering columns; nothing was committed"
    );
    assert_eq!(numbers.keys(), range(0, ROWS));
    check_log(&folder.path().join("t"));
}

#[test]
fn two_optimizers_at_once_never_both_win_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = clustered(folder.path());
    let (first, second) = (numbers.second_writer(), numbers.second_writer());
    let (table, settings) = (&numbers.table, options(false, 1 << 20));
    let (one, other) = runtime(async {
        tokio::join!(
            optimize(&first, &first, table, &settings),
            optimize(&second, &second, table, &settings),
        )
    });
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.bins.len() + other.bins.len(), 1, "{one:?} {other:?}");
    assert_eq!(numbers.keys(), range(0, ROWS));
    check_log(&folder.path().join("t"));
}

#[test]
fn optimizer_and_appends_at_once_keep_every_row_once() {
    const APPENDS: i64 = 12;
    let folder = tempfile::tempdir().unwrap();
    let numbers = clustered(folder.path());
    let (writer, optimizer) = (numbers.second_writer(), numbers.second_writer());
    let (table, settings) = (&numbers.table, options(false, 1 << 20));
    let appends = async {
        for n in 0..APPENDS {
            let rows = vec![Numbers::rows(ROWS + n * 10, ROWS + n * 10 + 10)];
            writer.append(table, rows, Instant::from_epoch_ms(1)).await.expect("an append");
        }
    };
    let optimizes = async {
        for _ in 0..3 {
            optimize(&optimizer, &optimizer, table, &settings).await.expect("an OPTIMIZE");
        }
    };
    runtime(async { tokio::join!(appends, optimizes) });
    assert_eq!(numbers.keys(), range(0, ROWS + APPENDS * 10));
    check_log(&folder.path().join("t"));
}
