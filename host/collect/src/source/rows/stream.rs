//! A log's decompressed lines as a stream of bytes, for parsers that cut values themselves.

use std::io::{self, Read};

use lakebed_model::ParseReport;

use super::form::Extent;
use crate::{
    CollectError,
    source::{
        LogPath,
        lines::{Line, Lines},
    },
};

/// The bytes of a log; remembers what the lines could not say to a parser.
pub(super) struct Stream {
    lines: Lines,
    line: Vec<u8>,
    at: usize,
    failure: Option<CollectError>,
}

impl Stream {
    pub(super) fn open(log: &LogPath, extent: Extent) -> Self {
        Self { lines: extent.open(log), line: Vec::new(), at: 0, failure: None }
    }

    /// Adds what the log's lines lost to a report.
    pub(super) fn count_damage(&self, report: &mut ParseReport) {
        self.lines.count_damage(report);
    }

    /// Takes the failure that ended the stream, if one did.
    pub(super) fn failure(&mut self) -> Option<CollectError> {
        self.failure.take()
    }
}

impl Read for &mut Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.line.len() {
            self.line.clear();
            self.at = 0;
            match self.lines.next_line() {
                Ok(None) => return Ok(0),
                Ok(Some(Line::Whole(line) | Line::Unfinished(line))) => {
                    self.line.extend_from_slice(line);
                    self.line.push(b'\n');
                }
                Err(error) => {
                    let told = io::Error::other(error.to_string());
                    self.failure = Some(error);
                    return Err(told);
                }
            }
        }
        let count = buffer.len().min(self.line.len() - self.at);
        buffer[..count].copy_from_slice(&self.line[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
