//! Finds clustered files whose ranges overlap so much that clustering them again pays.
//!
//! 1. **Score of a pair.** In each key, the length that the two ranges share divided by the shorter
//!    one's length; 1 for a single value inside the other range. The score is the mean over the keys,
//!    and 0 when the ranges do not meet in some key: no predicate on all keys then reads both files.
//!    For one key this is the score of Miles Cole's public simulator of Fabric's incremental
//!    clustering, `|A ∩ B| / min(|A|, |B|)`. Fabric scores "across all clustering dimensions"
//!    without saying how; the mean fits its lower limit of 0.25, one key of at most four.
//!    Example: [0, 100] × [0, 10] and [50, 150] × [5, 15] score (50/100 + 5/10) / 2 = 0.5.
//! 2. **Offending files.** A pair whose score exceeds the threshold offends, unless one rewrite made
//!    both files: it would make them again. Pairs connect files to groups, and a group counts from
//!    the smallest number of offending files on.
//! 3. **Price.** A rewrite's files are its *layer*. Merging a group pays when its layers but the largest
//!    have as many moves left ([`crate::moves`]) as there are bytes in the whole group, the largest
//!    included: small layers wait until together they pay for the large one they overlap. Until then
//!    that layer stays, and of the rest those merge among themselves that were hardly moved yet
//!    ([`FRESH`]): they keep enough for the large one. So a wide new file does not drag the whole
//!    table along, and no byte is moved more often than its budget allows.
//!    Example: eleven layers of 4 MiB that were merged once have 2.125 moves left, 93.5 MiB in all;
//!    with another 2 MiB laid out once (3 left) they pay for merging with a layer of 50 MiB (96 MiB).
//! 4. **Small files** are [`crate::select()`]'s: they neither offend nor merge among themselves here,
//!    but where a group merges as a whole they help to pay, and join it.
//!
//! A file without bounds of every key overlaps nothing, because nothing is known of it; so does a
//! column of nulls only. Bounds that were cut (strings, milliseconds) are taken as they stand.

use std::{cmp::Ordering, collections::BTreeMap};

use crate::{
    bounds::{Bound, KeyRange},
    moves::MOVE,
};

/// Moves left to layers that merge among themselves below a larger one, in thousandths: at least one
/// and a half is left of them afterwards. New data that was laid out once has three.
const FRESH: u64 = 2 * MOVE + MOVE / 2;
/// Most files that one file is compared with, those that begin last before it in the sweep: a
/// bound on the work in a table where everything overlaps everything. Whatever is found is true;
/// more is found by the next OPTIMIZE.
const COMPARED_MAX: usize = 4_096;
/// Bytes of a string that count after what two files' bounds have in common.
const COUNTED_BYTES: usize = 15;

/// A clustered file that may be reclustered.
#[derive(Debug, Clone)]
pub(crate) struct Candidate<'f> {
    /// The caller's name for the file.
    pub(crate) index: usize,
    /// Its ranges, one per key.
    pub(crate) ranges: Vec<KeyRange>,
    /// The rewrite that made it, where known: its files are in order among themselves.
    pub(crate) layer: Option<&'f str>,
    /// Its size.
    pub(crate) bytes: u64,
    /// How often its bytes may still be moved, in thousandths.
    pub(crate) moves_left: u64,
    /// Whether it is far under the target size.
    pub(crate) is_small: bool,
}

/// What counts as overlapping.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OverlapPolicy {
    /// A pair's score must exceed this.
    pub(crate) score_above: f64,
    /// A group must have so many files.
    pub(crate) files_min: usize,
}

/// Returns the indices of the files to recluster, sorted.
pub(crate) fn offending(candidates: Vec<Candidate<'_>>, policy: OverlapPolicy) -> Vec<usize> {
    let mut found = Vec::new();
    let mut pending = vec![candidates];
    while let Some(candidates) = pending.pop() {
        for group in groups(candidates, policy) {
            match layer_that_is_not_paid_for(&group) {
                None => found.extend(group.iter().map(|candidate| candidate.index)),
                Some(layer) => {
                    let merges = |(position, candidate): &(usize, Candidate<'_>)| {
                        Layer::of(*position, candidate) != layer
                            && candidate.moves_left >= FRESH
                            && !candidate.is_small
                    };
                    let rest: Vec<(usize, Candidate<'_>)> =
                        group.iter().cloned().enumerate().filter(merges).collect();
                    pending.push(rest.into_iter().map(|(_, candidate)| candidate).collect());
                }
            }
        }
    }
    found.sort_unstable();
    found
}

/// Scores how much two files overlap, from 0 to 1.
pub(crate) fn score(a: &[KeyRange], b: &[KeyRange]) -> f64 {
    let mut sum = 0.0;
    let mut count = 0.0;
    let mut only_touch = true;
    for (a, b) in a.iter().zip(b) {
        let share = shared(a, b);
        if share <= 0.0 {
            return 0.0;
        }
        only_touch &= touch(a, b);
        sum += share;
        count += 1.0;
    }
    if only_touch || count < 1.0 { 0.0 } else { sum / count }
}

/// Tells whether two ranges share one value only, at an end of each: no order of the rows would
/// part them.
fn touch(a: &KeyRange, b: &KeyRange) -> bool {
    a.low.order(&b.high).is_eq() || b.low.order(&a.high).is_eq()
}

/// The shared length of two ranges, relative to the shorter one.
fn shared(a: &KeyRange, b: &KeyRange) -> f64 {
    let low = later(&a.low, &b.low);
    let high = earlier(&a.high, &b.high);
    if low.order(high).is_gt() {
        return 0.0;
    }
    if a.is_point() || b.is_point() {
        return 1.0;
    }
    let common = common_prefix(a, b);
    let length = |low: &Bound, high: &Bound| length(low, high, common);
    let shorter = length(&a.low, &a.high).min(length(&b.low, &b.high));
    // Two strings that differ beyond the counted bytes are as good as one.
    if shorter > 0.0 { length(low, high) / shorter } else { 1.0 }
}

fn later<'b>(a: &'b Bound, b: &'b Bound) -> &'b Bound {
    if a.order(b).is_lt() { b } else { a }
}

fn earlier<'b>(a: &'b Bound, b: &'b Bound) -> &'b Bound {
    if a.order(b).is_gt() { b } else { a }
}

/// The distance of two bounds. A string is a fraction whose digits are its bytes; digits that all
/// strings of the pair share are skipped, since only the ratio of two lengths matters.
#[expect(clippy::cast_precision_loss, reason = "a ratio of exact lengths")]
fn length(low: &Bound, high: &Bound, common: usize) -> f64 {
    match (low, high) {
        (Bound::Whole(low), Bound::Whole(high)) => {
            high.checked_sub(*low).map_or(i128::MAX as f64, |length| length as f64)
        }
        // Halves, because a difference of two floats may be no float.
        (Bound::Float(low), Bound::Float(high)) => high / 2.0 - low / 2.0,
        (Bound::Text(low), Bound::Text(high)) => {
            fraction(high, common).saturating_sub(fraction(low, common)) as f64
        }
        _ => 0.0,
    }
}

fn fraction(text: &str, skip: usize) -> u128 {
    let digits = text.bytes().skip(skip).chain(std::iter::repeat(0)).take(COUNTED_BYTES);
    digits.fold(0, |sum, byte| (sum << 8) | u128::from(byte))
}

fn common_prefix(a: &KeyRange, b: &KeyRange) -> usize {
    let (Bound::Text(low), Bound::Text(high)) = (earlier(&a.low, &b.low), later(&a.high, &b.high))
    else {
        return 0;
    };
    low.bytes().zip(high.bytes()).take_while(|(a, b)| a == b).count()
}

/// A layer, or a file of which no rewrite is known, alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer<'f> {
    Rewrite(&'f str),
    Alone(usize),
}

impl<'f> Layer<'f> {
    fn of(position: usize, candidate: &Candidate<'f>) -> Self {
        candidate.layer.map_or(Self::Alone(position), Self::Rewrite)
    }
}

/// The largest layer of a group, unless the others pay for moving all of it.
fn layer_that_is_not_paid_for<'f>(group: &[Candidate<'f>]) -> Option<Layer<'f>> {
    let mut layers: BTreeMap<Layer<'f>, (u64, u128)> = BTreeMap::new();
    for (position, candidate) in group.iter().enumerate() {
        let (bytes, moves) = layers.entry(Layer::of(position, candidate)).or_default();
        *bytes = bytes.saturating_add(candidate.bytes);
        *moves += u128::from(candidate.bytes) * u128::from(candidate.moves_left);
    }
    let needed: u128 = layers.values().map(|(bytes, _)| u128::from(*bytes)).sum();
    let all: u128 = layers.values().map(|(_, moves)| *moves).sum();
    let (layer, (_, own)) = layers.into_iter().max_by_key(|(_, (bytes, _))| *bytes)?;
    (all - own < needed * u128::from(MOVE)).then_some(layer)
}

/// Groups files by pairs that offend; groups that are too small are left out.
fn groups<'f>(candidates: Vec<Candidate<'f>>, policy: OverlapPolicy) -> Vec<Vec<Candidate<'f>>> {
    let one_layer =
        |pair: &[Candidate<'f>]| pair[0].layer.is_some() && pair[0].layer == pair[1].layer;
    if candidates.len() < policy.files_min || candidates.windows(2).all(one_layer) {
        return Vec::new();
    }
    let sweep = Sweep::new(candidates);
    let mut sets = DisjointSets::new(sweep.candidates.len());
    sweep.visit_pairs(|a, b| {
        let (first, second) = (&sweep.candidates[a], &sweep.candidates[b]);
        if !sets.are_joined(a, b) && score(&first.ranges, &second.ranges) > policy.score_above {
            sets.join(a, b);
        }
    });
    let mut members: BTreeMap<usize, Vec<Candidate<'f>>> = BTreeMap::new();
    for (position, candidate) in sweep.candidates.into_iter().enumerate() {
        members.entry(sets.root(position)).or_default().push(candidate);
    }
    let offends = |group: &Vec<Candidate<'f>>| {
        group.iter().filter(|candidate| !candidate.is_small).count() >= policy.files_min
    };
    members.into_values().filter(offends).collect()
}

/// Files in the order in which their ranges of one key begin, with ranks in place of values.
#[derive(Debug)]
struct Sweep<'f> {
    candidates: Vec<Candidate<'f>>,
    /// Per key, first the swept one: the ranks of each file's bounds.
    ranks: Vec<Vec<(u32, u32)>>,
    /// The number of each file's layer; files of none have numbers of their own.
    layers: Vec<usize>,
}

impl<'f> Sweep<'f> {
    /// Sweeps over the key in which fewest files meet.
    fn new(candidates: Vec<Candidate<'f>>) -> Self {
        let keys = candidates.first().map_or(0, |candidate| candidate.ranges.len());
        let mut ranks: Vec<Vec<(u32, u32)>> =
            (0..keys).map(|key| ranked(&candidates, key)).collect();
        ranks.sort_by_cached_key(|ranks| meetings(ranks));
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        if let Some(swept) = ranks.first() {
            order.sort_by_key(|position| (swept[*position], candidates[*position].index));
        }
        for ranks in &mut ranks {
            *ranks = order.iter().map(|position| ranks[*position]).collect();
        }
        let mut numbers: BTreeMap<Layer<'f>, usize> = BTreeMap::new();
        let mut layers = Vec::with_capacity(order.len());
        for position in &order {
            let next = numbers.len();
            let layer = Layer::of(*position, &candidates[*position]);
            layers.push(*numbers.entry(layer).or_insert(next));
        }
        let mut taken: Vec<Option<Candidate<'f>>> = candidates.into_iter().map(Some).collect();
        let candidates = order.iter().filter_map(|position| taken[*position].take()).collect();
        Self { candidates, ranks, layers }
    }

    /// Visits the pairs of files of different layers whose ranges meet in every key.
    fn visit_pairs(&self, mut visit: impl FnMut(usize, usize)) {
        let Some((swept, others)) = self.ranks.split_first() else { return };
        let mut open: Vec<usize> = Vec::new();
        let mut tidy_at = 1_024;
        for (current, (low, _)) in swept.iter().enumerate() {
            if open.len() >= tidy_at {
                open.retain(|earlier| swept[*earlier].1 >= *low);
                tidy_at = (2 * open.len()).max(1_024);
            }
            for earlier in open.iter().rev().take(COMPARED_MAX) {
                let earlier = *earlier;
                let meets = |ranks: &Vec<(u32, u32)>| {
                    ranks[earlier].0 <= ranks[current].1 && ranks[current].0 <= ranks[earlier].1
                };
                if swept[earlier].1 >= *low
                    && self.layers[earlier] != self.layers[current]
                    && others.iter().all(meets)
                {
                    visit(earlier, current);
                }
            }
            open.push(current);
        }
    }
}

/// Replaces the bounds of one key by their ranks among all bounds of that key.
fn ranked(candidates: &[Candidate<'_>], key: usize) -> Vec<(u32, u32)> {
    let bound = |slot: usize| {
        let range = &candidates[slot / 2].ranges[key];
        if slot.is_multiple_of(2) { &range.low } else { &range.high }
    };
    let mut slots: Vec<usize> = (0..2 * candidates.len()).collect();
    slots.sort_by(|a, b| bound(*a).order(bound(*b)));
    let mut ranks = vec![0_u32; slots.len()];
    for pair in slots.windows(2) {
        let step = u32::from(bound(pair[0]).order(bound(pair[1])) != Ordering::Equal);
        ranks[pair[1]] = ranks[pair[0]] + step;
    }
    ranks.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Counts the pairs of ranges that meet.
fn meetings(ranks: &[(u32, u32)]) -> usize {
    let mut lows: Vec<u32> = ranks.iter().map(|(low, _)| *low).collect();
    lows.sort_unstable();
    let begun: usize = ranks.iter().map(|(_, high)| lows.partition_point(|low| low <= high)).sum();
    begun.saturating_sub(ranks.len() * (ranks.len() + 1) / 2)
}

/// Sets of positions that only ever join.
#[derive(Debug)]
struct DisjointSets {
    parents: Vec<usize>,
}

impl DisjointSets {
    fn new(count: usize) -> Self {
        Self { parents: (0..count).collect() }
    }

    /// Finds the smallest position of a set, and shortens the way there.
    fn root(&mut self, position: usize) -> usize {
        let mut at = position;
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    fn are_joined(&mut self, a: usize, b: usize) -> bool {
        self.root(a) == self.root(b)
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::{Candidate, OverlapPolicy, offending, score};
    use crate::bounds::{Bound, KeyRange};

    const POLICY: OverlapPolicy = OverlapPolicy { score_above: 0.75, files_min: 4 };

    fn whole(low: i128, high: i128) -> KeyRange {
        KeyRange { low: Bound::Whole(low), high: Bound::Whole(high) }
    }

    fn text(low: &str, high: &str) -> KeyRange {
        KeyRange { low: Bound::Text(low.to_owned()), high: Bound::Text(high.to_owned()) }
    }

    #[track_caller]
    fn check(a: &[KeyRange], b: &[KeyRange], expected: f64) {
        for (a, b) in [(a, b), (b, a)] {
            assert!((score(a, b) - expected).abs() < 1e-9, "{} for {expected}", score(a, b));
        }
    }

    #[test]
    fn score_is_the_shared_length_over_the_shorter_one() {
        check(&[whole(0, 100)], &[whole(0, 100)], 1.0);
        check(&[whole(0, 100)], &[whole(25, 125)], 0.75);
        check(&[whole(0, 100)], &[whole(40, 60)], 1.0);
        check(&[whole(0, 100)], &[whole(100, 200)], 0.0);
        check(&[whole(0, 100)], &[whole(101, 200)], 0.0);
        check(&[whole(i128::MIN, i128::MAX)], &[whole(0, 5)], 1.0);
    }

    #[test]
    fn score_of_several_keys_is_their_mean_unless_one_does_not_meet() {
        check(&[whole(0, 100), whole(0, 10)], &[whole(50, 150), whole(5, 15)], 0.5);
        check(&[whole(0, 100), whole(0, 10)], &[whole(0, 100), whole(11, 15)], 0.0);
        check(&[whole(0, 100), whole(0, 10)], &[whole(0, 100), whole(10, 20)], 0.0);
    }

    #[test]
    fn single_values_overlap_where_order_could_part_them() {
        check(&[whole(5, 5)], &[whole(0, 10)], 1.0);
        check(&[whole(5, 5)], &[whole(5, 5)], 0.0);
        check(&[whole(5, 5)], &[whole(5, 10)], 0.0);
        check(&[whole(5, 5), whole(0, 10)], &[whole(5, 5), whole(0, 10)], 1.0);
        check(&[whole(5, 5), whole(7, 7)], &[whole(5, 5), whole(7, 7)], 0.0);
    }

    #[test]
    fn floats_and_strings_have_lengths_too() {
        let float = |low, high| KeyRange { low: Bound::Float(low), high: Bound::Float(high) };
        check(&[float(0.0, 1.0)], &[float(0.5, 1.5)], 0.5);
        check(&[float(f64::MIN, f64::MAX)], &[float(0.0, f64::MAX)], 1.0);
        check(&[text("a", "e")], &[text("c", "g")], 0.5);
        check(&[text("Customer#0a", "Customer#0e")], &[text("Customer#0d", "Customer#0h")], 0.25);
        check(&[text("a", "b")], &[text("c", "d")], 0.0);
        let long = |end: char| format!("m{}{end}", "x".repeat(40));
        check(&[text("a", "z")], &[text(&long('1'), &long('2'))], 1.0);
    }

    fn candidates(ranges: &[(i128, i128, Option<&'static str>, u64)]) -> Vec<Candidate<'static>> {
        let candidate =
            |(index, (low, high, layer, bytes)): (usize, &(i128, i128, _, u64))| Candidate {
                index,
                ranges: vec![whole(*low, *high)],
                layer: *layer,
                bytes: *bytes,
                moves_left: 3_000,
                is_small: false,
            };
        ranges.iter().enumerate().map(candidate).collect()
    }

    #[test]
    fn enough_files_must_overlap() {
        let three = [(0, 100, None, 1), (1, 101, None, 1), (2, 102, None, 1)];
        assert_eq!(offending(candidates(&three), POLICY), Vec::<usize>::new());
        let mut four = three.to_vec();
        four.insert(0, (500, 600, None, 1));
        four.push((3, 103, None, 1));
        assert_eq!(offending(candidates(&four), POLICY), [1, 2, 3, 4]);
    }

    #[test]
    fn score_must_exceed_the_threshold() {
        let steps = |step: i128| -> Vec<_> {
            (0..4).map(|n| (n * step, n * step + 100, None, 1)).collect()
        };
        assert_eq!(offending(candidates(&steps(25)), POLICY), Vec::<usize>::new());
        assert_eq!(offending(candidates(&steps(24)), POLICY), [0, 1, 2, 3]);
    }

    #[test]
    fn files_of_one_rewrite_do_not_offend_each_other() {
        let same: Vec<_> = (0..6).map(|n| (n, 100 + n, Some("r"), 1)).collect();
        assert_eq!(offending(candidates(&same), POLICY), Vec::<usize>::new());
    }

    #[test]
    fn wide_files_merge_among_themselves_before_they_move_a_large_layer() {
        let mut files: Vec<_> = (0..100).map(|n| (n * 10, n * 10 + 9, Some("base"), 10)).collect();
        for layer in ["w1", "w2", "w3"] {
            files.push((0, 999, Some(layer), 10));
        }
        assert_eq!(offending(candidates(&files), POLICY), Vec::<usize>::new());
        files.push((0, 999, Some("w4"), 10));
        assert_eq!(offending(candidates(&files), POLICY), [100, 101, 102, 103]);
    }

    #[test]
    fn layers_of_like_size_merge_whole() {
        let mut files = Vec::new();
        for layer in ["a", "b"] {
            for n in 0..10 {
                files.push((n * 10, n * 10 + 9, Some(layer), 10));
            }
        }
        let policy = OverlapPolicy { files_min: 2, ..POLICY };
        assert_eq!(offending(candidates(&files), policy).len(), 20);
        assert_eq!(offending(candidates(&files), POLICY), Vec::<usize>::new());
    }

    /// A base of ten files of ten bytes, and layers over all of it that were merged once.
    fn merged_once(layers: &[&'static str]) -> Vec<Candidate<'static>> {
        let mut files: Vec<_> = (0..10).map(|n| (n * 10, n * 10 + 9, Some("base"), 10)).collect();
        files.extend(layers.iter().map(|layer| (0, 99, Some(*layer), 20)));
        let mut all = candidates(&files);
        for candidate in &mut all[10..] {
            candidate.moves_left = 2_000;
        }
        all
    }

    #[test]
    fn layers_that_were_merged_once_wait_until_they_pay_for_the_base() {
        let layers = ["a", "b", "c", "d", "e"];
        assert_eq!(offending(merged_once(&layers[..4]), POLICY), Vec::<usize>::new());
        assert_eq!(offending(merged_once(&layers), POLICY).len(), 15);
    }

    #[test]
    fn small_files_neither_offend_nor_stay_behind() {
        let small = |count: usize| {
            let mut files: Vec<_> = (0..count).map(|_| (0, 99, None, 1)).collect();
            files.push((0, 99, Some("base"), 5));
            let mut all = candidates(&files);
            for candidate in &mut all[..count] {
                candidate.is_small = true;
            }
            all
        };
        assert_eq!(offending(small(9), POLICY), Vec::<usize>::new());
        let mut with_healthy = small(9);
        let healthy =
            candidates(&[(0, 99, Some("x"), 4), (0, 99, Some("y"), 4), (0, 99, Some("z"), 4)]);
        let next = with_healthy.len();
        with_healthy.extend(healthy.into_iter().map(|mut candidate| {
            candidate.index += next;
            candidate
        }));
        assert_eq!(offending(with_healthy, POLICY).len(), 13);
    }

    #[test]
    fn sweep_finds_what_comparing_all_pairs_finds() {
        let mut state = 1_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            i128::from((state >> 33) % below)
        };
        for _ in 0..50 {
            let files: Vec<Candidate<'static>> = (0..60)
                .map(|index| {
                    let mut range = || {
                        let low = next(100);
                        whole(low, low + next(60))
                    };
                    Candidate {
                        index,
                        ranges: vec![range(), range()],
                        layer: None,
                        bytes: 1,
                        moves_left: 3_000,
                        is_small: false,
                    }
                })
                .collect();
            let partner = |a: &Candidate<'_>| {
                files.iter().any(|b| a.index != b.index && score(&a.ranges, &b.ranges) > 0.75)
            };
            let expected: Vec<usize> =
                files.iter().filter(|a| partner(a)).map(|a| a.index).collect();
            let policy = OverlapPolicy { files_min: 2, ..POLICY };
            let found: Vec<usize> = super::groups(files.clone(), policy)
                .into_iter()
                .flatten()
                .map(|candidate| candidate.index)
                .collect();
            let mut sorted = found;
            sorted.sort_unstable();
            assert_eq!(sorted, expected);
        }
    }
}
