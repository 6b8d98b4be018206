//! Checkpoints of clustered tables: written when the table says, and enough to read it by.

use std::fs;

use lakebed_layout::{AlterOutcome, Lake, alter_clustering, optimize, zcube};
use lakebed_model::Instant;

use crate::support::{Numbers, files_of, options, runtime};

const NOW: Instant = Instant::from_epoch_ms(1_796_000_000_000);

fn checkpoint(version: u64) -> String {
    format!("{version:020}.checkpoint.parquet")
}

#[test]
fn clustered_table_reads_the_same_without_the_commits_before_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let properties = [("delta.checkpointInterval", "3"), ("delta.targetFileSize", "4000")];
    let numbers = Numbers::create_with(folder.path(), 4, 500, &properties);
    let log = folder.path().join("t").join("_delta_log");
    let keys = ["v".to_owned(), "w".to_owned()];
    let altered = alter_clustering(&numbers.lake, &numbers.table, &keys, NOW);
    assert_eq!(runtime(altered).unwrap(), AlterOutcome::Committed { version: 1 });
    let settings = options(false, 4_000);
    let run = || runtime(optimize(&numbers.lake, &numbers.lake, &numbers.table, &settings));
    assert_eq!(run().unwrap().version, 2);
    let rows = vec![Numbers::rows(2_000, 2_100)];
    assert_eq!(runtime(numbers.lake.append(&numbers.table, rows, NOW)).unwrap(), 3);
    let logged = files_of(&log);
    let checkpoints: Vec<&String> = logged.iter().filter(|f| f.contains("checkpoint.")).collect();
    assert_eq!(checkpoints, [&checkpoint(3)], "one, at the table's interval");

    let before = runtime(numbers.lake.snapshot(&numbers.table)).unwrap();
    for version in 0..=3 {
        fs::remove_file(log.join(format!("{version:020}.json"))).unwrap();
    }
    let lake = numbers.second_writer();
    let after = runtime(lake.snapshot(&numbers.table)).unwrap();
    assert_eq!((after.version, after.cluster_by()), (3, vec!["v".to_owned(), "w".to_owned()]));
    assert_eq!((&after.files, &after.properties), (&before.files, &before.properties));
    let clustered = after.files.iter().filter(|file| file.tag(zcube::ZCUBE_ID).is_some()).count();
    assert_eq!(clustered, after.files.len() - 1, "all but the appended file");
    assert_eq!(numbers.keys(), (0..2_100).collect::<Vec<i64>>());

    let report = run().unwrap();
    assert_eq!((report.version, report.bins[0].files_in), (4, 1), "the appended file only");
    assert_eq!(numbers.keys(), (0..2_100).collect::<Vec<i64>>());
}
