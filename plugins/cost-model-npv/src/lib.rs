//! The net present value of a layout, as in adaptive join-aware layout (N. Mahore, SSRN 7030626).
//!
//! NPV = S · (1 − (1 + r)^−H) / r − W − T, all in bytes: S saved per window, W moved by the rewrite,
//! T stored on top, over H windows at discount rate r per window. At r = 0 the factor is its limit, H.
//!
//! Worked example: S = 100, W = 500, T = 50, r = 0.1, H = 10. (1 − 1.1^−10) / 0.1 = 6.144567, so
//! NPV = 614.4567 − 550 = 64.4567.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

use alloc::{format, vec::Vec};

use lakebed_guest::{
    NoSettings, Plugin, PluginError,
    cost_model::{Candidates, CostModel, Settings},
};

#[derive(Debug)]
struct Npv;

impl Plugin for Npv {
    const NAME: &'static str = "npv";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "Net present value in bytes: discounted savings of the horizon less \
        the bytes rewritten and stored. No settings.";
    type Settings = NoSettings;

    fn configure(_: NoSettings) -> Result<Self, PluginError> {
        Ok(Self)
    }
}

impl CostModel for Npv {
    fn net_present_values(
        &self,
        candidates: &Candidates,
        settings: Settings,
    ) -> Result<Vec<f64>, PluginError> {
        let factor = annuity(settings)?;
        let costs = candidates.rewrite_bytes.iter().zip(&candidates.storage_bytes);
        Ok(candidates
            .saves_bytes_per_window
            .iter()
            .zip(costs)
            .map(|(saves, (rewrite, storage))| saves * factor - rewrite - storage)
            .collect())
    }
}

/// Returns what one byte saved in each of the windows is worth now.
///
/// Written with `expm1` and `ln_1p`, because 1 − (1 + r)^−H loses its digits as r nears 0.
fn annuity(settings: Settings) -> Result<f64, PluginError> {
    let Settings { horizon_windows, discount_rate: rate } = settings;
    if horizon_windows == 0 || !rate.is_finite() || rate < 0.0 {
        return Err(PluginError::InvalidInput(format!(
            "horizon is {horizon_windows} windows at rate {rate}, expected at least 1 window and a rate of at least 0"
        )));
    }
    let windows = f64::from(horizon_windows);
    Ok(if rate == 0.0 { windows } else { -libm::expm1(-windows * libm::log1p(rate)) / rate })
}

lakebed_guest::export_cost_model!(Npv);
