//! The queries of TPC-H and TPC-DS as text.
//!
//! TPC-H's are typed here from the public specification. TPC-DS' come from a file that
//! `tests/data/sql/texts.py` writes, because their templates have terms of their own; its place is in
//! `LAKEBED_SQL_TEXTS`.

use std::collections::{BTreeMap, BTreeSet};

use super::{Dialect, LineageTier, Tables, edges_of, lineage};
use crate::{ColumnType, EmptyCatalog, lineage::sql::SqlLineage};

/// Texts by query number.
pub(super) type Texts = BTreeMap<u64, String>;

/// Reads the file of texts, or says that the test is skipped.
#[expect(clippy::disallowed_methods, reason = "a test has no configuration file")]
pub(super) fn texts(suite: &str) -> Option<Texts> {
    let Some(path) = std::env::var("LAKEBED_SQL_TEXTS").ok().filter(|path| !path.is_empty()) else {
        println!("SKIPPED: LAKEBED_SQL_TEXTS names no file; tests/data/sql/texts.py writes one");
        return None;
    };
    let file: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let texts = file[suite].as_array().unwrap().iter();
    Some(
        texts
            .map(|pair| (pair[0].as_u64().unwrap(), pair[1].as_str().unwrap().to_owned()))
            .collect(),
    )
}

/// Reads a schema file: a table's name, then its columns indented.
pub(super) fn schema(text: &str) -> Tables {
    let mut tables = Tables::new();
    let mut table = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if !line.starts_with(' ') {
            table = line.to_owned();
            continue;
        }
        for column in line.split_whitespace() {
            let (name, kind) = column.split_once(':').unwrap();
            let kind = match kind {
                "i" => ColumnType::Integer,
                "m" => ColumnType::Decimal { scale: 2 },
                "d" => ColumnType::Date,
                _ => ColumnType::Text,
            };
            tables.entry(table.clone()).or_default().push((name.to_owned(), kind));
        }
    }
    tables
}

pub(super) fn tpcds() -> Tables {
    schema(include_str!("tpcds_schema.txt"))
}

fn tpch() -> Tables {
    schema(include_str!("tpch_schema.txt"))
}

/// The typed texts of TPC-H.
pub(super) fn tpch_texts() -> Texts {
    let text = include_str!("tpch22.sql");
    text.split("-- q")
        .skip(1)
        .map(|part| {
            let (number, sql) = part.split_once('\n').unwrap();
            (number.trim().parse().unwrap(), sql.trim().to_owned())
        })
        .collect()
}

/// Classes of columns that a query equates, each sorted.
fn classes<'e>(pairs: impl Iterator<Item = (&'e str, &'e str)>) -> BTreeSet<BTreeSet<String>> {
    let mut classes: Vec<BTreeSet<String>> = Vec::new();
    for (left, right) in pairs {
        let mut class = BTreeSet::from([left.to_owned(), right.to_owned()]);
        classes.retain(|known| {
            let touches = known.contains(left) || known.contains(right);
            if touches {
                class.extend(known.iter().cloned());
            }
            !touches
        });
        classes.push(class);
    }
    classes.into_iter().collect()
}

fn pairs_of(found: &SqlLineage) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for join in &found.joins {
        for (left, right) in &join.pairs {
            pairs.push((format!("{}.{left}", join.left), format!("{}.{right}", join.right)));
        }
    }
    pairs
}

#[derive(Default)]
struct Expected {
    edges: Vec<String>,
    kind: Option<String>,
    composite: Vec<Vec<String>>,
    selves: Vec<String>,
}

/// Reads the expectations: their file has one value a line, each of which is JSON as well.
fn tpch_expected() -> BTreeMap<String, Expected> {
    let mut all: BTreeMap<String, Expected> = BTreeMap::new();
    let mut name = String::new();
    for line in include_str!("tpch22_edges.toml").lines().filter(|line| !line.starts_with('#')) {
        if let Some(section) = line.strip_prefix('[') {
            name = section.trim_end_matches(']').to_owned();
            continue;
        }
        let Some((key, value)) = line.split_once(" = ") else { continue };
        let expected = all.entry(name.clone()).or_default();
        match key {
            "edges" => expected.edges = serde_json::from_str(value).unwrap(),
            "kind" => expected.kind = serde_json::from_str(value).unwrap(),
            "composite" => expected.composite = serde_json::from_str(value).unwrap(),
            "self" => expected.selves = serde_json::from_str(value).unwrap(),
            other => panic!("{other}"),
        }
    }
    assert_eq!(all.len(), 20);
    all
}

#[track_caller]
fn check_tpch(number: u64, sql: &str, expected: &Expected) {
    let found = lineage(sql, Dialect::Spark, &tpch()).unwrap_or_else(|e| panic!("q{number}: {e}"));
    assert_eq!(found.tier, LineageTier::Resolved, "q{number} {:?}", found.losses);
    assert!(found.losses.is_empty(), "q{number}: {:?}", found.losses);
    let pairs = pairs_of(&found);
    let found_classes = classes(pairs.iter().map(|(l, r)| (l.as_str(), r.as_str())));
    let wanted = expected.edges.iter().chain(&expected.selves);
    let wanted: Vec<(&str, &str)> = wanted.map(|edge| edge.split_once('=').unwrap()).collect();
    assert_eq!(
        found_classes,
        classes(wanted.into_iter()),
        "q{number}: {:?}",
        edges_of(&found.joins)
    );
    for edge in &expected.selves {
        let (left, right) = edge.split_once('=').unwrap();
        let is_it = |(l, r): &(String, String)| l == left && r == right;
        assert!(pairs.iter().any(is_it), "q{number}: no {edge}");
    }
    for composite in &expected.composite {
        let wanted: BTreeSet<BTreeSet<&str>> =
            composite.iter().map(|edge| edge.split('=').collect()).collect();
        let is_it = found.joins.iter().any(|join| {
            let names: Vec<(String, String)> = join
                .pairs
                .iter()
                .map(|(l, r)| (format!("{}.{l}", join.left), format!("{}.{r}", join.right)))
                .collect();
            let pairs: BTreeSet<BTreeSet<&str>> =
                names.iter().map(|(l, r)| BTreeSet::from([l.as_str(), r.as_str()])).collect();
            pairs == wanted
        });
        assert!(is_it, "q{number}: no {composite:?} in {:?}", edges_of(&found.joins));
    }
    if let Some(kind) = &expected.kind {
        let kind = kind.replace(' ', "_");
        assert!(found.joins.iter().all(|join| join.kind.as_str() == kind), "q{number}");
    }
}

#[test]
fn the_22_queries_of_tpch_have_their_edges() {
    let mut expected = tpch_expected();
    let mut all = vec![tpch_texts()];
    all.extend(texts("tpch"));
    for texts in all {
        assert_eq!(texts.len(), 22);
        for (number, sql) in texts {
            let name = format!("q{number:02}");
            let expected = expected.entry(name).or_default();
            check_tpch(number, &sql, expected);
        }
    }
}

/// By hand from the texts: which edges are not inner ones.
#[test]
fn the_edges_of_tpch_have_their_kinds() {
    let other_than_inner: BTreeMap<u64, Vec<&str>> = BTreeMap::from([
        (4, vec!["lineitem.l_orderkey=orders.o_orderkey left_semi"]),
        (13, vec!["customer.c_custkey=orders.o_custkey left_outer"]),
        (16, vec!["partsupp.ps_suppkey=supplier.s_suppkey left_anti"]),
        (18, vec!["lineitem.l_orderkey=orders.o_orderkey left_semi"]),
        (
            20,
            vec![
                "part.p_partkey=partsupp.ps_partkey left_semi",
                "partsupp.ps_suppkey=supplier.s_suppkey left_semi",
            ],
        ),
        (
            21,
            vec![
                "lineitem.l_orderkey=lineitem.l_orderkey left_anti",
                "lineitem.l_orderkey=lineitem.l_orderkey left_semi",
            ],
        ),
        (22, vec!["customer.c_custkey=orders.o_custkey left_anti"]),
    ]);
    for (number, sql) in tpch_texts() {
        let found = lineage(&sql, Dialect::Spark, &tpch()).unwrap();
        let mut edges = edges_of(&found.joins);
        edges.retain(|edge| !edge.ends_with(" inner"));
        edges.dedup();
        let expected = other_than_inner.get(&number).cloned().unwrap_or_default();
        assert_eq!(edges, expected, "q{number}");
    }
}

/// Without a catalog all names of TPC-H are unqualified and most statements read several tables:
/// what cannot be told is said, and nothing is made up.
#[test]
fn tpch_without_a_catalog_makes_nothing_up() {
    let expected = tpch_expected();
    for (number, sql) in tpch_texts() {
        let found = lineage(&sql, Dialect::Spark, &EmptyCatalog).unwrap();
        let wanted = expected.get(&format!("q{number:02}"));
        let wanted: Vec<(&str, &str)> = wanted
            .iter()
            .flat_map(|e| e.edges.iter().chain(&e.selves))
            .map(|edge| edge.split_once('=').unwrap())
            .collect();
        let closed = classes(wanted.into_iter());
        for (left, right) in pairs_of(&found) {
            let is_right =
                closed.iter().any(|class| class.contains(&left) && class.contains(&right));
            assert!(is_right, "q{number}: {left}={right}");
        }
        let is_whole = found.joins.len() >= wanted_len(expected.get(&format!("q{number:02}")));
        assert!(is_whole || !found.losses.is_empty(), "q{number} lost edges in silence");
    }
}

fn wanted_len(expected: Option<&Expected>) -> usize {
    usize::from(expected.is_some_and(|expected| !expected.edges.is_empty()))
}

/// None of the 99 may be lost, and at most two may be read by their scopes alone.
#[test]
fn the_99_queries_of_tpcds_are_planned() {
    let Some(texts) = texts("tpcds") else { return };
    assert_eq!(texts.len(), 99);
    let catalog = tpcds();
    let mut other: BTreeMap<u64, String> = BTreeMap::new();
    let mut tiers: BTreeMap<LineageTier, usize> = BTreeMap::new();
    for (number, sql) in &texts {
        match lineage(sql, Dialect::DuckDb, &catalog) {
            Ok(found) => {
                *tiers.entry(found.tier).or_default() += 1;
                if found.tier > LineageTier::StubFunctions || !found.losses.is_empty() {
                    other.insert(*number, format!("{:?} {:?}", found.tier, found.losses));
                }
            }
            Err(error) => {
                other.insert(*number, error.to_string());
            }
        }
    }
    println!("tiers of TPC-DS: {tiers:?}");
    assert!(other.len() <= 2, "{other:#?}");
}
