//! A condition in SQL as a filter of a chain.

use std::sync::Arc;

use arrow::{
    array::{AsArray, BooleanArray, RecordBatch},
    datatypes::{DataType, SchemaRef},
};
use datafusion::{
    common::DFSchema,
    error::{DataFusionError, Result},
    logical_expr::{Expr, ExprSchemable},
    physical_expr::PhysicalExpr,
    prelude::SessionContext,
};
use lakebed_compact::{CompactError, FoldFactory, Plugins, RowFilter};
use lakebed_model::{Instant, TableName};

use crate::predicate;

/// Some plugins, and the engine's SQL.
pub(crate) struct WithSql<'a> {
    pub(crate) plugins: &'a dyn Plugins,
    pub(crate) context: &'a SessionContext,
}

impl Plugins for WithSql<'_> {
    fn filter(
        &self,
        name: &str,
        config_json: &str,
        now: Instant,
    ) -> std::result::Result<Arc<dyn RowFilter>, CompactError> {
        self.plugins.filter(name, config_json, now)
    }

    fn predicate(
        &self,
        keep: &str,
        schema: &SchemaRef,
    ) -> std::result::Result<Arc<dyn RowFilter>, CompactError> {
        let condition = Condition::new(self.context, keep, schema);
        Ok(Arc::new(condition.map_err(|error| refused(keep, error))?))
    }

    fn fold(
        &self,
        name: &str,
        config_json: &str,
    ) -> std::result::Result<Arc<dyn FoldFactory>, CompactError> {
        self.plugins.fold(name, config_json)
    }
}

/// Keeps the rows for which a condition is true; those for which it is null are counted apart.
#[derive(Debug)]
struct Condition {
    text: String,
    columns: Vec<String>,
    expression: Arc<dyn PhysicalExpr>,
}

impl Condition {
    fn new(context: &SessionContext, keep: &str, schema: &SchemaRef) -> Result<Self> {
        let unnamed = TableName::new("this");
        let external = |error| DataFusionError::External(Box::new(error));
        if let Some(refusal) = predicate::check_text(&unnamed, keep)? {
            return Err(external(refusal));
        }
        let whole = DFSchema::try_from(Arc::clone(schema))?;
        let parsed = context.state().create_logical_expr(keep, &whole)?;
        predicate::check(&unnamed, &parsed).map_err(external)?;
        let columns = columns_of(&parsed, schema);
        let places: Vec<usize> = columns
            .iter()
            .map(|name| schema.index_of(name))
            .collect::<std::result::Result<_, _>>()?;
        let read = DFSchema::try_from(Arc::new(schema.project(&places)?))?;
        let found = parsed.get_type(&read)?;
        if found != DataType::Boolean {
            return Err(DataFusionError::Plan(format!("it gives {found}: expected BOOLEAN")));
        }
        let expression = context.create_physical_expr(parsed, &read)?;
        Ok(Self { text: keep.to_owned(), columns, expression })
    }

    fn judge(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let answers = self.expression.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(answers.as_boolean().clone())
    }
}

/// Returns the columns that an expression reads, in the order of the schema.
fn columns_of(expression: &Expr, schema: &SchemaRef) -> Vec<String> {
    let used = expression.column_refs();
    let is_used = |name: &String| used.iter().any(|column| &column.name == name);
    schema.fields().iter().map(|field| field.name()).filter(|name| is_used(name)).cloned().collect()
}

impl RowFilter for Condition {
    fn name(&self) -> &str {
        "predicate"
    }

    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn keep(&self, batch: &RecordBatch) -> std::result::Result<BooleanArray, CompactError> {
        self.judge(batch).map_err(|error| refused(&self.text, error))
    }
}

fn refused(text: &str, error: DataFusionError) -> CompactError {
    CompactError::Predicate { predicate: text.to_owned(), source: Box::new(error) }
}
