use std::collections::BTreeMap;

use lakebed_model::{Instant, JoinKind, JoinUse, QueryRecord, QueryStatus, TableName, Workload};

use super::{DriftError, DriftMeter, DriftReading, DriftReport, compare};
use crate::{EdgeScorer, EdgeStats, GraphError, JoinGraph, ScoreError};

/// Scores an edge by the number in its left table's column: the test says the score.
#[derive(Debug)]
struct Stated(BTreeMap<&'static str, f64>);

impl EdgeScorer for Stated {
    fn name(&self) -> &'static str {
        "stated"
    }

    fn score(&self, edges: &[EdgeStats]) -> Result<Vec<f64>, ScoreError> {
        Ok(edges.iter().map(|edge| self.0[edge.left.as_str()]).collect())
    }
}

/// The paper's meter: mean of |a − b| / max(a, b, ε).
#[derive(Debug)]
struct Unweighted;

impl DriftMeter for Unweighted {
    fn name(&self) -> &'static str {
        "unweighted"
    }

    fn measure(&self, before: &[f64], after: &[f64]) -> Result<DriftReading, DriftError> {
        let parts: Vec<f64> =
            before.iter().zip(after).map(|(a, b)| (a - b).abs() / a.max(*b).max(1e-9)).collect();
        Ok(DriftReading { distance: parts.iter().sum::<f64>() / parts.len() as f64, parts })
    }
}

#[derive(Debug)]
struct Says(DriftReading);

impl DriftMeter for Says {
    fn name(&self) -> &'static str {
        "says"
    }

    fn measure(&self, _: &[f64], _: &[f64]) -> Result<DriftReading, DriftError> {
        Ok(self.0.clone())
    }
}

#[derive(Debug)]
struct Broken;

impl DriftMeter for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn measure(&self, before: &[f64], _: &[f64]) -> Result<DriftReading, DriftError> {
        Err(DriftError {
            meter: "broken".to_owned(),
            edge_count: before.len(),
            source: "out of fuel".into(),
        })
    }
}

fn window(scores: &[(&'static str, f64)]) -> JoinGraph {
    let joins = scores
        .iter()
        .map(|(table, _)| JoinUse {
            left: TableName::new(*table),
            right: TableName::new("hub"),
            pairs: vec![("k".to_owned(), "k".to_owned())],
            kind: JoinKind::Inner,
            strategy: None,
            planned_strategy: None,
            hint: None,
            confidence: 1.0,
        })
        .collect();
    let record = QueryRecord {
        id: "q".to_owned(),
        started_at: Instant::default(),
        source: "test".to_owned(),
        sql: None,
        fingerprint: String::new(),
        duration_ms: None,
        status: QueryStatus::Finished,
        joins,
        scans: Vec::new(),
        confidence: 1.0,
    };
    let workload = Workload { records: vec![record], ..Workload::default() };
    JoinGraph::build(&workload, &BTreeMap::new())
        .scored(&Stated(scores.iter().copied().collect()))
        .unwrap()
}

fn order(report: &DriftReport) -> Vec<&str> {
    report.edges.iter().map(|edge| edge.left.as_str()).collect()
}

#[test]
fn union_of_edges_is_measured_with_new_edges_first() {
    let before = window(&[("a", 0.8), ("b", 0.5), ("c", 0.2)]);
    let after = window(&[("a", 0.8), ("b", 0.4), ("d", 0.1), ("e", 0.3)]);
    let report = compare(&before, &after, &Unweighted, 0.1).unwrap();
    // Parts by hand: a 0, b 0.1 / 0.5 = 0.2, c 1, d 1, e 1; mean 3.2 / 5.
    assert!((report.distance - 0.64).abs() < 1e-9, "{report:?}");
    assert!(report.replan);
    assert_eq!(order(&report), ["e", "d", "c", "b", "a"]);
    let names = |keys: &[crate::EdgeKey]| -> Vec<String> {
        keys.iter().map(|key| key.left.to_string()).collect()
    };
    assert_eq!(names(&report.new_edges), ["e", "d"]);
    assert_eq!(names(&report.gone_edges), ["c"]);
    let moved = &report.edges[3];
    assert!((moved.before - 0.5).abs() < 1e-12 && (moved.after - 0.4).abs() < 1e-12);
}

#[test]
fn equal_windows_and_a_distance_at_the_threshold_do_not_replan() {
    let graph = window(&[("a", 0.8), ("b", 0.5)]);
    let same = compare(&graph, &graph, &Unweighted, 0.1).unwrap();
    assert!(same.distance < 1e-12 && !same.replan);
    let reading = DriftReading { distance: 0.1, parts: vec![0.1, 0.1] };
    assert!(!compare(&graph, &graph, &Says(reading), 0.1).unwrap().replan);
}

#[test]
fn windows_without_edges_have_distance_zero() {
    let report = compare(&window(&[]), &window(&[]), &Broken, 0.1).unwrap();
    assert!(report.distance < 1e-12 && report.edges.is_empty() && !report.replan);
}

#[track_caller]
fn check_refused(meter: &dyn DriftMeter, threshold: f64, expected: &str) {
    let graph = window(&[("a", 0.8)]);
    let error: GraphError = compare(&graph, &graph, meter, threshold).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn readings_that_are_no_distance_are_refused() {
    let says = |distance, parts| Says(DriftReading { distance, parts });
    check_refused(
        &says(0.5, vec![]),
        0.1,
        "use the reading of `says`: 0 parts for 1 edges, expected one per edge",
    );
    check_refused(
        &says(f64::NAN, vec![0.5]),
        0.1,
        "use the reading of `says`: NaN is not a finite number of at least 0",
    );
    check_refused(
        &says(0.5, vec![-1.0]),
        0.1,
        "use the reading of `says`: -1 is not a finite number of at least 0",
    );
    check_refused(
        &Unweighted,
        f64::NAN,
        "compare with threshold NaN: expected a finite number of at least 0",
    );
    check_refused(&Broken, 0.1, "measure the drift of 1 edges with `broken`");
}
