//! A table's rows, column by column.

use alloc::{format, vec::Vec};

use crate::{Bits, PluginError};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// 64-bit integers; timestamps as microseconds since 1970-01-01T00:00:00Z.
    S64,
    /// 32-bit integers; dates as days since 1970-01-01.
    S32,
    /// Doubles.
    F64,
    /// Singles.
    F32,
    /// Bytes as small numbers.
    U8,
    /// Booleans.
    Bits,
    /// UTF-8 text.
    Text,
    /// Bytes of any length.
    Binary,
}

/// Values of varying length: value `r` is `data[offsets[r]..offsets[r + 1]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VarBytes {
    /// One more than there are rows, from 0, never falling.
    pub offsets: Vec<i32>,
    /// All values, one after the other.
    pub data: Vec<u8>,
}

/// The values of a column. At null rows the value is unspecified but present.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is the column type of its name")]
pub enum Values {
    S64(Vec<i64>),
    S32(Vec<i32>),
    F64(Vec<f64>),
    F32(Vec<f32>),
    U8(Vec<u8>),
    Bits(Vec<u8>),
    Text(VarBytes),
    Binary(VarBytes),
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The values.
    pub values: Values,
    /// A bitmap in which a clear bit is a null; `None` when no row is null.
    pub validity: Option<Vec<u8>>,
}

/// Some rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// How many rows each column has.
    pub rows: usize,
    /// The columns, in the order the plugin asked for.
    pub columns: Vec<Column>,
}

impl Values {
    /// Returns the type.
    #[must_use]
    pub const fn column_type(&self) -> ColumnType {
        match self {
            Self::S64(_) => ColumnType::S64,
            Self::S32(_) => ColumnType::S32,
            Self::F64(_) => ColumnType::F64,
            Self::F32(_) => ColumnType::F32,
            Self::U8(_) => ColumnType::U8,
            Self::Bits(_) => ColumnType::Bits,
            Self::Text(_) => ColumnType::Text,
            Self::Binary(_) => ColumnType::Binary,
        }
    }

    /// Tells whether there are values for exactly `rows` rows.
    #[must_use]
    pub fn fit(&self, rows: usize) -> bool {
        match self {
            Self::S64(values) => values.len() == rows,
            Self::S32(values) => values.len() == rows,
            Self::F64(values) => values.len() == rows,
            Self::F32(values) => values.len() == rows,
            Self::U8(values) => values.len() == rows,
            Self::Bits(bytes) => bytes.len() == rows.div_ceil(8),
            Self::Text(values) | Self::Binary(values) => values.offsets.len() == rows + 1,
        }
    }
}

impl Column {
    /// Checks that values and validity are for exactly `rows` rows.
    ///
    /// # Errors
    /// Returns [`PluginError::InvalidInput`] when they are not.
    pub fn check(&self, rows: usize) -> Result<(), PluginError> {
        let valid = match &self.validity {
            Some(bytes) => Bits::new(bytes, rows).is_some(),
            None => true,
        };
        if valid && self.values.fit(rows) {
            Ok(())
        } else {
            Err(PluginError::InvalidInput(format!(
                "a {:?} column does not have the expected {rows} rows",
                self.values.column_type()
            )))
        }
    }

    /// Returns the validity bitmap over `rows` rows; `None` when no row is null.
    #[must_use]
    pub fn validity(&self, rows: usize) -> Option<Bits<'_>> {
        self.validity.as_deref().and_then(|bytes| Bits::new(bytes, rows))
    }
}

impl Batch {
    /// Checks that every column has the batch's rows.
    ///
    /// # Errors
    /// Returns [`PluginError::InvalidInput`] when one has not.
    pub fn check(&self) -> Result<(), PluginError> {
        self.columns.iter().try_for_each(|column| column.check(self.rows))
    }
}
