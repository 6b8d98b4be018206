//! Queries over the lake's tables, with what their scans cost.

use std::{collections::BTreeMap, fmt, sync::Arc};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{
    catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, TableProvider},
    common::{ResolvedTableReference, TableReference, tree_node::TreeNodeRecursion},
    datasource::{physical_plan::FileScanConfig, source::DataSourceExec},
    error::Result,
    execution::{FunctionRegistry, SessionState, SessionStateBuilder},
    logical_expr::LogicalPlan,
    physical_plan::{ExecutionPlan, collect, metrics::MetricValue},
    prelude::{DataFrame, SessionConfig, SessionContext},
};
use datafusion_spark::SessionStateBuilderSpark;
use lakebed_layout::{FileReader, InputFile, Lake, TableSnapshot, input_file};
use lakebed_model::TableName;
use object_store::path::Path;

use crate::{
    DeltaLake, LakeError,
    dialect::{self, ColumnNames},
    integers::SparkIntegers,
    lift::LiftRanges,
    literals,
    rewrite::ScanRequest,
    scan::engine_scan,
    versions::{self, Version, Versioned},
};

/// The schema under which Spark takes a table's name for its location: ``delta.`/lake/orders` ``.
const BY_LOCATION: &str = "delta";

/// What the scans of one query read, from the metrics of the plan that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScanCost {
    /// Files the scans opened.
    pub files_read: u64,
    /// Files of the scanned tables, once per scan.
    pub files_total: u64,
    /// Bytes fetched from storage, footers included.
    pub bytes_read: u64,
    /// Row groups of the files opened that Bloom filters ruled out.
    pub row_groups_ruled_out: u64,
}

impl ScanCost {
    /// Adds what other scans read.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            files_read: self.files_read + other.files_read,
            files_total: self.files_total + other.files_total,
            bytes_read: self.bytes_read + other.bytes_read,
            row_groups_ruled_out: self.row_groups_ruled_out + other.row_groups_ruled_out,
        }
    }
}

/// A query's answer and cost.
#[derive(Debug, Clone)]
pub struct QueryOutcome {
    /// Columns of the answer.
    pub schema: SchemaRef,
    /// Rows of the answer.
    pub batches: Vec<RecordBatch>,
    /// What it read.
    pub cost: ScanCost,
    /// What it read of each table, by the table's name in the lake.
    pub tables: BTreeMap<TableName, ScanCost>,
    /// The tables it opened, each with the version it saw.
    pub versions: BTreeMap<String, u64>,
}

/// A table that a session scans.
#[derive(Debug, Clone)]
struct OpenTable {
    name: TableName,
    files: u64,
    /// Where its files lie in its store.
    folder: Path,
}

/// Runs queries against the tables as they were when first used in this session.
pub struct QuerySession {
    lake: DeltaLake,
    context: SessionContext,
    /// The open tables, by their full names.
    open: BTreeMap<String, OpenTable>,
    /// Version of each open table, by its name in the lake.
    versions: BTreeMap<String, u64>,
    /// Columns of the open tables.
    columns: ColumnNames,
}

impl fmt::Debug for QuerySession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lake, context: _, open, versions, columns: _ } = self;
        f.debug_struct("QuerySession")
            .field("lake", lake)
            .field("open", open)
            .field("versions", versions)
            .finish_non_exhaustive()
    }
}

impl DeltaLake {
    /// Opens a session: Spark's SQL dialect and functions over DataFusion.
    #[must_use]
    pub fn session(&self) -> QuerySession {
        self.session_with(self.options.threads.get())
    }

    /// Opens a session whose scans use this many threads.
    pub(crate) fn session_with(&self, threads: usize) -> QuerySession {
        let config = SessionConfig::new()
            .with_target_partitions(threads)
            .set_str("datafusion.sql_parser.dialect", "spark")
            .set_bool("datafusion.sql_parser.parse_float_as_decimal", true)
            .set_str("datafusion.execution.time_zone", "UTC")
            .set_bool("datafusion.execution.parquet.pushdown_filters", true)
            .set_bool("datafusion.execution.parquet.reorder_filters", true);
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(Arc::clone(&self.runtime))
            .with_default_features()
            .with_spark_features()
            .build();
        let mut state = with_lifted_ranges(state);
        // Spark averages decimals exactly; DataFusion's own function does too, its Spark one does not.
        let average = datafusion::functions_aggregate::average::avg_udaf();
        if let Err(error) = state.register_udaf(average) {
            tracing::warn!(%error, "averages of decimals are rounded");
        }
        if let Err(error) = state.register_function_rewrite(Arc::new(SparkIntegers)) {
            tracing::warn!(%error, "integer literals stay 64-bit");
        }
        QuerySession {
            lake: self.clone(),
            context: SessionContext::new_with_state(state),
            open: BTreeMap::new(),
            versions: BTreeMap::new(),
            columns: ColumnNames::default(),
        }
    }
}

impl QuerySession {
    /// Runs one query to its end.
    ///
    /// # Errors
    /// Fails when the query does not parse, names an unknown table, or fails while running.
    pub async fn run(&mut self, sql: &str) -> Result<QueryOutcome, LakeError> {
        let fail = |source| LakeError::Query { sql: sql.to_owned(), source };
        let frame = self.frame(sql).await?;
        let schema = Arc::clone(frame.schema().inner());
        let state = self.context.state();
        let logical = state.optimize(frame.logical_plan()).map_err(fail)?;
        let mut tables = self.tables_scanned(&logical).map_err(fail)?;
        let plan =
            state.query_planner().create_physical_plan(&logical, &state).await.map_err(fail)?;
        let batches = collect(Arc::clone(&plan), self.context.task_ctx()).await.map_err(fail)?;
        let mut nowhere = ScanCost::default();
        self.add_metrics(&plan, None, &mut tables, &mut nowhere);
        let cost = tables.values().fold(nowhere, |sum, cost| sum.plus(*cost));
        Ok(QueryOutcome { schema, batches, cost, tables, versions: self.versions.clone() })
    }

    /// Plans a query, to be run by the caller.
    ///
    /// # Errors
    /// Fails when the query does not parse or names an unknown table or column.
    pub(crate) async fn frame(&mut self, sql: &str) -> Result<DataFrame, LakeError> {
        let fail = |source| LakeError::Query { sql: sql.to_owned(), source };
        let text = self.open_tables(sql).await?;
        let state = self.context.state();
        let spark = state.config().options().sql_parser.dialect;
        let mut statement = state.sql_to_statement(&text, &spark).map_err(fail)?;
        dialect::translate_statement(&mut statement, &self.columns).map_err(fail)?;
        let plan = Box::pin(state.statement_to_plan(statement)).await.map_err(fail)?;
        Ok(DataFrame::new(state, literals::rewritten_plan(plan).map_err(fail)?))
    }

    pub(crate) const fn context(&self) -> &SessionContext {
        &self.context
    }

    pub(crate) fn into_context(self) -> SessionContext {
        self.context
    }

    /// Opens the tables a query names, unless this session has them open: what [`QuerySession::run`]
    /// would otherwise do first.
    ///
    /// # Errors
    /// Fails when the query does not parse or a table cannot be opened.
    pub async fn prepare(&mut self, sql: &str) -> Result<(), LakeError> {
        self.open_tables(sql).await.map(drop)
    }

    /// Opens the tables that a query names and returns the query as the engine understands it.
    async fn open_tables(&mut self, sql: &str) -> Result<String, LakeError> {
        let fail = |source| LakeError::Query { sql: sql.to_owned(), source };
        let (text, versioned) = versions::rewrite(sql).map_err(fail)?;
        for Versioned { name, table, version } in versioned {
            let place = self.resolved(&TableReference::bare(name));
            self.register(&table, &place, Some(version)).await?;
        }
        for table in self.tables_of(&text)? {
            let place = self.resolved(&table);
            self.register(&table, &place, None).await?;
        }
        Ok(text)
    }

    /// Lists the tables a statement names.
    ///
    /// # Errors
    /// Fails when the statement does not parse.
    fn tables_of(&self, sql: &str) -> Result<Vec<TableReference>, LakeError> {
        let fail = |source| LakeError::Query { sql: sql.to_owned(), source };
        let state = self.context.state();
        let dialect = state.config().options().sql_parser.dialect;
        let statement = state.sql_to_statement(sql, &dialect).map_err(fail)?;
        state.resolve_table_references(&statement).map_err(fail)
    }

    /// Opens a table, at its newest version or another, under a place's name.
    async fn register(
        &mut self,
        reference: &TableReference,
        place: &ResolvedTableReference,
        version: Option<Version>,
    ) -> Result<(), LakeError> {
        if self.open.contains_key(&place.to_string()) {
            return Ok(());
        }
        let mut lake = self.lake.clone();
        let table = if reference.schema() == Some(BY_LOCATION) {
            lake.add_table(reference.table(), reference.table())?;
            TableName::new(reference.table())
        } else {
            let parts = [reference.catalog(), reference.schema(), Some(reference.table())];
            lake.named(&parts.into_iter().flatten().collect::<Vec<_>>().join("."))
        };
        let snapshot = match version {
            None => lake.snapshot(&table).await?,
            Some(version) => lake.snapshot_at(&table, version).await?,
        };
        let engine =
            |source| LakeError::Engine { action: "open", table: table.to_string(), source };
        let scan = self.scan(&lake, &snapshot).await?;
        self.ensure_schema(place).map_err(engine)?;
        self.context.register_table(place.clone(), scan).map_err(engine)?;
        let files = u64::try_from(snapshot.files.len()).unwrap_or(u64::MAX);
        let folder = Path::from_url_path(lake.location(&table)?.path()).unwrap_or_default();
        let open = OpenTable { name: table.clone(), files, folder };
        self.open.insert(place.to_string(), open);
        self.versions.insert(table.to_string(), snapshot.version);
        self.columns.add(snapshot.schema.fields());
        Ok(())
    }

    /// Makes the scan of a whole table: the engine's, where that reads the table right.
    async fn scan(
        &self,
        lake: &DeltaLake,
        snapshot: &TableSnapshot,
    ) -> Result<Arc<dyn TableProvider>, LakeError> {
        let table = &snapshot.table;
        let engine =
            |source| LakeError::Engine { action: "open", table: table.to_string(), source };
        if snapshot.reader() == FileReader::FileByFile {
            let inputs: Vec<InputFile> = snapshot.files.iter().map(input_file).collect();
            let request = ScanRequest {
                table,
                version: snapshot.version,
                inputs: &inputs,
                reader: FileReader::FileByFile,
                column_mapping: snapshot.column_mapping(),
                row_tracking: None,
            };
            return lake.scan_files(&self.context, request).await.map_err(engine);
        }
        engine_scan(lake.log_store(table)?, &self.context, snapshot.version, None)
            .await
            .map_err(engine)
    }

    fn resolved(&self, reference: &TableReference) -> ResolvedTableReference {
        let options = self.context.copied_config();
        let catalog = &options.options().catalog;
        reference.clone().resolve(&catalog.default_catalog, &catalog.default_schema)
    }

    /// Statements spell tables as their own catalog has them; the engine must know that schema.
    fn ensure_schema(&self, place: &ResolvedTableReference) -> Result<()> {
        let catalog = self.context.catalog(&place.catalog).unwrap_or_else(|| {
            let catalog: Arc<dyn CatalogProvider> = Arc::new(MemoryCatalogProvider::new());
            self.context.register_catalog(place.catalog.as_ref(), Arc::clone(&catalog));
            catalog
        });
        if catalog.schema(&place.schema).is_none() {
            catalog.register_schema(&place.schema, Arc::new(MemorySchemaProvider::new()))?;
        }
        Ok(())
    }

    /// Lists the tables that a plan scans, with their files once per scan.
    fn tables_scanned(&self, plan: &LogicalPlan) -> Result<BTreeMap<TableName, ScanCost>> {
        let mut tables: BTreeMap<TableName, ScanCost> = BTreeMap::new();
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                let place = self.resolved(&scan.table_name);
                if let Some(open) = self.open.get(&place.to_string()) {
                    tables.entry(open.name.clone()).or_default().files_total += open.files;
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(tables)
    }

    /// Adds what a plan that ran read to the tables that it read; `above` is the table of the scan
    /// that this part belongs to.
    fn add_metrics(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        above: Option<&TableName>,
        tables: &mut BTreeMap<TableName, ScanCost>,
        nowhere: &mut ScanCost,
    ) {
        let found = scan_cost(plan.as_ref());
        let mut table = above;
        if found != ScanCost::default() {
            table = table.or_else(|| self.table_below(plan));
            let cost = match table {
                Some(table) => tables.entry(table.clone()).or_default(),
                None => &mut *nowhere,
            };
            *cost = cost.plus(found);
        }
        for child in plan.children() {
            self.add_metrics(child, table, tables, nowhere);
        }
    }

    /// Finds the table whose files a part of a plan reads: that of the first file below it.
    fn table_below(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<&TableName> {
        let own = plan.downcast_ref::<DataSourceExec>().and_then(|source| {
            let files = source.data_source().downcast_ref::<FileScanConfig>()?;
            let file = files.file_groups.iter().find_map(|group| group.files().first())?;
            let is_its = |open: &&OpenTable| file.object_meta.location.prefix_matches(&open.folder);
            // A table may lie in the folder of another one.
            let longest = |open: &&OpenTable| open.folder.as_ref().len();
            Some(&self.open.values().filter(is_its).max_by_key(longest)?.name)
        });
        own.or_else(|| plan.children().into_iter().find_map(|child| self.table_below(child)))
    }
}

/// A session without our own rules and functions, for rewrites: types as stored, no views.
pub(crate) fn plain(lake: &DeltaLake) -> SessionContext {
    without_rules(lake, config(lake))
}

/// A session as [`plain`] whose batches have so many rows.
pub(crate) fn with_batches(lake: &DeltaLake, rows: usize) -> SessionContext {
    without_rules(lake, config(lake).with_batch_size(rows))
}

/// A session as [`plain`] whose scans give the same rows in the same order on every run and machine.
pub(crate) fn in_order(lake: &DeltaLake) -> SessionContext {
    without_rules(lake, SessionConfig::new().with_target_partitions(1))
}

fn without_rules(lake: &DeltaLake, config: SessionConfig) -> SessionContext {
    let config = config
        .set_bool("datafusion.execution.parquet.schema_force_view_types", false)
        .set_str("datafusion.execution.spill_compression", "lz4_frame");
    SessionContext::new_with_config_rt(config, Arc::clone(&lake.runtime))
}

fn config(lake: &DeltaLake) -> SessionConfig {
    SessionConfig::new().with_target_partitions(lake.options.threads.get())
}

/// Our rule runs first, so that the engine pushes what it adds down to the scans.
fn with_lifted_ranges(state: SessionState) -> SessionState {
    let mut rules: Vec<_> = state.optimizers().to_vec();
    let before_push_down =
        rules.iter().position(|rule| rule.name() == "push_down_filter").unwrap_or(0);
    rules.insert(before_push_down, Arc::new(LiftRanges));
    SessionStateBuilder::new_from_existing(state).with_optimizer_rules(rules).build()
}

/// Reads what one node of a plan that ran read itself.
fn scan_cost(plan: &dyn ExecutionPlan) -> ScanCost {
    let Some(metrics) = plan.metrics() else { return ScanCost::default() };
    let ruled_out = metrics.iter().filter_map(|metric| match metric.value() {
        MetricValue::PruningMetrics { name, pruning_metrics }
            if name == "row_groups_pruned_bloom_filter" =>
        {
            u64::try_from(pruning_metrics.pruned()).ok()
        }
        _ => None,
    });
    let row_groups_ruled_out = ruled_out.sum::<u64>();
    let metrics = metrics.aggregate_by_name();
    let sum = |name: &str| -> u64 {
        metrics
            .sum_by_name(name)
            .map_or(0, |value| u64::try_from(value.as_usize()).unwrap_or(u64::MAX))
    };
    ScanCost {
        files_read: sum("count_files_scanned"),
        bytes_read: sum("bytes_scanned"),
        files_total: 0,
        row_groups_ruled_out,
    }
}
