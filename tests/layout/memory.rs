//! Tables larger than memory, and Ctrl-C: both leave the rows as they were.

use std::{collections::BTreeSet, fs, path::Path, process::Stdio, time::Duration};

use serde_json::Value;

use crate::support::{command_line, files_of, lakebed, lakebed_with, runtime};

const ROWS: u64 = 500_000;

/// A table of about 100 MB in memory, in no order.
fn create(folder: &Path, cluster_by: &str) {
    let query = format!(
        "CREATE TABLE t CLUSTER BY ({cluster_by}) TBLPROPERTIES ('delta.targetFileSize' = '2000000') AS \
         SELECT (x * 7919) % 500009 AS k, concat('name ', (x * 104729) % 300007) AS s, \
         CASE WHEN x % 10 = 0 THEN NULL ELSE x % 1000 END AS n, \
         repeat(md5(CAST(x AS STRING)), 3) AS payload \
         FROM (SELECT unnest(generate_series(1, {ROWS})) AS x)"
    );
    lakebed(folder, &["--lake", ".", "sql", &query]).succeeded();
}

/// Count and checksums of the rows, whatever their order.
fn digest(folder: &Path) -> Value {
    let query = "SELECT count(*) AS rows, sum(k) AS k, count(n) AS n, sum(length(payload)) AS bytes, \
                 bit_xor(xxhash64(k, s, n, payload)) AS hash FROM t";
    lakebed(folder, &["--lake", ".", "--json", "sql", query]).json_lines().remove(0)
}

/// How many files a range of each key reads.
fn files_read(folder: &Path, predicate: &str) -> u64 {
    let run = lakebed(folder, &["--lake", ".", "--json", "explain", "t", "--where", predicate]);
    let phases = run.json()["phases"].clone();
    let read = phases.as_array().into_iter().flatten().find(|phase| phase["basis"] == "measured");
    read.and_then(|phase| phase["files"].as_u64()).expect("a number of files")
}

#[track_caller]
fn check(cluster_by: &str, predicates: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), cluster_by);
    let before = digest(folder.path());
    let spill = folder.path().join("spill");
    fs::create_dir(&spill).unwrap();
    let limited = [
        "--lake",
        ".",
        "--memory-limit",
        "64MiB",
        "--spill-dir",
        "spill",
        "-v",
        "sql",
        "OPTIMIZE t FULL",
    ];
    let run = lakebed(folder.path(), &limited);
    run.succeeded();
    assert!(run.stderr.contains("rows do not fit in memory"), "{}", run.stderr);
    assert_eq!(fs::read_dir(&spill).unwrap().count(), 0, "nothing is left of what was spilled");
    assert_eq!(digest(folder.path()), before);
    let by_parts: Vec<u64> = predicates.iter().map(|p| files_read(folder.path(), p)).collect();

    let other = tempfile::tempdir().unwrap();
    create(other.path(), cluster_by);
    lakebed(other.path(), &["--lake", ".", "sql", "OPTIMIZE t FULL"]).succeeded();
    assert_eq!(digest(other.path()), before);
    let at_once: Vec<u64> = predicates.iter().map(|p| files_read(other.path(), p)).collect();
    for ((parts, once), predicate) in by_parts.iter().zip(&at_once).zip(predicates) {
        assert!(parts.abs_diff(*once) <= 1 + once / 4, "{predicate}: {parts} files, else {once}");
    }
}

#[test]
fn one_number_larger_than_memory() {
    check("k", &["k BETWEEN 1000 AND 2000", "k > 499000"]);
}

#[test]
fn one_text_larger_than_memory() {
    check("s", &["s BETWEEN 'name 20' AND 'name 21'", "s = 'name 77'"]);
}

#[test]
fn several_keys_with_nulls_larger_than_memory() {
    check("k, n", &["k BETWEEN 1000 AND 9000", "n IS NULL", "n BETWEEN 10 AND 30"]);
}

#[test]
fn spill_folder_that_cannot_be_used_is_an_error_of_the_input() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let run = lakebed(folder.path(), &["--lake", ".", "--spill-dir", "file/x", "sql", "SELECT 1"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
}

#[cfg(unix)]
#[test]
fn interrupted_optimize_leaves_the_table_and_its_folder_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), "k, n");
    let table = folder.path().join("t");
    let before: BTreeSet<String> = files_of(&table).into_iter().collect();
    let mut command = command_line(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t FULL"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child");
    runtime(async {
        // Some of many files are there: the rest takes longer than a signal.
        while files_of(&table).len() < before.len() + 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let mut signal = std::process::Command::new("kill");
    lakebed_with_signal(signal.args(["-INT", &child.id().to_string()]));
    let output = child.wait_with_output().expect("a child");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted"), "{stderr}");
    assert_eq!(files_of(&table).into_iter().collect::<BTreeSet<_>>(), before);
    lakebed_with(&mut command_line(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t FULL"]))
        .succeeded();
}

#[cfg(unix)]
fn lakebed_with_signal(command: &mut std::process::Command) {
    assert!(command.status().expect("a signal").success());
}
