//! `plan --json`, which is also what `apply` reads.

use std::collections::BTreeMap;

use lakebed_model::Bytes;
use lakebed_plan::{Layout, LayoutPlan, PlannedAction, Savings};
use lakebed_sandbox::Plugin;
use serde::{Deserialize, Serialize};

use super::{PluginView, WindowView};

/// A table's layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayoutView {
    /// Clustering columns.
    pub cluster_by: Vec<String>,
    /// Parts of each clustering column; empty where all have the same resolution.
    #[serde(default)]
    pub cuts: Vec<u32>,
    /// Partition columns.
    pub partition_by: Vec<String>,
}

impl From<&Layout> for LayoutView {
    fn from(layout: &Layout) -> Self {
        Self {
            cluster_by: layout.cluster_by.clone(),
            cuts: layout.cuts.clone(),
            partition_by: layout.partition_by.clone(),
        }
    }
}

impl From<LayoutView> for Layout {
    fn from(view: LayoutView) -> Self {
        Self { cluster_by: view.cluster_by, cuts: view.cuts, partition_by: view.partition_by }
    }
}

/// `plan --json`, and the file that `apply` reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanView {
    /// Identity of inputs and actions.
    pub id: String,
    /// What the plan was made from.
    pub inputs: PlanInputsView,
    settings: SettingsView,
    /// Formulas used.
    pub plugins: Vec<PluginView>,
    search: String,
    npv_bytes: i64,
    upper_bound_bytes: i64,
    gap: f64,
    proven: bool,
    /// What to do.
    pub actions: Vec<ActionView>,
    /// What not, and why.
    pub rejected: Vec<RejectionView>,
}

/// What a plan was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanInputsView {
    /// Table → version.
    pub snapshot_versions: BTreeMap<String, u64>,
    window: WindowView,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SettingsView {
    rewrite_budget_bytes: Option<u64>,
    storage_budget_bytes: Option<u64>,
    horizon_windows: u32,
    discount_rate: f64,
}

/// One action of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionView {
    /// The table.
    pub table: String,
    from: LayoutView,
    to: LayoutView,
    group: u32,
    rewrite_bytes: u64,
    storage_bytes: u64,
    saves_bytes_per_window: SavesView,
    npv_bytes: i64,
    break_even_queries: u64,
    because: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavesView {
    expected: u64,
    low: u64,
    high: u64,
}

/// A layout that was not chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RejectionView {
    table: String,
    to: LayoutView,
    why: String,
}

impl PlanView {
    /// Shows a plan and the formulas it was made with.
    #[must_use]
    pub fn new(plan: &LayoutPlan, plugins: &[&Plugin]) -> Self {
        let settings = plan.settings;
        Self {
            id: plan.id.clone(),
            inputs: PlanInputsView {
                snapshot_versions: plan
                    .snapshot_versions
                    .iter()
                    .map(|(table, version)| (table.to_string(), *version))
                    .collect(),
                window: plan.window.into(),
            },
            settings: SettingsView {
                rewrite_budget_bytes: settings.rewrite_budget.map(|bytes| bytes.0),
                storage_budget_bytes: settings.storage_budget.map(|bytes| bytes.0),
                horizon_windows: settings.horizon_windows.get(),
                discount_rate: settings.discount_rate,
            },
            plugins: plugins.iter().map(|plugin| PluginView::with_world(plugin)).collect(),
            search: plan.search.clone(),
            npv_bytes: whole(plan.npv_bytes),
            upper_bound_bytes: whole(plan.upper_bound_bytes),
            gap: plan.gap,
            proven: plan.proven,
            actions: plan.actions.iter().map(ActionView::from).collect(),
            rejected: plan
                .rejected
                .iter()
                .map(|rejection| RejectionView {
                    table: rejection.table.to_string(),
                    to: (&rejection.to).into(),
                    why: rejection.why.clone(),
                })
                .collect(),
        }
    }
}

impl PlanView {
    /// Lists the plan's budgets by name; both are of bytes that are rewritten.
    #[must_use]
    pub fn budgets(&self) -> [(&'static str, Option<Bytes>); 2] {
        let SettingsView { rewrite_budget_bytes, storage_budget_bytes, .. } = self.settings;
        [
            ("rewrite budget", rewrite_budget_bytes.map(Bytes)),
            ("storage budget", storage_budget_bytes.map(Bytes)),
        ]
    }
}

impl From<&PlannedAction> for ActionView {
    fn from(action: &PlannedAction) -> Self {
        Self {
            table: action.table.to_string(),
            from: (&action.from).into(),
            to: (&action.to).into(),
            group: action.group,
            rewrite_bytes: action.rewrite_bytes.0,
            storage_bytes: action.storage_bytes.0,
            saves_bytes_per_window: SavesView {
                expected: action.saves.expected.0,
                low: action.saves.low.0,
                high: action.saves.high.0,
            },
            npv_bytes: whole(action.npv_bytes),
            break_even_queries: action.break_even_queries,
            because: action.because.clone(),
        }
    }
}

impl From<ActionView> for PlannedAction {
    fn from(view: ActionView) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "values under 8 PiB are exact")]
        let npv_bytes = view.npv_bytes as f64;
        Self {
            table: lakebed_model::TableName::new(view.table),
            from: view.from.into(),
            to: view.to.into(),
            group: view.group,
            rewrite_bytes: Bytes(view.rewrite_bytes),
            storage_bytes: Bytes(view.storage_bytes),
            saves: Savings {
                expected: Bytes(view.saves_bytes_per_window.expected),
                low: Bytes(view.saves_bytes_per_window.low),
                high: Bytes(view.saves_bytes_per_window.high),
            },
            npv_bytes,
            break_even_queries: view.break_even_queries,
            because: view.because,
        }
    }
}

/// Rounds a formula's bytes to whole ones.
#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which is right here")]
fn whole(bytes: f64) -> i64 {
    bytes.round() as i64
}
