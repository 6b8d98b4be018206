//! The walk from the leaves of a plan to its joins.

use std::collections::{BTreeMap, BTreeSet};

use lakebed_model::{ColumnRef, JoinKind, JoinStrategy, JoinUse, ScanUse};

use crate::lineage::{
    edge::{JoinTraits, edges},
    origin::Origin,
};

use super::{
    node::PlanNode,
    scan::{self, BaseScan},
    text::{
        self, Attribute, alias, attribute, call, defined_in, join_arguments, labeled_list,
        list_from, nested_field, split_top,
    },
};

/// What a plan does to base tables.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct PlanLineage {
    /// The joins, innermost first.
    pub(crate) joins: Vec<PlanJoin>,
    /// The scans of base tables.
    pub(crate) scans: Vec<PlanScan>,
    /// What could not be read, each with its reason.
    pub(crate) losses: BTreeSet<String>,
}

/// An edge and the operator that it comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlanJoin {
    /// The edge.
    pub(crate) join: JoinUse,
    key: Option<u64>,
}

/// A scan and the accumulators that count what it reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlanScan {
    /// The scan, without sizes.
    pub(crate) scan: ScanUse,
    /// Identity of the operator: an accumulator's id.
    pub(crate) key: Option<u64>,
    /// Accumulator of the rows that left the scan.
    pub(crate) rows: Option<u64>,
    /// Accumulator of the files read.
    pub(crate) files: Option<u64>,
    /// Accumulator of the bytes of these files.
    pub(crate) bytes: Option<u64>,
}

/// Reads a plan. `description` is the same plan as long text, for what the tree leaves out.
pub(crate) fn read(plan: &PlanNode, description: &str) -> PlanLineage {
    let mut walker = Walker {
        description,
        origins: BTreeMap::new(),
        scans: Vec::new(),
        joins: Vec::new(),
        losses: BTreeSet::new(),
    };
    walker.visit(plan, false);
    PlanLineage {
        joins: walker.joins,
        scans: walker
            .scans
            .into_iter()
            .map(|(base, ids)| PlanScan { scan: base.into_use(), ..ids })
            .collect(),
        losses: walker.losses,
    }
}

struct Walker<'p> {
    description: &'p str,
    /// Expression id → the base columns it comes from.
    origins: BTreeMap<u64, Origin>,
    scans: Vec<(BaseScan, PlanScan)>,
    joins: Vec<PlanJoin>,
    losses: BTreeSet<String>,
}

/// The columns that an operator gives to the one above.
#[derive(Debug, Default)]
struct Output {
    attributes: Vec<Attribute>,
    /// Whether the list is complete and in order.
    exact: bool,
    /// The scan whose rows these are, filtered at most.
    scan: Option<usize>,
}

impl Output {
    const fn exact(attributes: Vec<Attribute>) -> Self {
        Self { attributes, exact: true, scan: None }
    }
}

impl Walker<'_> {
    /// Reads an operator and all below it. `reused` marks work that another operator does.
    fn visit(&mut self, node: &PlanNode, reused: bool) -> Output {
        if scan::is_scan(node) {
            return self.visit_scan(node, reused);
        }
        let inputs: Vec<Output> = match node.operator() {
            "ReusedExchange" => node.inputs().map(|child| self.visit(child, true)).collect(),
            _ => node.inputs().map(|child| self.visit(child, reused)).collect(),
        };
        for subquery in node.children.iter().filter(|child| child.is_subquery()) {
            self.visit_subquery(subquery, reused);
        }
        if let Some(strategy) = equi_join(node) {
            return self.visit_join(node, strategy, inputs, reused);
        }
        match node.operator() {
            "Project" => self.visit_project(node, inputs),
            "Filter" => self.visit_filter(node, inputs),
            "HashAggregate"
            | "SortAggregate"
            | "ObjectHashAggregate"
            | "Aggregate"
            | "GroupingAgg"
            | "ShuffledAggregate" => self.visit_aggregate(node),
            "TakeOrderedAndProject" | "TopK" => {
                let items = labeled_list(&node.text, "output=").map(|items| self.complete(&items));
                match items {
                    Some(items) => self.define(&items),
                    None => first(inputs),
                }
            }
            "ReusedExchange" | "InMemoryTableScan" => self.visit_renamed(node, inputs),
            "Union" => self.visit_union(&inputs),
            "Expand" => self.visit_expand(node),
            "Generate" => self.visit_generate(node),
            "Window" => self.visit_window(node, inputs),
            "InputAdapter" | "WholeStageCodegen" | "ColumnarToRow" | "RowToColumnar" => {
                first(inputs)
            }
            _ => Output { scan: None, ..concatenated(inputs) },
        }
    }

    /// Scalar subqueries are the query's own work; Bloom filters and dynamic pruning are not.
    fn visit_subquery(&mut self, node: &PlanNode, reused: bool) {
        let is_bloom_filter =
            || node.descendants().any(|below| below.text.contains("bloom_filter_agg"));
        if node.operator() == "Subquery" && !is_bloom_filter() {
            for child in &node.children {
                self.visit(child, reused);
            }
        }
    }

    fn visit_scan(&mut self, node: &PlanNode, reused: bool) -> Output {
        let items = list_from(&node.text, 0).map(|(items, _)| items).unwrap_or_default();
        let items = self.complete(&items);
        let attributes: Vec<Attribute> = items.iter().filter_map(|item| attribute(item)).collect();
        let Some(base) = BaseScan::read(node, attributes.clone()) else {
            return Output::exact(attributes);
        };
        let table = base.table.clone();
        let index = self.add_scan(node, base, reused);
        for attribute in &attributes {
            let origin = match &table {
                Some(table) => {
                    let column = ColumnRef { table: table.clone(), column: attribute.name.clone() };
                    Origin::base(column, index)
                }
                None => Origin::derived(),
            };
            self.origins.insert(attribute.id, origin);
        }
        Output { attributes, exact: true, scan: Some(index) }
    }

    /// Adds a scan unless the same operator was seen already.
    fn add_scan(&mut self, node: &PlanNode, base: BaseScan, reused: bool) -> usize {
        let rows = node.metric(&["number of output rows"]);
        let key = rows.or_else(|| node.metrics.iter().map(|metric| metric.id).min());
        let known = self.scans.iter().position(|(other, ids)| match key {
            Some(_) => ids.key == key,
            None => reused && other.table == base.table,
        });
        if let Some(index) = known {
            return index;
        }
        let ids = PlanScan {
            scan: ScanUse::default(),
            key,
            rows,
            files: node.metric(&["number of files read", "files read", "number of files"]),
            bytes: node.metric(&["size of files read"]),
        };
        self.scans.push((base, ids));
        self.scans.len() - 1
    }

    fn visit_join(
        &mut self,
        node: &PlanNode,
        strategy: JoinStrategy,
        inputs: Vec<Output>,
        reused: bool,
    ) -> Output {
        let Some((left, right, rest)) = join_arguments(&node.text) else {
            self.losses.insert(format!("join `{}` does not list its keys", node.name));
            return concatenated(inputs);
        };
        let (left, right) = (self.complete(&left), self.complete(&right));
        let kind = join_kind(rest);
        let pairs: Vec<(Origin, Origin)> =
            left.iter().zip(&right).map(|(l, r)| (self.resolve(l), self.resolve(r))).collect();
        let key = node.metric(&["number of output rows"]);
        let seen = key.is_some() && self.joins.iter().any(|join| join.key == key);
        if !seen {
            let traits = JoinTraits { kind, strategy: Some(strategy), confidence: 1.0 };
            for join in edges(&pairs, traits) {
                let repeated =
                    reused && key.is_none() && self.joins.iter().any(|known| known.join == join);
                if !repeated {
                    self.joins.push(PlanJoin { join, key });
                }
            }
        }
        match kind {
            JoinKind::LeftSemi | JoinKind::LeftAnti => Output { scan: None, ..first(inputs) },
            JoinKind::Existence => Output { scan: None, exact: false, ..first(inputs) },
            _ => concatenated(inputs),
        }
    }

    fn visit_project(&mut self, node: &PlanNode, inputs: Vec<Output>) -> Output {
        let items = list_from(&node.text, 0).map(|(items, _)| items).unwrap_or_default();
        let items = self.complete(&items);
        Output { scan: first(inputs).scan, ..self.define(&items) }
    }

    fn visit_filter(&mut self, node: &PlanNode, inputs: Vec<Output>) -> Output {
        let output = first(inputs);
        if let Some((base, _)) = output.scan.and_then(|index| self.scans.get_mut(index))
            && !base.lists_filters
            && let Some((_, condition)) = node.text.split_once(' ')
        {
            base.add_condition(condition);
        }
        output
    }

    /// Group keys keep their ids; what the functions give is computed.
    fn visit_aggregate(&mut self, node: &PlanNode) -> Output {
        let keys = labeled_list(&node.text, "keys=").unwrap_or_default();
        let keys = self.complete(&keys);
        let output = self.define(&keys);
        if let Some(items) = labeled_list(&node.text, "output=") {
            let items = self.complete(&items);
            let attributes = items.iter().filter_map(|item| attribute(item)).collect();
            return Output::exact(attributes);
        }
        // A final aggregate may reorder and rename its keys without saying so in this text; a
        // partial one gives keys first and buffers after them.
        let is_partial = node.text.contains("functions=[partial_");
        Output { exact: is_partial, ..output }
    }

    /// Binds the ids that an operator lists anew to the columns of its child.
    fn visit_renamed(&mut self, node: &PlanNode, inputs: Vec<Output>) -> Output {
        let items = list_from(&node.text, 0).map(|(items, _)| items).unwrap_or_default();
        let items = self.complete(&items);
        let attributes: Vec<Attribute> = items.iter().filter_map(|item| attribute(item)).collect();
        let child = first(inputs);
        let by_position = child.exact
            && (child.attributes.len() == attributes.len() || node.operator() == "ReusedExchange");
        for (position, attribute) in attributes.iter().enumerate() {
            let same = if by_position {
                child.attributes.get(position)
            } else {
                child.attributes.iter().find(|other| other.name == attribute.name)
            };
            // A cached table may list the very ids of its child.
            if let Some(same) = same.filter(|same| same.id != attribute.id) {
                let origin = self.origin(same.id);
                self.origins.insert(attribute.id, origin);
            }
        }
        Output::exact(attributes)
    }

    /// The ids of a union are those of its first branch.
    fn visit_union(&mut self, inputs: &[Output]) -> Output {
        let Some(attributes) = inputs.first().map(|output| output.attributes.clone()) else {
            return Output::default();
        };
        let aligned =
            inputs.iter().all(|branch| branch.exact && branch.attributes.len() == attributes.len());
        for (position, attribute) in attributes.iter().enumerate() {
            let origin = if aligned {
                let branches: Vec<Origin> = inputs
                    .iter()
                    .map(|branch| self.origin(branch.attributes[position].id))
                    .collect();
                Origin::union(&branches)
            } else {
                Origin::derived()
            };
            self.origins.insert(attribute.id, origin);
        }
        Output { attributes, exact: aligned, scan: None }
    }

    /// `Expand [[a#1, null, 0], [a#1, b#2, 1]], [a#7, b#8, gid#9]`: a column is what its rows are,
    /// apart from the nulls of rolled-up keys.
    fn visit_expand(&mut self, node: &PlanNode) -> Output {
        let Some((rows, after)) = list_from(&node.text, 0) else { return Output::default() };
        let Some((names, _)) = list_from(&node.text, after) else { return Output::default() };
        let rows: Vec<Vec<&str>> =
            rows.iter().filter_map(|row| list_from(row, 0).map(|(items, _)| items)).collect();
        let names = self.complete(&names);
        let attributes: Vec<Attribute> = names.iter().filter_map(|item| attribute(item)).collect();
        for (position, attribute) in attributes.iter().enumerate() {
            let values: Vec<Origin> = rows
                .iter()
                .filter_map(|row| row.get(position))
                .filter(|value| **value != "null")
                .map(|value| self.resolve(value))
                .collect();
            self.origins.insert(attribute.id, Origin::union(&values));
        }
        Output::exact(attributes)
    }

    /// `Generate explode(xs#1), [a#2], false, [x#3]`: the required columns, then the generated ones.
    fn visit_generate(&mut self, node: &PlanNode) -> Output {
        let lists: Vec<Vec<&str>> = split_top(&node.text)
            .into_iter()
            .skip(1)
            .filter(|part| part.starts_with('['))
            .filter_map(|part| list_from(part, 0).map(|(items, _)| items))
            .collect();
        let items: Vec<String> = lists.iter().flat_map(|list| self.complete(list)).collect();
        Output::exact(items.iter().filter_map(|item| attribute(item)).collect())
    }

    fn visit_window(&mut self, node: &PlanNode, inputs: Vec<Output>) -> Output {
        let mut output = Output { scan: None, ..first(inputs) };
        let items = list_from(&node.text, 0).map(|(items, _)| items).unwrap_or_default();
        let items = self.complete(&items);
        output.attributes.extend(self.define(&items).attributes);
        output
    }

    /// Binds the aliases of a list and returns the list's attributes.
    fn define(&mut self, items: &[String]) -> Output {
        let mut attributes = Vec::with_capacity(items.len());
        for item in items {
            if let Some((expression, name)) = alias(item) {
                let origin = self.resolve(expression);
                self.origins.insert(name.id, origin);
                attributes.push(name);
            } else if let Some(attribute) = attribute(item) {
                attributes.push(attribute);
            }
        }
        let exact = attributes.len() == items.len();
        Output { attributes, exact, scan: None }
    }

    /// Says which base columns an expression passes on unchanged.
    fn resolve(&mut self, expression: &str) -> Origin {
        if let Some(attribute) = attribute(expression) {
            return self.origin(attribute.id);
        }
        if let Some((attribute, path)) = nested_field(expression) {
            return self.origin(attribute.id).field(path);
        }
        let Some((name, arguments)) = call(expression) else { return Origin::derived() };
        match name {
            "cast" | "try_cast" | "ansi_cast" => match arguments.rsplit_once(" as ") {
                Some((inner, _)) => self.resolve(inner),
                None => Origin::derived(),
            },
            "knownfloatingpointnormalized"
            | "normalizenanandzero"
            | "knownnotnull"
            | "promote_precision" => self.resolve(arguments),
            // How Spark spells a null-safe equality: coalesce(a, 0) = coalesce(b, 0) AND isnull(a) = isnull(b).
            "coalesce" => match split_top(arguments).as_slice() {
                [inner, constant] if !constant.contains('#') => self.resolve(inner),
                _ => Origin::derived(),
            },
            _ => Origin::derived(),
        }
    }

    fn origin(&mut self, id: u64) -> Origin {
        if let Some(origin) = self.origins.get(&id) {
            return origin.clone();
        }
        // Bound first, so that text which defines an id by itself ends here.
        self.origins.insert(id, Origin::derived());
        let Some(expression) = defined_in(self.description, id) else { return Origin::derived() };
        let origin = self.resolve(expression);
        self.origins.insert(id, origin.clone());
        origin
    }

    /// Fills a list that was cut after 25 fields from the long description, which has it in full.
    fn complete(&mut self, items: &[&str]) -> Vec<String> {
        let owned = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        let Some((last, head)) = items.split_last() else { return Vec::new() };
        let Some(missing) = text::omitted(last) else { return owned(items) };
        let start = format!("[{}", head.join(", "));
        let full = self.description.match_indices(&start).find_map(|(at, _)| {
            let (items, _) = list_from(self.description, at)?;
            (items.len() == head.len() + missing).then_some(items)
        });
        match full {
            Some(items) => owned(&items),
            None => {
                self.losses.insert(
                    "a list of the plan is cut and its long description lacks it".to_owned(),
                );
                owned(head)
            }
        }
    }
}

fn first(inputs: Vec<Output>) -> Output {
    inputs.into_iter().next().unwrap_or_default()
}

fn concatenated(inputs: Vec<Output>) -> Output {
    let exact = inputs.iter().all(|input| input.exact);
    let attributes = inputs.into_iter().flat_map(|input| input.attributes).collect();
    Output { attributes, exact, scan: None }
}

fn equi_join(node: &PlanNode) -> Option<JoinStrategy> {
    let operator = node.operator();
    if operator.contains("SortMergeJoin") {
        Some(JoinStrategy::SortMerge)
    } else if operator.contains("BroadcastHashJoin") {
        Some(JoinStrategy::Broadcast)
    } else if operator.starts_with("Shuffled") && operator.ends_with("HashJoin") {
        Some(JoinStrategy::ShuffleHash)
    } else {
        None
    }
}

fn join_kind(rest: &str) -> JoinKind {
    let word = rest.trim_start_matches([',', ' ']).split([',', '(']).next().unwrap_or_default();
    match word.trim() {
        "LeftOuter" | "LeftSingle" => JoinKind::LeftOuter,
        "RightOuter" => JoinKind::RightOuter,
        "FullOuter" => JoinKind::FullOuter,
        "LeftSemi" => JoinKind::LeftSemi,
        "LeftAnti" => JoinKind::LeftAnti,
        "ExistenceJoin" => JoinKind::Existence,
        _ => JoinKind::Inner,
    }
}
