//! A text with its plain constants lifted out.
//!
//! Two texts that differ in plain constants only have one syntax tree but for these. So a text without
//! them is known by a digest, and the constants stand beside it in order.
//! 1. A constant is plain where no dialect can see other borders: digits with at most one point, and
//!    strings without quotes or backslashes inside. All else stays in the text and has to be the same.
//! 2. White space counts as one space; comments count as white space, but for hints.
//! 3. A list of nothing but plain constants of one kind behind `IN` is one constant, so that its length
//!    does not count; of `(1999, 1999 + 1)` each is a constant of its own.
//! 4. A text with syntax whose borders depend on the dialect (`#`, `//`, `$$`, templates, a backslash
//!    before a quote) is not lifted: it is parsed each time.

use std::ops::Range;

use sha2::{Digest, Sha256};

use super::Dialect;

/// More digits may make a number another type; such numbers stay in the text.
const MAX_DIGITS: usize = 18;

/// What a plain constant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Decimal,
    Single,
    Double,
}

impl Kind {
    /// Stands in the text for the constant; control characters are in no text that is lifted.
    const fn mark(self) -> u8 {
        match self {
            Self::Integer => 1,
            Self::Decimal => 2,
            Self::Single => 3,
            Self::Double => 4,
        }
    }
}

/// Stands behind the mark of a list.
const LIST: u8 = 5;

/// A plain constant, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Constant<'t> {
    pub(super) kind: Kind,
    pub(super) is_list: bool,
    /// The values without their quotes, each with the place in the text where it starts, quote
    /// included.
    pub(super) values: Vec<(usize, &'t str)>,
}

/// A text without its plain constants.
#[derive(Debug)]
pub(super) struct Lifted<'t> {
    /// Digest of what is left, and of the dialect.
    pub(super) key: [u8; 32],
    pub(super) constants: Vec<Constant<'t>>,
}

impl<'t> Lifted<'t> {
    /// Lifts the constants; `None` where the text has syntax that only its dialect can cut.
    pub(super) fn of(sql: &'t str, dialect: Dialect) -> Option<Self> {
        let mut lifter = Lifter {
            sql,
            bytes: sql.as_bytes(),
            dialect,
            rest: Vec::with_capacity(sql.len()),
            constants: Vec::new(),
            word: 0..0,
            list: None,
        };
        let mut at = 0;
        while at < sql.len() {
            at = lifter.step(at)?;
        }
        let mut digest = Sha256::new();
        digest.update([dialect as u8]);
        digest.update(&lifter.rest);
        Some(Self { key: digest.finalize().into(), constants: lifter.constants })
    }

    /// Counts the values of all constants.
    pub(super) fn value_count(&self) -> usize {
        self.constants.iter().map(|constant| constant.values.len()).sum()
    }
}

struct Lifter<'t> {
    sql: &'t str,
    bytes: &'t [u8],
    dialect: Dialect,
    /// What is left of the text.
    rest: Vec<u8>,
    constants: Vec<Constant<'t>>,
    /// The last word, while nothing but white space and one parenthesis stands behind it.
    word: Range<usize>,
    list: Option<List>,
}

/// A list of constants behind `IN` that may go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    /// The parenthesis is open.
    Opened,
    /// The last constant belongs to it.
    Value,
    /// A comma stands behind the last constant.
    Comma,
}

impl<'t> Lifter<'t> {
    /// Reads what starts at a place and returns where it ends.
    fn step(&mut self, at: usize) -> Option<usize> {
        let byte = self.bytes[at];
        let next = self.bytes.get(at + 1).copied().unwrap_or_default();
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {
                self.space();
                Some(at + 1)
            }
            // Marks of ours, and what dialects cut in different ways.
            0..=31 | b'#' => None,
            b'-' if next == b'-' => self.line_comment(at),
            b'/' if next == b'*' => self.block_comment(at),
            b'/' if next == b'/' => None,
            b'{' if matches!(next, b'{' | b'%' | b'#') => None,
            b'%' if next == b'(' => None,
            b'$' if !next.is_ascii_digit() => None,
            b'\'' | b'"' => self.quoted(at, byte),
            b'`' => {
                let end = at + 1 + self.sql[at + 1..].find('`')? + 1;
                Some(self.keep(at..end))
            }
            b'0'..=b'9' => Some(self.number(at)),
            _ if is_name(byte) => {
                let end = self.end_of_name(at);
                self.keep(at..end);
                self.word = at..end;
                Some(end)
            }
            _ => Some(self.symbol(at, byte)),
        }
    }

    fn space(&mut self) {
        // Within a list of constants no space counts.
        if self.list.is_none() && self.rest.last().is_some_and(|last| *last != b' ') {
            self.rest.push(b' ');
        }
    }

    /// Leaves a piece of the text as it is.
    fn keep(&mut self, piece: Range<usize>) -> usize {
        let closes = self.list == Some(List::Value) && self.bytes[piece.clone()] == *b")";
        if !closes {
            self.part_list();
        }
        self.put_comma();
        self.list = None;
        self.word = 0..0;
        self.rest.extend_from_slice(&self.bytes[piece.clone()]);
        piece.end
    }

    /// Makes constants of their own of those that were taken for a list, where something else follows.
    fn part_list(&mut self) {
        if !matches!(self.list, Some(List::Value | List::Comma)) {
            return;
        }
        let Some(Constant { kind, values, .. }) = self.constants.pop() else { return };
        // The marks of the constant and of its being a list are the last that was written.
        self.rest.truncate(self.rest.len().saturating_sub(2));
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.rest.push(b',');
            }
            self.rest.push(kind.mark());
            self.constants.push(Constant { kind, is_list: false, values: vec![value] });
        }
    }

    /// Puts the comma back that no constant of the list follows.
    fn put_comma(&mut self) {
        if self.list == Some(List::Comma) {
            self.rest.push(b',');
        }
    }

    fn symbol(&mut self, at: usize, byte: u8) -> usize {
        match (byte, self.list) {
            (b',', Some(List::Value)) => {
                self.list = Some(List::Comma);
                return at + 1;
            }
            (b'(', _) if self.last_word_is(&["in"]) => {
                self.keep(at..at + 1);
                self.list = Some(List::Opened);
                return at + 1;
            }
            _ => {}
        }
        // Whole characters: what is left is compared as bytes, but places are characters.
        let length = self.sql[at..].chars().next().map_or(1, char::len_utf8);
        self.keep(at..at + length)
    }

    fn last_word_is(&self, words: &[&str]) -> bool {
        let word = &self.sql[self.word.clone()];
        words.iter().any(|known| word.eq_ignore_ascii_case(known))
    }

    fn line_comment(&mut self, at: usize) -> Option<usize> {
        let follows = self.bytes.get(at + 2).copied().unwrap_or(b' ');
        if self.dialect == Dialect::MySql && !follows.is_ascii_whitespace() {
            return None;
        }
        let end = self.sql[at..].find('\n').map_or(self.sql.len(), |length| at + length);
        // Some end a comment here, others do not.
        let returns = self.sql[at..end].find('\r').map(|place| at + place + 1);
        if returns.is_some_and(|place| place != end) {
            return None;
        }
        self.space();
        Some(end)
    }

    fn block_comment(&mut self, at: usize) -> Option<usize> {
        let inner = &self.sql[at + 2..];
        let length = inner.find("*/")?;
        if inner[..length].contains("/*") {
            return None;
        }
        let end = at + 2 + length + 2;
        if inner.starts_with(['+', '!']) {
            return Some(self.keep(at..end));
        }
        self.space();
        Some(end)
    }

    fn quoted(&mut self, at: usize, quote: u8) -> Option<usize> {
        let bytes = self.bytes;
        if bytes[at..].starts_with(&[quote; 3]) {
            return None;
        }
        let (mut end, mut is_plain) = (at + 1, true);
        loop {
            match *bytes.get(end)? {
                b'\\' => is_plain = false,
                byte if byte == quote => {
                    if bytes[end - 1] == b'\\' {
                        return None;
                    }
                    if bytes.get(end + 1) != Some(&quote) {
                        break;
                    }
                    is_plain = false;
                    end += 1;
                }
                b'{' | b'%'
                    if bytes
                        .get(end + 1)
                        .is_some_and(|b| matches!(b, b'{' | b'%' | b'#' | b'(')) =>
                {
                    return None;
                }
                b'$' if bytes.get(end + 1) == Some(&b'{') => return None,
                0..=8 => return None,
                _ => {}
            }
            end += 1;
        }
        let value = &self.sql[at + 1..end];
        let is_string = quote == b'\'' || self.dialect.double_quotes_are_strings();
        if !is_plain || !is_string || self.is_prefixed(at) || self.last_word_is(&["interval"]) {
            return Some(self.keep(at..end + 1));
        }
        self.lift(if quote == b'\'' { Kind::Single } else { Kind::Double }, at, value);
        Some(end + 1)
    }

    /// Tells whether the string has a prefix, as `r'…'` and `U&'…'` have. Longer words stand before
    /// strings that have none: `DATE'…'`.
    fn is_prefixed(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1).map(|before| self.bytes[before]) else { return false };
        let adjacent = self.word.end == at && self.word.len() < 3;
        let introduced = self.word.end == at && self.bytes[self.word.start] == b'_';
        before == b'&' || is_name(before) && (adjacent || introduced || self.word.end != at)
    }

    fn number(&mut self, at: usize) -> usize {
        let bytes = self.bytes;
        let digits = |from: usize| {
            from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count()
        };
        let mut end = digits(at);
        let mut kind = Kind::Integer;
        if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1);
            kind = Kind::Decimal;
        }
        let goes_on = |byte: &u8| is_name(*byte) || *byte == b'.';
        let joined = |byte: u8| is_name(byte) || matches!(byte, b'.' | b'@' | b':' | b'$');
        let before = at.checked_sub(1).map(|before| bytes[before]);
        let is_plain = end - at <= MAX_DIGITS
            && !bytes.get(end).is_some_and(goes_on)
            && !before.is_some_and(joined)
            && !self.last_word_is(&["interval"]);
        if is_plain {
            self.lift(kind, at, &self.sql[at..end]);
            return end;
        }
        let rest = bytes[end..].iter().take_while(|byte| goes_on(byte)).count();
        self.keep(at..end + rest)
    }

    fn lift(&mut self, kind: Kind, at: usize, value: &'t str) {
        if self.list == Some(List::Comma)
            && let Some(last) = self.constants.last_mut()
            && last.kind == kind
        {
            last.values.push((at, value));
            self.list = Some(List::Value);
            return;
        }
        let is_list = self.list == Some(List::Opened);
        self.part_list();
        self.put_comma();
        self.list = is_list.then_some(List::Value);
        self.word = 0..0;
        self.rest.push(kind.mark());
        if is_list {
            self.rest.push(LIST);
        }
        self.constants.push(Constant { kind, is_list, values: vec![(at, value)] });
    }

    fn end_of_name(&self, at: usize) -> usize {
        at + self.bytes[at..].iter().take_while(|byte| is_name(**byte) || **byte == b'$').count()
    }
}

/// Part of a name or keyword, in any dialect; every byte of a character beyond ASCII counts.
const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::{Dialect, Lifted};

    /// The constants of a text, lists in brackets; `None` where it is not lifted.
    fn constants(sql: &str, dialect: Dialect) -> Option<Vec<String>> {
        let shown = |lifted: Lifted<'_>| {
            let constants = lifted.constants.iter();
            constants
                .map(|constant| {
                    let values: Vec<&str> =
                        constant.values.iter().map(|(_, value)| *value).collect();
                    if constant.is_list { format!("{values:?}") } else { values.concat() }
                })
                .collect()
        };
        Lifted::of(sql, dialect).map(shown)
    }

    #[track_caller]
    fn check(sql: &str, expected: &[&str]) {
        assert_eq!(constants(sql, Dialect::Spark).unwrap(), expected);
    }

    #[track_caller]
    fn check_same(a: &str, b: &str, same: bool) {
        let key = |sql| Lifted::of(sql, Dialect::Spark).map(|lifted| lifted.key);
        assert!(key(a).is_some(), "{a}");
        assert_eq!(key(a) == key(b), same, "{a} | {b}");
    }

    #[test]
    fn plain_constants_are_lifted_and_others_stay() {
        check("a = 1 AND b < 2.50 AND c = 'x' AND d = \"y\"", &["1", "2.50", "x", "y"]);
        check("d < DATE'2024-01-01' AND e > date '2024-01-02'", &["2024-01-01", "2024-01-02"]);
        check("a = 1e3 OR a = 5L OR a = 0x1F OR a = 1. OR t1.c2 = .5", &[]);
        check("a = r'x' OR a = 'it''s' OR a = '\\d' OR a = 12345678901234567890", &[]);
        check("d + INTERVAL 5 DAY - INTERVAL '3' MONTH", &[]);
        check("a - 1 = -7", &["1", "7"]);
    }

    #[test]
    fn a_list_behind_in_is_one_constant() {
        check(
            "a IN (1, 2 ,3) AND b IN ('x') AND f(4, 5)",
            &["[\"1\", \"2\", \"3\"]", "[\"x\"]", "4", "5"],
        );
        check("a IN (1, 'x', 2)", &["1", "x", "2"]);
        check("a IN (1999, 2000, 1999 + 2, 3)", &["1999", "2000", "1999", "2", "3"]);
        check("a IN (1, (2)) AND b IN (3, c) AND d IN (4, 5", &["1", "2", "3", "[\"4\", \"5\"]"]);
        check_same("a IN (1, 2)", "a IN (7)", true);
        check_same("a IN (1, x)", "a IN (1)", false);
        check_same("a IN (1, 2, x)", "a IN (3,4 , x)", true);
        check_same("a IN (1, 2, x)", "a IN (1, x)", false);
        check_same("a IN (1, 1 + 1)", "a IN (7, 7+ 1)", true);
        check_same("f(1, 2)", "f(1)", false);
        check_same("a IN (1)", "a IN ('1')", false);
    }

    #[test]
    fn white_space_and_comments_do_not_count_and_hints_do() {
        check_same("SELECT 1 -- note\nFROM t", "SELECT  2 /* it's */ FROM\n t", true);
        check_same("SELECT /*+ BROADCAST(a) */ 1", "SELECT /*+ MERGE(a) */ 1", false);
        check_same("SELECT a", "SELECT b", false);
        check_same("SELECT t.1", "SELECT t.2", false);
    }

    #[test]
    fn what_only_a_dialect_can_cut_is_not_lifted() {
        for sql in [
            "a = 'x\\'",
            "a = $$x$$",
            "a # b",
            "a // b",
            "a = {{ x }}",
            "a = '${x}'",
            "'open",
            "/* open",
            "/* a /* b */ */",
            "a = '''x'''",
            "a = %(x)s",
            "-- a\rb\n",
            "`open",
        ] {
            assert_eq!(constants(sql, Dialect::Spark), None, "{sql}");
        }
        assert!(constants("a --1", Dialect::MySql).is_none());
        assert_eq!(constants("a = \"b\" OR c = 'd'", Dialect::Postgres).unwrap(), ["d"]);
    }
}
