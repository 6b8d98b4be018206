//! `drift --json`

use lakebed_graph::{DriftReport, EdgeKey};
use lakebed_sandbox::Plugin;
use serde::Serialize;

use super::PluginView;

/// `drift --json`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriftView {
    meter: PluginView,
    distance: f64,
    threshold: f64,
    replan: bool,
    new_edges: Vec<String>,
    gone_edges: Vec<String>,
    edges: Vec<EdgeDriftView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct EdgeDriftView {
    left: String,
    right: String,
    pairs: Vec<(String, String)>,
    before: f64,
    after: f64,
    part: f64,
}

impl DriftView {
    /// Shows a measurement.
    #[must_use]
    pub fn new(report: &DriftReport, meter: &Plugin) -> Self {
        let names = |edges: &[EdgeKey]| edges.iter().map(ToString::to_string).collect();
        Self {
            meter: PluginView::new(meter),
            distance: report.distance,
            threshold: report.threshold,
            replan: report.replan,
            new_edges: names(&report.new_edges),
            gone_edges: names(&report.gone_edges),
            edges: report
                .edges
                .iter()
                .map(|edge| EdgeDriftView {
                    left: edge.left.to_string(),
                    right: edge.right.to_string(),
                    pairs: edge.pairs.clone(),
                    before: edge.before,
                    after: edge.after,
                    part: edge.part,
                })
                .collect(),
        }
    }
}
