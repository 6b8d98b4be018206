//! `ALTER TABLE`, committed.

use std::collections::{BTreeMap, BTreeSet};

use lakebed_model::{Instant, TableName};
use lakebed_plan::Layout;

use crate::{
    Lake, LayoutError, Replacement, TableSnapshot,
    action::Action,
    commit::commit_actions,
    conflict::{Intent, Scope},
    ddl::{self, KeyTypes},
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

/// Sets a table's clustering columns; the empty list is `CLUSTER BY NONE`. Cuts stay only where the
/// columns do.
///
/// # Errors
/// Fails as [`ddl::resolved`], when the lake fails, or when other writers keep winning.
pub async fn alter_clustering(
    lake: &dyn Lake,
    table: &TableName,
    cluster_by: &[String],
    now: Instant,
) -> Result<AlterOutcome, LayoutError> {
    alter_clustering_of(lake, table, cluster_by, KeyTypes::Plain, now).await
}

/// Sets a table's clustering columns as [`alter_clustering`], of these types.
///
/// # Errors
/// Fails as [`alter_clustering`].
pub async fn alter_clustering_of(
    lake: &dyn Lake,
    table: &TableName,
    cluster_by: &[String],
    types: KeyTypes,
    now: Instant,
) -> Result<AlterOutcome, LayoutError> {
    let actions =
        |snapshot: &TableSnapshot| ddl::alter_actions(snapshot, cluster_by, types, now.epoch_ms());
    alter(lake, table, actions).await
}

/// Sets a table's clustering columns and their weighted cuts, none without parts.
///
/// # Errors
/// Fails as [`ddl::layout_actions`], when the lake fails, or when other writers keep winning.
pub async fn alter_layout(
    lake: &dyn Lake,
    table: &TableName,
    layout: &Layout,
    now: Instant,
) -> Result<AlterOutcome, LayoutError> {
    alter(lake, table, |snapshot| ddl::layout_actions(snapshot, layout, now.epoch_ms())).await
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

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use lakebed_model::{Instant, TableName};
    use lakebed_plan::Layout;

    use super::{AlterOutcome, alter_clustering, alter_layout};
    use crate::{Lake, action::Action, ddl, testing::FakeLake};

    /// The fake lake never waits, so a future is ready when first polled.
    fn ready<F: Future>(future: F) -> F::Output {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the fake lake waited"),
        }
    }

    fn names(columns: &[&str]) -> Vec<String> {
        columns.iter().map(|column| (*column).to_owned()).collect()
    }

    fn cut(lake: &FakeLake, columns: &[&str], parts: &[u32]) -> AlterOutcome {
        let layout = Layout::cut(names(columns), parts.to_vec());
        let now = Instant::from_epoch_ms(1);
        ready(alter_layout(lake, &TableName::new("t"), &layout, now)).unwrap()
    }

    fn cluster(lake: &FakeLake, columns: &[&str]) -> AlterOutcome {
        let now = Instant::from_epoch_ms(1);
        ready(alter_clustering(lake, &TableName::new("t"), &names(columns), now)).unwrap()
    }

    /// The declared layout, and the domains that the newest commit states.
    #[track_caller]
    fn check(lake: &FakeLake, layout: &str, domains: &[&str]) {
        let table = TableName::new("t");
        assert_eq!(ready(lake.snapshot(&table)).unwrap().layout().to_string(), layout);
        let newest = ready(lake.commits_since(&table, lake.version() - 1)).unwrap();
        let stated: Vec<String> = newest[0]
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::DomainMetadata(domain) if domain.removed => {
                    Some(format!("−{}", domain.domain))
                }
                Action::DomainMetadata(domain) => Some(domain.domain.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(stated, domains);
    }

    #[test]
    fn cuts_come_with_their_columns_and_go_with_them() {
        let lake = FakeLake::new(&["a"], vec![]);
        cut(&lake, &["a", "b"], &[5, 2]);
        check(
            &lake,
            "clustered by (a in 5 parts, b in 2)",
            &["delta.clustering", "lakebed.layout"],
        );
        assert_eq!(cut(&lake, &["a", "b"], &[5, 2]), AlterOutcome::Unchanged { version: 1 });
        cut(&lake, &["a", "b"], &[6, 2]);
        check(&lake, "clustered by (a in 6 parts, b in 2)", &["lakebed.layout"]);
        assert_eq!(cluster(&lake, &["a", "b"]), AlterOutcome::Unchanged { version: 2 });
        cluster(&lake, &["b", "a"]);
        check(&lake, "clustered by (a in 6 parts, b in 2)", &["delta.clustering"]);
        cluster(&lake, &["b", "s"]);
        check(&lake, "clustered by (b, s)", &["delta.clustering", "−lakebed.layout"]);
        cluster(&lake, &["b", "a"]);
        check(&lake, "clustered by (b, a)", &["delta.clustering"]);
        cut(&lake, &["a", "b"], &[6, 2]);
        check(
            &lake,
            "clustered by (a in 6 parts, b in 2)",
            &["delta.clustering", "lakebed.layout"],
        );
        cut(&lake, &["a", "b"], &[]);
        check(&lake, "clustered by (a, b)", &["−lakebed.layout"]);
        cut(&lake, &["a", "b"], &[6, 2]);
        cluster(&lake, &[]);
        check(&lake, "no layout", &["delta.clustering", "−lakebed.layout"]);
    }

    #[test]
    fn cuts_left_behind_by_another_engines_columns_go_with_the_next_change() {
        let lake = FakeLake::new(&["a"], vec![]);
        cut(&lake, &["a", "b"], &[5, 2]);
        lake.rival(2, vec![Action::DomainMetadata(ddl::domain(&names(&["s"])))]);
        cluster(&lake, &["b"]);
        check(&lake, "clustered by (b)", &["delta.clustering", "−lakebed.layout"]);
    }
}
