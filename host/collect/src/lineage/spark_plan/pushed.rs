//! The data source filters of a scan: `[IsNotNull(a), GreaterThanOrEqual(a,5)]`.
//!
//! Constants are printed bare, so text with a comma or a bracket in it can be misread; a filter
//! that does not parse is counted as opaque and never narrows a range.

use crate::{
    ColumnType,
    lineage::{
        literal,
        predicate::{Predicate, Test},
    },
};

use super::text::{call, inside_parentheses, split_top};

/// Types of a scan's columns, by name.
pub(super) type Types = [(String, ColumnType)];

/// Reads a list of filters, with or without its brackets.
pub(super) fn read_list(text: &str, types: &Types) -> Vec<Predicate> {
    let inner = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    split_top(inner.unwrap_or(text)).into_iter().map(|item| read(item, types)).collect()
}

fn read(text: &str, types: &Types) -> Predicate {
    let Some((name, arguments)) = call(text) else { return Predicate::Opaque(Vec::new()) };
    let opaque = || Predicate::Opaque(columns_in(text, types));
    match name {
        "And" | "Or" => match split_top(arguments).as_slice() {
            [left, right] => {
                let sides = vec![read(left, types), read(right, types)];
                if name == "And" { Predicate::And(sides) } else { Predicate::Or(sides) }
            }
            _ => opaque(),
        },
        "Not" => read(arguments, types).negated(),
        "IsNotNull" | "AlwaysTrue" => Predicate::Always,
        "IsNull" => Predicate::Column(column(arguments), Test::is_null()),
        _ => comparison(name, arguments, types).unwrap_or_else(opaque),
    }
}

fn comparison(name: &str, arguments: &str, types: &Types) -> Option<Predicate> {
    let (attribute, value) = arguments.split_once(',')?;
    let column = column(attribute);
    let kind = types.iter().find(|(name, _)| *name == column).map(|(_, kind)| *kind);
    let constant = |text: &str| literal::typed(text, kind);
    let test = match name {
        "EqualTo" | "EqualNullSafe" => Test::equal(constant(value)?),
        "LessThan" => Test::at_most(constant(value)?, false),
        "LessThanOrEqual" => Test::at_most(constant(value)?, true),
        "GreaterThan" => Test::at_least(constant(value)?, false),
        "GreaterThanOrEqual" => Test::at_least(constant(value)?, true),
        "StringStartsWith" => Test::prefix(value),
        "In" => {
            let list = value.trim().strip_prefix('[')?.strip_suffix(']')?;
            Test::one_of(split_top(list).into_iter().map(constant).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    Some(Predicate::Column(column, test))
}

/// Column names with special characters are quoted.
fn column(text: &str) -> String {
    text.trim().trim_matches('`').to_owned()
}

fn columns_in(text: &str, types: &Types) -> Vec<String> {
    let inner = inside_parentheses(text).unwrap_or(text);
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    inner
        .split(|c| !is_name(c))
        .filter(|word| types.iter().any(|(name, _)| name == word))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{ColumnType, read_list};
    use crate::lineage::predicate::filters;
    use lakebed_model::TableName;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let types = [
            ("key".to_owned(), ColumnType::Integer),
            ("day".to_owned(), ColumnType::Date),
            ("price".to_owned(), ColumnType::Decimal { scale: 2 }),
            ("name".to_owned(), ColumnType::Text),
        ];
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
    fn both_ends_of_a_range_become_one_filter() {
        check(
            "[IsNotNull(key), GreaterThanOrEqual(key,348543), LessThanOrEqual(key,468542)]",
            &["key range [348543, 468542]"],
        );
    }

    #[test]
    fn constants_have_the_type_of_their_column() {
        check(
            "[LessThan(day,1995-01-01), GreaterThan(price,0.05), EqualTo(name,1001-5000)]",
            &[
                "day range (-∞, 1995-01-01)",
                "name equal ['1001-5000', '1001-5000']",
                "price range (0.05, ∞)",
            ],
        );
    }

    #[test]
    fn lists_prefixes_and_disjunctions_are_read() {
        check("[In(key, [3,1,2])]", &["key in [1, 3]"]);
        check("[StringStartsWith(name,forest)]", &["name prefix ['forest', 'foresu')"]);
        check(
            "[Or(EqualTo(name,FRANCE),EqualTo(name,GERMANY))]",
            &["name in ['FRANCE', 'GERMANY']"],
        );
        check(
            "[Or(And(GreaterThan(key,1),LessThan(key,5)),EqualTo(key,9))]",
            &["key range (1, 9]"],
        );
    }

    #[test]
    fn what_cannot_be_read_is_opaque() {
        check("[Not(EqualTo(key,5)), StringEndsWith(name,x)]", &["key other ?", "name other ?"]);
        check("[EqualTo(key,null)]", &["key other ?"]);
        check("[]", &[]);
    }
}
