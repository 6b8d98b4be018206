//! Whose column a name is.

use datafusion_sql::sqlparser::ast::{Expr, Ident};

use super::{
    Walk,
    children::{Child, children},
    name::key,
    relation::{Relation, Value},
};
use crate::lineage::{origin::Origin, sql::Dialect};

/// What one frame says about a name.
enum Answer {
    /// A relation is known to have it, or has to.
    Found(Value),
    /// It is the only relation of unknown schema in the frame: index of relation and scan.
    May(usize, usize),
    /// Several relations may have it.
    Several(String),
    /// Computed columns of unknown names are all there is.
    Computed,
    /// None can have it.
    No,
}

impl<'q> Walk<'q, '_> {
    /// Resolves a column's name.
    pub(super) fn column(&mut self, parts: &'q [Ident]) -> Value {
        let names: Vec<String> = parts.iter().map(key).collect();
        let [first, ..] = &names[..] else { return Value::default() };
        if self.parameters.contains(first) {
            return Value::default();
        }
        if let [_, ..] = &names[1..]
            && let Some(value) = self.qualified(&names)
        {
            return value;
        }
        let is_path = names.len() > 1;
        match self.bare(first, parts, is_path) {
            Some(value) if is_path => {
                Value { origin: value.origin.field(&names[1..].join(".")), ..value }
            }
            Some(value) => value,
            None => Value::default(),
        }
    }

    /// Resolves a name whose first parts are a relation; the rest is a column and a path in it.
    fn qualified(&mut self, names: &[String]) -> Option<Value> {
        for depth in (0..self.frames.len()).rev() {
            if self.frames[depth].hidden {
                continue;
            }
            for split in (1..names.len()).rev() {
                let (qualifier, rest) = names.split_at(split);
                let found = self.frames[depth]
                    .relations
                    .iter()
                    .position(|relation| relation.visible && relation.answers_to(qualifier));
                // In its own `ON`, the side that a semi join drops is still there.
                if let Some(index) = found {
                    return Some(self.in_relation(depth, index, rest));
                }
            }
        }
        None
    }

    fn in_relation(&mut self, depth: usize, index: usize, rest: &[String]) -> Value {
        let Some((name, path)) = rest.split_first() else { return Value::default() };
        let place = (depth, index);
        let relation = &self.frames[depth].relations[index];
        let value = match relation.rows.get(name) {
            Some(output) => {
                let value = output.value.clone();
                self.scans.read(&value.origin);
                Value { place: Some(place), ..value }
            }
            None => match relation.rows.open[..] {
                [scan] => Value::of(self.grow(scan, name), place),
                _ => match relation.rows.base {
                    // The catalog's columns may be those of another version.
                    Some(scan) => Value::of(self.grow(scan, name), place),
                    None => Value { place: Some(place), ..Value::default() },
                },
            },
        };
        if path.is_empty() {
            return value;
        }
        Value { origin: value.origin.field(&path.join(".")), ..value }
    }

    /// Resolves a name without qualifier.
    fn bare(&mut self, name: &str, at: &'q [Ident], is_path: bool) -> Option<Value> {
        let mut blocked: Option<String> = None;
        for depth in (0..self.frames.len()).rev() {
            if self.frames[depth].hidden {
                continue;
            }
            let answer = self.ask(depth, name);
            // An alias hides a column that is only guessed, unless it is made from that very name.
            if matches!(answer, Answer::May(..))
                && self.frames[depth].aliases.get(name).is_some_and(|expr| !mentions(expr, name))
                && let Some(value) = self.alias(depth, name, at)
            {
                return Some(value);
            }
            match answer {
                Answer::Found(value) => return Some(value),
                Answer::Computed if blocked.is_none() => return Some(Value::default()),
                Answer::May(index, scan) if blocked.is_none() => {
                    let outer = self.outer_knows(depth, name);
                    let sure = match outer {
                        Outer::No => true,
                        Outer::Knows => false,
                        Outer::May => !self.both_bare,
                    };
                    if sure && !(is_path && self.frames[depth].relations.len() > 1) {
                        return Some(Value::of(self.grow(scan, name), (depth, index)));
                    }
                    let table = self.scans.name(scan).to_owned();
                    blocked = Some(format!("it could belong to {table} or to an outer query"));
                    if matches!(outer, Outer::Knows) {
                        blocked = None;
                    }
                }
                Answer::Several(tables) => {
                    blocked.get_or_insert(format!(
                        "it could belong to any of {tables}, whose schemas are unknown"
                    ));
                }
                Answer::May(..) | Answer::Computed | Answer::No => {}
            }
            if let Some(value) = self.alias(depth, name, at) {
                return Some(value);
            }
        }
        let reason = blocked.unwrap_or_else(|| "no table in reach has it".to_owned());
        self.unresolved.insert(name.to_owned(), reason);
        self.unresolved_at.extend(at.first().map(|name| name.span.start));
        None
    }

    fn ask(&mut self, depth: usize, name: &str) -> Answer {
        if let Some(value) = self.frames[depth].merged.get(name) {
            return Answer::Found(value.clone());
        }
        let relations = &self.frames[depth].relations;
        let visible: Vec<usize> =
            (0..relations.len()).filter(|index| relations[*index].visible).collect();
        let known: Vec<usize> =
            visible.iter().copied().filter(|index| self.knows(&relations[*index], name)).collect();
        if let [only] = known[..] {
            let rest = [name.to_owned()];
            return Answer::Found(self.in_relation(depth, only, &rest));
        }
        let listed = |indexes: &[usize]| {
            let names = indexes.iter().map(|index| relations[*index].names.join("."));
            names.collect::<Vec<_>>().join(", ")
        };
        if !known.is_empty() {
            return Answer::Several(listed(&known));
        }
        // A table that stands here twice cannot have it: the name would not be unique.
        let twice = |index: &usize| {
            let table = |index: usize| match relations[index].rows.open[..] {
                [scan] => Some(self.scans.name(scan)),
                _ => None,
            };
            visible.iter().any(|other| {
                other != index && table(*index).is_some() && table(*other) == table(*index)
            })
        };
        let open: Vec<usize> = visible
            .iter()
            .copied()
            .filter(|index| !relations[*index].rows.open.is_empty() && !twice(index))
            .collect();
        let vague = visible.iter().any(|index| relations[*index].rows.vague);
        match open[..] {
            [] if vague => Answer::Computed,
            [] => Answer::No,
            [only] if !vague => match relations[only].rows.open[..] {
                [scan] => Answer::May(only, scan),
                _ => Answer::Several(listed(&open)),
            },
            _ => Answer::Several(listed(&open)),
        }
    }

    /// Tells whether a relation has a column for certain.
    fn knows(&self, relation: &Relation, name: &str) -> bool {
        relation.rows.get(name).is_some()
            || matches!(relation.rows.open[..], [scan] if self.mentioned
                .get(self.scans.name(scan))
                .is_some_and(|columns| columns.contains(name)))
    }

    /// Says what the queries around a frame know about a name.
    fn outer_knows(&self, depth: usize, name: &str) -> Outer {
        let mut outer = Outer::No;
        for frame in self.frames[..depth].iter().filter(|frame| !frame.hidden) {
            for relation in frame.relations.iter().filter(|relation| relation.visible) {
                if self.knows(relation, name) {
                    return Outer::Knows;
                }
                if !relation.rows.open.is_empty() {
                    outer = Outer::May;
                }
            }
        }
        outer
    }

    /// Resolves a name as an alias of the select list, where the dialect lets it.
    fn alias(&mut self, depth: usize, name: &str, at: &'q [Ident]) -> Option<Value> {
        let reuses = matches!(
            self.dialect,
            Dialect::Snowflake
                | Dialect::DuckDb
                | Dialect::Redshift
                | Dialect::Databricks
                | Dialect::Spark
        );
        let frame = &self.frames[depth];
        if !reuses && !frame.aliases_count {
            return None;
        }
        let expr = *frame.aliases.get(name)?;
        let id = format!("{depth}.{name}");
        if self.open_aliases.contains(&id) {
            return None;
        }
        if let ([name], false) = (at, frame.aliases_count) {
            self.aliased.insert(name.span.start, expr.clone());
        }
        self.open_aliases.push(id);
        // The alias is read in its own query.
        let inner = self.frames.split_off(depth + 1);
        let value = self.value(expr);
        self.frames.extend(inner);
        self.open_aliases.pop();
        Some(value)
    }

    /// Adds a column to a table that has to have it.
    pub(super) fn grow(&mut self, scan: usize, name: &str) -> Origin {
        let guesses = &self.survey.guesses;
        let kind = match guesses.get(name) {
            None if name.chars().any(char::is_uppercase) => guesses.get(&name.to_lowercase()),
            known => known,
        };
        let kind = kind.copied();
        self.scans.grow(scan, name, kind)
    }
}

fn mentions(expr: &Expr, name: &str) -> bool {
    match expr {
        Expr::Identifier(found) => key(found) == name,
        Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|found| key(found) == name),
        other => children(other)
            .into_iter()
            .any(|child| matches!(child, Child::Expr(inner) if mentions(inner, name))),
    }
}

enum Outer {
    /// No outer query can have the name.
    No,
    /// A table of unknown schema there may.
    May,
    /// A table there is known to.
    Knows,
}
