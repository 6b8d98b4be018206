//! Which files of a table's log may go. Pure.
//!
//! 1. A version has left the retention when a younger one was there at the cut-off already. Times of
//!    commits are those of their files, made to rise with the versions (PROTOCOL.md has no other
//!    order), so that one file touched late keeps all after it.
//! 2. The newest of these, and all after it, must stay readable. What they need is the last complete
//!    checkpoint at or before it, and every commit from there on.
//! 3. What is older than that checkpoint goes: commits, checkpoints, checksums, compacted commits.
//!    Without such a checkpoint nothing goes.
//! 4. A sidecar goes when no checkpoint that stays names it, and it is older than the cut-off: one of
//!    a checkpoint being written is younger.

use std::collections::{BTreeMap, BTreeSet};

use crate::vacuum::StoredFile;

/// The folder of sidecars within the log's.
pub const SIDECARS: &str = "_sidecars/";

/// The files of a log by what they are; others are left alone.
#[derive(Debug, Clone, Default)]
pub struct LogFiles {
    /// Time of each commit.
    commits: BTreeMap<u64, i64>,
    checkpoints: BTreeMap<u64, Vec<CheckpointFile>>,
    /// Names within [`SIDECARS`], with their times.
    sidecars: BTreeMap<String, i64>,
    /// Everything that goes with its version: the last one it is about, its name, its time.
    versioned: Vec<(u64, String, i64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CheckpointFile {
    name: String,
    /// Number and count of a part; `None` for a checkpoint of one file.
    part: Option<(u32, u32)>,
}

/// What a name in the log's folder stands for.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Commit,
    Checkpoint(Option<(u32, u32)>),
    /// Something that only helps to read versions up to this one.
    Aid,
}

impl LogFiles {
    /// Sorts a listing whose paths are relative to the log's folder.
    #[must_use]
    pub fn new(stored: &[StoredFile]) -> Self {
        let mut files = Self::default();
        for file in stored {
            if let Some(name) = file.path.strip_prefix(SIDECARS) {
                files.sidecars.insert(name.to_owned(), file.modified_ms);
            } else if let Some((version, kind)) = parse(&file.path) {
                files.versioned.push((version, file.path.clone(), file.modified_ms));
                match kind {
                    Kind::Commit => {
                        files.commits.insert(version, file.modified_ms);
                    }
                    Kind::Checkpoint(part) => files
                        .checkpoints
                        .entry(version)
                        .or_default()
                        .push(CheckpointFile { name: file.path.clone(), part }),
                    Kind::Aid => {}
                }
            }
        }
        files
    }

    /// Returns the time of the newest commit.
    #[must_use]
    pub fn newest_ms(&self) -> Option<i64> {
        self.commits.values().next_back().copied()
    }

    /// Returns the commits up to `version` that are not older than the cut-off, oldest first.
    #[must_use]
    pub fn commits_between(&self, cutoff_ms: i64, version: u64) -> Vec<u64> {
        let young = self.commits.range(..=version).filter(|(_, time)| **time >= cutoff_ms);
        young.map(|(version, _)| *version).collect()
    }

    /// Returns the version that was the newest at the cut-off.
    #[must_use]
    pub fn version_at(&self, cutoff_ms: i64) -> Option<u64> {
        let mut last = None;
        let mut time = i64::MIN;
        for (version, own_time) in &self.commits {
            time = time.saturating_add(1).max(*own_time);
            if time > cutoff_ms {
                break;
            }
            last = Some(*version);
        }
        last
    }

    /// Lists the checkpoints at or before `version`, newest first: each with the names of its files,
    /// none of which is missing. A version may have several.
    #[must_use]
    pub fn checkpoints_until(&self, version: u64) -> Vec<(u64, Vec<String>)> {
        let mut found = Vec::new();
        for (version, files) in self.checkpoints.range(..=version).rev() {
            let mut parts: BTreeMap<u32, BTreeMap<u32, &str>> = BTreeMap::new();
            for file in files {
                match file.part {
                    None => found.push((*version, vec![file.name.clone()])),
                    Some((number, count)) => {
                        parts.entry(count).or_default().insert(number, &file.name);
                    }
                }
            }
            for (count, names) in parts {
                if (1..=count).all(|number| names.contains_key(&number)) {
                    found.push((*version, names.into_values().map(ToOwned::to_owned).collect()));
                }
            }
        }
        found
    }

    /// Lists what a log needs no more that starts from the checkpoint of `version`, oldest first.
    #[must_use]
    pub fn expired(&self, version: u64, cutoff_ms: i64) -> Vec<String> {
        let is_old = |(own, _, time): &&(u64, String, i64)| *own < version && *time <= cutoff_ms;
        let mut old: Vec<&(u64, String, i64)> = self.versioned.iter().filter(is_old).collect();
        old.sort();
        old.into_iter().map(|(_, name, _)| name.clone()).collect()
    }

    /// Lists the files of checkpoints that stay when `gone` have gone.
    #[must_use]
    pub fn checkpoints_without(&self, gone: &[String]) -> Vec<String> {
        let gone: BTreeSet<&str> = gone.iter().map(String::as_str).collect();
        let names = self.checkpoints.values().flatten().map(|file| &file.name);
        names.filter(|name| !gone.contains(name.as_str())).cloned().collect()
    }

    /// Tells whether all of a checkpoint's sidecars are there.
    #[must_use]
    pub fn has_sidecars(&self, names: &BTreeSet<String>) -> bool {
        names.iter().all(|name| self.sidecars.contains_key(name))
    }

    /// Lists the sidecars older than the cut-off; none of them may be in use when it goes.
    #[must_use]
    pub fn old_sidecars(&self, cutoff_ms: i64) -> Vec<String> {
        let old = self.sidecars.iter().filter(|(_, time)| **time <= cutoff_ms);
        old.map(|(name, _)| name.clone()).collect()
    }
}

/// Reads a name of the log's folder (PROTOCOL.md, "Delta Log Entries", "Checkpoints", "Log Compaction
/// Files", "Version Checksum File"); the version is the last one the file is about.
fn parse(name: &str) -> Option<(u64, Kind)> {
    let (version, rest) = version(name)?;
    match rest {
        ".json" => return Some((version, Kind::Commit)),
        ".crc" => return Some((version, Kind::Aid)),
        ".checkpoint.parquet" => return Some((version, Kind::Checkpoint(None))),
        _ => {}
    }
    if let Some(end) = rest.strip_prefix('.').and_then(|rest| rest.strip_suffix(".compacted.json"))
    {
        let (end, rest) = self::version(end)?;
        return rest.is_empty().then_some((end, Kind::Aid));
    }
    let parts = rest.strip_prefix(".checkpoint.")?;
    let (middle, ending) = parts.rsplit_once('.')?;
    if let Some((number, count)) = middle.split_once('.') {
        let number_of = |text: &str| (text.len() == 10).then(|| text.parse().ok()).flatten();
        let part = (number_of(number)?, number_of(count)?);
        return (ending == "parquet").then_some((version, Kind::Checkpoint(Some(part))));
    }
    let is_named = middle.len() == 36 && middle.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    (is_named && matches!(ending, "parquet" | "json")).then_some((version, Kind::Checkpoint(None)))
}

fn version(name: &str) -> Option<(u64, &str)> {
    let digits = name.get(..20)?;
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, &name[20..]))
}

#[cfg(test)]
mod tests {
    use super::{Kind, LogFiles, parse};
    use crate::vacuum::StoredFile;

    const UUID: &str = "80a083e8-7026-4e79-81be-64bd76c43a11";

    fn stored(path: &str, modified_ms: i64) -> StoredFile {
        StoredFile { path: path.to_owned(), size: 1, modified_ms }
    }

    fn commit(version: u64) -> String {
        format!("{version:020}.json")
    }

    fn checkpoint(version: u64) -> String {
        format!("{version:020}.checkpoint.parquet")
    }

    /// Commits at the times 10, 20, …, from version 0, and further files at time 1.
    fn log(versions: u64, others: &[String]) -> LogFiles {
        let mut files: Vec<StoredFile> =
            (0..versions).map(|v| stored(&commit(v), i64::try_from(v + 1).unwrap() * 10)).collect();
        files.extend(others.iter().map(|name| stored(name, 1)));
        LogFiles::new(&files)
    }

    #[test]
    fn names_are_told_apart() {
        let v = "00000000000000000007";
        for (name, expected) in [
            (format!("{v}.json"), Some((7, Kind::Commit))),
            (format!("{v}.crc"), Some((7, Kind::Aid))),
            (format!("{v}.checkpoint.parquet"), Some((7, Kind::Checkpoint(None)))),
            (format!("{v}.checkpoint.{UUID}.json"), Some((7, Kind::Checkpoint(None)))),
            (format!("{v}.checkpoint.{UUID}.parquet"), Some((7, Kind::Checkpoint(None)))),
            (
                format!("{v}.checkpoint.0000000001.0000000002.parquet"),
                Some((7, Kind::Checkpoint(Some((1, 2))))),
            ),
            (format!("{v}.00000000000000000009.compacted.json"), Some((9, Kind::Aid))),
            (format!("_staged_commits/{v}.{UUID}.json"), None),
            (format!("{v}.{UUID}.json"), None),
            (format!("{v}.checkpoint.parquet#1"), None),
            ("_last_checkpoint".to_owned(), None),
            ("7.json".to_owned(), None),
            (format!("{v}.json.tmp"), None),
        ] {
            assert_eq!(parse(&name), expected, "{name}");
        }
    }

    /// delta-io/delta#606: versions 0 to 8 are old, the only checkpoint is at 10.
    #[test]
    fn without_a_checkpoint_before_the_cut_off_nothing_goes() {
        let files = log(11, &[checkpoint(10)]);
        assert_eq!(files.version_at(90), Some(8));
        assert_eq!(files.checkpoints_until(8), []);
    }

    #[test]
    fn what_is_older_than_the_last_checkpoint_before_the_cut_off_goes() {
        let crc = format!("{:020}.crc", 1);
        let across = format!("{:020}.{:020}.compacted.json", 2, 6);
        let files = log(12, &[checkpoint(3), checkpoint(5), checkpoint(10), crc.clone(), across]);
        assert_eq!(files.version_at(95), Some(8));
        assert_eq!(files.checkpoints_until(8)[0], (5, vec![checkpoint(5)]));
        let expected = [commit(0), crc, commit(1), commit(2), checkpoint(3), commit(3), commit(4)];
        let mut gone = files.expired(5, 95);
        gone.sort();
        let mut sorted = expected.to_vec();
        sorted.sort();
        assert_eq!(gone, sorted);
        assert_eq!(files.checkpoints_without(&gone), [checkpoint(5), checkpoint(10)]);
    }

    #[test]
    fn oldest_versions_go_first() {
        let gone = log(6, &[checkpoint(5)]).expired(5, 95);
        assert_eq!(gone, (0..5).map(commit).collect::<Vec<_>>());
    }

    #[test]
    fn idle_table_keeps_its_newest_version() {
        let files = log(11, &[checkpoint(10)]);
        assert_eq!(files.version_at(i64::MAX - 1), Some(10));
        assert_eq!(files.expired(10, 1_000).len(), 10);
    }

    #[test]
    fn commit_touched_late_keeps_what_follows_it() {
        let files = LogFiles::new(&[
            stored(&commit(0), 10),
            stored(&commit(1), 500),
            stored(&commit(2), 30),
            stored(&commit(3), 600),
        ]);
        assert_eq!(files.version_at(100), Some(0));
        assert_eq!(files.version_at(500), Some(1));
        assert_eq!(files.version_at(501), Some(2));
        assert_eq!(files.version_at(9), None);
    }

    #[test]
    fn checkpoint_of_several_parts_counts_only_when_all_are_there() {
        let part = |number: u32, count: u32| {
            format!("{:020}.checkpoint.{number:010}.{count:010}.parquet", 4)
        };
        let broken = log(9, &[part(1, 3), part(3, 3), checkpoint(2)]);
        assert_eq!(broken.checkpoints_until(8), [(2, vec![checkpoint(2)])]);
        let whole = log(9, &[part(1, 3), part(3, 3), part(2, 3), part(1, 2)]);
        assert_eq!(whole.checkpoints_until(8), [(4, vec![part(1, 3), part(2, 3), part(3, 3)])]);
    }

    #[test]
    fn sidecars_are_told_by_their_age_and_presence() {
        let files = LogFiles::new(&[
            stored("_sidecars/a.parquet", 1),
            stored("_sidecars/b.parquet", 50),
            stored("_staged_commits/x.json", 1),
        ]);
        assert_eq!(files.old_sidecars(20), ["a.parquet"]);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert!(files.has_sidecars(&names(&["a.parquet", "b.parquet"])));
        assert!(!files.has_sidecars(&names(&["c.parquet"])));
    }

    #[test]
    fn young_commits_before_a_version_are_listed() {
        assert_eq!(log(6, &[]).commits_between(30, 4), [2, 3, 4]);
    }
}
