//! The search problem, checked once when it is built.

use lakebed_model::{Bytes, TableName};

/// A layout that a table may get.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PlanOption {
    /// Its value by itself, in bytes; may be negative when a bond is to make up for it.
    pub npv: f64,
    /// Bytes to rewrite.
    pub rewrite_bytes: Bytes,
    /// Bytes of old files kept until VACUUM.
    pub storage_bytes: Bytes,
}

/// A table's options; the first keeps the table as it is, for nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct TableOptions {
    /// The table.
    pub table: TableName,
    /// The options, of which one is chosen.
    pub options: Vec<PlanOption>,
}

/// A value that counts only when both of two tables' options are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bond {
    /// Index of a table and of its option.
    pub a: (usize, usize),
    /// Index of another table and of its option.
    pub b: (usize, usize),
    /// The value in bytes.
    pub npv: f64,
}

/// Why options and bonds make no problem.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ProblemError {
    /// The first option of a table is not free.
    #[error("search layouts: option 0 of {table} must keep the table for nothing")]
    NoKeep {
        /// The table.
        table: TableName,
    },
    /// A value is no number.
    #[error("search layouts: value {npv} of {what} is not finite")]
    NotFinite {
        /// The option or bond.
        what: String,
        /// The value.
        npv: f64,
    },
    /// A bond does not join real options of two tables.
    #[error(
        "search layouts: bond {bond} joins {a:?} and {b:?}, expected (table, option) of two different tables, neither keeping"
    )]
    BadBond {
        /// Index of the bond.
        bond: usize,
        /// One end.
        a: (usize, usize),
        /// The other end.
        b: (usize, usize),
    },
}

/// Tables with options, bonds between options, and budgets.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    tables: Vec<TableOptions>,
    bonds: Vec<Bond>,
    rewrite_budget: Option<Bytes>,
    storage_budget: Option<Bytes>,
    /// Per table: own option, other table, its option, value.
    neighbors: Vec<Vec<Neighbor>>,
    /// Per table, the options that may be part of a best choice.
    live: Vec<Vec<usize>>,
}

/// A bond as seen from one of its tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Neighbor {
    pub(crate) option: usize,
    pub(crate) other: usize,
    pub(crate) other_option: usize,
    pub(crate) npv: f64,
}

/// What choices take of the budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spent {
    pub(crate) rewrite: Bytes,
    pub(crate) storage: Bytes,
}

impl Problem {
    /// Checks tables and bonds; no bond and no budget make the tables independent.
    ///
    /// # Errors
    /// Fails when an option 0 is not free, a value is not finite, or a bond's ends do not exist,
    /// keep their tables, or are of one table.
    pub fn new(
        tables: Vec<TableOptions>,
        bonds: Vec<Bond>,
        rewrite_budget: Option<Bytes>,
        storage_budget: Option<Bytes>,
    ) -> Result<Self, ProblemError> {
        for TableOptions { table, options } in &tables {
            if options.first() != Some(&PlanOption::default()) {
                return Err(ProblemError::NoKeep { table: table.clone() });
            }
            if let Some((index, option)) =
                options.iter().enumerate().find(|(_, option)| !option.npv.is_finite())
            {
                let what = format!("option {index} of {table}");
                return Err(ProblemError::NotFinite { what, npv: option.npv });
            }
        }
        let mut neighbors = vec![Vec::new(); tables.len()];
        for (index, &Bond { a, b, npv }) in bonds.iter().enumerate() {
            if !npv.is_finite() {
                return Err(ProblemError::NotFinite { what: format!("bond {index}"), npv });
            }
            let is_real = |(table, option): (usize, usize)| {
                option > 0 && tables.get(table).is_some_and(|t| option < t.options.len())
            };
            if a.0 == b.0 || !is_real(a) || !is_real(b) {
                return Err(ProblemError::BadBond { bond: index, a, b });
            }
            for (own, other) in [(a, b), (b, a)] {
                neighbors[own.0].push(Neighbor {
                    option: own.1,
                    other: other.0,
                    other_option: other.1,
                    npv,
                });
            }
        }
        let live = tables
            .iter()
            .zip(&neighbors)
            .map(|(table, neighbors)| live_options(&table.options, neighbors))
            .collect();
        Ok(Self { tables, bonds, rewrite_budget, storage_budget, neighbors, live })
    }

    /// Returns the tables with their options.
    #[must_use]
    pub fn tables(&self) -> &[TableOptions] {
        &self.tables
    }

    /// Returns the bonds.
    #[must_use]
    pub fn bonds(&self) -> &[Bond] {
        &self.bonds
    }

    /// Returns the bytes that may be rewritten.
    #[must_use]
    pub const fn rewrite_budget(&self) -> Option<Bytes> {
        self.rewrite_budget
    }

    /// Returns the bytes of old files that may be kept.
    #[must_use]
    pub const fn storage_budget(&self) -> Option<Bytes> {
        self.storage_budget
    }

    /// Sums what choices are worth: their options and the bonds between them.
    #[must_use]
    pub fn value(&self, choices: &[usize]) -> f64 {
        let options: f64 =
            self.tables.iter().zip(choices).map(|(table, &choice)| table.options[choice].npv).sum();
        let bonds: f64 = self
            .bonds
            .iter()
            .filter(|bond| choices[bond.a.0] == bond.a.1 && choices[bond.b.0] == bond.b.1)
            .map(|bond| bond.npv)
            .sum();
        options + bonds
    }

    /// Tells whether choices stay within both budgets.
    #[must_use]
    pub fn fits(&self, choices: &[usize]) -> bool {
        self.is_within(self.spent(choices))
    }

    pub(crate) fn spent(&self, choices: &[usize]) -> Spent {
        let mut spent = Spent::default();
        for (table, &choice) in self.tables.iter().zip(choices) {
            spent = spent.plus(&table.options[choice]);
        }
        spent
    }

    pub(crate) fn is_within(&self, spent: Spent) -> bool {
        self.rewrite_budget.is_none_or(|budget| spent.rewrite <= budget)
            && self.storage_budget.is_none_or(|budget| spent.storage <= budget)
    }

    pub(crate) fn neighbors(&self, table: usize) -> &[Neighbor] {
        &self.neighbors[table]
    }

    /// Lists the options of a table without those that another one beats whatever else is chosen.
    pub(crate) fn live(&self, table: usize) -> &[usize] {
        &self.live[table]
    }

    /// Groups the tables that bonds connect, each group in breadth-first order, so that a table
    /// follows close upon the tables it is bonded to.
    pub(crate) fn components(&self) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.tables.len()];
        let mut components = Vec::new();
        for start in 0..self.tables.len() {
            if seen[start] {
                continue;
            }
            seen[start] = true;
            let mut component = vec![start];
            let mut next = 0;
            while let Some(&table) = component.get(next) {
                next += 1;
                for neighbor in &self.neighbors[table] {
                    if !seen[neighbor.other] {
                        seen[neighbor.other] = true;
                        component.push(neighbor.other);
                    }
                }
            }
            components.push(component);
        }
        components
    }

    /// Swaps single tables to options of the same total value that rewrite less, or as much but
    /// come first, until none is left.
    pub(crate) fn settle(&self, choices: &mut [usize]) {
        for _ in 0..=self.tables.len() {
            let mut is_changed = false;
            let mut value = self.value(choices);
            for table in 0..self.tables.len() {
                let own = choices[table];
                let options = &self.tables[table].options;
                let cost = |option: usize| (options[option].rewrite_bytes, option);
                let worth =
                    |option: usize| options[option].npv + self.bonds_of(choices, (table, option));
                let rest = value - worth(own);
                let mut cheaper: Vec<(usize, f64)> = (0..options.len())
                    .filter(|&option| cost(option) < cost(own))
                    .map(|option| (option, rest + worth(option)))
                    .filter(|(_, after)| !super::exceeds(value, *after))
                    .collect();
                cheaper.sort_by_key(|(option, _)| cost(*option));
                for (option, after) in cheaper {
                    choices[table] = option;
                    if self.fits(choices) {
                        (value, is_changed) = (after, true);
                        break;
                    }
                    choices[table] = own;
                }
            }
            if !is_changed {
                break;
            }
        }
    }

    /// Sums the bonds that an option of a table has to what the other tables choose.
    fn bonds_of(&self, choices: &[usize], (table, option): (usize, usize)) -> f64 {
        let bonds = self.neighbors[table].iter();
        let met =
            bonds.filter(|bond| bond.option == option && choices[bond.other] == bond.other_option);
        met.map(|bond| bond.npv).sum()
    }
}

/// Leaves out options that another one equals or beats in value and both costs, of equal ones all
/// but the first, unless bonds may tip the scales.
fn live_options(options: &[PlanOption], neighbors: &[Neighbor]) -> Vec<usize> {
    let has_bond = |option: usize, is_wanted: fn(f64) -> bool| {
        neighbors.iter().any(|bond| bond.option == option && is_wanted(bond.npv))
    };
    let is_beaten_by = |(a, one): (usize, &PlanOption), (b, other): (usize, &PlanOption)| {
        let is_no_better = other.npv >= one.npv
            && other.rewrite_bytes <= one.rewrite_bytes
            && other.storage_bytes <= one.storage_bytes;
        let is_twin = one == other;
        a != b && is_no_better && (!is_twin || b < a) && !has_bond(b, |npv| npv < 0.0)
    };
    let all = || options.iter().enumerate();
    all()
        .filter(|&one| {
            has_bond(one.0, |npv| npv > 0.0) || !all().any(|other| is_beaten_by(one, other))
        })
        .map(|(index, _)| index)
        .collect()
}

impl Spent {
    pub(crate) fn plus(self, option: &PlanOption) -> Self {
        Self {
            rewrite: self.rewrite + option.rewrite_bytes,
            storage: self.storage + option.storage_bytes,
        }
    }
}
