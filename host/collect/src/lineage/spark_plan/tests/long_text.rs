//! The long text alone, and beside the tree.

use super::{Operator, check_text, counted, join, node, scan, shown, tree};
use crate::lineage::spark_plan::read_first;

#[test]
fn extended_text_is_read_from_its_physical_plan_alone() {
    check_text(
        "== Parsed Logical Plan ==\n\
         'Join Inner, ('a = 'b)\n\
         \n\
         == Optimized Logical Plan ==\n\
         Join Inner, (k#1L = j#2L)\n\
         :- Aggregate [a#5L], [a#5L AS k#1L]\n\
         :  +- Relation db.t[a#5L] parquet\n\
         +- Relation db.u[j#2L] parquet\n\
         \n\
         == Physical Plan ==\n\
         AdaptiveSparkPlan isFinalPlan=true\n\
         +- == Final Plan ==\n   \
            *(3) SortMergeJoin [k#1L], [j#2L], Inner\n   \
            :- *(1) HashAggregate(keys=[a#5L], functions=[], output=[k#1L])\n   \
            :  +- *(1) Filter (isnotnull(a#5L) AND (a#5L > 5))\n   \
            :     +- FileScan parquet db.t[a#5L] Batched: true\n   \
            +- *(2) ColumnarToRow\n      \
               +- FileScan parquet db.u[j#2L] Batched: true\n\
         +- == Initial Plan ==\n   \
            BroadcastHashJoin [k#1L], [j#2L], Inner, BuildRight, false\n   \
            :- FileScan parquet db.t[a#5L] Batched: true\n   \
            +- FileScan parquet db.u[j#2L] Batched: true\n",
        &["db.t–db.u a=j inner sort_merge", "db.t a range (5, ∞);", "db.u"],
    );
}

#[test]
fn the_text_of_an_adaptive_plan_shows_how_joins_were_first_planned() {
    let text = "AdaptiveSparkPlan isFinalPlan=true\n\
         +- == Final Plan ==\n   \
            BroadcastHashJoin [k#1L], [j#2L], Inner, BuildRight, false\n   \
            :- FileScan parquet db.t[k#1L]\n   \
            +- FileScan parquet db.u[j#2L]\n\
         +- == Initial Plan ==\n   \
            SortMergeJoin [k#1L], [j#2L], Inner\n   \
            :- FileScan parquet db.t[k#1L]\n   \
            +- FileScan parquet db.u[j#2L]\n";
    check_text(text, &["db.t–db.u k=j inner broadcast", "db.t", "db.u"]);
    let first = read_first(text).unwrap();
    let strategy = first.joins[0].join.strategy;
    assert_eq!(strategy, Some(lakebed_model::JoinStrategy::SortMerge));
    assert!(read_first("FileScan parquet db.t[k#1L]").is_none());
}

#[test]
fn subqueries_of_the_formatted_text_are_the_querys_own_work() {
    check_text(
        "== Physical Plan ==\n\
         * Filter (2)\n\
         +- Scan parquet db.a (1)\n\
         \n\
         \n\
         (1) Scan parquet db.a\n\
         Output [1]: [k#1]\n\
         PushedFilters: [IsNotNull(k), GreaterThan(k,5)]\n\
         ReadSchema: struct<k:bigint>\n\
         \n\
         (2) Filter [codegen id : 1]\n\
         Input [1]: [k#1]\n\
         Condition : (k#1 > Subquery subquery#9, [id=#8])\n\
         \n\
         ===== Subqueries =====\n\
         \n\
         Subquery:1 Hosting operator id = 2 Hosting Expression = Subquery subquery#9, [id=#8]\n\
         * SortMergeJoin LeftSemi (5)\n\
         :- Scan parquet db.b (3)\n\
         +- Scan parquet db.c (4)\n\
         \n\
         \n\
         (3) Scan parquet db.b\n\
         Output [2]: [x#3, y#4]\n\
         \n\
         (4) Scan parquet db.c\n\
         Output [2]: [x#5, y#6]\n\
         \n\
         (5) SortMergeJoin [codegen id : 2]\n\
         Left keys [2]: [x#3, y#4]\n\
         Right keys [2]: [x#5, y#6]\n\
         Join type: LeftSemi\n\
         Join condition: None\n\
         \n\
         Subquery:2 Hosting operator id = 1 Hosting Expression = k#1 IN dynamicpruning#12\n\
         ReusedExchange (6)\n\
         \n\
         \n\
         (6) ReusedExchange [Reuses operator id: 4]\n\
         Output [2]: [x#15, y#16]\n\
         \n\
         Subquery:3 Hosting operator id = 2 Hosting Expression = Subquery subquery#13, [id=#9]\n\
         ObjectHashAggregate (8)\n\
         +- Scan parquet db.d (7)\n\
         \n\
         \n\
         (7) Scan parquet db.d\n\
         Output [1]: [z#7]\n\
         \n\
         (8) ObjectHashAggregate\n\
         Input [1]: [z#7]\n\
         Keys: []\n\
         Functions [1]: [bloom_filter_agg(xxhash64(z#7, 42), 1000, 8)]\n",
        &["db.b–db.c x=x,y=y left_semi sort_merge", "db.a k range (5, ∞);", "db.b", "db.c"],
    );
}

#[test]
fn a_list_that_lacks_items_it_counts_is_not_used() {
    check_text(
        "* SortMergeJoin Inner (3)\n\
         :- Scan parquet a (1)\n\
         +- Scan parquet b (2)\n\
         \n\
         (1) Scan parquet a\n\
         Output [2]: [k#1, odd, name)#2]\n\
         \n\
         (2) Scan parquet b\n\
         Output [1]: [j#3]\n\
         \n\
         (3) SortMergeJoin\n\
         Left keys [1]: [f(k#1, ,), x]\n\
         Right keys [1]: [j#3]\n\
         Join type: Inner\n",
        &["a", "b", "lost: the two key lists of a SortMergeJoin could not be told apart"],
    );
}

#[test]
fn formatted_text_of_spark_3_0_lists_keys_in_its_own_way() {
    check_text(
        "== Physical Plan ==\n\
         * SortMergeJoin LeftOuter (3)\n\
         :- Scan parquet a (1)\n\
         +- Scan parquet b (2)\n\
         \n\
         (1) Scan parquet a\n\
         Output: [k#1]\n\
         \n\
         (2) Scan parquet b\n\
         Output: [j#3]\n\
         \n\
         (3) SortMergeJoin [codegen id : 2]\n\
         Left keys: List(k#1)\n\
         Right keys: List(j#3)\n\
         Join condition: None\n",
        &["a–b k=j left_outer sort_merge", "a", "b"],
    );
}

fn aggregated() -> Operator {
    let text = "HashAggregate(keys=[a#1], functions=[sum(q#2)])";
    let aggregate = node("HashAggregate", text, [scan("t", "a#1,q#2", 1)]);
    let exchange = node("Exchange", "Exchange hashpartitioning(k#5), [plan_id=9]", [aggregate]);
    let wrapped = node("WholeStageCodegen (1)", "WholeStageCodegen (1)", [exchange]);
    let reused = node(
        "ReusedExchange",
        "ReusedExchange [s#16, k#15], Exchange hashpartitioning(k#5), [plan_id=9]",
        [],
    );
    counted(join("SortMergeJoin [k#5], [k#15], Inner", [wrapped, reused]), 7)
}

/// The tree does not say what a final aggregate gives; the text does.
#[test]
fn the_text_fills_what_the_tree_leaves_out() {
    let description = "== Physical Plan ==\n\
         * SortMergeJoin Inner (5)\n\
         :- Exchange (3)\n\
         :  +- * HashAggregate (2)\n\
         :     +- Scan parquet t (1)\n\
         +- ReusedExchange (4)\n\
         \n\
         (1) Scan parquet t\n\
         Output [2]: [a#1, q#2]\n\
         \n\
         (2) HashAggregate [codegen id : 1]\n\
         Input [2]: [a#1, q#2]\n\
         Keys [1]: [a#1]\n\
         Functions [1]: [sum(q#2)]\n\
         Aggregate Attributes [1]: [sum(q#2)#8]\n\
         Results [2]: [sum(q#2)#8 AS s#6, a#1 AS k#5]\n\
         \n\
         (3) Exchange\n\
         Input [2]: [s#6, k#5]\n\
         Arguments: hashpartitioning(k#5), [plan_id=9]\n\
         \n\
         (4) ReusedExchange [Reuses operator id: 3]\n\
         Output [2]: [s#16, k#15]\n\
         \n\
         (5) SortMergeJoin [codegen id : 2]\n\
         Left keys [1]: [k#5]\n\
         Right keys [1]: [k#15]\n\
         Join type: Inner\n\
         Join condition: None\n";
    assert_eq!(shown(&tree(&aggregated()), description), "t–t a=a inner sort_merge\nt\n");
    check_text(description, &["t–t a=a inner sort_merge", "t"]);
    // The tree alone does not tell.
    let alone = shown(&tree(&aggregated()), "");
    assert_eq!(alone, "t\nlost: a key of a join has no visible origin\n");
    // A text of another plan changes nothing.
    let other = "SortMergeJoin [k#5], [k#15], Inner\n+- Filter (k#5 > 1)\n";
    assert_eq!(shown(&tree(&aggregated()), other), alone);
}

#[test]
fn a_tree_that_is_cut_gives_way_to_the_text() {
    let mut cut = tree(&aggregated());
    cut.is_cut = true;
    let text = "SortMergeJoin [x#1], [y#2], Inner\n\
         :- FileScan parquet a[x#1]\n\
         +- FileScan parquet b[y#2]\n";
    assert_eq!(shown(&cut, text), "a–b x=y inner sort_merge\na\nb\n");
}

#[test]
fn operators_that_make_columns_give_no_edge_and_no_loss() {
    check_text(
        "SortMergeJoin [x#5, pythonUDF0#6, rn#7, k#1], [a#10, b#11, c#12, d#13], Inner\n\
         :- Window [row_number() windowspecdefinition(k#1, v#2 ASC NULLS FIRST) AS rn#7], [k#1], [v#2 ASC NULLS FIRST]\n\
         :  +- ArrowEvalPython [f(v#2)], [pythonUDF0#6], 200\n\
         :     +- Generate explode(xs#3), [k#1, v#2], false, [x#5]\n\
         :        +- FileScan parquet t[k#1,v#2,xs#3]\n\
         +- LocalTableScan [a#10, b#11, c#12, d#13]\n",
        &["t"],
    );
    check_text(
        "SortMergeJoin [value#2], [k#1], Inner\n\
         :- SerializeFromObject [input[0, int, false] AS value#2]\n\
         :  +- MapElements $line1.Function, obj#9: int\n\
         :     +- DeserializeToObject createexternalrow(x#3), obj#8: org.apache.spark.sql.Row\n\
         :        +- Scan[obj#1]\n\
         +- FileScan parquet t[k#1]\n",
        &["t"],
    );
}

#[test]
fn keys_of_aggregates_by_programs_and_of_rolled_up_rows_keep_their_columns() {
    check_text(
        "SortMergeJoin [k#1, f(v#2)#8], [a#10, b#11], Inner\n\
         :- AggregateInPandas [k#1], [f(v#2)#5], [k#1, f(v#2)#5 AS f(v#2)#8]\n\
         :  +- FileScan parquet t[k#1,v#2]\n\
         +- FileScan parquet u[a#10,b#11]\n",
        &["t–u k=a inner sort_merge", "t", "u"],
    );
    check_text(
        "SortMergeJoin [k#7], [a#10], Inner\n\
         :- HashAggregate(keys=[k#7, spark_grouping_id#9L], functions=[sum(v#8)], output=[k#7, s#12])\n\
         :  +- Expand [[k#1, v#2, 0], [null, v#2, 1]], [k#7, v#8, spark_grouping_id#9L]\n\
         :     +- FileScan parquet t[k#1,v#2]\n\
         +- FileScan parquet u[a#10]\n",
        &["t–u k=a inner sort_merge", "t", "u"],
    );
}

#[test]
fn null_safe_keys_casts_and_padded_text_keep_their_columns() {
    check_text(
        "SortMergeJoin [coalesce(a#1L, 0), isnull(a#1L), c#2], [coalesce(b#3L, 0), isnull(b#3L), d#4], Inner\n\
         :- Project [cast(a#9 as bigint) AS a#1L, static_invoke(CharVarcharCodegenUtils.readSidePadding(c#8, 10)) AS c#2]\n\
         :  +- FileScan parquet t[a#9,c#8]\n\
         +- FileScan parquet u[b#3L,d#4]\n",
        &["t–u a=b,c=d inner sort_merge cast null-safe", "t", "u"],
    );
}

#[test]
fn filters_above_a_new_name_are_not_the_scans() {
    check_text(
        "Filter (b#3 > 5)\n\
         +- Project [a#1 AS b#3]\n   \
            +- FileScan parquet t[a#1]\n",
        &["t"],
    );
    check_text(
        "Filter (a#1 > 5)\n\
         +- LocalLimit 10\n   \
            +- FileScan parquet t[a#1]\n",
        &["t"],
    );
}

#[test]
fn not_in_as_a_nested_loop_is_an_anti_join() {
    check_text(
        "BroadcastNestedLoopJoin BuildRight, LeftAnti, ((a#1 = b#2) OR isnull((a#1 = b#2)))\n\
         :- FileScan parquet t[a#1]\n\
         +- FileScan parquet u[b#2]\n",
        &["t–u a=b left_anti -", "t", "u"],
    );
}
