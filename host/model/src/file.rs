//! What a Delta log says of one data file.

use std::collections::BTreeMap;

use crate::{Bytes, Literal};

/// Smallest and largest value of a column in a file, from the file's `stats`.
///
/// `None` on a side means that the statistics do not bound that side.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSpan {
    /// A lower bound of the column's values.
    pub min: Option<Literal>,
    /// An upper bound of the column's values.
    pub max: Option<Literal>,
    /// How many values are null, where known.
    pub null_count: Option<u64>,
}

/// One live file of a table snapshot, with the statistics that file skipping reads.
#[derive(Debug, Clone, PartialEq)]
pub struct FileView {
    /// The file's path as the log spells it.
    pub path: String,
    /// The file's size.
    pub size: Bytes,
    /// Rows in the file, before deletion vectors, where the statistics tell.
    pub rows: Option<u64>,
    /// Rows that a deletion vector marks as deleted.
    pub deleted_rows: u64,
    /// Spans by column name.
    pub spans: BTreeMap<String, ColumnSpan>,
}
