//! Folds: how the values of the rows that share a key become one.

mod count;
mod extreme;
mod sum;

use arrow::{array::ArrayRef, datatypes::Field};

pub use count::Count;
pub use extreme::Extreme;
pub use sum::Sum;

use crate::CompactError;

pub(crate) const SUM: &str = "sum";
pub(crate) const COUNT: &str = "count";
pub(crate) const MIN: &str = "min";
pub(crate) const MAX: &str = "max";

/// The names of the native folds.
pub const ALL_FOLDS: &[&str] = &[SUM, COUNT, MIN, MAX];

/// Opens a fold for one column.
///
/// Implementers must keep the law: values in any order and in any grouping give the same result,
/// and folding results once more is the same as folding all values at once. There is no other form
/// of partial state.
pub trait FoldFactory: Send + Sync + std::fmt::Debug {
    /// Returns the fold's name, for reports and errors.
    fn name(&self) -> &str;

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
    /// for. Group numbers are below `total_groups`, which never shrinks.
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
