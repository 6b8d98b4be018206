//! What every plugin is, whatever its world.

use alloc::string::{String, ToString};
use core::cell::RefCell;

use serde::{Deserialize, de::DeserializeOwned};

/// A plugin: who it is and how it is set up.
pub trait Plugin: Sized + 'static {
    /// 1 to 64 bytes of lower-case ASCII letters, digits and `-`.
    const NAME: &'static str;
    /// 1 to 32 bytes of ASCII letters, digits, `.`, `-` and `+`.
    const VERSION: &'static str;
    /// What it computes and which settings it has, for people.
    const DOC: &'static str;

    /// The settings. Derive `Deserialize` with `#[serde(deny_unknown_fields)]`, so that a misspelled
    /// key is an error and not a default.
    type Settings: DeserializeOwned;

    /// Builds the plugin from its settings.
    ///
    /// # Errors
    /// Returns [`PluginError::InvalidConfig`] when a setting is out of its range.
    fn configure(settings: Self::Settings) -> Result<Self, PluginError>;
}

/// The settings of a plugin that has none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

/// A failure on purpose. The text is a lower-case fragment that says what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginError {
    /// The configuration cannot be used.
    InvalidConfig(String),
    /// The arguments break a rule, or the data cannot be worked on.
    InvalidInput(String),
    /// The plugin does not do this.
    Unsupported(String),
    /// The plugin's own fault.
    Internal(String),
}

/// Where the configured plugin lives between calls.
#[derive(Debug)]
pub struct Slot<T>(RefCell<Option<T>>);

// SAFETY: a component without the threads proposal has one thread, and an instance is not entered
// again while it runs; the cell turns a mistake about the latter into a trap.
unsafe impl<T> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// Creates an empty slot.
    #[must_use]
    pub const fn empty() -> Self {
        Self(RefCell::new(None))
    }
}

/// A plugin with a place to live in. The export macros implement it.
pub trait Install: Plugin {
    /// Returns the place.
    fn slot() -> &'static Slot<Self>;

    /// Parses the configuration and keeps the plugin built from it.
    ///
    /// # Errors
    /// Returns [`PluginError::InvalidConfig`] with the position in the JSON text.
    fn install(config: &str) -> Result<(), PluginError> {
        let settings = serde_json::from_str(config)
            .map_err(|error| PluginError::InvalidConfig(error.to_string()))?;
        let plugin = Self::configure(settings)?;
        Self::slot().0.replace(Some(plugin));
        Ok(())
    }

    /// Runs `work` with the configured plugin.
    ///
    /// # Errors
    /// Returns what `work` returns, or [`PluginError::Internal`] when nothing was configured yet.
    fn with<R>(work: impl FnOnce(&Self) -> Result<R, PluginError>) -> Result<R, PluginError> {
        match &*Self::slot().0.borrow() {
            Some(plugin) => work(plugin),
            None => Err(PluginError::Internal("`configure` has to be called first".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Install, NoSettings, Plugin, PluginError, Slot};

    struct Nothing;

    impl Plugin for Nothing {
        const NAME: &'static str = "nothing";
        const VERSION: &'static str = "0.0.0";
        const DOC: &'static str = "";
        type Settings = NoSettings;
        fn configure(_: NoSettings) -> Result<Self, PluginError> {
            Ok(Self)
        }
    }

    impl Install for Nothing {
        fn slot() -> &'static Slot<Self> {
            static SLOT: Slot<Nothing> = Slot::empty();
            &SLOT
        }
    }

    #[test]
    fn unknown_setting_is_refused_and_empty_object_configures() {
        assert!(matches!(Nothing::with(|_| Ok(())), Err(PluginError::Internal(_))));
        let refused = Nothing::install(r#"{"hepsilon":1}"#);
        assert!(
            matches!(&refused, Err(PluginError::InvalidConfig(text)) if text.contains("unknown field `hepsilon`")),
            "{refused:?}"
        );
        assert_eq!(Nothing::install("{}"), Ok(()));
        assert_eq!(Nothing::with(|_| Ok(7)), Ok(7));
    }
}
