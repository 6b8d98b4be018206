//! A table of readings whose age no clock can change: of 1970, or of 2100.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch},
    datatypes::{DataType, Field, Schema},
};
use lakebed_lake::{DeltaLake, NewTable};
use lakebed_model::{Instant, TableName};
use tempfile::TempDir;

use crate::support::{Run, empty_lake, lakebed, runtime};

/// 2100-01-01, in seconds.
pub(super) const YOUNG: i64 = 4_102_444_800;
/// 1970-01-02, in seconds.
pub(super) const OLD: i64 = 86_400;

/// A lake with one table `readings`: `sensor`, `updated_at` (seconds), `q`.
#[derive(Debug)]
pub(super) struct Readings {
    folder: TempDir,
    pub(super) lake: DeltaLake,
    pub(super) table: TableName,
}

impl Readings {
    /// Creates the table with one file per list of rows.
    pub(super) fn create(files: &[&[(i64, i64, i64)]], properties: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut lake = empty_lake();
        let table = TableName::new("readings");
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let new = NewTable {
            name: table.clone(),
            location: folder.path().join("readings").to_string_lossy().into_owned(),
            schema: batch(&[]).schema(),
            properties: properties.iter().map(own).collect::<BTreeMap<_, _>>(),
            ..NewTable::default()
        };
        let files = files.iter().map(|rows| vec![batch(rows)]).collect();
        runtime(lake.create_table(new, files, None, Instant::from_epoch_ms(1))).unwrap();
        Self { folder, lake, table }
    }

    /// Three readings of sensor 1, two of sensor 2, one of sensor 3; those of 1970 are to go.
    pub(super) fn six() -> Self {
        let first = [(1, YOUNG, 10), (1, OLD, 100), (2, YOUNG, 5)];
        let second = [(1, YOUNG + 1, 20), (2, OLD, 50), (3, OLD, 7)];
        Self::create(&[&first, &second], &[])
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the table's folder.
    pub(super) fn table_path(&self) -> std::path::PathBuf {
        self.folder.path().join("readings")
    }

    /// Runs `compact` on the table.
    #[track_caller]
    pub(super) fn compact(&self, arguments: &[&str]) -> Run {
        let mut all = vec!["--lake", ".", "compact", "readings"];
        all.extend(arguments);
        lakebed(self.path(), &all)
    }

    /// Compacts by a chain in a file.
    #[track_caller]
    pub(super) fn compact_by(&self, chain: &str) -> Run {
        std::fs::write(self.path().join("chain.toml"), chain).unwrap();
        self.compact(&["--chain", "chain.toml"])
    }

    /// Returns all rows, sorted.
    #[track_caller]
    pub(super) fn rows(&self) -> Vec<(i64, i64, i64)> {
        let sql = "SELECT sensor, updated_at, q FROM readings ORDER BY 1, 2, 3";
        let run = lakebed(self.path(), &["--lake", ".", "--json", "sql", sql]);
        let number = |row: &serde_json::Value, name: &str| row[name].as_i64().expect("a number");
        let rows = run.json_lines();
        rows.iter()
            .map(|r| (number(r, "sensor"), number(r, "updated_at"), number(r, "q")))
            .collect()
    }
}

/// Makes rows of readings.
pub(super) fn batch(rows: &[(i64, i64, i64)]) -> RecordBatch {
    let fields = ["sensor", "updated_at", "q"].map(|name| Field::new(name, DataType::Int64, true));
    let column = |value: fn(&(i64, i64, i64)) -> i64| {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(value))) as ArrayRef
    };
    let columns = vec![column(|row| row.0), column(|row| row.1), column(|row| row.2)];
    RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns).unwrap()
}
