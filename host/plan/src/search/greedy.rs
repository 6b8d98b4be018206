//! Seeded greedy: from many beginnings, take the best step until none helps.
//!
//! 1. Beginnings: nothing; each option alone; each bond's two ends; each option with all options it
//!    is bonded to (a star: a fact table pays only together with its dimensions).
//! 2. Steps: give one table another option, or two tables the ends of a bond, within the budgets.
//! 3. Two rules from each beginning: the largest gain, and the largest gain per budget spent.
//!    Neither alone has any guarantee; the better of both over all beginnings does well.

use super::{
    Problem, Search, Solution,
    bound::{Price, Relaxed, dual, optimistic, promise},
    exceeds,
    problem::Spent,
    split::Split,
};

/// Beginnings tried at most and at least; the most valuable ones, by their own value.
const MAX_SEEDS: usize = 256;
const MIN_SEEDS: usize = 16;
/// Steps weighed, about, over all beginnings: what bounds their number on large problems.
const MAX_WORK: usize = 2_000_000;

/// The better of value greedy and density greedy over many beginnings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Greedy;

impl Search for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn search(&self, problem: &Problem) -> Solution {
        let (choices, nodes) = best_climb(problem);
        let npv = problem.value(&choices);
        let upper_bound = dual(problem, |price| relaxed(problem, price)).upper.max(npv);
        let proven = !exceeds(upper_bound, npv);
        Solution { choices, npv, upper_bound, proven, nodes }
    }
}

/// Returns the best choices over all beginnings and both rules, and the steps weighed.
pub(super) fn best_climb(problem: &Problem) -> (Vec<usize>, u64) {
    let mut best = vec![0; problem.tables().len()];
    let mut best_npv = 0.0;
    let mut nodes = 0;
    for seed in seeds(problem) {
        for rule in [Rule::Value, Rule::Density] {
            let mut choices = seed.clone();
            nodes += climb(problem, &mut choices, rule);
            let npv = problem.value(&choices);
            if exceeds(npv, best_npv) {
                (best, best_npv) = (choices, npv);
            }
        }
    }
    problem.settle(&mut best);
    (best, nodes)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Value,
    Density,
}

/// Gives each table its most promising option: an upper bound, not a plan.
fn relaxed(problem: &Problem, price: Price) -> Relaxed {
    let split = Split::fit(problem, price);
    let undecided = vec![None; problem.tables().len()];
    let all: Vec<usize> = (0..undecided.len()).collect();
    let choices = all
        .iter()
        .map(|&table| {
            let promised = |option| promise(problem, &split, &undecided, (table, option), price);
            let options = problem.live(table).iter().copied();
            options.reduce(|best, o| if promised(o) > promised(best) { o } else { best })
        })
        .map(Option::unwrap_or_default)
        .collect();
    Relaxed { upper: optimistic(problem, &split, &all, &undecided, price), choices }
}

fn seeds(problem: &Problem) -> Vec<Vec<usize>> {
    let nothing = vec![0; problem.tables().len()];
    let mut seeds: Vec<Vec<usize>> = Vec::new();
    for table in 0..problem.tables().len() {
        for &option in problem.live(table).iter().filter(|&&option| option > 0) {
            let mut alone = nothing.clone();
            alone[table] = option;
            let mut star = alone.clone();
            for neighbor in problem.neighbors(table) {
                if neighbor.option == option && neighbor.npv > 0.0 && star[neighbor.other] == 0 {
                    star[neighbor.other] = neighbor.other_option;
                    if !problem.fits(&star) {
                        star[neighbor.other] = 0;
                    }
                }
            }
            seeds.extend([alone, star]);
        }
    }
    for bond in problem.bonds() {
        let mut pair = nothing.clone();
        pair[bond.a.0] = bond.a.1;
        pair[bond.b.0] = bond.b.1;
        seeds.push(pair);
    }
    seeds.retain(|seed| problem.fits(seed));
    let mut valued: Vec<(f64, Vec<usize>)> =
        seeds.into_iter().map(|seed| (problem.value(&seed), seed)).collect();
    valued.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    valued.dedup();
    // A climb weighs each step once per table, about.
    let options: usize = (0..nothing.len()).map(|table| problem.live(table).len()).sum();
    let climb_work = (options + problem.bonds().len()) * problem.tables().len();
    valued.truncate((MAX_WORK / climb_work.max(1)).clamp(MIN_SEEDS, MAX_SEEDS));
    std::iter::once(nothing).chain(valued.into_iter().map(|(_, seed)| seed)).collect()
}

/// A change of one table or, by a bond, of two.
#[derive(Debug, Clone, Copy)]
struct Step {
    first: (usize, usize),
    second: Option<(usize, usize)>,
}

/// Takes the best step until none gains; returns the steps weighed.
fn climb(problem: &Problem, choices: &mut [usize], rule: Rule) -> u64 {
    let singles = (0..problem.tables().len()).flat_map(|table| {
        let step = move |&option| Step { first: (table, option), second: None };
        problem.live(table).iter().map(step)
    });
    let pairs = problem.bonds().iter().map(|bond| Step { first: bond.a, second: Some(bond.b) });
    let steps: Vec<Step> = singles.chain(pairs).collect();
    let mut weighed = 0;
    let mut spent = problem.spent(choices);
    loop {
        let mut best: Option<(f64, Step)> = None;
        for &step in &steps {
            weighed += 1;
            let (gain, after) = try_step(problem, choices, spent, step);
            if !problem.is_within(after) || !exceeds(gain, 0.0) {
                continue;
            }
            let rank = match rule {
                Rule::Value => gain,
                Rule::Density => gain / cost(problem, spent, after),
            };
            if best.is_none_or(|(most, _)| rank > most) {
                best = Some((rank, step));
            }
        }
        let Some((_, step)) = best else { return weighed };
        for (table, option) in std::iter::once(step.first).chain(step.second) {
            choices[table] = option;
        }
        spent = problem.spent(choices);
    }
}

/// Returns what a step gains and what is spent after it; the choices are as before.
fn try_step(problem: &Problem, choices: &mut [usize], spent: Spent, step: Step) -> (f64, Spent) {
    let mut gain = 0.0;
    let mut after = spent;
    let first_before = choices[step.first.0];
    for (table, option) in std::iter::once(step.first).chain(step.second) {
        let own = choices[table];
        let (old, new) =
            (&problem.tables()[table].options[own], &problem.tables()[table].options[option]);
        gain += new.npv - old.npv;
        for neighbor in problem.neighbors(table) {
            if choices[neighbor.other] == neighbor.other_option {
                let is_new = neighbor.option == option;
                let is_old = neighbor.option == own;
                gain += neighbor.npv * (f64::from(u8::from(is_new)) - f64::from(u8::from(is_old)));
            }
        }
        after = after.plus(new).minus(old);
        if step.second.is_some() && table == step.first.0 {
            choices[table] = option;
        }
    }
    choices[step.first.0] = first_before;
    (gain, after)
}

/// Returns what a step spends, budgets weighed by their sizes; a step that frees bytes is cheapest.
fn cost(problem: &Problem, before: Spent, after: Spent) -> f64 {
    let share = |budget: Option<lakebed_model::Bytes>, from: f64, to: f64| {
        (to - from) / budget.map_or(1.0, |budget| budget.as_f64().max(1.0))
    };
    let rewrite = share(problem.rewrite_budget(), before.rewrite.as_f64(), after.rewrite.as_f64());
    let storage = share(problem.storage_budget(), before.storage.as_f64(), after.storage.as_f64());
    let relevant = match (problem.rewrite_budget(), problem.storage_budget()) {
        (None, Some(_)) => storage,
        (Some(_), None) => rewrite,
        _ => rewrite + storage,
    };
    relevant.max(f64::MIN_POSITIVE)
}
