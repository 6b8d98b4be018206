//! From a statement to equality joins and filters between base columns.
//!
//! Two readers with one result: [`sql`] plans the statement's text, the Spark plan reader follows
//! expression ids through the physical plan of an event log. Both know a column's origins
//! and refuse to guess: a computed value has none, and a join key without origin makes no edge.

pub(crate) mod edge;
pub(crate) mod literal;
pub(crate) mod origin;
pub(crate) mod predicate;
pub(crate) mod spark_plan;
pub mod sql;
