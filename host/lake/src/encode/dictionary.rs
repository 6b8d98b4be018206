//! Finds out whether a column chunk is smaller by a dictionary, and makes it.
//!
//! 1. A dictionary pays where its values and the numbers that stand for them take less than the values
//!    themselves; how many distinct values that allows is known before they are counted.
//! 2. Integers within a narrow span are numbered through a table, in ascending order.
//! 3. Others are numbered through a hash table in the order they come, after a sample of them has not
//!    shown that nearly all are distinct. Counting ends where a dictionary stops paying.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::{hybrid::bits_for, values::Value};

/// Most bytes of a dictionary, the Parquet writers' usual limit: readers hold it in memory.
const DICTIONARY_BYTES_MAX: usize = 1 << 20;
/// Integers within this span are numbered through a table in any case.
const TABLE_SPAN_MIN: u64 = 1 << 16;
/// One of so many values is looked at before all are.
const SAMPLE_STEP: usize = 16;
/// Fewest values of which a sample is worth its time.
const SAMPLED_MIN: usize = 1 << 12;
/// Share of distinct values in a sample, in percent, above which a dictionary will not pay: with as many
/// rows as a sample step per sampled one, two thirds of all values are distinct then.
const SAMPLE_DISTINCT_MAX: usize = 95;

/// Distinct values, and for each row the number of its value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dictionary<T> {
    pub(super) values: Vec<T>,
    pub(super) codes: Vec<u32>,
}

impl<T: Value> Dictionary<T> {
    /// Bits of a code.
    pub(super) const fn bits(&self) -> u32 {
        bits_for(self.values.len())
    }

    /// Lists for each code the place of its value among all, and for each place its code.
    pub(super) fn ranks(&self) -> (Vec<u32>, Vec<u32>) {
        let codes = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        let mut ordered: Vec<u32> = (0..codes).collect();
        ordered.sort_unstable_by_key(|code| self.values[*code as usize]);
        let mut ranks = vec![0; ordered.len()];
        for (rank, code) in (0..).zip(&ordered) {
            ranks[*code as usize] = rank;
        }
        (ranks, ordered)
    }
}

/// Makes a dictionary where it pays.
pub(super) fn dictionary<T: Value>(values: &[T]) -> Option<Dictionary<T>> {
    if values.first()?.integer().is_some() {
        let (min, max) = T::min_and_max(values)?;
        let (min, max) = (min.integer()?, max.integer()?);
        let span = max.abs_diff(min);
        if span < TABLE_SPAN_MIN.max(2 * values.len() as u64) {
            return by_table(values, min, usize::try_from(span).ok()?);
        }
    }
    by_hash(values)
}

/// Tells whether distinct values of so many bytes are worth it.
fn pays(distinct: usize, distinct_bytes: usize, rows: usize, plain_bytes: usize) -> bool {
    let coded = distinct_bytes + rows * bits_for(distinct) as usize / 8;
    distinct_bytes <= DICTIONARY_BYTES_MAX && coded < plain_bytes
}

fn by_table<T: Value>(values: &[T], min: i64, span: usize) -> Option<Dictionary<T>> {
    let place = |value: &T| {
        let distance = value.integer().map_or(0, |integer| integer.abs_diff(min));
        usize::try_from(distance).unwrap_or(usize::MAX)
    };
    // First the row of a value plus one, zero for none; then the value's code.
    let mut table = vec![0_u32; span + 1];
    for (row, value) in (1..).zip(values) {
        table[place(value)] = row;
    }
    let mut distinct = Vec::new();
    for slot in table.iter_mut().filter(|slot| **slot != 0) {
        distinct.push(values[*slot as usize - 1]);
        *slot = u32::try_from(distinct.len() - 1).ok()?;
    }
    let bytes: usize = distinct.iter().map(Value::plain_bytes).sum();
    let plain_bytes = values.iter().map(Value::plain_bytes).sum();
    if !pays(distinct.len(), bytes, values.len(), plain_bytes) {
        return None;
    }
    let codes = values.iter().map(|value| table[place(value)]).collect();
    Some(Dictionary { values: distinct, codes })
}

fn by_hash<T: Value>(values: &[T]) -> Option<Dictionary<T>> {
    let plain_bytes: usize = values.iter().map(Value::plain_bytes).sum();
    if values.len() >= SAMPLED_MIN {
        let mut sample = Numbered::default();
        let sampled = values.iter().step_by(SAMPLE_STEP).map(|value| sample.code(*value)).count();
        if sample.values.len() * 100 > sampled * SAMPLE_DISTINCT_MAX {
            return None;
        }
    }
    let mut numbered = Numbered::default();
    let mut codes = Vec::with_capacity(values.len());
    let most = plain_bytes.min(DICTIONARY_BYTES_MAX);
    for value in values {
        codes.push(numbered.code(*value));
        if numbered.bytes > most {
            return None;
        }
    }
    let pays = pays(numbered.values.len(), numbered.bytes, values.len(), plain_bytes);
    pays.then_some(Dictionary { values: numbered.values, codes })
}

/// Values numbered in the order they came.
struct Numbered<T> {
    values: Vec<T>,
    bytes: usize,
    table: HashTable<u32>,
    hasher: FixedState,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        let (values, table, hasher) = (Vec::new(), HashTable::new(), FixedState::default());
        Self { values, bytes: 0, table, hasher }
    }
}

impl<T: Value> Numbered<T> {
    fn code(&mut self, value: T) -> u32 {
        let Self { values, bytes, table, hasher } = self;
        let hash = hasher.hash_one(value);
        let is_same = |code: &u32| values[*code as usize] == value;
        if let Some(code) = table.find(hash, is_same) {
            return *code;
        }
        let code = u32::try_from(values.len()).unwrap_or(u32::MAX);
        values.push(value);
        *bytes += value.plain_bytes();
        table.insert_unique(hash, code, |code| hasher.hash_one(values[*code as usize]));
        code
    }
}

#[cfg(test)]
mod tests {
    use super::{Dictionary, Value, dictionary};

    #[track_caller]
    fn made<T: Value + std::fmt::Debug>(values: &[T]) -> Option<Dictionary<T>> {
        let made = dictionary(values);
        if let Some(Dictionary { values: distinct, codes }) = &made {
            let back: Vec<T> = codes.iter().map(|code| distinct[*code as usize]).collect();
            assert_eq!(back, values);
        }
        made
    }

    #[test]
    fn integers_in_a_narrow_span_are_numbered_upwards() {
        let values: Vec<i64> = (0..1_000).map(|row| 7 - 3 * (row % 5)).collect();
        assert_eq!(made(&values).unwrap().values, [-5, -2, 1, 4, 7]);
        assert_eq!(made(&[i32::MAX; 100]).unwrap().values, [i32::MAX]);
    }

    #[test]
    fn integers_far_apart_are_numbered_as_they_come() {
        let values: Vec<i64> = (0..100_000).map(|row| [i64::MAX, i64::MIN, 0][row % 3]).collect();
        assert_eq!(made(&values).unwrap().values, [i64::MAX, i64::MIN, 0]);
    }

    #[test]
    fn text_is_numbered_as_it_comes() {
        let texts: Vec<&[u8]> =
            (0..10_000).map(|row| [&b"RAIL"[..], b"AIR", b""][row % 3]).collect();
        assert_eq!(made(&texts).unwrap().values, [&b"RAIL"[..], b"AIR", b""]);
    }

    #[test]
    fn values_that_are_nearly_all_distinct_have_none() {
        let scattered: Vec<i64> = (0..100_000_i64).map(|n| n.wrapping_mul(1_000_003)).collect();
        assert_eq!(made(&scattered), None);
        let dense: Vec<i32> = (0..50_000).collect();
        assert_eq!(made(&dense), None);
        let texts: Vec<String> = (0..50_000).map(|n| format!("comment {n}")).collect();
        let texts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        assert_eq!(made(&texts), None);
    }

    #[test]
    fn a_dictionary_does_not_outgrow_what_readers_hold() {
        let long = "x".repeat(2_000);
        let texts: Vec<String> = (0..20_000).map(|n| format!("{}{long}", n % 1_000)).collect();
        let texts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        assert_eq!(made(&texts), None);
    }
}
