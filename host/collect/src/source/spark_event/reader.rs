//! The pass over the lines.

use std::{collections::BTreeMap, path::Path};

use lakebed_model::{ParseReport, QueryStatus};

use crate::{
    Catalog, CollectError,
    lineage::sql::Dialect,
    source::{
        LogHead, LogPath, LogSource, Statement,
        lines::{Line, Lines},
    },
};

use super::{
    event::{self, Event},
    execution::{Ending, Execution, Work},
};

/// The source's name.
pub(super) const NAME: &str = "spark-event-log";

/// Spark's event log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SparkEventLog;

impl LogSource for SparkEventLog {
    fn name(&self) -> &'static str {
        NAME
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(Dialect::Spark)
    }

    fn recognizes(&self, head: &LogHead) -> bool {
        head.lines.iter().any(|line| event::name(line).is_some())
    }

    /// The catalog is not asked: the plans in the log are resolved already.
    fn read(
        &self,
        log: &LogPath,
        _catalog: &dyn Catalog,
        sink: &mut dyn FnMut(Statement),
    ) -> Result<ParseReport, CollectError> {
        let mut reader = Reader::new(application_of(&log.root), sink);
        let mut lines = Lines::open(log);
        while let Some(line) = lines.next_line()? {
            match line {
                Line::Whole(line) => reader.line(line, false),
                Line::Unfinished(line) => reader.line(line, true),
            }
        }
        reader.report.truncated |= lines.truncated();
        reader.finish(log)
    }
}

/// Guesses the application's id from the name of the log, for logs whose start is elsewhere.
fn application_of(root: &Path) -> String {
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.strip_prefix("eventlog_v2_").unwrap_or(&name);
    stem.split('.').next().unwrap_or(stem).to_owned()
}

struct Reader<'s> {
    application: String,
    sink: &'s mut dyn FnMut(Statement),
    report: ParseReport,
    /// Executions without an end so far, by id.
    running: BTreeMap<u64, Execution>,
    /// Work of ended executions whose root still runs, by root.
    nested: BTreeMap<u64, Work>,
    /// Rows by accumulator.
    stage_rows: BTreeMap<u64, u64>,
    /// Events by name, to say what a log without SQL does hold.
    seen: BTreeMap<String, u64>,
    saw_sql: bool,
}

impl<'s> Reader<'s> {
    fn new(application: String, sink: &'s mut dyn FnMut(Statement)) -> Self {
        Self {
            application,
            sink,
            report: ParseReport::default(),
            running: BTreeMap::new(),
            nested: BTreeMap::new(),
            stage_rows: BTreeMap::new(),
            seen: BTreeMap::new(),
            saw_sql: false,
        }
    }

    /// Reads one line. A malformed line is counted; the unfinished last one is a cut instead.
    fn line(&mut self, line: &[u8], unfinished: bool) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        if self.try_line(line).is_none() {
            if unfinished {
                self.report.truncated = true;
            } else {
                self.report.malformed_lines += 1;
            }
        }
    }

    /// `None` for a line that is no event.
    fn try_line(&mut self, line: &[u8]) -> Option<()> {
        let text = str::from_utf8(line).ok()?;
        let name = event::name(text)?;
        if event::is_sql(name) {
            self.saw_sql = true;
        } else if !self.saw_sql {
            *self.seen.entry(name.to_owned()).or_default() += 1;
        }
        match event::read(name, text).ok()? {
            Some(event) => self.event(event),
            None => return event::check(name, text).then_some(()),
        }
        Some(())
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Application { id } => self.application = id,
            Event::Start { id, root, description, time, plan } => {
                let execution = Execution {
                    root: root.unwrap_or(id),
                    description,
                    started_at: time,
                    first: plan,
                    last: None,
                    driver_counts: BTreeMap::new(),
                };
                self.running.insert(id, execution);
            }
            Event::Update { id, plan } => {
                if let Some(execution) = self.running.get_mut(&id) {
                    execution.last = Some(plan);
                }
            }
            Event::DriverCounts { id, counts } => {
                if let Some(execution) = self.running.get_mut(&id) {
                    execution.driver_counts.extend(counts);
                }
            }
            Event::StageRows { counts } => self.stage_rows.extend(counts),
            Event::End { id, time, failed } => {
                if let Some(execution) = self.running.remove(&id) {
                    let status = if failed { QueryStatus::Failed } else { QueryStatus::Finished };
                    self.ended(id, &execution, Ending { time: Some(time), status });
                }
                if self.running.is_empty() {
                    // Accumulator ids never come again once their execution has ended.
                    self.stage_rows.clear();
                }
            }
        }
    }

    fn ended(&mut self, id: u64, execution: &Execution, ending: Ending) {
        let mut work = execution.work(&self.stage_rows);
        if execution.root != id {
            if work.scans.is_empty() {
                self.report.skipped.system += 1;
            } else {
                let all = self.nested.entry(execution.root).or_default();
                all.joins.append(&mut work.joins);
                all.scans.append(&mut work.scans);
                all.losses.append(&mut work.losses);
            }
            return;
        }
        if let Some(mut nested) = self.nested.remove(&id) {
            work.joins.append(&mut nested.joins);
            work.scans.append(&mut nested.scans);
            work.losses.append(&mut nested.losses);
        }
        if work.scans.is_empty() {
            self.report.skipped.system += 1;
        } else if ending.status == QueryStatus::Failed {
            self.report.skipped.failed += 1;
        } else {
            let id = format!("{}/{id}", self.application);
            (self.sink)(execution.statement(id, work, ending));
        }
    }

    /// Gives the executions that the log leaves open; nested ones before their roots.
    fn finish(mut self, log: &LogPath) -> Result<ParseReport, CollectError> {
        if !self.saw_sql {
            return Err(CollectError::NoSqlStatements {
                path: log.root.clone(),
                events: self.seen,
            });
        }
        let open = std::mem::take(&mut self.running);
        let ending = Ending { time: None, status: QueryStatus::Unknown };
        let is_nested = |id: u64, execution: &Execution| execution.root != id;
        for (id, execution) in open.iter().filter(|(id, e)| is_nested(**id, e)) {
            self.ended(*id, execution, ending);
        }
        for (id, execution) in open.iter().filter(|(id, e)| !is_nested(**id, e)) {
            self.ended(*id, execution, ending);
        }
        // Work for a query that the log never starts: the log begins or ends too early.
        self.report.truncated |= !self.nested.is_empty();
        Ok(self.report)
    }
}
