//! Lakebed's own records: Delta tables under `_lakebed/` of a lake's folder.
//!
//! They are ordinary tables, so any engine that reads the lake reads them too.

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use lakebed_model::{Instant, TableName};

use crate::{DeltaLake, LakeError, NewTable, tables::parse_location};

/// A table of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordTable {
    /// Statements collected from query logs.
    History,
    /// Layout plans.
    Plans,
    /// Drift measurements.
    Drift,
    /// Statements that Lakebed's own engine ran.
    Statements,
    /// What rewrites were predicted to save, and saved.
    Outcomes,
}

impl RecordTable {
    /// Returns the folder's name under `_lakebed/`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Plans => "plans",
            Self::Drift => "drift",
            Self::Statements => "statements",
            Self::Outcomes => "outcomes",
        }
    }
}

impl DeltaLake {
    /// Appends records, creating their table at first.
    ///
    /// # Errors
    /// Fails when storage does; then nothing is appended.
    pub async fn record(
        &self,
        lake_folder: &str,
        table: RecordTable,
        records: RecordBatch,
        now: Instant,
    ) -> Result<u64, LakeError> {
        let (mut own, name, location) = self.records_of(lake_folder, table)?;
        let schema: SchemaRef = records.schema();
        if own.exists(&name).await? {
            return own.append(&name, vec![records], now).await;
        }
        let new = NewTable { name: name.clone(), location, schema, ..NewTable::default() };
        match own.create_table(new, vec![vec![records.clone()]], None, now).await {
            // Somebody else was first.
            Err(LakeError::TableExists { .. }) => own.append(&name, vec![records], now).await,
            created => created,
        }
    }

    fn records_of(
        &self,
        lake_folder: &str,
        table: RecordTable,
    ) -> Result<(Self, TableName, String), LakeError> {
        let folder = lake_folder.trim_end_matches('/');
        let location = format!("{folder}/_lakebed/{}", table.as_str());
        parse_location(&location)?;
        let mut own = self.clone();
        own.add_table(table.as_str(), &location)?;
        Ok((own, TableName::new(table.as_str()), location))
    }

    /// Tells whether a table's log has a first version.
    pub(crate) async fn exists(&self, table: &TableName) -> Result<bool, LakeError> {
        let location = self.location(table)?;
        let store = self.log_store(table)?;
        store.is_delta_table_location().await.map_err(|error| {
            crate::tables::storage_fault("look for", table, location, error).into()
        })
    }
}
