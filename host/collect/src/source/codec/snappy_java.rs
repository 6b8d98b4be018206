//! snappy-java's stream, which Spark calls `snappy`.
//!
//! A header of 16 bytes (`\x82SNAPPY\0`, version, lowest compatible version), then blocks: a length
//! of four bytes, big-endian, and that many bytes of raw snappy. Streams may follow one another: then
//! a header stands in the place of a length. There is no end mark and no checksum.

use std::io::{self, Read};

use super::{Block, MAX_BLOCK_BYTES, Raw, cut, damaged};

pub(super) const MAGIC: &[u8] = b"\x82SNAPPY\0";

const HEADER_BYTES: usize = 16;
const LENGTH_BYTES: usize = 4;
/// A copy of snappy gives at most 64 bytes for two or three of its own.
const MAX_RATIO: usize = 32;

/// Reads the blocks; one that is damaged is passed over.
#[derive(Debug)]
pub(super) struct SnappyJava {
    raw: Raw,
    block: Block,
}

impl SnappyJava {
    pub(super) const fn new(raw: Raw) -> Self {
        Self { raw, block: Block { bytes: Vec::new(), at: 0 } }
    }

    /// Decompresses the next block; `false` at the end.
    fn next_block(&mut self) -> io::Result<bool> {
        while self.raw.peek(MAGIC.len())? == MAGIC {
            if self.raw.peek(HEADER_BYTES)?.len() < HEADER_BYTES {
                self.raw.pass(HEADER_BYTES);
                return Err(cut());
            }
            self.raw.pass(HEADER_BYTES);
        }
        let head = self.raw.peek(LENGTH_BYTES)?;
        let Ok(length) = <[u8; LENGTH_BYTES]>::try_from(head) else {
            let is_end = head.is_empty();
            self.raw.pass(LENGTH_BYTES);
            return if is_end { Ok(false) } else { Err(cut()) };
        };
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length == 0 || length > MAX_BLOCK_BYTES {
            // Nothing tells where the next block begins, but another stream may follow.
            self.raw.pass_to(MAGIC)?;
            return Err(damaged("a snappy block has an impossible length"));
        }
        let data = self.raw.peek(LENGTH_BYTES + length)?;
        if data.len() < LENGTH_BYTES + length {
            let rest = data.len();
            self.raw.pass(rest);
            return Err(cut());
        }
        let data = &data[LENGTH_BYTES..];
        let size = snap::raw::decompress_len(data).ok();
        let size = size.filter(|size| *size <= length.saturating_mul(MAX_RATIO));
        let is_whole = size.is_some_and(|size| {
            let out = self.block.renew(size);
            snap::raw::Decoder::new().decompress(data, out).is_ok_and(|written| written == size)
        });
        self.raw.pass(LENGTH_BYTES + length);
        if is_whole {
            return Ok(true);
        }
        self.block.clear();
        Err(damaged("a snappy block cannot be decompressed"))
    }
}

impl Read for SnappyJava {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.block.copy_to(out);
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            self.block.clear();
            if !self.next_block()? {
                return Ok(0);
            }
        }
    }
}
