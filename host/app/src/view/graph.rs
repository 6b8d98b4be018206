//! `graph --json`

use std::collections::BTreeMap;

use lakebed_graph::JoinGraph;
use lakebed_model::Workload;
use lakebed_sandbox::Plugin;
use serde::Serialize;

use super::{ParseView, PluginView, WindowView};

/// `graph --json`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphView {
    window: WindowView,
    parse: ParseView,
    scorer: PluginView,
    edges: Vec<EdgeView>,
    filters: Vec<FilterView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct EdgeView {
    left: String,
    right: String,
    pairs: Vec<(String, String)>,
    kinds: BTreeMap<&'static str, u64>,
    strategies: BTreeMap<&'static str, u64>,
    planned_strategies: BTreeMap<&'static str, u64>,
    hints: BTreeMap<&'static str, u64>,
    frequency: u64,
    weight: f64,
    rows_product_mean: f64,
    cost_ms_mean: f64,
    bytes_mean: f64,
    assumed: Vec<&'static str>,
    score: f64,
    confidence: f64,
    queries: Vec<String>,
    cast: u64,
    null_safe: u64,
    expressions: Vec<(String, String)>,
    spill_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct FilterView {
    table: String,
    column: String,
    operator: &'static str,
    frequency: u64,
    inferred: u64,
}

impl GraphView {
    /// Shows a scored graph.
    #[must_use]
    pub fn new(workload: &Workload, graph: &JoinGraph, scorer: &Plugin) -> Self {
        let strategies = |counts: &BTreeMap<lakebed_model::JoinStrategy, u64>| {
            let mut all =
                BTreeMap::from([("sort_merge", 0), ("broadcast", 0), ("shuffle_hash", 0)]);
            all.extend(counts.iter().map(|(strategy, count)| (strategy.as_str(), *count)));
            all
        };
        Self {
            window: workload.window.into(),
            parse: (&workload.report).into(),
            scorer: PluginView::new(scorer),
            edges: graph
                .edges()
                .iter()
                .map(|edge| EdgeView {
                    left: edge.stats.left.to_string(),
                    right: edge.stats.right.to_string(),
                    pairs: edge.stats.pairs.clone(),
                    kinds: edge.stats.kinds.iter().map(|(kind, n)| (kind.as_str(), *n)).collect(),
                    strategies: strategies(&edge.stats.strategies),
                    planned_strategies: strategies(&edge.stats.planned_strategies),
                    hints: edge
                        .stats
                        .notes
                        .hints
                        .iter()
                        .map(|(hint, count)| (hint.as_str(), *count))
                        .collect(),
                    frequency: edge.stats.frequency,
                    weight: edge.stats.weight,
                    rows_product_mean: edge.stats.rows_product_mean,
                    cost_ms_mean: edge.stats.cost_ms_mean,
                    bytes_mean: edge.stats.bytes_mean,
                    assumed: edge.stats.assumed.iter().map(|figure| figure.as_str()).collect(),
                    score: edge.score,
                    confidence: edge.stats.confidence,
                    queries: edge.stats.queries.clone(),
                    cast: edge.stats.notes.cast,
                    null_safe: edge.stats.notes.null_safe,
                    expressions: edge.stats.notes.expressions.iter().cloned().collect(),
                    spill_bytes: edge.stats.notes.spill_bytes,
                })
                .collect(),
            filters: graph
                .filters()
                .iter()
                .map(|filter| FilterView {
                    table: filter.table.to_string(),
                    column: filter.column.clone(),
                    operator: filter.operator.as_str(),
                    frequency: filter.frequency,
                    inferred: filter.inferred,
                })
                .collect(),
        }
    }
}
