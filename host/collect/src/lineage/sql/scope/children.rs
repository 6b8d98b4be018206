//! What stands directly below an expression.

use datafusion_sql::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Query, Subscript, WindowType,
};

/// A part of an expression.
pub(super) enum Child<'q> {
    Expr(&'q Expr),
    Query(&'q Query),
}

/// Lists the parts of an expression that columns can stand in.
#[expect(clippy::too_many_lines, reason = "one match over all kinds of expressions")]
pub(super) fn children(expr: &Expr) -> Vec<Child<'_>> {
    match expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Value(_)
        | Expr::TypedString(_)
        | Expr::Wildcard(_)
        | Expr::QualifiedWildcard(..)
        | Expr::MatchAgainst { .. } => Vec::new(),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let mut parts = vec![Child::Expr(root.as_ref())];
            for access in access_chain {
                if let AccessExpr::Subscript(subscript) = access {
                    parts.extend(of_subscript(subscript));
                }
            }
            parts
        }
        Expr::JsonAccess { value: one, .. }
        | Expr::IsFalse(one)
        | Expr::IsNotFalse(one)
        | Expr::IsTrue(one)
        | Expr::IsNotTrue(one)
        | Expr::IsNull(one)
        | Expr::IsNotNull(one)
        | Expr::IsUnknown(one)
        | Expr::IsNotUnknown(one)
        | Expr::IsNormalized { expr: one, .. }
        | Expr::UnaryOp { expr: one, .. }
        | Expr::Convert { expr: one, .. }
        | Expr::Cast { expr: one, .. }
        | Expr::Extract { expr: one, .. }
        | Expr::Ceil { expr: one, .. }
        | Expr::Floor { expr: one, .. }
        | Expr::Collate { expr: one, .. }
        | Expr::Nested(one)
        | Expr::Prefixed { value: one, .. }
        | Expr::Named { expr: one, .. }
        | Expr::OuterJoin(one)
        | Expr::Prior(one) => boxes([Some(one)]),
        Expr::IsDistinctFrom(a, b)
        | Expr::IsNotDistinctFrom(a, b)
        | Expr::InUnnest { expr: a, array_expr: b, .. }
        | Expr::BinaryOp { left: a, right: b, .. }
        | Expr::Like { expr: a, pattern: b, .. }
        | Expr::ILike { expr: a, pattern: b, .. }
        | Expr::SimilarTo { expr: a, pattern: b, .. }
        | Expr::RLike { expr: a, pattern: b, .. }
        | Expr::AnyOp { left: a, right: b, .. }
        | Expr::AllOp { left: a, right: b, .. }
        | Expr::AtTimeZone { timestamp: a, time_zone: b }
        | Expr::Position { expr: a, r#in: b } => boxes([Some(a), Some(b)]),
        Expr::Between { expr, low, high, .. } => boxes([Some(expr), Some(low), Some(high)]),
        Expr::InList { expr, list, .. } => {
            let mut parts = boxes([Some(expr)]);
            parts.extend(list.iter().map(Child::Expr));
            parts
        }
        Expr::InSubquery { expr, subquery, .. } => {
            vec![Child::Expr(expr.as_ref()), Child::Query(subquery.as_ref())]
        }
        Expr::Exists { subquery, .. } | Expr::Subquery(subquery) => {
            vec![Child::Query(subquery.as_ref())]
        }
        Expr::Substring { expr, substring_from, substring_for, .. } => {
            boxes([Some(expr), substring_from.as_ref(), substring_for.as_ref()])
        }
        Expr::Trim { trim_what, expr, trim_characters, .. } => {
            let mut parts = boxes([Some(expr), trim_what.as_ref()]);
            parts.extend(trim_characters.iter().flatten().map(Child::Expr));
            parts
        }
        Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
            boxes([Some(expr), Some(overlay_what), Some(overlay_from), overlay_for.as_ref()])
        }
        Expr::Function(function) => of_function(function),
        Expr::Case { operand, conditions, else_result, .. } => {
            let mut parts = boxes([operand.as_ref(), else_result.as_ref()]);
            for when in conditions {
                parts.push(Child::Expr(&when.condition));
                parts.push(Child::Expr(&when.result));
            }
            parts
        }
        Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
            sets.iter().flatten().map(Child::Expr).collect()
        }
        Expr::Tuple(parts) | Expr::Struct { values: parts, .. } => {
            parts.iter().map(Child::Expr).collect()
        }
        Expr::Dictionary(fields) => {
            fields.iter().map(|field| Child::Expr(field.value.as_ref())).collect()
        }
        Expr::Map(map) => map
            .entries
            .iter()
            .flat_map(|entry| [Child::Expr(entry.key.as_ref()), Child::Expr(entry.value.as_ref())])
            .collect(),
        Expr::Array(array) => array.elem.iter().map(Child::Expr).collect(),
        Expr::Interval(interval) => boxes([Some(&interval.value)]),
        Expr::Lambda(lambda) => boxes([Some(&lambda.body)]),
        Expr::MemberOf(member) => boxes([Some(&member.value), Some(&member.array)]),
    }
}

#[expect(clippy::borrowed_box, reason = "the parser's fields are boxes, some of them optional")]
fn boxes<'q, const N: usize>(parts: [Option<&'q Box<Expr>>; N]) -> Vec<Child<'q>> {
    parts.into_iter().flatten().map(|part| Child::Expr(part.as_ref())).collect()
}

fn of_subscript(subscript: &Subscript) -> Vec<Child<'_>> {
    match subscript {
        Subscript::Index { index } => vec![Child::Expr(index)],
        Subscript::Slice { lower_bound, upper_bound, stride } => {
            [lower_bound, upper_bound, stride].into_iter().flatten().map(Child::Expr).collect()
        }
    }
}

fn of_function(function: &Function) -> Vec<Child<'_>> {
    let mut parts = of_arguments(&function.args);
    parts.extend(of_arguments(&function.parameters));
    parts.extend(boxes([function.filter.as_ref()]));
    parts.extend(function.within_group.iter().map(|by| Child::Expr(&by.expr)));
    if let Some(WindowType::WindowSpec(window)) = &function.over {
        parts.extend(window.partition_by.iter().map(Child::Expr));
        parts.extend(window.order_by.iter().map(|by| Child::Expr(&by.expr)));
    }
    parts
}

fn of_arguments(arguments: &FunctionArguments) -> Vec<Child<'_>> {
    match arguments {
        FunctionArguments::None => Vec::new(),
        FunctionArguments::Subquery(query) => vec![Child::Query(query.as_ref())],
        FunctionArguments::List(list) => {
            let mut parts = Vec::new();
            for argument in &list.args {
                let (FunctionArg::Named { arg, .. }
                | FunctionArg::ExprNamed { arg, .. }
                | FunctionArg::Unnamed(arg)) = argument;
                if let FunctionArgExpr::Expr(expr) = arg {
                    parts.push(Child::Expr(expr));
                }
            }
            for clause in &list.clauses {
                if let FunctionArgumentClause::OrderBy(keys) = clause {
                    parts.extend(keys.iter().map(|by| Child::Expr(&by.expr)));
                }
            }
            parts
        }
    }
}
