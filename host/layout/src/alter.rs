//! `ALTER TABLE … CLUSTER BY`, committed.

use lakebed_model::{Instant, TableName};

use crate::{
    Lake, LayoutError, PutOutcome, TableSnapshot, commit::Succession, ddl, optimize::MAX_ATTEMPTS,
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
/// Each attempt reads the table anew and checks the columns against it, so a concurrent change of
/// schema or protocol is never overwritten unseen.
///
/// # Errors
/// Fails as [`ddl::check_columns`], when the lake fails, or when other writers keep winning.
pub async fn alter_clustering(
    lake: &dyn Lake,
    table: &TableName,
    cluster_by: &[String],
    now: Instant,
) -> Result<AlterOutcome, LayoutError> {
    let clock_ms = lake.monotonic_ms();
    for attempt in 1..=MAX_ATTEMPTS {
        let snapshot = TableSnapshot { clock_ms, ..lake.snapshot(table).await? };
        let actions = ddl::alter_actions(&snapshot, cluster_by, now.epoch_ms())?;
        if actions.is_empty() {
            return Ok(AlterOutcome::Unchanged { version: snapshot.version });
        }
        let version = snapshot.version + 1;
        let attempt_ms = snapshot.attempt_ms(now.epoch_ms(), lake.monotonic_ms());
        let actions = Succession::new(&snapshot).complete(&actions, version, attempt_ms)?;
        match lake.put_if_absent(table, version, &actions).await? {
            PutOutcome::Committed => {
                tracing::info!(%table, version, "clustering columns changed");
                return Ok(AlterOutcome::Committed { version });
            }
            PutOutcome::Exists => {
                tracing::warn!(%table, attempt, version, "commit conflicted");
                lake.pause(attempt).await;
            }
        }
    }
    Err(LayoutError::TooManyConflicts { table: table.to_string(), attempts: MAX_ATTEMPTS })
}
