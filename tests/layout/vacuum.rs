//! VACUUM on real folders: what goes, what stays, and what the history says.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use lakebed::error::{Error, Remedy};
use lakebed_lake::{DeltaLake, LakeError, VacuumReport};
use lakebed_layout::{Lake, action::Action, alter_clustering, optimize, vacuum::VacuumOptions};
use lakebed_model::{Clock, Instant, SystemClock, TableName};
use serde_json::{Value, json};

use crate::support::{
    Numbers, Shadow, adds, clustered_table, commits, count_and_sum, empty_lake, files_of, options,
    read_commits, runtime,
};

const HOUR_MS: i64 = 3_600_000;
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// With the table's own retention.
fn by_default() -> VacuumOptions {
    VacuumOptions { retain: None, dry_run: false, retention_check: true, now: SystemClock.now() }
}

/// With none, in an hour: everything that is not live goes.
fn of_all() -> VacuumOptions {
    VacuumOptions {
        retain: Some(Duration::ZERO),
        retention_check: false,
        now: Instant::from_epoch_ms(SystemClock.now().epoch_ms() + HOUR_MS),
        ..by_default()
    }
}

#[track_caller]
fn vacuum(lake: &DeltaLake, table: &str, options: &VacuumOptions) -> VacuumReport {
    runtime(lake.vacuum(&TableName::new(table), options)).expect("a VACUUM")
}

fn age(path: &Path, days: u32) {
    let file = fs::File::options().write(true).open(path).unwrap();
    let modified = std::time::UNIX_EPOCH + Duration::from_millis(now_ms()) - DAY * days;
    file.set_modified(modified).unwrap();
}

fn now_ms() -> u64 {
    SystemClock.now().epoch_ms().unsigned_abs()
}

/// All files under a table's folder but its log, sorted.
fn all_files(table: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![table.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("_delta_log") {
                folders.push(path);
            } else if path.is_file() {
                let relative = path.strip_prefix(table).unwrap();
                found.insert(relative.to_string_lossy().into_owned());
            }
        }
    }
    found
}

fn optimize_now(numbers: &Numbers) {
    let settings =
        lakebed_layout::OptimizeOptions { now: SystemClock.now(), ..options(true, 1 << 20) };
    runtime(optimize(&numbers.lake, &numbers.lake, &numbers.table, &settings)).expect("OPTIMIZE");
}

/// A table of four files that one has replaced: versions 0, 1 and 2.
fn optimized(folder: &Path, properties: &[(&str, &str)]) -> Numbers {
    let numbers = Numbers::create_with(folder, 4, 100, properties);
    let keys = ["v".to_owned()];
    runtime(alter_clustering(&numbers.lake, &numbers.table, &keys, SystemClock.now())).unwrap();
    optimize_now(&numbers);
    numbers
}

fn write(path: PathBuf, days: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "x").unwrap();
    age(&path, days);
}

fn info_of(commit: &[Action]) -> Value {
    let info = commit.iter().find_map(|action| match action {
        Action::CommitInfo(info) => Some(info.clone()),
        _ => None,
    });
    let mut info = info.expect("a commitInfo");
    for unstable in ["timestamp", "txnId", "engineInfo"] {
        assert!(info.as_object_mut().unwrap().remove(unstable).is_some(), "{unstable}");
    }
    info
}

#[test]
fn old_orphans_go_and_every_version_of_the_retention_stays() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = optimized(folder.path(), &[]);
    let table = folder.path().join("t");
    let of_versions = all_files(&table);
    assert_eq!(of_versions.len(), 5);
    for file in &of_versions {
        // Their age does not matter: what counts is when they left the table.
        age(&table.join(file), 30);
    }
    let gone = ["_change_data/cdc-1", "deep/er/orphan", "orphan", "part-1.parquet#1"];
    for name in gone {
        write(table.join(name), 8);
    }
    let stay = [".hidden/f", "_cache/f", "_delta_index/f", "deep/.f.crc", "young"];
    for name in stay {
        write(table.join(name), if name == "young" { 6 } else { 30 });
    }
    let before = all_files(&table);

    let dry = vacuum(&numbers.lake, "t", &VacuumOptions { dry_run: true, ..by_default() });
    assert_eq!((dry.files.clone(), dry.bytes.0, dry.version), (gone.map(Into::into).into(), 4, 2));
    assert_eq!((all_files(&table), read_commits(&table).len()), (before, 3), "a dry run");

    let report = vacuum(&numbers.lake, "t", &by_default());
    assert_eq!((report.files, report.bytes.0, report.version), (dry.files, 4, 4));
    assert_eq!((report.retention, report.folders), (DAY * 7, 4));
    let left: BTreeSet<String> = stay.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(all_files(&table), of_versions.union(&left).cloned().collect());
    let mut shadow = Shadow::of(&table);
    let expected: Vec<i64> = (0..400).collect();
    let mut versions = 0;
    while let Some(shown) = shadow.next_version() {
        assert_eq!(shown.keys, expected, "version {}", shown.version);
        versions += 1;
    }
    assert_eq!(versions, 5);
    assert_eq!(numbers.keys(), expected);
}

/// As delta-spark's, parameters and metrics alike.
#[test]
fn history_tells_start_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = optimized(folder.path(), &[]);
    let table = folder.path().join("t");
    vacuum(&numbers.lake, "t", &of_all());
    let bytes: u64 = adds(&commits(&table, 0)).iter().map(|add| add.size).sum();
    assert_eq!(
        info_of(&commits(&table, 3)),
        json!({
            "operation": "VACUUM START",
            "operationParameters": {
                "retentionCheckEnabled": false,
                "specifiedRetentionMillis": 0,
                "defaultRetentionMillis": 604_800_000,
            },
            "readVersion": 2,
            "isolationLevel": "SnapshotIsolation",
            "isBlindAppend": true,
            "operationMetrics": {"numFilesToDelete": "4", "sizeOfDataToDelete": bytes.to_string()},
        })
    );
    assert_eq!(
        info_of(&commits(&table, 4)),
        json!({
            "operation": "VACUUM END",
            "operationParameters": {"status": "COMPLETED"},
            "readVersion": 2,
            "isolationLevel": "SnapshotIsolation",
            "isBlindAppend": true,
            "operationMetrics": {"numDeletedFiles": "4", "numVacuumedDirectories": "1"},
        })
    );
    assert!(read_commits(&table)[3..].iter().all(|commit| commit.len() == 1), "commitInfo only");
    assert_eq!(files_of(&table).len(), 1);
    assert_eq!(numbers.keys(), (0..400).collect::<Vec<i64>>());
}

#[test]
fn retention_that_is_too_short_is_refused_and_nothing_happens() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = optimized(folder.path(), &[]);
    let table = folder.path().join("t");
    let options = VacuumOptions { retention_check: true, ..of_all() };
    let error = runtime(numbers.lake.vacuum(&numbers.table, &options)).unwrap_err();
    insta::assert_snapshot!(error, @"vacuum table `t` [DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT]: a retention of 0 hours is shorter than the 168 hours for which readers and running writers may need removed files");
    assert_eq!(exit_code(error), 3);
    assert_eq!((files_of(&table).len(), read_commits(&table).len()), (5, 3));
}

fn exit_code(error: LakeError) -> u8 {
    let (remedy, help): (Remedy, String) = Error::from(error).remedy();
    assert!(!help.is_empty());
    remedy.exit_code()
}

/// A checkpoint forgets removed files by the table's own retention; a longer one that a statement
/// asks for holds all the same, from the commits before the checkpoint.
#[test]
fn longer_retention_keeps_what_the_checkpoint_forgot() {
    let folder = tempfile::tempdir().unwrap();
    let property = ("delta.deletedFileRetentionDuration", "interval 1 millisecond");
    let numbers = optimized(folder.path(), &[property]);
    let table = folder.path().join("t");
    runtime(async { tokio::time::sleep(Duration::from_millis(5)).await });
    runtime(numbers.lake.checkpoint(&numbers.table)).unwrap();
    let before = all_files(&table);
    for file in &before {
        age(&table.join(file), 40);
    }
    let month = VacuumOptions { retain: Some(DAY * 30), ..by_default() };
    assert_eq!(vacuum(&numbers.lake, "t", &month).files, Vec::<String>::new());
    assert_eq!(all_files(&table), before);
    assert_eq!(vacuum(&numbers.lake, "t", &by_default()).files.len(), 4, "by the table's own");
}

/// Renames the files of version 0 to names that Hive-style partitions bring about.
fn with_odd_names(table: &Path) -> Vec<(String, String)> {
    const ODD: [(&str, &str); 4] = [
        ("p=a b~c%20d/f 1.parquet", "p=a%20b~c%2520d/f%201.parquet"),
        ("p=ö%3Aä/f+2.parquet", "p=%C3%B6%253A%C3%A4/f+2.parquet"),
        ("p=2024-10-09 19%3A00%3A00/50%.parquet", "p=2024-10-09%2019%253A00%253A00/50%25.parquet"),
        ("p=x,y;z=w/(1)[2]{3}.parquet", "p=x,y%3Bz%3Dw/(1)%5B2%5D%7B3%7D.parquet"),
    ];
    let log = table.join(format!("_delta_log/{:020}.json", 0));
    let mut text = fs::read_to_string(&log).unwrap();
    for (file, (stored, encoded)) in files_of(table).into_iter().zip(ODD) {
        fs::create_dir_all(table.join(stored).parent().unwrap()).unwrap();
        fs::rename(table.join(&file), table.join(stored)).unwrap();
        text = text.replace(&file, encoded);
    }
    fs::write(log, text).unwrap();
    ODD.map(|(stored, encoded)| (stored.to_owned(), encoded.to_owned())).into()
}

#[test]
fn files_with_odd_names_stay_while_they_live_and_go_when_they_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = Numbers::create(folder.path(), 4, 100);
    let table = folder.path().join("t");
    let names = with_odd_names(&table);
    let expected: Vec<i64> = (0..400).collect();
    assert_eq!(numbers.keys(), expected);
    assert_eq!(vacuum(&numbers.lake, "t", &of_all()).files, Vec::<String>::new());
    assert_eq!(numbers.keys(), expected, "live files with odd names stay");
    let keys = ["v".to_owned()];
    runtime(alter_clustering(&numbers.lake, &numbers.table, &keys, SystemClock.now())).unwrap();
    optimize_now(&numbers);
    let report = vacuum(&numbers.lake, "t", &of_all());
    let stored: BTreeSet<String> = names.into_iter().map(|(stored, _)| stored).collect();
    assert_eq!(report.files.into_iter().collect::<BTreeSet<_>>(), stored);
    assert_eq!(all_files(&table).len(), 1, "they are really gone");
    assert_eq!(numbers.keys(), expected);
}

#[test]
fn deletion_vector_lives_and_goes_with_its_file() {
    let name = "deletion-vectors";
    let folder = clustered_table(name);
    let table = folder.path().join(name);
    let mut lake = empty_lake();
    lake.add_folder(folder.path()).unwrap();
    let before = all_files(&table);
    let rows = count_and_sum(&lake, "order_id", &TableName::new(name));
    assert_eq!(before.len(), 2);
    assert_eq!(vacuum(&lake, name, &of_all()).files, Vec::<String>::new());
    let settings =
        lakebed_layout::OptimizeOptions { now: SystemClock.now(), ..options(false, 1 << 20) };
    runtime(optimize(&lake, &lake, &TableName::new(name), &settings)).unwrap();
    for file in &before {
        age(&table.join(file), 30);
    }
    assert_eq!(vacuum(&lake, name, &by_default()).files, Vec::<String>::new(), "still readable");
    let gone: BTreeSet<String> = vacuum(&lake, name, &of_all()).files.into_iter().collect();
    assert_eq!(gone, before, "the data file and its vector's");
    assert_eq!(count_and_sum(&lake, "order_id", &TableName::new(name)), rows);
}

#[test]
fn table_with_a_feature_that_may_need_other_files_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = optimized(folder.path(), &[]);
    let table = folder.path().join("t");
    write(table.join("orphan"), 30);
    let snapshot = runtime(numbers.lake.snapshot(&numbers.table)).unwrap();
    let mut protocol = snapshot.protocol.clone();
    protocol.writer_features.as_mut().unwrap().push("icebergCompatV2".to_owned());
    let log = table.join(format!("_delta_log/{:020}.json", 3));
    fs::write(log, Action::Protocol(protocol).to_line()).unwrap();
    let error = runtime(numbers.lake.vacuum(&numbers.table, &by_default())).unwrap_err();
    insta::assert_snapshot!(error, @"vacuum table `t`: it uses table features that may need files this engine knows nothing of: icebergCompatV2");
    assert_eq!(exit_code(error), 3);
    assert!(table.join("orphan").exists() && read_commits(&table).len() == 4);
}
