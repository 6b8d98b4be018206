//! Checkpoints of a table's log, and the clean-up of what they replace.
//!
//! The kernel writes the checkpoint; it keeps what clustered tables need (tags, provider, domains,
//! deletion vectors, transactions; the tests say so). The clean-up is ours: deltalake's takes the
//! parts of a checkpoint for a whole one and knows no sidecars. Which files go is decided in
//! [`lakebed_layout::log_files`].

use std::{collections::BTreeSet, sync::Arc};

use delta_kernel::{DeltaResult, Engine, FileMeta};
use lakebed_layout::{
    LakeFault, interval,
    log_files::{LogFiles, SIDECARS},
};
use lakebed_model::TableName;
use url::Url;

use crate::{
    DeltaLake, LakeError, kernel,
    storage::Storage,
    tables::{storage_fault, table_fault},
};

const LOG: &str = "_delta_log";
/// Delta's default for `delta.logRetentionDuration`.
const LOG_RETENTION: &str = "interval 30 days";

/// What a table says about its old log files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LogRetention {
    enabled: bool,
    duration_ms: i64,
}

impl DeltaLake {
    /// Writes a checkpoint of the table's newest version, and deletes log files that have left the
    /// retention (`delta.logRetentionDuration`), unless `delta.enableExpiredLogCleanup` is off.
    /// Returns the version.
    ///
    /// # Errors
    /// Fails when the log cannot be read or written. Log files that cannot be deleted stay.
    pub async fn checkpoint(&self, table: &TableName) -> Result<u64, LakeError> {
        let version = self.open(table).await?.version();
        self.checkpoint_at(table, version).await?;
        Ok(version)
    }

    /// Writes a checkpoint when the version is a multiple of the table's interval. A commit stands
    /// without one, so a failure is only logged.
    pub(crate) async fn checkpoint_when_due(&self, table: &TableName, version: u64) {
        if version == 0 || !version.is_multiple_of(self.checkpoint_interval(table)) {
            return;
        }
        if let Err(error) = self.checkpoint_at(table, version).await {
            tracing::warn!(%table, version, %error, "checkpoint not written");
        }
    }

    pub(crate) async fn checkpoint_at(
        &self,
        table: &TableName,
        version: u64,
    ) -> Result<(), LakeFault> {
        let location = self.location(table)?.clone();
        let engine = self.log_store(table)?.engine(None);
        let root = kernel::folder(&location);
        let write = move |engine: &dyn Engine| {
            let snapshot = kernel::snapshot(engine, root, version)?;
            snapshot.checkpoint(engine, None)?;
            let configuration = snapshot.table_configuration().metadata().configuration();
            Ok(log_retention(&|name| configuration.get(name).cloned()))
        };
        let retention = kernel::blocking(Arc::clone(&engine), write)
            .await
            .map_err(|error| table_fault("checkpoint", table, &location, error.into()))?;
        tracing::debug!(%table, version, "checkpoint written");
        match retention {
            Some(retention) if retention.enabled => {
                let storage = self.storage(table)?;
                let cleaned = clean_log(&storage, engine, &location, retention.duration_ms).await;
                let deleted = cleaned
                    .map_err(|error| storage_fault("clean up the log of", table, &location, error));
                tracing::debug!(%table, version, ?deleted, "old log files deleted");
            }
            Some(_) => {}
            None => tracing::warn!(%table, "the table's log retention is no duration: log kept"),
        }
        Ok(())
    }
}

/// Reads what the table says; `None` when it cannot be understood.
fn log_retention(value: &dyn Fn(&str) -> Option<String>) -> Option<LogRetention> {
    let duration = value("delta.logRetentionDuration");
    let duration = interval::parse(duration.as_deref().unwrap_or(LOG_RETENTION))?;
    let is_protected = value("delta.requireCheckpointProtectionBeforeVersion")
        .is_some_and(|version| version.trim() != "0");
    let is_off = value("delta.enableExpiredLogCleanup")
        .is_some_and(|value| value.trim().eq_ignore_ascii_case("false"));
    Some(LogRetention {
        enabled: !is_off && !is_protected,
        duration_ms: i64::try_from(duration.as_millis()).unwrap_or(i64::MAX),
    })
}

/// Deletes what has left the retention, counted back from the newest commit: by the clock of the
/// storage, which dates the other files too. Returns how many files went.
async fn clean_log(
    storage: &Storage,
    engine: Arc<dyn Engine>,
    location: &Url,
    retention_ms: i64,
) -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
    let stored = storage.list(LOG, |_| false).await?;
    let files = LogFiles::new(&stored);
    let Some(newest_ms) = files.newest_ms() else { return Ok(0) };
    let cutoff_ms = newest_ms.saturating_sub(retention_ms);
    let Some(at_cutoff) = files.version_at(cutoff_ms) else { return Ok(0) };
    let log = kernel::folder(location).join("_delta_log/")?;
    let meta = move |name: &str| -> DeltaResult<FileMeta> {
        let file = stored.iter().find(|file| file.path == name);
        Ok(FileMeta {
            location: log.join(name)?,
            last_modified: file.map_or(0, |file| file.modified_ms),
            size: file.map_or(0, |file| file.size),
        })
    };
    let choose = move |engine: &dyn Engine| -> DeltaResult<(Vec<String>, Vec<String>)> {
        let sidecars = |name: &String| kernel::sidecars(engine, meta(name)?);
        let Some(start) = last_complete(&files, at_cutoff, &sidecars) else {
            return Ok((Vec::new(), Vec::new()));
        };
        let expired = files.expired(start, cutoff_ms);
        let old_sidecars = files.old_sidecars(cutoff_ms);
        if old_sidecars.is_empty() {
            return Ok((expired, Vec::new()));
        }
        // A checkpoint that cannot be read may need any of them.
        let mut in_use = BTreeSet::new();
        for name in files.checkpoints_without(&expired) {
            in_use.extend(sidecars(&name)?);
        }
        let unused = old_sidecars.into_iter().filter(|name| !in_use.contains(name));
        let unused = unused.map(|name| format!("{SIDECARS}{name}")).collect();
        Ok((expired, unused))
    };
    let (expired, unused) = kernel::blocking(engine, choose).await?;
    // A checkpoint goes before its sidecars, so that no reader finds one without the other.
    let mut count = 0;
    for paths in [expired, unused] {
        let deleted = storage.delete(LOG, paths).await;
        count += deleted.paths.len();
        for (path, error) in deleted.failures {
            tracing::warn!(path, error, "old log file not deleted");
        }
    }
    Ok(count)
}

/// Finds the newest checkpoint up to a version that can be read with all that belongs to it.
fn last_complete(
    files: &LogFiles,
    version: u64,
    sidecars: &dyn Fn(&String) -> DeltaResult<BTreeSet<String>>,
) -> Option<u64> {
    let is_complete = |(_, names): &(u64, Vec<String>)| {
        names.iter().all(|name| match sidecars(name) {
            Ok(needed) => files.has_sidecars(&needed),
            Err(error) => {
                tracing::warn!(name, %error, "checkpoint cannot be read");
                false
            }
        })
    };
    files.checkpoints_until(version).into_iter().find(is_complete).map(|(version, _)| version)
}
