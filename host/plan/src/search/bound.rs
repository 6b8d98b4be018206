//! Upper bounds: budgets traded for prices.
//!
//! Charge every byte of a budget a price λ ≥ 0 and let the budget itself go: the best priced choice,
//! plus λ times the budget, is worth at least as much as any choice within the budget (Lagrangian
//! relaxation). A higher price makes the priced choice cheaper; bisection finds the price at which
//! it just fits, where the bound is near its lowest. Priced choices that fit are good plans too.

use super::{
    Problem,
    problem::{PlanOption, Spent},
    split::Split,
};

const DOUBLINGS: u32 = 64;
const BISECTIONS: u32 = 20;
/// Bonds above which a problem is large, and how often its last price is asked for again.
const LARGE: usize = 400;
const REPEATS: u32 = 10;

/// What a byte of each budget costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Price {
    pub(super) rewrite: f64,
    pub(super) storage: f64,
}

impl Price {
    /// Returns an option's value minus what its bytes cost.
    pub(super) fn value(self, option: &PlanOption) -> f64 {
        option.npv
            - self.rewrite * option.rewrite_bytes.as_f64()
            - self.storage * option.storage_bytes.as_f64()
    }

    /// Returns what the rest of the budgets costs; a budget without limit must be free.
    pub(super) fn of_rest(self, problem: &Problem, spent: Spent) -> f64 {
        let rest = |budget: Option<lakebed_model::Bytes>, spent: lakebed_model::Bytes| {
            budget.map_or(0.0, |budget| budget.as_f64() - spent.as_f64())
        };
        self.rewrite * rest(problem.rewrite_budget(), spent.rewrite)
            + self.storage * rest(problem.storage_budget(), spent.storage)
    }

    fn times(self, factor: f64) -> Self {
        Self { rewrite: self.rewrite * factor, storage: self.storage * factor }
    }
}

/// An answer to the problem without budgets at some price.
#[derive(Debug)]
pub(super) struct Relaxed {
    /// No choices are worth more at this price.
    pub(super) upper: f64,
    pub(super) choices: Vec<usize>,
}

/// Prices worth bounding with, the lowest bound met, and all choices met.
#[derive(Debug)]
pub(super) struct Dual {
    pub(super) prices: Vec<Price>,
    pub(super) upper: f64,
    pub(super) choices: Vec<Vec<usize>>,
}

/// Looks for prices with low bounds; `relaxed` solves the problem without budgets.
///
/// On large problems the price is found less exactly, because each answer takes longer, and the last
/// one is asked for again: `relaxed` may go on from where it was, so that its bound falls further.
pub(super) fn dual(problem: &Problem, mut relaxed: impl FnMut(Price) -> Relaxed) -> Dual {
    let free = relaxed(Price::default());
    let is_enough = problem.fits(&free.choices);
    let mut dual =
        Dual { prices: vec![Price::default()], upper: free.upper, choices: vec![free.choices] };
    if is_enough {
        return dual;
    }
    for direction in directions(problem) {
        let mut ask = |factor: f64, dual: &mut Dual| {
            let price = direction.times(factor);
            let Relaxed { upper, choices } = relaxed(price);
            dual.upper = dual.upper.min(upper + price.of_rest(problem, Spent::default()));
            let spent = problem.spent(&choices);
            dual.choices.push(choices);
            let is_within = |price: f64, spent, budget: Option<_>| {
                price <= 0.0 || budget.is_none_or(|budget| spent <= budget)
            };
            is_within(price.rewrite, spent.rewrite, problem.rewrite_budget())
                && is_within(price.storage, spent.storage, problem.storage_budget())
        };
        let (bisections, repeats) =
            if problem.bonds().len() > LARGE { (BISECTIONS / 3, REPEATS) } else { (BISECTIONS, 0) };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..DOUBLINGS {
            if ask(high, &mut dual) {
                break;
            }
            low = high;
            high *= 2.0;
        }
        for _ in 0..bisections {
            let middle = f64::midpoint(low, high);
            if ask(middle, &mut dual) {
                high = middle;
            } else {
                low = middle;
            }
        }
        for _ in 0..repeats {
            ask(high, &mut dual);
        }
        dual.prices.extend([direction.times(low), direction.times(high)]);
    }
    dual
}

/// Prices of one byte to scale: of each budget alone, and of both by their sizes.
fn directions(problem: &Problem) -> Vec<Price> {
    let (rewrite, storage) = (problem.rewrite_budget(), problem.storage_budget());
    let mut directions = Vec::new();
    if rewrite.is_some() {
        directions.push(Price { rewrite: 1.0, storage: 0.0 });
    }
    if storage.is_some() {
        directions.push(Price { rewrite: 0.0, storage: 1.0 });
    }
    if let (Some(rewrite), Some(storage)) = (rewrite, storage) {
        let (rewrite, storage) = (rewrite.as_f64().max(1.0), storage.as_f64().max(1.0));
        let larger = rewrite.max(storage);
        directions.push(Price { rewrite: larger / rewrite, storage: larger / storage });
    }
    directions
}

/// Bounds what the undecided of some bonded tables can still add at a price: each takes its best
/// option, with all of a bond to a decided table and its share of a bond to an undecided one.
pub(super) fn optimistic(
    problem: &Problem,
    split: &Split,
    undecided: &[usize],
    choices: &[Option<usize>],
    price: Price,
) -> f64 {
    undecided
        .iter()
        .map(|&table| {
            problem
                .live(table)
                .iter()
                .map(|&option| promise(problem, split, choices, (table, option), price))
                .fold(f64::NEG_INFINITY, f64::max)
        })
        .sum()
}

/// Bounds what one option of an undecided table adds.
pub(super) fn promise(
    problem: &Problem,
    split: &Split,
    choices: &[Option<usize>],
    (table, option): (usize, usize),
    price: Price,
) -> f64 {
    gain(problem, choices, (table, option), price) + split.shares(choices, table, option)
}

/// Returns the value that choosing an option adds to what is decided.
pub(super) fn gain(
    problem: &Problem,
    choices: &[Option<usize>],
    (table, option): (usize, usize),
    price: Price,
) -> f64 {
    let bonds: f64 = problem
        .neighbors(table)
        .iter()
        .filter(|bond| bond.option == option && choices[bond.other] == Some(bond.other_option))
        .map(|bond| bond.npv)
        .sum();
    price.value(&problem.tables()[table].options[option]) + bonds
}
