//! One version, one writer: on a real server, and through networks that lose answers.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use lakebed_lake::{DeltaLake, LakeOptions, NewTable, StoreOptions};
use lakebed_layout::{Lake, PutOutcome, action::Action};
use lakebed_model::{Instant, TableName};
use serde_json::json;

use super::{
    proxy::{self, Fate, Request},
    server::{Bucket, SECRET, configure, server},
};
use crate::support::{Numbers, runtime};

const NOW: Instant = Instant::from_epoch_ms(1_796_000_000_000);
const WRITERS: usize = 4;
const APPENDS: i64 = 6;

/// Opens the table `t` of a bucket as another process would: with connections of its own.
fn open(bucket: &Bucket) -> DeltaLake {
    let mut storage = StoreOptions::default();
    for (name, value) in [
        ("aws_endpoint", bucket.server.as_str()),
        ("aws_access_key_id", "testing"),
        ("aws_secret_access_key", SECRET),
    ] {
        storage.set(None, name, value).unwrap();
    }
    let mut lake = DeltaLake::new(LakeOptions { storage, ..LakeOptions::default() }).unwrap();
    lake.add_table("t", &bucket.url("lake/t")).unwrap();
    lake
}

fn new_table(bucket: &Bucket) -> NewTable {
    NewTable {
        name: TableName::new("t"),
        location: bucket.url("lake/t"),
        schema: Numbers::rows(0, 0).schema(),
        ..NewTable::default()
    }
}

#[test]
fn of_many_writers_of_one_version_exactly_one_wins() {
    let Some(server) = server("of_many_writers_of_one_version_exactly_one_wins") else { return };
    let bucket = Bucket::create(&server);
    let table = TableName::new("t");
    runtime(open(&bucket).create_empty_table(new_table(&bucket), NOW)).unwrap();
    let lakes: Vec<DeltaLake> = (0..WRITERS).map(|_| open(&bucket)).collect();
    for version in 1..=20 {
        let puts = lakes.iter().enumerate().map(|(writer, lake)| {
            let info = Action::CommitInfo(json!({"writer": writer, "version": version}));
            let (lake, table) = (lake.clone(), table.clone());
            async move { lake.put_if_absent(&table, version, &[info]).await }
        });
        let outcomes = runtime(async {
            let tasks: Vec<_> = puts.map(tokio::spawn).collect();
            let mut outcomes = Vec::new();
            for task in tasks {
                outcomes.push(task.await.unwrap().unwrap());
            }
            outcomes
        });
        let winners: Vec<usize> =
            (0..WRITERS).filter(|writer| outcomes[*writer] == PutOutcome::Committed).collect();
        assert_eq!(winners.len(), 1, "version {version}: {outcomes:?}");
        let commit = bucket.get(&format!("lake/t/_delta_log/{version:020}.json"));
        let commit = String::from_utf8(commit).unwrap();
        assert!(commit.contains(&format!("\"writer\":{}", winners[0])), "{commit}");
    }
}

#[test]
fn appends_of_many_writers_are_all_there_once() {
    let Some(server) = server("appends_of_many_writers_are_all_there_once") else { return };
    let bucket = Bucket::create(&server);
    let table = TableName::new("t");
    runtime(open(&bucket).create_empty_table(new_table(&bucket), NOW)).unwrap();
    let versions = runtime(async {
        let tasks: Vec<_> = (0_i64..)
            .take(WRITERS)
            .map(|writer| {
                let (lake, table) = (open(&bucket), table.clone());
                tokio::spawn(async move {
                    let mut versions = Vec::new();
                    for append in 0..APPENDS {
                        let k = (writer * APPENDS + append) * 10;
                        let rows = vec![Numbers::rows(k, k + 10)];
                        versions.push(Box::pin(lake.append(&table, rows, NOW)).await.unwrap());
                    }
                    versions
                })
            })
            .collect();
        let mut versions = Vec::new();
        for task in tasks {
            versions.extend(task.await.unwrap());
        }
        versions
    });
    let count = u64::try_from(WRITERS).unwrap() * APPENDS.unsigned_abs();
    assert_eq!(versions.into_iter().collect::<BTreeSet<u64>>(), (1..=count).collect());
    let answer = bucket.sql(&["SELECT count(*) AS n, count(DISTINCT k) AS k FROM t"]).json();
    assert_eq!(answer, json!({"n": count * 10, "k": count * 10}));
}

/// Tells a commit's put from other requests.
fn is_commit(request: &Request) -> bool {
    request.method == "PUT"
        && request.path.contains("/_delta_log/")
        && request.path.ends_with(".json")
}

/// Inserts a row through a network where the first puts of the commit have a fate, and says how that
/// ended and how many versions and rows there are then.
#[track_caller]
fn insert_through(
    bucket: &Bucket,
    bad: usize,
    fate: impl Fn() -> Fate + Send + Sync + 'static,
) -> (i32, String, usize, i64) {
    bucket.sql(&["CREATE TABLE t (k BIGINT) CLUSTER BY (k)"]).succeeded();
    let puts = AtomicUsize::new(0);
    let between = proxy::start(Some(&bucket.server), move |request| {
        match is_commit(request) && puts.fetch_add(1, Ordering::SeqCst) < bad {
            true => fate(),
            false => Fate::Passed,
        }
    });
    configure(bucket.folder.path(), &between, "");
    let run = bucket.sql(&["INSERT INTO t VALUES (7)"]);
    configure(bucket.folder.path(), &bucket.server, "");
    let rows = bucket.sql(&["SELECT count(*) AS n FROM t"]).json()["n"].as_i64().unwrap();
    let versions = bucket.keys("lake/t/_delta_log/").len();
    (run.code, run.stderr, versions, rows)
}

#[test]
fn a_commit_without_an_answer_is_found_in_the_log() {
    let Some(server) = server("a_commit_without_an_answer_is_found_in_the_log") else { return };
    let bucket = Bucket::create(&server);
    let (code, stderr, versions, rows) = insert_through(&bucket, 1, || Fate::Unanswered);
    assert_eq!((code, versions, rows), (0, 2, 1), "{stderr}");
}

#[test]
fn a_commit_that_was_written_and_answered_with_an_error_is_found_in_the_log() {
    let name = "a_commit_that_was_written_and_answered_with_an_error_is_found_in_the_log";
    let Some(server) = server(name) else { return };
    for status in ["503 Slow Down", "500 Internal Server Error", "412 Precondition Failed"] {
        let bucket = Bucket::create(&server);
        let fate = move || Fate::Overruled(status, "");
        let (code, stderr, versions, rows) = insert_through(&bucket, 1, fate);
        assert_eq!((code, versions, rows), (0, 2, 1), "{status}: {stderr}");
    }
}

/// A put under way may arrive after we have stopped asking: then its files must be there.
#[test]
fn files_of_a_commit_that_storage_never_answers_are_left() {
    let Some(server) = server("files_of_a_commit_that_storage_never_answers_are_left") else {
        return;
    };
    let bucket = Bucket::create(&server);
    let fate = || Fate::Answered("503 Slow Down", "");
    let (code, stderr, versions, rows) = insert_through(&bucket, usize::MAX, fate);
    assert_eq!((code, versions, rows), (4, 1, 0), "{stderr}");
    assert!(stderr.contains("storage did not say whether it was written"), "{stderr}");
    assert!(stderr.contains("DESCRIBE HISTORY"), "{stderr}");
    let keys = bucket.keys("lake/t/");
    assert_eq!(keys.iter().filter(|key| key.ends_with(".parquet")).count(), 1, "{keys:?}");
}

#[test]
fn many_objects_are_deleted_with_one_request() {
    let Some(server) = server("many_objects_are_deleted_with_one_request") else { return };
    let bucket = Bucket::create(&server);
    bucket.sql(&["CREATE TABLE t (k BIGINT) CLUSTER BY (k)"]).succeeded();
    for n in 0..50 {
        bucket.put(&format!("lake/t/orphan-{n}.parquet"), b"x");
    }
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let between = proxy::start(Some(&server), move |request| {
        let deletes = request.method == "DELETE" || request.path.contains("?delete");
        counted.fetch_add(usize::from(deletes), Ordering::SeqCst);
        Fate::Passed
    });
    configure(bucket.folder.path(), &between, "");
    let unchecked = "SET spark.databricks.delta.retentionDurationCheck.enabled = false";
    let run = bucket.sql(&[unchecked, "VACUUM t RETAIN 0 HOURS"]);
    configure(bucket.folder.path(), &server, "");
    run.succeeded();
    let left = bucket.keys("lake/t/");
    assert!(!left.iter().any(|key| key.contains("orphan")), "{left:?}");
    // The trial of the conditional put deletes its own object.
    assert!(requests.load(Ordering::SeqCst) < 5, "{requests:?} requests");
}

#[test]
fn a_conflict_without_a_commit_is_tried_again() {
    let Some(server) = server("a_conflict_without_a_commit_is_tried_again") else { return };
    let bucket = Bucket::create(&server);
    let fate =
        || Fate::Answered("409 Conflict", "<Error><Code>ConditionalRequestConflict</Code></Error>");
    let (code, stderr, versions, rows) = insert_through(&bucket, 2, fate);
    assert_eq!((code, versions, rows), (0, 2, 1), "{stderr}");
}

#[test]
fn a_server_without_conditional_put_is_read_but_not_written() {
    let Some(server) = server("a_server_without_conditional_put_is_read_but_not_written") else {
        return;
    };
    type Answer = fn() -> Fate;
    let kinds: [(&str, Answer); 2] = [
        ("ignores it", || Fate::Without("if-none-match")),
        ("does not know it", || Fate::Answered("501 Not Implemented", "")),
    ];
    for (kind, fate) in kinds {
        let bucket = Bucket::create(&server);
        bucket
            .sql(&["CREATE TABLE t (k BIGINT) CLUSTER BY (k)", "INSERT INTO t VALUES (7)"])
            .succeeded();
        let before = bucket.keys("");
        let between = proxy::start(Some(&server), move |request| match request.method.as_str() {
            "PUT" => fate(),
            _ => Fate::Passed,
        });
        configure(bucket.folder.path(), &between, "");
        let refused = bucket.sql(&["INSERT INTO t VALUES (8)"]);
        assert_eq!(refused.code, 3, "{kind}: {}", refused.stderr);
        assert!(
            refused.stderr.contains("cannot put an object only if it is absent"),
            "{}",
            refused.stderr
        );
        assert_eq!(bucket.keys(""), before, "{kind}");
        assert_eq!(bucket.sql(&["SELECT k FROM t"]).json()["k"], 7);
    }
}

#[test]
fn conditional_put_that_is_switched_off_refuses_writes() {
    let Some(server) = server("conditional_put_that_is_switched_off_refuses_writes") else {
        return;
    };
    let bucket = Bucket::create(&server);
    configure(bucket.folder.path(), &server, "aws_conditional_put = \"disabled\"\n");
    let refused = bucket.sql(&["CREATE TABLE t (k BIGINT) CLUSTER BY (k)"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert_eq!(bucket.keys(""), Vec::<String>::new());
}
