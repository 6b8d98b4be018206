//! Checkpoints of clustered tables hold what the log held, and log files go only when nobody needs
//! them. The logs are written by hand in the shapes of delta-spark.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use arrow::json::{LineDelimitedWriter, WriterBuilder, writer::LineDelimited};
use delta_kernel::{
    Engine,
    checkpoint::{CheckpointSpec, V2CheckpointConfig},
};
use lakebed_layout::{Lake, TableSnapshot};
use lakebed_model::TableName;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{DeltaLake, LakeOptions, kernel};

/// After every retention that a checkpoint counts from the machine's clock.
const FAR_MS: i64 = 4_102_444_800_000;
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// A table `t` whose log is written by hand.
struct Log {
    folder: TempDir,
    lake: DeltaLake,
    table: TableName,
}

impl Log {
    fn new(features: &[&str], properties: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("_delta_log")).unwrap();
        let mut lake = DeltaLake::new(LakeOptions::default()).unwrap();
        lake.add_table("t", &folder.path().to_string_lossy()).unwrap();
        let log = Self { folder, lake, table: TableName::new("t") };
        let field = json!({"name": "a", "type": "long", "nullable": true, "metadata": {}});
        let reader: Vec<&&str> =
            features.iter().filter(|f| matches!(**f, "deletionVectors" | "v2Checkpoint")).collect();
        let writer: Vec<&&str> = features.iter().chain(&["clustering", "domainMetadata"]).collect();
        log.commit(
            0,
            &[
                json!({"commitInfo": {"timestamp": 1, "operation": "CREATE TABLE"}}),
                json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
                    "readerFeatures": reader, "writerFeatures": writer}}),
                json!({"metaData": {"id": "00000000-0000-0000-0000-000000000000",
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": json!({"type": "struct", "fields": [field]}).to_string(),
                    "partitionColumns": [], "configuration": properties, "createdTime": 1}}),
                json!({"domainMetadata": {"domain": "delta.clustering", "removed": false,
                    "configuration": r#"{"clusteringColumns":[["a"]],"domainName":"delta.clustering"}"#}}),
            ],
        );
        log
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("_delta_log").join(name)
    }

    fn commit(&self, version: u64, actions: &[Value]) {
        let lines: Vec<String> = actions.iter().map(ToString::to_string).collect();
        fs::write(self.path(&commit(version)), lines.join("\n")).unwrap();
    }

    async fn snapshot(&self) -> TableSnapshot {
        self.lake.snapshot(&self.table).await.unwrap()
    }

    /// Takes a file of the log to a number of days ago.
    fn age(&self, name: &str, days: u32) {
        let now = UNIX_EPOCH + Duration::from_secs(1_796_000_000);
        let file = File::options().write(true).open(self.path(name)).unwrap();
        file.set_modified(now - DAY * days).unwrap();
    }

    fn names(&self) -> BTreeSet<String> {
        let all = |folder: &Path, prefix: &str| -> Vec<String> {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let files = entries.filter(|entry| entry.path().is_file());
            files.map(|e| format!("{prefix}{}", e.file_name().to_string_lossy())).collect()
        };
        let mut names: BTreeSet<String> = all(&self.path(""), "").into_iter().collect();
        names.extend(all(&self.path("_sidecars"), "_sidecars/"));
        names.remove("_last_checkpoint");
        names
    }

    /// The actions of a checkpoint, each as the JSON of its row without the columns that are null.
    fn checkpoint_rows(&self, version: u64) -> Vec<Value> {
        let file = File::open(self.path(&checkpoint(version))).unwrap();
        let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        let mut text = Vec::new();
        let mut writer: LineDelimitedWriter<_> =
            WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(&mut text);
        for batch in batches {
            writer.write(&batch.unwrap()).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        let lines = String::from_utf8(text).unwrap();
        let row = |line: &str| -> Value {
            let Value::Object(mut row) = serde_json::from_str(line).unwrap() else {
                panic!("a row is an object")
            };
            row.retain(|_, value| !value.is_null());
            Value::Object(row)
        };
        lines.lines().map(row).collect()
    }

    /// Writes a checkpoint whose file actions lie in a sidecar.
    async fn checkpoint_with_sidecar(&self, version: u64) {
        let location = self.lake.location(&self.table).unwrap().clone();
        let engine = self.lake.log_store(&self.table).unwrap().engine(None);
        let write = move |engine: &dyn Engine| {
            let hint = V2CheckpointConfig::WithSidecar { file_actions_per_sidecar_hint: Some(1) };
            let snapshot = kernel::snapshot(engine, kernel::folder(&location), version)?;
            snapshot.checkpoint(engine, Some(&CheckpointSpec::V2(hint))).map(|_| ())
        };
        kernel::blocking(engine, write).await.unwrap();
    }
}

fn commit(version: u64) -> String {
    format!("{version:020}.json")
}

fn checkpoint(version: u64) -> String {
    format!("{version:020}.checkpoint.parquet")
}

fn add(path: &str) -> Value {
    json!({"add": {"path": path, "partitionValues": {}, "size": 10, "modificationTime": 1,
        "dataChange": true, "stats": r#"{"numRecords":3,"minValues":{"a":1},"maxValues":{"a":9},"nullCount":{"a":0}}"#,
        "tags": {"ZCUBE_ID": "cube", "ZCUBE_ZORDER_BY": "[\"a\"]", "INSERTION_TIME": null},
        "clusteringProvider": "liquid"}})
}

fn vector(offset: Option<i32>) -> Value {
    let mut vector = json!({"storageType": "u", "pathOrInlineDv": "T>T)Ro7#1/ORp/D6&y/*",
        "sizeInBytes": 36, "cardinality": 2});
    if let Some(offset) = offset {
        vector["offset"] = json!(offset);
    }
    vector
}

fn with_vector(mut action: Value, offset: Option<i32>) -> Value {
    for body in action.as_object_mut().unwrap().values_mut() {
        body["deletionVector"] = vector(offset);
    }
    action
}

fn remove(path: &str) -> Value {
    json!({"remove": {"path": path, "deletionTimestamp": FAR_MS, "dataChange": true,
        "extendedFileMetadata": true, "partitionValues": {}, "size": 10,
        "tags": {"ZCUBE_ID": "cube"}}})
}

fn domain(name: &str, removed: bool) -> Value {
    json!({"domainMetadata": {"domain": name, "configuration": "{\"x\":1}", "removed": removed}})
}

fn transaction(version: i64) -> Value {
    json!({"txn": {"appId": "app", "version": version, "lastUpdated": FAR_MS}})
}

/// Vectors come and go in commits whose actions have no order; domains and transactions change.
fn eventful(features: &[&str]) -> Log {
    let log = Log::new(features, &json!({"delta.targetFileSize": "1mb"}));
    let first = [add("f1%20x"), add("f2"), add("f3"), add("f4"), transaction(7)];
    log.commit(1, &[&first[..], &[domain("lakebed.cuts", false), domain("gone", false)]].concat());
    // The new vector before the removal of the file without one, and the other way round.
    log.commit(
        2,
        &[
            with_vector(add("f1%20x"), None),
            remove("f1%20x"),
            remove("f2"),
            with_vector(add("f2"), Some(0)),
            domain("gone", true),
            transaction(8),
        ],
    );
    log.commit(
        3,
        &[with_vector(remove("f2"), Some(0)), with_vector(add("f2"), Some(40)), remove("f3")],
    );
    log
}

fn of_kind<'r>(rows: &'r [Value], kind: &str) -> Vec<&'r Value> {
    rows.iter().filter_map(|row| row.get(kind)).collect()
}

#[track_caller]
fn check_rows(rows: &[Value]) {
    let file = |row: &Value| -> (String, Value) {
        let vector = &row["deletionVector"];
        let vector = if vector.is_null() { json!("none") } else { vector["offset"].clone() };
        (row["path"].as_str().unwrap().to_owned(), vector)
    };
    let files = |kind| -> Vec<(String, Value)> {
        let mut files: Vec<_> = of_kind(rows, kind).into_iter().map(file).collect();
        files.sort_by_key(|(path, offset)| (path.clone(), offset.to_string()));
        files
    };
    let expected = |files: &[(&str, Value)]| -> Vec<(String, Value)> {
        files.iter().map(|(path, vector)| ((*path).to_owned(), vector.clone())).collect()
    };
    // A vector without an offset keeps none; a file without a vector has a null, no struct of nulls.
    let live = [("f1%20x", Value::Null), ("f2", json!(40)), ("f4", json!("none"))];
    assert_eq!(files("add"), expected(&live));
    let gone =
        [("f1%20x", json!("none")), ("f2", json!("none")), ("f2", json!(0)), ("f3", json!("none"))];
    assert_eq!(files("remove"), expected(&gone));
    for add in of_kind(rows, "add") {
        assert_eq!(add["clusteringProvider"], "liquid");
        assert_eq!(add["tags"]["ZCUBE_ZORDER_BY"], "[\"a\"]");
        let tags = add["tags"].as_object().unwrap();
        assert!(tags.contains_key("INSERTION_TIME"), "a tag without value: {tags:?}");
        let stats: Value = serde_json::from_str(add["stats"].as_str().unwrap()).unwrap();
        assert_eq!((&stats["numRecords"], &stats["maxValues"]["a"]), (&json!(3), &json!(9)));
    }
    let domains: BTreeSet<&str> =
        of_kind(rows, "domainMetadata").iter().map(|d| d["domain"].as_str().unwrap()).collect();
    assert_eq!(domains, ["delta.clustering", "lakebed.cuts"].into());
    let transactions = of_kind(rows, "txn");
    assert_eq!(transactions.len(), 1);
    assert_eq!(
        (&transactions[0]["version"], &transactions[0]["lastUpdated"]),
        (&json!(8), &json!(FAR_MS))
    );
    assert_eq!(of_kind(rows, "metaData")[0]["configuration"]["delta.targetFileSize"], "1mb");
    assert_eq!(of_kind(rows, "protocol")[0]["minWriterVersion"], 7);
}

#[track_caller]
fn check_same(one: &TableSnapshot, other: &TableSnapshot) {
    assert_eq!(one.version, other.version);
    assert_eq!(one.files, other.files);
    assert_eq!(one.protocol, other.protocol);
    assert_eq!(one.properties, other.properties);
    assert_eq!((&one.clustering, one.cluster_by()), (&other.clustering, vec!["a".to_owned()]));
}

/// Databricks' default for large tables is another than ours.
#[tokio::test(flavor = "multi_thread")]
async fn statistics_that_a_checkpoint_has_as_columns_only_are_read() {
    let properties = json!({"delta.checkpoint.writeStatsAsJson": "false",
        "delta.checkpoint.writeStatsAsStruct": "true"});
    let log = Log::new(&[], &properties);
    log.commit(1, &[add("f1"), add("f2")]);
    log.lake.checkpoint(&log.table).await.unwrap();
    for version in 0..2 {
        fs::remove_file(log.path(&commit(version))).unwrap();
    }
    log.commit(2, &[add("f3")]);
    let rows = log.checkpoint_rows(1);
    assert!(of_kind(&rows, "add").iter().all(|add| add["stats"].is_null()), "{rows:?}");
    let files = log.snapshot().await.files;
    assert_eq!(files.len(), 3);
    for file in &files {
        let stats: Value = serde_json::from_str(file.stats.as_deref().unwrap()).unwrap();
        assert_eq!((&stats["numRecords"], &stats["maxValues"]["a"]), (&json!(3), &json!(9)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_with_the_same_tags_share_them() {
    let log = Log::new(&[], &json!({}));
    let mut other = add("f3");
    other["add"]["tags"]["ZCUBE_ID"] = json!("another");
    log.commit(1, &[add("f1"), add("f2"), other]);
    let files = log.snapshot().await.files;
    let tags: Vec<_> = files.iter().map(|file| file.tags.as_deref().unwrap()).collect();
    assert!(std::ptr::eq(tags[0], tags[1]));
    assert_eq!(tags[2]["ZCUBE_ID"].as_deref(), Some("another"));
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoint_keeps_all_that_a_clustered_table_needs() {
    let log = eventful(&["deletionVectors"]);
    let before = log.snapshot().await;
    assert_eq!(before.files.len(), 3);
    assert_eq!(log.lake.checkpoint(&log.table).await.unwrap(), 3);
    check_rows(&log.checkpoint_rows(3));
    for version in 0..=3 {
        fs::remove_file(log.path(&commit(version))).unwrap();
    }
    check_same(&log.snapshot().await, &before);
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoint_of_a_checkpoint_keeps_it_too() {
    let log = eventful(&["deletionVectors"]);
    log.lake.checkpoint(&log.table).await.unwrap();
    for version in 0..=3 {
        fs::remove_file(log.path(&commit(version))).unwrap();
    }
    log.commit(4, &[json!({"commitInfo": {"timestamp": 1, "operation": "VACUUM START"}})]);
    assert_eq!(log.lake.checkpoint(&log.table).await.unwrap(), 4);
    check_rows(&log.checkpoint_rows(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn second_version_checkpoints_with_and_without_sidecars_keep_it_too() {
    for with_sidecars in [false, true] {
        let log = eventful(&["deletionVectors", "v2Checkpoint"]);
        let before = log.snapshot().await;
        if with_sidecars {
            log.checkpoint_with_sidecar(3).await;
            let rows = log.checkpoint_rows(3);
            assert!(!of_kind(&rows, "sidecar").is_empty() && of_kind(&rows, "add").is_empty());
        } else {
            log.lake.checkpoint(&log.table).await.unwrap();
            check_rows(&log.checkpoint_rows(3));
        }
        for version in 0..=3 {
            fs::remove_file(log.path(&commit(version))).unwrap();
        }
        check_same(&log.snapshot().await, &before);
    }
}

/// A log of 13 versions, the last of today, each older one three days older.
fn aging(features: &[&str], properties: &Value) -> Log {
    let log = Log::new(features, properties);
    for version in 1..=12 {
        log.commit(version, &[add(&format!("f{version}"))]);
    }
    log.age_commits();
    log
}

impl Log {
    fn age_commits(&self) {
        for version in 0..=12 {
            self.age(&commit(version), 3 * u32::try_from(12 - version).unwrap());
        }
    }

    async fn checkpoint_at(&self, version: u64) {
        self.lake.checkpoint_at(&self.table, version).await.unwrap();
    }

    /// The versions of which a commit is there.
    fn versions(&self) -> Vec<u64> {
        let number = |name: &String| name.strip_suffix(".json")?.parse().ok();
        self.names().iter().filter_map(number).collect()
    }
}

/// delta-io/delta#606 at first: the cut-off lies at version 2, and only the newest has a checkpoint.
#[tokio::test(flavor = "multi_thread")]
async fn log_is_cut_at_the_last_checkpoint_before_the_retention() {
    let log = aging(&[], &json!({}));
    log.checkpoint_at(12).await;
    assert_eq!(log.versions(), (0..=12).collect::<Vec<_>>(), "no checkpoint at or before 2");
    for version in [1, 2, 4] {
        log.checkpoint_at(version).await;
        log.age(&checkpoint(version), 40);
    }
    // Version 2 is 30 days old: the newest at the cut-off. Its checkpoint stays, 0 and 1 go.
    let before = log.snapshot().await;
    log.checkpoint_at(11).await;
    assert_eq!(log.versions(), (2..=12).collect::<Vec<_>>());
    let checkpoints = log.names().into_iter().filter(|name| name.contains("checkpoint"));
    assert_eq!(checkpoints.collect::<Vec<_>>(), [2, 4, 11, 12].map(checkpoint));
    check_same(&log.snapshot().await, &before);
}

#[tokio::test(flavor = "multi_thread")]
async fn log_stays_where_the_table_says_so_or_cannot_be_understood() {
    for properties in [
        json!({"delta.enableExpiredLogCleanup": "false"}),
        json!({"delta.logRetentionDuration": "interval 60 days"}),
        json!({"delta.logRetentionDuration": "a while"}),
        json!({"delta.requireCheckpointProtectionBeforeVersion": "5"}),
    ] {
        let log = aging(&[], &properties);
        log.checkpoint_at(1).await;
        log.checkpoint_at(12).await;
        assert_eq!(log.versions(), (0..=12).collect::<Vec<_>>(), "{properties}");
    }
    let log = aging(&[], &json!({"delta.logRetentionDuration": "interval 1 day"}));
    log.checkpoint_at(11).await;
    log.checkpoint_at(12).await;
    assert_eq!(log.versions(), [11, 12]);
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoint_that_is_cut_off_does_not_count() {
    let twin = aging(&[], &json!({}));
    twin.checkpoint_at(1).await;
    let whole = fs::read(twin.path(&checkpoint(1))).unwrap();
    let log = aging(&[], &json!({}));
    log.checkpoint_at(12).await;
    assert_eq!(log.versions().len(), 13);
    fs::write(log.path(&checkpoint(1)), &whole).unwrap();
    fs::write(log.path(&checkpoint(2)), &whole[..whole.len() / 2]).unwrap();
    log.checkpoint_at(12).await;
    assert_eq!(log.versions(), (1..=12).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn sidecar_goes_only_when_no_checkpoint_needs_it() {
    let log = aging(&["v2Checkpoint"], &json!({}));
    log.checkpoint_with_sidecar(1).await;
    let of_first: BTreeSet<String> = log.sidecars();
    log.checkpoint_with_sidecar(2).await;
    let in_use: BTreeSet<String> = log.sidecars().difference(&of_first).cloned().collect();
    fs::write(log.path("_sidecars/orphan.parquet"), "x").unwrap();
    fs::write(log.path("_sidecars/young.parquet"), "x").unwrap();
    for name in log.names() {
        if name.contains("checkpoint") || (name.contains("_sidecars") && !name.contains("young")) {
            log.age(&name, 35);
        }
    }
    assert!(!of_first.is_empty() && !in_use.is_empty());
    log.checkpoint_at(12).await;
    assert_eq!(log.versions(), (2..=12).collect::<Vec<_>>());
    let mut expected = in_use;
    expected.insert("_sidecars/young.parquet".to_owned());
    assert_eq!(log.sidecars(), expected);
    fs::remove_file(log.path(&checkpoint(12))).unwrap();
    fs::remove_file(log.path("_last_checkpoint")).unwrap();
    assert_eq!(log.snapshot().await.files.len(), 12, "read from the checkpoint with sidecars");
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoint_without_one_of_its_sidecars_does_not_count() {
    let log = aging(&["v2Checkpoint"], &json!({}));
    log.checkpoint_with_sidecar(2).await;
    let lost = log.sidecars().into_iter().next().unwrap();
    fs::remove_file(log.path(&lost)).unwrap();
    fs::remove_file(log.path("_last_checkpoint")).unwrap();
    for version in 3..=12 {
        // The kernel would start from the broken one.
        assert!(log.path(&commit(version)).exists());
    }
    fs::rename(log.path(&checkpoint(2)), log.path("aside")).unwrap();
    log.checkpoint_at(12).await;
    fs::rename(log.path("aside"), log.path(&checkpoint(2))).unwrap();
    log.checkpoint_at(12).await;
    assert_eq!(log.versions(), (0..=12).collect::<Vec<_>>());
}

impl Log {
    fn sidecars(&self) -> BTreeSet<String> {
        self.names().into_iter().filter(|name| name.starts_with("_sidecars/")).collect()
    }
}
