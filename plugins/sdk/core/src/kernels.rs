//! Loops that do eight elements per round.

use alloc::vec::Vec;

use crate::Bits;

/// Elements per round: one byte of a bitmap.
const LANES: usize = 8;

/// Asks `keep` about each value and packs the answers into a bitmap. Bits after the last are zero.
#[inline]
#[must_use]
pub fn pack<T: Copy>(values: &[T], keep: impl Fn(T) -> bool) -> Vec<u8> {
    let (rounds, rest) = values.as_chunks::<LANES>();
    let mut bitmap = Vec::with_capacity(values.len().div_ceil(LANES));
    for round in rounds {
        let mut byte = 0;
        for (bit, &value) in round.iter().enumerate() {
            byte |= u8::from(keep(value)) << bit;
        }
        bitmap.push(byte);
    }
    if !rest.is_empty() {
        let last = rest.iter().enumerate().map(|(bit, &value)| u8::from(keep(value)) << bit);
        bitmap.push(last.fold(0, |byte, bit| byte | bit));
    }
    bitmap
}

/// Clears the bits of `bitmap` that are clear in `other`.
pub fn and(bitmap: &mut [u8], other: Bits<'_>) {
    for (byte, other) in bitmap.iter_mut().zip(other.bytes()) {
        *byte &= other;
    }
}

/// Sets the bits of `bitmap` that are clear in `other`, within the first `rows`.
pub fn or_not(bitmap: &mut [u8], other: Bits<'_>, rows: usize) {
    for (byte, other) in bitmap.iter_mut().zip(other.bytes()) {
        *byte |= !other;
    }
    if !rows.is_multiple_of(LANES)
        && let Some(last) = bitmap.last_mut()
    {
        *last &= (1 << (rows % LANES)) - 1;
    }
}

/// Calls `visit` with the group and the value of each row, in order.
///
/// With `taken`, only rows whose bit is set are visited.
#[inline]
pub fn for_each_row<T: Copy>(
    groups: &[u32],
    values: &[T],
    taken: Option<Bits<'_>>,
    mut visit: impl FnMut(usize, T),
) {
    if let Some(taken) = taken {
        for row in taken.ones() {
            if let (Some(&group), Some(&value)) = (groups.get(row), values.get(row)) {
                visit(group as usize, value);
            }
        }
        return;
    }
    let (group_rounds, group_rest) = groups.as_chunks::<LANES>();
    let (value_rounds, value_rest) = values.as_chunks::<LANES>();
    for (groups, values) in group_rounds.iter().zip(value_rounds) {
        for lane in 0..LANES {
            visit(groups[lane] as usize, values[lane]);
        }
    }
    for (&group, &value) in group_rest.iter().zip(value_rest) {
        visit(group as usize, value);
    }
}

/// Returns the smallest and the largest value; `None` of nothing. NaN must not be among them.
#[must_use]
pub fn extremes(values: &[f64]) -> Option<(f64, f64)> {
    let &first = values.first()?;
    let (mut lows, mut highs) = ([first; LANES], [first; LANES]);
    let (rounds, rest) = values.as_chunks::<LANES>();
    for round in rounds {
        for lane in 0..LANES {
            let value = round[lane];
            lows[lane] = if value < lows[lane] { value } else { lows[lane] };
            highs[lane] = if value > highs[lane] { value } else { highs[lane] };
        }
    }
    let smaller = |low: f64, &value: &f64| if value < low { value } else { low };
    let larger = |high: f64, &value: &f64| if value > high { value } else { high };
    let low = lows.iter().chain(rest).fold(first, smaller);
    let high = highs.iter().chain(rest).fold(first, larger);
    Some((low, high))
}

/// Returns the largest number; `None` of nothing.
#[must_use]
pub fn largest(values: &[u32]) -> Option<u32> {
    let (rounds, rest) = values.as_chunks::<LANES>();
    let mut highs = [0; LANES];
    for round in rounds {
        for lane in 0..LANES {
            highs[lane] = if round[lane] > highs[lane] { round[lane] } else { highs[lane] };
        }
    }
    if values.is_empty() { None } else { highs.iter().chain(rest).copied().max() }
}

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use super::{Bits, and, extremes, for_each_row, largest, or_not, pack};

    #[test]
    fn pack_sets_bit_per_kept_value_and_leaves_the_tail_zero() {
        let values: Vec<i64> = (0..11).collect();
        assert_eq!(pack(&values, |value| value % 3 == 0), [0b0100_1001, 0b0000_0010]);
        assert_eq!(pack(&values, |_| true), [0xff, 0b0000_0111]);
        assert!(pack::<i64>(&[], |_| true).is_empty());
    }

    #[test]
    fn nulls_are_dropped_by_and_and_kept_by_or_not() {
        let validity = [0b1111_0000, 0b0000_0001];
        let bits = Bits::new(&validity, 10).expect("10 rows take 2 bytes");
        let mut dropped = [0b1010_1010, 0b11];
        and(&mut dropped, bits);
        assert_eq!(dropped, [0b1010_0000, 0b01]);
        let mut kept = [0b1010_0000, 0b00];
        or_not(&mut kept, bits, 10);
        assert_eq!(kept, [0b1010_1111, 0b10]);
    }

    #[test]
    fn rows_are_visited_in_order_with_and_without_a_selection() {
        let groups: Vec<u32> = (0..10).map(|row| row % 2).collect();
        let values: Vec<i64> = (0..10).collect();
        let mut sums = vec![0; 2];
        for_each_row(&groups, &values, None, |group, value| sums[group] += value);
        assert_eq!(sums, [20, 25]);
        let selection = [0b0000_0110, 0b10];
        let bits = Bits::new(&selection, 10).expect("10 rows take 2 bytes");
        let mut seen = Vec::new();
        for_each_row(&groups, &values, Some(bits), |group, value| seen.push((group, value)));
        assert_eq!(seen, [(1, 1), (0, 2), (1, 9)]);
    }

    #[test]
    fn extremes_are_found_in_full_rounds_and_in_the_rest() {
        assert_eq!(extremes(&[]), None);
        assert_eq!(extremes(&[3.0]), Some((3.0, 3.0)));
        let mut values = vec![5.0; 19];
        values[2] = -1.0;
        values[17] = 9.0;
        assert_eq!(extremes(&values), Some((-1.0, 9.0)));
    }

    #[test]
    fn largest_is_found_in_full_rounds_and_in_the_rest() {
        assert_eq!(largest(&[]), None);
        assert_eq!(largest(&[0]), Some(0));
        let mut values: Vec<u32> = (0..19).collect();
        assert_eq!(largest(&values), Some(18));
        values[3] = u32::MAX;
        assert_eq!(largest(&values), Some(u32::MAX));
    }
}
