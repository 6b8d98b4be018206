//! The data source filters of a scan: `[IsNotNull(a), GreaterThanOrEqual(a,5)]`.
//!
//! Constants are printed bare, so text may hold commas and brackets of its own. The reader goes by
//! what must follow: a constant ends at the first closing parenthesis after which another filter,
//! or the end of the one around it, can come; of several the first that leaves the constant's own
//! brackets in balance. A filter that does not parse is counted as opaque and never narrows a
//! range. Nesting costs no stack.

use crate::{
    ColumnType,
    lineage::{
        literal,
        predicate::{Predicate, Test},
    },
};

use super::text::split_top;

/// Types of a scan's columns, by name.
pub(super) type Types = [(String, ColumnType)];

/// The filters that Spark and its sources print.
const NAMES: [&str; 19] = [
    "AlwaysFalse",
    "AlwaysTrue",
    "And",
    "EqualNullSafe",
    "EqualTo",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "IsNotNull",
    "IsNull",
    "LessThan",
    "LessThanOrEqual",
    "Not",
    "Or",
    "StringContains",
    "StringEndsWith",
    "StringStartsWith",
    "CollatedEqualTo",
    "CollatedIn",
];

/// Filters inside of filters beyond this are not read.
const MAX_DEPTH: usize = 500;

/// Reads a list of filters, with or without its brackets.
pub(super) fn read_list(text: &str, types: &Types) -> Vec<Predicate> {
    let inner = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let mut rest = inner.unwrap_or(text).trim();
    let mut found = Vec::new();
    while !rest.is_empty() {
        // Sources that print `*EqualTo(…)` have applied the filter in full.
        let item = rest.strip_prefix('*').unwrap_or(rest);
        let (predicate, after) = match read(item, types) {
            Some((predicate, after)) => (predicate, after),
            None => {
                let end = next_filter(item).unwrap_or(item.len());
                (Predicate::Opaque(columns_in(&item[..end], types)), &item[end..])
            }
        };
        found.push(predicate);
        rest = after.trim_start_matches([',', ' ']);
    }
    found
}

/// A filter whose inner ones are being read.
struct Frame {
    name: &'static str,
    read: Vec<Predicate>,
}

/// Reads one filter; `None` where the text is none, or ends too early.
fn read<'t>(text: &'t str, types: &Types) -> Option<(Predicate, &'t str)> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut rest = text;
    loop {
        let (name, arguments) = start(rest)?;
        if matches!(name, "And" | "Or" | "Not") {
            if frames.len() == MAX_DEPTH {
                return None;
            }
            frames.push(Frame { name, read: Vec::new() });
            rest = arguments;
            continue;
        }
        let (mut predicate, mut after) = leaf(name, arguments, &frames, types)?;
        loop {
            let Some(frame) = frames.last_mut() else { return Some((predicate, after)) };
            frame.add(predicate);
            if !frame.is_full() {
                rest = after.strip_prefix(',')?;
                break;
            }
            after = after.strip_prefix(')')?;
            predicate = frames.pop()?.finish();
        }
    }
}

impl Frame {
    /// Adds an inner filter; of the same kind, it is no level of its own.
    fn add(&mut self, predicate: Predicate) {
        self.read.push(predicate);
    }

    fn is_full(&self) -> bool {
        self.read.len() == if self.name == "Not" { 1 } else { 2 }
    }

    fn finish(self) -> Predicate {
        let Self { name, read } = self;
        match name {
            "And" => Predicate::all(read),
            "Or" => Predicate::any(read),
            _ => read.into_iter().next().unwrap_or(Predicate::Always).negated(),
        }
    }
}

/// Reads `EqualTo(`: the name and what follows.
fn start(text: &str) -> Option<(&'static str, &str)> {
    let (word, rest) = text.split_once('(')?;
    NAMES.iter().find(|name| **name == word).map(|name| (*name, rest))
}

/// Reads a filter without inner ones, from after its opening parenthesis.
fn leaf<'t>(
    name: &str,
    text: &'t str,
    frames: &[Frame],
    types: &Types,
) -> Option<(Predicate, &'t str)> {
    let end = end_of_leaf(text, frames)?;
    let (arguments, after) = (&text[..end], &text[end + 1..]);
    let opaque = || Predicate::Opaque(columns_in(arguments, types));
    let predicate = match name {
        "IsNotNull" | "AlwaysTrue" => Predicate::Always,
        "IsNull" => Predicate::Column(column(arguments), Test::is_null()),
        _ => comparison(name, arguments, types).unwrap_or_else(opaque),
    };
    Some((predicate, after))
}

/// Closing parentheses that may end a constant, beyond which nobody looks.
const MAX_TRIES: usize = 64;

/// Finds the parenthesis that ends a filter without inner ones.
fn end_of_leaf(text: &str, frames: &[Frame]) -> Option<usize> {
    let mut first = None;
    let mut depth = 0_i32;
    let mut tries = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b']' => depth -= 1,
            b')' => {
                if can_follow(&text[at + 1..], frames) {
                    if depth == 0 {
                        return Some(at);
                    }
                    first = first.or(Some(at));
                    tries += 1;
                    if tries == MAX_TRIES {
                        return first;
                    }
                }
                depth -= 1;
            }
            _ => {}
        }
    }
    first
}

/// Tells whether the text can go on after a filter: with the next of the list, or with the rest
/// of the filters around it.
fn can_follow(text: &str, frames: &[Frame]) -> bool {
    let mut text = text;
    for frame in frames.iter().rev() {
        let lacks = if frame.name == "Not" { 1 } else { 2 } - frame.read.len();
        if lacks > 1 {
            return text.strip_prefix(',').is_some_and(|rest| start(rest).is_some());
        }
        match text.strip_prefix(')') {
            Some(rest) => text = rest,
            None => return false,
        }
    }
    let next = text.strip_prefix(',').map(|rest| rest.trim_start());
    text.is_empty() || next.is_some_and(|rest| start(rest.trim_start_matches('*')).is_some())
}

/// Finds where the next filter of a list starts after one that cannot be read.
fn next_filter(text: &str) -> Option<usize> {
    let mut starts = text.match_indices(", ").map(|(at, _)| at);
    starts.find(|at| start(text[at + 2..].trim_start_matches('*')).is_some())
}

fn comparison(name: &str, arguments: &str, types: &Types) -> Option<Predicate> {
    let (column, value) = column_and_value(arguments)?;
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
            // Text may hold the commas that separate it: then the list's ends are not known.
            let values = match kind {
                Some(ColumnType::Text) | None if list.contains(['(', '[', '\'', '"']) => {
                    return None;
                }
                _ => split_top(list),
            };
            Test::one_of(values.into_iter().map(constant).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    Some(Predicate::Column(column, test))
}

/// Splits `a,5`, or `` `a,b`.c,5 `` where special characters are quoted.
fn column_and_value(arguments: &str) -> Option<(String, &str)> {
    let mut is_quoted = false;
    for (at, byte) in arguments.bytes().enumerate() {
        match byte {
            b'`' => is_quoted = !is_quoted,
            b',' if !is_quoted => return Some((column(&arguments[..at]), &arguments[at + 1..])),
            _ => {}
        }
    }
    None
}

/// Column names with special characters are quoted, each part of a path by itself.
fn column(text: &str) -> String {
    text.trim().replace("``", "\u{0}").replace('`', "").replace('\u{0}', "`")
}

fn columns_in(text: &str, types: &Types) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !is_name(c))
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

    #[test]
    fn constants_with_commas_and_brackets_end_where_a_filter_can() {
        check(
            "[EqualTo(name,a, b), IsNotNull(key), LessThan(key,5)]",
            &["key range (-∞, 5)", "name equal ['a, b', 'a, b']"],
        );
        check(
            "[EqualTo(name,x) and (y), LessThan(key,5)]",
            &["key range (-∞, 5)", "name equal ['x) and (y', 'x) and (y']"],
        );
        check(
            "[EqualTo(name,:-(), LessThan(key,5)]",
            &["key range (-∞, 5)", "name equal [':-(', ':-(']"],
        );
        check("[Or(EqualTo(name,a),b),EqualTo(name,c))]", &["name in ['a),b', 'c']"]);
        check("[EqualTo(`a,b`,7)]", &["a,b equal [7, 7]"]);
        check("[EqualTo(name,)]", &["name equal ['', '']"]);
    }

    #[test]
    fn a_list_of_text_with_its_own_brackets_is_not_guessed() {
        check("[In(name, [a,b(c])]", &["name other ?"]);
        check("[In(name, [MAIL,SHIP])]", &["name in ['MAIL', 'SHIP']"]);
    }

    #[test]
    fn long_and_deep_filters_cost_no_stack() {
        let mut flat = "EqualTo(key,0)".to_owned();
        for n in 1..400 {
            flat = format!("Or({flat},EqualTo(key,{n}))");
        }
        check(&format!("[{flat}]"), &["key in [0, 399]"]);
        let deep = format!("[{}EqualTo(key,5){}]", "Not(".repeat(100_000), ")".repeat(100_000));
        check(&deep, &["key other ?"]);
        check(&"Or(".repeat(100_000), &[]);
    }
}
