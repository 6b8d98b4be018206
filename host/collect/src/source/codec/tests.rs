//! Every codec: whole, cut anywhere, damaged anywhere.
//!
//! LAKEBED_FUZZ_SECONDS=300 gives each property so long; see CONTRIBUTING.md.

use std::io::{Cursor, ErrorKind, Read, Write as _};

use proptest::prelude::*;
use twox_hash::XxHash32;

use super::{Ahead, Codec, Decoded, Raw, decoder};
use crate::source::fuzz;

/// What came out of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    bytes: Vec<u8>,
    cuts: usize,
    damages: Vec<String>,
}

/// Reads a stream to its end, past all damage.
fn read_all(mut decoded: Decoded, most: usize) -> Outcome {
    let mut outcome = Outcome::default();
    let mut buffer = vec![0; 50_000];
    loop {
        match decoded.read(&mut buffer) {
            Ok(0) => return outcome,
            Ok(count) => outcome.bytes.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => outcome.cuts += 1,
            Err(error) => outcome.damages.push(error.to_string()),
        }
        assert!(outcome.bytes.len() <= most, "more bytes than the input can hold");
        assert!(outcome.damages.len() + outcome.cuts <= most, "no end of damage");
    }
}

fn open(bytes: &[u8]) -> Decoded {
    decoder(Raw::new(Box::new(Cursor::new(bytes.to_vec())))).unwrap().unwrap()
}

fn read(bytes: &[u8]) -> Outcome {
    read_all(open(bytes), usize::MAX)
}

/// Blocks of one LZ4Block stream, with the empty one that ends it.
fn lz4_block(blocks: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut block = |token: u8, data: &[u8], original: &[u8], checksum: u32| {
        out.extend_from_slice(b"LZ4Block");
        out.push(token | 6);
        for number in [data.len(), original.len()] {
            out.extend_from_slice(&u32::try_from(number).unwrap().to_le_bytes());
        }
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(data);
    };
    for original in blocks {
        let checksum = XxHash32::oneshot(0x9747_b28c, original) & 0x0fff_ffff;
        let data = lz4_flex::block::compress(original);
        if data.len() < original.len() {
            block(0x20, &data, original, checksum);
        } else {
            block(0x10, original, original, checksum);
        }
    }
    block(0x10, &[], &[], 0);
    out
}

fn snappy_java(blocks: &[&[u8]]) -> Vec<u8> {
    let mut out = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
    for block in blocks {
        let data = snap::raw::Encoder::new().compress_vec(block).unwrap();
        out.extend_from_slice(&u32::try_from(data.len()).unwrap().to_be_bytes());
        out.extend_from_slice(&data);
    }
    out
}

/// Compresses runs of a byte as copies at distance 1, everything else as literals.
fn lzf_data(block: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = block;
    while let Some(&first) = rest.first() {
        let run = rest.iter().take_while(|byte| **byte == first).count();
        if run >= 10 {
            let length = (run - 1).min(264);
            out.extend([0, first, 7 << 5, u8::try_from(length - 9).unwrap(), 0]);
            rest = &rest[length + 1..];
        } else {
            let count = rest.len().min(32).min(run);
            out.push(u8::try_from(count - 1).unwrap());
            out.extend_from_slice(&rest[..count]);
            rest = &rest[count..];
        }
    }
    out
}

fn lzf(blocks: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let length = |size: usize| u16::try_from(size).unwrap().to_be_bytes();
    for block in blocks {
        let data = lzf_data(block);
        if data.len() < block.len() {
            out.extend_from_slice(b"ZV\x01");
            out.extend(length(data.len()));
            out.extend(length(block.len()));
            out.extend(data);
        } else {
            out.extend_from_slice(b"ZV\x00");
            out.extend(length(block.len()));
            out.extend_from_slice(block);
        }
    }
    out
}

fn lz4_frame(text: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn snappy_frame(text: &[u8]) -> Vec<u8> {
    let mut encoder = snap::write::FrameEncoder::new(Vec::new());
    encoder.write_all(text).unwrap();
    encoder.into_inner().unwrap()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).unwrap()
}

const ONE: &[u8] = b"first block first block first block first block\n";
const TWO: &[u8] = b"second\n";
const THREE: &[u8] = b"third third third third third third third third\n";

fn whole(bytes: &[u8]) -> Outcome {
    Outcome { bytes: bytes.to_vec(), ..Outcome::default() }
}

#[test]
fn every_codec_is_known_by_its_first_bytes_and_read_over_stream_borders() {
    let all = [ONE, TWO, THREE].concat();
    let twice = [all.clone(), all.clone()].concat();
    let streams: [(Codec, Vec<u8>); 7] = [
        (Codec::Lz4Block, lz4_block(&[ONE, TWO, THREE])),
        (Codec::SnappyJava, snappy_java(&[ONE, TWO, THREE])),
        (Codec::Lzf, lzf(&[ONE, TWO, THREE])),
        (Codec::Lz4Frame, lz4_frame(&all)),
        (Codec::SnappyFrame, snappy_frame(&all)),
        (Codec::Gzip, gzip(&all)),
        (Codec::Zstd, zstd(&all)),
    ];
    for (codec, stream) in streams {
        assert_eq!(Codec::of(&stream), codec);
        assert_eq!(read(&stream), whole(&all), "{codec:?}");
        assert_eq!(read(&[stream.clone(), stream].concat()), whole(&twice), "{codec:?}");
    }
    assert_eq!(Codec::of(&all), Codec::Plain);
    assert_eq!(read(&all), whole(&all));
    assert_eq!(read(b""), whole(b""));
    assert_eq!(Codec::of(b"\xfd7zXZ\0"), Codec::Unsupported("xz"));
}

#[test]
fn a_stored_lz4_block_by_hand() {
    let mut stream = b"LZ4Block\x16\x03\0\0\0\x03\0\0\0\0\0\0\0abc".to_vec();
    let refused = read(&stream);
    assert_eq!(refused.damages, ["an LZ4 block does not match its checksum"]);
    let checksum = XxHash32::oneshot(0x9747_b28c, b"abc") & 0x0fff_ffff;
    stream[17..21].copy_from_slice(&checksum.to_le_bytes());
    stream.extend(b"LZ4Block\x16\0\0\0\0\0\0\0\0\0\0\0\0");
    assert_eq!(read(&stream), whole(b"abc"));
}

#[test]
fn an_lzf_chunk_by_hand() {
    // Literal "ab", then 9 + 1 bytes from 2 back, then literal "c": "ab" "ababababab" "c".
    let stream = b"ZV\x01\0\x08\0\x0d\x01ab\xe0\x01\x01\x00c";
    assert_eq!(read(stream), whole(b"ababababababc"));
    // A copy from before the beginning.
    let damaged = read(b"ZV\x01\0\x05\0\x05\x00a\x40\x05\x00ZV\x00\0\x01x");
    assert_eq!(damaged.damages, ["an LZF chunk cannot be decompressed"]);
    assert_eq!(damaged.bytes, b"x");
}

#[test]
fn a_stream_without_its_end_is_a_cut_behind_its_last_block() {
    let cut = |bytes: &[u8]| Outcome { bytes: bytes.to_vec(), cuts: 1, damages: Vec::new() };
    let both = [ONE, TWO].concat();
    let lz4 = lz4_block(&[ONE, TWO]);
    assert_eq!(read(&lz4[..lz4.len() - 21]), cut(&both), "no empty block");
    assert_eq!(read(&lz4[..lz4.len() - 22]), cut(ONE), "half a block");
    assert_eq!(read(&lz4[..lz4.len() - 10]), cut(&both), "half a header");
    let snappy = snappy_java(&[ONE, TWO]);
    assert_eq!(read(&snappy[..snappy.len() - 1]), cut(ONE));
    assert_eq!(read(&snappy[..10]), cut(b""));
    let lzf = lzf(&[ONE, TWO]);
    assert_eq!(read(&lzf[..lzf.len() - 1]), cut(ONE));
    let compressed = lzf_data(&[b'x'; 100]);
    let chunk = [b"ZV\x01\0\x05\0\x64", compressed.as_slice()].concat();
    assert_eq!(read(&chunk), whole(&[b'x'; 100]));
    for size in 3..chunk.len() {
        assert_eq!(read(&chunk[..size]), cut(b""), "{size} bytes");
    }
    assert_eq!(read(&lzf[..1]).bytes, b"Z", "too short for any codec");
}

#[test]
fn a_damaged_block_is_passed_over() {
    let rest = [ONE, THREE].concat();
    let lz4 = lz4_block(&[ONE, TWO, THREE]);
    let second = lz4_block(&[ONE]).len() - 21;
    for at in [second, second + 8, second + 9, second + 13, second + 17, second + 21] {
        let mut stream = lz4.clone();
        stream[at] ^= 0x41;
        let outcome = read(&stream);
        assert_eq!(outcome.bytes, rest, "byte {at}");
        assert_eq!((outcome.cuts, outcome.damages.len()), (0, 1), "byte {at}: {outcome:?}");
    }
    let mut snappy = snappy_java(&[ONE, TWO, THREE]);
    let second = snappy_java(&[ONE]).len();
    snappy[second + 4] = 0xff;
    assert_eq!(read(&snappy).bytes, rest);
    let mut lzf = lzf(&[ONE, THREE, ONE]);
    let second = self::lzf(&[ONE]).len();
    lzf[second] = b'X';
    let outcome = read(&lzf);
    assert_eq!(outcome.bytes, [ONE, ONE].concat());
    assert_eq!(outcome.damages, ["an LZF chunk has no valid header"]);
}

#[test]
fn absurd_lengths_cost_no_memory() {
    let absurd: [&[u8]; 5] = [
        b"LZ4Block\x2f\x05\0\0\0\0\0\0\x02\0\0\0\0abcde",
        b"LZ4Block\x2f\xff\xff\xff\x7f\xff\xff\xff\x7f\0\0\0\0abcde",
        b"LZ4Block\x1f\0\0\0\x02\0\0\0\x02\0\0\0\0abcde",
        b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\x7f\xff\xff\xffabc",
        // Five bytes of snappy that claim 4 GiB.
        b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x05\xff\xff\xff\xff\x0f",
    ];
    for stream in absurd {
        let mut decoded = open(stream);
        let mut buffer = [0; 64];
        let kinds: Vec<ErrorKind> =
            (0..4).map_while(|_| decoded.read(&mut buffer).err()).map(|e| e.kind()).collect();
        assert!(!kinds.is_empty() && kinds.len() < 3, "{kinds:?}");
    }
}

#[test]
fn reading_ahead_gives_the_same() {
    let text: Vec<u8> =
        (0..400_000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let blocks: Vec<&[u8]> = text.chunks(60_000).collect();
    let mut stream = lz4_block(&blocks);
    stream[300_000] ^= 1;
    let here = read(&stream);
    assert_eq!(here.damages.len(), 1);
    assert_eq!(read_all(Ahead::of(open(&stream)), usize::MAX), here);
    // Nobody has to read to the end.
    let mut some = [0; 10];
    Ahead::of(open(&stream)).read_exact(&mut some).unwrap();
    assert_eq!(some, text[..10]);
}

type Encode = fn(&[&[u8]]) -> Vec<u8>;

fn framings() -> impl Strategy<Value = Encode> {
    prop_oneof![
        Just(lz4_block as Encode),
        Just(snappy_java as Encode),
        Just(lzf as Encode),
        Just((|blocks| zstd(&blocks.concat())) as Encode),
        Just((|blocks| gzip(&blocks.concat())) as Encode),
        Just((|blocks| lz4_frame(&blocks.concat())) as Encode),
        Just((|blocks| snappy_frame(&blocks.concat())) as Encode),
    ]
}

/// Blocks of bytes with runs, so that there is something to compress.
fn blocks() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let run = (any::<u8>(), 1..200_usize).prop_map(|(byte, count)| vec![byte; count]);
    let words = proptest::collection::vec(any::<u8>(), 1..60);
    let piece = prop_oneof![run, words];
    let block = proptest::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat());
    proptest::collection::vec(block, 1..6)
}

#[test]
fn what_was_compressed_comes_back() {
    fuzz::run(&(framings(), blocks()), |(encode, blocks)| {
        let borrowed: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        prop_assert_eq!(read(&encode(&borrowed)), whole(&blocks.concat()));
        Ok(())
    });
}

#[test]
fn a_cut_stream_is_a_beginning_of_the_whole() {
    fuzz::run(&(framings(), blocks(), any::<prop::sample::Index>()), |(encode, blocks, at)| {
        let borrowed: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        let stream = encode(&borrowed);
        // So short that the codec is not to be recognized, it is plain.
        let least = stream.len().min(10);
        let cut = &stream[..least + at.index(stream.len() - least + 1)];
        let outcome = read(cut);
        prop_assert!(blocks.concat().starts_with(&outcome.bytes));
        prop_assert!(outcome.damages.is_empty(), "{:?}", outcome.damages);
        prop_assert!(outcome.cuts <= 1);
        Ok(())
    });
}

#[test]
fn no_damage_makes_a_panic_or_an_endless_stream() {
    let edits = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8);
    fuzz::run(&(framings(), blocks(), edits), |(encode, blocks, edits)| {
        let borrowed: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        let mut stream = encode(&borrowed);
        for (at, byte) in edits {
            let index = at.index(stream.len());
            stream[index] = byte;
        }
        let raw = Raw::new(Box::new(Cursor::new(stream)));
        if let Ok(Ok(decoded)) = decoder(raw) {
            // No codec here gives more than this for a few kilobytes.
            read_all(decoded, 64 << 20);
        }
        Ok(())
    });
}

#[test]
fn checksums_find_every_changed_byte_of_an_lz4_stream() {
    fuzz::run(&(blocks(), any::<prop::sample::Index>(), 1..=255_u8), |(blocks, at, change)| {
        let borrowed: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        let mut stream = lz4_block(&borrowed);
        let index = at.index(stream.len());
        stream[index] ^= change;
        if Codec::of(&stream) != Codec::Lz4Block {
            return Ok(());
        }
        let outcome = read(&stream);
        // Whatever is given is made of whole blocks, in their order.
        let is_made_of = |kept: u32| {
            let chosen = blocks.iter().enumerate().filter(|(index, _)| kept >> index & 1 == 1);
            chosen.flat_map(|(_, block)| block).eq(&outcome.bytes)
        };
        prop_assert!((0..1 << blocks.len()).any(is_made_of), "bytes that no block has");
        Ok(())
    });
}
