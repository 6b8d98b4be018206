//! From readings to an estimate with an interval.
//!
//! The interval is a percentile bootstrap over statements (B. Efron, "Bootstrap methods", Annals of
//! Statistics 7, 1979): draw as many statements as there were, with replacement, 200 times, and
//! take the 5th and the 95th percentile of the sums. It answers "what if the next window draws its
//! statements from the same habits"; it does not cover a sample that is not uniform.

use super::{BenefitEstimate, Reading};
use crate::{LoggedScan, random::SplitMix64};

const RESAMPLES: usize = 200;
const LOW: usize = RESAMPLES / 20;
const HIGH: usize = RESAMPLES - 1 - LOW;
const SEED: u64 = 0x1A4E_BED0;

/// The draws for one table's statements; all candidates of the table share them, so that their
/// intervals differ by layout and not by luck.
#[derive(Debug)]
pub(crate) struct Resamples {
    /// Position of each scan's statement among the table's statements.
    statement_of_scan: Vec<usize>,
    statements: usize,
    /// Per resample, how often each statement was drawn.
    draws: Vec<Vec<u32>>,
}

impl Resamples {
    /// Draws for the statements of these scans, which are in the order of statements.
    pub(crate) fn new(scans: &[LoggedScan]) -> Self {
        let mut statement_of_scan = Vec::with_capacity(scans.len());
        let mut statements = 0;
        let mut last = None;
        for scan in scans {
            if last != Some(scan.statement) {
                statements += 1;
                last = Some(scan.statement);
            }
            statement_of_scan.push(statements - 1);
        }
        let mut random = SplitMix64::new(SEED);
        let draws = (0..RESAMPLES)
            .map(|_| {
                let mut counts = vec![0; statements];
                for _ in 0..statements {
                    counts[random.below(statements)] += 1;
                }
                counts
            })
            .collect();
        Self { statement_of_scan, statements, draws }
    }

    /// Returns how many statements scan the table.
    pub(crate) const fn statements(&self) -> usize {
        self.statements
    }

    /// Compares two models' readings of the same scans.
    pub(crate) fn estimate(&self, now: &[Reading], then: &[Reading]) -> BenefitEstimate {
        let mut saved = vec![0.0; self.statements];
        for ((statement, now), then) in self.statement_of_scan.iter().zip(now).zip(then) {
            saved[*statement] += now.bytes - then.bytes;
        }
        let mut sums: Vec<f64> = self
            .draws
            .iter()
            .map(|counts| counts.iter().zip(&saved).map(|(n, bytes)| f64::from(*n) * bytes).sum())
            .collect();
        sums.sort_unstable_by(f64::total_cmp);
        let mean_files = |readings: &[Reading]| {
            readings.iter().map(|reading| reading.files).sum::<f64>() / readings.len().max(1) as f64
        };
        BenefitEstimate {
            expected_bytes: saved.iter().sum(),
            low_bytes: sums[LOW],
            high_bytes: sums[HIGH],
            files_read_now: mean_files(now),
            files_read_then: mean_files(then),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Resamples;
    use crate::{LoggedScan, benefit::Reading};

    fn scans(statements: &[usize]) -> Vec<LoggedScan> {
        let scan = |&statement| LoggedScan { statement, ranges: BTreeMap::new() };
        statements.iter().map(scan).collect()
    }

    fn readings(bytes: &[f64]) -> Vec<Reading> {
        bytes.iter().map(|&bytes| Reading { files: bytes / 10.0, bytes }).collect()
    }

    #[test]
    fn equal_savings_leave_no_doubt() {
        let resamples = Resamples::new(&scans(&[3, 5, 5, 9]));
        assert_eq!(resamples.statements(), 3);
        let estimate = resamples
            .estimate(&readings(&[100.0, 50.0, 50.0, 100.0]), &readings(&[40.0, 20.0, 20.0, 40.0]));
        // Statement 5 saves 30 + 30 by two scans, the others 60 each.
        let found = [estimate.expected_bytes, estimate.low_bytes, estimate.high_bytes];
        assert_eq!(found.map(f64::to_bits), [180.0f64; 3].map(f64::to_bits));
        assert!((estimate.files_read_now - 7.5).abs() < 1e-9);
        assert!((estimate.files_read_then - 3.0).abs() < 1e-9);
    }

    #[test]
    fn interval_holds_the_expected_saving_and_spreads_with_the_statements() {
        // One statement in ten saves everything: the sum of ten draws is 0, 100, 200, … with the
        // probabilities of a binomial of 10 and 0.1: 35 % are 0, 7 % are above 200.
        let statements: Vec<usize> = (0..10).collect();
        let mut then = vec![100.0; 10];
        then[0] = 0.0;
        let estimate =
            Resamples::new(&scans(&statements)).estimate(&readings(&[100.0; 10]), &readings(&then));
        assert!((estimate.expected_bytes - 100.0).abs() < 1e-9);
        assert!(estimate.low_bytes.abs() < 1e-9, "{estimate:?}");
        assert!((200.0..=300.0).contains(&estimate.high_bytes), "{estimate:?}");
    }

    #[test]
    fn no_statement_saves_nothing() {
        let estimate = Resamples::new(&[]).estimate(&[], &[]);
        assert!(estimate.expected_bytes.abs() < 1e-9 && estimate.high_bytes.abs() < 1e-9);
    }
}
