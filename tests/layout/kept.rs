//! Tables with features that a rewrite keeps: what the log says afterwards, and that no row changed.

use std::path::Path;

use lakebed_layout::action::{Action, AddFile};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    Numbers, adds, change_first_version, clustered_table, clustering_columns, lakebed,
    read_commits, removes, rows, runtime, sql,
};

const ENABLED: [&str; 5] =
    ["appendOnly", "invariants", "clustering", "domainMetadata", "inCommitTimestamp"];

/// Time of each version by the table's own account; it must be in the first action.
#[track_caller]
fn in_commit_timestamps(folder: &Path) -> Vec<i64> {
    let first = |commit: Vec<Action>| {
        let first: Value = serde_json::from_str(&commit[0].to_line()).unwrap();
        first["commitInfo"]["inCommitTimestamp"].as_i64().expect("a time in the first action")
    };
    read_commits(&folder.join("t")).into_iter().map(first).collect()
}

#[track_caller]
fn check_in_commit_timestamps(first: i64) -> Vec<i64> {
    let folder = tempfile::tempdir().unwrap();
    let numbers = Numbers::create(folder.path(), 4, 100);
    change_first_version(&folder.path().join("t"), |name, action| match name {
        "commitInfo" => action["inCommitTimestamp"] = json!(first),
        "protocol" => {
            *action =
                json!({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ENABLED});
        }
        "metaData" => action["configuration"]["delta.enableInCommitTimestamps"] = json!("true"),
        _ => {}
    });
    let statements = ["--lake", ".", "sql", "ALTER TABLE t CLUSTER BY (v, w)", "OPTIMIZE t"];
    lakebed(folder.path(), &statements).succeeded();
    let now = lakebed_model::Instant::from_epoch_ms(1);
    runtime(numbers.lake.append(&numbers.table, vec![Numbers::rows(400, 500)], now)).unwrap();
    lakebed(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t"]).succeeded();
    assert_eq!(numbers.keys(), (0..500).collect::<Vec<i64>>());
    in_commit_timestamps(folder.path())
}

#[test]
fn in_commit_timestamps_rise_even_after_a_version_from_the_future() {
    let far = 9_000_000_000_000;
    assert_eq!(check_in_commit_timestamps(far), (far..=far + 4).collect::<Vec<i64>>());
}

#[test]
fn in_commit_timestamps_are_the_times_of_the_attempts() {
    let times = check_in_commit_timestamps(1_000);
    assert_eq!((times.len(), times[0]), (5, 1_000));
    assert!(times[1] > 1_700_000_000_000, "the clock of the command: {times:?}");
    assert_eq!(times[3], times[2] + 1, "an append that claims to be of 1970");
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
}

/// The statistics of a new file.
#[track_caller]
fn stats(add: &AddFile) -> Value {
    serde_json::from_str(add.stats.as_deref().expect("statistics")).expect("JSON")
}

/// Every commit of the table's folder, from its log.
#[track_caller]
pub(super) fn last_commit(lake: &TempDir, table: &str) -> Vec<Action> {
    read_commits(&lake.path().join(table)).pop().expect("a commit")
}

/// Runs statements on a copy of a table of Spark's, and asserts that its rows are the same before,
/// after, and at each older version; returns the lake.
#[track_caller]
fn check_kept(table: &str, statements: &[&str]) -> TempDir {
    let lake = clustered_table(table);
    let before = rows(&lake, table);
    assert!(!before.is_empty());
    let versions = read_commits(&lake.path().join(table)).len();
    sql(&lake, statements).succeeded();
    assert_eq!(rows(&lake, table), before, "rows after {statements:?}");
    let commits = read_commits(&lake.path().join(table));
    for commit in &commits[versions..] {
        for action in commit {
            match action {
                Action::Add(add) => assert!(!add.data_change, "{add:?}"),
                Action::Remove(remove) => assert!(!remove.data_change, "{remove:?}"),
                Action::Metadata(_) => panic!("a rewrite leaves the metadata alone"),
                Action::Other(name, _) => panic!("no action `{name}` belongs to a rewrite"),
                _ => {}
            }
        }
    }
    // What was the newest version before is still readable.
    let log = lake.path().join(table).join("_delta_log");
    for version in versions..commits.len() {
        std::fs::remove_file(log.join(format!("{version:020}.json"))).unwrap();
    }
    assert_eq!(rows(&lake, table), before, "the version before");
    for (version, commit) in commits.iter().enumerate().skip(versions) {
        let path = log.join(format!("{version:020}.json"));
        std::fs::write(path, Action::render_commit(commit)).unwrap();
    }
    lake
}

#[test]
fn column_mapped_table_is_written_with_physical_names() {
    let table = "column-mapping";
    let lake = check_kept(table, &["OPTIMIZE `column-mapping`"]);
    let optimize = last_commit(&lake, table);
    assert_eq!(
        (removes(&optimize).len(), adds(&optimize).len()),
        (2, 1),
        "the renamed key is stale"
    );
    let add = adds(&optimize)[0];
    assert_eq!(add.tag("ZCUBE_ZORDER_BY"), Some(r#"["buyer_id"]"#), "tags have logical names");
    let stats = stats(add);
    assert_eq!(stats["numRecords"], 2_000);
    let key = "col-a7b705f1-9522-4cb5-9aad-cdd965974eea";
    assert_eq!((&stats["minValues"][key], &stats["maxValues"][key]), (&json!(0), &json!(4_999)));
    for side in ["minValues", "maxValues", "nullCount"] {
        let names = stats[side].as_object().expect("an object");
        assert!(names.len() == 7 && names.keys().all(|name| name.starts_with("col-")), "{stats}");
    }
    let lake = check_kept(table, &["OPTIMIZE `column-mapping` FULL"]);
    assert_eq!(removes(&last_commit(&lake, table)).len(), 3);
}

#[test]
fn clustering_columns_of_a_mapped_table_are_kept_by_physical_name() {
    let table = "column-mapping";
    let statements = [
        "ALTER TABLE `column-mapping` CLUSTER BY (order_date, buyer_id)",
        "OPTIMIZE `column-mapping` FULL",
    ];
    let lake = check_kept(table, &statements);
    let commits = read_commits(&lake.path().join(table));
    let expected = json!([
        ["col-de92bb61-f5b0-4658-9225-00b6a8e64df4"],
        ["col-a7b705f1-9522-4cb5-9aad-cdd965974eea"],
    ]);
    assert_eq!(clustering_columns(&commits[5]), expected);
    let detail = sql(&lake, &["DESCRIBE DETAIL `column-mapping`"]).json();
    assert_eq!(detail["clusteringColumns"], json!(["order_date", "buyer_id"]));
    let add = adds(&commits[6])[0];
    assert_eq!(add.tag("ZCUBE_ZORDER_BY"), Some(r#"["order_date","buyer_id"]"#));
    let old_name = sql(&lake, &["ALTER TABLE `column-mapping` CLUSTER BY (customer_id)"]);
    assert!(old_name.failure().contains("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"));
}

/// Structs within structs, lists and maps, two of their columns renamed, found by field id only.
#[test]
fn table_mapped_by_id_keeps_nested_and_renamed_columns() {
    let table = "column-mapping-id";
    let statements = [
        "ALTER TABLE `column-mapping-id` CLUSTER BY (k, person.code)",
        "OPTIMIZE `column-mapping-id`",
    ];
    let lake = check_kept(table, &statements);
    let rows = rows(&lake, table);
    assert_eq!(rows.len(), 100);
    assert!(rows[1].contains(r#""code":99"#) && rows[1].contains("\"n1\""), "{}", rows[1]);
    let optimize = last_commit(&lake, table);
    let stats = stats(adds(&optimize)[0]);
    let bounds = |side: &str| -> Vec<i64> {
        let mut found: Vec<i64> = stats[side]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|value| match value {
                Value::Object(inner) => inner.values().filter_map(Value::as_i64).collect(),
                value => value.as_i64().into_iter().collect::<Vec<i64>>(),
            })
            .collect();
        found.sort_unstable();
        found
    };
    assert_eq!((bounds("minValues"), bounds("maxValues")), (vec![0, 1], vec![99, 99]));
    assert!(stats["nullCount"].as_object().unwrap().keys().all(|name| name.starts_with("col-")));
}

/// A file whose columns have no ids cannot be read by them: said, not read as nulls.
#[test]
fn file_without_field_ids_is_named() {
    let folder = tempfile::tempdir().unwrap();
    Numbers::create(folder.path(), 2, 10);
    change_first_version(&folder.path().join("t"), |name, action| match name {
        "protocol" => *action = json!({"minReaderVersion": 2, "minWriterVersion": 5}),
        "metaData" => {
            action["configuration"]["delta.columnMapping.mode"] = json!("id");
            let column = |id: u64, name: &str| {
                json!({"name": name, "type": "long", "nullable": true, "metadata": {
                    "delta.columnMapping.id": id, "delta.columnMapping.physicalName": name}})
            };
            let fields = [column(1, "k"), column(2, "v"), column(3, "w")];
            action["schemaString"] = json!(json!({"type": "struct", "fields": fields}).to_string());
        }
        _ => {}
    });
    let run = lakebed(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t"]);
    assert!(run.failure().contains("has no field ids"), "{}", run.stderr);
    assert_eq!(read_commits(&folder.path().join("t")).len(), 1);
}

/// Real timestamps of Spark's, continued.
#[test]
fn in_commit_timestamps_of_spark_are_continued() {
    let table = "in-commit-timestamps";
    let statements =
        ["ALTER TABLE `in-commit-timestamps` CLUSTER BY NONE", "OPTIMIZE `in-commit-timestamps`"];
    let lake = check_kept(table, &statements);
    let commits = read_commits(&lake.path().join(table));
    let times: Vec<i64> = commits[2..]
        .iter()
        .map(|commit| match commit.first() {
            Some(Action::CommitInfo(info)) => info["inCommitTimestamp"].as_i64().expect("a time"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(times.len(), 4);
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
}

/// Stored values are copied, not computed again: the table is append-only, has a change data feed, a
/// generated column, a constraint and a column that must not be null.
#[test]
fn generated_columns_and_constraints_do_not_bind_a_rewrite() {
    let lake = check_kept("generated", &["OPTIMIZE `generated`"]);
    let optimize = last_commit(&lake, "generated");
    assert_eq!((removes(&optimize).len(), adds(&optimize).len()), (2, 1));
    let rows = rows(&lake, "generated");
    assert!(rows[0].contains("2024-01-01"), "{}", rows[0]);
}

/// The high-water mark is in the schema, which a rewrite does not write.
#[test]
fn identity_columns_keep_their_values_and_their_mark() {
    let lake = check_kept("identity", &["OPTIMIZE `identity`"]);
    let stats = stats(adds(&last_commit(&lake, "identity"))[0]);
    assert_eq!((&stats["minValues"]["id"], &stats["maxValues"]["id"]), (&json!(10), &json!(205)));
}

/// New values would have to be computed or checked: refused by name, and nothing is written.
#[test]
fn new_values_for_columns_with_expressions_are_refused() {
    for (table, reason) in [
        (
            "generated",
            "failed to rewrite table `generated`: it has generated columns (day), which this engine cannot make for new rows",
        ),
        (
            "identity",
            "failed to rewrite table `identity`: it has identity columns (id), which this engine cannot make for new rows",
        ),
    ] {
        let lake = clustered_table(table);
        let mut opened = crate::support::empty_lake();
        opened.add_folder(lake.path()).unwrap();
        let name = lakebed_model::TableName::new(table);
        let now = lakebed_model::Instant::from_epoch_ms(1);
        let before = crate::support::files_of(&lake.path().join(table));
        let refused = runtime(opened.append(&name, vec![], now)).unwrap_err();
        assert_eq!(format!("failed to {refused}"), reason);
        assert_eq!(crate::support::files_of(&lake.path().join(table)), before);
    }
}

#[test]
fn change_data_feed_forbids_iterators_but_no_rearrangement() {
    let lake = check_kept(
        "generated",
        &["ALTER TABLE `generated` CLUSTER BY (id)", "OPTIMIZE `generated`"],
    );
    let arguments = ["--lake", ".", "compact", "generated", "--iterators", "ageoff='at','3600',"];
    let run = lakebed(lake.path(), &arguments);
    assert!(run.failure().contains("append-only"), "{}", run.stderr);
}

/// Files of the old types are rewritten as the new ones.
#[test]
fn widened_types_are_rewritten_as_the_table_has_them() {
    let lake = check_kept("type-widening", &["OPTIMIZE `type-widening`"]);
    let optimize = last_commit(&lake, "type-widening");
    assert_eq!((removes(&optimize).len(), adds(&optimize).len()), (2, 1));
    let stats = stats(adds(&optimize)[0]);
    let expected = json!({
        "numRecords": 80,
        "minValues": {
            "k": 0, "b": 0, "s": -100_039, "f": 0.0, "d": -48.75, "i": 0.0,
            "day": "2024-01-01T00:00:00.000", "st": {"x": 0},
        },
        "maxValues": {
            "k": 5_000_000_039u64, "b": 100_039, "s": 0, "f": 13.0, "d": 39004.8126, "i": 39_000.0,
            "day": "2024-06-01T01:02:03.457", "st": {"x": 7_000_000_039u64},
        },
        "nullCount": {"k": 0, "b": 0, "s": 0, "f": 0, "d": 0, "i": 0, "day": 0, "st": {"x": 0}},
    });
    assert_eq!(stats, expected);
    let sums = sql(&lake, &["SELECT sum(k), sum(d), max(day) FROM `type-widening` WHERE k < 100"]);
    assert_eq!(
        sums.succeeded().stdout.trim(),
        r#"{"sum(type-widening.k)":780,"sum(type-widening.d)":-975.0000,"max(type-widening.day)":"2024-02-09T00:00:00"}"#
    );
}

/// Every row keeps its id and version, through deletion vectors, an earlier rewrite of Spark's that
/// materialized them, and rows that never were rewritten; `rows.json` is what Spark says of them.
#[test]
fn tracked_rows_keep_their_ids_and_versions() {
    let table = "row-tracking";
    let statements =
        ["ALTER TABLE `row-tracking` CLUSTER BY (v, k)", "OPTIMIZE `row-tracking` FULL"];
    let lake = check_kept(table, &statements);
    let folder = lake.path().join(table);
    let optimize = last_commit(&lake, table);
    let added = adds(&optimize);
    assert_eq!((removes(&optimize).len(), added.len()), (2, 1));
    let Some(Action::CommitInfo(info)) = optimize.first() else { panic!("no commitInfo") };
    assert_eq!(info["tags"]["delta.rowTracking.preserved"], "true");
    assert_eq!((added[0].base_row_id, added[0].default_row_commit_version), (Some(177), Some(10)));
    assert_eq!(high_water_mark(&optimize), Some(260), "the file holds 84 rows");
    let stats = stats(added[0]);
    assert_eq!(stats["nullCount"], json!({"k": 0, "v": 0}), "no statistics of hidden columns");

    let hidden = hidden_columns(&folder);
    show_columns(&folder, added[0], &hidden);
    let [id, version] = hidden.map(|name| name.as_str().expect("a name").to_owned());
    let query = format!(
        "SELECT k, v, `{id}` AS row_id, `{version}` AS row_commit_version FROM shown ORDER BY `{id}`"
    );
    let shown = sql(&lake, &[&query]).json_lines();
    let expected = std::fs::read_to_string(folder.join("rows.json")).unwrap();
    let expected: Vec<Value> = serde_json::from_str(&expected).unwrap();
    assert_eq!(shown, expected);
}

/// The names of the columns that hold the ids and versions of rows.
#[track_caller]
pub(super) fn hidden_columns(folder: &Path) -> [Value; 2] {
    let commits = read_commits(folder);
    let configuration = commits
        .iter()
        .flatten()
        .find_map(|action| match action {
            Action::Metadata(metadata) => Some(metadata["configuration"].clone()),
            _ => None,
        })
        .expect("metadata");
    let name =
        |key: &str| configuration[format!("delta.rowTracking.materialized{key}ColumnName")].clone();
    [name("RowId"), name("RowCommitVersion")]
}

/// Makes a table `shown` of one file whose hidden columns are ordinary ones.
pub(super) fn show_columns(folder: &Path, file: &AddFile, hidden: &[Value; 2]) {
    let column = |name: &Value, data_type: &str| json!({"name": name, "type": data_type, "nullable": true, "metadata": {}});
    let fields = json!([
        column(&json!("k"), "long"),
        column(&json!("v"), "string"),
        column(&hidden[0], "long"),
        column(&hidden[1], "long"),
    ]);
    let schema = json!({"type": "struct", "fields": fields}).to_string();
    let log = folder.with_file_name("shown").join("_delta_log");
    std::fs::create_dir_all(&log).unwrap();
    std::fs::copy(folder.join(&file.path), log.with_file_name(&file.path)).unwrap();
    let plain = AddFile { base_row_id: None, default_row_commit_version: None, ..file.clone() };
    let lines = [
        json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}).to_string(),
        json!({"metaData": {
            "id": "shown", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
            "partitionColumns": [], "configuration": {}, "createdTime": 1,
        }})
        .to_string(),
        Action::Add(Box::new(plain)).to_line(),
    ];
    std::fs::write(log.join(format!("{:020}.json", 0)), lines.join("\n")).unwrap();
}

/// The highest row id that a commit says was given out.
#[track_caller]
pub(super) fn high_water_mark(commit: &[Action]) -> Option<i64> {
    let marks: Vec<i64> = commit
        .iter()
        .filter_map(|action| match action {
            Action::DomainMetadata(domain) => {
                lakebed_layout::row_id_high_water_mark(&domain.configuration)
            }
            _ => None,
        })
        .collect();
    assert!(marks.len() <= 1, "one action of the domain: {marks:?}");
    marks.first().copied()
}

/// Supported but not enabled: new files get new ids, and a second rewrite goes on from there.
#[test]
fn row_ids_are_given_out_where_row_tracking_is_only_supported() {
    let table = "row-tracking-supported";
    let lake = check_kept(table, &["OPTIMIZE `row-tracking-supported`"]);
    let optimize = last_commit(&lake, table);
    let Some(Action::CommitInfo(info)) = optimize.first() else { panic!("no commitInfo") };
    assert!(info["tags"].is_null());
    let added = adds(&optimize)[0];
    assert_eq!((added.base_row_id, added.default_row_commit_version), (Some(60), Some(3)));
    assert_eq!(high_water_mark(&optimize), Some(119));
    let statements = [
        "ALTER TABLE `row-tracking-supported` CLUSTER BY (v)",
        "OPTIMIZE `row-tracking-supported` FULL",
    ];
    sql(&lake, &statements).succeeded();
    let optimize = last_commit(&lake, table);
    assert_eq!(
        (adds(&optimize)[0].base_row_id, high_water_mark(&optimize)),
        (Some(120), Some(179))
    );
}

/// A table whose checkpoint is of the second form, with timestamps without a zone.
#[test]
fn table_with_a_v2_checkpoint_is_rewritten() {
    let lake = check_kept("v2-checkpoint", &["OPTIMIZE `v2-checkpoint`"]);
    let optimize = last_commit(&lake, "v2-checkpoint");
    assert_eq!(removes(&optimize).len(), 3);
    let stats = stats(adds(&optimize)[0]);
    assert_eq!(stats["minValues"]["t"], "2024-06-01T01:02:03.456");
    assert_eq!(stats["maxValues"]["t"], "2024-06-01T01:02:03.457");
}

/// An aggregation makes values, and rows without a past.
#[test]
fn aggregations_are_refused_where_values_or_rows_are_bound() {
    for (table, reason) in
        [("identity", "it has identity columns (id)"), ("row-tracking", "it tracks rows")]
    {
        let lake = clustered_table(table);
        let versions = read_commits(&lake.path().join(table)).len();
        let column = if table == "identity" { "id" } else { "k" };
        let iterators = format!(",'{column}'=MAX");
        let arguments =
            ["--lake", ".", "compact", table, "--iterators", &iterators, "--row-keys", "v"];
        let failure = lakebed(lake.path(), &arguments).failure();
        assert!(failure.starts_with("exit code 3") && failure.contains(reason), "{failure}");
        assert_eq!(read_commits(&lake.path().join(table)).len(), versions);
    }
}

/// Appended files have physical names, field ids and row ids as rewritten ones do.
#[test]
fn appends_keep_the_features_too() {
    for (table, count) in [
        ("column-mapping", 4_000),
        ("column-mapping-id", 100),
        ("row-tracking", 84),
        ("row-tracking-supported", 60),
        ("type-widening", 80),
    ] {
        let lake = clustered_table(table);
        let mut opened = crate::support::empty_lake();
        opened.add_folder(lake.path()).unwrap();
        let name = lakebed_model::TableName::new(table);
        let some = format!("SELECT * FROM `{table}` ORDER BY 1 LIMIT 5");
        let batches = runtime(opened.session().run(&some)).unwrap().batches;
        let now = lakebed_model::Instant::from_epoch_ms(1);
        runtime(opened.append(&name, batches, now)).unwrap();
        let appended = last_commit(&lake, table);
        let add = adds(&appended)[0];
        assert!(add.data_change && stats(add)["numRecords"] == 5);
        assert_eq!(add.base_row_id.is_some(), table.starts_with("row-tracking"), "{table}");
        assert_eq!(add.base_row_id.map(|base| base + 4), high_water_mark(&appended), "{table}");
        let before = rows(&lake, table);
        assert_eq!(before.len(), count + 5, "{table}");
        sql(&lake, &[&format!("OPTIMIZE `{table}`")]).succeeded();
        assert_eq!(rows(&lake, table), before, "{table}");
    }
}
