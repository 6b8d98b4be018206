//! Query logs in an object store.

use std::fs;

use crate::support::{lakebed, project};

use super::server::{Bucket, server};

const FOLDER: &str = "eventlog_v2_local-1795995627429";
const EVENTS: &str = "events_1_local-1795995627429.zstd";

#[test]
fn logs_are_read_from_a_bucket_as_folders_and_files() {
    let Some(server) = server("logs_are_read_from_a_bucket_as_folders_and_files") else { return };
    let bucket = Bucket::create(&server);
    let events = fs::read(project(&format!("examples/logs/w1/{FOLDER}/{EVENTS}"))).unwrap();
    bucket.put(&format!("history/{FOLDER}/{EVENTS}"), &events);
    bucket.put(&format!("history/{FOLDER}/appstatus_local-1795995627429"), b"");
    bucket.put("history/other/notes.txt", b"no log\n");
    for path in ["history", "history/", &format!("history/{FOLDER}/{EVENTS}")] {
        let run = lakebed(bucket.folder.path(), &["--json", "graph", &bucket.url(path)]);
        let graph = run.json();
        assert_eq!(graph["parse"]["statements"], 40, "{path}");
        assert_eq!(graph["edges"].as_array().unwrap().len(), 3, "{path}");
    }
    let missing = lakebed(bucket.folder.path(), &["graph", &bucket.url("nothing")]).failure();
    assert!(missing.starts_with("exit code 2\nerror: failed to read log `s3://"), "{missing}");
    assert!(missing.contains("/nothing`: no such file or folder"), "{missing}");
}
