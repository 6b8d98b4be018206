//! Frontiers: all that a group of bonded tables can be worth, by what it takes of the budgets.
//!
//! 1. A component's frontier holds every combination of its options that no other one of it beats in
//!    value, rewritten bytes and stored bytes at once.
//! 2. Frontiers are merged one after the other: sums of two states, those over a budget left out,
//!    beaten ones left out again. What remains at the end holds the best plan, exactly, whatever the
//!    two budgets.
//! 3. A state is also left out when its value, and the least that any price bounds the rest by, do
//!    not exceed what is known already.
//!
//! A component with more than [`MAX_COMBINATIONS`] combinations, or a merge of more than
//! [`MAX_STATES`] states, is left to the walk of [`super::exact`].
//!
//! Worked example: options (value, rewrite) of one table (0, 0), (5, 4), (4, 6) leave (0, 0), (5, 4).
//! With another table's (0, 0), (3, 2) and a budget of 5 the merge holds (0, 0), (3, 2), (5, 4).

use std::collections::BTreeMap;

use super::{Problem, exceeds, problem::Spent};

/// Combinations of one component up to which all are listed.
pub(super) const MAX_COMBINATIONS: u64 = 1 << 14;
/// States of a merge.
pub(super) const MAX_STATES: usize = 40_000;

/// What some choices are worth and take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct State {
    pub(super) value: f64,
    pub(super) spent: Spent,
    /// Position of the state it was added to, and of the one that was added.
    from: (u32, u32),
}

/// One component's frontier, with the choices of each state.
#[derive(Debug)]
pub(super) struct Frontier {
    tables: Vec<usize>,
    states: Vec<(State, Vec<usize>)>,
}

impl Frontier {
    /// Lists a component's frontier; `None` when it has too many combinations.
    pub(super) fn of(problem: &Problem, component: &[usize]) -> Option<Self> {
        let combinations = component.iter().try_fold(1u64, |product, &table| {
            product.checked_mul(problem.live(table).len() as u64)
        })?;
        if combinations > MAX_COMBINATIONS {
            return None;
        }
        let mut choices = vec![0; problem.tables().len()];
        let mut listed: Vec<(State, Vec<usize>)> = Vec::new();
        for combination in 0..combinations {
            let mut rest = combination;
            for &table in component {
                let live = problem.live(table);
                let count = live.len() as u64;
                let position = usize::try_from(rest % count).unwrap_or(0);
                choices[table] = live[position];
                rest /= count;
            }
            let spent = spent_of(problem, component, &choices);
            if problem.is_within(spent) {
                let value = value_of(problem, component, &choices);
                let own = component.iter().map(|&table| choices[table]).collect();
                listed.push((State { value, spent, from: (0, 0) }, own));
            }
        }
        let order = undominated(listed.iter().map(|(state, _)| *state));
        let states = order.into_iter().map(|index| listed[index].clone()).collect();
        Some(Self { tables: component.to_vec(), states })
    }
}

/// Merges frontiers and returns the best choices of all tables if they are worth more than `least`.
///
/// `bound` tells, for a state after the first so many frontiers, the most that it can lead to.
///
/// # Errors
/// Returns the states there would be when there are too many.
pub(super) fn merge(
    problem: &Problem,
    frontiers: &[Frontier],
    least: f64,
    bound: impl Fn(usize, f64, Spent) -> f64,
) -> Result<Option<Vec<usize>>, usize> {
    let start = State { value: 0.0, spent: Spent::default(), from: (0, 0) };
    let mut layers: Vec<Vec<State>> = vec![vec![start]];
    for (index, frontier) in frontiers.iter().enumerate() {
        let last = layers.last().map_or(&[][..], Vec::as_slice);
        let count = last.len() * frontier.states.len();
        if count > MAX_STATES * 50 {
            return Err(count);
        }
        let mut sums = Vec::new();
        for (before, state) in last.iter().enumerate() {
            for (position, (added, _)) in frontier.states.iter().enumerate() {
                let spent = Spent {
                    rewrite: state.spent.rewrite + added.spent.rewrite,
                    storage: state.spent.storage + added.spent.storage,
                };
                let from = (position_of(before), position_of(position));
                let sum = State { value: state.value + added.value, spent, from };
                if problem.is_within(spent) && exceeds(bound(index + 1, sum.value, spent), least) {
                    sums.push(sum);
                }
            }
        }
        let kept: Vec<State> =
            undominated(sums.iter().copied()).into_iter().map(|index| sums[index]).collect();
        if kept.len() > MAX_STATES {
            return Err(kept.len());
        }
        layers.push(kept);
    }
    let best = layers.last().into_iter().flatten().enumerate().fold(
        None::<(usize, f64)>,
        |best, (index, state)| match best {
            Some((_, most)) if !exceeds(state.value, most) => best,
            _ => Some((index, state.value)),
        },
    );
    let Some((mut at, _)) = best.filter(|(_, value)| exceeds(*value, least)) else {
        return Ok(None);
    };
    let mut choices = vec![0; problem.tables().len()];
    for (frontier, layer) in frontiers.iter().zip(&layers[1..]).rev() {
        let (before, position) = layer[at].from;
        let (_, own) = &frontier.states[position as usize];
        for (&table, &choice) in frontier.tables.iter().zip(own) {
            choices[table] = choice;
        }
        at = before as usize;
    }
    Ok(Some(choices))
}

/// Lists the positions of states that no other one beats, in order of rewritten bytes.
fn undominated(states: impl Iterator<Item = State>) -> Vec<usize> {
    let states: Vec<State> = states.collect();
    let mut order: Vec<usize> = (0..states.len()).collect();
    order.sort_by(|&a, &b| {
        let (one, other) = (&states[a], &states[b]);
        (one.spent.rewrite, one.spent.storage)
            .cmp(&(other.spent.rewrite, other.spent.storage))
            .then_with(|| other.value.total_cmp(&one.value))
            .then_with(|| a.cmp(&b))
    });
    // Of what rewrites no more: the most value by stored bytes, rising in both.
    let mut best: BTreeMap<u64, f64> = BTreeMap::new();
    order.retain(|&index| {
        let State { value, spent, .. } = states[index];
        let storage = spent.storage.0;
        if best.range(..=storage).next_back().is_some_and(|(_, most)| *most >= value) {
            return false;
        }
        let beaten: Vec<u64> = best
            .range(storage..)
            .take_while(|(_, most)| **most <= value)
            .map(|(storage, _)| *storage)
            .collect();
        for storage in beaten {
            best.remove(&storage);
        }
        best.insert(storage, value);
        true
    });
    order
}

fn spent_of(problem: &Problem, component: &[usize], choices: &[usize]) -> Spent {
    let options = component.iter().map(|&table| &problem.tables()[table].options[choices[table]]);
    let spent = options.fold(Spent::default(), Spent::plus);
    // What has no budget does not tell states apart.
    let counted = |budget: Option<lakebed_model::Bytes>, bytes| {
        budget.map_or_else(Default::default, |_| bytes)
    };
    Spent {
        rewrite: counted(problem.rewrite_budget(), spent.rewrite),
        storage: counted(problem.storage_budget(), spent.storage),
    }
}

fn value_of(problem: &Problem, component: &[usize], choices: &[usize]) -> f64 {
    let of = |&table: &usize| {
        let bonds = problem.neighbors(table).iter().filter(|bond| {
            bond.option == choices[table] && bond.other_option == choices[bond.other]
        });
        // Each bond is met from both of its ends.
        let bonds: f64 = bonds.map(|bond| bond.npv / 2.0).sum();
        problem.tables()[table].options[choices[table]].npv + bonds
    };
    component.iter().map(of).sum()
}

fn position_of(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use lakebed_model::{Bytes, TableName};

    use super::{Frontier, merge};
    use crate::{
        contract::{best_by_trying, made_up_problem},
        search::{PlanOption, Problem, TableOptions, exceeds},
    };

    fn table(name: &str, options: &[(f64, u64)]) -> TableOptions {
        let options = options.iter().map(|&(npv, bytes)| PlanOption {
            npv,
            rewrite_bytes: Bytes(bytes),
            storage_bytes: Bytes(0),
        });
        let options = std::iter::once(PlanOption::default()).chain(options).collect();
        TableOptions { table: TableName::new(name), options }
    }

    #[test]
    fn the_worked_example_keeps_what_nothing_beats() {
        let tables = vec![table("a", &[(5.0, 4), (4.0, 6)]), table("b", &[(3.0, 2)])];
        let problem = Problem::new(tables, vec![], Some(Bytes(5)), None).unwrap();
        let frontiers: Vec<Frontier> =
            [0, 1].iter().map(|&table| Frontier::of(&problem, &[table]).unwrap()).collect();
        assert_eq!([frontiers[0].states.len(), frontiers[1].states.len()], [2, 2]);
        let best = merge(&problem, &frontiers, 0.0, |_, _, _| f64::INFINITY).unwrap();
        assert_eq!(best, Some(vec![1, 0]));
    }

    #[test]
    fn merged_frontiers_hold_the_best_plan_under_both_budgets() {
        for seed in 0..300 {
            let problem = made_up_problem(seed);
            let components = problem.components();
            let frontiers: Vec<Frontier> =
                components.iter().map(|one| Frontier::of(&problem, one).unwrap()).collect();
            let found = merge(&problem, &frontiers, 0.0, |_, _, _| f64::INFINITY).unwrap();
            let best = best_by_trying(&problem).unwrap();
            let value = found.map_or(0.0, |choices| {
                assert!(problem.fits(&choices), "problem {seed}");
                problem.value(&choices)
            });
            assert!(
                !exceeds(best, value) && !exceeds(value, best),
                "problem {seed}: {value} {best}"
            );
        }
    }
}
