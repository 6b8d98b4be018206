//! `ALTER TABLE`, committed.

use std::collections::BTreeMap;

use std::collections::BTreeSet;

use lakebed_model::{Instant, TableName};

use crate::{
    Lake, LayoutError, Replacement, TableSnapshot,
    action::Action,
    commit::commit_actions,
    conflict::{Intent, Scope},
    ddl,
    optimize::MAX_ATTEMPTS,
    properties,
};

/// What became of an ALTER.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterOutcome {
    /// It is set by this version.
    Committed {
        /// The version.
        version: u64,
    },
    /// The table had it already.
    Unchanged {
        /// The table's version.
        version: u64,
    },
}

/// Sets a table's clustering columns; the empty list is `CLUSTER BY NONE`.
///
/// # Errors
/// Fails as [`ddl::resolved`], when the lake fails, or when other writers keep winning.
pub async fn alter_clustering(
    lake: &dyn Lake,
    table: &TableName,
    cluster_by: &[String],
    now: Instant,
) -> Result<AlterOutcome, LayoutError> {
    alter(lake, table, |snapshot| ddl::alter_actions(snapshot, cluster_by, now.epoch_ms())).await
}

/// Sets table properties.
///
/// # Errors
/// Fails as [`properties::set_actions`], when the lake fails, or when other writers keep winning.
pub async fn set_properties(
    lake: &dyn Lake,
    table: &TableName,
    values: &BTreeMap<String, String>,
    now: Instant,
) -> Result<AlterOutcome, LayoutError> {
    alter(lake, table, |snapshot| properties::set_actions(snapshot, values, now.epoch_ms())).await
}

/// Commits what a change of metadata needs; without actions there is nothing to change.
///
/// Each attempt reads the table anew and decides against it, so a concurrent change of schema or
/// protocol is never overwritten unseen.
async fn alter(
    lake: &dyn Lake,
    table: &TableName,
    actions_for: impl Fn(&TableSnapshot) -> Result<Vec<Action>, LayoutError> + Send,
) -> Result<AlterOutcome, LayoutError> {
    let clock_ms = lake.monotonic_ms();
    let intent = Intent { inputs: BTreeSet::new(), scope: Scope::Rearrange };
    for attempt in 1..=MAX_ATTEMPTS {
        let snapshot = TableSnapshot { clock_ms, ..lake.snapshot(table).await? };
        let actions = actions_for(&snapshot)?;
        if actions.is_empty() {
            return Ok(AlterOutcome::Unchanged { version: snapshot.version });
        }
        match commit_actions(lake, &snapshot, &intent, actions, &[]).await {
            Ok(Replacement::Committed { version }) => {
                tracing::info!(%table, version, "metadata changed");
                return Ok(AlterOutcome::Committed { version });
            }
            Ok(Replacement::Replan) | Err(LayoutError::Aborted { .. }) => {
                tracing::warn!(%table, attempt, "the table's rules changed, checking again");
                lake.pause(attempt).await;
            }
            Err(error) => return Err(error),
        }
    }
    Err(LayoutError::TooManyConflicts { table: table.to_string(), attempts: MAX_ATTEMPTS })
}
