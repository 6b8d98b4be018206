//! What the logged scans ask of their tables.
//!
//! 1. A scan's own filters with known constants: all must hold, so ranges on a column intersect.
//! 2. What the log's engine did not infer is inferred here: a range on one side of a join equality
//!    holds on the other side too wherever rows without a partner are dropped (inner and semi joins
//!    both ways, an outer join from the kept side to the other, full, anti and existence joins
//!    never).
//!
//! A range is carried only between tables that the statement scans exactly once: with two scans of
//! one table the log does not say which of them the join reads.

use std::collections::BTreeMap;

use lakebed_model::{JoinKind, JoinUse, QueryRecord, QueryStatus, TableName, ValueRange, Workload};

/// Joins that are more of a guess than this carry no range.
const MIN_JOIN_CONFIDENCE: f64 = 0.5;

/// One scan of a table, with the ranges that decide which files it reads.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedScan {
    /// Index of the statement in the workload.
    pub statement: usize,
    /// What must hold of each column, by name; every range is bounded on a side at least.
    pub ranges: BTreeMap<String, ColumnRange>,
}

/// The values of one column that a scan can use.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnRange {
    /// The values.
    pub range: ValueRange,
    /// Whether all of it was inferred through joins, by the engine or here.
    pub inferred: bool,
}

/// Lists the scans of each table in the order of the statements; failed statements are left out.
#[must_use]
pub fn logged_scans(workload: &Workload) -> BTreeMap<TableName, Vec<LoggedScan>> {
    let mut by_table: BTreeMap<TableName, Vec<LoggedScan>> = BTreeMap::new();
    for (statement, record) in workload.records.iter().enumerate() {
        if record.status == QueryStatus::Failed {
            continue;
        }
        for (table, ranges) in scans_of(record) {
            by_table.entry(table).or_default().push(LoggedScan { statement, ranges });
        }
    }
    by_table
}

type Ranges = BTreeMap<String, ColumnRange>;

fn scans_of(record: &QueryRecord) -> Vec<(TableName, Ranges)> {
    let mut scans: Vec<(TableName, Ranges)> = Vec::new();
    for scan in &record.scans {
        let Some(table) = &scan.table else { continue };
        let mut ranges = Ranges::new();
        for filter in &scan.filters {
            if let Some(range) = &filter.range {
                narrow(&mut ranges, &filter.column.column, range, filter.inferred);
            }
        }
        scans.push((table.clone(), ranges));
    }
    carry_over_joins(&record.joins, &mut scans);
    scans
}

fn carry_over_joins(joins: &[JoinUse], scans: &mut [(TableName, Ranges)]) {
    let single = |table: &TableName, scans: &[(TableName, Ranges)]| {
        let mut positions = scans.iter().enumerate().filter(|(_, (name, _))| name == table);
        match (positions.next(), positions.next()) {
            (Some((position, _)), None) => Some(position),
            _ => None,
        }
    };
    let paths: Vec<Path<'_>> = joins
        .iter()
        .filter(|join| join.confidence >= MIN_JOIN_CONFIDENCE && join.left != join.right)
        .filter_map(|join| Some((join, single(&join.left, scans)?, single(&join.right, scans)?)))
        .flat_map(|(join, left, right)| paths_of(join, left, right))
        .collect();
    // A range travels at most once along every path of a chain; the bound also ends cycles of
    // values that do not compare.
    for _ in 0..=paths.len() {
        let mut is_changed = false;
        for path in &paths {
            if let Some(found) = scans[path.from].1.get(path.from_column) {
                let range = found.range.clone();
                is_changed |= narrow(&mut scans[path.to].1, path.to_column, &range, true);
            }
        }
        if !is_changed {
            break;
        }
    }
}

#[derive(Debug)]
struct Path<'a> {
    from: usize,
    from_column: &'a str,
    to: usize,
    to_column: &'a str,
}

fn paths_of(join: &JoinUse, left: usize, right: usize) -> Vec<Path<'_>> {
    let (to_right, to_left) = match join.kind {
        JoinKind::Inner | JoinKind::LeftSemi => (true, true),
        JoinKind::LeftOuter => (true, false),
        JoinKind::RightOuter => (false, true),
        JoinKind::FullOuter | JoinKind::LeftAnti | JoinKind::Existence => (false, false),
    };
    let mut paths = Vec::new();
    for (left_column, right_column) in &join.pairs {
        if to_right {
            paths.push(Path {
                from: left,
                from_column: left_column,
                to: right,
                to_column: right_column,
            });
        }
        if to_left {
            paths.push(Path {
                from: right,
                from_column: right_column,
                to: left,
                to_column: left_column,
            });
        }
    }
    paths
}

/// Narrows a column's range and tells whether anything changed.
fn narrow(ranges: &mut Ranges, column: &str, range: &ValueRange, inferred: bool) -> bool {
    if range.low.is_none() && range.high.is_none() {
        return false;
    }
    let Some(known) = ranges.get_mut(column) else {
        ranges.insert(column.to_owned(), ColumnRange { range: range.clone(), inferred });
        return true;
    };
    known.inferred &= inferred;
    if !do_compare(&known.range, range) {
        return false;
    }
    let narrowed = known.range.intersect(range);
    let is_changed = narrowed != known.range;
    known.range = narrowed;
    is_changed
}

/// Tells whether the ends that meet in an intersection are of kinds that compare.
fn do_compare(a: &ValueRange, b: &ValueRange) -> bool {
    [(&a.low, &b.low), (&a.high, &b.high)].into_iter().all(|ends| match ends {
        (Some(a), Some(b)) => a.value.compare(&b.value).is_some(),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use lakebed_model::{
        Bound, ColumnRef, FilterOperator, FilterUse, Instant, JoinKind, JoinUse, Literal,
        QueryRecord, QueryStatus, ScanUse, TableName, ValueRange, Workload,
    };

    use super::logged_scans;

    fn between(low: i64, high: i64) -> ValueRange {
        let bound = |value| Some(Bound { value: Literal::Integer(value), inclusive: true });
        ValueRange { low: bound(low), high: bound(high) }
    }

    fn scan(table: &str, filters: &[(&str, ValueRange)]) -> ScanUse {
        let filters = filters
            .iter()
            .map(|(column, range)| FilterUse {
                column: ColumnRef::new(table, *column),
                operator: FilterOperator::Range,
                range: Some(range.clone()),
                inferred: false,
            })
            .collect();
        ScanUse { table: Some(TableName::new(table)), filters, ..ScanUse::default() }
    }

    fn join(kind: JoinKind, left: (&str, &str), right: (&str, &str)) -> JoinUse {
        JoinUse {
            left: TableName::new(left.0),
            right: TableName::new(right.0),
            pairs: vec![(left.1.to_owned(), right.1.to_owned())],
            kind,
            strategy: None,
            planned_strategy: None,
            hint: None,
            confidence: 1.0,
        }
    }

    /// Prints every scan's ranges: `table.column range`, inferred ones with a star.
    #[track_caller]
    fn check(joins: Vec<JoinUse>, scans: Vec<ScanUse>, expected: &[&str]) {
        let record = QueryRecord {
            id: "q".to_owned(),
            started_at: Instant::default(),
            source: "test".to_owned(),
            sql: None,
            fingerprint: String::new(),
            duration_ms: None,
            status: QueryStatus::Finished,
            joins,
            scans,
            confidence: 1.0,
        };
        let workload = Workload { records: vec![record], ..Workload::default() };
        let found: Vec<String> = logged_scans(&workload)
            .iter()
            .flat_map(|(table, scans)| scans.iter().map(move |scan| (table, scan)))
            .flat_map(|(table, scan)| {
                scan.ranges.iter().map(move |(column, found)| {
                    let star = if found.inferred { "*" } else { "" };
                    format!("{table}.{column}{star} {}", found.range)
                })
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn filters_of_one_scan_intersect() {
        check(
            vec![],
            vec![scan("t", &[("k", between(1, 9)), ("k", between(5, 20))])],
            &["t.k [5, 9]"],
        );
    }

    #[test]
    fn range_travels_along_a_chain_of_inner_joins() {
        check(
            vec![
                join(JoinKind::Inner, ("b", "x"), ("c", "x")),
                join(JoinKind::Inner, ("a", "x"), ("b", "x")),
            ],
            vec![scan("a", &[("x", between(1, 9))]), scan("b", &[]), scan("c", &[])],
            &["a.x [1, 9]", "b.x* [1, 9]", "c.x* [1, 9]"],
        );
    }

    #[test]
    fn both_sides_narrow_each_other() {
        check(
            vec![join(JoinKind::LeftSemi, ("a", "x"), ("b", "y"))],
            vec![scan("a", &[("x", between(1, 9))]), scan("b", &[("y", between(5, 20))])],
            &["a.x [5, 9]", "b.y [5, 9]"],
        );
    }

    #[test]
    fn outer_joins_carry_from_the_kept_side_only() {
        let scans = || vec![scan("a", &[("x", between(1, 9))]), scan("b", &[])];
        let one = |kind| vec![join(kind, ("a", "x"), ("b", "y"))];
        check(one(JoinKind::LeftOuter), scans(), &["a.x [1, 9]", "b.y* [1, 9]"]);
        check(one(JoinKind::RightOuter), scans(), &["a.x [1, 9]"]);
        for kind in [JoinKind::FullOuter, JoinKind::LeftAnti, JoinKind::Existence] {
            check(one(kind), scans(), &["a.x [1, 9]"]);
        }
    }

    #[test]
    fn table_scanned_twice_gets_and_gives_nothing() {
        check(
            vec![join(JoinKind::Inner, ("a", "x"), ("b", "y"))],
            vec![scan("a", &[("x", between(1, 9))]), scan("b", &[]), scan("b", &[])],
            &["a.x [1, 9]"],
        );
    }

    #[test]
    fn guesses_carry_nothing() {
        let mut guess = join(JoinKind::Inner, ("a", "x"), ("b", "y"));
        guess.confidence = 0.3;
        check(
            vec![guess],
            vec![scan("a", &[("x", between(1, 9))]), scan("b", &[])],
            &["a.x [1, 9]"],
        );
    }
}
