//! What a query history says, in one shape for every source.

use std::collections::BTreeMap;

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
    /// Whether a log ended in the middle of a record or a compressed frame.
    pub truncated: bool,
    /// Reasons for partial and unparsed statements, with how often each occurred.
    pub reasons: BTreeMap<String, u64>,
}

impl ParseReport {
    /// Adds another report's counts to this one.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            statements,
            parsed,
            partial,
            unparsed,
            skipped,
            malformed_lines,
            truncated,
            reasons,
        } = other;
        self.statements += statements;
        self.parsed += parsed;
        self.partial += partial;
        self.unparsed += unparsed;
        self.skipped.system += skipped.system;
        self.skipped.failed += skipped.failed;
        self.skipped.cached += skipped.cached;
        self.skipped.duplicate += skipped.duplicate;
        self.malformed_lines += malformed_lines;
        self.truncated |= truncated;
        for (reason, count) in reasons {
            *self.reasons.entry(reason.clone()).or_default() += count;
        }
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
}
