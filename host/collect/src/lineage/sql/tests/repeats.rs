//! Statements that come again with other constants are read without planning, to the same facts.

use super::{Dialect, tpch};
use crate::lineage::sql::{LineageReader, ReaderCounts, SqlText};
use lakebed_model::Instant;

fn text(sql: &str) -> SqlText<'_> {
    SqlText { sql, dialect: Dialect::Spark, session: None, at: Instant::default() }
}

#[test]
fn other_constants_are_read_anew_and_joins_stand() {
    let catalog = tpch();
    let sql = |low: &str, high: &str, modes: &str| {
        format!(
            "SELECT 1 FROM orders, lineitem WHERE o_orderkey = l_orderkey \
             AND l_shipdate >= DATE '{low}' AND l_shipdate < DATE '{high}' + INTERVAL '1' YEAR \
             AND l_shipmode IN ({modes}) AND o_orderkey BETWEEN 5 AND 9"
        )
    };
    let first = sql("1994-01-01", "1994-01-01", "'MAIL', 'AIR'");
    let second = sql("1995-03-01", "1996-02-01", "'SHIP', 'RAIL', 'FOB'");
    let mut reader = LineageReader::new(&catalog);
    let planned = reader.read(&text(&first)).unwrap();
    let repeated = reader.read(&text(&second)).unwrap();
    assert_eq!(reader.counts(), ReaderCounts { planned: 1, repeated: 1, same: 0 });
    let again = LineageReader::new(&catalog).read(&text(&second)).unwrap();
    assert_eq!(repeated, again);
    assert_eq!(repeated.joins, planned.joins);
    assert_ne!(repeated.scans, planned.scans);
    reader.read(&text(&first)).unwrap();
    assert_eq!(reader.counts(), ReaderCounts { planned: 1, repeated: 1, same: 1 });
}

/// The same text with each number and year moved on.
fn moved_on(sql: &str) -> String {
    sql.replace("199", "198").replace("= 1,", "= 2,").replace(" 10 ", " 11 ")
}

/// Prints statements a second, cold and repeated; the numbers are for people, that repeating is
/// faster is not.
#[test]
#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn repeated_statements_of_tpcds_are_read_without_planning() {
    let Some(texts) = super::tpc::texts("tpcds") else { return };
    let catalog = super::tpc::tpcds();
    let duck = |sql| SqlText { dialect: Dialect::DuckDb, ..text(sql) };
    let mut reader = LineageReader::new(&catalog);
    let started = std::time::Instant::now();
    for sql in texts.values() {
        reader.read(&duck(sql)).unwrap();
    }
    let cold = started.elapsed();
    let others: Vec<String> = texts.values().map(|sql| moved_on(sql)).collect();
    let started = std::time::Instant::now();
    let mut found = Vec::new();
    for sql in &others {
        found.push(reader.read(&duck(sql)).unwrap());
    }
    let repeated = started.elapsed();
    let counts = reader.counts();
    let rate = |time: std::time::Duration| 99.0 / time.as_secs_f64();
    println!("cold {:.0}/s, repeated {:.0}/s, {counts:?}", rate(cold), rate(repeated));
    // What a repeated statement gives is what planning it gives.
    let mut differing = Vec::new();
    for ((number, sql), found) in texts.keys().zip(&others).zip(found) {
        if LineageReader::new(&catalog).read(&duck(sql)).unwrap() != found {
            differing.push(number);
        }
    }
    assert!(differing.is_empty(), "{differing:?}");
    assert!(counts.repeated + counts.same > 80, "{counts:?}");
}
