//! What of a history never leaves the tool, and what `--redact` keeps back.

use std::{fs, path::Path};

use crate::support::{Run, lakebed};

/// Constants, names of people and keys that stand in the logs below.
const SECRETS: [&str; 9] = [
    "MIIEsecret",
    "usr1",
    "ada.lovelace",
    "m1@x.test",
    "m2@x.test",
    "s3cr3t",
    "4711471147",
    "Hopper",
    "AKIAKEY",
];
/// Those that stand in texts which nobody could read, and in fields of people.
const NEVER_SHOWN: [&str; 4] = ["MIIEsecret", "usr1", "ada.lovelace", "Hopper"];

/// Peer case spark-snowflake#525: connector options with a key in a plan.
fn event_log() -> String {
    let event = |name: &str, fields: &str| {
        format!(
            "{{\"Event\":\"org.apache.spark.sql.execution.ui.SparkListener{name}\",{fields}}}\n"
        )
    };
    let options = "Map(sfUser -> usr1, pem_private_key -> MIIEsecret, dbtable -> t)";
    let save = format!(
        "SaveIntoDataSourceCommand net.snowflake.spark.DefaultSource, {options}, Overwrite"
    );
    let node = |name: &str, text: &str, children: &str, metadata: &str| {
        format!(
            "{{\"nodeName\":\"{name}\",\"simpleString\":\"{text}\",\"children\":[{children}],\
             \"metadata\":{{{metadata}}},\"metrics\":[]}}"
        )
    };
    let scan = node(
        "Scan parquet db.people",
        "FileScan parquet db.people[id#1,mail#2] Batched: true, Location: InMemoryFileIndex[s3a://AKIAKEY:s3cr3t@bucket/people]",
        "",
        "\"Location\":\"InMemoryFileIndex(1 paths)[s3a://AKIAKEY:s3cr3t@bucket/people]\",\
         \"PushedFilters\":\"[IsNotNull(mail), EqualTo(mail,m1@x.test)]\"",
    );
    let other = node("Scan parquet db.orders", "FileScan parquet db.orders[pid#3]", "", "");
    let join = node(
        "BroadcastHashJoin",
        "BroadcastHashJoin [id#1], [pid#3], Inner, BuildRight, false",
        &format!("{scan},{other}"),
        "",
    );
    let root = node(&format!("Execute {save}"), &format!("Execute {save}"), &join, "");
    let start = |id: u32, plan: &str| {
        event(
            "SQLExecutionStart",
            &format!(
                "\"executionId\":{id},\"rootExecutionId\":{id},\"description\":\"save at App.scala:12\",\
                 \"details\":\"for ada.lovelace\",\"physicalPlanDescription\":\"{save}\",\
                 \"sparkPlanInfo\":{plan},\"time\":{}",
                1_795_900_000_000_u64 + u64::from(id)
            ),
        )
    };
    let end = |id: u32, error: &str| {
        event(
            "SQLExecutionEnd",
            &format!("\"executionId\":{id},\"time\":1795900001000,\"errorMessage\":\"{error}\""),
        )
    };
    let first = "{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"3.5.0\"}\n";
    let user = "{\"Event\":\"SparkListenerApplicationStart\",\"App Name\":\"a\",\"App ID\":\"app-1\",\"Timestamp\":1,\"User\":\"ada.lovelace\"}\n";
    [
        first,
        user,
        &start(0, &root),
        &end(0, ""),
        &start(1, &join),
        &end(1, ""),
        &start(2, &join),
        &end(2, "no rights for ada.lovelace"),
    ]
    .concat()
}

fn plain_rows() -> String {
    [
        r#"{"ts":1795900000000,"user":"ada.lovelace","sql":"SELECT id FROM people -- for Hopper\nWHERE mail = 'm2@x.test' AND card = 4711471147"}"#,
        r#"{"ts":1795900000001,"dialect":"spark","sql":"SELECT p.id FROM people p JOIN orders o ON p.id = o.pid WHERE p.password = \"s3cr3t\""}"#,
        r#"{"ts":1795900000002,"sql":"SELECT 'm1@x.test' 's3cr3t' FROM WHERE Hopper usr1"}"#,
        r#"{"ts":1795900000003,"sql":"SELECT id FROM people WHERE mail = 'm1@x.test"}"#,
        r#"{"ts":1795900000004,"sql":"SELECT id FROM people WHERE usr1 MIIEsecret Hopper"}"#,
        r#"{"ts":1795900000005,"sql":"CREATE USER usr1 PASSWORD 's3cr3t'"}"#,
        r#"{"ts":"usr1","sql":"MIIEsecret"}"#,
        r#"{"ts":1795900000006,"user":"ada.lovelace","sql":"MIIEse"#,
    ]
    .join("\n")
}

const HISTORY: &str = "statement_id,executed_by,execution_status,start_time,statement_text,error_message\n\
    a,ada.lovelace,FINISHED,2026-11-29T10:00:00Z,\"SELECT id FROM people WHERE mail LIKE 'm1@x.test%'\",\n\
    b,ada.lovelace,FAILED,2026-11-29T10:00:00Z,SELECT 's3cr3t' FROM people,no rights for usr1\n\
    c,ada.lovelace\n";

/// Runs `collect` on the logs and returns all it wrote.
fn collect(folder: &Path, more: &[&str]) -> Vec<Run> {
    fs::write(folder.join("events"), event_log()).unwrap();
    fs::write(folder.join("rows.jsonl"), plain_rows()).unwrap();
    fs::write(folder.join("history.csv"), HISTORY).unwrap();
    fs::write(folder.join("unknown.csv"), "ada.lovelace,'m1@x.test',4711471147\nusr1,s3cr3t,1\n")
        .unwrap();
    let logs = ["events", "rows.jsonl", "history.csv"];
    let run = |logs: &[&str], options: &[&str]| {
        let arguments: Vec<&str> = ["collect"]
            .into_iter()
            .chain(logs.iter().copied())
            .chain(more.iter().copied())
            .chain(options.iter().copied())
            .collect();
        lakebed(folder, &arguments)
    };
    vec![
        run(&logs, &["-vv"]),
        run(&logs, &["-vv", "--json"]),
        run(&logs, &["--into", "lake"]),
        run(&["unknown.csv"], &[]),
        run(&["unknown.csv"], &["--json"]),
        run(&["unknown.csv"], &["--format", "databricks"]),
    ]
}

/// What the history table holds, as its own statements and as bytes.
fn stored(folder: &Path) -> String {
    let config = "[tables]\nrecords = \"lake/_lakebed/history\"\n";
    fs::write(folder.join("records.toml"), config).unwrap();
    let rows =
        lakebed(folder, &["--config", "records.toml", "--json", "sql", "SELECT * FROM records"]);
    let mut text = rows.succeeded().stdout.clone();
    let mut folders = vec![folder.join("lake")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                text.push_str(&String::from_utf8_lossy(&fs::read(path).unwrap()));
            }
        }
    }
    text
}

#[track_caller]
fn check_absent(secrets: &[&str], text: &str) {
    for secret in secrets {
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(secret)).collect();
        assert!(lines.is_empty(), "`{secret}` in {lines:#?}");
    }
}

#[test]
fn redacted_history_has_no_constant_and_no_name_in_any_output() {
    let folder = tempfile::tempdir().unwrap();
    let runs = collect(folder.path(), &["--redact"]);
    for run in &runs {
        check_absent(&SECRETS, &run.stdout);
        check_absent(&SECRETS, &run.stderr);
    }
    let stored = stored(folder.path());
    check_absent(&SECRETS, &stored);
    // What a plan needs is there.
    for kept in ["SELECT id FROM people WHERE mail = ? AND card = ?", "\\\"mail\\\"", "\\\"pid\\\""]
    {
        assert!(stored.contains(kept), "no `{kept}` in {stored}");
    }
}

#[test]
fn spark_snowflake_525_what_is_no_table_or_column_stays_inside() {
    let folder = tempfile::tempdir().unwrap();
    for run in collect(folder.path(), &[]) {
        // Texts of statements are shown by `--json` only, and then as they are.
        let shown: Vec<&str> =
            run.stdout.lines().filter(|line| !line.contains("\"sql\":\"")).collect();
        check_absent(&NEVER_SHOWN, &shown.join("\n"));
        check_absent(&SECRETS, &run.stderr);
    }
}

#[test]
fn reasons_for_failures_quote_no_constant() {
    let folder = tempfile::tempdir().unwrap();
    let runs = collect(folder.path(), &["--quiet"]);
    let report = runs[1].json_lines().pop().unwrap();
    check_absent(&SECRETS, &report.to_string());
    assert_eq!(report["parse"]["unparsed"], 3);
}
