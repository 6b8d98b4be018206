//! What a join operator says: its keys, its kind and how it runs.

use lakebed_model::{JoinKind, JoinStrategy};

use super::{
    node::PlanNode,
    text::{self, inside_parentheses, join_arguments},
};

/// The arguments of a join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JoinArguments<'p> {
    /// The keys of the left side.
    pub(super) left: Vec<&'p str>,
    /// The keys of the right side, as many.
    pub(super) right: Vec<&'p str>,
    /// The logical kind.
    pub(super) kind: JoinKind,
}

/// How an operator joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joining {
    /// By equal keys.
    Keys(JoinStrategy),
    /// Every row with every row, under a condition.
    Condition,
}

/// Tells how an operator joins; `None` when it does not.
pub(super) fn joining(node: &PlanNode) -> Option<Joining> {
    let operator = node.operator();
    if !operator.contains("Join") && operator != "CartesianProduct" {
        return None;
    }
    Some(if operator.contains("SortMergeJoin") {
        Joining::Keys(JoinStrategy::SortMerge)
    } else if operator.contains("BroadcastHashJoin") {
        Joining::Keys(JoinStrategy::Broadcast)
    } else if operator.contains("HashJoin") || operator.contains("ShuffledJoin") {
        Joining::Keys(JoinStrategy::ShuffleHash)
    } else {
        Joining::Condition
    })
}

/// Reads the keys and the kind; `None` where the two lists cannot be told or do not match.
///
/// Lists that are cut are read as well: they have an item that [`text::omitted`] knows.
pub(super) fn arguments(node: &PlanNode) -> Option<JoinArguments<'_>> {
    let field = |name: &str| node.fields.get(name).map(String::as_str);
    if let (Some(left), Some(right)) = (field("Left keys"), field("Right keys")) {
        let (left, right) = (text::whole_list(left)?, text::whole_list(right)?);
        // `BroadcastHashJoin Inner BuildRight` in the tree, where no field tells the kind.
        let kind = field("Join type").or_else(|| node.text.split(' ').nth(1));
        return matching(left, right, kind.unwrap_or_default());
    }
    let listed = |text| {
        let (left, right, rest) = join_arguments(text)?;
        matching(left, right, rest)
    };
    field("Arguments").and_then(listed).or_else(|| listed(&node.text))
}

fn matching<'p>(left: Vec<&'p str>, right: Vec<&'p str>, kind: &str) -> Option<JoinArguments<'p>> {
    let count = |items: &[&str]| match items.split_last() {
        Some((last, head)) => text::omitted(last).map_or(items.len(), |more| head.len() + more),
        None => 0,
    };
    let kind = join_kind(kind);
    (count(&left) == count(&right) && !left.is_empty()).then_some(JoinArguments {
        left,
        right,
        kind,
    })
}

/// Tells the kind of a join whose keys cannot be read.
pub(super) fn kind_of(node: &PlanNode) -> JoinKind {
    let text = node.fields.get("Join type").unwrap_or(&node.text);
    let mut words = text.split([' ', ',']).filter(|word| is_kind(word));
    join_kind(words.next().unwrap_or_default())
}

fn join_kind(text: &str) -> JoinKind {
    let word = text.trim_start_matches([',', ' ']).split([',', '(', ' ']).next();
    match word.unwrap_or_default() {
        "LeftOuter" | "LeftSingle" => JoinKind::LeftOuter,
        "RightOuter" => JoinKind::RightOuter,
        "FullOuter" => JoinKind::FullOuter,
        "LeftSemi" => JoinKind::LeftSemi,
        "LeftAnti" => JoinKind::LeftAnti,
        "ExistenceJoin" => JoinKind::Existence,
        _ => JoinKind::Inner,
    }
}

/// Reads the new column of `ExistenceJoin(exists#31)`.
pub(super) fn existence_flag(node: &PlanNode) -> Option<text::Attribute> {
    let text = node.fields.get("Join type").unwrap_or(&node.text);
    let after = &text[text.find("ExistenceJoin(")? + "ExistenceJoin(".len()..];
    text::attribute(after.split(')').next()?)
}

/// What a join without keys equates: `a = b` among the conjuncts of its condition, or
/// `a = b OR isnull(a = b)`, which is how Spark spells `NOT IN`.
pub(super) fn condition_arguments(node: &PlanNode) -> Option<JoinArguments<'_>> {
    let field = |name: &str| node.fields.get(name).map(String::as_str);
    let (kind, condition) = match field("Join condition") {
        Some(condition) => {
            let kind = field("Join type").or_else(|| node.text.split(' ').find(|w| is_kind(w)));
            (kind.unwrap_or_default(), condition)
        }
        None => {
            let arguments = node.text.split_once(' ')?.1;
            let parts = text::split_top(arguments);
            let kind = parts.iter().copied().find(|part| is_kind(part)).unwrap_or_default();
            (kind, parts.into_iter().find(|part| part.starts_with('('))?)
        }
    };
    let (left, right): (Vec<_>, Vec<_>) = conjuncts(condition).filter_map(equality).unzip();
    matching(left, right, kind)
}

fn is_kind(word: &str) -> bool {
    const KINDS: [&str; 7] =
        ["Inner", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti", "ExistenceJoin"];
    KINDS.iter().any(|kind| word.starts_with(kind))
}

/// Conjuncts beyond this are not looked at.
const MAX_CONJUNCTS: usize = 32;

/// Splits `((a AND b) AND c)`, from the last to the first.
fn conjuncts(condition: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(condition);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let split = inside_parentheses(text).and_then(|inner| split_last(inner, " AND "));
        let Some((left, right)) = split else { return Some(text) };
        rest = Some(left);
        Some(right)
    })
    .take(MAX_CONJUNCTS)
}

fn equality(conjunct: &str) -> Option<(&str, &str)> {
    let inner = inside_parentheses(conjunct)?;
    if let Some((left, right)) = split_last(inner, " OR ") {
        let (name, argument) = text::call(right)?;
        return (name == "isnull" && argument == left).then(|| equality(left)).flatten();
    }
    let (left, right) = split_last(inner, " = ")?;
    let is_column = |text| text::attribute(text).is_some();
    (is_column(left) && is_column(right)).then_some((left, right))
}

/// Splits at the last operator outside of all brackets.
fn split_last<'t>(text: &'t str, operator: &str) -> Option<(&'t str, &'t str)> {
    let mut depth = 0_i32;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' | b']' => depth += 1,
            b'(' | b'[' => depth -= 1,
            b' ' if depth == 0 && text[at..].starts_with(operator) => {
                return Some((text[..at].trim(), text[at + operator.len()..].trim()));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{PlanNode, arguments, condition_arguments, existence_flag, joining};

    fn node(text: &str) -> PlanNode {
        let name = text.split(' ').next().unwrap().to_owned();
        PlanNode { name, text: text.to_owned(), ..PlanNode::default() }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let node = node(text);
        let shown = match arguments(&node).or_else(|| condition_arguments(&node)) {
            Some(found) => {
                format!(
                    "{} = {} {}",
                    found.left.join("; "),
                    found.right.join("; "),
                    found.kind.as_str()
                )
            }
            None => "unread".to_owned(),
        };
        assert_eq!(shown, expected, "{text}");
        assert!(joining(&node).is_some(), "{text}");
    }

    #[test]
    fn keys_and_kinds_of_all_engines_are_read() {
        check(
            "SortMergeJoin [a#1, b#2], [c#3, d#4], LeftOuter, (x#1 > 5)",
            "a#1; b#2 = c#3; d#4 left_outer",
        );
        check(
            "BroadcastHashJoin [a#1], [b#2], ExistenceJoin(exists#31), BuildRight, false",
            "a#1 = b#2 existence",
        );
        check(
            "PhotonBroadcastHashJoin [a#1], [b#2], Inner, BuildRight, false, true",
            "a#1 = b#2 inner",
        );
        check(
            "ShuffledHashJoinExecTransformer [a#1], [b#2], LeftSemi, BuildRight, false",
            "a#1 = b#2 left_semi",
        );
        check("SortMergeJoin [a#1, b#2], [c#3], Inner", "unread");
        check("SortMergeJoin [], [], Inner", "unread");
    }

    #[test]
    fn a_join_by_condition_keeps_the_equalities_that_hold_for_every_match() {
        check(
            "BroadcastNestedLoopJoin BuildRight, LeftAnti, ((a#1 = b#2) OR isnull((a#1 = b#2)))",
            "a#1 = b#2 left_anti",
        );
        check(
            "BroadcastNestedLoopJoin BuildRight, Inner, ((a#1 < b#2) AND (c#3 = d#4))",
            "c#3 = d#4 inner",
        );
        check("BroadcastNestedLoopJoin BuildRight, Inner, ((a#1 = b#2) OR (c#3 = d#4))", "unread");
        check("CartesianProduct (a#1 = 5)", "unread");
        check("BroadcastNestedLoopJoin BuildLeft, Inner", "unread");
    }

    #[test]
    fn the_flag_of_an_existence_join_is_a_column_of_its_own() {
        let flag =
            existence_flag(&node("BroadcastHashJoin [a#1], [b#2], ExistenceJoin(exists#31)"));
        assert_eq!(flag.map(|flag| flag.id), Some(31));
    }
}
