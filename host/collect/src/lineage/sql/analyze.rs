//! One query from its syntax tree to its lineage.

use std::{collections::BTreeSet, ops::ControlFlow};

use datafusion_sql::sqlparser::ast::{Expr, Query, Select, SelectItem, VisitMut as _, VisitorMut};
use lakebed_model::JoinUse;

use super::{
    Dialect, LineageError, LineageTier, SqlLineage, resolve,
    rewrite::unknown_value,
    scope::{self, Hints, Walked},
    stubs,
};
use crate::Catalog;

/// Statements with more tokens are read by their scopes alone: a planner's rules are quadratic here
/// and there.
const MAX_PLANNED_TOKENS: usize = 60_000;

/// A query that was read in both ways.
pub(super) struct Analyzed {
    pub(super) lineage: SqlLineage,
    pub(super) walked: Walked,
}

/// Reads a query.
pub(super) fn analyze(
    query: &mut Query,
    dialect: Dialect,
    catalog: &dyn Catalog,
    hints: &Hints,
    tokens: usize,
) -> Analyzed {
    let walked = scope::walk(query, dialect, catalog, hints);
    if !walked.unresolved_at.is_empty() || !walked.aliased.is_empty() {
        let _ = query.visit(&mut Blank { walked: &walked });
    }
    let planned = if tokens > MAX_PLANNED_TOKENS {
        Err(LineageError::Plan { message: "the statement is too long for the planner".to_owned() })
    } else {
        stubs::plan(query, catalog, &walked.needed).and_then(|planned| resolve::lineage(&planned))
    };
    let mut lineage = match planned {
        Ok(mut lineage) => {
            // The optimizer drops equalities that follow from others, and the planner does not
            // follow recursion and structs. Where the two differ the text's scopes are right.
            if !walked.cut && pairs(&lineage.joins) != pairs(&walked.joins) {
                tracing::debug!("the plan's edges differ from the scopes'");
                lineage.joins = weighted(&walked.joins, lineage.confidence);
            }
            keep_hints(&mut lineage.joins, &walked.joins);
            lineage.computed_keys.clone_from(&walked.computed);
            lineage
        }
        Err(error) => {
            tracing::debug!(%error, "not planned, read by its scopes");
            scoped(&walked, &error)
        }
    };
    lineage.losses.extend(losses(&walked));
    Analyzed { lineage, walked }
}

/// What could not be resolved, as reasons.
pub(super) fn losses(walked: &Walked) -> Vec<String> {
    let mut losses: Vec<String> = walked
        .unresolved
        .iter()
        .map(|(name, reason)| format!("resolve column `{name}`: {reason}"))
        .collect();
    if walked.cut {
        losses.push("read every use of a common table: there are too many".to_owned());
    }
    losses
}

fn scoped(walked: &Walked, refusal: &LineageError) -> SqlLineage {
    let tier = LineageTier::Scoped;
    let confidence = tier.confidence();
    SqlLineage {
        joins: weighted(&walked.joins, confidence),
        scans: walked.scans.clone(),
        computed_keys: walked.computed.clone(),
        losses: vec![refusal.to_string()],
        tier,
        confidence,
    }
}

fn weighted(joins: &[JoinUse], confidence: f64) -> Vec<JoinUse> {
    let joins = joins.iter().cloned();
    joins.map(|join| JoinUse { confidence: join.confidence * confidence, ..join }).collect()
}

/// The pairs of columns that joins equate.
fn pairs(joins: &[JoinUse]) -> BTreeSet<[(&str, &str); 2]> {
    let mut pairs = BTreeSet::new();
    for join in joins {
        for (left, right) in &join.pairs {
            let mut pair =
                [(join.left.as_str(), left.as_str()), (join.right.as_str(), right.as_str())];
            pair.sort_unstable();
            pairs.insert(pair);
        }
    }
    pairs
}

/// The planner does not know hints; the walk does.
fn keep_hints(planned: &mut [JoinUse], walked: &[JoinUse]) {
    for hinted in walked.iter().filter(|join| join.hint.is_some()) {
        let same = planned.iter_mut().find(|join| {
            join.hint.is_none()
                && join.left == hinted.left
                && join.right == hinted.right
                && join.pairs == hinted.pairs
        });
        if let Some(join) = same {
            join.hint = hinted.hint;
        }
    }
}

/// Puts unknown values in the place of names without a certain owner.
struct Blank<'w> {
    walked: &'w Walked,
}

impl Blank<'_> {
    fn value(&self, expr: &Expr) -> Option<Expr> {
        let (Expr::Identifier(_) | Expr::CompoundIdentifier(_)) = expr else { return None };
        let first = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.first(),
            _ => None,
        }?;
        let at = first.span.start;
        if let Some(value) = self.walked.aliased.get(&at) {
            return Some(Expr::Nested(Box::new(value.clone())));
        }
        let name = format!("__lakebed_unknown_{}", first.value.to_lowercase());
        self.walked.unresolved_at.contains(&at).then(|| unknown_value(&name))
    }
}

impl VisitorMut for Blank<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            let alias = match &*expr {
                Expr::Identifier(name) => Some(name.clone()),
                Expr::CompoundIdentifier(parts) => parts.last().cloned(),
                _ => None,
            };
            if let (Some(value), Some(alias)) = (self.value(expr), alias) {
                *item = SelectItem::ExprWithAlias { expr: value, alias };
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(value) = self.value(expr) {
            *expr = value;
        }
        ControlFlow::Continue(())
    }
}
