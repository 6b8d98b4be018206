//! `configure` fails with terminal escapes and a forged log line, and goes on for 10 000 bytes.
#![no_std]

extern crate alloc;

use alloc::{string::String, vec::Vec};

use lakebed_guest::{
    NoSettings, Plugin, PluginError,
    scorer::{Edges, Scorer},
};

#[derive(Debug)]
struct Attack;

impl Plugin for Attack {
    const NAME: &'static str = "escape";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "An attack.";
    type Settings = NoSettings;

    fn configure(_: NoSettings) -> Result<Self, PluginError> {
        let mut text = String::from("\u{1b}[2Jgone\n2026-01-01 INFO all is well");
        text.push_str(&"é".repeat(5_000));
        Err(PluginError::Internal(text))
    }
}

impl Scorer for Attack {
    fn score(&self, edges: &Edges) -> Result<Vec<f64>, PluginError> {
        Ok(edges.frequency.clone())
    }
}

lakebed_guest::export_scorer!(Attack);
