//! Keeps a share of the rows, chosen by the hash of a column.
//!
//! A value stays if hash(value) mod 10⁶ < keep_per_million. The hash is FNV-1a in 64 bits over the
//! value's bytes (integers as 8 bytes, little-endian), with the finalizer of SplitMix64, started from
//! the seed. It depends on nothing else, so all rows of a value stay or go together.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

use alloc::{format, string::String, vec, vec::Vec};

use lakebed_guest::{Batch, Plugin, PluginError, Values, VarBytes, kernels, row_filter::RowFilter};
use serde::Deserialize;

const MILLION: u32 = 1_000_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    column: String,
    keep_per_million: u32,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    nulls: Nulls,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Nulls {
    #[default]
    Drop,
    Keep,
}

#[derive(Debug)]
struct HashSample {
    settings: Settings,
}

impl Plugin for HashSample {
    const NAME: &'static str = "hash-sample";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "Keeps the rows of a share of a column's values, chosen by their \
        hash. Settings: column; keep_per_million (0 to 1000000); seed (default 0); nulls: drop \
        (default) or keep.";
    type Settings = Settings;

    fn configure(settings: Settings) -> Result<Self, PluginError> {
        if settings.keep_per_million > MILLION {
            return Err(PluginError::InvalidConfig(format!(
                "keep_per_million is {}, expected at most {MILLION}",
                settings.keep_per_million
            )));
        }
        Ok(Self { settings })
    }
}

impl HashSample {
    fn keeps(&self, bytes: &[u8]) -> bool {
        hash(self.settings.seed, bytes) % u64::from(MILLION)
            < u64::from(self.settings.keep_per_million)
    }

    fn texts(&self, values: &VarBytes) -> Result<Vec<u8>, PluginError> {
        let rows = values.offsets.len().saturating_sub(1);
        let mut kept = Vec::with_capacity(rows);
        for ends in values.offsets.windows(2) {
            let place = |end: i32| usize::try_from(end).unwrap_or(usize::MAX);
            let bytes = values.data.get(place(ends[0])..place(ends[1])).ok_or_else(|| {
                PluginError::InvalidInput("offsets leave the column's bytes".into())
            })?;
            kept.push(self.keeps(bytes));
        }
        Ok(kernels::pack(&kept, |keep| keep))
    }
}

impl RowFilter for HashSample {
    fn columns(&self) -> Vec<String> {
        vec![self.settings.column.clone()]
    }

    fn select(&self, _now_seconds: i64, batch: &Batch) -> Result<Vec<u8>, PluginError> {
        let [column] = batch.columns.as_slice() else {
            return Err(PluginError::InvalidInput(format!(
                "the batch has {} columns, expected 1",
                batch.columns.len()
            )));
        };
        let mut bitmap = match &column.values {
            Values::S64(values) => kernels::pack(values, |value| self.keeps(&value.to_le_bytes())),
            Values::S32(values) => {
                kernels::pack(values, |value| self.keeps(&i64::from(value).to_le_bytes()))
            }
            Values::Text(values) | Values::Binary(values) => self.texts(values)?,
            other => {
                return Err(PluginError::Unsupported(format!(
                    "column `{}` has type {:?}, expected S64, S32, Text or Binary",
                    self.settings.column,
                    other.column_type()
                )));
            }
        };
        match (column.validity(batch.rows), self.settings.nulls) {
            (None, _) => {}
            (Some(validity), Nulls::Drop) => kernels::and(&mut bitmap, validity),
            (Some(validity), Nulls::Keep) => kernels::or_not(&mut bitmap, validity, batch.rows),
        }
        Ok(bitmap)
    }
}

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

lakebed_guest::export_row_filter!(HashSample);
