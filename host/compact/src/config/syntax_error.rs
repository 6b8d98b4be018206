//! Faults in the string form, each with its place.

/// A fault in the string form. Positions are byte offsets into the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// The text begins with neither a filter nor the comma that stands for none.
    #[error(
        "expected a filter or \",\" at position {position}: write \",{rest}\" when there is no filter"
    )]
    NoFilterOrComma {
        /// Where the text begins.
        position: usize,
        /// What stands there.
        rest: String,
    },
    /// The filter has a name that the form does not know.
    #[error(
        "unknown filter \"{filter}\" at position {position}: the string form knows only ageoff"
    )]
    UnknownFilter {
        /// Where the filter begins.
        position: usize,
        /// The filter's name.
        filter: String,
    },
    /// The age-off lacks an argument.
    #[error(
        "ageoff needs a column and a period in seconds: the {missing} is missing at position {position}"
    )]
    IncompleteAgeOff {
        /// Where the argument should stand.
        position: usize,
        /// Which argument it is.
        missing: &'static str,
    },
    /// The period is not a count of seconds.
    #[error(
        "ageoff period \"{period}\" at position {position} is not a whole number of seconds from 0 to {}",
        i64::MAX
    )]
    BadPeriod {
        /// Where the period begins.
        position: usize,
        /// What was written.
        period: String,
    },
    /// A filter stands among the aggregations.
    #[error(
        "expected 'column'=op at position {position}, found a filter: only one filter is allowed, and it comes first; use [[iterator]] in TOML for more"
    )]
    MisplacedFilter {
        /// Where the filter begins.
        position: usize,
    },
    /// Something else stands where an aggregation should.
    #[error("expected 'column'=op at position {position}, found {found}")]
    NoFold {
        /// Where the text stops being an aggregation.
        position: usize,
        /// What stands there.
        found: String,
    },
    /// The text ends with a comma.
    #[error("expected 'column'=op after \",\" at position {position}, found end of text")]
    TrailingComma {
        /// Where the comma stands.
        position: usize,
    },
    /// The aggregation has a name that the form does not know.
    #[error(
        "unknown aggregation \"{fold}\" for column \"{column}\" at position {position}: know sum, count, min, max"
    )]
    UnknownFold {
        /// Where the aggregation's name begins.
        position: usize,
        /// The aggregation's name.
        fold: String,
        /// The column it was meant for.
        column: String,
    },
    /// A column has two aggregations.
    #[error("column \"{column}\" has two aggregations (positions {first} and {position})")]
    RepeatedColumn {
        /// Where the second begins.
        position: usize,
        /// Where the first begins.
        first: usize,
        /// The column.
        column: String,
    },
    /// Two parts are not separated.
    #[error("expected \",\" at position {position}, found {found}")]
    NoComma {
        /// Where the comma should stand.
        position: usize,
        /// What stands there.
        found: String,
    },
    /// A quote has no end.
    #[error("quote opened at position {position} is not closed")]
    UnclosedQuote {
        /// Where the quote was opened.
        position: usize,
    },
    /// A quoted name holds nothing.
    #[error("column name at position {position} is empty")]
    EmptyName {
        /// Where the name begins.
        position: usize,
    },
}

impl SyntaxError {
    /// Returns the byte offset that the error points at.
    #[must_use]
    pub const fn position(&self) -> usize {
        match self {
            Self::NoFilterOrComma { position, .. }
            | Self::UnknownFilter { position, .. }
            | Self::IncompleteAgeOff { position, .. }
            | Self::BadPeriod { position, .. }
            | Self::MisplacedFilter { position }
            | Self::NoFold { position, .. }
            | Self::TrailingComma { position }
            | Self::UnknownFold { position, .. }
            | Self::RepeatedColumn { position, .. }
            | Self::NoComma { position, .. }
            | Self::UnclosedQuote { position }
            | Self::EmptyName { position } => *position,
        }
    }

    /// Shows the line of `text` that the error points into, and below it a caret at the place.
    #[must_use]
    pub fn caret(&self, text: &str) -> String {
        let at = (0..=self.position().min(text.len()))
            .rev()
            .find(|&at| text.is_char_boundary(at))
            .unwrap_or(0);
        let (before, after) = text.split_at(at);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = after.find('\n').map_or(text.len(), |newline| at + newline);
        // Tabs are repeated so that the caret lines up whatever their width.
        let indent: String =
            before[line_start..].chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        format!("{}\n{indent}^", &text[line_start..line_end])
    }
}
