//! The plan: what to do, what not, and why.

use std::collections::BTreeMap;

use lakebed_model::{Bytes, TableName, Window};

use crate::{Layout, Settings};

/// A plan of layouts. It is a wish: applying it looks at the tables again.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutPlan {
    /// Identity of inputs and actions: 32 hexadecimal digits, the same for the same plan.
    pub id: String,
    /// The snapshots that the plan was made from.
    pub snapshot_versions: BTreeMap<TableName, u64>,
    /// The window that the statements were from.
    pub window: Window,
    /// The settings that the plan was made with.
    pub settings: Settings,
    /// Name of the cost model.
    pub cost_model: String,
    /// Name of the search.
    pub search: String,
    /// Value of all actions, in bytes.
    pub npv_bytes: f64,
    /// No plan of the same candidates within the budgets is worth more, in bytes.
    pub upper_bound_bytes: f64,
    /// How far the value may be below the best, as a share of the bound; 0 when proven best.
    pub gap: f64,
    /// Whether the search proved that no other choice is better.
    pub proven: bool,
    /// Steps of the search.
    pub nodes: u64,
    /// What to do, by group and table.
    pub actions: Vec<PlannedAction>,
    /// What was considered and not taken, by table and columns.
    pub rejected: Vec<Rejection>,
}

/// A table to be given another layout.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedAction {
    /// The table.
    pub table: TableName,
    /// Its present layout.
    pub from: Layout,
    /// Its new layout.
    pub to: Layout,
    /// Actions of one group serve the same joins and should be applied together; from 1.
    pub group: u32,
    /// Bytes to rewrite.
    pub rewrite_bytes: Bytes,
    /// Bytes of old files kept until VACUUM.
    pub storage_bytes: Bytes,
    /// Bytes that scans of one window save.
    pub saves: Savings,
    /// The action's value, in bytes.
    pub npv_bytes: f64,
    /// Statements on the table after which the rewrite has paid for itself.
    pub break_even_queries: u64,
    /// The reason, as one sentence.
    pub because: String,
}

/// Bytes saved in one window, with an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savings {
    /// What the window's statements would have saved.
    pub expected: Bytes,
    /// The 5th percentile over resampled statements.
    pub low: Bytes,
    /// The 95th percentile over resampled statements.
    pub high: Bytes,
}

/// A layout that the plan does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The table.
    pub table: TableName,
    /// The layout considered; the present one when none was.
    pub to: Layout,
    /// The reason, as one sentence.
    pub why: String,
}
