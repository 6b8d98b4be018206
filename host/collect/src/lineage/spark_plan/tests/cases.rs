//! Faults that comparable readers of plans had, each as a test named for its case, with more of
//! the same kind beside it.

use super::{check_text, shown};
use crate::lineage::spark_plan::PlanTree;

/// One unexpected character in a key made the whole join unreadable.
#[test]
fn rapids_tools_260_keys_hold_any_character() {
    check_text(
        "SortMergeJoin [sid#11L, get_json_object(info#14, $.it[0].id)], [sid#52L, prod_id#57], LeftOuter\n\
         :- FileScan parquet views[sid#11L,info#14]\n\
         +- FileScan parquet sales[sid#52L,prod_id#57]\n",
        &["sales–views sid=sid right_outer sort_merge expression:prod_id=info", "views", "sales"],
    );
    // What cannot be told apart is said to be unread, and gives nothing.
    for keys in ["[split(a#1, [), b#2], [c#3, d#4]", "[a#1, b#2], [c#3]", "[f(a#1, ))], [c#3]"] {
        check_text(
            &format!(
                "SortMergeJoin {keys}, Inner\n\
                 :- FileScan parquet t[a#1,b#2]\n\
                 +- FileScan parquet u[c#3,d#4]\n"
            ),
            &["t", "u", "lost: the two key lists of a SortMergeJoin could not be told apart"],
        );
    }
}

/// Reused exchanges list new ids.
#[test]
fn comet_5514_a_reused_exchange_maps_by_position_to_what_its_exchange_gives() {
    check_text(
        "SortMergeJoin [k#3L], [k#16L], Inner\n\
         :- Exchange hashpartitioning(k#3L, 200), [plan_id=40]\n\
         :  +- FileScan parquet db.t[k#3L,v#4]\n\
         +- ReusedExchange [k#16L, v#17], Exchange hashpartitioning(k#3L, 200), [plan_id=40]\n",
        &["db.t–db.t k=k inner sort_merge", "db.t"],
    );
    // By position, not by name and not by what the exchange partitions by.
    check_text(
        "SortMergeJoin [v#4], [k#16L], Inner\n\
         :- Exchange hashpartitioning(v#4, 200), true, [id=#40]\n\
         :  +- Project [k#3L AS v#4, v#2 AS k#5]\n\
         :     +- FileScan parquet db.t[k#3L,v#2]\n\
         +- ReusedExchange [v#15, k#16L], Exchange hashpartitioning(v#4, 200), true, [id=#40]\n",
        &["db.t–db.t k=v inner sort_merge", "db.t"],
    );
    // Version 2.4 printed no id: the quoted text is that of the exchange.
    check_text(
        "SortMergeJoin [k#3], [k#16], Inner\n\
         :- Exchange hashpartitioning(k#3, 200)\n\
         :  +- FileScan parquet db.t[k#3]\n\
         +- ReusedExchange [k#16], Exchange hashpartitioning(k#3, 200)\n",
        &["db.t–db.t k=k inner sort_merge", "db.t"],
    );
    // The exchange may stand behind the one that reuses it.
    check_text(
        "SortMergeJoin [k#16L], [k#3L], Inner\n\
         :- ReusedExchange [k#16L], Exchange hashpartitioning(k#3L, 200), [plan_id=40]\n\
         +- Exchange hashpartitioning(k#3L, 200), [plan_id=40]\n   \
            +- FileScan parquet db.t[k#3L]\n",
        &["db.t–db.t k=k inner sort_merge", "db.t"],
    );
    // An exchange that is not in the plan leaves the key without origin.
    check_text(
        "SortMergeJoin [k#3], [k#16], Inner\n\
         :- FileScan parquet db.t[k#3]\n\
         +- ReusedExchange [k#16], Exchange hashpartitioning(k#3, 200), [plan_id=41]\n",
        &["db.t", "lost: a key of a join has no visible origin"],
    );
}

/// `... N more fields` is neither a name nor the end.
#[test]
fn spark_13537_a_cut_list_invents_and_hides_nothing() {
    let plan = "SortMergeJoin [c9#9], [id#30], Inner\n\
         :- Project [a#1, b#2, ... 43 more fields]\n\
         :  +- FileScan parquet db.wide[a#1,b#2,... 43 more fields] Batched: true, Location: InMemoryFileIndex[hdfs://c/db/wide/dt=2024...\n\
         +- FileScan parquet db.d[id#30]\n";
    check_text(
        plan,
        &[
            "db.wide",
            "db.d",
            "lost: a key of a join has no visible origin",
            "lost: a list of the plan is cut",
        ],
    );
    let lineage = crate::lineage::spark_plan::read(&PlanTree::default(), plan);
    assert_eq!(lineage.scans[0].scan.columns, ["a", "b"]);
    assert_eq!(lineage.scans[0].scan.location, None);
    // Key lists that are cut on one side only are no pairs.
    check_text(
        "SortMergeJoin [a#1, ... 2 more fields], [x#4, y#5, z#6], Inner\n\
         :- FileScan parquet t[a#1,b#2,c#3]\n\
         +- FileScan parquet u[x#4,y#5,z#6]\n",
        &["t", "u", "lost: a list of the plan is cut", "lost: the key lists of a join are cut"],
    );
}

/// A cached relation's plan is a tree of its own.
#[test]
fn openlineage_610_a_cached_relation_maps_by_position_to_its_plan() {
    check_text(
        "BroadcastHashJoin [id#90L], [oid#12L], Inner, BuildRight, false\n\
         :- InMemoryTableScan [id#90L]\n\
         :     +- InMemoryRelation [id#90L, v#91, v#92], StorageLevel(disk, memory, deserialized, 1 replicas)\n\
         :           +- *(1) Project [id#1L, a#2 AS v#5, b#3 AS v#6]\n\
         :              +- FileScan parquet shop.orders[id#1L,a#2,b#3]\n\
         +- BroadcastExchange HashedRelationBroadcastMode(List(input[0, bigint, false]),false), [plan_id=5]\n   \
            +- FileScan parquet shop.items[oid#12L]\n",
        &["shop.items–shop.orders oid=id inner broadcast", "shop.orders", "shop.items"],
    );
    // Two columns of one name are told apart by position; a part of them in another order too.
    check_text(
        "SortMergeJoin [v#92, id#90L], [x#12, y#13], Inner\n\
         :- InMemoryTableScan [v#92, id#90L], [isnotnull(v#92)]\n\
         :     +- InMemoryRelation [id#90L, v#91, v#92], StorageLevel(disk, 1 replicas)\n\
         :           +- Project [id#1L, a#2 AS v#5, b#3 AS v#6]\n\
         :              +- FileScan parquet shop.orders[id#1L,a#2,b#3]\n\
         +- FileScan parquet shop.items[x#12,y#13]\n",
        &["shop.items–shop.orders x=b,y=id inner sort_merge", "shop.orders", "shop.items"],
    );
}

/// Two readings of one tree, one of them with operators that have no number.
#[test]
fn spark_33067_final_and_initial_plans_count_each_join_once() {
    check_text(
        "== Physical Plan ==\n\
         AdaptiveSparkPlan (9)\n\
         +- == Final Plan ==\n   \
            * BroadcastHashJoin Inner BuildRight (4)\n   \
            :- * ColumnarToRow (2)\n   \
            :  +- Scan parquet db.a (1)\n   \
            +- BroadcastQueryStage (3), Statistics(sizeInBytes=1.0 MiB, rowCount=5)\n      \
               +- BroadcastExchange (8)\n         \
                  +- Scan parquet db.b (7)\n\
         +- == Initial Plan ==\n   \
            SortMergeJoin Inner (unknown)\n   \
            :- Sort (unknown)\n   \
            :  +- Scan parquet db.a (1)\n   \
            +- Sort (6)\n      \
               +- Scan parquet db.b (unknown)\n\
         \n\n\
         (1) Scan parquet db.a\n\
         Output [1]: [k#1]\n\
         \n\
         (2) ColumnarToRow [codegen id : 1]\n\
         Input [1]: [k#1]\n\
         \n\
         (4) BroadcastHashJoin [codegen id : 1]\n\
         Left keys [1]: [k#1]\n\
         Right keys [1]: [j#2]\n\
         Join type: LeftOuter\n\
         Join condition: None\n\
         \n\
         (7) Scan parquet db.b\n\
         Output [1]: [j#2]\n\
         \n\
         (8) BroadcastExchange\n\
         Input [1]: [j#2]\n\
         Arguments: HashedRelationBroadcastMode(List(input[0, bigint, true]),false), [plan_id=8215]\n\
         \n\
         (9) AdaptiveSparkPlan\n\
         Output [2]: [k#1, j#2]\n\
         Arguments: isFinalPlan=true\n",
        &["db.a–db.b k=j left_outer broadcast", "db.a", "db.b"],
    );
}

/// Suffixes of names and arguments of kinds.
#[test]
fn rapids_tools_751_skew_suffixes_and_existence_flags_are_read() {
    check_text(
        "SortMergeJoin(skew=true) [k#1], [k#9], Inner\n\
         :- FileScan parquet db.a[k#1]\n\
         +- FileScan parquet db.b[k#9]\n",
        &["db.a–db.b k=k inner sort_merge", "db.a", "db.b"],
    );
    check_text(
        "BroadcastHashJoin(skew=true) [k#1], [k#9], LeftSemi, BuildRight, false\n\
         :- FileScan parquet db.a[k#1]\n\
         +- FileScan parquet db.b[k#9]\n",
        &["db.a–db.b k=k left_semi broadcast", "db.a", "db.b"],
    );
    // The flag is a new column without a source: it makes no edge above.
    check_text(
        "SortMergeJoin [exists#31], [flag#40], Inner\n\
         :- BroadcastHashJoin [cust#3], [id#20], ExistenceJoin(exists#31), BuildRight, false\n\
         :  :- FileScan parquet db.orders[cust#3]\n\
         :  +- FileScan parquet db.vip[id#20]\n\
         +- FileScan parquet db.flags[flag#40]\n",
        &["db.orders–db.vip cust=id existence broadcast", "db.orders", "db.vip", "db.flags"],
    );
}

/// Other engines rename operators, and have some that nobody knows.
#[test]
fn rapids_tools_694_operators_are_known_by_their_stem() {
    check_text(
        "PhotonBroadcastHashJoin [cust#3L], [id#20L], Inner, BuildRight, false, true\n\
         :- NativeScan parquet db.orders[cust#3L]\n\
         +- PhotonShuffleExchangeSource\n   \
            +- PhotonNewThing\n      \
               +- PhotonScan parquet db.cust[id#20L]\n",
        &[
            "db.cust–db.orders id=cust inner broadcast",
            "db.orders",
            "db.cust",
            "lost: operator NewThing is not known and taken to pass its input on",
        ],
    );
    check_text(
        "^(3) ProjectExecTransformer [k#1L AS key#5L]\n\
         +- ^(3) ShuffledHashJoinExecTransformer [key#5L], [k#9L], Inner, BuildRight\n   \
            :- ^(1) ProjectExecTransformer [k#1L AS key#5L]\n   \
            :  +- ^(1) FileScanTransformer parquet db.a[k#1L]\n   \
            +- ^(3) InputIteratorTransformer[k#9L]\n      \
               +- ColumnarExchange hashpartitioning(k#9L, 200), ENSURE_REQUIREMENTS, [plan_id=7]\n         \
                  +- VeloxResizeBatches 1024, 2147483647\n            \
                     +- ^(2) BatchScanTransformer spark_catalog.db.b[k#9L]\n",
        &["db.a–spark_catalog.db.b k=k inner shuffle_hash", "db.a", "spark_catalog.db.b"],
    );
    check_text(
        "CometSortMergeJoin [k#5], [j#9], LeftOuter\n\
         :- CometProject [k#5], [cast(k#1 as bigint) AS k#5]\n\
         :  +- CometScan [native_iceberg_compat] parquet db.a[k#1]\n\
         +- CometSort [j#9], [j#9 ASC NULLS FIRST]\n   \
            +- CometNativeScan parquet db.b[j#9]\n",
        &["db.a–db.b k=j left_outer sort_merge cast", "db.a", "db.b"],
    );
}

/// Names of scans with schemas, brackets and line breaks in them.
#[test]
fn rapids_tools_63_a_schema_in_a_name_is_no_list_of_columns() {
    check_text(
        "SortMergeJoin [a#1], [k#9], Inner\n\
         :- Scan DeltaCDFRelation(StructType(StructField(a,StringType,true),StructField(b,\n\
         ArrayType(StringType,true),true)),org.apache.spark.sql.SQLContext@7ca,Some(904),None) [a#1,b#2]\n\
         +- SortMergeJoin [x#5], [k#9], Inner\n   \
            :- Scan ExistingRDD Delta Table State #928 - s3://b/t/_delta_log[x#5]\n   \
            +- FileScan parquet db.t[k#9]\n",
        &["db.t"],
    );
}

/// Options of connectors hold passwords and names of users.
#[test]
fn spark_snowflake_525_nothing_but_names_of_tables_and_columns_leaves_a_plan() {
    for plan in [
        "SaveIntoDataSourceCommand net.snowflake.spark.DefaultSource, Map(sfUser -> usr1, pem_private_key -> MIIEsecret, dbtable -> t), Overwrite\n\
         +- FileScan parquet db.t[a#1]\n",
        "Execute SaveIntoDataSourceCommand\n\
         +- SaveIntoDataSourceCommand net.snowflake.spark.DefaultSource, Map(pem_private_key -> MIIEsecret), Overwrite\n   \
            +- FileScan parquet db.t[a#1]\n",
        "New(user=usr1,key=MIIEsecret) [a#1]\n+- FileScan parquet db.t[a#1]\n",
        "Scan SnowflakeRelation(user=usr1,MIIEsecret) [a#1]\n",
        "Scan Relation@MIIEsecret [a#1]\n",
        "Scan JDBCRelation((select * from MIIEsecret) usr1) [numPartitions=1] [a#1]\n",
        "SortMergeJoin [MIIEsecret], [usr1#], Inner\n+- Scan MIIEsecret[a#1]\n",
    ] {
        let text = shown(&PlanTree::default(), plan);
        assert!(!text.contains("MIIEsecret") && !text.contains("usr1"), "{text}");
        let lineage = crate::lineage::spark_plan::read(&PlanTree::default(), plan);
        let debug = format!("{lineage:?}");
        assert!(!debug.contains("MIIEsecret") && !debug.contains("usr1"), "{debug}");
    }
}

/// Very long and very deep plans.
#[test]
fn sqlparser_305_deep_plans_and_conditions_cost_no_stack() {
    let mut plan = "SortMergeJoin [k#1], [j#2], Inner\n".to_owned();
    let mut indent = String::new();
    for _ in 0..2_500 {
        plan.push_str(&format!("{indent}+- Sort [k#1 ASC NULLS FIRST], false, 0\n"));
        indent.push_str("   ");
    }
    plan.push_str(&format!("{indent}+- FileScan parquet db.a[k#1]\n"));
    check_text(&plan, &["db.a", "lost: a key of a join has no visible origin"]);

    let terms = (0..20_000).fold("(a#1 = 1)".to_owned(), |all, n| format!("{all} OR (a#1 = {n})"));
    let open = "(".repeat(5_000);
    for condition in [format!("({terms})"), open] {
        check_text(
            &format!(
                "SortMergeJoin [a#1], [b#2], Inner\n\
                 :- Filter {condition}\n\
                 :  +- FileScan parquet a[a#1]\n\
                 +- FileScan parquet b[b#2]\n"
            ),
            &[
                "a–b a=b inner sort_merge",
                if condition.contains('#') { "a a other ?;" } else { "a" },
                "b",
            ],
        );
    }
}

/// A union is matched by position over all of its branches.
#[test]
fn sqlglot_1934_every_branch_of_a_union_is_followed() {
    check_text(
        "SortMergeJoin [c#1], [id#9], Inner\n\
         :- Union\n\
         :  :- Project [ca#11 AS c#1]\n\
         :  :  +- FileScan parquet a[ca#11]\n\
         :  :- FileScan parquet b[cb#2]\n\
         :  +- FileScan parquet e[cc#3]\n\
         +- FileScan parquet d[id#9]\n",
        &[
            "a–d ca=id inner sort_merge 0.33",
            "b–d cb=id inner sort_merge 0.33",
            "d–e id=cc inner sort_merge 0.33",
            "a",
            "b",
            "e",
            "d",
        ],
    );
    // The ids above a union are not those of its first branch, though they look alike.
    check_text(
        "SortMergeJoin [c#1], [c#21], Inner\n\
         :- Union\n\
         :  :- Exchange SinglePartition, [plan_id=7]\n\
         :  :  +- FileScan parquet a[c#1]\n\
         :  +- FileScan parquet b[x#2]\n\
         +- ReusedExchange [c#21], Exchange SinglePartition, [plan_id=7]\n",
        &["a–a c=c inner sort_merge 0.50", "a–b c=x inner sort_merge 0.50", "a", "b"],
    );
}
