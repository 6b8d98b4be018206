//! One commit beside other writers.
//!
//! 1. Read what others committed since the table was read, and let [`conflict::judge`] decide.
//! 2. Put the next version if it is absent. A lost race goes back to 1, as often as others win: each
//!    time is somebody else's commit, and an append does not disturb ours. What ends the loop is a
//!    conflict, or a version that exists but cannot be read.
//! 3. Our own commit is known by its transaction id: a put whose answer was lost, or that was retried
//!    below us and answered that the version exists, is found in the log.
//! 4. What does not end in a commit deletes its files, unless the log cannot tell whether it did: also where
//!    storage did not answer, because a put under way may arrive after the log was read. An orphan is
//!    safer than a version whose files are gone.

use std::collections::BTreeSet;

use lakebed_model::TableName;
use serde_json::{Value, json};

use crate::{
    Commit, Lake, LakeFault, LayoutError, PutOutcome, RewriteOutput, TableSnapshot,
    action::{Action, AddFile},
    conflict::{self, Intent, Scope, Verdict},
    optimize::{MAX_ATTEMPTS, engine_info},
    succession::Succession,
};

/// How a prepared replacement ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replacement {
    /// It is this version.
    Committed {
        /// The version.
        version: u64,
    },
    /// Inputs changed; its files are gone; plan anew.
    Replan,
}

/// Commits a prepared replacement of files, or cleans up after it.
///
/// # Errors
/// As [`commit_actions`].
pub async fn commit_replacement(
    lake: &dyn Lake,
    snapshot: &TableSnapshot,
    inputs: &[&AddFile],
    output: &RewriteOutput,
    scope: Scope,
    commit_info: Value,
) -> Result<Replacement, LayoutError> {
    let data_change =
        output.adds.iter().any(|add| add.data_change) || output.rows_in != output.rows_out;
    let change = Change {
        removes: inputs.to_vec(),
        restated: Vec::new(),
        adds: output.adds.clone(),
        changes: Vec::new(),
        data_change,
        created: paths_of(output),
        scope,
        commit_info,
    };
    commit_change(lake, snapshot, change).await
}

/// A change of a table's files, ready to be committed.
#[derive(Debug, Clone)]
pub struct Change<'c> {
    /// Files that leave the table.
    pub removes: Vec<&'c AddFile>,
    /// Files of the table whose entries are written anew; removed by nobody meanwhile, or the change
    /// is planned again.
    pub restated: Vec<&'c AddFile>,
    /// Files that join the table, and the new entries of those restated.
    pub adds: Vec<AddFile>,
    /// Files with the rows that changed, for readers of the change data feed. Where there is one, they
    /// look at nothing else of the commit.
    pub changes: Vec<AddFile>,
    /// Whether the removes are more than a rearrangement.
    pub data_change: bool,
    /// New files in storage, which nobody needs if the commit does not happen.
    pub created: Vec<String>,
    /// What the change relies on.
    pub scope: Scope,
    /// The history entry.
    pub commit_info: Value,
}

/// Commits a prepared change, or cleans up after it.
///
/// # Errors
/// As [`commit_actions`].
pub async fn commit_change(
    lake: &dyn Lake,
    snapshot: &TableSnapshot,
    change: Change<'_>,
) -> Result<Replacement, LayoutError> {
    let Change { removes, restated, adds, changes, data_change, created, scope, commit_info } =
        change;
    let inputs = removes.iter().chain(&restated).map(|file| file.key()).collect();
    let intent = Intent { inputs, scope };
    let timestamp = timestamp_of(&commit_info);
    let mut actions = vec![Action::CommitInfo(commit_info)];
    actions.extend(
        removes.iter().map(|f| Action::Remove(Box::new(f.to_remove(timestamp, data_change)))),
    );
    actions.extend(adds.into_iter().map(|add| Action::Add(Box::new(add))));
    actions.extend(changes.iter().map(AddFile::to_change_data));
    commit_actions(lake, snapshot, &intent, actions, &created).await
}

fn timestamp_of(commit_info: &Value) -> i64 {
    commit_info.get("timestamp").and_then(Value::as_i64).unwrap_or_default()
}

/// Commits actions that were prepared on a snapshot; `new_files` are deleted when they do not arrive.
///
/// # Errors
/// Fails when another writer changed the table's rules, or when storage fails. After a storage error
/// the log is asked whether our commit arrived all the same; only when it certainly did not are the
/// new files deleted.
pub async fn commit_actions(
    lake: &dyn Lake,
    snapshot: &TableSnapshot,
    intent: &Intent,
    actions: Vec<Action>,
    new_files: &[String],
) -> Result<Replacement, LayoutError> {
    let table = &snapshot.table;
    let transaction = lake.unique_id();
    let actions = with_transaction(actions, &transaction);
    let timestamp = actions
        .iter()
        .find_map(|action| match action {
            Action::CommitInfo(info) => Some(timestamp_of(info)),
            _ => None,
        })
        .unwrap_or_default();
    let mut succession = Succession::new(snapshot);
    let mut judged = snapshot.version;
    let mut lost = 0_u32;
    let mut unseen = 0_u32;
    loop {
        let winners = match lake.commits_since(table, judged).await {
            Ok(winners) => winners,
            Err(fault) if lost > 0 => {
                // The version that we lost to may be our own.
                tracing::error!(%table, "log unreadable after a lost race; keeping the new files");
                return Err(fault.into());
            }
            Err(fault) => {
                lake.discard(table, new_files).await;
                return Err(fault.into());
            }
        };
        if let Some(version) = own_version(&winners, &transaction) {
            return Ok(Replacement::Committed { version });
        }
        match conflict::judge(intent, &winners) {
            Verdict::Clear => {}
            Verdict::Replan { version } => {
                tracing::warn!(%table, lost, version, "inputs of the commit changed");
                lake.discard(table, new_files).await;
                return Ok(Replacement::Replan);
            }
            Verdict::Abort { version, what } => {
                lake.discard(table, new_files).await;
                return Err(LayoutError::Aborted { table: table.to_string(), version, what });
            }
        }
        unseen = if winners.is_empty() && lost > 0 { unseen + 1 } else { 0 };
        if unseen >= MAX_ATTEMPTS {
            return Err(LayoutError::UnreadableVersion {
                table: table.to_string(),
                version: judged + 1,
                attempts: unseen,
            });
        }
        judged = winners.last().map_or(judged, |commit| commit.version);
        succession.follow(&winners);
        let attempt_ms = snapshot.attempt_ms(timestamp, lake.monotonic_ms());
        let completed = match succession.complete(&actions, judged + 1, attempt_ms) {
            Ok(completed) => completed,
            Err(error) => {
                lake.discard(table, new_files).await;
                return Err(error);
            }
        };
        match lake.put_if_absent(table, judged + 1, &completed).await {
            Ok(PutOutcome::Committed) => return Ok(Replacement::Committed { version: judged + 1 }),
            Ok(PutOutcome::Exists) => {
                lost = lost.saturating_add(1);
                tracing::warn!(%table, lost, version = judged + 1, "commit conflicted");
                lake.pause(lost).await;
            }
            Err(fault) => return settle(lake, table, judged, &transaction, new_files, fault).await,
        }
    }
}

/// Finds out whether a commit that answered with an error is in the log.
async fn settle(
    lake: &dyn Lake,
    table: &TableName,
    judged: u64,
    transaction: &str,
    new_files: &[String],
    fault: LakeFault,
) -> Result<Replacement, LayoutError> {
    let Ok(commits) = lake.commits_since(table, judged).await else {
        tracing::error!(%table, "log unreadable after a failed commit; keeping the new files");
        return Err(fault.into());
    };
    if let Some(version) = own_version(&commits, transaction) {
        return Ok(Replacement::Committed { version });
    }
    if matches!(fault, LakeFault::Unsettled { .. }) {
        tracing::error!(%table, "storage did not answer; keeping the new files");
    } else {
        lake.discard(table, new_files).await;
    }
    Err(fault.into())
}

/// Finds our own commit.
fn own_version(commits: &[Commit], transaction: &str) -> Option<u64> {
    let is_ours = |action: &Action| {
        let Action::CommitInfo(info) = action else { return false };
        info.get("txnId").and_then(Value::as_str) == Some(transaction)
    };
    commits.iter().find(|commit| commit.actions.iter().any(is_ours)).map(|commit| commit.version)
}

fn with_transaction(mut actions: Vec<Action>, transaction: &str) -> Vec<Action> {
    for action in &mut actions {
        let Action::CommitInfo(info) = action else { continue };
        if let Some(object) = info.as_object_mut() {
            object.insert("txnId".to_owned(), json!(transaction));
            object.insert("engineInfo".to_owned(), json!(engine_info()));
        }
    }
    actions
}

/// Deletes files that will not be committed.
pub(crate) async fn discard_output(lake: &dyn Lake, table: &TableName, output: &RewriteOutput) {
    lake.discard(table, &paths_of(output)).await;
}

fn paths_of(output: &RewriteOutput) -> Vec<String> {
    let unique: BTreeSet<&str> = output.adds.iter().map(|add| add.path.as_str()).collect();
    unique.into_iter().map(ToOwned::to_owned).collect()
}
