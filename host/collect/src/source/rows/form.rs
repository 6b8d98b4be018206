//! The form of an export, told by its first lines.

use std::{collections::BTreeSet, ops::ControlFlow};

use lakebed_model::ParseReport;

use super::{Row, csv, json, parquet};
use crate::{
    CollectError,
    source::{LogPath, lines::Lines},
};

/// How an export writes its rows down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// One JSON object a line.
    JsonLines,
    /// JSON values of any layout: an array, an object that holds a list, or several of them.
    JsonDocument,
    /// A header and comma-, semicolon- or tab-separated lines; quoted fields may span lines.
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// What of an export could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Damage {
    /// Rows that are no rows of the form.
    pub(crate) malformed: u64,
    /// Whether the export ends in the middle of a row.
    pub(crate) truncated: bool,
    /// Where, and what its lines lost besides.
    pub(crate) lost: ParseReport,
}

impl Damage {
    /// Adds all of it to a report.
    pub(crate) fn count(&self, report: &mut ParseReport) {
        report.malformed_lines += self.malformed;
        report.truncated |= self.truncated;
        report.merge(&self.lost);
    }
}

/// Takes rows; breaks off the reading where it has enough.
pub(crate) type Sink<'s> = dyn FnMut(Row) -> ControlFlow<()> + 's;

impl Form {
    /// Tells the form from lines that are not blank, the first of them first.
    ///
    /// A damaged line must not hide that the others are JSON, and a document that is printed over
    /// many lines must not pass for damage: its inner lines are indented.
    pub(crate) fn of(lines: &[String]) -> Self {
        let Some(first) = lines.first().map(|line| line.trim_start_matches('\u{feff}')) else {
            return Self::JsonLines;
        };
        if first.starts_with("PAR1") {
            return Self::Parquet;
        }
        let is_object = |line: &str| {
            line.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()
        };
        if is_object(first) {
            return Self::JsonLines;
        }
        let text = first.trim();
        if text.starts_with('[') {
            return Self::JsonDocument;
        }
        if lines.iter().skip(1).any(|line| is_object(line)) {
            return Self::JsonLines;
        }
        if text.starts_with('{') { Self::JsonDocument } else { Self::Csv }
    }
}

/// What a log's lines are opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// To be told by their beginning.
    Head,
    /// To be read.
    All,
}

impl Extent {
    /// Opens a log's lines: the only place where rows do.
    pub(super) fn open(self, log: &LogPath) -> Lines {
        match self {
            Self::Head => Lines::peek(log),
            Self::All => Lines::open(log),
        }
    }
}

/// Gives every row of a log to the sink, in the log's order.
///
/// # Errors
/// Fails when the log cannot be opened, decompressed or read as this form at all.
pub(crate) fn each(form: Form, log: &LogPath, sink: &mut Sink<'_>) -> Result<Damage, CollectError> {
    read(form, log, Extent::All, sink)
}

fn read(
    form: Form,
    log: &LogPath,
    extent: Extent,
    sink: &mut Sink<'_>,
) -> Result<Damage, CollectError> {
    match form {
        Form::JsonLines => json::each_line(log, extent, sink),
        Form::JsonDocument => json::each_element(log, extent, sink),
        Form::Csv => csv::each(log, extent, sink),
        Form::Parquet => parquet::each(log, sink),
    }
}

/// Rows whose names tell what an export is.
const HEAD_ROWS: usize = 20;

/// Returns the names of the first rows' fields, in lower case.
///
/// # Errors
/// Fails as [`each`] does.
pub(crate) fn names(form: Form, log: &LogPath) -> Result<BTreeSet<String>, CollectError> {
    match form {
        Form::Csv => return csv::header(log, Extent::Head),
        Form::Parquet => return parquet::columns(log),
        Form::JsonLines | Form::JsonDocument => {}
    }
    let mut names = BTreeSet::new();
    let mut rows = 0;
    read(form, log, Extent::Head, &mut |row| {
        names.extend(row.names().map(ToOwned::to_owned));
        rows += 1;
        if rows < HEAD_ROWS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::Form;

    #[track_caller]
    fn check(text: &str, expected: Form) {
        let lines: Vec<String> =
            text.lines().filter(|line| !line.trim().is_empty()).map(ToOwned::to_owned).collect();
        assert_eq!(Form::of(&lines), expected, "{text}");
    }

    #[test]
    fn first_lines_tell_the_form() {
        check("{\"a\":1}\n{\"a\":2}", Form::JsonLines);
        check("[\n{\"a\":1},\n{\"a\":2}\n]", Form::JsonDocument);
        check("[{\"a\":1},{\"a\":2}]", Form::JsonDocument);
        check("{\n  \"QueryExecution\": {\n    \"Query\": \"x\"\n  }\n}", Form::JsonDocument);
        check("\u{feff}ts,sql\n1,x", Form::Csv);
        check("PAR1\u{15}x", Form::Parquet);
    }

    #[test]
    fn a_damaged_line_does_not_hide_json_lines() {
        check("garbage\n{\"a\":1}", Form::JsonLines);
        check("{\"a\":\n{\"a\":1}", Form::JsonLines);
        check("a,b\n1,{\"a\":1}", Form::Csv);
    }
}
