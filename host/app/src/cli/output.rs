//! Text, tables, JSON and errors: the only module that prints.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};
use lakebed_model::{Damage, ParseReport};
use serde::Serialize;
use serde_json::json;

use crate::error::Error;

/// Standard output in the form that was asked for.
#[derive(Debug)]
pub struct Output {
    json: bool,
    /// Whether its reader has gone: then the work goes on unheard.
    closed: bool,
}

/// How a column of a table is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

impl Output {
    /// Prints JSON or text.
    #[must_use]
    pub const fn new(json: bool) -> Self {
        Self { json, closed: false }
    }

    /// Tells whether JSON was asked for.
    #[must_use]
    pub const fn is_json(&self) -> bool {
        self.json
    }

    /// Prints one JSON document.
    pub(super) fn document(&mut self, view: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(view).map_err(io::Error::from)?;
        self.line(text)
    }

    /// Prints one line of JSON lines.
    pub(super) fn json_line(&mut self, view: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_string(view).map_err(io::Error::from)?;
        self.line(text)
    }

    /// Prints a line of text. A reader that has seen enough, such as `head`, is no reason to leave
    /// statements undone.
    pub(super) fn line(&mut self, text: impl AsRef<str>) -> Result<(), Error> {
        if self.closed {
            return Ok(());
        }
        match write_line(text.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            written => Ok(written?),
        }
    }

    /// Prints a table.
    pub(super) fn table(
        &mut self,
        header: &[(&str, Align)],
        rows: Vec<Vec<String>>,
    ) -> Result<(), Error> {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_style(TableComponent::HeaderLines, '─');
        table.set_style(TableComponent::MiddleHeaderIntersections, '─');
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(header.iter().map(|(name, _)| *name));
        for (index, (_, align)) in header.iter().enumerate() {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(match align {
                    Align::Left => CellAlignment::Left,
                    Align::Right => CellAlignment::Right,
                });
            }
        }
        table.add_rows(rows);
        self.line(table.trim_fmt())
    }
}

fn write_line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Reasons and places that are shown to a person; machine output has more.
const SHOWN: usize = 10;

/// Says how much of a history could be read: a line of counts, then what was lost and why.
pub(super) fn parse_summary(report: &ParseReport) -> String {
    let skipped = &report.skipped;
    let mut text = format!(
        "{} statements: {} read in full, {} in part, {} not; left out: {} without a table of the workload, {} failed, {} cached, {} duplicate",
        report.statements,
        report.parsed,
        report.partial,
        report.unparsed,
        skipped.system,
        skipped.failed,
        skipped.cached,
        skipped.duplicate,
    );
    let more = [
        (skipped.explain, "explained only"),
        (skipped.metadata, "about tables"),
        (skipped.own, "Lakebed's own"),
        (skipped.no_plan, "without a plan"),
        (skipped.outside_window, "outside the window"),
    ];
    for (count, what) in more.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {what}"));
    }
    for loss in losses(report).iter().filter(|loss| !loss.ends_with(NOT_READ)) {
        text.push_str("; ");
        text.push_str(loss);
    }
    if let Some(rate) = report.parse_rate().filter(|rate| *rate < 1.0) {
        text.push_str(&format!("\n  {:.1} % of the statements were read in full", 100.0 * rate));
    }
    for (reason, count) in report.commonest_reasons(SHOWN) {
        text.push_str(&format!("\n  {count} × {reason}"));
        if let Some(example) = report.examples.get(reason) {
            text.push_str(&format!("\n      such as {example}"));
        }
    }
    for place in report.damage.iter().take(SHOWN) {
        let Damage { file, line, offset_bytes, what } = place;
        text.push_str(&format!("\n  {file}, line {line}, byte {offset_bytes}: {what}"));
    }
    if report.damage.len() > SHOWN {
        text.push_str("\n  … (more places with --json)");
    }
    for note in &report.notes {
        text.push_str(&format!("\n  note: {note}"));
    }
    text
}

/// Ends the loss that the counts of statements tell already.
const NOT_READ: &str = "could not be read";

/// Lists what of a history was not read.
pub(super) fn losses(report: &ParseReport) -> Vec<String> {
    let counts = [
        (report.malformed_lines, "malformed lines skipped"),
        (report.over_limit_lines, "lines over the limit skipped"),
        (report.damaged_stretches, "damaged stretches skipped"),
        (report.unreadable_logs, "logs not opened"),
        (report.open_executions, "executions without their end"),
    ];
    let mut losses: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if report.truncated {
        losses.push("a log ends in the middle of a record".to_owned());
    }
    if report.unparsed > 0 {
        losses.push(format!("{} statements {NOT_READ}", report.unparsed));
    }
    losses
}

/// Prints an error on standard error: what, why, what to do; as JSON too when asked for.
pub(super) fn print_error(error: &Error, json: bool) {
    let (remedy, help) = error.remedy();
    let causes = error.causes();
    let mut err = io::stderr().lock();
    let mut text = format!("error: failed to {error}\n");
    for cause in &causes {
        text.push_str(&format!("caused by: {cause}\n"));
    }
    text.push_str(&format!("help: {help}\n"));
    let _ = err.write_all(text.as_bytes());
    if json {
        let document = json!({ "error": {
            "code": remedy.as_str(),
            "message": format!("failed to {error}"),
            "causes": causes,
            "remedy": help,
        }});
        let _ = writeln!(err, "{document}");
    }
}
