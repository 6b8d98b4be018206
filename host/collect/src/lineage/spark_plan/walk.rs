//! The walk from the leaves of a plan to its joins.

use std::collections::{BTreeMap, BTreeSet};

use lakebed_model::{ColumnRef, JoinKind, JoinUse, ScanUse};

use crate::lineage::{
    edge::{JoinTraits, edges},
    origin::Origin,
};

use super::{
    expression,
    join::{self, JoinArguments, Joining},
    node::{NodeId, PlanNode, PlanTree},
    output::{Column, Output, Scope, concatenated, first},
    scan::{self, BaseScan},
    text::{self, Attribute, attribute},
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
    /// Identity of the operator: an accumulator's id.
    key: Option<u64>,
    /// Accumulator of the rows that left the join.
    pub(crate) rows: Option<u64>,
    /// Accumulators of what the join and the sorts of its inputs spilled.
    pub(crate) spills: Vec<u64>,
}

/// A scan and the accumulators that count what it reads.
#[derive(Debug, Clone, PartialEq, Default)]
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
    /// What tells the files there were before pruning at run time.
    pub(crate) all_files: Whole,
    /// What tells the bytes of these files.
    pub(crate) all_bytes: Whole,
    /// Columns whose filters look carried over from the other side of a join.
    pub(crate) carried: BTreeSet<String>,
}

/// How the plan counts all that a scan would read without pruning at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Whole {
    /// Accumulator of the whole.
    pub(crate) whole: Option<u64>,
    /// Accumulator of what pruning left out; with what was read it is the whole.
    pub(crate) pruned: Option<u64>,
}

/// Which reading of a plan is walked, where the text shows two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// As it ran in the end.
    Final,
    /// As first planned.
    First,
}

/// Walks a plan. `description` is the same plan as long text, for what the tree leaves out.
pub(super) fn walk(tree: &PlanTree, description: &str, reading: Reading) -> PlanLineage {
    let mut walker = Walker {
        tree,
        description,
        definitions: None,
        reading,
        done: BTreeMap::new(),
        shared: (0..tree.len()).filter_map(|id| tree.node(id).reuses).collect(),
        origins: BTreeMap::new(),
        scans: Vec::new(),
        joins: Vec::new(),
        losses: BTreeSet::new(),
    };
    if !tree.is_empty() {
        walker.run();
    }
    let scan_of = |(base, ids): (BaseScan, PlanScan)| PlanScan {
        carried: base.before_not_null.clone(),
        scan: base.into_use(),
        ..ids
    };
    PlanLineage {
        joins: walker.joins,
        scans: walker.scans.into_iter().map(scan_of).collect(),
        losses: walker.losses,
    }
}

pub(super) struct Walker<'p> {
    tree: &'p PlanTree,
    description: &'p str,
    /// What the description defines, once something asks for it.
    definitions: Option<BTreeMap<u64, &'p str>>,
    reading: Reading,
    done: BTreeMap<NodeId, Output>,
    /// Exchanges whose output more than one operator asks for.
    shared: BTreeSet<NodeId>,
    /// Expression id → the base columns it comes from, wherever in the plan it was bound last.
    origins: BTreeMap<u64, Origin>,
    scans: Vec<(BaseScan, PlanScan)>,
    joins: Vec<PlanJoin>,
    pub(super) losses: BTreeSet<String>,
}

/// A step of the walk; `reused` marks work that another operator does.
struct Step {
    id: NodeId,
    reused: bool,
    inputs_done: bool,
}

/// Definitions behind definitions beyond this are not followed.
const MAX_DEFINITIONS: usize = 32;

impl<'p> Walker<'p> {
    /// Visits every operator after its inputs and its subqueries.
    fn run(&mut self) {
        let mut seen = BTreeSet::new();
        let mut steps = vec![Step { id: PlanTree::ROOT, reused: false, inputs_done: false }];
        while let Some(Step { id, reused, inputs_done }) = steps.pop() {
            if inputs_done {
                let output = self.visit(id, reused);
                self.done.insert(id, output);
                continue;
            }
            if !seen.insert(id) {
                continue;
            }
            steps.push(Step { id, reused, inputs_done: true });
            let node = self.tree.node(id);
            let below_reused = reused || node.is_reuse();
            let step = |id| Step { id, reused: below_reused, inputs_done: false };
            // The last pushed is visited first: inputs from left to right, then subqueries.
            let subqueries = node.children.iter().filter(|child| self.is_workload(**child));
            steps.extend(subqueries.rev().map(|id| step(*id)));
            steps.extend(node.reuses.map(|id| Step { id, reused, inputs_done: false }));
            let inputs: Vec<NodeId> = self.inputs(id);
            steps.extend(inputs.into_iter().rev().map(step));
        }
    }

    /// Scalar subqueries are the query's own work; Bloom filters and dynamic pruning are not.
    fn is_workload(&self, id: NodeId) -> bool {
        let makes_bloom_filter = |node: &PlanNode| {
            let functions = node.fields.get("Functions").unwrap_or(&node.text);
            functions.contains("bloom_filter_agg")
        };
        self.tree.node(id).operator() == "Subquery"
            && !self.tree.descendants(id).any(makes_bloom_filter)
    }

    fn inputs(&self, id: NodeId) -> Vec<NodeId> {
        let node = self.tree.node(id);
        if self.reading == Reading::First && !node.first_children.is_empty() {
            return node.first_children.clone();
        }
        self.tree.inputs(id).collect()
    }

    fn input_outputs(&mut self, id: NodeId) -> Vec<Output> {
        let mut inputs = self.inputs(id);
        inputs.extend(self.tree.node(id).reuses);
        inputs
            .into_iter()
            .filter_map(|input| match self.shared.contains(&input) {
                true => self.done.get(&input).cloned(),
                false => self.done.remove(&input),
            })
            .collect()
    }

    fn visit(&mut self, id: NodeId, reused: bool) -> Output {
        let tree = self.tree;
        let node = tree.node(id);
        if scan::is_scan(node) {
            return self.visit_scan(node, reused);
        }
        let inputs = self.input_outputs(id);
        if let Some(joining) = join::joining(node) {
            return self.visit_join(id, joining, inputs, reused);
        }
        if node.operator() == "InMemoryRelation" {
            let listed = text::list_from(&node.text, 0).map(|(items, _)| items);
            let (items, _) = self.list(node, &[], listed);
            return self.visit_relation(&items, &first(inputs));
        }
        self.visit_operator(node, inputs)
    }

    /// Adds the condition of a filter right above a scan that lists no filters itself.
    pub(super) fn add_condition(&mut self, scan: usize, condition: &str) {
        if let Some((base, _)) = self.scans.get_mut(scan)
            && !base.lists_filters
        {
            base.add_condition(condition);
        }
    }

    /// Forgets where an id came from below: above, it means something else.
    pub(super) fn forget(&mut self, id: u64) {
        self.origins.remove(&id);
    }

    fn visit_scan(&mut self, node: &PlanNode, reused: bool) -> Output {
        let columns = text::columns_at(&node.text)
            .and_then(|at| text::list_from(&node.text, at))
            .map(|(items, _)| items);
        let (items, exact) = self.list(node, &["Output"], columns);
        let attributes: Vec<Attribute> = items.iter().filter_map(|item| attribute(item)).collect();
        let base = BaseScan::read(node, attributes.clone());
        let table = base.as_ref().and_then(|base| base.table.clone());
        let scan = base.map(|base| self.add_scan(node, base, reused));
        let columns: Vec<Column> = attributes
            .into_iter()
            .map(|attribute| {
                let origin = match (&table, scan) {
                    (Some(table), Some(scan)) => {
                        let column =
                            ColumnRef { table: table.clone(), column: attribute.name.clone() };
                        Origin::base(column, scan)
                    }
                    _ => Origin::derived(),
                };
                self.bind(attribute, Some(origin))
            })
            .collect();
        Output { columns, exact, scan }
    }

    /// Adds a scan unless the same operator was seen already.
    fn add_scan(&mut self, node: &PlanNode, base: BaseScan, reused: bool) -> usize {
        let rows = node.metric(&ROWS);
        let key = rows.or_else(|| node.key());
        let known = self.scans.iter().position(|(other, ids)| match key {
            Some(_) => ids.key == key,
            None => reused && other.table == base.table,
        });
        if let Some(index) = known {
            return index;
        }
        let ids = PlanScan {
            key,
            rows,
            files: node.metric(&["number of files read", "files read", "number of files"]),
            bytes: node.metric(&["size of files read", "bytes read"]),
            all_files: Whole {
                whole: node.metric(&["static number of files read"]),
                pruned: node.metric(&["number of files pruned", "files pruned"]),
            },
            all_bytes: Whole {
                whole: node.metric(&["static size of files read"]),
                pruned: node.metric(&["size of files pruned", "bytes pruned"]),
            },
            ..PlanScan::default()
        };
        self.scans.push((base, ids));
        self.scans.len() - 1
    }

    fn visit_join(
        &mut self,
        id: NodeId,
        joining: Joining,
        inputs: Vec<Output>,
        reused: bool,
    ) -> Output {
        let tree = self.tree;
        let node = tree.node(id);
        let (arguments, strategy) = match joining {
            Joining::Keys(strategy) => (join::arguments(node), Some(strategy)),
            Joining::Condition => (join::condition_arguments(node), None),
        };
        let kind = match arguments {
            Some(arguments) => {
                let traits = JoinTraits { kind: arguments.kind, strategy, confidence: 1.0 };
                self.add_join(id, traits, arguments, &inputs, reused)
            }
            None => {
                if strategy.is_some() {
                    self.losses.insert(format!(
                        "the two key lists of a {} could not be told apart",
                        node.operator()
                    ));
                }
                join::kind_of(node)
            }
        };
        match kind {
            JoinKind::LeftSemi | JoinKind::LeftAnti => Output { scan: None, ..first(inputs) },
            JoinKind::Existence => {
                let mut output = Output { scan: None, ..first(inputs) };
                match join::existence_flag(node) {
                    Some(flag) => output.columns.push(self.bind(flag, Some(Origin::derived()))),
                    None => output.exact = false,
                }
                output
            }
            _ => concatenated(inputs),
        }
    }

    fn add_join(
        &mut self,
        id: NodeId,
        traits: JoinTraits,
        arguments: JoinArguments<'_>,
        inputs: &[Output],
        reused: bool,
    ) -> JoinKind {
        let node = self.tree.node(id);
        // A key belongs to its side first, should both sides list its id.
        let (left_scope, right_scope) = (Scope::new(inputs), Scope::new(inputs.iter().rev()));
        let (left, _) = self.list(node, &["Left keys"], Some(arguments.left));
        let (right, _) = self.list(node, &["Right keys"], Some(arguments.right));
        if left.len() != right.len() {
            self.losses.insert("the key lists of a join are cut".to_owned());
            return traits.kind;
        }
        let keys = left.iter().map(String::as_str).zip(right.iter().map(String::as_str));
        let (keys, null_safe) = expression::null_safe(keys.collect());
        let mut pairs = Vec::new();
        for (left, right) in keys {
            match (self.resolve(left, &left_scope), self.resolve(right, &right_scope)) {
                (Some(left), Some(right)) => pairs.push((left, right)),
                _ => {
                    self.losses.insert("a key of a join has no visible origin".to_owned());
                }
            }
        }
        let rows = node.metric(&ROWS);
        let key = rows.or_else(|| node.key());
        if key.is_some() && self.joins.iter().any(|join| join.key == key) {
            return traits.kind;
        }
        let spills = self.spills(id);
        for mut join in edges(&pairs, traits) {
            join.notes.null_safe = null_safe;
            let repeated =
                reused && key.is_none() && self.joins.iter().any(|known| known.join == join);
            if !repeated {
                self.joins.push(PlanJoin { join, key, rows, spills: spills.clone() });
            }
        }
        traits.kind
    }

    /// Lists the accumulators of what a join and the sorts right below it spilled.
    fn spills(&self, id: NodeId) -> Vec<u64> {
        const SPILL: [&str; 2] = ["spill size", "num bytes spilled to disk"];
        let mut found: Vec<u64> = self.tree.node(id).metric(&SPILL).into_iter().collect();
        for input in self.inputs(id) {
            let mut below = Some(input);
            // Wrappers of generated code lie between a join and its sorts.
            for _ in 0..4 {
                let Some(id) = below else { break };
                let node = self.tree.node(id);
                match node.operator() {
                    "Sort" => {
                        found.extend(node.metric(&SPILL));
                        break;
                    }
                    "InputAdapter" | "WholeStageCodegen" => below = self.tree.inputs(id).next(),
                    _ => break,
                }
            }
        }
        found
    }

    /// Remembers where an id comes from and returns it as a column.
    pub(super) fn bind(&mut self, attribute: Attribute, origin: Option<Origin>) -> Column {
        if let Some(origin) = &origin {
            self.origins.insert(attribute.id, origin.clone());
        }
        Column { attribute, origin }
    }

    /// Says which base columns an expression passes on unchanged; `None` where nothing in the plan
    /// tells where a column comes from.
    pub(super) fn resolve(&mut self, expression: &str, scope: &Scope) -> Option<Origin> {
        let passed = expression::passed(expression);
        passed.origin(&mut |attribute| self.origin(attribute, scope, 0))
    }

    /// Looks an id up: in the operator's inputs, in the plan so far, in the long description.
    fn origin(&mut self, attribute: &Attribute, scope: &Scope, depth: usize) -> Option<Origin> {
        let id = attribute.id;
        if let Some(origin) = scope.get(id).or_else(|| self.origins.get(&id)) {
            return Some(origin.clone());
        }
        // `sum(l_quantity#41)#50` is the result of a function.
        if attribute.name.contains('(') {
            return Some(Origin::derived());
        }
        if depth > MAX_DEFINITIONS {
            return None;
        }
        let description = self.description;
        let definitions = self.definitions.get_or_insert_with(|| text::definitions(description));
        let expression = *definitions.get(&id)?;
        let passed = expression::passed(expression);
        let origin = passed.origin(&mut |inner| self.origin(inner, scope, depth + 1))?;
        self.origins.insert(id, origin.clone());
        Some(origin)
    }

    /// Returns the items of a list, and whether they are all: from a field of the operator, else
    /// from its text.
    pub(super) fn list(
        &mut self,
        node: &PlanNode,
        fields: &[&str],
        listed: Option<Vec<&str>>,
    ) -> (Vec<String>, bool) {
        let fields = fields.iter().filter_map(|name| node.fields.get(*name));
        let candidates: Vec<Vec<&str>> =
            fields.filter_map(|text| text::whole_list(text)).chain(listed).collect();
        let is_whole =
            |items: &&Vec<&str>| items.last().is_none_or(|last| text::omitted(last).is_none());
        if let Some(whole) = candidates.iter().find(is_whole) {
            return (owned(whole), true);
        }
        match candidates.first() {
            Some(cut) => self.shown(cut),
            None => (Vec::new(), false),
        }
    }

    /// Leaves out what a cut list leaves out, and says so.
    fn shown(&mut self, items: &[&str]) -> (Vec<String>, bool) {
        let cut = items.last().is_some_and(|last| text::omitted(last).is_some());
        if cut {
            self.losses.insert("a list of the plan is cut".to_owned());
        }
        (owned(&items[..items.len() - usize::from(cut)]), !cut)
    }
}

/// How engines call the count of rows that leave an operator.
const ROWS: [&str; 4] = ["number of output rows", "num output rows", "rows output", "output rows"];

fn owned(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}
