//! A scorer guest as an [`EdgeScorer`].

use lakebed_graph::{EdgeScorer, EdgeStats, ScoreError};
use lakebed_sandbox::{EdgeColumns, Plugin};

use super::cost_model::column;

/// Scores edges in the sandbox.
#[derive(Debug)]
pub struct PluggedScorer {
    plugin: Plugin,
}

impl PluggedScorer {
    /// Wraps a plugin of the world `scorer`.
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

impl EdgeScorer for PluggedScorer {
    fn name(&self) -> &str {
        self.plugin.name()
    }

    fn score(&self, edges: &[EdgeStats]) -> Result<Vec<f64>, ScoreError> {
        let frequency = column(edges, |edge| edge.weight);
        let rows_product_mean = column(edges, |edge| edge.rows_product_mean);
        let cost_ms_mean = column(edges, |edge| edge.cost_ms_mean);
        let bytes_mean = column(edges, |edge| edge.bytes_mean);
        let confidence = column(edges, |edge| edge.confidence);
        let columns = EdgeColumns {
            frequency: &frequency,
            rows_product_mean: &rows_product_mean,
            cost_ms_mean: &cost_ms_mean,
            bytes_mean: &bytes_mean,
            confidence: &confidence,
        };
        self.plugin.score(&columns).map_err(|error| ScoreError {
            scorer: self.plugin.name().to_owned(),
            edge_count: edges.len(),
            source: Box::new(error),
        })
    }
}
