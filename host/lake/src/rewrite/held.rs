//! Rows in memory, and their order.
//!
//! 1. Every row gets an integer that never contradicts the order asked for ([`RowKeys`]).
//! 2. The rows of each batch are put in order within it, in the cache. Rows that are neighbors in the end
//!    and come from one batch then lie side by side, and gathering them later reads every line of
//!    memory once, not once per value.
//! 3. Splitters drawn from the keys deal them out into ranges of about equal size.
//! 4. Each range is sorted by itself, several at once. What moves are keys and places; rows follow when
//!    their file is written.

use std::{cmp::Ordering, sync::Mutex};

use arrow::{
    array::{ArrayRef, RecordBatch, UInt32Array},
    error::ArrowError,
};
use lakebed_layout::ordinal::Ordinals;

use super::{keys::RowKeys, reorder::reordered};
use crate::{encode::Place, file_set::OrderedRows, write::equal_parts};

/// Keys of a range that one thread sorts: about what its second-level cache holds.
const RANGE_ROWS: usize = 1 << 16;
/// Most ranges: each looks for its part in every batch.
const RANGES_MAX: usize = 1 << 12;
/// Keys looked at per splitter.
const OVERSAMPLING: usize = 16;

#[derive(Debug, Clone, Copy)]
struct Keyed {
    key: u64,
    place: Place,
}

/// Rows and the order they are to be written in.
#[derive(Debug)]
pub(super) struct SortedRows {
    batches: Vec<RecordBatch>,
    order: Vec<Keyed>,
    average_row_bytes: usize,
}

impl SortedRows {
    /// Puts rows in order, on several threads.
    pub(super) fn sort(
        batches: Vec<RecordBatch>,
        keys: &RowKeys,
        threads: usize,
    ) -> Result<Self, ArrowError> {
        let keyed = in_parallel(threads, batches, |batch| sorted_batch(batch, keys))?;
        let mut batches = Vec::with_capacity(keyed.len());
        let mut numbers = Vec::with_capacity(keyed.len());
        let mut ordinals = Vec::with_capacity(keyed.len());
        for sorted in keyed {
            batches.push(sorted.rows);
            numbers.push(sorted.keys);
            ordinals.push(sorted.ordinals);
        }
        // Where equal keys do not mean equal values, the values decide.
        let ordinals: Option<Vec<Ordinals>> = ordinals.into_iter().collect();
        let compare = |a: &Keyed, b: &Keyed| {
            let by_value = || {
                ordinals.as_ref().map_or(Ordering::Equal, |columns| {
                    let (left, right) =
                        (&columns[index(a.place.batch)], &columns[index(b.place.batch)]);
                    left.compare(index(a.place.row), right, index(b.place.row))
                })
            };
            let place = |keyed: &Keyed| (keyed.place.batch, keyed.place.row);
            a.key.cmp(&b.key).then_with(by_value).then_with(|| place(a).cmp(&place(b)))
        };
        let total: usize = numbers.iter().map(Vec::len).sum();
        let bounds = bounds(&numbers, &splitters(&numbers, total));
        let mut rows = vec![Keyed { key: 0, place: Place { batch: 0, row: 0 } }; total];
        in_parallel(threads, slices(&mut rows, &bounds), |(range, slice)| {
            let mut slots = slice.iter_mut();
            for (batch, (keys, bounds)) in numbers.iter().zip(&bounds).enumerate() {
                let part = bounds[range]..bounds[range + 1];
                for ((row, key), slot) in part.clone().zip(&keys[part]).zip(&mut slots) {
                    let place = Place { batch: narrow(batch), row: narrow(row) };
                    *slot = Keyed { key: *key, place };
                }
            }
            slice.sort_unstable_by(compare);
            Ok(())
        })?;
        let bytes: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
        let average_row_bytes = bytes / rows.len().max(1);
        Ok(Self { batches, order: rows, average_row_bytes })
    }

    /// Lists how many rows each file has that ends where a cell does: the number of a row's cell is
    /// its key above some bits. A cell of twice as many rows as a file should have, which no key told
    /// apart, is several files.
    pub(super) fn cells(&self, shift: u32, rows_per_file: u64) -> Vec<u64> {
        let mut files = Vec::new();
        for cell in self.order.chunk_by(|a, b| a.key >> shift == b.key >> shift) {
            let rows = cell.len() as u64;
            let parts = if rows < 2 * rows_per_file { 1 } else { rows / rows_per_file.max(1) };
            files.extend(equal_parts(rows, parts));
        }
        files
    }
}

impl OrderedRows for SortedRows {
    fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    fn places(&self, part: std::ops::Range<usize>) -> Vec<Place> {
        self.order[part].iter().map(|keyed| keyed.place).collect()
    }

    fn average_row_bytes(&self) -> usize {
        self.average_row_bytes
    }
}

/// A batch whose rows are in order.
struct SortedBatch {
    rows: RecordBatch,
    keys: Vec<u64>,
    ordinals: Option<Ordinals>,
}

/// Puts the rows of a batch in order; equal ones stay as they came.
fn sorted_batch(batch: RecordBatch, keys: &RowKeys) -> Result<SortedBatch, ArrowError> {
    let (numbers, ordinals) = keys.of(&batch)?;
    let mut keyed: Vec<(u64, u32)> = numbers.iter().copied().zip(0..).collect();
    keyed.sort_unstable_by(|a, b| {
        let by_value = || {
            ordinals
                .as_ref()
                .map_or(Ordering::Equal, |values| values.compare(index(a.1), values, index(b.1)))
        };
        a.0.cmp(&b.0).then_with(by_value).then(a.1.cmp(&b.1))
    });
    if keyed.iter().zip(0..).all(|((_, row), place)| *row == place) {
        return Ok(SortedBatch { rows: batch, keys: numbers, ordinals });
    }
    let order = UInt32Array::from_iter_values(keyed.iter().map(|(_, row)| *row));
    let rows = reordered(batch, &order)?;
    let ordinals = match ordinals {
        Some(_) => keys.of(&rows)?.1,
        None => None,
    };
    Ok(SortedBatch { rows, keys: keyed.into_iter().map(|(key, _)| key).collect(), ordinals })
}

/// Tells for each batch, whose keys ascend, where the ranges between splitters begin and end.
fn bounds(keys: &[Vec<u64>], splitters: &[u64]) -> Vec<Vec<usize>> {
    let of_batch = |keys: &Vec<u64>| {
        let ends = splitters.iter().map(|splitter| keys.partition_point(|key| key < splitter));
        std::iter::once(0).chain(ends).chain([keys.len()]).collect()
    };
    keys.iter().map(of_batch).collect()
}

/// Divides the rows' places among the ranges, each with its number.
fn slices<'r>(rows: &'r mut [Keyed], bounds: &[Vec<usize>]) -> Vec<(usize, &'r mut [Keyed])> {
    let ranges = bounds.first().map_or(0, |bounds| bounds.len() - 1);
    let mut slices = Vec::with_capacity(ranges);
    let mut rest = rows;
    for range in 0..ranges {
        let length = bounds.iter().map(|bounds| bounds[range + 1] - bounds[range]).sum();
        let (slice, others) = rest.split_at_mut(length);
        slices.push((range, slice));
        rest = others;
    }
    slices
}

/// Picks keys that divide all of them into about equal parts.
fn splitters(keys: &[Vec<u64>], total: usize) -> Vec<u64> {
    let ranges = total.div_ceil(RANGE_ROWS).clamp(1, RANGES_MAX);
    let step = (total / (ranges * OVERSAMPLING)).max(1);
    let mut sample: Vec<u64> = keys.iter().flatten().step_by(step).copied().collect();
    sample.sort_unstable();
    let mut splitters: Vec<u64> = (1..ranges)
        .filter_map(|range| sample.get(range * sample.len() / ranges).copied())
        .collect();
    splitters.dedup();
    splitters
}

/// Works on items with several threads; the results are in the order of the items.
pub(super) fn in_parallel<T: Send, R: Send>(
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> Result<R, ArrowError> + Sync,
) -> Result<Vec<R>, ArrowError> {
    let count = items.len();
    let queue = Mutex::new(items.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
    let mut results: Vec<(usize, Result<R, ArrowError>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.clamp(1, count.max(1)))
            .map(|_| {
                scope.spawn(|| {
                    let mut done = Vec::new();
                    while let Some((position, item)) = next() {
                        done.push((position, work(item)));
                    }
                    done
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    results.sort_unstable_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Returns the values of key columns in a batch; those of a null struct are null.
pub(super) fn key_columns(
    batch: &RecordBatch,
    paths: &[Vec<String>],
) -> Result<Vec<ArrayRef>, ArrowError> {
    paths
        .iter()
        .map(|path| {
            crate::stats::leaf_array(batch, path).ok_or_else(|| {
                ArrowError::SchemaError(format!("the files have no column `{}`", path.join(".")))
            })
        })
        .collect()
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
    use lakebed_layout::RowOrder;

    use super::{OrderedRows as _, Place, RowKeys, SortedRows, index};

    fn batch(keys: &[Option<&str>]) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..).take(keys.len())));
        let text: ArrayRef = Arc::new(StringArray::from(keys.to_vec()));
        RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("k", text, true)]).unwrap()
    }

    #[test]
    fn text_is_sorted_by_all_of_its_bytes_with_nulls_first() {
        let batches = vec![
            batch(&[Some("prefix-shared-b"), None, Some("prefix-shared-a")]),
            batch(&[Some("prefix-shared-ab"), Some("prefix-s")]),
        ];
        let order = RowOrder::Plain { key: "k".to_owned() };
        let keys = RowKeys::learn(&order, &batches, 1).unwrap();
        let sorted = SortedRows::sort(batches, &keys, 2).unwrap();
        let values: Vec<Option<String>> = sorted
            .places(0..sorted.len())
            .into_iter()
            .map(|Place { batch, row }| {
                let (batch, row) = (index(batch), index(row));
                let text = sorted.batches[batch].column(1).as_string::<i32>();
                arrow::array::Array::is_valid(text, row).then(|| text.value(row).to_owned())
            })
            .collect();
        let expected = [
            None,
            Some("prefix-s"),
            Some("prefix-shared-a"),
            Some("prefix-shared-ab"),
            Some("prefix-shared-b"),
        ];
        assert_eq!(values, expected.map(|value| value.map(str::to_owned)));
    }

    #[test]
    fn many_rows_come_out_ascending_and_each_once() {
        let rows = 300_000_i64;
        let scattered = |row: i64| (row * 7_919) % 100_003;
        let batches: Vec<RecordBatch> = (0..10)
            .map(|part| {
                let values = (0..rows / 10).map(|row| scattered(part * (rows / 10) + row));
                let column: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
                RecordBatch::try_from_iter([("k", column)]).unwrap()
            })
            .collect();
        let order = RowOrder::Plain { key: "k".to_owned() };
        let keys = RowKeys::learn(&order, &batches, 4).unwrap();
        let sorted = SortedRows::sort(batches, &keys, 3).unwrap();
        let mut places = sorted.places(0..sorted.len());
        let values: Vec<i64> = places
            .iter()
            .map(|place| {
                sorted.batches[index(place.batch)]
                    .column(0)
                    .as_primitive::<arrow::datatypes::Int64Type>()
                    .value(index(place.row))
            })
            .collect();
        assert!(values.is_sorted());
        places.sort_unstable_by_key(|place| (place.batch, place.row));
        places.dedup();
        assert_eq!(places.len(), 300_000);
    }
}
