//! The state of one table at one version, as far as layout decisions need it.

use std::collections::BTreeMap;

use arrow::datatypes::SchemaRef;
use lakebed_model::{Bytes, TableName};

use crate::action::{AddFile, DomainMetadata, Protocol};

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
    /// Table properties.
    pub properties: BTreeMap<String, String>,
    /// Hive-style partition columns.
    pub partition_columns: Vec<String>,
    /// The `delta.clustering` domain, when the table has one.
    pub clustering: Option<DomainMetadata>,
    /// Live files.
    pub files: Vec<AddFile>,
}

impl TableSnapshot {
    /// Returns the clustering columns as dotted names; empty when the table has none.
    #[must_use]
    pub fn cluster_by(&self) -> Vec<String> {
        self.clustering.as_ref().map(crate::ddl::parse_domain).unwrap_or_default()
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

    /// Returns the size a file should have: `delta.targetFileSize` where set, else `default`.
    #[must_use]
    pub fn target_file_size(&self, default: Bytes) -> Bytes {
        self.properties
            .get("delta.targetFileSize")
            .and_then(|text| Bytes::parse(text).ok())
            .filter(|size| size.0 > 0)
            .unwrap_or(default)
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
    /// A feature we do not know how to keep would be broken silently by a rewrite, so every writer
    /// feature outside the list below refuses, by name.
    #[must_use]
    pub fn write_refusal(&self) -> Option<String> {
        if !self.partition_columns.is_empty() {
            return Some(format!(
                "it is partitioned by ({}); a clustered table cannot be",
                self.partition_columns.join(", ")
            ));
        }
        let unkept = self.unkept_features();
        if unkept.is_empty() {
            return None;
        }
        Some(format!("it uses table features this engine cannot keep: {}", unkept.join(", ")))
    }

    /// Lists the features that bind writers and that this engine does not know how to keep, sorted.
    pub(crate) fn unkept_features(&self) -> Vec<String> {
        const KEPT: [&str; 9] = [
            "appendOnly",
            "invariants",
            "checkConstraints",
            "clustering",
            "domainMetadata",
            "deletionVectors",
            "timestampNtz",
            "v2Checkpoint",
            "vacuumProtocolCheck",
        ];
        let mut unknown: Vec<String> = crate::ddl::writer_features(&self.protocol);
        unknown.extend(self.protocol.reader_features.iter().flatten().cloned());
        unknown
            .retain(|feature| !KEPT.contains(&feature.as_str()) && self.feature_matters(feature));
        unknown.sort_unstable();
        unknown.dedup();
        unknown
    }

    /// A feature that neither the table's properties switch on nor a column uses does not bind a
    /// rewrite: keeping it in the protocol is enough.
    fn feature_matters(&self, feature: &str) -> bool {
        let on = |property: &str| {
            self.properties.get(property).is_some_and(|v| v.eq_ignore_ascii_case("true"))
        };
        let used =
            |key: &str| self.schema.fields().iter().any(|field| field.metadata().contains_key(key));
        match feature {
            "generatedColumns" => used("delta.generationExpression"),
            "identityColumns" => used("delta.identity.start"),
            "changeDataFeed" => on("delta.enableChangeDataFeed"),
            "columnMapping" => {
                self.properties.get("delta.columnMapping.mode").is_some_and(|mode| mode != "none")
            }
            "inCommitTimestamp" => on("delta.enableInCommitTimestamps"),
            "typeWidening" | "typeWidening-preview" => on("delta.enableTypeWidening"),
            _ => true,
        }
    }
}
