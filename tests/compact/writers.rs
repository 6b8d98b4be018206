//! Compaction beside another writer.

use std::{fmt, sync::Mutex};

use async_trait::async_trait;
use lakebed_compact::ChainConfig;
use lakebed_lake::DeltaLake;
use lakebed_layout::{
    CompactOptions, CompactReport, Executor, ExecutorError, RewriteOutput, RewriteTask, compact,
};
use lakebed_model::{Bytes, Instant, TableName};

use super::{
    Readings,
    readings::{YOUNG, batch},
};
use crate::support::{lakebed, read_commits, runtime};

/// Appends one reading of sensor 1 after the first rewrite.
struct Interrupted {
    lake: DeltaLake,
    row: Mutex<Option<(i64, i64, i64)>>,
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
        let row = self.row.lock().expect("no panic with the lock").take();
        if let Some(row) = row {
            let table = TableName::new(&task.table);
            let now = Instant::from_epoch_ms(1);
            self.lake.append(&table, vec![batch(&[row])], now).await.expect("an append");
        }
        Ok(output)
    }
}

fn interrupted(readings: &Readings, chain: &str) -> CompactReport {
    let options = CompactOptions {
        chain: chain.parse::<ChainConfig>().unwrap(),
        row_keys: vec!["sensor".to_owned()],
        default_file_size: Bytes(1 << 20).into(),
        now: Instant::from_epoch_ms(1_796_000_000_000),
    };
    let executor =
        Interrupted { lake: readings.lake.clone(), row: Mutex::new(Some((1, YOUNG + 9, 1_000))) };
    runtime(compact(&readings.lake, &executor, &readings.table, &options)).unwrap()
}

/// A sum that misses a row of its key is wrong, so the compaction starts over.
#[test]
fn aggregation_starts_over_when_a_row_arrives() {
    let readings = Readings::six();
    let report = interrupted(&readings, "ageoff='updated_at','3600','updated_at'=MAX,'q'=SUM");
    assert_eq!((report.rows_in, report.rows_out, report.version), (7, 2, 2));
    assert_eq!(readings.rows(), [(1, YOUNG + 9, 1_030), (2, YOUNG, 5)]);
    assert_eq!(read_commits(&readings.table_path()).len(), 3);
}

/// A filter judges each row by itself, so what arrives later can wait.
#[test]
fn filter_commits_beside_a_row_that_arrives() {
    let readings = Readings::six();
    let report = interrupted(&readings, "ageoff='updated_at','3600',");
    assert_eq!((report.rows_in, report.rows_out, report.version), (6, 3, 2));
    let kept = [(1, YOUNG, 10), (1, YOUNG + 1, 20), (1, YOUNG + 9, 1_000), (2, YOUNG, 5)];
    assert_eq!(readings.rows(), kept);
}

/// Deletes the readings of sensor 2 after the first rewrite.
#[derive(Debug)]
struct Deleting<'r> {
    readings: &'r Readings,
    is_done: Mutex<bool>,
}

#[async_trait]
impl Executor for Deleting<'_> {
    async fn rewrite(&self, task: &RewriteTask) -> Result<RewriteOutput, ExecutorError> {
        let output = self.readings.lake.rewrite(task).await?;
        let was_done = std::mem::replace(&mut *self.is_done.lock().expect("no panic"), true);
        if !was_done {
            let delete = "DELETE FROM readings WHERE sensor = 2";
            lakebed(self.readings.path(), &["--lake", ".", "sql", delete]).succeeded();
        }
        Ok(output)
    }
}

/// With deletion vectors a delete leaves the path of the file as it was.
#[test]
fn rows_deleted_meanwhile_stay_deleted() {
    for vectors in ["true", "false"] {
        for chain in
            ["ageoff='updated_at','3600',", "ageoff='updated_at','3600','updated_at'=MAX,'q'=SUM"]
        {
            let first = [(1, YOUNG, 10), (1, 0, 100), (2, YOUNG, 5)];
            let second = [(1, YOUNG, 20), (2, YOUNG, 50)];
            let readings =
                Readings::create(&[&first, &second], &[("delta.enableDeletionVectors", vectors)]);
            let options = CompactOptions {
                chain: chain.parse::<ChainConfig>().unwrap(),
                row_keys: vec!["sensor".to_owned()],
                default_file_size: Bytes(1 << 20).into(),
                now: Instant::from_epoch_ms(1_796_000_000_000),
            };
            let executor = Deleting { readings: &readings, is_done: Mutex::new(false) };
            runtime(compact(&readings.lake, &executor, &readings.table, &options)).unwrap();
            let left = readings.rows();
            assert!(left.iter().all(|row| row.0 == 1), "{vectors} {chain}: {left:?}");
            assert_eq!(left.iter().map(|row| row.2).sum::<i64>(), 30, "{vectors} {chain}");
        }
    }
}
