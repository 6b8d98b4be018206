//! From paths to a workload.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use lakebed_model::{ParseReport, Workload};

use crate::{
    Catalog, CollectError, names,
    source::{ALL_SOURCES, LogHead, LogPath, LogSource, Reading, Statement, discover},
    window,
};

/// What a caller may say about the reading of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectOptions {
    /// The name of the only format to read; `None` recognizes formats by content.
    pub format: Option<String>,
    /// Keeps the statements that started within this many milliseconds before the newest one;
    /// `None` keeps all.
    pub window_ms: Option<u64>,
}

/// Reads logs and folders of logs into one workload.
///
/// Statements with an id that was read already are dropped and counted, the rest is sorted by
/// start and id, and table names lose catalog and schema where they are unique without.
///
/// # Errors
/// Fails when a path is missing or holds no log, when a log cannot be read or holds no SQL
/// statement, and when the wanted format does not exist. A log that is cut, a malformed line or an
/// unreadable statement is no failure but is counted in the report.
pub fn collect(
    paths: &[PathBuf],
    options: &CollectOptions,
    catalog: &dyn Catalog,
) -> Result<Workload, CollectError> {
    let sources = wanted_sources(options.format.as_deref())?;
    let mut statements = Vec::new();
    let mut report = ParseReport::default();
    for path in paths {
        report.merge(&read_path(path, &sources, catalog, &mut statements)?);
    }
    drop_duplicates(&mut statements, &mut report);
    if let Some(window_ms) = options.window_ms {
        window::keep_last(&mut statements, window_ms);
    }
    statements.sort_by(|a, b| {
        (a.record.started_at, &a.record.id).cmp(&(b.record.started_at, &b.record.id))
    });
    names::shorten(&mut statements);
    let window = window::span(&statements);
    for statement in &statements {
        count(&statement.reading, &mut report);
    }
    tracing::info!(
        paths = paths.len(),
        statements = report.statements,
        unparsed = report.unparsed,
        "collected"
    );
    let records = statements.into_iter().map(|statement| statement.record).collect();
    Ok(Workload { window, records, report })
}

fn wanted_sources(
    format: Option<&str>,
) -> Result<Vec<&'static dyn LogSource>, CollectError> {
    let Some(format) = format else { return Ok(ALL_SOURCES.to_vec()) };
    match ALL_SOURCES.iter().find(|source| source.name() == format) {
        Some(source) => Ok(vec![*source]),
        None => {
            Err(CollectError::UnknownFormat { format: format.to_owned(), known: known_formats() })
        }
    }
}

fn known_formats() -> String {
    ALL_SOURCES.iter().map(|source| source.name()).collect::<Vec<_>>().join(", ")
}

/// Reads every log under one path. A log without SQL is a failure only when all of them are.
fn read_path(
    path: &Path,
    sources: &[&'static dyn LogSource],
    catalog: &dyn Catalog,
    statements: &mut Vec<Statement>,
) -> Result<ParseReport, CollectError> {
    let logs = discover::logs_under(path)?;
    let mut report = ParseReport::default();
    let mut without_sql = None;
    let mut read_count = 0_usize;
    for log in &logs {
        let Some(source) = recognized(log, sources)? else {
            if log.named_by_caller {
                return Err(unrecognized(log)?);
            }
            continue;
        };
        tracing::debug!(log = %log.root.display(), source = source.name(), "reading");
        match source.read(log, catalog, &mut |statement| statements.push(statement)) {
            Ok(part) => {
                if part.truncated || part.malformed_lines > 0 {
                    tracing::warn!(
                        log = %log.root.display(),
                        truncated = part.truncated,
                        malformed_lines = part.malformed_lines,
                        "log is damaged"
                    );
                }
                report.merge(&part);
                read_count += 1;
            }
            Err(error @ CollectError::NoSqlStatements { .. }) => without_sql = Some(error),
            Err(error) => return Err(error),
        }
    }
    match without_sql {
        Some(error) if read_count == 0 => Err(error),
        None if read_count == 0 => Err(CollectError::NoLogInFolder {
            folder: path.to_owned(),
            files: logs.iter().map(|log| log.parts.len()).sum(),
            known: known_formats(),
        }),
        _ => Ok(report),
    }
}

fn recognized(
    log: &LogPath,
    sources: &[&'static dyn LogSource],
) -> Result<Option<&'static dyn LogSource>, CollectError> {
    // A format that the caller names is believed for files that the caller names.
    if let ([only], true) = (sources, log.named_by_caller) {
        return Ok(Some(*only));
    }
    let head = LogHead::of(log)?;
    Ok(sources.iter().find(|source| source.recognizes(&head)).copied())
}

fn unrecognized(log: &LogPath) -> Result<CollectError, CollectError> {
    Ok(CollectError::UnrecognizedLog {
        path: log.root.clone(),
        first_line: LogHead::of(log)?.first_line.chars().take(60).collect(),
        known: known_formats(),
    })
}

fn drop_duplicates(statements: &mut Vec<Statement>, report: &mut ParseReport) {
    let mut seen = BTreeSet::new();
    statements.retain(|statement| {
        let is_new = seen.insert(statement.record.id.clone());
        report.skipped.duplicate += u64::from(!is_new);
        is_new
    });
}

fn count(reading: &Reading, report: &mut ParseReport) {
    report.statements += 1;
    let reasons: &[String] = match reading {
        Reading::Full => {
            report.parsed += 1;
            &[]
        }
        Reading::Partial { losses } => {
            report.partial += 1;
            losses
        }
        Reading::Unread { reason } => {
            report.unparsed += 1;
            std::slice::from_ref(reason)
        }
    };
    for reason in reasons {
        *report.reasons.entry(reason.clone()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf};

    use super::{CollectOptions, Workload, collect};
    use crate::{ColumnType, EmptyCatalog};

    const ALL: CollectOptions = CollectOptions { format: None, window_ms: None };

    fn log(path: &str) -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
    }

    fn workload(path: &str) -> Workload {
        collect(&[log(path)], &ALL, &EmptyCatalog).unwrap()
    }

    /// One line per edge: how many statements have it, and how they ran it.
    fn edges(workload: &Workload) -> String {
        let mut found: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for record in &workload.records {
            for join in &record.joins {
                let pairs: Vec<String> =
                    join.pairs.iter().map(|(left, right)| format!("{left}={right}")).collect();
                let edge = format!(
                    "{}–{} {} {}",
                    join.left,
                    join.right,
                    pairs.join(","),
                    join.kind.as_str()
                );
                let strategy = |s: Option<lakebed_model::JoinStrategy>| s.map_or("-", |s| s.as_str());
                let how =
                    format!("{}→{}", strategy(join.planned_strategy), strategy(join.strategy));
                *found.entry(edge).or_default().entry(how).or_default() += 1;
            }
        }
        let mut text = String::new();
        for (edge, how) in found {
            let how: Vec<String> = how.iter().map(|(how, n)| format!("{n} {how}")).collect();
            let _ = writeln!(text, "{edge}: {}", how.join(", "));
        }
        text
    }

    #[track_caller]
    fn check_error(paths: &[PathBuf], options: &CollectOptions, expected: &str) {
        let error = collect(paths, options, &EmptyCatalog).unwrap_err();
        let base = log("").display().to_string();
        assert_eq!(error.to_string().replace(&base, ""), expected);
    }

    /// Expected edges and counts: the weights of the window's query templates.
    #[test]
    fn window_one_has_three_edges_with_their_frequencies() {
        let workload = workload("examples/logs/w1");
        insta::assert_snapshot!(edges(&workload), @"");
        assert_eq!(workload.records.len(), 40);
        assert_eq!((workload.report.statements, workload.report.parsed), (40, 40));
        // 8 CREATE TABLE and 91 metadata queries of Delta itself.
        assert_eq!(workload.report.skipped.system, 99);
        assert!(workload.report.reasons.is_empty());
    }

    #[test]
    fn the_same_queries_as_broadcasts_have_the_same_edges() {
        let workload = workload("tests/data/logs/w1-flips");
        insta::assert_snapshot!(edges(&workload), @"");
        assert_eq!(workload.records.len(), 40);
    }

    #[test]
    fn window_three_has_a_composite_edge() {
        insta::assert_snapshot!(edges(&workload("examples/logs/w3")), @"");
    }

    /// Expected edges: the SQL of TPC-DS query 72.
    #[test]
    fn query_72_has_its_eleven_edges_and_no_more() {
        let workload = workload("tests/data/logs/nds_q72_dataproc_2_2.zstd");
        insta::assert_snapshot!(edges(&workload), @"");
        assert_eq!(workload.records.len(), 1);
        let scans: Vec<String> = workload.records[0]
            .scans
            .iter()
            .map(|scan| {
                let table = scan.table.as_ref().map_or("?", |table| table.as_str());
                format!("{table} {:?} {:?} {:?}", scan.files_read, scan.bytes_read, scan.rows_out)
            })
            .collect();
        insta::assert_snapshot!(scans.join("\n"), @"");
    }

    #[test]
    fn a_scan_has_its_filters_sizes_and_what_was_inferred() {
        let workload = workload("examples/logs/w1");
        let first = &workload.records[0];
        let mut text = format!(
            "{} {} ms {:?}\n{}\n",
            first.id,
            first.duration_ms.unwrap(),
            first.status,
            first.sql.as_deref().unwrap()
        );
        for scan in &first.scans {
            let _ = writeln!(
                text,
                "{} {} {:?} files {:?} bytes {:?} rows {:?}",
                scan.table.as_ref().unwrap(),
                scan.location.as_deref().unwrap(),
                scan.columns,
                scan.files_read,
                scan.bytes_read,
                scan.rows_out
            );
            for filter in &scan.filters {
                let _ = writeln!(
                    text,
                    "  {} {} {} inferred={}",
                    filter.column,
                    filter.operator.as_str(),
                    filter.range.as_ref().unwrap(),
                    filter.inferred
                );
            }
        }
        insta::assert_snapshot!(text, @"");
    }

    #[test]
    fn a_malformed_line_is_counted_and_passed_over() {
        let workload = workload("tests/data/logs/malformed_json_eventlog.zstd");
        assert_eq!(workload.report.malformed_lines, 1);
        assert!(!workload.report.truncated);
    }

    #[test]
    fn a_cut_log_keeps_the_statements_before_the_cut() {
        let whole = log("examples/logs/w1/eventlog_v2_local-1795995627429")
            .join("events_1_local-1795995627429.zstd");
        let bytes = std::fs::read(whole).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut.zstd");
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let workload = collect(&[path], &ALL, &EmptyCatalog).unwrap();
        assert!(workload.report.truncated);
        assert!((10..40).contains(&workload.records.len()), "{}", workload.records.len());
    }

    #[test]
    fn the_same_log_twice_counts_once() {
        let paths = [log("examples/logs/w1"), log("examples/logs/w1")];
        let workload = collect(&paths, &ALL, &EmptyCatalog).unwrap();
        assert_eq!(workload.records.len(), 40);
        assert_eq!(workload.report.statements, 40);
        assert_eq!(workload.report.skipped.duplicate, 40);
    }

    #[test]
    fn a_window_keeps_the_newest_statements_in_order() {
        let options = CollectOptions { window_ms: Some(10_000), ..ALL };
        let workload = collect(&[log("examples/logs/w1")], &options, &EmptyCatalog).unwrap();
        let span = workload.window.to.epoch_ms() - workload.window.from.epoch_ms();
        assert!((1..=10_000).contains(&span), "{span}");
        assert!(workload.records.len() < 40);
        assert!(workload.records.is_sorted_by_key(|record| (record.started_at, &record.id)));
    }

    #[test]
    fn errors_say_what_and_where() {
        let known = "spark-event-log, jsonl";
        check_error(
            &[log("no/such/log")],
            &ALL,
            "read log `no/such/log`: no such file or folder",
        );
        check_error(
            &[log("tests/data/logs/empty_eventlog")],
            &ALL,
            "find queries: no SQL statements in `tests/data/logs/empty_eventlog`, which holds \
             1 SparkListenerApplicationEnd, 1 SparkListenerApplicationStart, \
             1 SparkListenerBlockManagerAdded, 1 SparkListenerEnvironmentUpdate, \
             1 SparkListenerExecutorAdded, 1 SparkListenerLogStart, \
             1 SparkListenerResourceProfileAdded",
        );
        check_error(
            &[log("clippy.toml")],
            &ALL,
            &format!(
                "recognize log `clippy.toml`: its first line `allow-unwrap-in-tests = true` \
                 belongs to no known format ({known})"
            ),
        );
        let options = CollectOptions { format: Some("csv".to_owned()), ..ALL };
        check_error(
            &[log("clippy.toml")],
            &options,
            &format!("read logs as `csv`: unknown format, expected one of {known}"),
        );
    }

    #[test]
    fn a_folder_without_a_log_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.csv"), "x,y").unwrap();
        std::fs::write(folder.path().join("b.csv"), "x,y").unwrap();
        let error = collect(&[folder.path().to_owned()], &ALL, &EmptyCatalog).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "find a log in folder `{}`: none of its 2 files is a log of a known format \
                 (spark-event-log, jsonl)",
                folder.path().display()
            )
        );
    }

    #[test]
    fn a_codec_that_is_not_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.lz4");
        std::fs::write(&path, b"LZ4Block%F").unwrap();
        let error = collect(std::slice::from_ref(&path), &ALL, &EmptyCatalog).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "read log `{}`: it is compressed with lz4 (LZ4Block stream), expected plain \
                 text, zstd or gzip",
                path.display()
            )
        );
    }

    fn json_lines(lines: &str) -> Workload {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        std::fs::write(&path, lines).unwrap();
        let column = |name: &str, kind| (name.to_owned(), kind);
        let catalog = BTreeMap::from([
            ("orders".to_owned(), vec![
                column("o_orderkey", ColumnType::Integer),
                column("o_custkey", ColumnType::Integer),
                column("o_orderdate", ColumnType::Date),
            ]),
            ("lineitem".to_owned(), vec![column("l_orderkey", ColumnType::Integer)]),
        ]);
        collect(&[path], &ALL, &catalog).unwrap()
    }

    #[test]
    fn json_lines_are_read_with_their_counts() {
        let workload = json_lines(concat!(
            r#"{"ts":"2026-11-29T10:00:01Z","sql":"SELECT 1 FROM lineitem, orders WHERE l_orderkey = o_orderkey","duration_ms":12.4,"warehouse":"x"}"#,
            "\n",
            r#"{"ts":1795900000000,"sql":"SELECT count(*) FROM sales.orders WHERE o_orderdate < '1995-01-01'","bytes_read":77,"id":"a"}"#,
            "\nnot json\n",
            r#"{"ts":1,"sql":"SELECT 1 FROM orders","status":"FAILED"}"#,
            "\n",
            r#"{"ts":2,"sql":"SHOW TABLES"}"#,
            "\n",
            r#"{"ts":3,"sql":"SELECT FROM","id":"bad"}"#,
            "\n",
            r#"{"ts":4,"sql":"SEL"#,
        ));
        let report = &workload.report;
        assert_eq!((report.statements, report.parsed, report.unparsed), (3, 2, 1));
        assert_eq!((report.skipped.failed, report.skipped.system), (1, 1));
        assert_eq!((report.malformed_lines, report.truncated), (1, true));
        insta::assert_snapshot!(format!("{:#?}", report.reasons), @"");
        insta::assert_snapshot!(edges(&workload), @"");
        let ids: Vec<&str> = workload.records.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(ids, ["bad", "a", "history.jsonl:1"]);
        assert_eq!(workload.records[1].bytes_read(), Some(77));
        assert_eq!(workload.records[2].duration_ms, Some(12));
        assert_eq!(workload.records[1].scans[0].filters[0].range.as_ref().unwrap().to_string(), "(-∞, 1995-01-01)");
    }
}
