//! From the events of one execution to a statement.

use std::collections::{BTreeMap, BTreeSet};

use lakebed_model::{ColumnRef, Instant, JoinUse, QueryRecord, QueryStatus, ScanUse};

use crate::{
    fingerprint,
    lineage::{
        spark_plan::{self, PlanLineage, PlanScan},
        sql,
    },
    source::{Reading, Statement},
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
        let first = spark_plan::read(&self.first.tree, &self.first.description);
        let Some(last) = &self.last else {
            return self.counted(first, stage_rows);
        };
        let last = spark_plan::read(&last.tree, &last.description);
        self.counted(with_first_plan(last, first, &self.driver_counts), stage_rows)
    }

    fn counted(&self, lineage: PlanLineage, stage_rows: &BTreeMap<u64, u64>) -> Work {
        let driver = |id: Option<u64>| self.driver_counts.get(&id?).copied();
        let scans = lineage
            .scans
            .into_iter()
            .map(|plan_scan| ScanUse {
                bytes_read: driver(plan_scan.bytes),
                files_read: driver(plan_scan.files),
                rows_out: plan_scan.rows.and_then(|id| stage_rows.get(&id)).copied(),
                ..plan_scan.scan
            })
            .collect();
        let joins = lineage.joins.into_iter().map(|plan_join| plan_join.join).collect();
        Work { joins, scans, losses: lineage.losses }
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

/// Marks filters that the statement's text does not state but whose join partner it does.
///
/// A filter is inferred when a join equates its column with one that the text compares with a
/// constant, that column's scan has the very same range, and the text nowhere compares the column
/// itself. Renamed columns stay unmarked: then the text alone does not tell.
fn mark_inferred(record: &mut QueryRecord) {
    let Some(stated) = record.sql.as_deref().and_then(sql::compared_columns) else { return };
    let partners = |column: &ColumnRef| -> Vec<ColumnRef> {
        let mut partners = Vec::new();
        for join in &record.joins {
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
    };
    let is_stated = |column: &str| stated.contains(&column.to_lowercase());
    let mut inferred = Vec::new();
    for (scan_index, scan) in record.scans.iter().enumerate() {
        for (filter_index, filter) in scan.filters.iter().enumerate() {
            let from_partner = || {
                partners(&filter.column).iter().any(|partner| {
                    is_stated(&partner.column)
                        && record
                            .filters()
                            .any(|other| other.column == *partner && other.range == filter.range)
                })
            };
            if filter.range.is_some() && !is_stated(&filter.column.column) && from_partner() {
                inferred.push((scan_index, filter_index));
            }
        }
    }
    for (scan_index, filter_index) in inferred {
        record.scans[scan_index].filters[filter_index].inferred = true;
    }
}

/// Descriptions hold the statement's text in SQL sessions, else a name or a place in the code.
fn looks_like_sql(description: &str) -> bool {
    const VERBS: [&str; 9] =
        ["SELECT", "WITH", "INSERT", "MERGE", "UPDATE", "DELETE", "CREATE", "REPLACE", "FROM"];
    let text = description.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
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
        check("collect at report.py:23", false);
        check("createOrReplaceTempView at <unknown>:0", false);
        check("query72", false);
        check("Delta: SELECT count(*) FROM t", false);
        check("select", false);
    }
}
