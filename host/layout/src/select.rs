//! Chooses the files an OPTIMIZE rewrites, with a reason for each. Pure.
//!
//! 1. A file is selected when it is unclustered, when deletion vectors hide more than
//!    [`SelectionPolicy::deleted_share_max`] of its rows whatever its state, or — FULL only — when it
//!    was clustered under other columns or by another provider, or is at least twice the target size.
//! 2. Small files of open cubes join when there is something else to do or when together they fill
//!    a healthy file; a closed cube (100 GiB) is left alone.
//! 3. The selected files are packed in order of cube and path into bins, one new cube each.
//!
//! Cost therefore follows the new data, not the table: delta-spark rewrites every cube under
//! 100 GiB on each run instead (delta#4304).

use std::collections::BTreeMap;

use lakebed_model::Bytes;

use crate::{
    LayoutError, TableSnapshot,
    action::AddFile,
    zcube::{self, CLOSED_CUBE_BYTES, Membership},
};

/// A file of this many times the target size is rewritten by FULL. delta-spark merges a cube into
/// files of its own setting (1 GiB), whatever `delta.targetFileSize` says.
const OVERSIZED: u64 = 2;

/// Why a file is rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// No clustering implementation has touched it.
    Unclustered,
    /// It is far under the target size.
    Small,
    /// Deletion vectors hide too many of its rows.
    DeletedRows,
    /// It was clustered under other columns.
    StaleKeys,
    /// Another provider clustered it.
    OtherProvider,
    /// It is clustered, but far over the target size: another engine merged it.
    Oversized,
}

impl Reason {
    /// Returns the reason's name in machine output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unclustered => "unclustered",
            Self::Small => "small",
            Self::DeletedRows => "deleted_rows",
            Self::StaleKeys => "stale_keys",
            Self::OtherProvider => "other_provider",
            Self::Oversized => "oversized",
        }
    }
}

/// The numbers selection goes by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelectionPolicy {
    /// Whether stale and foreign files are rewritten too.
    pub full: bool,
    /// The size a file should have.
    pub target_file_size: Bytes,
    /// Share of a file's rows that deletion vectors may hide
    /// (delta-spark `optimize.maxDeletedRowsRatio`, 0.05).
    pub deleted_share_max: f64,
    /// Largest bin; a bin becomes one cube.
    pub bin_bytes_max: u64,
}

impl SelectionPolicy {
    /// Builds the usual policy for a target size.
    #[must_use]
    pub const fn new(full: bool, target_file_size: Bytes) -> Self {
        Self { full, target_file_size, deleted_share_max: 0.05, bin_bytes_max: CLOSED_CUBE_BYTES }
    }
}

/// Files that are rewritten together.
#[derive(Debug, Clone, PartialEq)]
pub struct Bin {
    /// The files, each with its reason.
    pub files: Vec<(AddFile, Reason)>,
}

impl Bin {
    /// Sums the files' sizes.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.files.iter().map(|(file, _)| Bytes(file.size)).sum()
    }

    /// Counts the files by reason.
    #[must_use]
    pub fn reasons(&self) -> BTreeMap<Reason, u64> {
        let mut counts = BTreeMap::new();
        for (_, reason) in &self.files {
            *counts.entry(*reason).or_default() += 1;
        }
        counts
    }
}

/// What an OPTIMIZE would do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selection {
    /// The bins, in the order they are committed.
    pub bins: Vec<Bin>,
}

/// Selects files and packs them into bins.
///
/// # Errors
/// Fails when FULL is asked for a table without clustering columns.
pub fn select(
    snapshot: &TableSnapshot,
    policy: &SelectionPolicy,
) -> Result<Selection, LayoutError> {
    let cluster_by = snapshot.cluster_by();
    if policy.full && cluster_by.is_empty() {
        return Err(LayoutError::FullWithoutColumns { table: snapshot.table.to_string() });
    }
    let small_limit = policy.target_file_size.0 / 4;
    let cube_bytes = cube_sizes(snapshot, &cluster_by);
    let mut chosen: Vec<(AddFile, Reason)> = Vec::new();
    let mut small: Vec<(AddFile, Reason)> = Vec::new();
    for file in &snapshot.files {
        match reason_for(file, &cluster_by, policy) {
            Some(reason) => chosen.push((file.clone(), reason)),
            None if file.size < small_limit && is_open(file, &cluster_by, &cube_bytes) => {
                small.push((file.clone(), Reason::Small));
            }
            None => {}
        }
    }
    let small_bytes: u64 = small.iter().map(|(file, _)| file.size).sum();
    let fills_a_file = small.len() > 1 && small_bytes >= policy.target_file_size.0;
    if !chosen.is_empty() || fills_a_file {
        chosen.append(&mut small);
    }
    if cluster_by.is_empty() && !worth_compacting(&chosen, policy) {
        chosen.clear();
    }
    for (file, reason) in &chosen {
        tracing::debug!(table = %snapshot.table, path = file.path, reason = reason.as_str(), "file selected");
    }
    Ok(Selection { bins: pack(chosen, policy.bin_bytes_max) })
}

fn reason_for(file: &AddFile, cluster_by: &[String], policy: &SelectionPolicy) -> Option<Reason> {
    if deleted_share(file) > policy.deleted_share_max {
        return Some(Reason::DeletedRows);
    }
    if cluster_by.is_empty() {
        let small = file.size < policy.target_file_size.0 / 4;
        return small.then_some(Reason::Small);
    }
    match zcube::membership(file, cluster_by) {
        Membership::Unclustered => Some(Reason::Unclustered),
        Membership::Current { .. } => {
            let oversized = file.size / OVERSIZED >= policy.target_file_size.0.max(1);
            (policy.full && oversized).then_some(Reason::Oversized)
        }
        Membership::Stale => policy.full.then_some(Reason::StaleKeys),
        Membership::OtherProvider { .. } => policy.full.then_some(Reason::OtherProvider),
    }
}

fn deleted_share(file: &AddFile) -> f64 {
    let rows = file.rows().unwrap_or(0);
    if rows == 0 {
        return 0.0;
    }
    Bytes(file.deleted_rows()).as_f64() / Bytes(rows).as_f64()
}

fn is_open(file: &AddFile, cluster_by: &[String], cube_bytes: &BTreeMap<String, u64>) -> bool {
    match zcube::membership(file, cluster_by) {
        Membership::Current { cube } => {
            cube_bytes.get(&cube).is_none_or(|bytes| *bytes < CLOSED_CUBE_BYTES)
        }
        _ => false,
    }
}

fn cube_sizes(snapshot: &TableSnapshot, cluster_by: &[String]) -> BTreeMap<String, u64> {
    let mut sizes = BTreeMap::new();
    for file in &snapshot.files {
        if let Membership::Current { cube } = zcube::membership(file, cluster_by) {
            *sizes.entry(cube).or_default() += file.size;
        }
    }
    sizes
}

/// Without keys only the number of files can improve.
fn worth_compacting(chosen: &[(AddFile, Reason)], policy: &SelectionPolicy) -> bool {
    let bytes: u64 = chosen.iter().map(|(file, _)| file.size).sum();
    let files_after = bytes.div_ceil(policy.target_file_size.0.max(1)).max(1);
    let purges = chosen.iter().any(|(_, reason)| *reason == Reason::DeletedRows);
    purges || u64::try_from(chosen.len()).unwrap_or(u64::MAX) > files_after
}

fn pack(mut chosen: Vec<(AddFile, Reason)>, bin_bytes_max: u64) -> Vec<Bin> {
    chosen.sort_by(|(a, _), (b, _)| {
        (a.tag(zcube::ZCUBE_ID), &a.path).cmp(&(b.tag(zcube::ZCUBE_ID), &b.path))
    });
    let mut bins: Vec<Bin> = Vec::new();
    let mut filled = 0;
    for entry in chosen {
        let size = entry.0.size;
        match bins.last_mut() {
            Some(bin) if filled + size <= bin_bytes_max => {
                filled += size;
                bin.files.push(entry);
            }
            _ => {
                filled = size;
                bins.push(Bin { files: vec![entry] });
            }
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use lakebed_model::Bytes;

    use super::{Reason, SelectionPolicy, select};
    use crate::{
        LayoutError,
        action::{AddFile, DeletionVector},
        testing::{clustered_file, plain_file, snapshot},
    };

    const TARGET: Bytes = Bytes(1_000);

    #[track_caller]
    fn check(files: Vec<AddFile>, keys: &[&str], full: bool, expected: &[(&str, Reason)]) {
        let policy = SelectionPolicy::new(full, TARGET);
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

    fn with_deletions(mut file: AddFile, cardinality: i64) -> AddFile {
        file.deletion_vector = Some(DeletionVector {
            storage_type: "u".into(),
            path_or_inline_dv: "x".into(),
            offset: Some(1),
            size_in_bytes: 1,
            cardinality,
        });
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
    fn full_takes_stale_and_foreign_files_but_not_current_ones() {
        let mut foreign = plain_file("f1", 900);
        foreign.clustering_provider = Some("other".into());
        let files = vec![
            clustered_file("c1", 900, "cube", &["b", "a"]),
            clustered_file("s1", 900, "old", &["b"]),
            foreign,
        ];
        let expected = [("f1", Reason::OtherProvider), ("s1", Reason::StaleKeys)];
        check(files.clone(), &["a", "b"], true, &expected);
        check(files, &["a", "b"], false, &[]);
    }

    #[test]
    fn full_splits_files_that_another_engine_merged() {
        let files = vec![
            clustered_file("fits", 1_999, "cube", &["a"]),
            clustered_file("merged", 2_000, "cube", &["a"]),
        ];
        check(files.clone(), &["a"], true, &[("merged", Reason::Oversized)]);
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
        let policy =
            SelectionPolicy { bin_bytes_max: 1_000, ..SelectionPolicy::new(false, TARGET) };
        let selection = select(&snapshot(&["a"], files), &policy).unwrap();
        let sizes: Vec<usize> = selection.bins.iter().map(|bin| bin.files.len()).collect();
        assert_eq!(sizes, [2, 2, 1]);
    }
}
