//! A source whose rows are statements: a list of columns and one function.

use std::{collections::BTreeSet, ops::ControlFlow, time::UNIX_EPOCH};

use lakebed_model::{Instant, ParseReport};

use super::{Entry, Form, Reader, Refusal, Row, each, names};
use crate::{
    Catalog, CollectError,
    lineage::sql::Dialect,
    redact,
    source::{LogHead, LogPath, LogSource, Statement},
};

/// A vendor's history, one row a statement.
#[derive(Debug)]
pub(crate) struct RowSource {
    /// The name that `--format` takes.
    pub(crate) name: &'static str,
    /// The dialect of the statements.
    pub(crate) dialect: &'static str,
    /// Tells by form and names whether an export is of this source.
    pub(crate) recognizes: fn(&LogHead) -> bool,
    /// Columns without which nothing can be read; of each list one is enough.
    pub(crate) required: &'static [&'static [&'static str]],
    /// Turns a row into an entry.
    pub(crate) entry: fn(&Row) -> Result<Entry, Refusal>,
}

impl LogSource for RowSource {
    fn name(&self) -> &'static str {
        self.name
    }

    fn dialect(&self) -> Option<Dialect> {
        Dialect::parse(self.dialect).ok().filter(|dialect| *dialect != Dialect::Generic)
    }

    fn recognizes(&self, head: &LogHead) -> bool {
        (self.recognizes)(head)
    }

    fn read(
        &self,
        log: &LogPath,
        catalog: &dyn Catalog,
        sink: &mut dyn FnMut(Statement),
    ) -> Result<ParseReport, CollectError> {
        let form = LogHead::of(log)?.form;
        let mut report = ParseReport::default();
        let mut entries = Vec::new();
        let (mut rows, mut statements) = (0_u64, 0_u64);
        let damage = each(form, log, &mut |row| {
            rows += 1;
            match (self.entry)(&row) {
                Ok(entry) => entries.push(entry),
                Err(Refusal::LeftOut(left_out)) => left_out.count(&mut report),
                Err(Refusal::Irrelevant) => {}
                Err(Refusal::Malformed) => {
                    tracing::debug!(log = %log.root.display(), row = row.place(), "no statement");
                    report.malformed_lines += 1;
                    return ControlFlow::Continue(());
                }
            }
            statements += 1;
            ControlFlow::Continue(())
        })?;
        damage.count(&mut report);
        if statements == 0 {
            check_columns(self, form, log)?;
            return Err(CollectError::NoSqlStatements {
                path: log.root.clone(),
                events: [("malformed lines".to_owned(), report.malformed_lines)].into(),
            });
        }
        let file_time = modified(log);
        for entry in entries.iter_mut().filter(|entry| entry.at_file_time) {
            entry.started_at = file_time;
        }
        let log_name = log.root.file_name().map(|name| name.to_string_lossy().into_owned());
        let (source, dialect) = (self.name, self.dialect);
        let log_name = log_name.unwrap_or_default();
        Reader { source, dialect, log_name, catalog, report: &mut report, sink }.read(entries);
        Ok(report)
    }
}

/// When a log was written last; the beginning of time where no file tells.
fn modified(log: &LogPath) -> Instant {
    let time = std::fs::metadata(&log.root).and_then(|file| file.modified()).ok();
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let ms = since.and_then(|since| i64::try_from(since.as_millis()).ok());
    Instant::from_epoch_ms(ms.unwrap_or(0))
}

/// Says which required column an export lacks.
///
/// # Errors
/// Fails when it lacks one and has others.
pub(crate) fn check_columns(
    source: &RowSource,
    form: Form,
    log: &LogPath,
) -> Result<(), CollectError> {
    let found: BTreeSet<String> = names(form, log)?;
    let is_missing = |any_of: &&&[&str]| !any_of.iter().any(|name| found.contains(*name));
    match source.required.iter().find(is_missing) {
        Some(any_of) if !found.is_empty() => Err(CollectError::MissingColumn {
            path: log.root.clone(),
            format: source.name,
            column: any_of.join("` or `"),
            // Without a header these are the first row's values.
            found: found
                .iter()
                .map(|name| redact::glimpse(name, 40))
                .collect::<Vec<_>>()
                .join(", "),
        }),
        _ => Ok(()),
    }
}
