//! The metadata of a clustered table: what `ALTER TABLE … CLUSTER BY` checks and writes.
//!
//! PROTOCOL.md, "Clustered Table": writer version 7 with the features `clustering` and
//! `domainMetadata`, the columns in the domain `delta.clustering` as an array of name paths.

use arrow::datatypes::{DataType, FieldRef, Fields, Schema};
use lakebed_plan::Layout;
use serde_json::{Value, json};

use crate::{
    LayoutError, TableSnapshot,
    action::{Action, DomainMetadata, Protocol},
    columns::{self, column_type, join_name, leaves, parse_list, split_name},
    cuts::{self, Cuts},
};

/// The metadata domain that holds the clustering columns.
pub const DOMAIN: &str = "delta.clustering";
/// delta-spark: `clusteredTable.numClusteringColumnsLimit`.
pub const MAX_COLUMNS: usize = 4;
/// Property with the names of the columns that have statistics.
const STATS_COLUMNS: &str = "delta.dataSkippingStatsColumns";
/// Columns with statistics when a table does not say otherwise.
pub const DEFAULT_INDEXED_COLUMNS: usize = 32;

/// Builds the domain for a list of column names; the empty list is `CLUSTER BY NONE`.
#[must_use]
pub fn domain(cluster_by: &[String]) -> DomainMetadata {
    let paths: Vec<Vec<String>> = cluster_by.iter().map(|name| split_name(name)).collect();
    DomainMetadata {
        domain: DOMAIN.to_owned(),
        configuration: json!({ "clusteringColumns": paths, "domainName": DOMAIN }).to_string(),
        removed: false,
    }
}

/// Reads the columns of a domain as names.
///
/// Accepts both the array of paths that every implementation writes and the flat list of the
/// protocol text's example; a tombstone has none.
#[must_use]
pub fn parse_domain(domain: &DomainMetadata) -> Vec<String> {
    if domain.removed || domain.domain != DOMAIN {
        return Vec::new();
    }
    let configuration: Value = serde_json::from_str(&domain.configuration).unwrap_or_default();
    let columns = configuration.get("clusteringColumns").and_then(Value::as_array);
    columns
        .into_iter()
        .flatten()
        .filter_map(|column| match column {
            Value::String(name) => Some(join_name(std::slice::from_ref(name))),
            Value::Array(path) => {
                let part = |part: &Value| part.as_str().map(ToOwned::to_owned);
                path.iter().map(part).collect::<Option<Vec<_>>>().map(|path| join_name(&path))
            }
            _ => None,
        })
        .collect()
}

/// Returns the protocol that a clustered table needs, or `None` when it is there already.
#[must_use]
pub fn upgraded_protocol(protocol: &Protocol) -> Option<Protocol> {
    let mut features = writer_features(protocol);
    let before = features.len();
    for feature in ["clustering", "domainMetadata"] {
        if !features.iter().any(|f| f == feature) {
            features.push(feature.to_owned());
        }
    }
    if features.len() == before && protocol.min_writer_version >= 7 {
        return None;
    }
    Some(Protocol {
        min_reader_version: protocol.min_reader_version,
        min_writer_version: 7,
        reader_features: protocol.reader_features.clone(),
        writer_features: Some(features),
    })
}

/// Lists the writer features of a protocol; for a legacy version, those it stands for (PROTOCOL.md,
/// "Valid Feature Names").
///
/// Column mapping binds readers too: a legacy table has it from reader version 2 on, and listing it
/// beside reader version 1 would make the log unreadable.
pub(crate) fn writer_features(protocol: &Protocol) -> Vec<String> {
    if let Some(features) = &protocol.writer_features {
        return features.clone();
    }
    const LEGACY: [(i32, &str); 7] = [
        (2, "appendOnly"),
        (2, "invariants"),
        (3, "checkConstraints"),
        (4, "changeDataFeed"),
        (4, "generatedColumns"),
        (5, "columnMapping"),
        (6, "identityColumns"),
    ];
    LEGACY
        .iter()
        .filter(|(version, _)| *version <= protocol.min_writer_version)
        .filter(|(_, name)| *name != "columnMapping" || protocol.min_reader_version >= 2)
        .map(|(_, feature)| (*feature).to_owned())
        .collect()
}

/// Which types clustering columns may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyTypes {
    /// Those with a minimum and a maximum.
    #[default]
    Plain,
    /// Structs, arrays and maps of them as well.
    Complex,
}

/// Checks clustering columns against a table, in the order delta-spark does, and returns them as the
/// table spells them: like Spark's, names match whatever the case of their letters.
///
/// # Errors
/// Fails with Delta's error class when there are too many columns, one twice, one that does not
/// exist, has no order, or has no statistics, or when the table must not be written.
pub fn resolved(
    snapshot: &TableSnapshot,
    cluster_by: &[String],
    types: KeyTypes,
) -> Result<Vec<String>, LayoutError> {
    let table = snapshot.table.to_string();
    snapshot.refuse(snapshot.write_refusal())?;
    if cluster_by.len() > MAX_COLUMNS {
        return Err(LayoutError::TooManyColumns {
            table,
            count: cluster_by.len(),
            limit: MAX_COLUMNS,
        });
    }
    let spelled: Vec<String> =
        cluster_by.iter().map(|column| as_spelled(&snapshot.schema, column)).collect();
    for (position, column) in spelled.iter().enumerate() {
        if spelled[..position].contains(column) {
            return Err(LayoutError::DuplicateColumn { table, column: column.clone() });
        }
        let Some(data_type) = column_type(&snapshot.schema, column) else {
            let known: Vec<&str> =
                snapshot.schema.fields().iter().map(|f| f.name().as_str()).collect();
            return Err(LayoutError::UnknownColumn {
                table,
                column: column.clone(),
                known: known.join(", "),
            });
        };
        if let Some(reason) = type_refusal(&data_type, types) {
            return Err(LayoutError::UnsupportedType {
                table,
                column: column.clone(),
                data_type: data_type.to_string(),
                reason,
            });
        }
        if !has_statistics(snapshot, column) {
            return Err(LayoutError::MissingStats {
                table,
                column: column.clone(),
                collected: collected(snapshot),
            });
        }
    }
    Ok(spelled)
}

fn type_refusal(data_type: &DataType, types: KeyTypes) -> Option<&'static str> {
    match types {
        _ if is_orderable(data_type) => None,
        KeyTypes::Complex if is_ordered(data_type) => None,
        KeyTypes::Plain if is_ordered(data_type) => Some(
            "can be a clustering column only with SET \
             spark.microsoft.delta.clusteredTable.complexTypes.enabled = true",
        ),
        _ => Some("has no minimum and maximum to skip files by"),
    }
}

/// Tells whether the values of a type have an order: structs of such, arrays of such, and maps from
/// such to such.
fn is_ordered(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => {
            !fields.is_empty() && fields.iter().all(|field| is_ordered(field.data_type()))
        }
        DataType::List(item) | DataType::LargeList(item) => is_ordered(item.data_type()),
        DataType::Map(entries, _) => is_ordered(entries.data_type()),
        plain => is_orderable(plain),
    }
}

/// Checks the columns of a new table: their types, and that their names differ by more than case.
///
/// # Errors
/// Fails with Delta's error class.
pub fn check_columns(table: &str, fields: &Fields) -> Result<(), LayoutError> {
    let refuse = |statement: String, class, reason: String| {
        Err(LayoutError::NotAllowed { statement, table: table.to_owned(), class, reason })
    };
    for (position, field) in fields.iter().enumerate() {
        let lower = field.name().to_lowercase();
        let same = fields[..position].iter().find(|other| other.name().to_lowercase() == lower);
        if let Some(same) = same {
            return refuse(
                format!("create columns `{}` and `{}`", same.name(), field.name()),
                "DELTA_DUPLICATE_COLUMNS_FOUND",
                "names of columns must differ by more than the case of letters; give one of them \
                 another name with AS"
                    .to_owned(),
            );
        }
        check_type(table, field.data_type())?;
        if !is_storable(field.data_type()) {
            return refuse(
                format!("create column `{}` of type {}", field.name(), field.data_type()),
                "DELTA_UNSUPPORTED_DATA_TYPES",
                "Delta stores no such values; CAST them to a number, a text or a time".to_owned(),
            );
        }
    }
    Ok(())
}

/// Looks into a type for fields with names.
fn check_type(table: &str, data_type: &DataType) -> Result<(), LayoutError> {
    match data_type {
        DataType::Struct(fields) => check_columns(table, fields),
        DataType::List(inner) | DataType::Map(inner, _) => check_type(table, inner.data_type()),
        _ => Ok(()),
    }
}

/// Tells whether Delta has a name for a type, nested types included.
fn is_storable(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().all(|field| is_storable(field.data_type())),
        DataType::List(inner) | DataType::Map(inner, _) => is_storable(inner.data_type()),
        DataType::Interval(_)
        | DataType::Duration(_)
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Union(..)
        | DataType::Decimal256(..)
        | DataType::Null => false,
        _ => true,
    }
}

/// Gives a dotted name the schema's letters, as far as the schema has it.
fn as_spelled(schema: &Schema, dotted: &str) -> String {
    let find = |fields: &Fields, name: &str| {
        let same = |field: &&FieldRef| field.name().to_lowercase() == name.to_lowercase();
        let exact = fields.iter().find(|field| field.name() == name);
        exact.or_else(|| fields.iter().find(same)).cloned()
    };
    let mut fields = schema.fields().clone();
    let mut parts = Vec::new();
    for part in split_name(dotted) {
        let Some(field) = find(&fields, &part) else { return dotted.to_owned() };
        parts.push(field.name().clone());
        fields = match field.data_type() {
            DataType::Struct(inner) => inner.clone(),
            _ => Fields::empty(),
        };
    }
    join_name(&parts)
}

/// Says which columns have statistics, and what to do for another one.
fn collected(snapshot: &TableSnapshot) -> String {
    match snapshot.properties.get(STATS_COLUMNS) {
        Some(listed) => format!("{listed} only; add the column to {STATS_COLUMNS}"),
        None => format!(
            "the first {} columns only; move the column or raise delta.dataSkippingNumIndexedCols",
            indexed_columns(snapshot)
        ),
    }
}

/// Returns how many leading columns get statistics: `delta.dataSkippingNumIndexedCols`, −1 for all.
#[must_use]
pub fn indexed_columns(snapshot: &TableSnapshot) -> usize {
    match snapshot.properties.get("delta.dataSkippingNumIndexedCols").and_then(|v| v.parse().ok()) {
        Some(-1i64) => usize::MAX,
        Some(count) => usize::try_from(count).unwrap_or(DEFAULT_INDEXED_COLUMNS),
        None => DEFAULT_INDEXED_COLUMNS,
    }
}

/// Tells whether files can be skipped by a type's minimum and maximum
/// (delta-spark `DataSkippingReader`: numbers, dates, timestamps, strings).
#[must_use]
pub fn is_orderable(data_type: &DataType) -> bool {
    data_type.is_numeric()
        || matches!(
            data_type,
            DataType::Date32
                | DataType::Timestamp(_, _)
                | DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
        )
}

/// Builds the actions of `ALTER TABLE … CLUSTER BY (…)` or, with no columns, `CLUSTER BY NONE`.
///
/// Nothing is rewritten: files keep their layout until the next OPTIMIZE. Returns no actions when
/// the table has these columns already. Cuts of the same columns stay, others are taken away.
///
/// # Errors
/// As [`resolved`].
pub fn alter_actions(
    snapshot: &TableSnapshot,
    cluster_by: &[String],
    types: KeyTypes,
    timestamp: i64,
) -> Result<Vec<Action>, LayoutError> {
    let cluster_by = resolved(snapshot, cluster_by, types)?;
    let cuts = snapshot.cuts().filter(|cuts| cuts.fit(&cluster_by));
    Ok(changes(snapshot, &cluster_by, cuts, timestamp))
}

/// Builds the actions that give a table a layout, with cuts or without.
///
/// # Errors
/// As [`resolved`] and [`Cuts::checked`].
pub fn layout_actions(
    snapshot: &TableSnapshot,
    layout: &Layout,
    timestamp: i64,
) -> Result<Vec<Action>, LayoutError> {
    let cluster_by = resolved(snapshot, &layout.cluster_by, KeyTypes::Plain)?;
    let cuts = Cuts::checked(snapshot.table.as_str(), &cluster_by, &layout.cuts)?;
    Ok(changes(snapshot, &cluster_by, cuts, timestamp))
}

fn changes(
    snapshot: &TableSnapshot,
    cluster_by: &[String],
    cuts: Option<Cuts>,
    timestamp: i64,
) -> Vec<Action> {
    let before = snapshot.cluster_by();
    let cuts_before = snapshot.cuts();
    if before == cluster_by && cuts_before == cuts {
        return Vec::new();
    }
    let mut parameters = json!({
        "oldClusteringColumns": before.join(","),
        "newClusteringColumns": cluster_by.join(","),
    });
    if cuts_before != cuts {
        let tag = |cuts: &Option<Cuts>| cuts.as_ref().map_or_else(|| "[]".to_owned(), Cuts::tag);
        parameters["oldCuts"] = tag(&cuts_before).into();
        parameters["newCuts"] = tag(&cuts).into();
    }
    let mut actions = vec![Action::CommitInfo(json!({
        "timestamp": timestamp,
        "operation": "CLUSTER BY",
        "operationParameters": parameters,
        "readVersion": snapshot.version,
        "isolationLevel": "Serializable",
        "isBlindAppend": false,
        "engineInfo": crate::engine_info(),
        "txnId": null,
    }))];
    if let Some(protocol) = upgraded_protocol(&snapshot.protocol) {
        actions.push(Action::Protocol(protocol));
    }
    if before != cluster_by {
        actions.push(Action::DomainMetadata(domain(&physical_names(snapshot, cluster_by))));
    }
    match (cuts, &snapshot.cuts_domain) {
        (Some(cuts), stored) => {
            let made = cuts.domain(snapshot);
            let is_new = stored.as_ref() != Some(&made);
            actions.extend(is_new.then_some(Action::DomainMetadata(made)));
        }
        (None, Some(stored)) if !stored.removed => {
            actions.push(Action::DomainMetadata(cuts::tombstone(stored)));
        }
        (None, _) => {}
    }
    actions
}

/// Domains hold physical names: they outlive a rename.
pub(crate) fn physical_names(snapshot: &TableSnapshot, cluster_by: &[String]) -> Vec<String> {
    let mapping = snapshot.column_mapping();
    let physical = |name: &String| {
        mapping.physical_path(&snapshot.schema, &split_name(name)).map(|path| join_name(&path))
    };
    cluster_by.iter().map(|name| physical(name).unwrap_or_else(|| name.clone())).collect()
}

/// Tells whether files carry minimum and maximum of a column.
#[must_use]
pub fn has_statistics(snapshot: &TableSnapshot, column: &str) -> bool {
    let path = split_name(column);
    if let Some(listed) = snapshot.properties.get(STATS_COLUMNS) {
        return parse_list(listed).iter().any(|listed| path.starts_with(listed));
    }
    let leaves = leaves(&snapshot.schema);
    let mut own = leaves.iter().enumerate().filter(|(_, leaf)| leaf.starts_with(&path)).peekable();
    let indexed = indexed_columns(snapshot);
    own.peek().is_some() && own.all(|(position, _)| position < indexed)
}

/// Which columns of new files get statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsColumns {
    /// How many leading ones, fields of structs counted each.
    pub leading: usize,
    /// Further ones, by name.
    pub named: Vec<String>,
}

/// Chooses the columns with statistics: those that the table lists, else the leading ones, and the
/// clustering columns in any case.
#[must_use]
pub fn stats_columns(snapshot: &TableSnapshot) -> StatsColumns {
    let keys: Vec<String> = snapshot
        .cluster_by()
        .iter()
        .flat_map(|key| columns::leaves_of(&snapshot.schema, key))
        .map(|leaf| join_name(&leaf))
        .collect();
    let Some(listed) = snapshot.properties.get(STATS_COLUMNS) else {
        return StatsColumns { leading: indexed_columns(snapshot), named: keys };
    };
    let listed = parse_list(listed);
    let is_listed = |leaf: &Vec<String>| listed.iter().any(|listed| leaf.starts_with(listed));
    let mut named: Vec<String> = leaves(&snapshot.schema)
        .iter()
        .filter(|leaf| is_listed(leaf))
        .map(|leaf| join_name(leaf))
        .collect();
    named.extend(keys);
    StatsColumns { leading: 0, named }
}

#[cfg(test)]
mod tests {
    use super::{DOMAIN, domain, parse_domain, upgraded_protocol};
    use crate::action::{DomainMetadata, Protocol};

    #[test]
    fn the_domain_is_an_array_of_paths() {
        let made = domain(&["a".into(), "user.address.city".into()]);
        assert_eq!(
            made.configuration,
            r#"{"clusteringColumns":[["a"],["user","address","city"]],"domainName":"delta.clustering"}"#
        );
        assert_eq!(parse_domain(&made), ["a", "user.address.city"]);
    }

    #[test]
    fn flat_lists_and_tombstones_are_understood() {
        let with = |configuration: &str, removed| DomainMetadata {
            domain: DOMAIN.into(),
            configuration: configuration.into(),
            removed,
        };
        assert_eq!(parse_domain(&with(r#"{"clusteringColumns":["a","b"]}"#, false)), ["a", "b"]);
        assert!(parse_domain(&with(r#"{"clusteringColumns":[["a"]]}"#, true)).is_empty());
        assert!(parse_domain(&with("nonsense", false)).is_empty());
    }

    #[test]
    fn a_legacy_protocol_spells_out_its_features() {
        let legacy = Protocol {
            min_reader_version: 1,
            min_writer_version: 2,
            reader_features: None,
            writer_features: None,
        };
        let upgraded = upgraded_protocol(&legacy).unwrap();
        assert_eq!((upgraded.min_reader_version, upgraded.min_writer_version), (1, 7));
        assert_eq!(
            upgraded.writer_features.as_deref().unwrap(),
            ["appendOnly", "invariants", "clustering", "domainMetadata"]
        );
        assert_eq!(upgraded_protocol(&upgraded), None);
    }

    #[test]
    fn column_mapping_is_listed_only_beside_a_reader_version_that_has_it() {
        let lists = |min_reader_version| {
            let legacy = Protocol {
                min_reader_version,
                min_writer_version: 6,
                reader_features: None,
                writer_features: None,
            };
            let features = upgraded_protocol(&legacy).unwrap().writer_features.unwrap();
            features.iter().any(|feature| feature == "columnMapping")
        };
        assert_eq!((lists(1), lists(2)), (false, true));
    }
}
