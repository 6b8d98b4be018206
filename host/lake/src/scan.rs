//! The engine's scan of a table, trusted less.
//!
//! 1. deltalake 1.1.3 promises to apply a filter completely when it names no column but those of
//!    partitions, and then drops one that names none at all, such as the NULL that `a > NULL` becomes;
//!    and a comparison with a partition's null is no reason for it to leave a file out. So every filter
//!    stays above the scan, which may still skip files by it.
//! 2. Its scan of no column at all, which counts rows by the log, promises to stop at a LIMIT and does
//!    not. So the LIMIT stays above it, too.

use std::{fmt, sync::Arc};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    common::{Statistics, tree_node::TreeNodeRecursion},
    datasource::TableType,
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::{Expr, TableProviderFilterPushDown},
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
        execution_plan::{CardinalityEffect, ReplaceChildrenOptions},
        statistics::{ChildStats, StatisticsArgs},
    },
    prelude::SessionContext,
};
use deltalake::{delta_datafusion::DeltaScanNext, logstore::LogStoreRef};

/// How deltalake calls its scan of no column.
const COUNTING_SCAN: &str = "DeltaScanMetaExec";

/// Scans a version of a table, with the file of each row where a column for it is named.
pub(crate) async fn engine_scan(
    log_store: LogStoreRef,
    context: &SessionContext,
    version: u64,
    file_column: Option<&str>,
) -> Result<Arc<dyn TableProvider>> {
    let scan = DeltaScanNext::builder()
        .with_log_store(log_store)
        .with_session(Arc::new(context.state()))
        .with_table_version(version);
    let scan = match file_column {
        Some(column) => scan.with_file_column(column),
        None => scan,
    };
    Ok(Arc::new(CheckedScan { scan: Arc::new(scan.build().await?) }))
}

/// A scan whose filters are applied again.
#[derive(Debug)]
struct CheckedScan {
    scan: Arc<dyn TableProvider>,
}

#[async_trait]
impl TableProvider for CheckedScan {
    fn schema(&self) -> SchemaRef {
        self.scan.schema()
    }

    fn table_type(&self) -> TableType {
        self.scan.table_type()
    }

    fn statistics(&self) -> Option<Statistics> {
        self.scan.statistics()
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let supported = self.scan.supports_filters_pushdown(filters)?;
        Ok(supported
            .into_iter()
            .map(|support| match support {
                TableProviderFilterPushDown::Exact => TableProviderFilterPushDown::Inexact,
                other => other,
            })
            .collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // A filter without columns says nothing about files.
        let filters: Vec<Expr> =
            filters.iter().filter(|filter| !filter.column_refs().is_empty()).cloned().collect();
        let plan = self.scan.scan(session, projection, &filters, limit).await?;
        Ok(if plan.name() == COUNTING_SCAN { Arc::new(Unlimited { plan }) } else { plan })
    }
}

/// A scan to which no LIMIT may be handed down.
#[derive(Debug)]
struct Unlimited {
    plan: Arc<dyn ExecutionPlan>,
}

impl Unlimited {
    fn over(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Arc<dyn ExecutionPlan> {
        match children.into_iter().next() {
            Some(plan) => Arc::new(Self { plan }),
            None => self,
        }
    }
}

impl DisplayAs for Unlimited {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for Unlimited {
    fn name(&self) -> &'static str {
        "Unlimited"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.plan]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.over(children))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.over(children))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let unknown = || Arc::new(Statistics::new_unknown(&self.plan.schema()));
        Ok(input_stats.first().map_or_else(unknown, Arc::clone))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.plan.execute(partition, context)
    }
}
