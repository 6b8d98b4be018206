//! Tables of numbers whose contents a test can compute in its head, and their logs.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use arrow::{
    array::{ArrayRef, AsArray, Int64Array, RecordBatch},
    datatypes::Int64Type,
};
use lakebed_lake::{DeltaLake, NewTable};
use lakebed_layout::{
    ClusteringSettings, OptimizeOptions,
    action::{Action, AddFile, RemoveFile},
};
use lakebed_model::{Bytes, Instant, TableName};
use serde_json::Value;

use super::{empty_lake, runtime};

/// When everything in these tests happens.
const NOW: Instant = Instant::from_epoch_ms(1_796_000_000_000);

/// A table `t` in a folder: `k` counts from 0 over all files, `v` is `k` mod 10, `w` is `1000 - k`.
#[derive(Debug)]
pub(crate) struct Numbers {
    pub(crate) lake: DeltaLake,
    pub(crate) table: TableName,
}

impl Numbers {
    /// Creates the table with some files of some rows.
    pub(crate) fn create(folder: &Path, files: i64, rows_per_file: i64) -> Self {
        Self::create_with(folder, files, rows_per_file, &[])
    }

    /// Creates the table with properties.
    pub(crate) fn create_with(
        folder: &Path,
        files: i64,
        rows_per_file: i64,
        properties: &[(&str, &str)],
    ) -> Self {
        let mut lake = empty_lake();
        let table = TableName::new("t");
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let new = NewTable {
            name: table.clone(),
            location: folder.join("t").to_string_lossy().into_owned(),
            schema: Self::rows(0, 0).schema(),
            properties: properties.iter().map(own).collect::<BTreeMap<_, _>>(),
            ..NewTable::default()
        };
        let file = |file| vec![Self::rows(file * rows_per_file, (file + 1) * rows_per_file)];
        let created = lake.create_table(new, (0..files).map(file).collect(), None, NOW);
        assert_eq!(runtime(created).expect("a new table"), 0);
        Self { lake, table }
    }

    /// Makes rows with the keys `from..to`.
    pub(crate) fn rows(from: i64, to: i64) -> RecordBatch {
        let column = |value: fn(i64) -> i64| {
            Arc::new(Int64Array::from_iter_values((from..to).map(value))) as ArrayRef
        };
        RecordBatch::try_from_iter([
            ("k", column(|k| k)),
            ("v", column(|k| k % 10)),
            ("w", column(|k| 1_000 - k)),
        ])
        .expect("columns of one length")
    }

    /// Opens the same table as another process would.
    pub(crate) fn second_writer(&self) -> DeltaLake {
        let mut lake = empty_lake();
        let location = self.lake.location(&self.table).expect("the table").to_string();
        lake.add_table(self.table.as_str(), &location).expect("a URL");
        lake
    }

    /// Returns the keys of all rows, sorted.
    #[track_caller]
    pub(crate) fn keys(&self) -> Vec<i64> {
        keys_of(&self.lake, "k", &self.table)
    }
}

/// Settings of an OPTIMIZE whose files are as small as can be.
pub(crate) fn options(full: bool, file_size: u64) -> OptimizeOptions {
    OptimizeOptions {
        full,
        default_file_size: Bytes(file_size).into(),
        settings: ClusteringSettings::default(),
        now: NOW,
    }
}

/// Returns a column of whole numbers, sorted.
#[track_caller]
pub(super) fn keys_of(lake: &DeltaLake, column: &str, table: &TableName) -> Vec<i64> {
    let sql = format!("SELECT {column} FROM `{table}` ORDER BY 1");
    let mut session = lake.session();
    let answer = runtime(session.run(&sql)).expect("the table can be read");
    let column =
        |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    answer.batches.iter().flat_map(column).collect()
}

/// Returns how many rows a table has and what a column of whole numbers sums to.
#[track_caller]
pub(crate) fn count_and_sum(lake: &DeltaLake, column: &str, table: &TableName) -> (usize, i64) {
    let keys = keys_of(lake, column, table);
    (keys.len(), keys.iter().sum())
}

/// Reads the commits of a table's folder from the files, oldest first.
#[track_caller]
pub(crate) fn read_commits(table: &Path) -> Vec<Vec<Action>> {
    let text = |version: usize| {
        fs::read_to_string(table.join("_delta_log").join(format!("{version:020}.json"))).ok()
    };
    let commits = (0..).map_while(text);
    commits.map(|text| Action::parse_commit(&text).expect("a Delta commit")).collect()
}

/// Changes the actions of a table's first version, each given by its name and body.
pub(crate) fn change_first_version(table: &Path, change: impl Fn(&str, &mut Value)) {
    let path = table.join("_delta_log").join(format!("{:020}.json", 0));
    let text = fs::read_to_string(&path).expect("a first version");
    let line = |line: &str| {
        let mut action: Value = serde_json::from_str(line).expect("JSON");
        for (name, body) in action.as_object_mut().expect("an action") {
            change(name, body);
        }
        format!("{action}\n")
    };
    let changed: String = text.lines().map(line).collect();
    fs::write(path, changed).expect("a writable log");
}

/// Returns one commit of a table.
#[track_caller]
pub(crate) fn commits(table: &Path, version: usize) -> Vec<Action> {
    let mut all = read_commits(table);
    assert!(version < all.len(), "version {version} of {}", all.len());
    all.swap_remove(version)
}

/// Returns the files that a commit adds.
pub(crate) fn adds(commit: &[Action]) -> Vec<&AddFile> {
    let mut found = Vec::new();
    for action in commit {
        if let Action::Add(add) = action {
            found.push(&**add);
        }
    }
    found
}

/// Returns the files that a commit removes.
pub(crate) fn removes(commit: &[Action]) -> Vec<&RemoveFile> {
    let mut found = Vec::new();
    for action in commit {
        if let Action::Remove(remove) = action {
            found.push(&**remove);
        }
    }
    found
}

/// Returns the columns that a commit's clustering domain lists, as JSON.
#[track_caller]
pub(crate) fn clustering_columns(commit: &[Action]) -> Value {
    let domain = commit.iter().find_map(|action| match action {
        Action::DomainMetadata(domain) => Some(domain),
        _ => None,
    });
    let domain = domain.expect("the clustering domain");
    assert_eq!((domain.domain.as_str(), domain.removed), ("delta.clustering", false));
    let configuration: Value = serde_json::from_str(&domain.configuration).expect("JSON");
    configuration["clusteringColumns"].clone()
}

/// Lists the files of a table's folder, or of its log's, sorted.
pub(crate) fn files_of(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "_delta_log");
    names.sort();
    names
}
