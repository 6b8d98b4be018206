//! ANALYZE TABLE … COMPUTE STATISTICS: files of other writers get the statistics that skipping and
//! clustering need. Only entries of the log are written; no data file is.

use futures::StreamExt;
use lakebed_layout::{
    Change, Lake, LayoutError, MAX_ATTEMPTS, Replacement, TableSnapshot,
    action::AddFile,
    commit_change,
    conflict::Scope,
    ddl::{self, StatsColumns},
    input_file,
};
use lakebed_model::{Instant, TableName};
use serde_json::{Value, json};

use crate::{
    DeltaLake, LakeError,
    rewrite::ScanRequest,
    session,
    stats::{StatsCollector, stated_leaves},
};

/// What an ANALYZE did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnalyzeReport {
    /// The version that holds it; the version read when no file lacked anything.
    pub version: u64,
    /// Live files.
    pub files: u64,
    /// Files whose statistics were computed.
    pub files_analyzed: u64,
}

impl DeltaLake {
    /// Computes the statistics of files that lack some.
    ///
    /// # Errors
    /// Fails when the table must not be written, when storage does, or when other writers keep
    /// winning.
    pub async fn analyze(
        &self,
        table: &TableName,
        now: Instant,
    ) -> Result<AnalyzeReport, LakeError> {
        for attempt in 1..=MAX_ATTEMPTS {
            let snapshot = self.snapshot(table).await?;
            snapshot.refuse(snapshot.write_refusal())?;
            let mut report = AnalyzeReport {
                version: snapshot.version,
                files: u64::try_from(snapshot.files.len()).unwrap_or(u64::MAX),
                files_analyzed: 0,
            };
            let stated = stated_leaves(&snapshot);
            let lacking: Vec<&AddFile> =
                snapshot.files.iter().filter(|file| !is_complete(&stated, file)).collect();
            if lacking.is_empty() {
                return Ok(report);
            }
            let mut adds = Vec::with_capacity(lacking.len());
            for file in &lacking {
                let stats = Some(self.compute_stats(&snapshot, file).await?);
                adds.push(AddFile { stats, data_change: false, ..(*file).clone() });
            }
            report.files_analyzed = u64::try_from(adds.len()).unwrap_or(u64::MAX);
            let change = Change {
                removes: Vec::new(),
                restated: lacking,
                adds,
                changes: Vec::new(),
                data_change: false,
                created: Vec::new(),
                scope: Scope::Rearrange,
                commit_info: analyze_info(&snapshot, &report, now),
            };
            if let Replacement::Committed { version } =
                commit_change(self, &snapshot, change).await?
            {
                return Ok(AnalyzeReport { version, ..report });
            }
            self.pause(attempt).await;
        }
        let table = table.to_string();
        Err(LayoutError::TooManyConflicts { table, attempts: MAX_ATTEMPTS }.into())
    }

    async fn compute_stats(
        &self,
        snapshot: &TableSnapshot,
        file: &AddFile,
    ) -> Result<String, LakeError> {
        let fail = |source| LakeError::Engine {
            action: "compute statistics of",
            table: snapshot.table.to_string(),
            source,
        };
        let context = session::plain(self);
        let request = ScanRequest {
            table: &snapshot.table,
            version: snapshot.version,
            inputs: &[input_file(file)],
            reader: snapshot.reader(),
            column_mapping: snapshot.column_mapping(),
            row_tracking: None,
        };
        let scan = self.scan_files(&context, request).await;
        let frame = context.read_table(scan.map_err(fail)?).map_err(fail)?;
        let mut rows = frame.execute_stream().await.map_err(fail)?;
        let StatsColumns { leading, named } = ddl::stats_columns(snapshot);
        let mapping = snapshot.column_mapping();
        let stats = StatsCollector::new(&snapshot.schema, leading, &named, mapping);
        let mut stats = stats.map_err(fail)?;
        while let Some(batch) = rows.next().await {
            let batch = crate::write::conform(&batch.map_err(fail)?, &snapshot.schema);
            stats.update(&batch.map_err(fail)?).map_err(fail)?;
        }
        stats.finish_with_hidden(file.deleted_rows()).map_err(fail)
    }
}

/// Tells whether a file states its rows and, for every column that must have them, its nulls.
fn is_complete(stated: &[Vec<String>], file: &AddFile) -> bool {
    let stats: Value =
        file.stats.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let states = |path: &[String]| {
        path.iter().try_fold(&stats["nullCount"], |at, part| at.get(part)).is_some()
    };
    stats.get("numRecords").is_some() && stated.iter().all(|path| states(path))
}

/// delta-spark's `COMPUTE STATS` history entry (`DeltaOperations.scala`).
fn analyze_info(snapshot: &TableSnapshot, report: &AnalyzeReport, now: Instant) -> Value {
    json!({
        "timestamp": now.epoch_ms(),
        "operation": "COMPUTE STATS",
        "operationParameters": { "predicate": "[]" },
        "readVersion": snapshot.version,
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": false,
        "operationMetrics": { "numFilesAnalyzed": report.files_analyzed.to_string() },
    })
}
