//! Long chains of `OR` and `AND` as lists and balanced trees.
//!
//! `a = 1 OR a = 2 OR …` with thousands of terms is a tree as deep as it has terms. Equalities of one
//! column are a list; what is left becomes a tree as deep as its logarithm.

use datafusion_sql::sqlparser::ast::{BinaryOperator, Expr};

/// Chains shorter than this stay as they are written.
const SHORT: usize = 24;

/// Rebuilds an expression that is a long chain.
pub(super) fn rebuild(expr: &mut Expr) {
    let operator = match unnested(expr) {
        Expr::BinaryOp { op: op @ (BinaryOperator::Or | BinaryOperator::And), .. } => op.clone(),
        _ => return,
    };
    if !is_long(expr, &operator) {
        return;
    }
    let null = Expr::value(datafusion_sql::sqlparser::ast::Value::Null);
    let mut parts = Vec::new();
    take(std::mem::replace(expr, null), &operator, &mut parts);
    if operator == BinaryOperator::Or {
        parts = listed(parts);
    }
    *expr = balanced(parts, &operator);
}

fn is_long(expr: &Expr, operator: &BinaryOperator) -> bool {
    let mut count = 0;
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        if let Expr::BinaryOp { left, op, right } = unnested(expr)
            && op == operator
        {
            count += 1;
            open.extend([&**right, &**left]);
        }
        if count >= SHORT {
            return true;
        }
    }
    false
}

/// Takes a chain apart, in order, without recursion.
fn take(expr: Expr, operator: &BinaryOperator, parts: &mut Vec<Expr>) {
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        match expr {
            Expr::BinaryOp { left, op, right } if op == *operator => open.extend([*right, *left]),
            Expr::Nested(inner) if is_chain(&inner, operator) => open.push(*inner),
            part => parts.push(part),
        }
    }
}

fn is_chain(expr: &Expr, operator: &BinaryOperator) -> bool {
    matches!(unnested(expr), Expr::BinaryOp { op, .. } if op == operator)
}

/// Makes lists of neighboring equalities of one column with constants.
fn listed(parts: Vec<Expr>) -> Vec<Expr> {
    let mut out: Vec<Expr> = Vec::new();
    for part in parts {
        let Some((column, value)) = equality(&part) else {
            out.push(part);
            continue;
        };
        match out.last_mut() {
            Some(Expr::InList { expr, list, negated: false }) if **expr == *column => {
                list.push(value.clone());
            }
            _ => out.push(Expr::InList {
                expr: Box::new(column.clone()),
                list: vec![value.clone()],
                negated: false,
            }),
        }
    }
    out
}

fn equality(expr: &Expr) -> Option<(&Expr, &Expr)> {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = unnested(expr) else {
        return None;
    };
    match (&**left, &**right) {
        (column @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_)), value @ Expr::Value(_))
        | (value @ Expr::Value(_), column @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_))) => {
            Some((column, value))
        }
        _ => None,
    }
}

fn balanced(mut parts: Vec<Expr>, operator: &BinaryOperator) -> Expr {
    while parts.len() > 1 {
        let mut halved = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some(left) = rest.next() {
            halved.push(match rest.next() {
                // The other operator inside keeps its parentheses, which it binds less tightly than.
                Some(right) => Expr::Nested(Box::new(Expr::BinaryOp {
                    left: Box::new(left),
                    op: operator.clone(),
                    right: Box::new(right),
                })),
                None => left,
            });
        }
        parts = halved;
    }
    parts.pop().expect("a chain has at least two parts, and halving leaves one")
}

fn unnested(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

#[cfg(test)]
mod tests {
    use super::rebuild;
    use datafusion_sql::sqlparser::{dialect::GenericDialect, parser::Parser};

    fn rebuilt(sql: &str) -> String {
        let mut expr =
            Parser::new(&GenericDialect {}).try_with_sql(sql).unwrap().parse_expr().unwrap();
        rebuild(&mut expr);
        expr.to_string()
    }

    #[test]
    fn equalities_of_one_column_become_a_list() {
        let terms: Vec<String> = (0..40).map(|n| format!("a.s = {n}")).collect();
        let values: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        assert_eq!(rebuilt(&terms.join(" OR ")), format!("a.s IN ({})", values.join(", ")));
    }

    #[test]
    fn other_chains_become_shallow_and_keep_their_terms() {
        let terms: Vec<String> = (0..64).map(|n| format!("a{n} < b")).collect();
        let text = rebuilt(&terms.join(" AND "));
        let depth = text.chars().take_while(|c| *c == '(').count();
        assert_eq!(depth, 6);
        assert_eq!(text.replace(['(', ')'], ""), terms.join(" AND "));
    }

    #[test]
    fn short_chains_stay() {
        assert_eq!(rebuilt("a = 1 OR a = 2"), "a = 1 OR a = 2");
    }
}
