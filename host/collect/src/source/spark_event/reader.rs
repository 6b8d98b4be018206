//! The pass over the lines.
//!
//! 1. Of each line the event's name is read; the name tells how much of the rest is looked at.
//! 2. An execution's events are kept until it ends; what comes before its start waits for it.
//! 3. Of adaptive updates only the last one is parsed, when the execution ends.
//! 4. Whatever is kept has a bound: beyond it the oldest execution is given as one without an end.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use lakebed_model::{ParseReport, QueryStatus};

use crate::{
    Catalog, CollectError,
    lineage::{spark_plan::PlanTree, sql::Dialect},
    source::{
        LogHead, LogNote, LogPath, LogSource, Statement,
        exclude::{self, Exclusion},
        lines::{Line, Lines},
    },
};

use super::{
    event::{self, Event, Interest, LoggedPlan},
    execution::{Ending, Execution, Work},
    json::Malformed,
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
        head.lines.iter().any(|line| {
            // Other engines' lines may have an `Event` too; Spark has said its own since version 1.
            event::name(line.as_bytes()).is_ok_and(|name| event::is_sparks(&name))
        })
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
            let (line, is_whole) = match line {
                Line::Whole(line) => (line, true),
                Line::Unfinished(line) => (line, false),
            };
            let Err(problem) = reader.line(line) else { continue };
            if is_whole {
                reader.report.malformed_lines += 1;
                let what =
                    format!("no event: expected {} at byte {}", problem.expected, problem.at);
                reader.report.add_damage(lines.damage_here(&what));
            } else {
                reader.report.truncated = true;
                reader.report.add_damage(lines.damage_here("cut"));
            }
        }
        lines.count_damage(&mut reader.report);
        reader.finish(log)
    }
}

/// Guesses the application's id from the name of the log, for logs whose start is elsewhere.
fn application_of(root: &Path) -> String {
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.strip_prefix("eventlog_v2_").unwrap_or(&name);
    stem.split('.').next().unwrap_or(stem).to_owned()
}

/// Bytes of plans that are kept; beyond, the oldest execution is taken for one without an end.
const MAX_HELD_BYTES: usize = 48 << 20;
/// Row counts that are kept; beyond, the oldest are forgotten.
const MAX_COUNTS: usize = 1 << 20;
/// Ended executions that are remembered, so that what comes late is not taken for early.
const MAX_ENDED: usize = 1 << 14;
/// What an execution takes besides its lines, and a count of its driver, roughly.
const ENTRY_BYTES: usize = 512;
const COUNT_BYTES: usize = 32;
/// Names of events that are counted one by one.
const MAX_NAMES: usize = 64;

struct Reader<'s> {
    application: String,
    sink: &'s mut dyn FnMut(Statement),
    report: ParseReport,
    /// Executions without an end so far, by id.
    running: BTreeMap<u64, Execution>,
    /// What came before the start of its execution.
    early: BTreeMap<u64, Early>,
    /// The line of the last adaptive update, by execution.
    updates: BTreeMap<u64, String>,
    /// Bytes that are kept for executions that have not ended, by execution and in all.
    held: BTreeMap<u64, usize>,
    held_bytes: usize,
    /// The latest executions that have ended.
    ended: BTreeSet<u64>,
    /// Jobs that run, with their execution.
    jobs: BTreeMap<u64, u64>,
    /// Executions with a job that failed.
    failed: BTreeSet<u64>,
    /// Work of ended executions whose root still runs, by root.
    nested: BTreeMap<u64, Work>,
    /// Rows by accumulator.
    stage_rows: BTreeMap<u64, u64>,
    /// Events by name, to say what a log without SQL does hold.
    seen: BTreeMap<String, u64>,
    saw_sql: bool,
    /// The last time that an execution told.
    last_time: i64,
}

/// Events of an execution that has not started yet.
#[derive(Debug, Default)]
struct Early {
    driver_counts: Vec<(u64, u64)>,
    ending: Option<Ending>,
}

impl<'s> Reader<'s> {
    fn new(application: String, sink: &'s mut dyn FnMut(Statement)) -> Self {
        Self {
            application,
            sink,
            report: ParseReport::default(),
            running: BTreeMap::new(),
            early: BTreeMap::new(),
            updates: BTreeMap::new(),
            held: BTreeMap::new(),
            held_bytes: 0,
            ended: BTreeSet::new(),
            jobs: BTreeMap::new(),
            failed: BTreeSet::new(),
            nested: BTreeMap::new(),
            stage_rows: BTreeMap::new(),
            seen: BTreeMap::new(),
            saw_sql: false,
            last_time: 0,
        }
    }

    /// Reads one line.
    fn line(&mut self, line: &[u8]) -> Result<(), Malformed> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let name = event::name(line)?;
        let interest = event::interest(&name);
        match interest {
            Interest::End => {
                if !line.trim_ascii_end().ends_with(b"}") {
                    return Err(Malformed { at: line.len(), expected: "`}`" });
                }
            }
            Interest::Form => event::check(&text_of(line))?,
            Interest::Whole => {
                let text = text_of(line);
                if let Some(event) = event::read(&name, &text)? {
                    self.event(event, &text);
                }
            }
        }
        self.see(&name);
        Ok(())
    }

    fn see(&mut self, name: &str) {
        if !event::is_sparks(name) {
            self.report.unknown_records += 1;
        }
        self.saw_sql |= event::is_sql(name);
        if self.saw_sql {
            return;
        }
        if let Some(count) = self.seen.get_mut(name) {
            *count += 1;
        } else if self.seen.len() < MAX_NAMES {
            self.seen.insert(name.chars().take(100).collect(), 1);
        }
    }

    fn event(&mut self, event: Event, line: &str) {
        match event {
            Event::Application { id } => self.begin(id),
            Event::Start { id, root, description, time, plan } => {
                self.last_time = time.unwrap_or(self.last_time);
                let execution = Execution {
                    root: root.unwrap_or(id),
                    description,
                    started_at: self.last_time,
                    first: plan,
                    last: None,
                    driver_counts: BTreeMap::new(),
                };
                self.start(id, execution, line.len());
            }
            Event::Update { id } if self.ended.contains(&id) => {}
            Event::Update { id } => {
                let update = self.updates.entry(id).or_default();
                let growth = line.len().saturating_sub(update.capacity());
                update.clear();
                update.push_str(line);
                self.hold(id, growth);
            }
            Event::DriverCounts { id, counts } => {
                let bytes = counts.len() * COUNT_BYTES;
                if let Some(execution) = self.running.get_mut(&id) {
                    execution.driver_counts.extend(counts);
                } else if !self.ended.contains(&id) && self.early.len() < MAX_ENDED {
                    self.early.entry(id).or_default().driver_counts.extend(counts);
                } else {
                    return;
                }
                self.hold(id, bytes);
            }
            Event::StageRows { counts } => {
                self.stage_rows.extend(counts);
                while self.stage_rows.len() > MAX_COUNTS {
                    self.stage_rows.pop_first();
                }
            }
            Event::Job { id, execution } => {
                self.jobs.insert(id, execution);
                if self.jobs.len() > MAX_ENDED {
                    self.jobs.pop_first();
                }
            }
            Event::JobFailed { id } => {
                if let Some(execution) = self.jobs.remove(&id) {
                    self.failed.insert(execution);
                }
                if self.failed.len() > MAX_ENDED {
                    self.failed.pop_first();
                }
            }
            Event::End { id, time, failed } => {
                self.last_time = time.unwrap_or(self.last_time);
                let failed = failed.unwrap_or_else(|| self.failed.contains(&id));
                let status = if failed { QueryStatus::Failed } else { QueryStatus::Finished };
                self.end(id, Ending { time, status });
            }
        }
    }

    /// Begins an application; one log may hold several behind one another.
    fn begin(&mut self, application: String) {
        if !self.running.is_empty() || !self.ended.is_empty() {
            self.end_all();
            self.ended.clear();
            self.jobs.clear();
            self.stage_rows.clear();
        }
        self.application = application;
    }

    fn start(&mut self, id: u64, mut execution: Execution, line_bytes: usize) {
        // An id that comes again without an application between is another execution.
        self.ended.remove(&id);
        let early = self.early.remove(&id).unwrap_or_default();
        execution.driver_counts.extend(early.driver_counts);
        self.running.insert(id, execution);
        match early.ending {
            Some(ending) => self.end(id, ending),
            None => self.hold(id, line_bytes + ENTRY_BYTES),
        }
    }

    fn end(&mut self, id: u64, ending: Ending) {
        let Some(mut execution) = self.running.remove(&id) else {
            if !self.ended.contains(&id) && self.early.len() < MAX_ENDED {
                self.early.entry(id).or_default().ending = Some(ending);
            }
            return;
        };
        self.release(id);
        self.failed.remove(&id);
        if let Some(update) = self.updates.remove(&id) {
            execution.last = event::plan_of_update(&update);
        }
        self.work_of(id, &execution, ending);
        self.ended.insert(id);
        if self.ended.len() > MAX_ENDED {
            self.ended.pop_first();
        }
        if self.running.is_empty() {
            // Accumulator ids never come again once their execution has ended.
            self.stage_rows.clear();
        }
    }

    fn work_of(&mut self, id: u64, execution: &Execution, ending: Ending) {
        if execution.plans().any(|plan| plan.text_over_limit) {
            self.report.notes.insert(
                "the text of a plan is over the limit: the plan's tree was read alone".to_owned(),
            );
        }
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
        if let Some(exclusion) = exclusion(execution, &work) {
            exclusion.count(&mut self.report.skipped);
        } else if ending.status == QueryStatus::Failed {
            self.report.skipped.failed += 1;
        } else if execution.plans().all(is_missing) && work.scans.is_empty() {
            self.report.skipped.no_plan += 1;
        } else if work.scans.is_empty() {
            self.report.skipped.system += 1;
        } else {
            let id = format!("{}/{id}", self.application);
            (self.sink)(execution.statement(id, work, ending));
        }
    }

    /// Counts what is kept for an execution, and gives the oldest ones up while it is too much.
    fn hold(&mut self, id: u64, bytes: usize) {
        *self.held.entry(id).or_default() += bytes;
        self.held_bytes += bytes;
        while self.held_bytes > MAX_HELD_BYTES {
            let Some((&oldest, _)) = self.held.first_key_value() else { return };
            self.report.notes.insert(
                "too many executions were open at once: the oldest were given without their end"
                    .to_owned(),
            );
            if self.running.contains_key(&oldest) {
                self.end(oldest, Ending { time: None, status: QueryStatus::Unknown });
            } else {
                self.updates.remove(&oldest);
                self.early.remove(&oldest);
                self.release(oldest);
            }
        }
    }

    fn release(&mut self, id: u64) {
        let bytes = self.held.remove(&id).unwrap_or_default();
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }

    /// Gives the executions that are still open; nested ones before their roots.
    fn end_all(&mut self) {
        let ending = Ending { time: None, status: QueryStatus::Unknown };
        let is_nested = |(id, execution): &(&u64, &Execution)| execution.root != **id;
        let (nested, roots): (Vec<_>, Vec<_>) = self.running.iter().partition(is_nested);
        let ids: Vec<u64> = nested.iter().chain(&roots).map(|(id, _)| **id).collect();
        self.report.open_executions += u64::try_from(ids.len()).unwrap_or(u64::MAX);
        for id in ids {
            self.end(id, ending);
        }
        let orphans = self.early.keys().chain(self.updates.keys()).collect::<BTreeSet<_>>().len();
        // Work for a query that the log never starts: the log begins or ends too early.
        if orphans > 0 || !self.nested.is_empty() {
            self.report.truncated = true;
            self.report.notes.insert("the start of an execution is not in the log".to_owned());
        }
        self.early.clear();
        self.updates.clear();
        self.held.clear();
        self.held_bytes = 0;
        self.nested.clear();
        self.failed.clear();
    }

    fn finish(mut self, log: &LogPath) -> Result<ParseReport, CollectError> {
        if !self.saw_sql && log.notes.is_empty() {
            return Err(CollectError::NoSqlStatements {
                path: log.root.clone(),
                events: self.seen,
            });
        }
        self.end_all();
        for note in &log.notes {
            self.report.notes.insert(match note {
                LogNote::Compacted => "a log is compacted, its history incomplete".to_owned(),
                LogNote::InProgress => "an application is still in progress".to_owned(),
            });
        }
        Ok(self.report)
    }
}

/// Reads bytes as text, with replacements for what is none. (Checking first is many times faster than
/// the standard library's lossy reading.)
fn text_of(line: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(line),
    }
}

fn is_missing(plan: &LoggedPlan) -> bool {
    plan.tree.is_empty() && plan.description.is_empty()
}

/// Tells commands about tables from queries: by the command in the plan, or, where no table is
/// scanned, by the text. (A label such as "show of hands" must not hide a query.)
fn exclusion(execution: &Execution, work: &Work) -> Option<Exclusion> {
    let tree = &execution.first.tree;
    let root = if tree.is_empty() { "" } else { tree.node(PlanTree::ROOT).name.as_str() };
    if root.contains("ExplainCommand") {
        return Some(Exclusion::Explain);
    }
    const ABOUT_TABLES: [&str; 9] =
        ["Show", "Describe", "Analyze", "Optimize", "Vacuum", "Set", "Reset", "Alter", "Refresh"];
    let command = root.strip_prefix("Execute ");
    let about_tables =
        command.is_some_and(|name| ABOUT_TABLES.iter().any(|verb| name.starts_with(verb)));
    if about_tables {
        return Some(Exclusion::Metadata);
    }
    // A single word is a name rather than a statement.
    let is_name = !execution.description.trim().contains(char::is_whitespace);
    let of_text = exclude::of_text(&execution.description).filter(|_| !is_name);
    of_text.filter(|found| *found == Exclusion::Own || work.scans.is_empty())
}
