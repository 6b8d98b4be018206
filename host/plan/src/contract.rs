//! Checks that every [`Search`] must pass.
//!
//! [`check_solution`] holds for every answer and is run on every plan; [`check_search`] needs the
//! search itself and, on small problems, an oracle that tries everything.

use lakebed_model::{Bytes, TableName};

use crate::{
    Search,
    random::SplitMix64,
    search::{Bond, PlanOption, Problem, Solution, TableOptions, exceeds},
};

/// Combinations up to which the oracle tries everything.
const MAX_COMBINATIONS: u64 = 100_000;

/// A rule that an answer breaks.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Breach {
    /// The choices do not name one option per table.
    #[error("its {found} choices do not name an option of each of {tables} tables")]
    Shape {
        /// Tables of the problem.
        tables: usize,
        /// Choices given.
        found: usize,
    },
    /// The choices need more than a budget allows.
    #[error("its choices overshoot a budget: they rewrite {rewrite} and leave {storage}")]
    OverBudget {
        /// Bytes to rewrite.
        rewrite: Bytes,
        /// Bytes of old files.
        storage: Bytes,
    },
    /// The value stated is not the choices' own.
    #[error("it states value {stated} for choices worth {actual}")]
    Value {
        /// The value stated.
        stated: f64,
        /// The choices' value.
        actual: f64,
    },
    /// The upper bound is below the value.
    #[error("its upper bound {upper_bound} is below its value {npv}")]
    Bound {
        /// The bound stated.
        upper_bound: f64,
        /// The value stated.
        npv: f64,
    },
    /// Better choices exist than the bound or the proof allows.
    #[error("choices worth {best} exist, but it states at most {stated}")]
    Beaten {
        /// Value of the best choices.
        best: f64,
        /// What the answer states as the most.
        stated: f64,
    },
    /// The same problem got two answers.
    #[error("it answers the same problem in two ways")]
    Unsteady,
}

/// Checks what holds for every answer: shape, budgets, stated value and bound.
///
/// # Errors
/// Returns the first rule that the answer breaks.
pub fn check_solution(problem: &Problem, solution: &Solution) -> Result<(), Breach> {
    let (tables, choices) = (problem.tables(), &solution.choices);
    let is_whole = tables.len() == choices.len()
        && tables.iter().zip(choices).all(|(table, &choice)| choice < table.options.len());
    if !is_whole {
        return Err(Breach::Shape { tables: tables.len(), found: choices.len() });
    }
    if !problem.fits(choices) {
        let spent = problem.spent(choices);
        return Err(Breach::OverBudget { rewrite: spent.rewrite, storage: spent.storage });
    }
    let actual = problem.value(choices);
    if !solution.npv.is_finite() || is_apart(solution.npv, actual) {
        return Err(Breach::Value { stated: solution.npv, actual });
    }
    if solution.upper_bound.is_nan() || exceeds(solution.npv, solution.upper_bound) {
        return Err(Breach::Bound { upper_bound: solution.upper_bound, npv: solution.npv });
    }
    Ok(())
}

/// Runs a search twice on a problem and checks its answers; on a small problem the best choices are
/// found by trying everything, and bound and proof are held against them.
///
/// # Errors
/// Returns the first rule that an answer breaks.
pub fn check_search(search: &dyn Search, problem: &Problem) -> Result<(), Breach> {
    let solution = search.search(problem);
    check_solution(problem, &solution)?;
    if search.search(problem) != solution {
        return Err(Breach::Unsteady);
    }
    let Some(best) = best_by_trying(problem) else { return Ok(()) };
    if exceeds(best, solution.upper_bound) {
        return Err(Breach::Beaten { best, stated: solution.upper_bound });
    }
    if solution.proven && exceeds(best, solution.npv) {
        return Err(Breach::Beaten { best, stated: solution.npv });
    }
    Ok(())
}

/// Returns the value of the best choices by trying all, or `None` if there are too many.
#[must_use]
pub fn best_by_trying(problem: &Problem) -> Option<f64> {
    let combinations = problem
        .tables()
        .iter()
        .try_fold(1u64, |product, table| product.checked_mul(table.options.len() as u64))?;
    if combinations > MAX_COMBINATIONS {
        return None;
    }
    let mut choices = vec![0; problem.tables().len()];
    let mut best = f64::NEG_INFINITY;
    for _ in 0..combinations {
        if problem.fits(&choices) {
            best = best.max(problem.value(&choices));
        }
        for (table, choice) in problem.tables().iter().zip(&mut choices) {
            *choice += 1;
            if *choice < table.options.len() {
                break;
            }
            *choice = 0;
        }
    }
    Some(best)
}

/// Makes up a problem of two to six tables with bonds and, mostly, tight budgets. Options cost
/// their table's size; many are worth nothing but for their bonds.
#[must_use]
#[expect(clippy::missing_panics_doc, reason = "all indexes are drawn from the ranges they index")]
pub fn made_up_problem(seed: u64) -> Problem {
    let mut random = SplitMix64::new(seed);
    let table_count = 2 + random.below(5);
    let mut all_bytes = 0;
    let tables: Vec<TableOptions> = (0..table_count)
        .map(|table| {
            let size = 1 + random.below(1000);
            let bytes = size as u64;
            all_bytes += bytes;
            let mut options = vec![PlanOption::default()];
            for _ in 0..=random.below(3) {
                options.push(PlanOption {
                    npv: (random.unit() - 0.6) * 2.0 * bytes as f64,
                    rewrite_bytes: Bytes(bytes),
                    storage_bytes: Bytes(bytes / 2 + random.below(1 + size) as u64),
                });
            }
            TableOptions { table: TableName::new(format!("t{table}")), options }
        })
        .collect();
    let bonds: Vec<Bond> = (0..random.below(3 * table_count))
        .filter_map(|_| {
            let (a, b) = (random.below(table_count), random.below(table_count));
            let mut end = |table: usize| (table, 1 + random.below(tables[table].options.len() - 1));
            let (a, b) = (end(a), end(b));
            let npv = (random.unit() - 0.2) * 1500.0;
            (a.0 != b.0).then_some(Bond { a, b, npv })
        })
        .collect();
    let mut budget = || {
        let share = 0.2 + 0.6 * random.unit();
        (random.below(4) > 0).then(|| Bytes::from_f64(share * all_bytes as f64))
    };
    let (rewrite, storage) = (budget(), budget());
    Problem::new(tables, bonds, rewrite, storage)
        .expect("options and bonds are drawn from the ranges of what exists")
}

fn is_apart(a: f64, b: f64) -> bool {
    exceeds(a, b) || exceeds(b, a)
}

#[cfg(test)]
mod tests {
    use super::{Breach, best_by_trying, check_search, check_solution, made_up_problem};
    use crate::{
        Search,
        search::{ALL_SEARCHES, Exact, Greedy, Problem, Seeded, Solution, exceeds},
    };

    #[test]
    fn every_search_keeps_the_contract_on_made_up_problems() {
        for search in ALL_SEARCHES {
            for seed in 0..300 {
                if let Err(breach) = check_search(search, &made_up_problem(seed)) {
                    panic!("{} on problem {seed}: {breach}", search.name());
                }
            }
        }
    }

    #[test]
    fn exact_is_proven_best_on_made_up_problems_and_greedy_never_beats_it() {
        for seed in 0..300 {
            let problem = made_up_problem(seed);
            let exact = Exact::STANDARD.search(&problem);
            let best = best_by_trying(&problem).unwrap();
            assert!(exact.proven, "problem {seed}: {exact:?}");
            assert!((exact.npv - best).abs() < 1e-6, "problem {seed}: {exact:?}, best {best}");
            for other in [&Seeded as &dyn Search, &Greedy] {
                let found = other.search(&problem);
                assert!(!exceeds(found.npv, exact.npv), "problem {seed}: {found:?}");
            }
        }
    }

    #[test]
    fn exact_keeps_the_contract_when_it_runs_out_of_steps() {
        for seed in 0..100 {
            for node_limit in [0, 1, 60, 500] {
                let problem = made_up_problem(seed);
                check_search(&Exact { node_limit }, &problem)
                    .unwrap_or_else(|breach| panic!("problem {seed}, {node_limit}: {breach}"));
            }
        }
    }

    /// Gives the same answer whatever the problem.
    #[derive(Debug)]
    struct Says(Solution);

    impl Search for Says {
        fn name(&self) -> &'static str {
            "says"
        }

        fn search(&self, _: &Problem) -> Solution {
            self.0.clone()
        }
    }

    #[test]
    fn broken_answers_are_caught() {
        let problem = made_up_problem(3);
        let right = Exact::STANDARD.search(&problem);
        assert!(right.npv > 0.0, "the problem has something to gain: {right:?}");
        let mut short = right.clone();
        short.choices.pop();
        assert!(matches!(check_solution(&problem, &short), Err(Breach::Shape { .. })));
        let boastful = Solution { npv: right.npv + 1.0, ..right.clone() };
        assert!(matches!(check_solution(&problem, &boastful), Err(Breach::Value { .. })));
        let low = Solution { upper_bound: right.npv - 1.0, ..right.clone() };
        assert!(matches!(check_solution(&problem, &low), Err(Breach::Bound { .. })));
        let keep = vec![0; right.choices.len()];
        let lazy = Solution { choices: keep, npv: 0.0, ..right };
        assert!(matches!(check_search(&Says(lazy), &problem), Err(Breach::Beaten { .. })));
    }
}
