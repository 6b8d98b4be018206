//! The world `cost-model`.

use std::num::NonZeroU32;

use super::{
    live::{Live, Prepared},
    wire::{argument, arguments},
};
use crate::{
    Plugin, SandboxError, World,
    bindings::cost_model::{CostModel, exports::lakebed::policy::pricing},
    checked,
};

/// Layout candidates in bytes, one entry per candidate in each list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CandidateColumns<'a> {
    /// Scan bytes that the layout saves in each window; may be negative.
    pub saves_bytes_per_window: &'a [f64],
    /// Bytes that the rewrite moves, once.
    pub rewrite_bytes: &'a [f64],
    /// Bytes of storage that the rewrite occupies on top.
    pub storage_bytes: &'a [f64],
}

/// What the value of a candidate depends on besides the candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PricingSettings {
    /// H: over how many windows savings count.
    pub horizon_windows: NonZeroU32,
    /// r: discount rate per window; finite and at least 0.
    pub discount_rate: f64,
}

impl Plugin {
    /// Prices candidates in a fresh instance: one finite net present value in bytes per candidate, in
    /// their order.
    ///
    /// # Errors
    /// Returns [`SandboxError::Argument`] when the lists differ in length, hold a NaN or infinity, or
    /// the rate is out of range, and what the plugin failed at.
    pub fn net_present_value(
        &self,
        candidates: &CandidateColumns<'_>,
        settings: PricingSettings,
    ) -> Result<Vec<f64>, SandboxError> {
        const FUNCTION: &str = "net-present-value";
        let Prepared::CostModel(prepared) = self.prepared() else {
            return Err(self.of_other_world(World::CostModel));
        };
        let lists = [
            ("saves-bytes-per-window", candidates.saves_bytes_per_window),
            ("rewrite-bytes", candidates.rewrite_bytes),
            ("storage-bytes", candidates.storage_bytes),
        ];
        let candidate_count = arguments(self.label(), FUNCTION, &lists)?;
        let rate = settings.discount_rate;
        if !rate.is_finite() || rate < 0.0 {
            let reason = format!("is {rate}, expected a finite rate of at least 0");
            return Err(argument(self.label(), FUNCTION, "discount-rate", reason));
        }
        let columns = pricing::CandidateColumns {
            saves_bytes_per_window: candidates.saves_bytes_per_window,
            rewrite_bytes: candidates.rewrite_bytes,
            storage_bytes: candidates.storage_bytes,
        };
        let settings = pricing::Settings {
            horizon_windows: settings.horizon_windows.get(),
            discount_rate: rate,
        };
        let output_bytes = size_of_val(candidates.rewrite_bytes);
        let mut live = Live::<CostModel>::start(self, prepared)?;
        let values = live.call(FUNCTION, output_bytes, |bindings, store| {
            bindings.lakebed_policy_pricing().call_net_present_value(store, columns, settings)
        })?;
        live.check(FUNCTION, checked::finite(&values, candidate_count))?;
        Ok(values)
    }
}
