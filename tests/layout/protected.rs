//! Tables with features that a rewrite would break: refused by the feature's name.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{lakebed, read_commits, stable};

/// Writes a table of one version by hand.
fn table(folder: &Path, protocol: &Value, configuration: &Value, partition_columns: &Value) {
    let field = json!({"name": "a", "type": "long", "nullable": true, "metadata": {}});
    let schema = json!({"type": "struct", "fields": [field]}).to_string();
    let metadata = json!({"metaData": {
        "id": "00000000-0000-0000-0000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": partition_columns,
        "configuration": configuration,
        "createdTime": 1,
    }});
    let log = folder.join("t").join("_delta_log");
    std::fs::create_dir_all(&log).unwrap();
    let text = format!("{}\n{metadata}\n", json!({ "protocol": protocol }));
    std::fs::write(log.join(format!("{:020}.json", 0)), text).unwrap();
}

fn writer_features(features: &[&str]) -> Value {
    json!({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features})
}

/// Both statements that write are refused in the same words, and write nothing.
#[track_caller]
fn check(folder: &Path, reason: &str) {
    for statement in ["OPTIMIZE t", "ALTER TABLE t CLUSTER BY (a)"] {
        let run = lakebed(folder, &["--lake", ".", "sql", statement]);
        let expected = format!(
            "exit code 3\nerror: failed to rewrite table `t`: {reason}\n\
             help: leave this table to the engine that wrote it, or remove the feature there\n"
        );
        assert_eq!(stable(&run.failure(), folder), expected, "{statement}");
    }
    assert_eq!(read_commits(&folder.join("t")).len(), 1);
}

#[track_caller]
fn check_features(features: &[&str], configuration: &Value, named: &str) {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), &writer_features(features), configuration, &json!([]));
    let reason = format!("it uses table features this engine cannot keep: {named}");
    check(folder.path(), &reason);
}

/// Without the columns that keep the ids a rewrite would lose them.
#[test]
fn row_tracking_is_refused_where_ids_have_no_place() {
    let folder = tempfile::tempdir().unwrap();
    let on = json!({"delta.enableRowTracking": "true"});
    let protocol = writer_features(&["appendOnly", "domainMetadata", "rowTracking"]);
    table(folder.path(), &protocol, &on, &json!([]));
    check(
        folder.path(),
        "it tracks rows (delta.enableRowTracking) without naming the columns for their ids \
         (delta.rowTracking.materializedRowIdColumnName and …RowCommitVersionColumnName)",
    );
}

#[test]
fn legacy_table_can_be_clustered_and_read_afterwards() {
    for (reader, writer) in [(1, 2), (1, 4), (1, 5), (1, 6), (2, 5), (2, 6)] {
        let folder = tempfile::tempdir().unwrap();
        let legacy = json!({"minReaderVersion": reader, "minWriterVersion": writer});
        table(folder.path(), &legacy, &json!({}), &json!([]));
        for statement in ["ALTER TABLE t CLUSTER BY (a)", "OPTIMIZE t", "SELECT count(*) FROM t"] {
            lakebed(folder.path(), &["--lake", ".", "sql", statement]).succeeded();
        }
    }
}

#[test]
fn feature_nobody_knows_yet_is_refused() {
    check_features(
        &["clustering", "domainMetadata", "timeTravelAgency"],
        &json!({}),
        "timeTravelAgency",
    );
}

/// What cannot even be read is refused by name too, and trying again is not advised.
#[test]
fn reader_feature_nobody_knows_yet_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let features = json!(["timeTravelAgency"]);
    let protocol = json!({
        "minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": features, "writerFeatures": features,
    });
    table(folder.path(), &protocol, &json!({}), &json!([]));
    for statement in ["SELECT * FROM t", "OPTIMIZE t", "DESCRIBE DETAIL t"] {
        let run = lakebed(folder.path(), &["--lake", ".", "sql", statement]);
        let text = stable(&run.failure(), folder.path());
        let start = "exit code 3\nerror: failed to read table `t` at file://<folder>/t/: it uses table features this engine cannot read\n";
        assert!(text.starts_with(start) && text.contains("timeTravelAgency"), "{text}");
    }
}

#[test]
fn partitioned_table_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let legacy = json!({"minReaderVersion": 1, "minWriterVersion": 2});
    table(folder.path(), &legacy, &json!({}), &json!(["a"]));
    check(folder.path(), "it is partitioned by (a); a clustered table cannot be");
}

/// Without the time of the version before, the next one cannot be told to be later.
#[test]
fn in_commit_timestamps_are_refused_where_the_last_one_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let on = json!({"delta.enableInCommitTimestamps": "true"});
    let protocol = writer_features(&["appendOnly", "inCommitTimestamp"]);
    table(folder.path(), &protocol, &on, &json!([]));
    check(
        folder.path(),
        "its newest version has no inCommitTimestamp, although they are switched on (delta.enableInCommitTimestamps)",
    );
}
