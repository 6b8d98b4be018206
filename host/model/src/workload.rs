//! What a query history says, in one shape for every source.

use std::collections::{BTreeMap, BTreeSet};

use crate::{ColumnRef, Instant, TableName, ValueRange};

/// How a query ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryStatus {
    /// The query finished.
    Finished,
    /// The query failed or was cancelled.
    Failed,
    /// The log ends before the query does.
    Unknown,
}

/// The logical kind of a join, in Spark's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JoinKind {
    /// Inner join.
    Inner,
    /// Left outer join.
    LeftOuter,
    /// Right outer join.
    RightOuter,
    /// Full outer join.
    FullOuter,
    /// Left semi join (also `EXISTS` and `IN`).
    LeftSemi,
    /// Left anti join (also `NOT EXISTS`).
    LeftAnti,
    /// Existence join: semi join that keeps a flag.
    Existence,
}

impl JoinKind {
    /// Returns the kind's name in machine output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inner => "inner",
            Self::LeftOuter => "left_outer",
            Self::RightOuter => "right_outer",
            Self::FullOuter => "full_outer",
            Self::LeftSemi => "left_semi",
            Self::LeftAnti => "left_anti",
            Self::Existence => "existence",
        }
    }
}

/// How an engine ran a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JoinStrategy {
    /// Both sides shuffled and sorted.
    SortMerge,
    /// One side sent whole to every task.
    Broadcast,
    /// Both sides shuffled, one hashed.
    ShuffleHash,
}

impl JoinStrategy {
    /// Returns the strategy's name in machine output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SortMerge => "sort_merge",
            Self::Broadcast => "broadcast",
            Self::ShuffleHash => "shuffle_hash",
        }
    }
}

/// One equality join between two base tables, as one query used it.
///
/// `left` ≤ `right` by name; the first column of each pair belongs to `left`. All equalities that
/// one join states between the same two tables are one hyperedge, sorted.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinUse {
    /// The table whose name sorts first.
    pub left: TableName,
    /// The other table; the same one for a self join.
    pub right: TableName,
    /// Column of `left`, column of `right`.
    pub pairs: Vec<(String, String)>,
    /// The logical kind.
    pub kind: JoinKind,
    /// How the engine finally ran it, where the log tells.
    pub strategy: Option<JoinStrategy>,
    /// How the engine first planned it, where that differs or is known.
    pub planned_strategy: Option<JoinStrategy>,
    /// How a hint in the statement's text asks to run it.
    pub hint: Option<JoinStrategy>,
    /// 1 for an edge read from a resolved plan, less for guesses.
    pub confidence: f64,
    /// What else is known of the join.
    pub notes: JoinNotes,
}

/// What a source may know of a join beyond its columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JoinNotes {
    /// A key is cast before it is compared, so the stored order of its column need not be the order
    /// of what is compared.
    pub cast: bool,
    /// Nulls match nulls (`<=>`, `IS NOT DISTINCT FROM`).
    pub null_safe: bool,
    /// Keys of the same join between the same tables that are expressions: the base columns in
    /// them, in the order of `pairs`. No layout of a column serves them.
    pub expressions: Vec<(String, String)>,
    /// Rows that left the join.
    pub rows_out: Option<u64>,
    /// Bytes that the join and the sorts of its inputs spilled.
    pub spill_bytes: Option<u64>,
}

/// How a filter compares its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FilterOperator {
    /// `=` or `<=>` a constant.
    Equal,
    /// `IN` a list of constants.
    In,
    /// `<`, `<=`, `>`, `>=`, `BETWEEN`.
    Range,
    /// A prefix test.
    Prefix,
    /// `IS NULL`.
    IsNull,
    /// Anything else: counted, never simulated.
    Other,
}

impl FilterOperator {
    /// Returns the operator's name in machine output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::In => "in",
            Self::Range => "range",
            Self::Prefix => "prefix",
            Self::IsNull => "is_null",
            Self::Other => "other",
        }
    }
}

/// A filter on one base column, as one scan of one query used it. `IS NOT NULL` is none.
#[derive(Debug, Clone, PartialEq)]
pub struct FilterUse {
    /// The column compared.
    pub column: ColumnRef,
    /// The comparison.
    pub operator: FilterOperator,
    /// The values that may pass, where constants are known (for `In`: from smallest to largest).
    pub range: Option<ValueRange>,
    /// Whether the engine inferred the filter through a join equality.
    pub inferred: bool,
}

/// One scan of a base table by one query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScanUse {
    /// Index into the query's tables is by name; `None` when the log gives the scan no name.
    pub table: Option<TableName>,
    /// Where the table lies, as the log spells it.
    pub location: Option<String>,
    /// Columns the scan reads.
    pub columns: Vec<String>,
    /// Filters that reach this scan.
    pub filters: Vec<FilterUse>,
    /// Bytes of the files read.
    pub bytes_read: Option<u64>,
    /// Files read.
    pub files_read: Option<u64>,
    /// Bytes of the files that the query would have read without pruning at run time, where the
    /// log tells.
    pub bytes_total: Option<u64>,
    /// Files that the query would have read without pruning at run time, where the log tells.
    pub files_total: Option<u64>,
    /// Rows that left the scan.
    pub rows_out: Option<u64>,
}

/// One statement of the history.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryRecord {
    /// Unique within its source, for example `application/execution`.
    pub id: String,
    /// When the statement started.
    pub started_at: Instant,
    /// The name of the log source.
    pub source: String,
    /// The statement's text, where the log has it.
    pub sql: Option<String>,
    /// Identity of the statement without its constants (64 hexadecimal digits).
    pub fingerprint: String,
    /// Wall time in milliseconds.
    pub duration_ms: Option<u64>,
    /// How it ended.
    pub status: QueryStatus,
    /// Equality joins between base tables.
    pub joins: Vec<JoinUse>,
    /// Scans of base tables, with their filters.
    pub scans: Vec<ScanUse>,
    /// Confidence of the lineage tier that read the statement, 0 to 1.
    pub confidence: f64,
}

impl QueryRecord {
    /// Iterates over the filters of all scans.
    pub fn filters(&self) -> impl Iterator<Item = &FilterUse> {
        self.scans.iter().flat_map(|scan| &scan.filters)
    }

    /// Sums the bytes of the scans, where any scan knows them.
    #[must_use]
    pub fn bytes_read(&self) -> Option<u64> {
        let known: Vec<u64> = self.scans.iter().filter_map(|scan| scan.bytes_read).collect();
        if known.is_empty() { None } else { Some(known.iter().sum()) }
    }
}

/// Statements that are nobody's workload, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SkipCounts {
    /// The engine's own queries, and statements that read no table.
    pub system: u64,
    /// Failed or cancelled statements.
    pub failed: u64,
    /// Answers from a result cache.
    pub cached: u64,
    /// Statements with an id that was read already.
    pub duplicate: u64,
    /// `EXPLAIN`: nothing was run.
    pub explain: u64,
    /// `SHOW`, `DESCRIBE`, `USE`, `SET` and their like, and the upkeep of tables.
    pub metadata: u64,
    /// Lakebed's own queries and those of its records.
    pub own: u64,
    /// Executions of which the log has no plan.
    pub no_plan: u64,
    /// Statements outside the time window.
    pub outside_window: u64,
}

impl SkipCounts {
    /// Adds other counts to these.
    pub fn add(&mut self, other: &Self) {
        let Self {
            system,
            failed,
            cached,
            duplicate,
            explain,
            metadata,
            own,
            no_plan,
            outside_window,
        } = other;
        self.system += system;
        self.failed += failed;
        self.cached += cached;
        self.duplicate += duplicate;
        self.explain += explain;
        self.metadata += metadata;
        self.own += own;
        self.no_plan += no_plan;
        self.outside_window += outside_window;
    }
}

/// A place in a log that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Damage {
    /// The file's name, without its folder.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The line's first byte, from 0, in the decompressed file.
    pub offset_bytes: u64,
    /// What is wrong there; never a part of the text.
    pub what: String,
}

/// How much of a history could be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParseReport {
    /// Statements that count as workload.
    pub statements: u64,
    /// Statements read in full.
    pub parsed: u64,
    /// Statements read with losses.
    pub partial: u64,
    /// Statements that could not be read.
    pub unparsed: u64,
    /// Statements left out.
    pub skipped: SkipCounts,
    /// Lines of the log that are no valid record.
    pub malformed_lines: u64,
    /// Lines that are longer than is read.
    pub over_limit_lines: u64,
    /// Stretches of compressed logs that could not be decompressed.
    pub damaged_stretches: u64,
    /// Logs of a folder that could not be opened.
    pub unreadable_logs: u64,
    /// Records of a kind that the log's engine does not have.
    pub unknown_records: u64,
    /// Executions that the log begins and does not end; their statements are kept.
    pub open_executions: u64,
    /// Whether a log ended in the middle of a record or a compressed frame.
    pub truncated: bool,
    /// The first places that could not be read, at most [`ParseReport::MAX_PLACES`].
    pub damage: Vec<Damage>,
    /// Reasons for partial and unparsed statements, with how often each occurred.
    pub reasons: BTreeMap<String, u64>,
    /// For each reason, one statement without constants and names of users.
    pub examples: BTreeMap<String, String>,
    /// What a reader of the report should know of the logs, each once.
    pub notes: BTreeSet<String>,
}

impl ParseReport {
    /// Places beyond these are counted only.
    pub const MAX_PLACES: usize = 100;

    /// Adds another report's counts to this one.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            statements,
            parsed,
            partial,
            unparsed,
            skipped,
            malformed_lines,
            over_limit_lines,
            damaged_stretches,
            unreadable_logs,
            unknown_records,
            open_executions,
            truncated,
            damage,
            reasons,
            examples,
            notes,
        } = other;
        self.statements += statements;
        self.parsed += parsed;
        self.partial += partial;
        self.unparsed += unparsed;
        self.skipped.add(skipped);
        self.malformed_lines += malformed_lines;
        self.over_limit_lines += over_limit_lines;
        self.damaged_stretches += damaged_stretches;
        self.unreadable_logs += unreadable_logs;
        self.unknown_records += unknown_records;
        self.open_executions += open_executions;
        self.truncated |= truncated;
        for place in damage {
            self.add_damage(place.clone());
        }
        for (reason, count) in reasons {
            *self.reasons.entry(reason.clone()).or_default() += count;
        }
        for (reason, example) in examples {
            self.examples.entry(reason.clone()).or_insert_with(|| example.clone());
        }
        self.notes.extend(notes.iter().cloned());
    }

    /// Notes a place, while there are not too many.
    pub fn add_damage(&mut self, place: Damage) {
        if self.damage.len() < Self::MAX_PLACES {
            self.damage.push(place);
        }
    }

    /// Returns the share of statements that were read in full; `None` without statements.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a history has fewer than 2^53 statements")]
    pub fn parse_rate(&self) -> Option<f64> {
        (self.statements > 0).then(|| self.parsed as f64 / self.statements as f64)
    }

    /// Tells whether every byte and every statement of the logs was read, from its start to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let lost = self.malformed_lines
            + self.over_limit_lines
            + self.damaged_stretches
            + self.unreadable_logs
            + self.open_executions
            + self.unparsed;
        lost == 0 && !self.truncated
    }

    /// Lists the commonest reasons why statements could not be read in full, each with its count.
    #[must_use]
    pub fn commonest_reasons(&self, limit: usize) -> Vec<(&str, u64)> {
        let mut reasons: Vec<(&str, u64)> =
            self.reasons.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
        reasons.sort_by(|(a, a_count), (b, b_count)| b_count.cmp(a_count).then_with(|| a.cmp(b)));
        reasons.truncate(limit);
        reasons
    }
}

/// A stretch of time, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// The first instant.
    pub from: Instant,
    /// The last instant.
    pub to: Instant,
}

/// A history in one time window: what the graph is built from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Workload {
    /// From the first statement's start to the last statement's start.
    pub window: Window,
    /// The statements, by start and then id.
    pub records: Vec<QueryRecord>,
    /// What could be read of the history.
    pub report: ParseReport,
    /// After how many milliseconds a statement counts half; `None` lets all count the same.
    pub half_life_ms: Option<u64>,
}

impl Workload {
    /// Returns how much a statement counts: 1 at the window's end, half of that one half-life
    /// earlier, and so on; 1 for all without a half-life.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^53")]
    pub fn weight(&self, record: &QueryRecord) -> f64 {
        let Some(half_life_ms) = self.half_life_ms.filter(|ms| *ms > 0) else { return 1.0 };
        let age_ms = self.window.to.epoch_ms().saturating_sub(record.started_at.epoch_ms()).max(0);
        0.5_f64.powf(age_ms as f64 / half_life_ms as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::{Instant, ParseReport, QueryRecord, QueryStatus, SkipCounts, Window, Workload};

    fn record(started_at: i64) -> QueryRecord {
        QueryRecord {
            id: String::new(),
            started_at: Instant::from_epoch_ms(started_at),
            source: String::new(),
            sql: None,
            fingerprint: String::new(),
            duration_ms: None,
            status: QueryStatus::Finished,
            joins: Vec::new(),
            scans: Vec::new(),
            confidence: 1.0,
        }
    }

    #[test]
    fn a_statement_counts_half_for_each_half_life() {
        let window = Window { from: Instant::from_epoch_ms(0), to: Instant::from_epoch_ms(300) };
        let mut workload = Workload { window, ..Workload::default() };
        let weights =
            |workload: &Workload| [300, 200, 0].map(|at| workload.weight(&record(at)).to_bits());
        assert_eq!(weights(&workload), [1.0, 1.0, 1.0].map(f64::to_bits));
        workload.half_life_ms = Some(100);
        assert_eq!(weights(&workload), [1.0, 0.5, 0.125].map(f64::to_bits));
        workload.half_life_ms = Some(0);
        assert_eq!(weights(&workload), [1.0, 1.0, 1.0].map(f64::to_bits));
    }

    #[test]
    fn a_report_adds_up_and_lists_its_commonest_reasons() {
        let mut report =
            ParseReport { statements: 4, parsed: 3, unparsed: 1, ..ParseReport::default() };
        report.reasons.insert("b".to_owned(), 2);
        let mut other = ParseReport { statements: 1, partial: 1, ..ParseReport::default() };
        other.reasons.extend([("a".to_owned(), 2), ("b".to_owned(), 1), ("c".to_owned(), 1)]);
        other.skipped = SkipCounts { no_plan: 2, explain: 1, ..SkipCounts::default() };
        report.merge(&other);
        assert_eq!(report.commonest_reasons(2), [("b", 3), ("a", 2)]);
        assert_eq!((report.skipped.no_plan, report.skipped.explain), (2, 1));
        assert_eq!(report.parse_rate(), Some(0.6));
        assert!(!report.is_complete());
        assert_eq!(ParseReport::default().parse_rate(), None);
        assert!(ParseReport::default().is_complete());
    }
}
