//! The grammar of plan strings: lists, attributes, aliases.

/// A column of an operator's output: `l_orderkey#11L`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attribute {
    /// The name before the id.
    pub(super) name: String,
    /// The expression id.
    pub(super) id: u64,
}

/// Reads `name#id` or `name#idL`, and nothing around it.
pub(super) fn attribute(text: &str) -> Option<Attribute> {
    let text = text.trim();
    let (name, id) = text.rsplit_once('#')?;
    let digits = id.strip_suffix('L').unwrap_or(id);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // `-a#1` and `a#1 AS b#2` end like attributes but are none.
    if name.is_empty() || name.starts_with(['-', '~']) || alias(text).is_some() {
        return None;
    }
    if name.contains('#') && !is_balanced(name) {
        return None;
    }
    Some(Attribute { name: name.to_owned(), id: digits.parse().ok()? })
}

/// Splits `expression AS name#id` at its last alias.
pub(super) fn alias(text: &str) -> Option<(&str, Attribute)> {
    let at = text.rfind(" AS ")?;
    let (expression, name) = (&text[..at], &text[at + 4..]);
    if !is_balanced(expression) {
        return None;
    }
    let (name, id) = name.trim().rsplit_once('#')?;
    let digits = id.strip_suffix('L').unwrap_or(id);
    let id = digits.parse().ok()?;
    Some((expression.trim(), Attribute { name: name.to_owned(), id }))
}

/// Finds the first bracketed list at or after `from`: its items and the position after it.
pub(super) fn list_from(text: &str, from: usize) -> Option<(Vec<&str>, usize)> {
    let open = from + text.get(from..)?.find('[')?;
    let close = closing(text, open)?;
    Some((split_top(&text[open + 1..close]), close + 1))
}

/// Finds the first bracketed list after a label such as `output=`.
pub(super) fn labeled_list<'a>(text: &'a str, label: &str) -> Option<Vec<&'a str>> {
    let at = text.find(label)? + label.len();
    text[at..].starts_with('[').then(|| list_from(text, at)).flatten().map(|(items, _)| items)
}

/// Splits at the commas outside of all brackets; empty text has no items.
pub(super) fn split_top(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut depth, mut start) = (0_i32, 0_usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth <= 0 => {
                items.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() || !items.is_empty() {
        items.push(last);
    }
    items
}

/// Finds the bracket that closes the one at `open`.
pub(super) fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in text[open..].char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(open + at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Strips one pair of parentheses that encloses the whole text.
pub(super) fn inside_parentheses(text: &str) -> Option<&str> {
    let text = text.trim();
    (text.starts_with('(') && closing(text, 0) == Some(text.len() - 1))
        .then(|| &text[1..text.len() - 1])
}

/// Reads `name(arguments)`: the name and the text of the arguments.
pub(super) fn call(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let open = text.find('(')?;
    let name = &text[..open];
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (is_name && closing(text, open) == Some(text.len() - 1))
        .then(|| (name, &text[open + 1..text.len() - 1]))
}

/// Lists what looks like an attribute in an expression; text constants are printed bare, so
/// `Brand#45` does too.
pub(super) fn mentioned(text: &str) -> Vec<Attribute> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices('#')
        .filter_map(|(at, _)| {
            let after = &text[at + 1..];
            let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            let id = after[..digits].parse().ok()?;
            let start = text[..at]
                .rfind(|c| !is_name(c))
                .map_or(0, |i| i + text[i..].chars().next().map_or(1, char::len_utf8));
            let name = &text[start..at];
            // `dynamicpruning#918` and `subquery#921` are the engine's own.
            let own =
                ["", "dynamicpruning", "dynamicpruningexpression", "subquery"].contains(&name);
            (!own).then(|| Attribute { name: name.to_owned(), id })
        })
        .collect()
}

/// The number of fields that a cut list leaves out: `... 5 more fields`.
pub(super) fn omitted(item: &str) -> Option<usize> {
    item.strip_prefix("... ")?.strip_suffix(" more fields")?.parse().ok()
}

/// Splits `SortMergeJoin [l#1], [r#2], LeftOuter, …` into keys and what follows.
pub(super) fn join_arguments(text: &str) -> Option<(Vec<&str>, Vec<&str>, &str)> {
    let (left, after) = list_from(text, 0)?;
    let (right, after) = list_from(text, after)?;
    Some((left, right, &text[after..]))
}

/// Reads `address#7.city`: a field of a struct column.
pub(super) fn nested_field(expression: &str) -> Option<(Attribute, &str)> {
    let hash = expression.find('#')?;
    let dot = hash + expression[hash..].find('.')?;
    let (column, path) = (&expression[..dot], &expression[dot + 1..]);
    let is_path = path.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    is_path.then(|| attribute(column)).flatten().map(|attribute| (attribute, path))
}

/// Finds `expression AS name#id` in a plan's long description.
pub(super) fn defined_in(description: &str, id: u64) -> Option<&str> {
    let mark = format!("#{id}");
    description.match_indices(&mark).find_map(|(at, _)| {
        let after = &description[at + mark.len()..];
        if after.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let name_start = description[..at].rfind(" AS ")? + 4;
        let name = &description[name_start..at];
        if name.contains(['#', ',', '[', ']', '\n']) {
            return None;
        }
        let expression = expression_before(&description[..name_start - 4]);
        // Unresolved plans, which come first in a description, have no ids.
        (expression.contains('#') && !expression.contains('\'')).then_some(expression)
    })
}

/// The last list item of a text that ends inside a list.
fn expression_before(text: &str) -> &str {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' if depth == 0 => return text[at + 1..].trim(),
            '(' | '[' | '{' => depth -= 1,
            ',' | '\n' if depth == 0 => return text[at + 1..].trim(),
            _ => {}
        }
    }
    text.trim()
}

fn is_balanced(text: &str) -> bool {
    let mut depth = 0_i32;
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

#[cfg(test)]
mod tests {
    use super::{
        alias, attribute, call, defined_in, labeled_list, list_from, mentioned, nested_field,
        omitted, split_top,
    };

    #[track_caller]
    fn check_attribute(text: &str, expected: Option<(&str, u64)>) {
        let found = attribute(text);
        assert_eq!(found.as_ref().map(|a| (a.name.as_str(), a.id)), expected, "{text}");
    }

    #[test]
    fn attributes_are_names_with_ids_and_nothing_else() {
        check_attribute("l_orderkey#11L", Some(("l_orderkey", 11)));
        check_attribute("d_year#50", Some(("d_year", 50)));
        check_attribute("min(ps_supplycost)#437", Some(("min(ps_supplycost)", 437)));
        check_attribute("sum(l_quantity#8959)#8973", Some(("sum(l_quantity#8959)", 8973)));
        check_attribute("(l_orderkey#5471L + 1)", None);
        check_attribute("-a#1", None);
        check_attribute("a#1 AS b#2", None);
        check_attribute("add#138.path", None);
        check_attribute("#12", None);
    }

    #[test]
    fn an_alias_splits_at_its_last_as() {
        let (expression, name) = alias("cast(a#1 as string) AS b#2L").unwrap();
        assert_eq!((expression, name.name.as_str(), name.id), ("cast(a#1 as string)", "b", 2));
        assert!(alias("CASE WHEN (x#1 AS y#2").is_none());
    }

    #[test]
    fn lists_keep_nested_brackets_and_commas_together() {
        assert_eq!(split_top("a#1, f(b#2, [c, d]), e"), ["a#1", "f(b#2, [c, d])", "e"]);
        assert_eq!(split_top(""), [] as [&str; 0]);
        let text = "SortMergeJoin [a#1, b#2], [c#3, d#4], Inner";
        let (left, after) = list_from(text, 0).unwrap();
        assert_eq!(left, ["a#1", "b#2"]);
        assert_eq!(list_from(text, after).unwrap().0, ["c#3", "d#4"]);
        let top = "TakeOrderedAndProject(limit=100, orderBy=[a#1 DESC], output=[a#1,b#2])";
        assert_eq!(labeled_list(top, "output=").unwrap(), ["a#1", "b#2"]);
    }

    #[test]
    fn calls_and_mentions_are_found() {
        assert_eq!(call("cast(a#1 as bigint)"), Some(("cast", "a#1 as bigint")));
        assert_eq!(call("(a#1 = 2)"), None);
        assert_eq!(call("f(a) + g(b)"), None);
        let names = |text| -> Vec<(String, u64)> {
            mentioned(text).into_iter().map(|attribute| (attribute.name, attribute.id)).collect()
        };
        assert_eq!(
            names("(EndsWith(p_type#393, BRASS) OR (c#1L > 2))"),
            [("p_type".to_owned(), 393), ("c".to_owned(), 1)]
        );
        assert_eq!(names("dynamicpruning#918 IN (x)"), []);
        assert_eq!(omitted("... 5 more fields"), Some(5));
    }

    #[test]
    fn fields_of_structs_are_told_from_columns() {
        let (column, path) = nested_field("address#7.home.city").unwrap();
        assert_eq!((column.name.as_str(), column.id, path), ("address", 7, "home.city"));
        assert!(nested_field("address#7").is_none());
        assert!(nested_field("(a#7 + 1.5)").is_none());
    }

    #[test]
    fn a_definition_is_found_in_a_long_description() {
        let text = "'Aggregate ['l_orderkey AS k#35]\\nResults [2]: [l_orderkey#37L AS k#35L, sum(l_quantity#41)#50 AS q#36]\nx AS k#351";
        assert_eq!(defined_in(text, 35), Some("l_orderkey#37L"));
        assert_eq!(defined_in(text, 36), Some("sum(l_quantity#41)#50"));
        assert_eq!(defined_in(text, 37), None);
    }
}
