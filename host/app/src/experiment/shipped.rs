//! Spark event logs that ship inside the program.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// One window of the orders workload, 40 statements, as Spark wrote it.
#[derive(Debug, Clone, Copy)]
pub struct ShippedLog {
    /// The window's name.
    pub window: &'static str,
    application: &'static str,
    pub(super) events: &'static [u8],
}

/// Window 1: joins on order and customer keys with some date filters.
pub const W1: ShippedLog = ShippedLog {
    window: "w1",
    application: "local-1795995627429",
    events: include_bytes!(
        "../../../../examples/logs/w1/eventlog_v2_local-1795995627429/events_1_local-1795995627429.zstd"
    ),
};

/// Window 3: a new join, of lineitem and partsupp, takes the lead.
pub const W3: ShippedLog = ShippedLog {
    window: "w3",
    application: "local-1795995950751",
    events: include_bytes!(
        "../../../../examples/logs/w3/eventlog_v2_local-1795995950751/events_1_local-1795995950751.zstd"
    ),
};

/// Window 5: date filters take the lead.
pub const W5: ShippedLog = ShippedLog {
    window: "w5",
    application: "local-1795996237288",
    events: include_bytes!("../../../../tests/data/logs/windows/w5.zstd"),
};

impl ShippedLog {
    /// Puts the log under a folder as Spark would have written it, and returns where.
    ///
    /// # Errors
    /// Fails when the folder cannot be written.
    pub fn unpack(&self, folder: &Path) -> Result<PathBuf, Error> {
        let target = folder.join(self.window);
        let inner = target.join(format!("eventlog_v2_{}", self.application));
        let fail = |source| Error::File { action: "write", path: inner.clone(), source };
        std::fs::create_dir_all(&inner).map_err(fail)?;
        std::fs::write(inner.join(format!("appstatus_{}", self.application)), []).map_err(fail)?;
        let events = inner.join(format!("events_1_{}.zstd", self.application));
        std::fs::write(events, self.events).map_err(fail)?;
        Ok(target)
    }
}
