//! Seeded greedy with swaps: from many beginnings, take the best step until none helps.
//!
//! 1. Beginnings: nothing; each option alone; each bond's two ends; each option with all options it
//!    is bonded to (a star: a fact table pays only together with its dimensions); and the choices
//!    that were best at some price, cut down to the budgets.
//! 2. Two rules from each beginning: the largest gain, and the largest gain per budget spent
//!    ([`super::climb`]). Neither alone has any guarantee; the better of both does well.
//! 3. The best few are improved by swaps of two tables ([`super::swap`]).

use super::{
    Problem, Search, Solution,
    bound::{Dual, Price, Relaxed, dual, optimistic, promise},
    climb::{Climber, Rule, Step},
    exceeds,
    problem::Spent,
    split::Split,
    swap,
};

/// Beginnings tried at most and at least; the most valuable ones, by their own value.
const MAX_SEEDS: usize = 256;
const MIN_SEEDS: usize = 2;
/// Steps weighed, about, over all beginnings: what bounds their number on large problems.
const MAX_WORK: usize = 4_000_000;
/// Different results that are improved by swaps, and swaps weighed, about, for all of them.
const MAX_SWAPPED: usize = 2;
const MAX_SWAPS: u64 = 4_000_000;
/// Rounds of improving the shares of bonds at each price; the next price goes on from there.
const SWEEPS: usize = 12;

/// The better of value greedy and density greedy over many beginnings, improved by swaps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seeded;

impl Search for Seeded {
    fn name(&self) -> &'static str {
        "seeded"
    }

    fn search(&self, problem: &Problem) -> Solution {
        let Dual { upper, choices, .. } = dual(problem, bounder(problem));
        let (choices, nodes) = best_climb(problem, choices);
        let npv = problem.value(&choices);
        let upper_bound = upper.max(npv);
        let proven = !exceeds(upper_bound, npv);
        Solution { choices, npv, upper_bound, proven, nodes }
    }
}

/// Returns the best choices over all beginnings and both rules, and the steps weighed.
///
/// `priced` are choices for which the budgets did not count.
pub(super) fn best_climb(problem: &Problem, priced: Vec<Vec<usize>>) -> (Vec<usize>, u64) {
    let mut climber = Climber::new(problem);
    let mut found: Vec<(f64, Vec<usize>)> = Vec::new();
    for seed in seeds(problem, &mut climber, priced) {
        for rule in [Rule::Value, Rule::Density] {
            climber.stand(seed.clone());
            climber.climb(rule);
            found.push((problem.value(&climber.choices), climber.choices.clone()));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.dedup();
    found.truncate(MAX_SWAPPED);
    let mut best = (0.0, vec![0; problem.tables().len()]);
    for (_, choices) in found {
        climber.stand(choices);
        swap::improve(problem, &mut climber, MAX_SWAPS / MAX_SWAPPED as u64);
        let npv = problem.value(&climber.choices);
        if exceeds(npv, best.0) {
            best = (npv, climber.choices.clone());
        }
    }
    problem.settle(&mut best.1);
    (best.1, climber.weighed)
}

/// Solves the problem without budgets at one price after the other: gives each table its most
/// promising option, which is an upper bound and no plan.
pub(super) fn bounder(problem: &Problem) -> impl FnMut(Price) -> Relaxed + '_ {
    let mut split = Split::halves(problem);
    move |price| {
        split.improve(problem, price, SWEEPS);
        let split = &split;
        let undecided = vec![None; problem.tables().len()];
        let all: Vec<usize> = (0..undecided.len()).collect();
        let choices = all
            .iter()
            .map(|&table| {
                let promised = |option| promise(problem, split, &undecided, (table, option), price);
                let options = problem.live(table).iter().copied();
                options.reduce(|best, o| if promised(o) > promised(best) { o } else { best })
            })
            .map(Option::unwrap_or_default)
            .collect();
        Relaxed { upper: optimistic(problem, split, &all, &undecided, price), choices }
    }
}

/// Options of some tables; the others are kept. Sorted by table.
type Seed = Vec<(usize, usize)>;

fn seeds(
    problem: &Problem,
    climber: &mut Climber<'_>,
    mut priced: Vec<Vec<usize>>,
) -> Vec<Vec<usize>> {
    priced.sort_unstable();
    priced.dedup();
    let tables = problem.tables().len();
    let mut seeds: Vec<Seed> = Vec::new();
    for table in 0..tables {
        for &option in problem.live(table).iter().filter(|&&option| option > 0) {
            seeds.extend([vec![(table, option)], star(problem, (table, option))]);
        }
    }
    seeds.extend(problem.bonds().iter().map(|bond| vec![bond.a.min(bond.b), bond.a.max(bond.b)]));
    seeds.extend(priced.into_iter().map(|choices| {
        let chosen = cut_down(problem, climber, choices).into_iter().enumerate();
        chosen.filter(|(_, option)| *option > 0).collect()
    }));
    let mut valued: Vec<(f64, Seed)> = seeds
        .into_iter()
        .filter(|seed| problem.is_within(spent(problem, seed)))
        .map(|seed| (value(problem, &seed), seed))
        .collect();
    valued.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    valued.dedup();
    // A climb scans the steps once per table, about.
    let options: usize = (0..tables).map(|table| problem.live(table).len()).sum();
    let climb_work = (options + problem.bonds().len()) * tables;
    valued.truncate((MAX_WORK / climb_work.max(1)).clamp(MIN_SEEDS, MAX_SEEDS));
    let dense = |seed: Seed| {
        let mut choices = vec![0; tables];
        for (table, option) in seed {
            choices[table] = option;
        }
        choices
    };
    std::iter::once(Seed::new())
        .chain(valued.into_iter().map(|(_, seed)| seed))
        .map(dense)
        .collect()
}

/// An option with all that it is bonded to and the budgets allow, in order.
fn star(problem: &Problem, (table, option): (usize, usize)) -> Seed {
    let mut star = vec![(table, option)];
    let mut total = spent(problem, &star);
    for neighbor in problem.neighbors(table) {
        let end = (neighbor.other, neighbor.other_option);
        let is_new = star.iter().all(|(table, _)| *table != end.0);
        let after = total.plus(&problem.tables()[end.0].options[end.1]);
        if neighbor.option == option && neighbor.npv > 0.0 && is_new && problem.is_within(after) {
            star.push(end);
            total = after;
        }
    }
    star.sort_unstable();
    star
}

fn spent(problem: &Problem, seed: &Seed) -> Spent {
    let options = seed.iter().map(|&(table, option)| &problem.tables()[table].options[option]);
    options.fold(Spent::default(), Spent::plus)
}

/// Values options as [`Problem::value`] does, from their own bonds only.
fn value(problem: &Problem, seed: &Seed) -> f64 {
    let is_chosen = |end: (usize, usize)| seed.binary_search(&end).is_ok();
    let of = |&(table, option): &(usize, usize)| {
        let bonds = problem
            .neighbors(table)
            .iter()
            .filter(|bond| bond.option == option && is_chosen((bond.other, bond.other_option)));
        // Each bond is met from both of its ends.
        let bonds: f64 = bonds.map(|bond| bond.npv / 2.0).sum();
        problem.tables()[table].options[option].npv + bonds
    };
    seed.iter().map(of).sum()
}

/// Keeps tables again, with a climber that stands anywhere: those first that lose the least value per byte given back, until the choices
/// fit the budgets.
fn cut_down(problem: &Problem, climber: &mut Climber<'_>, choices: Vec<usize>) -> Vec<usize> {
    climber.choices = choices;
    while !problem.fits(&climber.choices) {
        let mut least: Option<(f64, Step)> = None;
        for table in 0..problem.tables().len() {
            let step = Step { first: (table, 0), second: None };
            if climber.choices[table] == 0 {
                continue;
            }
            let weight = climber.weigh(step);
            let frees = -(weight.rewrite + weight.storage);
            #[expect(clippy::cast_precision_loss, reason = "bytes under 8 PiB are exact")]
            let loss = -weight.gain / frees.max(1) as f64;
            if frees > 0 && least.is_none_or(|(lowest, _)| loss < lowest) {
                least = Some((loss, step));
            }
        }
        let Some((_, step)) = least else { break };
        climber.choices[step.first.0] = 0;
    }
    climber.choices.clone()
}
