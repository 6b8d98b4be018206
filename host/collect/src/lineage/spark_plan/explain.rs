//! The long text of a plan: `physicalPlanDescription`.
//!
//! 1. Of several sections (`== Optimized Logical Plan ==`) only the physical plan is a tree of
//!    operators; a text without sections is one.
//! 2. A line of a tree starts with its connector, three characters per level: `:  +- Filter …`. The
//!    column where the operator starts gives its parent. What has no connector goes on with the
//!    operator above, whose constants held a line break.
//! 3. `== Final Plan ==` and `== Initial Plan ==` below an adaptive plan are two readings of one
//!    tree: the final (or current) one is taken, the initial one is kept beside it.
//! 4. In the formatted text operators have numbers, and a block `(7) Filter` with fields each.
//!    Subqueries follow as trees of their own, with the number of the operator that hosts them.
//!
//! A list field says how many items it has; a list that does not have them is not used.

use std::collections::BTreeMap;

use super::{
    node::{NodeId, PlanNode, PlanTree},
    text,
};

/// A text longer than this is not read: no plan that people make needs it.
const MAX_BYTES: usize = 32 << 20;

/// Reads the physical plan of a long text; an empty tree when there is none.
pub(super) fn read(description: &str) -> PlanTree {
    if description.len() > MAX_BYTES {
        return PlanTree::default();
    }
    let mut reader = Reader { is_formatted: is_formatted(description), ..Reader::default() };
    for line in physical_plan(description).lines() {
        reader.line(line.trim_end());
    }
    reader.finish()
}

/// Tells whether operators have numbers: then some block has one in front.
fn is_formatted(description: &str) -> bool {
    description.lines().any(|line| header(line).is_some())
}

/// The lines after the heading of the physical plan, up to the next heading.
fn physical_plan(description: &str) -> &str {
    const HEADING: &str = "== Physical Plan ==";
    let Some(at) = description.rfind(HEADING) else {
        // Logical plans alone are no operators.
        return if description.trim_start().starts_with("== ") { "" } else { description };
    };
    let body = &description[at + HEADING.len()..];
    let end = body.find("\n== ").unwrap_or(body.len());
    &body[..end]
}

/// Reads `(12) Filter [codegen id : 3]`: the number and the operator.
fn header(line: &str) -> Option<(u64, &str)> {
    let (number, name) = line.strip_prefix('(')?.split_once(") ")?;
    let number = number.parse().ok()?;
    (!name.is_empty()).then_some((number, name))
}

/// What the lines that come next belong to.
#[derive(Debug, Default, PartialEq)]
enum Place {
    /// A tree; `None` before its first line.
    Tree { host: Option<Host>, has_root: bool },
    /// The block of an operator.
    Block(Option<NodeId>),
    /// Nothing that is known.
    #[default]
    Outside,
}

/// Where a subquery's tree hangs.
#[derive(Debug, Clone, PartialEq)]
struct Host {
    number: u64,
    expression: String,
}

#[derive(Debug, Default)]
struct Reader {
    is_formatted: bool,
    tree: PlanTree,
    place: Place,
    /// The operators above the next line, with the column where each starts.
    above: Vec<(usize, NodeId)>,
    /// The operator that a line without connector goes on with.
    last: Option<NodeId>,
    after_marker: bool,
    by_number: BTreeMap<u64, NodeId>,
    /// Adaptive plans and their readings.
    readings: Vec<(NodeId, NodeId)>,
    /// Subqueries and the number of the operator that hosts each.
    hosted: Vec<(NodeId, u64)>,
    /// Reused exchanges and the number of the exchange.
    reused: Vec<(NodeId, u64)>,
    last_field: Option<(NodeId, String)>,
}

/// A heading inside of an adaptive plan.
const MARKERS: [&str; 3] = ["== Final Plan ==", "== Current Plan ==", "== Initial Plan =="];

impl Reader {
    fn line(&mut self, line: &str) {
        if line.is_empty() {
            // In the formatted text an empty line ends a tree and a block.
            if self.is_formatted && self.place != (Place::Tree { host: None, has_root: false }) {
                self.place = Place::Outside;
                self.last_field = None;
            }
            return;
        }
        if self.is_formatted && self.heading(line) {
            return;
        }
        match self.place {
            Place::Block(Some(node)) => self.field(node, line),
            Place::Block(None) => {}
            Place::Outside if !self.tree.is_empty() => {}
            _ => self.tree_line(line),
        }
    }

    /// Reads what starts a block or a tree of the formatted text.
    fn heading(&mut self, line: &str) -> bool {
        if let Some((number, name)) = header(line) {
            self.start_block(number, name);
            return true;
        }
        if line.starts_with("===== ") {
            self.place = Place::Outside;
            return true;
        }
        let is_numbered = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        if line.strip_prefix("Subplan:").is_some_and(is_numbered) {
            self.start_tree(None);
            return true;
        }
        let Some(rest) = line.strip_prefix("Subquery:").filter(|rest| is_numbered(rest)) else {
            return false;
        };
        let host = rest.split_once("Hosting operator id = ").and_then(|(_, rest)| {
            let (number, rest) = rest.split_once(' ')?;
            let expression = rest.split_once("= ").map_or("", |(_, expression)| expression);
            Some(Host { number: number.parse().ok()?, expression: expression.to_owned() })
        });
        self.start_tree(host);
        true
    }

    fn start_tree(&mut self, host: Option<Host>) {
        self.place = Place::Tree { host, has_root: false };
        self.above.clear();
        self.last = None;
        self.after_marker = false;
    }

    fn start_block(&mut self, number: u64, name: &str) {
        let node = self.by_number.get(&number).copied();
        self.place = Place::Block(node);
        self.last_field = None;
        let Some(node) = node else { return };
        if let Some(exchange) = name
            .split_once("[Reuses operator id: ")
            .and_then(|(_, rest)| rest.split(']').next()?.parse().ok())
        {
            self.reused.push((node, exchange));
        }
        let name = name.split(" [codegen id").next().unwrap_or(name);
        name.split(" [Reuses operator id")
            .next()
            .unwrap_or(name)
            .clone_into(&mut self.tree.node_mut(node).name);
    }

    /// `Output [2]: [a#1, b#2]`, `Condition : (a#1 > 5)`, or the rest of a field with line breaks.
    fn field(&mut self, node: NodeId, line: &str) {
        let Some((label, value)) = line.split_once(':').filter(|(label, _)| is_label(label)) else {
            if let Some((node, label)) = &self.last_field
                && let Some(value) = self.tree.node_mut(*node).fields.get_mut(label)
            {
                value.push('\n');
                value.push_str(line);
            }
            return;
        };
        let (label, count) = match label.trim().split_once(" [") {
            Some((label, count)) => (label, count.trim_end_matches(']').parse::<usize>().ok()),
            None => (label.trim(), None),
        };
        let value = value.trim();
        let is_whole = count.is_none_or(|count| has_items(value, count));
        if is_whole {
            self.tree.node_mut(node).fields.insert(label.to_owned(), value.to_owned());
        }
        self.last_field = is_whole.then(|| (node, label.to_owned()));
    }

    fn tree_line(&mut self, line: &str) {
        let (column, has_connector, rest) = connector(line);
        if let Some(marker) = MARKERS.iter().find(|marker| rest.starts_with(**marker)) {
            self.marker(column, marker);
            return;
        }
        let has_root = matches!(self.place, Place::Tree { has_root: true, .. });
        if has_root && !has_connector && !self.after_marker {
            // The rest of an operator whose text has line breaks.
            if let Some(last) = self.last {
                let text = &mut self.tree.node_mut(last).text;
                text.push('\n');
                text.push_str(line);
            }
            return;
        }
        self.after_marker = false;
        while self.above.last().is_some_and(|(above, _)| *above >= column) {
            self.above.pop();
        }
        let parent = match self.above.last() {
            Some((_, parent)) => Some(*parent),
            None => self.root_parent(),
        };
        let (number, node) = operator(rest, self.is_formatted);
        let id = self.tree.add(parent, node);
        if let Some(number) = number {
            self.by_number.entry(number).or_insert(id);
        }
        self.above.push((column, id));
        self.last = Some(id);
    }

    /// A subquery's tree hangs below an operator of its own; a tree beside the plan hangs nowhere.
    fn root_parent(&mut self) -> Option<NodeId> {
        let host = match std::mem::take(&mut self.place) {
            Place::Tree { host, .. } => host,
            _ => None,
        };
        self.place = Place::Tree { host: None, has_root: true };
        let Host { number, expression } = host?;
        let name = ["ReusedSubquery", "Subquery"]
            .into_iter()
            .find(|name| expression.starts_with(name))
            .unwrap_or("SubqueryBroadcast");
        let node = PlanNode { name: name.to_owned(), text: expression, ..PlanNode::default() };
        let id = self.tree.add(None, node);
        self.hosted.push((id, number));
        Some(id)
    }

    fn marker(&mut self, column: usize, marker: &str) {
        let start = column.saturating_sub(1);
        while self.above.last().is_some_and(|(above, _)| *above >= start) {
            self.above.pop();
        }
        let Some((_, adaptive)) = self.above.last().copied() else { return };
        let node = PlanNode { name: marker.to_owned(), ..PlanNode::default() };
        let id = self.tree.add(None, node);
        self.readings.push((adaptive, id));
        self.above.push((start, id));
        self.after_marker = true;
        self.last = None;
    }

    fn finish(mut self) -> PlanTree {
        for (adaptive, reading) in std::mem::take(&mut self.readings) {
            let children = std::mem::take(&mut self.tree.node_mut(reading).children);
            let is_first = self.tree.node(reading).name == MARKERS[2];
            let node = self.tree.node_mut(adaptive);
            if is_first {
                node.first_children.extend(&children);
            }
            // A text that shows only the initial plan has no better one.
            if !is_first || node.children.is_empty() {
                node.children = children;
            }
        }
        for (subquery, number) in std::mem::take(&mut self.hosted) {
            let host = self.by_number.get(&number).copied().unwrap_or(PlanTree::ROOT);
            self.tree.node_mut(host).children.push(subquery);
        }
        for (reused, number) in std::mem::take(&mut self.reused) {
            self.tree.node_mut(reused).reuses = self.by_number.get(&number).copied();
        }
        self.tree.link_reused();
        self.tree
    }
}

/// Tells whether a field's value is a list of so many items; fields that are cut count theirs.
fn has_items(value: &str, count: usize) -> bool {
    let Some(items) = text::whole_list(value) else { return false };
    match items.split_last().and_then(|(last, head)| Some((text::omitted(last)?, head.len()))) {
        Some((omitted, shown)) => shown + omitted == count,
        None => items.len() == count,
    }
}

/// `Left keys [2]`: words and at most one count.
fn is_label(label: &str) -> bool {
    let label = label.trim_end();
    let words = label.split_once(" [").map_or(label, |(words, _)| words);
    words.starts_with(|c: char| c.is_ascii_uppercase())
        && words.len() < 40
        && words.bytes().all(|b| b.is_ascii_alphanumeric() || b == b' ')
}

/// Splits a line of a tree: the column where the operator starts, whether a connector stands
/// before it, and the operator.
fn connector(line: &str) -> (usize, bool, &str) {
    let mut at = 0;
    loop {
        match line.get(at..at + 3) {
            Some("+- " | ":- ") => return (at + 3, true, &line[at + 3..]),
            Some(":  " | "   ") => at += 3,
            _ => return (at, false, &line[at..]),
        }
    }
}

/// Reads `* Filter (13)` or `*(2) Filter (a#1 > 5)`.
fn operator(text: &str, is_formatted: bool) -> (Option<u64>, PlanNode) {
    let text = without_state(text);
    if is_formatted && let Some((name, number)) = numbered(text) {
        let node = PlanNode { name: name.to_owned(), text: name.to_owned(), ..PlanNode::default() };
        return (number, node);
    }
    let node =
        PlanNode { name: name_of(text).to_owned(), text: text.to_owned(), ..PlanNode::default() };
    (None, node)
}

/// Strips `*(2) `, `* `, `^(1) ` (stages of generated code), `!` (missing inputs) and `'`.
fn without_state(text: &str) -> &str {
    let text = text.trim_start_matches(['!', '\'']);
    let Some(rest) = text.strip_prefix(['*', '^']) else { return text };
    let rest = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((stage, rest)) if stage.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => rest,
    };
    rest.trim_start().trim_start_matches(['!', '\''])
}

/// Reads `Filter (13)`, `Filter (unknown)` or `ShuffleQueryStage (21), Statistics(…)`.
fn numbered(text: &str) -> Option<(&str, Option<u64>)> {
    let text = text.split(", Statistics(").next().unwrap_or(text);
    let (name, number) = text.strip_suffix(')')?.rsplit_once(" (")?;
    match number {
        "unknown" => Some((name, None)),
        _ => Some((name, Some(number.parse().ok()?))),
    }
}

/// The name of an operator that prints all it has in one line: a scan's reaches to its columns.
fn name_of(text: &str) -> &str {
    let word = text.split([' ', '(', '[', ',']).next().unwrap_or_default();
    if !super::node::stem(word).ends_with("Scan") {
        return word;
    }
    let end = text::columns_at(text).unwrap_or_else(|| text.find('[').unwrap_or(text.len()));
    text[..end].trim_end()
}
