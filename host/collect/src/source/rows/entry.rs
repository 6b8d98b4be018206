//! What a source's mapping makes of a row.

use std::collections::BTreeMap;

use lakebed_model::{
    ColumnRef, FilterUse, Instant, JoinKind, JoinNotes, JoinStrategy, JoinUse, ParseReport,
    TableName,
};

use super::{Row, Unit};
use crate::{lineage::edge, source::exclude::Exclusion};

/// One statement as its export tells of it, before its text is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    /// The export's id; the row's place takes its part where there is none.
    pub(crate) id: Option<String>,
    /// The line, or the row's number.
    pub(crate) place: u64,
    /// When the statement started.
    pub(crate) started_at: Instant,
    /// Whether the export has no time of it, so that the file's is taken.
    pub(crate) at_file_time: bool,
    /// The text.
    pub(crate) sql: Option<String>,
    /// The dialect's name, where the row tells another than the source's.
    pub(crate) dialect: Option<String>,
    /// Wall time in milliseconds.
    pub(crate) duration_ms: Option<u64>,
    /// Whether the statement was still running when the export was made.
    pub(crate) running: bool,
    /// Catalog and schema of names without, as far as known; the last one is the schema.
    pub(crate) namespace: Vec<String>,
    /// The session, within which temporary tables and views are known.
    pub(crate) session: Option<String>,
    /// What the whole statement read.
    pub(crate) total: TableFacts,
    /// What it read of each table, by full names.
    pub(crate) tables: Vec<TableFacts>,
    /// What the export itself states of joins and filters: used where the text cannot be read.
    pub(crate) stated: Stated,
}

/// Figures of one table's scans in one statement, or of all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TableFacts {
    /// The table's name as fully as the export has it, in lower case.
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) bytes_read: Option<u64>,
    pub(crate) files_read: Option<u64>,
    pub(crate) rows_out: Option<u64>,
}

/// Joins and filters that an export states without their text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Stated {
    pub(crate) joins: Vec<JoinUse>,
    pub(crate) filters: Vec<FilterUse>,
    /// What is stated but makes no edge, each with its reason.
    pub(crate) losses: Vec<String>,
}

/// Why a row is nobody's workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftOut {
    /// The engine's own work, or a statement that reads no table.
    System,
    /// `EXPLAIN`: nothing ran.
    Explained,
    /// A statement about names, rights or settings, or a query of them.
    Metadata,
    /// A statement that Lakebed itself ran.
    Own,
    /// It failed or was cancelled.
    Failed,
    /// The answer came from a cache of results.
    Cached,
}

impl From<Exclusion> for LeftOut {
    fn from(exclusion: Exclusion) -> Self {
        match exclusion {
            Exclusion::Explain => Self::Explained,
            Exclusion::Metadata => Self::Metadata,
            Exclusion::Own => Self::Own,
        }
    }
}

impl LeftOut {
    /// Counts one statement.
    pub(crate) const fn count(self, report: &mut ParseReport) {
        let skipped = &mut report.skipped;
        let counter = match self {
            Self::System => &mut skipped.system,
            Self::Explained => &mut skipped.explain,
            Self::Metadata => &mut skipped.metadata,
            Self::Own => &mut skipped.own,
            Self::Failed => &mut skipped.failed,
            Self::Cached => &mut skipped.cached,
        };
        *counter += 1;
    }
}

/// Why a row gives no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is a statement, but nobody's workload.
    LeftOut(LeftOut),
    /// It is no statement and nothing is lost, such as an event of another kind.
    Irrelevant,
    /// A required field is missing or is not what it should be.
    Malformed,
}

impl From<LeftOut> for Refusal {
    fn from(left_out: LeftOut) -> Self {
        Self::LeftOut(left_out)
    }
}

impl Entry {
    /// Begins an entry with what every source has: when it started.
    pub(crate) fn at(row: &Row, started_at: Instant) -> Self {
        Self { place: row.place(), started_at, ..Self::default() }
    }

    /// Begins an entry with the instant in a required field.
    pub(crate) fn started(row: &Row, field: &str, unit: Unit) -> Result<Self, Refusal> {
        Ok(Self::at(row, row.instant(field, unit).ok_or(Refusal::Malformed)?))
    }
}

/// Confidence of a join whose sides are known, but whose comparison is not.
const PAIRED_CONFIDENCE: f64 = 0.5;

/// Makes an edge of the compared columns of one join for every two tables.
pub(crate) fn joins_of(
    pairs: &[(ColumnRef, ColumnRef)],
    kind: JoinKind,
    strategy: Option<JoinStrategy>,
    confidence: f64,
) -> Vec<JoinUse> {
    let mut by_tables: BTreeMap<(&TableName, &TableName), Vec<(String, String)>> = BTreeMap::new();
    for (left, right) in pairs {
        let columns = (left.column.clone(), right.column.clone());
        by_tables.entry((&left.table, &right.table)).or_default().push(columns);
    }
    let edges = by_tables.into_iter().map(|((left, right), pairs)| {
        edge::oriented(JoinUse {
            left: left.clone(),
            right: right.clone(),
            pairs,
            kind,
            strategy,
            planned_strategy: None,
            hint: None,
            notes: JoinNotes::default(),
            confidence,
        })
    });
    edges.collect()
}

/// Pairs columns that are known to be join keys, but not of which join: only where there are exactly
/// two, of two tables, is the pair certain enough for an edge. Any others are a loss.
pub(crate) fn only_pair(mut keys: Vec<(TableName, String)>, stated: &mut Stated) {
    keys.sort();
    keys.dedup();
    match keys.as_slice() {
        [] => {}
        [(left, left_column), (right, right_column)] if left != right => {
            let column = |table: &TableName, column: &str| ColumnRef::new(table.as_str(), column);
            let pair = (column(left, left_column), column(right, right_column));
            stated.joins.extend(joins_of(&[pair], JoinKind::Inner, None, PAIRED_CONFIDENCE));
        }
        _ => stated
            .losses
            .push("join columns are listed, but not which is compared with which".to_owned()),
    }
}
