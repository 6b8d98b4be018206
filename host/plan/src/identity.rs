//! A plan's identity: SHA-256 over a canonical text of inputs and actions, cut to 128 bits.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::{Layout, LayoutPlan};

/// Computes the identity of a plan whose own `id` may be anything.
pub(crate) fn identify(plan: &LayoutPlan) -> String {
    let hash = Sha256::digest(canonical_text(plan).as_bytes());
    hash.iter().take(16).fold(String::with_capacity(32), |mut id, byte| {
        write!(id, "{byte:02x}").expect("writing to a string does not fail");
        id
    })
}

/// Writes what identifies a plan, one fact a line, names quoted and floats as bits.
fn canonical_text(plan: &LayoutPlan) -> String {
    let mut lines = vec!["lakebed plan 1".to_owned()];
    for (table, version) in &plan.snapshot_versions {
        lines.push(format!("snapshot {:?} {version}", table.as_str()));
    }
    lines.push(format!("window {} {}", plan.window.from.epoch_ms(), plan.window.to.epoch_ms()));
    let settings = &plan.settings;
    lines.push(format!(
        "settings {:?} {:?} {} {:x}",
        settings.rewrite_budget.map(|bytes| bytes.0),
        settings.storage_budget.map(|bytes| bytes.0),
        settings.horizon_windows,
        settings.discount_rate.to_bits()
    ));
    lines.push(format!("cost {:?} search {:?}", plan.cost_model, plan.search));
    for action in &plan.actions {
        lines.push(format!(
            "action {:?} {} {} {} {} {} {} {} {} {:x}",
            action.table.as_str(),
            layout_text(&action.from),
            layout_text(&action.to),
            action.group,
            action.rewrite_bytes.0,
            action.storage_bytes.0,
            action.saves.expected.0,
            action.saves.low.0,
            action.saves.high.0,
            action.npv_bytes.to_bits()
        ));
    }
    lines.join("\n")
}

fn layout_text(layout: &Layout) -> String {
    let cuts = if layout.cuts.is_empty() { String::new() } else { format!("/{:?}", layout.cuts) };
    format!("{:?}/{:?}{cuts}", layout.cluster_by, layout.partition_by)
}
