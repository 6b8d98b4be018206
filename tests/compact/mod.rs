//! Iterator compaction of real tables: the string form, chains of guests, and what is refused.

mod chains;
mod guests;
mod peers;
mod readings;
mod refusals;
mod steps;
mod visibility;
mod writers;

use readings::Readings;
