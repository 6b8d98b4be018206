//! From a conjunct to tests of the scans whose columns it compares.

use std::collections::BTreeSet;

use datafusion_sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value as Constant};
use lakebed_model::{FilterOperator, JoinKind, Literal};

use super::{
    Walk,
    children::{Child, children},
    condition::{On, conjuncts, disjuncts, unnested},
    constant::{constant, fitted, is_parameter},
};
use crate::{
    ColumnType,
    lineage::predicate::{Predicate, Test},
};

/// A condition with its columns resolved: `None` where a column is not one scan's.
struct Read {
    predicate: Predicate,
    /// Whether all columns are of the wanted scan.
    pure: bool,
}

impl<'q> Walk<'q, '_> {
    /// Reads a conjunct that is no join, and gives it to each scan that alone provides its columns.
    /// A column of a union is tested in every branch.
    pub(super) fn filter(&mut self, expr: &'q Expr, on: Option<&On>) {
        let mut scans = BTreeSet::new();
        let mut places = BTreeSet::new();
        self.columns_below(expr, &mut scans, &mut places);
        let here = self.frames.len().saturating_sub(1);
        let applies = places
            .iter()
            .all(|(depth, relation)| *depth == here && on.is_none_or(|on| on.filters(*relation)));
        if !applies {
            return;
        }
        for scan in scans {
            let read = self.test(expr, scan);
            if read.pure {
                self.scans.push(scan, read.predicate);
            }
        }
    }

    /// Resolves every column of a condition, and reads the queries inside it.
    fn columns_below(
        &mut self,
        expr: &'q Expr,
        scans: &mut BTreeSet<usize>,
        places: &mut BTreeSet<(usize, usize)>,
    ) {
        match expr {
            Expr::Identifier(_)
            | Expr::CompoundIdentifier(_)
            | Expr::CompoundFieldAccess { .. } => {
                let value = self.value(expr);
                scans.extend(value.origin.sources().iter().map(|source| source.scan));
                places.extend(value.place.filter(|_| !value.origin.sources().is_empty()));
            }
            Expr::InSubquery { expr, subquery, .. } => {
                let left = self.value(expr);
                self.subquery(subquery, JoinKind::Existence, vec![left]);
            }
            Expr::Lambda(_) => self.read(expr),
            other => {
                for child in children(other) {
                    match child {
                        Child::Expr(child) => self.columns_below(child, scans, places),
                        Child::Query(query) => {
                            self.subquery(query, JoinKind::Existence, Vec::new());
                        }
                    }
                }
            }
        }
    }

    /// Reads a condition as one on a single scan.
    fn test(&mut self, expr: &'q Expr, scan: usize) -> Read {
        match unnested(expr) {
            Expr::BinaryOp { op: BinaryOperator::And, .. } => {
                self.all(conjuncts(expr), scan, Predicate::And)
            }
            Expr::BinaryOp { op: BinaryOperator::Or, .. } => {
                self.all(disjuncts(expr), scan, Predicate::Or)
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
                let Read { predicate, pure } = self.test(expr, scan);
                Read { predicate: predicate.negated(), pure }
            }
            Expr::IsNotNull(inner) => {
                let pure = self.tested(inner, scan).is_some();
                Read { predicate: Predicate::Always, pure }
            }
            Expr::IsNull(inner) => match self.tested(inner, scan) {
                Some((column, _)) => {
                    Read { predicate: Predicate::Column(column, Test::is_null()), pure: true }
                }
                None => self.opaque(expr, scan),
            },
            Expr::Value(value) if matches!(value.value, Constant::Boolean(_)) => {
                Read { predicate: Predicate::Always, pure: true }
            }
            other => match self.sharp(other, scan) {
                Some(predicate) => Read { predicate, pure: true },
                None => self.opaque(other, scan),
            },
        }
    }

    fn all(
        &mut self,
        parts: Vec<&'q Expr>,
        scan: usize,
        join: fn(Vec<Predicate>) -> Predicate,
    ) -> Read {
        let mut pure = true;
        let predicates = parts
            .into_iter()
            .map(|part| {
                let read = self.test(part, scan);
                pure &= read.pure;
                read.predicate
            })
            .collect();
        Read { predicate: join(predicates), pure }
    }

    /// A test of one column against constants.
    fn sharp(&mut self, expr: &'q Expr, scan: usize) -> Option<Predicate> {
        match expr {
            Expr::BinaryOp { left, op, right } => self.comparison(left, op, right, scan),
            Expr::IsNotDistinctFrom(left, right) => {
                self.comparison(left, &BinaryOperator::Eq, right, scan)
            }
            Expr::Between { expr, negated: false, low, high } => {
                let (column, kind) = self.tested(expr, scan)?;
                if is_parameter(low) && is_parameter(high) {
                    return Some(Predicate::Column(column, Test::unknown(FilterOperator::Range)));
                }
                let low = Test::at_least(fitted(constant(low)?, kind)?, true);
                let high = Test::at_most(fitted(constant(high)?, kind)?, true);
                Some(Predicate::And(vec![
                    Predicate::Column(column.clone(), low),
                    Predicate::Column(column, high),
                ]))
            }
            Expr::InList { expr, list, negated: false } => {
                let (column, kind) = self.tested(expr, scan)?;
                if list.iter().any(is_parameter) {
                    return Some(Predicate::Column(column, Test::unknown(FilterOperator::In)));
                }
                let values: Option<Vec<Literal>> =
                    list.iter().map(|value| fitted(constant(value)?, kind)).collect();
                Some(Predicate::Column(column, Test::one_of(values?)))
            }
            Expr::Like { negated: false, any: false, expr, pattern, .. } => {
                let (column, _) = self.tested(expr, scan)?;
                let Literal::Text(pattern) = constant(pattern)? else { return None };
                let prefix = pattern.strip_suffix('%')?;
                // An escape before a wildcard, or a wildcard inside, is no plain prefix.
                let plain = !prefix.is_empty() && !prefix.contains(['%', '_', '\\']);
                plain.then(|| Predicate::Column(column, Test::prefix(prefix)))
            }
            _ => None,
        }
    }

    fn comparison(
        &mut self,
        left: &'q Expr,
        operator: &BinaryOperator,
        right: &'q Expr,
        scan: usize,
    ) -> Option<Predicate> {
        let known = |expr: &Expr| constant(expr).is_some() || is_parameter(expr);
        let (side, other, operator) = match (known(left), known(right)) {
            (false, true) => (left, right, operator.clone()),
            (true, false) => (right, left, mirrored(operator)?),
            _ => return None,
        };
        let (column, kind) = self.tested(side, scan)?;
        if is_parameter(other) {
            let operator = match operator {
                BinaryOperator::Eq | BinaryOperator::Spaceship => FilterOperator::Equal,
                BinaryOperator::NotEq => return None,
                _ => FilterOperator::Range,
            };
            return Some(Predicate::Column(column, Test::unknown(operator)));
        }
        let value = fitted(constant(other)?, kind)?;
        let test = match operator {
            BinaryOperator::Eq | BinaryOperator::Spaceship => Test::equal(value),
            BinaryOperator::Lt => Test::at_most(value, false),
            BinaryOperator::LtEq => Test::at_most(value, true),
            BinaryOperator::Gt => Test::at_least(value, false),
            BinaryOperator::GtEq => Test::at_least(value, true),
            _ => return None,
        };
        Some(Predicate::Column(column, test))
    }

    /// The column of a scan that an expression passes on.
    fn tested(&mut self, expr: &'q Expr, scan: usize) -> Option<(String, Option<ColumnType>)> {
        let passes = matches!(
            unnested(expr),
            Expr::Identifier(_)
                | Expr::CompoundIdentifier(_)
                | Expr::CompoundFieldAccess { .. }
                | Expr::Cast { .. }
                | Expr::Collate { .. }
        );
        if !passes {
            return None;
        }
        let value = self.value(expr);
        let source = value.origin.sources().iter().find(|source| source.scan == scan)?;
        let column = source.column.column.clone();
        let kind = self.scans.kind(scan, &column);
        Some((column, kind))
    }

    /// Mentions every column of the scan; impure when there are others.
    fn opaque(&mut self, expr: &'q Expr, scan: usize) -> Read {
        let mut columns = Vec::new();
        let mut pure = true;
        self.mentioned_columns(expr, scan, &mut columns, &mut pure);
        columns.sort();
        columns.dedup();
        let pure = pure && !columns.is_empty();
        Read { predicate: Predicate::Opaque(columns), pure }
    }

    fn mentioned_columns(
        &mut self,
        expr: &'q Expr,
        scan: usize,
        columns: &mut Vec<String>,
        pure: &mut bool,
    ) {
        match expr {
            Expr::Identifier(_)
            | Expr::CompoundIdentifier(_)
            | Expr::CompoundFieldAccess { .. } => {
                let value = self.value(expr);
                let sources = value.origin.sources();
                match sources.iter().find(|source| source.scan == scan) {
                    Some(source) => columns.push(source.column.column.clone()),
                    // A computed column may stand for anything.
                    None => *pure = false,
                }
            }
            other => {
                for child in children(other) {
                    match child {
                        Child::Expr(child) => self.mentioned_columns(child, scan, columns, pure),
                        Child::Query(_) => *pure = false,
                    }
                }
            }
        }
    }
}

fn mirrored(operator: &BinaryOperator) -> Option<BinaryOperator> {
    Some(match operator {
        BinaryOperator::Lt => BinaryOperator::Gt,
        BinaryOperator::LtEq => BinaryOperator::GtEq,
        BinaryOperator::Gt => BinaryOperator::Lt,
        BinaryOperator::GtEq => BinaryOperator::LtEq,
        BinaryOperator::Eq | BinaryOperator::Spaceship | BinaryOperator::NotEq => operator.clone(),
        _ => return None,
    })
}
