//! What a scan operator says about its table, columns and filters.

use std::collections::BTreeSet;

use lakebed_model::{ScanUse, TableName};

use crate::{
    ColumnType,
    lineage::{
        literal,
        predicate::{self, Predicate},
    },
};

use super::{
    catalyst::{self, Scope},
    node::PlanNode,
    pushed,
    text::{self, Attribute},
};

/// Scans of these are the engine's own business or have no files that a layout could change.
const NO_TABLE: [&str; 6] =
    ["ExistingRDD", "OneRowRelation", "JDBCRelation", "Delta", "DeltaCDFRelation", "memory"];

/// Names that stand before a table's name, or alone when the table has none.
const FORMATS: [&str; 10] =
    ["parquet", "orc", "csv", "json", "text", "avro", "delta", "hive", "iceberg", "binaryFile"];

/// A scan of a base table while its plan is read.
#[derive(Debug)]
pub(super) struct BaseScan {
    /// The table's full name: from the catalog, else its folder.
    pub(super) table: Option<TableName>,
    /// The scan itself lists all of its filters, so that those of operators above are repetitions.
    pub(super) lists_filters: bool,
    /// The types of the columns that the files hold.
    types: Vec<(String, ColumnType)>,
    /// The conditions on the scan's rows.
    predicates: Vec<Predicate>,
    location: Option<String>,
    /// What the scan gives to the operator above.
    output: Vec<Attribute>,
    /// The pushed filters as listed, by column: whether one comes before that the column is not null.
    pub(super) before_not_null: BTreeSet<String>,
}

/// Tells whether an operator reads rows from outside of the plan.
pub(super) fn is_scan(node: &PlanNode) -> bool {
    node.operator().ends_with("Scan")
        && !matches!(node.operator(), "InMemoryTableScan" | "LocalTableScan")
}

impl BaseScan {
    /// Reads a scan of a base table; `None` for anything else, a table's own log included.
    pub(super) fn read(node: &PlanNode, output: Vec<Attribute>) -> Option<Self> {
        let name = table_name(node)?;
        let location = field(node, "Location")
            .and_then(|text| location(&text))
            .or_else(|| node.name.split_whitespace().find(|word| word.contains(":/")).map(folder));
        let is_log = |location: &String| {
            location.contains("/_delta_log") || node.text.contains("DeltaLogFileIndex")
        };
        if location.as_ref().is_some_and(is_log) {
            return None;
        }
        let types = field(node, "ReadSchema")
            .map(|schema| literal::read_schema(&schema))
            .unwrap_or_default();
        let mut scan = Self {
            table: name.or_else(|| location.clone()).map(TableName::new),
            types,
            lists_filters: false,
            predicates: Vec::new(),
            location,
            output,
            before_not_null: BTreeSet::new(),
        };
        scan.read_filters(node);
        Some(scan)
    }

    /// Pushed filters are the sharpest; data filters add the columns that could not be pushed.
    fn read_filters(&mut self, node: &PlanNode) {
        let listed = |name| field(node, name);
        if let Some(text) = listed("PushedFilters") {
            self.predicates.extend(pushed::read_list(&text, &self.types));
            self.before_not_null = before_not_null(&text, &self.predicates);
        }
        if let Some(text) = listed("DataFilters") {
            self.lists_filters = true;
            let predicates = catalyst::read_list(&text, self.scope());
            self.add_uncovered(predicates);
        }
        if let Some(text) = listed("PartitionFilters") {
            let predicates = catalyst::read_list(&text, self.scope());
            self.predicates.extend(predicates);
        }
    }

    /// Adds what predicates say of columns that no filter so far speaks of.
    fn add_uncovered(&mut self, predicates: Vec<Predicate>) {
        let covered: BTreeSet<String> =
            self.predicates.iter().flat_map(Predicate::columns).collect();
        for predicate in predicates {
            let open: Vec<String> = predicate
                .columns()
                .into_iter()
                .filter(|column| !covered.contains(column))
                .collect();
            match predicate {
                Predicate::Column(..) if !open.is_empty() => self.predicates.push(predicate),
                _ if !open.is_empty() => self.predicates.push(Predicate::Opaque(open)),
                _ => {}
            }
        }
    }

    /// Adds the condition of a filter right above the scan.
    pub(super) fn add_condition(&mut self, condition: &str) {
        match catalyst::read(condition, self.scope()) {
            // The formatted text lists what was pushed and leaves out the rest.
            Predicate::And(parts) if !self.predicates.is_empty() => self.add_uncovered(parts),
            single if !self.predicates.is_empty() => self.add_uncovered(vec![single]),
            all => self.predicates.push(all),
        }
    }

    fn scope(&self) -> Scope<'_> {
        Scope { types: &self.types, output: &self.output }
    }

    /// Finishes the scan; sizes are filled in from metrics later.
    pub(super) fn into_use(self) -> ScanUse {
        let filters = match &self.table {
            Some(table) => predicate::filters(table, self.predicates),
            None => Vec::new(),
        };
        ScanUse {
            table: self.table,
            location: self.location,
            columns: self.output.into_iter().map(|attribute| attribute.name).collect(),
            filters,
            ..ScanUse::default()
        }
    }
}

/// Lists the columns whose filters stand before that they are not null.
///
/// Spark puts the `IsNotNull` that follows from a query's own condition before that condition, and
/// the one that follows from a condition it carried over from the other side of a join behind it.
fn before_not_null(text: &str, predicates: &[Predicate]) -> BTreeSet<String> {
    let mut columns = BTreeSet::new();
    for predicate in predicates {
        let Predicate::Column(column, _) = predicate else { continue };
        let at = |filter: &str| {
            text.match_indices(filter).map(|(at, _)| at).find(|at| {
                let after = text[at + filter.len()..].strip_prefix(column.as_str());
                after.is_some_and(|rest| rest.starts_with([',', ')']))
            })
        };
        let compares = ["EqualTo(", "LessThan(", "LessThanOrEqual(", "GreaterThan(", "In("];
        let compares = compares.into_iter().chain(["GreaterThanOrEqual(", "StringStartsWith("]);
        let first = compares.filter_map(at).min();
        if let (Some(first), Some(not_null)) = (first, at("IsNotNull("))
            && first < not_null
        {
            columns.insert(column.clone());
        }
    }
    columns
}

/// `Some(Some(name))` for a named table, `Some(None)` for files without a name.
fn table_name(node: &PlanNode) -> Option<Option<String>> {
    let words = node.name.split_whitespace().skip(1).skip_while(|word| word.starts_with('['));
    let words: Vec<&str> = words.collect();
    let Some(first) = words.first() else {
        // Version 2 scans of older releases print the table behind the columns, if at all.
        return match node.operator() {
            "BatchScan" => Some(table_behind_columns(&node.text)),
            "HiveTableScan" => hive_table(&node.text).map(Some),
            _ => None,
        };
    };
    let stem = first.split(['(', '[', '@']).next().unwrap_or(first);
    if NO_TABLE.contains(&stem) {
        return None;
    }
    let is_format = |word: &str| FORMATS.iter().any(|format| format.eq_ignore_ascii_case(word));
    match words.as_slice() {
        [only] if is_format(only) => Some(None),
        [format, table, ..] if is_format(format) => {
            // A data source of version 2 gives its folder where a catalog name would stand.
            Some((!table.contains(":/")).then(|| identifier(table)).flatten())
        }
        [only] if node.operator() == "BatchScan" => identifier(only).map(Some),
        // A relation without a name, whose own text may say anything; files if it has a folder.
        [_] => field(node, "Location").map(|_| None),
        // A relation of a connector, then the table's name in the catalog where it has one.
        [.., last] => identifier(last).map(Some),
        [] => None,
    }
}

/// Takes a name of parts for one of a table; anything else may hold what must not leave the log.
fn identifier(text: &str) -> Option<String> {
    let is_part = |c: char| c.is_alphanumeric() || "_-.$`".contains(c);
    (!text.is_empty() && text.chars().all(is_part)).then(|| text.replace('`', ""))
}

/// ``HiveTableScan [a#1], HiveTableRelation [`db`.`t`, …]``
fn hive_table(text: &str) -> Option<String> {
    let (_, relation) = text.split_once("HiveTableRelation ")?;
    identifier(relation.trim_start_matches('[').split(',').next()?.trim())
}

/// `BatchScan[a#1] main.db.t (branch=null) [filters=…]`
fn table_behind_columns(text: &str) -> Option<String> {
    let (_, after) = text::list_from(text, text::columns_at(text)?)?;
    let word = text[after..].split_whitespace().next()?;
    word.contains('.').then(|| identifier(word)).flatten()
}

/// Reads a field of the scan's metadata, else of its text unless that is cut.
fn field(node: &PlanNode, name: &str) -> Option<String> {
    if let Some(value) = node.fields.get(name) {
        return Some(value.clone());
    }
    let at = node.text.find(&format!("{name}: "))? + name.len() + 2;
    let rest = &node.text[at..];
    let end = match rest.find(['[', '<']).filter(|open| !rest[..*open].contains(", ")) {
        Some(open) if rest[open..].starts_with('[') => text::closing(rest, open)? + 1,
        _ => rest.find(", ").unwrap_or(rest.len()),
    };
    let value = &rest[..end];
    (!value.contains("...")).then(|| value.to_owned())
}

/// Reads the table's folder from `InMemoryFileIndex(2 paths)[gs://a/t/day=1, gs://a/t/day=2]`.
fn location(text: &str) -> Option<String> {
    let (paths, _) = text::list_from(text, 0)?;
    let mut folders = paths.iter().filter(|path| !path.starts_with("...")).map(|path| folder(path));
    let first = folders.next().filter(|path| !path.is_empty())?;
    Some(folders.fold(first, |common, other| common_folder(&common, &other)))
}

/// Strips partition folders and a closing slash.
fn folder(path: &str) -> String {
    let mut parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    while parts.last().is_some_and(|part| part.contains('=')) {
        parts.pop();
    }
    parts.join("/")
}

fn common_folder(a: &str, b: &str) -> String {
    let same = a.split('/').zip(b.split('/')).take_while(|(x, y)| x == y).map(|(x, _)| x);
    same.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::{BaseScan, PlanNode, location};

    fn scan(name: &str, text: &str) -> Option<BaseScan> {
        let node = PlanNode { name: name.to_owned(), text: text.to_owned(), ..PlanNode::default() };
        BaseScan::read(&node, Vec::new())
    }

    #[track_caller]
    fn check_table(name: &str, text: &str, expected: Option<&str>) {
        let table = scan(name, text).and_then(|scan| scan.table);
        assert_eq!(table.as_ref().map(|table| table.as_str()), expected);
    }

    #[test]
    fn tables_are_named_by_the_catalog_or_by_their_folder() {
        check_table(
            "Scan parquet spark_catalog.db.t",
            "FileScan parquet",
            Some("spark_catalog.db.t"),
        );
        check_table("BatchScan main.db.t", "BatchScan main.db.t[a#1]", Some("main.db.t"));
        check_table("GpuScan parquet db.t", "", Some("db.t"));
        check_table("Scan hive db.t", "", Some("db.t"));
        let hive =
            "HiveTableScan [a#1], HiveTableRelation [`db`.`t`, org.x.Serde, Data Cols: [a#1]]";
        check_table("HiveTableScan", hive, Some("db.t"));
        let hive = "HiveTableScan [a#1], HiveTableRelation `db`.`t`, org.x.Serde, [a#1]";
        check_table("HiveTableScan", hive, Some("db.t"));
        check_table(
            "BatchScan",
            "BatchScan[a#1] main.db.t (branch=null) [filters=]",
            Some("main.db.t"),
        );
        check_table("BatchScan", "BatchScan[a#1] ParquetScan Format: parquet", None);
        check_table(
            "BatchScan parquet s3://b/t",
            "BatchScan parquet s3://b/t[a#1]",
            Some("s3://b/t"),
        );
        check_table("CometScan [native] parquet db.t", "", Some("db.t"));
        check_table(
            "Scan xml ",
            "FileScan xml [a#1] Location: InMemoryFileIndex(1 paths)[s3://b/x], F: P",
            Some("s3://b/x"),
        );
        check_table(
            "Scan parquet ",
            "FileScan parquet [a#1] Location: InMemoryFileIndex(1 paths)[gs://x/sf3k/item], Format: P",
            Some("gs://x/sf3k/item"),
        );
    }

    #[test]
    fn what_is_no_table_is_no_scan() {
        assert!(scan("Scan ExistingRDD Delta Table State #0 - file:/t/_delta_log", "").is_none());
        assert!(scan("Scan OneRowRelation", "").is_none());
        assert!(scan("Scan JDBCRelation(t) [numPartitions=1]", "").is_none());
        assert!(scan("Scan", "Scan[obj#1]").is_none());
        assert!(
            scan(
                "Scan json ",
                "Location: DeltaLogFileIndex(1 paths)[file:/t/_delta_log/0.json], F"
            )
            .is_none()
        );
    }

    #[test]
    fn a_location_is_the_folder_above_its_partitions() {
        let found = location("InMemoryFileIndex(2 paths)[s3://a/t/day=1/h=2, s3://a/t/day=2/h=1]");
        assert_eq!(found.as_deref(), Some("s3://a/t"));
        let found = location("InMemoryFileIndex(9 paths)[s3://a/t/x, s3://a/t/y, ...]");
        assert_eq!(found.as_deref(), Some("s3://a/t"));
    }
}
