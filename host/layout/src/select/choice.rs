//! Decides file by file, then by cube, by size and by overlap.

use std::collections::{BTreeMap, BTreeSet};

use lakebed_model::Bytes;

use super::{Bin, Reason, SelectionPolicy, pack};
use crate::{
    TableSnapshot,
    action::AddFile,
    bounds::RangeReader,
    moves,
    overlap::{self, Candidate, OverlapPolicy},
    sizing::{counted_bytes, layer_bytes, live_bytes},
    zcube::{self, Membership},
};

/// A file of this many times the target size is rewritten by FULL. delta-spark merges a cube into
/// files of its own setting (1 GiB), whatever `delta.targetFileSize` says.
const OVERSIZED: u64 = 2;
/// So many small files of like size are merged, new ones included, once they make a layer that is not
/// small; each byte is then moved once before it merges with the table below.
const LIKE_FILES: usize = 8;
/// So many are merged whatever they make.
const LIKE_FILES_MAX: usize = 32;
/// Files are of like size when none is larger than the mean times this.
const LIKE_SIZE: u64 = 2;
/// The smallest files join whatever is rewritten when together they are no more than a share of it.
const JOINING_SHARE: u64 = 8;
/// So many small files are merged even when they make no healthy file.
const MANY_SMALL: usize = 50;

/// One file and what is known of it so far.
#[derive(Debug)]
struct Judged<'s> {
    add: &'s AddFile,
    counted_bytes: u64,
    /// The cube, when the file is clustered under the current columns.
    cube: Option<String>,
    /// Whether that cube may grow.
    is_open: bool,
    /// Whether it is far under the target size, and so is all that its rewrite made.
    is_small: bool,
    reason: Option<Reason>,
}

impl Judged<'_> {
    /// A clustered file of an open cube that nothing has selected yet.
    fn is_left_in_open_cube(&self) -> bool {
        self.is_open && self.reason.is_none()
    }

    /// What a cube's size counts of it.
    fn cube_bytes(&self) -> u64 {
        self.counted_bytes.max(live_bytes(self.add))
    }
}

/// The files of a table, some of them selected.
#[derive(Debug)]
pub(super) struct Choice<'s> {
    policy: &'s SelectionPolicy,
    files: Vec<Judged<'s>>,
}

impl<'s> Choice<'s> {
    /// Judges each file alone.
    pub(super) fn new(
        snapshot: &'s TableSnapshot,
        policy: &'s SelectionPolicy,
        cluster_by: &[String],
    ) -> Self {
        let cuts = snapshot.cuts().map(|cuts| cuts.tag());
        let judge = |add: &'s AddFile| {
            let membership = zcube::membership(add, cluster_by, cuts.as_deref());
            let counted_bytes = counted_bytes(add);
            let is_small = policy.is_small(counted_bytes)
                && layer_bytes(add).is_none_or(|bytes| policy.is_small_layer(bytes));
            let reason = if deleted_share(add) > policy.settings.deleted_rows_ratio {
                Some(Reason::DeletedRows)
            } else if cluster_by.is_empty() {
                policy.is_small(counted_bytes).then_some(Reason::Small)
            } else {
                reason_by_membership(&membership, add.size.min(counted_bytes), policy)
            };
            let cube = match membership {
                Membership::Current { cube } if !cluster_by.is_empty() => Some(cube),
                _ => None,
            };
            Judged { add, counted_bytes, cube, is_open: false, is_small, reason }
        };
        let mut choice = Self { policy, files: snapshot.files.iter().map(judge).collect() };
        let open: BTreeSet<String> = choice
            .remaining_cubes()
            .into_iter()
            .filter(|(_, bytes)| *bytes < policy.closed_cube_bytes)
            .map(|(cube, _)| cube.to_owned())
            .collect();
        for file in &mut choice.files {
            file.is_open = file.cube.as_ref().is_some_and(|cube| open.contains(cube));
        }
        choice
    }

    /// Sizes the cubes without the files that leave them.
    fn remaining_cubes(&self) -> BTreeMap<&str, u64> {
        let mut sizes = BTreeMap::new();
        for file in self.files.iter().filter(|file| file.reason.is_none()) {
            if let Some(cube) = &file.cube {
                *sizes.entry(cube.as_str()).or_default() += file.cube_bytes();
            }
        }
        sizes
    }

    fn is_empty(&self) -> bool {
        self.files.iter().all(|file| file.reason.is_none())
    }

    fn chosen_bytes(&self) -> u64 {
        let chosen = self.files.iter().filter(|file| file.reason.is_some());
        chosen.map(|file| live_bytes(file.add)).sum()
    }

    fn take(&mut self, indices: impl IntoIterator<Item = usize>, reason: Reason) {
        for index in indices {
            self.files[index].reason = Some(reason);
        }
    }

    /// Without keys only the number of files can improve.
    pub(super) fn drop_if_files_would_not_get_fewer(&mut self) {
        let chosen: Vec<Reason> = self.files.iter().filter_map(|file| file.reason).collect();
        let files_after =
            self.chosen_bytes().div_ceil(self.policy.target_file_size.0.max(1)).max(1);
        let purges = chosen.contains(&Reason::DeletedRows);
        if !purges && u64::try_from(chosen.len()).unwrap_or(u64::MAX) <= files_after {
            for file in &mut self.files {
                file.reason = None;
            }
        }
    }

    /// Takes all open cubes when there is anything to do in them.
    pub(super) fn take_open_cubes(&mut self) {
        let full = self.policy.full;
        let mut left = Vec::new();
        let mut origins = BTreeSet::new();
        for (index, file) in self.files.iter().enumerate() {
            if file.is_left_in_open_cube() {
                let rewrite = file.add.tag(zcube::REWRITE).filter(|_| full);
                origins.insert((rewrite.is_some(), rewrite.or(file.cube.as_deref())));
                left.push(index);
            }
        }
        if !self.is_empty() || origins.len() > 1 {
            self.take(left, Reason::OpenCube);
        }
    }

    /// Takes the small files that are due.
    pub(super) fn take_small_files(&mut self) {
        let mut small: Vec<(u64, usize)> = Vec::new();
        for (index, file) in self.files.iter().enumerate() {
            if file.is_left_in_open_cube() && file.is_small {
                small.push((file.counted_bytes, index));
            }
        }
        small.sort_by_key(|(bytes, index)| (*bytes, &self.files[*index].add.path));
        let joining = if self.is_empty() {
            if self.pays(small.len(), sum(&small)) { small.len() } else { 0 }
        } else {
            self.joining(&small)
        };
        let indices: Vec<usize> = small[..joining].iter().map(|(_, index)| *index).collect();
        self.take(indices, Reason::Small);
    }

    /// Tells whether merging small files alone pays.
    fn pays(&self, count: usize, bytes: u64) -> bool {
        let target = self.policy.target_file_size.0;
        let enough = bytes >= target || count >= MANY_SMALL || !self.policy.settings.fast_optimize;
        count > 1 && enough
    }

    /// How many of the small files, from the smallest on, join those selected.
    ///
    /// They join when they are a small share of what is rewritten, or when with it they are enough
    /// files of like size. All join when those that stay would be due for a merge of their own.
    fn joining(&self, small: &[(u64, usize)]) -> usize {
        if !self.policy.settings.fast_optimize {
            return small.len();
        }
        let chosen = self.chosen_bytes();
        let count = share_of(small, chosen / JOINING_SHARE).max(self.like_sized(small, chosen));
        let gathered = chosen + sum(&small[..count]);
        let (mut left, mut left_bytes) = (small.len() - count, sum(&small[count..]));
        if self.policy.is_small_layer(gathered) {
            left += 1;
            left_bytes += gathered;
        }
        if self.pays(left, left_bytes) { small.len() } else { count }
    }

    /// The longest run of small files, from the smallest on, that are of like size among themselves
    /// and with what is rewritten, if that is small too.
    fn like_sized(&self, small: &[(u64, usize)], chosen: u64) -> usize {
        let (new, new_bytes) =
            if self.policy.is_small_layer(chosen) { (1, chosen) } else { (0, 0) };
        let mut bytes = new_bytes;
        let mut longest = 0;
        for (at, (size, _)) in small.iter().enumerate() {
            bytes += size;
            let files = at + 1 + new;
            let largest = (*size).max(new_bytes);
            let sum_if_all_so_large =
                largest.saturating_mul(u64::try_from(files).unwrap_or(u64::MAX));
            let is_due = files >= LIKE_FILES_MAX
                || files >= LIKE_FILES && !self.policy.is_small_layer(bytes);
            if is_due && sum_if_all_so_large <= bytes.saturating_mul(LIKE_SIZE) {
                longest = at + 1;
            }
        }
        longest
    }

    /// Takes the clustered files that overlap, when there is new data.
    pub(super) fn take_overlapping_files(&mut self, reader: &RangeReader) {
        let settings = &self.policy.settings;
        if !settings.auto_recluster || self.is_empty() || self.has_one_layer_at_most() {
            return;
        }
        let candidate = |(index, file): (usize, &Judged<'s>)| {
            if !file.is_left_in_open_cube() {
                return None;
            }
            Some(Candidate {
                index,
                ranges: reader.read(file.add)?,
                layer: file.add.tag(zcube::REWRITE),
                bytes: file.add.size,
                moves_left: moves::left(file.add),
                is_small: file.is_small,
            })
        };
        let candidates = self.files.iter().enumerate().filter_map(candidate).collect();
        let policy = OverlapPolicy {
            score_above: settings.min_overlap_threshold,
            files_min: usize::try_from(settings.min_offending_files).unwrap_or(usize::MAX),
        };
        self.take(overlap::offending(candidates, policy), Reason::Overlap);
    }

    /// Tells whether one rewrite made all clustered files that are left: then nothing overlaps, and
    /// statistics need not be read.
    fn has_one_layer_at_most(&self) -> bool {
        let left = self.files.iter().filter(|file| file.is_left_in_open_cube());
        let mut layers = left.map(|file| file.add.tag(zcube::REWRITE));
        match layers.next() {
            None => true,
            Some(first) => first.is_some() && layers.all(|layer| layer == first),
        }
    }

    /// Packs the selected files into bins.
    pub(super) fn pack(&self) -> Vec<Bin> {
        let chosen = self.files.iter().filter_map(|file| Some((file.add, file.reason?))).collect();
        pack::pack(chosen, self.largest_open_cube(), self.policy)
    }

    /// The cube that an incremental rewrite joins; of equal ones the first by name.
    fn largest_open_cube(&self) -> Option<(&str, u64)> {
        if self.policy.takes_whole_cubes() {
            return None;
        }
        self.remaining_cubes()
            .into_iter()
            .filter(|(_, bytes)| *bytes < self.policy.closed_cube_bytes)
            .rev()
            .max_by_key(|(_, bytes)| *bytes)
    }
}

/// How many of the files, from the smallest on, are together no more than so many bytes.
fn share_of(small: &[(u64, usize)], bytes_max: u64) -> usize {
    let mut bytes = 0;
    let fits = |(size, _): &&(u64, usize)| {
        bytes += size;
        bytes <= bytes_max
    };
    small.iter().take_while(fits).count()
}

fn sum(small: &[(u64, usize)]) -> u64 {
    small.iter().map(|(bytes, _)| bytes).sum()
}

fn reason_by_membership(
    membership: &Membership,
    bytes: u64,
    policy: &SelectionPolicy,
) -> Option<Reason> {
    match membership {
        Membership::Unclustered => Some(Reason::Unclustered),
        Membership::Current { .. } => {
            let oversized = bytes / OVERSIZED >= policy.target_file_size.0.max(1);
            (policy.full && oversized).then_some(Reason::Oversized)
        }
        Membership::Stale => policy.full.then_some(Reason::StaleKeys),
        Membership::OtherProvider { .. } => policy.full.then_some(Reason::OtherProvider),
    }
}

fn deleted_share(file: &AddFile) -> f64 {
    let deleted = file.deleted_rows();
    // Most files have no deletion vector, and reading the statistics of all is slow.
    let rows = if deleted > 0 { file.rows().unwrap_or(0) } else { 0 };
    if rows == 0 { 0.0 } else { Bytes(deleted).as_f64() / Bytes(rows).as_f64() }
}
