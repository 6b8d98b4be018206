//! A cost model guest as a [`CostModel`].

use lakebed_plan::{CandidateFacts, CostError, CostModel, Settings};
use lakebed_sandbox::{CandidateColumns, Plugin, PricingSettings};

/// Prices candidates in the sandbox.
#[derive(Debug)]
pub struct PluggedCostModel {
    plugin: Plugin,
}

impl PluggedCostModel {
    /// Wraps a plugin of the world `cost-model`.
    #[must_use]
    pub const fn new(plugin: Plugin) -> Self {
        Self { plugin }
    }

    /// Returns the plugin.
    #[must_use]
    pub const fn plugin(&self) -> &Plugin {
        &self.plugin
    }
}

impl CostModel for PluggedCostModel {
    fn name(&self) -> &str {
        self.plugin.name()
    }

    fn net_present_values(
        &self,
        candidates: &[CandidateFacts],
        settings: &Settings,
    ) -> Result<Vec<f64>, CostError> {
        let saves = column(candidates, |candidate| candidate.saves_bytes_per_window);
        let rewrite = column(candidates, |candidate| candidate.rewrite_bytes);
        let storage = column(candidates, |candidate| candidate.storage_bytes);
        let columns = CandidateColumns {
            saves_bytes_per_window: &saves,
            rewrite_bytes: &rewrite,
            storage_bytes: &storage,
        };
        let settings = PricingSettings {
            horizon_windows: settings.horizon_windows,
            discount_rate: settings.discount_rate,
        };
        self.plugin.net_present_value(&columns, settings).map_err(|error| CostError {
            model: self.plugin.name().to_owned(),
            candidate_count: candidates.len(),
            source: Box::new(error),
        })
    }
}

/// Lays one figure of a list out as a column.
pub(super) fn column<T>(rows: &[T], figure: impl Fn(&T) -> f64) -> Vec<f64> {
    rows.iter().map(figure).collect()
}
