//! From paths to a workload.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use lakebed_model::{ParseReport, Workload};

use crate::{
    Catalog, CollectError, names, redact,
    source::{ALL_SOURCES, LogHead, LogPath, LogSource, Reading, Statement, discover},
    window,
};

/// What a caller may say about the reading of a history; by default nothing is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectOptions {
    /// The name of the only format to read; `None` recognizes formats by content.
    pub format: Option<String>,
    /// Keeps the statements that started within this many milliseconds before the newest one;
    /// `None` keeps all.
    pub window_ms: Option<u64>,
    /// Leaves constants and names of people out of the records.
    pub redact: bool,
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
    if options.redact {
        statements.iter_mut().for_each(|statement| redact::record(&mut statement.record));
    }
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

fn wanted_sources(format: Option<&str>) -> Result<Vec<&'static dyn LogSource>, CollectError> {
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
        first_line: redact::glimpse(&LogHead::of(log)?.first_line, 60),
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
        *report.reasons.entry(redact::reason(reason)).or_default() += 1;
    }
}
