//! Chooses between layouts that save the same but for the simulator's error.
//!
//! 1. The sum of saved bytes is one figure; what a person waits for is another: how much of each
//!    statement's reading goes away. A layout may save its bytes in the few statements that read
//!    most, or in all of them.
//! 2. Candidates of a table whose savings lie within [`SIMULATION_ERROR`] of the best one's cannot
//!    be told apart by their sums: a 1 % sample errs by up to 0.05 of a table's files, and the
//!    tolerance stays below that. What is given up counts into the plan's stated gap.
//! 3. Of these the one is kept that saves the largest share of a statement's bytes, on average over
//!    statements; by fewer keys where that is equal.
//!
//! Worked example: two statements, one reads 100 bytes and one 10. Saving 30 and 0 is 30 bytes and a
//! mean share of 0.15; saving 20 and 9 is 29 bytes and a mean share of 0.55, and is kept.

use std::collections::BTreeMap;

use lakebed_model::TableName;

use crate::{LoggedScan, TableEvidence, benefit::Reading, candidates::Candidate};

/// Savings closer than this share of the best are the same.
pub(crate) const SIMULATION_ERROR: f64 = 0.03;
/// A mean share must be larger by this part of itself to count as larger.
const NOTICEABLE: f64 = 0.02;

/// Bytes of all tables that each statement scans, by the statement's index.
pub(crate) fn bytes_of_statements(
    scans: &BTreeMap<TableName, Vec<LoggedScan>>,
    evidence: &[&TableEvidence],
) -> BTreeMap<usize, f64> {
    let mut totals = BTreeMap::new();
    for table in evidence {
        for scan in scans.get(&table.table).into_iter().flatten() {
            *totals.entry(scan.statement).or_insert(0.0) += table.bytes.as_f64();
        }
    }
    totals
}

/// Mean over a table's statements of the share of the statement's bytes that a layout saves.
pub(crate) fn mean_share(
    scans: &[LoggedScan],
    totals: &BTreeMap<usize, f64>,
    now: &[Reading],
    then: &[Reading],
) -> f64 {
    let shares = scans.iter().zip(now).zip(then).filter_map(|((scan, now), then)| {
        let total = totals.get(&scan.statement).copied().filter(|total| *total > 0.0)?;
        Some((now.bytes - then.bytes) / total)
    });
    let statements: std::collections::BTreeSet<usize> =
        scans.iter().map(|scan| scan.statement).collect();
    shares.sum::<f64>() / statements.len().max(1) as f64
}

/// Keeps one of the candidates that save the same: the one that serves statements most evenly.
pub(crate) fn prefer_even(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let Some((best, even)) = best_and_even(&candidates) else { return candidates };
    if even.mean_share <= best.mean_share * (1.0 + NOTICEABLE) {
        return candidates;
    }
    let least = least(best);
    let even = even.layout.clone();
    candidates
        .into_iter()
        .filter(|candidate| saves(candidate) < least || candidate.layout == even)
        .collect()
}

/// Picks one of the candidates, of those that save the same the one that serves statements most
/// evenly.
pub(crate) fn most_even(candidates: &[Candidate]) -> Option<&Candidate> {
    let (best, even) = best_and_even(candidates)?;
    let is_noticeable = even.mean_share > best.mean_share * (1.0 + NOTICEABLE);
    Some(if is_noticeable { even } else { best })
}

fn saves(candidate: &Candidate) -> f64 {
    candidate.estimate.expected_bytes
}

/// The least that a candidate saves which cannot be told from the best.
fn least(best: &Candidate) -> f64 {
    saves(best) * (1.0 - SIMULATION_ERROR)
}

fn best_and_even(candidates: &[Candidate]) -> Option<(&Candidate, &Candidate)> {
    let best = candidates.iter().max_by(|a, b| saves(a).total_cmp(&saves(b)))?;
    let same = candidates.iter().filter(|candidate| saves(candidate) >= least(best));
    let even = same.max_by(|a, b| {
        let fewer_keys = b.keys().len().cmp(&a.keys().len());
        a.mean_share.total_cmp(&b.mean_share).then(fewer_keys)
    });
    Some((best, even.unwrap_or(best)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{mean_share, prefer_even};
    use crate::{
        Layout, LoggedScan,
        benefit::{BenefitEstimate, Reading},
        candidates::Candidate,
    };

    fn candidate(key: &str, expected_bytes: f64, mean_share: f64) -> Candidate {
        let estimate = BenefitEstimate { expected_bytes, ..BenefitEstimate::default() };
        let layout = Layout::clustered(vec![key.to_owned()]);
        let skipped_bytes = expected_bytes;
        Candidate { layout, estimate, mean_share, skipped_bytes, npv: expected_bytes }
    }

    #[track_caller]
    fn check(candidates: Vec<Candidate>, expected: &[&str]) {
        let kept = prefer_even(candidates);
        let keys: Vec<&str> = kept.iter().map(|candidate| candidate.keys()[0].as_str()).collect();
        assert_eq!(keys, expected);
    }

    #[test]
    fn the_worked_example_keeps_the_even_layout() {
        let scan = |statement| LoggedScan { statement, ranges: BTreeMap::new() };
        let reading = |bytes| Reading { files: 0.0, bytes };
        let (scans, totals) = ([scan(0), scan(1)], BTreeMap::from([(0, 100.0), (1, 10.0)]));
        let now = [reading(100.0), reading(10.0)];
        let share = |then: [f64; 2]| mean_share(&scans, &totals, &now, &then.map(reading));
        let (uneven, even) = (share([70.0, 10.0]), share([80.0, 1.0]));
        assert!((uneven - 0.15).abs() < 1e-12 && (even - 0.55).abs() < 1e-12);
        check(vec![candidate("uneven", 30.0, uneven), candidate("even", 29.2, even)], &["even"]);
    }

    #[test]
    fn a_clearly_larger_saving_wins_whatever_the_shares() {
        let both = vec![candidate("large", 30.0, 0.1), candidate("even", 29.0, 0.9)];
        check(both, &["large", "even"]);
    }

    #[test]
    fn equal_shares_change_nothing() {
        check(vec![candidate("a", 30.0, 0.5), candidate("b", 29.9, 0.505)], &["a", "b"]);
    }
}
