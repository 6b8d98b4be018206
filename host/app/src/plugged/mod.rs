//! Where guests meet stages: one adapter per world, each a stage's trait on one side and a plugin of
//! the sandbox on the other.
//!
//! The shipped formulas are loaded as a user's are, from bytes, through the same limits. There is no
//! native formula to fall back to.

mod aggregator;
mod arrow_columns;
mod cost_model;
mod drift_meter;
mod row_filter;
mod scorer;

use std::{path::Path, sync::Arc};

use lakebed_compact::{CompactError, FoldFactory, Plugins, RowFilter};
use lakebed_model::Instant;
use lakebed_sandbox::{Limits, Plugin, Sandbox, World};

pub use aggregator::PluggedFold;
pub use cost_model::PluggedCostModel;
pub use drift_meter::PluggedDriftMeter;
pub use row_filter::PluggedRowFilter;
pub use scorer::PluggedScorer;

use crate::{config::Config, error::Error};

/// The plugins of one configuration.
#[derive(Debug, Clone)]
pub struct PluginSet {
    sandbox: Sandbox,
    config: Arc<Config>,
}

impl PluginSet {
    /// Starts the sandbox for a configuration.
    ///
    /// # Errors
    /// Fails when the machine cannot run WebAssembly.
    pub fn new(config: Arc<Config>) -> Result<Self, Error> {
        Ok(Self { sandbox: Sandbox::new(Limits::STANDARD)?, config })
    }

    /// Returns the sandbox.
    #[must_use]
    pub const fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Loads the scorer: the one named, or the configuration's.
    ///
    /// # Errors
    /// Fails when there is no such plugin or it is refused.
    pub fn scorer(&self, name: Option<&str>) -> Result<PluggedScorer, Error> {
        let name = name.unwrap_or(&self.config.plugins.scorer);
        Ok(PluggedScorer::new(self.load(World::Scorer, name, None)?))
    }

    /// Loads the cost model.
    ///
    /// # Errors
    /// Fails when there is no such plugin or it is refused.
    pub fn cost_model(&self) -> Result<PluggedCostModel, Error> {
        let name = &self.config.plugins.cost_model;
        Ok(PluggedCostModel::new(self.load(World::CostModel, name, None)?))
    }

    /// Loads the drift meter: the one named, or the configuration's.
    ///
    /// # Errors
    /// Fails when there is no such plugin or it is refused.
    pub fn drift_meter(&self, name: Option<&str>) -> Result<PluggedDriftMeter, Error> {
        let name = name.unwrap_or(&self.config.plugins.drift_meter);
        Ok(PluggedDriftMeter::new(self.load(World::DriftMeter, name, None)?))
    }

    /// Admits a plugin of a world: a shipped one by its name, with or without the world before it,
    /// or a file. `settings` is a JSON object; without it the configuration's are used.
    ///
    /// # Errors
    /// Fails when there is no such plugin or it is refused.
    pub fn load(&self, world: World, name: &str, settings: Option<&str>) -> Result<Plugin, Error> {
        let configured = match (settings, self.config.plugin_config.get(name)) {
            (Some(settings), _) => settings.to_owned(),
            (None, Some(table)) => serde_json::to_string(table).unwrap_or_else(|_| "{}".to_owned()),
            (None, None) => "{}".to_owned(),
        };
        let full = format!("{}-{name}", world.as_str());
        if let Some(guest) = lakebed_bundle::guest(name).or_else(|| lakebed_bundle::guest(&full)) {
            return Ok(self.sandbox.admit(world, guest.name, guest.wasm, &configured)?);
        }
        let path = self.config.resolve(Path::new(name));
        if !path.is_file() {
            return Err(unknown(world, name));
        }
        let wasm = std::fs::read(&path).map_err(|source| Error::File {
            action: "read plugin",
            path: path.clone(),
            source,
        })?;
        Ok(self.sandbox.admit(world, name, &wasm, &configured)?)
    }
}

fn unknown(world: World, name: &str) -> Error {
    let shipped: Vec<&str> = lakebed_bundle::guests()
        .iter()
        .filter(|guest| guest.world == world.as_str())
        .map(|guest| guest.name)
        .collect();
    Error::Usage {
        what: format!(
            "load {} plugin `{name}`: neither a shipped plugin nor a file",
            world.as_str()
        ),
        help: format!("shipped are: {}; or give the path of a component", shipped.join(", ")),
    }
}

impl Plugins for PluginSet {
    fn filter(
        &self,
        name: &str,
        config_json: &str,
        now: Instant,
    ) -> Result<Arc<dyn RowFilter>, CompactError> {
        let chosen = self.config.plugins.iterators.get(name).map_or(name, String::as_str);
        let plugin = self.load(World::RowFilter, chosen, Some(config_json));
        let plugin = plugin.map_err(|error| refused(name, error))?;
        let filter = PluggedRowFilter::new(plugin, now).map_err(|error| refused(name, error))?;
        Ok(Arc::new(filter))
    }

    fn fold(&self, name: &str, config_json: &str) -> Result<Arc<dyn FoldFactory>, CompactError> {
        let chosen = self.config.plugins.iterators.get(name).map_or(name, String::as_str);
        let plugin = self.load(World::Aggregator, chosen, Some(config_json));
        Ok(Arc::new(PluggedFold::new(plugin.map_err(|error| refused(name, error))?)))
    }
}

fn refused(name: &str, error: impl std::error::Error + Send + Sync + 'static) -> CompactError {
    CompactError::Plugin { plugin: name.to_owned(), source: Box::new(error) }
}
