//! Lakes of an experiment's own: written, copied, laid out and gone at the end.
//!
//! Experiments do not read `lakebed.toml`: they say what the defaults give.

use std::{fs, path::Path};

use lakebed_collect::CollectOptions;
use lakebed_graph::JoinGraph;
use lakebed_lake::ScanCost;
use lakebed_layout::{Lake, alter_layout, optimize};
use lakebed_model::{Bytes, TableName, Workload};
use lakebed_plan::{Layout, LayoutPlan};
use tempfile::TempDir;

use super::{
    dice::Dice,
    replay::{Replayed, now, ratio, replay, skipping_rate},
    shipped::ShippedLog,
    templates::{Weights, as_log, window},
    tpch::{RowOrder, write_tables_in},
};
use crate::{
    config::Config,
    error::Error,
    pipeline::{Extent, Pipeline, blocking, rewritten_bytes},
    progress::Progress,
};

/// A lake in a temporary folder.
#[derive(Debug)]
pub(super) struct OwnLake {
    pub(super) pipeline: Pipeline,
    folder: TempDir,
}

/// What rewriting tables took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Rewriting {
    pub(super) bytes: Bytes,
    pub(super) seconds: f64,
}

impl OwnLake {
    /// Writes the TPC-H tables.
    pub(super) async fn tpch(scale_factor: f64, order: RowOrder) -> Result<Self, Error> {
        let mut lake = Self::open(temporary()?).await?;
        let (now, progress) = (lake.pipeline.now, lake.pipeline.progress.clone());
        let tables = &mut lake.pipeline.lake;
        let folder = lake.folder.path();
        Box::pin(write_tables_in(tables, folder, scale_factor, order, now, &progress)).await?;
        Ok(lake)
    }

    /// Makes a lake without tables.
    pub(super) async fn empty() -> Result<Self, Error> {
        Self::open(temporary()?).await
    }

    /// Copies the tables, as they are, into a lake of their own.
    pub(super) async fn copy(&self) -> Result<Self, Error> {
        let folder = temporary()?;
        let (from, to) = (self.folder.path().to_owned(), folder.path().to_owned());
        blocking("copying", move || copy_folder(&from, &to)).await?;
        Self::open(folder).await
    }

    /// The lake's folder.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    async fn open(folder: TempDir) -> Result<Self, Error> {
        let mut config = Config::default();
        config.lake.folder = Some(folder.path().to_owned());
        let pipeline = Pipeline::new(config, Progress::hidden()).await?;
        Ok(Self { pipeline, folder })
    }

    /// Clusters a table and rewrites it whole.
    pub(super) async fn lay(&self, table: &TableName, layout: &Layout) -> Result<Rewriting, Error> {
        let Pipeline { lake, now: instant, .. } = &self.pipeline;
        let started = now();
        alter_layout(lake, table, layout, *instant).await?;
        let options = self.pipeline.optimize_options(Extent::Full)?;
        let report = Box::pin(optimize(lake, lake, table, &options)).await?;
        Ok(Rewriting { bytes: rewritten_bytes(&report), seconds: started.elapsed().as_secs_f64() })
    }

    /// Lays out several tables.
    pub(super) async fn lay_all(
        &self,
        layouts: &[(TableName, Layout)],
    ) -> Result<Rewriting, Error> {
        let mut sum = Rewriting::default();
        for (table, layout) in layouts {
            let one = Box::pin(self.lay(table, layout)).await?;
            sum = Rewriting { bytes: sum.bytes + one.bytes, seconds: sum.seconds + one.seconds };
        }
        Ok(sum)
    }

    /// Collects statements as a log that holds their texts.
    pub(super) async fn collect(&self, name: &str, texts: &[&str]) -> Result<Workload, Error> {
        let path = self.folder().join(format!("{name}.jsonl"));
        let log = as_log(texts.iter().copied());
        let fail = |source| Error::File { action: "write", path: path.clone(), source };
        fs::write(&path, log).map_err(fail)?;
        let workload = self.pipeline.collect(&[path], &CollectOptions::default()).await?;
        if workload.records.len() != texts.len() {
            let found = workload.records.len();
            return Err(Error::Mismatch {
                what: format!("{name}: {found} of {} statements read", texts.len()),
            });
        }
        Ok(workload)
    }

    /// Draws a window of the orders workload and collects it.
    pub(super) async fn drawn(
        &self,
        name: &str,
        weights: &Weights,
        scale_factor: f64,
        dice: &mut Dice,
    ) -> Result<Workload, Error> {
        let drawn = window(weights, scale_factor, dice);
        let texts: Vec<&str> = drawn.iter().map(|(_, sql)| sql.as_str()).collect();
        self.collect(name, &texts).await
    }

    /// Collects a log that is shipped.
    pub(super) async fn shipped(&self, log: &ShippedLog) -> Result<Workload, Error> {
        let path = log.unpack(&self.folder().join("logs"))?;
        self.pipeline.collect(&[path], &CollectOptions::default()).await
    }

    /// Plans layouts for a workload, with the defaults.
    pub(super) async fn plan(&self, workload: &Workload) -> Result<LayoutPlan, Error> {
        let pipeline = &self.pipeline;
        let graph = self.graph(workload).await?;
        let evidence = Box::pin(pipeline.evidence(workload, &graph, &[])).await?;
        let settings = pipeline.config.plan_settings()?;
        pipeline.plan(&graph, workload, evidence, settings, None).await
    }

    /// Builds the scored join graph of a workload.
    pub(super) async fn graph(&self, workload: &Workload) -> Result<JoinGraph, Error> {
        let rows = self.pipeline.row_counts(workload).await?;
        self.pipeline.graph(workload, &rows, None).await
    }

    /// Runs a workload's statements.
    pub(super) async fn run(&self, workload: &Workload, label: &str) -> Result<Executed, Error> {
        let progress = &self.pipeline.progress;
        let replayed = replay(&self.pipeline.lake, workload, label, progress).await?;
        Ok(Executed { replayed })
    }

    /// Bytes and files of a table.
    pub(super) async fn size(&self, table: &TableName) -> Result<(Bytes, u64), Error> {
        let snapshot = self.pipeline.lake.snapshot(table).await?;
        Ok((snapshot.bytes(), u64::try_from(snapshot.files.len()).unwrap_or(u64::MAX)))
    }
}

/// A plan's layouts by table.
pub(super) fn layouts_of(plan: &LayoutPlan) -> Vec<(TableName, Layout)> {
    plan.actions.iter().map(|action| (action.table.clone(), action.to.clone())).collect()
}

/// Renders layouts in a line.
pub(super) fn described(layouts: &[(TableName, Layout)]) -> String {
    let each: Vec<String> =
        layouts.iter().map(|(table, layout)| format!("{table} ({})", layout.keys())).collect();
    if each.is_empty() { "as written".to_owned() } else { each.join(", ") }
}

/// A workload's statements as they ran on one lake.
#[derive(Debug)]
pub(super) struct Executed {
    pub(super) replayed: Vec<Replayed>,
}

impl Executed {
    /// Mean over statements of 1 − files read / files of the tables scanned.
    pub(super) fn skipping(&self) -> f64 {
        skipping_rate(&self.replayed)
    }

    /// The same over the statements that a condition holds for.
    pub(super) fn skipping_of(&self, is_meant: impl Fn(usize) -> bool) -> f64 {
        skipping_rate(self.replayed.iter().filter(|one| is_meant(one.statement)))
    }

    /// What all statements read.
    pub(super) fn cost(&self) -> ScanCost {
        self.replayed.iter().fold(ScanCost::default(), |sum, one| sum.plus(one.cost))
    }

    /// Bytes read, as a share of another run's.
    pub(super) fn bytes_ratio(&self, other: &Self) -> f64 {
        ratio(self.cost().bytes_read, other.cost().bytes_read)
    }

    /// Wall time of all statements.
    pub(super) fn elapsed_ms(&self) -> u64 {
        self.replayed.iter().map(|one| one.elapsed_ms).sum()
    }

    /// Fails unless every statement answers as it did in another run.
    pub(super) fn check_answers(&self, other: &Self, what: &str) -> Result<(), Error> {
        let pairs = self.replayed.iter().zip(&other.replayed);
        let changed = pairs.filter(|(one, other)| !one.answers_as(other)).count();
        if changed > 0 || self.replayed.len() != other.replayed.len() {
            return Err(Error::Mismatch {
                what: format!("{what}: {changed} of {} answers changed", self.replayed.len()),
            });
        }
        Ok(())
    }
}

/// Makes a folder that is gone when it is dropped.
fn temporary() -> Result<TempDir, Error> {
    tempfile::Builder::new().prefix("lakebed-experiment-").tempdir().map_err(|source| Error::File {
        action: "create a folder in",
        path: std::env::temp_dir(),
        source,
    })
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Error> {
    let fail = |source| Error::File { action: "copy", path: from.to_owned(), source };
    fs::create_dir_all(to).map_err(fail)?;
    for entry in fs::read_dir(from).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let target = to.join(entry.file_name());
        if entry.file_type().map_err(fail)?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target).map_err(fail)?;
        }
    }
    Ok(())
}
