//! What a layout costs, and what it is worth in the end.
//!
//! NPV = saves · (1 − (1 + r)^−H) / r − rewrite − storage, all in bytes (N. Mahore, SSRN 7030626,
//! 2026, "Layout decision"). The formula is a [`CostModel`] and lives in a plugin; what this crate
//! fixes is what the two costs are:
//!
//! - **rewrite** is the size of the live files, which a change of keys replaces all at once: the
//!   bytes that a rewrite reads, and about the bytes it writes. A model that charges both doubles
//!   it.
//! - **storage** is the size of the files a rewrite leaves behind until VACUUM deletes them: the
//!   same files, so the same number.

use std::{error::Error, fmt, num::NonZeroU32};

use lakebed_model::Bytes;

use crate::TableEvidence;

/// Windows a new layout is expected to last.
pub const DEFAULT_HORIZON_WINDOWS: NonZeroU32 = NonZeroU32::new(30).expect("30 is not 0");
/// Share by which a byte saved one window later is worth less.
pub const DEFAULT_DISCOUNT_RATE: f64 = 0.01;

/// The planner's limits and the investor's patience.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Bytes that may be rewritten; `None` is no limit.
    pub rewrite_budget: Option<Bytes>,
    /// Bytes of old files that may be left until VACUUM; `None` is no limit.
    pub storage_budget: Option<Bytes>,
    /// H: windows over which savings count.
    pub horizon_windows: NonZeroU32,
    /// r: discount per window.
    pub discount_rate: f64,
}

impl Settings {
    /// Returns the default horizon and discount rate, without budgets.
    #[must_use]
    pub const fn without_budgets() -> Self {
        Self {
            rewrite_budget: None,
            storage_budget: None,
            horizon_windows: DEFAULT_HORIZON_WINDOWS,
            discount_rate: DEFAULT_DISCOUNT_RATE,
        }
    }
}

/// What a cost model is told of a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CandidateFacts {
    /// Bytes that scans are expected to save in one window; negative where they read more.
    pub saves_bytes_per_window: f64,
    /// Bytes to rewrite.
    pub rewrite_bytes: f64,
    /// Bytes of old files kept until VACUUM.
    pub storage_bytes: f64,
}

/// Weighs what candidates save against what they cost.
///
/// Implementers get all candidates of a plan at once and must return one finite value in bytes per
/// candidate, in the same order; above 0 means that the candidate is worth having. The same list
/// must give the same values. They must not enforce budgets: the search does.
pub trait CostModel: fmt::Debug {
    /// Returns the model's name.
    fn name(&self) -> &str;

    /// Returns each candidate's net present value.
    ///
    /// # Errors
    /// Fails when the formula cannot be computed, for example because a guest trapped.
    fn net_present_values(
        &self,
        candidates: &[CandidateFacts],
        settings: &Settings,
    ) -> Result<Vec<f64>, CostError>;
}

/// A cost model that could not answer.
#[derive(Debug, thiserror::Error)]
#[error("value {candidate_count} candidates with cost model `{model}`")]
pub struct CostError {
    /// Name of the model.
    pub model: String,
    /// Candidates it was given.
    pub candidate_count: usize,
    /// What happened.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// Returns the bytes that giving a table new keys rewrites.
pub(crate) const fn rewrite_bytes(evidence: &TableEvidence) -> Bytes {
    evidence.bytes
}

/// Returns the bytes of old files that giving a table new keys leaves until VACUUM.
pub(crate) const fn storage_bytes(evidence: &TableEvidence) -> Bytes {
    evidence.bytes
}

#[cfg(test)]
pub(crate) mod native {
    //! The formula itself, as an oracle for tests; the product runs it as a plugin.

    use super::{CandidateFacts, CostError, CostModel, Settings};

    #[derive(Debug)]
    pub(crate) struct Npv;

    impl CostModel for Npv {
        fn name(&self) -> &'static str {
            "native-npv"
        }

        fn net_present_values(
            &self,
            candidates: &[CandidateFacts],
            settings: &Settings,
        ) -> Result<Vec<f64>, CostError> {
            let windows = f64::from(settings.horizon_windows.get());
            let rate = settings.discount_rate;
            let annuity =
                if rate > 0.0 { (1.0 - (1.0 + rate).powf(-windows)) / rate } else { windows };
            Ok(candidates
                .iter()
                .map(|facts| {
                    facts.saves_bytes_per_window * annuity
                        - facts.rewrite_bytes
                        - facts.storage_bytes
                })
                .collect())
        }
    }

    #[test]
    fn value_is_the_discounted_saving_minus_both_costs() {
        let facts = CandidateFacts {
            saves_bytes_per_window: 100.0,
            rewrite_bytes: 150.0,
            storage_bytes: 20.0,
        };
        let settings = |windows, discount_rate| Settings {
            horizon_windows: std::num::NonZeroU32::new(windows).unwrap(),
            discount_rate,
            ..Settings::without_budgets()
        };
        // By hand: 100 / 1.1 + 100 / 1.21 = 173.5537; without discount 2 · 100.
        let npv =
            |windows, rate| Npv.net_present_values(&[facts], &settings(windows, rate)).unwrap()[0];
        assert!((npv(2, 0.1) - 3.553_719).abs() < 1e-5);
        assert!((npv(2, 0.0) - 30.0).abs() < 1e-9);
    }
}
