//! What the planner asks for while it plans one statement.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use datafusion_common::{
    Result, TableReference,
    arrow::datatypes::{DataType, Field, Schema, SchemaRef},
    config::ConfigOptions,
};
use datafusion_expr::{
    AggregateUDF, Expr, HigherOrderUDF, ScalarUDF, TableProviderFilterPushDown, TableScan,
    TableSource, WindowUDF,
    planner::{ContextProvider, ExprPlanner},
};

use super::{
    functions::{FUNCTIONS, StubFunction, is_foreign_aggregate},
    scope::table_text,
    types,
};
use crate::{Catalog, ColumnType};

/// Every table has one more column of this name and its index: it shows, in the planner's error
/// about a missing column, which tables were in scope under which names.
const MARKER: &str = "__lakebed_table_";

/// Returns the index of the table that a marker column stands for.
pub(super) fn marked_table(column: &str) -> Option<usize> {
    column.strip_prefix(MARKER)?.parse().ok()
}

/// Writes a table's name as the walk does.
pub(super) fn reference_text(name: &TableReference) -> String {
    table_text([name.catalog(), name.schema(), Some(name.table())].into_iter().flatten())
}

/// A table as this statement sees it.
#[derive(Debug, Clone)]
pub(super) struct KnownTable {
    pub(super) name: String,
    /// Whether the catalog knows it.
    pub(super) in_catalog: bool,
    /// Whether columns were added that the catalog does not know.
    pub(super) grown: bool,
    pub(super) columns: Vec<(String, ColumnType)>,
}

/// The planner's view of a table.
pub(super) struct Table {
    schema: SchemaRef,
    /// Whether this is a table rather than the working set of a recursive query.
    pub(super) is_base: bool,
    /// Whether all of it is from the catalog.
    pub(super) is_known: bool,
}

impl TableSource for Table {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// All filters are welcome: what reaches the scan is what a layout can use.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Exact; filters.len()])
    }
}

impl Table {
    /// Returns the table behind a scan of a plan.
    pub(super) fn of(scan: &TableScan) -> Option<&Self> {
        let source: &dyn Any = scan.source.as_ref();
        source.downcast_ref()
    }
}

/// The planner's context.
pub(super) struct Context<'c> {
    catalog: &'c dyn Catalog,
    needed: &'c BTreeMap<String, Vec<(String, ColumnType)>>,
    /// The names of the only columns that tables have, if not all.
    read: Option<&'c BTreeSet<String>>,
    /// Tables in the order of their first use; columns may be added between two attempts.
    pub(super) tables: RefCell<Vec<KnownTable>>,
    /// Whether a function was a stub.
    pub(super) stub_functions: Cell<bool>,
}

/// How the engine's functions want expressions planned.
static PLANNERS: LazyLock<Vec<Arc<dyn ExprPlanner>>> = LazyLock::new(|| {
    vec![
        Arc::new(datafusion_functions::core::planner::CoreFunctionPlanner::default()),
        Arc::new(datafusion_functions::datetime::planner::DatetimeFunctionPlanner),
        Arc::new(datafusion_functions::unicode::planner::UnicodeFunctionPlanner),
        Arc::new(datafusion_functions_aggregate::planner::AggregateFunctionPlanner),
        Arc::new(datafusion_functions_window::planner::WindowFunctionPlanner),
    ]
});

/// The planner's options, all as they are by default.
static OPTIONS: LazyLock<ConfigOptions> = LazyLock::new(ConfigOptions::default);

impl<'c> Context<'c> {
    /// Makes a context that knows what the catalog knows, and that tables have `needed` columns
    /// besides; of all these columns only those with the names in `read`, if given.
    pub(super) fn new(
        catalog: &'c dyn Catalog,
        needed: &'c BTreeMap<String, Vec<(String, ColumnType)>>,
        read: Option<&'c BTreeSet<String>>,
    ) -> Self {
        Self {
            catalog,
            needed,
            read,
            tables: RefCell::new(Vec::new()),
            stub_functions: Cell::new(false),
        }
    }

    fn table_index(&self, name: &str) -> usize {
        let mut tables = self.tables.borrow_mut();
        if let Some(index) = tables.iter().position(|table| table.name == name) {
            return index;
        }
        let columns = self.catalog.columns(&name.to_lowercase());
        let in_catalog = columns.is_some();
        let mut columns: Vec<(String, ColumnType)> = columns
            .unwrap_or_default()
            .into_iter()
            .map(|(column, kind)| (column.to_lowercase(), kind))
            .collect();
        let needed = self.needed.get(name).map(Vec::as_slice).unwrap_or_default();
        columns.extend_from_slice(needed);
        if let Some(read) = self.read {
            columns.retain(|(column, _)| read.contains(column));
        }
        let grown = !needed.is_empty();
        tables.push(KnownTable { name: name.to_owned(), in_catalog, grown, columns });
        tables.len() - 1
    }
}

impl ContextProvider for Context<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let index = self.table_index(&reference_text(&name));
        let tables = self.tables.borrow();
        let mut fields: Vec<Field> = tables[index]
            .columns
            .iter()
            .map(|(column, kind)| Field::new(column, types::to_arrow(*kind), true))
            .collect();
        fields.push(Field::new(format!("{MARKER}{index}"), DataType::Boolean, true));
        let is_known = tables[index].in_catalog && !tables[index].grown;
        Ok(Arc::new(Table { schema: Arc::new(Schema::new(fields)), is_base: true, is_known }))
    }

    fn create_cte_work_table(
        &self,
        _name: &str,
        schema: SchemaRef,
    ) -> Result<Arc<dyn TableSource>> {
        Ok(Arc::new(Table { schema, is_base: false, is_known: true }))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &PLANNERS
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        if let Some(function) = FUNCTIONS.scalar.get(name) {
            return Some(Arc::clone(function));
        }
        let is_known = FUNCTIONS.aggregate.contains_key(name)
            || FUNCTIONS.window.contains_key(name)
            || is_foreign_aggregate(name)
            || matches!(name, "unnest" | "unnest_outer" | "grouping" | "struct");
        if is_known {
            return None;
        }
        self.stub_functions.set(true);
        Some(Arc::new(ScalarUDF::new_from_impl(StubFunction::new(name))))
    }

    fn get_higher_order_meta(&self, _name: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        if let Some(function) = FUNCTIONS.aggregate.get(name) {
            return Some(Arc::clone(function));
        }
        if !is_foreign_aggregate(name) {
            return None;
        }
        self.stub_functions.set(true);
        Some(Arc::new(AggregateUDF::new_from_impl(StubFunction::new(name))))
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        FUNCTIONS.window.get(name).map(Arc::clone)
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        Some(DataType::Utf8)
    }

    fn options(&self) -> &ConfigOptions {
        &OPTIONS
    }

    fn udf_names(&self) -> Vec<String> {
        FUNCTIONS.scalar.keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        FUNCTIONS.aggregate.keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        FUNCTIONS.window.keys().cloned().collect()
    }
}
