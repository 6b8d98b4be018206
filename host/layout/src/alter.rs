//! `ALTER TABLE … CLUSTER BY`, committed.

use std::collections::BTreeSet;

use lakebed_model::{Instant, TableName};

use crate::{
    Lake, LayoutError, Replacement,
    commit::commit_actions,
    conflict::{Intent, Scope},
    ddl,
    optimize::MAX_ATTEMPTS,
};

/// What became of an ALTER.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterOutcome {
    /// The columns are set by this version.
    Committed {
        /// The version.
        version: u64,
    },
    /// The table had these columns already.
    Unchanged {
        /// The table's version.
        version: u64,
    },
}

/// Sets a table's clustering columns; the empty list is `CLUSTER BY NONE`.
///
/// Appends and rewrites of other writers meanwhile do not matter. After a concurrent change of
/// schema, protocol or clustering columns the table is read and the columns are checked anew, so
/// that nobody's change is overwritten unseen.
///
/// # Errors
/// Fails as [`ddl::check_columns`], when the lake fails, or when the table's rules keep changing.
pub async fn alter_clustering(
    lake: &dyn Lake,
    table: &TableName,
    cluster_by: &[String],
    now: Instant,
) -> Result<AlterOutcome, LayoutError> {
    let intent = Intent { inputs: BTreeSet::new(), scope: Scope::Rearrange };
    for attempt in 1..=MAX_ATTEMPTS {
        let snapshot = lake.snapshot(table).await?;
        let actions = ddl::alter_actions(&snapshot, cluster_by, now.epoch_ms())?;
        if actions.is_empty() {
            return Ok(AlterOutcome::Unchanged { version: snapshot.version });
        }
        match commit_actions(lake, &snapshot, &intent, actions, &[]).await {
            Ok(Replacement::Committed { version }) => {
                tracing::info!(%table, version, "clustering columns changed");
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
