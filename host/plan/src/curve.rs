//! The Hilbert curve that both the simulator and the rewriter order rows by.
//!
//! Coordinates are equal-depth: a value's share of the rows below it, in `bits` binary digits
//! ([`quantize`]). The index is found by J. Skilling's method ("Programming the Hilbert curve",
//! AIP Conference Proceedings 707, 2004):
//! 1. from the highest bit down, undo the exchanges and inversions that the curve makes in each
//!    cell, so that the coordinates become the index in Gray code, dealt out over the dimensions;
//! 2. undo the Gray code;
//! 3. collect the dealt bits, the highest of every dimension first.

/// Bits per dimension that the simulator uses, and a rewriter should.
pub const DEFAULT_BITS: u32 = 16;

/// Returns the position of a cell on the Hilbert curve through a grid of 2^`bits` cells a side.
///
/// With one coordinate the position is the coordinate itself.
///
/// # Panics
/// Panics unless there are 1 to 4 coordinates, each below 2^`bits`, and at most 64 bits in all.
#[must_use]
pub fn hilbert_index(coordinates: &[u32], bits: u32) -> u64 {
    let dimensions = coordinates.len();
    assert!((1..=4).contains(&dimensions), "1 to 4 coordinates, not {dimensions}");
    assert!((1..=32).contains(&bits) && bits as usize * dimensions <= 64, "{bits} bits do not fit");
    assert!(
        coordinates.iter().all(|&coordinate| u64::from(coordinate) < 1 << bits),
        "{coordinates:?} do not lie in a grid of {bits} bits"
    );
    let mut cell = [0u32; 4];
    cell[..dimensions].copy_from_slice(coordinates);
    let cell = &mut cell[..dimensions];
    undo_turns(cell, bits);
    undo_gray_code(cell, bits);
    let mut index = 0;
    for bit in (0..bits).rev() {
        for part in cell.iter() {
            index = index << 1 | u64::from(part >> bit & 1);
        }
    }
    index
}

/// Returns the equal-depth coordinate of a value: the share of rows that lie below it.
///
/// `rows_below` counts rows with a smaller value (nulls are smallest), `rows` all rows. 0 when there
/// are no rows.
#[must_use]
pub fn quantize(rows_below: u64, rows: u64, bits: u32) -> u32 {
    if rows == 0 {
        return 0;
    }
    let cells = 1u128 << bits.min(32);
    let cell = u128::from(rows_below.min(rows)) * cells / u128::from(rows);
    u32::try_from(cell.min(cells - 1)).unwrap_or(u32::MAX)
}

fn undo_turns(cell: &mut [u32], bits: u32) {
    for bit in (1..bits).rev() {
        let mask = 1 << bit;
        let lower = mask - 1;
        for dimension in 0..cell.len() {
            if cell[dimension] & mask == 0 {
                let exchanged = (cell[0] ^ cell[dimension]) & lower;
                cell[0] ^= exchanged;
                cell[dimension] ^= exchanged;
            } else {
                cell[0] ^= lower;
            }
        }
    }
}

fn undo_gray_code(cell: &mut [u32], bits: u32) {
    for dimension in 1..cell.len() {
        cell[dimension] ^= cell[dimension - 1];
    }
    let last = cell[cell.len() - 1];
    let mut flips = 0;
    for bit in (1..bits).rev() {
        if last >> bit & 1 == 1 {
            flips ^= (1 << bit) - 1;
        }
    }
    for part in cell {
        *part ^= flips;
    }
}

/// [`hilbert_index`] by tables, for many cells: the same positions, several times as fast.
///
/// From one bit of the coordinates to the next, all that the method above carries on is which
/// coordinate stands where, which ones are inverted, and the parity of the Gray code so far. These
/// states are few, so a table says for each of them and each digit (a bit of every coordinate) the
/// digit of the position and the next state; a second table does several digits at once.
#[derive(Debug, Clone)]
pub struct HilbertTables {
    /// Dimensions: bits of a digit.
    width: u32,
    bits: u32,
    one: Vec<u32>,
    many: Vec<u32>,
    /// Digits that the second table does at once.
    digits: u32,
}

/// Bits of a table's entry that hold digits of the position; the state is above them.
const DIGIT_BITS: u32 = 8;

impl HilbertTables {
    /// Makes the tables for a grid.
    ///
    /// # Panics
    /// Panics unless there are 1 to 4 dimensions and at most 64 bits in all.
    #[must_use]
    pub fn new(dimensions: usize, bits: u32) -> Self {
        assert!((1..=4).contains(&dimensions), "1 to 4 coordinates, not {dimensions}");
        assert!((1..=32).contains(&bits) && bits as usize * dimensions <= 64, "{bits} bits");
        let one = single_digits(dimensions);
        let digits = [8, 4, 2, 1][dimensions - 1];
        let states = one.len() >> dimensions;
        let width = u32::try_from(dimensions).unwrap_or(u32::MAX);
        let mut many = Vec::with_capacity(states << (width * digits));
        for state in 0..states {
            for cells in 0..1_usize << (width * digits) {
                let mut entry = u32::try_from(state << DIGIT_BITS).unwrap_or(0);
                let mut position = 0;
                for digit in (0..digits).rev() {
                    let cell = cells >> (width * digit) & ((1 << width) - 1);
                    entry = one[(entry >> DIGIT_BITS << width) as usize | cell];
                    position = position << width | entry & ((1 << width) - 1);
                }
                many.push(entry >> DIGIT_BITS << DIGIT_BITS | position);
            }
        }
        Self { width, bits, one, many, digits }
    }

    /// Returns the position of a cell, as [`hilbert_index`] does.
    ///
    /// Coordinates beyond the grid count without their higher bits.
    #[must_use]
    pub fn index(&self, coordinates: &[u32]) -> u64 {
        let width = self.width;
        let cell = |from: u32, count: u32| {
            let mut cells = 0;
            for bit in (from..from + count).rev() {
                for coordinate in coordinates.iter().rev() {
                    cells = cells << 1 | (coordinate >> bit & 1) as usize;
                }
            }
            cells
        };
        let (mut index, mut state, mut bit) = (0_u64, 0, self.bits);
        while !bit.is_multiple_of(self.digits) {
            bit -= 1;
            let entry = self.one[(state << width) as usize | cell(bit, 1)];
            index = index << width | u64::from(entry & ((1 << width) - 1));
            state = entry >> DIGIT_BITS;
        }
        while bit > 0 {
            bit -= self.digits;
            let entry =
                self.many[((state << (width * self.digits)) as usize) | cell(bit, self.digits)];
            index = index << (width * self.digits) | u64::from(entry & ((1 << DIGIT_BITS) - 1));
            state = entry >> DIGIT_BITS;
        }
        index
    }
}

/// What is carried on from one digit to the next: coordinate `from[j]`, inverted where `flips` says
/// so, stands at place j.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    from: Vec<usize>,
    flips: Vec<bool>,
    parity: bool,
}

/// Makes the table of single digits: per state and digit (coordinate 0 lowest) the state after it,
/// and the digit of the position (coordinate 0 highest, as everywhere).
fn single_digits(dimensions: usize) -> Vec<u32> {
    let first =
        Turn { from: (0..dimensions).collect(), flips: vec![false; dimensions], parity: false };
    let mut turns = vec![first];
    let mut table = Vec::new();
    let mut done = 0;
    while done < turns.len() {
        for cell in 0..1_usize << dimensions {
            let turn = turns[done].clone();
            let bits: Vec<bool> = (0..dimensions)
                .map(|place| (cell >> turn.from[place] & 1 == 1) != turn.flips[place])
                .collect();
            let (next, digit) = turn.after(&bits);
            let state = turns.iter().position(|known| *known == next).unwrap_or_else(|| {
                turns.push(next);
                turns.len() - 1
            });
            table.push(u32::try_from(state << DIGIT_BITS).unwrap_or(0) | digit);
        }
        done += 1;
    }
    table
}

impl Turn {
    /// Returns what is carried on after a digit, and the digit of the position.
    fn after(mut self, bits: &[bool]) -> (Self, u32) {
        for (place, bit) in bits.iter().enumerate() {
            if *bit {
                self.flips[0] = !self.flips[0];
            } else {
                self.from.swap(0, place);
                self.flips.swap(0, place);
            }
        }
        let (mut gray, mut digit) = (false, 0);
        for bit in bits {
            gray ^= bit;
            digit = digit << 1 | u32::from(gray != self.parity);
        }
        self.parity ^= gray;
        (self, digit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

    use super::{DEFAULT_BITS, HilbertTables, hilbert_index, quantize};

    /// Walks the whole grid: every index once, every step one cell in one dimension.
    #[track_caller]
    fn check_curve(dimensions: u32, bits: u32) {
        let side = 1u32 << bits;
        let cells = side.pow(dimensions);
        let mut by_index: Vec<Option<Vec<u32>>> = vec![None; cells as usize];
        for cell in 0..cells {
            let coordinates: Vec<u32> =
                (0..dimensions).map(|d| cell / side.pow(d) % side).collect();
            let index = usize::try_from(hilbert_index(&coordinates, bits)).unwrap();
            let place = &mut by_index[index];
            assert_eq!(*place, None, "index {index} twice");
            *place = Some(coordinates);
        }
        for pair in by_index.windows(2) {
            let [Some(from), Some(to)] = pair else { panic!("an index is missing") };
            let step: u32 = from.iter().zip(to).map(|(a, b)| a.abs_diff(*b)).sum();
            assert_eq!(step, 1, "from {from:?} to {to:?}");
        }
    }

    #[test]
    fn curve_visits_every_cell_once_and_steps_to_a_neighbor() {
        for (dimensions, bits) in [(1, 6), (2, 1), (2, 2), (2, 5), (3, 1), (3, 3), (4, 1), (4, 3)] {
            check_curve(dimensions, bits);
        }
    }

    #[test]
    fn first_order_curve_of_the_plane_is_the_textbook_u() {
        let order = [[0, 0], [0, 1], [1, 1], [1, 0]].map(|cell| hilbert_index(&cell, 1));
        assert!(order == [0, 1, 2, 3] || order == [0, 3, 2, 1], "{order:?}");
    }

    fn wide_cell() -> impl Strategy<Value = (Vec<u32>, u32)> {
        (2usize..=4).prop_flat_map(|dimensions| {
            let bits = u32::try_from(64 / dimensions).unwrap();
            let top = u32::try_from((1u64 << bits) - 1).unwrap();
            (prop::collection::vec(0..=top, dimensions), 2..=bits).prop_map(|(cell, bits)| {
                let mask = u32::try_from((1u64 << bits) - 1).unwrap();
                (cell.iter().map(|c| c & mask).collect(), bits)
            })
        })
    }

    proptest! {
        #[test]
        fn index_of_the_coarser_cell_is_a_prefix((cell, bits) in wide_cell()) {
            let dimensions = cell.len();
            let coarser: Vec<u32> = cell.iter().map(|coordinate| coordinate >> 1).collect();
            prop_assert_eq!(
                hilbert_index(&coarser, bits - 1),
                hilbert_index(&cell, bits) >> dimensions
            );
        }

        #[test]
        fn tables_give_the_same_positions((cell, bits) in wide_cell()) {
            let tables = HilbertTables::new(cell.len(), bits);
            prop_assert_eq!(tables.index(&cell), hilbert_index(&cell, bits));
        }

        #[test]
        fn quantized_shares_keep_order(below in any::<u32>(), more in any::<u32>()) {
            let rows = u64::from(below) + u64::from(more) + 1;
            let low = quantize(u64::from(below), rows, DEFAULT_BITS);
            let high = quantize(rows - 1, rows, DEFAULT_BITS);
            prop_assert!(low <= high && high < 1 << DEFAULT_BITS);
        }
    }

    #[test]
    fn quantize_spreads_rows_evenly() {
        let cells: Vec<u32> = (0..8).map(|row| quantize(row, 8, 2)).collect();
        assert_eq!(cells, [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(quantize(0, 0, 4), 0);
        assert_eq!(quantize(u64::MAX, u64::MAX, 32), u32::MAX);
    }
}
