//! Structs, arrays and maps as clustering columns, behind their switch.

use std::{path::Path, sync::Arc};

use arrow::{
    array::{ArrayRef, Int64Array, ListArray, MapBuilder, RecordBatch, StringBuilder, StructArray},
    array::{Int64Builder, StringArray},
    buffer::OffsetBuffer,
    datatypes::{DataType, Field, Fields},
};
use lakebed_lake::NewTable;
use lakebed_layout::action::AddFile;
use lakebed_model::{Instant, TableName};
use serde_json::Value;

use crate::support::{empty_lake, lakebed, runtime};

const NOW: Instant = Instant::from_epoch_ms(1_796_000_000_000);
const ROWS: i64 = 6_000;
const SWITCH: &str = "SET spark.microsoft.delta.clusteredTable.complexTypes.enabled = true";

/// Rows in no order: a struct of a number and a text, a list of two numbers, a map of one entry.
fn rows() -> RecordBatch {
    let numbers: Vec<i64> = (0..ROWS).map(|row| row * 7_919 % ROWS).collect();
    let n: ArrayRef = Arc::new(Int64Array::from(numbers.clone()));
    let fields: Fields =
        vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)].into();
    let texts: StringArray = numbers.iter().map(|n| Some(format!("t{}", n % 10))).collect();
    let nested = StructArray::new(fields, vec![Arc::clone(&n), Arc::new(texts)], None);
    let items: Vec<i64> = numbers.iter().flat_map(|n| [n / 100, n % 100]).collect();
    let item = Arc::new(Field::new("element", DataType::Int64, true));
    let offsets = OffsetBuffer::from_lengths(numbers.iter().map(|_| 2));
    let list = ListArray::new(item, offsets, Arc::new(Int64Array::from(items)), None);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    for number in &numbers {
        map.keys().append_value(format!("k{}", number % 7));
        map.values().append_value(*number);
        map.append(true).expect("a map");
    }
    let columns: [(&str, ArrayRef); 4] =
        [("n", n), ("s", Arc::new(nested)), ("l", Arc::new(list)), ("m", Arc::new(map.finish()))];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .expect("a batch")
}

fn create(folder: &Path) {
    let batch = rows();
    let new = NewTable {
        name: TableName::new("t"),
        location: folder.join("t").display().to_string(),
        schema: batch.schema(),
        ..NewTable::default()
    };
    runtime(empty_lake().create_table(new, vec![vec![batch]], Some(6), NOW)).expect("a table");
}

fn sql(folder: &Path, statements: &[&str]) -> crate::support::Run {
    lakebed(folder, &[&["--lake", ".", "--json", "sql"], statements].concat())
}

/// Every row as text, in the order of its number.
fn all_rows(folder: &Path) -> Vec<Value> {
    sql(folder, &["SELECT * FROM t ORDER BY n"]).json_lines()
}

fn live(folder: &Path) -> Vec<AddFile> {
    let mut lake = empty_lake();
    lake.add_table("t", &folder.join("t").display().to_string()).expect("a table");
    runtime(lakebed_layout::Lake::snapshot(&lake, &TableName::new("t"))).expect("a snapshot").files
}

/// Lower and upper bound of the struct's number in each file, ascending.
fn ranges_of_a(folder: &Path) -> Vec<(i64, i64)> {
    let range = |file: &AddFile| {
        let stats: Value =
            serde_json::from_str(file.stats.as_deref().expect("statistics")).unwrap();
        let side = |side: &str| stats[side]["s"]["a"].as_i64().expect("a bound");
        (side("minValues"), side("maxValues"))
    };
    let mut ranges: Vec<_> = live(folder).iter().map(range).collect();
    ranges.sort_unstable();
    ranges
}

#[test]
fn struct_is_a_key_whose_fields_have_narrow_ranges() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let before = all_rows(folder.path());
    let run = sql(folder.path(), &["ALTER TABLE t CLUSTER BY (s)"]);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("complexTypes.enabled = true"), "{}", run.stderr);
    sql(folder.path(), &[SWITCH, "ALTER TABLE t CLUSTER BY (s)", "OPTIMIZE t FULL"]).succeeded();
    assert_eq!(all_rows(folder.path()), before);
    let ranges = ranges_of_a(folder.path());
    assert!(ranges.len() > 3, "{ranges:?}");
    assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
    // The keys stay, and so does the order, whatever the switch says later.
    let again = sql(folder.path(), &["OPTIMIZE t"]).json();
    assert_eq!(again["bins"].as_array().unwrap().len(), 0);
    sql(folder.path(), &["ALTER TABLE t SET TBLPROPERTIES ('delta.checkpointInterval' = '7')"])
        .succeeded();
}

#[test]
fn arrays_and_maps_are_keys_among_others() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path());
    let before = all_rows(folder.path());
    for keys in ["l", "m", "l, n", "m, s.b, n"] {
        let alter = format!("ALTER TABLE t CLUSTER BY ({keys})");
        sql(folder.path(), &[SWITCH, &alter, "OPTIMIZE t FULL"]).succeeded();
        assert_eq!(all_rows(folder.path()), before, "{keys}");
        let detail = sql(folder.path(), &["DESCRIBE DETAIL t"]).json();
        assert_eq!(detail["clusteringColumns"].as_array().unwrap().len(), keys.split(", ").count());
    }
    // Rows of one first element lie together.
    sql(folder.path(), &[SWITCH, "ALTER TABLE t CLUSTER BY (l)", "OPTIMIZE t FULL"]).succeeded();
    let ranges = ranges_of_a(folder.path());
    assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
}

#[test]
fn what_has_no_order_stays_refused_within_complex_types() {
    let folder = tempfile::tempdir().unwrap();
    for column in ["STRUCT<a: BOOLEAN, b: INT>", "ARRAY<BINARY>", "MAP<STRING, BOOLEAN>"] {
        let create = format!("CREATE TABLE b (c {column}) CLUSTER BY (c)");
        let run = sql(folder.path(), &[SWITCH, &create]);
        assert_eq!(run.code, 2, "{column}: {}", run.stderr);
        assert!(run.stderr.contains("has no minimum and maximum"), "{}", run.stderr);
    }
    sql(
        folder.path(),
        &[SWITCH, "CREATE TABLE c (c STRUCT<a: INT, b: ARRAY<DATE>>) CLUSTER BY (c)"],
    )
    .succeeded();
}
