//! Bounds are bounds: a query that skips files by them finds every row that one without finds.

use std::{path::Path, sync::Arc};

use arrow::{
    array::{
        ArrayRef, BinaryArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
        Int32Array, Int64Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
    },
    datatypes::{DataType, Field, Fields},
};
use lakebed_lake::{DeltaLake, NewTable};
use lakebed_layout::action::AddFile;
use lakebed_model::{Instant, TableName};
use serde_json::{Value, json};

use crate::support::{adds, commits, empty_lake, lakebed, read_commits, runtime};

const NOW: Instant = Instant::from_epoch_ms(1_796_000_000_000);

/// What each file of the table holds in its three rows.
struct Awkward {
    d: [Option<f64>; 3],
    f: [Option<f32>; 3],
    /// Unscaled, of 38 digits with ten after the point.
    dec: [Option<i128>; 3],
    /// Microseconds.
    ts: [Option<i64>; 3],
    s: [Option<&'static str>; 3],
}

const LONG: &str = "ÄÖÜäöüßÄÖÜäöüßÄÖÜäöüßÄÖÜäöüßÄÖÜäöüß";

fn files() -> Vec<Awkward> {
    let file = |d, f, dec, ts, s| Awkward { d, f, dec, ts, s };
    vec![
        file(
            [Some(1.0), Some(9.0), None],
            [Some(1.0), Some(2.0), Some(3.0)],
            [Some(-100), Some(-1), None],
            [Some(1_704_070_983_456_789), None, None],
            [Some("a"), Some("b"), Some("zzz")],
        ),
        file(
            [Some(100.0), Some(f64::NAN), Some(-0.0)],
            [Some(f32::NAN), Some(-0.0), None],
            [Some(-9_999_999_999_999_999_999_999_999_999i128), Some(0), Some(5)],
            [Some(-1), Some(-1_001), Some(0)],
            [Some(LONG), None, Some("ÄÖÜ")],
        ),
        file(
            [Some(f64::NAN), None, Some(-f64::NAN)],
            [None, None, None],
            [Some(9_999_999_999_999_999_999_999_999_999i128), None, None],
            [None, None, None],
            [None, None, None],
        ),
        file(
            [Some(f64::INFINITY), Some(1.0), Some(0.0)],
            [Some(f32::INFINITY), Some(0.0), Some(-5.0)],
            [Some(12_345_678_901_234_567_890), Some(7), Some(8)],
            [Some(253_402_300_799_999_999), Some(1), Some(2)],
            [Some("\u{10ffff}\u{10ffff}"), Some(""), Some("x")],
        ),
        file(
            [Some(f64::NEG_INFINITY), Some(f64::NEG_INFINITY), Some(-3.5)],
            [Some(f32::NEG_INFINITY), Some(-7.0), Some(f32::MIN)],
            [Some(-5), Some(-4), Some(-3)],
            [Some(-3_786_825_600_000_001), Some(5), None],
            [Some("mid"), Some("middle"), Some("Mid")],
        ),
    ]
}

fn batch(file: &Awkward, number: i64) -> RecordBatch {
    let dec = Decimal128Array::from(file.dec.to_vec()).with_precision_and_scale(38, 10).unwrap();
    // Under the null struct stands a value that is no value of the table.
    let fields: Fields =
        vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Float64, true)]
            .into();
    let small = i32::try_from(number).unwrap();
    let x: ArrayRef = Arc::new(Int32Array::from(vec![Some(9_999), Some(small), None]));
    let y: ArrayRef = Arc::new(Float64Array::from(vec![-9_999.0, 1.5, 2.0]));
    let st = StructArray::new(fields, vec![x, y], Some(vec![false, true, true].into()));
    let ts = TimestampMicrosecondArray::from(file.ts.to_vec()).with_timezone("UTC");
    let columns: [(&str, ArrayRef); 9] = [
        ("k", Arc::new(Int64Array::from(vec![3 * number, 3 * number + 1, 3 * number + 2]))),
        ("d", Arc::new(Float64Array::from(file.d.to_vec()))),
        ("f", Arc::new(Float32Array::from(file.f.to_vec()))),
        ("dec", Arc::new(dec)),
        ("ts", Arc::new(ts)),
        ("s", Arc::new(StringArray::from(file.s.to_vec()))),
        ("st", Arc::new(st)),
        ("bin", Arc::new(BinaryArray::from_vec(vec![&[0, 255], &[128], &[]]))),
        ("day", Arc::new(Date32Array::from(vec![Some(-1), None, Some(19_000)]))),
    ];
    // Only what has nulls may be null, except that a table's columns usually may.
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .unwrap()
}

fn awkward_table(folder: &Path) -> DeltaLake {
    let mut lake = empty_lake();
    let batches: Vec<RecordBatch> =
        files().iter().zip(0..).map(|(file, number)| batch(file, number)).collect();
    let new = NewTable {
        name: TableName::new("t"),
        location: folder.join("t").to_string_lossy().into_owned(),
        schema: batches[0].schema(),
        properties: [("delta.targetFileSize".to_owned(), "4096".to_owned())].into(),
        ..NewTable::default()
    };
    let files = batches.into_iter().map(|batch| vec![batch]).collect();
    runtime(lake.create_table(new, files, None, NOW)).unwrap();
    lake
}

const PREDICATES: [&str; 34] = [
    "d > 250",
    "d >= 300",
    "d = 'NaN'",
    "d < -3",
    "d > 1e300",
    "d < -1e300",
    "d = 0.0",
    "d = -0.0",
    "d <= 0",
    "d IS NULL",
    "d BETWEEN 2 AND 10",
    "f > 2.5",
    "f < -6",
    "f = 0",
    "f IS NOT NULL",
    "dec < 0",
    "dec = -0.0000000001",
    "dec = 999999999999999999.9999999999",
    "dec <= -999999999999999999.9999999999",
    "dec > 1234567890",
    "ts > TIMESTAMP '2024-01-01T01:03:03.456500Z'",
    "ts = TIMESTAMP '2024-01-01T01:03:03.456789Z'",
    "ts < TIMESTAMP '1970-01-01T00:00:00Z'",
    "ts > TIMESTAMP '2200-12-31T23:59:59.999Z'",
    "ts < TIMESTAMP '1850-01-01T00:00:00Z'",
    "s LIKE 'a%'",
    "s > 'ÄÖÜäöüßÄÖÜäöüßÄÖÜäöüßÄÖÜäöüßÄ'",
    "s = 'ÄÖÜäöüßÄÖÜäöüßÄÖÜäöüßÄÖÜäöüßÄÖÜäöüß'",
    "s >= 'zz'",
    "s = ''",
    "st.x IS NULL",
    "st.x > 3",
    "st.y < 0",
    "day < DATE '1970-01-01'",
];

/// The keys of the rows that a predicate finds as a filter, and those for which it is true of all.
#[track_caller]
fn check_skipping(lake: &DeltaLake, when: &str) {
    let mut session = lake.session();
    let mut keys = |sql: &str| -> Vec<i64> {
        let answer = runtime(session.run(sql)).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let mut keys: Vec<i64> = answer
            .batches
            .iter()
            .flat_map(|batch| {
                use arrow::{array::AsArray, datatypes::Int64Type};
                batch.column(0).as_primitive::<Int64Type>().values().to_vec()
            })
            .collect();
        keys.sort_unstable();
        keys
    };
    for predicate in PREDICATES {
        let skipping = keys(&format!("SELECT k FROM t WHERE {predicate}"));
        let reading = keys(&format!(
            "SELECT sum(k) AS k FROM t GROUP BY k HAVING count(CASE WHEN {predicate} THEN 1 END) > 0"
        ));
        assert_eq!(skipping, reading, "{predicate} {when}");
    }
}

#[test]
fn skipping_finds_the_same_rows_as_reading_everything() {
    let folder = tempfile::tempdir().unwrap();
    let lake = awkward_table(folder.path());
    check_skipping(&lake, "as written");
    for keys in ["d", "dec", "ts", "s, d", "st.x, f, k", "day, d"] {
        let alter = format!("ALTER TABLE t CLUSTER BY ({keys})");
        let statements = ["--lake", ".", "sql", &alter, "OPTIMIZE t FULL"];
        lakebed(folder.path(), &statements).succeeded();
        check_skipping(&lake, &format!("clustered by {keys}"));
    }
}

fn stats(add: &AddFile) -> Value {
    serde_json::from_str(add.stats.as_deref().expect("statistics")).expect("JSON")
}

#[test]
fn children_of_a_null_struct_are_null_and_bound_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let lake = awkward_table(folder.path());
    let first = commits(&folder.path().join("t"), 0);
    let stats = stats(adds(&first)[2]);
    assert_eq!(stats["nullCount"]["st"], json!({"x": 2, "y": 1}));
    assert_eq!(stats["minValues"]["st"], json!({"x": 2, "y": 1.5}));
    assert_eq!(stats["maxValues"]["st"], json!({"x": 2, "y": 2.0}));
    drop(lake);
}

/// Properties decide which columns have statistics; the keys have them in any case.
#[test]
fn keys_have_statistics_beyond_the_indexed_columns() {
    for (properties, expected) in [
        (vec![("delta.dataSkippingNumIndexedCols", "1")], vec!["k"]),
        (vec![("delta.dataSkippingStatsColumns", "`st`.x,`day`")], vec!["day", "st"]),
        (vec![("delta.dataSkippingNumIndexedCols", "0")], vec![]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let lake = awkward_table(folder.path());
        lakebed(folder.path(), &["--lake", ".", "sql", "ALTER TABLE t CLUSTER BY (s)"]).succeeded();
        crate::support::change_first_version(&folder.path().join("t"), |name, action| {
            if name == "metaData" {
                for (property, value) in &properties {
                    action["configuration"][*property] = json!(value);
                }
            }
        });
        let rows = vec![batch(&files()[0], 9)];
        let table = TableName::new("t");
        let mut expected: Vec<&str> = expected.into_iter().chain(["s"]).collect();
        expected.sort_unstable();
        runtime(lake.append(&table, rows, NOW)).unwrap();
        lakebed(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t"]).succeeded();
        for commit in read_commits(&folder.path().join("t")).iter().skip(2) {
            for add in adds(commit) {
                let stats = stats(add);
                let named: Vec<&String> = stats["nullCount"].as_object().unwrap().keys().collect();
                assert_eq!(named, expected, "{properties:?}: {stats}");
            }
        }
    }
}

/// A column whose name holds a dot and a field of that path are two things.
#[test]
fn names_with_dots_are_not_confused_with_paths() {
    let folder = tempfile::tempdir().unwrap();
    let fields: Fields = vec![Field::new("z", DataType::Int64, true)].into();
    let inner: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let nested: ArrayRef = Arc::new(StructArray::new(fields, vec![inner], None));
    let dotted: ArrayRef = Arc::new(Int64Array::from(vec![70, 80]));
    let quoted: ArrayRef = Arc::new(Int64Array::from(vec![5, 6]));
    let columns = [("z", nested), ("z.z", dotted), ("q`t", quoted)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut lake = empty_lake();
    let new = NewTable {
        name: TableName::new("t"),
        location: folder.path().join("t").to_string_lossy().into_owned(),
        schema: batch.schema(),
        properties: [("delta.dataSkippingStatsColumns".to_owned(), "`z.z`,z.z,`q``t`".to_owned())]
            .into(),
        ..NewTable::default()
    };
    let files = vec![vec![batch.slice(0, 1)], vec![batch.slice(1, 1)]];
    runtime(lake.create_table(new, files, None, NOW)).unwrap();
    let statements =
        ["--lake", ".", "sql", "ALTER TABLE t CLUSTER BY (`z.z`, z.z, `q``t`)", "OPTIMIZE t"];
    lakebed(folder.path(), &statements).succeeded();
    let table = folder.path().join("t");
    let columns = crate::support::clustering_columns(&commits(&table, 1));
    assert_eq!(columns, json!([["z.z"], ["z", "z"], ["q`t"]]));
    let optimize = commits(&table, 2);
    let add = adds(&optimize)[0];
    assert_eq!(add.tag("ZCUBE_ZORDER_BY"), Some(r#"["`z.z`","z.z","`q``t`"]"#));
    let expected = json!({"z": {"z": 1}, "z.z": 70, "q`t": 5});
    assert_eq!(stats(add)["minValues"], expected);
    lakebed(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t"]).succeeded();
    assert_eq!(read_commits(&table).len(), 3, "clustered already");
}
