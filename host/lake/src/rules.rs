//! What a table demands of new rows: NOT NULL, CHECK constraints and column invariants.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, StructArray},
    buffer::NullBuffer,
    datatypes::{DataType, Field, SchemaRef},
    util::display::array_value_to_string,
};
use datafusion::{
    common::{DFSchema, cast::as_boolean_array},
    error::{DataFusionError, Result},
    execution::SendableRecordBatchStream,
    physical_expr::PhysicalExpr,
    physical_plan::stream::RecordBatchStreamAdapter,
    prelude::SessionContext,
};
use futures::StreamExt;
use lakebed_layout::TableSnapshot;

use crate::literals;

/// A row that breaks a rule of its table.
#[derive(Debug, thiserror::Error)]
pub enum Violation {
    /// A column that must have a value has none.
    #[error(
        "[DELTA_NOT_NULL_CONSTRAINT_VIOLATED] column `{column}` must not be null, row {row} is"
    )]
    NotNull {
        /// The column, as a dotted name.
        column: String,
        /// Number of the row, from 1.
        row: u64,
    },
    /// A constraint is false or unknown for a row.
    #[error(
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] constraint `{name}` ({expression}) does not hold for row {row}: {values}"
    )]
    Constraint {
        /// The constraint's name.
        name: String,
        /// Its expression.
        expression: String,
        /// Number of the row, from 1.
        row: u64,
        /// The row's values.
        values: String,
    },
}

/// The rules of one table, ready to be checked.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    schema: SchemaRef,
    constraints: Vec<Constraint>,
}

#[derive(Debug, Clone)]
struct Constraint {
    name: String,
    expression: String,
    compiled: Arc<dyn PhysicalExpr>,
}

impl Rules {
    /// Compiles the rules of a table.
    pub(crate) fn new(snapshot: &TableSnapshot, context: &SessionContext) -> Result<Self> {
        let schema = Arc::clone(&snapshot.schema);
        let columns = DFSchema::try_from(Arc::clone(&schema))?;
        let checks = snapshot.properties.iter().filter_map(|(name, expression)| {
            Some((name.strip_prefix("delta.constraints.")?.to_owned(), expression.clone()))
        });
        let invariants = schema.fields().iter().filter_map(|field| {
            Some((format!("invariant of {}", field.name()), invariant(field)?))
        });
        let constraints = checks
            .chain(invariants)
            .map(|(name, expression)| {
                let logical = literals::expression(context, &expression, &columns)?;
                let compiled = context.create_physical_expr(logical, &columns)?;
                Ok(Constraint { name, expression, compiled })
            })
            .collect::<Result<_>>()?;
        Ok(Self { schema, constraints })
    }

    /// Ends the stream with a [`Violation`] at the first row that breaks a rule.
    pub(crate) fn checked(self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let mut seen = 0_u64;
        let checked = rows.map(move |batch| {
            let batch = batch?;
            self.check(&batch, seen)?;
            let batch = crate::write::conform(&batch, &self.schema)?;
            seen += u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
            Ok(batch)
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, checked))
    }

    fn check(&self, batch: &RecordBatch, seen: u64) -> Result<()> {
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            check_nulls(field, column, None, field.name(), seen)?;
        }
        for constraint in &self.constraints {
            let holds = constraint.compiled.evaluate(batch)?.into_array(batch.num_rows())?;
            let holds = as_boolean_array(&holds)?;
            // Delta takes unknown for broken.
            let broken = (0..holds.len()).find(|row| holds.is_null(*row) || !holds.value(*row));
            if let Some(row) = broken {
                return Err(violated(Violation::Constraint {
                    name: constraint.name.clone(),
                    expression: constraint.expression.clone(),
                    row: number(seen, row),
                    values: values_of(batch, row)?,
                }));
            }
        }
        Ok(())
    }
}

/// Spark keeps an invariant as JSON within JSON: `{"expression":{"expression":"a > 1"}}`.
fn invariant(field: &Field) -> Option<String> {
    let text = field.metadata().get("delta.invariants")?;
    let outer: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(outer.get("expression")?.get("expression")?.as_str()?.to_owned())
}

/// A field of a struct must have a value wherever the struct itself has one.
fn check_nulls(
    field: &Field,
    column: &ArrayRef,
    parent: Option<&NullBuffer>,
    path: &str,
    seen: u64,
) -> Result<()> {
    if !field.is_nullable() && column.null_count() > 0 {
        let is_bad = |row: &usize| column.is_null(*row) && parent.is_none_or(|p| p.is_valid(*row));
        if let Some(row) = (0..column.len()).find(is_bad) {
            let row = number(seen, row);
            return Err(violated(Violation::NotNull { column: path.to_owned(), row }));
        }
    }
    if let DataType::Struct(fields) = field.data_type() {
        let parts: &StructArray = column.as_struct();
        let parent = NullBuffer::union(parent, column.nulls());
        for (inner, values) in fields.iter().zip(parts.columns()) {
            let path = format!("{path}.{}", inner.name());
            check_nulls(inner, values, parent.as_ref(), &path, seen)?;
        }
    }
    Ok(())
}

fn values_of(batch: &RecordBatch, row: usize) -> Result<String> {
    let schema = batch.schema();
    let values = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
        Ok(format!("{} = {}", field.name(), array_value_to_string(column, row)?))
    });
    Ok(values.collect::<Result<Vec<_>>>()?.join(", "))
}

fn violated(violation: Violation) -> DataFusionError {
    DataFusionError::External(Box::new(violation))
}

fn number(seen: u64, row: usize) -> u64 {
    seen + u64::try_from(row).unwrap_or(u64::MAX) + 1
}
