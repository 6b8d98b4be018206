//! One query from its syntax tree to its lineage.

use std::{collections::BTreeSet, ops::ControlFlow};

use datafusion_sql::sqlparser::ast::{Expr, Query, Select, SelectItem, VisitMut as _, VisitorMut};
use lakebed_model::JoinUse;

use super::{
    Dialect, LineageError, LineageTier, SqlLineage,
    depth::Depth,
    resolve,
    rewrite::unknown_value,
    scope::{self, Hints, Survey, Walked},
    stubs,
};
use crate::Catalog;

/// Statements with more tokens are read by their scopes alone: a planner's rules are quadratic here
/// and there.
pub(super) const MAX_PLANNED_TOKENS: usize = 20_000;

/// Levels beyond which the same holds: the planner writes out every expression at every level.
const MAX_PLANNED_LEVELS: usize = 60;

/// Operators and keywords beyond which the same holds.
const MAX_PLANNED_LINKS: usize = 6_000;

/// Columns of unknown tables beyond which the same holds.
const MAX_PLANNED_STUBS: usize = 2_000;

/// What the planner says of a statement: that every name and function is one, and of which kind, or
/// why it refuses.
pub(super) type Verdict = Result<LineageTier, LineageError>;

/// A query that was read in both ways.
pub(super) struct Analyzed {
    pub(super) lineage: SqlLineage,
    /// The planner's verdict, where it has no part in the lineage but this.
    pub(super) verdict: Option<Verdict>,
}

/// Reads a query.
pub(super) fn analyze(
    query: &mut Query,
    dialect: Dialect,
    catalog: &dyn Catalog,
    hints: &Hints,
    depth: Depth,
) -> Analyzed {
    let survey = Survey::of(query);
    let walked = scope::walk(query, dialect, catalog, hints, &survey);
    if !walked.unresolved_at.is_empty() || !walked.aliased.is_empty() {
        let _ = query.visit(&mut Blank { walked: &walked });
    }
    let stubs: usize = walked.needed.values().map(Vec::len).sum();
    let is_long = depth.tokens > MAX_PLANNED_TOKENS
        || depth.links > MAX_PLANNED_LINKS
        || stubs > MAX_PLANNED_STUBS;
    let is_settled = !walked.open_constants && !walked.cut;
    let planned = if is_long || depth.levels > MAX_PLANNED_LEVELS {
        Err(LineageError::Plan {
            message: "the statement is too long or too deep for the planner".to_owned(),
        })
    } else {
        // For a verdict the columns that are read are enough; the planner looks through all columns
        // of all tables again and again.
        let read = is_settled.then(|| walked.columns_read());
        stubs::plan(query, catalog, &walked.needed, &survey.guesses, read.as_ref())
    };
    if is_settled {
        // What the plan would say of joins and filters, the walk has said. Optimizing takes three
        // times as long as planning.
        let verdict = planned.map(|planned| planned.tier);
        return Analyzed { lineage: judged(&walked, &verdict), verdict: Some(verdict) };
    }
    let mut lineage = match planned.and_then(|planned| resolve::lineage(&planned)) {
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
        Err(error) => scoped(&walked, &error),
    };
    lineage.losses.extend(losses(&walked));
    Analyzed { lineage, verdict: None }
}

/// What the walk says, as sure as the planner's verdict lets it be.
pub(super) fn judged(walked: &Walked, verdict: &Verdict) -> SqlLineage {
    let mut lineage = match verdict {
        Ok(tier) => SqlLineage { computed_keys: walked.computed.clone(), ..of_walk(walked, *tier) },
        Err(error) => scoped(walked, error),
    };
    lineage.losses.extend(losses(walked));
    lineage
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

/// What the walk says, as sure as the plan is.
fn of_walk(walked: &Walked, tier: LineageTier) -> SqlLineage {
    let confidence = tier.confidence();
    SqlLineage {
        joins: weighted(&walked.joins, confidence),
        scans: walked.scans.clone(),
        tier,
        confidence,
        ..SqlLineage::unread()
    }
}

fn scoped(walked: &Walked, refusal: &LineageError) -> SqlLineage {
    tracing::debug!(%refusal, "not planned, read by its scopes");
    SqlLineage {
        computed_keys: walked.computed.clone(),
        losses: vec![refusal.to_string()],
        ..of_walk(walked, LineageTier::Scoped)
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
