//! What a commit carries because of the version it becomes, filled in for each attempt. Pure.
//!
//! 1. In-commit timestamps (PROTOCOL.md, "In-Commit Timestamps"): `commitInfo` is the first action
//!    and its `inCommitTimestamp` is the time of the attempt, or one more than that of the version
//!    before if that is later.
//! 2. Row tracking (PROTOCOL.md, "Row Tracking"): each new file gets row ids above the high-water
//!    mark and the version as that of its rows; one `delta.rowTracking` action holds the new mark.
//!
//! Both depend on the version before, so a lost race computes them again.

use serde_json::{Value, json};

use crate::{
    Commit, LayoutError, TableSnapshot,
    action::{Action, DomainMetadata},
};

/// The metadata domain that holds the highest row id given out.
pub const ROW_TRACKING_DOMAIN: &str = "delta.rowTracking";
const TIMESTAMP: &str = "inCommitTimestamp";

/// What the newest version known says of the next one.
#[derive(Debug, Clone)]
pub(crate) struct Succession<'s> {
    snapshot: &'s TableSnapshot,
    timestamp: Option<i64>,
    high_water_mark: Option<i64>,
}

impl<'s> Succession<'s> {
    /// Begins at a table's version.
    pub(crate) fn new(snapshot: &'s TableSnapshot) -> Self {
        Self {
            snapshot,
            timestamp: snapshot.in_commit_timestamp,
            high_water_mark: snapshot.row_id_high_water_mark,
        }
    }

    /// Goes on over commits of other writers.
    pub(crate) fn follow(&mut self, commits: &[Commit]) {
        for action in commits.iter().flat_map(|commit| &commit.actions) {
            match action {
                Action::CommitInfo(info) => {
                    self.timestamp =
                        self.timestamp.max(info.get(TIMESTAMP).and_then(Value::as_i64));
                }
                Action::DomainMetadata(domain) if domain.domain == ROW_TRACKING_DOMAIN => {
                    self.high_water_mark =
                        self.high_water_mark.max(row_id_high_water_mark(&domain.configuration));
                }
                _ => {}
            }
        }
    }

    /// Completes the actions of a commit for one version, attempted at `attempt_ms`.
    ///
    /// # Errors
    /// Fails when a new file does not say how many rows need ids.
    pub(crate) fn complete(
        &self,
        actions: &[Action],
        version: u64,
        attempt_ms: i64,
    ) -> Result<Vec<Action>, LayoutError> {
        let mut completed = actions.to_vec();
        if self.snapshot.has_in_commit_timestamps() {
            let next = self.timestamp.map_or(i64::MIN, |before| before.saturating_add(1));
            stamp(&mut completed, attempt_ms.max(next));
        }
        if self.snapshot.assigns_row_ids() {
            self.assign_row_ids(&mut completed, version)?;
        }
        Ok(completed)
    }

    fn assign_row_ids(&self, actions: &mut Vec<Action>, version: u64) -> Result<(), LayoutError> {
        let before = self.high_water_mark.unwrap_or(-1);
        let mut mark = before;
        let commit_version = i64::try_from(version).unwrap_or(i64::MAX);
        for action in actions.iter_mut() {
            let Action::Add(add) = action else { continue };
            // A file of the table that is stated anew keeps its ids.
            if add.base_row_id.is_some() {
                continue;
            }
            let rows = add.rows().and_then(|rows| i64::try_from(rows).ok()).ok_or_else(|| {
                LayoutError::UncountedRows {
                    table: self.snapshot.table.to_string(),
                    path: add.path.clone(),
                }
            })?;
            add.base_row_id = Some(mark + 1);
            add.default_row_commit_version = Some(commit_version);
            mark += rows;
        }
        if mark != before {
            actions.push(Action::DomainMetadata(mark_domain(mark)));
        }
        Ok(())
    }
}

/// Puts the time into the `commitInfo` and that before everything else.
fn stamp(actions: &mut Vec<Action>, timestamp: i64) {
    let is_info = |action: &Action| matches!(action, Action::CommitInfo(_));
    let mut info = match actions.iter().position(is_info).map(|at| actions.remove(at)) {
        Some(Action::CommitInfo(info)) => info,
        _ => json!({}),
    };
    if let Some(object) = info.as_object_mut() {
        object.insert(TIMESTAMP.to_owned(), json!(timestamp));
    }
    actions.insert(0, Action::CommitInfo(info));
}

fn mark_domain(mark: i64) -> DomainMetadata {
    DomainMetadata {
        domain: ROW_TRACKING_DOMAIN.to_owned(),
        configuration: json!({ "rowIdHighWaterMark": mark, "domainName": ROW_TRACKING_DOMAIN })
            .to_string(),
        removed: false,
    }
}

/// Reads the mark from the configuration of [`ROW_TRACKING_DOMAIN`].
#[must_use]
pub fn row_id_high_water_mark(configuration: &str) -> Option<i64> {
    let configuration: Value = serde_json::from_str(configuration).ok()?;
    configuration.get("rowIdHighWaterMark")?.as_i64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ROW_TRACKING_DOMAIN, Succession, mark_domain, row_id_high_water_mark};
    use crate::{
        Commit, TableSnapshot,
        action::Action,
        testing::{plain_file, snapshot},
    };

    fn stamped() -> TableSnapshot {
        let mut table = snapshot(&["a"], vec![]);
        let on = ("delta.enableInCommitTimestamps".to_owned(), "true".to_owned());
        table.properties.extend([on]);
        table.protocol.writer_features.as_mut().unwrap().push("inCommitTimestamp".to_owned());
        table.in_commit_timestamp = Some(100);
        table
    }

    fn tracked() -> TableSnapshot {
        let mut table = snapshot(&["a"], vec![]);
        table.protocol.writer_features.as_mut().unwrap().push("rowTracking".to_owned());
        table.row_id_high_water_mark = Some(5);
        table
    }

    fn timestamp_of(actions: &[Action]) -> i64 {
        let Some(Action::CommitInfo(info)) = actions.first() else { panic!("{actions:?}") };
        info["inCommitTimestamp"].as_i64().unwrap()
    }

    #[test]
    fn timestamps_rise_whatever_the_clock_says() {
        let table = stamped();
        let ours = [Action::Add(Box::new(plain_file("f", 1))), Action::CommitInfo(json!({"a": 1}))];
        let mut succession = Succession::new(&table);
        let at = |succession: &Succession<'_>, ms| {
            timestamp_of(&succession.complete(&ours, 1, ms).unwrap())
        };
        assert_eq!(
            (at(&succession, 99), at(&succession, 100), at(&succession, 500)),
            (101, 101, 500)
        );
        let rival = Action::CommitInfo(json!({"inCommitTimestamp": 700}));
        succession.follow(&[Commit { version: 1, actions: vec![rival] }]);
        assert_eq!((at(&succession, 500), at(&succession, 701)), (701, 701));
    }

    #[test]
    fn tables_without_the_features_get_the_commit_as_it_is() {
        let table = snapshot(&["a"], vec![]);
        let ours = [Action::Add(Box::new(plain_file("f", 1)))];
        assert_eq!(Succession::new(&table).complete(&ours, 1, 5).unwrap(), ours);
    }

    /// delta#7506: the mark must follow the ids that a lost race gave out anew.
    #[test]
    fn row_ids_begin_above_the_mark_of_whoever_won() {
        let table = tracked();
        let ours: Vec<Action> =
            ["f", "g"].iter().map(|path| Action::Add(Box::new(plain_file(path, 1)))).collect();
        let ids = |succession: &Succession<'_>, version| {
            let actions = succession.complete(&ours, version, 0).unwrap();
            let bases: Vec<(Option<i64>, Option<i64>)> = actions
                .iter()
                .filter_map(|action| match action {
                    Action::Add(add) => Some((add.base_row_id, add.default_row_commit_version)),
                    _ => None,
                })
                .collect();
            let marks: Vec<i64> = actions
                .iter()
                .filter_map(|action| match action {
                    Action::DomainMetadata(domain) if domain.domain == ROW_TRACKING_DOMAIN => {
                        row_id_high_water_mark(&domain.configuration)
                    }
                    _ => None,
                })
                .collect();
            (bases, marks)
        };
        let mut succession = Succession::new(&table);
        let expected = vec![(Some(6), Some(1)), (Some(106), Some(1))];
        assert_eq!(ids(&succession, 1), (expected, vec![205]));
        let rival = Action::DomainMetadata(mark_domain(10));
        succession.follow(&[Commit { version: 1, actions: vec![rival] }]);
        let expected = vec![(Some(11), Some(2)), (Some(111), Some(2))];
        assert_eq!(ids(&succession, 2), (expected, vec![210]));
    }

    #[test]
    fn files_without_a_row_count_get_no_ids() {
        let mut file = plain_file("f", 1);
        file.stats = None;
        let error =
            Succession::new(&tracked()).complete(&[Action::Add(Box::new(file))], 1, 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "commit to table `t`: new file `f` does not say how many rows need ids"
        );
    }
}
