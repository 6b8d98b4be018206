//! One round of the loop: collect, graph, drift, plan, apply within budget, verify, remember.
//!
//! 1. The newest window of the log is compared with the one before it. Where nothing moved enough,
//!    and no join is new, the present layouts stand.
//! 2. Otherwise a plan is made within the budgets and carried out.
//! 3. What the window's scans read of each rewritten table is worked out again from the new files'
//!    statistics, and kept beside what was predicted, under `_lakebed/outcomes`.
//!
//! History, drift, plans and outcomes are all kept under `_lakebed/` of the lake's folder.

use std::{collections::BTreeMap, path::PathBuf};

use lakebed_collect::CollectOptions;
use lakebed_graph::{DriftReport, JoinGraph};
use lakebed_layout::Lake;
use lakebed_model::{Bytes, TableName, Workload};
use lakebed_plan::{
    LakeEvidence, LayoutPlan, LoggedScan, PlannedAction, Settings,
    benefit::{BenefitModel, Replay},
    logged_scans,
};
use lakebed_sandbox::Plugin;

use crate::{
    error::Error,
    pipeline::{AppliedAction, Pipeline},
    records,
};

/// What a round goes by.
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// The logs.
    pub sources: Vec<PathBuf>,
    /// The window that is read of them; without its length there is no earlier window to compare with.
    pub collect: CollectOptions,
    /// Budgets, horizon and discount.
    pub settings: Settings,
    /// Distance above which to plan again.
    pub threshold: f64,
    /// Another drift meter than the configuration's.
    pub meter: Option<String>,
}

/// Why a round planned, or did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The window has no statements.
    Empty,
    /// There is no earlier window to compare with.
    First,
    /// The joins moved.
    Drifted,
    /// The joins did not move.
    Stands,
}

impl Decision {
    /// Returns the word of machine output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::First => "first",
            Self::Drifted => "drifted",
            Self::Stands => "stands",
        }
    }
}

/// A rewrite as it was predicted and as it came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The table.
    pub table: TableName,
    /// Bytes of the files that the window's scans read before.
    pub reads_before: Bytes,
    /// What the plan predicted for the new layout.
    pub reads_predicted: Bytes,
    /// What the same scans read of the files there are now, by their statistics.
    pub reads_achieved: Bytes,
    /// Rows before and after, where the files say; equal, or the round fails.
    pub rows: Option<u64>,
}

/// What one round saw and did.
#[derive(Debug)]
pub struct Round {
    /// Why it planned, or did not.
    pub decision: Decision,
    /// The comparison with the earlier window.
    pub drift: Option<(DriftReport, Plugin)>,
    /// The plan.
    pub plan: Option<LayoutPlan>,
    /// Its actions as they were carried out.
    pub applied: Vec<AppliedAction>,
    /// What they predicted and achieved.
    pub outcomes: Vec<Outcome>,
}

/// Goes once around the loop.
///
/// # Errors
/// Fails with the first stage that fails; tables rewritten before stay rewritten.
pub async fn round(pipeline: &Pipeline, options: &WatchOptions) -> Result<Round, Error> {
    let mut round = Round {
        decision: Decision::Empty,
        drift: None,
        plan: None,
        applied: Vec::new(),
        outcomes: Vec::new(),
    };
    let workload = pipeline.collect(&options.sources, &options.collect).await?;
    if workload.records.is_empty() {
        return Ok(round);
    }
    records::keep_history(pipeline, &workload).await;
    let rows = pipeline.row_counts(&workload).await?;
    let graph = pipeline.graph(&workload, &rows, None).await?;
    round.decision = match earlier(pipeline, options).await? {
        None => Decision::First,
        Some(before) => {
            let meter = options.meter.as_deref();
            let drift = pipeline.drift(&before, &graph, meter, options.threshold).await?;
            records::keep_drift(pipeline, &drift.0).await;
            // Scores may not tell a single new join from the single old one.
            let is_moved = drift.0.replan || !drift.0.new_edges.is_empty();
            let decision = if is_moved { Decision::Drifted } else { Decision::Stands };
            round.drift = Some(drift);
            decision
        }
    };
    if round.decision == Decision::Stands {
        return Ok(round);
    }
    let evidence = pipeline.evidence(&workload, &graph, &[]).await?;
    let plan = pipeline.plan(&graph, &workload, evidence.clone(), options.settings, None).await?;
    records::keep_plan(pipeline, &plan).await;
    pipeline.check(&plan.actions).await?;
    let done = Box::pin(pipeline.apply(&plan.actions, &mut round.applied)).await;
    let actions: Vec<&PlannedAction> = round.applied.iter().map(|one| &one.action).collect();
    round.outcomes = outcomes(pipeline, &workload, &graph, &evidence, &actions).await?;
    records::keep_outcomes(pipeline, &plan, &round.outcomes).await;
    round.plan = Some(plan);
    done.map(|()| round)
}

/// Reads the window before the newest one, where there is one with statements.
async fn earlier(pipeline: &Pipeline, options: &WatchOptions) -> Result<Option<JoinGraph>, Error> {
    let Some(window_ms) = options.collect.window_ms else { return Ok(None) };
    let slide_ms = options.collect.slide_ms.saturating_add(window_ms);
    let collect = CollectOptions { slide_ms, ..options.collect.clone() };
    let workload = pipeline.collect(&options.sources, &collect).await?;
    if workload.records.is_empty() {
        return Ok(None);
    }
    let rows = pipeline.row_counts(&workload).await?;
    Ok(Some(pipeline.graph(&workload, &rows, None).await?))
}

/// Holds what was predicted of the tables against their new files.
async fn outcomes(
    pipeline: &Pipeline,
    workload: &Workload,
    graph: &JoinGraph,
    before: &LakeEvidence,
    actions: &[&PlannedAction],
) -> Result<Vec<Outcome>, Error> {
    if actions.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<String> = actions.iter().map(|action| action.table.to_string()).collect();
    let after = pipeline.evidence(workload, graph, &names).await?;
    let scans = logged_scans(workload);
    let mut outcomes = Vec::with_capacity(actions.len());
    for action in actions {
        let table = &action.table;
        let reads_before = reads(before, table, &scans);
        let rows = |evidence: &LakeEvidence| {
            evidence.tables.iter().find(|one| one.table == *table).map(|one| one.rows)
        };
        if rows(before) != rows(&after) {
            return Err(Error::Mismatch {
                what: format!(
                    "table `{table}`: {:?} rows before the rewrite, {:?} after it; go back with the \
                     version before",
                    rows(before),
                    rows(&after)
                ),
            });
        }
        let snapshot = pipeline.lake.snapshot(table).await?;
        outcomes.push(Outcome {
            table: table.clone(),
            reads_before,
            reads_predicted: Bytes(reads_before.0.saturating_sub(action.saves.expected.0)),
            reads_achieved: reads(&after, table, &scans),
            rows: snapshot.rows(),
        });
    }
    Ok(outcomes)
}

/// Bytes of the files that a window's scans read of a table, by the files' statistics.
fn reads(
    evidence: &LakeEvidence,
    table: &TableName,
    scans: &BTreeMap<TableName, Vec<LoggedScan>>,
) -> Bytes {
    let known = evidence.tables.iter().find(|one| one.table == *table);
    let (Some(known), Some(scans)) = (known, scans.get(table)) else { return Bytes(0) };
    let readings = Replay.prepare(known, scans).readings(&known.current);
    Bytes::from_f64(readings.iter().map(|reading| reading.bytes).sum())
}
