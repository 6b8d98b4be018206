//! Four appenders, a deleter and two optimizers on one table: the rows are what they should be, at the
//! end and at every version.
//!
//! The model is what each writer was told: an append that was answered with version 17 added these
//! keys at 17, a deletion took away those that its file held. An optimizer adds and removes none.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use lakebed_lake::DeltaLake;
use lakebed_layout::{
    Lake, LayoutError, OptimizeOptions, Replacement, RewriteOutput, action::AddFile,
    alter_clustering, commit_replacement, conflict::Scope, optimize,
};
use lakebed_model::{Clock, Instant, SystemClock, TableName};
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{Numbers, Shadow, number_from, options, runtime};

const APPENDERS: i64 = 4;
const OPTIMIZERS: u64 = 2;
const ROWS_PER_APPEND: i64 = 20;
const FIRST_ROWS: i64 = 400;
/// Each appender has keys of its own.
const KEYS_PER_APPENDER: i64 = 1_000_000;
/// How long the crowd writes; LAKEBED_CROWD_SECONDS=120 for longer.
const SECONDS: u64 = 4;

/// What a version did to the rows.
#[derive(Debug, Clone, PartialEq)]
enum Change {
    Appended(Range<i64>),
    /// So many rows, whichever they are: the file's own version tells.
    Deleted(u64),
}

#[derive(Debug)]
struct Crowd {
    table: TableName,
    changes: Mutex<BTreeMap<u64, Change>>,
    is_over: AtomicBool,
    optimized: AtomicU64,
    given_up: AtomicU64,
}

impl Crowd {
    fn tell(&self, version: u64, change: Change) {
        let before = self.changes.lock().unwrap().insert(version, change);
        assert_eq!(before, None, "version {version} was given out twice");
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    async fn append(&self, lake: &DeltaLake, appender: i64) {
        let mut key = (appender + 1) * KEYS_PER_APPENDER;
        while self.goes_on() {
            let keys = key..key + ROWS_PER_APPEND;
            let rows = vec![Numbers::rows(keys.start, keys.end)];
            let version = lake.append(&self.table, rows, now()).await.expect("an append");
            self.tell(version, Change::Appended(keys));
            key += ROWS_PER_APPEND;
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
    }

    /// Removes whole files, each by a commit of its own: small ones, and a large one at times.
    async fn delete(&self, lake: &DeltaLake) {
        let mut turn = 0;
        while self.goes_on() {
            tokio::time::sleep(Duration::from_millis(150)).await;
            turn += 1;
            let snapshot = lake.snapshot(&self.table).await.expect("a table");
            let wanted = |file: &&AddFile| turn % 9 == 0 || file.rows() <= Some(100);
            let Some(file) = snapshot.files.iter().filter(wanted).nth(turn % 3) else { continue };
            let rows = file.rows().expect("numRecords");
            let nothing =
                RewriteOutput { adds: Vec::new(), rows_in: rows, rows_out: 0, steps: Vec::new() };
            let info = json!({ "timestamp": now().epoch_ms(), "operation": "DELETE" });
            let (inputs, scope) = ([file], Scope::Rearrange);
            let replaced = commit_replacement(lake, &snapshot, &inputs, &nothing, scope, info);
            match replaced.await.expect("a deletion") {
                Replacement::Committed { version } => self.tell(version, Change::Deleted(rows)),
                Replacement::Replan => {}
            }
        }
    }

    async fn optimize(&self, lake: &DeltaLake, is_full: bool) {
        while self.goes_on() {
            let settings = OptimizeOptions { now: now(), ..options(is_full, 4_000) };
            match optimize(lake, lake, &self.table, &settings).await {
                Ok(report) => {
                    let bins = u64::try_from(report.bins.len()).unwrap();
                    self.optimized.fetch_add(bins, Ordering::Relaxed);
                }
                // Its inputs were deleted or rewritten each time: no failure of a crowd.
                Err(LayoutError::TooManyConflicts { .. }) => {
                    self.given_up.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => panic!("{error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }
}

fn now() -> Instant {
    SystemClock.now()
}

/// Runs the crowd for a while; then every version is read and compared with the model.
#[track_caller]
fn check(duration: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let properties = [("delta.checkpointInterval", "7")];
    let numbers = Numbers::create_with(folder.path(), 4, FIRST_ROWS / 4, &properties);
    let keys = ["v".to_owned(), "w".to_owned()];
    runtime(alter_clustering(&numbers.lake, &numbers.table, &keys, now())).expect("keys");
    let crowd = Arc::new(Crowd {
        table: numbers.table.clone(),
        changes: Mutex::default(),
        is_over: AtomicBool::new(false),
        optimized: AtomicU64::new(0),
        given_up: AtomicU64::new(0),
    });
    runtime(async {
        let mut writers = JoinSet::new();
        for appender in 0..APPENDERS {
            let (crowd, lake) = (Arc::clone(&crowd), numbers.second_writer());
            writers.spawn(Box::pin(async move { crowd.append(&lake, appender).await }));
        }
        for optimizer in 0..OPTIMIZERS {
            let (crowd, lake) = (Arc::clone(&crowd), numbers.second_writer());
            writers.spawn(Box::pin(async move { crowd.optimize(&lake, optimizer == 0).await }));
        }
        let (deleter, lake) = (Arc::clone(&crowd), numbers.second_writer());
        writers.spawn(Box::pin(async move { deleter.delete(&lake).await }));
        tokio::time::sleep(duration).await;
        crowd.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = writers.join_next().await {
            ended.expect("a writer that did not fail");
        }
    });
    let changes = crowd.changes.lock().unwrap().clone();
    let optimized = crowd.optimized.load(Ordering::Relaxed);
    let appends = changes.values().filter(|c| matches!(c, Change::Appended(_))).count();
    let deletions = changes.len() - appends;
    println!(
        "{appends} appends, {deletions} deletions, {optimized} bins rewritten, {} times too many conflicts",
        crowd.given_up.load(Ordering::Relaxed),
    );
    assert!(appends > 4 && deletions > 1 && optimized > 1, "a crowd that did nothing");
    let last = check_versions(&folder.path().join("t"), &changes);
    assert_eq!(numbers.keys(), last);
}

/// Compares the keys of every version with the model's; returns those of the last.
#[track_caller]
fn check_versions(table: &Path, changes: &BTreeMap<u64, Change>) -> Vec<i64> {
    let mut shadow = Shadow::of(table);
    let mut model: BTreeSet<i64> = (0..FIRST_ROWS).collect();
    while let Some(shown) = shadow.next_version() {
        let version = shown.version;
        // A key that is there twice would be lost in a set.
        assert!(shown.keys.windows(2).all(|pair| pair[0] < pair[1]), "doubled at {version}");
        match changes.get(&version) {
            None => {}
            Some(Change::Appended(keys)) => model.extend(keys.clone()),
            Some(Change::Deleted(rows)) => {
                let there: BTreeSet<i64> = shown.keys.iter().copied().collect();
                let gone = model.len() - model.intersection(&there).count();
                assert_eq!(u64::try_from(gone).unwrap(), *rows, "deleted at {version}");
                model.retain(|key| there.contains(key));
            }
        }
        assert_eq!(shown.keys, model.iter().copied().collect::<Vec<_>>(), "version {version}");
    }
    model.into_iter().collect()
}

#[test]
fn crowd_of_writers_loses_and_doubles_nothing_at_any_version() {
    check(Duration::from_secs(number_from("LAKEBED_CROWD_SECONDS", SECONDS)));
}
