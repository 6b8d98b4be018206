//! The grammar of plan strings: lists, attributes, aliases.

use std::collections::BTreeMap;

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
    if is_cut(name) {
        return None;
    }
    // Nor is the start of a condition: `((a#1`.
    if (name.contains('#') || name.starts_with('(')) && !is_balanced(name) {
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
    if is_cut(name) {
        return None;
    }
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

/// Finds the bracket that closes the one at `open`; `None` where kinds of brackets cross, as the
/// constants of text that Spark prints without quotes can make them.
pub(super) fn closing(text: &str, open: usize) -> Option<usize> {
    let mut expected = Vec::new();
    for (at, byte) in text.as_bytes()[open..].iter().enumerate() {
        match byte {
            b'(' => expected.push(b')'),
            b'[' => expected.push(b']'),
            b'{' => expected.push(b'}'),
            b')' | b']' | b'}' => {
                if expected.pop()? != *byte {
                    return None;
                }
                if expected.is_empty() {
                    return Some(open + at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Reads a text that is one list, `[a#1, b#2]` or `List(a#1, b#2)`, and nothing else.
///
/// Where brackets in names or constants do not add up, a list of plain attributes is still told by
/// the ids at the ends of its items.
pub(super) fn whole_list(text: &str) -> Option<Vec<&str>> {
    let text = text.trim();
    let open = if text.starts_with("List(") { 4 } else { 0 };
    let is_list = text[open..].starts_with(['[', '(']) && text.ends_with([']', ')']);
    if !is_list || text.len() < open + 2 {
        return None;
    }
    let inner = &text[open + 1..text.len() - 1];
    if closing(text, open) == Some(text.len() - 1) {
        return Some(split_top(inner));
    }
    if !text.ends_with(']') {
        return None;
    }
    let mut items = Vec::new();
    let mut start = 0;
    for (at, _) in inner.match_indices(", ").chain(std::iter::once((inner.len(), ""))) {
        if ends_with_id(&inner[start..at]) {
            items.push(inner[start..at].trim_start_matches(", "));
            start = at;
        }
    }
    (start == inner.len()).then_some(items)
}

fn ends_with_id(text: &str) -> bool {
    let digits = |id: &str| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
    text.rsplit_once('#').is_some_and(|(_, id)| digits(id.strip_suffix('L').unwrap_or(id)))
}

/// Finds where a scan lists its columns: the first list outside of parentheses that holds
/// attributes, or nothing.
pub(super) fn columns_at(text: &str) -> Option<usize> {
    let mut from = 0;
    // Each bracket that nothing closes costs a look at the whole text.
    for _ in 0..MAX_TRIES {
        let open = from + text[from..].find(['[', '('])?;
        let Some(close) = closing(text, open) else {
            from = open + 1;
            continue;
        };
        if text[open..].starts_with('[') {
            let items = split_top(&text[open + 1..close]);
            if items.first().is_none_or(|item| attribute(item).is_some()) {
                return Some(open);
            }
        }
        from = close + 1;
    }
    None
}

/// Brackets before a scan's columns.
const MAX_TRIES: usize = 64;

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

/// Tells whether a name holds the mark of a cut list, as a damaged text has it: `... 3 more fields b`.
fn is_cut(name: &str) -> bool {
    name.starts_with("... ")
}

/// The number of fields that a cut list leaves out: `... 5 more fields`.
pub(super) fn omitted(item: &str) -> Option<usize> {
    item.strip_prefix("... ")?.strip_suffix(" more fields")?.parse().ok()
}

/// Splits `SortMergeJoin [l#1], [r#2], LeftOuter, …` into keys and what follows.
pub(super) fn join_arguments(text: &str) -> Option<(Vec<&str>, Vec<&str>, &str)> {
    let (left, after) = list_from(text, 0)?;
    let gap = text[after..].len() - text[after..].trim_start_matches([',', ' ']).len();
    if !text[after + gap..].starts_with('[') {
        return None;
    }
    let (right, after) = list_from(text, after + gap)?;
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

/// The column that is padded to the length of its `CHAR` type as it is read.
pub(super) fn padded(expression: &str) -> Option<Attribute> {
    let is_padding = |(name, arguments): (&str, &str)| {
        matches!(name, "static_invoke" | "staticinvoke") && arguments.contains("readSidePadding")
    };
    if !call(expression).is_some_and(is_padding) {
        return None;
    }
    match mentioned(expression).as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// Lists what a long text defines: `expression AS name#id`, by id. The first definition stands.
pub(super) fn definitions(description: &str) -> BTreeMap<u64, &str> {
    let mut found = BTreeMap::new();
    for (at, mark) in description.match_indices(" AS ").take(MAX_DEFINITIONS) {
        let Some(id) = defined_id(&description[at + mark.len()..]) else { continue };
        let expression = expression_before(&description[..at]);
        // Unresolved plans, which come first in a description, have no ids.
        if expression.contains('#') && !expression.contains('\'') {
            found.entry(id).or_insert(expression);
        }
    }
    found
}

/// Reads the id of a text that starts with `name#12L`.
fn defined_id(text: &str) -> Option<u64> {
    let hash = text.find(['#', ',', '[', ']', '\n'])?;
    let after = text[hash..].strip_prefix('#')?;
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    after[..digits].parse().ok()
}

/// Definitions beyond this are not looked at.
const MAX_DEFINITIONS: usize = 200_000;
/// Expressions longer than this are not looked at: no column is renamed by one.
const MAX_EXPRESSION: usize = 2_000;

/// The last list item of a text that ends inside a list.
fn expression_before(text: &str) -> &str {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices().rev() {
        if text.len() - at > MAX_EXPRESSION {
            return "";
        }
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
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
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
        alias, attribute, call, closing, columns_at, definitions, join_arguments, labeled_list,
        list_from, mentioned, nested_field, omitted, split_top, whole_list,
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
        check_attribute("((a#1", None);
        check_attribute("a#1 AS b#2", None);
        check_attribute("add#138.path", None);
        check_attribute("#12", None);
        check_attribute("... 3 more fields b#12L", None);
    }

    #[test]
    fn an_alias_splits_at_its_last_as() {
        let (expression, name) = alias("cast(a#1 as string) AS b#2L").unwrap();
        assert_eq!((expression, name.name.as_str(), name.id), ("cast(a#1 as string)", "b", 2));
        assert!(alias("CASE WHEN (x#1 AS y#2").is_none());
        assert!(alias("a#1 AS ... 3 more fields b#2").is_none());
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
        let found = definitions(text);
        assert_eq!(found.get(&35).copied(), Some("l_orderkey#37L"));
        assert_eq!(found.get(&36).copied(), Some("sum(l_quantity#41)#50"));
        assert_eq!(found.get(&37), None);
    }

    #[test]
    fn brackets_of_different_kinds_do_not_close_each_other() {
        assert_eq!(closing("[a(b]c)]", 0), None);
        assert_eq!(closing("[a(b[0])]x", 0), Some(8));
        assert_eq!(closing("[a", 0), None);
    }

    #[test]
    fn key_lists_are_split_at_top_level_commas_or_not_at_all() {
        let text = "SortMergeJoin [sid#11L, get_json_object(info#14, $.it[0].id)], [sid#52L, prod_id#57], LeftOuter";
        let (left, right, rest) = join_arguments(text).unwrap();
        assert_eq!(left, ["sid#11L", "get_json_object(info#14, $.it[0].id)"]);
        assert_eq!((right, rest), (vec!["sid#52L", "prod_id#57"], ", LeftOuter"));
        assert!(join_arguments("SortMergeJoin [split(a#1, [)], [b#2], Inner").is_none());
        assert!(join_arguments("SortMergeJoin [f(a#1, ))], [b#2], Inner").is_none());
    }

    #[test]
    fn a_list_of_attributes_is_read_past_brackets_in_its_names() {
        assert_eq!(whole_list("[a#1, b,c#2L]").unwrap(), ["a#1", "b", "c#2L"]);
        assert_eq!(whole_list("[a)x#1, b, c(#2L]").unwrap(), ["a)x#1", "b, c(#2L"]);
        assert_eq!(whole_list("List(a#1, b#2)").unwrap(), ["a#1", "b#2"]);
        assert_eq!(whole_list("[]").unwrap(), [] as [&str; 0]);
        assert_eq!(whole_list("[a)#1, x]"), None);
        assert_eq!(whole_list("["), None);
        assert_eq!(whole_list("None"), None);
    }

    #[test]
    fn a_scans_columns_are_found_past_what_its_name_holds() {
        let at = |text: &str| columns_at(text).map(|at| text[at..].to_owned());
        assert_eq!(at("FileScan parquet db.t[a#1] x").as_deref(), Some("[a#1] x"));
        assert_eq!(at("Scan JDBC(t) [numPartitions=1] [a#1]").as_deref(), Some("[a#1]"));
        assert_eq!(at("Scan R(S(F(a,[x],true))) [] y").as_deref(), Some("[] y"));
        assert_eq!(at("Scan R(a [a#1]"), Some("[a#1]".to_owned()));
        assert_eq!(at("Scan"), None);
    }
}
