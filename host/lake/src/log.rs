//! The commit path: put-if-absent on the table's log, and nothing cleverer.
//!
//! deltalake's own commit refuses clustered tables and its conflict check lets two rewrites of one
//! file both win, so commits are written here and judged in `layout`.

use std::time::Duration;

use async_trait::async_trait;
use deltalake::{kernel::transaction::TransactionError, logstore::CommitOrBytes};
use lakebed_layout::{Commit, Lake, LakeFault, PutOutcome, TableSnapshot, action::Action};
use lakebed_model::TableName;
use object_store::{ObjectStoreExt, path::Path};
use serde_json::Value;
use uuid::Uuid;

use crate::{DeltaLake, LakeError, snapshot, tables::storage_fault};

/// First wait after a lost race; doubled each time up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Delta's default for `delta.checkpointInterval`.
const CHECKPOINT_INTERVAL: u64 = 10;

#[async_trait]
impl Lake for DeltaLake {
    async fn snapshot(&self, table: &TableName) -> Result<TableSnapshot, LakeFault> {
        let delta = self.open(table).await?;
        snapshot::read(table, self.location(table)?, &delta).await
    }

    async fn commits_since(
        &self,
        table: &TableName,
        version: u64,
    ) -> Result<Vec<Commit>, LakeFault> {
        let location = self.location(table)?;
        let store = self.log_store(table)?;
        let mut commits = Vec::new();
        let mut next = version + 1;
        loop {
            let read = store.read_commit_entry(next).await;
            let entry =
                read.map_err(|error| storage_fault("read the log of", table, location, error))?;
            let Some(bytes) = entry else {
                let newest = store.get_latest_version(version).await;
                let newest = newest
                    .map_err(|error| storage_fault("read the log of", table, location, error))?;
                if newest < next {
                    break;
                }
                // Written since the read above, or cleaned up: then what it held cannot be judged.
                if matches!(store.read_commit_entry(next).await, Ok(Some(_))) {
                    continue;
                }
                let gone = format!("version {next} is gone from the log, whose newest is {newest}");
                return Err(storage_fault("read the log of", table, location, gone));
            };
            let actions = parse_entry(table, next, &bytes)?;
            commits.push(Commit { version: next, actions });
            next += 1;
        }
        Ok(commits)
    }

    async fn put_if_absent(
        &self,
        table: &TableName,
        version: u64,
        actions: &[Action],
    ) -> Result<PutOutcome, LakeFault> {
        let location = self.location(table)?;
        let store = self.log_store(table)?;
        let bytes = Action::render_commit(actions).into_bytes();
        let entry = CommitOrBytes::LogBytes(bytes.into());
        match store.write_commit_entry(version, entry, Uuid::new_v4()).await {
            Ok(()) => {
                self.checkpoint_when_due(table, version).await;
                Ok(PutOutcome::Committed)
            }
            Err(TransactionError::VersionAlreadyExists(_)) => Ok(PutOutcome::Exists),
            Err(error) => Err(storage_fault("write the log of", table, location, error)),
        }
    }

    async fn discard(&self, table: &TableName, paths: &[String]) {
        let Ok(store) = self.log_store(table) else { return };
        let store = store.object_store(None);
        for path in paths {
            if let Err(error) = store.delete(&Path::from(path.as_str())).await {
                tracing::warn!(%table, path, %error, "orphan file left for VACUUM");
            }
        }
    }

    async fn pause(&self, attempt: u32) {
        let wait = PAUSE.saturating_mul(1 << attempt.min(10)).min(PAUSE_MAX);
        tokio::time::sleep(wait).await;
    }

    fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn unique_id(&self) -> String {
        Uuid::new_v4().to_string()
    }
}

impl DeltaLake {
    /// Reads the `commitInfo` of every version that the log still has, newest first.
    ///
    /// # Errors
    /// Fails when the log cannot be read.
    pub async fn commit_infos(&self, table: &TableName) -> Result<Vec<(u64, Value)>, LakeError> {
        let location = self.location(table)?;
        let newest = self.open(table).await?.version().unwrap_or_default();
        let store = self.log_store(table)?;
        let mut infos = Vec::new();
        for version in (0..=newest).rev() {
            let read = store.read_commit_entry(version).await;
            let entry =
                read.map_err(|error| storage_fault("read the log of", table, location, error))?;
            let Some(bytes) = entry else { break };
            let actions = parse_entry(table, version, &bytes)?;
            let info = actions.into_iter().find_map(|action| match action {
                Action::CommitInfo(info) => Some(info),
                _ => None,
            });
            infos.push((version, info.unwrap_or_default()));
        }
        Ok(infos)
    }

    /// Lists the versions whose commit the log still has, newest first, each with its time in epoch
    /// milliseconds; times go back with the versions even where clocks did not.
    pub(crate) async fn commit_times(
        &self,
        table: &TableName,
    ) -> Result<Vec<(u64, i64)>, LakeError> {
        let location = self.location(table)?;
        let store = self.log_store(table)?;
        let objects = store.object_store(None);
        let mut times: Vec<(u64, i64)> = Vec::new();
        for (version, info) in self.commit_infos(table).await? {
            let own = info.get("inCommitTimestamp").and_then(Value::as_i64);
            let time = match own {
                Some(time) => time,
                None => {
                    let path = store.log_path().clone().join(format!("{version:020}.json"));
                    let head = objects.head(&path).await.map_err(|error| {
                        storage_fault("read the log of", table, location, error)
                    })?;
                    head.last_modified.timestamp_millis()
                }
            };
            let later = times.last().map_or(i64::MAX, |(_, later)| *later);
            times.push((version, time.min(later)));
        }
        Ok(times)
    }

    /// Writes a checkpoint every [`CHECKPOINT_INTERVAL`] versions. A commit stands without one, so a
    /// failure is only logged.
    async fn checkpoint_when_due(&self, table: &TableName, version: u64) {
        if version == 0 || !version.is_multiple_of(CHECKPOINT_INTERVAL) {
            return;
        }
        let written = async {
            let delta = self.open(table).await.map_err(|error| error.to_string())?;
            Box::pin(deltalake::checkpoints::create_checkpoint(&delta, None))
                .await
                .map_err(|error| error.to_string())
        };
        if let Err(error) = written.await {
            tracing::warn!(%table, version, error, "checkpoint not written");
        }
    }
}

fn parse_entry(table: &TableName, version: u64, bytes: &[u8]) -> Result<Vec<Action>, LakeFault> {
    Action::parse_commit(&String::from_utf8_lossy(bytes)).map_err(|source| LakeFault::Malformed {
        table: table.to_string(),
        version,
        source,
    })
}
