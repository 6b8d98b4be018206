//! Operators of a physical plan.

use std::collections::BTreeMap;

/// An operator's place in its tree.
pub(crate) type NodeId = usize;

/// A physical plan. The operators lie in one list, so that a deep plan costs no stack, not even
/// when it is dropped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PlanTree {
    nodes: Vec<PlanNode>,
    /// Whether operators were left out because the tree is too deep.
    pub(crate) is_cut: bool,
}

/// An operator as `sparkPlanInfo` or the plan's long text describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PlanNode {
    /// `nodeName`, for example `Scan parquet spark_catalog.default.orders`.
    pub(crate) name: String,
    /// `simpleString`: the operator with its arguments, cut after 25 fields.
    pub(crate) text: String,
    /// The inputs; subqueries follow them.
    pub(crate) children: Vec<NodeId>,
    /// What a scan says about its files and filters, and what the long text says of any operator:
    /// `Output`, `Left keys`, `Condition`.
    pub(crate) fields: BTreeMap<String, String>,
    /// The accumulators that count what the operator did.
    pub(crate) metrics: Vec<Metric>,
    /// The exchange whose rows a reused exchange gives, where it is no child.
    pub(crate) reuses: Option<NodeId>,
    /// The inputs as first planned, where the long text of adaptive execution shows both.
    pub(crate) first_children: Vec<NodeId>,
}

/// A named accumulator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metric {
    /// For example `number of output rows`.
    pub(crate) name: String,
    /// The accumulator's id, unique in the application.
    pub(crate) id: u64,
}

/// What engines put before the names of operators that they run in place of Spark.
const PREFIXES: [&str; 6] = ["Photon", "Gpu", "Comet", "Velox", "Native", "Gluten"];
/// What they put behind them.
const SUFFIXES: [&str; 3] = ["ExecTransformer", "Transformer", "Exec"];

impl PlanTree {
    /// The first operator added; there is none in an empty tree.
    pub(crate) const ROOT: NodeId = 0;

    /// Tells whether the tree has no operators.
    pub(crate) const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns how many operators there are; their ids are the numbers below.
    pub(crate) const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Adds an operator below another.
    pub(crate) fn add(&mut self, parent: Option<NodeId>, node: PlanNode) -> NodeId {
        let id = self.nodes.len();
        self.nodes.push(node);
        if let Some(parent) = parent {
            self.nodes[parent].children.push(id);
        }
        id
    }

    /// Returns an operator of this tree.
    pub(crate) fn node(&self, id: NodeId) -> &PlanNode {
        &self.nodes[id]
    }

    /// Returns an operator of this tree for changes.
    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut PlanNode {
        &mut self.nodes[id]
    }

    /// Iterates over the inputs of an operator, without subqueries.
    pub(crate) fn inputs(&self, id: NodeId) -> impl DoubleEndedIterator<Item = NodeId> {
        let children = self.nodes[id].children.iter().copied();
        children.filter(|child| !self.nodes[*child].is_subquery())
    }

    /// Iterates over an operator and everything below it.
    pub(crate) fn descendants(&self, id: NodeId) -> impl Iterator<Item = &PlanNode> {
        let mut stack = vec![id];
        let mut seen = 0_usize;
        std::iter::from_fn(move || {
            let node = &self.nodes[stack.pop()?];
            // Every operator has one parent; a list that is no tree must end all the same.
            seen += 1;
            if seen <= self.nodes.len() {
                stack.extend(node.children.iter().rev());
            }
            Some(node)
        })
    }

    /// Links reused exchanges without a child to the exchange that they name: by the plan id that
    /// both print, else to the only exchange before it with the very text that it quotes.
    pub(crate) fn link_reused(&mut self) {
        let exchanges: Vec<NodeId> = (0..self.nodes.len())
            .filter(|id| self.nodes[*id].operator().ends_with("Exchange"))
            .filter(|id| !self.nodes[*id].is_reuse())
            .collect();
        let mut by_plan_id: BTreeMap<&str, NodeId> = BTreeMap::new();
        let mut by_text: BTreeMap<&str, NodeId> = BTreeMap::new();
        for &id in &exchanges {
            let text = self.nodes[id].text.as_str();
            match plan_id(text) {
                Some(plan_id) => by_plan_id.entry(plan_id).or_insert(id),
                None => by_text.entry(text).or_insert(id),
            };
        }
        let links: Vec<(NodeId, NodeId)> = (0..self.nodes.len())
            .filter(|id| self.nodes[*id].is_reuse() && self.nodes[*id].reuses.is_none())
            .filter(|id| self.nodes[*id].children.is_empty())
            .filter_map(|id| {
                let text = self.nodes[id].text.as_str();
                let target = match plan_id(text) {
                    Some(plan_id) => by_plan_id.get(plan_id),
                    None => by_text.get(text.split_once("], ")?.1),
                };
                target.map(|target| (id, *target))
            })
            .collect();
        for (id, target) in links {
            self.nodes[id].reuses = Some(target);
        }
    }
}

/// Reads the number in `[plan_id=40]`, or `[id=#40]` of older versions.
fn plan_id(text: &str) -> Option<&str> {
    let at = |mark: &str| text.rfind(mark).map(|at| at + mark.len());
    let start = at("[plan_id=").or_else(|| at("[id=#"))?;
    let digits = text[start..].split(']').next()?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(digits)
}

impl PlanNode {
    /// Returns the operator's first word without what an accelerator puts around it.
    pub(crate) fn operator(&self) -> &str {
        stem(self.name.split([' ', '(', '[', ',']).next().unwrap_or_default())
    }

    /// Returns the accumulator of a metric.
    pub(crate) fn metric(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| {
            self.metrics.iter().find(|metric| metric.name == *name).map(|metric| metric.id)
        })
    }

    /// Identity of the operator in its application: the smallest id of its accumulators.
    pub(crate) fn key(&self) -> Option<u64> {
        self.metrics.iter().map(|metric| metric.id).min()
    }

    /// Tells whether a child is a subquery of an expression rather than an input.
    pub(crate) fn is_subquery(&self) -> bool {
        matches!(
            self.operator(),
            "Subquery" | "SubqueryBroadcast" | "SubqueryAdaptiveBroadcast" | "ReusedSubquery"
        )
    }

    /// Tells whether the operator gives the rows of an exchange that another one fills.
    pub(crate) fn is_reuse(&self) -> bool {
        self.operator() == "ReusedExchange"
    }
}

/// Strips what engines put around an operator's name, as long as a name remains.
pub(super) fn stem(word: &str) -> &str {
    let is_name = |rest: &&str| rest.starts_with(|c: char| c.is_ascii_uppercase());
    let mut word = word;
    loop {
        let shorter = PREFIXES
            .iter()
            .find_map(|prefix| word.strip_prefix(prefix))
            .or_else(|| SUFFIXES.iter().find_map(|suffix| word.strip_suffix(suffix)))
            .filter(is_name);
        match shorter {
            Some(shorter) => word = shorter,
            None => return word,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PlanNode, PlanTree, plan_id, stem};

    #[track_caller]
    fn check(name: &str, expected: &str) {
        let node = PlanNode { name: name.to_owned(), ..PlanNode::default() };
        assert_eq!(node.operator(), expected, "{name}");
    }

    #[test]
    fn an_operator_is_known_by_its_stem() {
        check("SortMergeJoin(skew=true)", "SortMergeJoin");
        check("PhotonShuffledHashJoin", "ShuffledHashJoin");
        check("GpuColumnarExchange", "ColumnarExchange");
        check("NativeScan parquet db.t", "Scan");
        check("CometNativeScan parquet db.t", "Scan");
        check("NativeFileScan parquet db.t", "FileScan");
        check("ProjectExecTransformer", "Project");
        check("ShuffledHashJoinExecTransformer", "ShuffledHashJoin");
        check("VeloxColumnarToRowExec", "ColumnarToRow");
        check("WholeStageCodegenTransformer (3)", "WholeStageCodegen");
        check("Photon", "Photon");
        check("", "");
        assert_eq!(stem("Native"), "Native");
    }

    #[test]
    fn plan_ids_of_all_versions_are_read() {
        assert_eq!(plan_id("Exchange hashpartitioning(k#3L, 200), [plan_id=40]"), Some("40"));
        assert_eq!(plan_id("Exchange hashpartitioning(k#3L, 200), true, [id=#41]"), Some("41"));
        assert_eq!(plan_id("BroadcastExchange HashedRelationBroadcastMode(List(x))"), None);
        assert_eq!(plan_id("x [plan_id=]"), None);
    }

    #[test]
    fn descendants_end_even_where_a_list_is_no_tree() {
        let mut tree = PlanTree::default();
        let root = tree.add(None, PlanNode::default());
        let child = tree.add(Some(root), PlanNode::default());
        tree.node_mut(child).children.push(root);
        assert!(tree.descendants(root).count() <= 5);
    }
}
