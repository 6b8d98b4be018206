//! Runs a history's statements again and compares what they read and answer.

use std::{collections::BTreeMap, time::Instant as Stopwatch};

use arrow::util::display::{ArrayFormatter, FormatOptions};
use lakebed_lake::{DeltaLake, QueryOutcome, QuerySession, ScanCost};
use lakebed_model::{QueryRecord, TableName, Workload};

use crate::{error::Error, progress::Progress};

/// One statement, run.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// Position in the workload.
    pub statement: usize,
    /// What its scans read.
    pub cost: ScanCost,
    /// What they read of each table.
    pub tables: BTreeMap<TableName, ScanCost>,
    /// Wall time.
    pub elapsed_ms: u64,
    /// Its answer's rows as text, sorted.
    pub rows: Vec<String>,
}

impl Replayed {
    /// Tells whether a statement answered as in another run.
    #[must_use]
    pub fn answers_as(&self, other: &Self) -> bool {
        self.rows == other.rows
    }
}

/// Runs every statement of a workload that has its text, in order, in one session.
///
/// # Errors
/// Fails with the first statement that fails.
pub async fn replay(
    lake: &DeltaLake,
    workload: &Workload,
    label: &str,
    progress: &Progress,
) -> Result<Vec<Replayed>, Error> {
    let mut session = lake.session();
    let bar = progress.bar(label, workload.records.len());
    let mut replayed = Vec::with_capacity(workload.records.len());
    for (statement, record) in workload.records.iter().enumerate() {
        if let Some(sql) = text_of(record) {
            session.prepare(sql).await?;
            let started = now();
            let outcome = Box::pin(session.run(sql)).await?;
            let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            let rows = rows_of(&outcome)?;
            let QueryOutcome { cost, tables, .. } = outcome;
            replayed.push(Replayed { statement, cost, tables, elapsed_ms, rows });
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(replayed)
}

/// One run of one statement.
#[derive(Debug, Clone)]
pub struct Run {
    /// What its scans read.
    pub cost: ScanCost,
    /// Wall time.
    pub wall_ms: f64,
    /// The processor's time of the whole process, where the system tells.
    pub cpu_ms: Option<f64>,
    /// Its answer's rows as text, sorted.
    pub rows: Vec<String>,
}

/// Runs a statement, with its times.
///
/// # Errors
/// Fails when the statement does.
pub async fn rerun(session: &mut QuerySession, sql: &str) -> Result<Run, Error> {
    session.prepare(sql).await?;
    let (started, cpu_before) = (now(), cpu_ms());
    let outcome = Box::pin(session.run(sql)).await?;
    let wall_ms = started.elapsed().as_secs_f64() * 1_000.0;
    let cpu_ms = cpu_ms().zip(cpu_before).map(|(after, before)| after - before);
    Ok(Run { cost: outcome.cost, wall_ms, cpu_ms, rows: rows_of(&outcome)? })
}

/// The processor's time that this process has used, in steps of 10 ms, where the system tells (Linux).
#[must_use]
pub fn cpu_ms() -> Option<f64> {
    /// Milliseconds of a tick: Linux tells programs of 100 a second, whatever its own are.
    const TICK_MS: f64 = 10.0;
    let status = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name may hold blanks; after it come the state, ten numbers, and the two times.
    let mut fields = status.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut time = || fields.next()?.parse::<f64>().ok();
    Some((time()? + time()?) * TICK_MS)
}

/// Mean over statements of 1 − files read / files of the tables scanned.
#[must_use]
pub fn skipping_rate<'a>(replayed: impl IntoIterator<Item = &'a Replayed>) -> f64 {
    let rates: Vec<f64> = replayed
        .into_iter()
        .filter(|one| one.cost.files_total > 0)
        .map(|one| 1.0 - ratio(one.cost.files_read, one.cost.files_total))
        .collect();
    if rates.is_empty() {
        return 0.0;
    }
    rates.iter().sum::<f64>() / ratio(u64::try_from(rates.len()).unwrap_or(1), 1)
}

/// Divides counts.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of files and bytes are below 2^53")]
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn text_of(record: &QueryRecord) -> Option<&str> {
    record.sql.as_deref()
}

/// Renders an answer so that two answers can be compared whatever the order of their rows.
///
/// # Errors
/// Fails when a value cannot be shown.
pub fn rows_of(outcome: &QueryOutcome) -> Result<Vec<String>, Error> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in &outcome.batches {
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let values: Vec<String> =
                columns.iter().map(|column| column.value(row).to_string()).collect();
            rows.push(values.join("\u{1f}"));
        }
    }
    rows.sort_unstable();
    Ok(rows)
}

/// Starts a stopwatch.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "measuring is what experiments are for")]
pub fn now() -> Stopwatch {
    Stopwatch::now()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lakebed_lake::ScanCost;

    use super::{Replayed, skipping_rate};

    fn scanned(files_read: u64, files_total: u64) -> Replayed {
        let cost = ScanCost { files_read, files_total, ..ScanCost::default() };
        let tables = BTreeMap::new();
        Replayed { statement: 0, cost, tables, elapsed_ms: 0, rows: Vec::new() }
    }

    #[test]
    fn skipping_rate_is_a_mean_over_statements_not_over_files() {
        let rate = skipping_rate(&[scanned(50, 100), scanned(1, 1)]);
        assert!((rate - 0.25).abs() < 1e-12);
        assert!(skipping_rate(&[]).abs() < 1e-12);
    }
}
