//! What a clustered table's log says afterwards, in the words of the protocol.

use lakebed_layout::{
    Lake,
    action::{Action, AddFile},
    zcube,
};
use serde_json::{Value, json};

use crate::support::{Numbers, adds, clustering_columns, commits, lakebed, removes, runtime};

fn info(commit: &[Action]) -> &Value {
    let mut infos = commit.iter().filter_map(|action| match action {
        Action::CommitInfo(info) => Some(info),
        _ => None,
    });
    infos.next().expect("a commitInfo")
}

#[test]
fn clustered_table_carries_features_domain_tags_and_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let properties = [("delta.targetFileSize", "20000")];
    Numbers::create_with(folder.path(), 6, 2_000, &properties);
    let statements = ["--lake", ".", "sql", "ALTER TABLE t CLUSTER BY (w, v)", "OPTIMIZE t FULL"];
    lakebed(folder.path(), &statements).succeeded();
    let table = folder.path().join("t");

    let alter = commits(&table, 1);
    let protocol = alter.iter().find_map(|action| match action {
        Action::Protocol(protocol) => Some(protocol),
        _ => None,
    });
    let protocol = protocol.expect("an upgraded protocol");
    assert_eq!((protocol.min_reader_version, protocol.min_writer_version), (1, 7));
    let features = protocol.writer_features.as_deref().expect("writer features");
    for feature in ["clustering", "domainMetadata", "appendOnly", "invariants"] {
        assert!(features.iter().any(|name| name == feature), "{features:?}");
    }
    assert_eq!(clustering_columns(&alter), json!([["w"], ["v"]]));

    let optimize = commits(&table, 2);
    let added = adds(&optimize);
    assert!(added.len() > 1, "{} files", added.len());
    assert_eq!(removes(&optimize).len(), 6);
    assert!(removes(&optimize).iter().all(|remove| !remove.data_change));
    let cubes: std::collections::BTreeSet<_> =
        added.iter().map(|add| add.tag(zcube::ZCUBE_ID).expect("a cube")).collect();
    assert_eq!(cubes.len(), 1, "one bin is one cube");
    for add in &added {
        assert!(!add.data_change);
        assert_eq!(add.clustering_provider.as_deref(), Some("liquid"));
        assert_eq!(add.tag(zcube::ZCUBE_ZORDER_BY), Some(r#"["w","v"]"#));
        let stats: Value = serde_json::from_str(add.stats.as_deref().expect("stats")).unwrap();
        for side in ["minValues", "maxValues", "nullCount"] {
            for column in ["k", "v", "w"] {
                assert!(stats[side][column].is_i64() || stats[side][column].is_u64(), "{stats}");
            }
        }
    }
    let rows: u64 = added.iter().filter_map(|add| add.rows()).sum();
    assert_eq!(rows, 12_000);
    let info = info(&optimize);
    assert_eq!(info["operation"], "OPTIMIZE");
    assert_eq!(info["operationParameters"]["clusterBy"], r#"["w","v"]"#);
    assert_eq!(info["operationMetrics"]["numRemovedFiles"], "6");
}

/// `w` falls where `k` rises: files of the new layout do not overlap in the one key.
#[test]
fn files_of_one_key_have_disjoint_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let properties = [("delta.targetFileSize", "20000")];
    Numbers::create_with(folder.path(), 6, 2_000, &properties);
    let statements = ["--lake", ".", "sql", "ALTER TABLE t CLUSTER BY (w)", "OPTIMIZE t FULL"];
    lakebed(folder.path(), &statements).succeeded();
    let optimize = commits(&folder.path().join("t"), 2);
    let bound = |add: &AddFile, side: &str| -> i64 {
        let stats: Value = serde_json::from_str(add.stats.as_deref().unwrap()).unwrap();
        stats[side]["w"].as_i64().unwrap()
    };
    let mut ranges: Vec<(i64, i64)> = adds(&optimize)
        .into_iter()
        .map(|add| (bound(add, "minValues"), bound(add, "maxValues")))
        .collect();
    ranges.sort_unstable();
    assert!(ranges.len() > 1);
    assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
    // w = 1000 - k for k in 0..12 000
    assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), (1_000 - 11_999, 1_000));
}

#[test]
fn cluster_by_none_keeps_the_domain_with_no_columns_and_files_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = Numbers::create(folder.path(), 3, 100);
    let statements = [
        "--lake",
        ".",
        "--json",
        "sql",
        "ALTER TABLE t CLUSTER BY (k)",
        "OPTIMIZE t",
        "ALTER TABLE t CLUSTER BY NONE",
        "ALTER TABLE t CLUSTER BY NONE",
    ];
    let run = lakebed(folder.path(), &statements);
    assert!(run.succeeded().stdout.contains("\"changed\": false"), "the second changes nothing");
    let snapshot = runtime(numbers.lake.snapshot(&numbers.table)).unwrap();
    assert_eq!((snapshot.version, snapshot.cluster_by().len()), (3, 0));
    assert_eq!(snapshot.files[0].clustering_provider.as_deref(), Some("liquid"));
    assert_eq!(clustering_columns(&commits(&folder.path().join("t"), 3)), json!([]));
}

#[test]
fn appended_files_are_clustered_and_the_others_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let properties = [("delta.targetFileSize", "20000")];
    let numbers = Numbers::create_with(folder.path(), 6, 2_000, &properties);
    let statements = ["--lake", ".", "sql", "ALTER TABLE t CLUSTER BY (v, w)", "OPTIMIZE t"];
    lakebed(folder.path(), &statements).succeeded();
    let rows = vec![Numbers::rows(12_000, 14_000)];
    let now = lakebed_model::Instant::from_epoch_ms(1);
    let version = runtime(numbers.lake.append(&numbers.table, rows, now)).unwrap();
    let appended = commits(&folder.path().join("t"), usize::try_from(version).unwrap());
    lakebed(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t"]).succeeded();
    let optimize = commits(&folder.path().join("t"), usize::try_from(version).unwrap() + 1);
    let removed: Vec<&str> = removes(&optimize).iter().map(|r| r.path.as_str()).collect();
    let new: Vec<&str> = adds(&appended).iter().map(|add| add.path.as_str()).collect();
    assert_eq!(removed, new, "clustering cost follows the new data");
    assert_eq!(numbers.keys(), (0..14_000).collect::<Vec<i64>>());
}
