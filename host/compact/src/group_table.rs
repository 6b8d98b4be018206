//! Numbers the groups of rows that share all row keys.
//!
//! 1. The key columns of a batch are encoded row-wise (arrow's row format), so that a key of any
//!    types is one run of bytes whose order is the keys' order: ascending, nulls last.
//! 2. A row with the key of the row before it, as in sorted files, gets its number at once.
//! 3. Otherwise a hash table with linear probing, at most half full, finds the number. Half of the
//!    hash is kept in the slot, so that most other keys are passed without touching their bytes.
//!
//! Null equals null. Floats are equal when their bits are: `−0.0` and `+0.0`, which SQL counts as
//! one, stay two rows as they were before. The hash decides nothing that is seen outside: groups
//! are numbered as they appear and leave in key order.

use std::hash::{DefaultHasher, Hasher};

use arrow::{
    array::ArrayRef,
    compute::SortOptions,
    datatypes::DataType,
    row::{Row, RowConverter, Rows, SortField},
};

use crate::CompactError;

const SLOTS_MIN: usize = 1024;

/// The groups seen so far.
#[derive(Debug)]
pub(crate) struct GroupTable {
    converter: RowConverter,
    keys: Rows,
    hashes: Vec<u64>,
    slots: Vec<Slot>,
    incoming: Rows,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    tag: u32,
    group: u32,
}

impl Slot {
    /// Marks a slot without a group; hence no group has this number.
    const VACANT: u32 = u32::MAX;
    const EMPTY: Self = Self { tag: 0, group: Self::VACANT };
}

impl GroupTable {
    /// Tells whether rows can be grouped by a column of this type.
    pub(crate) fn accepts(data_type: &DataType) -> bool {
        // A map has no order of its own entries, so equal maps may differ in bytes.
        !matches!(data_type, DataType::Map(..) | DataType::Union(..))
            && RowConverter::supports_fields(&[key_field(data_type)])
    }

    /// Starts without groups, for key columns of these types.
    pub(crate) fn new<'a>(
        key_types: impl Iterator<Item = &'a DataType>,
    ) -> Result<Self, CompactError> {
        let converter = RowConverter::new(key_types.map(key_field).collect())
            .map_err(CompactError::arrow("encode the row keys"))?;
        Ok(Self {
            keys: converter.empty_rows(0, 0),
            incoming: converter.empty_rows(0, 0),
            converter,
            hashes: Vec::new(),
            slots: vec![Slot::EMPTY; SLOTS_MIN],
        })
    }

    /// Returns how many groups there are.
    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns the memory that keys and table hold.
    pub(crate) fn size_bytes(&self) -> usize {
        self.keys.size()
            + self.incoming.size()
            + self.hashes.capacity() * size_of::<u64>()
            + self.slots.capacity() * size_of::<Slot>()
    }

    /// Replaces `groups` by the group number of each row of the key columns.
    pub(crate) fn assign(
        &mut self,
        key_columns: &[ArrayRef],
        groups: &mut Vec<u32>,
    ) -> Result<(), CompactError> {
        groups.clear();
        let mut incoming = std::mem::replace(&mut self.incoming, self.converter.empty_rows(0, 0));
        incoming.clear();
        self.converter
            .append(&mut incoming, key_columns)
            .map_err(CompactError::arrow("encode the row keys"))?;
        let mut previous: Option<(Row<'_>, u32)> = None;
        for row in &incoming {
            let group = match previous {
                Some((key, group)) if key == row => group,
                _ => self.find_or_insert(row, hash_of(row))?,
            };
            previous = Some((row, group));
            groups.push(group);
        }
        self.incoming = incoming;
        Ok(())
    }

    /// Returns all group numbers in the order of their keys.
    pub(crate) fn in_key_order(&self) -> Vec<u32> {
        let count = u32::try_from(self.len()).expect("group numbers are u32");
        let mut groups: Vec<u32> = (0..count).collect();
        groups.sort_unstable_by(|a, b| self.key(*a).cmp(&self.key(*b)));
        groups
    }

    /// Returns the key columns of some groups.
    pub(crate) fn key_columns(&self, groups: &[u32]) -> Result<Vec<ArrayRef>, CompactError> {
        self.converter
            .convert_rows(groups.iter().map(|group| self.key(*group)))
            .map_err(CompactError::arrow("decode the row keys"))
    }

    fn key(&self, group: u32) -> Row<'_> {
        self.keys.row(group as usize)
    }

    fn find_or_insert(&mut self, key: Row<'_>, hash: u64) -> Result<u32, CompactError> {
        let tag = tag_of(hash);
        let mask = self.slots.len() - 1;
        let mut at = start_of(hash, mask);
        loop {
            let slot = self.slots[at];
            if slot.group == Slot::VACANT {
                break;
            }
            if slot.tag == tag && self.key(slot.group) == key {
                return Ok(slot.group);
            }
            at = (at + 1) & mask;
        }
        let group = u32::try_from(self.len())
            .ok()
            .filter(|group| *group != Slot::VACANT)
            .ok_or(CompactError::TooManyGroups { limit: Slot::VACANT })?;
        self.slots[at] = Slot { tag, group };
        self.keys.push(key);
        self.hashes.push(hash);
        if self.len() * 2 > self.slots.len() {
            self.grow();
        }
        Ok(group)
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let mut slots = vec![Slot::EMPTY; mask + 1];
        for (group, hash) in (0..Slot::VACANT).zip(&self.hashes) {
            let mut at = start_of(*hash, mask);
            while slots[at].group != Slot::VACANT {
                at = (at + 1) & mask;
            }
            slots[at] = Slot { tag: tag_of(*hash), group };
        }
        self.slots = slots;
    }
}

fn key_field(data_type: &DataType) -> SortField {
    let ascending_nulls_last = SortOptions { descending: false, nulls_first: false };
    SortField::new_with_options(data_type.clone(), ascending_nulls_last)
}

fn hash_of(key: Row<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(key.data());
    hasher.finish()
}

const fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[expect(clippy::cast_possible_truncation, reason = "the mask keeps low bits only")]
const fn start_of(hash: u64, mask: usize) -> usize {
    hash as usize & mask
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{ArrayRef, Float64Array, Int64Array},
        datatypes::DataType,
    };

    use super::GroupTable;
    use crate::testing::{integers, texts};

    fn assign(table: &mut GroupTable, columns: &[ArrayRef]) -> Vec<u32> {
        let mut groups = vec![7; 3];
        table.assign(columns, &mut groups).unwrap();
        groups
    }

    #[test]
    fn keys_of_two_columns_are_equal_when_both_are_and_null_equals_null() {
        let types = [DataType::Utf8, DataType::Int64];
        let mut table = GroupTable::new(types.iter()).unwrap();
        let names = texts([Some("b"), None, Some("b"), None, Some(""), Some("b")]);
        let numbers = integers([Some(1), None, Some(2), None, None, Some(1)]);
        assert_eq!(assign(&mut table, &[names, numbers]), [0, 1, 2, 1, 3, 0]);
        // A later batch finds the same groups.
        assert_eq!(
            assign(&mut table, &[texts([None, Some("b")]), integers([None, Some(2)])]),
            [1, 2]
        );
        assert_eq!(table.in_key_order(), [3, 0, 2, 1]);
        let keys = table.key_columns(&[3, 1]).unwrap();
        assert_eq!(&keys[0], &texts([Some(""), None]));
    }

    #[test]
    fn zeros_of_two_signs_stay_two_groups() {
        let mut table = GroupTable::new([DataType::Float64].iter()).unwrap();
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, f64::NAN]));
        assert_eq!(assign(&mut table, &[floats]), [0, 1, 2, 2]);
    }

    #[test]
    fn keys_with_one_hash_stay_apart() {
        let mut table = GroupTable::new([DataType::Int64].iter()).unwrap();
        let keys = table.converter.convert_columns(&[integers([4, 5, 4, 6])]).unwrap();
        let mut number = |row| table.find_or_insert(keys.row(row), u64::MAX).unwrap();
        assert_eq!([0, 1, 2, 3].map(&mut number), [0, 1, 0, 2]);
    }

    #[test]
    fn numbers_survive_the_growth_of_the_table() {
        let mut table = GroupTable::new([DataType::Int64].iter()).unwrap();
        // 40 503 is odd, so multiples of it modulo 2^16 are a permutation.
        let scattered: Vec<i64> = (0..1 << 16).map(|step| step * 40_503 % (1 << 16)).collect();
        let column: ArrayRef = Arc::new(Int64Array::from(scattered));
        let first = assign(&mut table, &[Arc::clone(&column)]);
        assert_eq!(first, (0..1 << 16).collect::<Vec<u32>>());
        assert_eq!(assign(&mut table, &[column]), first);
        let in_order = table.key_columns(&table.in_key_order()).unwrap();
        assert_eq!(&in_order[0], &integers(0..1 << 16));
        assert!(table.size_bytes() > 8 << 16);
    }
}
