//! Two descriptions of one plan made one: the tree of `sparkPlanInfo`, which has the accumulators,
//! gets the fields of the long text, which has the lists in full.
//!
//! Both trees are followed down side by side. Wrappers that one of them leaves out are passed over;
//! where the operators differ, that part of the tree stays as it is.

use super::{
    node::{NodeId, PlanNode, PlanTree},
    operators::RELATION,
    text,
};

/// Fills a tree from the tree of the long text of the same plan.
pub(super) fn attach(tree: &mut PlanTree, long: &PlanTree) {
    if tree.is_empty() || long.is_empty() {
        return;
    }
    let mut pairs = vec![(PlanTree::ROOT, PlanTree::ROOT)];
    // Each operator of the tree is filled once.
    for _ in 0..tree.len() {
        let Some((id, long_id)) = pairs.pop() else { return };
        let (id, long_id) = (unwrapped(tree, id), unwrapped(long, long_id));
        if !same_operator(tree.node(id), long.node(long_id)) {
            continue;
        }
        fill(tree.node_mut(id), long, long_id);
        pairs.extend(pairs_below((tree, id), (long, long_id)));
    }
}

fn pairs_below(
    (tree, id): (&PlanTree, NodeId),
    (long, long_id): (&PlanTree, NodeId),
) -> Vec<(NodeId, NodeId)> {
    let mut inputs: Vec<NodeId> = tree.inputs(id).collect();
    let mut long_inputs: Vec<NodeId> = long.inputs(long_id).collect();
    long_inputs.extend(long.node(long_id).reuses);
    if inputs.len() != long_inputs.len() {
        inputs.clear();
        long_inputs.clear();
    }
    let subqueries = |tree: &PlanTree, id: NodeId| -> Vec<NodeId> {
        let children = tree.node(id).children.iter().copied();
        children.filter(|child| tree.node(*child).is_subquery()).collect()
    };
    let long_subqueries = subqueries(long, long_id);
    for subquery in subqueries(tree, id) {
        let label = subquery_label(tree.node(subquery));
        let same = long_subqueries
            .iter()
            .find(|other| label.is_some() && subquery_label(long.node(**other)) == label);
        if let Some(same) = same {
            inputs.extend(tree.inputs(subquery));
            long_inputs.extend(long.inputs(*same));
        }
    }
    inputs.into_iter().zip(long_inputs).collect()
}

/// Passes over operators that only one of the two descriptions may have.
fn unwrapped(tree: &PlanTree, id: NodeId) -> NodeId {
    const WRAPPERS: [&str; 6] = [
        "AdaptiveSparkPlan",
        "ColumnarInputAdapter",
        "InMemoryRelation",
        "InputAdapter",
        "InputIterator",
        "WholeStageCodegen",
    ];
    let mut at = id;
    for _ in 0..tree.len() {
        let mut inputs = tree.inputs(at);
        match (WRAPPERS.contains(&tree.node(at).operator()), inputs.next(), inputs.next()) {
            (true, Some(only), None) => at = only,
            _ => break,
        }
    }
    at
}

fn same_operator(node: &PlanNode, long: &PlanNode) -> bool {
    let (a, b) = (node.operator(), long.operator());
    // `Scan parquet t` prints itself as `FileScan parquet t`.
    a == b
        || (a.ends_with("Scan")
            && b.ends_with("Scan")
            && a.starts_with("Scan") != b.starts_with("Scan"))
}

fn fill(node: &mut PlanNode, long: &PlanTree, long_id: NodeId) {
    let source = long.node(long_id);
    for (name, value) in &source.fields {
        if !node.fields.contains_key(name) {
            node.fields.insert(name.clone(), value.clone());
        }
    }
    if let Some(at) = source.text.find("output=[") {
        let list = at + "output=".len();
        if let Some(end) = text::closing(&source.text, list) {
            node.fields.insert("output=".to_owned(), source.text[list..=end].to_owned());
        }
    }
    let relation = long.inputs(long_id).map(|child| long.node(child));
    if let Some(relation) = relation.into_iter().find(|child| child.name == "InMemoryRelation") {
        let text = relation.fields.get("Arguments").unwrap_or(&relation.text);
        if let Some(open) = text.find('[')
            && let Some(close) = text::closing(text, open)
        {
            node.fields.insert(RELATION.to_owned(), text[open..=close].to_owned());
        }
    }
}

/// `subquery#921` of `Subquery subquery#921, [id=#278]`.
fn subquery_label(node: &PlanNode) -> Option<&str> {
    node.text
        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '#'))
        .find(|word| word.contains('#') && !word.starts_with('#'))
}
