//! The pairs of columns that statements equate, against what another resolver says.
//!
//! `tests/data/sql/sqlglot_pairs.py` writes the other's answers; `LAKEBED_SQLGLOT_PAIRS` names the
//! file. Every difference has its reason here.

use std::collections::{BTreeMap, BTreeSet};

use super::{Dialect, Tables, lineage, tables, tpc::tpcds};
use crate::{
    Catalog,
    lineage::sql::{rewrite, scope},
};
use lakebed_model::JoinUse;

type Pairs = BTreeSet<(String, String)>;

/// Name, text, pairs.
type Case = (String, String, Vec<(String, String)>);

#[expect(clippy::disallowed_methods, reason = "a test has no configuration file")]
fn cases(suite: &str) -> Option<Vec<Case>> {
    let Some(path) = std::env::var("LAKEBED_SQLGLOT_PAIRS").ok().filter(|path| !path.is_empty())
    else {
        println!("SKIPPED: LAKEBED_SQLGLOT_PAIRS names no file; see tests/data/sql");
        return None;
    };
    let mut file: BTreeMap<String, Vec<Case>> =
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    file.remove(suite)
}

fn pairs(joins: &[JoinUse]) -> Pairs {
    let mut pairs = Pairs::new();
    for join in joins {
        for (left, right) in &join.pairs {
            let (left, right) =
                (format!("{}.{left}", join.left), format!("{}.{right}", join.right));
            pairs.insert(if left <= right { (left, right) } else { (right, left) });
        }
    }
    pairs
}

/// What the walk says, without the planner.
fn walked(sql: &str, catalog: &dyn Catalog) -> Pairs {
    let statement = rewrite::parse(sql, Dialect::DuckDb).unwrap().remove(0);
    let mut query = rewrite::query_of(statement).unwrap();
    rewrite::respell(&mut query);
    let survey = scope::Survey::of(&query);
    let hints = scope::Hints::default();
    pairs(&scope::walk(&query, Dialect::DuckDb, catalog, &hints, &survey).joins)
}

/// Differences as lines; `explained` has those that are known, with the reader they are of.
fn differences(cases: Vec<Case>, catalog: &Tables) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, sql, expected) in cases {
        let expected: Pairs = expected.into_iter().collect();
        let read = pairs(&lineage(&sql, Dialect::DuckDb, catalog).unwrap().joins);
        for (reader, found) in [("read", read), ("walked", walked(&sql, catalog))] {
            for (left, right) in expected.difference(&found) {
                lines.push(format!("{name} {reader} lacks {left}={right}"));
            }
            for (left, right) in found.difference(&expected) {
                lines.push(format!("{name} {reader} adds {left}={right}"));
            }
        }
    }
    lines
}

#[test]
fn tpcds_pairs_are_those_of_sqlglot() {
    let Some(cases) = cases("tpcds") else { return };
    assert_eq!(cases.len(), 99);
    let lines = differences(cases, &tpcds());
    let unexplained: Vec<&String> = lines
        .iter()
        .filter(|line| !TPCDS.iter().any(|(start, _)| line.starts_with(start)))
        .collect();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
}

#[test]
fn made_up_pairs_are_those_of_sqlglot() {
    let Some(cases) = cases("made_up") else { return };
    let catalog = tables(&["ta(id,x,k)", "tb(id,y,k)", "tc(id,z,x)", "td(id,k,w)"]);
    let lines = differences(cases, &catalog);
    assert!(lines.is_empty(), "{} {:#?}", lines.len(), &lines[..lines.len().min(40)]);
}

/// Where a line starts, and why the readers differ.
const TPCDS: [(&str, &str); 3] = [
    ("q38 ", "INTERSECT is a semi join of all columns, as engines run it; the other sees no join"),
    ("q87 ", "EXCEPT is an anti join of all columns, as engines run it; the other sees no join"),
    ("q45 ", "IN within an OR is an existence join; the other's side counts conjuncts only"),
];
