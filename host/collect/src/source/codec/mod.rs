//! Compressed logs, recognized by their first bytes and never by a name.
//!
//! Every codec is a [`Read`] that tells three ends apart: `Ok(0)` is the end, an error of kind
//! `UnexpectedEof` is a cut (a writer that still runs, or died), and any other error is damage.
//! After damage the next call goes on with what can be read behind it, where the format has borders
//! to go on from, and is at the end otherwise. An error that wraps [`Unreadable`] is none of these:
//! the file itself cannot be read.

mod ahead;
mod fused;
mod lz4_block;
mod lzf;
mod raw;
mod snappy_java;
#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind, Read};

pub(super) use ahead::Ahead;
pub(super) use raw::{Raw, Unreadable};

use fused::{Fused, Lz4Frames};
use lz4_block::Lz4Block;
use lzf::Lzf;
use snappy_java::SnappyJava;

/// Blocks and chunks that claim to be larger are damaged: lz4-java's largest block.
const MAX_BLOCK_BYTES: usize = 32 << 20;

/// How the bytes of a file are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Plain,
    Zstd,
    Gzip,
    Lz4Block,
    Lz4Frame,
    SnappyJava,
    SnappyFrame,
    Lzf,
    /// Known and not read.
    Unsupported(&'static str),
}

/// Bytes that [`Codec::of`] looks at.
pub(super) const MAGIC_BYTES: usize = 10;

impl Codec {
    /// Magic numbers: RFC 8878 §3.1.1 and §3.1.2 (zstd and its skippable frames), RFC 1952 §2.3.1
    /// (gzip), lz4-java's block stream, the LZ4 and snappy frame formats, snappy-java's own header,
    /// LZF's `ZV` with a kind of chunk, and two that are not read.
    pub(super) fn of(head: &[u8]) -> Self {
        match head {
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Lz4Frame,
            [b'Z', b'V', 0 | 1, ..] => Self::Lzf,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Unsupported("xz"),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, ..] => Self::Unsupported("bzip2"),
            _ if head.starts_with(lz4_block::MAGIC) => Self::Lz4Block,
            _ if head.starts_with(snappy_java::MAGIC) => Self::SnappyJava,
            _ if head.starts_with(b"\xff\x06\0\0sNaPpY") => Self::SnappyFrame,
            _ => Self::Plain,
        }
    }
}

/// A stream of decompressed bytes.
pub(super) type Decoded = Box<dyn Read + Send>;

/// Recognizes the codec and starts to decompress; `Err` holds the name of a codec that is not read.
///
/// # Errors
/// Fails when the first bytes cannot be read.
pub(super) fn decoder(mut raw: Raw) -> io::Result<Result<Decoded, &'static str>> {
    let codec = Codec::of(raw.peek(MAGIC_BYTES)?);
    Ok(Ok(match codec {
        Codec::Plain => Box::new(raw),
        Codec::Zstd => Box::new(Fused::new(zstd::stream::read::Decoder::with_buffer(raw)?)),
        Codec::Gzip => Box::new(Fused::new(flate2::bufread::MultiGzDecoder::new(raw))),
        Codec::Lz4Block => Box::new(Lz4Block::new(raw)),
        Codec::Lz4Frame => Box::new(Fused::new(Lz4Frames::new(raw))),
        Codec::SnappyJava => Box::new(SnappyJava::new(raw)),
        Codec::SnappyFrame => Box::new(Fused::new(snap::read::FrameDecoder::new(raw))),
        Codec::Lzf => Box::new(Lzf::new(raw)),
        Codec::Unsupported(codec) => return Ok(Err(codec)),
    }))
}

/// An error that says what is damaged.
fn damaged(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// An error that says that the file ends too early.
fn cut() -> io::Error {
    ErrorKind::UnexpectedEof.into()
}

/// A decompressed block and how far it has been handed out.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    at: usize,
}

impl Block {
    /// Copies what is left of the block; 0 when nothing is.
    fn copy_to(&mut self, out: &mut [u8]) -> usize {
        let rest = &self.bytes[self.at..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        count
    }

    /// Makes room for a block of the given size, which the caller has checked.
    fn renew(&mut self, size: usize) -> &mut [u8] {
        self.at = 0;
        self.bytes.resize(size, 0);
        &mut self.bytes
    }

    fn clear(&mut self) {
        self.at = 0;
        self.bytes.clear();
    }
}
