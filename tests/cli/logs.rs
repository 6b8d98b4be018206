//! Query logs that are not as they should be.

use std::{fs, path::Path, process::Stdio};

use crate::support::{Run, command_line, lakebed, lakebed_with, project, stable};

const W1_EVENTS: &str =
    "examples/logs/w1/eventlog_v2_local-1795995627429/events_1_local-1795995627429.zstd";

#[track_caller]
fn graph(folder: &Path, log: &str, more: &[&str]) -> Run {
    let mut arguments = vec!["graph", log];
    arguments.extend(more);
    lakebed(folder, &arguments)
}

#[test]
fn missing_log_is_an_error_of_the_input() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(graph(folder.path(), "nothing", &[]).failure(), @r"
    exit code 2
    error: failed to read log `nothing`: no such file or folder
    help: give the path of a Spark event log (file or eventlog_v2_… folder), or of an exported query history
    ");
}

#[test]
fn error_is_also_a_document_when_json_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let text = graph(folder.path(), "nothing", &["--json"]).failure();
    let document: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        document,
        serde_json::json!({"error": {
            "code": "invalid_input",
            "message": "failed to read log `nothing`: no such file or folder",
            "causes": [],
            "remedy": "give the path of a Spark event log (file or eventlog_v2_… folder), or of an exported query history",
        }})
    );
}

#[test]
fn log_without_statements_says_what_it_holds_instead() {
    let folder = tempfile::tempdir().unwrap();
    let log = project("tests/data/logs/empty_eventlog").display().to_string();
    insta::assert_snapshot!(stable(&graph(folder.path(), &log, &[]).failure(), folder.path()), @r"
    exit code 2
    error: failed to find queries: no SQL statements in `<project>/tests/data/logs/empty_eventlog`, which holds 1 SparkListenerApplicationEnd, 1 SparkListenerApplicationStart, 1 SparkListenerBlockManagerAdded, 1 SparkListenerEnvironmentUpdate, 1 SparkListenerExecutorAdded, 1 SparkListenerLogStart, 1 SparkListenerResourceProfileAdded
    help: see `lakebed collect --help` for the formats that are read
    ");
}

#[test]
fn log_that_is_cut_gives_what_is_before_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(project(W1_EVENTS)).unwrap();
    fs::write(folder.path().join("cut.zstd"), &bytes[..bytes.len() / 2]).unwrap();
    let run = graph(folder.path(), "cut.zstd", &["--json"]);
    let graph = run.json();
    let parse = &graph["parse"];
    assert_eq!((&parse["truncated"], &parse["malformed_lines"]), (&true.into(), &0.into()));
    let statements = parse["statements"].as_u64().unwrap();
    assert!((10..40).contains(&statements), "{statements}");
    assert_eq!(run.stderr, " WARN log is damaged log=cut.zstd truncated=true malformed_lines=0\n");
    let text = self::graph(folder.path(), "cut.zstd", &["--quiet"]);
    let first = text.succeeded().stdout.lines().next().unwrap_or_default();
    assert!(first.ends_with("; a log ends in the middle of a record"), "{first}");
    assert_eq!(text.stderr, "", "quiet");
}

#[test]
fn malformed_line_is_skipped_counted_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let lines = concat!(
        r#"{"ts":"2026-11-29T10:00:00Z","sql":"SELECT a.x FROM a JOIN b ON a.x = b.y"}"#,
        "\nthis is no JSON\n",
        r#"{"ts":"2026-11-29T10:00:01Z","sql":"SELECT a.x FROM a JOIN b ON a.x = b.y"}"#,
        "\n"
    );
    fs::write(folder.path().join("history.jsonl"), lines).unwrap();
    let run = graph(folder.path(), "history.jsonl", &["--json"]);
    let graph = run.json();
    assert_eq!(
        (&graph["parse"]["statements"], &graph["parse"]["malformed_lines"]),
        (&2.into(), &1.into())
    );
    assert_eq!(graph["edges"][0]["frequency"], 2);
    assert!(
        run.stderr.starts_with(
            " WARN log is damaged log=history.jsonl truncated=false malformed_lines=1\n"
        ),
        "{}",
        run.stderr
    );
    let text = self::graph(folder.path(), "history.jsonl", &["--quiet"]);
    let first = text.succeeded().stdout.lines().next().unwrap_or_default();
    assert!(first.ends_with("; 1 malformed lines skipped"), "{first}");
}

#[test]
fn file_of_no_known_format_is_refused_with_its_first_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.csv"), "a,b\n1,2\n").unwrap();
    insta::assert_snapshot!(graph(folder.path(), "a.csv", &[]).failure(), @r"
    exit code 2
    error: failed to recognize log `a.csv`: its first line `a,b` belongs to no known format (spark-event-log, databricks, snowflake, snowflake-pruning, trino, openlineage, athena, bigquery, redshift, duckdb, lakebed, jsonl, csv)
    help: see `lakebed collect --help` for the formats that are read
    ");
    insta::assert_snapshot!(graph(folder.path(), "a.csv", &["--format", "excel"]).failure(), @r"
    exit code 2
    error: failed to read logs as `excel`: unknown format, expected one of spark-event-log, databricks, snowflake, snowflake-pruning, trino, openlineage, athena, bigquery, redshift, duckdb, lakebed, jsonl, csv
    help: see `lakebed collect --help` for the formats that are read
    ");
}

#[test]
fn damaged_first_line_does_not_hide_a_logs_format() {
    let folder = tempfile::tempdir().unwrap();
    let entry = r#"{"ts":"2026-01-01T00:00:00Z","sql":"SELECT 1 FROM a JOIN b ON a.x = b.y","dialect":"spark"}"#;
    for damage in ["garbage", "{\"ts\":", ""] {
        fs::write(folder.path().join("log.jsonl"), format!("{damage}\n{entry}\n")).unwrap();
        let graph = graph(folder.path(), "log.jsonl", &["--json"]).json();
        let malformed = u64::from(!damage.is_empty());
        assert_eq!(graph["parse"]["malformed_lines"], malformed, "{damage}");
        assert_eq!(graph["edges"].as_array().unwrap().len(), 1, "{damage}");
    }
}

/// Two statements and a line between them that is none.
const DAMAGED: &str = concat!(
    r#"{"ts":"2026-11-29T10:00:00Z","sql":"SELECT a.x FROM a JOIN b ON a.x = b.y"}"#,
    "\nthis is no JSON\n",
    r#"{"ts":"2026-11-29T10:00:01Z","sql":"SELECT a.x FROM a JOIN b ON a.x = b.y"}"#,
    "\n"
);

#[test]
fn strict_reading_prints_what_there_is_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("h.jsonl"), DAMAGED).unwrap();
    for verb in ["collect", "graph"] {
        let lenient = lakebed(folder.path(), &["--quiet", verb, "h.jsonl"]);
        let strict = lakebed(folder.path(), &["--quiet", verb, "h.jsonl", "--strict"]);
        assert_eq!(strict.code, 2, "{}", strict.stderr);
        assert_eq!(strict.stdout, lenient.succeeded().stdout, "{verb}");
        assert_eq!(
            strict.stderr,
            "error: failed to read all of the history: 1 malformed lines skipped\n\
             help: mend the logs, or use what could be read by leaving out --strict\n"
        );
    }
    fs::write(folder.path().join("whole.jsonl"), DAMAGED.replace("this is no JSON\n", "")).unwrap();
    lakebed(folder.path(), &["graph", "whole.jsonl", "--strict"]).succeeded();
}

#[test]
fn places_that_could_not_be_read_are_told() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("h.jsonl"), DAMAGED).unwrap();
    let lines = lakebed(folder.path(), &["--json", "collect", "h.jsonl"]).json_lines();
    let parse = &lines.last().unwrap()["parse"];
    assert_eq!(
        parse["damage"],
        serde_json::json!([
            {"file": "h.jsonl", "line": 2, "offset_bytes": 76, "what": "no JSON object"},
        ])
    );
    let text = lakebed(folder.path(), &["--quiet", "collect", "h.jsonl"]);
    let last = text.succeeded().stdout.lines().last().unwrap_or_default();
    assert_eq!(last, "  h.jsonl, line 2, byte 76: no JSON object");
}

#[test]
fn standard_input_is_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command_line(folder.path(), &["--json", "graph", "-"]);
    command.stdin(Stdio::from(fs::File::open(project(W1_EVENTS)).unwrap()));
    let graph = lakebed_with(&mut command).json();
    assert_eq!(graph["parse"]["statements"], 40);
    assert_eq!(graph["edges"].as_array().unwrap().len(), 3);
}

#[test]
fn patterns_name_several_logs() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["app-1", "app-2", "other"] {
        let line =
            format!(r#"{{"ts":1,"id":"{name}","sql":"SELECT a.x FROM a JOIN b ON a.x = b.y"}}"#);
        fs::write(folder.path().join(name), line).unwrap();
    }
    let graph = graph(folder.path(), "app-*", &["--json"]).json();
    assert_eq!(graph["parse"]["statements"], 2);
}

#[test]
fn windows_slide_and_old_statements_fade() {
    let folder = tempfile::tempdir().unwrap();
    let line = |day: u32, join: &str| {
        format!("{{\"ts\":\"2026-11-{day}T00:00:00Z\",\"sql\":\"SELECT 1 FROM a JOIN {join}\"}}\n")
    };
    let lines = [
        line(10, "b ON a.x = b.y"),
        line(20, "b ON a.x = b.y"),
        line(21, "c ON a.x = c.z"),
        line(22, "c ON a.x = c.z"),
    ];
    fs::write(folder.path().join("h.jsonl"), lines.concat()).unwrap();
    let slid =
        graph(folder.path(), "h.jsonl", &["--json", "--window", "1d", "--slide", "1d"]).json();
    assert_eq!(slid["window"]["to"], "2026-11-21T00:00:00.000Z");
    assert_eq!(slid["parse"]["statements"], 2);
    assert_eq!(slid["parse"]["skipped"]["outside_window"], 2);
    let faded = graph(folder.path(), "h.jsonl", &["--json", "--half-life", "1d"]).json();
    let edges = faded["edges"].as_array().unwrap();
    let weight = |table: &str| {
        let edge = edges.iter().find(|edge| edge["right"] == table).unwrap();
        (edge["frequency"].as_u64().unwrap(), edge["weight"].as_f64().unwrap())
    };
    assert_eq!(weight("c"), (2, 1.5));
    let (frequency, old) = weight("b");
    assert_eq!(frequency, 2);
    assert!((old - 0.25 - 0.5_f64.powi(12)).abs() < 1e-12, "{old}");
}
