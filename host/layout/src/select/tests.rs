//! Which files are selected, and why.

use lakebed_model::Bytes;

use super::{Reason, Selection, SelectionPolicy, select};
use crate::{
    ClusteringSettings, LayoutError,
    action::AddFile,
    sizing::PLANNED_BYTES,
    testing::{clustered_file, plain_file, snapshot, with_deletions, with_ranges},
    zcube,
};

const TARGET: Bytes = Bytes(1_000);

#[track_caller]
fn check(files: Vec<AddFile>, keys: &[&str], full: bool, expected: &[(&str, Reason)]) {
    check_with(ClusteringSettings::default(), files, keys, full, expected);
}

#[track_caller]
fn check_with(
    settings: ClusteringSettings,
    files: Vec<AddFile>,
    keys: &[&str],
    full: bool,
    expected: &[(&str, Reason)],
) {
    let policy = SelectionPolicy { settings, ..SelectionPolicy::new(full, TARGET) };
    let selection = select(&snapshot(keys, files), &policy).unwrap();
    let got: Vec<(String, Reason)> = selection
        .bins
        .iter()
        .flat_map(|bin| bin.files.iter().map(|(file, reason)| (file.path.clone(), *reason)))
        .collect();
    let expected: Vec<(String, Reason)> =
        expected.iter().map(|(path, reason)| ((*path).to_owned(), *reason)).collect();
    assert_eq!(got, expected);
}

/// A clustered file of a healthy size.
fn healthy(path: &str, cube: &str) -> AddFile {
    clustered_file(path, 900, cube, &["a"])
}

fn tagged(mut file: AddFile, tag: &str, value: &str) -> AddFile {
    file.tags.get_or_insert_default().insert(tag.to_owned(), Some(value.to_owned()));
    file
}

#[test]
fn new_files_are_selected_and_clustered_ones_left_alone() {
    let files = vec![
        clustered_file("c1", 900, "cube", &["a"]),
        plain_file("n1", 10),
        clustered_file("stale", 900, "old", &["b"]),
    ];
    check(files, &["a"], false, &[("n1", Reason::Unclustered)]);
}

#[test]
fn full_takes_stale_and_foreign_files_and_the_open_cube_with_them() {
    let mut foreign = plain_file("f1", 900);
    foreign.clustering_provider = Some("other".into());
    let files = vec![
        clustered_file("c1", 900, "cube", &["b", "a"]),
        clustered_file("s1", 900, "old", &["b"]),
        foreign,
    ];
    let expected =
        [("f1", Reason::OtherProvider), ("c1", Reason::OpenCube), ("s1", Reason::StaleKeys)];
    check(files.clone(), &["a", "b"], true, &expected);
    check(files, &["a", "b"], false, &[]);
}

#[test]
fn full_splits_files_that_another_engine_merged() {
    let files = vec![
        clustered_file("fits", 1_999, "cube", &["a"]),
        clustered_file("merged", 2_000, "cube", &["a"]),
    ];
    let expected = [("fits", Reason::OpenCube), ("merged", Reason::Oversized)];
    check(files.clone(), &["a"], true, &expected);
    check(files, &["a"], false, &[]);
}

#[test]
fn deleted_rows_select_a_file_whatever_its_state() {
    let files = vec![
        with_deletions(clustered_file("d6", 900, "cube", &["a"]), 6),
        with_deletions(clustered_file("d5", 900, "cube", &["a"]), 5),
    ];
    check(files, &["a"], false, &[("d6", Reason::DeletedRows)]);
}

#[test]
fn small_clustered_files_wait_until_they_fill_a_file() {
    let small = |n: u32| clustered_file(&format!("s{n}"), 240, "cube", &["a"]);
    check(vec![small(1), small(2)], &["a"], false, &[]);
    let five: Vec<AddFile> = (1..=5).map(small).collect();
    let expected: Vec<(&str, Reason)> =
        ["s1", "s2", "s3", "s4", "s5"].into_iter().map(|p| (p, Reason::Small)).collect();
    check(five, &["a"], false, &expected);
}

#[test]
fn a_table_without_keys_is_compacted_only_when_files_get_fewer() {
    check(vec![plain_file("a", 100)], &[], false, &[]);
    let two = vec![plain_file("a", 100), plain_file("b", 100)];
    check(two, &[], false, &[("a", Reason::Small), ("b", Reason::Small)]);
}

#[test]
fn full_without_keys_is_refused_with_deltas_error_class() {
    let policy = SelectionPolicy::new(true, TARGET);
    let error = select(&snapshot(&[], vec![]), &policy).unwrap_err();
    assert!(matches!(error, LayoutError::FullWithoutColumns { .. }));
}

#[test]
fn bins_stay_under_their_limit() {
    let files: Vec<AddFile> = (0..5).map(|n| plain_file(&format!("f{n}"), 400)).collect();
    let policy = SelectionPolicy {
        bin_bytes_max: 1_000,
        closed_cube_bytes: 500,
        target_file_size: Bytes(300),
        ..SelectionPolicy::new(false, TARGET)
    };
    let selection = select(&snapshot(&["a"], files), &policy).unwrap();
    let sizes: Vec<usize> = selection.bins.iter().map(|bin| bin.files.len()).collect();
    assert_eq!(sizes, [2, 2, 1]);
}

#[test]
fn a_rest_of_less_than_a_file_stays_in_the_last_bin() {
    let files: Vec<AddFile> = (0..5).map(|n| plain_file(&format!("f{n}"), 400)).collect();
    let policy = SelectionPolicy {
        bin_bytes_max: 1_000,
        closed_cube_bytes: 500,
        ..SelectionPolicy::new(false, TARGET)
    };
    let selection = select(&snapshot(&["a"], files), &policy).unwrap();
    let sizes: Vec<usize> = selection.bins.iter().map(|bin| bin.files.len()).collect();
    assert_eq!(sizes, [2, 3]);
}

#[test]
fn new_files_join_the_largest_open_cube_until_it_is_closed() {
    let mut files = vec![
        clustered_file("c1", 300, "one", &["a"]),
        clustered_file("c2", 400, "two", &["a"]),
        clustered_file("c3", 5_000, "closed", &["a"]),
    ];
    files.extend((0..4).map(|n| plain_file(&format!("n{n}"), 600)));
    let policy = SelectionPolicy {
        bin_bytes_max: 1_500,
        closed_cube_bytes: 1_000,
        target_file_size: Bytes(100),
        ..SelectionPolicy::new(false, TARGET)
    };
    let Selection { bins } = select(&snapshot(&["a"], files), &policy).unwrap();
    let shape: Vec<(usize, Option<&str>)> =
        bins.iter().map(|bin| (bin.files.len(), bin.cube.as_deref())).collect();
    assert_eq!(shape, [(1, Some("two")), (2, None), (1, None)]);
}

#[test]
fn standard_strategy_rewrites_open_cubes_when_there_is_something_new() {
    let standard =
        ClusteringSettings { strategy_incremental: false, ..ClusteringSettings::default() };
    let one = vec![healthy("c1", "one"), healthy("c2", "one")];
    check_with(standard, one.clone(), &["a"], false, &[]);
    let mut new = one.clone();
    new.push(plain_file("n1", 10));
    let expected =
        [("n1", Reason::Unclustered), ("c1", Reason::OpenCube), ("c2", Reason::OpenCube)];
    check_with(standard, new, &["a"], false, &expected);
    let mut two = one;
    two.push(healthy("d1", "two"));
    let expected = [("c1", Reason::OpenCube), ("c2", Reason::OpenCube), ("d1", Reason::OpenCube)];
    check_with(standard, two, &["a"], false, &expected);
}

#[test]
fn closed_cubes_lose_only_files_with_deleted_rows() {
    let files = vec![
        clustered_file("c1", 99 << 30, "one", &["a"]),
        clustered_file("c2", 2 << 30, "one", &["a"]),
        clustered_file("s1", 10, "one", &["a"]),
        with_deletions(clustered_file("d1", 900, "one", &["a"]), 50),
        plain_file("n1", 10),
    ];
    let expected = [("n1", Reason::Unclustered), ("d1", Reason::DeletedRows)];
    check(files, &["a"], false, &expected);
}

#[test]
fn full_leaves_closed_cubes_alone() {
    let files = vec![healthy("c1", "one"), healthy("c2", "one"), plain_file("n1", 10)];
    let policy = SelectionPolicy { closed_cube_bytes: 1_800, ..SelectionPolicy::new(true, TARGET) };
    let Selection { bins } = select(&snapshot(&["a"], files), &policy).unwrap();
    let paths: Vec<&str> = bins[0].files.iter().map(|(file, _)| file.path.as_str()).collect();
    assert_eq!((bins.len(), paths), (1, vec!["n1"]));
}

#[test]
fn full_rewrites_a_cube_that_grew_by_several_rewrites() {
    let file = |path: &str, rewrite: &str| tagged(healthy(path, "one"), zcube::REWRITE, rewrite);
    check(vec![file("c1", "r1"), file("c2", "r1")], &["a"], true, &[]);
    let grown = vec![file("c1", "r1"), file("c2", "r2")];
    check(grown.clone(), &["a"], false, &[]);
    let expected = [("c1", Reason::OpenCube), ("c2", Reason::OpenCube)];
    check(grown, &["a"], true, &expected);
}

#[test]
fn small_files_join_what_is_much_larger() {
    let files = vec![
        clustered_file("s1", 10, "cube", &["a"]),
        clustered_file("s2", 52, "cube", &["a"]),
        clustered_file("s3", 200, "cube", &["a"]),
        plain_file("n1", 500),
    ];
    let expected = [("n1", Reason::Unclustered), ("s1", Reason::Small), ("s2", Reason::Small)];
    check(files.clone(), &["a"], false, &expected);
    let all = [
        ("n1", Reason::Unclustered),
        ("s1", Reason::Small),
        ("s2", Reason::Small),
        ("s3", Reason::Small),
    ];
    let eager = ClusteringSettings { fast_optimize: false, ..ClusteringSettings::default() };
    check_with(eager, files, &["a"], false, &all);
}

/// Small files of one size beside a larger one, and a new file of like size.
fn like_sized(bytes: u64, small: usize) -> Vec<AddFile> {
    let name = |n| format!("s{n:02}");
    let mut files: Vec<AddFile> =
        (0..small).map(|n| clustered_file(&name(n), bytes, "cube", &["a"])).collect();
    files.push(clustered_file("t", 240, "cube", &["a"]));
    files.push(plain_file("n1", bytes + 1));
    files
}

#[track_caller]
fn check_like_sized(bytes: u64, small: usize, joining: usize) {
    let names: Vec<String> = (0..joining).map(|n| format!("s{n:02}")).collect();
    let mut expected = vec![("n1", Reason::Unclustered)];
    expected.extend(names.iter().map(|name| (name.as_str(), Reason::Small)));
    check(like_sized(bytes, small), &["a"], false, &expected);
}

#[test]
fn small_files_of_like_size_wait_until_they_are_eight() {
    check_like_sized(20, 6, 0);
    check_like_sized(20, 7, 7);
}

#[test]
fn smaller_files_wait_until_they_make_a_layer_or_are_thirty_two() {
    check_like_sized(12, 7, 0);
    check_like_sized(12, 9, 0);
    check_like_sized(12, 10, 10);
    check_like_sized(3, 30, 0);
    check_like_sized(3, 31, 31);
}

#[test]
fn many_small_files_are_merged_even_into_one() {
    let tiny = |n: usize| clustered_file(&format!("s{n:02}"), 1, "cube", &["a"]);
    check((0..49).map(tiny).collect(), &["a"], false, &[]);
    let names: Vec<String> = (0..50).map(|n| format!("s{n:02}")).collect();
    let expected: Vec<(&str, Reason)> =
        names.iter().map(|name| (name.as_str(), Reason::Small)).collect();
    check((0..50).map(tiny).collect(), &["a"], false, &expected);
}

#[test]
fn file_that_came_out_smaller_than_planned_is_not_small() {
    let planned = |n: u32| {
        tagged(clustered_file(&format!("s{n}"), 100, "cube", &["a"]), PLANNED_BYTES, "900")
    };
    check((0..20).map(planned).collect(), &["a"], false, &[]);
}

#[test]
fn overlapping_files_are_reclustered_when_there_is_new_data() {
    let file = |n: i64| with_ranges(healthy(&format!("c{n}"), "one"), &[("a", n, 100 + n)]);
    let mut files: Vec<AddFile> = (0..4).map(file).collect();
    files.push(with_ranges(healthy("far", "one"), &[("a", 500, 600)]));
    files.push(healthy("unknown", "one"));
    check(files.clone(), &["a"], false, &[]);
    files.push(with_ranges(plain_file("n1", 10), &[("a", 0, 100)]));
    let expected = [
        ("n1", Reason::Unclustered),
        ("c0", Reason::Overlap),
        ("c1", Reason::Overlap),
        ("c2", Reason::Overlap),
        ("c3", Reason::Overlap),
    ];
    check(files.clone(), &["a"], false, &expected);
    for settings in [
        ClusteringSettings { auto_recluster: false, ..ClusteringSettings::default() },
        ClusteringSettings { min_offending_files: 5, ..ClusteringSettings::default() },
        ClusteringSettings { min_overlap_threshold: 0.99, ..ClusteringSettings::default() },
    ] {
        check_with(settings, files.clone(), &["a"], false, &[("n1", Reason::Unclustered)]);
    }
}

#[test]
fn new_files_do_not_count_as_overlapping() {
    let mut files: Vec<AddFile> =
        (0..3).map(|n| with_ranges(healthy(&format!("c{n}"), "one"), &[("a", 0, 100)])).collect();
    files.push(with_ranges(plain_file("n1", 900), &[("a", 0, 100)]));
    files.push(with_ranges(plain_file("n2", 900), &[("a", 0, 100)]));
    let expected = [("n1", Reason::Unclustered), ("n2", Reason::Unclustered)];
    check(files, &["a"], false, &expected);
}
