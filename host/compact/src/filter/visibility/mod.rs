//! Visibility: rows that somebody may not see are deleted, for everybody.
//!
//! 1. A row's label is an access expression ([`expression`]); who looks is given as authorizations, or
//!    several sets of them, each of which must see the row.
//! 2. An empty label is visible to all, by the grammar. A null is no label: what happens to its row is
//!    said by [`NullRule`].
//! 3. A label that is no access expression ends the job, unless its rows are to be dropped; they are
//!    counted apart then.
//! 4. Each distinct label is read once, not once per row.

mod expression;

use std::{
    collections::BTreeSet,
    slice,
    sync::{Mutex, PoisonError},
};

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, BooleanBuilder, GenericByteArray},
    compute::cast,
    datatypes::{BinaryType, ByteArrayType, DataType, Utf8Type},
    record_batch::RecordBatch,
};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

pub use expression::ExpressionError;

use super::{RowFilter, VISIBILITY};
use crate::{CompactError, NullRule};

/// Labels that are remembered from batch to batch; with more, they are read again.
const LABELS_MAX: usize = 1 << 14;

/// What happens to a row whose label is no access expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InvalidRule {
    /// The job ends without a commit.
    Fail,
    /// The row is dropped and counted apart.
    Drop,
}

/// Drops rows that somebody may not see.
#[derive(Debug)]
pub struct Visibility {
    column: String,
    authorizations: Vec<BTreeSet<String>>,
    invalid: InvalidRule,
    nulls: NullRule,
    /// What was found of the labels seen so far: seen, not seen, or no expression.
    known: Mutex<HashMap<Box<[u8]>, Option<bool>, FixedState>>,
}

impl Visibility {
    /// Builds the filter; a row stays if every set of authorizations sees it.
    #[must_use]
    pub fn new(
        column: String,
        authorizations: &[Vec<String>],
        invalid: InvalidRule,
        nulls: NullRule,
    ) -> Self {
        let authorizations =
            authorizations.iter().map(|set| set.iter().cloned().collect()).collect();
        let known = Mutex::new(HashMap::with_hasher(FixedState::default()));
        Self { column, authorizations, invalid, nulls, known }
    }

    /// Tells whether a column of this type holds labels.
    #[must_use]
    pub const fn accepts(data_type: &DataType) -> bool {
        matches!(
            data_type,
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
        )
    }

    /// Returns the first authorization that nobody can have, and what is wrong with it.
    #[must_use]
    pub fn refused_authorization(authorizations: &[Vec<String>]) -> Option<(&str, &'static str)> {
        authorizations
            .iter()
            .flatten()
            .find_map(|one| Some((one.as_str(), expression::authorization_fault(one)?)))
    }

    /// Judges each label; null where there is none, or none that can be read.
    fn judge<T: ByteArrayType>(
        &self,
        labels: &GenericByteArray<T>,
    ) -> Result<BooleanArray, CompactError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > LABELS_MAX {
            known.clear();
        }
        let mut answers = BooleanBuilder::with_capacity(labels.len());
        // Rows beside each other often have the same label.
        let mut last: Option<(&[u8], Option<bool>)> = None;
        for label in labels {
            let Some(label) = label else {
                answers.append_option((self.nulls == NullRule::Keep).then_some(true));
                continue;
            };
            let label: &[u8] = label.as_ref();
            let answer = match last {
                Some((before, answer)) if before == label => answer,
                _ => match known.get(label) {
                    Some(answer) => *answer,
                    None => {
                        let answer = self.read(label)?;
                        known.insert(label.into(), answer);
                        answer
                    }
                },
            };
            last = Some((label, answer));
            answers.append_option(answer);
        }
        Ok(answers.finish())
    }

    fn read(&self, label: &[u8]) -> Result<Option<bool>, CompactError> {
        let visible = std::str::from_utf8(label)
            .map_err(|error| ExpressionError {
                position: label[..error.valid_up_to()].len(),
                reason: "bytes that are no UTF-8".to_owned(),
            })
            .and_then(|label| {
                // Without any set the label is read all the same.
                let nobody = BTreeSet::new();
                let is_valid = expression::is_visible(label, &nobody).map(|_| true);
                self.authorizations.iter().try_fold(is_valid?, |visible, set| {
                    Ok(visible & expression::is_visible(label, set)?)
                })
            });
        match (visible, self.invalid) {
            (Ok(visible), _) => Ok(Some(visible)),
            (Err(_), InvalidRule::Drop) => Ok(None),
            (Err(source), InvalidRule::Fail) => Err(CompactError::Label {
                column: self.column.clone(),
                label: String::from_utf8_lossy(label).chars().take(LABEL_SHOWN).collect(),
                source,
            }),
        }
    }
}

/// Characters of a label that an error shows.
const LABEL_SHOWN: usize = 80;

impl RowFilter for Visibility {
    fn name(&self) -> &str {
        VISIBILITY
    }

    fn columns(&self) -> &[String] {
        slice::from_ref(&self.column)
    }

    fn keep(&self, batch: &RecordBatch) -> Result<BooleanArray, CompactError> {
        let labels = batch.column(0);
        let as_type = |data_type: &DataType| -> Result<ArrayRef, CompactError> {
            cast(labels, data_type).map_err(CompactError::arrow("read labels"))
        };
        match labels.data_type() {
            DataType::Utf8 => self.judge::<Utf8Type>(labels.as_bytes()),
            DataType::Binary => self.judge::<BinaryType>(labels.as_bytes()),
            DataType::LargeUtf8 | DataType::Utf8View => {
                self.judge::<Utf8Type>(as_type(&DataType::Utf8)?.as_bytes())
            }
            _ => self.judge::<BinaryType>(as_type(&DataType::Binary)?.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BinaryArray, StringViewArray};
    use serde_json::Value;

    use super::{InvalidRule, Visibility};
    use crate::{
        NullRule, RowFilter,
        testing::{batch, full_text, texts},
    };

    const KEEP: Option<bool> = Some(true);
    const DROP: Option<bool> = Some(false);

    fn visibility(sets: &[&[&str]], invalid: InvalidRule, nulls: NullRule) -> Visibility {
        let sets: Vec<Vec<String>> =
            sets.iter().map(|set| set.iter().map(|one| (*one).to_owned()).collect()).collect();
        Visibility::new("v".to_owned(), &sets, invalid, nulls)
    }

    #[track_caller]
    fn check(filter: &Visibility, labels: ArrayRef, expected: &[Option<bool>]) {
        let answer = filter.keep(&batch(vec![("v", labels)])).unwrap();
        assert_eq!(answer.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn empty_labels_are_seen_by_all_and_nulls_by_rule() {
        let labels = || texts([Some(""), None, Some("vis1&vis2"), Some("vis1")]);
        let filter = |set: &[&str], nulls| visibility(&[set], InvalidRule::Fail, nulls);
        check(&filter(&[], NullRule::Drop), labels(), &[KEEP, None, DROP, DROP]);
        check(&filter(&["vis1"], NullRule::Keep), labels(), &[KEEP, KEEP, DROP, KEEP]);
        check(&filter(&["vis1", "vis2"], NullRule::Drop), labels(), &[KEEP, None, KEEP, KEEP]);
    }

    #[test]
    fn labels_of_every_text_type_are_judged() {
        let filter = visibility(&[&["a"]], InvalidRule::Drop, NullRule::Drop);
        check(&filter, texts(["a", "b", "a"]), &[KEEP, DROP, KEEP]);
        check(&filter, Arc::new(StringViewArray::from(vec!["a", "b"])), &[KEEP, DROP]);
        check(&filter, Arc::new(BinaryArray::from(vec![&b"a"[..], b"\xff"])), &[KEEP, None]);
    }

    #[test]
    fn a_label_that_cannot_be_read_ends_the_job_or_drops_its_row() {
        let labels = || texts(["a", "a|(b"]);
        check(&visibility(&[&["a"]], InvalidRule::Drop, NullRule::Keep), labels(), &[KEEP, None]);
        let filter = visibility(&[&["a"]], InvalidRule::Fail, NullRule::Keep);
        let error = filter.keep(&batch(vec![("v", labels())])).unwrap_err();
        insta::assert_snapshot!(full_text(&error), @r#"
        label "a|(b" of column "v" is no access expression
        caused by: expected `)`, found the end at position 4
        "#);
    }

    /// Some of the cases of apache/accumulo-access, commit 8f96c839 (Apache-2.0).
    #[test]
    fn every_case_of_accumulo_access_is_judged_as_there() {
        let text = include_str!("../../../../../tests/data/visibility/accumulo-access.json");
        let suites: Vec<Value> = serde_json::from_str(text).unwrap();
        let strings = |value: &Value| -> Vec<String> {
            value.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
        };
        let mut cases = 0;
        for suite in &suites {
            let sets: Vec<Vec<String>> =
                suite["auths"].as_array().unwrap().iter().map(strings).collect();
            let filter = Visibility::new("v".to_owned(), &sets, InvalidRule::Drop, NullRule::Drop);
            for test in suite["tests"].as_array().unwrap() {
                let expected = match test["expectedResult"].as_str().unwrap() {
                    "ACCESSIBLE" => KEEP,
                    "INACCESSIBLE" => DROP,
                    "ERROR" => None,
                    other => panic!("{other}"),
                };
                for expression in strings(&test["expressions"]) {
                    let answer = filter.read(expression.as_bytes()).unwrap();
                    assert_eq!(answer, expected, "{}: {expression}", suite["description"]);
                    cases += 1;
                }
            }
        }
        assert_eq!(cases, 193);
    }
}
