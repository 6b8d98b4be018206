//! How long it takes to choose the files of an OPTIMIZE. Run
//! `cargo test --release -p lakebed-tests planning -- --nocapture` to see the times.

use std::time::Instant;

use lakebed_layout::{
    SelectionPolicy,
    action::AddFile,
    select,
    testing::{clustered_file, plain_file, snapshot, with_ranges},
};
use lakebed_model::Bytes;

const FILES: i64 = 100_000;

/// Times one choice among so many files, a hundred of them new.
#[expect(clippy::disallowed_methods, reason = "prints a time, and nothing depends on it")]
fn time(what: &str, keys: &[&str], file: impl Fn(i64) -> (String, Vec<(&'static str, i64, i64)>)) {
    let mut files: Vec<AddFile> = (0..FILES)
        .map(|n| {
            let (rewrite, ranges) = file(n);
            let file = clustered_file(&format!("part-{n:06}"), 100, &format!("c{}", n % 50), keys);
            let mut file = with_ranges(file, &ranges);
            file.tags.get_or_insert_default().insert("LAKEBED_REWRITE".into(), Some(rewrite));
            file
        })
        .collect();
    files.extend((0..100).map(|n| plain_file(&format!("new-{n}"), 10)));
    let table = snapshot(keys, files);
    let started = Instant::now();
    let selection = select(&table, &SelectionPolicy::new(false, Bytes(100))).expect("a choice");
    let elapsed = started.elapsed();
    let chosen: usize = selection.bins.iter().map(|bin| bin.files.len()).sum();
    println!("{what}: {} ms, {chosen} of {} files", elapsed.as_millis(), table.files.len());
}

/// A number that looks random.
fn scattered(n: i64, below: i64) -> i64 {
    (n.wrapping_mul(2_654_435_761) >> 7).rem_euclid(below)
}

#[test]
fn choosing_among_a_hundred_thousand_files() {
    let tile = |n: i64| {
        let (x, y) = (n % 316 * 1_000, n / 316 * 1_000);
        vec![("a", x, x + 1_000), ("b", y, y + 1_000)]
    };
    time("one rewrite, tiles of two keys", &["a", "b"], |n| ("r".to_owned(), tile(n)));
    time("a hundred rewrites, tiles of two keys", &["a", "b"], |n| {
        (format!("r{}", n % 100), tile(n / 100 * 100))
    });
    time("scattered boxes of two keys, a rewrite each", &["a", "b"], |n| {
        let (x, y) = (scattered(n, 1_000_000), scattered(n + 7, 1_000_000));
        (format!("r{n}"), vec![("a", x, x + 10_000), ("b", y, y + 10_000)])
    });
    time("a thousand files over everything, the rest in order", &["a"], |n| {
        if n < 1_000 {
            (format!("r{n}"), vec![("a", 0, FILES * 10)])
        } else {
            ("base".to_owned(), vec![("a", n * 10, n * 10 + 10)])
        }
    });
    time("every file over everything", &["a", "b"], |n| {
        (format!("r{n}"), vec![("a", n, FILES * 2 - n), ("b", 0, 1_000)])
    });
    time("every file half over everything, nothing offends", &["a", "b"], |n| {
        (format!("r{n}"), vec![("a", n, n + FILES), ("b", 1_000 * n, 1_000 * n + 999)])
    });
}
