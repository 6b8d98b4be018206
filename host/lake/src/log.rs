//! The commit path: put-if-absent on the table's log, and nothing cleverer.
//!
//! deltalake's own commit refuses clustered tables and its conflict check lets two rewrites of one
//! file both win, so commits are written here and judged in `layout`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use deltalake::{DeltaTableError, kernel::transaction::TransactionError, logstore::CommitOrBytes};
use futures::{StreamExt, stream};
use lakebed_layout::{Commit, Lake, LakeFault, PutOutcome, TableSnapshot, action::Action};
use lakebed_model::TableName;
use object_store::{ObjectStoreExt, path::Path};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    DeltaLake, LakeError,
    guarded::{is_of_storage, store_problem},
    snapshot,
    stores::is_remote,
    tables::storage_fault,
};

/// Longest wait after the first lost race.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest wait after any.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Commits of a log that are read at once.
const READS: usize = 16;
/// How often one version is sent to an object store that does not answer.
const PUTS: u32 = 2;
/// Shortest wait.
const PAUSE_MIN: Duration = Duration::from_millis(1);

#[async_trait]
impl Lake for DeltaLake {
    async fn snapshot(&self, table: &TableName) -> Result<TableSnapshot, LakeFault> {
        let newest = self.open(table).await?;
        let engine = self.log_store(table)?.engine(None);
        let read = snapshot::read(table, self.location(table)?, engine, newest).await?;
        self.remember_checkpoint_interval(table, read.checkpoint_interval());
        Ok(read)
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
                let newest = match store.get_latest_version(version).await {
                    Ok(newest) => newest,
                    // The commit of `version` itself may be gone: its checkpoint is enough.
                    Err(DeltaTableError::InvalidVersion(_)) => version,
                    Err(error) => {
                        return Err(storage_fault("read the log of", table, location, error));
                    }
                };
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
        self.writable(table).await?;
        let store = self.log_store(table)?;
        let bytes = Action::render_commit(actions).into_bytes();
        let mut puts = 0;
        loop {
            puts += 1;
            let entry = CommitOrBytes::LogBytes(bytes.clone().into());
            match store.write_commit_entry(version, entry, Uuid::new_v4()).await {
                Ok(()) => {
                    self.checkpoint_when_due(table, version).await;
                    return Ok(PutOutcome::Committed);
                }
                Err(TransactionError::VersionAlreadyExists(_)) => return Ok(PutOutcome::Exists),
                // Its answer was lost, or it is still under way: whichever put comes second is
                // refused, and the log tells whose it is.
                Err(error) if is_remote(location) && is_passing(&error) => {
                    if puts >= PUTS {
                        return Err(LakeFault::Unsettled {
                            version,
                            table: table.to_string(),
                            location: location.to_string(),
                            source: error.into(),
                        });
                    }
                    tracing::warn!(%table, version, %error, "commit not answered, sent again");
                    self.pause(puts).await;
                }
                Err(error) => {
                    return Err(storage_fault("write the log of", table, location, error));
                }
            }
        }
    }

    async fn discard(&self, table: &TableName, paths: &[String]) {
        let Ok(store) = self.log_store(table) else { return };
        let store = store.object_store(None);
        for path in paths {
            // As in the log, where paths are URL-encoded.
            let stored = Path::from_url_path(path).unwrap_or_else(|_| Path::from(path.as_str()));
            if let Err(error) = store.delete(&stored).await {
                tracing::warn!(%table, path, %error, "orphan file left for VACUUM");
            }
        }
    }

    async fn pause(&self, attempt: u32) {
        tokio::time::sleep(pause_before(attempt, Uuid::new_v4().as_u128())).await;
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
        let newest = self.open(table).await?.version();
        let store = self.log_store(table)?;
        let read = |version| {
            let store = Arc::clone(&store);
            async move { (version, store.read_commit_entry(version).await) }
        };
        let mut entries = stream::iter((0..=newest).rev()).map(read).buffered(READS);
        let mut infos = Vec::new();
        while let Some((version, entry)) = entries.next().await {
            let entry =
                entry.map_err(|error| storage_fault("read the log of", table, location, error))?;
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
        let infos = self.commit_infos(table).await?;
        // One listing has the times of all files.
        let stored = self
            .storage(table)?
            .list("_delta_log", |_| true)
            .await
            .map_err(|error| storage_fault("list the log of", table, location, error))?;
        let stored: BTreeMap<&str, i64> =
            stored.iter().map(|file| (file.path.as_str(), file.modified_ms)).collect();
        let mut times: Vec<(u64, i64)> = Vec::new();
        for (version, info) in infos {
            let own = info.get("inCommitTimestamp").and_then(Value::as_i64);
            let written = || stored.get(format!("{version:020}.json").as_str()).copied();
            // Cleaned up since it was read: the log begins later.
            let Some(time) = own.or_else(written) else { break };
            let later = times.last().map_or(i64::MAX, |(_, later)| *later);
            times.push((version, time.min(later)));
        }
        Ok(times)
    }

    /// Reads the actions of one version; `None` when the log does not have it.
    pub(crate) async fn read_commit(
        &self,
        table: &TableName,
        version: u64,
    ) -> Result<Option<Vec<Action>>, LakeFault> {
        let location = self.location(table)?;
        let read = self.log_store(table)?.read_commit_entry(version).await;
        let entry =
            read.map_err(|error| storage_fault("read the log of", table, location, error))?;
        entry.map(|bytes| parse_entry(table, version, &bytes)).transpose()
    }
}

/// Tells an answer that was lost from one that says no.
fn is_passing(error: &TransactionError) -> bool {
    is_of_storage(error) && store_problem(error).is_none()
}

/// Returns how long to wait before an attempt: a random part of a span that doubles each time up to
/// [`PAUSE_MAX`], so that writers that met once do not meet again.
fn pause_before(attempt: u32, random: u128) -> Duration {
    let doublings = attempt.saturating_sub(1).min(10);
    let span = PAUSE.saturating_mul(1 << doublings).min(PAUSE_MAX).saturating_sub(PAUSE_MIN);
    let micros = random % span.as_micros().max(1);
    PAUSE_MIN + Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

fn parse_entry(table: &TableName, version: u64, bytes: &[u8]) -> Result<Vec<Action>, LakeFault> {
    Action::parse_commit(&String::from_utf8_lossy(bytes)).map_err(|source| LakeFault::Malformed {
        table: table.to_string(),
        version,
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{PAUSE, PAUSE_MAX, PAUSE_MIN, pause_before};

    #[test]
    fn pauses_grow_to_a_bound_and_differ() {
        let longest = |attempt| {
            let all = (0..5_000_000_u128).step_by(997).map(|random| pause_before(attempt, random));
            all.max().unwrap_or_default()
        };
        let nearly = |span: Duration| span - Duration::from_millis(1)..=span;
        assert!(nearly(PAUSE).contains(&longest(1)), "{:?}", longest(1));
        assert!(nearly(PAUSE * 4).contains(&longest(3)), "{:?}", longest(3));
        assert!(nearly(PAUSE_MAX).contains(&longest(40)), "{:?}", longest(40));
        assert_eq!(pause_before(7, 0), PAUSE_MIN);
        assert_ne!(pause_before(7, 1_000), pause_before(7, 2_000));
    }
}
