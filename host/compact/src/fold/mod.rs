//! Folds: how the values of the rows that share a key become one.

mod average;
mod count;
mod extreme;
mod first_last;
mod map;
mod sum;
mod top;

use arrow::{
    array::{Array, ArrayRef, UInt32Array},
    buffer::OffsetBuffer,
    datatypes::Field,
};

pub use average::Average;
pub use count::Count;
pub use extreme::Extreme;
pub use first_last::{End, FirstLast};
pub use map::MapFold;
pub use sum::Sum;
pub use top::Top;

pub(crate) use first_last::WinningRows;

use crate::CompactError;

pub(crate) const SUM: &str = "sum";
pub(crate) const COUNT: &str = "count";
pub(crate) const MIN: &str = "min";
pub(crate) const MAX: &str = "max";
pub(crate) const AVG: &str = "avg";
pub(crate) const FIRST: &str = "first";
pub(crate) const LAST: &str = "last";
pub(crate) const TOP: &str = "top";
pub(crate) const MAP_SUM: &str = "map_sum";
pub(crate) const MAP_COUNT: &str = "map_count";
pub(crate) const MAP_MIN: &str = "map_min";
pub(crate) const MAP_MAX: &str = "map_max";

/// The names of the native folds.
pub const ALL_FOLDS: &[&str] =
    &[SUM, COUNT, MIN, MAX, AVG, FIRST, LAST, TOP, MAP_SUM, MAP_COUNT, MAP_MIN, MAP_MAX];

/// Opens a fold for one column.
///
/// Implementers must keep the law: values in any order and in any grouping give the same result,
/// and folding results once more is the same as folding all values at once. There is no other form
/// of partial state.
pub trait FoldFactory: Send + Sync + std::fmt::Debug {
    /// Returns the fold's name, for reports and errors.
    fn name(&self) -> &str;

    /// Returns the columns that the fold reads besides its own. If there are any, the values it is
    /// given are a struct of its own column and then these.
    fn other_columns(&self) -> &[String] {
        &[]
    }

    /// Opens a fold whose results will be stored back into `column`, or refuses it.
    ///
    /// # Errors
    /// Returns an error if the fold is not defined for the column's type.
    fn open(&self, column: &Field) -> Result<Box<dyn GroupFold>, CompactError>;
}

/// The running results of one column, one for each group.
pub trait GroupFold: Send {
    /// Folds each value into the group that `groups` gives for it.
    ///
    /// Both have one entry per row, and `values` has the type of the column that the fold was opened
    /// for, or is a struct if there are [other columns](FoldFactory::other_columns). Group numbers are below `total_groups`, which never shrinks.
    ///
    /// # Errors
    /// Returns an error if the values cannot be folded; the whole run ends then.
    fn update(
        &mut self,
        values: &ArrayRef,
        groups: &[u32],
        total_groups: usize,
    ) -> Result<(), CompactError>;

    /// Returns one result per group, of the column's type and in the order of group numbers.
    ///
    /// It is called once, after the last update.
    ///
    /// # Errors
    /// Returns an error if a result does not fit the column's type.
    fn evaluate(&mut self) -> Result<ArrayRef, CompactError>;

    /// Returns the memory that the results hold.
    fn size_bytes(&self) -> usize;
}

/// Lists the elements of the lists or maps that are not null: the group of each, and its place among all
/// elements. `visit` is told the group of each list, empty ones too.
fn unnest(
    lists: &dyn Array,
    offsets: &OffsetBuffer<i32>,
    groups: &[u32],
    mut visit: impl FnMut(u32),
) -> (Vec<u32>, UInt32Array) {
    let (mut owners, mut places) = (Vec::new(), Vec::new());
    for (row, group) in groups.iter().enumerate().filter(|(row, _)| lists.is_valid(*row)) {
        visit(*group);
        for place in offsets[row]..offsets[row + 1] {
            owners.push(*group);
            places.push(place.unsigned_abs());
        }
    }
    (owners, UInt32Array::from(places))
}
