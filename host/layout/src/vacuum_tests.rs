//! What VACUUM keeps and what it takes, file by file.

use std::time::Duration;

use lakebed_model::Instant;

use crate::{
    TableSnapshot,
    action::{AddFile, DeletionVector},
    testing::{plain_file, snapshot},
    vacuum::{
        DEFAULT_RETENTION, Needed, Retention, StoredFile, VacuumOptions, choose, count_folders,
        is_hidden, refusal, retention,
    },
};

const DAY_MS: i64 = 24 * 3_600_000;
const NOW: i64 = 100 * DAY_MS;
const CUTOFF: i64 = NOW - 7 * DAY_MS;

fn options(retain_hours: Option<u64>) -> VacuumOptions {
    VacuumOptions {
        retain: retain_hours.map(|hours| Duration::from_secs(hours * 3_600)),
        dry_run: false,
        retention_check: true,
        now: Instant::from_epoch_ms(NOW),
    }
}

fn with_property(value: &str) -> TableSnapshot {
    let mut table = snapshot(&["a"], Vec::new());
    table.properties.insert("delta.deletedFileRetentionDuration".into(), value.into());
    table
}

fn with_vector(path: &str, storage_type: &str, place: &str) -> AddFile {
    let deletion_vector = Some(DeletionVector {
        storage_type: storage_type.into(),
        path_or_inline_dv: place.into(),
        offset: Some(1),
        size_in_bytes: 1,
        cardinality: 1,
    });
    AddFile { deletion_vector, ..plain_file(path, 1) }
}

fn stored(path: &str, modified_ms: i64) -> StoredFile {
    StoredFile { path: path.to_owned(), size: 1, modified_ms }
}

/// Of files that are all old enough, the ones that are chosen.
#[track_caller]
fn check(needed: &Needed, partition_columns: &[&str], there: &[&str], chosen: &[&str]) {
    let columns: Vec<String> = partition_columns.iter().map(|c| (*c).to_owned()).collect();
    let listing: Vec<StoredFile> = there.iter().map(|path| stored(path, CUTOFF - 1)).collect();
    let got: Vec<String> =
        choose(&listing, needed, &columns, CUTOFF).into_iter().map(|file| file.path).collect();
    assert_eq!(got, chosen);
}

fn needed_of(files: Vec<AddFile>) -> Needed {
    Needed::of_snapshot(&snapshot(&["a"], files)).unwrap()
}

#[test]
fn retention_comes_from_the_statement_then_the_table_then_seven_days() {
    let plain = snapshot(&["a"], Vec::new());
    let effective = |table: &TableSnapshot, hours| retention(table, &options(hours)).unwrap();
    assert_eq!(effective(&plain, None).effective, DEFAULT_RETENTION);
    assert_eq!(effective(&plain, None).cutoff_ms(Instant::from_epoch_ms(NOW)), CUTOFF);
    let month = with_property("interval 30 days");
    assert_eq!(effective(&month, None).effective, Duration::from_secs(720 * 3_600));
    assert_eq!(
        effective(&with_property("interval 1 hour"), Some(2)),
        Retention { effective: Duration::from_secs(7_200), configured: Duration::from_secs(3_600) },
        "the table's owner allows it"
    );
}

#[test]
fn retention_below_the_table_s_own_is_refused_unless_the_check_is_off() {
    let error = retention(&snapshot(&["a"], Vec::new()), &options(Some(167))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "vacuum table `t` [DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT]: a retention of 167 hours is shorter than the 168 hours for which readers and running writers may need removed files"
    );
    let month = with_property("interval 30 days");
    assert!(retention(&month, &options(Some(168))).is_err());
    let unchecked = VacuumOptions { retention_check: false, ..options(Some(0)) };
    assert_eq!(retention(&month, &unchecked).unwrap().effective, Duration::ZERO);
}

#[test]
fn retention_that_cannot_be_read_is_an_error_even_when_the_statement_says_one() {
    let error = retention(&with_property("a while"), &options(Some(999))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "read property delta.deletedFileRetentionDuration of table `t`: expected a duration such as `interval 7 days`, found `a while`"
    );
}

#[test]
fn orphans_go_only_when_they_are_older_than_the_retention() {
    let needed = needed_of(vec![plain_file("live", 1)]);
    let listing = [
        stored("live", 0),
        stored("old", CUTOFF - 1),
        stored("at-the-cut-off", CUTOFF),
        stored("young", NOW),
    ];
    assert_eq!(choose(&listing, &needed, &[], CUTOFF), [stored("old", CUTOFF - 1)]);
}

#[test]
fn removed_files_stay_with_their_vectors_until_the_retention_is_over() {
    let table = snapshot(&["a"], Vec::new());
    let mut needed = Needed::default();
    let young = with_vector("young", "u", "T>T)Ro7#1/ORp/D6&y/*").to_remove(CUTOFF, true);
    let old = with_vector("old", "u", "ab^-aqEH.-t@S}K{vb[*k^").to_remove(CUTOFF - 1, true);
    let mut timeless = plain_file("timeless", 1).to_remove(0, true);
    timeless.deletion_timestamp = None;
    for file in [&young, &old, &timeless] {
        needed.add_removed(&table, file, CUTOFF).unwrap();
    }
    check(
        &needed,
        &[],
        &[
            "young",
            "deletion_vector_addc1c39-4af7-4c61-9d85-6a441551a58f.bin",
            "old",
            "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin",
            "timeless",
        ],
        &["old", "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin", "timeless"],
    );
}

/// The first is of a table of Spark's, the second the protocol's own example.
#[test]
fn vectors_of_live_files_are_found_by_their_descriptors() {
    let needed = needed_of(vec![
        with_vector("f1", "u", "T>T)Ro7#1/ORp/D6&y/*"),
        with_vector("f2", "u", "ab^-aqEH.-t@S}K{vb[*k^"),
        with_vector("f3", "i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"),
        with_vector("f4", "p", "s3://bucket/t/deletion_vector_x%20y.bin"),
        with_vector("f5", "", ""),
    ]);
    check(
        &needed,
        &[],
        &[
            "deletion_vector_addc1c39-4af7-4c61-9d85-6a441551a58f.bin",
            "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin",
            "deletion_vector_x y.bin",
            "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin",
        ],
        &["deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"],
    );
}

#[test]
fn vector_whose_file_cannot_be_told_stops_everything() {
    for (storage_type, place) in [("u", "short"), ("u", "T>T)Ro7#1/ORp/D6&y/\""), ("x", "f")] {
        let table = snapshot(&["a"], vec![with_vector("f", storage_type, place)]);
        let error = Needed::of_snapshot(&table).unwrap_err().to_string();
        assert!(error.ends_with("of `f`; nothing was deleted"), "{error}");
    }
}

#[test]
fn odd_characters_are_compared_decoded_once() {
    let encoded = [
        "p=a%20b/f",
        "p=a~b/f",
        "p=a%252Fb/f",
        "p=a%253Ab/f",
        "p=%C3%B6/f",
        "p=2024-10-09%2019%253A00%253A00/f",
        "p=50%25/f",
        "plain+plus",
    ];
    let stored = [
        "p=a b/f",
        "p=a~b/f",
        "p=a%2Fb/f",
        "p=a%3Ab/f",
        "p=ö/f",
        "p=2024-10-09 19%3A00%3A00/f",
        "p=50%/f",
        "plain+plus",
    ];
    let needed = needed_of(encoded.iter().map(|path| plain_file(path, 1)).collect());
    check(&needed, &["p"], &stored, &[]);
    check(&Needed::default(), &["p"], &stored, &stored);
}

#[test]
fn absolute_paths_keep_what_ends_like_them() {
    let needed = needed_of(vec![
        plain_file("file:/lake/t/a%20b/f1", 1),
        plain_file("s3a://bucket/other/f2", 1),
        plain_file("/lake/t/f3", 1),
        plain_file("p=a:b/f4", 1),
    ]);
    let there = ["a b/f1", "f2", "f3", "p=a:b/f4", "f4", "b/f1"];
    check(&needed, &[], &there, &["f4", "b/f1"]);
}

#[test]
fn hidden_files_and_folders_are_passed_by() {
    let columns = ["_date".to_owned()];
    for (path, hidden) in [
        ("_delta_log/00000000000000000000.json", true),
        ("_delta_index/f", true),
        ("_lakebed/f", true),
        ("a/.f.crc", true),
        (".x/f", true),
        ("_dates_backup/f", true),
        ("_dates=1/f", true),
        ("_change_data/f", false),
        ("_change_data/_x/f", true),
        ("_date=2024/f", false),
        ("_date/f", true),
        ("a/_f", true),
        ("part-1.parquet", false),
        ("deletion_vector_x.bin", false),
    ] {
        assert_eq!(is_hidden(path, &columns), hidden, "{path}");
    }
}

#[test]
fn folders_are_counted_as_they_are_looked_through() {
    let listing = ["f", "a/f", "a/b/f", "a/b/g", "_x/f"].map(|path| stored(path, 0));
    assert_eq!(count_folders(&listing, &[]), 3);
}

#[test]
fn features_that_say_nothing_of_files_do_not_hinder() {
    let with = |features: &[&str]| {
        let mut table = snapshot(&["a"], Vec::new());
        let own = features.iter().map(|feature| (*feature).to_owned());
        table.protocol.writer_features.get_or_insert_default().extend(own);
        refusal(&table)
    };
    assert_eq!(with(&["rowTracking", "columnMapping", "vacuumProtocolCheck"]), None);
    assert_eq!(
        with(&["icebergCompatV2", "catalogManaged", "rowTracking"]).as_deref(),
        Some(
            "it uses table features that may need files this engine knows nothing of: catalogManaged, icebergCompatV2"
        )
    );
    let mut partitioned = snapshot(&[], Vec::new());
    partitioned.partition_columns.push("p".into());
    assert_eq!(refusal(&partitioned), None);
}
