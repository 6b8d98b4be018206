//! Filters: which rows a compaction keeps.

mod age_off;
mod visibility;

use arrow::{array::BooleanArray, record_batch::RecordBatch};

pub use age_off::{AgeOff, SpanVerdict};
pub use visibility::{ExpressionError, InvalidRule, Visibility};

use crate::{CompactError, Warning};

/// The name of [`AgeOff`].
pub(crate) const AGE_OFF: &str = "age-off";
/// The name of [`Visibility`].
pub(crate) const VISIBILITY: &str = "visibility";

/// The name of a condition in SQL, whose code is lent by the engine.
pub(crate) const PREDICATE: &str = "predicate";

/// The names of the native filters.
pub const ALL_FILTERS: &[&str] = &[AGE_OFF, VISIBILITY, PREDICATE];

/// Decides row by row what stays.
///
/// Implementers must judge each row by itself and by what was fixed when the filter was made, so
/// that any split of the rows into batches gives the same rows; they must not read a clock.
pub trait RowFilter: Send + Sync + std::fmt::Debug {
    /// Returns the filter's name, for reports and errors.
    fn name(&self) -> &str;

    /// Returns the columns that the filter reads, as the table spells them.
    fn columns(&self) -> &[String];

    /// Answers for each row of `batch`, which holds just [`columns`](Self::columns) in their order.
    ///
    /// `true` keeps the row, `false` drops it; null drops it too and is counted apart, for rows
    /// that cannot be judged because their value is null.
    ///
    /// # Errors
    /// Returns an error if the batch cannot be judged; the whole run ends then.
    fn keep(&self, batch: &RecordBatch) -> Result<BooleanArray, CompactError>;

    /// Looks at a sample of the rows for signs that the filter is not what its owner meant.
    fn doubt(&self, _sample: &RecordBatch) -> Option<Warning> {
        None
    }
}
