//! Which columns of a table, and which sets of them, are worth simulating.
//!
//! A column can save bytes only if a scan asks for a range of it, directly or through a join. Of
//! those that may be keys, the six that save most on their own remain; every set of one to four of
//! them is a candidate, at most 56 a table. Within a set, join columns come first, best edge first,
//! then filter columns, most frequent first. The sets of two or three that promise most are
//! candidates with weighted cuts as well.

use std::{cmp::Ordering, collections::BTreeMap};

use lakebed_graph::JoinGraph;

use crate::{
    BenefitEstimate, Layout, LoggedScan, TableEvidence,
    benefit::{Guess, WhatIf},
    even::SIMULATION_ERROR,
};

/// Clustering keys a table may have (the protocol's own limit is the product's: four).
pub const MAX_KEYS: usize = 4;
/// Columns of a table that sets are made of.
pub const MAX_INTERESTING_COLUMNS: usize = 6;

/// Sets of keys that are simulated with cuts.
const MAX_SETS_TO_CUT: usize = 10;
/// Share of a set's value that one more key must add: less than this is noise of the sample.
const MIN_GAIN_OF_ANOTHER_KEY: f64 = 0.01;
/// A column with fewer distinct values separates nothing.
const MIN_DISTINCT_VALUES: usize = 2;

/// A layout with what it saves and is worth.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) layout: Layout,
    pub(crate) estimate: BenefitEstimate,
    /// Mean over the table's statements of the share of a statement's bytes that goes away.
    pub(crate) mean_share: f64,
    /// Bytes of the table that scans would not read, whatever they read now.
    pub(crate) skipped_bytes: f64,
    pub(crate) npv: f64,
}

impl Candidate {
    pub(crate) fn keys(&self) -> &[String] {
        &self.layout.cluster_by
    }
}

/// A column that was looked at and left out.
#[derive(Debug, Clone)]
pub(crate) struct RefusedColumn {
    pub(crate) column: String,
    pub(crate) why: String,
}

/// How the workload uses a column.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnUse {
    /// Statements with a range on the column.
    pub(crate) ranged: u64,
    /// How many of them have it through joins only.
    pub(crate) inferred: u64,
    /// The best edge on the column: score and frequency.
    pub(crate) edge: Option<(f64, u64)>,
}

/// Counts how the workload uses the columns of a table: those it joins or asks a range of.
pub(crate) fn column_uses(
    evidence: &TableEvidence,
    scans: &[LoggedScan],
    graph: &JoinGraph,
) -> BTreeMap<String, ColumnUse> {
    let mut uses: BTreeMap<String, ColumnUse> = BTreeMap::new();
    for edge in graph.edges_of(&evidence.table) {
        for column in edge.stats.columns_of(&evidence.table) {
            let known = uses.entry(column.to_owned()).or_default();
            let found = (edge.score, edge.stats.frequency);
            let is_better = known.edge.is_none_or(|best| by_edge(found, best).is_lt());
            if is_better {
                known.edge = Some(found);
            }
        }
    }
    let mut ranged: BTreeMap<(usize, &str), bool> = BTreeMap::new();
    for scan in scans {
        for (column, wanted) in &scan.ranges {
            *ranged.entry((scan.statement, column.as_str())).or_insert(true) &= wanted.inferred;
        }
    }
    for ((_, column), inferred) in ranged {
        let known = uses.entry(column.to_owned()).or_default();
        known.ranged += 1;
        known.inferred += u64::from(inferred);
    }
    uses
}

/// Picks the columns that sets are made of, in canonical order, and says why others are left out.
pub(crate) fn interesting_columns(
    evidence: &TableEvidence,
    uses: &BTreeMap<String, ColumnUse>,
    saving_alone: impl Fn(&str) -> f64,
) -> (Vec<String>, Vec<RefusedColumn>) {
    let mut refused = Vec::new();
    let mut able: Vec<(f64, &String)> = Vec::new();
    for (column, column_use) in uses {
        match obstacle(evidence, column, column_use) {
            Some(why) => refused.push(RefusedColumn { column: column.clone(), why }),
            None => able.push((saving_alone(column), column)),
        }
    }
    able.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| canonical(uses, a.1, b.1)));
    for (_, column) in able.iter().skip(MAX_INTERESTING_COLUMNS) {
        let why = format!(
            "{MAX_INTERESTING_COLUMNS} other columns save more, and sets are made of no more"
        );
        refused.push(RefusedColumn { column: (*column).clone(), why });
    }
    able.truncate(MAX_INTERESTING_COLUMNS);
    let mut columns: Vec<String> = able.into_iter().map(|(_, column)| column.clone()).collect();
    columns.sort_by(|a, b| canonical(uses, a, b));
    (columns, refused)
}

/// Lists every set of one to four columns, smaller sets first, each in the order given.
pub(crate) fn key_sets(columns: &[String]) -> Vec<Vec<String>> {
    let mut sets: Vec<Vec<String>> = (1u32..1 << columns.len())
        .filter(|mask| mask.count_ones() as usize <= MAX_KEYS)
        .map(|mask| {
            let is_in = |(index, _): &(usize, &String)| mask >> index & 1 == 1;
            columns.iter().enumerate().filter(is_in).map(|(_, column)| column.clone()).collect()
        })
        .collect();
    sets.sort_by_key(Vec::len);
    sets
}

/// Leaves out sets to which a smaller one of them is as good but for noise.
pub(crate) fn without_superfluous(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let is_superfluous = |candidate: &Candidate| {
        candidates.iter().any(|other| {
            other.keys().len() < candidate.keys().len()
                && other.keys().iter().all(|key| candidate.keys().contains(key))
                && other.npv >= candidate.npv - MIN_GAIN_OF_ANOTHER_KEY * candidate.npv.abs()
        })
    };
    let keep: Vec<bool> = candidates.iter().map(|candidate| !is_superfluous(candidate)).collect();
    candidates.into_iter().zip(keep).filter_map(|(c, keep)| keep.then_some(c)).collect()
}

/// Lists layouts of weighted cuts by the sets of keys that promise most, the sets in order of their
/// promise.
pub(crate) fn promising_cuts(
    what_if: &dyn WhatIf,
    columns: &[String],
    weights: &[f64],
) -> Vec<Vec<Layout>> {
    let mut sets: Vec<Vec<Guess>> = key_sets(columns)
        .iter()
        .map(|keys| what_if.cuts(keys, weights))
        .filter(|guesses| !guesses.is_empty())
        .collect();
    sets.sort_by(|a, b| b[0].promises.total_cmp(&a[0].promises));
    sets.truncate(MAX_SETS_TO_CUT);
    let layouts = |guesses: Vec<Guess>| guesses.into_iter().map(|guess| guess.layout).collect();
    sets.into_iter().map(layouts).collect()
}

/// Returns what cuts must skip more than to be worth having: what the best of some layouts skips, and
/// the simulator's error.
pub(crate) fn least_skipped_by_cuts(candidates: &[Candidate]) -> f64 {
    let best = candidates.iter().map(|candidate| candidate.skipped_bytes).fold(0.0, f64::max);
    best * (1.0 + SIMULATION_ERROR)
}

/// Predicts the savings of single columns, for ranking.
pub(crate) fn saving_alone(what_if: &dyn WhatIf, now_bytes: f64, column: &str) -> f64 {
    let layout = Layout::clustered(vec![column.to_owned()]);
    now_bytes - what_if.readings(&layout).iter().map(|reading| reading.bytes).sum::<f64>()
}

fn obstacle(evidence: &TableEvidence, column: &str, column_use: &ColumnUse) -> Option<String> {
    if column_use.ranged == 0 {
        return Some(
            "joined, but no statement compares it with a constant, not even through a join: no \
             file could be skipped by it"
                .to_owned(),
        );
    }
    if !evidence.eligible_columns.contains(column) {
        return Some(
            "cannot be a clustering key: its type has no order or its statistics are not kept"
                .to_owned(),
        );
    }
    let Some(values) = evidence.sample.columns.get(column) else {
        return Some("not in the sample, so nothing can be predicted".to_owned());
    };
    let distinct = distinct_values(values);
    (distinct < MIN_DISTINCT_VALUES).then(|| {
        format!(
            "too few distinct values: {distinct} in {} sampled rows, expected at least \
             {MIN_DISTINCT_VALUES}",
            values.len()
        )
    })
}

/// Counts distinct values up to two, which is all that matters.
fn distinct_values(values: &[Option<lakebed_model::Literal>]) -> usize {
    let mut known = values.iter().flatten();
    let Some(first) = known.next() else { return 0 };
    if known.any(|value| value.compare(first) != Some(Ordering::Equal)) { 2 } else { 1 }
}

/// Join columns first, best edge first; then the most ranged; then by name.
fn canonical(uses: &BTreeMap<String, ColumnUse>, a: &str, b: &str) -> Ordering {
    let (use_a, use_b) = (&uses[a], &uses[b]);
    let by_join = match (use_a.edge, use_b.edge) {
        (Some(a), Some(b)) => by_edge(a, b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    };
    by_join.then_with(|| use_b.ranged.cmp(&use_a.ranged)).then_with(|| a.cmp(b))
}

fn by_edge(a: (f64, u64), b: (f64, u64)) -> Ordering {
    b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1))
}

#[cfg(test)]
mod tests {
    use super::{Candidate, key_sets, least_skipped_by_cuts, without_superfluous};
    use crate::{BenefitEstimate, Layout};

    fn names(columns: &[&str]) -> Vec<String> {
        columns.iter().map(|&column| column.to_owned()).collect()
    }

    #[test]
    fn six_columns_give_every_set_of_one_to_four() {
        // 6 + 15 + 20 + 15 sets.
        let sets = key_sets(&names(&["a", "b", "c", "d", "e", "f"]));
        assert_eq!(sets.len(), 56);
        assert_eq!(sets[0], ["a"]);
        assert_eq!(sets[6], ["a", "b"]);
        assert_eq!(sets[55], ["c", "d", "e", "f"]);
        assert_eq!(key_sets(&names(&["b", "a"])), [vec!["b"], vec!["a"], vec!["b", "a"]]);
        assert!(key_sets(&[]).is_empty());
    }

    fn candidate(layout: Layout, worth: f64) -> Candidate {
        let estimate = BenefitEstimate::default();
        Candidate { layout, estimate, mean_share: 0.0, skipped_bytes: worth, npv: worth }
    }

    fn layouts(candidates: Vec<Candidate>) -> Vec<String> {
        candidates.into_iter().map(|candidate| candidate.layout.keys()).collect()
    }

    #[test]
    fn key_that_adds_only_noise_is_left_out() {
        let plain = |keys: &[&str], npv| candidate(Layout::clustered(names(keys)), npv);
        let left = without_superfluous(vec![
            plain(&["a"], 100.0),
            plain(&["b"], 20.0),
            plain(&["a", "b"], 100.5),
            plain(&["a", "c"], 120.0),
        ]);
        assert_eq!(layouts(left), ["a", "b", "a, c"]);
    }

    #[test]
    fn cuts_must_skip_more_than_the_best_layout_without_by_the_simulators_error() {
        let plain = |keys: &[&str], skipped| candidate(Layout::clustered(names(keys)), skipped);
        let least = least_skipped_by_cuts(&[plain(&["a", "b"], 90.0), plain(&["a"], 100.0)]);
        assert!((least - 103.0).abs() < 1e-9, "{least}");
    }
}
