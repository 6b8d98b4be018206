//! `configure` never returns.
#![no_std]

extern crate alloc;

use alloc::vec::Vec;

use lakebed_guest::{
    NoSettings, Plugin, PluginError,
    scorer::{Edges, Scorer},
};

#[derive(Debug)]
struct Attack;

impl Plugin for Attack {
    const NAME: &'static str = "spin-configure";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "An attack.";
    type Settings = NoSettings;

    fn configure(_: NoSettings) -> Result<Self, PluginError> {
        while core::hint::black_box(true) {}
        Ok(Self)
    }
}

impl Scorer for Attack {
    fn score(&self, edges: &Edges) -> Result<Vec<f64>, PluginError> {
        Ok(edges.frequency.clone())
    }
}

lakebed_guest::export_scorer!(Attack);
