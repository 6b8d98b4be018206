//! Numbers and times as Spark types them.
//!
//! 1. `1.10` is a DECIMAL(3,2), read exactly; `1e3` is a DOUBLE ([`crate::dialect`]).
//! 2. Where a DECIMAL meets a DOUBLE or FLOAT, both are DOUBLE. The engine would make both DECIMAL,
//!    which most doubles do not fit.
//! 3. A literal is DOUBLE as an argument of a function that is not known to take decimals.
//! 4. Times have microseconds. The engine's nanoseconds end in the year 2262, and it would turn dates
//!    and times into them to compare them.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::{
    common::{
        DFSchema, ScalarValue,
        tree_node::{Transformed, TreeNode},
    },
    error::Result,
    logical_expr::{
        BinaryExpr, Case, Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator,
        TryCast, Union, cast,
        expr::{AggregateFunction, InList, ScalarFunction, WindowFunction},
        expr_rewriter::NamePreserver,
        utils::merge_schema,
    },
    prelude::SessionContext,
};

use crate::dialect::{self, ColumnNames};

/// Functions that give decimals for decimals, or do not care.
const TAKE_DECIMALS: [&str; 39] = [
    "abs",
    "any_value",
    "array",
    "array_agg",
    "arrow_typeof",
    "avg",
    "ceil",
    "coalesce",
    "collect_list",
    "collect_set",
    "count",
    "first",
    "first_value",
    "floor",
    "greatest",
    "if",
    "ifnull",
    "lag",
    "last",
    "last_value",
    "lead",
    "least",
    "make_array",
    "map",
    "max",
    "mean",
    "median",
    "min",
    "named_struct",
    "negative",
    "nth_value",
    "nullif",
    "nvl",
    "nvl2",
    "round",
    "signum",
    "struct",
    "sum",
    "typeof",
];

/// Reads an expression over the columns of a schema.
pub(crate) fn expression(context: &SessionContext, text: &str, schema: &DFSchema) -> Result<Expr> {
    let state = context.state();
    let spark = state.config().options().sql_parser.dialect;
    let mut parsed = state.sql_to_expr_with_alias(text, &spark)?;
    let mut names = ColumnNames::default();
    names.add(schema.fields());
    let relation = schema.iter().find_map(|(relation, _)| Some(relation?.table()));
    dialect::translate_expression(&mut parsed.expr, &names, relation)?;
    rewritten(state.create_logical_expr_from_sql_expr(parsed, schema)?, schema)
}

/// Types the expressions of a plan.
pub(crate) fn rewritten_plan(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| {
        let node = match node {
            LogicalPlan::Values(_) => of_values(node)?,
            LogicalPlan::Union(_) => of_one_type(node)?,
            node => node,
        };
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expression| {
            let name = names.save(&expression);
            Ok(Transformed::yes(name.restore(rewritten(expression, &schema)?)))
        })?;
        Ok(Transformed::yes(node.data.recompute_schema()?))
    })?;
    Ok(rewritten.data)
}

/// Types an expression over the columns of a schema.
pub(crate) fn rewritten(expression: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(expression.transform_up(|part| typed(part, schema))?.data)
}

fn typed(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(Transformed::yes(match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let [left, right] = alike([*left, *right], schema)?;
            Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
        }
        Expr::Between(mut between) => {
            let parts = [*between.expr, *between.low, *between.high];
            let [value, low, high] = alike(parts, schema)?;
            between.expr = Box::new(value);
            between.low = Box::new(low);
            between.high = Box::new(high);
            Expr::Between(between)
        }
        Expr::InList(InList { expr, list, negated }) => {
            let parts: Vec<Expr> = std::iter::once(*expr).chain(list).collect();
            let mut parts = compared(parts, schema)?;
            let expr = Box::new(parts.remove(0));
            Expr::InList(InList { expr, list: parts, negated })
        }
        Expr::Case(case) => Expr::Case(case_of_one_type(case, schema)?),
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let args = arguments(func.name(), args, schema)?;
            Expr::ScalarFunction(ScalarFunction { func, args })
        }
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            params.args = arguments(func.name(), params.args, schema)?;
            Expr::AggregateFunction(AggregateFunction { func, params })
        }
        Expr::WindowFunction(window) => {
            let WindowFunction { fun, mut params } = *window;
            params.args = arguments(fun.name(), params.args, schema)?;
            Expr::WindowFunction(Box::new(WindowFunction { fun, params }))
        }
        Expr::Cast(Cast { expr, field }) => match microseconds(field.data_type()) {
            Some(data_type) => {
                let value = in_seconds(*expr, &data_type, schema);
                Expr::Cast(Cast::new(Box::new(value), data_type))
            }
            None => return Ok(Transformed::no(Expr::Cast(Cast { expr, field }))),
        },
        Expr::TryCast(TryCast { expr, field }) => match microseconds(field.data_type()) {
            Some(data_type) => Expr::TryCast(TryCast::new(expr, data_type)),
            None => return Ok(Transformed::no(Expr::TryCast(TryCast { expr, field }))),
        },
        other => return Ok(Transformed::no(other)),
    }))
}

const fn is_comparison(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// What a nanosecond type is in Spark.
fn microseconds(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            Some(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))
        }
        _ => None,
    }
}

/// A whole number is a time in seconds in Spark.
fn in_seconds(value: Expr, wanted: &DataType, schema: &DFSchema) -> Expr {
    match (value.get_type(schema), wanted) {
        (Ok(own), DataType::Timestamp(_, zone)) if own.is_integer() => {
            cast(value, DataType::Timestamp(TimeUnit::Second, zone.clone()))
        }
        _ => value,
    }
}

/// Gives expressions that will be compared or chosen from types that the engine makes the right one of.
fn alike<const N: usize>(parts: [Expr; N], schema: &DFSchema) -> Result<[Expr; N]> {
    let parts = compared(parts.into(), schema)?;
    Ok(parts.try_into().expect("one for each"))
}

/// Of what is compared, a text beside a time is a time as well, and constants have the zone of columns.
fn compared(parts: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    let zone_of = |part: &Expr| match part.get_type(schema) {
        Ok(DataType::Timestamp(_, zone)) => Some(zone),
        _ => None,
    };
    let is_constant = |part: &Expr| part.column_refs().is_empty();
    let of_column = parts.iter().filter(|part| !is_constant(part)).find_map(zone_of);
    let Some(zone) = of_column.or_else(|| parts.iter().find_map(zone_of)) else {
        return alike_all(parts, schema);
    };
    let wanted = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
    let parts = parts.into_iter().map(|part| match part.get_type(schema) {
        Ok(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => cast(part, wanted.clone()),
        // What is converted is the constant, not the column, whose bounds then skip files.
        Ok(DataType::Timestamp(_, own)) if own != zone && is_constant(&part) => {
            converted(part, wanted.clone())
        }
        _ => part,
    });
    alike_all(parts.collect(), schema)
}

fn alike_all(parts: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    let types: Result<Vec<DataType>> = parts.iter().map(|part| part.get_type(schema)).collect();
    // What has no type is reported by the engine, with more to say.
    let Ok(types) = types else { return Ok(parts) };
    Ok(parts
        .into_iter()
        .zip(&types)
        .map(|(part, own)| match target(own, &types) {
            Some(target) => converted(part, target),
            None => part,
        })
        .collect())
}

/// What one of several types must become, if anything.
fn target(own: &DataType, all: &[DataType]) -> Option<DataType> {
    if own.is_decimal() && all.iter().any(DataType::is_floating) {
        return Some(DataType::Float64);
    }
    if *own == DataType::Float32 && all.iter().any(DataType::is_decimal) {
        return Some(DataType::Float64);
    }
    let is_fine = |t: &DataType| matches!(t, DataType::Timestamp(TimeUnit::Microsecond, _));
    let is_time = |t: &DataType| matches!(t, DataType::Timestamp(..));
    match own {
        DataType::Date32 if all.iter().any(is_time) => {
            let zone = all.iter().find_map(|t| match t {
                DataType::Timestamp(_, zone) => Some(zone.clone()),
                _ => None,
            });
            Some(DataType::Timestamp(TimeUnit::Microsecond, zone.flatten()))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _)
            if all.iter().any(|t| is_fine(t) || *t == DataType::Date32) =>
        {
            microseconds(own)
        }
        _ => None,
    }
}

/// A literal stays one, so that files are skipped by it.
fn converted(part: Expr, target: DataType) -> Expr {
    if let Expr::Literal(value, metadata) = &part
        && let Ok(value) = value.cast_to(&target)
    {
        return Expr::Literal(value, metadata.clone());
    }
    cast(part, target)
}

fn arguments(function: &str, args: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    let name = function.to_ascii_lowercase();
    if TAKE_DECIMALS.contains(&name.as_str()) {
        // A function over rows takes its arguments for what each is.
        return if args.len() > 1 && !matches!(name.as_str(), "named_struct" | "struct" | "round") {
            alike_all(args, schema)
        } else {
            Ok(args)
        };
    }
    let as_double = |argument: Expr| match &argument {
        Expr::Literal(ScalarValue::Decimal128(..) | ScalarValue::Decimal256(..), _) => {
            converted(argument, DataType::Float64)
        }
        _ => argument,
    };
    Ok(args.into_iter().map(as_double).collect())
}

fn case_of_one_type(mut case: Case, schema: &DFSchema) -> Result<Case> {
    let pairs = std::mem::take(&mut case.when_then_expr);
    let (mut whens, thens): (Vec<Expr>, Vec<Expr>) =
        pairs.into_iter().map(|(when, then)| (*when, *then)).unzip();
    let last = case.else_expr.take().map(|last| *last);
    let mut results = alike_all(thens.into_iter().chain(last).collect(), schema)?;
    if results.len() > whens.len() {
        case.else_expr = results.pop().map(Box::new);
    }
    if let Some(value) = case.expr.take() {
        let mut compared = alike_all(std::iter::once(*value).chain(whens).collect(), schema)?;
        case.expr = Some(Box::new(compared.remove(0)));
        whens = compared;
    }
    let pairs = whens.into_iter().zip(results);
    case.when_then_expr = pairs.map(|(when, then)| (Box::new(when), Box::new(then))).collect();
    Ok(case)
}

/// Rows between parentheses: their types are those of their values, and the engine has made a column
/// DECIMAL already where one row is DOUBLE.
fn of_values(node: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Values(values) = node else { return Ok(node) };
    let empty = DFSchema::empty();
    let mut rows = Vec::with_capacity(values.values.len());
    for row in &values.values {
        let row = row.iter().map(|value| rewritten(value.clone(), &empty));
        rows.push(row.collect::<Result<Vec<Expr>>>()?);
    }
    let type_of = |part: &Expr| part.get_type(&empty).unwrap_or(DataType::Null);
    for column in 0..rows.first().map_or(0, Vec::len) {
        let is_double = |row: &Vec<Expr>| type_of(uncast(&row[column])).is_floating();
        let is_decimal = |row: &Vec<Expr>| type_of(&row[column]).is_decimal();
        if rows.iter().any(is_double) && rows.iter().any(is_decimal) {
            for row in &mut rows {
                row[column] = cast(uncast(&row[column]).clone(), DataType::Float64);
            }
        }
    }
    if rows == values.values {
        return Ok(LogicalPlan::Values(values));
    }
    LogicalPlanBuilder::values(rows)?.build()
}

fn uncast(expression: &Expr) -> &Expr {
    match expression {
        Expr::Cast(Cast { expr, field }) if field.data_type().is_decimal() => expr,
        other => other,
    }
}

/// The branches of a UNION, with DOUBLE where one has it and another has decimals.
fn of_one_type(union: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Union(union) = union else { return Ok(union) };
    let width = union.schema.fields().len();
    let type_at = |input: &LogicalPlan, at: usize| {
        let fields = input.schema().fields();
        fields.get(at).map_or(DataType::Null, |field| field.data_type().clone())
    };
    let targets: Vec<Vec<DataType>> = (0..width)
        .map(|at| union.inputs.iter().map(|input| type_at(input, at)).collect())
        .collect();
    let mut inputs = Vec::with_capacity(union.inputs.len());
    for input in &union.inputs {
        let columns = input.schema().columns();
        let mut changed = false;
        let columns: Vec<Expr> = columns
            .into_iter()
            .enumerate()
            .map(|(at, column)| match target(&type_at(input, at), targets.get(at)?) {
                None => Some(Expr::Column(column)),
                Some(wanted) => {
                    changed = true;
                    let (relation, name) = (column.relation.clone(), column.name.clone());
                    Some(cast(Expr::Column(column), wanted).alias_qualified(relation, name))
                }
            })
            .collect::<Option<_>>()
            .unwrap_or_default();
        if changed && columns.len() == width {
            let projected = LogicalPlanBuilder::from(input.as_ref().clone()).project(columns)?;
            inputs.push(Arc::new(projected.build()?));
        } else {
            inputs.push(Arc::clone(input));
        }
    }
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}
