//! What the groups of tests share: the command, lakes, tables, and text that is the same everywhere.

mod cli;
mod dice;
mod lake;
mod shadow;
mod table;
mod text;

pub(crate) use cli::{Run, command_line, lakebed, lakebed_with, rows, sql};
pub(crate) use dice::Dice;
pub(crate) use lake::{clustered_table, empty_lake, runtime, small_lake, small_lake_copy};
pub(crate) use shadow::Shadow;
pub(crate) use table::{
    Numbers, adds, change_first_version, clustering_columns, commits, count_and_sum, files_of,
    options, read_commits, removes,
};
pub(crate) use text::{number_from, project, stable, text_from};
