//! Logs as they are found: cut, damaged, compacted, in pieces, of other engines, in any codec.

use std::{fs, io::Write as _, num::NonZeroUsize, path::Path};

use lakebed_model::Workload;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::{
    CollectError, CollectOptions, EmptyCatalog, LogPath, collect,
    source::{fuzz, lines::MAX_LINE_BYTES},
};

const SQL: &str = "org.apache.spark.sql.execution.ui.SparkListener";

/// A plan with one join: `db.a.k = db.b.k`.
const JOIN: &str = concat!(
    r#"{"nodeName":"SortMergeJoin","simpleString":"SortMergeJoin [k#1], [k#2], Inner","children":["#,
    r#"{"nodeName":"Scan parquet db.a","simpleString":"FileScan parquet db.a[k#1]","children":[],"metadata":{},"metrics":[]},"#,
    r#"{"nodeName":"Scan parquet db.b","simpleString":"FileScan parquet db.b[k#2]","children":[],"metadata":{},"metrics":[]}"#,
    r#"],"metadata":{},"metrics":[]}"#
);
/// A plan that reads nothing.
const NOTHING: &str = r#"{"nodeName":"LocalTableScan","simpleString":"LocalTableScan","children":[],"metadata":{},"metrics":[]}"#;

fn start(id: u64, plan: &str) -> String {
    format!(
        r#"{{"Event":"{SQL}SQLExecutionStart","executionId":{id},"sparkPlanInfo":{plan},"time":{id}}}"#
    )
}

fn update(id: u64, plan: &str) -> String {
    format!(
        r#"{{"Event":"{SQL}SQLAdaptiveExecutionUpdate","executionId":{id},"sparkPlanInfo":{plan}}}"#
    )
}

fn end(id: u64) -> String {
    format!(r#"{{"Event":"{SQL}SQLExecutionEnd","executionId":{id},"time":{}}}"#, id + 1)
}

fn application(id: &str) -> String {
    format!(r#"{{"Event":"SparkListenerApplicationStart","App ID":"{id}"}}"#)
}

/// Writes files, collects their folder and shows the statements by id.
#[track_caller]
fn collected(files: &[(&str, &[u8])]) -> (Vec<String>, Workload) {
    let folder = folder(files);
    let workload =
        collect(&[folder.path().join("log")], &CollectOptions::default(), &EmptyCatalog).unwrap();
    (ids(&workload), workload)
}

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join("log").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

/// Ids with the joins and how the statement ended.
fn ids(workload: &Workload) -> Vec<String> {
    let shown = workload.records.iter();
    shown.map(|r| format!("{} {} {:?}", r.id, r.joins.len(), r.status)).collect()
}

#[track_caller]
fn read(lines: &[&str]) -> (Vec<String>, Workload) {
    collected(&[("app-1", (lines.join("\n") + "\n").as_bytes())])
}

fn places(workload: &Workload) -> Vec<String> {
    let places = workload.report.damage.iter();
    places.map(|d| format!("{}:{} @{} {}", d.file, d.line, d.offset_bytes, d.what)).collect()
}

#[test]
fn events_of_vendors_and_a_missing_application_hide_nothing() {
    let (ids, workload) = read(&[
        r#"{"Event":"SparkListenerLogStart","Spark Version":"2.2.0"}"#,
        r#"{"Event":"com.vendor.SparkListenerNodeStart","host":"x"}"#,
        &start(12, JOIN).replace("\"time\"", "\"newField\":{\"a\":[1]},\"time\""),
    ]);
    assert_eq!(ids, ["app-1/12 1 Unknown"]);
    assert_eq!((workload.report.unknown_records, workload.report.malformed_lines), (1, 0));
}

#[test]
fn lines_that_are_no_events_are_counted_with_their_places() {
    let mut log = Vec::new();
    for line in [
        r#"{"Event":"SparkListenerLogStart","Spark Version":"3.5.0"}"#,
        "7",
        "\"x\"",
        "[1]",
        "null",
        r#"{"Event":null}"#,
    ] {
        log.extend_from_slice(line.as_bytes());
        log.push(b'\n');
    }
    log.extend_from_slice(
        b"{\"Event\":\"SparkListenerJobStart\",\"Properties\":{\"p\":\"\xff\"}}\n",
    );
    let raw =
        start(3, JOIN).replace("\"time\"", "\"description\":\"SELECT '~' FROM a, b\",\"time\"");
    let mut raw = raw.into_bytes();
    let at = raw.iter().position(|byte| *byte == b'~').unwrap();
    raw[at] = 0xff;
    log.extend_from_slice(&raw);
    log.push(b'\n');
    let (ids, workload) = collected(&[("app-1", &log)]);
    assert_eq!(ids, ["app-1/3 1 Unknown"]);
    assert_eq!(workload.records[0].sql.as_deref(), Some("SELECT '\u{fffd}' FROM a, b"));
    assert_eq!(workload.report.malformed_lines, 5);
    insta::assert_snapshot!(places(&workload).join("\n"), @r"
    app-1:2 @58 no event: expected an object at byte 0
    app-1:3 @60 no event: expected an object at byte 0
    app-1:4 @64 no event: expected an object at byte 0
    app-1:5 @68 no event: expected an object at byte 0
    app-1:6 @73 no event: expected an object with a text as `Event` at byte 0
    ");
}

#[test]
fn a_statement_is_found_whatever_the_order_of_fields() {
    let line = format!(
        r#"{{"time":5,"sparkPlanInfo":{JOIN},"executionId":4,"Event":"{SQL}SQLExecutionStart"}}"#
    );
    let spaced = start(5, JOIN).replace("{\"Event\":\"", "{ \"Event\" : \"");
    let first = r#"{"Event":"SparkListenerLogStart"}"#;
    let (ids, _) = read(&[first, &line, &end(4), &spaced]);
    assert_eq!(ids, ["app-1/4 1 Finished", "app-1/5 1 Unknown"]);
}

#[test]
fn executions_without_a_plan_are_counted_and_hide_no_other() {
    let bare = |rest: &str| format!(r#"{{"Event":"{SQL}SQLExecutionStart","executionId":{rest}}}"#);
    let (ids, workload) = read(&[
        &bare(&format!("1,\"sparkPlanInfo\":{JOIN}")),
        &bare("2"),
        &bare("3,\"sparkPlanInfo\":null"),
        &bare(&format!("4,\"sparkPlanInfo\":{JOIN}")),
    ]);
    assert_eq!(ids, ["app-1/1 1 Unknown", "app-1/4 1 Unknown"]);
    let report = &workload.report;
    assert_eq!((report.skipped.no_plan, report.malformed_lines, report.truncated), (2, 0, false));
}

#[test]
fn what_comes_before_the_start_waits_for_it() {
    let counts =
        format!(r#"{{"Event":"{SQL}DriverAccumUpdates","executionId":7,"accumUpdates":[[1,2]]}}"#);
    let (ids, workload) = read(&[&update(7, JOIN), &counts, &end(7), &start(7, NOTHING)]);
    assert_eq!(ids, ["app-1/7 1 Finished"]);
    assert!(!workload.report.truncated);
    assert!(workload.report.notes.is_empty());
}

#[test]
fn events_of_an_execution_that_never_starts_are_told() {
    let (ids, workload) = read(&[&end(7), &update(8, JOIN), &start(9, JOIN), &end(9), &end(9)]);
    assert_eq!(ids, ["app-1/9 1 Finished"]);
    assert!(workload.report.truncated);
    let notes: Vec<&str> = workload.report.notes.iter().map(String::as_str).collect();
    assert_eq!(notes, ["the start of an execution is not in the log"]);
}

#[test]
fn only_the_last_update_counts_and_a_damaged_one_does_not() {
    let damaged = update(1, JOIN).replace("Inner", "Inner\"_\"");
    let (ids, workload) =
        read(&[&start(1, NOTHING), &update(1, NOTHING), &update(1, JOIN), &damaged, &end(1)]);
    assert_eq!(ids, ["app-1/1 1 Finished"]);
    assert_eq!(workload.report.malformed_lines, 1);
}

#[test]
fn databricks_pieces_are_read_by_name_with_the_plain_one_last() {
    let rolled = format!("{}\n{}\n", application("db-1"), start(7, NOTHING));
    let running = format!("{}\n{}\n", update(7, JOIN), end(7));
    let task = "{\"Event\":\"SparkListenerTaskEnd\",\"Stage ID\":1}\n";
    let (ids, workload) = collected(&[
        ("driver/eventlog", running.as_bytes()),
        ("driver/eventlog-2026-09-08--18-20.gz", &gzip(&rolled)),
        ("driver/eventlog-2026-09-08--18-40.gz", &gzip(task)),
    ]);
    assert_eq!(ids, ["db-1/7 1 Finished"]);
    assert!(!workload.report.truncated);
}

#[test]
fn a_compacted_log_says_that_its_history_is_incomplete() {
    let lines = |id| format!("{}\n{}\n", start(id, JOIN), end(id));
    let (ids, workload) = collected(&[
        ("eventlog_v2_app-1/appstatus_app-1.inprogress", b""),
        ("eventlog_v2_app-1/events_1_app-1", lines(1).as_bytes()),
        ("eventlog_v2_app-1/events_2_app-1", lines(2).as_bytes()),
        ("eventlog_v2_app-1/events_2_app-1.compact", application("app-1").as_bytes()),
        ("eventlog_v2_app-1/events_3_app-1", lines(3).as_bytes()),
    ]);
    assert_eq!(ids, ["app-1/3 1 Finished"]);
    let notes: Vec<&str> = workload.report.notes.iter().map(String::as_str).collect();
    assert_eq!(
        notes,
        ["a log is compacted, its history incomplete", "an application is still in progress"]
    );
}

#[test]
fn attempts_of_one_application_are_not_duplicates() {
    let log = |attempt| {
        let first = format!(
            r#"{{"Event":"SparkListenerApplicationStart","App ID":"app","App Attempt ID":"{attempt}"}}"#
        );
        format!("{first}\n{}\n{}\n", start(0, JOIN), end(0))
    };
    let (ids, workload) = collected(&[("app_1", log(1).as_bytes()), ("app_2", log(2).as_bytes())]);
    assert_eq!(ids, ["app/1/0 1 Finished", "app/2/0 1 Finished"]);
    assert_eq!(workload.report.skipped.duplicate, 0);
}

#[test]
fn a_history_server_folder_reads_the_same_with_any_number_of_threads() {
    let logs: Vec<(String, Vec<u8>)> = (0..20_u64)
        .map(|app| {
            let mut lines = application(&format!("app-{app}"));
            for id in 0..app {
                lines.push_str(&format!(
                    "\n{}\n{}",
                    start(100 * app + id, JOIN),
                    end(100 * app + id)
                ));
            }
            let bytes = if app % 2 == 0 { gzip(&lines) } else { lines.into_bytes() };
            (format!("app-{app}"), bytes)
        })
        .chain([("somebody-elses.txt".to_owned(), b"no log\n".to_vec())])
        .chain([("app-cut".to_owned(), b"{\"Event\":\"SparkListenerLogStart\"}\n{\"Ev".to_vec())])
        .collect();
    let files: Vec<(&str, &[u8])> =
        logs.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let folder = folder(&files);
    let with = |threads| {
        let options =
            CollectOptions { threads: NonZeroUsize::new(threads), ..CollectOptions::default() };
        collect(&[folder.path().join("log")], &options, &EmptyCatalog).unwrap()
    };
    let one = with(1);
    assert_eq!(one.records.len(), 190);
    for threads in [2, 5, 64] {
        assert_eq!(with(threads), one);
    }
}

#[test]
fn the_copy_of_a_log_that_has_its_end_counts() {
    let open = format!("{}\n{}\n", application("app"), start(1, JOIN));
    let whole = format!("{open}{}\n", end(1));
    let (ids, workload) = collected(&[
        ("app", open.as_bytes()),
        ("copy", whole.as_bytes()),
        ("old", open.as_bytes()),
    ]);
    assert_eq!(ids, ["app/1 1 Finished"]);
    assert_eq!(workload.report.skipped.duplicate, 2);
}

#[cfg(unix)]
#[test]
fn a_log_of_a_folder_that_cannot_be_opened_is_counted_and_the_others_read() {
    let folder = folder(&[("app-1", format!("{}\n{}\n", start(1, JOIN), end(1)).as_bytes())]);
    let log = folder.path().join("log");
    std::os::unix::fs::symlink("nowhere", log.join("app-2")).unwrap();
    let read = |path: &Path| collect(&[path.to_owned()], &CollectOptions::default(), &EmptyCatalog);
    let workload = read(&log).unwrap();
    assert_eq!((workload.records.len(), workload.report.unreadable_logs), (1, 1));
    fs::remove_file(log.join("app-1")).unwrap();
    assert!(matches!(read(&log), Err(CollectError::Io { .. })));
}

#[test]
fn a_stream_is_recognized_and_read_once() {
    let text = format!("{}\n{}\n{}\n", application("piped"), start(1, JOIN), end(1));
    for bytes in [text.clone().into_bytes(), gzip(&text)] {
        let log = LogPath::stream("-".into(), Box::new(std::io::Cursor::new(bytes)));
        let head = crate::LogHead::of(&log).unwrap();
        assert_eq!(head.lines.len(), 3);
        let source = crate::ALL_SOURCES.iter().find(|source| source.recognizes(&head)).unwrap();
        let mut found = Vec::new();
        source.read(&log, &EmptyCatalog, &mut |statement| found.push(statement.record.id)).unwrap();
        assert_eq!(found, ["piped/1"]);
        let again = source.read(&log, &EmptyCatalog, &mut |_| ());
        assert!(matches!(again, Err(CollectError::Io { .. })));
    }
}

#[test]
fn a_plan_of_25_million_characters_is_read_without_its_text() {
    let text = "x".repeat(25_000_000);
    let long = start(1, JOIN)
        .replace("\"time\"", &format!("\"physicalPlanDescription\":\"{text}\",\"time\""));
    let (ids, workload) =
        read(&[&start(0, JOIN), &end(0), &long, &end(1), &start(2, JOIN), &end(2)]);
    assert_eq!(ids, ["app-1/0 1 Finished", "app-1/1 1 Finished", "app-1/2 1 Finished"]);
    assert_eq!(workload.report.over_limit_lines, 0);
    let notes: Vec<&str> = workload.report.notes.iter().map(String::as_str).collect();
    assert_eq!(notes, ["the text of a plan is over the limit: the plan's tree was read alone"]);
    let longer = long.replacen("\"x", &format!("\"{}", "y".repeat(MAX_LINE_BYTES)), 1);
    let (ids, workload) = read(&[&start(0, JOIN), &end(0), &longer, &start(2, JOIN), &end(2)]);
    assert_eq!(ids, ["app-1/0 1 Finished", "app-1/2 1 Finished"]);
    assert_eq!(workload.report.over_limit_lines, 1);
    let line = start(0, JOIN).len() + end(0).len() + 2;
    assert_eq!(
        places(&workload),
        [format!("app-1:3 @{line} line over the limit of {MAX_LINE_BYTES} bytes")]
    );
}

#[test]
fn many_open_executions_are_given_before_they_take_too_much() {
    let text = "x".repeat(3_000_000);
    let long = |id| {
        start(id, JOIN)
            .replace("\"time\"", &format!("\"physicalPlanDescription\":\"{text}\",\"time\""))
    };
    let lines: Vec<String> = (0..40).map(long).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (ids, workload) = read(&lines);
    assert_eq!(ids.len(), 40);
    assert!(workload.report.notes.iter().any(|note| note.starts_with("too many executions")));
}

#[test]
fn failed_jobs_tell_of_versions_that_do_not() {
    let job = |id: u64, execution: u64| {
        format!(
            r#"{{"Event":"SparkListenerJobStart","Job ID":{id},"Properties":{{"spark.sql.execution.id":"{execution}"}}}}"#
        )
    };
    let failed = r#"{"Event":"SparkListenerJobEnd","Job ID":1,"Job Result":{"Result":"JobFailed","Exception":{"Message":"boom"}}}"#;
    let (ids, workload) = read(&[
        &start(1, JOIN),
        &job(1, 1),
        failed,
        &end(1),
        &start(2, JOIN),
        &job(1, 2),
        failed,
        &end(2).replace("\"time\"", "\"errorMessage\":\"\",\"time\""),
    ]);
    assert_eq!(ids, ["app-1/2 1 Finished"]);
    assert_eq!(workload.report.skipped.failed, 1);
}

#[test]
fn commands_and_records_of_ours_are_no_workload() {
    let described = |id: u64, text: &str, plan: &str| {
        start(id, plan).replace("\"time\"", &format!("\"description\":\"{text}\",\"time\""))
    };
    let command = |name: &str| NOTHING.replace("LocalTableScan", name);
    let own = JOIN.replace("db.a", "_lakebed.history").replace("db.b", "_lakebed.plans");
    let (ids, workload) = read(&[
        &described(1, "EXPLAIN SELECT 1 FROM a", &command("Execute ExplainCommand")),
        &described(2, "collect at x.py:1", &command("Execute ShowTablesCommand")),
        &described(3, "SET a = 1", NOTHING),
        &described(4, "show of hands", JOIN),
        &described(5, "/* lakebed */ SELECT 1 FROM a", JOIN),
        &described(6, "SELECT 1", &own),
    ]);
    assert_eq!(ids, ["app-1/4 1 Unknown"]);
    let skipped = &workload.report.skipped;
    assert_eq!((skipped.explain, skipped.metadata, skipped.own), (1, 2, 2));
}

#[test]
fn what_cannot_be_read_has_an_example_without_constants() {
    let folder = folder(&[(
        "h.jsonl",
        concat!(
            r#"{"ts":1,"sql":"SELECT x FROM t WHERE FROM mail = 'bob@x.test'","id":"a"}"#,
            "\n",
            r#"{"ts":2,"sql":"SELECT x FROM t WHERE FROM mail = 'eve@x.test'","id":"b"}"#,
            "\n",
            r#"{"ts":3,"sql":"SELECT x FROM t","id":"c"}"#,
            "\n"
        )
        .as_bytes(),
    )]);
    let options = CollectOptions::default();
    let report = collect(&[folder.path().join("log")], &options, &EmptyCatalog).unwrap().report;
    assert_eq!((report.statements, report.unparsed), (3, 2));
    assert!((report.parse_rate().unwrap() - 1.0 / 3.0).abs() < 1e-9);
    let [(reason, 2)] = report.commonest_reasons(10)[..] else { panic!("{report:?}") };
    assert_eq!(report.examples[reason], "SELECT _ FROM _ WHERE FROM _ = ?");
}

#[test]
fn concatenated_logs_are_several_applications() {
    let log = |app: &str| format!("{}\n{}\n{}\n", application(app), start(1, JOIN), end(1));
    let open = format!("{}\n{}\n", application("x"), start(1, JOIN));
    let (ids, workload) =
        collected(&[("all", [gzip(&log("a")), gzip(&open), gzip(&log("b"))].concat().as_slice())]);
    assert_eq!(ids, ["a/1 1 Finished", "b/1 1 Finished", "x/1 1 Unknown"]);
    assert_eq!((workload.report.skipped.duplicate, workload.report.open_executions), (0, 1));
}

/// A log of the repository's test data.
#[track_caller]
fn shipped(name: &str) -> Workload {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/logs");
    let path = Path::new(path).join(name);
    collect(&[path], &CollectOptions::default(), &EmptyCatalog).unwrap()
}

#[test]
fn blocks_that_lz4_java_wrote_match_their_checksums() {
    let workload = shipped("shapes_first_blocks.lz4");
    let report = &workload.report;
    // Eight CREATE TABLE statements and three queries of Delta's; the last block is not the end.
    assert_eq!((report.skipped.system, report.damaged_stretches), (11, 0));
    assert!(report.truncated);
    // 20 blocks of 32 KiB hold 61 whole lines, and the cut is in the next one.
    let [cut] = &report.damage[..] else { panic!("{report:?}") };
    assert_eq!((cut.line, cut.what.as_str()), (62, "cut"));
}

/// Both logs join ranges of numbers: no table is read, and every execution is accounted for.
#[test]
fn logs_without_their_ends_are_read_to_the_last_event() {
    for (name, executions, open) in
        [("join_missing_sql_end.zstd", 1, 1), ("truncated_eventlog.zstd", 2, 1)]
    {
        let report = shipped(name).report;
        assert_eq!((report.statements, report.skipped.system), (0, executions), "{name}");
        assert_eq!((report.open_executions, report.malformed_lines), (open, 0), "{name}");
        assert!(!report.is_complete(), "{name}");
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// The lines of a small log, some of them changed at a few places, cut short, or doubled.
fn damaged_log() -> impl Strategy<Value = Vec<u8>> {
    let lines = prop_oneof![
        (0..4_u64).prop_map(|id| start(id, JOIN)),
        (0..4_u64).prop_map(|id| update(id, JOIN)),
        (0..4_u64).prop_map(end),
        Just(application("a")),
        Just(r#"{"Event":"SparkListenerTaskEnd","x":{}}"#.to_owned()),
        Just(r#"{"Event":"SparkListenerStageCompleted","Stage Info":{"Accumulables":[{"ID":1,"Name":"number of output rows","Value":"7"}]}}"#.to_owned()),
        "\\PC{0,40}",
    ];
    let edits = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (proptest::collection::vec(lines, 1..12), edits).prop_map(|(lines, edits)| {
        let mut bytes = lines.join("\n").into_bytes();
        for (at, byte) in edits {
            if !bytes.is_empty() {
                let index = at.index(bytes.len());
                bytes[index] = byte;
            }
        }
        bytes
    })
}

#[test]
fn no_damage_makes_a_reader_panic_and_every_line_is_accounted_for() {
    fuzz::run(&damaged_log(), |bytes| {
        let path = tempfile::NamedTempFile::new().unwrap();
        fs::write(path.path(), &bytes).unwrap();
        let options = CollectOptions {
            format: Some("spark-event-log".to_owned()),
            ..CollectOptions::default()
        };
        if let Ok(workload) = collect(&[path.path().to_owned()], &options, &EmptyCatalog) {
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
            let report = &workload.report;
            prop_assert!(report.malformed_lines <= lines);
            prop_assert!(
                report.damage.len() as u64 <= report.malformed_lines + report.damaged_stretches + 1
            );
            for place in &report.damage {
                prop_assert!(place.line <= lines && place.offset_bytes <= bytes.len() as u64);
            }
        }
        Ok(())
    });
}
