//! From a path to the logs under it.
//!
//! A folder can be a log itself: Spark's rolling layout `eventlog_v2_<app>/events_<n>_<app>[.codec]`
//! or the `eventlog`, `eventlog-<time>.gz` files of Databricks. Any other folder is searched.

use std::path::{Path, PathBuf};

use super::{LogPath, lakebed};
use crate::CollectError;

/// Folders are searched to this depth; deeper trees are data, not logs.
const MAX_DEPTH: usize = 8;

/// Finds the logs under a path, in the order of their names.
pub(crate) fn logs_under(path: &Path) -> Result<Vec<LogPath>, CollectError> {
    if !path.exists() {
        return Err(CollectError::MissingLog { path: path.to_owned() });
    }
    if path.is_file() {
        let root = path.to_owned();
        return Ok(vec![LogPath { parts: vec![root.clone()], root, named_by_caller: true }]);
    }
    if let Some(parts) = lakebed::history_of(path) {
        return Ok(vec![LogPath { root: path.to_owned(), parts, named_by_caller: false }]);
    }
    let mut logs = Vec::new();
    search(path, 0, &mut logs)?;
    Ok(logs)
}

fn search(folder: &Path, depth: usize, logs: &mut Vec<LogPath>) -> Result<(), CollectError> {
    let (files, folders) = listing(folder)?;
    if let Some(parts) = rolling_parts(folder, &files) {
        logs.push(LogPath { root: folder.to_owned(), parts, named_by_caller: false });
        return Ok(());
    }
    let (rolled, single): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| name_of(file).starts_with("eventlog"));
    if !rolled.is_empty() {
        let parts = databricks_order(rolled);
        logs.push(LogPath { root: folder.to_owned(), parts, named_by_caller: false });
    }
    logs.extend(single.into_iter().map(|file| LogPath {
        parts: vec![file.clone()],
        root: file,
        named_by_caller: false,
    }));
    if depth < MAX_DEPTH {
        for folder in folders {
            search(&folder, depth + 1, logs)?;
        }
    }
    Ok(())
}

/// Lists files and folders by name, without hidden ones, markers and checksums.
fn listing(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), CollectError> {
    let failed = |source| CollectError::Io { path: folder.to_owned(), source };
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = name_of(&path);
        if name.starts_with(['.', '_']) || name.starts_with("appstatus_") || name.ends_with(".crc")
        {
            continue;
        }
        if path.is_dir() { folders.push(path) } else { files.push(path) }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}

/// Orders the event files of Spark's rolling layout by number; `None` for any other folder.
fn rolling_parts(folder: &Path, files: &[PathBuf]) -> Option<Vec<PathBuf>> {
    if !name_of(folder).starts_with("eventlog_v2_") {
        return None;
    }
    let mut numbered: Vec<(u64, &PathBuf)> =
        files.iter().filter_map(|file| Some((event_file_number(&name_of(file))?, file))).collect();
    numbered.sort();
    // Compaction rewrites all files up to number n into one file of that number.
    let compacted = numbered.iter().rposition(|(_, file)| name_of(file).contains(".compact"));
    if let Some(index) = compacted {
        let (number, file) = numbered[index];
        numbered.retain(|(other, path)| *other > number || *path == file);
    }
    Some(numbered.into_iter().map(|(_, file)| file.clone()).collect())
}

fn event_file_number(name: &str) -> Option<u64> {
    name.strip_prefix("events_")?.split('_').next()?.parse().ok()
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
    use super::{logs_under, name_of};

    /// Makes the files and returns, per log found, its root and parts by name.
    #[track_caller]
    fn check(files: &[&str], expected: &[(&str, &[&str])]) {
        let base = tempfile::tempdir().unwrap();
        for file in files {
            let path = base.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let logs = logs_under(base.path()).unwrap();
        let found: Vec<(String, Vec<String>)> = logs
            .iter()
            .map(|log| (name_of(&log.root), log.parts.iter().map(|part| name_of(part)).collect()))
            .collect();
        let expected: Vec<(String, Vec<String>)> = expected
            .iter()
            .map(|(root, parts)| {
                ((*root).to_owned(), parts.iter().map(|part| (*part).to_owned()).collect())
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
            &[("eventlog_v2_a", &["events_9_a.zstd", "events_10_a"])],
        );
    }

    #[test]
    fn a_compacted_file_replaces_the_files_before_it() {
        check(
            &[
                "eventlog_v2_a/events_1_a",
                "eventlog_v2_a/events_2_a",
                "eventlog_v2_a/events_2_a.compact",
                "eventlog_v2_a/events_3_a",
            ],
            &[("eventlog_v2_a", &["events_2_a.compact", "events_3_a"])],
        );
    }

    #[test]
    fn databricks_files_are_one_log_with_the_running_file_last() {
        check(
            &["c/eventlog", "c/eventlog-2021-06-15--15-00.gz", "c/eventlog-2021-06-15--14-00.gz"],
            &[(
                "c",
                &["eventlog-2021-06-15--14-00.gz", "eventlog-2021-06-15--15-00.gz", "eventlog"],
            )],
        );
    }

    #[test]
    fn other_folders_are_searched_and_markers_passed_over() {
        check(
            &["b.jsonl", "_SUCCESS", ".hidden", "a.jsonl.crc", "sub/a.jsonl"],
            &[("b.jsonl", &["b.jsonl"]), ("a.jsonl", &["a.jsonl"])],
        );
    }
}
