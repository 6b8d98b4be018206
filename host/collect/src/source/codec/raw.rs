//! The bytes of a file before they are decompressed.

use std::{
    fmt,
    io::{self, BufRead, ErrorKind, Read},
};

const BUFFER_BYTES: usize = 128 * 1024;

/// What the file system said, told apart from what a codec says.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(in crate::source) struct Unreadable(pub(in crate::source) io::Error);

/// A file with a buffer that can be looked into.
pub(in crate::source) struct Raw {
    file: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raw").field("buffered", &(self.end - self.start)).finish_non_exhaustive()
    }
}

impl Raw {
    pub(in crate::source) fn new(file: Box<dyn Read + Send>) -> Self {
        Self { file, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0 }
    }

    /// Shows the next `count` bytes, fewer only at the end of the file.
    ///
    /// The buffer grows with the bytes that are there, not with `count`: a damaged length costs no
    /// memory.
    pub(in crate::source) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.end - self.start < count {
            if self.fill()? == 0 {
                break;
            }
        }
        let end = self.end.min(self.start + count);
        Ok(&self.buffer[self.start..end])
    }

    /// Passes over bytes that were shown.
    pub(super) fn pass(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
    }

    /// Passes over bytes up to the next place where `marker` stands, at least one; `false` when it
    /// stands nowhere.
    pub(super) fn pass_to(&mut self, marker: &[u8]) -> io::Result<bool> {
        self.peek(1)?;
        self.pass(1);
        loop {
            self.peek(marker.len())?;
            let shown = &self.buffer[self.start..self.end];
            let size = shown.len();
            if let Some(at) = memchr::memmem::find(shown, marker) {
                self.pass(at);
                return Ok(true);
            }
            if size < marker.len() {
                self.pass(size);
                return Ok(false);
            }
            self.pass(size + 1 - marker.len());
        }
    }

    /// Reads more bytes behind those that are buffered; 0 at the end of the file.
    fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        let count = read_some(&mut *self.file, &mut self.buffer[self.end..])?;
        self.end += count;
        Ok(count)
    }
}

fn read_some(file: &mut dyn Read, out: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(out) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(io::Error::other(Unreadable(error))),
            read => return read,
        }
    }
}

impl Read for Raw {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end {
            return read_some(&mut *self.file, out);
        }
        let count = out.len().min(self.end - self.start);
        out[..count].copy_from_slice(&self.buffer[self.start..self.start + count]);
        self.start += count;
        Ok(count)
    }
}

impl BufRead for Raw {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            self.fill()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.pass(count);
    }
}
