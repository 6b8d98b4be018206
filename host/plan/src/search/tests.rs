use lakebed_model::{Bytes, TableName};

use super::{
    ALL_SEARCHES, Bond, Exact, Greedy, PlanOption, Problem, ProblemError, Search, Seeded,
    TableOptions,
};

/// The searches that look further than the paper's rule.
const FARSIGHTED: [&dyn Search; 2] = [&Exact::STANDARD, &Seeded];

/// Names tables with the value and size of their options other than keeping.
fn tables(options: &[(&str, &[(f64, u64)])]) -> Vec<TableOptions> {
    options
        .iter()
        .map(|(table, options)| TableOptions {
            table: TableName::new(*table),
            options: std::iter::once(PlanOption::default())
                .chain(options.iter().map(|&(npv, bytes)| PlanOption {
                    npv,
                    rewrite_bytes: Bytes(bytes),
                    storage_bytes: Bytes(bytes),
                }))
                .collect(),
        })
        .collect()
}

fn bond(a: usize, b: usize, npv: f64) -> Bond {
    Bond { a: (a, 1), b: (b, 1), npv }
}

#[track_caller]
fn check(search: &dyn Search, problem: &Problem, choices: &[usize], npv: f64) {
    let solution = search.search(problem);
    assert_eq!(solution.choices, choices, "{}: {solution:?}", search.name());
    assert!((solution.npv - npv).abs() < 1e-9, "{}: {solution:?}", search.name());
}

#[test]
fn star_that_pays_only_as_a_whole_is_found() {
    // Fact F costs 100, dimensions A and B cost 10 each, either join saves 70: one join alone loses
    // 40, both together gain 140 − 120 = 20.
    let tables = tables(&[("F", &[(-100.0, 100)]), ("A", &[(-10.0, 10)]), ("B", &[(-10.0, 10)])]);
    let problem =
        Problem::new(tables, vec![bond(0, 1, 70.0), bond(0, 2, 70.0)], None, None).unwrap();
    for search in FARSIGHTED {
        check(search, &problem, &[1, 1, 1], 20.0);
        // Bonds that form a tree leave no gap even without branching.
        let gap = search.search(&problem).upper_bound - 20.0;
        assert!((0.0..1e-3).contains(&gap), "{}: {gap}", search.name());
    }
    assert!(Exact::STANDARD.search(&problem).proven);
    // The paper's rule looks at one edge at a time and stops at nothing.
    check(&Greedy, &problem, &[0, 0, 0], 0.0);
}

#[test]
fn largest_item_does_not_eat_the_budget_of_two_better_ones() {
    // The C6 shape: the best single item fills the budget of 100, two items of half its size are
    // worth 60 each.
    let tables = tables(&[("big", &[(80.0, 100)]), ("x", &[(60.0, 50)]), ("y", &[(60.0, 50)])]);
    let problem = Problem::new(tables, vec![], Some(Bytes(100)), None).unwrap();
    for search in FARSIGHTED {
        check(search, &problem, &[0, 1, 1], 120.0);
    }
    check(&Greedy, &problem, &[1, 0, 0], 80.0);
}

#[test]
fn greedy_pays_for_a_second_rewrite_of_a_table_it_decided() {
    // Alone, option 2 is worth 5 more than option 1; the bond makes option 1 worth 20 more later.
    // Giving up option 2 costs its rewrite of 30 once more.
    let tables = tables(&[("t", &[(10.0, 30), (15.0, 30)]), ("u", &[(-18.0, 30)])]);
    let problem = |npv| Problem::new(tables.clone(), vec![bond(0, 1, npv)], None, None).unwrap();
    check(&Greedy, &problem(20.0), &[2, 0], 15.0);
    check(&Seeded, &problem(28.0), &[1, 1], 20.0);
    check(&Greedy, &problem(40.0), &[1, 1], 32.0);
}

#[test]
fn dense_crumb_does_not_shut_out_the_large_item() {
    // Density takes the crumb first and then nothing fits; value takes the large item.
    let tables = tables(&[("crumb", &[(3.0, 1)]), ("large", &[(100.0, 100)])]);
    let problem = Problem::new(tables, vec![], None, Some(Bytes(100))).unwrap();
    for search in ALL_SEARCHES {
        check(search, &problem, &[0, 1], 100.0);
    }
}

#[test]
fn swap_makes_room_that_no_single_step_makes() {
    // Three fit: 60 for a and 50 for b. Whoever holds a and c (60 + 45) must let c go for b.
    let tables = tables(&[("a", &[(60.0, 60)]), ("b", &[(50.0, 40)]), ("c", &[(45.0, 35)])]);
    let problem = Problem::new(tables, vec![], Some(Bytes(100)), None).unwrap();
    let mut climber = super::climb::Climber::new(&problem);
    climber.stand(vec![1, 0, 1]);
    climber.climb(super::climb::Rule::Value);
    assert_eq!(climber.choices, [1, 0, 1]);
    super::swap::improve(&problem, &mut climber, 1_000);
    assert_eq!(climber.choices, [1, 1, 0]);
}

#[test]
fn ties_go_to_the_smaller_rewrite_and_then_to_the_earlier_option() {
    let tables = tables(&[("t", &[(50.0, 9), (50.0, 5), (50.0, 5)]), ("u", &[(0.0, 1), (0.0, 0)])]);
    let problem = Problem::new(tables, vec![], None, None).unwrap();
    for search in ALL_SEARCHES {
        check(search, &problem, &[2, 0], 50.0);
    }
}

#[test]
fn nothing_to_choose_is_a_plan_of_nothing() {
    let none = Problem::new(vec![], vec![], Some(Bytes(0)), Some(Bytes(0))).unwrap();
    let costly = Problem::new(tables(&[("t", &[(50.0, 9)])]), vec![], Some(Bytes(0)), None);
    for search in ALL_SEARCHES {
        check(search, &none, &[], 0.0);
        check(search, costly.as_ref().unwrap(), &[0], 0.0);
    }
}

/// 120 tables with 8 options each under a budget of a third of all bytes; sizes and values are
/// spread by multiplication with primes, options of one table differ in size by `spread`.
fn large_knapsack(spread: u64) -> Problem {
    let names: Vec<String> = (0..120).map(|table| format!("t{table:03}")).collect();
    let options: Vec<Vec<(f64, u64)>> = (0..120u64)
        .map(|table| {
            let bytes = 1000 + table * 7919 % 5000;
            let value = |option: u64| (table * 104_729 + option * 1299) as f64 % 9000.0;
            (0..8).map(|option| (value(option), bytes + option * spread)).collect()
        })
        .collect();
    let named: Vec<(&str, &[(f64, u64)])> =
        names.iter().map(String::as_str).zip(options.iter().map(Vec::as_slice)).collect();
    Problem::new(tables(&named), vec![], Some(Bytes(140_000)), None).unwrap()
}

#[test]
fn large_knapsack_of_tables_rewritten_whole_is_proven() {
    assert!(Exact::STANDARD.search(&large_knapsack(0)).proven);
}

#[test]
fn large_knapsack_is_near_its_bound() {
    let problem = large_knapsack(150);
    for search in FARSIGHTED {
        let solution = search.search(&problem);
        let gap = (solution.upper_bound - solution.npv) / solution.upper_bound;
        assert!((0.0..0.01).contains(&gap), "{}: gap {gap}", search.name());
    }
}

#[track_caller]
fn check_refused(tables: Vec<TableOptions>, bonds: Vec<Bond>, expected: &str) {
    let error: ProblemError = Problem::new(tables, bonds, None, None).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn malformed_problems_are_refused() {
    let two = || tables(&[("t", &[(1.0, 1)]), ("u", &[(1.0, 1)])]);
    check_refused(
        vec![TableOptions { table: TableName::new("t"), options: vec![] }],
        vec![],
        "search layouts: option 0 of t must keep the table for nothing",
    );
    check_refused(
        tables(&[("t", &[(f64::NAN, 1)])]),
        vec![],
        "search layouts: value NaN of option 1 of t is not finite",
    );
    check_refused(
        two(),
        vec![bond(0, 1, f64::INFINITY)],
        "search layouts: value inf of bond 0 is not finite",
    );
    for (a, b) in [((0, 1), (0, 1)), ((0, 0), (1, 1)), ((0, 1), (1, 2)), ((0, 1), (2, 1))] {
        check_refused(
            two(),
            vec![Bond { a, b, npv: 1.0 }],
            &format!(
                "search layouts: bond 0 joins {a:?} and {b:?}, expected (table, option) of two \
                 different tables, neither keeping"
            ),
        );
    }
}
