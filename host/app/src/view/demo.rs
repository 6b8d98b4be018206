//! `demo --json`

use serde::Serialize;

/// `demo --json`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoView {
    /// Where the lake is left; null when it is gone.
    pub folder: Option<String>,
    /// The rewritten tables.
    pub tables: Vec<DemoTableView>,
    /// Every statement of the log, replayed.
    pub queries: Vec<DemoQueryView>,
    /// Mean over the statements of 1 − files read / files of the tables scanned.
    pub skipping_rate_before: f64,
    /// The same after the rewrite.
    pub skipping_rate_after: f64,
    /// The same after the rewrite, over statements with a join.
    pub skipping_rate_after_joins: f64,
    /// Bytes read after / before.
    pub bytes_ratio: f64,
    /// Drift between the shipped windows.
    pub drift: Vec<DemoDriftView>,
    /// The plan after the drift.
    pub replanned: Vec<DemoReplanView>,
    /// The iterator compaction, once with a native filter and once with a guest.
    pub compaction: DemoCompactionView,
}

/// A table of the demo.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoTableView {
    /// Its name.
    pub table: String,
    /// Its clustering columns.
    pub cluster_by: Vec<String>,
    /// Parts of each; empty where all have the same resolution.
    pub cuts: Vec<u32>,
    /// Its live files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that were rewritten.
    pub rewritten_bytes: u64,
    /// The plan's reason, or why the table was left alone.
    pub because: String,
}

/// A statement of the demo.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoQueryView {
    /// Its template and number.
    pub id: String,
    /// Whether it joins tables.
    pub joins: bool,
    /// Files read before.
    pub files_before: u64,
    /// Files read after.
    pub files_after: u64,
    /// Files of the tables scanned, after.
    pub files_total: u64,
    /// Files of the tables scanned, before.
    pub files_total_before: u64,
    /// Bytes read before.
    pub bytes_before: u64,
    /// Bytes read after.
    pub bytes_after: u64,
    /// Wall time before.
    pub ms_before: u64,
    /// Wall time after.
    pub ms_after: u64,
    /// Whether the answers are equal.
    pub same_result: bool,
}

/// A drift measurement of the demo.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoDriftView {
    /// Earlier window.
    pub from: String,
    /// Later window.
    pub to: String,
    /// The distance.
    pub distance: f64,
    /// Whether to plan again.
    pub replan: bool,
    /// Joins that are new.
    pub new_edges: Vec<String>,
}

/// A table's layout in the plan after the drift.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoReplanView {
    /// The table.
    pub table: String,
    /// Its columns now.
    pub from: Vec<String>,
    /// Its columns in the new plan.
    pub to: Vec<String>,
    /// Parts of each in the new plan; empty where all have the same resolution.
    pub cuts: Vec<u32>,
}

/// The demo's compaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoCompactionView {
    /// The iterators in string form.
    pub iterators: String,
    /// Rows before.
    pub rows_in: u64,
    /// Rows after, with the native filter.
    pub rows_native: u64,
    /// Rows after, with the guest.
    pub rows_wasm: u64,
    /// Whether both left the same rows.
    pub same_rows: bool,
    /// Wall time of the native run.
    pub ms_native: u64,
    /// Wall time of the run with the guest.
    pub ms_wasm: u64,
}
