//! What an expression passes on.

use datafusion_sql::sqlparser::ast::{AccessExpr, Expr, Function, Query, UnaryOperator};
use lakebed_model::JoinKind;

use super::{
    Walk,
    children::{Child, children},
    name::{key, keys},
    relation::{Frame, Pair, Rows, Value},
};
use crate::lineage::sql::functions::is_foreign_aggregate;

impl<'q> Walk<'q, '_> {
    /// Returns the innermost frame.
    pub(super) fn current(&mut self) -> &mut Frame<'q> {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        self.frames.last_mut().expect("a frame was pushed where there was none")
    }

    /// Reads an expression for the columns it needs.
    pub(super) fn read(&mut self, expr: &'q Expr) {
        self.value(expr);
    }

    /// Reads an expression and says where its value comes from.
    pub(super) fn value(&mut self, expr: &'q Expr) -> Value {
        match expr {
            Expr::Identifier(name) => self.column(std::slice::from_ref(name)),
            Expr::CompoundIdentifier(parts) => self.column(parts),
            Expr::Nested(inner)
            | Expr::Cast { expr: inner, .. }
            | Expr::Convert { expr: inner, .. }
            | Expr::Collate { expr: inner, .. }
            | Expr::OuterJoin(inner)
            | Expr::Prior(inner)
            | Expr::Named { expr: inner, .. }
            | Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } => self.value(inner),
            Expr::CompoundFieldAccess { root, access_chain } => {
                let root_value = self.value(root);
                let fields: Option<Vec<String>> = access_chain.iter().map(field).collect();
                match fields {
                    Some(fields) => {
                        let origin = root_value.origin.field(&fields.join("."));
                        Value { origin, ..root_value }
                    }
                    None => self.computed(|_| "[]".to_owned(), expr),
                }
            }
            Expr::Subquery(query) => {
                self.subquery(query, JoinKind::LeftOuter, Vec::new());
                Value::default()
            }
            Expr::Exists { subquery, .. } => {
                self.subquery(subquery, JoinKind::Existence, Vec::new());
                Value::default()
            }
            Expr::InSubquery { expr, subquery, .. } => {
                let left = self.value(expr);
                self.subquery(subquery, JoinKind::Existence, vec![left]);
                Value::default()
            }
            Expr::Lambda(lambda) => {
                let known = self.parameters.len();
                self.parameters.extend(lambda.params.iter().map(|parameter| key(&parameter.name)));
                self.read(&lambda.body);
                self.parameters.truncate(known);
                Value::default()
            }
            Expr::Value(_) | Expr::TypedString(_) => Value::default(),
            other => self.computed(function_name, other),
        }
    }

    /// Reads the parts of an expression; a single base column among them is what it is computed
    /// from.
    fn computed(&mut self, function: fn(&Expr) -> String, expr: &'q Expr) -> Value {
        let mut from: Option<Value> = None;
        let mut is_single = true;
        for child in children(expr) {
            let value = match child {
                Child::Expr(child) => self.value(child),
                Child::Query(query) => {
                    self.subquery(query, JoinKind::LeftOuter, Vec::new());
                    is_single = false;
                    continue;
                }
            };
            if value.origin.sources().is_empty() && value.computed.is_none() {
                continue;
            }
            is_single &= from.is_none();
            from = Some(value);
        }
        match from {
            Some(value) if is_single && !is_aggregate(expr) => {
                let origin = match value.computed {
                    Some((_, origin)) => origin,
                    None => value.origin,
                };
                let computed = Some((function(expr), origin));
                Value { computed, place: value.place, ..Value::default() }
            }
            _ => Value::default(),
        }
    }

    /// Reads a subquery; `keys` are compared with its columns, and what it compares with the
    /// queries around it joins them in the given way.
    pub(super) fn subquery(&mut self, query: &'q Query, kind: JoinKind, keys: Vec<Value>) -> Rows {
        self.correlated.push(Vec::new());
        let rows = self.query(query);
        let mut pairs = self.correlated.pop().unwrap_or_default();
        for (left, output) in keys.into_iter().zip(&rows.outputs) {
            self.scans.read(&output.value.origin);
            pairs.push(Pair { left, right: output.value.clone(), hint: None });
        }
        self.emit(pairs, kind);
        rows
    }
}

/// The field that an access steps into, if it has a name.
fn field(access: &AccessExpr) -> Option<String> {
    match access {
        AccessExpr::Dot(Expr::Identifier(name)) => Some(key(name)),
        _ => None,
    }
}

fn function_name(expr: &Expr) -> String {
    match expr {
        Expr::Function(function) => keys(&function.name).pop().unwrap_or_default(),
        Expr::Extract { field, .. } => field.to_string().to_lowercase(),
        Expr::BinaryOp { op, .. } => op.to_string(),
        Expr::Substring { .. } => "substring".to_owned(),
        Expr::Trim { .. } => "trim".to_owned(),
        Expr::Ceil { .. } => "ceil".to_owned(),
        Expr::Floor { .. } => "floor".to_owned(),
        Expr::Case { .. } => "case".to_owned(),
        _ => "expression".to_owned(),
    }
}

/// Aggregates and window functions fold rows: what they give belongs to no row of their column.
pub(super) fn is_aggregate(expr: &Expr) -> bool {
    const FOLDING: [&str; 10] =
        ["sum", "avg", "min", "max", "count", "stddev", "variance", "any_value", "median", "first"];
    match expr {
        Expr::Function(Function { name, over, .. }) => {
            over.is_some()
                || keys(name).last().is_some_and(|name| {
                    FOLDING.contains(&name.as_str()) || is_foreign_aggregate(name)
                })
        }
        _ => false,
    }
}
