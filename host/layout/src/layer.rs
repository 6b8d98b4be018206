//! How finely a layer that lies over a table is divided. Pure.
//!
//! A rewrite of little data whose keys lie everywhere makes few files of the target size, and each spans
//! so much of every key that hardly any predicate skips it. Until such a layer pays for merging with
//! the files it lies over ([`crate::overlap`]), it is divided into up to [`PARTS`] files, though into
//! no more than the files it lies over. Its files count as one where small files are looked for
//! ([`crate::select()`]), so that they are left until the layer merges as a whole.
//! Example: 64 MiB at a target of 64 MiB become four files of 16 MiB; a range of a tenth of the keys
//! then reads 22 MiB of them instead of 64.
//!
//! Data that lies beside the table's files, as it does where keys grow with time, is not divided, and
//! neither is a layer that counts as small.

use std::collections::BTreeSet;

use lakebed_model::Bytes;

use crate::{
    TableSnapshot,
    action::AddFile,
    bounds::{KeyRange, RangeReader},
    sizing::live_bytes,
    zcube,
};

/// Files that a layer is divided into at most, beyond what its size asks for: two cuts of two keys.
const PARTS: u64 = 4;
/// A layer of less than the target size divided by this is small.
const SMALL_LAYER: u64 = 8;
/// No file of a layer is made smaller than the target size divided by this.
const SMALLEST_PART: u64 = 32;

/// Tells whether all files of a rewrite together are as good as one small file.
pub(crate) fn is_small(bytes: u64, target: Bytes) -> bool {
    bytes < target.0 / SMALL_LAYER
}

/// Returns the size of the files that a rewrite of some files should make.
pub(crate) fn target(snapshot: &TableSnapshot, inputs: &[&AddFile], target: Bytes) -> Bytes {
    let bytes: u64 = inputs.iter().map(|file| live_bytes(file)).sum();
    if is_small(bytes, target) {
        return target;
    }
    let parts = (bytes / target.0.div_ceil(SMALLEST_PART).max(1)).min(PARTS);
    let parts_by_size = bytes.div_ceil(target.0.max(1));
    if parts <= parts_by_size {
        return target;
    }
    let keys = snapshot.cluster_by();
    let reader = RangeReader::new(&snapshot.schema, snapshot.column_mapping(), &keys);
    let Some(hull) = hull(inputs, &reader) else { return target };
    let replaced: BTreeSet<&str> = inputs.iter().map(|file| file.path.as_str()).collect();
    let lies_over = |file: &&AddFile| {
        file.tag(zcube::ZCUBE_ID).is_some()
            && !replaced.contains(file.path.as_str())
            && reader.read(file).is_some_and(|ranges| meet(&hull, &ranges))
    };
    let wanted = usize::try_from(parts).unwrap_or(usize::MAX);
    let below = snapshot.files.iter().filter(lies_over).take(wanted).count();
    let parts = parts.min(u64::try_from(below).unwrap_or(u64::MAX));
    if parts <= parts_by_size { target } else { Bytes(bytes.div_ceil(parts)) }
}

/// The ranges that hold all of some files; `None` where those of a file are not known.
fn hull(files: &[&AddFile], reader: &RangeReader) -> Option<Vec<KeyRange>> {
    let mut ranges = files.iter().map(|file| reader.read(file));
    let mut hull = ranges.next()??;
    for ranges in ranges {
        for (hull, range) in hull.iter_mut().zip(ranges?) {
            if range.low.order(&hull.low).is_lt() {
                hull.low = range.low;
            }
            if range.high.order(&hull.high).is_gt() {
                hull.high = range.high;
            }
        }
    }
    Some(hull)
}

fn meet(a: &[KeyRange], b: &[KeyRange]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.low.order(&b.high).is_le() && b.low.order(&a.high).is_le())
}

#[cfg(test)]
mod tests {
    use lakebed_model::Bytes;

    use super::target;
    use crate::{
        action::AddFile,
        testing::{clustered_file, plain_file, snapshot, with_ranges},
    };

    /// Ten files of a table side by side, and new ones of a hundredth of a range each.
    #[track_caller]
    fn check(new_bytes: &[u64], range: (i64, i64), expected: u64) {
        let base = (0..10).map(|n| {
            let file = clustered_file(&format!("base-{n}"), 64, "cube", &["a"]);
            with_ranges(file, &[("a", n * 10, n * 10 + 9)])
        });
        let new = new_bytes.iter().enumerate().map(|(n, bytes)| {
            with_ranges(plain_file(&format!("new-{n}"), *bytes), &[("a", range.0, range.1)])
        });
        let table = snapshot(&["a"], base.chain(new).collect());
        let inputs: Vec<&AddFile> =
            table.files.iter().filter(|file| file.path.starts_with("new")).collect();
        assert_eq!(target(&table, &inputs, Bytes(64)), Bytes(expected));
    }

    #[test]
    fn layers_over_a_table_are_divided() {
        check(&[64], (0, 99), 16);
        check(&[40, 40], (0, 99), 20);
        check(&[50], (0, 99), 13);
        check(&[8], (0, 99), 2);
        check(&[150], (0, 99), 38);
        check(&[256], (0, 99), 64);
        check(&[1_000], (0, 99), 64);
    }

    #[test]
    fn a_layer_has_no_more_parts_than_files_below() {
        check(&[64], (60, 89), 22);
        check(&[64], (75, 199), 22);
        check(&[64], (80, 199), 32);
    }

    #[test]
    fn small_layers_are_not_divided() {
        check(&[7], (0, 99), 64);
        check(&[3, 3], (0, 99), 64);
    }

    #[test]
    fn data_beside_the_table_is_not_divided() {
        check(&[64], (100, 199), 64);
        check(&[64], (90, 199), 64);
    }
}
