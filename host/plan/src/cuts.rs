//! Weighted cuts: nested ranges, in which each key has as many parts as it deserves.
//!
//! A Hilbert curve gives every key the same resolution. Here the rows are divided by the first key
//! into n₁ parts of equal rows, each part by the second key into n₂, and so on: a cell is a file.
//! 1. The stored nᵢ are proportions. For F files they are scaled by one factor, so that their product
//!    is F; a key that would get less than one part gets one.
//! 2. A part is a whole number of files, and its border the change of value nearest to the equal share
//!    of rows. So all rows of one value stay together, nulls first, and the parts of one division
//!    share no value.
//! 3. A value that fills several files is a part of several files, which the next keys divide; after
//!    the last key the first has its turn again. What no key divides is one cell of several files.
//! 4. Inside a cell the rows follow a Hilbert curve over the shares of rows within the cell's own
//!    ranges, so that row groups and pages are narrow too. Measured on the 40 statements of
//!    `examples/logs/w1` at scale factor 0.1 with 16 pages a file, this skips 0.711 of the rows; rows
//!    by the last key alone 0.686, a grid of 16 that fits the pages exactly 0.718.
//!
//! Example: 25 × 4 for 100 files is 25 ranges of the first key with four of the second in each; for
//! 25 files it is 12 or 13 ranges with two.

use crate::curve::{hilbert_index, quantize};

/// Bits of a key below the number of its cell.
pub const CELL_SHIFT: u32 = 40;
/// Cells at most: what is left of a 64-bit key.
pub const MAX_CELLS: u32 = 1 << (64 - CELL_SHIFT);

/// Bits of a coordinate inside a cell.
const INSIDE_BITS: u32 = 16;

/// The cells that a sample of rows is divided into, and the rule that finds the cell of any row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cells {
    root: Node,
    cells: Vec<Cell>,
    /// Sample rows in the order of their cells.
    rows: Vec<usize>,
    /// Per key and rank, how many sample rows have a lower rank.
    rows_below: Vec<Vec<u64>>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Files it fills: several where no key has a change of value near enough to their borders.
    pub files: u32,
    /// Where its rows lie among the sample's.
    rows: std::ops::Range<usize>,
    /// Per key, the smallest and the largest rank.
    spans: Vec<(u32, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Cell(usize),
    Cut {
        key: usize,
        /// The first rank of every part but the first.
        borders: Vec<u32>,
        parts: Vec<Self>,
    },
}

impl Cells {
    /// Divides a sample into cells for a number of files.
    ///
    /// `ranks` holds one column per key, in the order of the cuts: equal values have equal ranks,
    /// larger values larger ones, nulls the smallest. `parts` are the proportions, one per key.
    ///
    /// # Panics
    /// Panics unless there are as many columns as parts, one to four, of one length, and no part is 0.
    #[must_use]
    pub fn new(ranks: &[&[u32]], parts: &[u32], files: u32) -> Self {
        assert!((1..=4).contains(&ranks.len()), "1 to 4 keys, not {}", ranks.len());
        assert!(parts.len() == ranks.len(), "{} parts for {} keys", parts.len(), ranks.len());
        assert!(parts.iter().all(|part| *part > 0), "no part of {parts:?} may be 0");
        let count = ranks[0].len();
        assert!(ranks.iter().all(|column| column.len() == count), "columns of one length");
        let mut division = Division { ranks, parts, cells: Vec::new() };
        let mut rows: Vec<usize> = (0..count).collect();
        let root = division.divide(&mut rows, Place::default(), files.clamp(1, MAX_CELLS));
        let rows_below = ranks.iter().map(|column| rows_below(column)).collect();
        Self { root, cells: division.cells, rows, rows_below }
    }

    /// Returns the cells in the order of their keys.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns the sample's rows in a cell.
    #[must_use]
    pub fn rows_of(&self, cell: &Cell) -> &[usize] {
        &self.rows[cell.rows.clone()]
    }

    /// Returns the key of a row with these ranks, which need not be in the sample: the number of its
    /// cell above [`CELL_SHIFT`] bits, its place inside below.
    ///
    /// # Panics
    /// Panics unless there is a rank for every key.
    #[must_use]
    pub fn key(&self, ranks: &[u32]) -> u64 {
        assert!(ranks.len() == self.rows_below.len(), "{} ranks", ranks.len());
        let mut node = &self.root;
        let number = loop {
            match node {
                Node::Cell(number) => break *number,
                Node::Cut { key, borders, parts } => {
                    node = &parts[borders.partition_point(|border| *border <= ranks[*key])];
                }
            }
        };
        ((number as u64) << CELL_SHIFT) | self.inside(&self.cells[number], ranks)
    }

    /// The place in a cell: along a Hilbert curve through the keys that vary there.
    fn inside(&self, cell: &Cell, ranks: &[u32]) -> u64 {
        let varying = cell.spans.iter().filter(|(low, high)| low < high).count();
        let Some(bits) = u32::try_from(varying).ok().and_then(|keys| CELL_SHIFT.checked_div(keys))
        else {
            return 0;
        };
        let bits = bits.min(INSIDE_BITS);
        let mut point = [0; 4];
        let keys = cell.spans.iter().zip(ranks).zip(&self.rows_below);
        let keys = keys.filter(|(((low, high), _), _)| low < high);
        for (coordinate, (((low, high), rank), below)) in point.iter_mut().zip(keys) {
            let below = |rank: u32| below[rank as usize];
            let first = below(*low);
            let rank = *rank.clamp(low, high);
            *coordinate = quantize(below(rank) - first, below(high + 1) - first, bits);
        }
        hilbert_index(&point[..varying], bits)
    }
}

/// Where a division stands: the key that has its turn, and how many keys before it did not divide.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    level: usize,
    idle: usize,
    /// Position of the rows among all rows.
    offset: usize,
}

#[derive(Debug)]
struct Division<'r> {
    ranks: &'r [&'r [u32]],
    parts: &'r [u32],
    cells: Vec<Cell>,
}

impl Division<'_> {
    fn divide(&mut self, rows: &mut [usize], place: Place, files: u32) -> Node {
        let Place { level, idle, offset } = place;
        let keys = self.ranks.len();
        if files <= 1 || rows.len() <= 1 || idle == 2 * keys {
            return self.cell(rows, offset, files);
        }
        let next = (level + 1) % keys;
        let column = self.ranks[level];
        // Once no key takes its own share, any key takes all.
        let wanted = if idle < keys { scaled(&self.parts[level..], files) } else { files };
        let cuts = if wanted > 1 {
            rows.sort_unstable_by_key(|row| column[*row]);
            borders(rows, column, wanted, files)
        } else {
            Vec::new()
        };
        if cuts.is_empty() {
            return self.divide(rows, Place { level: next, idle: idle + 1, offset }, files);
        }
        let mut parts = Vec::with_capacity(cuts.len() + 1);
        let ends = cuts.iter().copied().chain([(rows.len(), files)]);
        let (mut from, mut first_file) = (0, 0);
        for (to, end_file) in ends {
            let place = Place { level: next, idle: 0, offset: offset + from };
            parts.push((from..to, place, end_file - first_file));
            (from, first_file) = (to, end_file);
        }
        let borders = cuts.iter().map(|(at, _)| column[rows[*at]]).collect();
        let parts = parts
            .into_iter()
            .map(|(range, place, files)| self.divide(&mut rows[range], place, files))
            .collect();
        Node::Cut { key: level, borders, parts }
    }

    fn cell(&mut self, rows: &[usize], offset: usize, files: u32) -> Node {
        let span = |column: &&[u32]| {
            let ranks = || rows.iter().map(|row| column[*row]);
            (ranks().min().unwrap_or(0), ranks().max().unwrap_or(0))
        };
        let spans = self.ranks.iter().map(span).collect();
        self.cells.push(Cell { files, rows: offset..offset + rows.len(), spans });
        Node::Cell(self.cells.len() - 1)
    }
}

/// Returns the parts of the first key when these keys divide rows into so many files.
fn scaled(parts: &[u32], files: u32) -> u32 {
    let exact = parts.iter().try_fold(1u32, |product, part| product.checked_mul(*part));
    match parts {
        [] => return 1,
        [_] => return files,
        [first, ..] if exact == Some(files) => return *first,
        _ => {}
    }
    let mut left: Vec<f64> = parts.iter().copied().map(f64::from).collect();
    loop {
        let product: f64 = left.iter().product();
        let factor = (f64::from(files) / product).powf(1.0 / left.len() as f64);
        if left[0] * factor < 1.0 {
            return 1;
        }
        let keys = left.len();
        left.retain(|part| part * factor >= 1.0);
        if left.len() == keys {
            return whole(left[0] * factor).clamp(1, files);
        }
    }
}

/// Rounds a number of parts.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, which is right here"
)]
fn whole(parts: f64) -> u32 {
    parts.round() as u32
}

/// Places the borders between parts of sorted rows: the position of each and the files before it.
fn borders(rows: &[usize], column: &[u32], wanted: u32, files: u32) -> Vec<(usize, u32)> {
    let rank = |position: usize| column[rows[position]];
    let mut placed: Vec<(usize, u32)> = Vec::new();
    for part in 1..wanted {
        let file = nearest_share(u64::from(part), u64::from(wanted), u64::from(files));
        let aim = position(nearest_share(file, u64::from(files), rows.len() as u64), rows.len());
        let value = rank(aim);
        let start = rows.partition_point(|row| column[*row] < value);
        let end = rows.partition_point(|row| column[*row] <= value);
        let at = if aim - start <= end - aim { start } else { end };
        let file = nearest_share(at as u64, rows.len() as u64, u64::from(files));
        let file = u32::try_from(file).unwrap_or(files);
        let (last_at, last_file) = placed.last().copied().unwrap_or((0, 0));
        if at > last_at && at < rows.len() && file > last_file && file < files {
            placed.push((at, file));
        }
    }
    placed
}

/// Rounds `whole` · `part` / `parts`.
fn nearest_share(part: u64, parts: u64, whole: u64) -> u64 {
    let doubled = 2 * u128::from(whole) * u128::from(part);
    let parts = u128::from(parts.max(1));
    u64::try_from((doubled + parts) / (2 * parts)).unwrap_or(u64::MAX)
}

fn position(share: u64, length: usize) -> usize {
    usize::try_from(share).unwrap_or(usize::MAX).min(length - 1)
}

/// Counts the rows below each rank, and below the one after the last.
fn rows_below(column: &[u32]) -> Vec<u64> {
    let ranks = column.iter().max().map_or(0, |rank| *rank as usize + 1);
    let mut below = vec![0; ranks + 1];
    for rank in column {
        below[*rank as usize + 1] += 1;
    }
    for rank in 1..below.len() {
        below[rank] += below[rank - 1];
    }
    below
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};

    use super::{CELL_SHIFT, Cells, scaled};
    use crate::random::SplitMix64;

    fn shuffled(count: u32, seed: u64) -> Vec<u32> {
        let mut values: Vec<u32> = (0..count).collect();
        let mut random = SplitMix64::new(seed);
        for last in (1..values.len()).rev() {
            values.swap(last, random.below(last + 1));
        }
        values
    }

    fn divided(columns: &[Vec<u32>], parts: &[u32], files: u32) -> Cells {
        let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
        Cells::new(&columns, parts, files)
    }

    fn point(columns: &[Vec<u32>], row: usize) -> Vec<u32> {
        columns.iter().map(|column| column[row]).collect()
    }

    #[test]
    fn proportions_are_scaled_to_the_files() {
        assert_eq!((scaled(&[25, 4], 100), scaled(&[4], 7)), (25, 7));
        assert_eq!((scaled(&[25, 4], 25), scaled(&[25, 4], 400)), (13, 50));
        assert_eq!((scaled(&[25, 4], 3), scaled(&[4, 25], 3)), (3, 1));
        assert_eq!((scaled(&[5, 10, 2], 100), scaled(&[10, 2], 20)), (5, 10));
        assert_eq!((scaled(&[2, 2, 2], 1), scaled(&[u32::MAX, u32::MAX], 9)), (1, 3));
    }

    #[test]
    fn independent_keys_make_a_grid_of_equal_cells() {
        let columns = [shuffled(10_000, 1), shuffled(10_000, 2)];
        let cells = divided(&columns, &[25, 4], 100);
        assert_eq!(cells.cells().len(), 100);
        for (number, cell) in cells.cells().iter().enumerate() {
            assert_eq!((cell.files, cells.rows_of(cell).len()), (1, 100));
            let slab = u32::try_from(number / 4).unwrap();
            let is_in_slab = |row: &usize| columns[0][*row] / 400 == slab;
            assert!(cells.rows_of(cell).iter().all(is_in_slab), "cell {number}");
        }
    }

    #[test]
    fn value_that_fills_files_is_divided_by_the_next_key() {
        // Rank 1 holds 80 of 100 rows; below and above it are ten of one value each.
        let hot: Vec<u32> =
            (0..100).map(|row| u32::from(row >= 10) + u32::from(row >= 90)).collect();
        let columns = [hot, shuffled(100, 1)];
        let cells = divided(&columns, &[5, 2], 10);
        let shape: Vec<(u32, usize)> =
            cells.cells().iter().map(|cell| (cell.files, cells.rows_of(cell).len())).collect();
        assert_eq!(shape, [(1, 10); 10]);
        let inner = &cells.cells()[1..9];
        assert!(
            inner.iter().all(|cell| cells.rows_of(cell).iter().all(|row| columns[0][*row] == 1))
        );
    }

    #[test]
    fn rows_that_no_key_divides_are_one_cell_of_several_files() {
        let cells = divided(&[vec![0; 50], vec![7; 50]], &[5, 2], 10);
        assert_eq!(cells.cells().len(), 1);
        assert_eq!((cells.cells()[0].files, cells.key(&[0, 7])), (10, 0));
        let one_varies = divided(&[vec![0; 50], shuffled(50, 1)], &[8, 2], 10);
        assert_eq!(one_varies.cells().len(), 10);
        let first_varies = divided(&[shuffled(50, 1), vec![0; 50]], &[2, 8], 2);
        assert_eq!(first_varies.cells().len(), 2);
    }

    #[test]
    fn ranks_outside_the_sample_fall_into_the_outer_cells() {
        let column: Vec<u32> = (10..20).collect();
        let cells = divided(&[column.clone(), column], &[5, 2], 10);
        assert_eq!(cells.key(&[0, 0]) >> CELL_SHIFT, 0);
        assert_eq!(cells.key(&[1_000, 1_000]) >> CELL_SHIFT, 9);
    }

    #[test]
    fn empty_sample_is_one_cell() {
        let cells = divided(&[vec![], vec![]], &[5, 2], 10);
        assert_eq!((cells.cells().len(), cells.key(&[3, 4])), (1, 0));
    }

    /// Columns of few and of many values, proportions and a number of files.
    fn problem() -> impl Strategy<Value = (Vec<Vec<u32>>, Vec<u32>, u32)> {
        (1usize..=4, 1usize..300).prop_flat_map(|(keys, rows)| {
            let column = (1u32..60).prop_flat_map(move |top| prop::collection::vec(0..top, rows));
            let columns = prop::collection::vec(column, keys);
            (columns, prop::collection::vec(1u32..30, keys), 1u32..200)
        })
    }

    proptest! {
        #[test]
        fn every_row_is_in_the_one_cell_that_its_key_names((columns, parts, files) in problem()) {
            let cells = divided(&columns, &parts, files);
            let mut seen = vec![0; columns[0].len()];
            for (number, cell) in cells.cells().iter().enumerate() {
                prop_assert!(!cells.rows_of(cell).is_empty());
                for row in cells.rows_of(cell) {
                    seen[*row] += 1;
                    let key = cells.key(&point(&columns, *row));
                    prop_assert_eq!(key >> CELL_SHIFT, number as u64);
                }
            }
            prop_assert!(seen.iter().all(|count| *count == 1), "{:?}", seen);
            let total: u32 = cells.cells().iter().map(|cell| cell.files).sum();
            prop_assert_eq!(total, files);
        }

        #[test]
        fn cells_share_no_point((columns, parts, files) in problem()) {
            let cells = divided(&columns, &parts, files);
            for (number, cell) in cells.cells().iter().enumerate() {
                for other in &cells.cells()[..number] {
                    let meet = cell.spans.iter().zip(&other.spans).all(|(a, b)| a.0 <= b.1 && b.0 <= a.1);
                    prop_assert!(!meet, "{:?} and {:?}", cell, other);
                }
            }
        }

        #[test]
        fn distinct_values_make_cells_of_equal_depth(
            files in 1u32..120, first in 1u32..20, second in 1u32..20, seed in 0u64..1000,
        ) {
            let columns = [shuffled(6_000, seed), shuffled(6_000, seed + 1)];
            let cells = divided(&columns, &[first, second], files);
            prop_assert_eq!(cells.cells().len(), files as usize);
            let fair = 6_000 / files as usize;
            for cell in cells.cells() {
                prop_assert!(cells.rows_of(cell).len().abs_diff(fair) <= 2, "{:?}", cell.files);
            }
        }
    }
}
