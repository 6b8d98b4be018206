//! The walk over a logical plan, with a map from each column to its base columns.

use std::collections::BTreeSet;

use datafusion_common::{
    DFSchema, JoinType,
    tree_node::{TreeNode as _, TreeNodeRecursion},
};
use datafusion_expr::{
    Aggregate, Distinct, Expr, Join, LogicalPlan, TableScan, utils::grouping_set_to_exprlist,
    utils::split_conjunction,
};
use lakebed_model::{ColumnRef, JoinKind, JoinUse, TableName};

use super::{
    LineageError, SqlLineage,
    context::{Table, marked_table, reference_text},
    optimize, predicate,
    scans::Scans,
    stubs::Planned,
    types,
};
use crate::lineage::{
    edge::{JoinTraits, edges},
    origin::Origin,
    predicate::Predicate,
};

/// Reads the lineage of a plan.
pub(super) fn lineage(planned: &Planned) -> Result<SqlLineage, LineageError> {
    let optimized = optimize::run(planned.plan.clone())?;
    let mut stated = Resolver::new(OnConditions::Count);
    stated.visit(&optimized.stated);
    let stated = stated.scans.stated();
    let confidence = planned.tier.confidence();
    let mut resolver = Resolver::new(OnConditions::Ignore);
    resolver.visit(&optimized.pushed);
    resolver.scans.infer();
    let joins = resolver
        .joins
        .into_iter()
        .map(|join| JoinUse { confidence: join.confidence * confidence, ..join })
        .collect();
    let scans = resolver.scans.into_uses(&stated);
    let tier = planned.tier;
    Ok(SqlLineage { joins, scans, tier, confidence, ..SqlLineage::unread() })
}

/// Whether conditions that a join could not push to its inputs count as filters. They state a
/// comparison, but rows of an outer join's kept side pass whatever they say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnConditions {
    Count,
    Ignore,
}

struct Resolver {
    scans: Scans,
    joins: Vec<JoinUse>,
    on_conditions: OnConditions,
    /// Whether a filter stands right above, which no row without match passes.
    below_filter: bool,
}

impl Resolver {
    fn new(on_conditions: OnConditions) -> Self {
        Self { scans: Scans::default(), joins: Vec::new(), on_conditions, below_filter: false }
    }

    /// Reads a plan and returns the origins of its output, by position.
    fn visit(&mut self, plan: &LogicalPlan) -> Vec<Origin> {
        let mut origins = self.visit_node(plan);
        self.visit_subqueries(plan);
        origins.resize(plan.schema().fields().len(), Origin::derived());
        origins
    }

    fn visit_node(&mut self, plan: &LogicalPlan) -> Vec<Origin> {
        let passes = matches!(plan, LogicalPlan::Join(_) | LogicalPlan::Projection(_));
        self.below_filter = matches!(plan, LogicalPlan::Filter(_)) || self.below_filter && passes;
        match plan {
            LogicalPlan::TableScan(scan) => self.visit_scan(scan),
            LogicalPlan::Projection(projection) => {
                let input = self.visit(&projection.input);
                origins_of(&projection.expr, projection.input.schema(), &input)
            }
            LogicalPlan::Filter(filter) => {
                let input = self.visit(&filter.input);
                self.add_conditions(&filter.predicate, filter.input.schema(), &input);
                input
            }
            LogicalPlan::Join(join) => self.visit_join(join),
            LogicalPlan::Aggregate(aggregate) => self.visit_aggregate(aggregate),
            LogicalPlan::Union(union) => {
                let inputs: Vec<Vec<Origin>> =
                    union.inputs.iter().map(|input| self.visit(input)).collect();
                let width = plan.schema().fields().len();
                (0..width).map(|position| union_at(&inputs, position)).collect()
            }
            LogicalPlan::Distinct(Distinct::On(distinct)) => {
                let input = self.visit(&distinct.input);
                origins_of(&distinct.select_expr, distinct.input.schema(), &input)
            }
            LogicalPlan::RecursiveQuery(query) => {
                // Later rounds give computed values: only the first round's are certain.
                self.visit(&query.recursive_term);
                self.visit(&query.static_term);
                Vec::new()
            }
            LogicalPlan::Unnest(unnest) => {
                let input = self.visit(&unnest.input);
                let from = unnest.input.schema();
                let exploded = |index: usize| unnest.dependency_indices.get(index).copied();
                (0..unnest.schema.fields().len())
                    .map(|index| match exploded(index) {
                        Some(source) if from.field(source) == unnest.schema.field(index) => {
                            input.get(source).cloned().unwrap_or_default()
                        }
                        _ => Origin::derived(),
                    })
                    .collect()
            }
            // One input, passed on by position, perhaps with columns behind.
            LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Distinct(Distinct::All(_))
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Repartition(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Subquery(_) => {
                plan.inputs().first().map(|input| self.visit(input)).unwrap_or_default()
            }
            other => {
                for input in other.inputs() {
                    self.visit(input);
                }
                Vec::new()
            }
        }
    }

    /// Subqueries that no rule could turn into joins are read for what is inside them.
    fn visit_subqueries(&mut self, plan: &LogicalPlan) {
        let mut inner = Vec::new();
        let _ = plan.apply_expressions(|expr| {
            expr.apply(|part| {
                match part {
                    Expr::Exists(exists) => inner.push(exists.subquery.clone()),
                    Expr::InSubquery(list) => inner.push(list.subquery.clone()),
                    Expr::ScalarSubquery(subquery) => inner.push(subquery.clone()),
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        });
        for subquery in inner {
            self.visit(&subquery.subquery);
        }
    }

    fn visit_scan(&mut self, scan: &TableScan) -> Vec<Origin> {
        if !Table::of(scan).is_some_and(|table| table.is_base) {
            return Vec::new();
        }
        let table = TableName::new(reference_text(&scan.table_name));
        let fields = scan.projected_schema.fields();
        let schema = scan.source.schema();
        let predicates: Vec<Predicate> = scan
            .filters
            .iter()
            .map(|filter| {
                predicate::read(filter, &mut |expr| {
                    let Expr::Column(column) = uncast(expr) else { return None };
                    let field = schema.field_with_name(&column.name).ok();
                    Some((column.name.clone(), field.map(|f| types::from_arrow(f.data_type()))))
                })
            })
            .collect();
        // A filter that was pushed down needs its column, though the plan above no longer does.
        let filtered: BTreeSet<String> = predicates.iter().flat_map(Predicate::columns).collect();
        let is_read = |name: &String| {
            filtered.contains(name) || fields.iter().any(|field| field.name() == name)
        };
        let columns: Vec<(String, crate::ColumnType)> = schema
            .fields()
            .iter()
            .filter(|field| marked_table(field.name()).is_none() && is_read(field.name()))
            .map(|field| (field.name().clone(), types::from_arrow(field.data_type())))
            .collect();
        let index = self.scans.add_read(table.clone(), columns, predicates);
        fields
            .iter()
            .map(|field| {
                let column = ColumnRef { table: table.clone(), column: field.name().clone() };
                Origin::base(column, index)
            })
            .collect()
    }

    fn visit_join(&mut self, join: &Join) -> Vec<Origin> {
        let kind = self.kind_of(join);
        let left = self.visit(&join.left);
        self.below_filter = false;
        let right = self.visit(&join.right);
        let (left_schema, right_schema) = (join.left.schema(), join.right.schema());
        let pairs: Vec<(Origin, Origin)> = join
            .on
            .iter()
            .map(|(l, r)| (origin_of(l, left_schema, &left), origin_of(r, right_schema, &right)))
            .collect();
        // A right semi join is a left one with its sides swapped.
        let pairs = match join.join_type {
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                pairs.into_iter().map(|(l, r)| (r, l)).collect()
            }
            _ => pairs,
        };
        let traits = JoinTraits { kind, strategy: None, confidence: 1.0 };
        self.joins.extend(edges(&pairs, traits));
        for (left, right) in &pairs {
            self.scans.imply(left, right, kind);
        }
        let both: Vec<Origin> = left.iter().chain(&right).cloned().collect();
        if let (Some(condition), OnConditions::Count) = (&join.filter, self.on_conditions)
            && let Ok(schema) = left_schema.join(right_schema)
        {
            self.add_conditions(condition, &schema, &both);
        }
        match join.join_type {
            JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => left,
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => right,
            JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => both,
        }
    }

    /// A correlated scalar subquery is a left join in the plan. Where its value is compared in a
    /// filter, rows without a match do not pass: the text's join is an inner one.
    fn kind_of(&mut self, join: &Join) -> JoinKind {
        let is_scalar = join.join_type == JoinType::Left
            && matches!(join.right.as_ref(), LogicalPlan::SubqueryAlias(alias)
                if alias.alias.table().starts_with("__scalar_sq"));
        if is_scalar && self.below_filter {
            return JoinKind::Inner;
        }
        self.below_filter = false;
        join_kind(join.join_type)
    }

    /// Group keys pass; what the functions give, and grouping ids, is computed.
    fn visit_aggregate(&mut self, aggregate: &Aggregate) -> Vec<Origin> {
        let input = self.visit(&aggregate.input);
        let schema = aggregate.input.schema();
        match grouping_set_to_exprlist(&aggregate.group_expr) {
            Ok(keys) => keys.into_iter().map(|key| origin_of(key, schema, &input)).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Gives each conjunct to the scan whose columns it compares, if it is a single one.
    fn add_conditions(&mut self, condition: &Expr, schema: &DFSchema, input: &[Origin]) {
        for conjunct in split_conjunction(condition) {
            let mut scans = BTreeSet::new();
            let known = &self.scans;
            let read = predicate::read(conjunct, &mut |expr| {
                let origin = origin_of(expr, schema, input);
                let source = origin.single()?;
                scans.insert(source.scan);
                let column = source.column.column.clone();
                let kind = known.kind(source.scan, &column);
                Some((column, kind))
            });
            if let [scan] = scans.iter().copied().collect::<Vec<_>>()[..] {
                self.scans.push(scan, read);
            }
        }
    }
}

fn union_at(inputs: &[Vec<Origin>], position: usize) -> Origin {
    let branches: Vec<Origin> =
        inputs.iter().map(|input| input.get(position).cloned().unwrap_or_default()).collect();
    Origin::union(&branches)
}

fn origins_of(exprs: &[Expr], schema: &DFSchema, input: &[Origin]) -> Vec<Origin> {
    exprs.iter().map(|expr| origin_of(expr, schema, input)).collect()
}

/// Says which base columns an expression passes on: columns, aliases and casts of them.
fn origin_of(expr: &Expr, schema: &DFSchema, input: &[Origin]) -> Origin {
    match uncast(expr) {
        Expr::Column(column) => schema
            .maybe_index_of_column(column)
            .and_then(|index| input.get(index))
            .cloned()
            .unwrap_or_default(),
        _ => Origin::derived(),
    }
}

fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => uncast(&alias.expr),
        Expr::Cast(cast) => uncast(&cast.expr),
        Expr::TryCast(cast) => uncast(&cast.expr),
        other => other,
    }
}

const fn join_kind(kind: JoinType) -> JoinKind {
    match kind {
        JoinType::Inner => JoinKind::Inner,
        JoinType::Left => JoinKind::LeftOuter,
        JoinType::Right => JoinKind::RightOuter,
        JoinType::Full => JoinKind::FullOuter,
        JoinType::LeftSemi | JoinType::RightSemi => JoinKind::LeftSemi,
        JoinType::LeftAnti | JoinType::RightAnti => JoinKind::LeftAnti,
        JoinType::LeftMark | JoinType::RightMark => JoinKind::Existence,
    }
}
