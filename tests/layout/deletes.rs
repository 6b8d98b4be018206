//! DELETE on every feature that is kept: which rows stay, what they are called afterwards, and what
//! readers of changes are told.

use std::{collections::BTreeMap, fs, path::Path};

use lakebed_layout::action::{Action, AddFile};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::kept::{hidden_columns, high_water_mark, last_commit, show_columns};
use crate::support::{
    adds, change_first_version, clustered_table, read_commits, removes, rows, sql,
};

/// Each kind of table with a predicate that takes some rows of some of its files.
const TABLES: [(&str, &str); 14] = [
    ("one-key", "pmod(customer_id, 3) = 0"),
    ("two-keys", "pmod(order_id, 5) < 2"),
    ("none", "customer_id < 1000"),
    ("deletion-vectors", "pmod(order_id, 11) = 1"),
    ("column-mapping", "buyer_id < 1000 OR buyer_id IS NULL"),
    ("column-mapping-id", "k < 30 AND person.code > 50"),
    ("row-tracking", "pmod(k, 4) = 1"),
    ("row-tracking-supported", "pmod(k, 4) = 1"),
    ("in-commit-timestamps", "pmod(k, 4) = 1"),
    ("type-widening", "d < 0 OR i > 38000.5 OR st.x = 7"),
    ("identity", "id > 100"),
    ("v2-checkpoint", "k < 7"),
    ("change-data", "k < 5 OR v = 'v3'"),
    ("change-data-partitioned", "pmod(k, 3) = 0 OR d > DATE '2300-01-01'"),
];

/// A copy of a table that keeps deletion vectors or not, whoever wrote it.
fn prepared(table: &str, vectors: bool) -> TempDir {
    let lake = clustered_table(table);
    let name = "delta.enableDeletionVectors";
    if table == "change-data-partitioned" {
        // Statements of ours set no properties of partitioned tables.
        change_first_version(&lake.path().join(table), |kind, action| {
            if kind == "metaData" {
                action["configuration"][name] = json!(vectors.to_string());
            }
        });
    } else {
        let set = format!("ALTER TABLE `{table}` SET TBLPROPERTIES ('{name}' = '{vectors}')");
        sql(&lake, &[&set]).succeeded();
    }
    lake
}

fn selected(lake: &TempDir, query: &str) -> Vec<String> {
    let run = sql(lake, &[query]);
    let mut rows: Vec<String> = run.succeeded().stdout.lines().map(ToOwned::to_owned).collect();
    rows.sort_unstable();
    rows
}

/// Deletes, and asserts that exactly the right rows went, from this version only, and that readers of
/// changes are told.
#[track_caller]
fn check_delete(lake: &TempDir, table: &str, predicate: Option<&str>) -> Vec<Action> {
    let before = rows(lake, table);
    let (left, clause) = match predicate {
        Some(predicate) => {
            let query = format!("SELECT * FROM `{table}` WHERE ({predicate}) IS NOT TRUE");
            (selected(lake, &query), format!(" WHERE {predicate}"))
        }
        None => (Vec::new(), String::new()),
    };
    let version = read_commits(&lake.path().join(table)).len() - 1;
    let report = sql(lake, &[&format!("DELETE FROM `{table}`{clause}")]).json();
    assert_eq!(report["rows"], before.len() - left.len(), "{table}{clause}: {report}");
    assert!(before.len() > left.len(), "{table}{clause} deletes something");
    assert_eq!(rows(lake, table), left, "{table}{clause}");
    let query = format!("SELECT * FROM `{table}` VERSION AS OF {version}");
    assert_eq!(selected(lake, &query), before, "{table}{clause}: the version before");
    let commit = last_commit(lake, table);
    let changes = change_files(&commit);
    assert_eq!(report["change_files_added"], changes.len(), "{table}{clause}: {report}");
    let has_feed = table.starts_with("change-data");
    assert!(has_feed || changes.is_empty());
    if !changes.is_empty() {
        let mut gone = before;
        for row in &left {
            gone.remove(gone.binary_search(row).expect("a row that was there before"));
        }
        assert_eq!(shown_changes(lake, table, &changes), gone, "{table}{clause}: changes");
    }
    commit
}

/// The entries of files with changes.
fn change_files(commit: &[Action]) -> Vec<Value> {
    let change = |action: &Action| match action {
        Action::Other(name, body) if name == "cdc" => Some(body.clone()),
        _ => None,
    };
    commit.iter().filter_map(change).collect()
}

/// Reads files with changes as a table of their own, without the column that says what changed, which
/// must say the same of all of them.
#[track_caller]
fn shown_changes(lake: &TempDir, table: &str, changes: &[Value]) -> Vec<String> {
    let folder = lake.path().join(table);
    let mut metadata = read_commits(&folder)
        .into_iter()
        .flatten()
        .filter_map(|action| match action {
            Action::Metadata(metadata) => Some(metadata),
            _ => None,
        })
        .next_back()
        .expect("metadata");
    let mut schema: Value =
        serde_json::from_str(metadata["schemaString"].as_str().unwrap()).unwrap();
    let column =
        json!({"name": "_change_type", "type": "string", "nullable": true, "metadata": {}});
    schema["fields"].as_array_mut().unwrap().push(column);
    metadata["schemaString"] = json!(schema.to_string());
    let shown = lake.path().join("shown");
    let log = shown.join("_delta_log");
    let _ = fs::remove_dir_all(&shown);
    fs::create_dir_all(&log).unwrap();
    let mut lines = vec![
        json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}).to_string(),
        json!({ "metaData": metadata }).to_string(),
    ];
    for change in changes {
        let path = change["path"].as_str().unwrap();
        assert!(path.starts_with("_change_data/") && path.contains("/cdc-"), "{path}");
        assert_eq!(change["dataChange"], false);
        let stored = lakebed_layout::action::decoded_path(path);
        let target = shown.join(&stored);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(folder.join(&stored), target).unwrap();
        lines.push(
            json!({"add": {
                "path": path, "partitionValues": change["partitionValues"], "size": change["size"],
                "modificationTime": 1, "dataChange": true,
            }})
            .to_string(),
        );
    }
    fs::write(log.join(format!("{:020}.json", 0)), lines.join("\n")).unwrap();
    let kinds = selected(lake, "SELECT DISTINCT _change_type FROM shown");
    assert_eq!(kinds, [r#"{"_change_type":"delete"}"#]);
    let shown = selected(lake, "SELECT * FROM shown");
    shown.iter().map(|row| row.replace(r#","_change_type":"delete""#, "")).collect()
}

#[test]
fn delete_by_copying_takes_the_right_rows_of_every_kind_of_table() {
    for (table, predicate) in TABLES {
        let lake = prepared(table, false);
        let commit = check_delete(&lake, table, Some(predicate));
        assert!(adds(&commit).iter().all(|add| add.deletion_vector.is_none()), "{table}");
        assert!(adds(&commit).iter().all(|add| add.data_change), "{table}");
        if !table.starts_with("change-data-p") {
            let before = rows(&lake, table);
            sql(&lake, &[&format!("OPTIMIZE `{table}`")]).succeeded();
            assert_eq!(rows(&lake, table), before, "{table}");
        }
        check_delete(&lake, table, None);
    }
}

#[test]
fn delete_by_hiding_takes_the_right_rows_of_every_kind_of_table() {
    for (table, predicate) in TABLES {
        let lake = prepared(table, true);
        let commit = check_delete(&lake, table, Some(predicate));
        let hidden = adds(&commit);
        assert!(!hidden.is_empty() && hidden.iter().all(|add| add.deletion_vector.is_some()));
        check_delete(&lake, table, None);
    }
}

/// A file that goes whole is told by its removal alone, unless another change file makes readers look
/// nowhere else, or a vector had hidden rows of it before.
#[test]
fn whole_files_need_no_change_files_unless_others_do() {
    let lake = prepared("change-data", false);
    let commit = check_delete(&lake, "change-data", Some("k >= 20"));
    assert_eq!((change_files(&commit).len(), removes(&commit).len()), (0, 1));
    let lake = prepared("change-data", false);
    let commit = check_delete(&lake, "change-data", Some("k >= 19"));
    assert_eq!((change_files(&commit).len(), removes(&commit).len()), (1, 2));
    let lake = prepared("change-data", true);
    check_delete(&lake, "change-data", Some("k = 20"));
    let commit = check_delete(&lake, "change-data", Some("k >= 20"));
    assert_eq!((change_files(&commit).len(), removes(&commit).len()), (1, 1));
}

/// New files lie in their partition's folder, whose name is encoded once in storage and twice in the log.
#[test]
fn rows_of_a_partitioned_table_stay_in_their_partitions() {
    let table = "change-data-partitioned";
    let lake = prepared(table, false);
    let commit = check_delete(&lake, table, Some("k IN (1, 2, 3, 4)"));
    let mut places = BTreeMap::new();
    for add in adds(&commit) {
        assert!(lake.path().join(table).join(decoded(&add.path)).exists(), "{}", add.path);
        let folder = add.path.rsplit_once('/').unwrap().0.to_owned();
        places.insert(folder, add.partition_values["p"].clone());
    }
    let expected = [
        ("p=__HIVE_DEFAULT_PARTITION__/d=2024-01-01", None),
        ("p=b%20c/d=2024-01-01", Some("b c")),
        ("p=x%252Fy%253Az%2525/d=2024-01-01", Some("x/y:z%")),
    ];
    let expected: BTreeMap<String, Option<String>> = expected
        .into_iter()
        .map(|(folder, value)| (folder.to_owned(), value.map(ToOwned::to_owned)))
        .collect();
    assert_eq!(places, expected);
    assert_eq!(change_files(&commit).len(), 3);
    let nulls = selected(&lake, &format!("SELECT count(*) AS n FROM `{table}` WHERE p IS NULL"));
    assert_eq!(nulls, [r#"{"n":8}"#]);
    check_delete(&lake, table, Some("p <> 'a'"));
    let left = selected(&lake, &format!("SELECT DISTINCT p FROM `{table}`"));
    assert_eq!(left, [r#"{"p":"a"}"#, r#"{"p":null}"#], "a comparison with null is not true");
}

fn decoded(path: &str) -> String {
    lakebed_layout::action::decoded_path(path)
}

/// `rows.json` is what Spark says of the rows before.
#[test]
fn rows_that_stay_keep_their_ids_and_versions() {
    let table = "row-tracking";
    let lake = prepared(table, false);
    let commit = check_delete(&lake, table, Some("pmod(k, 4) = 1"));
    let Some(Action::CommitInfo(info)) = commit.first() else { panic!("no commitInfo") };
    assert_eq!(info["tags"]["delta.rowTracking.preserved"], "true");
    let folder = lake.path().join(table);
    let hidden = hidden_columns(&folder);
    let file: &AddFile = adds(&commit)[0];
    let version = i64::try_from(read_commits(&folder).len()).unwrap() - 1;
    assert_eq!(adds(&commit).len(), 1);
    assert_eq!(file.default_row_commit_version, Some(version));
    assert_eq!(
        file.base_row_id.map(|base| base + i64::try_from(file.rows().unwrap()).unwrap() - 1),
        high_water_mark(&commit)
    );
    show_columns(&folder, file, &hidden);
    let [id, version] = hidden.map(|name| name.as_str().expect("a name").to_owned());
    let query = format!(
        "SELECT k, v, `{id}` AS row_id, `{version}` AS row_commit_version FROM shown ORDER BY `{id}`"
    );
    let shown = sql(&lake, &[&query]).json_lines();
    let expected = fs::read_to_string(folder.join("rows.json")).unwrap();
    let expected: Vec<Value> = serde_json::from_str(&expected).unwrap();
    let stays = |row: &&Value| row["k"].as_i64().unwrap() % 4 != 1;
    let expected: Vec<Value> = expected.iter().filter(stays).cloned().collect();
    let of_file: Vec<Value> = expected.into_iter().filter(|row| shown.contains(row)).collect();
    assert_eq!(shown, of_file);
    assert_eq!(shown.len() as u64, file.rows().unwrap());
}

/// A file whose rows are hidden keeps the ids of its rows by keeping its first one.
#[test]
fn hidden_rows_take_no_new_ids() {
    let lake = prepared("row-tracking", true);
    let before: Vec<Action> = read_commits(&lake.path().join("row-tracking")).concat();
    let commit = check_delete(&lake, "row-tracking", Some("pmod(k, 4) = 1"));
    assert_eq!(high_water_mark(&commit), None);
    for add in adds(&commit) {
        let old = adds(&before).into_iter().rfind(|old| old.path == add.path).unwrap();
        assert_eq!(
            (add.base_row_id, add.default_row_commit_version),
            (old.base_row_id, old.default_row_commit_version)
        );
    }
}

/// Change files stay for the retention, then they go by their age.
#[test]
fn change_files_stay_for_the_retention_and_go_after_it() {
    let table = "change-data";
    let lake = prepared(table, false);
    let commit = check_delete(&lake, table, Some("k < 5"));
    let path = change_files(&commit)[0]["path"].as_str().unwrap().to_owned();
    let file = lake.path().join(table).join(&path);
    sql(&lake, &["VACUUM `change-data`"]).succeeded();
    assert!(file.exists(), "younger than seven days");
    let old = fs::File::options().write(true).open(&file).unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    old.set_modified(long_ago).unwrap();
    let report = sql(&lake, &["VACUUM `change-data`"]).json();
    assert!(report["files"].as_array().unwrap().contains(&json!(path)), "{report}");
    assert!(!file.exists());
    let left = rows(&lake, table);
    assert_eq!(left.len(), 35);
}

/// What went wrong halfway leaves no file.
#[test]
fn delete_that_is_refused_leaves_nothing() {
    let lake = prepared("change-data", false);
    let folder = lake.path().join("change-data");
    let before = all_files(&folder);
    for (statement, part) in [
        ("DELETE FROM `change-data` WHERE nope = 1", "No field named nope"),
        ("DELETE FROM `change-data` WHERE k / 0 = 1 AND", "Expected: an expression"),
        ("DELETE FROM `change-data` WHERE k IN (SELECT 1)", "DELTA_UNSUPPORTED_SUBQUERY"),
        ("DELETE FROM `change-data` WHERE rand() < 0.5", "DELTA_NON_DETERMINISTIC_FUNCTION"),
        ("DELETE FROM `change-data` WHERE k = 1 LIMIT 1", "end of expression"),
        ("DELETE FROM `change-data` WHERE sum(k) = 1", "caused by: "),
    ] {
        let failure = sql(&lake, &[statement]).failure();
        assert!(failure.starts_with("exit code 2\n") && failure.contains(part), "{failure}");
    }
    assert_eq!(all_files(&folder), before);
}

fn all_files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}
