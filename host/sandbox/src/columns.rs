//! Columns as plain slices, in Arrow's memory layout.

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// 64-bit integers; timestamps as microseconds since the epoch.
    S64,
    /// 32-bit integers; dates as days since the epoch.
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

/// The values of a column that goes to a guest. At null rows the value is unspecified but present.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ColumnValues<'a> {
    /// 64-bit integers.
    S64(&'a [i64]),
    /// 32-bit integers.
    S32(&'a [i32]),
    /// Doubles.
    F64(&'a [f64]),
    /// Singles.
    F32(&'a [f32]),
    /// Bytes as small numbers.
    U8(&'a [u8]),
    /// A bitmap, least significant bit first; bits after the last row are zero.
    Bits(&'a [u8]),
    /// UTF-8 text: value `r` is `data[offsets[r]..offsets[r + 1]]`, the first offset is 0.
    Text {
        /// One more than there are rows.
        offsets: &'a [i32],
        /// All values, one after the other.
        data: &'a [u8],
    },
    /// Bytes, laid out as text.
    Binary {
        /// One more than there are rows.
        offsets: &'a [i32],
        /// All values, one after the other.
        data: &'a [u8],
    },
}

/// A column that goes to a guest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Column<'a> {
    /// The values.
    pub values: ColumnValues<'a>,
    /// A bitmap in which a clear bit is a null; `None` when no row is null.
    pub validity: Option<&'a [u8]>,
}

/// Some rows of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Batch<'a> {
    /// How many rows each column has.
    pub row_count: u32,
    /// The columns, in the order the plugin asked for.
    pub columns: &'a [Column<'a>],
}

/// Text or bytes that came from a guest: value `r` is `data[offsets[r]..offsets[r + 1]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedVarBytes {
    /// One more than there are rows; from 0, never falling, up to the length of `data`.
    pub offsets: Vec<i32>,
    /// All values, one after the other.
    pub data: Vec<u8>,
}

/// The values of a column that came from a guest, checked.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnedValues {
    /// 64-bit integers.
    S64(Vec<i64>),
    /// 32-bit integers.
    S32(Vec<i32>),
    /// Doubles.
    F64(Vec<f64>),
    /// Singles.
    F32(Vec<f32>),
    /// Bytes as small numbers.
    U8(Vec<u8>),
    /// A bitmap, least significant bit first; bits after the last row are zero.
    Bits(Vec<u8>),
    /// UTF-8 text; each value is valid UTF-8.
    Text(OwnedVarBytes),
    /// Bytes.
    Binary(OwnedVarBytes),
}

/// A column that came from a guest, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedColumn {
    /// The values.
    pub values: OwnedValues,
    /// A bitmap in which a clear bit is a null; `None` when no row is null.
    pub validity: Option<Vec<u8>>,
}

impl ColumnType {
    /// Returns the name of the type in `wit/`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::S64 => "s64",
            Self::S32 => "s32",
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::U8 => "u8",
            Self::Bits => "bits",
            Self::Text => "text",
            Self::Binary => "binary",
        }
    }
}

impl ColumnValues<'_> {
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
            Self::Text { .. } => ColumnType::Text,
            Self::Binary { .. } => ColumnType::Binary,
        }
    }
}

impl OwnedValues {
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

    /// Lends the values, for a column that goes on to another guest.
    #[must_use]
    pub fn as_values(&self) -> ColumnValues<'_> {
        match self {
            Self::S64(values) => ColumnValues::S64(values),
            Self::S32(values) => ColumnValues::S32(values),
            Self::F64(values) => ColumnValues::F64(values),
            Self::F32(values) => ColumnValues::F32(values),
            Self::U8(values) => ColumnValues::U8(values),
            Self::Bits(bytes) => ColumnValues::Bits(bytes),
            Self::Text(text) => ColumnValues::Text { offsets: &text.offsets, data: &text.data },
            Self::Binary(bytes) => {
                ColumnValues::Binary { offsets: &bytes.offsets, data: &bytes.data }
            }
        }
    }
}

impl OwnedColumn {
    /// Lends the column, for another guest: partial states that are merged.
    #[must_use]
    pub fn as_column(&self) -> Column<'_> {
        Column { values: self.values.as_values(), validity: self.validity.as_deref() }
    }
}
