//! No text panics or hangs, and no constant of one is seen again.
//!
//! `LAKEBED_FUZZ_SECONDS` says how long to try; two seconds by default.

use std::time::Duration;

use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, TestRunner},
};

use super::{Dialect, lineage};
use crate::{EmptyCatalog, fingerprint_in, redacted};

const DIALECTS: [Dialect; 11] = [
    Dialect::Generic,
    Dialect::Spark,
    Dialect::Databricks,
    Dialect::Snowflake,
    Dialect::BigQuery,
    Dialect::Redshift,
    Dialect::DuckDb,
    Dialect::Postgres,
    Dialect::MySql,
    Dialect::Trino,
    Dialect::Hive,
];

/// No statement of a few hundred tokens may take longer; they take milliseconds.
const SLOWEST: Duration = Duration::from_secs(10);

#[expect(clippy::disallowed_methods, reason = "a test has no configuration file")]
fn seconds() -> Duration {
    let text = std::env::var("LAKEBED_FUZZ_SECONDS").ok();
    Duration::from_secs(text.and_then(|text| text.parse().ok()).unwrap_or(2))
}

/// Calls back with values until the time is over; the values are the same in each run.
#[expect(clippy::disallowed_methods, reason = "a test that lasts a given time")]
fn for_a_while<V: std::fmt::Debug>(values: impl Strategy<Value = V>, mut each: impl FnMut(V)) {
    let started = std::time::Instant::now();
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let mut count = 0_u64;
    while started.elapsed() < seconds() {
        let value = values.new_tree(&mut runner).unwrap().current();
        let shown = format!("{value:?}");
        let before = std::time::Instant::now();
        each(value);
        let took = before.elapsed();
        assert!(took < SLOWEST, "{took:?} for {shown}");
        count += 1;
    }
    println!("{count} texts");
    assert!(count > 0);
}

fn word() -> impl Strategy<Value = String> {
    let words: Vec<&str> = "SELECT FROM WHERE JOIN LEFT RIGHT FULL SEMI ANTI CROSS NATURAL USING ON \
        AND OR NOT IN EXISTS BETWEEN LIKE IS NULL GROUP BY HAVING ORDER LIMIT UNION ALL EXCEPT \
        INTERSECT WITH RECURSIVE AS CASE WHEN THEN ELSE END CAST LATERAL VIEW explode UNNEST VALUES \
        INSERT INTO MERGE UPDATE SET DELETE CREATE TABLE TEMP DISTINCT OVER PARTITION QUALIFY PIVOT \
        UNPIVOT FOR INTERVAL DATE TIMESTAMP OF AT VERSION SYSTEM_TIME ANY SOME ASOF POSITIONAL \
        ROW_NUMBER sum count coalesce a b c t u v id k x y z ( ( ( ( ) ) ) ) , , , . . * = = = < > \
        <> <=> + - / % :: : ; ? [ ] { } {{ }} ${ $1 $$ @ ' \" ` \\ -- /* */ /*+ # || -> ->> => \
        1 2.5 1e9 99999999999999999999 0x1F 'a' 'it''s' 'x\\' \"q\" `b` E'\\' r'\\d' N'n' \
        '2024-01-01' '2024-02-31' é 日本 \u{0} \u{feff} NaN true DAY YEAR"
        .split_whitespace()
        .collect();
    proptest::sample::select(words).prop_map(str::to_owned)
}

/// Statements that parse, with room for oddities.
fn statement() -> impl Strategy<Value = String> {
    let column = prop_oneof![
        Just("id".to_owned()),
        Just("a.id".to_owned()),
        Just("b.k".to_owned()),
        Just("q.x".to_owned()),
        Just("(SELECT max(y) FROM c WHERE c.k = a.k)".to_owned()),
        Just("CAST(a.x AS INT)".to_owned()),
        Just("t.s.f".to_owned()),
    ];
    let table = prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just("s.a AS t".to_owned()),
        Just("q".to_owned()),
        Just("(SELECT * FROM a) q".to_owned()),
        Just("(SELECT id, k AS x FROM b UNION ALL SELECT x, id FROM a) q".to_owned()),
        Just("UNNEST(a.xs) u".to_owned()),
    ];
    let join = proptest::sample::select(vec![
        "JOIN",
        "LEFT JOIN",
        "RIGHT JOIN",
        "FULL JOIN",
        "SEMI JOIN",
        "ANTI JOIN",
        "CROSS JOIN",
        "NATURAL JOIN",
        ",",
    ]);
    let condition = (column.clone(), column.clone(), 0..8_u8).prop_map(|(l, r, n)| match n {
        0 => format!("{l} = {r}"),
        1 => format!("{l} IN (SELECT {r} FROM b)"),
        2 => format!("NOT EXISTS (SELECT 1 FROM c WHERE {l} = c.k)"),
        3 => format!("({l} = {r} OR {l} = 5)"),
        4 => format!("{l} BETWEEN '2024-01-01' AND 7"),
        5 => format!("{l} <=> {r}"),
        6 => format!("{l} LIKE 'x%'"),
        _ => format!("{l} > {r} - 1"),
    });
    let from = proptest::collection::vec((join, table.clone(), condition.clone()), 0..5);
    (any::<bool>(), column, table, from, proptest::collection::vec(condition, 0..4)).prop_map(
        |(with, column, first, from, conditions)| {
            let with = if with { "WITH q AS (SELECT id, x, k FROM c) " } else { "" };
            let joins: String = from
                .iter()
                .map(|(join, table, condition)| match *join {
                    "CROSS JOIN" | "NATURAL JOIN" | "," => format!(" {join} {table}"),
                    _ => format!(" {join} {table} ON {condition}"),
                })
                .collect();
            let wheres = if conditions.is_empty() {
                String::new()
            } else {
                format!(" WHERE {}", conditions.join(" AND "))
            };
            format!("{with}SELECT {column} FROM {first}{joins}{wheres}")
        },
    )
}

#[test]
fn no_text_panics_or_hangs() {
    let texts = (
        prop_oneof![
            proptest::collection::vec(word(), 1..60).prop_map(|words| words.join(" ")),
            (statement(), proptest::collection::vec((any::<u16>(), word()), 0..4)).prop_map(
                |(mut text, changes)| {
                    for (at, word) in changes {
                        let mut at = usize::from(at) % (text.len() + 1);
                        while !text.is_char_boundary(at) {
                            at -= 1;
                        }
                        text.insert_str(at, &word);
                    }
                    text
                }
            ),
            "\\PC{0,80}",
        ],
        proptest::sample::select(DIALECTS.to_vec()),
    );
    for_a_while(texts, |(text, dialect)| {
        let _ = lineage(&text, dialect, &EmptyCatalog);
        let _ = (redacted(&text, dialect), fingerprint_in(&text, dialect));
    });
}

#[test]
fn deep_texts_of_all_kinds_are_read_or_refused() {
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("NOT ", "a", ""),
        ("- ", "1", ""),
        ("CASE WHEN ", "a", " THEN 1 END"),
        ("f(", "1", ")"),
        ("[", "1", "]"),
        ("(SELECT ", "1", ")"),
        ("CAST(", "1", " AS ARRAY<INT>)"),
        ("INTERVAL ", "1", ""),
        ("EXISTS (SELECT 1 FROM t WHERE ", "a", ")"),
        ("a IN (", "1", ")"),
        ("a = ", "1", ""),
        ("1 + ", "1", ""),
        ("a AND (b OR ", "c", ")"),
        ("{", "1", "}"),
    ] {
        for depth in [30, 300, 20_000] {
            let text = format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
            let cut = open.repeat(depth);
            for sql in [
                format!("SELECT {text} FROM t"),
                format!("SELECT 1 FROM a JOIN b ON a.k = b.k WHERE {text}"),
                format!("SELECT 1 FROM t WHERE {cut}"),
                format!("SELECT 1 FROM {cut}"),
            ] {
                for dialect in [Dialect::Spark, Dialect::Postgres] {
                    let _ = lineage(&sql, dialect, &EmptyCatalog);
                }
            }
        }
    }
}

#[test]
fn long_texts_of_all_kinds_are_read() {
    for (first, part) in [
        ("SELECT 1 FROM t WHERE a = 1", " AND b <> 2"),
        ("SELECT 1 FROM t", " UNION ALL SELECT 2 FROM t"),
        ("SELECT 1 FROM t", ", t"),
        ("SELECT 1", ", 1"),
        ("SELECT 1 FROM t WHERE a = 1", " || 'x'"),
        ("SELECT 1 FROM t WHERE a", "::int"),
        ("SELECT 1 FROM t", "; SELECT 1 FROM t"),
    ] {
        let sql = format!("{first}{}", part.repeat(1_000));
        let _ = lineage(&sql, Dialect::Postgres, &EmptyCatalog);
    }
}

#[test]
fn no_constant_survives() {
    let secret = "[b-z]{4}SECRET[b-z]{3}";
    let texts = (
        statement(),
        secret,
        100_000_000..999_999_999_u64,
        proptest::sample::select(DIALECTS.to_vec()),
        0..6_u8,
        any::<u16>(),
    );
    for_a_while(texts, |(text, secret, number, dialect, form, at)| {
        let constant = match form {
            0 => format!("'{secret}'"),
            1 => format!("'it''s {secret}'"),
            2 => number.to_string(),
            3 => format!("DATE '{secret}'"),
            4 => format!("x'{secret}'"),
            _ => format!("'{secret}"),
        };
        let (mut at, condition) =
            (usize::from(at) % (text.len() + 1), format!(" AND z = {constant} "));
        while !text.is_char_boundary(at) || text[..at].matches('\'').count() % 2 == 1 {
            at -= 1;
        }
        let sql = format!("{}{condition}{}", &text[..at], &text[at..]);
        let hidden = |shown: &str| {
            assert!(!shown.contains("SECRET"), "{shown}\n{sql}");
            assert!(!shown.contains(&number.to_string()), "{shown}\n{sql}");
        };
        hidden(&redacted(&sql, dialect));
        match lineage(&sql, dialect, &EmptyCatalog) {
            Ok(found) => found.losses.iter().for_each(|loss| hidden(loss)),
            Err(error) => hidden(&error.to_string()),
        }
    });
}
