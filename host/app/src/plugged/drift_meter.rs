//! A drift meter guest as a [`DriftMeter`].

use lakebed_graph::{DriftError, DriftMeter, DriftReading};
use lakebed_sandbox::Plugin;

/// Measures drift in the sandbox.
#[derive(Debug)]
pub struct PluggedDriftMeter {
    plugin: Plugin,
}

impl PluggedDriftMeter {
    /// Wraps a plugin of the world `drift-meter`.
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

impl DriftMeter for PluggedDriftMeter {
    fn name(&self) -> &str {
        self.plugin.name()
    }

    fn measure(&self, before: &[f64], after: &[f64]) -> Result<DriftReading, DriftError> {
        let reading = self.plugin.measure(before, after).map_err(|error| DriftError {
            meter: self.plugin.name().to_owned(),
            edge_count: before.len(),
            source: Box::new(error),
        })?;
        Ok(DriftReading { distance: reading.distance, parts: reading.parts })
    }
}
