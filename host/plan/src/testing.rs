//! Tables and statements for tests, made up from numbers.

use std::collections::{BTreeMap, BTreeSet};

use lakebed_model::{
    Bound, Bytes, ColumnRef, ColumnSpan, FileView, FilterOperator, FilterUse, Instant, JoinKind,
    JoinUse, Literal, QueryRecord, QueryStatus, ScanUse, TableName, ValueRange, Workload,
};

use crate::{Layout, TableEvidence, TableSample, random::SplitMix64};

type Column = Vec<Option<Literal>>;

pub(crate) fn integers(values: impl IntoIterator<Item = i64>) -> Column {
    values.into_iter().map(|value| Some(Literal::Integer(value))).collect()
}

/// Days as integers compare with the ranges of [`Query::scan`], which are integers too.
pub(crate) fn days(values: impl IntoIterator<Item = i64>) -> Column {
    let date = |day| Some(Literal::Date(i32::try_from(day).unwrap()));
    values.into_iter().map(date).collect()
}

/// The numbers from 0 up to, not including, `count`, in an order of the seed.
pub(crate) fn shuffled(count: i64, seed: u64) -> Column {
    let mut values: Vec<i64> = (0..count).collect();
    let mut random = SplitMix64::new(seed);
    for last in (1..values.len()).rev() {
        values.swap(last, random.below(last + 1));
    }
    integers(values)
}

/// A table of equal files whose spans cover everything: shuffled, as far as anyone can tell.
#[derive(Debug, Clone)]
pub(crate) struct Table(TableEvidence);

impl Table {
    pub(crate) fn new(table: &str, files: u64, file_bytes: u64) -> Self {
        let file = |index| FileView {
            path: format!("part-{index}.parquet"),
            size: Bytes(file_bytes),
            rows: Some(1000),
            deleted_rows: 0,
            spans: BTreeMap::new(),
        };
        Self(TableEvidence {
            table: TableName::new(table),
            version: 3,
            current: Layout::default(),
            bytes: Bytes(files * file_bytes),
            rows: files * 1000,
            files: (0..files).map(file).collect(),
            target_files: files,
            eligible_columns: BTreeSet::new(),
            sample: TableSample::default(),
            pending: Bytes(0),
            protected: None,
        })
    }

    pub(crate) fn column(mut self, name: &str, values: Column) -> Self {
        let by_value = |a: &&Literal, b: &&Literal| a.compare(b).unwrap();
        let span = ColumnSpan {
            min: values.iter().flatten().min_by(by_value).cloned(),
            max: values.iter().flatten().max_by(by_value).cloned(),
            null_count: Some(0),
        };
        for file in &mut self.0.files {
            file.spans.insert(name.to_owned(), span.clone());
        }
        self.0.eligible_columns.insert(name.to_owned());
        self.0.sample.rows = values.len();
        self.0.sample.columns.insert(name.to_owned(), values);
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut TableEvidence)) -> Self {
        change(&mut self.0);
        self
    }

    pub(crate) fn evidence(self) -> TableEvidence {
        self.0
    }
}

/// One statement: scans with ranges, inner joins.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    joins: Vec<JoinUse>,
    scans: Vec<ScanUse>,
}

impl Query {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Joins `table.column` to `table.column`, of which the first table sorts first.
    pub(crate) fn join(mut self, left: &str, right: &str) -> Self {
        let split = |text: &str| {
            let (table, column) = text.split_once('.').unwrap();
            (TableName::new(table), column.to_owned())
        };
        let ((left, left_column), (right, right_column)) = (split(left), split(right));
        assert!(left <= right);
        self.joins.push(JoinUse {
            left,
            right,
            pairs: vec![(left_column, right_column)],
            kind: JoinKind::Inner,
            strategy: None,
            planned_strategy: None,
            hint: None,
            confidence: 1.0,
        });
        self
    }

    /// Scans a table for rows whose columns lie between two integers, both included.
    pub(crate) fn scan(mut self, table: &str, ranges: &[(&str, i64, i64)]) -> Self {
        let bound = |value| Some(Bound { value: Literal::Integer(value), inclusive: true });
        let filters = ranges
            .iter()
            .map(|&(column, low, high)| FilterUse {
                column: ColumnRef::new(table, column),
                operator: FilterOperator::Range,
                range: Some(ValueRange { low: bound(low), high: bound(high) }),
                inferred: false,
            })
            .collect();
        let scan = ScanUse { table: Some(TableName::new(table)), filters, ..ScanUse::default() };
        self.scans.push(scan);
        self
    }
}

pub(crate) fn workload(queries: Vec<Query>) -> Workload {
    let records = queries
        .into_iter()
        .enumerate()
        .map(|(index, Query { joins, scans })| QueryRecord {
            id: format!("q{index:03}"),
            started_at: Instant::from_epoch_ms(i64::try_from(index).unwrap()),
            source: "test".to_owned(),
            sql: None,
            fingerprint: String::new(),
            duration_ms: None,
            status: QueryStatus::Finished,
            joins,
            scans,
            confidence: 1.0,
        })
        .collect();
    Workload { records, ..Workload::default() }
}
