//! `describe` gives a name of 100 000 bytes.
#![no_std]

extern crate alloc;

use alloc::vec::Vec;

use lakebed_guest::{
    NoSettings, Plugin, PluginError,
    scorer::{Edges, Scorer},
};

/// The name's bytes.
static BYTES: [u8; 100_000] = [b'a'; 100_000];

#[derive(Debug)]
struct Attack;

impl Plugin for Attack {
    const NAME: &'static str = match core::str::from_utf8(&BYTES) {
        Ok(name) => name,
        Err(_) => "",
    };
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "An attack.";
    type Settings = NoSettings;

    fn configure(_: NoSettings) -> Result<Self, PluginError> {
        Ok(Self)
    }
}

impl Scorer for Attack {
    fn score(&self, edges: &Edges) -> Result<Vec<f64>, PluginError> {
        Ok(edges.frequency.clone())
    }
}

lakebed_guest::export_scorer!(Attack);
