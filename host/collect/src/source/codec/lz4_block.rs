//! lz4-java's block stream, which Spark calls `lz4` and writes by default up to version 3.5.
//!
//! Blocks follow one another, each with a header of 21 bytes: `LZ4Block`; a token, whose upper half
//! is the method (1 stored, 2 LZ4) and whose lower half is the block size (2^(10 + n) bytes); then,
//! little-endian, the compressed length, the original length, and the lower 28 bits of the XXH32 of
//! the original bytes. A block of no bytes ends a stream; another stream may follow.

use std::io::{self, Read};

use twox_hash::XxHash32;

use super::{Block, MAX_BLOCK_BYTES, Raw, cut, damaged};

pub(super) const MAGIC: &[u8] = b"LZ4Block";

const HEADER_BYTES: usize = 21;
/// lz4-java's seed.
const SEED: u32 = 0x9747_b28c;
/// lz4-java gives the checksum out through `java.util.zip.Checksum` with these bits only.
const CHECKSUM_BITS: u32 = 0x0fff_ffff;

/// Reads the blocks; a damaged one is passed over.
#[derive(Debug)]
pub(super) struct Lz4Block {
    raw: Raw,
    block: Block,
    /// Whether the last block was the empty one that ends a stream.
    ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    is_stored: bool,
    compressed: usize,
    original: usize,
    checksum: u32,
}

impl Header {
    /// `None` when the bytes are no header of a block that can be.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (&token, rest) = rest.split_first()?;
        let number = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        let length = |at: usize| usize::try_from(number(at)?).ok();
        let header = Self {
            is_stored: match token & 0xf0 {
                0x10 => true,
                0x20 => false,
                _ => return None,
            },
            compressed: length(0)?,
            original: length(4)?,
            checksum: number(8)?,
        };
        let block_size = 1_usize << (10 + u32::from(token & 0x0f));
        // An LZ4 sequence gives at most 255 bytes for one of its own.
        let is_possible = match header.is_stored {
            true => header.compressed == header.original,
            false => {
                header.compressed > 0
                    && header.compressed <= MAX_BLOCK_BYTES + MAX_BLOCK_BYTES / 255 + 16
                    && header.original <= header.compressed.saturating_mul(255)
            }
        };
        (is_possible && header.original <= block_size).then_some(header)
    }
}

impl Lz4Block {
    pub(super) const fn new(raw: Raw) -> Self {
        Self { raw, block: Block { bytes: Vec::new(), at: 0 }, ended: false }
    }

    /// Decompresses the next block; `false` at the end.
    fn next_block(&mut self) -> io::Result<bool> {
        let head = self.raw.peek(HEADER_BYTES)?;
        match head.len() {
            0 if self.ended => return Ok(false),
            HEADER_BYTES => {}
            // Without the empty block the writer has not finished; half a header is a cut too.
            _ => {
                let rest = head.len();
                self.raw.pass(rest);
                self.ended = true;
                return Err(cut());
            }
        }
        self.ended = false;
        let Some(header) = Header::parse(head) else {
            return Err(self.lost("an LZ4 block has no valid header"));
        };
        let data = self.raw.peek(HEADER_BYTES + header.compressed)?;
        if data.len() < HEADER_BYTES + header.compressed {
            // Either the file ends in this block or the length is wrong; other blocks tell.
            if self.raw.pass_to(MAGIC)? {
                return Err(damaged("an LZ4 block has a wrong length"));
            }
            self.ended = true;
            return Err(cut());
        }
        let data = &data[HEADER_BYTES..];
        let out = self.block.renew(header.original);
        let is_whole = if header.is_stored {
            out.copy_from_slice(data);
            true
        } else {
            lz4_flex::block::decompress_into(data, out).is_ok_and(|size| size == header.original)
        };
        let checksum = XxHash32::oneshot(SEED, &self.block.bytes) & CHECKSUM_BITS;
        if !is_whole || (header.original > 0 && checksum != header.checksum & CHECKSUM_BITS) {
            self.block.clear();
            return Err(self.lost("an LZ4 block does not match its checksum"));
        }
        self.ended = header.original == 0;
        self.raw.pass(HEADER_BYTES + header.compressed);
        Ok(true)
    }

    /// Goes to the next block that shows its magic number.
    fn lost(&mut self, what: &'static str) -> io::Error {
        match self.raw.pass_to(MAGIC) {
            Ok(found) => {
                self.ended = !found;
                damaged(what)
            }
            Err(error) => error,
        }
    }
}

impl Read for Lz4Block {
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
