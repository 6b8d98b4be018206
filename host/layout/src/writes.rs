//! How new rows become files, by the settings of the session and the properties of the table. Pure.
//!
//! - An **optimized write** gathers the rows of all threads and cuts them into files of one size. It
//!   is what a write does unless somebody says `false`: then each thread of the query writes files of
//!   its own, as many as there are threads, at once and therefore sooner.
//!   `delta.autoOptimize.optimizeWrite` says it for a table, `optimizeWrite.enabled` for a session,
//!   which wins. `optimizeWrite.binSize` sets another size than the table's.
//! - **Auto-compaction** ([`crate::auto_compact()`]) follows a write that left many small files.

use lakebed_model::Bytes;

use crate::{ClusteringSettings, FileSizing, TableSnapshot};

/// Table property of an optimized write.
const OPTIMIZE_WRITE: &str = "delta.autoOptimize.optimizeWrite";

/// What a statement that writes rows goes by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WriteOptions {
    /// How large files are where the table does not say.
    pub default_file_size: FileSizing,
    /// The session's settings.
    pub settings: ClusteringSettings,
}

impl From<FileSizing> for WriteOptions {
    fn from(default_file_size: FileSizing) -> Self {
        Self { default_file_size, settings: ClusteringSettings::default() }
    }
}

impl WriteOptions {
    /// Tells whether a write gathers the rows of all threads.
    #[must_use]
    pub fn gathers_rows(&self, table: &TableSnapshot) -> bool {
        let by_table = || {
            let set = table.properties.get(OPTIMIZE_WRITE);
            !set.is_some_and(|value| value.eq_ignore_ascii_case("false"))
        };
        self.settings.optimize_write.unwrap_or_else(by_table)
    }

    /// Returns the size of the files that a write makes.
    #[must_use]
    pub fn file_size(&self, table: &TableSnapshot) -> Bytes {
        let own = table.target_file_size(self.default_file_size);
        match self.settings.optimize_write_bin_size {
            Some(size) if self.gathers_rows(table) => size,
            _ => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lakebed_model::Bytes;

    use super::WriteOptions;
    use crate::{ClusteringSettings, FileSizing, testing::snapshot};

    #[track_caller]
    fn check(session: Option<bool>, table: Option<&str>, gathers: bool, size: u64) {
        let settings = ClusteringSettings {
            optimize_write: session,
            optimize_write_bin_size: Some(Bytes(7)),
            ..ClusteringSettings::default()
        };
        let options = WriteOptions { default_file_size: FileSizing::Fixed(Bytes(5)), settings };
        let mut snapshot = snapshot(&[], Vec::new());
        snapshot.properties = table
            .map(|value| BTreeMap::from([(super::OPTIMIZE_WRITE.to_owned(), value.to_owned())]))
            .unwrap_or_default();
        let got = (options.gathers_rows(&snapshot), options.file_size(&snapshot));
        assert_eq!(got, (gathers, Bytes(size)));
    }

    #[test]
    fn the_session_says_it_before_the_table_and_gathering_is_usual() {
        check(None, None, true, 7);
        check(None, Some("true"), true, 7);
        check(None, Some("FALSE"), false, 5);
        check(Some(true), Some("false"), true, 7);
        check(Some(false), Some("true"), false, 5);
    }
}
