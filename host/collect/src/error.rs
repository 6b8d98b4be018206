//! What can go wrong while a history is read.

use std::{collections::BTreeMap, fmt::Write as _, io, path::PathBuf};

/// A failure that stops the reading of a history.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// A path names nothing.
    #[error("read log `{}`: no such file or folder", path.display())]
    MissingLog {
        /// The path as given.
        path: PathBuf,
    },
    /// A folder holds no file that any source recognizes.
    #[error(
        "find a log in folder `{}`: none of its {files} files is a log of a known format ({known})",
        folder.display()
    )]
    NoLogInFolder {
        /// The folder as given.
        folder: PathBuf,
        /// How many files were looked at.
        files: usize,
        /// The formats that were tried.
        known: String,
    },
    /// A file starts with a record of no known format.
    #[error(
        "recognize log `{}`: its first line `{first_line}` belongs to no known format ({known})",
        path.display()
    )]
    UnrecognizedLog {
        /// The file as given.
        path: PathBuf,
        /// The start of the file's first line.
        first_line: String,
        /// The formats that were tried.
        known: String,
    },
    /// The wanted format does not exist.
    #[error("read logs as `{format}`: unknown format, expected one of {known}")]
    UnknownFormat {
        /// The format as given.
        format: String,
        /// The formats that exist.
        known: String,
    },
    /// A log is whole but nobody ran a query in it.
    #[error("find queries: no SQL statements in `{}`, which holds {}", path.display(), listed(events))]
    NoSqlStatements {
        /// The log as given.
        path: PathBuf,
        /// What the log holds instead, with counts.
        events: BTreeMap<String, u64>,
    },
    /// An export lacks a column without which none of its rows can be read.
    #[error("read log `{}` as `{format}`: it has no column `{column}`, only {found}", path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The format's name.
        format: &'static str,
        /// The column, or the columns of which one is needed.
        column: String,
        /// The columns it has.
        found: String,
    },
    /// A log is compressed in a way that is not read.
    #[error(
        "read log `{}`: it is compressed with {codec}, expected plain text, zstd, gzip, lz4, \
         snappy or lzf",
        path.display()
    )]
    UnsupportedCodec {
        /// The file.
        path: PathBuf,
        /// The codec's name.
        codec: &'static str,
    },
    /// The file system failed.
    #[error("read log `{}`", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

fn listed(events: &BTreeMap<String, u64>) -> String {
    if events.is_empty() {
        return "nothing".to_owned();
    }
    let mut text = String::new();
    for (name, count) in events {
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}{count} {name}");
    }
    text
}
