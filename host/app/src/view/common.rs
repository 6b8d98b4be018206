//! Pieces of several documents.

use lakebed_sandbox::Plugin;
use serde::{Deserialize, Serialize};

/// A stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowView {
    /// First statement.
    pub from: String,
    /// Last statement.
    pub to: String,
}

impl From<lakebed_model::Window> for WindowView {
    fn from(window: lakebed_model::Window) -> Self {
        Self { from: window.from.to_rfc3339(), to: window.to.to_rfc3339() }
    }
}

/// A plugin in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PluginView {
    /// The world.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub world: Option<String>,
    /// The plugin's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `sha256:…` of its bytes.
    pub digest: String,
}

impl PluginView {
    /// Describes a plugin without its world.
    #[must_use]
    pub fn new(plugin: &Plugin) -> Self {
        Self {
            world: None,
            name: plugin.name().to_owned(),
            version: plugin.version().to_owned(),
            digest: plugin.digest().to_owned(),
        }
    }

    /// Describes a plugin and its world.
    #[must_use]
    pub fn with_world(plugin: &Plugin) -> Self {
        Self { world: Some(plugin.world().as_str().to_owned()), ..Self::new(plugin) }
    }
}
