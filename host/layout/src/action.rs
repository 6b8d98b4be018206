//! Actions of a Delta commit, in the JSON shapes of the protocol (PROTOCOL.md, "Actions").
//!
//! Unknown actions of other writers are kept as [`Action::Other`]: a reader must ignore them, a
//! conflict check must not.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

/// Reference to the rows of a file that are deleted (PROTOCOL.md, "Deletion Vector Descriptor").
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionVector {
    /// `u` relative path, `i` inline, `p` absolute path.
    pub storage_type: String,
    /// Path or bytes, depending on the storage type.
    pub path_or_inline_dv: String,
    /// Start of the vector in its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i32>,
    /// Serialized size.
    pub size_in_bytes: i32,
    /// How many rows it deletes.
    pub cardinality: i64,
}

impl DeletionVector {
    /// Returns the id that together with the path identifies a logical file.
    #[must_use]
    pub fn unique_id(&self) -> String {
        match self.offset {
            Some(offset) => format!("{}{}@{offset}", self.storage_type, self.path_or_inline_dv),
            None => format!("{}{}", self.storage_type, self.path_or_inline_dv),
        }
    }
}

/// Decodes the path of a file as the log spells it (URL-encoded) to what storage calls it.
#[must_use]
pub fn decoded_path(encoded: &str) -> String {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let escaped = (*first == b'%')
            .then(|| tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()))
            .flatten()
            .filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Identity of a logical file: its path and the id of its deletion vector, if any.
pub type FileKey = (String, Option<String>);

/// Tags of a file. A clone shares them until it is changed: the files of one rewrite have the same
/// tags, and of a long log they would take more memory than anything else but the statistics.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tags(Arc<BTreeMap<String, Option<String>>>);

impl Deref for Tags {
    type Target = BTreeMap<String, Option<String>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Tags {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

impl FromIterator<(String, Option<String>)> for Tags {
    fn from_iter<I: IntoIterator<Item = (String, Option<String>)>>(tags: I) -> Self {
        Self(Arc::new(tags.into_iter().collect()))
    }
}

impl Serialize for Tags {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tags {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(|tags| Self(Arc::new(tags)))
    }
}

/// A file joins the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddFile {
    /// Path relative to the table root, URL-encoded.
    pub path: String,
    /// Partition column → value; empty for clustered tables.
    #[serde(default)]
    pub partition_values: BTreeMap<String, Option<String>>,
    /// Size in bytes.
    pub size: u64,
    /// When the file was written, epoch milliseconds.
    pub modification_time: i64,
    /// `false` for a mere rearrangement of rows that are in the table already.
    pub data_change: bool,
    /// Statistics as JSON text (PROTOCOL.md, "Per-file Statistics").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    /// Free-form tags, among them the ZCube tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
    /// Deleted rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVector>,
    /// First row id, with row tracking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    /// First version of the rows, with row tracking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
    /// Which clustering implementation wrote the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clustering_provider: Option<String>,
}

impl AddFile {
    /// Returns the logical file's identity.
    #[must_use]
    pub fn key(&self) -> FileKey {
        (self.path.clone(), self.deletion_vector.as_ref().map(DeletionVector::unique_id))
    }

    /// Returns the value of a tag.
    #[must_use]
    pub fn tag(&self, name: &str) -> Option<&str> {
        self.tags.as_ref()?.get(name)?.as_deref()
    }

    /// Reads `numRecords` from the statistics.
    #[must_use]
    pub fn rows(&self) -> Option<u64> {
        let stats: Value = serde_json::from_str(self.stats.as_deref()?).ok()?;
        stats.get("numRecords")?.as_u64()
    }

    /// Returns how many rows a deletion vector hides.
    #[must_use]
    pub fn deleted_rows(&self) -> u64 {
        self.deletion_vector.as_ref().map_or(0, |dv| u64::try_from(dv.cardinality).unwrap_or(0))
    }

    /// Builds the action that shows this file to readers of changes (PROTOCOL.md, "Add CDC File").
    #[must_use]
    pub fn to_change_data(&self) -> Action {
        Action::Other(
            "cdc".to_owned(),
            json!({
                "path": self.path,
                "partitionValues": self.partition_values,
                "size": self.size,
                "dataChange": false,
                "tags": null,
            }),
        )
    }

    /// Builds the action that takes this file out of the table again.
    ///
    /// The deletion vector is repeated: (path, vector) is the file's identity.
    #[must_use]
    pub fn to_remove(&self, deletion_timestamp: i64, data_change: bool) -> RemoveFile {
        RemoveFile {
            path: self.path.clone(),
            deletion_timestamp: Some(deletion_timestamp),
            data_change,
            extended_file_metadata: Some(true),
            partition_values: Some(self.partition_values.clone()),
            size: Some(self.size),
            stats: None,
            tags: self.tags.clone(),
            deletion_vector: self.deletion_vector.clone(),
            base_row_id: self.base_row_id,
            default_row_commit_version: self.default_row_commit_version,
        }
    }
}

/// A file leaves the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoveFile {
    /// Path as the `add` spelled it.
    pub path: String,
    /// When, epoch milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<i64>,
    /// `false` for a rearrangement.
    #[serde(default = "default_true")]
    pub data_change: bool,
    /// Whether the fields below are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended_file_metadata: Option<bool>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_values: Option<BTreeMap<String, Option<String>>>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// As in the `add`; optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Tags>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<DeletionVector>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_row_id: Option<i64>,
    /// As in the `add`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_row_commit_version: Option<i64>,
}

impl RemoveFile {
    /// Returns the logical file's identity.
    #[must_use]
    pub fn key(&self) -> FileKey {
        (self.path.clone(), self.deletion_vector.as_ref().map(DeletionVector::unique_id))
    }
}

/// Which readers and writers may touch the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    /// Reader version.
    pub min_reader_version: i32,
    /// Writer version.
    pub min_writer_version: i32,
    /// Reader features, from reader version 3 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<String>>,
    /// Writer features, from writer version 7 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<Vec<String>>,
}

/// Configuration of a named metadata domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DomainMetadata {
    /// The domain's name.
    pub domain: String,
    /// Its configuration, usually JSON text.
    pub configuration: String,
    /// Whether this is a tombstone.
    pub removed: bool,
}

/// One line of a commit.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// `add`
    Add(Box<AddFile>),
    /// `remove`
    Remove(Box<RemoveFile>),
    /// `protocol`
    Protocol(Protocol),
    /// `metaData`, kept as JSON: we never change a schema here
    Metadata(Value),
    /// `domainMetadata`
    DomainMetadata(DomainMetadata),
    /// `commitInfo`
    CommitInfo(Value),
    /// `txn`
    Transaction(Value),
    /// Anything else, under its name.
    Other(String, Value),
}

impl Action {
    /// Parses one line of a commit file.
    ///
    /// # Errors
    /// Fails with the JSON error when the line is no action.
    pub fn parse(line: &str) -> Result<Self, serde_json::Error> {
        let object: Map<String, Value> = serde_json::from_str(line)?;
        let Some((name, body)) = object.into_iter().next() else {
            return Ok(Self::Other(String::new(), Value::Null));
        };
        Ok(match name.as_str() {
            "add" => Self::Add(serde_json::from_value(body)?),
            "remove" => Self::Remove(serde_json::from_value(body)?),
            "protocol" => Self::Protocol(serde_json::from_value(body)?),
            "metaData" => Self::Metadata(body),
            "domainMetadata" => Self::DomainMetadata(serde_json::from_value(body)?),
            "commitInfo" => Self::CommitInfo(body),
            "txn" => Self::Transaction(body),
            _ => Self::Other(name, body),
        })
    }

    /// Parses a whole commit file.
    ///
    /// # Errors
    /// Fails on the first line that is no action.
    pub fn parse_commit(text: &str) -> Result<Vec<Self>, serde_json::Error> {
        text.lines().filter(|line| !line.trim().is_empty()).map(Self::parse).collect()
    }

    /// Renders the action as one line.
    ///
    /// # Panics
    /// Never: actions hold only strings, numbers and maps with string keys, which are valid JSON.
    #[must_use]
    pub fn to_line(&self) -> String {
        let (name, body) = match self {
            Self::Add(add) => ("add", serde_json::to_value(add)),
            Self::Remove(remove) => ("remove", serde_json::to_value(remove)),
            Self::Protocol(protocol) => ("protocol", serde_json::to_value(protocol)),
            Self::Metadata(value) => ("metaData", Ok(value.clone())),
            Self::DomainMetadata(domain) => ("domainMetadata", serde_json::to_value(domain)),
            Self::CommitInfo(value) => ("commitInfo", Ok(value.clone())),
            Self::Transaction(value) => ("txn", Ok(value.clone())),
            Self::Other(name, value) => (name.as_str(), Ok(value.clone())),
        };
        let body = body.expect("actions hold only strings, numbers and maps with string keys");
        let mut line = Map::new();
        line.insert(name.to_owned(), body);
        Value::Object(line).to_string()
    }

    /// Renders a commit file.
    ///
    /// # Panics
    /// Never, as [`Action::to_line`].
    #[must_use]
    pub fn render_commit(actions: &[Self]) -> String {
        let mut text = String::new();
        for action in actions {
            text.push_str(&action.to_line());
            text.push('\n');
        }
        text
    }
}

const fn default_true() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::Action;

    #[test]
    fn actions_survive_a_round_trip() {
        let lines = [
            r#"{"add":{"clusteringProvider":"liquid","dataChange":false,"deletionVector":{"cardinality":2,"offset":1,"pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","sizeInBytes":40,"storageType":"u"},"modificationTime":1,"partitionValues":{},"path":"a%20b.parquet","size":10,"stats":"{\"numRecords\":3}","tags":{"ZCUBE_ID":"x","ZCUBE_ZORDER_BY":"[\"a\"]"}}}"#,
            r#"{"remove":{"dataChange":true,"path":"c"}}"#,
            r#"{"domainMetadata":{"configuration":"{}","domain":"delta.clustering","removed":false}}"#,
            r#"{"checkpointMetadata":{"version":3}}"#,
        ];
        for line in lines {
            assert_eq!(Action::parse(line).unwrap().to_line(), line);
        }
    }

    #[test]
    fn a_file_is_identified_by_path_and_deletion_vector() {
        let line = r#"{"add":{"path":"f","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true,"deletionVector":{"storageType":"u","pathOrInlineDv":"xyz","offset":4,"sizeInBytes":1,"cardinality":1}}}"#;
        let Action::Add(add) = Action::parse(line).unwrap() else { panic!("no add") };
        assert_eq!(add.key(), ("f".into(), Some("uxyz@4".into())));
        assert_eq!(add.to_remove(5, false).key(), add.key());
    }
}
