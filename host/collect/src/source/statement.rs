//! What passes between a log and its reader.

use std::path::PathBuf;

use lakebed_model::QueryRecord;

use super::lines::{Line, Lines};
use crate::CollectError;

/// One log: a file, or the files of a rolling log in the order they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPath {
    /// The file, or the folder of a rolling log.
    pub root: PathBuf,
    /// The files in order; just `root` for a single file.
    pub parts: Vec<PathBuf>,
    /// Whether the caller named this log, rather than a folder in which it was found.
    pub named_by_caller: bool,
}

/// The start of a log, decompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHead {
    /// The first line; empty for an empty log.
    pub first_line: String,
}

impl LogHead {
    /// Reads the first line of a log.
    ///
    /// # Errors
    /// Fails when the log cannot be opened or is compressed with a codec that is not supported.
    pub fn of(log: &LogPath) -> Result<Self, CollectError> {
        let mut lines = Lines::open(log);
        let first_line = match lines.next_line()? {
            Some(Line::Whole(line) | Line::Unfinished(line)) => {
                String::from_utf8_lossy(line).into_owned()
            }
            None => String::new(),
        };
        Ok(Self { first_line })
    }
}

/// How well a statement could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// In full.
    Full,
    /// With losses: joins or filters may be missing.
    Partial {
        /// What was lost, each with its reason.
        losses: Vec<String>,
    },
    /// Not at all: the record has no joins and no scans.
    Unread {
        /// Why, with the position where there is one.
        reason: String,
    },
}

/// One statement of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// What the log says; tables are named as fully as the log names them.
    pub record: QueryRecord,
    /// How well it could be read.
    pub reading: Reading,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{QueryRecord, Reading, Statement};
    use lakebed_model::{Instant, QueryStatus};

    /// An empty statement that started at the given millisecond.
    pub(crate) fn statement_at(epoch_ms: i64) -> Statement {
        Statement {
            record: QueryRecord {
                id: format!("at-{epoch_ms}"),
                started_at: Instant::from_epoch_ms(epoch_ms),
                source: "test".to_owned(),
                sql: None,
                fingerprint: String::new(),
                duration_ms: None,
                status: QueryStatus::Finished,
                joins: Vec::new(),
                scans: Vec::new(),
                confidence: 1.0,
            },
            reading: Reading::Full,
        }
    }
}
