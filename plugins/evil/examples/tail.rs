//! A row filter that sets bits after the last row.
#![no_std]

extern crate alloc;

use alloc::{string::String, vec, vec::Vec};

use lakebed_guest::{Batch, NoSettings, Plugin, PluginError, row_filter::RowFilter};

#[derive(Debug)]
struct Attack;

impl Plugin for Attack {
    const NAME: &'static str = "tail";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "An attack.";
    type Settings = NoSettings;

    fn configure(_: NoSettings) -> Result<Self, PluginError> {
        Ok(Self)
    }
}

impl RowFilter for Attack {
    fn columns(&self) -> Vec<String> {
        vec!["a".into()]
    }

    fn select(&self, _: i64, batch: &Batch) -> Result<Vec<u8>, PluginError> {
        Ok(vec![0xff; batch.rows.div_ceil(8)])
    }
}

lakebed_guest::export_row_filter!(Attack);
