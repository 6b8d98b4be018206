//! The whole program: query history → workload → join graph → plan → clustered tables.
//!
//! [`Pipeline::road`] is the main job from end to end; every verb is a prefix or a part of it. Guests
//! and planning run on blocking threads through [`blocking`], the one bridge between the async lake
//! and the pure stages.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use lakebed_collect::{
    CollectOptions, collect,
    lineage::sql::{Dialect, lineage},
};
use lakebed_graph::{DriftReport, JoinGraph, compare};
use lakebed_lake::{DeltaLake, LakeOptions, SampleOptions};
use lakebed_layout::{
    AlterOutcome, Lake, OptimizeOptions, OptimizeReport, WriteOptions, alter_layout,
    cuts::Cuts,
    ddl::{self, KeyTypes},
    optimize, pending_bytes,
};
use lakebed_model::{
    Bytes, Clock, FilterOperator, Instant, QueryRecord, QueryStatus, ScanUse, SystemClock,
    TableName, Workload,
};
use lakebed_plan::{
    LakeEvidence, LayoutPlan, LoggedScan, PlannedAction, Settings, logged_scans, plan,
    search::{ALL_SEARCHES, Search},
};
use lakebed_sandbox::Plugin;
use tokio::runtime::Handle;

use crate::{
    catalog::LakeCatalog,
    config::Config,
    error::{Error, with_causes},
    logs::LocalLogs,
    plugged::PluginSet,
    progress::Progress,
    records,
};

/// Everything a job needs.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// The configuration.
    pub config: Arc<Config>,
    /// The formulas.
    pub plugins: PluginSet,
    /// The tables.
    pub lake: DeltaLake,
    /// The job's one instant.
    pub now: Instant,
    /// Where progress shows.
    pub progress: Progress,
}

/// What one trip along the road decided and did.
#[derive(Debug)]
pub struct RoadReport {
    /// The history.
    pub workload: Workload,
    /// Its joins, scored.
    pub graph: JoinGraph,
    /// The plan.
    pub plan: LayoutPlan,
    /// The plan's actions as they were carried out.
    pub applied: Vec<AppliedAction>,
}

/// One action, carried out.
#[derive(Debug)]
pub struct AppliedAction {
    /// The decision.
    pub action: PlannedAction,
    /// The change of keys.
    pub altered: AlterOutcome,
    /// The rewrite.
    pub optimized: OptimizeReport,
}

/// How far an OPTIMIZE goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// New, small and much deleted files.
    Incremental,
    /// Files made under other keys, by other providers or far too large as well.
    Full,
}

impl Pipeline {
    /// Sets up a configuration's plugins and tables.
    ///
    /// # Errors
    /// Fails when the configuration names what is not there.
    pub async fn new(config: Config, progress: Progress) -> Result<Self, Error> {
        let config = Arc::new(config);
        let plugins = PluginSet::new(Arc::clone(&config))?;
        let mut options = LakeOptions { storage: config.store_options(), ..LakeOptions::default() };
        if let Some(threads) = config.engine.threads {
            options.threads = threads;
        }
        options.memory = config.engine_memory()?;
        options.spill_folder =
            config.engine.spill_folder.as_deref().map(|folder| config.resolve(folder));
        let mut lake = DeltaLake::new(options)?.with_plugins(Arc::new(plugins.clone()));
        if let Some(folder) = config.lake_folder() {
            lake.add_lake(&folder).await?;
        }
        for (name, location) in &config.tables {
            lake.add_table(name, &config.location(location))?;
        }
        Ok(Self { config, plugins, lake, now: SystemClock.now(), progress })
    }

    /// Begins another job: its time is read anew, and is later than the last one's.
    pub fn renew_time(&mut self) {
        let next = Instant::from_epoch_ms(self.now.epoch_ms().saturating_add(1));
        self.now = SystemClock.now().max(next);
    }

    /// The main job: reads the logs, finds which joins and filters matter, plans layouts within the
    /// budgets and rewrites the tables accordingly.
    ///
    /// # Errors
    /// Fails with the first stage that fails; tables rewritten before stay rewritten.
    pub async fn road(&self, logs: &[PathBuf], settings: Settings) -> Result<RoadReport, Error> {
        let workload = self.collect(logs, &CollectOptions::default()).await?;
        let rows = self.row_counts(&workload).await?;
        let graph = self.graph(&workload, &rows, None).await?;
        let evidence = self.evidence(&workload, &graph, &[]).await?;
        let plan = self.plan(&graph, &workload, evidence, settings, None).await?;
        records::keep_history(self, &workload).await;
        records::keep_plan(self, &plan).await;
        self.check(&plan.actions).await?;
        let mut applied = Vec::new();
        self.apply(&plan.actions, &mut applied).await?;
        Ok(RoadReport { workload, graph, plan, applied })
    }

    /// Query history → workload.
    ///
    /// # Errors
    /// Fails when a log cannot be read or holds no statement.
    pub async fn collect(
        &self,
        logs: &[PathBuf],
        options: &CollectOptions,
    ) -> Result<Workload, Error> {
        let catalog = self.catalog();
        let fetched = LocalLogs::of(&self.lake, logs).await?;
        let options = options.clone();
        blocking("collecting", move || Ok(collect(&fetched.paths, &options, &catalog)?)).await
    }

    /// Workload → join graph, scored by the configuration's scorer or the one named.
    ///
    /// # Errors
    /// Fails when the scorer does.
    pub async fn graph(
        &self,
        workload: &Workload,
        rows: &BTreeMap<TableName, u64>,
        scorer: Option<&str>,
    ) -> Result<JoinGraph, Error> {
        let scorer = self.plugins.scorer(scorer)?;
        let graph = JoinGraph::build(workload, rows);
        blocking("scoring", move || Ok(graph.scored(&scorer)?)).await
    }

    /// Reads what the planner must know of the workload's tables, or of those in `only` alone.
    ///
    /// A table whose log is damaged or asks for too much is left out with that reason.
    ///
    /// # Errors
    /// Fails when storage does, or when `only` names a table that the lake does not have.
    pub async fn evidence(
        &self,
        workload: &Workload,
        graph: &JoinGraph,
        only: &[String],
    ) -> Result<LakeEvidence, Error> {
        for name in only {
            self.lake.location(&TableName::new(name))?;
        }
        let is_asked = |table: &TableName| {
            only.is_empty() || only.iter().any(|asked| same(&TableName::new(asked), table))
        };
        let interesting = interesting_columns(workload, graph);
        let bar = self.progress.bar("sampling tables", interesting.len());
        let options = self.sample_options()?;
        let mut evidence = LakeEvidence::default();
        for (table, columns) in interesting {
            bar.set_message(table.to_string());
            if !self.lake.contains(&table) {
                // The plan says so of every table of the graph.
            } else if self.is_protected(&table) {
                let why = "the table is protected by the configuration".to_owned();
                evidence.left_out.insert(table, why);
            } else if !is_asked(&table) {
                evidence.left_out.insert(table, "not among the tables asked for".to_owned());
            } else {
                match self.lake.evidence(&table, &columns, &options).await {
                    Ok(found) => evidence.tables.push(found),
                    Err(error) if error.is_of_table() => {
                        evidence.left_out.insert(table, format!("cannot {}", with_causes(&error)));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(evidence)
    }

    /// Graph and evidence → plan.
    ///
    /// # Errors
    /// Fails when the cost model does, or there is no search of that name.
    pub async fn plan(
        &self,
        graph: &JoinGraph,
        workload: &Workload,
        evidence: LakeEvidence,
        settings: Settings,
        search: Option<&str>,
    ) -> Result<LayoutPlan, Error> {
        let cost = self.plugins.cost_model()?;
        let search = find_search(search.unwrap_or(&self.config.plan.search))?;
        let (graph, workload) = (graph.clone(), workload.clone());
        let ranking = if is_without_ranking(&graph) {
            tracing::warn!(
                scorer = graph.scorer(),
                instead = RANKING_SCORER,
                "every join scores 0, as min-max normalization does with one edge or equal ones: \
                 joins are ranked by bytes instead"
            );
            Some(self.plugins.scorer(Some(RANKING_SCORER))?)
        } else {
            None
        };
        blocking("planning", move || {
            let graph = match ranking {
                Some(scorer) => graph.scored(&scorer)?,
                None => graph,
            };
            Ok(plan(&graph, &workload, &evidence, &cost, search, &settings)?)
        })
        .await
    }

    /// Plan → clustered tables: sets the keys and rewrites, table by table, and adds each table that
    /// is done to `applied`.
    ///
    /// [`Pipeline::check`] comes first, so that no table is touched when another one cannot be.
    ///
    /// # Errors
    /// Fails with the first table that cannot be rewritten; those in `applied` stay rewritten.
    pub async fn apply(
        &self,
        actions: &[PlannedAction],
        applied: &mut Vec<AppliedAction>,
    ) -> Result<(), Error> {
        let bar = self.progress.bar("rewriting tables", actions.len());
        let _rows = self.progress.rewrites(self.lake.meter());
        for action in actions {
            bar.set_message(format!("{} by ({})", action.table, action.to.keys()));
            let altered = alter_layout(&self.lake, &action.table, &action.to, self.now).await?;
            let options = self.optimize_options(Extent::Full)?;
            let optimized = optimize(&self.lake, &self.lake, &action.table, &options).await?;
            applied.push(AppliedAction { action: action.clone(), altered, optimized });
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Checks that a plan's actions still fit their tables, and tells what each would rewrite now:
    /// the table, or what does not follow the new keys yet where they are set already.
    ///
    /// # Errors
    /// Fails when a table is missing, unreadable or protected, has not the columns, or is laid out
    /// otherwise than the plan supposes: neither as before the action nor as after it.
    pub async fn check(&self, actions: &[PlannedAction]) -> Result<Vec<Bytes>, Error> {
        let mut sizes = Vec::with_capacity(actions.len());
        for action in actions {
            if self.is_protected(&action.table) {
                return Err(Error::Protected { table: action.table.to_string() });
            }
            let snapshot = self.lake.snapshot(&action.table).await?;
            ddl::resolved(&snapshot, &action.to.cluster_by, KeyTypes::Plain)?;
            Cuts::checked(action.table.as_str(), &action.to.cluster_by, &action.to.cuts)?;
            let current = snapshot.layout();
            if current.is_same_as(&action.to) {
                let target = snapshot.target_file_size(self.config.file_size()?);
                sizes.push(pending_bytes(&snapshot, target)?);
            } else if current.is_same_as(&action.from) {
                sizes.push(snapshot.bytes());
            } else {
                return Err(Error::Outdated {
                    table: action.table.to_string(),
                    expected: action.from.to_string(),
                    found: current.to_string(),
                });
            }
        }
        Ok(sizes)
    }

    /// Tells whether the configuration says to leave a table alone.
    fn is_protected(&self, table: &TableName) -> bool {
        self.config.plan.protect.iter().any(|name| same(&TableName::new(name), table))
    }

    /// Which types the settings let clustering columns have.
    #[must_use]
    pub fn key_types(&self) -> KeyTypes {
        match self.config.settings.clustering.complex_types {
            true => KeyTypes::Complex,
            false => KeyTypes::Plain,
        }
    }

    /// How much of a table is sampled.
    ///
    /// # Errors
    /// Fails when the configuration's file size is no size.
    pub fn sample_options(&self) -> Result<SampleOptions, Error> {
        let default_file_size = self.config.file_size()?;
        Ok(SampleOptions { default_file_size, ..SampleOptions::default() })
    }

    /// What statements of this job that write rows go by.
    ///
    /// # Errors
    /// Fails when the configuration's file size is no size.
    pub fn write_options(&self) -> Result<WriteOptions, Error> {
        let default_file_size = self.config.file_size()?;
        Ok(WriteOptions { default_file_size, settings: self.config.settings.clustering })
    }

    /// The settings of an OPTIMIZE of this job.
    ///
    /// # Errors
    /// Fails when the configuration's file size is no size.
    pub fn optimize_options(&self, extent: Extent) -> Result<OptimizeOptions, Error> {
        let default_file_size = self.config.file_size()?;
        Ok(OptimizeOptions {
            full: extent == Extent::Full,
            default_file_size,
            settings: self.config.settings.clustering,
            now: self.now,
        })
    }

    /// Distance of two windows, with the scores of each.
    ///
    /// # Errors
    /// Fails when the meter does.
    pub async fn drift(
        &self,
        before: &JoinGraph,
        after: &JoinGraph,
        meter: Option<&str>,
        threshold: f64,
    ) -> Result<(DriftReport, Plugin), Error> {
        let meter = self.plugins.drift_meter(meter)?;
        let plugin = meter.plugin().clone();
        let (before, after) = (before.clone(), after.clone());
        let report =
            blocking("measuring drift", move || Ok(compare(&before, &after, &meter, threshold)?))
                .await?;
        Ok((report, plugin))
    }

    /// Rows of the workload's tables that the lake has and can read.
    ///
    /// # Errors
    /// Fails when storage does.
    pub async fn row_counts(&self, workload: &Workload) -> Result<BTreeMap<TableName, u64>, Error> {
        let mut rows = BTreeMap::new();
        for table in workload_tables(workload) {
            if !self.lake.contains(&table) {
                continue;
            }
            match self.lake.snapshot(&table).await {
                Ok(snapshot) => rows.extend(snapshot.rows().map(|count| (table, count))),
                Err(fault) if fault.is_of_table() => {
                    tracing::warn!("cannot {}", with_causes(&fault));
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(rows)
    }

    /// Reads a predicate on one table as a scan with ranges, and the columns that must be null.
    ///
    /// # Errors
    /// Fails when the predicate does not parse or names other columns than the table has.
    pub async fn predicate(
        &self,
        table: &TableName,
        predicate: &str,
    ) -> Result<(LoggedScan, BTreeSet<String>), Error> {
        let catalog = self.catalog();
        let sql = format!("SELECT 1 FROM {} WHERE {predicate}", quoted(table.as_str()));
        let text = sql.clone();
        let read =
            blocking("reading the predicate", move || Ok(lineage(&text, Dialect::Spark, &catalog)));
        let read = read.await?.map_err(|error| Error::Usage {
            what: format!("read predicate `{predicate}`: {error}"),
            help: "write it as it would stand after WHERE".to_owned(),
        })?;
        // Subqueries scan as well, the same table perhaps: then nothing says which scan is meant.
        let is_own = |scan: &&ScanUse| scan.table.as_ref().is_some_and(|name| same(name, table));
        let mut own = read.scans.iter().filter(is_own);
        let scans: Vec<ScanUse> = match (own.next(), own.next()) {
            (Some(only), None) => vec![only.clone()],
            _ => Vec::new(),
        };
        let filters = scans.iter().flat_map(|scan| &scan.filters);
        let nulls = filters.filter(|filter| filter.operator == FilterOperator::IsNull);
        let nulls = nulls.map(|filter| filter.column.column.clone()).collect();
        let record = QueryRecord {
            id: "predicate".to_owned(),
            started_at: self.now,
            source: "explain".to_owned(),
            sql: Some(sql),
            fingerprint: String::new(),
            duration_ms: None,
            status: QueryStatus::Finished,
            joins: Vec::new(),
            scans,
            confidence: read.confidence,
        };
        let workload = Workload { records: vec![record], ..Workload::default() };
        let scans = logged_scans(&workload).into_values().next().unwrap_or_default();
        let none = LoggedScan { statement: 0, ranges: BTreeMap::new() };
        Ok((scans.into_iter().next().unwrap_or(none), nulls))
    }

    fn catalog(&self) -> LakeCatalog {
        LakeCatalog::new(self.lake.clone(), Handle::current())
    }
}

/// Runs pure or guest code away from the async threads.
///
/// # Errors
/// Passes the code's own error on; a panic in it becomes [`Error::Died`].
pub async fn blocking<T: Send + 'static>(
    stage: &'static str,
    code: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(code))
        .await
        .map_err(|source| Error::Died { stage, source })?
}

/// Finds a search by its name.
///
/// # Errors
/// Fails with the names there are.
pub fn find_search(name: &str) -> Result<&'static dyn Search, Error> {
    ALL_SEARCHES.into_iter().find(|search| search.name() == name).ok_or_else(|| Error::Usage {
        what: format!("plan with search `{name}`: there is no such search"),
        help: format!(
            "choose one of: {}",
            ALL_SEARCHES.iter().map(|search| search.name()).collect::<Vec<_>>().join(", ")
        ),
    })
}

/// A scorer that ranks a single edge, and equal ones, above nothing.
const RANKING_SCORER: &str = "scorer-bytes-saved";

/// Tells whether a scorer gave every edge of a graph 0.
fn is_without_ranking(graph: &JoinGraph) -> bool {
    let is_zero = |score: f64| score.abs() <= f64::EPSILON;
    graph.scorer().is_some()
        && !graph.edges().is_empty()
        && graph.edges().iter().all(|edge| is_zero(edge.score))
}

/// Tells whether two spellings name one table, as Spark's catalog has it.
fn same(a: &TableName, b: &TableName) -> bool {
    a.as_str().to_lowercase() == b.as_str().to_lowercase()
}

/// Quotes a table's name part by part, as Spark SQL does.
#[must_use]
pub fn quoted(name: &str) -> String {
    name.split('.')
        .map(|part| format!("`{}`", part.replace('`', "``")))
        .collect::<Vec<_>>()
        .join(".")
}

/// Sums what was rewritten.
#[must_use]
pub fn rewritten_bytes(report: &OptimizeReport) -> Bytes {
    report.bins.iter().map(|bin| bin.bytes_in).sum()
}

fn workload_tables(workload: &Workload) -> BTreeSet<TableName> {
    let joins = workload.records.iter().flat_map(|record| &record.joins);
    let scans = workload.records.iter().flat_map(|record| &record.scans);
    joins
        .flat_map(|join| [join.left.clone(), join.right.clone()])
        .chain(scans.filter_map(|scan| scan.table.clone()))
        .collect()
}

/// Columns that joins or filters name, by table; a table that is only scanned has none.
fn interesting_columns(
    workload: &Workload,
    graph: &JoinGraph,
) -> BTreeMap<TableName, BTreeSet<String>> {
    let mut columns: BTreeMap<TableName, BTreeSet<String>> =
        workload_tables(workload).into_iter().map(|table| (table, BTreeSet::new())).collect();
    for edge in graph.edges() {
        for table in [&edge.stats.left, &edge.stats.right] {
            let names = edge.stats.columns_of(table).into_iter().map(ToOwned::to_owned);
            columns.entry(table.clone()).or_default().extend(names);
        }
    }
    for filter in graph.filters() {
        columns.entry(filter.table.clone()).or_default().insert(filter.column.clone());
    }
    columns
}
