//! How large files are, and how large they should be.
//!
//! A rewrite aims at a size that compression then misses. Each file it makes therefore carries the
//! size it was planned with, and is judged by that: a file that came out smaller than planned is not
//! small, so that rewriting it again is never due only because its rows compress well.

use lakebed_model::Bytes;

use crate::{TableSnapshot, action::AddFile};

/// Tag with the bytes a file was planned with: those of its inputs, divided by the files made.
pub(crate) const PLANNED_BYTES: &str = "LAKEBED_PLANNED_BYTES";
/// Tag with the bytes that all files of a rewrite together were planned with.
pub(crate) const LAYER_BYTES: &str = "LAKEBED_LAYER_BYTES";

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TERABYTE: u64 = 1_000_000_000_000;
/// Files an adaptive size aims at in a small table, so that skipping has something to skip.
const FILES_OF_SMALL_TABLE: u64 = 64;

/// How large the files of a table should be where the table does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSizing {
    /// The same in every table.
    Fixed(Bytes),
    /// By the size of the table:
    ///
    /// | table | files |
    /// | --- | --- |
    /// | under 2 GiB | 16 MiB |
    /// | from 2, 4, 8 GiB | 32, 64, 128 MiB |
    /// | from 1 TiB | 256 MiB |
    /// | from 5.04 TB | 512 MiB |
    /// | from 10 TB | 1 GiB |
    ///
    /// From 1 TiB on this is Databricks' published table ("Configure Delta Lake to control data
    /// file size": 256 MiB up to 2.56 TB, then a line up to 1 GiB at 10 TB), rounded down to a power
    /// of two: a table that grows past a step does not make all its files small at once, since a
    /// planned file is more than half of its target and a small one less than a quarter.
    Adaptive,
}

impl From<Bytes> for FileSizing {
    fn from(size: Bytes) -> Self {
        Self::Fixed(size)
    }
}

impl TableSnapshot {
    /// Returns the size a file should have: `delta.targetFileSize` where set, else by `sizing`.
    #[must_use]
    pub fn target_file_size(&self, sizing: impl Into<FileSizing>) -> Bytes {
        let set = self
            .properties
            .get("delta.targetFileSize")
            .and_then(|text| Bytes::parse(text).ok())
            .filter(|size| size.0 > 0);
        match (set, sizing.into()) {
            (Some(size), _) | (None, FileSizing::Fixed(size)) => size,
            (None, FileSizing::Adaptive) => adaptive(self.bytes()),
        }
    }
}

fn adaptive(table: Bytes) -> Bytes {
    let size = match table.0 {
        small if small < 8 * GIB => {
            let share = (small / FILES_OF_SMALL_TABLE).max(16 * MIB);
            1 << share.ilog2()
        }
        medium if medium < 1 << 40 => 128 * MIB,
        large if large < 5_040 * (TERABYTE / 1_000) => 256 * MIB,
        huge if huge < 10 * TERABYTE => 512 * MIB,
        _ => GIB,
    };
    Bytes(size)
}

/// Estimates the bytes of a file's rows that deletion vectors do not hide.
pub(crate) fn live_bytes(file: &AddFile) -> u64 {
    let deleted = file.deleted_rows();
    let Some(rows) = (deleted > 0).then(|| file.rows()).flatten().filter(|rows| *rows > 0) else {
        return file.size;
    };
    let live = u128::from(file.size) * u128::from(rows.saturating_sub(deleted)) / u128::from(rows);
    u64::try_from(live).unwrap_or(file.size)
}

/// Returns the size a file counts with: as planned where the tag tells, else as it is.
pub(crate) fn counted_bytes(file: &AddFile) -> u64 {
    let planned = file.tag(PLANNED_BYTES).and_then(|text| text.parse().ok());
    planned.unwrap_or_else(|| live_bytes(file))
}

/// Returns the size of what the file's rewrite made in all, where its tag tells.
pub(crate) fn layer_bytes(file: &AddFile) -> Option<u64> {
    file.tag(LAYER_BYTES)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lakebed_model::Bytes;

    use super::{FileSizing, GIB, MIB, PLANNED_BYTES, TERABYTE, counted_bytes, live_bytes};
    use crate::{
        action::DeletionVector,
        testing::{plain_file, snapshot},
    };

    #[track_caller]
    fn check(table_bytes: u64, expected: u64) {
        let table = snapshot(&["a"], vec![plain_file("f", table_bytes)]);
        assert_eq!(table.target_file_size(FileSizing::Adaptive), Bytes(expected));
    }

    #[test]
    fn adaptive_size_follows_the_published_table() {
        check(0, 16 * MIB);
        check(2 * GIB - 1, 16 * MIB);
        check(2 * GIB, 32 * MIB);
        check(5 * GIB, 64 * MIB);
        check(8 * GIB, 128 * MIB);
        check(1 << 40, 256 * MIB);
        check(2_560 * (TERABYTE / 1_000), 256 * MIB);
        check(6 * TERABYTE, 512 * MIB);
        check(10 * TERABYTE, GIB);
        check(u64::MAX, GIB);
    }

    #[test]
    fn the_tables_own_size_wins() {
        let mut table = snapshot(&["a"], vec![plain_file("f", GIB)]);
        table.properties = BTreeMap::from([("delta.targetFileSize".into(), "1MiB".into())]);
        assert_eq!(table.target_file_size(FileSizing::Adaptive), Bytes(MIB));
        assert_eq!(table.target_file_size(Bytes(7)), Bytes(MIB));
        table.properties.clear();
        assert_eq!(table.target_file_size(Bytes(7)), Bytes(7));
    }

    #[test]
    fn deleted_rows_do_not_count_and_planned_bytes_do() {
        let mut file = plain_file("f", 1_000);
        assert_eq!((live_bytes(&file), counted_bytes(&file)), (1_000, 1_000));
        file.deletion_vector = Some(DeletionVector {
            storage_type: "u".into(),
            path_or_inline_dv: "x".into(),
            offset: None,
            size_in_bytes: 1,
            cardinality: 25,
        });
        assert_eq!((live_bytes(&file), counted_bytes(&file)), (750, 750));
        file.tags =
            Some([(PLANNED_BYTES.to_owned(), Some("4000".to_owned()))].into_iter().collect());
        assert_eq!((live_bytes(&file), counted_bytes(&file)), (750, 4_000));
    }
}
