use std::{collections::BTreeMap, num::NonZeroU32};

use lakebed_graph::JoinGraph;
use lakebed_model::{Bytes, Literal, TableName, Workload};

use super::plan;
use crate::{
    CandidateFacts, CostError, CostModel, LakeEvidence, LayoutPlan, PlanError, Settings,
    TableEvidence,
    cost::native::Npv,
    search::{ALL_SEARCHES, Exact},
    testing::{Query, Table, days, integers, shuffled, workload},
};

const MIB: u64 = 1 << 20;

fn graph(workload: &Workload) -> JoinGraph {
    JoinGraph::build(workload, &BTreeMap::new())
}

fn planned(workload: &Workload, evidence: &[TableEvidence], settings: &Settings) -> LayoutPlan {
    let lake = evidence.to_vec().into();
    plan(&graph(workload), workload, &lake, &Npv, &Exact::STANDARD, settings).unwrap()
}

fn actions(plan: &LayoutPlan) -> Vec<String> {
    plan.actions
        .iter()
        .map(|action| {
            format!("{} {} by {}", action.group, action.table, action.to.cluster_by.join(", "))
        })
        .collect()
}

fn rejections(plan: &LayoutPlan) -> Vec<String> {
    plan.rejected
        .iter()
        .map(|no| format!("{} ({}): {}", no.table, no.to.cluster_by.join(", "), no.why))
        .collect()
}

/// A table of ten shuffled files of 1 MiB with a dense sample of `k` from 0 to 999.
fn ten_files(table: &str) -> Table {
    Table::new(table, 10, MIB).column("k", shuffled(1000, 1))
}

fn key_queries(table: &str, count: usize) -> Vec<Query> {
    (0..count).map(|_| Query::new().scan(table, &[("k", 0, 99)])).collect()
}

#[test]
fn action_tells_its_reason_in_numbers_that_add_up() {
    // The range fills one of ten files exactly: each of 4 statements saves 9 MiB, always the same.
    // 10 MiB / 9 MiB is paid off by the second statement. Annuity of 30 windows at 1 %: 25.807708.
    let plan = planned(
        &workload(key_queries("t", 4)),
        &[ten_files("t").evidence()],
        &Settings::without_budgets(),
    );
    let [action] = plan.actions.as_slice() else { panic!("one action: {plan:#?}") };
    insta::assert_snapshot!(action.because, @"cluster t by (k): 4 of 4 statements filter k; a scan reads 1.0 of 10 files on average instead of 10, which saves 36.0 MiB per window (36.0 MiB to 36.0 MiB); the rewrite of 10.0 MiB pays for itself after 2 statements");
    assert_eq!(action.break_even_queries, 2);
    assert_eq!(action.saves.expected, Bytes(36 * MIB));
    assert_eq!((action.rewrite_bytes, action.storage_bytes), (Bytes(10 * MIB), Bytes(10 * MIB)));
    let npv_mib = 36.0 * 25.807_708 - 20.0;
    assert!((plan.npv_bytes / MIB as f64 - npv_mib).abs() < 1e-3, "{}", plan.npv_bytes);
    assert!(plan.proven && plan.gap.abs() < 1e-12);
}

/// The first window of the paper's reconstruction: 40 statements, key ranges with some dates.
fn tpch_window() -> Workload {
    let mut random = crate::random::SplitMix64::new(101);
    let mut part = |domain: i64, percent: i64| {
        let width = domain * percent / 100;
        let start = i64::try_from(random.below(usize::try_from(domain - width).unwrap())).unwrap();
        (start, start + width - 1)
    };
    let mut queries = Vec::new();
    let joined = || Query::new().join("lineitem.l_orderkey", "orders.o_orderkey");
    for _ in 0..6 {
        let (a, b) = part(600_000, 20);
        queries.push(joined().scan("orders", &[("o_orderkey", a, b)]).scan("lineitem", &[]));
    }
    for _ in 0..6 {
        let (a, b) = part(600_000, 20);
        queries.push(joined().scan("lineitem", &[("l_orderkey", a, b)]).scan("orders", &[]));
    }
    for _ in 0..4 {
        let (a, b) = part(15_000, 20);
        let query = Query::new().join("customer.c_custkey", "orders.o_custkey");
        queries.push(query.scan("customer", &[("c_custkey", a, b)]).scan("orders", &[]));
    }
    for _ in 0..5 {
        let (a, b) = part(600_000, 20);
        let query = joined().join("customer.c_custkey", "orders.o_custkey");
        let query = query.scan("orders", &[("o_orderkey", a, b)]);
        queries.push(query.scan("lineitem", &[]).scan("customer", &[]));
    }
    for _ in 0..5 {
        let (a, b) = part(600_000, 5);
        let query = joined().scan("orders", &[("o_orderkey", a, b)]);
        queries.push(query.scan("lineitem", &[("l_quantity", 41, 50)]));
    }
    for _ in 0..3 {
        let (a, b) = part(15_000, 20);
        let query = joined().join("customer.c_custkey", "orders.o_custkey");
        let query = query.scan("orders", &[("o_custkey", a, b)]);
        queries.push(query.scan("lineitem", &[]).scan("customer", &[]));
    }
    for _ in 0..3 {
        let (a, b) = part(600_000, 20);
        let query = joined().join("lineitem.l_suppkey", "supplier.s_suppkey");
        let query = query.scan("lineitem", &[("l_orderkey", a, b)]);
        queries.push(query.scan("orders", &[]).scan("supplier", &[]));
    }
    for year in 0..3 {
        let first = 365 * (year + 1);
        let ranges = [("l_shipdate", first, first + 364), ("l_quantity", 1, 23)];
        queries.push(Query::new().scan("lineitem", &ranges));
    }
    for quarter in 0..2 {
        let first = 500 + 700 * quarter;
        queries.push(Query::new().scan("orders", &[("o_orderdate", first, first + 90)]));
    }
    for month in 0..3 {
        queries.push(Query::new().scan("lineitem", &[("l_shipdate", 0, 1100 + 60 * month)]));
    }
    workload(queries)
}

/// Shuffled tables at scale factor 0.1: 100 lineitem, 30 orders, 6 customer files, 1 supplier file.
fn tpch_tables() -> Vec<TableEvidence> {
    let spread = |rows: usize, domain: i64, seed: u64| {
        let mut random = crate::random::SplitMix64::new(seed);
        let domain = usize::try_from(domain).unwrap();
        let draw = |_| i64::try_from(random.below(domain)).unwrap();
        (0..rows).map(draw).collect::<Vec<i64>>()
    };
    vec![
        Table::new("lineitem", 100, 200_000)
            .column("l_orderkey", integers(spread(6000, 600_000, 1)))
            .column("l_shipdate", days(spread(6000, 2526, 2)))
            .column("l_quantity", integers(spread(6000, 50, 3).into_iter().map(|q| q + 1)))
            .column("l_suppkey", integers(spread(6000, 1000, 4)))
            .evidence(),
        Table::new("orders", 30, 180_000)
            .column("o_orderkey", integers(spread(1800, 600_000, 5)))
            .column("o_custkey", integers(spread(1800, 15_000, 6)))
            .column("o_orderdate", days(spread(1800, 2406, 7)))
            .evidence(),
        Table::new("customer", 6, 200_000)
            .column("c_custkey", integers(spread(360, 15_000, 8)))
            .evidence(),
        Table::new("supplier", 1, 80_000)
            .column("s_suppkey", integers(spread(100, 1000, 9)))
            .evidence(),
    ]
}

#[test]
fn key_and_date_mix_gives_two_keys_and_one_group() {
    let plan = planned(&tpch_window(), &tpch_tables(), &Settings::without_budgets());
    // On orders, (o_orderkey) and (o_orderkey, o_custkey) are about as good: 30 files make 5 or 6
    // cuts a key. By one key, 20 key ranges read 7 files, 5 read 2, 7 customer and 2 date ranges
    // read 30: 420 files. By two, 27 ranges read (0.2 · 5.5 + 1) / 5.5 of 30, 5 read 7: 405 files.
    let taken = actions(&plan);
    let [customer, lineitem, orders] = taken.as_slice() else { panic!("{plan:#?}") };
    assert_eq!(customer, "1 customer by c_custkey");
    for (action, key) in
        [(lineitem, "l_orderkey"), (lineitem, "l_shipdate"), (orders, "o_orderkey")]
    {
        assert!(action.contains(key), "{action}");
    }
    assert_eq!(plan.actions[1].group, plan.actions[2].group, "one join, one group");
    let because = &plan.actions[1].because;
    // 6 + 6 + 5 + 5 + 3 + 3 statements join on the order key, all but the last 3 with a range;
    // 9 of the 25 state it on lineitem itself.
    for reason in [
        "28 of 40 statements join it to orders on l_orderkey",
        "25 filter l_orderkey (16 of them through a join)",
        "6 filter l_shipdate",
    ] {
        assert!(because.contains(reason), "{because}");
    }
    let no = rejections(&plan);
    assert!(no.iter().any(|no| no == "supplier (): one file: nothing to skip"), "{no:#?}");
    let suppkey = "lineitem (l_suppkey): joined, but no statement compares it with a constant";
    assert!(no.iter().any(|no| no.starts_with(suppkey)), "{no:#?}");
}

fn layouts(plan: &LayoutPlan) -> Vec<String> {
    plan.actions.iter().map(|action| format!("{} {}", action.table, action.to)).collect()
}

/// A table of a hundred shuffled files with two independent columns.
fn hundred_files() -> Table {
    let table = Table::new("t", 100, MIB).column("k", shuffled(10_000, 1));
    table.column("day", shuffled(10_000, 2))
}

fn ranges(column: &str, width: i64, count: i64) -> impl Iterator<Item = Query> {
    let query = move |n| (n * (10_000 - width) / count, n * (10_000 - width) / count + width - 1);
    let column = column.to_owned();
    (0..count).map(query).map(move |(low, high)| Query::new().scan("t", &[(&column, low, high)]))
}

#[test]
fn cuts_win_where_one_key_is_asked_for_more_than_the_other() {
    let queries = ranges("k", 300, 16).chain(ranges("day", 2_000, 4)).collect();
    let tables = [hundred_files().evidence()];
    let plan = planned(&workload(queries), &tables, &Settings::without_budgets());
    assert_eq!(layouts(&plan), ["t clustered by (day in 5 parts, k in 22)"]);
    let because = &plan.actions[0].because;
    let start = "cluster t by (day in 5 parts, k in 22): 4 of 20 statements filter day and 16 filter k; \
                 a scan reads ";
    assert!(because.starts_with(start), "{because}");
}

#[test]
fn cuts_do_not_replace_one_key_or_a_curve_that_skips_as_much() {
    let free = Settings::without_budgets();
    let tables = [hundred_files().evidence()];
    let one_key: Vec<Query> = ranges("k", 300, 16).chain(ranges("day", 9_900, 4)).collect();
    let plan = planned(&workload(one_key), &tables, &free);
    assert_eq!(layouts(&plan), ["t clustered by (k)"]);
}

#[test]
fn cuts_that_a_table_has_are_kept_until_others_skip_clearly_more() {
    let free = Settings::without_budgets();
    let queries: Vec<Query> = ranges("k", 300, 16).chain(ranges("day", 2_000, 4)).collect();
    let first = planned(&workload(queries.clone()), &[hundred_files().evidence()], &free);
    let [action] = first.actions.as_slice() else { panic!("{first:#?}") };
    let near = |parts: u32| parts + parts / 8;
    let cuts = vec![near(action.to.cuts[0]), action.to.cuts[1]];
    let near = crate::Layout::cut(action.to.cluster_by.clone(), cuts);
    for declared in [action.to.clone(), near] {
        let table = hundred_files().with(|table| table.current = declared.clone());
        let plan = planned(&workload(queries.clone()), &[table.evidence()], &free);
        assert!(plan.actions.is_empty(), "{declared}: {:?}", layouts(&plan));
        let why = format!("t ({}): already {declared}: OPTIMIZE", declared.cluster_by.join(", "));
        assert!(rejections(&plan)[0].starts_with(&why), "{:?}", rejections(&plan));
        let unfinished = hundred_files().with(|table| {
            table.current = declared.clone();
            table.pending = Bytes(MIB);
        });
        let plan = planned(&workload(queries.clone()), &[unfinished.evidence()], &free);
        assert_eq!(layouts(&plan), [format!("t {declared}")]);
    }
}

#[test]
fn plan_with_cuts_has_another_identity_than_one_with_other_cuts() {
    let queries: Vec<Query> = ranges("k", 300, 16).chain(ranges("day", 2_000, 4)).collect();
    let tables = [hundred_files().evidence()];
    let plan = planned(&workload(queries), &tables, &Settings::without_budgets());
    let mut other = plan.clone();
    other.actions[0].to.cuts[1] += 1;
    assert_ne!(crate::identity::identify(&other), plan.id);
    assert_eq!(crate::identity::identify(&plan), plan.id);
}

#[test]
fn pure_key_mix_gives_a_single_key() {
    let mut pure = tpch_window();
    pure.records.truncate(12);
    let plan = planned(&pure, &tpch_tables(), &Settings::without_budgets());
    assert_eq!(actions(&plan), ["1 lineitem by l_orderkey", "1 orders by o_orderkey"]);
}

#[test]
fn same_input_gives_the_same_plan_whatever_the_order_of_evidence() {
    let (window, mut tables) = (tpch_window(), tpch_tables());
    let settings =
        Settings { rewrite_budget: Some(Bytes(22_000_000)), ..Settings::without_budgets() };
    let first = planned(&window, &tables, &settings);
    tables.reverse();
    assert_eq!(planned(&window, &tables, &settings), first);
    assert_eq!(first.id.len(), 32);
    tables[0].version += 1;
    assert_ne!(planned(&window, &tables, &settings).id, first.id);
}

#[test]
fn every_search_plans_within_the_budgets() {
    let (window, tables) = (tpch_window(), tpch_tables());
    for search in ALL_SEARCHES {
        for megabytes in [0, 1, 5, 6, 20, 21, 26] {
            let budget = Some(Bytes(megabytes * 1_000_000));
            let rewrite = Settings { rewrite_budget: budget, ..Settings::without_budgets() };
            let storage = Settings { storage_budget: budget, ..Settings::without_budgets() };
            for settings in [rewrite, storage] {
                let lake = tables.clone().into();
                let plan = plan(&graph(&window), &window, &lake, &Npv, search, &settings).unwrap();
                let spent: u64 = plan.actions.iter().map(|action| action.rewrite_bytes.0).sum();
                assert!(spent <= megabytes * 1_000_000, "{} spends {spent}", search.name());
                assert!(plan.npv_bytes <= plan.upper_bound_bytes);
            }
        }
    }
}

#[track_caller]
fn check_rejected(queries: Vec<Query>, tables: &[TableEvidence], settings: &Settings, why: &str) {
    let plan = planned(&workload(queries), tables, settings);
    let no = rejections(&plan);
    assert!(plan.actions.is_empty(), "{:?}", actions(&plan));
    assert_eq!(no, [why]);
}

#[test]
fn tables_that_cannot_gain_are_rejected_with_the_reason() {
    let free = Settings::without_budgets();
    let asked = || key_queries("t", 4);
    let check = |table: Table, why: &str| check_rejected(asked(), &[table.evidence()], &free, why);
    check(
        ten_files("t").with(|t| t.protected = Some("its owner said so".to_owned())),
        "t (): the table is protected: its owner said so",
    );
    check(
        ten_files("t").with(|t| t.current.partition_by = vec!["day".to_owned()]),
        "t (): partitioned by (day): clustering and partitioning exclude each other",
    );
    check(ten_files("t").with(|t| t.files.clear()), "t (): empty: no file to lay out");
    check(
        Table::new("t", 1, MIB).column("k", shuffled(1000, 1)),
        "t (): one file: nothing to skip",
    );
    check(
        ten_files("t").with(|t| t.eligible_columns.clear()),
        "t (k): cannot be a clustering key: its type has no order or its statistics are not kept",
    );
    check(
        Table::new("t", 10, MIB).column("other", shuffled(1000, 1)).with(|t| {
            t.eligible_columns.insert("k".to_owned());
        }),
        "t (k): not in the sample, so nothing can be predicted",
    );
    check(
        Table::new("t", 10, MIB).column("k", vec![Some(Literal::Integer(7)); 1000]),
        "t (k): too few distinct values: 1 in 1000 sampled rows, expected at least 2",
    );
    check_rejected(asked(), &[], &free, "t (): not in the lake");
    check_rejected(
        vec![],
        &[ten_files("t").evidence()],
        &free,
        "t (): no statement of the window reads it",
    );
    check_rejected(
        vec![Query::new().scan("t", &[])],
        &[ten_files("t").evidence()],
        &free,
        "t (): no statement filters or joins it by a column",
    );
}

#[test]
fn candidates_that_are_not_worth_it_are_rejected_with_numbers() {
    let free = Settings::without_budgets();
    let current = ten_files("t").with(|t| t.current.cluster_by = vec!["k".to_owned()]);
    check_rejected(
        key_queries("t", 4),
        &[current.evidence()],
        &free,
        "t (k): already clustered by (k): OPTIMIZE keeps it that way",
    );
    // A range over everything is not skipped by any layout.
    check_rejected(
        vec![Query::new().scan("t", &[("k", 0, 999)])],
        &[ten_files("t").evidence()],
        &free,
        "t (k): saves nothing: a scan reads 10 of 10 files on average instead of 10",
    );
    // One of ten statements saves 9 MiB; about a third of the resamples miss it.
    let mut rare = vec![Query::new().scan("t", &[("k", 0, 999)]); 9];
    rare.extend(key_queries("t", 1));
    let plan = planned(&workload(rare), &[ten_files("t").evidence()], &free);
    let no = rejections(&plan);
    let start = "t (k): saves 9.0 MiB per window, but may as well save nothing: between 0 B and ";
    assert!(plan.actions.is_empty() && no[0].starts_with(start), "{no:#?}");
    // 9 MiB over one window, discounted: 9 / 1.01 = 8.9 MiB, minus 20 MiB.
    let hasty = Settings { horizon_windows: NonZeroU32::MIN, ..free };
    check_rejected(
        key_queries("t", 1),
        &[ten_files("t").evidence()],
        &hasty,
        "t (k): saves 9.0 MiB per window, over 1 windows less than it costs: 10.0 MiB to rewrite \
         and 10.0 MiB of old files until VACUUM; net present value −11.1 MiB",
    );
    let tight = Settings { rewrite_budget: Some(Bytes(9 * MIB)), ..free };
    check_rejected(
        key_queries("t", 4),
        &[ten_files("t").evidence()],
        &tight,
        "t (k): over budget: needs 10.0 MiB of the rewrite budget, 9.0 MiB left",
    );
}

#[test]
fn tables_whose_keys_share_no_join_are_groups_of_their_own() {
    let mut queries = key_queries("a", 3);
    queries.extend(key_queries("b", 3));
    let tables = [ten_files("b").evidence(), ten_files("a").evidence()];
    let plan = planned(&workload(queries), &tables, &Settings::without_budgets());
    assert_eq!(actions(&plan), ["1 a by k", "2 b by k"]);
}

/// Says these values whatever the candidates.
#[derive(Debug)]
struct Says(Vec<f64>);

impl CostModel for Says {
    fn name(&self) -> &'static str {
        "says"
    }

    fn net_present_values(
        &self,
        _: &[CandidateFacts],
        _: &Settings,
    ) -> Result<Vec<f64>, CostError> {
        Ok(self.0.clone())
    }
}

#[track_caller]
fn check_failed(
    tables: &[TableEvidence],
    cost: &dyn CostModel,
    settings: &Settings,
    expected: &str,
) {
    let window = workload(key_queries("t", 4));
    let lake = tables.to_vec().into();
    let error: PlanError =
        plan(&graph(&window), &window, &lake, cost, &Exact::STANDARD, settings).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn table_that_is_left_out_is_rejected_with_its_own_reason() {
    let window = workload(key_queries("t", 4));
    let mut lake = LakeEvidence::default();
    let rejected = |lake: &LakeEvidence| {
        let free = Settings::without_budgets();
        rejections(&plan(&graph(&window), &window, lake, &Npv, &Exact::STANDARD, &free).unwrap())
    };
    assert_eq!(rejected(&lake), ["t (): not in the lake"]);
    lake.left_out.insert(TableName::new("t"), "cannot be read: its log is damaged".to_owned());
    assert_eq!(rejected(&lake), ["t (): cannot be read: its log is damaged"]);
}

#[test]
fn contradictory_inputs_and_values_are_refused() {
    let free = Settings::without_budgets();
    let table = ten_files("t").evidence();
    check_failed(
        &[table.clone(), table.clone()],
        &Npv,
        &free,
        "plan t: its evidence is given twice, expected once per table",
    );
    let uneven = ten_files("t").with(|t| t.sample.rows = 999).evidence();
    check_failed(
        &[uneven],
        &Npv,
        &free,
        "use the sample of t: column `k` has 1000 values, expected 999 as the sample has rows",
    );
    check_failed(
        std::slice::from_ref(&table),
        &Npv,
        &Settings { discount_rate: -0.1, ..free },
        "plan with discount rate -0.1: expected a finite rate per window of at least 0",
    );
    check_failed(
        std::slice::from_ref(&table),
        &Says(vec![1.0, 2.0]),
        &free,
        "use the values of cost model `says`: 2 values for 1 candidates, expected one per candidate",
    );
    check_failed(
        std::slice::from_ref(&table),
        &Says(vec![f64::NAN]),
        &free,
        "use the value of cost model `says` for t by (k): NaN is not finite",
    );
}

#[test]
fn half_of_what_a_plan_wants_is_never_exceeded_whichever_budget_it_is() {
    let (window, tables) = (tpch_window(), tpch_tables());
    let free = planned(&window, &tables, &Settings::without_budgets());
    let wanted: u64 = free.actions.iter().map(|action| action.rewrite_bytes.0).sum();
    let half = Some(Bytes(wanted / 2));
    for settings in [
        Settings { rewrite_budget: half, ..Settings::without_budgets() },
        Settings { storage_budget: half, ..Settings::without_budgets() },
        Settings { rewrite_budget: half, storage_budget: half, ..Settings::without_budgets() },
    ] {
        let plan = planned(&window, &tables, &settings);
        let rewritten: u64 = plan.actions.iter().map(|action| action.rewrite_bytes.0).sum();
        let stored: u64 = plan.actions.iter().map(|action| action.storage_bytes.0).sum();
        assert!(!plan.actions.is_empty() && rewritten.max(stored) <= wanted / 2, "{rewritten}");
    }
}

#[test]
fn ten_times_the_sizes_give_ten_times_the_value_and_the_same_choices() {
    let (window, tables) = (tpch_window(), tpch_tables());
    let larger: Vec<TableEvidence> = tables
        .iter()
        .cloned()
        .map(|mut table| {
            table.bytes = Bytes(table.bytes.0 * 10);
            table.files.iter_mut().for_each(|file| file.size = Bytes(file.size.0 * 10));
            table
        })
        .collect();
    for budget in [None, Some(21_000_000)] {
        let settings = |factor: u64| Settings {
            rewrite_budget: budget.map(|bytes| Bytes(bytes * factor)),
            ..Settings::without_budgets()
        };
        let (plan, scaled) =
            (planned(&window, &tables, &settings(1)), planned(&window, &larger, &settings(10)));
        assert!(!plan.actions.is_empty());
        assert_eq!(actions(&plan), actions(&scaled));
        assert!((scaled.npv_bytes / plan.npv_bytes - 10.0).abs() < 1e-9, "{}", scaled.npv_bytes);
    }
}

#[test]
fn window_without_statements_and_key_of_one_value_give_no_action() {
    let free = Settings::without_budgets();
    let table = ten_files("t").evidence();
    let empty = planned(&workload(vec![]), std::slice::from_ref(&table), &free);
    assert_eq!(actions(&empty), [""; 0]);
    assert_eq!(rejections(&empty), ["t (): no statement of the window reads it"]);
    let constant = Table::new("t", 10, MIB).column("k", integers([7; 1000])).evidence();
    let queries = vec![Query::new().scan("t", &[("k", 7, 7)])];
    let plan = planned(&workload(queries), &[constant], &free);
    assert_eq!((actions(&plan), plan.npv_bytes), (vec![], 0.0));
    assert_eq!(plan.rejected.len(), 1, "{:?}", rejections(&plan));
}

#[test]
fn key_without_statistics_in_its_files_is_read_whole_until_it_is_laid_out() {
    let free = Settings::without_budgets();
    let bare = ten_files("t").with(|t| t.files.iter_mut().for_each(|file| file.spans.clear()));
    let plan = planned(&workload(key_queries("t", 4)), &[bare.evidence()], &free);
    let [action] = plan.actions.as_slice() else { panic!("one action: {plan:#?}") };
    assert_eq!(action.saves.expected, Bytes(36 * MIB), "all ten files now, one of ten then");
}
