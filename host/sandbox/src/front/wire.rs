//! What fronts share: checks of arguments, and columns on their way over the border.

use crate::{
    SandboxError,
    checked::{self, Flaw},
    columns::Column,
};

/// Says that the caller's own argument is wrong.
pub(super) fn argument(
    plugin: &str,
    function: &'static str,
    argument: &str,
    reason: String,
) -> SandboxError {
    SandboxError::Argument { plugin: plugin.into(), function, argument: argument.into(), reason }
}

/// Checks that lists have one length and only finite values; returns the length.
pub(super) fn arguments(
    plugin: &str,
    function: &'static str,
    lists: &[(&'static str, &[f64])],
) -> Result<usize, SandboxError> {
    let expected = lists.first().map_or(0, |(_, values)| values.len());
    for (name, values) in lists {
        if let Err(flaw) = checked::finite(values, expected) {
            return Err(argument(plugin, function, name, reason(flaw)));
        }
    }
    Ok(expected)
}

/// Checks that columns have `row_count` rows.
pub(super) fn rows(
    plugin: &str,
    function: &'static str,
    columns: &[Column<'_>],
    row_count: usize,
) -> Result<(), SandboxError> {
    for (index, column) in columns.iter().enumerate() {
        if let Err(flaw) = checked::layout(column, row_count) {
            let name = format!("column {index}");
            return Err(argument(plugin, function, &name, reason(flaw)));
        }
    }
    Ok(())
}

fn reason(flaw: Flaw) -> String {
    match flaw {
        Flaw::Length { expected, got } => format!("has {got} values, expected {expected}"),
        Flaw::NotFinite { index, value } => {
            format!("has {value} at index {index}, expected finite values")
        }
        Flaw::Other(found) => format!("has {found}"),
    }
}

/// Lends the columns of a world's bindings the slices of [`Column`]s. Nothing is copied.
macro_rules! lend_columns {
    ($columns:path, $values:ident, $var_bytes:ident, $column:ident) => {
        fn lend<'a>(column: &Column<'a>) -> wire::$column<'a> {
            use crate::columns::ColumnValues;
            use $columns as wire;
            let values = match column.values {
                ColumnValues::S64(values) => wire::$values::S64(values),
                ColumnValues::S32(values) => wire::$values::S32(values),
                ColumnValues::F64(values) => wire::$values::F64(values),
                ColumnValues::F32(values) => wire::$values::F32(values),
                ColumnValues::U8(values) => wire::$values::U8(values),
                ColumnValues::Bits(bytes) => wire::$values::Bits(bytes),
                ColumnValues::Text { offsets, data } => {
                    wire::$values::Text(wire::$var_bytes { offsets, data })
                }
                ColumnValues::Binary { offsets, data } => {
                    wire::$values::Binary(wire::$var_bytes { offsets, data })
                }
            };
            wire::$column { values, validity: column.validity }
        }
    };
}

pub(super) use lend_columns;
