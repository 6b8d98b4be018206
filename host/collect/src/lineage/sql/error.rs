//! Why a statement has no lineage.

use super::depth::{MAX_DEPTH, MAX_TOKENS};

/// Why a statement has no lineage. No text of these holds a constant of the statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineageError {
    /// The text is no statement of its dialect.
    #[error("parse SQL at line {line}, column {column}: {message}")]
    Parse {
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: u64,
        /// What was expected and found.
        message: String,
    },
    /// The dialect does not exist.
    #[error("parse SQL of dialect `{dialect}`: unknown dialect, expected one of {known}")]
    UnknownDialect {
        /// The dialect as given.
        dialect: String,
        /// The dialects that exist.
        known: String,
    },
    /// The text nests deeper, or is longer, than what is read.
    #[error(
        "parse SQL: too deep or too long: levels={levels} levels_max={} tokens={tokens} tokens_max={}",
        MAX_DEPTH,
        MAX_TOKENS
    )]
    TooDeep {
        /// Levels of nesting.
        levels: usize,
        /// Tokens.
        tokens: usize,
    },
    /// The statement reads no table.
    #[error("find a query in `{statement}`: it reads no table")]
    NoQuery {
        /// The statement's first words.
        statement: String,
    },
    /// The planner cannot plan the statement.
    #[error("plan SQL: {message}")]
    Plan {
        /// What the planner said, first line, without constants.
        message: String,
    },
    /// The statement misses more columns than any real one.
    #[error("plan SQL: gave up after growing stub schemas {limit} times")]
    TooManyStubs {
        /// The bound.
        limit: usize,
    },
}

/// The longest message of the planner that is kept.
const MESSAGE_CHARS: usize = 160;

/// Cuts what a planner says to its first line, without whatever stands in quotes and without digits.
pub(super) fn redacted(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    // The planner prints syntax trees.
    let line = line.split('{').next().unwrap_or_default();
    if line.matches(['\'', '"', '`']).count() % 2 == 1 {
        // A quote inside a constant: where constants end is not certain.
        return line.split(['\'', '"', '`']).next().unwrap_or_default().trim_end().to_owned();
    }
    let mut out = String::new();
    let mut quote = None;
    for c in line.chars().take(MESSAGE_CHARS) {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '\'' | '"' | '`') => {
                quote = Some(c);
                out.push('…');
            }
            None if c.is_ascii_digit() => {
                if !out.ends_with('?') {
                    out.push('?');
                }
            }
            None => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn a_planner_message_keeps_no_constant() {
        assert_eq!(
            redacted("Cannot cast 'secret' to \"Int64\" at 17\nbacktrace"),
            "Cannot cast … to … at ?"
        );
        assert_eq!(redacted("Cannot cast 'it's' to Int"), "Cannot cast");
    }
}
