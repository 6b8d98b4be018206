//! The SQL statements of ours: read here, run by the caller.
//!
//! Everything that starts with `SELECT` or `WITH` is a query for the engine.

use crate::{LayoutError, columns::join_name};

/// A table as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableReference {
    /// A name of the lake.
    Name(String),
    /// `` delta.`url` ``.
    Location(String),
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// `ALTER TABLE t CLUSTER BY (a, b)`; no columns for `CLUSTER BY NONE`.
    ClusterBy {
        /// The table.
        table: TableReference,
        /// The columns.
        columns: Vec<String>,
    },
    /// `OPTIMIZE t [FULL]`.
    Optimize {
        /// The table.
        table: TableReference,
        /// Whether FULL was said.
        full: bool,
    },
    /// `DESCRIBE DETAIL t`.
    DescribeDetail {
        /// The table.
        table: TableReference,
    },
    /// `DESCRIBE HISTORY t`.
    DescribeHistory {
        /// The table.
        table: TableReference,
    },
    /// A query.
    Query {
        /// Its text.
        sql: String,
    },
}

impl Statement {
    /// Parses one statement; a final semicolon is allowed.
    ///
    /// # Errors
    /// Fails with the byte position, what was expected and what was found.
    pub fn parse(text: &str) -> Result<Self, LayoutError> {
        let mut reader = Reader { text, position: 0 };
        let start = reader.peek();
        let statement = match start.keyword().as_deref() {
            Some("SELECT" | "WITH") => {
                let sql = text.trim().trim_end_matches(';').to_owned();
                return Ok(Self::Query { sql });
            }
            Some("ALTER") => {
                reader.expect(&["ALTER", "TABLE"])?;
                let table = reader.table()?;
                reader.expect(&["CLUSTER", "BY"])?;
                let columns = reader.cluster_columns()?;
                Self::ClusterBy { table, columns }
            }
            Some("OPTIMIZE") => {
                reader.expect(&["OPTIMIZE"])?;
                let table = reader.table()?;
                let full = reader.accept("FULL");
                Self::Optimize { table, full }
            }
            Some("DESCRIBE" | "DESC") => {
                reader.next_token();
                let detail = reader.accept("DETAIL");
                if !detail {
                    reader.expect_one_of("HISTORY", "DETAIL or HISTORY")?;
                }
                let table = reader.table()?;
                if detail {
                    Self::DescribeDetail { table }
                } else {
                    Self::DescribeHistory { table }
                }
            }
            _ => {
                return Err(start.unexpected(
                    "SELECT, WITH, ALTER TABLE, OPTIMIZE, DESCRIBE DETAIL or DESCRIBE HISTORY",
                ));
            }
        };
        reader.end()?;
        Ok(statement)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    position: usize,
    text: String,
    quoted: bool,
}

impl Token {
    fn keyword(&self) -> Option<String> {
        (!self.quoted && !self.text.is_empty()).then(|| self.text.to_ascii_uppercase())
    }

    fn unexpected(&self, expected: &str) -> LayoutError {
        LayoutError::Statement {
            position: self.position,
            expected: expected.to_owned(),
            found: if self.text.is_empty() {
                "the end of the statement".to_owned()
            } else {
                format!("`{}`", self.text)
            },
        }
    }
}

#[derive(Debug)]
struct Reader<'a> {
    text: &'a str,
    position: usize,
}

impl Reader<'_> {
    fn next_token(&mut self) -> Token {
        let rest = &self.text[self.position..];
        let start = self.position + (rest.len() - rest.trim_start().len());
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else {
            self.position = start;
            return Token { position: start, text: String::new(), quoted: false };
        };
        if first == '`' {
            return self.quoted_token(start);
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        self.position = start + length;
        Token { position: start, text: rest[..length].to_owned(), quoted: false }
    }

    /// Reads a name in back-ticks; two of them inside stand for one.
    fn quoted_token(&mut self, start: usize) -> Token {
        let inner = &self.text[start + 1..];
        let mut text = String::new();
        let mut characters = inner.char_indices().peekable();
        self.position = self.text.len();
        while let Some((at, character)) = characters.next() {
            if character == '`' && characters.next_if(|(_, next)| *next == '`').is_none() {
                self.position = start + 1 + at + 1;
                break;
            }
            text.push(character);
        }
        Token { position: start, text, quoted: true }
    }

    fn peek(&mut self) -> Token {
        let position = self.position;
        let token = self.next_token();
        self.position = position;
        token
    }

    fn accept(&mut self, word: &str) -> bool {
        let matches = self.peek().keyword().as_deref() == Some(word);
        if matches {
            self.next_token();
        }
        matches
    }

    fn expect_one_of(&mut self, word: &str, expected: &str) -> Result<(), LayoutError> {
        let token = self.next_token();
        if token.keyword().as_deref() == Some(word) {
            Ok(())
        } else {
            Err(token.unexpected(expected))
        }
    }

    fn expect(&mut self, words: &[&str]) -> Result<(), LayoutError> {
        words.iter().try_for_each(|word| self.expect_one_of(word, word))
    }

    fn name(&mut self, expected: &str) -> Result<String, LayoutError> {
        let token = self.next_token();
        let word = token.text.chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_');
        if token.quoted || word { Ok(token.text) } else { Err(token.unexpected(expected)) }
    }

    fn dotted_name(&mut self, expected: &str) -> Result<Vec<String>, LayoutError> {
        let mut parts = vec![self.name(expected)?];
        while self.accept(".") {
            parts.push(self.name(expected)?);
        }
        Ok(parts)
    }

    fn table(&mut self) -> Result<TableReference, LayoutError> {
        let parts = self.dotted_name("a table name")?;
        Ok(match parts.as_slice() {
            [format, location] if format.eq_ignore_ascii_case("delta") => {
                TableReference::Location(location.clone())
            }
            parts => TableReference::Name(parts.join(".")),
        })
    }

    fn cluster_columns(&mut self) -> Result<Vec<String>, LayoutError> {
        if self.accept("NONE") {
            return Ok(Vec::new());
        }
        self.expect_one_of("(", "( or NONE")?;
        let mut columns = vec![join_name(&self.dotted_name("a column name")?)];
        while self.accept(",") {
            columns.push(join_name(&self.dotted_name("a column name")?));
        }
        self.expect_one_of(")", ", or )")?;
        Ok(columns)
    }

    fn end(&mut self) -> Result<(), LayoutError> {
        self.accept(";");
        let token = self.next_token();
        if token.text.is_empty() {
            Ok(())
        } else {
            Err(token.unexpected("the end of the statement"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Statement, TableReference};

    fn name(text: &str) -> TableReference {
        TableReference::Name(text.into())
    }

    #[track_caller]
    fn check(sql: &str, expected: Statement) {
        assert_eq!(Statement::parse(sql).unwrap(), expected);
    }

    #[track_caller]
    fn refuse(sql: &str, message: &str) {
        assert_eq!(Statement::parse(sql).unwrap_err().to_string(), message);
    }

    #[test]
    fn statements_parse() {
        check(
            "ALTER TABLE db.t CLUSTER BY (a, `odd name`, s.x);",
            Statement::ClusterBy {
                table: name("db.t"),
                columns: vec!["a".into(), "odd name".into(), "s.x".into()],
            },
        );
        check(
            "alter table t cluster by none",
            Statement::ClusterBy { table: name("t"), columns: vec![] },
        );
        check(
            "OPTIMIZE delta.`/lake/t` FULL",
            Statement::Optimize { table: TableReference::Location("/lake/t".into()), full: true },
        );
        check("optimize t", Statement::Optimize { table: name("t"), full: false });
        check("DESCRIBE DETAIL t", Statement::DescribeDetail { table: name("t") });
        check("desc history t;", Statement::DescribeHistory { table: name("t") });
        check("  SELECT 1; ", Statement::Query { sql: "SELECT 1".into() });
    }

    #[test]
    fn errors_name_position_expectation_and_finding() {
        refuse(
            "OPTIMIZE t ZORDER BY (a)",
            "parse statement at byte 11: expected the end of the statement, found `ZORDER`",
        );
        refuse(
            "ALTER TABLE t CLUSTER BY a",
            "parse statement at byte 25: expected ( or NONE, found `a`",
        );
        refuse(
            "ALTER TABLE t CLUSTER BY (a",
            "parse statement at byte 27: expected , or ), found the end of the statement",
        );
        refuse(
            "VACUUM t",
            "parse statement at byte 0: expected SELECT, WITH, ALTER TABLE, OPTIMIZE, DESCRIBE DETAIL or DESCRIBE HISTORY, found `VACUUM`",
        );
    }
}
