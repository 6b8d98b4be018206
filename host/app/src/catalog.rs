//! Column names and types of the lake's tables, for the lineage of SQL text.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use arrow::datatypes::DataType;
use lakebed_collect::{Catalog, ColumnType};
use lakebed_lake::DeltaLake;
use lakebed_layout::Lake;
use lakebed_model::TableName;
use tokio::runtime::Handle;

use crate::error::with_causes;

/// The lake's tables as SQL lineage wants them, each read when a statement first names it.
///
/// Lineage is no async code: ask from a blocking thread only.
#[derive(Debug)]
pub struct LakeCatalog {
    lake: DeltaLake,
    runtime: Handle,
    known: Mutex<BTreeMap<TableName, Option<Columns>>>,
}

type Columns = Vec<(String, ColumnType)>;

impl Catalog for LakeCatalog {
    fn columns(&self, table: &str) -> Option<Columns> {
        let name = Some(self.lake.named(table)).filter(|name| self.lake.contains(name))?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(name).or_insert_with_key(|name| self.read(name)).clone()
    }
}

impl LakeCatalog {
    /// Reads no table yet.
    #[must_use]
    pub fn new(lake: DeltaLake, runtime: Handle) -> Self {
        Self { lake, runtime, known: Mutex::default() }
    }

    /// A table that cannot be read is unknown: that costs its statements, not the log.
    fn read(&self, table: &TableName) -> Option<Columns> {
        match self.runtime.block_on(self.lake.snapshot(table)) {
            Ok(snapshot) => {
                let fields = snapshot.schema.fields().iter();
                Some(fields.map(|f| (f.name().clone(), column_type(f.data_type()))).collect())
            }
            Err(fault) => {
                tracing::warn!("cannot {}", with_causes(&fault));
                None
            }
        }
    }
}

fn column_type(data_type: &DataType) -> ColumnType {
    match data_type {
        DataType::Boolean => ColumnType::Boolean,
        DataType::Decimal128(_, scale) => {
            ColumnType::Decimal { scale: u8::try_from(*scale).unwrap_or(0) }
        }
        DataType::Date32 => ColumnType::Date,
        DataType::Timestamp(..) => ColumnType::Timestamp,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnType::Text,
        float if float.is_floating() => ColumnType::Float,
        integer if integer.is_integer() => ColumnType::Integer,
        _ => ColumnType::Other,
    }
}
