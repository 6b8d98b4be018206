//! Encodes columns into Parquet column chunks.
//!
//! 1. The values of a row group's rows are gathered in order, flat ([`values`]), each run of rows that
//!    lie side by side in one go ([`placed`]).
//! 2. Where a dictionary makes the chunk smaller, values become numbers ([`dictionary`]).
//! 3. Pages are encoded ([`hybrid`]), compressed and described ([`chunk`]).
//!
//! Own code for integers, dates, timestamps, decimals of up to 18 digits, text and bytes, because the
//! crate's writer takes half of a rewrite's time: it hashes every value although most columns hold few
//! distinct integers, and copies values that are already where they can be read. It still writes all
//! other types, files, and what describes them.

mod chunk;
mod dictionary;
mod hybrid;
mod placed;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use self::{
    chunk::{Chunk, ChunkWriter},
    placed::{Place, Placed},
    values::FlatColumn,
};
