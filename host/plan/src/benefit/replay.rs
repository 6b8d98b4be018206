//! What logged scans read of the files as they lie now: exact, from the log's statistics alone.

use lakebed_model::{ColumnSpan, FileView, ValueRange};

use super::{BenefitModel, Reading, WhatIf};
use crate::{Layout, LoggedScan, TableEvidence};

/// Replays logged ranges on the minimum and maximum of every live file.
///
/// The readings are those of the present files whatever layout is asked for. A file without
/// statistics of a column counts as read, as in an engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Replay;

impl BenefitModel for Replay {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn prepare<'a>(
        &self,
        evidence: &'a TableEvidence,
        scans: &'a [LoggedScan],
    ) -> Box<dyn WhatIf + 'a> {
        Box::new(Replayed { evidence, scans })
    }
}

#[derive(Debug)]
struct Replayed<'a> {
    evidence: &'a TableEvidence,
    scans: &'a [LoggedScan],
}

impl WhatIf for Replayed<'_> {
    fn readings(&self, _: &Layout) -> Vec<Reading> {
        self.scans.iter().map(|scan| read(&self.evidence.files, scan)).collect()
    }
}

fn read(files: &[FileView], scan: &LoggedScan) -> Reading {
    let mut reading = Reading::default();
    for file in files.iter().filter(|file| is_read(file, scan)) {
        reading.files += 1.0;
        reading.bytes += file.size.as_f64();
    }
    reading
}

fn is_read(file: &FileView, scan: &LoggedScan) -> bool {
    scan.ranges.iter().all(|(column, wanted)| {
        file.spans.get(column).is_none_or(|span| may_hold(file, span, &wanted.range))
    })
}

/// Tells whether a file may hold a row in a bounded range; nulls are in none.
fn may_hold(file: &FileView, span: &ColumnSpan, range: &ValueRange) -> bool {
    let is_all_null = match (span.null_count, file.rows) {
        (Some(nulls), Some(rows)) => nulls >= rows,
        _ => false,
    };
    !is_all_null && range.may_match(span.min.as_ref(), span.max.as_ref())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use lakebed_model::{Bound, Bytes, ColumnSpan, FileView, Literal, TableName, ValueRange};

    use super::Replay;
    use crate::{
        Layout, LoggedScan, TableEvidence, TableSample, benefit::BenefitModel, ranges::ColumnRange,
    };

    fn file(size: u64, span: Option<(i64, i64)>, nulls: u64) -> FileView {
        let span = span.map_or(
            ColumnSpan { min: None, max: None, null_count: Some(nulls) },
            |(min, max)| ColumnSpan {
                min: Some(Literal::Integer(min)),
                max: Some(Literal::Integer(max)),
                null_count: Some(nulls),
            },
        );
        FileView {
            path: String::new(),
            size: Bytes(size),
            rows: Some(10),
            deleted_rows: 0,
            spans: BTreeMap::from([("k".to_owned(), span)]),
        }
    }

    #[test]
    fn scan_reads_files_that_meet_its_ranges_or_have_no_statistics() {
        let mut blind = file(1000, None, 0);
        blind.spans.clear();
        let evidence = TableEvidence {
            table: TableName::new("t"),
            version: 0,
            current: Layout::default(),
            bytes: Bytes(1111),
            rows: 50,
            files: vec![
                file(1, Some((0, 9)), 0),
                file(10, Some((10, 19)), 0),
                file(100, None, 10),
                blind,
            ],
            target_files: 4,
            eligible_columns: BTreeSet::new(),
            sample: TableSample::default(),
            pending: Bytes(0),
            protected: None,
        };
        let scan = |low: i64, high: i64| {
            let bound = |value| Some(Bound { value: Literal::Integer(value), inclusive: true });
            let range = ValueRange { low: bound(low), high: bound(high) };
            let range = ColumnRange { range, inferred: false };
            LoggedScan { statement: 0, ranges: BTreeMap::from([("k".to_owned(), range)]) }
        };
        let everything = LoggedScan { statement: 0, ranges: BTreeMap::new() };
        let scans = [scan(3, 4), scan(9, 10), scan(20, 30), everything];
        let found: Vec<(u64, u64)> = Replay
            .prepare(&evidence, &scans)
            .readings(&Layout::default())
            .iter()
            .map(|reading| (Bytes::from_f64(reading.files).0, Bytes::from_f64(reading.bytes).0))
            .collect();
        assert_eq!(found, [(2, 1001), (3, 1011), (1, 1000), (4, 1111)]);
    }
}
