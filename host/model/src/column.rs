//! Names of tables and columns.

use std::fmt;

/// A table's name as the workload uses it, without catalog or schema where it is unique without.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName(String);

impl TableName {
    /// Wraps a table name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A base column: a table and the name of a column in it (dotted for a nested field).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnRef {
    /// The table that stores the column.
    pub table: TableName,
    /// The column's logical name.
    pub column: String,
}

impl ColumnRef {
    /// Names a column of a table.
    pub fn new(table: impl Into<String>, column: impl Into<String>) -> Self {
        Self { table: TableName::new(table), column: column.into() }
    }
}

impl fmt::Display for ColumnRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.table, self.column)
    }
}
