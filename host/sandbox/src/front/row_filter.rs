//! The world `row-filter`.

use std::fmt;

use super::{
    live::{Live, Prepared, Refusal},
    wire::{argument, lend_columns, rows},
};
use crate::{
    Batch, Plugin, SandboxError, World,
    bindings::row_filter::{
        RowFilter,
        exports::lakebed::policy::{columns as wire, selection},
    },
    checked::{self, Flaw},
    columns::Column,
    limits::{COLUMN_NAME_BYTES, FILTER_COLUMN_COUNT},
};

const SELECT: &str = "select";

/// One instance of a row filter, for the batches of one partition of one job.
pub struct RowFilterStream {
    /// Gone after the first error.
    live: Option<Live<RowFilter>>,
    plugin: Plugin,
    columns: Vec<String>,
}

impl Plugin {
    /// Starts an instance of a row filter and asks which columns it needs.
    ///
    /// # Errors
    /// Returns what the plugin failed at.
    pub fn row_filter_stream(&self) -> Result<RowFilterStream, SandboxError> {
        const COLUMNS: &str = "columns";
        let Prepared::RowFilter(prepared) = self.prepared() else {
            return Err(self.of_other_world(World::RowFilter));
        };
        let mut live = Live::<RowFilter>::start(self, prepared)?;
        let output_bytes = FILTER_COLUMN_COUNT * COLUMN_NAME_BYTES;
        let columns = live.call(COLUMNS, output_bytes, |bindings, store| {
            bindings.lakebed_policy_selection().call_columns(store).map(Ok::<_, Refusal>)
        })?;
        live.check(COLUMNS, names(&columns))?;
        Ok(RowFilterStream { live: Some(live), plugin: self.clone(), columns })
    }
}

impl RowFilterStream {
    /// Names the columns that [`RowFilterStream::select`] needs, in this order.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Returns a bitmap of the batch's rows, least significant bit first, in which a set bit keeps
    /// the row and the bits after the last row are zero. `now_seconds` is the job's one instant.
    ///
    /// # Errors
    /// Returns [`SandboxError::Argument`] when the batch does not fit the plugin's columns, which
    /// leaves the stream as it was. After what the plugin fails at, the stream has ended.
    pub fn select(&mut self, now_seconds: i64, batch: &Batch<'_>) -> Result<Vec<u8>, SandboxError> {
        let label = self.plugin.label();
        let row_count = batch.row_count as usize;
        if batch.columns.len() != self.columns.len() {
            let reason = format!(
                "has {} columns, expected the {} that the plugin asked for",
                batch.columns.len(),
                self.columns.len()
            );
            return Err(argument(label, SELECT, "batch", reason));
        }
        rows(label, SELECT, batch.columns, row_count)?;
        let Some(mut live) = self.live.take() else {
            return Err(SandboxError::Ended { plugin: label.into(), function: SELECT });
        };
        let columns: Vec<wire::Column<'_>> = batch.columns.iter().map(lend).collect();
        let sent = selection::Batch { rows: batch.row_count, columns: &columns };
        let bitmap = live.call(SELECT, row_count.div_ceil(8), |bindings, store| {
            bindings.lakebed_policy_selection().call_select(store, now_seconds, sent)
        })?;
        live.check(SELECT, checked::bitmap(&bitmap, row_count))?;
        self.live = Some(live);
        Ok(bitmap)
    }
}

impl fmt::Debug for RowFilterStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowFilterStream")
            .field("plugin", &self.plugin)
            .field("columns", &self.columns)
            .field("ended", &self.live.is_none())
            .finish()
    }
}

lend_columns!(
    crate::bindings::row_filter::exports::lakebed::policy::columns,
    Values,
    VarBytes,
    Column
);

fn names(columns: &[String]) -> Result<(), Flaw> {
    if columns.len() > FILTER_COLUMN_COUNT {
        return Err(Flaw::Other(format!(
            "{} columns, expected at most {FILTER_COLUMN_COUNT}",
            columns.len()
        )));
    }
    match columns.iter().find(|name| name.is_empty() || name.len() > COLUMN_NAME_BYTES) {
        None => Ok(()),
        Some(name) => Err(Flaw::Other(format!(
            "a column name of {} bytes, expected 1 to {COLUMN_NAME_BYTES}",
            name.len()
        ))),
    }
}
