//! Drops rows that are older than a period.
//!
//! A row stays if now − value < period, with now and period in seconds and value in the column's unit.
//! The comparison is exact: value > now − period is decided in whole units, without rounding and
//! without overflow. A row whose value lies in the future stays.
//!
//! A null value has no age. By default its row is dropped, as Sleeper's age-off does; this deletes
//! data, so a table whose nulls mean "never" says `"nulls": "keep"`.
//!
//! Worked example: now = 100 000, period = 86 400. A row of 13 600 has age 86 400 and goes; a row of
//! 13 601 has age 86 399 and stays.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

use alloc::{format, string::String, vec, vec::Vec};

use lakebed_guest::{Batch, Plugin, PluginError, Values, kernels, row_filter::RowFilter};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    column: String,
    period_seconds: i64,
    #[serde(default)]
    unit: Unit,
    #[serde(default)]
    nulls: Nulls,
}

/// What one step of the column's value is.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
enum Unit {
    #[default]
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "us")]
    Microseconds,
    #[serde(rename = "ns")]
    Nanoseconds,
    #[serde(rename = "d")]
    Days,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Nulls {
    #[default]
    Drop,
    Keep,
}

#[derive(Debug)]
struct AgeOff {
    settings: Settings,
}

/// Which values are young enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cutoff {
    /// All that are representable.
    All,
    /// Those above.
    Above(i64),
}

impl Plugin for AgeOff {
    const NAME: &'static str = "age-off";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "Keeps a row if now - value < period. Settings: column; \
        period_seconds (at least 0); unit of the column: s (default), ms, us, ns or d; nulls: drop \
        (default) or keep.";
    type Settings = Settings;

    fn configure(settings: Settings) -> Result<Self, PluginError> {
        if settings.period_seconds < 0 {
            return Err(PluginError::InvalidConfig(format!(
                "period_seconds is {}, expected at least 0",
                settings.period_seconds
            )));
        }
        Ok(Self { settings })
    }
}

impl RowFilter for AgeOff {
    fn columns(&self) -> Vec<String> {
        vec![self.settings.column.clone()]
    }

    fn select(&self, now_seconds: i64, batch: &Batch) -> Result<Vec<u8>, PluginError> {
        let [column] = batch.columns.as_slice() else {
            return Err(PluginError::InvalidInput(format!(
                "the batch has {} columns, expected 1",
                batch.columns.len()
            )));
        };
        let cutoff = cutoff(now_seconds, self.settings.period_seconds, self.settings.unit);
        let mut bitmap = match (&column.values, cutoff) {
            (Values::S64(values), Cutoff::Above(limit)) => kernels::pack(values, |v| v > limit),
            (Values::S64(values), Cutoff::All) => kernels::pack(values, |_| true),
            (Values::S32(values), Cutoff::Above(limit)) => {
                kernels::pack(values, |v| i64::from(v) > limit)
            }
            (Values::S32(values), Cutoff::All) => kernels::pack(values, |_| true),
            (other, _) => {
                return Err(PluginError::Unsupported(format!(
                    "column `{}` has type {:?}, expected S64 or S32",
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

/// Returns the largest value, in units of the column, that is too old.
fn cutoff(now_seconds: i64, period_seconds: i64, unit: Unit) -> Cutoff {
    let seconds = i128::from(now_seconds) - i128::from(period_seconds);
    let limit = match unit {
        Unit::Seconds => seconds,
        Unit::Milliseconds => seconds * 1_000,
        Unit::Microseconds => seconds * 1_000_000,
        Unit::Nanoseconds => seconds * 1_000_000_000,
        Unit::Days => seconds.div_euclid(86_400),
    };
    match i64::try_from(limit) {
        Ok(limit) => Cutoff::Above(limit),
        Err(_) if limit < 0 => Cutoff::All,
        Err(_) => Cutoff::Above(i64::MAX),
    }
}

lakebed_guest::export_row_filter!(AgeOff);
