//! What works in a folder works in a bucket.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use super::server::{Bucket, server};
use crate::support::{Run, lakebed, project, small_lake};

const NO_CHECK: &str = "SET spark.databricks.delta.retentionDurationCheck.enabled = false";
const ROWS: &str = "SELECT count(*) AS n, sum(k) AS k, sum(d) AS d, min(s) AS s FROM t";

/// The life of a table, and of one made from it.
const LIFE: [&[&str]; 27] = [
    &[
        "CREATE TABLE t (k BIGINT NOT NULL, d DECIMAL(12,3), s STRING, day DATE) CLUSTER BY (k, s) TBLPROPERTIES ('delta.checkpointInterval' = '4')",
    ],
    &[
        "INSERT INTO t SELECT x, x / 7, concat('s', x % 11), DATE '2026-01-01' FROM (SELECT unnest(generate_series(1, 2000)) AS x)",
    ],
    &["INSERT INTO t (k) VALUES (-1), (-2)"],
    &[ROWS],
    &["DELETE FROM t WHERE k = 5"],
    &["OPTIMIZE t"],
    &["OPTIMIZE t"],
    &["SELECT count(*) AS n FROM t VERSION AS OF 1"],
    &["ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"],
    &["DELETE FROM t WHERE k % 3 = 0"],
    &[ROWS],
    &["INSERT INTO t (k, s) VALUES (6000, 'late')"],
    &["DELETE FROM t WHERE k BETWEEN 100 AND 110"],
    &["OPTIMIZE t FULL"],
    &[ROWS],
    &["ALTER TABLE t CLUSTER BY (s)"],
    &["OPTIMIZE t FULL"],
    &["ANALYZE TABLE t COMPUTE STATISTICS"],
    &["CREATE TABLE `odd name` CLUSTER BY (k) AS SELECT k, s FROM t WHERE k < 100"],
    &["SELECT * FROM `odd name` ORDER BY k LIMIT 5"],
    &["DESCRIBE DETAIL t"],
    &["DESCRIBE HISTORY t"],
    &[NO_CHECK, "VACUUM t RETAIN 0 HOURS DRY RUN"],
    &[NO_CHECK, "VACUUM t RETAIN 0 HOURS"],
    &["VACUUM t"],
    &[ROWS],
    &["SELECT sum(k) AS n FROM t VERSION AS OF 1"],
];

/// Removes from an answer what differs from run to run.
fn plain(value: &mut Value) {
    const RANDOM: [&str; 9] =
        ["cube", "createdAt", "id", "lastModified", "location", "ms", "timestamp", "txnId", "path"];
    match value {
        Value::Object(fields) => {
            for name in RANDOM {
                fields.remove(name);
            }
            if let Some(files) = fields.get_mut("files").filter(|files| files.is_array()) {
                *files = files.as_array().map_or(0, Vec::len).into();
            }
            fields.values_mut().for_each(plain);
        }
        Value::Array(values) => values.iter_mut().for_each(plain),
        _ => {}
    }
}

fn outcome(run: &Run) -> (i32, Vec<Value>) {
    let mut lines: Vec<Value> = match run.code {
        0 => serde_json::Deserializer::from_str(&run.stdout)
            .into_iter()
            .map(|line| line.expect("JSON"))
            .collect(),
        _ => Vec::new(),
    };
    lines.iter_mut().for_each(plain);
    (run.code, lines)
}

#[test]
fn every_statement_says_in_a_bucket_what_it_says_in_a_folder() {
    let Some(server) = server("every_statement_says_in_a_bucket_what_it_says_in_a_folder") else {
        return;
    };
    let bucket = Bucket::create(&server);
    let folder = tempfile::tempdir().unwrap();
    for statements in LIFE {
        let mut arguments = vec!["--lake", ".", "--json", "sql"];
        arguments.extend(statements);
        let local = lakebed(folder.path(), &arguments);
        let remote = bucket.sql(statements);
        assert_eq!(outcome(&remote), outcome(&local), "{statements:?}\n{}", remote.stderr);
    }
    let gone = bucket.sql(&["SELECT sum(k) AS n FROM t VERSION AS OF 1"]);
    assert_eq!(gone.code, 2, "its files were vacuumed: {}", gone.stderr);
    let keys = bucket.keys("lake/t/");
    let logged: Vec<&String> = keys.iter().filter(|key| key.contains(".checkpoint.")).collect();
    assert!(!logged.is_empty() && keys.iter().any(|key| key.ends_with("_last_checkpoint")));
    assert_eq!(bucket.keys("lake/odd name/").len(), 2, "a commit and a file");
    assert!(!bucket.keys("").iter().any(|key| key.contains("put_if_absent")), "no trial stays");
}

#[test]
fn expired_log_files_go_and_the_rest_reads_the_same() {
    let Some(server) = server("expired_log_files_go_and_the_rest_reads_the_same") else { return };
    let bucket = Bucket::create(&server);
    let properties =
        "'delta.checkpointInterval' = '3', 'delta.logRetentionDuration' = 'interval 0 seconds'";
    let create = format!("CREATE TABLE t (k BIGINT) CLUSTER BY (k) TBLPROPERTIES ({properties})");
    bucket.sql(&[&create]).succeeded();
    let commits = || -> Vec<String> {
        let keys = bucket.keys("lake/t/_delta_log/").into_iter();
        let names = keys.filter_map(|key| Some(key.rsplit('/').next()?.to_owned()));
        names.filter(|name| name.ends_with(".json")).collect()
    };
    // Storage dates files by the second, and commits of one second are not told apart.
    let mut count = 0;
    while commits().len() > count {
        count += 1;
        assert!(count < 60, "nothing has expired");
        bucket.sql(&[&format!("INSERT INTO t VALUES ({count})")]).succeeded();
    }
    assert!(commits().contains(&format!("{count:020}.json")));
    let sum = bucket.sql(&["SELECT sum(k) AS k FROM t"]).json();
    assert_eq!(sum["k"], count * (count + 1) / 2);
}

/// Another writer's names: in the log they are URL-encoded once, in the bucket they are not.
#[test]
fn odd_characters_in_keys_survive_the_log() {
    let Some(server) = server("odd_characters_in_keys_survive_the_log") else { return };
    let bucket = Bucket::create(&server);
    let odd = ["a b.parquet", "p=ä ö/f%20g.parquet", "p=1%3A2/+&=@,;.parquet"];
    let place = format!("delta.`{}`", bucket.url("odd place/50%25 & more/t"));
    let root = "odd place/50% & more/t";
    bucket.sql(&[&format!("CREATE TABLE {place} (k BIGINT) CLUSTER BY (k)")]).succeeded();
    for (version, name) in (1_u32..).zip(odd) {
        bucket.sql(&[&format!("INSERT INTO {place} VALUES ({version})")]).succeeded();
        let commit = format!("{root}/_delta_log/{version:020}.json");
        let text = String::from_utf8(bucket.get(&commit)).unwrap();
        let written = text.split("\"path\":\"").nth(1).unwrap().split('"').next().unwrap();
        bucket.put(&format!("{root}/{name}"), &bucket.get(&format!("{root}/{written}")));
        bucket.put(&commit, text.replace(written, &super::server::encoded(name)).as_bytes());
    }
    let sum = || bucket.sql(&[&format!("SELECT sum(k) AS k FROM {place}")]).json()["k"].clone();
    assert_eq!(sum(), 6);
    // The files as they were named first belong to nobody.
    bucket.sql(&[NO_CHECK, &format!("VACUUM {place} RETAIN 0 HOURS")]).succeeded();
    let data = || -> BTreeSet<String> {
        let keys = bucket.keys(&format!("{root}/")).into_iter();
        let keys = keys.filter(|key| key.ends_with(".parquet"));
        keys.filter_map(|key| key.strip_prefix(&format!("{root}/")).map(ToOwned::to_owned))
            .collect()
    };
    assert_eq!(data(), BTreeSet::from(odd.map(ToOwned::to_owned)));
    assert_eq!(sum(), 6);
    bucket.sql(&[&format!("DELETE FROM {place} WHERE k = 2")]).succeeded();
    bucket.sql(&[&format!("OPTIMIZE {place} FULL")]).succeeded();
    assert_eq!(sum(), 4);
    bucket.sql(&[NO_CHECK, &format!("VACUUM {place} RETAIN 0 HOURS")]).succeeded();
    assert!(data().is_disjoint(&odd.map(ToOwned::to_owned).into()));
    assert_eq!(sum(), 4);
}

/// Copies a folder's files into a bucket.
fn upload(bucket: &Bucket, from: &Path, to: &str) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = format!("{to}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            upload(bucket, &entry.path(), &name);
        } else {
            bucket.put(&name, &fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn the_whole_road_runs_on_a_lake_in_a_bucket() {
    let Some(server) = server("the_whole_road_runs_on_a_lake_in_a_bucket") else { return };
    let bucket = Bucket::create(&server);
    for table in ["lineitem", "orders", "customer"] {
        upload(&bucket, &small_lake().join(table), &format!("lake/{table}"));
    }
    let log = project("examples/logs/w1").display().to_string();
    let plan = bucket.run(&["--json", "plan", &log, "--out", "plan.json"]).json();
    let actions = plan["actions"].as_array().unwrap().len();
    assert!(actions > 0, "{plan}");
    bucket.run(&["--json", "apply", "plan.json"]).succeeded();
    let clustered = bucket.sql(&["DESCRIBE DETAIL lineitem"]).json();
    let local = lakebed(
        bucket.folder.path(),
        &[
            "--lake",
            &small_lake().display().to_string(),
            "--json",
            "sql",
            "SELECT count(*) AS n, sum(l_orderkey) AS k FROM lineitem",
        ],
    );
    let remote = bucket.sql(&["SELECT count(*) AS n, sum(l_orderkey) AS k FROM lineitem"]);
    assert_eq!(remote.json(), local.json());
    let key = clustered["clusteringColumns"][0].as_str().unwrap_or("l_orderkey").to_owned();
    let explained = bucket.run(&[
        "--json",
        "explain",
        "lineitem",
        "--where",
        "l_orderkey < 100",
        "--under",
        &key,
    ]);
    explained.json();
    let compacted = bucket.run(&[
        "--json",
        "compact",
        "orders",
        "--iterators",
        "ageoff='o_orderdate','2592000'",
    ]);
    assert_eq!(compacted.code, 0, "{}", compacted.stderr);
    let plans = format!("SELECT count(*) AS n FROM delta.`{}`", bucket.url("lake/_lakebed/plans"));
    assert_eq!(bucket.sql(&[&plans]).json()["n"], 1);
    bucket.run(&["collect", &log, "--into", &bucket.url("lake")]).succeeded();
    let history =
        format!("SELECT count(*) AS n FROM delta.`{}`", bucket.url("lake/_lakebed/history"));
    assert_eq!(bucket.sql(&[&history]).json()["n"], 40);
}

#[test]
fn tables_of_the_configuration_may_lie_in_buckets_with_options_of_their_own() {
    let Some(server) =
        server("tables_of_the_configuration_may_lie_in_buckets_with_options_of_their_own")
    else {
        return;
    };
    let bucket = Bucket::create(&server);
    bucket
        .sql(&["CREATE TABLE t (k BIGINT) CLUSTER BY (k)", "INSERT INTO t VALUES (7)"])
        .succeeded();
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "[tables]\nseven = \"{}\"\n[storage]\naws_endpoint = \"http://127.0.0.1:1\"\n\
         [storage.\"s3://{}\"]\naws_endpoint = \"{server}\"\n\
         aws_access_key_id = \"testing\"\naws_secret_access_key = \"testing\"\n",
        bucket.url("lake/t"),
        bucket.name
    );
    fs::write(folder.path().join("lakebed.toml"), text).unwrap();
    let run = lakebed(folder.path(), &["--json", "sql", "SELECT k FROM seven"]);
    assert_eq!(run.json()["k"], 7);
}
