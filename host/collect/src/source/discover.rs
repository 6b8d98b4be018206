//! From a path to the logs under it.
//!
//! A folder can be a log itself: Spark's rolling layout `eventlog_v2_<app>/events_<n>_<app>[.codec]`
//! or the `eventlog`, `eventlog-<time>.gz` files of Databricks. Any other folder is searched. A path
//! that names nothing is a pattern when it looks like one, and `-` is standard input.

use std::path::{Path, PathBuf};

use super::{LogNote, LogPath, lakebed};
use crate::CollectError;

/// Folders are searched to this depth; deeper trees are data, not logs.
const MAX_DEPTH: usize = 8;

/// Finds the logs under a path, in the order of their names.
pub(crate) fn logs_under(path: &Path) -> Result<Vec<LogPath>, CollectError> {
    if path == Path::new("-") {
        return Ok(vec![LogPath::stream(path.to_owned(), Box::new(std::io::stdin()))]);
    }
    if let Some(parts) = lakebed::history_of(path) {
        return Ok(vec![LogPath { parts, ..LogPath::file(path.to_owned()) }]);
    }
    if path.exists() {
        return logs_at(path);
    }
    let mut logs = Vec::new();
    for matching in matches_of(path)? {
        logs.extend(logs_at(&matching)?);
    }
    if logs.is_empty() {
        return Err(CollectError::MissingLog { path: path.to_owned() });
    }
    Ok(logs)
}

fn logs_at(path: &Path) -> Result<Vec<LogPath>, CollectError> {
    if path.is_dir() {
        let mut logs = Vec::new();
        search(path, 0, &mut logs)?;
        return Ok(logs);
    }
    Ok(vec![single(path.to_owned(), true)])
}

/// Lists what a pattern such as `logs/2026-11-*/app-?` matches, by name.
fn matches_of(path: &Path) -> Result<Vec<PathBuf>, CollectError> {
    let Some(pattern) = path.to_str().filter(|text| text.contains(['*', '?', '['])) else {
        return Ok(Vec::new());
    };
    // What is no pattern names nothing either.
    let Ok(matching) = glob::glob(pattern) else { return Ok(Vec::new()) };
    let mut paths = Vec::new();
    for found in matching {
        paths.push(found.map_err(|error| CollectError::Io {
            path: error.path().to_owned(),
            source: error.into(),
        })?);
    }
    Ok(paths)
}

fn single(path: PathBuf, named_by_caller: bool) -> LogPath {
    let in_progress = name_of(&path).ends_with(".inprogress");
    LogPath {
        named_by_caller,
        notes: in_progress.then_some(LogNote::InProgress).into_iter().collect(),
        ..LogPath::file(path)
    }
}

fn search(folder: &Path, depth: usize, logs: &mut Vec<LogPath>) -> Result<(), CollectError> {
    let listing = listing(folder)?;
    let of_folder = |parts, notes| LogPath {
        parts,
        notes,
        named_by_caller: false,
        ..LogPath::file(folder.to_owned())
    };
    if name_of(folder).starts_with("eventlog_v2_") || listing.status.is_some() {
        let (parts, notes) = rolling_parts(&listing);
        if !parts.is_empty() || name_of(folder).starts_with("eventlog_v2_") {
            logs.push(of_folder(parts, notes));
            return Ok(());
        }
    }
    let (rolled, others): (Vec<_>, Vec<_>) =
        listing.files.into_iter().partition(|file| is_databricks(&name_of(file)));
    if !rolled.is_empty() {
        logs.push(of_folder(databricks_order(rolled), Vec::new()));
    }
    logs.extend(others.into_iter().map(|file| single(file, false)));
    if depth < MAX_DEPTH {
        for folder in listing.folders {
            search(&folder, depth + 1, logs)?;
        }
    }
    Ok(())
}

/// What is in a folder, by name, without hidden files, markers and checksums.
#[derive(Debug, Default)]
struct Listing {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// The name of Spark's `appstatus_<app>` file.
    status: Option<String>,
}

fn listing(folder: &Path) -> Result<Listing, CollectError> {
    let failed = |source| CollectError::Io { path: folder.to_owned(), source };
    let mut listing = Listing::default();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = name_of(&path);
        if name.starts_with("appstatus_") {
            listing.status = Some(name);
            continue;
        }
        if name.starts_with(['.', '_']) || name.ends_with(".crc") {
            continue;
        }
        if path.is_dir() { listing.folders.push(path) } else { listing.files.push(path) }
    }
    listing.files.sort();
    listing.folders.sort();
    Ok(listing)
}

/// Orders the event files of Spark's rolling layout by number.
fn rolling_parts(listing: &Listing) -> (Vec<PathBuf>, Vec<LogNote>) {
    let mut numbered: Vec<(u64, &PathBuf)> = listing
        .files
        .iter()
        .filter_map(|file| Some((event_file_number(&name_of(file))?, file)))
        .collect();
    numbered.sort();
    let mut notes = Vec::new();
    // Compaction rewrites all files up to number n into one file of that number.
    let compacted = numbered.iter().rposition(|(_, file)| name_of(file).ends_with(".compact"));
    if let Some(index) = compacted {
        let (number, file) = numbered[index];
        numbered.retain(|(other, path)| *other > number || *path == file);
        notes.push(LogNote::Compacted);
    }
    if listing.status.as_ref().is_some_and(|status| status.ends_with(".inprogress")) {
        notes.push(LogNote::InProgress);
    }
    (numbered.into_iter().map(|(_, file)| file.clone()).collect(), notes)
}

fn event_file_number(name: &str) -> Option<u64> {
    name.strip_prefix("events_")?.split('_').next()?.parse().ok()
}

fn is_databricks(name: &str) -> bool {
    name == "eventlog" || name.starts_with("eventlog-")
}

/// Puts the dated files first, by date, and the running `eventlog` last.
fn databricks_order(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    files.sort_by_key(|file| {
        let name = name_of(file);
        (!name.starts_with("eventlog-"), name)
    });
    files
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{LogNote, logs_under, name_of};

    /// Makes files under a folder of their own.
    fn tree(files: &[&str]) -> tempfile::TempDir {
        let base = tempfile::tempdir().unwrap();
        for file in files {
            let path = base.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        base
    }

    /// Finds logs in a folder, or by a pattern under it: root and parts by name, and notes.
    #[track_caller]
    fn check(files: &[&str], pattern: &str, expected: &[(&str, &[&str], &[LogNote])]) {
        let base = tree(files);
        let logs = logs_under(&base.path().join(pattern)).unwrap();
        let found: Vec<(String, Vec<String>, Vec<LogNote>)> = logs
            .iter()
            .map(|log| {
                let parts = log.parts.iter().map(|part| name_of(part)).collect();
                (name_of(&log.root), parts, log.notes.clone())
            })
            .collect();
        let expected: Vec<(String, Vec<String>, Vec<LogNote>)> = expected
            .iter()
            .map(|(root, parts, notes)| {
                let parts = parts.iter().map(|part| (*part).to_owned()).collect();
                ((*root).to_owned(), parts, notes.to_vec())
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_rolling_log_is_ordered_by_number_not_by_name() {
        check(
            &[
                "eventlog_v2_a/events_10_a",
                "eventlog_v2_a/events_9_a.zstd",
                "eventlog_v2_a/appstatus_a",
            ],
            "",
            &[("eventlog_v2_a", &["events_9_a.zstd", "events_10_a"], &[])],
        );
    }

    #[test]
    fn a_rolling_log_is_known_by_its_status_when_its_folder_was_renamed() {
        check(
            &["mine/events_2_a", "mine/events_1_a", "mine/appstatus_a.inprogress"],
            "",
            &[("mine", &["events_1_a", "events_2_a"], &[LogNote::InProgress])],
        );
    }

    #[test]
    fn a_compacted_file_replaces_the_files_before_it() {
        check(
            &[
                "eventlog_v2_a/appstatus_a.inprogress",
                "eventlog_v2_a/events_1_a",
                "eventlog_v2_a/events_2_a",
                "eventlog_v2_a/events_2_a.compact",
                "eventlog_v2_a/events_3_a",
            ],
            "",
            &[(
                "eventlog_v2_a",
                &["events_2_a.compact", "events_3_a"],
                &[LogNote::Compacted, LogNote::InProgress],
            )],
        );
    }

    #[test]
    fn databricks_files_are_one_log_with_the_running_file_last() {
        check(
            &[
                "c/eventlog",
                "c/eventlog-2021-06-15--15-00.gz",
                "c/eventlog-2021-06-15--14-00.gz",
                "c/eventlogs.txt",
            ],
            "",
            &[
                (
                    "c",
                    &["eventlog-2021-06-15--14-00.gz", "eventlog-2021-06-15--15-00.gz", "eventlog"],
                    &[],
                ),
                ("eventlogs.txt", &["eventlogs.txt"], &[]),
            ],
        );
    }

    #[test]
    fn other_folders_are_searched_and_markers_passed_over() {
        check(
            &["b.jsonl", "_SUCCESS", ".hidden", "a.jsonl.crc", "sub/a.inprogress"],
            "",
            &[
                ("b.jsonl", &["b.jsonl"], &[]),
                ("a.inprogress", &["a.inprogress"], &[LogNote::InProgress]),
            ],
        );
    }

    #[test]
    fn a_pattern_names_files_and_folders_by_name() {
        check(
            &["app-2", "app-1", "other", "app-3/x"],
            "app-*",
            &[("app-1", &["app-1"], &[]), ("app-2", &["app-2"], &[]), ("x", &["x"], &[])],
        );
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_a_missing_log() {
        let base = tree(&["a"]);
        for pattern in ["b*", "[", "b"] {
            let error = logs_under(&base.path().join(pattern)).unwrap_err();
            assert!(error.to_string().ends_with("no such file or folder"), "{error}");
        }
    }

    #[test]
    fn a_file_whose_name_is_a_pattern_is_that_file() {
        check(&["a[1]", "a1"], "a[1]", &[("a[1]", &["a[1]"], &[])]);
    }
}
