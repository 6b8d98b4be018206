//! Conditions as Spark prints its own expressions: `(l_quantity#4 < 24.00)`.
//!
//! Needed where no data source filter exists: partition filters, and scans of engines that do not
//! list their pushed filters.

use crate::lineage::{
    literal,
    predicate::{Predicate, Test},
};

use super::{
    pushed::Types,
    text::{attribute, call, inside_parentheses, mentioned, split_top},
};

/// Reads a list of conjuncts, with or without its brackets.
pub(super) fn read_list(text: &str, types: &Types) -> Vec<Predicate> {
    let inner = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    split_top(inner.unwrap_or(text)).into_iter().map(|item| read(item, types)).collect()
}

/// Reads one condition.
pub(super) fn read(text: &str, types: &Types) -> Predicate {
    let text = text.trim();
    // The engine's own runtime filters are nobody's condition.
    if ["dynamicpruning", "might_contain("].iter().any(|own| text.contains(own))
        && !text.contains(" AND ")
    {
        return Predicate::Always;
    }
    parse(text, types).unwrap_or_else(|| Predicate::Opaque(mentioned(text)))
}

fn parse(text: &str, types: &Types) -> Option<Predicate> {
    if let Some(inner) = text.strip_prefix("NOT ") {
        return Some(read(inner, types).negated());
    }
    if let Some((name, arguments)) = call(text) {
        return function(name, arguments);
    }
    if let Some((column, list)) = text.split_once(" IN ") {
        let column = attribute(column)?.name;
        let values = split_top(inside_parentheses(list)?);
        let constants = values.into_iter().map(|value| constant(&column, value, types));
        let test = Test::one_of(constants.collect::<Option<_>>()?);
        return Some(Predicate::Column(column, test));
    }
    let inner = inside_parentheses(text)?;
    let (left, operator, right) = split_operator(inner)?;
    match operator {
        "AND" => Some(Predicate::And(vec![read(left, types), read(right, types)])),
        "OR" => Some(Predicate::Or(vec![read(left, types), read(right, types)])),
        _ => comparison(left, operator, right, types),
    }
}

fn function(name: &str, arguments: &str) -> Option<Predicate> {
    match name {
        "isnotnull" => Some(Predicate::Always),
        "isnull" => Some(Predicate::Column(attribute(arguments)?.name, Test::is_null())),
        "StartsWith" => {
            let (column, prefix) = arguments.split_once(", ")?;
            let column = attribute(column)?.name;
            Some(Predicate::Column(column, Test::prefix(prefix)))
        }
        _ => None,
    }
}

fn comparison(left: &str, operator: &str, right: &str, types: &Types) -> Option<Predicate> {
    let (column, value, operator) = match (attribute(left), attribute(right)) {
        (Some(column), None) => (column.name, right, operator),
        (None, Some(column)) => (column.name, left, mirrored(operator)),
        _ => return None,
    };
    let value = constant(&column, value, types)?;
    let test = match operator {
        "=" | "<=>" => Test::equal(value),
        "<" => Test::at_most(value, false),
        "<=" => Test::at_most(value, true),
        ">" => Test::at_least(value, false),
        ">=" => Test::at_least(value, true),
        _ => return None,
    };
    Some(Predicate::Column(column, test))
}

fn mirrored(operator: &str) -> &str {
    match operator {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        same => same,
    }
}

fn constant(column: &str, text: &str, types: &Types) -> Option<lakebed_model::Literal> {
    let text = text.trim();
    // An expression is no constant.
    if !mentioned(text).is_empty() || text.contains('(') {
        return None;
    }
    let kind = types.iter().find(|(name, _)| name == column).map(|(_, kind)| *kind);
    literal::typed(text, kind)
}

/// Splits at the first operator outside of all brackets.
fn split_operator(text: &str) -> Option<(&str, &str, &str)> {
    const OPERATORS: [&str; 8] = ["AND", "OR", "<=>", "<=", ">=", "=", "<", ">"];
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ' ' if depth == 0 => {
                let rest = &text[at + 1..];
                let found = OPERATORS.iter().find(|operator| {
                    rest.strip_prefix(**operator).is_some_and(|after| after.starts_with(' '))
                });
                if let Some(operator) = found {
                    return Some((&text[..at], operator, &rest[operator.len() + 1..]));
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::read_list;
    use crate::{ColumnType, lineage::predicate::filters};
    use lakebed_model::TableName;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let types = [("name".to_owned(), ColumnType::Text), ("day".to_owned(), ColumnType::Date)];
        let found: Vec<String> = filters(&TableName::new("t"), read_list(text, &types))
            .iter()
            .map(|filter| {
                let range = filter.range.as_ref().map_or("?".to_owned(), ToString::to_string);
                format!("{} {} {range}", filter.column.column, filter.operator.as_str())
            })
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn comparisons_are_read_either_way_round() {
        check("[isnotnull(k#1L), (k#1L >= 5), (9 > k#1L)]", &["k range [5, 9)"]);
        check("[(day#3 = 1994-01-01)]", &["day equal [1994-01-01, 1994-01-01]"]);
        check("[(name#3 = SAUDI ARABIA)]", &["name equal ['SAUDI ARABIA', 'SAUDI ARABIA']"]);
    }

    #[test]
    fn nested_conditions_are_read() {
        check("(((a#1 > 1) AND (a#1 < 5)) OR (a#1 = 9))", &["a range (1, 9]"]);
        check("[k#2 IN (3,1)]", &["k in [1, 3]"]);
        check("[StartsWith(name#9, forest)]", &["name prefix ['forest', 'foresu')"]);
    }

    #[test]
    fn engine_filters_are_passed_over_and_computed_ones_are_opaque() {
        check("[dynamicpruningexpression(d#1 IN dynamicpruning#918)]", &[]);
        check("[might_contain(Subquery subquery#921, [id=#278], cast(b#7 as bigint))]", &[]);
        check(
            "[(l_receiptdate#5 > l_commitdate#4)]",
            &["l_commitdate other ?", "l_receiptdate other ?"],
        );
        check("[substring(c_phone#1, 1, 2) IN (13,31)]", &["c_phone other ?"]);
        check("[NOT (a#1 = 5)]", &["a other ?"]);
    }
}
