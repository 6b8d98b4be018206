//! Bitmaps, least significant bit first.

/// A bitmap over `rows` rows.
#[derive(Debug, Clone, Copy)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    rows: usize,
}

impl<'a> Bits<'a> {
    /// Wraps a bitmap; `None` when it has not exactly the bytes that `rows` rows need.
    #[must_use]
    pub const fn new(bytes: &'a [u8], rows: usize) -> Option<Self> {
        if bytes.len() == rows.div_ceil(8) { Some(Self { bytes, rows }) } else { None }
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Tells whether the bit of `row` is set; rows beyond the last are clear.
    #[must_use]
    pub fn get(&self, row: usize) -> bool {
        row < self.rows && self.bytes[row / 8] >> (row % 8) & 1 == 1
    }

    /// Iterates over the rows whose bit is set, in order, skipping empty bytes whole.
    pub fn ones(&self) -> impl Iterator<Item = usize> + use<'a> {
        let rows = self.rows;
        self.bytes
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte != 0)
            .flat_map(|(index, &byte)| Ones(byte).map(move |bit| index * 8 + bit))
            .take_while(move |row| *row < rows)
    }
}

/// The set bits of one byte.
struct Ones(u8);

impl Iterator for Ones {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;
    use alloc::vec::Vec;

    #[test]
    fn ones_are_the_set_rows_and_ignore_bits_after_the_last() {
        let bytes = [0b1000_0001, 0, 0b1111_0100];
        let bits = Bits::new(&bytes, 20).expect("20 rows take 3 bytes");
        assert_eq!(bits.ones().collect::<Vec<_>>(), [0, 7, 18]);
        assert!(bits.get(18) && !bits.get(19) && !bits.get(20));
        assert!(Bits::new(&bytes, 16).is_none() && Bits::new(&bytes, 25).is_none());
    }
}
