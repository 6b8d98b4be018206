//! From paths to a workload.

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    thread::available_parallelism,
};

use lakebed_model::{ParseReport, QueryStatus, Workload};

use crate::{
    Catalog, CollectError, example, names, redact,
    source::{ALL_SOURCES, LogHead, LogPath, LogSource, Reading, Statement, discover, exclude},
    twice,
    window::{self, Span},
    workers,
};

/// What a caller may say about the reading of a history; by default nothing is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectOptions {
    /// The name of the only format to read; `None` recognizes formats by content.
    pub format: Option<String>,
    /// Keeps the statements that started within this many milliseconds before the window's end;
    /// `None` keeps all.
    pub window_ms: Option<u64>,
    /// The window ends this many milliseconds before the newest statement.
    pub slide_ms: u64,
    /// A statement this many milliseconds before the window's end counts half; `None` lets all
    /// count the same.
    pub half_life_ms: Option<u64>,
    /// Logs that are read at once; `None` is one for each core.
    pub threads: Option<NonZeroUsize>,
    /// Leaves constants and names of people out of the records.
    pub redact: bool,
}

/// Reads logs and folders of logs into one workload.
///
/// Logs are read in parallel; the result does not depend on how many. Statements that are nobody's
/// workload and statements with an id that was read already are dropped and counted, the rest is
/// sorted by start and id, and table names lose catalog and schema where they are unique without.
///
/// # Errors
/// Fails when a path is missing or holds no log, when a log that the caller names cannot be read,
/// when no log holds an SQL statement, and when the wanted format does not exist. A log that is cut or
/// damaged, a malformed line or an unreadable statement is no failure but is counted in the report.
pub fn collect(
    paths: &[PathBuf],
    options: &CollectOptions,
    catalog: &dyn Catalog,
) -> Result<Workload, CollectError> {
    let sources = wanted_sources(options.format.as_deref())?;
    let threads = options.threads.or_else(|| available_parallelism().ok());
    let (mut statements, mut report) =
        read_paths(paths, &sources, catalog, threads.unwrap_or(NonZeroUsize::MIN))?;
    drop_excluded(&mut statements, &mut report);
    drop_duplicates(&mut statements, &mut report);
    report.skipped.duplicate += twice::drop_counted(&mut statements);
    let span = Span { length_ms: options.window_ms, slide_ms: options.slide_ms };
    report.skipped.outside_window += window::keep(&mut statements, span);
    statements.sort_by(|a, b| {
        (a.record.started_at, &a.record.id).cmp(&(b.record.started_at, &b.record.id))
    });
    names::shorten(&mut statements);
    if options.redact {
        for statement in &mut statements {
            redact::record(&mut statement.record);
            // Of text that nobody could read nobody knows what is a constant.
            if matches!(statement.reading, Reading::Unread { .. }) {
                statement.record.sql = None;
            }
        }
    }
    let window = window::span(&statements);
    for statement in &statements {
        count(statement, &mut report);
    }
    tracing::info!(
        paths = paths.len(),
        statements = report.statements,
        unparsed = report.unparsed,
        "collected"
    );
    let records = statements.into_iter().map(|statement| statement.record).collect();
    Ok(Workload { window, records, report, half_life_ms: options.half_life_ms })
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

/// Reads every log under the paths. A log without SQL is a failure only when a path has no other.
fn read_paths(
    paths: &[PathBuf],
    sources: &[&'static dyn LogSource],
    catalog: &dyn Catalog,
    threads: NonZeroUsize,
) -> Result<(Vec<Statement>, ParseReport), CollectError> {
    let mut logs = Vec::new();
    let mut counts = Vec::with_capacity(paths.len());
    for path in paths {
        let found = discover::logs_under(path)?;
        counts.push(found.len());
        logs.extend(found);
    }
    // With a core to spare, one log is decompressed on a thread and read on another.
    let ahead = logs.len() < threads.get();
    for log in &mut logs {
        log.access.ahead = ahead;
    }
    let mut outcomes =
        workers::in_order(&logs, threads, |log| read_log(log, sources, catalog)).into_iter();
    let (mut statements, mut report) = (Vec::new(), ParseReport::default());
    let mut all = logs.iter();
    for (path, count) in paths.iter().zip(counts) {
        let of_path: Vec<_> = all.by_ref().zip(outcomes.by_ref()).take(count).collect();
        merge(path, of_path, &mut statements, &mut report)?;
    }
    Ok((statements, report))
}

/// What a file or a rolling log turned out to be.
type Outcome = Result<Option<(Vec<Statement>, ParseReport)>, CollectError>;

/// Puts the logs of one path together.
fn merge(
    path: &Path,
    outcomes: Vec<(&LogPath, Outcome)>,
    statements: &mut Vec<Statement>,
    report: &mut ParseReport,
) -> Result<(), CollectError> {
    let files = outcomes.iter().map(|(log, _)| log.parts.len()).sum();
    let mut failure = None;
    let mut read_count = 0_usize;
    for (log, outcome) in outcomes {
        match outcome {
            Ok(Some((mut found, part))) => {
                statements.append(&mut found);
                report.merge(&part);
                read_count += 1;
            }
            Ok(None) => {}
            Err(error @ CollectError::NoSqlStatements { .. }) => failure = Some(error),
            // In a folder of many applications one is often somebody else's.
            Err(error) if !log.named_by_caller => {
                tracing::warn!(log = %log.root.display(), "cannot {error}");
                report.unreadable_logs += 1;
                report.notes.insert("a log of a folder could not be opened".to_owned());
                failure.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match failure {
        Some(error) if read_count == 0 => Err(error),
        None if read_count == 0 => Err(CollectError::NoLogInFolder {
            folder: path.to_owned(),
            files,
            known: known_formats(),
        }),
        _ => Ok(()),
    }
}

/// Reads one log; `None` when it is of no known format and the caller did not name it.
fn read_log(log: &LogPath, sources: &[&'static dyn LogSource], catalog: &dyn Catalog) -> Outcome {
    let Some(source) = recognized(log, sources)? else {
        return if log.named_by_caller { Err(unrecognized(log)?) } else { Ok(None) };
    };
    tracing::debug!(log = %log.root.display(), source = source.name(), "reading");
    let mut statements = Vec::new();
    let report = source.read(log, catalog, &mut |statement| statements.push(statement))?;
    if report.truncated || report.malformed_lines > 0 || report.damaged_stretches > 0 {
        tracing::warn!(
            log = %log.root.display(),
            truncated = report.truncated,
            malformed_lines = report.malformed_lines,
            "log is damaged"
        );
    }
    Ok(Some((statements, report)))
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

/// Drops what the text or the tables show to be nobody's workload.
fn drop_excluded(statements: &mut Vec<Statement>, report: &mut ParseReport) {
    statements.retain(|statement| {
        let of_text = statement.record.sql.as_deref().and_then(exclude::of_text);
        let exclusion = match of_text {
            None if exclude::reads_own_records(&statement.record) => Some(exclude::Exclusion::Own),
            other => other,
        };
        if let Some(exclusion) = exclusion {
            exclusion.count(&mut report.skipped);
        }
        exclusion.is_none()
    });
}

/// Keeps one statement of each id: the first one that ended, or the first. (The log of a running
/// application is often copied once more when it is complete.)
fn drop_duplicates(statements: &mut Vec<Statement>, report: &mut ParseReport) {
    let mut kept: BTreeMap<String, usize> = BTreeMap::new();
    let mut unique: Vec<Statement> = Vec::with_capacity(statements.len());
    for statement in statements.drain(..) {
        let Some(&index) = kept.get(&statement.record.id) else {
            kept.insert(statement.record.id.clone(), unique.len());
            unique.push(statement);
            continue;
        };
        report.skipped.duplicate += 1;
        let is_open = |statement: &Statement| statement.record.status == QueryStatus::Unknown;
        if is_open(&unique[index]) && !is_open(&statement) {
            unique[index] = statement;
        }
    }
    *statements = unique;
}

fn count(statement: &Statement, report: &mut ParseReport) {
    report.statements += 1;
    let reasons: &[String] = match &statement.reading {
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
        let reason = redact::reason(reason);
        if !report.examples.contains_key(&reason) {
            report.examples.insert(reason.clone(), example::of(statement));
        }
        *report.reasons.entry(reason).or_default() += 1;
    }
}
