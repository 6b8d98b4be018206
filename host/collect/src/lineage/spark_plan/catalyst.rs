//! Conditions as Spark prints its own expressions: `(l_quantity#4 < 24.00)`.
//!
//! Needed where no data source filter exists: partition filters, and scans of engines that do not
//! list their pushed filters.
//!
//! Constants are printed bare: in `(p_brand#5 = Brand#45)` both sides look like columns. What the
//! scan is known to have decides; where it has neither, both are taken for columns.

use crate::lineage::{
    literal,
    predicate::{Predicate, Test},
};

use super::{
    pushed::Types,
    text::{Attribute, attribute, call, inside_parentheses, mentioned, split_top},
};

/// What is known of the columns that a condition may speak of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'s> {
    /// Types of the columns in the files, by name.
    pub(super) types: &'s Types,
    /// What the scan gives to the operator above.
    pub(super) output: &'s [Attribute],
}

impl Scope<'_> {
    /// Tells whether the scan has a column of this name, and under no other id. The value of a
    /// subquery (`Subquery subquery#4981`) is no constant either.
    fn has(&self, attribute: &Attribute) -> bool {
        if attribute.name.ends_with("subquery") {
            return true;
        }
        let mut same_name = self.output.iter().filter(|own| own.name == attribute.name).peekable();
        if same_name.peek().is_some() {
            return same_name.any(|own| own.id == attribute.id);
        }
        self.types.iter().any(|(name, _)| *name == attribute.name)
    }

    /// Lists the columns in an expression: those the scan has, else all that look like columns.
    fn columns_in(&self, text: &str) -> Vec<String> {
        let (own, others): (Vec<_>, Vec<_>) =
            mentioned(text).into_iter().partition(|attribute| self.has(attribute));
        let columns = if own.is_empty() { others } else { own };
        columns.into_iter().map(|attribute| attribute.name).collect()
    }
}

/// Reads a list of conjuncts, with or without its brackets.
pub(super) fn read_list(text: &str, scope: Scope<'_>) -> Vec<Predicate> {
    let inner = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    split_top(inner.unwrap_or(text)).into_iter().map(|item| read(item, scope)).collect()
}

/// Conditions longer than this are not taken apart: each level is looked through anew.
const MAX_BYTES: usize = 32 << 10;
/// Conditions inside of conditions beyond this are not taken apart.
const MAX_DEPTH: usize = 64;

/// Reads one condition.
pub(super) fn read(text: &str, scope: Scope<'_>) -> Predicate {
    read_at(text, scope, 0)
}

fn read_at(text: &str, scope: Scope<'_>, depth: usize) -> Predicate {
    let text = text.trim();
    if text.len() > MAX_BYTES || depth > MAX_DEPTH {
        return Predicate::Opaque(scope.columns_in(text));
    }
    // The engine's own runtime filters are nobody's condition.
    if ["dynamicpruning", "might_contain("].iter().any(|own| text.contains(own))
        && !text.contains(" AND ")
    {
        return Predicate::Always;
    }
    parse(text, scope, depth).unwrap_or_else(|| Predicate::Opaque(scope.columns_in(text)))
}

fn parse(text: &str, scope: Scope<'_>, depth: usize) -> Option<Predicate> {
    if let Some(inner) = text.strip_prefix("NOT ") {
        return Some(read_at(inner, scope, depth + 1).negated());
    }
    if let Some((name, arguments)) = call(text) {
        return function(name, arguments);
    }
    if let Some((column, list)) = text.split_once(" IN ")
        && let Some(column) = attribute(column)
    {
        let values = split_top(inside_parentheses(list)?);
        let constants = values.into_iter().map(|value| constant(&column, value, scope));
        let test = Test::one_of(constants.collect::<Option<_>>()?);
        return Some(Predicate::Column(column.name, test));
    }
    let inner = inside_parentheses(text)?;
    let (left, operator, right) = split_operator(inner)?;
    if !matches!(operator, "AND" | "OR") {
        return comparison(left, operator, right, scope);
    }
    let parts = chain(left, operator, right);
    let parts = parts.into_iter().map(|part| read_at(part, scope, depth + 1)).collect();
    Some(if operator == "AND" { Predicate::all(parts) } else { Predicate::any(parts) })
}

/// Takes `((a OR b) OR c)` apart, which Spark nests to the left, as one level.
fn chain<'t>(left: &'t str, operator: &str, right: &'t str) -> Vec<&'t str> {
    let mut parts = vec![right];
    let mut rest = left;
    while let Some((left, _, right)) =
        inside_parentheses(rest).and_then(split_operator).filter(|(_, inner, _)| *inner == operator)
    {
        parts.push(right);
        rest = left;
    }
    parts.push(rest);
    parts.reverse();
    parts
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

fn comparison(left: &str, operator: &str, right: &str, scope: Scope<'_>) -> Option<Predicate> {
    let (column, value, operator) = match (attribute(left), attribute(right)) {
        (Some(column), None) => (column, right, operator),
        (None, Some(column)) => (column, left, mirrored(operator)),
        (Some(column), Some(other)) if scope.has(&column) && !scope.has(&other) => {
            (column, right, operator)
        }
        (Some(other), Some(column)) if scope.has(&column) && !scope.has(&other) => {
            (column, left, mirrored(operator))
        }
        _ => return None,
    };
    let value = constant(&column, value, scope)?;
    let test = match operator {
        "=" | "<=>" => Test::equal(value),
        "<" => Test::at_most(value, false),
        "<=" => Test::at_most(value, true),
        ">" => Test::at_least(value, false),
        ">=" => Test::at_least(value, true),
        _ => return None,
    };
    Some(Predicate::Column(column.name, test))
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

fn constant(column: &Attribute, text: &str, scope: Scope<'_>) -> Option<lakebed_model::Literal> {
    let text = text.trim();
    // An expression is no constant.
    let is_column = |found: &Attribute| scope.has(found) || !scope.has(column);
    if mentioned(text).iter().any(is_column) || text.contains('(') {
        return None;
    }
    let kind = scope.types.iter().find(|(name, _)| *name == column.name).map(|(_, kind)| *kind);
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
    use super::{Attribute, Scope, read_list};
    use crate::{ColumnType, lineage::predicate::filters};
    use lakebed_model::TableName;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let types = [("name".to_owned(), ColumnType::Text), ("day".to_owned(), ColumnType::Date)];
        let output = [Attribute { name: "size".to_owned(), id: 4 }];
        let scope = Scope { types: &types, output: &output };
        let found: Vec<String> = filters(&TableName::new("t"), read_list(text, scope))
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
        check(
            "((k#2 IN (3,1) AND (a#1 < 5)) AND isnotnull(b#7))",
            &["a range (-∞, 5)", "k in [1, 3]"],
        );
        check("[StartsWith(name#9, forest)]", &["name prefix ['forest', 'foresu')"]);
    }

    #[test]
    fn long_chains_are_one_level_and_longer_ones_are_opaque() {
        let chain = |terms: usize| {
            (1..terms).fold("(a#1 = 0)".to_owned(), |text, n| format!("({text} OR (a#1 = {n}))"))
        };
        check(&chain(400), &["a in [0, 399]"]);
        check(&chain(20_000), &["a other ?"]);
        check(&format!("{}(a#1 = 5){}", "(NOT ".repeat(90), ")".repeat(90)), &["a other ?"]);
    }

    #[test]
    fn text_that_looks_like_a_column_is_a_constant_beside_a_column_that_is_one() {
        check("[(name#3 = Brand#45)]", &["name equal ['Brand#45', 'Brand#45']"]);
        check("[(Brand#45 < name#3)]", &["name range ('Brand#45', ∞)"]);
        check("[name#3 IN (Brand#12,Brand#23)]", &["name in ['Brand#12', 'Brand#23']"]);
        check("[NOT (name#3 = Brand#45)]", &["name other ?"]);
        check("[(concat(name#3, x) = Brand#45)]", &["name other ?"]);
        check("[(name#3 = size#5)]", &["name equal ['size#5', 'size#5']"]);
        check("[(name#3 = size#4)]", &["name other ?", "size other ?"]);
        check("[(unknown#3 = other#4)]", &["other other ?", "unknown other ?"]);
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
