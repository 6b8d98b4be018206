//! OPTIMIZE again and again: the second run does nothing, and cost follows what is new.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use lakebed_model::{Bytes, Instant, TableName};
use lakebed_plan::Layout;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use crate::{
    ClusteringSettings, OptimizeOptions, OptimizeReport,
    action::AddFile,
    alter_layout, cuts, optimize, sizing,
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
    ready(optimize(lake, lake, &TableName::new("t"), &options)).unwrap()
}

/// The fake lake never waits, so a future is ready when first polled.
fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
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
    is_cut: bool,
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
                is_cut: bounds % 2 == 0,
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
    if shape.is_cut {
        tags.insert(cuts::TAG.to_owned(), Some(r#"[["b",5],["a",2]]"#.to_owned()));
    }
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
        (full, cut) in any::<(bool, bool)>(),
        settings in settings(),
    ) {
        let keys = [&[][..], &["a"], &["a", "b"]][keys];
        let full = full && !keys.is_empty();
        let files = shapes.iter().enumerate().map(|(index, shape)| file(index, shape)).collect();
        let lake = FakeLake::new(keys, files);
        if cut && keys.len() == 2 {
            let layout = Layout::cut(vec!["b".to_owned(), "a".to_owned()], vec![5, 2]);
            ready(alter_layout(&lake, &TableName::new("t"), &layout, Instant::from_epoch_ms(1))).unwrap();
        }
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

/// Where the keys of new rows lie.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Arrival {
    /// Over all keys.
    Everywhere,
    /// Behind all keys, as time goes.
    AtTheEnd,
}

/// The keys that a base file spans.
const KEYS: i64 = 1_000_000;

/// The shares of files and of bytes that a range of a tenth of the key's domain skips, on average.
fn skipped(lake: &FakeLake) -> (f64, f64) {
    let bounds = |file: &AddFile| {
        let stats: serde_json::Value =
            serde_json::from_str(file.stats.as_deref().unwrap()).unwrap();
        let bound = |side: &str| stats[side]["a"].as_i64().unwrap();
        (bound("minValues"), bound("maxValues"), file.size)
    };
    let files: Vec<(i64, i64, u64)> = lake.live().iter().map(bounds).collect();
    let end = files.iter().map(|(_, high, _)| *high).max().unwrap();
    let (mut skipped_files, mut skipped_bytes) = (0.0, 0.0);
    for n in 0..=90 {
        let from = end / 100 * n;
        for (low, high, size) in &files {
            if *low > from + end / 10 || *high < from {
                skipped_files += 1.0;
                skipped_bytes += Bytes(*size).as_f64();
            }
        }
    }
    let bytes: f64 = files.iter().map(|(.., size)| Bytes(*size).as_f64()).sum();
    let count = Bytes(u64::try_from(files.len()).unwrap()).as_f64();
    (skipped_files / 91.0 / count, skipped_bytes / 91.0 / bytes)
}

/// What a hundred appends with an OPTIMIZE after each came to.
struct Appended {
    /// Bytes rewritten per byte appended, after the last and at most.
    cost: f64,
    cost_max: f64,
    /// Bytes skipped of those that are skipped after FULL.
    kept: f64,
    /// The same of files.
    kept_files: f64,
}

/// Appends a share of a table's base, in thousandths, a hundred times with an OPTIMIZE after each.
fn appended(
    base_files: u64,
    thousandths: u64,
    arrival: Arrival,
    settings: ClusteringSettings,
) -> Appended {
    let target = Bytes(64 * MIB);
    let size = base_files * target.0;
    let portion = size / 1_000 * thousandths;
    let file =
        |path: &str, size, low, high| with_ranges(plain_file(path, size), &[("a", low, high)]);
    let lake = FakeLake::new(&["a"], vec![file("base", size, 0, KEYS)]);
    run_sized(&lake, false, settings, target);
    let (mut rewritten, mut arrived, mut cost_max) = (0.0, 0.0, 0.0_f64);
    let width = KEYS / 1_000 * i64::try_from(thousandths).unwrap();
    for n in 0..100 {
        let (low, high) = match arrival {
            Arrival::Everywhere => (0, KEYS),
            Arrival::AtTheEnd => (KEYS + n * width, KEYS + (n + 1) * width),
        };
        lake.append(vec![file(&format!("append-{n}"), portion, low, high)]);
        let report = run_sized(&lake, false, settings, target);
        rewritten += report.bins.iter().map(|bin| bin.bytes_in.as_f64()).sum::<f64>();
        arrived += Bytes(portion).as_f64();
        cost_max = cost_max.max(rewritten / arrived);
    }
    let then = skipped(&lake);
    run_sized(&lake, true, settings, target);
    let full = skipped(&lake);
    Appended {
        cost: rewritten / arrived,
        cost_max,
        kept: then.1 / full.1,
        kept_files: then.0 / full.0,
    }
}

/// Runs one shape and checks its cost, and what it skips of what FULL skips.
#[track_caller]
fn check_appends(base_files: u64, thousandths: u64, arrival: Arrival, kept_min: f64) {
    let got = appended(base_files, thousandths, arrival, ClusteringSettings::default());
    println!(
        "{base_files} base files, 100 appends of {thousandths} thousandths, {arrival:?}: {:.2} bytes \
         rewritten per byte (at most {:.2}); of FULL's skipping {:.3} by bytes, {:.3} by files",
        got.cost, got.cost_max, got.kept, got.kept_files
    );
    assert!(got.cost_max <= 4.0, "{}", got.cost_max);
    assert!(got.kept >= kept_min, "{}", got.kept);
}

/// The goal: a hundred appends of a hundredth each rewrite at most four bytes per byte, and skip
/// within a tenth of what FULL skips.
#[test]
fn hundred_appends_cost_four_times_their_bytes_and_skip_as_full_does() {
    for base_files in [4, 16, 100] {
        check_appends(base_files, 10, Arrival::Everywhere, 0.9);
        check_appends(base_files, 10, Arrival::AtTheEnd, 0.9);
        check_appends(base_files, 1, Arrival::AtTheEnd, 0.9);
    }
}

/// A tenth of the base in all, in small portions: too little to pay for a base of ten times as much, so
/// that what FULL would skip is not quite reached. Beside a base of four files FULL makes five of the
/// whole, which alone skip more.
#[test]
fn hundred_small_appends_cost_four_times_their_bytes() {
    check_appends(4, 1, Arrival::Everywhere, 0.8);
    check_appends(16, 1, Arrival::Everywhere, 0.89);
    check_appends(100, 1, Arrival::Everywhere, 0.89);
}

#[test]
fn standard_strategy_costs_the_whole_table_each_time() {
    let standard =
        ClusteringSettings { strategy_incremental: false, ..ClusteringSettings::default() };
    let got = appended(16, 10, Arrival::Everywhere, standard);
    println!("standard: {:.2} bytes rewritten per byte", got.cost);
    assert!(got.cost > 100.0, "{}", got.cost);
}
