//! What the graph holds: join edges and filters with their counts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use lakebed_model::{FilterOperator, JoinKind, JoinStrategy, TableName};

use crate::Figure;

/// Identity of an edge: two tables and all column equalities of one join between them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EdgeKey {
    /// The table whose name sorts first.
    pub left: TableName,
    /// The other table; the same one for a self join.
    pub right: TableName,
    /// Column of `left`, column of `right`; sorted.
    pub pairs: Vec<(String, String)>,
}

impl fmt::Display for EdgeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ⋈ {} on ", self.left, self.right)?;
        for (index, (left, right)) in self.pairs.iter().enumerate() {
            if index > 0 {
                f.write_str(" and ")?;
            }
            write!(f, "{left} = {right}")?;
        }
        Ok(())
    }
}

/// What a window says of one edge. These raw figures are what a scorer gets; none is normalized.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeStats {
    /// The table whose name sorts first.
    pub left: TableName,
    /// The other table; the same one for a self join.
    pub right: TableName,
    /// Column of `left`, column of `right`; sorted.
    pub pairs: Vec<(String, String)>,
    /// Joins on this edge by logical kind; a statement that joins twice counts twice.
    pub kinds: BTreeMap<JoinKind, u64>,
    /// Joins on this edge by the strategy that finally ran, where the log tells.
    pub strategies: BTreeMap<JoinStrategy, u64>,
    /// Joins on this edge by the strategy first planned, where the log tells.
    pub planned_strategies: BTreeMap<JoinStrategy, u64>,
    /// Statements that have this join, each once.
    pub frequency: u64,
    /// F: what these statements count, each for its age; the frequency where none ages.
    pub weight: f64,
    /// D: mean over the statements of the product of the two tables' row counts, as the statements'
    /// scans count them, else the tables' own.
    pub rows_product_mean: f64,
    /// C: mean wall time of the statements in milliseconds, over those that tell.
    pub cost_ms_mean: f64,
    /// Mean bytes that the statements' scans of the two tables read, over those that tell.
    pub bytes_mean: f64,
    /// Figures that nothing tells of this edge: the mean of the other edges stands in, 0 where no
    /// edge knows its own.
    pub assumed: Vec<Figure>,
    /// Mean confidence that the join is read rightly, from 0 to 1.
    pub confidence: f64,
    /// Ids of the statements, sorted.
    pub queries: Vec<String>,
    /// What else the joins say of the edge.
    pub notes: EdgeNotes,
}

/// What the joins of an edge say beyond the figures that scorers get.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EdgeNotes {
    /// Joins that cast a key before they compare it.
    pub cast: u64,
    /// Joins in which nulls match nulls.
    pub null_safe: u64,
    /// Joins that a hint in the statement's text asks to run in some way, by that way.
    pub hints: BTreeMap<JoinStrategy, u64>,
    /// Keys of these joins that are expressions, by the columns in them: column of the left table,
    /// column of the right one.
    pub expressions: BTreeSet<(String, String)>,
    /// Bytes that the joins and the sorts of their inputs spilled, in all; `None` where no log tells.
    pub spill_bytes: Option<u64>,
}

impl EdgeStats {
    /// Returns the edge's identity.
    #[must_use]
    pub fn key(&self) -> EdgeKey {
        EdgeKey { left: self.left.clone(), right: self.right.clone(), pairs: self.pairs.clone() }
    }

    /// Returns the table at the other end, if `table` is at one end.
    #[must_use]
    pub fn partner(&self, table: &TableName) -> Option<&TableName> {
        if *table == self.left {
            Some(&self.right)
        } else if *table == self.right {
            Some(&self.left)
        } else {
            None
        }
    }

    /// Lists the columns of `table` that the edge compares, sorted; both columns for a self join.
    #[must_use]
    pub fn columns_of(&self, table: &TableName) -> Vec<&str> {
        let lefts = self.pairs.iter().filter(|_| *table == self.left).map(|(left, _)| left);
        let rights = self.pairs.iter().filter(|_| *table == self.right).map(|(_, right)| right);
        let mut columns: Vec<&str> = lefts.chain(rights).map(String::as_str).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }
}

/// An edge with the score a scorer gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// The window's figures.
    pub stats: EdgeStats,
    /// The scorer's value: a ranking signal without unit. 0 until the graph is scored.
    pub score: f64,
}

/// How many statements filter a column in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterStats {
    /// The table.
    pub table: TableName,
    /// The column.
    pub column: String,
    /// The comparison.
    pub operator: FilterOperator,
    /// Statements with this filter, each once.
    pub frequency: u64,
    /// How many of these statements have it only because the engine inferred it through a join.
    pub inferred: u64,
}
