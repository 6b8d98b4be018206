//! Weighted cuts from the domain in the log to the ranges of the files, and what other engines may do.

use std::{fs, path::Path};

use lakebed::{config::Config, pipeline::Pipeline, progress::Progress};
use lakebed_lake::SampleOptions;
use lakebed_layout::{
    AlterOutcome, Lake,
    action::{Action, AddFile},
    alter_layout, optimize,
};
use lakebed_model::{Instant, TableName};
use lakebed_plan::{
    Layout, LoggedScan, TableEvidence,
    benefit::{BenefitModel, Replay, Simulate},
};
use serde_json::{Value, json};

use crate::support::{
    Numbers, commits, count_and_sum, lakebed, options, read_commits, runtime, small_lake_copy,
};

const NOW: Instant = Instant::from_epoch_ms(1_796_000_000_000);
const ROWS: i64 = 12_000;

fn cut(columns: &[&str], parts: &[u32]) -> Layout {
    Layout::cut(columns.iter().map(|&column| column.to_owned()).collect(), parts.to_vec())
}

#[track_caller]
fn set(numbers: &Numbers, layout: &Layout) -> AlterOutcome {
    runtime(alter_layout(&numbers.lake, &numbers.table, layout, NOW)).expect("a layout")
}

/// A table of [`ROWS`] rows that a rewrite puts into about a dozen files.
fn numbers(folder: &Path) -> Numbers {
    Numbers::create_with(folder, 6, ROWS / 6, &[("delta.targetFileSize", "8000")])
}

#[track_caller]
fn run(folder: &Path, statement: &str) -> Value {
    lakebed(folder, &["--lake", ".", "--json", "sql", statement]).json()
}

#[track_caller]
fn rewritten(report: &Value) -> u64 {
    let bins = report["bins"].as_array().expect("bins");
    bins.iter().map(|bin| bin["files_in"].as_u64().expect("a count")).sum()
}

fn bounds(add: &AddFile, column: &str) -> (i64, i64) {
    let stats: Value =
        serde_json::from_str(add.stats.as_deref().expect("statistics")).expect("JSON");
    let bound = |side: &str| stats[side][column].as_i64().expect("a whole number");
    (bound("minValues"), bound("maxValues"))
}

/// No two files share a point of the two columns.
#[track_caller]
fn check_disjoint(files: &[AddFile], columns: [&str; 2]) {
    assert!(files.len() > 1, "{} files", files.len());
    let meet = |a: &AddFile, b: &AddFile, column: &str| {
        let (a, b) = (bounds(a, column), bounds(b, column));
        a.0 <= b.1 && b.0 <= a.1
    };
    for (position, file) in files.iter().enumerate() {
        for other in &files[..position] {
            let both = columns.iter().all(|column| meet(file, other, column));
            assert!(!both, "{:?} and {:?}", file.stats, other.stats);
        }
    }
}

fn live(numbers: &Numbers) -> Vec<AddFile> {
    runtime(numbers.lake.snapshot(&numbers.table)).expect("a snapshot").files
}

#[test]
fn cuts_are_stored_followed_described_and_changed() {
    let folder = tempfile::tempdir().unwrap();
    let table = numbers(folder.path());
    let expected = table.keys();
    assert!(matches!(set(&table, &cut(&["k", "v"], &[6, 2])), AlterOutcome::Committed { .. }));
    assert!(matches!(set(&table, &cut(&["k", "v"], &[6, 2])), AlterOutcome::Unchanged { .. }));
    let domains: Vec<(String, String)> = commits(&folder.path().join("t"), 1)
        .into_iter()
        .filter_map(|action| match action {
            Action::DomainMetadata(domain) => Some((domain.domain, domain.configuration)),
            _ => None,
        })
        .collect();
    assert_eq!(domains[0].0, "delta.clustering");
    let stored = r#"{"version":1,"columns":[["k"],["v"]],"parts":[6,2]}"#;
    assert_eq!(domains[1], ("lakebed.layout".to_owned(), stored.to_owned()));

    assert_eq!(rewritten(&run(folder.path(), "OPTIMIZE t FULL")), 6);
    let files = live(&table);
    check_disjoint(&files, ["k", "v"]);
    for file in &files {
        assert_eq!(file.tag("LAKEBED_CUTS"), Some(r#"[["k",6],["v",2]]"#));
    }
    let is_half = |file: &AddFile| bounds(file, "v").1 - bounds(file, "v").0 < 5;
    assert!(files.iter().any(is_half), "no file holds half of the ten values only");
    let detail = run(folder.path(), "DESCRIBE DETAIL t");
    assert_eq!(detail["clusteringColumns"], json!(["k", "v"]));
    let shown = json!([{"column": "k", "parts": 6}, {"column": "v", "parts": 2}]);
    assert_eq!((&detail["lakebedCuts"], detail.get("lakebedCutsIgnored")), (&shown, None));
    for statement in ["OPTIMIZE t", "OPTIMIZE t FULL"] {
        assert_eq!(rewritten(&run(folder.path(), statement)), 0, "{statement}");
    }

    // New data is cut alike, and what is there stays.
    let rows = vec![Numbers::rows(0, 4_000)];
    runtime(table.lake.append(&table.table, rows, NOW)).expect("an append");
    assert_eq!(rewritten(&run(folder.path(), "OPTIMIZE t")), 1);
    let kept: Vec<&AddFile> = files.iter().collect();
    let all = live(&table);
    let new: Vec<AddFile> = all.into_iter().filter(|file| !kept.contains(&file)).collect();
    assert!(new.iter().all(|file| file.tag("LAKEBED_CUTS").is_some()));
    check_disjoint(&new, ["k", "v"]);

    // Other proportions wait for FULL, as other columns do.
    set(&table, &cut(&["v", "k"], &[5, 3]));
    assert_eq!(rewritten(&run(folder.path(), "OPTIMIZE t")), 0);
    let full = run(folder.path(), "OPTIMIZE t FULL");
    assert_eq!(rewritten(&full), u64::try_from(files.len() + new.len()).unwrap());
    assert_eq!(rewritten(&run(folder.path(), "OPTIMIZE t FULL")), 0);
    check_disjoint(&live(&table), ["k", "v"]);

    // The same columns in whatever order keep their cuts, others and a layout without do not.
    run(folder.path(), "ALTER TABLE t CLUSTER BY (k, v)");
    let detail = run(folder.path(), "DESCRIBE DETAIL t");
    assert_eq!(detail["clusteringColumns"], json!(["k", "v"]));
    assert_eq!(detail["lakebedCuts"][0], json!({"column": "v", "parts": 5}));
    assert_eq!(rewritten(&run(folder.path(), "OPTIMIZE t FULL")), 0);
    set(&table, &Layout::clustered(vec!["k".to_owned(), "v".to_owned()]));
    let detail = run(folder.path(), "DESCRIBE DETAIL t");
    assert_eq!((&detail["lakebedCuts"], detail.get("lakebedCutsIgnored")), (&json!([]), None));
    assert!(rewritten(&run(folder.path(), "OPTIMIZE t FULL")) > 0);
    assert!(live(&table).iter().all(|file| file.tag("LAKEBED_CUTS").is_none()));
    set(&table, &cut(&["v", "k"], &[5, 3]));
    run(folder.path(), "ALTER TABLE t CLUSTER BY NONE");
    let detail = run(folder.path(), "DESCRIBE DETAIL t");
    assert_eq!((&detail["lakebedCuts"], detail.get("lakebedCutsIgnored")), (&json!([]), None));

    let mut twice = expected;
    twice.extend(0..4_000);
    twice.sort_unstable();
    assert_eq!(table.keys(), twice);
}

/// Commits clustering columns as another engine would, which knows nothing of our domain.
fn change_columns(table: &Path, columns: &Value) {
    let version = read_commits(table).len();
    let configuration = json!({ "clusteringColumns": columns, "domainName": "delta.clustering" });
    let actions = [
        json!({"commitInfo": {"timestamp": 1, "operation": "CLUSTER BY", "operationParameters": {}}}),
        json!({"domainMetadata": {
            "domain": "delta.clustering", "configuration": configuration.to_string(), "removed": false,
        }}),
    ];
    let text: String = actions.iter().map(|action| format!("{action}\n")).collect();
    fs::write(table.join("_delta_log").join(format!("{version:020}.json")), text)
        .expect("a commit");
}

#[test]
fn cuts_are_ignored_with_a_warning_while_another_engine_has_other_columns() {
    let folder = tempfile::tempdir().unwrap();
    let table = numbers(folder.path());
    let expected = table.keys();
    set(&table, &cut(&["k", "v"], &[6, 2]));
    run(folder.path(), "OPTIMIZE t FULL");
    change_columns(&folder.path().join("t"), &json!([["v"], ["w"]]));
    let detail = run(folder.path(), "DESCRIBE DETAIL t");
    let why = "they are of the columns (k, v), the table is clustered by (v, w)";
    assert_eq!((&detail["lakebedCuts"], &detail["lakebedCutsIgnored"]), (&json!([]), &json!(why)));
    let optimized = lakebed(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t FULL"]);
    let warning = format!("the cuts of the table are ignored: {why}");
    assert!(optimized.succeeded().stderr.contains(&warning), "{}", optimized.stderr);
    assert!(live(&table).iter().all(|file| file.tag("LAKEBED_CUTS").is_none()));

    // With the columns the cuts come back, in whatever order that engine lists them.
    change_columns(&folder.path().join("t"), &json!([["v"], ["k"]]));
    let optimized = lakebed(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t FULL"]);
    assert_eq!(optimized.succeeded().stderr, "");
    check_disjoint(&live(&table), ["k", "v"]);
    assert!(live(&table).iter().all(|file| file.tag("LAKEBED_CUTS").is_some()));
    assert_eq!(table.keys(), expected);
}

#[test]
fn rows_that_no_key_tells_apart_still_make_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let table = numbers(folder.path());
    let create = "CREATE TABLE alike TBLPROPERTIES ('delta.targetFileSize' = '4000') AS \
                  SELECT k, 7 AS a, CAST(NULL AS BIGINT) AS b FROM t";
    let statements = ["--lake", ".", "sql", create];
    lakebed(folder.path(), &statements).succeeded();
    let mut lake = crate::support::empty_lake();
    lake.add_folder(folder.path()).expect("the folder");
    let alike = Numbers { lake, table: TableName::new("alike") };
    set(&alike, &cut(&["a", "b"], &[4, 3]));
    run(folder.path(), "OPTIMIZE alike FULL");
    let files = live(&alike);
    assert!(files.len() > 2, "{} files", files.len());
    let rows: Vec<u64> = files.iter().filter_map(AddFile::rows).collect();
    let average = rows.iter().sum::<u64>() / u64::try_from(rows.len()).unwrap();
    assert!(rows.iter().all(|rows| *rows <= 2 * average), "{rows:?}");
    assert_eq!(alike.keys(), table.keys());
}

/// Predicts and measures the files that statements read of the small lake's lineitem under a layout.
#[track_caller]
fn check_simulation(layout: &Layout) {
    let folder = small_lake_copy();
    let mut config = Config::default();
    config.lake.folder = Some(folder.path().to_owned());
    let pipeline = runtime(Pipeline::new(config, Progress::hidden())).expect("a lake");
    let table = TableName::new("lineitem");
    let predicates = [
        "l_orderkey BETWEEN 10000 AND 21999",
        "l_orderkey BETWEEN 7 AND 7",
        "l_shipdate >= DATE'1994-01-01' AND l_shipdate < DATE'1995-01-01'",
        "l_shipdate <= DATE'1995-06-15' AND l_orderkey > 50000",
        "l_partkey BETWEEN 100 AND 499",
        "l_quantity < 24",
    ];
    let scan = |predicate: &&str| -> LoggedScan {
        runtime(pipeline.predicate(&table, predicate)).expect("a predicate").0
    };
    let scans: Vec<LoggedScan> = predicates.iter().map(scan).collect();
    let columns = scans.iter().flat_map(|scan| scan.ranges.keys().cloned()).collect();
    let whole = SampleOptions {
        rows_per_target_file: 1_000_000,
        rows_max: 1_000_000,
        ..pipeline.sample_options().expect("options")
    };
    let evidence = || -> TableEvidence {
        runtime(pipeline.lake.evidence(&table, &columns, &whole)).expect("evidence")
    };
    let files = |model: &dyn BenefitModel, evidence: &TableEvidence| -> Vec<String> {
        let readings = model.prepare(evidence, &scans).readings(layout);
        readings.iter().map(|reading| format!("{:.2}", reading.files)).collect()
    };
    let before = count_and_sum(&pipeline.lake, "l_orderkey", &table);
    let predicted = files(&Simulate, &evidence());
    runtime(alter_layout(&pipeline.lake, &table, layout, NOW)).expect("a layout");
    let options = options(true, 1);
    runtime(optimize(&pipeline.lake, &pipeline.lake, &table, &options)).expect("a rewrite");
    let after = evidence();
    assert_eq!(after.current, *layout);
    assert_eq!(files(&Replay, &after), predicted, "{layout}");
    assert_eq!(count_and_sum(&pipeline.lake, "l_orderkey", &table), before);
}

/// With the whole table as the sample, the simulator and the rewriter divide the same rows.
#[test]
fn simulated_reading_of_cuts_is_what_the_rewritten_table_reads() {
    check_simulation(&cut(&["l_orderkey", "l_shipdate"], &[25, 4]));
    check_simulation(&cut(&["l_partkey", "l_orderkey", "l_shipdate"], &[10, 5, 2]));
}
