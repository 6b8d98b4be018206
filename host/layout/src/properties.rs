//! Table properties: which ones a statement may set, and the protocol they need.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Schema};
use lakebed_model::Bytes;
use serde_json::json;

use crate::{
    LayoutError, TableSnapshot,
    action::{Action, Protocol},
    bloom,
    columns::parse_list,
    ddl::{self, KeyTypes},
    interval,
};

/// Properties that change how files, logs and commits are kept, without a table feature, and what
/// they take.
const PLAIN: [(&str, Takes); 20] = [
    ("appendOnly", Takes::Flag),
    ("autoOptimize.autoCompact", Takes::OneOf(&["true", "false", "auto", "legacy"])),
    ("autoOptimize.optimizeWrite", Takes::Flag),
    ("checkpoint.writeStatsAsJson", Takes::Flag),
    ("checkpoint.writeStatsAsStruct", Takes::Flag),
    ("checkpointInterval", Takes::NumberFrom(1)),
    ("checkpointRetentionDuration", Takes::Duration),
    ("compatibility.symlinkFormatManifest.enabled", Takes::Flag),
    ("dataSkippingNumIndexedCols", Takes::NumberFrom(-1)),
    ("dataSkippingStatsColumns", Takes::Names),
    ("deletedFileRetentionDuration", Takes::Duration),
    ("enableDeletionVectors", Takes::Flag),
    ("enableExpiredLogCleanup", Takes::Flag),
    ("isolationLevel", Takes::OneOf(&["Serializable", "WriteSerializable"])),
    ("logRetentionDuration", Takes::Duration),
    ("randomizeFilePrefixes", Takes::Flag),
    ("sampleRetentionDuration", Takes::Duration),
    ("setTransactionRetentionDuration", Takes::Duration),
    ("targetFileSize", Takes::Size),
    ("tuneFileSizesForRewrites", Takes::Flag),
];

/// What values a property takes.
#[derive(Debug, Clone, Copy)]
enum Takes {
    Flag,
    NumberFrom(i64),
    Duration,
    Size,
    Names,
    OneOf(&'static [&'static str]),
}

impl Takes {
    /// Says what was expected, when it is something else than the value.
    fn refusal(self, value: &str) -> Option<String> {
        let text = value.trim();
        let fits = match self {
            Self::Flag => ["true", "false"].iter().any(|flag| text.eq_ignore_ascii_case(flag)),
            Self::NumberFrom(least) => text.parse::<i64>().is_ok_and(|number| number >= least),
            Self::Duration => interval::parse(text).is_some(),
            Self::Size => Bytes::parse(text).is_ok_and(|size| size.0 > 0),
            Self::Names => !parse_list(text).is_empty() || text.is_empty(),
            Self::OneOf(words) => words.iter().any(|word| text.eq_ignore_ascii_case(word)),
        };
        let expected = match self {
            _ if fits => return None,
            Self::Flag => "true or false".to_owned(),
            Self::NumberFrom(least) => format!("a whole number of at least {least}"),
            Self::Duration => "a duration such as `interval 7 days`".to_owned(),
            Self::Size => "a size such as 134217728 or 128MiB".to_owned(),
            Self::Names => "names of columns with commas between them".to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
        };
        Some(format!("it takes {expected}, found `{value}`"))
    }
}

/// Properties that switch a table feature on which statements of ours cannot set up; harmless with
/// the value that switches it off.
const FEATURES: [(&str, &str); 6] = [
    ("checkpointPolicy", "classic"),
    ("columnMapping.mode", "none"),
    ("enableChangeDataFeed", "false"),
    ("enableInCommitTimestamps", "false"),
    ("enableRowTracking", "false"),
    ("enableTypeWidening", "false"),
];

/// Checks the properties of a new table with these columns.
///
/// # Errors
/// Fails with the first property that is unknown, does not take its value, does not fit the columns, or
/// needs what statements of ours cannot set up.
pub fn check_new(
    table: &str,
    schema: &Schema,
    properties: &BTreeMap<String, String>,
) -> Result<(), LayoutError> {
    check(table, properties, true)?;
    bloom::check(table, schema, properties)
}

/// Checks the properties that a statement sets.
fn check(
    table: &str,
    properties: &BTreeMap<String, String>,
    is_new: bool,
) -> Result<(), LayoutError> {
    let refuse = |property: &str, reason: String| {
        Err(LayoutError::Property {
            table: table.to_owned(),
            property: property.to_owned(),
            reason,
        })
    };
    for (property, value) in properties {
        let Some(name) = property.strip_prefix("delta.") else { continue };
        if name == "feature.clustering" {
            let class = if is_new {
                "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"
            } else {
                "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"
            };
            let way =
                if is_new { "CREATE TABLE … CLUSTER BY" } else { "ALTER TABLE … CLUSTER BY" };
            return refuse(property, format!("[{class}]: the feature comes with {way} (…)"));
        }
        if name.starts_with("constraints.") {
            continue;
        }
        if let Some((_, takes)) = PLAIN.iter().find(|(plain, _)| *plain == name) {
            match takes.refusal(value) {
                Some(reason) => return refuse(property, reason),
                None => continue,
            }
        }
        match FEATURES.iter().find(|(feature, _)| *feature == name) {
            Some((_, off)) if value.eq_ignore_ascii_case(off) => {}
            Some(_) => {
                return refuse(
                    property,
                    format!("`{value}` needs a table feature that Lakebed cannot set up"),
                );
            }
            None if name.starts_with("feature.") => {
                return refuse(property, "Lakebed cannot set this feature up".to_owned());
            }
            None => {
                return refuse(
                    property,
                    "[DELTA_UNKNOWN_CONFIGURATION]: Delta has no such property".to_owned(),
                );
            }
        }
    }
    Ok(())
}

/// Returns the protocol of a new table.
#[must_use]
pub fn protocol_for(
    schema: &Schema,
    properties: &BTreeMap<String, String>,
    cluster_by: &[String],
) -> Protocol {
    let legacy = Protocol {
        min_reader_version: 1,
        min_writer_version: 2,
        reader_features: None,
        writer_features: None,
    };
    let protocol = with_features(&legacy, &needed_features(schema, properties));
    if cluster_by.is_empty() {
        return protocol;
    }
    ddl::upgraded_protocol(&protocol).unwrap_or(protocol)
}

/// A feature and whether readers must know it too.
type Feature = (&'static str, bool);

fn needed_features(schema: &Schema, properties: &BTreeMap<String, String>) -> Vec<Feature> {
    let is_on = |name: &str| {
        properties.get(&format!("delta.{name}")).is_some_and(|v| v.eq_ignore_ascii_case("true"))
    };
    let mut features = Vec::new();
    if schema.fields().iter().any(|field| has_ntz(field.data_type())) {
        features.push(("timestampNtz", true));
    }
    if is_on("enableDeletionVectors") {
        features.push(("deletionVectors", true));
    }
    if properties.keys().any(|name| name.starts_with("delta.constraints.")) {
        features.push(("checkConstraints", false));
    }
    features
}

/// Adds features to a protocol.
fn with_features(protocol: &Protocol, features: &[Feature]) -> Protocol {
    let has = |list: &Option<Vec<String>>, feature: &str| {
        list.iter().flatten().any(|known| known == feature)
    };
    let missing: Vec<Feature> = features
        .iter()
        .copied()
        .filter(|(feature, _)| !has(&protocol.writer_features, feature))
        .collect();
    if missing.is_empty() {
        return protocol.clone();
    }
    let mut upgraded = protocol.clone();
    let mut writer = ddl::writer_features(protocol);
    for (feature, binds_readers) in missing {
        if !writer.iter().any(|known| known == feature) {
            writer.push(feature.to_owned());
        }
        if binds_readers {
            upgraded.reader_features.get_or_insert_default().push(feature.to_owned());
            upgraded.min_reader_version = 3;
        }
    }
    upgraded.min_writer_version = 7;
    upgraded.writer_features = Some(writer);
    upgraded
}

fn has_ntz(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(_, None) => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_ntz(field.data_type())),
        DataType::List(inner) | DataType::Map(inner, _) => has_ntz(inner.data_type()),
        _ => false,
    }
}

/// Builds the actions of `ALTER TABLE … SET TBLPROPERTIES`; none when nothing changes.
///
/// # Errors
/// Fails as [`check_new`], when the table must not be written, and when clustering columns would lose
/// their statistics.
pub fn set_actions(
    snapshot: &TableSnapshot,
    properties: &BTreeMap<String, String>,
    timestamp: i64,
) -> Result<Vec<Action>, LayoutError> {
    let table = snapshot.table.to_string();
    check(&table, properties, false)?;
    snapshot.refuse(snapshot.write_refusal())?;
    let mut after = snapshot.clone();
    after.properties.extend(properties.clone());
    if after.properties == snapshot.properties {
        return Ok(Vec::new());
    }
    bloom::check(&table, &snapshot.schema, properties)?;
    ddl::resolved(&after, &after.cluster_by(), KeyTypes::Complex)?;
    let mut metadata = snapshot.metadata.clone();
    metadata["configuration"] = json!(after.properties);
    let mut actions = vec![Action::CommitInfo(json!({
        "timestamp": timestamp,
        "operation": "SET TBLPROPERTIES",
        "operationParameters": {
            "properties": serde_json::to_string(properties).unwrap_or_default(),
        },
        "readVersion": snapshot.version,
        "isolationLevel": "Serializable",
        "isBlindAppend": false,
        "engineInfo": crate::engine_info(),
    }))];
    let features = needed_features(&Schema::empty(), &after.properties);
    let protocol = with_features(&snapshot.protocol, &features);
    if protocol != snapshot.protocol {
        actions.push(Action::Protocol(protocol));
    }
    actions.push(Action::Metadata(metadata));
    Ok(actions)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow::datatypes::{DataType, Field, Schema, TimeUnit};

    use super::{check, protocol_for};

    fn one(key: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(key.to_owned(), value.to_owned())])
    }

    #[test]
    fn protocol_is_the_least_that_the_table_needs() {
        let ntz = DataType::Timestamp(TimeUnit::Microsecond, None);
        let plain = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
        let nested = DataType::Struct(vec![Field::new("t", ntz, true)].into());
        let nested = Schema::new(vec![Field::new("s", nested, true)]);
        let shown = |schema: &Schema, properties, keys: &[String]| {
            let made = protocol_for(schema, &properties, keys);
            format!(
                "{} {} {} {}",
                made.min_reader_version,
                made.min_writer_version,
                made.reader_features.unwrap_or_default().join(","),
                made.writer_features.unwrap_or_default().join(",")
            )
        };
        assert_eq!(shown(&plain, BTreeMap::new(), &[]), "1 2  ");
        assert_eq!(
            shown(&plain, BTreeMap::new(), &["a".to_owned()]),
            "1 7  appendOnly,invariants,clustering,domainMetadata"
        );
        assert_eq!(
            shown(&nested, BTreeMap::new(), &[]),
            "3 7 timestampNtz appendOnly,invariants,timestampNtz"
        );
        assert_eq!(
            shown(&plain, one("delta.enableDeletionVectors", "TRUE"), &[]),
            "3 7 deletionVectors appendOnly,invariants,deletionVectors"
        );
        assert_eq!(
            shown(&plain, one("delta.constraints.positive", "a > 0"), &[]),
            "1 7  appendOnly,invariants,checkConstraints"
        );
    }

    #[test]
    fn properties_that_cannot_be_set_are_refused_by_name() {
        for (key, value, reason) in [
            (
                "delta.enableRowTracking",
                "true",
                "`true` needs a table feature that Lakebed cannot set up",
            ),
            (
                "delta.autoOptimize.autoCompact",
                "always",
                "it takes one of true, false, auto, legacy, found `always`",
            ),
            ("delta.autoOptimize.optimizeWrite", "auto", "it takes true or false, found `auto`"),
            ("delta.feature.deletionVectors", "supported", "Lakebed cannot set this feature up"),
            (
                "delta.apendOnly",
                "true",
                "[DELTA_UNKNOWN_CONFIGURATION]: Delta has no such property",
            ),
            (
                "delta.feature.clustering",
                "supported",
                "[DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED]: the feature comes with ALTER TABLE … CLUSTER BY (…)",
            ),
        ] {
            let error = check("t", &one(key, value), false).unwrap_err();
            assert_eq!(error.to_string(), format!("set property `{key}` of table `t`: {reason}"));
        }
        for (key, value, expected) in [
            ("delta.enableDeletionVectors", "maybe", "true or false"),
            ("delta.appendOnly", "", "true or false"),
            ("delta.checkpointInterval", "-3", "a whole number of at least 1"),
            ("delta.checkpointInterval", "0", "a whole number of at least 1"),
            ("delta.dataSkippingNumIndexedCols", "-2", "a whole number of at least -1"),
            ("delta.logRetentionDuration", "7", "a duration such as `interval 7 days`"),
            (
                "delta.logRetentionDuration",
                "interval 1 month",
                "a duration such as `interval 7 days`",
            ),
            ("delta.targetFileSize", "big", "a size such as 134217728 or 128MiB"),
            ("delta.targetFileSize", "0", "a size such as 134217728 or 128MiB"),
            ("delta.isolationLevel", "none", "one of Serializable, WriteSerializable"),
        ] {
            let error = check("t", &one(key, value), true).unwrap_err();
            let expected =
                format!("set property `{key}` of table `t`: it takes {expected}, found `{value}`");
            assert_eq!(error.to_string(), expected);
        }
        for (key, value) in [
            ("delta.enableDeletionVectors", " TRUE "),
            ("delta.checkpointInterval", "1"),
            ("delta.dataSkippingNumIndexedCols", "-1"),
            ("delta.dataSkippingStatsColumns", "a, s.`b.c`"),
            ("delta.deletedFileRetentionDuration", "interval 1 week"),
            ("delta.targetFileSize", "64MiB"),
        ] {
            check("t", &one(key, value), true).unwrap();
        }
        check("t", &one("delta.enableRowTracking", "false"), true).unwrap();
        check("t", &one("my.own", "anything"), true).unwrap();
    }
}
