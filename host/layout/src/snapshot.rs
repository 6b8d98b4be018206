//! The state of one table at one version, as far as layout decisions need it.

use std::collections::BTreeMap;

use arrow::datatypes::SchemaRef;
use lakebed_model::{Bytes, TableName};
use lakebed_plan::Layout;

use crate::{
    ColumnMapping, FileReader, LayoutError, RowTrackingColumns,
    action::{AddFile, DomainMetadata, Protocol},
    cuts::{self, Cuts},
};

/// Delta's default for `delta.checkpointInterval`.
pub const DEFAULT_CHECKPOINT_INTERVAL: u64 = 10;

/// A table at a version.
#[derive(Debug, Clone)]
pub struct TableSnapshot {
    /// The table's name.
    pub table: TableName,
    /// Where its log lies, as a URL.
    pub location: String,
    /// The version.
    pub version: u64,
    /// Logical schema.
    pub schema: SchemaRef,
    /// Reader and writer requirements.
    pub protocol: Protocol,
    /// The `metaData` action as the log has it.
    pub metadata: serde_json::Value,
    /// Table properties.
    pub properties: BTreeMap<String, String>,
    /// Hive-style partition columns.
    pub partition_columns: Vec<String>,
    /// The `delta.clustering` domain, when the table has one.
    pub clustering: Option<DomainMetadata>,
    /// The domain with the table's weighted cuts, when there is one ([`crate::cuts`]).
    pub cuts_domain: Option<DomainMetadata>,
    /// `inCommitTimestamp` of this version, where the table has such timestamps.
    pub in_commit_timestamp: Option<i64>,
    /// Highest row id given out, where the table tracks rows.
    pub row_id_high_water_mark: Option<i64>,
    /// What [`crate::Lake::monotonic_ms`] said when the job began that reads this snapshot.
    pub clock_ms: u64,
    /// Live files.
    pub files: Vec<AddFile>,
}

impl TableSnapshot {
    /// Returns the clustering columns as dotted names; empty when the table has none.
    #[must_use]
    pub fn cluster_by(&self) -> Vec<String> {
        self.clustering.as_ref().map(crate::ddl::parse_domain).unwrap_or_default()
    }

    /// Returns the weighted cuts that rewrites follow: those stored, when they are cuts of the
    /// clustering columns.
    #[must_use]
    pub fn cuts(&self) -> Option<Cuts> {
        cuts::read(self)?.ok()
    }

    /// Says why the cuts that the table stores are not followed, if so: fits after "the cuts are
    /// ignored:".
    #[must_use]
    pub fn ignored_cuts(&self) -> Option<String> {
        cuts::read(self)?.err()
    }

    /// Returns the layout that the table declares.
    #[must_use]
    pub fn layout(&self) -> Layout {
        let layout = match self.cuts() {
            Some(Cuts { columns, parts }) => Layout::cut(columns, parts),
            None => Layout::clustered(self.cluster_by()),
        };
        Layout { partition_by: self.partition_columns.clone(), ..layout }
    }

    /// Tells whether a property is `true`.
    #[must_use]
    pub fn is_on(&self, property: &str) -> bool {
        self.properties.get(property).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Tells whether the protocol lists a feature, by name or by a legacy version.
    #[must_use]
    pub fn has_feature(&self, feature: &str) -> bool {
        let listed = |features: &[String]| features.iter().any(|name| name == feature);
        listed(&crate::ddl::writer_features(&self.protocol))
            || self.protocol.reader_features.as_deref().is_some_and(listed)
    }

    /// Tells how files name the table's columns.
    #[must_use]
    pub fn column_mapping(&self) -> ColumnMapping {
        match self.properties.get("delta.columnMapping.mode").map(String::as_str) {
            Some("name") => ColumnMapping::Name,
            Some("id") => ColumnMapping::Id,
            _ => ColumnMapping::None,
        }
    }

    /// Tells who can read the table's files as the table has them today.
    #[must_use]
    pub fn reader(&self) -> FileReader {
        let widened = ["typeWidening", "typeWidening-preview"];
        // The engine takes an empty partition value for a text.
        let is_empty = |value: &Option<String>| value.as_deref() == Some("");
        if self.column_mapping() == ColumnMapping::Id
            || self.files.iter().any(|file| file.partition_values.values().any(is_empty))
            || widened.iter().any(|feature| self.has_feature(feature))
        {
            FileReader::FileByFile
        } else {
            FileReader::Engine
        }
    }

    /// Returns where files hold the ids of rows, when the table tracks rows and names the places.
    #[must_use]
    pub fn row_tracking_columns(&self) -> Option<RowTrackingColumns> {
        let name = |key: &str| self.properties.get(key).cloned();
        if !self.tracks_rows() {
            return None;
        }
        Some(RowTrackingColumns {
            row_id: name("delta.rowTracking.materializedRowIdColumnName")?,
            row_commit_version: name("delta.rowTracking.materializedRowCommitVersionColumnName")?,
        })
    }

    /// Tells whether rows keep their ids over rewrites.
    #[must_use]
    pub fn tracks_rows(&self) -> bool {
        self.has_feature("rowTracking")
            && self.is_on("delta.enableRowTracking")
            && !self.is_on("delta.rowTrackingSuspended")
    }

    /// Tells whether every commit must carry a timestamp of its own.
    #[must_use]
    pub fn has_in_commit_timestamps(&self) -> bool {
        self.has_feature("inCommitTimestamp") && self.is_on("delta.enableInCommitTimestamps")
    }

    /// Tells whether new files must be given row ids.
    #[must_use]
    pub fn assigns_row_ids(&self) -> bool {
        self.has_feature("rowTracking") && !self.is_on("delta.rowTrackingSuspended")
    }

    /// Tells when a commit is attempted: the job's time and what passed since.
    pub(crate) fn attempt_ms(&self, now_ms: i64, clock_ms: u64) -> i64 {
        let passed = clock_ms.saturating_sub(self.clock_ms);
        now_ms.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX))
    }

    /// Sums the sizes of the live files.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.files.iter().map(|file| Bytes(file.size)).sum()
    }

    /// Sums the rows of the live files, less deleted ones, where all files state their rows.
    #[must_use]
    pub fn rows(&self) -> Option<u64> {
        self.files.iter().map(|file| Some(file.rows()?.saturating_sub(file.deleted_rows()))).sum()
    }

    /// Returns after how many versions a checkpoint is due: `delta.checkpointInterval`.
    #[must_use]
    pub fn checkpoint_interval(&self) -> u64 {
        self.properties
            .get("delta.checkpointInterval")
            .and_then(|text| text.trim().parse().ok())
            .filter(|interval| *interval > 0)
            .unwrap_or(DEFAULT_CHECKPOINT_INTERVAL)
    }

    /// Tells why this engine must not write the table, if so.
    ///
    /// A feature we do not know how to keep would be broken silently by a rewrite, so every feature
    /// outside the list below refuses, by name. A rewrite copies stored values: what binds values
    /// only when they are made (generated columns, constraints) does not bind it.
    #[must_use]
    pub fn write_refusal(&self) -> Option<String> {
        if !self.partition_columns.is_empty() {
            return Some(format!(
                "it is partitioned by ({}); a clustered table cannot be",
                self.partition_columns.join(", ")
            ));
        }
        self.feature_refusal()
    }

    /// Tells why this engine must not write a file of the table, whatever its partition, if so.
    fn feature_refusal(&self) -> Option<String> {
        let unkept = self.unkept_features();
        if !unkept.is_empty() {
            return Some(format!(
                "it uses table features this engine cannot keep: {}",
                unkept.join(", ")
            ));
        }
        if self.has_in_commit_timestamps() && self.in_commit_timestamp.is_none() {
            let reason = "its newest version has no inCommitTimestamp, although they are switched on \
                          (delta.enableInCommitTimestamps)";
            return Some(reason.to_owned());
        }
        if self.tracks_rows() && self.row_tracking_columns().is_none() {
            let reason = "it tracks rows (delta.enableRowTracking) without naming the columns for their \
                          ids (delta.rowTracking.materializedRowIdColumnName and \
                          …RowCommitVersionColumnName)";
            return Some(reason.to_owned());
        }
        None
    }

    /// Turns a reason against a change into the error that ends it.
    ///
    /// # Errors
    /// Fails when there is a reason.
    pub fn refuse(&self, reason: Option<String>) -> Result<(), LayoutError> {
        match reason {
            Some(reason) => Err(LayoutError::Protected { table: self.table.to_string(), reason }),
            None => Ok(()),
        }
    }

    /// Lists the features that bind writers and that this engine does not know how to keep, sorted.
    pub(crate) fn unkept_features(&self) -> Vec<String> {
        const KEPT: [&str; 19] = [
            "allowColumnDefaults",
            "appendOnly",
            "changeDataFeed",
            "checkConstraints",
            "clustering",
            "columnMapping",
            "deletionVectors",
            "domainMetadata",
            "generatedColumns",
            "identityColumns",
            "inCommitTimestamp",
            "invariants",
            "materializePartitionColumns",
            "rowTracking",
            "timestampNtz",
            "typeWidening",
            "typeWidening-preview",
            "v2Checkpoint",
            "vacuumProtocolCheck",
        ];
        let mut unknown: Vec<String> = crate::ddl::writer_features(&self.protocol);
        unknown.extend(self.protocol.reader_features.iter().flatten().cloned());
        unknown.retain(|feature| !KEPT.contains(&feature.as_str()));
        unknown.sort_unstable();
        unknown.dedup();
        unknown
    }

    /// Tells whether what a commit changes must be told to readers of changes.
    #[must_use]
    pub fn has_change_data_feed(&self) -> bool {
        self.has_feature("changeDataFeed") && self.is_on("delta.enableChangeDataFeed")
    }

    /// Tells why this engine must not delete single rows, if so. Unlike a rearrangement, which mixes
    /// the rows of files, a delete leaves rows in their partition.
    #[must_use]
    pub fn delete_refusal(&self) -> Option<String> {
        if !self.partition_columns.is_empty() && self.has_feature("materializePartitionColumns") {
            return Some(
                "its files hold the partition columns as well (materializePartitionColumns), which \
                 a delete here would leave out"
                    .to_owned(),
            );
        }
        self.feature_refusal()
    }

    /// Tells why this engine must not write values that were not in the table before, if so: it
    /// makes no values of its own.
    #[must_use]
    pub fn value_refusal(&self) -> Option<String> {
        let columns = |key: &str| -> Vec<String> {
            let fields = crate::columns::fields(&self.schema);
            fields
                .filter(|(_, field)| field.metadata().contains_key(key))
                .map(|(name, _)| name)
                .collect()
        };
        let found = [
            ("generated columns", columns("delta.generationExpression")),
            ("identity columns", columns("delta.identity.start")),
        ];
        let found: Vec<String> = found
            .iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| format!("{what} ({})", names.join(", ")))
            .collect();
        (!found.is_empty()).then(|| {
            format!("it has {}, which this engine cannot make for new rows", found.join(" and "))
        })
    }
}
