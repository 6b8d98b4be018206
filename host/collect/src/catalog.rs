//! What is known about tables before a statement is read.

use std::collections::BTreeMap;

/// The domain of a column, as far as lineage and filters care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColumnType {
    /// A truth value.
    Boolean,
    /// An integer of any width.
    Integer,
    /// A decimal number.
    Decimal {
        /// Digits after the point.
        scale: u8,
    },
    /// A floating-point number.
    Float,
    /// A calendar date.
    Date,
    /// An instant.
    Timestamp,
    /// Text.
    Text,
    /// Nested, binary, or not known.
    Other,
}

/// Gives the columns of tables that statements name.
///
/// Implementers must answer the same question the same way for the whole of a run, must compare
/// names without regard to case, and must not do slow work: every statement asks, on any thread.
pub trait Catalog: Sync {
    /// Returns the columns of a table in order, or `None` when the table is not known.
    ///
    /// `table` is the name as the statement spells it, in lower case: `orders`, `sales.orders` or
    /// `main.sales.orders`.
    fn columns(&self, table: &str) -> Option<Vec<(String, ColumnType)>>;
}

/// A catalog that knows no table: every schema is grown from the statement itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmptyCatalog;

impl Catalog for EmptyCatalog {
    fn columns(&self, _table: &str) -> Option<Vec<(String, ColumnType)>> {
        None
    }
}

/// Tables by lower-case name; a qualified name that is absent is looked up by its last part.
impl Catalog for BTreeMap<String, Vec<(String, ColumnType)>> {
    fn columns(&self, table: &str) -> Option<Vec<(String, ColumnType)>> {
        let last = table.rsplit('.').next().unwrap_or(table);
        self.get(table).or_else(|| self.get(last)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, Catalog, ColumnType, EmptyCatalog};

    #[test]
    fn a_map_answers_qualified_names_by_their_last_part() {
        let columns = vec![("o_orderkey".to_owned(), ColumnType::Integer)];
        let catalog = BTreeMap::from([("orders".to_owned(), columns.clone())]);
        assert_eq!(catalog.columns("main.sales.orders"), Some(columns));
        assert_eq!(catalog.columns("lineitem"), None);
        assert_eq!(EmptyCatalog.columns("orders"), None);
    }
}
