//! Join graphs to plan for, and the best plan by trying all: without the search's own code.
//!
//! A graph is as in the paper's comparison of its greedy with the exact optimum (N. Mahore, SSRN
//! 7030626, 2026): 5 to 8 tables, 6 to 12 edges, a rewrite budget of 20 to 50 % of all bytes. The
//! paper does not publish the graphs; these are made up by the recipe of its model:
//!
//! - sizes log-uniform from 1 to 1 000 GB, one to three join columns per table;
//! - an edge pays only when *both* tables are laid out by its columns; then each of its runs reads
//!   30 % less of both tables (the paper's fixed coefficient);
//! - runs within the horizon, discounted, log-uniform from 0.5 to 8: below 3.3 an edge alone does not
//!   pay for the rewrite of its two tables;
//! - value = bytes saved − bytes rewritten. A table is rewritten whole.

use lakebed_model::{Bytes, TableName};
use lakebed_plan::{
    SplitMix64,
    search::{Bond, PlanOption, Problem, ProblemError, TableOptions},
};

const GIGABYTE: f64 = 1e9;
const COEFFICIENT: f64 = 0.30;

/// Tables, joins between their columns, and budgets.
#[derive(Debug, Clone)]
pub(super) struct Graph {
    pub(super) name: String,
    tables: Vec<Table>,
    edges: Vec<Edge>,
    rewrite_budget: u64,
    storage_budget: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Table {
    bytes: u64,
    /// Bytes of old files that a rewrite leaves; they are no part of the value.
    left: u64,
    columns: usize,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    /// Table and column of either end.
    ends: [(usize, usize); 2],
    /// Bytes saved when both ends are laid out by their columns.
    saves: f64,
}

impl Graph {
    /// The nine graphs of the paper's sizes; the sixth is a trap made by hand.
    pub(super) fn nine(seed: u64) -> Vec<Self> {
        const SIZES: [(usize, usize, u32); 9] = [
            (5, 6, 20),
            (5, 7, 30),
            (5, 8, 50),
            (6, 7, 20),
            (6, 9, 30),
            (6, 10, 20),
            (7, 9, 40),
            (8, 10, 30),
            (8, 12, 50),
        ];
        let of = |(number, (tables, edges, percent)): (usize, (usize, usize, u32))| {
            let mut graph = if number == 5 {
                trap()
            } else {
                let mut random = SplitMix64::new(seed ^ ((0xC1 + number as u64) << 32));
                worthwhile(|| made_up(&mut random, tables, edges, f64::from(percent) / 100.0)).0
            };
            graph.name = format!("C{}", number + 1);
            graph
        };
        SIZES.into_iter().enumerate().map(of).collect()
    }

    /// Random graphs of the paper's sizes, every second one with a storage budget too; and how many
    /// were drawn again because no plan of them is worth anything.
    pub(super) fn random(count: usize, seed: u64) -> (Vec<Self>, usize) {
        let mut random = SplitMix64::new(seed);
        let mut again = 0;
        let graphs = (0..count).map(|number| {
            let (mut graph, tries) = worthwhile(|| {
                let (tables, edges) = (5 + random.below(4), 6 + random.below(7));
                let share = 0.2 + 0.3 * random.unit();
                let mut graph = made_up(&mut random, tables, edges, share);
                if number % 2 == 1 {
                    let left: u64 = graph.tables.iter().map(|table| table.left).sum();
                    graph.storage_budget = Some(part(left, 0.15 + 0.3 * random.unit()));
                }
                graph
            });
            graph.name = format!("{number}");
            again += tries - 1;
            graph
        });
        (graphs.collect(), again)
    }

    /// One large graph.
    pub(super) fn large(tables: usize, edges: usize, seed: u64) -> Self {
        made_up(&mut SplitMix64::new(seed ^ 0x1A56E), tables, edges, 0.3)
    }

    /// Poses the graph as the planner's search gets it: option 0 keeps, option `c` + 1 lays the table
    /// out by column `c`.
    pub(super) fn problem(&self) -> Result<Problem, ProblemError> {
        let table = |(index, table): (usize, &Table)| {
            let laid_out = PlanOption {
                npv: -Bytes(table.bytes).as_f64(),
                rewrite_bytes: Bytes(table.bytes),
                storage_bytes: Bytes(table.left),
            };
            let options = std::iter::once(PlanOption::default())
                .chain(std::iter::repeat_n(laid_out, table.columns));
            TableOptions { table: TableName::new(format!("t{index}")), options: options.collect() }
        };
        let bond = |edge: &Edge| {
            let [a, b] = edge.ends.map(|(table, column)| (table, column + 1));
            Bond { a, b, npv: edge.saves }
        };
        Problem::new(
            self.tables.iter().enumerate().map(table).collect(),
            self.edges.iter().map(bond).collect(),
            Some(Bytes(self.rewrite_budget)),
            self.storage_budget.map(Bytes),
        )
    }

    /// The value of the best plan, by trying every one; option 0 keeps, option `c` + 1 is column `c`.
    pub(super) fn optimum(&self) -> f64 {
        let mut plan = vec![0; self.tables.len()];
        let mut best = 0.0f64;
        loop {
            best = best.max(self.value(&plan).unwrap_or(0.0));
            // The next plan: an odometer with a wheel per table.
            let Some(wheel) = (0..plan.len()).find(|&t| plan[t] < self.tables[t].columns) else {
                return best;
            };
            plan[wheel] += 1;
            plan[..wheel].fill(0);
        }
    }

    /// What a plan is worth by the definition, or `None` when it is over a budget.
    fn value(&self, plan: &[usize]) -> Option<f64> {
        let laid_out = || self.tables.iter().zip(plan).filter(|(_, option)| **option > 0);
        let rewritten: u64 = laid_out().map(|(table, _)| table.bytes).sum();
        let left: u64 = laid_out().map(|(table, _)| table.left).sum();
        if rewritten > self.rewrite_budget || self.storage_budget.is_some_and(|most| left > most) {
            return None;
        }
        let is_served =
            |edge: &&Edge| edge.ends.iter().all(|&(table, column)| plan[table] == column + 1);
        let saved: f64 = self.edges.iter().filter(is_served).map(|edge| edge.saves).sum();
        Some(saved - Bytes(rewritten).as_f64())
    }
}

/// Draws until some plan is worth something: a ratio to 0 says nothing. Also counts the draws.
fn worthwhile(mut draw: impl FnMut() -> Graph) -> (Graph, usize) {
    let mut tries = 1;
    loop {
        let graph = draw();
        if graph.optimum() > 0.0 {
            return (graph, tries);
        }
        tries += 1;
    }
}

fn made_up(random: &mut SplitMix64, tables: usize, edges: usize, share: f64) -> Graph {
    let tables: Vec<Table> = (0..tables)
        .map(|_| {
            let bytes = GIGABYTE * 1_000f64.powf(random.unit());
            let bytes = Bytes::from_f64(bytes).0;
            let left = part(bytes, 0.5 + random.unit());
            Table { bytes, left, columns: 1 + random.below(3) }
        })
        .collect();
    let end = |random: &mut SplitMix64, table: usize| (table, random.below(tables[table].columns));
    let edges = (0..edges)
        .map(|index| {
            // The first edges make a tree, so that all tables are connected.
            let a = if index + 1 < tables.len() { index + 1 } else { random.below(tables.len()) };
            let others = if index + 1 < tables.len() { a } else { tables.len() - 1 };
            let b = random.below(others);
            let b = if b >= a { b + 1 } else { b };
            let ends = [end(random, a), end(random, b)];
            let runs = 0.5 * 16f64.powf(random.unit());
            let both = Bytes(tables[a].bytes + tables[b].bytes).as_f64();
            Edge { ends, saves: COEFFICIENT * runs * both }
        })
        .collect();
    let total: u64 = tables.iter().map(|table| table.bytes).sum();
    Graph {
        name: String::new(),
        tables,
        edges,
        rewrite_budget: part(total, share),
        storage_budget: None,
    }
}

/// The edge of the highest value eats the budget of 20 %; two that share a table and fit beside each
/// other are worth 1.754 times as much.
fn trap() -> Graph {
    const SIZES: [u64; 6] = [610, 120, 70, 100, 50, 50];
    let edge = |a: (usize, usize), b: (usize, usize), gigabytes: f64| Edge {
        ends: [a, b],
        saves: gigabytes * GIGABYTE,
    };
    let mut edges = vec![
        edge((1, 0), (2, 0), 290.0),
        edge((3, 0), (4, 0), 240.0),
        edge((3, 0), (5, 0), 135.4),
        edge((1, 1), (4, 1), 20.0),
        edge((2, 1), (5, 1), 10.0),
    ];
    edges.extend((1..6).map(|other| edge((0, 0), (other, 1), 60.0)));
    let bytes = |gigabytes: u64| gigabytes * 1_000_000_000;
    Graph {
        name: String::new(),
        tables: SIZES
            .iter()
            .map(|&size| Table { bytes: bytes(size), left: bytes(size), columns: 2 })
            .collect(),
        edges,
        rewrite_budget: bytes(200),
        storage_budget: None,
    }
}

fn part(bytes: u64, share: f64) -> u64 {
    Bytes::from_f64(Bytes(bytes).as_f64() * share).0
}

#[cfg(test)]
mod tests {
    use lakebed_plan::search::{Exact, Greedy, Search, Seeded};

    use super::Graph;

    #[test]
    fn the_nine_graphs_have_the_papers_sizes_and_are_the_same_every_time() {
        let nine = Graph::nine(0);
        let sizes: Vec<(usize, usize)> =
            nine.iter().map(|graph| (graph.tables.len(), graph.edges.len())).collect();
        let expected = [(5, 6), (5, 7), (5, 8), (6, 7), (6, 9), (6, 10), (7, 9), (8, 10), (8, 12)];
        assert_eq!(sizes, expected);
        assert_eq!(format!("{nine:?}"), format!("{:?}", Graph::nine(0)));
        assert_ne!(format!("{nine:?}"), format!("{:?}", Graph::nine(1)));
    }

    #[test]
    fn the_trap_catches_the_papers_greedy_and_no_other_search() {
        let trap = &Graph::nine(0)[5];
        let problem = trap.problem().unwrap();
        let best = trap.optimum();
        assert!((best - 175.4e9).abs() < 1.0, "{best}");
        let ratio = |search: &dyn Search| search.search(&problem).npv / best;
        assert!((ratio(&Greedy) - 0.570).abs() < 5e-4, "{}", ratio(&Greedy));
        assert!(
            (ratio(&Seeded) - 1.0).abs() < 1e-9 && (ratio(&Exact::STANDARD) - 1.0).abs() < 1e-9
        );
    }
}
