//! From the events of one execution to a statement.

use std::collections::{BTreeMap, BTreeSet};

use lakebed_model::{ColumnRef, Instant, JoinUse, QueryRecord, QueryStatus, ScanUse, ValueRange};

use crate::{
    fingerprint,
    lineage::{
        spark_plan::{self, PlanLineage, PlanScan, Whole},
        sql,
    },
    source::{Reading, Statement, exclude},
};

use super::event::LoggedPlan;

/// An execution while its events come in.
#[derive(Debug)]
pub(super) struct Execution {
    /// The execution that this one works for; its own id for a query that a user ran.
    pub(super) root: u64,
    pub(super) description: String,
    pub(super) started_at: i64,
    /// The plan as first made.
    pub(super) first: LoggedPlan,
    /// The last plan of adaptive execution.
    pub(super) last: Option<LoggedPlan>,
    /// Counts of the driver by accumulator.
    pub(super) driver_counts: BTreeMap<u64, u64>,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ending {
    /// When, if the log says.
    pub(super) time: Option<i64>,
    pub(super) status: QueryStatus,
}

/// What an execution did to base tables.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) joins: Vec<JoinUse>,
    pub(super) scans: Vec<ScanUse>,
    pub(super) losses: BTreeSet<String>,
}

impl Execution {
    /// Iterates over the plans that the log has, the first one first.
    pub(super) fn plans(&self) -> impl Iterator<Item = &LoggedPlan> {
        std::iter::once(&self.first).chain(&self.last)
    }

    /// Reads the execution's plans.
    pub(super) fn work(&self, stage_rows: &BTreeMap<u64, u64>) -> Work {
        let counts = Counts { driver: &self.driver_counts, stages: stage_rows };
        let first = spark_plan::read(&self.first.tree, &self.first.description);
        let (last, first) = match &self.last {
            Some(last) => (spark_plan::read(&last.tree, &last.description), Some(first)),
            // Where only the end of an execution is in the log, its text still shows both plans.
            None => (first, spark_plan::read_first(&self.first.description)),
        };
        match first {
            Some(first) => counts.filled(with_first_plan(last, first, &self.driver_counts)),
            None => counts.filled(last),
        }
    }

    /// Makes the statement of a query that a user ran.
    pub(super) fn statement(&self, id: String, work: Work, ending: Ending) -> Statement {
        let sql = looks_like_sql(&self.description).then(|| self.description.clone());
        let fingerprint = match &sql {
            Some(sql) => fingerprint::of_sql(sql),
            None => fingerprint::of_lineage(&work.joins, &work.scans),
        };
        let duration = ending.time.and_then(|end| u64::try_from(end - self.started_at).ok());
        let mut record = QueryRecord {
            id,
            started_at: Instant::from_epoch_ms(self.started_at),
            source: super::reader::NAME.to_owned(),
            sql,
            fingerprint,
            duration_ms: duration,
            status: ending.status,
            joins: work.joins,
            scans: work.scans,
            confidence: 1.0,
        };
        mark_inferred(&mut record);
        let reading = if work.losses.is_empty() {
            Reading::Full
        } else {
            Reading::Partial { losses: work.losses.into_iter().collect() }
        };
        Statement { record, reading }
    }
}

/// What was counted while an execution ran, by accumulator.
struct Counts<'c> {
    driver: &'c BTreeMap<u64, u64>,
    stages: &'c BTreeMap<u64, u64>,
}

impl Counts<'_> {
    /// Spark counts files in the driver, Photon in the tasks.
    fn of(&self, id: Option<u64>) -> Option<u64> {
        let id = id?;
        self.driver.get(&id).or_else(|| self.stages.get(&id)).copied()
    }

    fn whole(&self, whole: Whole, read: Option<u64>) -> Option<u64> {
        let with_pruned = || Some(read? + self.of(whole.pruned)?);
        self.of(whole.whole).or_else(with_pruned)
    }

    /// Fills in what joins and scans count.
    fn filled(&self, lineage: PlanLineage) -> Work {
        let PlanLineage { joins, scans, losses } = lineage;
        let joins: Vec<JoinUse> = joins
            .into_iter()
            .map(|plan_join| {
                let mut join = plan_join.join;
                let spilled = plan_join.spills.iter().filter_map(|id| self.of(Some(*id)));
                join.notes.rows_out = self.of(plan_join.rows);
                join.notes.spill_bytes = spilled.reduce(u64::saturating_add);
                join
            })
            .collect();
        let carried: Vec<BTreeSet<String>> =
            scans.iter().map(|plan_scan| plan_scan.carried.clone()).collect();
        let mut scans: Vec<ScanUse> = scans
            .into_iter()
            .map(|plan_scan| {
                let (bytes_read, files_read) = (self.of(plan_scan.bytes), self.of(plan_scan.files));
                ScanUse {
                    bytes_read,
                    files_read,
                    bytes_total: self.whole(plan_scan.all_bytes, bytes_read),
                    files_total: self.whole(plan_scan.all_files, files_read),
                    rows_out: self.of(plan_scan.rows),
                    ..plan_scan.scan
                }
            })
            .collect();
        mark_carried(&joins, &mut scans, &carried);
        Work { joins, scans, losses }
    }
}

/// Completes the final plan by the first one: how each join was planned, and the joins and scans
/// that adaptive execution dropped because one side turned out empty (the scan was read for that).
fn with_first_plan(
    mut last: PlanLineage,
    first: PlanLineage,
    driver_counts: &BTreeMap<u64, u64>,
) -> PlanLineage {
    let mut planned: Vec<_> = first.joins;
    for plan_join in &mut last.joins {
        let join = &mut plan_join.join;
        let same = planned.iter().position(|other| {
            let other = &other.join;
            (&other.left, &other.right, &other.pairs) == (&join.left, &join.right, &join.pairs)
        });
        join.planned_strategy = same.and_then(|index| planned.remove(index).join.strategy);
    }
    for mut dropped in planned {
        dropped.join.planned_strategy = dropped.join.strategy.take();
        last.joins.push(dropped);
    }
    let known: BTreeSet<Option<u64>> = last.scans.iter().map(|scan| scan.key).collect();
    let was_read = |scan: &PlanScan| scan.files.is_some_and(|id| driver_counts.contains_key(&id));
    last.scans.extend(
        first
            .scans
            .into_iter()
            .filter(|scan| scan.key.is_some() && !known.contains(&scan.key) && was_read(scan)),
    );
    last.losses.extend(first.losses);
    last
}

/// Lists the columns that joins equate with a column.
fn partners(joins: &[JoinUse], column: &ColumnRef) -> Vec<ColumnRef> {
    let mut partners = Vec::new();
    for join in joins {
        for (left, right) in &join.pairs {
            let left = ColumnRef { table: join.left.clone(), column: left.clone() };
            let right = ColumnRef { table: join.right.clone(), column: right.clone() };
            if left == *column {
                partners.push(right);
            } else if right == *column {
                partners.push(left);
            }
        }
    }
    partners
}

/// Marks filters that the plan shows to be carried over a join: the scan's own filters stand in the
/// order of an inferred one, those of a join partner with the very same range do not.
fn mark_carried(joins: &[JoinUse], scans: &mut [ScanUse], carried: &[BTreeSet<String>]) {
    let mut sources: Vec<(ColumnRef, Option<ValueRange>)> = Vec::new();
    for (scan, carried) in scans.iter().zip(carried) {
        let own = scan.filters.iter().filter(|filter| !carried.contains(&filter.column.column));
        sources.extend(own.map(|filter| (filter.column.clone(), filter.range.clone())));
    }
    for (scan, carried) in scans.iter_mut().zip(carried) {
        for filter in &mut scan.filters {
            let is_source = |partner: &ColumnRef| {
                sources.iter().any(|(column, range)| column == partner && *range == filter.range)
            };
            filter.inferred = filter.range.is_some()
                && carried.contains(&filter.column.column)
                && partners(joins, &filter.column).iter().any(is_source);
        }
    }
}

/// Marks filters that the statement's text does not state but whose join partner it does.
///
/// A filter is inferred when a join equates its column with one that the text compares with a
/// constant, that column's scan has the very same range, and the text nowhere compares the column
/// itself. Of renamed columns the text alone does not tell: what the plan showed of them stands.
fn mark_inferred(record: &mut QueryRecord) {
    let Some(stated) = record.sql.as_deref().and_then(sql::compared_columns) else { return };
    let is_stated = |column: &str| stated.contains(&column.to_lowercase());
    let mut marks = Vec::new();
    for (scan_index, scan) in record.scans.iter().enumerate() {
        for (filter_index, filter) in scan.filters.iter().enumerate() {
            let from_partner = || {
                partners(&record.joins, &filter.column).iter().any(|partner| {
                    is_stated(&partner.column)
                        && record
                            .filters()
                            .any(|other| other.column == *partner && other.range == filter.range)
                })
            };
            if filter.range.is_none() {
                continue;
            }
            if is_stated(&filter.column.column) {
                marks.push((scan_index, filter_index, false));
            } else if from_partner() {
                marks.push((scan_index, filter_index, true));
            }
        }
    }
    for (scan_index, filter_index, inferred) in marks {
        record.scans[scan_index].filters[filter_index].inferred = inferred;
    }
}

/// Descriptions hold the statement's text in SQL sessions, else a name or a place in the code.
fn looks_like_sql(description: &str) -> bool {
    const VERBS: [&str; 9] =
        ["SELECT", "WITH", "INSERT", "MERGE", "UPDATE", "DELETE", "CREATE", "REPLACE", "FROM"];
    let (text, _) = exclude::without_comments(description);
    let verb = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    VERBS.iter().any(|known| verb.eq_ignore_ascii_case(known)) && text.len() > verb.len()
}

#[cfg(test)]
mod tests {
    use super::looks_like_sql;

    #[track_caller]
    fn check(description: &str, expected: bool) {
        assert_eq!(looks_like_sql(description), expected, "{description}");
    }

    #[test]
    fn statements_are_told_from_call_sites_and_names() {
        check("SELECT count(*) FROM t", true);
        check("  with x as (select 1) select * from x", true);
        check("(SELECT 1)", true);
        check("/* job 7 */ -- daily\n( SELECT 1 FROM t )", true);
        check("-- SELECT 1 FROM t", false);
        check("/* SELECT 1 */ collect at report.py:23", false);
        check("collect at report.py:23", false);
        check("createOrReplaceTempView at <unknown>:0", false);
        check("query72", false);
        check("Delta: SELECT count(*) FROM t", false);
        check("select", false);
    }
}
