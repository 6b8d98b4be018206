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
    let options = OptimizeOptions {
        full,
        default_file_size: TARGET.into(),
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

/// How many files a range of a tenth of the key's domain reads on average.
fn files_read(lake: &FakeLake) -> f64 {
    let ranges: Vec<(i64, i64)> = lake
        .live()
        .iter()
        .map(|file| {
            let stats: serde_json::Value =
                serde_json::from_str(file.stats.as_deref().unwrap()).unwrap();
            let bound = |side: &str| stats[side]["a"].as_i64().unwrap();
            (bound("minValues"), bound("maxValues"))
        })
        .collect();
    let reads = |from: i64| {
        ranges.iter().filter(|(low, high)| *low <= from + 100_000 && *high >= from).count()
    };
    let total: usize = (0..90).map(|n| reads(n * 10_000)).sum();
    Bytes(u64::try_from(total).unwrap()).as_f64() / 90.0
}

/// A table of 100 files gets 100 appends of a hundredth of its size, each over all keys, and an
/// OPTIMIZE after each. Standard clustering would rewrite about 150 times what is appended.
#[test]
fn cost_of_appends_follows_the_new_data() {
    const FILE_MIB: u64 = 1_024;
    let base = with_ranges(plain_file("base", 100 * FILE_MIB * MIB), &[("a", 0, 1_000_000)]);
    let lake = FakeLake::new(&["a"], vec![base]);
    let settings = ClusteringSettings::default();
    run(&lake, false, settings);
    for portion in [FILE_MIB, FILE_MIB / 8] {
        let mut rewritten = 0.0;
        for n in 0..100 {
            let path = format!("append-{portion}-{n}");
            lake.append(vec![with_ranges(
                plain_file(&path, portion * MIB),
                &[("a", 0, 1_000_000)],
            )]);
            let report = run(&lake, false, settings);
            rewritten += report.bins.iter().map(|bin| bin.bytes_in.as_f64()).sum::<f64>();
        }
        let cost = rewritten / (Bytes(100 * portion * MIB).as_f64());
        let files = lake.live().len();
        let read = files_read(&lake);
        println!("portion {portion} MiB: cost {cost:.2}, {read:.1} of {files} files read");
        assert!(cost < 6.0, "{cost}");
    }
    let before = files_read(&lake);
    run(&lake, true, settings);
    println!(
        "FULL: {:.1} of {} files read, {before:.1} before",
        files_read(&lake),
        lake.live().len()
    );
}
