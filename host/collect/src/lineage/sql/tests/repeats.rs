//! Statements that come again with other constants are read without planning, to the same facts.

use std::collections::BTreeMap;

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
    let second = sql("1996-01-01", "1997-01-01", "'TRUCK'");
    let third = sql("1995-03-01", "1996-02-01", "'SHIP', 'RAIL', 'FOB'");
    let mut reader = LineageReader::new(&catalog);
    let planned = reader.read(&text(&first)).unwrap();
    reader.read(&text(&second)).unwrap();
    let repeated = reader.read(&text(&third)).unwrap();
    assert_eq!(reader.counts(), ReaderCounts { planned: 2, repeated: 1, same: 0 });
    let again = LineageReader::new(&catalog).read(&text(&third)).unwrap();
    assert_eq!(repeated, again);
    assert_eq!(repeated.joins, planned.joins);
    assert_ne!(repeated.scans, planned.scans);
    reader.read(&text(&first)).unwrap();
    assert_eq!(reader.counts(), ReaderCounts { planned: 2, repeated: 1, same: 1 });
}

/// Reads texts one after the other with one reader and each with a reader of its own.
#[track_caller]
fn check(texts: &[&str], dialect: Dialect, expected: ReaderCounts) {
    let catalog = tpch();
    let mut reader = LineageReader::new(&catalog);
    for sql in texts {
        let text = SqlText { dialect, ..text(sql) };
        let fresh = LineageReader::new(&catalog).read(&text);
        assert_eq!(reader.read(&text), fresh, "{sql}");
    }
    assert_eq!(reader.counts(), expected, "{texts:?}");
}

#[test]
fn constants_that_the_planner_looks_into_have_to_be_the_same() {
    let planned = |planned| ReaderCounts { planned, repeated: 0, same: 0 };
    for texts in [
        // Ordinals: the third names no column.
        [
            "SELECT o_orderkey FROM orders ORDER BY 1",
            "SELECT o_orderkey FROM orders ORDER BY 3",
            "SELECT o_orderkey FROM orders ORDER BY 2",
        ],
        [
            "SELECT o_custkey, count(*) FROM orders GROUP BY 1",
            "SELECT o_custkey, count(*) FROM orders GROUP BY 7",
            "SELECT o_custkey, count(*) FROM orders GROUP BY 2",
        ],
        // Types and units.
        [
            "SELECT CAST(o_comment AS varchar(10)) FROM orders",
            "SELECT CAST(o_comment AS varchar(20)) FROM orders",
            "SELECT CAST(o_comment AS varchar(30)) FROM orders",
        ],
        [
            "SELECT 1 FROM orders WHERE o_orderdate < DATE '1994-01-01' + INTERVAL '1' YEAR",
            "SELECT 1 FROM orders WHERE o_orderdate < DATE '1994-01-01' + INTERVAL '2' YEAR",
            "SELECT 1 FROM orders WHERE o_orderdate < DATE '1994-01-01' + INTERVAL '3' YEAR",
        ],
        [
            "SELECT 1 FROM orders WHERE o_orderkey = 5",
            "SELECT 1 FROM orders WHERE o_orderkey = 'x'",
            "SELECT 1 FROM orders WHERE o_orderkey = 5.5",
        ],
        // Arguments of functions.
        [
            "SELECT date_trunc('month', o_orderdate) FROM orders",
            "SELECT date_trunc('year', o_orderdate) FROM orders",
            "SELECT date_trunc('day', o_orderdate) FROM orders",
        ],
        [
            "SELECT 1 FROM orders WHERE o_orderdate > date_sub(DATE '1994-01-01', 7)",
            "SELECT 1 FROM orders WHERE o_orderdate > date_sub(DATE '1994-01-01', 8)",
            "SELECT 1 FROM orders WHERE o_orderdate > date_sub(DATE '1994-01-01', 9)",
        ],
    ] {
        check(&texts, Dialect::Spark, planned(3));
    }
}

#[test]
fn constants_that_make_expressions_the_same_or_not_are_told_apart() {
    let texts = [
        "SELECT o_orderkey + 1 FROM orders GROUP BY o_orderkey + 1",
        "SELECT o_orderkey + 2 FROM orders GROUP BY o_orderkey + 2",
        "SELECT o_orderkey + 3 FROM orders GROUP BY o_orderkey + 3",
        // Not grouped by what is selected: the planner refuses it.
        "SELECT o_orderkey + 3 FROM orders GROUP BY o_orderkey + 4",
        "SELECT o_orderkey + 4 FROM orders GROUP BY o_orderkey + 5",
        "SELECT o_orderkey + 6 FROM orders GROUP BY o_orderkey + 6",
    ];
    check(&texts, Dialect::Spark, ReaderCounts { planned: 3, repeated: 3, same: 0 });
}

#[test]
fn what_the_reading_drops_may_be_any_constant() {
    let texts = [
        "SELECT o_orderkey FROM orders WHERE o_custkey = 1 LIMIT 10 OFFSET 5",
        "SELECT o_orderkey FROM orders WHERE o_custkey = 2 LIMIT 20 OFFSET 6",
        "SELECT o_orderkey FROM orders WHERE o_custkey = 3 LIMIT 30 OFFSET 7",
    ];
    check(&texts, Dialect::Spark, ReaderCounts { planned: 2, repeated: 1, same: 0 });
}

#[test]
fn lists_of_other_lengths_and_chains_are_read_anew() {
    let repeated = ReaderCounts { planned: 2, repeated: 2, same: 0 };
    let texts = [
        "SELECT 1 FROM orders WHERE o_custkey IN (1, 2) AND o_orderkey NOT IN (7)",
        "SELECT 1 FROM orders WHERE o_custkey IN (5) AND o_orderkey NOT IN (8, 9, 10)",
        "SELECT 1 FROM orders WHERE o_custkey IN (3, 9, 4, 1) AND o_orderkey NOT IN (1, 2)",
        "SELECT 1 FROM orders WHERE o_custkey IN (8) AND o_orderkey NOT IN (1)",
    ];
    check(&texts, Dialect::Spark, repeated);
    let texts = [
        "SELECT 1 FROM orders WHERE (o_custkey = 1 AND o_orderkey < 5) OR (o_custkey = 2 AND o_orderkey < 5)",
        "SELECT 1 FROM orders WHERE (o_custkey = 1 AND o_orderkey < 5) OR (o_custkey = 1 AND o_orderkey < 7)",
        "SELECT 1 FROM orders WHERE (o_custkey = 9 AND o_orderkey < 8) OR (o_custkey = 9 AND o_orderkey < 8)",
        "SELECT 1 FROM orders WHERE (o_custkey = 9 AND o_orderkey < 8) OR (o_custkey = 7 AND o_orderkey < 2)",
    ];
    check(&texts, Dialect::DuckDb, repeated);
}

/// The trees that a reader keeps are dropped with it, by whatever thread.
#[test]
fn deep_statements_are_remembered_and_forgotten_on_small_stacks() {
    let sum = |first: usize| {
        let terms: Vec<String> =
            (0..2_000).map(|n| format!("o_orderkey + {}", first + n)).collect();
        format!("SELECT 1 FROM orders WHERE o_custkey < {}", terms.join(" - "))
    };
    let read = move || {
        let catalog = tpch();
        let mut reader = LineageReader::new(&catalog);
        for first in 1..4 {
            reader.read(&text(&sum(first))).unwrap();
        }
        reader.counts()
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(read).unwrap();
    assert_eq!(thread.join().unwrap(), ReaderCounts { planned: 2, repeated: 1, same: 0 });
}

#[test]
fn a_name_that_became_a_view_is_read_as_one() {
    let texts = [
        "SELECT 1 FROM recent WHERE o_custkey = 1",
        "SELECT 1 FROM recent WHERE o_custkey = 2",
        "CREATE VIEW recent AS SELECT * FROM orders WHERE o_orderkey > 100",
        "SELECT 1 FROM recent WHERE o_custkey = 3",
    ];
    let catalog = tpch();
    let mut reader = LineageReader::new(&catalog);
    let found: Vec<_> = texts.iter().map(|sql| reader.read(&text(sql)).unwrap()).collect();
    let table = |at: usize| found[at].scans[0].table.as_ref().unwrap().as_str().to_owned();
    assert_eq!([table(1), table(3)], ["recent", "orders"]);
}

/// Which numbers are drawn anew, and out of how many.
#[derive(Clone, Copy)]
struct Draw {
    above: u64,
    many: u64,
    words: u64,
    /// Whether what is equal in a text stays so, as it does where a template's parameters change.
    keeps_equal: bool,
}

/// Few values, so that some constants are equal at times; small numbers may be ordinals.
const WILD: Draw = Draw { above: 4, many: 9, words: 4, keeps_equal: false };
/// Years and amounts, but neither units of time nor lengths of texts.
const USUAL: Draw = Draw { above: 99, many: 900, words: 800, keeps_equal: true };

/// The same text with other numbers and strings: another draw each time.
fn redrawn(sql: &str, draw: Draw, dice: &mut u64) -> String {
    let mut next = |below: u64| {
        *dice =
            dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*dice >> 33) % below
    };
    let mut out = String::new();
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut kept = |constant: &str, drawn: String| match draw.keeps_equal {
        true => known.entry(constant.to_owned()).or_insert(drawn).clone(),
        false => drawn,
    };
    let mut rest = sql;
    while let Some(c) = rest.chars().next() {
        let before = out.chars().last().unwrap_or(' ');
        let length = match c {
            '\'' => {
                let end = rest[1..].find('\'').unwrap() + 2;
                let value = &rest[1..end - 1];
                let constant = &rest[..end];
                // Dates stay dates, texts of one word become others; the rest stays.
                let date = value.len() == 10 && value.as_bytes()[4] == b'-';
                let drawn = if date {
                    let (year, month, day) = (1990 + next(12), 1 + next(12), 1 + next(28));
                    format!("'{year}-{month:02}-{day:02}'")
                } else if value.len() > 2 && value.chars().all(|c| c.is_ascii_alphabetic()) {
                    format!("'{}{}'", &value[..1], next(draw.words))
                } else {
                    constant.to_owned()
                };
                out.push_str(&kept(constant, drawn));
                end
            }
            '0'..='9' if !(before.is_ascii_alphanumeric() || before == '_' || before == '.') => {
                let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                let value: u64 = rest[..end].parse().unwrap();
                let drawn =
                    if value > draw.above { draw.above + 1 + next(draw.many) } else { value };
                out.push_str(&kept(&rest[..end], drawn.to_string()));
                end
            }
            // A name.
            '"' => {
                let end = rest[1..].find('"').unwrap() + 2;
                out.push_str(&rest[..end]);
                end
            }
            c => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    out
}

/// TPC-H's and TPC-DS's statements with random constants: what a reader remembers changes nothing.
#[test]
fn remembered_statements_are_read_as_fresh_ones() {
    let mut dice = 5;
    let mut check = |texts: &super::tpc::Texts, catalog: &dyn crate::Catalog, dialect: Dialect| {
        let mut reader = LineageReader::new(catalog);
        for round in 0..5 {
            for (number, sql) in texts {
                let drawn = if round == 0 { sql.clone() } else { redrawn(sql, WILD, &mut dice) };
                let text = SqlText { dialect, ..text(&drawn) };
                let fresh = LineageReader::new(catalog).read(&text);
                assert_eq!(reader.read(&text), fresh, "{number}: {drawn}");
            }
        }
        reader.counts()
    };
    let counts = check(&super::tpc::tpch_texts(), &tpch(), Dialect::Spark);
    assert!(counts.repeated > 30, "{counts:?}");
    if let Some(texts) = super::tpc::texts("tpcds") {
        let counts = check(&texts, &super::tpc::tpcds(), Dialect::DuckDb);
        assert!(counts.repeated > 200, "{counts:?}");
    }
}

/// The time this thread has had a processor, which others on the machine do not change.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds: f64 = text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0);
    nanoseconds / 1e9
}

/// How often each statement comes again.
const REPEATS: u64 = 10;

/// Prints statements a second of one core, cold and repeated; the numbers are for people. That the
/// facts are the same is not.
#[test]
fn repeated_statements_of_tpcds_are_read_without_planning() {
    let Some(texts) = super::tpc::texts("tpcds") else { return };
    let catalog = super::tpc::tpcds();
    let mut reader = LineageReader::new(&catalog);
    let mut dice = 1;
    let mut draw =
        || texts.values().map(|sql| redrawn(sql, USUAL, &mut dice)).collect::<Vec<String>>();
    let second = draw();
    let later: Vec<String> = (0..REPEATS).flat_map(|_| draw()).collect();
    let mut time = |texts: &[String]| {
        let started = processor_seconds();
        for sql in texts {
            reader.read(&SqlText { dialect: Dialect::DuckDb, ..text(sql) }).unwrap();
        }
        (texts.len() as f64 / (processor_seconds() - started), reader.counts())
    };
    let first: Vec<String> = texts.values().cloned().collect();
    time(&["SELECT 1 FROM item WHERE i_item_sk = 5".to_owned()]);
    let (cold, _) = time(&first);
    let (kept, before) = time(&second);
    let (repeated, counts) = time(&later);
    let (same, _) = time(&later);
    println!("cold {cold:.0}/s, kept {kept:.0}/s, repeated {repeated:.0}/s, same {same:.0}/s");
    println!("{counts:?}");
    assert!(counts.repeated - before.repeated > 90 * REPEATS, "{counts:?}");
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
        ("plan with what is read only", 0.0),
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
        let survey = scope::Survey::of(&query);
        let walked = scope::walk(&query, Dialect::DuckDb, &catalog, &tokens.hints, &survey);
        lap(3);
        let planned = stubs::plan(&query, &catalog, &walked.needed, &survey.guesses, None).unwrap();
        lap(4);
        let read = walked.columns_read();
        stubs::plan(&query, &catalog, &walked.needed, &survey.guesses, Some(&read)).unwrap();
        lap(5);
        optimize::run(planned.plan.clone()).unwrap();
        lap(6);
        resolve::lineage(&planned).unwrap();
        lap(7);
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
        let survey = scope::Survey::of(&query);
        let walked = scope::walk(&query, Dialect::DuckDb, &catalog, &tokens.hints, &survey);
        let planned = stubs::plan(&query, &catalog, &walked.needed, &survey.guesses, None).unwrap();
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
