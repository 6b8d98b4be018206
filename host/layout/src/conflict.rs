//! What commits of other writers mean for a commit of ours. Pure.
//!
//! 1. A changed protocol, changed metadata or changed clustering columns abort: what we prepared was
//!    decided under other rules.
//! 2. An input that another writer removed, or re-added with another deletion vector, must be
//!    planned anew: committing would bring deleted rows back or double rows.
//! 3. Appends do not disturb a rearrangement. They do disturb a replacement that had to see every
//!    row of the table (aggregation).
//! 4. An action this engine does not know aborts: it may mean any of the above.
//!
//! delta-rs 1.1.3 lets two rewrites of one file both win, because its delete-delete check looks at
//! `dataChange` removes only; this check does not ask what the winner's remove was for.

use std::collections::BTreeSet;

use crate::{
    action::{Action, FileKey},
    cuts,
    ddl::DOMAIN,
    lake::Commit,
};

/// What a rewrite relies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Rows are only put in another order: each bin stands alone.
    Rearrange,
    /// The result depends on every row of the table.
    WholeTable,
}

/// What our commit replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// The logical files we remove.
    pub inputs: BTreeSet<FileKey>,
    /// What the result depends on.
    pub scope: Scope,
}

/// What to do after looking at the winners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Commit after them.
    Clear,
    /// Read the table again and plan the bin anew.
    Replan {
        /// The commit that forces it.
        version: u64,
    },
    /// Give up.
    Abort {
        /// The commit that forces it.
        version: u64,
        /// What it did, fitting after "version 7 of another writer".
        what: String,
    },
}

/// Judges the winners, oldest first. An abort outweighs a replan.
#[must_use]
pub fn judge(intent: &Intent, winners: &[Commit]) -> Verdict {
    let mut verdict = Verdict::Clear;
    for commit in winners {
        for action in &commit.actions {
            match judge_action(intent, action, commit.version) {
                Verdict::Clear => {}
                replan @ Verdict::Replan { .. } => {
                    if verdict == Verdict::Clear {
                        verdict = replan;
                    }
                }
                abort @ Verdict::Abort { .. } => return abort,
            }
        }
    }
    verdict
}

fn judge_action(intent: &Intent, action: &Action, version: u64) -> Verdict {
    let abort = |what: &str| Verdict::Abort { version, what: what.to_owned() };
    match action {
        Action::Protocol(_) => abort("changed the table's protocol"),
        Action::Metadata(_) => abort("changed the table's metadata"),
        Action::DomainMetadata(domain) if domain.domain == DOMAIN => {
            abort("changed the clustering columns")
        }
        Action::DomainMetadata(domain) if domain.domain == cuts::DOMAIN => {
            abort("changed the cuts of the clustering columns")
        }
        Action::Remove(remove) if is_input(intent, &remove.path) => Verdict::Replan { version },
        Action::Add(add) if is_input(intent, &add.path) => {
            if intent.inputs.contains(&add.key()) && !add.data_change {
                Verdict::Clear
            } else {
                Verdict::Replan { version }
            }
        }
        Action::Add(add) if add.data_change && intent.scope == Scope::WholeTable => {
            Verdict::Replan { version }
        }
        Action::Remove(remove) if remove.data_change && intent.scope == Scope::WholeTable => {
            Verdict::Replan { version }
        }
        Action::Other(name, _) if name != "cdc" => {
            abort(&format!("wrote an action this engine does not know (`{name}`)"))
        }
        Action::Add(_)
        | Action::Remove(_)
        | Action::DomainMetadata(_)
        | Action::CommitInfo(_)
        | Action::Transaction(_)
        | Action::Other(..) => Verdict::Clear,
    }
}

fn is_input(intent: &Intent, path: &str) -> bool {
    let from = (path.to_owned(), None);
    intent.inputs.range(from..).next().is_some_and(|(first, _)| first == path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Intent, Scope, Verdict, judge};
    use crate::{
        action::{Action, AddFile, DeletionVector, DomainMetadata, Protocol},
        lake::Commit,
        testing::plain_file,
    };

    fn add(file: &AddFile, data_change: bool) -> Action {
        Action::Add(Box::new(AddFile { data_change, ..file.clone() }))
    }

    fn remove(file: &AddFile, data_change: bool) -> Action {
        Action::Remove(Box::new(file.to_remove(1, data_change)))
    }

    fn with_vector(file: &AddFile) -> AddFile {
        let deletion_vector = Some(DeletionVector {
            storage_type: "u".into(),
            path_or_inline_dv: "x".into(),
            offset: None,
            size_in_bytes: 1,
            cardinality: 1,
        });
        AddFile { deletion_vector, ..file.clone() }
    }

    /// Every action a winner may hold, against both scopes.
    #[test]
    fn every_pair_of_operations_has_its_verdict() {
        let ours = plain_file("ours", 1);
        let other = plain_file("other", 1);
        let domain = |name: &str| {
            Action::DomainMetadata(DomainMetadata {
                domain: name.into(),
                configuration: "{}".into(),
                removed: false,
            })
        };
        let protocol = Action::Protocol(Protocol {
            min_reader_version: 1,
            min_writer_version: 7,
            reader_features: None,
            writer_features: Some(vec![]),
        });
        let vectored = with_vector(&ours);
        let table: Vec<(&str, Vec<Action>, &str, &str)> = vec![
            ("append", vec![add(&other, true)], "clear", "replan"),
            (
                "rewrite elsewhere",
                vec![remove(&other, false), add(&other, false)],
                "clear",
                "clear",
            ),
            ("delete elsewhere", vec![remove(&other, true)], "clear", "replan"),
            ("optimize of our input", vec![remove(&ours, false)], "replan", "replan"),
            ("delete of our input", vec![remove(&ours, true)], "replan", "replan"),
            (
                "new deletion vector",
                vec![remove(&ours, true), add(&vectored, true)],
                "replan",
                "replan",
            ),
            ("deletion vector, add only", vec![add(&vectored, true)], "replan", "replan"),
            ("statistics of our input", vec![add(&ours, false)], "clear", "clear"),
            ("protocol", vec![protocol], "abort", "abort"),
            ("metadata", vec![Action::Metadata(json!({}))], "abort", "abort"),
            ("clustering columns", vec![domain("delta.clustering")], "abort", "abort"),
            ("cuts", vec![domain("lakebed.layout")], "abort", "abort"),
            ("other domain", vec![domain("lakebed.cuts")], "clear", "clear"),
            ("transaction id", vec![Action::Transaction(json!({}))], "clear", "clear"),
            ("commit info", vec![Action::CommitInfo(json!({}))], "clear", "clear"),
            ("change data", vec![Action::Other("cdc".into(), json!({}))], "clear", "clear"),
            ("unknown", vec![Action::Other("new".into(), json!({}))], "abort", "abort"),
            (
                "replan, then abort",
                vec![remove(&ours, true), domain("delta.clustering")],
                "abort",
                "abort",
            ),
        ];
        for (name, actions, rearrange, whole_table) in table {
            for (scope, expected) in
                [(Scope::Rearrange, rearrange), (Scope::WholeTable, whole_table)]
            {
                let intent = Intent { inputs: [ours.key()].into(), scope };
                let verdict = judge(&intent, &[Commit { version: 7, actions: actions.clone() }]);
                let got = match verdict {
                    Verdict::Clear => "clear",
                    Verdict::Replan { version: 7 } => "replan",
                    Verdict::Abort { version: 7, .. } => "abort",
                    _ => "wrong version",
                };
                assert_eq!(got, expected, "{name} against {scope:?}");
            }
        }
    }

    #[test]
    fn an_input_with_a_vector_is_found_by_its_path() {
        let vectored = with_vector(&plain_file("ours", 1));
        let intent = Intent { inputs: [vectored.key()].into(), scope: Scope::Rearrange };
        let winner = Commit { version: 2, actions: vec![remove(&vectored, true)] };
        assert_eq!(judge(&intent, &[winner]), Verdict::Replan { version: 2 });
    }
}
