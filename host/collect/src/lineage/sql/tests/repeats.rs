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

/// The same text with each number of three digits or more, outside strings, another one.
fn moved_on(sql: &str) -> String {
    let mut out: Vec<u8> = sql.bytes().collect();
    let (mut quoted, mut digits) = (false, 0);
    for at in 0..out.len() {
        let before = if at == 0 { b' ' } else { out[at - 1] };
        let c = out[at];
        quoted ^= c == b'\'' || c == b'"';
        let goes_on = c.is_ascii_digit()
            && (digits > 0 || !before.is_ascii_alphanumeric() && before != b'_' && before != b'.');
        digits = if goes_on && !quoted { digits + 1 } else { 0 };
        let ends =
            out.get(at + 1).is_none_or(|next| !next.is_ascii_alphanumeric() && *next != b'.');
        if digits >= 3 && ends {
            out[at] = if c == b'9' { b'8' } else { c + 1 };
        }
    }
    String::from_utf8(out).unwrap()
}

/// The time this thread has had a processor, which others on the machine do not change.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds: f64 = text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0);
    nanoseconds / 1e9
}

/// Prints statements a second of one core, cold and repeated; the numbers are for people. That the
/// facts are the same is not.
#[test]
fn repeated_statements_of_tpcds_are_read_without_planning() {
    let Some(texts) = super::tpc::texts("tpcds") else { return };
    let catalog = super::tpc::tpcds();
    let duck = |sql| SqlText { dialect: Dialect::DuckDb, ..text(sql) };
    let mut reader = LineageReader::new(&catalog);
    let others: Vec<String> = texts.values().map(|sql| moved_on(sql)).collect();
    reader.read(&duck("SELECT 1 FROM item WHERE i_item_sk = 5")).unwrap();
    let started = processor_seconds();
    for sql in texts.values() {
        reader.read(&duck(sql)).unwrap();
    }
    let cold = processor_seconds() - started;
    let mut found = Vec::new();
    let started = processor_seconds();
    for sql in &others {
        found.push(reader.read(&duck(sql)).unwrap());
    }
    let repeated = processor_seconds() - started;
    let counts = reader.counts();
    let started = processor_seconds();
    for sql in &others {
        reader.read(&duck(sql)).unwrap();
    }
    let same = processor_seconds() - started;
    let rate = |time: f64| 99.0 / time;
    println!(
        "cold {:.0}/s, repeated {:.0}/s, same {:.0}/s, {counts:?}",
        rate(cold),
        rate(repeated),
        rate(same)
    );
    // What a repeated statement gives is what planning it gives.
    let mut differing = Vec::new();
    for ((number, sql), found) in texts.keys().zip(&others).zip(found) {
        let planned = LineageReader::new(&catalog).read(&duck(sql)).unwrap();
        if planned != found {
            let pairs = planned.scans.iter().zip(&found.scans);
            pairs.filter(|(a, b)| a != b).for_each(|(a, b)| println!("{a:?}\n{b:?}"));
            println!("{} {}", planned.joins == found.joins, planned.losses == found.losses);
            differing.push(number);
        }
    }
    assert!(differing.is_empty(), "{differing:?}");
    assert!(counts.repeated > 80, "{counts:?}");
}

/// Prints which step of reading TPC-DS takes how long on one core.
#[test]
fn the_steps_of_a_cold_statement_take_their_time() {
    use crate::lineage::sql::{optimize, resolve, rewrite, scope, stubs};
    let Some(texts) = super::tpc::texts("tpcds") else { return };
    let catalog = super::tpc::tpcds();
    let mut times = [
        ("tokens", 0.0),
        ("parse", 0.0),
        ("respell", 0.0),
        ("walk", 0.0),
        ("plan", 0.0),
        ("optimize", 0.0),
        ("all of resolve", 0.0),
    ];
    for sql in texts.values() {
        let mut at = processor_seconds();
        let mut lap = |step: usize| {
            let now = processor_seconds();
            times[step].1 += now - at;
            at = now;
        };
        let tokens = rewrite::Text::read(sql, Dialect::DuckDb).unwrap();
        lap(0);
        let (mut statements, _) = tokens.statements();
        lap(1);
        let mut query = rewrite::query_of(statements.remove(0)).unwrap();
        rewrite::respell(&mut query);
        lap(2);
        let walked = scope::walk(&query, Dialect::DuckDb, &catalog, &tokens.hints);
        lap(3);
        let planned = stubs::plan(&query, &catalog, &walked.needed).unwrap();
        lap(4);
        optimize::run(planned.plan.clone()).unwrap();
        lap(5);
        resolve::lineage(&planned).unwrap();
        lap(6);
    }
    for (step, seconds) in times {
        println!("{step}: {:.0} µs a statement", seconds / 99.0 * 1e6);
    }
}

/// Where the plan and the walk of a statement say different things of its scans, statements of its
/// fingerprint are planned each time: few do.
#[test]
fn plans_and_walks_of_tpcds_agree_on_scans() {
    use crate::lineage::sql::{resolve, rewrite, scope, stubs};
    let Some(texts) = super::tpc::texts("tpcds") else { return };
    let catalog = super::tpc::tpcds();
    let mut differing = 0;
    for (number, sql) in &texts {
        let tokens = rewrite::Text::read(sql, Dialect::DuckDb).unwrap();
        let mut query = rewrite::query_of(tokens.statements().0.remove(0)).unwrap();
        rewrite::respell(&mut query);
        let walked = scope::walk(&query, Dialect::DuckDb, &catalog, &tokens.hints);
        let planned = stubs::plan(&query, &catalog, &walked.needed).unwrap();
        let planned = resolve::lineage(&planned).unwrap();
        let show = |scans: &[lakebed_model::ScanUse]| -> Vec<String> {
            let mut shown: Vec<String> = scans
                .iter()
                .map(|scan| {
                    let filters: Vec<String> = scan
                        .filters
                        .iter()
                        .map(|f| {
                            let range = f.range.as_ref().map(ToString::to_string);
                            let (column, operator) = (&f.column.column, f.operator.as_str());
                            format!("{column} {operator} {range:?} {}", f.inferred)
                        })
                        .collect();
                    format!("{} {}", scan.table.as_ref().unwrap(), filters.join("; "))
                })
                .collect();
            shown.sort();
            shown
        };
        let (planned, walked) = (show(&planned.scans), show(&walked.scans));
        if planned != walked {
            differing += 1;
            println!("q{number}");
            planned.iter().filter(|s| !walked.contains(s)).for_each(|s| println!("  plan {s}"));
            walked.iter().filter(|s| !planned.contains(s)).for_each(|s| println!("  walk {s}"));
            println!("  {} {}", planned.len(), walked.len());
        }
    }
    println!("{differing} differ");
    assert!(differing <= 15);
}
