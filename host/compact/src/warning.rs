//! What is allowed but should be known.

use std::fmt;

/// A chain's behavior that its owner may not expect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Warning {
    /// Rows of one group age one by one, so its totals depend on when compactions ran.
    AgeOffOutsideKeys {
        /// The column that rows age by.
        column: String,
    },
    /// The last digits of a floating-point sum depend on which files were compacted together.
    FloatSum {
        /// The column summed.
        column: String,
    },
    /// Values already in the column are taken as counts.
    CountTakesValues {
        /// The column counted into.
        column: String,
    },
    /// Most of the column's values, read as seconds, lie a century ahead.
    FarFuture {
        /// The column that rows age by.
        column: String,
    },
}

impl Warning {
    /// Returns the column that the warning is about.
    #[must_use]
    pub fn column(&self) -> &str {
        match self {
            Self::AgeOffOutsideKeys { column }
            | Self::FloatSum { column }
            | Self::CountTakesValues { column }
            | Self::FarFuture { column } => column,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AgeOffOutsideKeys { column } => write!(
                f,
                "rows age off by \"{column}\", which is no row key: totals will depend on when compactions run; to avoid this make a bucket of it, such as its day, a row key"
            ),
            Self::FloatSum { column } => write!(
                f,
                "sum of floating-point column \"{column}\": the last digits will depend on which files are compacted together"
            ),
            Self::CountTakesValues { column } => write!(
                f,
                "count adds up the values in \"{column}\" and counts each null as one row: read it as sum(coalesce(\"{column}\", 1))"
            ),
            Self::FarFuture { column } => write!(
                f,
                "most values of ageoff column \"{column}\" lie more than 100 years ahead: integers are read as seconds since 1970, are these milliseconds?"
            ),
        }
    }
}
