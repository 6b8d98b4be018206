//! From key pairs to edges.

use lakebed_model::{JoinKind, JoinStrategy};

use super::{
    Walk,
    relation::{Pair, Value},
};
use crate::lineage::{
    edge::{JoinTraits, edges},
    origin::Origin,
    sql::ComputedKey,
};

/// One side of a key: the scan, and which of its columns where one origin has several (of the
/// branches of a union, or the columns that an unpivot stacks).
type Side = (usize, usize);

/// The pairs that are one edge.
struct Group {
    sides: (Side, Side),
    pairs: Vec<(Origin, Origin)>,
    hint: Option<JoinStrategy>,
}

impl Walk<'_, '_> {
    /// Turns the pairs of one join into edges: one per two scans, so that two roles of a table are
    /// never taken for a composite key.
    pub(super) fn emit(&mut self, pairs: Vec<Pair>, kind: JoinKind) {
        let mut groups: Vec<Group> = Vec::new();
        for Pair { left, right, hint } in pairs {
            if left.computed.is_some() || right.computed.is_some() {
                self.add_computed_key(&left, &right);
                continue;
            }
            let whole = left.origin.single().zip(right.origin.single());
            if whole.is_some_and(|(left, right)| left.scan == right.scan) {
                continue;
            }
            self.scans.imply(&left.origin, &right.origin, kind);
            for (left_side, left) in sides(&left.origin) {
                for (right_side, right) in sides(&right.origin) {
                    put(&mut groups, (left_side, right_side), (left.clone(), right), hint);
                }
            }
        }
        for Group { pairs, hint, .. } in groups {
            let traits = JoinTraits { kind, strategy: None, confidence: 1.0 };
            let edges = edges(&pairs, traits);
            self.joins.extend(edges.into_iter().map(|mut join| {
                join.hint = hint;
                join
            }));
        }
    }

    fn add_computed_key(&mut self, left: &Value, right: &Value) {
        let side = |value: &Value| match &value.computed {
            Some((function, origin)) => Some((Some(function.clone()), first_column(origin)?)),
            None => Some((None, first_column(&value.origin)?)),
        };
        let (Some((left_function, left)), Some((right_function, right))) =
            (side(left), side(right))
        else {
            return;
        };
        let key = ComputedKey { left, left_function, right, right_function };
        if !self.computed.contains(&key) {
            self.computed.push(key);
        }
    }
}

/// Adds a pair to the group between the same sides, whichever way round.
fn put(
    groups: &mut Vec<Group>,
    sides: (Side, Side),
    pair: (Origin, Origin),
    hint: Option<JoinStrategy>,
) {
    let swapped = (sides.1, sides.0);
    match groups.iter_mut().find(|group| group.sides == sides || group.sides == swapped) {
        Some(group) => {
            let is_same = group.sides == sides;
            group.pairs.push(if is_same { pair } else { (pair.1, pair.0) });
            group.hint = group.hint.or(hint);
        }
        None => groups.push(Group { sides, pairs: vec![pair], hint }),
    }
}

/// Lists the base columns of a key.
fn sides(origin: &Origin) -> Vec<(Side, Origin)> {
    let mut seen: Vec<usize> = Vec::new();
    let scans = origin.sources().iter().map(|source| source.scan);
    scans
        .zip(origin.each())
        .map(|(scan, origin)| {
            let nth = seen.iter().filter(|known| **known == scan).count();
            seen.push(scan);
            ((scan, nth), origin)
        })
        .collect()
}

fn first_column(origin: &Origin) -> Option<lakebed_model::ColumnRef> {
    origin.sources().first().map(|source| source.column.clone())
}
