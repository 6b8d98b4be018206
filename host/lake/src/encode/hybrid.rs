//! Parquet's hybrid of run lengths and bit packing ([RLE]).
//!
//! 1. Numbers are looked at eight at a time; a run of equal ones that is long enough becomes a pair of
//!    length and value.
//! 2. Everything between two runs is bit-packed in groups of eight, lowest bits first.
//!
//! [RLE]: https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE

/// Numbers that are packed together.
const GROUP: usize = 8;

/// Returns how many bits the numbers below `count` need.
pub(super) const fn bits_for(count: usize) -> u32 {
    match count {
        0 | 1 => 0,
        _ => usize::BITS - (count - 1).leading_zeros(),
    }
}

/// Encodes numbers of at most `bits` bits each.
pub(super) fn encode(numbers: &[u32], bits: u32, out: &mut Vec<u8>) {
    out.reserve(numbers.len() * bits as usize / 8 + 16);
    let shortest = shortest_run(bits);
    let (mut packed_from, mut at) = (0, 0);
    while at < numbers.len() {
        let run = run_length(&numbers[at..]);
        if run >= shortest {
            pack(&numbers[packed_from..at], bits, out);
            repeat(numbers[at], run, bits, out);
            at += run;
            packed_from = at;
        } else {
            at = (at + GROUP).min(numbers.len());
        }
    }
    pack(&numbers[packed_from..], bits, out);
}

/// Encodes one number that stands `count` times.
pub(super) fn repeat(number: u32, count: usize, bits: u32, out: &mut Vec<u8>) {
    varint(count << 1, out);
    out.extend_from_slice(&number.to_le_bytes()[..bits.div_ceil(8) as usize]);
}

/// A run costs its own header and value, and the header of what follows it.
const fn shortest_run(bits: u32) -> usize {
    match bits {
        0 => 1,
        1 => 5 * GROUP,
        2..=4 => 2 * GROUP,
        _ => GROUP,
    }
}

fn run_length(numbers: &[u32]) -> usize {
    let first = numbers[0];
    numbers.iter().position(|number| *number != first).unwrap_or(numbers.len())
}

/// Writes a bit-packed run; the last group is filled up with zeros.
fn pack(numbers: &[u32], bits: u32, out: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    let groups = numbers.len().div_ceil(GROUP);
    varint(groups << 1 | 1, out);
    let end = out.len() + groups * bits as usize;
    let (mut held, mut held_bits) = (0_u64, 0);
    for number in numbers {
        held |= u64::from(*number) << held_bits;
        held_bits += bits;
        if held_bits >= u32::BITS {
            out.extend_from_slice(&held.to_le_bytes()[..4]);
            held >>= u32::BITS;
            held_bits -= u32::BITS;
        }
    }
    out.extend_from_slice(&held.to_le_bytes()[..held_bits.div_ceil(8) as usize]);
    out.resize(end, 0);
}

fn varint(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::{bits_for, encode};

    /// Reads what [`encode`] wrote, by the format's text.
    fn decode(mut bytes: &[u8], bits: u32, count: usize) -> Vec<u32> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let (mut header, mut shift) = (0_usize, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                header |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            if header & 1 == 0 {
                let width = bits.div_ceil(8) as usize;
                let mut value = [0; 4];
                value[..width].copy_from_slice(&bytes[..width]);
                bytes = &bytes[width..];
                numbers.extend(std::iter::repeat_n(u32::from_le_bytes(value), header >> 1));
            } else {
                let length = (header >> 1) * bits as usize;
                let bit = |at: usize| u32::from(bytes[at / 8] >> (at % 8) & 1);
                numbers.extend((0..(header >> 1) * 8).map(|number| {
                    (0..bits as usize).fold(0, |v, b| v | bit(number * bits as usize + b) << b)
                }));
                bytes = &bytes[length..];
            }
        }
        numbers.truncate(count);
        assert!(bytes.is_empty(), "{} bytes left over", bytes.len());
        numbers
    }

    #[track_caller]
    fn check(numbers: &[u32], bits: u32) {
        let mut bytes = Vec::new();
        encode(numbers, bits, &mut bytes);
        assert_eq!(decode(&bytes, bits, numbers.len()), numbers, "{bits} bits");
    }

    #[test]
    fn numbers_of_every_width_come_back() {
        for bits in 1..=32_u32 {
            let mask = u32::MAX >> (32 - bits);
            for length in [0, 1, 7, 8, 9, 63, 64, 65, 1_000] {
                let scattered: Vec<u32> =
                    (0..length).map(|n: u32| n.wrapping_mul(2_654_435_761) & mask).collect();
                check(&scattered, bits);
                let runs: Vec<u32> = (0..length).map(|n| (n / 100) & mask).collect();
                check(&runs, bits);
                let mixed: Vec<u32> = (0..length)
                    .map(|n| if n % 90 < 50 { 1 & mask } else { n.wrapping_mul(40_503) & mask })
                    .collect();
                check(&mixed, bits);
            }
        }
    }

    #[test]
    fn a_single_value_needs_no_bits() {
        check(&[0; 100], 0);
    }

    #[test]
    fn widths_are_those_of_the_largest_number() {
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(bits_for), [0, 0, 1, 2, 2, 3, 8, 9]);
    }
}
