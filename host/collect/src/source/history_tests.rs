//! Exports of other products, each against what its rows say.
//!
//! A statement shows as `id start duration status`, then its scans and joins, one a line.

use std::{fmt::Write as _, path::PathBuf};

use lakebed_model::Workload;

use crate::{CollectOptions, collect, lineage::sql::tests::tpch};

fn fixture(name: &str) -> PathBuf {
    let logs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/logs/history");
    PathBuf::from(logs).join(name)
}

fn read(name: &str) -> Workload {
    collect(&[fixture(name)], &CollectOptions::default(), &tpch()).unwrap()
}

fn shown(workload: &Workload) -> String {
    let mut text = String::new();
    let figure = |figure: Option<u64>| figure.map_or("-".to_owned(), |figure| figure.to_string());
    for record in &workload.records {
        let start = record.started_at.to_rfc3339();
        let duration = figure(record.duration_ms);
        let _ = writeln!(
            text,
            "{} {start} {duration} ms {:?} {}",
            record.id, record.status, record.confidence
        );
        for scan in &record.scans {
            let table = scan.table.as_ref().map_or("?", |table| table.as_str());
            let (bytes, files, rows) =
                (figure(scan.bytes_read), figure(scan.files_read), figure(scan.rows_out));
            let _ = write!(text, "  {table} {bytes} bytes {files} files {rows} rows");
            for filter in &scan.filters {
                let range =
                    filter.range.as_ref().map_or(String::new(), |range| format!(" {range}"));
                let inferred = if filter.inferred { " inferred" } else { "" };
                let _ = write!(
                    text,
                    "; {} {}{range}{inferred}",
                    filter.column.column,
                    filter.operator.as_str()
                );
            }
            text.push('\n');
        }
        for join in &record.joins {
            let pairs: Vec<String> = join.pairs.iter().map(|(a, b)| format!("{a}={b}")).collect();
            let strategy = join.strategy.map_or("-", |strategy| strategy.as_str());
            let _ = writeln!(
                text,
                "  {}–{} {} {} {strategy} {}",
                join.left,
                join.right,
                pairs.join(","),
                join.kind.as_str(),
                join.confidence
            );
        }
    }
    let report = &workload.report;
    let skipped = report.skipped;
    let _ = writeln!(
        text,
        "{} statements, {} full, {} partial, {} unread; nobody's {}, failed {}, cached {}; malformed {}, truncated {}",
        report.statements,
        report.parsed,
        report.partial,
        report.unparsed,
        skipped.system + skipped.explain + skipped.metadata + skipped.own,
        skipped.failed,
        skipped.cached,
        report.malformed_lines,
        report.truncated
    );
    for (reason, count) in &report.reasons {
        let _ = writeln!(text, "{count} × {reason}");
    }
    text
}

#[track_caller]
fn check(name: &str, expected: &str) {
    let expected: String = expected
        .lines()
        .map(|line| format!("{}\n", line.strip_prefix("         ").unwrap_or(line)))
        .collect();
    let found = shown(&read(name));
    assert_eq!(found.trim(), expected.trim(), "{name} gave:\n{found}");
}

#[test]
fn databricks_history_is_read_with_every_reason_to_leave_a_statement_out() {
    check(
        "databricks.jsonl",
        "01ef-0001 2024-05-01T10:00:00.000Z 1900 ms Finished 1
           orders - bytes - files - rows; o_orderdate range [1996-01-01, ∞)
           customer - bytes - files - rows
           customer–orders c_custkey=o_custkey inner - 1
         01ef-0002 2024-05-01T10:01:00.000Z 800 ms Finished 1
           lineitem 2048 bytes 4 files 600 rows; l_shipdate range [1994-01-01, 1994-12-31]
         01ef-0009 2024-05-01T10:08:00.000Z 700 ms Finished 0
         3 statements, 2 full, 0 partial, 1 unread; nobody's 4, failed 2, cached 1; malformed 1, truncated true
         1 × the history has no text of it",
    );
}

#[test]
fn databricks_command_prints_a_document_of_queries() {
    check(
        "databricks_rest.json",
        "01ef-0101 2024-05-01T10:00:00.000Z 900 ms Finished 1
           orders 555 bytes 1 files 44 rows; o_orderkey equal [7, 7]
         1 statements, 1 full, 0 partial, 0 unread; nobody's 0, failed 0, cached 1; malformed 0, truncated false",
    );
}

/// `orders` of two databases are two tables; a record with a lost quote costs itself only.
#[test]
fn snowflake_history_qualifies_names_by_their_database_and_schema() {
    check(
        "snowflake.csv",
        "01b4-01 2024-05-01T10:00:00.000Z 2000 ms Finished 1
           sales.public.orders - bytes - files - rows
           customer - bytes - files - rows; c_mktsegment equal ['BUILDING', 'BUILDING']
           customer–sales.public.orders c_custkey=o_custkey inner - 1
         01b4-02 2024-05-01T10:01:00.000Z 900 ms Finished 1
           lineitem 123456 bytes 3 files - rows; l_quantity range (45.00, ∞)
         01b4-07 2024-05-01T10:06:00.000Z 4000 ms Finished 1
           marts.public.orders - bytes - files - rows
           customer - bytes - files - rows
           customer–marts.public.orders c_custkey=o_custkey inner - 1
         01b4-09 2024-05-01T10:08:00.000Z 1000 ms Finished 1
           sales.public.orders 64 bytes 1 files - rows; o_orderkey in [1, 5]
         4 statements, 4 full, 0 partial, 0 unread; nobody's 2, failed 1, cached 1; malformed 1, truncated false",
    );
}

/// Of `p1` two of three executions filter; of `p2` three join keys say nothing of pairs.
#[test]
fn snowflake_pruning_history_gives_filters_with_frequency_and_only_certain_pairs() {
    check(
        "snowflake_pruning.jsonl",
        "p1@2024-05-01T10:00:00.000Z#1 2024-05-01T10:00:00.000Z - ms Finished 0.5
           customer - bytes - files - rows
           orders - bytes - files - rows; o_orderdate other
           customer–orders c_custkey=o_custkey inner - 0.5
         p1@2024-05-01T10:00:00.000Z#2 2024-05-01T10:00:00.000Z - ms Finished 0.5
           customer - bytes - files - rows
           orders - bytes - files - rows; o_orderdate other
           customer–orders c_custkey=o_custkey inner - 0.5
         p1@2024-05-01T10:00:00.000Z#3 2024-05-01T10:00:00.000Z - ms Finished 0.5
           customer - bytes - files - rows
           orders - bytes - files - rows
           customer–orders c_custkey=o_custkey inner - 0.5
         p2@2024-05-01T10:00:00.000Z#1 2024-05-01T10:00:00.000Z - ms Finished 0.5
           customer - bytes - files - rows
           lineitem - bytes - files - rows; l_shipdate other
           orders - bytes - files - rows
         4 statements, 0 full, 4 partial, 0 unread; nobody's 0, failed 0, cached 0; malformed 1, truncated false
         1 × join columns are listed, but not which is compared with which
         3 × the history has no text of it",
    );
}

/// The second statement cannot be read as text: its plan has one comparison of columns, and one with
/// a computed value, which is none.
#[test]
fn trino_events_have_figures_by_table_and_joins_of_plans() {
    check(
        "trino.jsonl",
        "20240501_100000_00001_abcde 2024-05-01T10:00:01.000Z 3500 ms Finished 1
           orders 2600 bytes - files 200 rows
           customer 400 bytes - files 100 rows; c_mktsegment equal ['BUILDING', 'BUILDING']
           customer–orders c_custkey=o_custkey inner - 1
         20240501_100100_00002_abcde 2024-05-01T10:01:00.500Z 1000 ms Finished 0.8
           orders 7 bytes - files 70 rows
           customer 3 bytes - files 30 rows
           customer–orders c_custkey=o_custkey inner broadcast 0.8
         2 statements, 1 full, 1 partial, 0 unread; nobody's 1, failed 1, cached 0; malformed 0, truncated false
         1 × parse SQL at line 1, column 60: Expected: an expression, found: EOF",
    );
}

/// Peer case OpenLineage#2048: inputs of one output are not compared with each other.
#[test]
fn openlineage_2048_columns_that_feed_one_output_make_no_edge() {
    let workload = read("openlineage.jsonl");
    let coalesced = workload.records.iter().find(|record| record.id == "0190-0002").unwrap();
    assert!(coalesced.joins.is_empty());
    assert_eq!(coalesced.scans.len(), 2);
}

#[test]
fn openlineage_runs_are_paired_and_pairs_of_columns_only_where_certain() {
    check(
        "openlineage.jsonl",
        "0190-0001 2024-05-01T10:00:00.000Z 12000 ms Finished 1
           orders 64000 bytes 4 files 1500 rows; o_orderdate range [1996-01-01, ∞)
           customer 9000 bytes 1 files 150 rows
           customer–orders c_custkey=o_custkey inner - 1
         0190-0002 2024-05-01T10:01:00.000Z - ms Finished 0.5
           a - bytes - files - rows
           b - bytes - files - rows
         0190-0003 2024-05-01T10:02:00.000Z - ms Finished 0.5
           a - bytes - files - rows
           b - bytes - files - rows; day other
           a–b k=j inner - 0.5
         0190-0004 2024-05-01T10:03:00.000Z - ms Finished 0.5
           a - bytes - files - rows
           b - bytes - files - rows
           c - bytes - files - rows
         0190-0007 2024-05-01T10:05:00.000Z - ms Unknown 1
           orders - bytes - files - rows; o_orderkey equal [4, 4]
         5 statements, 2 full, 3 partial, 0 unread; nobody's 1, failed 1, cached 0; malformed 0, truncated false
         1 × join columns are listed, but not which is compared with which
         2 × the history has no text of it",
    );
}

#[test]
fn athena_prints_lists_of_executions() {
    check(
        "athena.json",
        "b7c1-0001 2024-05-01T10:00:00.500Z 2900 ms Finished 1
           orders - bytes - files - rows
           customer - bytes - files - rows; c_nationkey equal [7, 7]
           customer–orders c_custkey=o_custkey inner - 1
         b7c1-0002 2024-05-01T10:01:00.500Z 700 ms Finished 1
           lineitem 512 bytes - files - rows; l_orderkey range (-∞, 100)
         2 statements, 2 full, 0 partial, 0 unread; nobody's 1, failed 1, cached 1; malformed 1, truncated false",
    );
}

#[test]
fn duckdb_logs_have_texts_and_times() {
    check(
        "duckdb.csv",
        "duckdb.csv:3 2026-11-30T17:36:29.453Z - ms Finished 1
           orders - bytes - files - rows
           customer - bytes - files - rows; c_name equal ['it''s', 'it''s']
           customer–orders c_custkey=o_custkey inner - 1
         1 statements, 1 full, 0 partial, 0 unread; nobody's 3, failed 0, cached 0; malformed 0, truncated false",
    );
}

/// The time is the file's, so it is not compared.
#[test]
fn duckdb_profile_has_rows_by_table() {
    let workload = read("duckdb_profile.json");
    let [record] = workload.records.as_slice() else { panic!("{}", shown(&workload)) };
    assert!(record.started_at.epoch_ms() > 0);
    let text = shown(&workload);
    let text: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        text,
        [
            "  orders - bytes - files 7952 rows; o_orderkey range (-∞, 500)",
            "  customer - bytes - files 100 rows; c_name equal ['n7', 'n7']",
            "  customer–orders c_custkey=o_custkey inner - 1",
            "1 statements, 1 full, 0 partial, 0 unread; nobody's 0, failed 0, cached 0; malformed 0, truncated false",
        ]
    );
    assert_eq!(record.duration_ms, Some(3));
}

#[test]
fn bigquery_jobs_are_qualified_by_the_tables_they_reference() {
    check(
        "bigquery.json",
        "bq-1 2024-05-01T10:00:00.250Z 3500 ms Finished 1
           orders - bytes - files - rows; o_orderdate range (1996-01-01, ∞)
           customer - bytes - files - rows
           customer–orders c_custkey=o_custkey inner - 1
         bq-2 2024-05-01T10:01:00.000Z 1000 ms Finished 1
           lineitem 77 bytes - files - rows; l_partkey equal [3, 3]
         2 statements, 2 full, 0 partial, 0 unread; nobody's 2, failed 1, cached 1; malformed 1, truncated false",
    );
}

#[test]
fn redshift_history_has_times_in_microseconds_and_texts_in_one_line() {
    check(
        "redshift.csv",
        "9001 2024-05-01T10:00:00.000Z 2500 ms Finished 1
           orders - bytes - files - rows
           customer - bytes - files - rows; c_mktsegment equal ['BUILDING', 'BUILDING']
           customer–orders c_custkey=o_custkey inner - 1
         9005 2024-05-01T10:04:00.000Z 250 ms Finished 1
           lineitem - bytes - files - rows; l_shipdate range [1995-01-01, ∞)
         2 statements, 2 full, 0 partial, 0 unread; nobody's 2, failed 1, cached 1; malformed 1, truncated false",
    );
}

#[test]
fn plain_csv_may_be_separated_by_semicolons_and_span_lines() {
    check(
        "plain.csv",
        "plain.csv:2 2024-05-01T10:00:00.000Z 12 ms Finished 1
           sales.orders 64 bytes - files - rows; o_orderkey range [5, 9]
         plain.csv:5 2024-05-01T10:01:00.000Z - ms Finished 1
           web.orders - bytes - files - rows
         2 statements, 2 full, 0 partial, 0 unread; nobody's 0, failed 0, cached 0; malformed 0, truncated false",
    );
}

#[test]
fn every_fixture_is_recognized_as_its_own_format() {
    for (name, source) in [
        ("databricks.jsonl", "databricks"),
        ("databricks_rest.json", "databricks"),
        ("databricks.parquet", "databricks"),
        ("snowflake.csv", "snowflake"),
        ("snowflake_pruning.jsonl", "snowflake-pruning"),
        ("trino.jsonl", "trino"),
        ("openlineage.jsonl", "openlineage"),
        ("athena.json", "athena"),
        ("duckdb.csv", "duckdb"),
        ("duckdb_profile.json", "duckdb"),
        ("bigquery.json", "bigquery"),
        ("redshift.csv", "redshift"),
        ("plain.csv", "csv"),
    ] {
        let log = crate::LogPath::file(fixture(name));
        let head = crate::LogHead::of(&log).unwrap();
        let found: Vec<&str> = crate::ALL_SOURCES
            .iter()
            .filter(|source| source.recognizes(&head))
            .map(|source| source.name())
            .collect();
        assert_eq!(found, [source], "{name}");
    }
}

#[test]
fn parquet_has_the_same_statements_as_the_lines_it_was_made_from() {
    check(
        "databricks.parquet",
        "01ef-0001 2024-05-01T10:00:00.000Z 1900 ms Finished 1
           orders - bytes - files - rows; o_orderdate range [1996-01-01, ∞)
           customer - bytes - files - rows
           customer–orders c_custkey=o_custkey inner - 1
         01ef-0002 2024-05-01T10:01:00.000Z 800 ms Finished 1
           lineitem 2048 bytes 4 files 600 rows; l_shipdate range [1994-01-01, 1994-12-31]
         01ef-0009 2024-05-01T10:08:00.000Z 700 ms Finished 0
         3 statements, 2 full, 0 partial, 1 unread; nobody's 0, failed 1, cached 1; malformed 0, truncated false
         1 × the history has no text of it",
    );
}

#[test]
fn a_cut_export_says_so_whatever_its_rows_are() {
    use std::io::Write as _;
    for name in ["snowflake_pruning.jsonl", "openlineage.jsonl", "redshift.csv"] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&std::fs::read(fixture(name)).unwrap()).unwrap();
        let bytes = gzip.finish().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        // Without the end of its last member every row is there, but nobody knows that.
        std::fs::write(&path, &bytes[..bytes.len() - 4]).unwrap();
        let options = CollectOptions::default();
        let report = collect(&[path], &options, &crate::EmptyCatalog).unwrap().report;
        assert!(report.truncated, "{name}");
    }
}
