//! A row filter guest as a [`RowFilter`].

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use arrow::{
    array::{BooleanArray, RecordBatch},
    buffer::{BooleanBuffer, Buffer},
};
use lakebed_compact::{CompactError, RowFilter};
use lakebed_model::Instant;
use lakebed_sandbox::{Batch, Plugin, RowFilterStream, SandboxError};

use super::{arrow_columns::GuestColumns, refused};

/// Filters rows in the sandbox: one instance for all batches of a job.
pub struct PluggedRowFilter {
    plugin: Plugin,
    columns: Vec<String>,
    now: Instant,
    stream: Mutex<RowFilterStream>,
}

impl PluggedRowFilter {
    /// Starts an instance of a plugin of the world `row-filter`.
    ///
    /// # Errors
    /// Fails when the plugin does.
    pub fn new(plugin: Plugin, now: Instant) -> Result<Self, SandboxError> {
        let stream = plugin.row_filter_stream()?;
        let columns = stream.columns().to_vec();
        Ok(Self { plugin, columns, now, stream: Mutex::new(stream) })
    }
}

impl fmt::Debug for PluggedRowFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluggedRowFilter").field("plugin", &self.plugin).finish_non_exhaustive()
    }
}

impl RowFilter for PluggedRowFilter {
    fn name(&self) -> &str {
        self.plugin.name()
    }

    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn keep(&self, batch: &RecordBatch) -> Result<BooleanArray, CompactError> {
        let name = self.plugin.name();
        let columns = GuestColumns::new(batch.columns()).map_err(|error| refused(name, error))?;
        let row_count = u32::try_from(batch.num_rows()).unwrap_or(u32::MAX);
        let lent = columns.lend();
        let batch = Batch { row_count, columns: &lent };
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let now_seconds = self.now.epoch_ms().div_euclid(1_000);
        let bits = stream.select(now_seconds, &batch).map_err(|error| refused(name, error))?;
        let rows = usize::try_from(row_count).unwrap_or(usize::MAX);
        Ok(BooleanArray::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, rows), None))
    }
}
