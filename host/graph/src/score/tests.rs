use std::collections::BTreeMap;

use lakebed_model::TableName;

use super::{EdgeScorer, jis::Jis};
use crate::EdgeStats;

fn edge(frequency: u64, rows_product_mean: f64, cost_ms_mean: f64) -> EdgeStats {
    EdgeStats {
        left: TableName::new("a"),
        right: TableName::new("b"),
        pairs: vec![("k".to_owned(), "k".to_owned())],
        kinds: BTreeMap::new(),
        strategies: BTreeMap::new(),
        planned_strategies: BTreeMap::new(),
        frequency,
        weight: frequency as f64,
        rows_product_mean,
        cost_ms_mean,
        bytes_mean: 0.0,
        assumed: Vec::new(),
        confidence: 1.0,
        queries: Vec::new(),
        notes: crate::EdgeNotes::default(),
    }
}

#[track_caller]
fn check(edges: &[EdgeStats], expected: &[f64]) {
    let scores = Jis.score(edges).unwrap();
    assert_eq!(scores.len(), expected.len());
    for (score, expected) in scores.iter().zip(expected) {
        assert!((score - expected).abs() < 5e-4, "{scores:?}, expected {expected}");
    }
}

#[test]
fn join_importance_meets_the_papers_worked_values() {
    // Smallest and largest fix the scales: F from 10 to 110, log10(D + 1) from 0 to 10, C from 0 to
    // 1000. Balanced: 0.5 · 0.5 · 0.5. Frequent but small and cheap: 0.9 · 0.05 · 0.05.
    check(
        &[
            edge(10, 0.0, 0.0),
            edge(110, 1e10 - 1.0, 1000.0),
            edge(60, 1e5 - 1.0, 500.0),
            edge(100, 10f64.powf(0.5) - 1.0, 50.0),
        ],
        &[0.0, 1.0, 0.125, 0.002],
    );
}

#[test]
fn join_importance_is_zero_for_a_single_edge_and_for_equal_edges() {
    check(&[edge(5, 1e6, 10.0)], &[0.0]);
    check(&[edge(5, 1e6, 10.0), edge(5, 1e9, 10.0)], &[0.0, 0.0]);
}
