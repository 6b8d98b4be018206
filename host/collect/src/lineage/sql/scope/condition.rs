//! Conditions: which of their conjuncts are joins, and which are filters.

use std::ops::Range;

use datafusion_sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use lakebed_model::{JoinKind, JoinStrategy};

use super::{
    Walk,
    relation::{Pair, Value},
};

/// Branches of a disjunction beyond which no common part is looked for.
const MAX_BRANCHES: usize = 64;

/// The join whose `ON` a condition is.
#[derive(Debug, Clone)]
pub(super) struct On {
    /// Relations of the frame that stand on the left.
    pub(super) left: Range<usize>,
    /// Relations that the join brings.
    pub(super) right: Range<usize>,
    pub(super) kind: JoinKind,
}

impl On {
    /// Tells whether a condition on a relation keeps its rows from being read at all.
    pub(super) fn filters(&self, relation: usize) -> bool {
        match self.kind {
            JoinKind::Inner | JoinKind::LeftSemi => true,
            JoinKind::LeftOuter | JoinKind::LeftAnti => self.right.contains(&relation),
            JoinKind::RightOuter => self.left.contains(&relation),
            JoinKind::FullOuter | JoinKind::Existence => false,
        }
    }
}

impl<'q> Walk<'q, '_> {
    /// Reads a condition of `WHERE` or `HAVING`, or of the `ON` of a join.
    pub(super) fn condition(&mut self, condition: &'q Expr, on: Option<&On>) {
        let mut keys = Vec::new();
        for conjunct in conjuncts(condition) {
            self.conjunct(conjunct, on, &mut keys);
            for common in common_conjuncts(conjunct) {
                self.conjunct(common, on, &mut keys);
            }
        }
        if let Some(on) = on {
            self.emit(keys, on.kind);
        }
    }

    fn conjunct(&mut self, expr: &'q Expr, on: Option<&On>, keys: &mut Vec<Pair>) {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::Spaceship, right }
            | Expr::IsNotDistinctFrom(left, right) => self.equality(expr, left, right, on, keys),
            Expr::BinaryOp { left, op, right } if is_order(op) => {
                match (unnested(left), unnested(right)) {
                    (Expr::Subquery(query), other) | (other, Expr::Subquery(query)) => {
                        self.filter(other, on);
                        self.subquery(query, JoinKind::Inner, Vec::new());
                    }
                    _ => self.filter(expr, on),
                }
            }
            Expr::Exists { subquery, negated } => {
                self.subquery(subquery, semi_or_anti(*negated), Vec::new());
            }
            Expr::InSubquery { expr, subquery, negated } => {
                let keys = self.parts(expr);
                self.subquery(subquery, semi_or_anti(*negated), keys);
            }
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => {
                self.quantified(expr, left, right, JoinKind::LeftSemi, on);
            }
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => {
                self.quantified(expr, left, right, JoinKind::LeftAnti, on);
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => match unnested(inner) {
                Expr::Exists { subquery, negated } => {
                    self.subquery(subquery, semi_or_anti(!negated), Vec::new());
                }
                Expr::InSubquery { expr, subquery, negated } => {
                    let keys = self.parts(expr);
                    self.subquery(subquery, semi_or_anti(!negated), keys);
                }
                _ => self.filter(expr, on),
            },
            other => self.filter(other, on),
        }
    }

    fn quantified(
        &mut self,
        whole: &'q Expr,
        left: &'q Expr,
        right: &'q Expr,
        kind: JoinKind,
        on: Option<&On>,
    ) {
        match unnested(right) {
            Expr::Subquery(query) => {
                let keys = self.parts(left);
                self.subquery(query, kind, keys);
            }
            _ => self.filter(whole, on),
        }
    }

    /// Reads one value, or each of a tuple's.
    fn parts(&mut self, expr: &'q Expr) -> Vec<Value> {
        match unnested(expr) {
            Expr::Tuple(parts) => parts.iter().map(|part| self.value(part)).collect(),
            single => vec![self.value(single)],
        }
    }

    fn equality(
        &mut self,
        whole: &'q Expr,
        left: &'q Expr,
        right: &'q Expr,
        on: Option<&On>,
        keys: &mut Vec<Pair>,
    ) {
        match (unnested(left), unnested(right)) {
            (Expr::Tuple(left), Expr::Tuple(right)) if left.len() == right.len() => {
                for (left, right) in left.iter().zip(right) {
                    self.equality(whole, left, right, on, keys);
                }
            }
            (Expr::Subquery(query), other) | (other, Expr::Subquery(query)) => {
                self.filter(other, on);
                self.subquery(query, JoinKind::Inner, Vec::new());
            }
            (left, right) => {
                let is_bare = |expr| matches!(expr, &Expr::Identifier(_));
                self.both_bare = is_bare(left) && is_bare(right);
                let (a, b) = (self.value(left), self.value(right));
                let is_column =
                    |value: &Value| !value.origin.sources().is_empty() || value.computed.is_some();
                let is_filter = !is_column(&a) || !is_column(&b) || a.place == b.place;
                if is_filter {
                    self.filter(whole, on);
                }
                self.both_bare = false;
                if is_filter {
                    return;
                }
                let outer = [(left, JoinKind::RightOuter), (right, JoinKind::LeftOuter)]
                    .into_iter()
                    .find(|(side, _)| matches!(side, Expr::OuterJoin(_)));
                match outer {
                    Some((_, kind)) => {
                        self.emit(vec![Pair { left: a, right: b, hint: None }], kind);
                    }
                    None => self.pair(a, b, on, keys),
                }
            }
        }
    }

    /// Files an equality of two relations' columns where its join is known.
    fn pair(&mut self, a: Value, b: Value, on: Option<&On>, keys: &mut Vec<Pair>) {
        let (Some(at_a), Some(at_b)) = (a.place, b.place) else { return };
        let here = self.frames.len() - 1;
        let hint = self.hint_of(&a).or_else(|| self.hint_of(&b));
        let pair = |left, right| Pair { left, right, hint };
        match (at_a.0 == here, at_b.0 == here) {
            (true, true) => match on {
                Some(on) if on.kind != JoinKind::Inner => {
                    if on.left.contains(&at_a.1) && on.right.contains(&at_b.1) {
                        keys.push(pair(a, b));
                    } else if on.left.contains(&at_b.1) && on.right.contains(&at_a.1) {
                        keys.push(pair(b, a));
                    }
                }
                _ => {
                    let pair = pair(a, b);
                    self.current().pairs.push(pair);
                }
            },
            (true, false) => self.correlate(pair(b, a)),
            (false, true) => self.correlate(pair(a, b)),
            // Both belong to queries around this one, where it says nothing about rows here.
            (false, false) => {}
        }
    }

    /// How a hint asks to join the relation that a value comes from.
    pub(super) fn hint_of(&self, value: &Value) -> Option<JoinStrategy> {
        let (depth, relation) = value.place?;
        self.frames.get(depth)?.relations.get(relation)?.hint
    }

    fn correlate(&mut self, pair: Pair) {
        if let Some(pairs) = self.correlated.last_mut() {
            pairs.push(pair);
        }
    }
}

/// Splits at `AND`, through parentheses. Chains may be long, so without recursion.
pub(super) fn conjuncts(condition: &Expr) -> Vec<&Expr> {
    split(condition, &BinaryOperator::And)
}

/// Splits at `OR`, through parentheses.
pub(super) fn disjuncts(condition: &Expr) -> Vec<&Expr> {
    split(condition, &BinaryOperator::Or)
}

fn split<'q>(condition: &'q Expr, at: &BinaryOperator) -> Vec<&'q Expr> {
    let mut parts = Vec::new();
    let mut open = vec![condition];
    while let Some(expr) = open.pop() {
        match unnested(expr) {
            Expr::BinaryOp { left, op, right } if op == at => open.extend([&**right, &**left]),
            part => parts.push(part),
        }
    }
    parts
}

/// The conjuncts that every branch of a disjunction has hold for the whole.
pub(super) fn common_conjuncts(expr: &Expr) -> Vec<&Expr> {
    let branches = disjuncts(expr);
    let [first, rest @ ..] = &branches[..] else { return Vec::new() };
    if rest.is_empty() || rest.len() > MAX_BRANCHES {
        return Vec::new();
    }
    let rest: Vec<Vec<&Expr>> = rest.iter().map(|branch| conjuncts(branch)).collect();
    conjuncts(first)
        .into_iter()
        .filter(|part| rest.iter().all(|branch| branch.contains(part)))
        .collect()
}

/// Takes the parentheses off.
pub(super) fn unnested(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

const fn semi_or_anti(negated: bool) -> JoinKind {
    if negated { JoinKind::LeftAnti } else { JoinKind::LeftSemi }
}

const fn is_order(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
            | BinaryOperator::NotEq
    )
}
