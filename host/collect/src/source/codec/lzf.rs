//! LZF as ning's compress-lzf writes it, which Spark calls `lzf`.
//!
//! Chunks follow one another: `ZV`, a kind, a length of two bytes, big-endian; a compressed chunk
//! (kind 1) has its original length behind that. Then the data. No crate that is kept reads this, and
//! the decompressor is one loop.

use std::io::{self, Read};

use super::{Block, Raw, cut, damaged};

const MAGIC: &[u8] = b"ZV";
const STORED_HEADER_BYTES: usize = 5;
const COMPRESSED_HEADER_BYTES: usize = 7;

/// Reads the chunks; one that is damaged is passed over.
#[derive(Debug)]
pub(super) struct Lzf {
    raw: Raw,
    block: Block,
}

/// A chunk's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    bytes: usize,
    stored: usize,
    /// `None` for a chunk that is not compressed.
    original: Option<usize>,
}

impl Header {
    /// `None` when the bytes are no header.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let length = |at: usize| {
            Some(usize::from(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])))
        };
        match bytes.strip_prefix(MAGIC)?.first()? {
            0 => Some(Self { bytes: STORED_HEADER_BYTES, stored: length(3)?, original: None }),
            1 => Some(Self {
                bytes: COMPRESSED_HEADER_BYTES,
                stored: length(3)?,
                original: Some(length(5)?),
            }),
            _ => None,
        }
    }
}

impl Lzf {
    pub(super) const fn new(raw: Raw) -> Self {
        Self { raw, block: Block { bytes: Vec::new(), at: 0 } }
    }

    /// Decompresses the next chunk; `false` at the end.
    fn next_chunk(&mut self) -> io::Result<bool> {
        let head = self.raw.peek(COMPRESSED_HEADER_BYTES)?;
        if head.is_empty() {
            return Ok(false);
        }
        let Some(header) = Header::parse(head) else {
            let is_beginning = head.len() < COMPRESSED_HEADER_BYTES
                && [b"ZV\x00", b"ZV\x01"]
                    .iter()
                    .any(|start| start.starts_with(head) || head.starts_with(*start));
            if is_beginning {
                self.raw.pass(COMPRESSED_HEADER_BYTES);
                return Err(cut());
            }
            self.raw.pass_to(MAGIC)?;
            return Err(damaged("an LZF chunk has no valid header"));
        };
        let size = header.bytes + header.stored;
        let data = self.raw.peek(size)?;
        if data.len() < size {
            let rest = data.len();
            self.raw.pass(rest);
            return Err(cut());
        }
        let data = &data[header.bytes..];
        let is_whole = match header.original {
            None => {
                self.block.renew(header.stored).copy_from_slice(data);
                true
            }
            Some(original) => decompress(data, self.block.renew(original)).is_some(),
        };
        self.raw.pass(size);
        if is_whole {
            return Ok(true);
        }
        self.block.clear();
        Err(damaged("an LZF chunk cannot be decompressed"))
    }
}

impl Read for Lzf {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.block.copy_to(out);
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            self.block.clear();
            if !self.next_chunk()? {
                return Ok(0);
            }
        }
    }
}

/// Fills `out` exactly; `None` when the data do not.
///
/// A control byte below 32 is followed by that many and one more literal bytes. Otherwise its upper
/// three bits are a length less two (7: another byte is added), its lower five bits and the next byte
/// the distance less one.
fn decompress(data: &[u8], out: &mut [u8]) -> Option<()> {
    let mut rest = data.iter();
    let mut at = 0;
    while let Some(&control) = rest.next() {
        if control < 32 {
            let count = usize::from(control) + 1;
            let literal = rest.as_slice().get(..count)?;
            out.get_mut(at..at + count)?.copy_from_slice(literal);
            rest = rest.as_slice()[count..].iter();
            at += count;
            continue;
        }
        let mut length = usize::from(control >> 5) + 2;
        if length == 9 {
            length += usize::from(*rest.next()?);
        }
        let distance = (usize::from(control & 0x1f) << 8) + usize::from(*rest.next()?) + 1;
        let from = at.checked_sub(distance)?;
        if at + length > out.len() {
            return None;
        }
        // The source may reach into what is being written.
        for index in 0..length {
            out[at + index] = out[from + index];
        }
        at += length;
    }
    (at == out.len()).then_some(())
}
