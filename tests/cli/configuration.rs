//! Configurations that cannot be used.

use std::fs;

use crate::support::{lakebed, project};

/// Reads a log under a configuration and shows how that failed.
#[track_caller]
fn refused(config: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lakebed.toml"), config).unwrap();
    let log = project("examples/logs/w1").display().to_string();
    lakebed(folder.path(), &["graph", &log]).failure()
}

#[test]
fn broken_toml_is_refused_with_its_place() {
    insta::assert_snapshot!(refused("[plan]\nsearch = \"exact\n"), @r#"
    exit code 2
    error: failed to read configuration `lakebed.toml` at line 2, column 16: invalid basic string, expected `"`
    help: correct the file at that place
    "#);
}

#[test]
fn unknown_key_is_refused_with_its_place_and_the_nearest_key() {
    insta::assert_snapshot!(refused("[plan]\nhorizon_windows = 4\nrewrite_buget = \"1GiB\"\n"), @r"
    exit code 2
    error: failed to read configuration `lakebed.toml` at line 3, column 1: unknown field `rewrite_buget`, expected one of `rewrite_budget`, `storage_budget`, `horizon_windows`, `discount_rate`, `search`, `protect`
    help: did you mean `rewrite_budget`?
    ");
}

#[test]
fn value_out_of_range_is_refused_with_its_place() {
    insta::assert_snapshot!(refused("[plan]\nhorizon_windows = 0\n"), @r"
    exit code 2
    error: failed to read configuration `lakebed.toml` at line 2, column 19: invalid value: integer `0`, expected a nonzero u32
    help: correct the file at that place
    ");
}

#[test]
fn setting_that_makes_no_sense_is_refused_with_its_place_and_range() {
    insta::assert_snapshot!(refused("[settings]\n\"lakebed.optimize.fast.enable\" = true\n"), @r"
    exit code 2
    error: failed to read configuration `lakebed.toml` at line 2, column 1: set `lakebed.optimize.fast.enable`: there is no such setting; the nearest is `lakebed.optimize.fast.enabled`
    help: did you mean `lakebed.optimize.fast.enabled`?
    ");
    insta::assert_snapshot!(refused("[settings]\nlakebed.optimize.clustering.strategy.incremental.minOffendingFiles = 1\n"), @r"
    exit code 2
    error: failed to read configuration `lakebed.toml` at line 2, column 70: set `lakebed.optimize.clustering.strategy.incremental.minOffendingFiles` to `1`: it takes a whole number of at least 2
    help: correct the file at that place
    ");
}

#[test]
fn unknown_plugin_is_refused_with_the_shipped_ones() {
    insta::assert_snapshot!(refused("[plugins]\nscorer = \"ajlo-jjs\"\n"), @r"
    exit code 2
    error: failed to load scorer plugin `ajlo-jjs`: neither a shipped plugin nor a file
    help: shipped are: scorer-ajlo-jis, scorer-bytes-saved; or give the path of a component
    ");
}

#[test]
fn configuration_that_is_not_there_is_refused_only_when_it_was_named() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(lakebed(folder.path(), &["--config", "mine.toml", "plugin", "list"]).failure(), @r"
    exit code 2
    error: failed to read configuration `mine.toml`
    caused by: No such file or directory (os error 2)
    help: check the path given with --config
    ");
    lakebed(folder.path(), &["plugin", "list"]).succeeded();
}

#[test]
fn paths_of_a_configuration_are_relative_to_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("etc");
    fs::create_dir(&inner).unwrap();
    fs::create_dir_all(folder.path().join("lake").join("t").join("_delta_log")).unwrap();
    fs::write(inner.join("mine.toml"), "[lake]\nfolder = \"../lake\"\n").unwrap();
    let run = lakebed(folder.path(), &["--config", "etc/mine.toml", "sql", "OPTIMIZE nope"]);
    assert!(run.failure().contains("find table `nope`: the lake has t\n"), "{}", run.stderr);
}
