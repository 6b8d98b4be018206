//! The optimizer rules that make edges and filters visible.

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_expr::LogicalPlan;
use datafusion_optimizer::{
    Analyzer, Optimizer, OptimizerContext, OptimizerRule, analyzer::type_coercion::TypeCoercion,
    decorrelate_lateral_join::DecorrelateLateralJoin,
    decorrelate_predicate_subquery::DecorrelatePredicateSubquery,
    eliminate_cross_join::EliminateCrossJoin, extract_equijoin_predicate::ExtractEquijoinPredicate,
    optimize_projections::OptimizeProjections, push_down_filter::PushDownFilter,
    scalar_subquery_to_join::ScalarSubqueryToJoin, simplify_expressions::SimplifyExpressions,
};

use super::{LineageError, error::redacted};

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// A plan at the two points where it is read.
pub(super) struct Optimized {
    /// Joins are explicit, filters stand where the text states them.
    pub(super) stated: LogicalPlan,
    /// Filters are as close to the scans as they get, also through join keys.
    pub(super) pushed: LogicalPlan,
}

/// Runs the rules.
///
/// Left out on purpose: rules that delete joins or outer joins (`EliminateJoin`,
/// `EliminateOuterJoin`, `PropagateEmptyRelation`) and `CommonSubexprEliminate`, which hides
/// columns behind computed names.
pub(super) fn run(plan: LogicalPlan) -> Result<Optimized, LineageError> {
    let stated = optimize(coerced(plan), joins_made_explicit())?;
    let pushed = optimize(stated.clone(), filters_pushed())?;
    Ok(Optimized { stated, pushed })
}

fn joins_made_explicit() -> Vec<Rule> {
    vec![
        Arc::new(SimplifyExpressions::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(DecorrelateLateralJoin::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateCrossJoin::new()),
    ]
}

fn filters_pushed() -> Vec<Rule> {
    vec![
        Arc::new(PushDownFilter::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(OptimizeProjections::new()),
    ]
}

/// Makes both sides of comparisons one type, so that constants fold. A plan on stub columns whose
/// types do not fit together stays as it is: its columns are right all the same.
fn coerced(plan: LogicalPlan) -> LogicalPlan {
    let analyzer = Analyzer::with_rules(vec![Arc::new(TypeCoercion::new())]);
    match analyzer.execute_and_check(plan.clone(), &ConfigOptions::default(), |_, _| {}) {
        Ok(coerced) => coerced,
        Err(error) => {
            tracing::debug!(%error, "types do not fit together, planning goes on without");
            plan
        }
    }
}

fn optimize(plan: LogicalPlan, rules: Vec<Rule>) -> Result<LogicalPlan, LineageError> {
    // Without a start time `now()` stays as it is: the same text gives the same lineage every day.
    let context = OptimizerContext::new()
        .without_query_execution_start_time()
        .with_skip_failing_rules(true)
        .filter_null_keys(false);
    Optimizer::with_rules(rules)
        .optimize(plan, &context, |_, _| {})
        .map_err(|error| LineageError::Plan { message: redacted(&error.strip_backtrace()) })
}
