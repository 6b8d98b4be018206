//! The graph and what can be asked of it.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use lakebed_model::{ColumnRef, TableName, Workload};
use petgraph::{
    graph::{NodeIndex, UnGraph},
    unionfind::UnionFind,
};

use crate::{
    Degeneracy, Edge, EdgeScorer, EdgeStats, FilterStats, GraphError, build,
    score::{check_scores, degeneracy},
};

/// The joins and filters of one window.
///
/// Edges are sorted by score, the largest first, then by table names, then by column pairs.
#[derive(Debug, Clone)]
pub struct JoinGraph {
    statements: u64,
    tables: Vec<TableName>,
    edges: Vec<Edge>,
    filters: Vec<FilterStats>,
    scorer: Option<String>,
    /// Nodes are indexes into `tables`, edge weights are indexes into `edges`.
    links: UnGraph<(), usize>,
}

impl JoinGraph {
    /// Builds the graph of a workload, not scored yet.
    ///
    /// `rows` are the tables' own row counts, for statements that do not count what their scans let
    /// out; for a table it does not name, the most rows that one scan of the window let out stand in.
    #[must_use]
    pub fn build(workload: &Workload, rows: &BTreeMap<TableName, u64>) -> Self {
        let build::Tally { statements, tables, edges, filters } = build::tally(workload, rows);
        tracing::info!(
            statements,
            tables = tables.len(),
            edges = edges.len(),
            filters = filters.len(),
            "join graph built"
        );
        let edges = edges.into_iter().map(|stats| Edge { stats, score: 0.0 }).collect();
        let links = UnGraph::default();
        Self { statements, tables, edges, filters, scorer: None, links }.linked()
    }

    /// Scores every edge and sorts them anew.
    ///
    /// # Errors
    /// Fails when the scorer fails, or does not return one finite value per edge.
    pub fn scored(mut self, scorer: &dyn EdgeScorer) -> Result<Self, GraphError> {
        if let Some(reason) = self.degenerate() {
            tracing::warn!(%reason, "scores will not tell edges apart");
        }
        let mut stats: Vec<EdgeStats> = self.edges.into_iter().map(|edge| edge.stats).collect();
        stats.sort_by(|a, b| identity(a).cmp(&identity(b)));
        let scores = if stats.is_empty() { Vec::new() } else { scorer.score(&stats)? };
        check_scores(scorer.name(), &stats, &scores)?;
        self.edges =
            stats.into_iter().zip(scores).map(|(stats, score)| Edge { stats, score }).collect();
        self.scorer = Some(scorer.name().to_owned());
        tracing::info!(scorer = scorer.name(), edges = self.edges.len(), "join graph scored");
        Ok(self.linked())
    }

    /// Returns how many statements the graph was counted from.
    #[must_use]
    pub const fn statements(&self) -> u64 {
        self.statements
    }

    /// Returns the tables that statements scan or join, by name.
    #[must_use]
    pub fn tables(&self) -> &[TableName] {
        &self.tables
    }

    /// Returns the edges, best first.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the filters, the most frequent first, then by table, column and operator.
    #[must_use]
    pub fn filters(&self) -> &[FilterStats] {
        &self.filters
    }

    /// Returns the scorer's name once the graph is scored.
    #[must_use]
    pub fn scorer(&self) -> Option<&str> {
        self.scorer.as_deref()
    }

    /// Lists the edges at a table, best first; a self join once.
    #[must_use]
    pub fn edges_of(&self, table: &TableName) -> Vec<&Edge> {
        let Ok(node) = self.tables.binary_search(table) else { return Vec::new() };
        let indexes: BTreeSet<usize> =
            self.links.edges(NodeIndex::new(node)).map(|link| *link.weight()).collect();
        indexes.into_iter().map(|index| &self.edges[index]).collect()
    }

    /// Groups the join columns that equalities connect: members of a class hold the same values
    /// wherever the joins match. Classes and their members are sorted.
    #[must_use]
    pub fn column_classes(&self) -> Vec<Vec<ColumnRef>> {
        let equalities: Vec<(ColumnRef, ColumnRef)> = self
            .edges
            .iter()
            .flat_map(|Edge { stats, .. }| {
                stats.pairs.iter().map(|(left, right)| {
                    (
                        ColumnRef { table: stats.left.clone(), column: left.clone() },
                        ColumnRef { table: stats.right.clone(), column: right.clone() },
                    )
                })
            })
            .collect();
        let columns: BTreeSet<&ColumnRef> =
            equalities.iter().flat_map(|(left, right)| [left, right]).collect();
        let columns: Vec<ColumnRef> = columns.into_iter().cloned().collect();
        let index: BTreeMap<&ColumnRef, usize> =
            columns.iter().enumerate().map(|(index, column)| (column, index)).collect();
        let mut sets = UnionFind::new(columns.len());
        for (left, right) in &equalities {
            sets.union(index[left], index[right]);
        }
        classes(&columns, &sets.into_labeling())
    }

    /// Groups the tables that joins connect; a table without joins stands alone. Groups and their
    /// members are sorted.
    #[must_use]
    pub fn components(&self) -> Vec<Vec<TableName>> {
        let mut sets = UnionFind::new(self.tables.len());
        for (left, right) in
            self.links.edge_indices().filter_map(|link| self.links.edge_endpoints(link))
        {
            sets.union(left.index(), right.index());
        }
        classes(&self.tables, &sets.into_labeling())
    }

    /// Tells whether a score that normalizes between smallest and largest is zero for every edge.
    #[must_use]
    pub fn degenerate(&self) -> Option<Degeneracy> {
        degeneracy(&self.edges)
    }

    /// Sorts the edges and rebuilds the links, whose weights are positions in that order.
    fn linked(mut self) -> Self {
        self.edges.sort_by(by_score);
        self.links = UnGraph::with_capacity(self.tables.len(), self.edges.len());
        for _ in &self.tables {
            self.links.add_node(());
        }
        for (index, Edge { stats, .. }) in self.edges.iter().enumerate() {
            let node = |table: &TableName| {
                let position = self.tables.binary_search(table);
                NodeIndex::new(position.expect("every joined table is listed"))
            };
            let (left, right) = (node(&stats.left), node(&stats.right));
            self.links.add_edge(left, right, index);
        }
        self
    }
}

fn identity(stats: &EdgeStats) -> (&TableName, &TableName, &[(String, String)]) {
    (&stats.left, &stats.right, &stats.pairs)
}

fn by_score(a: &Edge, b: &Edge) -> Ordering {
    b.score.total_cmp(&a.score).then_with(|| identity(&a.stats).cmp(&identity(&b.stats)))
}

fn classes<T: Clone + Ord>(members: &[T], labels: &[usize]) -> Vec<Vec<T>> {
    let mut by_label: BTreeMap<usize, Vec<T>> = BTreeMap::new();
    for (member, label) in members.iter().zip(labels) {
        by_label.entry(*label).or_default().push(member.clone());
    }
    let mut classes: Vec<Vec<T>> = by_label.into_values().collect();
    classes.sort_unstable();
    classes
}

#[cfg(test)]
mod tests;
