//! SET and RESET: settings of the statements that follow.

use std::sync::Arc;

use serde_json::json;

use crate::{
    cli::output::{Align, Output},
    error::Error,
    pipeline::Pipeline,
};

/// Sets a setting, or shows one or all.
pub(super) fn set(
    pipeline: &mut Pipeline,
    key: Option<&str>,
    value: Option<String>,
    output: &mut Output,
) -> Result<(), Error> {
    let config = Arc::make_mut(&mut pipeline.config);
    let settings = &mut config.settings.clustering;
    if let (Some(key), Some(value)) = (key, &value) {
        settings.set(key, value)?;
    }
    let mut shown = settings.entries();
    if let Some(key) = key {
        let entry = settings.entry(key)?;
        shown.retain(|known| *known == entry);
    }
    if output.is_json() {
        let values: serde_json::Map<String, serde_json::Value> =
            shown.into_iter().map(|(key, value)| (key, value.into())).collect();
        return output.document(&json!({"statement": "SET", "settings": values}));
    }
    let rows = shown.into_iter().map(|(key, value)| vec![key, value]).collect();
    output.table(&[("setting", Align::Left), ("value", Align::Left)], rows)
}

/// Gives one setting or all their defaults.
pub(super) fn reset(
    pipeline: &mut Pipeline,
    key: Option<&str>,
    output: &mut Output,
) -> Result<(), Error> {
    Arc::make_mut(&mut pipeline.config).settings.clustering.reset(key)?;
    if output.is_json() {
        return output.document(&json!({"statement": "RESET", "setting": key}));
    }
    output.line(key.map_or("all settings have their defaults".to_owned(), |key| {
        format!("{key} has its default")
    }))
}
