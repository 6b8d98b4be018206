//! What names can refer to.

use std::{collections::BTreeMap, rc::Rc};

use datafusion_sql::sqlparser::ast::{Expr, Query, TableAlias};
use lakebed_model::JoinStrategy;

use crate::lineage::origin::Origin;

/// A value: the base columns it passes on, or the one it is computed from.
#[derive(Debug, Clone, Default)]
pub(super) struct Value {
    pub(super) origin: Origin,
    /// The function and the base column, where a value is computed from a single one.
    pub(super) computed: Option<(String, Origin)>,
    /// Where the name was found: index of the frame, index of the relation.
    pub(super) place: Option<(usize, usize)>,
}

impl Value {
    pub(super) fn of(origin: Origin, place: (usize, usize)) -> Self {
        Self { origin, computed: None, place: Some(place) }
    }
}

/// A column that a query gives.
#[derive(Debug, Clone)]
pub(super) struct Output {
    pub(super) name: String,
    pub(super) value: Value,
}

/// The columns that a relation gives.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    pub(super) outputs: Vec<Output>,
    /// Scans of unknown schema whose columns are passed on whole.
    pub(super) open: Vec<usize>,
    /// Whether there may be more columns, all computed.
    pub(super) vague: bool,
    /// The scan, where this is a base table as it is.
    pub(super) base: Option<usize>,
}

impl Rows {
    /// Columns of these names, all computed.
    pub(super) fn computed(names: impl IntoIterator<Item = String>) -> Self {
        let outputs =
            names.into_iter().map(|name| Output { name, value: Value::default() }).collect();
        Self { outputs, ..Self::default() }
    }

    /// Columns of unknown names, all computed.
    pub(super) const fn vague() -> Self {
        Self { outputs: Vec::new(), open: Vec::new(), vague: true, base: None }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Output> {
        self.outputs.iter().find(|output| output.name == name)
    }

    /// Gives columns new names by position.
    pub(super) fn renamed(mut self, names: &[String]) -> Self {
        for (output, name) in self.outputs.iter_mut().zip(names) {
            output.name.clone_from(name);
        }
        if names.len() > self.outputs.len() {
            // Which column of an open table stands at a position is not known.
            let missing = &names[self.outputs.len()..];
            self.outputs.extend(Self::computed(missing.iter().cloned()).outputs);
            self.open.clear();
        }
        self
    }
}

/// One entry of a `FROM` clause.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    /// The qualifier's parts: the alias, or the table's whole name.
    pub(super) names: Vec<String>,
    pub(super) rows: Rows,
    /// Whether its columns can be named outside its own `ON`.
    pub(super) visible: bool,
    /// How a hint asks to join it.
    pub(super) hint: Option<JoinStrategy>,
}

impl Relation {
    pub(super) fn answers_to(&self, qualifier: &[String]) -> bool {
        !qualifier.is_empty() && self.names.ends_with(qualifier)
    }
}

/// A `FROM` clause and what else its query lets names refer to.
#[derive(Debug, Default)]
pub(super) struct Frame<'q> {
    pub(super) relations: Vec<Relation>,
    /// Columns that `USING` and `NATURAL` made one.
    pub(super) merged: BTreeMap<String, Value>,
    /// The select list's aliases.
    pub(super) aliases: BTreeMap<String, &'q Expr>,
    /// Whether aliases may be used here whatever the dialect: in `GROUP BY`, `ORDER BY` and kin.
    pub(super) aliases_count: bool,
    /// Whether what is being read must not see this frame.
    pub(super) hidden: bool,
    /// Key pairs of inner joins, however they are spelled.
    pub(super) pairs: Vec<Pair>,
    /// How hints ask to join relations, by name.
    pub(super) hints: Vec<(String, JoinStrategy)>,
}

/// Two values that must be equal.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) left: Value,
    pub(super) right: Value,
    pub(super) hint: Option<JoinStrategy>,
}

/// A common table's definition.
#[derive(Debug)]
pub(super) struct Definition<'q> {
    pub(super) name: String,
    pub(super) alias: &'q TableAlias,
    pub(super) query: &'q Query,
    pub(super) recursive: bool,
    /// What a recursive definition gives while it is being read.
    pub(super) working: Option<Rows>,
    outer: Env<'q>,
}

/// The common tables in reach, innermost first.
#[derive(Debug, Clone, Default)]
pub(super) struct Env<'q>(Option<Rc<Definition<'q>>>);

impl<'q> Env<'q> {
    /// Adds a definition.
    pub(super) fn with(
        &self,
        name: String,
        alias: &'q TableAlias,
        query: &'q Query,
        recursive: bool,
    ) -> Self {
        let outer = self.clone();
        let definition = Definition { name, alias, query, recursive, working: None, outer };
        Self(Some(Rc::new(definition)))
    }

    /// Adds what a recursive definition gives, to be found in its own body.
    pub(super) fn with_working(&self, of: &Definition<'q>, rows: Rows) -> Self {
        Self(Some(Rc::new(Definition {
            name: of.name.clone(),
            alias: of.alias,
            query: of.query,
            recursive: false,
            working: Some(rows),
            outer: self.clone(),
        })))
    }

    /// Finds a definition and what its body can see.
    pub(super) fn find(&self, name: &str) -> Option<(Rc<Definition<'q>>, Self)> {
        let mut at = self;
        while let Some(definition) = &at.0 {
            if definition.name == name {
                return Some((Rc::clone(definition), definition.outer.clone()));
            }
            at = &definition.outer;
        }
        None
    }
}
