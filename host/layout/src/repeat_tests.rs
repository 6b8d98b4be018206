//! OPTIMIZE again and again: the second run does nothing, and cost follows what is new.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use lakebed_model::{Bytes, Instant, TableName};
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use crate::{
    ClusteringSettings, OptimizeOptions, OptimizeReport,
    action::AddFile,
    optimize, sizing,
    testing::{FakeLake, clustered_file, plain_file, with_deletions, with_ranges},
    zcube,
};

const MIB: u64 = 1 << 20;
const TARGET: Bytes = Bytes(1_024 * MIB);

fn run(lake: &FakeLake, full: bool, settings: ClusteringSettings) -> OptimizeReport {
    run_sized(lake, full, settings, TARGET)
}

fn run_sized(
    lake: &FakeLake,
    full: bool,
    settings: ClusteringSettings,
    target: Bytes,
) -> OptimizeReport {
    let options = OptimizeOptions {
        full,
        default_file_size: target.into(),
        settings,
        now: Instant::from_epoch_ms(1),
    };
    let table = TableName::new("t");
    let mut future = pin!(optimize(lake, lake, &table, &options));
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(report) => report.unwrap(),
        Poll::Pending => panic!("the fake lake waited"),
    }
}

fn live_rows(lake: &FakeLake) -> u64 {
    lake.live().iter().map(|file| file.rows().unwrap_or(0) - file.deleted_rows()).sum()
}

#[derive(Debug, Clone)]
struct Shape {
    state: usize,
    cube: usize,
    rewrite: Option<u8>,
    planned_mib: Option<u64>,
    mib: u64,
    deleted: i64,
    ranges: Option<[(i64, i64); 2]>,
}

fn shape() -> impl Strategy<Value = Shape> {
    let mib = prop_oneof![8 => 1..3_000_u64, 8 => 1..300_u64, 1 => 30_000..120_000_u64];
    let range = || (0..1_000_i64, 0..400_i64);
    let planned = prop_oneof![3 => Just(None), 1 => (1..2_000_u64).prop_map(Some)];
    let deleted = prop_oneof![4 => Just(0), 1 => 1..100_i64];
    (
        (0..5_usize, 0..3_usize, any::<bool>(), 0..3_u8, planned),
        (mib, deleted, any::<u8>(), range(), range()),
    )
        .prop_map(
            |((state, cube, tagged, rewrite, planned_mib), (mib, deleted, bounds, a, b))| Shape {
                state,
                cube,
                rewrite: tagged.then_some(rewrite),
                planned_mib,
                mib,
                deleted,
                ranges: (bounds > 30).then_some([a, b]),
            },
        )
}

fn file(index: usize, shape: &Shape) -> AddFile {
    let path = format!("f{index}");
    let size = shape.mib * MIB;
    let cube = ["x", "y", "z"][shape.cube];
    let mut file = match shape.state {
        0 => plain_file(&path, size),
        1 => clustered_file(&path, size, cube, &["s"]),
        2 => AddFile { clustering_provider: Some("other".into()), ..plain_file(&path, size) },
        3 => clustered_file(&path, size, cube, &["a"]),
        _ => clustered_file(&path, size, cube, &["b", "a"]),
    };
    if let Some([(a, a_length), (b, b_length)]) = shape.ranges {
        file = with_ranges(file, &[("a", a, a + a_length), ("b", b, b + b_length)]);
    }
    if shape.deleted > 0 {
        file = with_deletions(file, shape.deleted);
    }
    let tags = file.tags.get_or_insert_default();
    if let Some(rewrite) = shape.rewrite {
        tags.insert(zcube::REWRITE.to_owned(), Some(format!("r{rewrite}")));
    }
    if let Some(planned) = shape.planned_mib {
        tags.insert(sizing::PLANNED_BYTES.to_owned(), Some((planned * MIB).to_string()));
    }
    file
}

fn settings() -> impl Strategy<Value = ClusteringSettings> {
    (any::<[bool; 3]>(), 2..6_u32, 0.3..1.0_f64).prop_map(
        |([strategy_incremental, auto_recluster, fast_optimize], files, threshold)| {
            ClusteringSettings {
                strategy_incremental,
                auto_recluster,
                fast_optimize,
                min_offending_files: files,
                min_overlap_threshold: threshold,
                ..ClusteringSettings::default()
            }
        },
    )
}

proptest! {
    #[test]
    fn second_optimize_does_nothing_whatever_the_table_and_the_settings(
        shapes in proptest::collection::vec(shape(), 0..60),
        later in proptest::collection::vec(shape(), 1..10),
        keys in 0..3_usize,
        full in any::<bool>(),
        settings in settings(),
    ) {
        let keys = [&[][..], &["a"], &["a", "b"]][keys];
        let full = full && !keys.is_empty();
        let files = shapes.iter().enumerate().map(|(index, shape)| file(index, shape)).collect();
        let lake = FakeLake::new(keys, files);
        for round in 0..3 {
            let before = (live_rows(&lake), lake.version());
            let first = run(&lake, full, settings);
            let commits = u64::try_from(first.bins.len()).unwrap();
            prop_assert_eq!((live_rows(&lake), lake.version()), (before.0, before.1 + commits));
            prop_assert_eq!(run(&lake, full, settings).bins, [], "after {:?}", first.bins);
            let new = |(index, shape): (usize, &Shape)| file(1_000 * (round + 1) + index, shape);
            lake.append(later.iter().enumerate().map(new).collect());
        }
    }
}

/// The share of files that a range of a tenth of the key's domain skips, on average.
fn skipped(lake: &FakeLake) -> f64 {
    let bounds = |file: &AddFile| {
        let stats: serde_json::Value =
            serde_json::from_str(file.stats.as_deref().unwrap()).unwrap();
        let bound = |side: &str| stats[side]["a"].as_i64().unwrap();
        (bound("minValues"), bound("maxValues"))
    };
    let ranges: Vec<(i64, i64)> = lake.live().iter().map(bounds).collect();
    let skips = |from: i64| {
        ranges.iter().filter(|(low, high)| *low > from + 100_000 || *high < from).count()
    };
    let total: usize = (0..90).map(|n| skips(n * 10_000)).sum();
    Bytes(u64::try_from(total).unwrap()).as_f64()
        / Bytes(u64::try_from(90 * ranges.len()).unwrap()).as_f64()
}

/// Appends a hundredth of a table a hundred times, each over all keys, with an OPTIMIZE after each.
/// Returns the bytes rewritten per byte appended, and the share of files skipped then and after FULL.
fn appended(base_files: u64, settings: ClusteringSettings) -> (f64, f64, f64) {
    let target = Bytes(64 * MIB);
    let all_keys = |path: &str, size| with_ranges(plain_file(path, size), &[("a", 0, 1_000_000)]);
    let size = base_files * target.0;
    let lake = FakeLake::new(&["a"], vec![all_keys("base", size)]);
    run_sized(&lake, false, settings, target);
    let mut rewritten = 0.0;
    for n in 0..100 {
        lake.append(vec![all_keys(&format!("append-{n}"), size / 100)]);
        let report = run_sized(&lake, false, settings, target);
        rewritten += report.bins.iter().map(|bin| bin.bytes_in.as_f64()).sum::<f64>();
    }
    let then = skipped(&lake);
    run_sized(&lake, true, settings, target);
    (rewritten / Bytes(size).as_f64(), then, skipped(&lake))
}

#[test]
fn cost_of_appends_follows_the_new_data() {
    for base_files in [4, 16, 100] {
        let (cost, then, full) = appended(base_files, ClusteringSettings::default());
        println!("{base_files} files: {cost:.2} times, {then:.3} skipped, {full:.3} by FULL");
        assert!(cost < 10.0, "{base_files}: {cost}");
    }
    let standard =
        ClusteringSettings { strategy_incremental: false, ..ClusteringSettings::default() };
    let (cost, ..) = appended(16, standard);
    println!("standard: {cost:.2} times");
    assert!(cost > 100.0, "{cost}");
}
