//! An optimizer rule: what bounds one side of a join key bounds the other side too.
//!
//! DataFusion copies a predicate on a join key to the other side when the predicate stands above the
//! join. Below it (a range inside a CTE, for instance) it stays where it is, though Spark's
//! constraint propagation would copy it. For every equality `l = r` of a join:
//!
//! 1. collect the comparisons with constants that hold for `l` in the left input's rows;
//! 2. add them for `r` to the right input, unless they hold there already;
//! 3. and the other way round.
//!
//! Rows that cannot find a partner are dropped before the join, so this is right only where such
//! rows do not appear in the result: both ways for inner and semi joins, from the preserved side to
//! the other one for outer and anti joins.

use std::{collections::BTreeMap, sync::Arc};

use datafusion::{
    common::{
        Column,
        tree_node::{Transformed, TreeNode},
    },
    error::Result,
    logical_expr::{
        Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator,
        utils::{conjunction, split_conjunction},
    },
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};

/// Comparisons by the column they bound.
type Facts = BTreeMap<Column, Vec<Expr>>;

/// The rule.
#[derive(Debug, Default)]
pub(crate) struct LiftRanges;

impl OptimizerRule for LiftRanges {
    fn name(&self) -> &'static str {
        "lakebed_lift_ranges"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(join) = plan else { return Ok(Transformed::no(plan)) };
        let (to_right, to_left) = directions(&join);
        let left = facts(&join.left);
        let right = facts(&join.right);
        let new_right = if to_right { missing(&join, &left, &right, false)? } else { Vec::new() };
        let new_left = if to_left { missing(&join, &right, &left, true)? } else { Vec::new() };
        if new_left.is_empty() && new_right.is_empty() {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let left = filtered(join.left.as_ref(), new_left)?;
        let right = filtered(join.right.as_ref(), new_right)?;
        Ok(Transformed::yes(LogicalPlan::Join(Join {
            left: Arc::new(left),
            right: Arc::new(right),
            ..join
        })))
    }
}

/// Whether bounds may go from left to right, and from right to left.
///
/// A null-aware join (`NOT IN`) looks at nulls of the other side, which a bound would take away; a
/// mark may stand for one.
const fn directions(join: &Join) -> (bool, bool) {
    if join.null_aware {
        return (false, false);
    }
    match join.join_type {
        JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi => (true, true),
        JoinType::Left | JoinType::LeftAnti => (true, false),
        JoinType::Right | JoinType::RightAnti => (false, true),
        JoinType::Full | JoinType::LeftMark | JoinType::RightMark => (false, false),
    }
}

/// Bounds that hold on one side's keys and are not yet stated on the other's.
fn missing(join: &Join, from: &Facts, to: &Facts, reversed: bool) -> Result<Vec<Expr>> {
    let mut predicates = Vec::new();
    for (left, right) in &join.on {
        let (source, target) = if reversed { (right, left) } else { (left, right) };
        let (Expr::Column(source), Expr::Column(target)) = (source, target) else { continue };
        let known = to.get(target).map(Vec::as_slice).unwrap_or_default();
        for fact in from.get(source).into_iter().flatten() {
            let moved = replace(fact.clone(), source, target)?;
            if !known.contains(&moved) && !predicates.contains(&moved) {
                predicates.push(moved);
            }
        }
    }
    Ok(predicates)
}

fn filtered(input: &LogicalPlan, predicates: Vec<Expr>) -> Result<LogicalPlan> {
    match conjunction(predicates) {
        Some(predicate) => LogicalPlanBuilder::from(input.clone()).filter(predicate)?.build(),
        None => Ok(input.clone()),
    }
}

/// Collects the comparisons with constants that hold for every row a plan returns.
fn facts(plan: &LogicalPlan) -> Facts {
    match plan {
        LogicalPlan::Filter(filter) => {
            let mut facts = facts(&filter.input);
            add_predicate(&mut facts, &filter.predicate);
            facts
        }
        LogicalPlan::TableScan(scan) => {
            let mut facts = Facts::new();
            for filter in &scan.filters {
                add_predicate(&mut facts, filter);
            }
            facts
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let inner = alias.input.schema().columns();
            let outer = plan.schema().columns();
            rename(&facts(&alias.input), inner.into_iter().zip(outer))
        }
        LogicalPlan::Projection(projection) => {
            let outer = plan.schema().columns();
            let pairs =
                projection.expr.iter().zip(outer).filter_map(
                    |(expression, outer)| match expression.clone().unalias() {
                        Expr::Column(inner) => Some((inner, outer)),
                        _ => None,
                    },
                );
            rename(&facts(&projection.input), pairs)
        }
        LogicalPlan::Join(join) => join_facts(join),
        LogicalPlan::Sort(sort) => facts(&sort.input),
        LogicalPlan::Limit(limit) => facts(&limit.input),
        LogicalPlan::Repartition(repartition) => facts(&repartition.input),
        _ => Facts::new(),
    }
}

fn join_facts(join: &Join) -> Facts {
    let (left, right) = match join.join_type {
        JoinType::Inner => (true, true),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            (true, false)
        }
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            (false, true)
        }
        JoinType::Full => (false, false),
    };
    let mut all = if left { facts(&join.left) } else { Facts::new() };
    if right {
        all.extend(facts(&join.right));
    }
    all
}

fn add_predicate(facts: &mut Facts, predicate: &Expr) {
    for part in split_conjunction(predicate) {
        if let Some(column) = bounded_column(part) {
            facts.entry(column.clone()).or_default().push(part.clone());
        }
    }
}

/// Returns the column of a comparison with constants.
fn bounded_column(expression: &Expr) -> Option<&Column> {
    match expression {
        Expr::BinaryExpr(binary) => {
            let ordered = matches!(
                binary.op,
                Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
            );
            match (binary.left.as_ref(), binary.right.as_ref()) {
                (Expr::Column(column), Expr::Literal(..))
                | (Expr::Literal(..), Expr::Column(column))
                    if ordered =>
                {
                    Some(column)
                }
                _ => None,
            }
        }
        Expr::Between(between) if !between.negated => {
            match (between.expr.as_ref(), between.low.as_ref(), between.high.as_ref()) {
                (Expr::Column(column), Expr::Literal(..), Expr::Literal(..)) => Some(column),
                _ => None,
            }
        }
        Expr::InList(list) if !list.negated => match list.expr.as_ref() {
            Expr::Column(column) if list.list.iter().all(|e| matches!(e, Expr::Literal(..))) => {
                Some(column)
            }
            _ => None,
        },
        _ => None,
    }
}

fn rename(facts: &Facts, pairs: impl Iterator<Item = (Column, Column)>) -> Facts {
    let mut renamed = Facts::new();
    for (inner, outer) in pairs {
        for fact in facts.get(&inner).into_iter().flatten() {
            if let Ok(moved) = replace(fact.clone(), &inner, &outer) {
                renamed.entry(outer.clone()).or_default().push(moved);
            }
        }
    }
    renamed
}

fn replace(expression: Expr, from: &Column, to: &Column) -> Result<Expr> {
    let replaced = expression.transform(|node| {
        Ok(match &node {
            Expr::Column(column) if column == from => Transformed::yes(Expr::Column(to.clone())),
            _ => Transformed::no(node),
        })
    })?;
    Ok(replaced.data)
}
