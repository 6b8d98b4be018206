//! The nouns that Lakebed's stages hand to one another.
//!
//! No algorithm lives here and nothing but `std` is used: a [`QueryRecord`] leaves `collect`, a
//! [`Workload`] enters `graph`, [`FileView`]s and [`Bytes`] reach `plan` and `layout`.

mod clock;
mod column;
mod cost;
mod file;
mod literal;
mod workload;

pub use clock::{Clock, Instant, SystemClock};
pub use column::{ColumnRef, TableName};
pub use cost::Bytes;
pub use file::{ColumnSpan, FileView};
pub use literal::{Bound, Literal, ValueRange};
pub use workload::{
    Damage, FilterOperator, FilterUse, JoinKind, JoinNotes, JoinStrategy, JoinUse, ParseReport,
    QueryRecord, QueryStatus, ScanUse, SkipCounts, Window, Workload,
};
