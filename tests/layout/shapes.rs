//! Files whose shape is not quite the table's: other nullability, columns that came later.

use std::{path::Path, sync::Arc};

use arrow::{
    array::{ArrayRef, Int64Array, ListArray, MapArray, RecordBatch, StringArray, StructArray},
    buffer::OffsetBuffer,
    datatypes::{DataType, Field, Fields},
};
use lakebed_lake::NewTable;
use lakebed_model::{Instant, TableName};
use serde_json::{Value, json};

use crate::support::{
    Numbers, adds, change_first_version, clustered_table, commits, empty_lake, files_of, lakebed,
    read_commits, runtime, sql,
};

const NOW: Instant = Instant::from_epoch_ms(1_796_000_000_000);

#[track_caller]
fn rows(folder: &Path) -> Vec<Value> {
    let run = lakebed(folder, &["--lake", ".", "--json", "sql", "SELECT * FROM t ORDER BY 1"]);
    run.json_lines()
}

/// Rows `from` and the one after it; the struct of the second is null.
fn nested(from: i64) -> RecordBatch {
    let fields: Fields = vec![Field::new("x", DataType::Int64, true)].into();
    let x: ArrayRef = Arc::new(Int64Array::from(vec![Some(from), None]));
    let m = StructArray::new(fields.clone(), vec![Arc::clone(&x)], Some(vec![true, false].into()));
    let of_structs = |values: Vec<i64>| {
        let values: ArrayRef = Arc::new(Int64Array::from(values));
        StructArray::new(fields.clone(), vec![values], None)
    };
    let item = Arc::new(Field::new("element", DataType::Struct(fields.clone()), true));
    let items: ArrayRef = Arc::new(of_structs(vec![1, 2, 3]));
    let list = ListArray::new(item, OffsetBuffer::from_lengths([3, 0]), items, None);
    let pair: Fields = vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Struct(fields.clone()), true),
    ]
    .into();
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let values: ArrayRef = Arc::new(of_structs(vec![7, 8]));
    let pairs = StructArray::new(pair.clone(), vec![keys, values], None);
    let entries = Arc::new(Field::new("key_value", DataType::Struct(pair), false));
    let map = MapArray::new(entries, OffsetBuffer::from_lengths([1, 1]), pairs, None, false);
    let columns: [(&str, ArrayRef); 4] = [
        ("k", Arc::new(Int64Array::from(vec![from, from + 1]))),
        ("m", Arc::new(m)),
        ("list", Arc::new(list)),
        ("map", Arc::new(map)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .unwrap()
}

/// Spark writes every nested field as optional, whatever the table's schema says (delta-rs#4586).
#[test]
fn nested_fields_that_must_not_be_null_are_optional_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut lake = empty_lake();
    let new = NewTable {
        name: TableName::new("t"),
        location: folder.path().join("t").to_string_lossy().into_owned(),
        schema: nested(0).schema(),
        properties: [].into(),
        ..NewTable::default()
    };
    let files = vec![vec![nested(0)], vec![nested(2)]];
    runtime(lake.create_table(new, files, None, NOW)).unwrap();
    change_first_version(&folder.path().join("t"), |name, action| {
        if name == "metaData" {
            let mut schema: Value =
                serde_json::from_str(action["schemaString"].as_str().unwrap()).unwrap();
            let strict = |field: &mut Value| field["nullable"] = json!(false);
            strict(&mut schema["fields"][1]["type"]["fields"][0]);
            strict(&mut schema["fields"][2]["type"]["elementType"]["fields"][0]);
            strict(&mut schema["fields"][3]["type"]["valueType"]["fields"][0]);
            action["schemaString"] = json!(schema.to_string());
        }
    });
    let before = rows(folder.path());
    assert_eq!((before.len(), &before[1]["m"]), (4, &Value::Null));
    let statements = ["--lake", ".", "sql", "ALTER TABLE t CLUSTER BY (m.x, k)", "OPTIMIZE t"];
    lakebed(folder.path(), &statements).succeeded();
    assert_eq!(rows(folder.path()), before);
    let optimize = commits(&folder.path().join("t"), 2);
    let stats = adds(&optimize)[0].stats.clone().unwrap();
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(
        (&stats["nullCount"]["m"]["x"], &stats["minValues"]["m"]["x"]),
        (&json!(2), &json!(0))
    );
}

/// Adds a column to a table of [`Numbers`] by a commit as another engine would write it.
fn add_column(folder: &Path, nullable: bool) {
    let log = folder.join("t").join("_delta_log");
    let first = std::fs::read_to_string(log.join(format!("{:020}.json", 0))).unwrap();
    let metadata = first.lines().find(|line| line.contains("\"metaData\"")).unwrap();
    let mut metadata: Value = serde_json::from_str(metadata).unwrap();
    let body = &mut metadata["metaData"];
    let mut schema: Value = serde_json::from_str(body["schemaString"].as_str().unwrap()).unwrap();
    let column = json!({"name": "later", "type": "string", "nullable": nullable, "metadata": {}});
    schema["fields"].as_array_mut().unwrap().push(column);
    body["schemaString"] = json!(schema.to_string());
    std::fs::write(log.join(format!("{:020}.json", 1)), format!("{metadata}\n")).unwrap();
}

#[test]
fn column_that_came_later_is_null_in_older_rows() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = Numbers::create(folder.path(), 2, 10);
    add_column(folder.path(), true);
    let old = Numbers::rows(20, 22);
    let later: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
    let columns = old.columns().iter().cloned().chain([later]);
    let names = ["k", "v", "w", "later"].into_iter();
    let batch = RecordBatch::try_from_iter(names.zip(columns)).unwrap();
    runtime(numbers.lake.append(&numbers.table, vec![batch], NOW)).unwrap();
    let before = rows(folder.path());
    lakebed(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t"]).succeeded();
    assert_eq!(rows(folder.path()), before);
    let optimize = commits(&folder.path().join("t"), 3);
    let stats: Value = serde_json::from_str(adds(&optimize)[0].stats.as_deref().unwrap()).unwrap();
    assert_eq!(
        (&stats["nullCount"]["later"], &stats["minValues"]["later"]),
        (&json!(20), &json!("x"))
    );
}

/// A table in a state that Delta's own ALTER does not allow: one clear error, and nothing is done.
#[test]
fn column_that_must_not_be_null_but_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    Numbers::create(folder.path(), 2, 10);
    add_column(folder.path(), false);
    let before = files_of(&folder.path().join("t"));
    let failure = lakebed(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t"]).failure();
    assert!(failure.contains("later"), "{failure}");
    assert_eq!(files_of(&folder.path().join("t")), before);
    assert_eq!(read_commits(&folder.path().join("t")).len(), 2);
}

/// Under column mapping a column of an old name is another column: what files hold of the dropped one
/// is neither shown nor carried over (databend#10020).
#[test]
fn column_dropped_and_added_again_starts_empty() {
    const TABLE: &str = "column-mapping";
    let lake = clustered_table(TABLE);
    let folder = lake.path().join(TABLE);
    let log = folder.join("_delta_log");
    let rename = std::fs::read_to_string(log.join(format!("{:020}.json", 3))).unwrap();
    let metadata = rename.lines().find(|line| line.contains("\"metaData\"")).unwrap();
    let mut metadata: Value = serde_json::from_str(metadata).unwrap();
    let body = &mut metadata["metaData"];
    let mut schema: Value = serde_json::from_str(body["schemaString"].as_str().unwrap()).unwrap();
    let score = schema["fields"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .find(|field| field["name"] == "score")
        .unwrap();
    score["metadata"] =
        json!({"delta.columnMapping.id": 8, "delta.columnMapping.physicalName": "col-new"});
    body["schemaString"] = json!(schema.to_string());
    body["configuration"]["delta.columnMapping.maxColumnId"] = json!("8");
    std::fs::write(log.join(format!("{:020}.json", 5)), format!("{metadata}\n")).unwrap();
    let count = |lake: &tempfile::TempDir| {
        let query = format!("SELECT count(*) AS rows, count(score) AS scores FROM `{TABLE}`");
        sql(lake, &[&query]).json_lines()
    };
    let expected = [json!({"rows": 4_000, "scores": 0})];
    assert_eq!(count(&lake), expected);
    sql(&lake, &["OPTIMIZE `column-mapping` FULL"]).succeeded();
    assert_eq!(count(&lake), expected);
    let optimize = commits(&folder, 6);
    let stats: Value = serde_json::from_str(adds(&optimize)[0].stats.as_deref().unwrap()).unwrap();
    assert_eq!(
        (&stats["nullCount"]["col-new"], &stats["numRecords"]),
        (&json!(4_000), &json!(4_000))
    );
    let old = "col-2fd2c9a6-06d9-4daf-9585-39eb99d55690";
    assert!(stats["nullCount"].get(old).is_none() && stats["minValues"].get(old).is_none());
}
