//! How much of a bond each of its two tables may count on, so that a sum over tables bounds a plan.
//!
//! Values of options and bonds make a pairwise model; a bound that adds up each table's best option
//! must hand every bond out to its ends. Any split bounds from above as long as both ends' shares
//! together cover the bond. Starting from halves, the shares are improved pair by pair (A. Globerson
//! and T. Jaakkola, "Fixing max-product", NIPS 2007, the edge-based update):
//!
//! 1. take both ends' shares back; let `A` and `B` be what their options are worth without them;
//! 2. an option of `a` gets half of (the most that `b` can make of the bond with it − its own `A`),
//!    an option of `b` the same the other way round.
//!
//! The bound never rises, and where the bonds form a tree it comes down to the best plan's value.

use super::{Problem, bound::Price};

/// Improvements at most.
const SWEEPS: usize = 40;
/// Relative fall of the bound below which improving stops.
const MIN_FALL: f64 = 1e-5;

/// The shares of all bonds at a price.
#[derive(Debug)]
pub(super) struct Split {
    pairs: Vec<Pair>,
    /// Per table, its pairs and which end it is.
    ends: Vec<Vec<(usize, End)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    A,
    B,
}

/// All bonds between two tables.
#[derive(Debug)]
struct Pair {
    a: usize,
    b: usize,
    /// Per option of `a`, per option of `b`: what choosing both is worth.
    worth: Vec<Vec<f64>>,
    /// Per option of `a`: its share.
    share_a: Vec<f64>,
    /// Per option of `b`: its share.
    share_b: Vec<f64>,
}

impl Split {
    /// Splits the bonds so that the bound at a price is low.
    pub(super) fn fit(problem: &Problem, price: Price) -> Self {
        let mut split = Self::halves(problem);
        split.improve(problem, price, SWEEPS);
        split
    }

    /// Improves the shares for a price, in at most so many rounds; what was good at another price is
    /// a good beginning.
    pub(super) fn improve(&mut self, problem: &Problem, price: Price, sweeps: usize) {
        if self.pairs.is_empty() {
            return;
        }
        let mut beliefs: Vec<Vec<f64>> = problem
            .tables()
            .iter()
            .enumerate()
            .map(|(table, options)| {
                let own = options.options.iter().enumerate();
                own.map(|(option, facts)| {
                    let shares: f64 =
                        self.ends[table].iter().map(|&at| self.share_at(at, option)).sum();
                    price.value(facts) + shares
                })
                .collect()
            })
            .collect();
        let mut bound = bound_of(&beliefs);
        let mut most = Most::default();
        for _ in 0..sweeps {
            for pair in &mut self.pairs {
                pair.improve(&mut beliefs, &mut most);
            }
            let lower = bound_of(&beliefs);
            let is_settled = bound - lower <= MIN_FALL * bound.abs().max(1.0);
            bound = lower;
            if is_settled {
                break;
            }
        }
    }

    /// Sums the shares that an option of a table has in bonds to undecided tables.
    pub(super) fn shares(&self, choices: &[Option<usize>], table: usize, option: usize) -> f64 {
        self.ends[table]
            .iter()
            .filter(|(pair, end)| choices[self.pairs[*pair].other(*end)].is_none())
            .map(|&at| self.share_at(at, option))
            .sum()
    }

    /// Splits every bond into halves.
    pub(super) fn halves(problem: &Problem) -> Self {
        let mut pairs: Vec<Pair> = Vec::new();
        let mut ends: Vec<Vec<(usize, End)>> = vec![Vec::new(); problem.tables().len()];
        for bond in problem.bonds() {
            let (a, b) = if bond.a.0 < bond.b.0 { (bond.a, bond.b) } else { (bond.b, bond.a) };
            let known = ends[a.0].iter().find(|(pair, _)| pairs[*pair].is_of(a.0, b.0));
            let index = match known {
                Some(&(index, _)) => index,
                None => {
                    let options = |table: usize| problem.tables()[table].options.len();
                    pairs.push(Pair::new((a.0, options(a.0)), (b.0, options(b.0))));
                    ends[a.0].push((pairs.len() - 1, End::A));
                    ends[b.0].push((pairs.len() - 1, End::B));
                    pairs.len() - 1
                }
            };
            pairs[index].worth[a.1][b.1] += bond.npv;
        }
        for pair in &mut pairs {
            pair.halve();
        }
        Self { pairs, ends }
    }

    fn share_at(&self, (pair, end): (usize, End), option: usize) -> f64 {
        match end {
            End::A => self.pairs[pair].share_a[option],
            End::B => self.pairs[pair].share_b[option],
        }
    }
}

impl Pair {
    fn new((a, options_a): (usize, usize), (b, options_b): (usize, usize)) -> Self {
        Self {
            a,
            b,
            worth: vec![vec![0.0; options_b]; options_a],
            share_a: vec![0.0; options_a],
            share_b: vec![0.0; options_b],
        }
    }

    fn is_of(&self, a: usize, b: usize) -> bool {
        self.a == a && self.b == b
    }

    fn other(&self, end: End) -> usize {
        match end {
            End::A => self.b,
            End::B => self.a,
        }
    }

    /// Gives each end half of the best it can make of the bonds.
    fn halve(&mut self) {
        for (option_a, row) in self.worth.iter().enumerate() {
            for (option_b, &worth) in row.iter().enumerate() {
                let half = worth.max(0.0) / 2.0;
                self.share_a[option_a] = self.share_a[option_a].max(half);
                self.share_b[option_b] = self.share_b[option_b].max(half);
            }
        }
    }

    /// Makes the shares the best for this pair, all else being as it is.
    fn improve(&mut self, beliefs: &mut [Vec<f64>], most: &mut Most) {
        for (table, shares) in [(self.a, &self.share_a), (self.b, &self.share_b)] {
            for (belief, share) in beliefs[table].iter_mut().zip(shares) {
                *belief -= share;
            }
        }
        most.a.clear();
        most.b.clear();
        most.b.resize(self.share_b.len(), f64::NEG_INFINITY);
        for (row, own_a) in self.worth.iter().zip(&beliefs[self.a]) {
            let mut best = f64::NEG_INFINITY;
            for ((worth, own_b), most_b) in row.iter().zip(&beliefs[self.b]).zip(&mut most.b) {
                best = best.max(worth + own_b);
                *most_b = most_b.max(worth + own_a);
            }
            most.a.push(best);
        }
        for (table, shares, most) in
            [(self.a, &mut self.share_a, &most.a), (self.b, &mut self.share_b, &most.b)]
        {
            for ((belief, share), most) in beliefs[table].iter_mut().zip(shares).zip(most) {
                *share = (most - *belief) / 2.0;
                *belief += *share;
            }
        }
    }
}

/// The most that each option of a pair's ends can make of the pair: room that is used again.
#[derive(Debug, Default)]
struct Most {
    a: Vec<f64>,
    b: Vec<f64>,
}

fn bound_of(beliefs: &[Vec<f64>]) -> f64 {
    beliefs.iter().map(|belief| belief.iter().copied().fold(f64::NEG_INFINITY, f64::max)).sum()
}
