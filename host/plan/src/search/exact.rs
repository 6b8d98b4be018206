//! Branch and bound.
//!
//! 1. Without budgets, tables that no bond connects do not touch: solve each component by itself.
//!    If the components' best plans together fit the budgets, that is the answer.
//! 2. Otherwise find prices at which they nearly fit ([`super::bound`]), and climb from these and
//!    many other beginnings ([`super::seeded`]) to a good plan.
//! 3. Where all components are small, merge their frontiers under both budgets
//!    ([`super::frontier`]): what is left is the best plan.
//! 4. Otherwise decide table after table, component after component. A branch is cut when its value,
//!    plus the lowest bound any price gives on the rest, does not beat the best plan so far.
//! 5. Past the node limit, and where a component is too large to walk at all, the best plan stands,
//!    with the price bound as its upper bound.
//!
//! Ties go to the plan that rewrites less, then to earlier options.

use super::{
    Problem, Search, Solution,
    bound::{Dual, Price, Relaxed, dual, gain, optimistic, promise},
    exceeds,
    frontier::{Frontier, merge},
    problem::Spent,
    seeded::{best_climb, bounder},
    split::Split,
};

/// Branch and bound with a limit on its steps.
#[derive(Debug, Clone, Copy)]
pub struct Exact {
    /// Steps of the joint search after which the best plan so far is returned unproven.
    pub node_limit: u64,
}

impl Exact {
    /// The limit used unless someone says otherwise: about a second of work on a large problem.
    pub const STANDARD: Self = Self { node_limit: 200_000 };
}

impl Search for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn search(&self, problem: &Problem) -> Solution {
        let components = problem.components();
        if components.iter().any(|component| is_large(problem, component)) {
            let Dual { upper, choices, .. } = dual(problem, bounder(problem));
            let (choices, nodes) = best_climb(problem, choices);
            let best = Incumbent::new(problem, choices);
            let proven = !exceeds(upper, best.npv);
            return best.into_solution(problem, upper, proven, nodes);
        }
        let mut nodes = 0;
        let mut is_complete = true;
        let Dual { prices, upper, choices } = dual(problem, |price| {
            let relaxed = self.solve_components(problem, &components, price);
            nodes += relaxed.nodes;
            is_complete &= relaxed.is_complete;
            relaxed.into_relaxed()
        });
        let is_free = choices.first().is_some_and(|free| problem.fits(free));
        let mut best = Incumbent::new(problem, best_climb(problem, choices.clone()).0);
        for choices in choices {
            best.offer(problem, choices);
        }
        let mut proven = is_free && is_complete;
        if !proven {
            let joint = self.joint(problem, components, &prices);
            if let Some(better) = joint.merged(problem, best.npv) {
                best = better.map_or(best, |choices| Incumbent::new(problem, choices));
                proven = true;
            } else {
                let mut descent = joint.descent(problem, self.node_limit);
                descent.best = best;
                let root = descent.bound();
                descent.run();
                nodes += descent.nodes;
                proven = descent.is_complete;
                best = descent.best;
                if !proven {
                    return best.into_solution(problem, upper.min(root), false, nodes);
                }
            }
        }
        let npv = best.npv;
        best.into_solution(problem, npv, proven, nodes)
    }
}

/// Tables and bonds of a component above which a walk over it gets nowhere in its time.
const LARGE_TABLES: usize = 60;
const LARGE_BONDS: usize = 400;

fn is_large(problem: &Problem, component: &[usize]) -> bool {
    let ends: usize = component.iter().map(|&table| problem.neighbors(table).len()).sum();
    component.len() > LARGE_TABLES || ends / 2 > LARGE_BONDS
}

/// All components with what bounds them at every price.
#[derive(Debug)]
struct Joint {
    components: Vec<Vec<usize>>,
    levels: Vec<Level>,
    /// Per level, the most of each component.
    uppers: Vec<Vec<f64>>,
}

impl Joint {
    /// Merges the components' frontiers: the best choices if they are worth more than `least`, or
    /// nothing at all where there are too many.
    #[expect(clippy::option_option, reason = "not found is an answer, too many is none")]
    fn merged(&self, problem: &Problem, least: f64) -> Option<Option<Vec<usize>>> {
        let frontiers: Vec<Frontier> = self
            .components
            .iter()
            .map(|component| Frontier::of(problem, component))
            .collect::<Option<_>>()?;
        let mut rest = vec![vec![0.0; self.levels.len()]; frontiers.len() + 1];
        for index in (0..frontiers.len()).rev() {
            rest[index] = self
                .uppers
                .iter()
                .zip(&rest[index + 1])
                .map(|(upper, r)| upper[index] + r)
                .collect();
        }
        let bound = |index: usize, value: f64, spent: Spent| {
            let at = |(level, rest): (&Level, &f64)| {
                value + level.refunded.of_rest(problem, spent) + rest
            };
            self.levels.iter().zip(&rest[index]).map(at).fold(f64::INFINITY, f64::min)
        };
        merge(problem, &frontiers, least, bound).ok()
    }

    /// Prepares a walk over all components under the budgets.
    fn descent(self, problem: &Problem, node_limit: u64) -> Descent<'_> {
        let mut descent = Descent::new(problem, &self.components, self.levels, &self.uppers);
        descent.node_limit = node_limit;
        descent.is_budgeted = true;
        descent
    }
}

/// The best plans of all components at a price.
#[derive(Debug)]
struct SolvedComponents {
    uppers: Vec<f64>,
    choices: Vec<usize>,
    nodes: u64,
    is_complete: bool,
}

impl SolvedComponents {
    fn into_relaxed(self) -> Relaxed {
        Relaxed { upper: self.uppers.iter().sum(), choices: self.choices }
    }
}

impl Exact {
    /// Bounds all components at some prices.
    ///
    /// Components that the best price leaves in doubt come last: there the walk turns back most
    /// often, and turns are cheap near the leaves.
    fn joint(&self, problem: &Problem, mut components: Vec<Vec<usize>>, prices: &[Price]) -> Joint {
        let levels: Vec<Level> =
            prices.iter().map(|&price| Level::new(problem, price, price)).collect();
        let solve = |components: &[Vec<usize>]| -> Vec<Vec<f64>> {
            let at = |&price| self.solve_components(problem, components, price).uppers;
            prices.iter().map(at).collect()
        };
        let bounds = solve(&components).into_iter().zip(&levels).map(|(uppers, level)| {
            let refund = level.refunded.of_rest(problem, Spent::default());
            (refund + uppers.iter().sum::<f64>(), level)
        });
        if let Some((_, level)) = bounds.min_by(|a, b| a.0.total_cmp(&b.0)) {
            components.sort_by(|a, b| {
                let doubt = |component: &[usize]| level.margin(problem, component);
                b.len().cmp(&a.len()).then_with(|| doubt(b).total_cmp(&doubt(a)))
            });
        }
        let uppers = solve(&components);
        Joint { components, levels, uppers }
    }

    fn solve_components(
        &self,
        problem: &Problem,
        components: &[Vec<usize>],
        price: Price,
    ) -> SolvedComponents {
        let mut solved = SolvedComponents {
            uppers: Vec::with_capacity(components.len()),
            choices: vec![0; problem.tables().len()],
            nodes: 0,
            is_complete: true,
        };
        let mut level = Level::new(problem, price, Price::default());
        for component in components {
            let alone = std::slice::from_ref(component);
            let mut descent = Descent::new(problem, alone, vec![level], &[vec![0.0]]);
            descent.objective = price;
            // A component is solved some hundred times over, so each time gets a small share.
            descent.node_limit = self.node_limit / 50;
            let root = descent.bound();
            descent.run();
            solved.nodes += descent.nodes;
            solved.is_complete &= descent.is_complete;
            solved.uppers.push(if descent.is_complete { descent.best.npv } else { root });
            for &table in component {
                solved.choices[table] = descent.best.choices[table];
            }
            level = descent.levels.remove(0);
        }
        solved
    }
}

/// The best plan so far.
#[derive(Debug, Clone)]
struct Incumbent {
    choices: Vec<usize>,
    npv: f64,
}

impl Incumbent {
    fn new(problem: &Problem, choices: Vec<usize>) -> Self {
        Self { npv: problem.value(&choices), choices }
    }

    fn offer(&mut self, problem: &Problem, choices: Vec<usize>) {
        let npv = problem.value(&choices);
        if problem.fits(&choices) && exceeds(npv, self.npv) {
            *self = Self { choices, npv };
        }
    }

    fn into_solution(
        mut self,
        problem: &Problem,
        upper: f64,
        proven: bool,
        nodes: u64,
    ) -> Solution {
        problem.settle(&mut self.choices);
        let npv = problem.value(&self.choices);
        Solution { choices: self.choices, npv, upper_bound: upper.max(npv), proven, nodes }
    }
}

/// One price to bound with.
#[derive(Debug)]
struct Level {
    /// What options are charged.
    charged: Price,
    /// What the rest of the budgets is worth.
    refunded: Price,
    split: Split,
}

impl Level {
    fn new(problem: &Problem, charged: Price, refunded: Price) -> Self {
        Self { charged, refunded, split: Split::fit(problem, charged) }
    }

    /// Returns the least lead that a table's best option has over its second best.
    fn margin(&self, problem: &Problem, component: &[usize]) -> f64 {
        let undecided = vec![None; problem.tables().len()];
        let lead = |&table: &usize| {
            let mut promises: Vec<f64> = problem
                .live(table)
                .iter()
                .map(|&option| {
                    promise(problem, &self.split, &undecided, (table, option), self.charged)
                })
                .collect();
            promises.sort_unstable_by(|a, b| b.total_cmp(a));
            promises.get(1).map_or(f64::INFINITY, |second| promises[0] - second)
        };
        component.iter().map(lead).fold(f64::INFINITY, f64::min)
    }
}

/// A depth-first walk over the tables' options.
#[derive(Debug)]
struct Descent<'a> {
    problem: &'a Problem,
    /// What is maximized is value minus this price; zero in the joint search.
    objective: Price,
    /// Whether the budgets hold.
    is_budgeted: bool,
    order: Vec<usize>,
    /// Per position in `order`, where its component ends.
    component_end: Vec<usize>,
    levels: Vec<Level>,
    /// Per position in `order` at which a component begins (or the end), per level: a bound on all
    /// tables from there on.
    rest: Vec<Vec<f64>>,
    node_limit: u64,
    depth: usize,
    choices: Vec<Option<usize>>,
    value: f64,
    spent: Spent,
    best: Incumbent,
    nodes: u64,
    is_complete: bool,
}

impl<'a> Descent<'a> {
    /// Prepares a walk over some components; `uppers` bound each component at each level.
    fn new(
        problem: &'a Problem,
        components: &[Vec<usize>],
        levels: Vec<Level>,
        uppers: &[Vec<f64>],
    ) -> Self {
        let order: Vec<usize> = components.concat();
        let mut component_end = Vec::with_capacity(order.len());
        for component in components {
            let end = component_end.len() + component.len();
            component_end.extend(component.iter().map(|_| end));
        }
        let mut rest = vec![vec![0.0; levels.len()]; order.len() + 1];
        let mut start = order.len();
        for (index, component) in components.iter().enumerate().rev() {
            let end = start;
            start -= component.len();
            rest[start] =
                rest[end].iter().zip(uppers).map(|(rest, upper)| rest + upper[index]).collect();
        }
        let tables = problem.tables().len();
        Self {
            problem,
            objective: Price::default(),
            is_budgeted: false,
            order,
            component_end,
            levels,
            rest,
            node_limit: 0,
            depth: 0,
            choices: vec![None; tables],
            value: 0.0,
            spent: Spent::default(),
            best: Incumbent { choices: vec![0; tables], npv: 0.0 },
            nodes: 0,
            is_complete: true,
        }
    }

    /// Bounds the best plan that the present choices can lead to.
    fn bound(&self) -> f64 {
        (0..self.levels.len()).map(|level| self.bound_at(level)).fold(f64::INFINITY, f64::min)
    }

    fn bound_at(&self, index: usize) -> f64 {
        let level = &self.levels[index];
        let end = self.component_end.get(self.depth).copied().unwrap_or(self.depth);
        let open = &self.order[self.depth..end];
        let refund =
            if self.is_budgeted { level.refunded.of_rest(self.problem, self.spent) } else { 0.0 };
        let promised = optimistic(self.problem, &level.split, open, &self.choices, level.charged);
        self.value + refund + promised + self.rest[end][index]
    }

    /// Walks all branches that may beat the best plan.
    fn run(&mut self) {
        let Some(&table) = self.order.get(self.depth) else {
            if exceeds(self.value, self.best.npv) {
                let choices = self.choices.iter().map(|choice| choice.unwrap_or(0)).collect();
                self.best = Incumbent { choices, npv: self.value };
            }
            return;
        };
        for option in self.branches(table) {
            if self.nodes >= self.node_limit {
                self.is_complete = false;
                return;
            }
            self.nodes += 1;
            let before = (self.value, self.spent);
            let spent = self.spent.plus(&self.problem.tables()[table].options[option]);
            if self.is_budgeted && !self.problem.is_within(spent) {
                continue;
            }
            self.value += gain(self.problem, &self.choices, (table, option), self.objective);
            self.spent = spent;
            self.choices[table] = Some(option);
            self.depth += 1;
            if exceeds(self.bound(), self.best.npv) {
                self.run();
            }
            self.depth -= 1;
            self.choices[table] = None;
            (self.value, self.spent) = before;
        }
    }

    /// Lists a table's options, the most promising first at the level that bounds best here.
    fn branches(&self, table: usize) -> Vec<usize> {
        let options = &self.problem.tables()[table].options;
        let best_level = (0..self.levels.len())
            .min_by(|&a, &b| self.bound_at(a).total_cmp(&self.bound_at(b)))
            .map(|index| &self.levels[index]);
        let Some(Level { charged, split, .. }) = best_level else { return Vec::new() };
        let mut branches: Vec<(f64, usize)> = self
            .problem
            .live(table)
            .iter()
            .map(|&option| {
                let at = (table, option);
                (promise(self.problem, split, &self.choices, at, *charged), option)
            })
            .collect();
        branches.sort_by(|a, b| {
            let cost = |option: usize| (options[option].rewrite_bytes, option);
            b.0.total_cmp(&a.0).then_with(|| cost(a.1).cmp(&cost(b.1)))
        });
        branches.into_iter().map(|(_, option)| option).collect()
    }
}
