//! What passes between a log and its reader.

use std::{
    collections::BTreeSet,
    fmt,
    io::{self, Read},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use lakebed_model::QueryRecord;

use super::{
    lines::{Line, Lines},
    rows::{self, Form},
};
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
    /// How the files are read.
    pub access: Access,
    /// What is known of the log before it is read, for the report.
    pub notes: Vec<LogNote>,
}

/// What the layout of a log tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogNote {
    /// Older files were compacted: finished executions are gone.
    Compacted,
    /// The application still runs: the log has no end yet.
    InProgress,
}

impl LogPath {
    /// A single file, as if the caller had named it.
    #[must_use]
    pub fn file(path: PathBuf) -> Self {
        Self {
            parts: vec![path.clone()],
            root: path,
            named_by_caller: true,
            access: Access::default(),
            notes: Vec::new(),
        }
    }

    /// A stream that can be read once, such as standard input.
    #[must_use]
    pub fn stream(name: PathBuf, stream: Box<dyn Read + Send>) -> Self {
        let mut log = Self::file(name);
        log.access.stream = Some(Stream::new(stream));
        log
    }
}

/// How the files of a log are read; by default from the file system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// Where the bytes come from, if not from files.
    pub(crate) stream: Option<Stream>,
    /// Whether a thread of its own decompresses ahead of the reader.
    pub(crate) ahead: bool,
}

/// A stream whose head can be looked at before it is read.
#[derive(Clone)]
pub(crate) struct Stream(Arc<Mutex<Replay>>);

/// The source, unless somebody reads it to its end, and what was read of it already.
struct Replay {
    source: Option<Box<dyn Read + Send>>,
    head: Vec<u8>,
}

impl Stream {
    fn new(source: Box<dyn Read + Send>) -> Self {
        Self(Arc::new(Mutex::new(Replay { source: Some(source), head: Vec::new() })))
    }

    /// Reads from the beginning: `keeps` what is read for the next reader, or takes the stream.
    pub(crate) fn read(&self, keeps: bool) -> io::Result<Box<dyn Read + Send>> {
        if keeps {
            return Ok(Box::new(Peeking { stream: self.clone(), at: 0 }));
        }
        let mut replay = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let head = std::mem::take(&mut replay.head);
        match replay.source.take() {
            Some(source) => Ok(Box::new(io::Cursor::new(head).chain(source))),
            None => Err(io::Error::other("a stream can be read once only")),
        }
    }
}

/// Streams are the same when they are one.
impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

/// Reads a stream and keeps what it reads.
struct Peeking {
    stream: Stream,
    at: usize,
}

impl Read for Peeking {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut replay = self.stream.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Replay { source, head } = &mut *replay;
        if self.at == head.len() {
            let Some(source) = source else { return Ok(0) };
            let count = source.read(out)?;
            head.extend_from_slice(&out[..count]);
            self.at += count;
            return Ok(count);
        }
        let count = out.len().min(head.len() - self.at);
        out[..count].copy_from_slice(&head[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// The start of a log, decompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHead {
    /// The first line; empty for an empty log.
    pub first_line: String,
    /// The first lines that are not blank: a damaged one must not hide a log's format.
    pub lines: Vec<String>,
    /// How the rows are written down, if the log is one of rows.
    pub(crate) form: Form,
    /// The names of the first rows' fields, in lower case.
    pub(crate) names: BTreeSet<String>,
}

/// Lines that a format is recognized by.
const HEAD_LINES: usize = 20;
/// Bytes after which no further line is read for that.
const HEAD_BYTES: usize = 1 << 20;

impl LogHead {
    /// Reads the first lines of a log.
    ///
    /// # Errors
    /// Fails when the log cannot be opened or is compressed with a codec that is not supported.
    pub fn of(log: &LogPath) -> Result<Self, CollectError> {
        let mut source = Lines::peek(log);
        let mut first_line = None;
        let mut lines: Vec<String> = Vec::new();
        let mut bytes = 0;
        while lines.len() < HEAD_LINES && bytes < HEAD_BYTES {
            let Some(Line::Whole(line) | Line::Unfinished(line)) = source.next_line()? else {
                break;
            };
            bytes += line.len() + 1;
            let line = String::from_utf8_lossy(line).into_owned();
            if !line.trim().is_empty() {
                lines.push(line.clone());
            }
            first_line.get_or_insert(line);
        }
        let form = Form::of(&lines);
        // What cannot be read as rows is a log of another kind, or of none.
        let names = rows::names(form, log).unwrap_or_default();
        Ok(Self { first_line: first_line.unwrap_or_default(), lines, form, names })
    }

    /// Tells whether rows have a field of this name, given in lower case.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
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
