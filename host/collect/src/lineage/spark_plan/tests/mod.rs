//! Plans as Spark writes them, in both of its forms.

mod cases;
mod fuzz;
mod long_text;

use std::fmt::Write as _;

use super::{Metric, NodeId, PlanNode, PlanTree, read};

/// An operator of a tree as a test writes it.
struct Operator {
    node: PlanNode,
    children: Vec<Self>,
}

fn tree(root: &Operator) -> PlanTree {
    fn add(tree: &mut PlanTree, parent: Option<NodeId>, operator: &Operator) {
        let id = tree.add(parent, operator.node.clone());
        for child in &operator.children {
            add(tree, Some(id), child);
        }
    }
    let mut tree = PlanTree::default();
    add(&mut tree, None, root);
    tree
}

fn node<const N: usize>(name: &str, text: &str, children: [Operator; N]) -> Operator {
    let node = PlanNode { name: name.to_owned(), text: text.to_owned(), ..PlanNode::default() };
    Operator { node, children: children.into() }
}

fn counted(mut operator: Operator, id: u64) -> Operator {
    operator.node.metrics.push(Metric { name: "number of output rows".to_owned(), id });
    operator
}

fn scan(table: &str, columns: &str, id: u64) -> Operator {
    let text = format!("FileScan parquet {table}[{columns}] Batched: true");
    counted(node(&format!("Scan parquet {table}"), &text, []), id)
}

/// One line per edge, then one per scan with its filters, then the losses.
fn shown(plan: &PlanTree, description: &str) -> String {
    let lineage = read(plan, description);
    let mut text = String::new();
    for join in lineage.joins.iter().map(|plan_join| &plan_join.join) {
        let pairs: Vec<String> = join.pairs.iter().map(|(l, r)| format!("{l}={r}")).collect();
        let (left, right, kind) = (&join.left, &join.right, join.kind.as_str());
        let strategy = join.strategy.map_or("-", |strategy| strategy.as_str());
        let _ = write!(text, "{left}–{right} {} {kind} {strategy}", pairs.join(","));
        if join.notes.cast {
            text.push_str(" cast");
        }
        if join.notes.null_safe {
            text.push_str(" null-safe");
        }
        for (l, r) in &join.notes.expressions {
            let _ = write!(text, " expression:{l}={r}");
        }
        text.push_str(&match join.confidence {
            sure if sure >= 1.0 => "\n".to_owned(),
            share => format!(" {share:.2}\n"),
        });
    }
    for scan in lineage.scans.iter().map(|plan_scan| &plan_scan.scan) {
        let _ = write!(text, "{}", scan.table.as_ref().map_or("?", |table| table.as_str()));
        for filter in &scan.filters {
            let range = filter.range.as_ref().map_or("?".to_owned(), ToString::to_string);
            let _ = write!(text, " {} {} {range};", filter.column.column, filter.operator.as_str());
        }
        text.push('\n');
    }
    for loss in &lineage.losses {
        let _ = writeln!(text, "lost: {loss}");
    }
    text
}

#[track_caller]
fn check(plan: &Operator, expected: &[&str]) {
    assert_eq!(shown(&tree(plan), "").lines().collect::<Vec<_>>(), expected);
}

/// Reads a plan of which there is only the long text.
#[track_caller]
fn check_text(description: &str, expected: &[&str]) {
    let shown = shown(&PlanTree::default(), description);
    let start: String = description.chars().take(2_000).collect();
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "{start}");
}

fn join<const N: usize>(text: &str, children: [Operator; N]) -> Operator {
    let name = text.split(' ').next().unwrap().to_owned();
    node(&name, text, children)
}

#[test]
fn accelerated_joins_are_joins() {
    let sides = || [scan("t", "a#1", 1), scan("u", "b#2L", 2)];
    check(
        &join("PhotonShuffledHashJoin [a#1], [b#2L], RightOuter, BuildLeft", sides()),
        &["t–u a=b right_outer shuffle_hash", "t", "u"],
    );
    check(
        &join("GpuBroadcastHashJoin [a#1], [b#2L], LeftAnti, GpuBuildRight", sides()),
        &["t–u a=b left_anti broadcast", "t", "u"],
    );
    check(
        &join("SortMergeJoin(skew=true) [a#1], [b#2L], ExistenceJoin(exists#9)", sides()),
        &["t–u a=b existence sort_merge", "t", "u"],
    );
    check(&join("BroadcastNestedLoopJoin BuildRight, Inner, (a#1 < b#2L)", sides()), &["t", "u"]);
}

#[test]
fn aliases_casts_and_fields_keep_their_column_and_computed_ones_lose_it() {
    let project = "Project [cast(a#1 as bigint) AS k#3L, (b#2 + 1) AS m#4L, c#5.id AS n#6]";
    let left = node("Project", project, [scan("t", "a#1,b#2,c#5", 1)]);
    let text = "SortMergeJoin [k#3L, m#4L, n#6], [x#7, y#8, z#9], Inner";
    check(
        &join(text, [left, scan("u", "x#7,y#8,z#9", 2)]),
        &["t–u a=x,c.id=z inner sort_merge cast expression:b=y", "t", "u"],
    );
}

#[test]
fn a_reused_exchange_is_bound_by_position_and_counts_once() {
    let exchange = || node("Exchange", "Exchange hashpartitioning(k#1)", [scan("t", "k#1,v#2", 1)]);
    let reused = node("ReusedExchange", "ReusedExchange [k2#11, v2#12], Exchange", [exchange()]);
    check(
        &join("SortMergeJoin [k#1], [v2#12], Inner", [exchange(), reused]),
        &["t–t k=v inner sort_merge", "t"],
    );
}

#[test]
fn joins_below_a_reused_exchange_count_once() {
    let inner = || {
        let sides = [scan("t", "a#1", 1), scan("u", "b#2", 2)];
        counted(join("BroadcastHashJoin [a#1], [b#2], Inner, BuildRight", sides), 3)
    };
    let reused = node("ReusedExchange", "ReusedExchange [c#11, d#12], Exchange", [inner()]);
    check(
        &join("SortMergeJoin [b#2], [c#11], Inner", [inner(), reused]),
        &["t–u a=b inner broadcast", "t–u a=b inner sort_merge", "t", "u"],
    );
}

#[test]
fn the_engines_own_subqueries_are_no_workload_and_scalar_ones_are() {
    let bloom = |id| {
        let text = "ObjectHashAggregate(keys=[], functions=[bloom_filter_agg(k#9)])";
        node(
            "Subquery",
            "Subquery subquery#921",
            [node("ObjectHashAggregate", text, [scan("b", "k#9", id)])],
        )
    };
    let pruning =
        node("SubqueryBroadcast", "SubqueryBroadcast dynamicpruning#918", [scan("p", "k#8", 4)]);
    let scalar = node("Subquery", "Subquery subquery#4981", [scan("s", "x#7", 5)]);
    let filter = node(
        "Filter",
        "Filter (a#1 > Subquery subquery#4981)",
        [scan("t", "a#1", 1), bloom(3), pruning, scalar],
    );
    check(&filter, &["t a other ?;", "s"]);
}

#[test]
fn a_filter_above_a_scan_counts_when_the_scan_lists_none() {
    let filter = node(
        "Filter",
        "Filter ((isnotnull(a#1) AND (a#1 >= 3)) AND (a#1 < 9))",
        [node("ColumnarToRow", "ColumnarToRow", [scan("t", "a#1", 1)])],
    );
    check(&filter, &["t a range [3, 9);"]);
}

#[test]
fn a_union_fans_out_and_an_expand_passes_its_keys() {
    let union = node("Union", "Union", [scan("t", "a#1", 1), scan("u", "b#2", 2)]);
    check(
        &join("SortMergeJoin [a#1], [c#3], Inner", [union, scan("v", "c#3", 3)]),
        &["t–v a=c inner sort_merge 0.50", "u–v b=c inner sort_merge 0.50", "t", "u", "v"],
    );
    let expand =
        node("Expand", "Expand [[a#1, 0], [null, 1]], [a#5, gid#6]", [scan("t", "a#1", 1)]);
    check(
        &join("SortMergeJoin [a#5], [c#3], Inner", [expand, scan("v", "c#3", 3)]),
        &["t–v a=c inner sort_merge", "t", "v"],
    );
}

#[test]
fn a_cut_list_is_completed_from_the_long_description_or_counted_as_lost() {
    let cut = "a0#0, a1#1, ... 2 more fields";
    let plan = join("SortMergeJoin [a3#3], [k#9], Inner", [scan("t", cut, 1), scan("u", "k#9", 2)]);
    let description = "SortMergeJoin Inner (3)\n\
         :- Scan parquet t (1)\n\
         +- Scan parquet u (2)\n\
         \n\
         (1) Scan parquet t\n\
         Output [4]: [a0#0, a1#1, a2#2, a3#3]\n";
    assert_eq!(shown(&tree(&plan), description), "t–u a3=k inner sort_merge\nt\nu\n");
    check(
        &plan,
        &[
            "t",
            "u",
            "lost: a key of a join has no visible origin",
            "lost: a list of the plan is cut",
        ],
    );
}

#[test]
fn a_renamed_key_of_a_final_aggregate_is_found_in_the_long_description() {
    let text = "HashAggregate(keys=[l_orderkey#37L], functions=[sum(q#41)])";
    let aggregate = node("HashAggregate", text, [scan("lineitem", "l_orderkey#37L,q#41", 1)]);
    let plan = join(
        "SortMergeJoin [k#35L], [o_orderkey#53L], Inner",
        [node("Project", "Project [k#35L]", [aggregate]), scan("orders", "o_orderkey#53L", 2)],
    );
    let description = "Results [2]: [l_orderkey#37L AS k#35L, sum(q#41)#50 AS q#36]";
    assert_eq!(
        shown(&tree(&plan), description),
        "lineitem–orders l_orderkey=o_orderkey inner sort_merge\nlineitem\norders\n"
    );
}
