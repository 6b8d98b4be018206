//! Words, names, numbers and texts of a statement, each with its place.

use crate::LayoutError;

use super::TableReference;

/// The smallest piece of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) position: usize,
    pub(super) text: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A word, a number or a sign.
    Plain,
    /// A name between back-ticks.
    Quoted,
    /// Text between apostrophes or quotation marks.
    Text,
    End,
}

impl Token {
    pub(super) fn keyword(&self) -> Option<String> {
        (self.kind == Kind::Plain).then(|| self.text.to_ascii_uppercase())
    }

    pub(super) fn is_end(&self) -> bool {
        self.kind == Kind::End
    }

    pub(super) fn unexpected(&self, expected: &str) -> LayoutError {
        LayoutError::Statement {
            position: self.position,
            expected: expected.to_owned(),
            found: if self.kind == Kind::End {
                "the end of the statement".to_owned()
            } else {
                format!("`{}`", self.text)
            },
        }
    }
}

/// Reads a statement from left to right.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    pub(super) fn next_token(&mut self) -> Token {
        self.skip_blanks();
        let (start, rest) = (self.position, &self.text[self.position..]);
        let Some(first) = rest.chars().next() else {
            return Token { position: start, text: String::new(), kind: Kind::End };
        };
        if matches!(first, '`' | '\'' | '"') {
            let (text, length) = delimited(rest, first);
            self.position += length;
            let kind = if first == '`' { Kind::Quoted } else { Kind::Text };
            return Token { position: start, text, kind };
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        self.position += length;
        Token { position: start, text: rest[..length].to_owned(), kind: Kind::Plain }
    }

    /// Skips white space and comments.
    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.position..];
            let trimmed = rest.trim_start();
            self.position += rest.len() - trimmed.len();
            let end = if trimmed.starts_with("--") {
                trimmed.find('\n')
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").map(|at| at + 2)
            } else {
                return;
            };
            self.position += end.unwrap_or(trimmed.len());
        }
    }

    pub(super) fn peek(&mut self) -> Token {
        let position = self.position;
        let token = self.next_token();
        self.position = position;
        token
    }

    pub(super) fn accept(&mut self, word: &str) -> bool {
        let matches = self.peek().keyword().as_deref() == Some(word);
        if matches {
            self.next_token();
        }
        matches
    }

    /// Accepts a sequence of words, or nothing of it.
    pub(super) fn accept_all(&mut self, words: &[&str]) -> bool {
        let position = self.position;
        let matches = words.iter().all(|word| self.accept(word));
        if !matches {
            self.position = position;
        }
        matches
    }

    pub(super) fn expect_one_of(&mut self, word: &str, expected: &str) -> Result<(), LayoutError> {
        let token = self.next_token();
        if token.keyword().as_deref() == Some(word) {
            Ok(())
        } else {
            Err(token.unexpected(expected))
        }
    }

    pub(super) fn expect(&mut self, words: &[&str]) -> Result<(), LayoutError> {
        words.iter().try_for_each(|word| self.expect_one_of(word, word))
    }

    pub(super) fn name(&mut self, expected: &str) -> Result<String, LayoutError> {
        let token = self.next_token();
        let is_word = token.kind == Kind::Plain
            && token.text.chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_');
        if token.kind == Kind::Quoted || is_word {
            Ok(token.text)
        } else {
            Err(token.unexpected(expected))
        }
    }

    pub(super) fn dotted_name(&mut self, expected: &str) -> Result<Vec<String>, LayoutError> {
        let mut parts = vec![self.name(expected)?];
        while self.accept(".") {
            parts.push(self.name(expected)?);
        }
        Ok(parts)
    }

    /// Reads text between apostrophes or quotation marks.
    pub(super) fn text(&mut self, expected: &str) -> Result<String, LayoutError> {
        let token = self.next_token();
        if token.kind == Kind::Text { Ok(token.text) } else { Err(token.unexpected(expected)) }
    }

    pub(super) fn number<N: std::str::FromStr>(
        &mut self,
        expected: &str,
    ) -> Result<N, LayoutError> {
        let token = self.next_token();
        token.text.parse().map_err(|_| token.unexpected(expected))
    }

    pub(super) fn table(&mut self) -> Result<TableReference, LayoutError> {
        let parts = self.dotted_name("a table name")?;
        Ok(match parts.as_slice() {
            [format, location] if format.eq_ignore_ascii_case("delta") => {
                TableReference::Location(location.clone())
            }
            parts => TableReference::Name(parts.join(".")),
        })
    }

    /// Reads `(item, …)`.
    pub(super) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, LayoutError>,
    ) -> Result<Vec<T>, LayoutError> {
        self.expect(&["("])?;
        let mut items = vec![item(self)?];
        while self.accept(",") {
            items.push(item(self)?);
        }
        self.expect_one_of(")", ", or )")?;
        Ok(items)
    }

    /// Returns what follows, without reading it.
    pub(super) fn rest_ahead(&self) -> &'a str {
        &self.text[self.position..]
    }

    /// Goes back to before a token.
    pub(super) const fn step_back(&mut self, token: &Token) {
        self.position = token.position;
    }

    /// Returns all that is left, without a final semicolon.
    pub(super) fn rest(&mut self) -> &'a str {
        self.skip_blanks();
        let rest = self.text[self.position..].trim_end();
        self.position = self.text.len();
        rest.trim_end_matches(';').trim_end()
    }

    /// Returns what is left, which must be something.
    pub(super) fn some_rest(&mut self, expected: &str) -> Result<String, LayoutError> {
        let token = self.peek();
        let rest = self.rest();
        if rest.is_empty() { Err(token.unexpected(expected)) } else { Ok(rest.to_owned()) }
    }

    pub(super) fn end(&mut self) -> Result<(), LayoutError> {
        self.accept(";");
        let token = self.next_token();
        if token.kind == Kind::End {
            Ok(())
        } else {
            Err(token.unexpected("the end of the statement"))
        }
    }
}

/// Reads up to the closing mark; the mark twice stands for itself, and in text a backslash takes the
/// next character as it is. Returns the content and the length with the marks.
fn delimited(text: &str, mark: char) -> (String, usize) {
    let mut content = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == mark {
            if chars.next_if(|(_, next)| *next == mark).is_none() {
                return (content, at + mark.len_utf8());
            }
            content.push(mark);
        } else if c == '\\' && mark != '`' {
            match chars.next() {
                Some((_, 'n')) => content.push('\n'),
                Some((_, 't')) => content.push('\t'),
                Some((_, escaped)) => content.push(escaped),
                None => content.push(c),
            }
        } else {
            content.push(c);
        }
    }
    (content, text.len())
}
