//! Codecs of other crates, which cannot go on after an error.

use std::io::{self, ErrorKind, Read};

use super::{Raw, cut};

/// Bytes that are asked for at once: a decoder that meets damage does not tell what it had
/// decompressed in the same call, so this much before the damage is lost.
const SLICE_BYTES: usize = 16 * 1024;

/// A decoder that is at its end after an error.
#[derive(Debug)]
pub(super) struct Fused<R> {
    inner: Option<R>,
}

impl<R> Fused<R> {
    pub(super) const fn new(inner: R) -> Self {
        Self { inner: Some(inner) }
    }
}

impl<R: Read> Read for Fused<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(inner) = &mut self.inner else { return Ok(0) };
        let size = out.len().min(SLICE_BYTES);
        loop {
            match inner.read(&mut out[..size]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.inner = None;
                    return Err(error);
                }
                read => return read,
            }
        }
    }
}

/// LZ4 frames, one behind the other.
pub(super) struct Lz4Frames {
    frames: lz4_flex::frame::FrameDecoder<Raw>,
}

impl Lz4Frames {
    pub(super) fn new(raw: Raw) -> Self {
        Self { frames: lz4_flex::frame::FrameDecoder::new(raw) }
    }
}

impl Read for Lz4Frames {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.frames.read(out)?;
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            let rest = self.frames.get_mut().peek(4)?;
            match rest.len() {
                0 => return Ok(0),
                1..4 => return Err(cut()),
                _ => {}
            }
        }
    }
}
