//! From a conjunct to tests of the scans whose columns it compares.

use std::collections::BTreeSet;

use datafusion_sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value as Constant};
use lakebed_model::{FilterOperator, JoinKind, Literal};

use super::{
    Walk,
    children::{Child, children},
    condition::{On, common_conjuncts, conjuncts, disjuncts, unnested},
    constant::{constant, fitted, is_parameter},
    value::is_aggregate,
};
use crate::{
    ColumnType,
    lineage::predicate::{Predicate, Test},
};

/// The scans and relations whose columns a condition names.
#[derive(Default)]
struct Below {
    scans: BTreeSet<usize>,
    places: BTreeSet<(usize, usize)>,
}

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
        let common = common_conjuncts(expr);
        // What all branches say was read as conjuncts of their own.
        let branches: Vec<Vec<&'q Expr>> = disjuncts(expr)
            .into_iter()
            .map(|branch| {
                conjuncts(branch).into_iter().filter(|part| !common.contains(part)).collect()
            })
            .collect();
        let mut below = Below::default();
        for part in branches.iter().flatten() {
            self.columns_below(part, &mut below);
        }
        if !common.is_empty() && branches.iter().any(Vec::is_empty) {
            return;
        }
        let here = self.frames.len().saturating_sub(1);
        let applies = below
            .places
            .iter()
            .all(|(depth, relation)| *depth == here && on.is_none_or(|on| on.filters(*relation)));
        if !applies {
            return;
        }
        for scan in below.scans {
            self.filter_scan(&branches, scan);
        }
    }

    /// Gives a disjunction to a scan: as it is when all of it is about the scan, else what each of
    /// its branches asks of the scan.
    fn filter_scan(&mut self, branches: &[Vec<&'q Expr>], scan: usize) {
        let (mut all, mut implied) = (Vec::new(), Vec::new());
        let mut pure = true;
        for branch in branches {
            let mut whole = Vec::new();
            let mut own = Vec::new();
            for part in branch {
                let read = self.test(part, scan);
                pure &= read.pure;
                if read.pure {
                    own.push(read.predicate.clone());
                }
                whole.push(read.predicate);
            }
            all.push(Predicate::And(whole));
            implied.push(own);
        }
        if pure {
            self.scans.push(scan, one_or(all));
        } else if branches.len() > 1 && implied.iter().all(|own| !own.is_empty()) {
            let branches = implied.into_iter().map(Predicate::And).collect();
            self.implied.push((scan, Predicate::Or(branches)));
        }
    }

    /// Resolves every column of a condition, and reads the queries inside it.
    fn columns_below(&mut self, expr: &'q Expr, below: &mut Below) {
        match expr {
            Expr::Identifier(_)
            | Expr::CompoundIdentifier(_)
            | Expr::CompoundFieldAccess { .. } => {
                let value = self.value(expr);
                let before = below.scans.len();
                below.scans.extend(value.scans().map(|(scan, _)| scan));
                if below.scans.len() > before || !value.origin.sources().is_empty() {
                    below.places.extend(value.place);
                }
            }
            Expr::InSubquery { expr, subquery, .. } => {
                let left = self.value(expr);
                self.subquery(subquery, JoinKind::Existence, vec![left]);
            }
            // A value that no row passes without.
            Expr::Subquery(query) => {
                self.subquery(query, JoinKind::Inner, Vec::new());
            }
            Expr::Lambda(_) => self.read(expr),
            folded if is_aggregate(folded) => self.read(folded),
            other => {
                for child in children(other) {
                    match child {
                        Child::Expr(child) => self.columns_below(child, below),
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
                let (low, high) = (self.known(low)?, self.known(high)?);
                let low = Test::at_least(fitted(low, kind)?, true);
                let high = Test::at_most(fitted(high, kind)?, true);
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
                    list.iter().map(|value| fitted(self.known(value)?, kind)).collect();
                let mut values = values?;
                let test = match values.len() {
                    1 => Test::equal(values.remove(0)),
                    _ => Test::one_of(values),
                };
                Some(Predicate::Column(column, test))
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
            (false, false) => {
                // A column beside something that is no constant here but may be one in the end.
                for (side, other) in [(left, right), (right, left)] {
                    if self.tested(side, scan).is_some() {
                        self.known(other);
                    }
                }
                return None;
            }
            (true, true) => return None,
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

    /// The constant that an expression is; notes where only a planner could tell.
    fn known(&mut self, expr: &'q Expr) -> Option<Literal> {
        let literal = constant(expr);
        if literal.is_none() && !is_parameter(expr) && is_closed(expr) {
            self.open_constants = true;
        }
        literal
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
        let column = value.scans().find(|(found, _)| *found == scan)?.1.to_owned();
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
                match value.scans().find(|(found, _)| *found == scan) {
                    Some((_, column)) => columns.push(column.to_owned()),
                    // A computed column may stand for anything.
                    None => *pure = false,
                }
            }
            Expr::InSubquery { .. } | Expr::Exists { .. } => *pure = false,
            folded if is_aggregate(folded) => *pure = false,
            other => {
                for child in children(other) {
                    // The value of a query is a constant, if an unknown one.
                    if let Child::Expr(child) = child {
                        self.mentioned_columns(child, scan, columns, pure);
                    }
                }
            }
        }
    }
}

/// A disjunction of one branch is the branch.
fn one_or(mut branches: Vec<Predicate>) -> Predicate {
    match branches.len() {
        1 => branches.remove(0),
        _ => Predicate::Or(branches),
    }
}

/// Tells whether nothing below an expression is a column, a parameter, a query or a null.
fn is_closed(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::CompoundFieldAccess { .. } => {
            false
        }
        Expr::Value(value) => !matches!(value.value, Constant::Null | Constant::Placeholder(_)),
        other if is_parameter(other) => false,
        other => children(other)
            .into_iter()
            .all(|child| matches!(child, Child::Expr(inner) if is_closed(inner))),
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
