//! Histories in rows: whatever the form of an export, a source sees named fields.
//!
//! 1. The first lines tell the form: Parquet, JSON documents, JSON lines or CSV ([`Form`]).
//! 2. Each row becomes a [`Row`] of named values, its names in lower case.
//! 3. The source's mapping turns a row into an [`Entry`], or says why it is none.
//! 4. Entries are read in the order of time: their text gives joins and scans, to which the
//!    figures that the export has are added ([`reading`]).
//!
//! A row that cannot be read is counted and never takes the rows around it along.

mod csv;
mod entry;
mod form;
mod json;
mod parquet;
mod reading;
mod row;
mod source;
mod stream;
#[cfg(test)]
mod tests;

pub(super) use entry::{Entry, LeftOut, Refusal, Stated, TableFacts, joins_of, only_pair};
use form::Damage;
pub(super) use form::{Form, each, names};
pub(super) use reading::Reader;
pub(super) use row::{Row, Unit};
pub(super) use source::{RowSource, check_columns};
