//! One option per table, within the budgets, for the most value.
//!
//! The problem is a quadratic multiple-choice knapsack: values of pairs ([`Bond`]) count only when
//! both ends are chosen, so value is not submodular, no greedy rule has a guarantee, and every
//! answer carries an upper bound instead.

mod bound;
mod climb;
mod exact;
mod frontier;
mod greedy;
mod problem;
mod seeded;
mod split;
mod swap;

use std::fmt;

pub use exact::Exact;
pub use greedy::Greedy;
pub use problem::{Bond, PlanOption, Problem, ProblemError, TableOptions};
pub use seeded::Seeded;

/// Every search there is, by preference.
pub static ALL_SEARCHES: [&dyn Search; 3] = [&Exact::STANDARD, &Seeded, &Greedy];

/// Chooses an option for every table.
///
/// Implementers must stay within both budgets, must return the choices' own value and an upper
/// bound not below it, must set `proven` only when no choice is better, and must give the same
/// answer to the same problem. They must end without a clock: a bound on work counts steps.
/// [`crate::contract`] checks all that.
pub trait Search: fmt::Debug + Send + Sync {
    /// Returns the search's name on the command line.
    fn name(&self) -> &'static str;

    /// Searches a problem.
    fn search(&self, problem: &Problem) -> Solution;
}

/// A choice of options and how good it is known to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The chosen option of each table; 0 keeps the table as it is.
    pub choices: Vec<usize>,
    /// The choices' value.
    pub npv: f64,
    /// No choices within the budgets are worth more than this.
    pub upper_bound: f64,
    /// Whether the choices are known to be the best.
    pub proven: bool,
    /// Steps of the search.
    pub nodes: u64,
}

/// Values closer than this, relative to their size, count as equal.
pub(crate) const TOLERANCE: f64 = 1e-9;

/// Tells whether `a` is larger than `b` by more than rounding.
pub(crate) fn exceeds(a: f64, b: f64) -> bool {
    a > b + TOLERANCE * b.abs().max(1.0)
}

#[cfg(test)]
mod tests;
