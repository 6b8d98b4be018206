//! Where the constants of a text are, by the dialect's rules for literals alone.
//!
//! Any text has tokens here, also one that no parser accepts: what is not closed reaches to the end.
//! Where a dialect's rules leave it open whether something is a constant, it is taken for one.

use crate::lineage::sql::Dialect;

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// White space, or a comment.
    Space,
    /// A name or keyword; `quoted` names have their quotes around them.
    Word { quoted: bool },
    /// A number or string.
    Constant,
    /// A value that the text does not have.
    Parameter,
    /// Anything else, one character or an operator.
    Symbol,
}

/// A piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    /// Whether a literal or quoted name is closed; a text with an open one has unclear borders.
    pub(super) closed: bool,
}

/// A dialect's rules for literals.
#[derive(Debug, Clone, Copy)]
struct Rules {
    /// A backslash takes the next character's meaning.
    backslash: bool,
    /// `"…"` is a string.
    double_is_string: bool,
    /// `'''…'''` and `"""…"""` are strings.
    triple: bool,
    /// `r'…'` is a string.
    raw: bool,
    /// `e'…'` has backslash escapes where other strings do not.
    escape_prefix: bool,
    /// `#` starts a comment.
    hash_comment: bool,
    /// `//` starts a comment.
    slash_comment: bool,
    /// `/* /* */ */` nests.
    nested_comments: bool,
}

impl Rules {
    const fn of(dialect: Dialect) -> Self {
        let plain = Self {
            backslash: false,
            double_is_string: false,
            triple: false,
            raw: false,
            escape_prefix: false,
            hash_comment: false,
            slash_comment: false,
            nested_comments: false,
        };
        match dialect {
            Dialect::Generic | Dialect::Trino => plain,
            Dialect::Spark | Dialect::Databricks | Dialect::Hive => Self {
                backslash: true,
                double_is_string: true,
                raw: true,
                nested_comments: true,
                ..plain
            },
            Dialect::BigQuery => Self {
                backslash: true,
                double_is_string: true,
                triple: true,
                raw: true,
                hash_comment: true,
                ..plain
            },
            Dialect::Snowflake => Self { backslash: true, slash_comment: true, ..plain },
            Dialect::MySql => {
                Self { backslash: true, double_is_string: true, hash_comment: true, ..plain }
            }
            Dialect::Postgres | Dialect::DuckDb => {
                Self { escape_prefix: true, nested_comments: true, ..plain }
            }
            // Its ancestor, PostgreSQL 8.0, had backslash escapes in every string.
            Dialect::Redshift => Self { backslash: true, nested_comments: true, ..plain },
        }
    }
}

/// Splits a text into pieces; put together they are the text.
pub(super) fn pieces(text: &str, dialect: Dialect) -> Vec<Piece<'_>> {
    let rules = Rules::of(dialect);
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let after_value =
            pieces.iter().rfind(|piece| piece.kind != Kind::Space).is_some_and(|piece| {
                matches!(piece.kind, Kind::Word { .. } | Kind::Constant)
                    || matches!(piece.text, ")" | "]")
            });
        let (kind, length, closed) = next(rest, rules, after_value);
        let (text, behind) = rest.split_at(length);
        pieces.push(Piece { kind, text, closed });
        rest = behind;
    }
    pieces
}

fn next(text: &str, rules: Rules, after_value: bool) -> (Kind, usize, bool) {
    let mut chars = text.chars();
    let first = chars.next().unwrap_or(' ');
    let second = chars.next().unwrap_or(' ');
    if first.is_whitespace() {
        let length = text.find(|c: char| !c.is_whitespace()).unwrap_or(text.len());
        return (Kind::Space, length, true);
    }
    if let Some((length, closed)) = comment(text, rules) {
        return (Kind::Space, length, closed);
    }
    if let Some((length, closed)) = template(text) {
        return (Kind::Parameter, length, closed);
    }
    match first {
        '\'' => {
            let (length, closed) = string(text, rules, rules.backslash);
            (Kind::Constant, length, closed)
        }
        '"' if rules.double_is_string => {
            let (length, closed) = string(text, rules, rules.backslash);
            (Kind::Constant, length, closed)
        }
        '"' | '`' => {
            let (length, closed) = quoted(text, first, false);
            (Kind::Word { quoted: true }, length, closed)
        }
        '$' => dollar(text),
        '?' => (Kind::Parameter, 1, true),
        ':' if second == ':' => (Kind::Symbol, 2, true),
        ':' | '@' if !after_value && is_word_start(second) => {
            (Kind::Parameter, 1 + word_length(&text[1..]), true)
        }
        c if c.is_ascii_digit() || c == '.' && second.is_ascii_digit() && !after_value => {
            (Kind::Constant, number_length(text), true)
        }
        c if is_word_start(c) => word(text, rules),
        c => (Kind::Symbol, c.len_utf8(), true),
    }
}

fn comment(text: &str, rules: Rules) -> Option<(usize, bool)> {
    let line = text.starts_with("--")
        || rules.hash_comment && text.starts_with('#')
        || rules.slash_comment && text.starts_with("//");
    if line {
        return Some((text.find('\n').unwrap_or(text.len()), true));
    }
    if !text.starts_with("/*") {
        return None;
    }
    if !rules.nested_comments {
        let end = text[2..].find("*/");
        return Some((end.map_or(text.len(), |end| end + 4), end.is_some()));
    }
    let (mut depth, mut at) = (0_usize, 0_usize);
    let bytes = text.as_bytes();
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return Some((at, true));
                }
            }
            _ => at += 1,
        }
    }
    Some((text.len(), false))
}

/// `{{ … }}`, `${…}`, `%(name)s`.
fn template(text: &str) -> Option<(usize, bool)> {
    for (open, close) in [("{{", "}}"), ("{%", "%}"), ("${", "}")] {
        if text.starts_with(open) {
            let end = text.find(close);
            return Some((end.map_or(text.len(), |end| end + close.len()), end.is_some()));
        }
    }
    let inner = text.strip_prefix("%(")?;
    let end = inner.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    inner[end..].starts_with(")s").then_some((end + 4, true))
}

/// A string that starts with a quote.
fn string(text: &str, rules: Rules, backslash: bool) -> (usize, bool) {
    let quote = text.chars().next().unwrap_or('\'');
    let three: String = std::iter::repeat_n(quote, 3).collect();
    if rules.triple && text.starts_with(&three) {
        let mut at = 3;
        while at < text.len() {
            let rest = &text[at..];
            if rest.starts_with(&three) {
                return (at + 3, true);
            }
            let mut chars = rest.chars();
            let c = chars.next().unwrap_or(' ');
            at += c.len_utf8();
            if backslash && c == '\\' {
                at += chars.next().map_or(0, char::len_utf8);
            }
        }
        return (text.len(), false);
    }
    quoted(text, quote, backslash)
}

/// Anything between quotes; a doubled quote stands for one.
fn quoted(text: &str, quote: char, backslash: bool) -> (usize, bool) {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && backslash {
            chars.next();
        } else if c == quote {
            if chars.peek().is_some_and(|(_, next)| *next == quote) {
                chars.next();
            } else {
                return (at + c.len_utf8(), true);
            }
        }
    }
    (text.len(), false)
}

/// `$1`, `$name`, `$$…$$`, `$tag$…$tag$`.
fn dollar(text: &str) -> (Kind, usize, bool) {
    let tag =
        text[1..].find(|c: char| !c.is_alphanumeric() && c != '_').map_or(text.len(), |at| at + 1);
    if text[tag.min(text.len())..].starts_with('$') {
        let mark = &text[..=tag];
        // A closing mark makes it a string in every dialect that could mean one by it.
        let end = text[mark.len()..].find(mark);
        return (Kind::Constant, end.map_or(text.len(), |end| end + 2 * mark.len()), end.is_some());
    }
    if tag > 1 { (Kind::Parameter, tag, true) } else { (Kind::Symbol, 1, true) }
}

/// A word, or a string with a prefix.
fn word(text: &str, rules: Rules) -> (Kind, usize, bool) {
    let length = word_length(text);
    let rest = &text[length..];
    let quote = rest.chars().next();
    let is_string = quote == Some('\'') || quote == Some('"') && rules.double_is_string;
    if !is_string || length > 12 {
        return (Kind::Word { quoted: false }, length, true);
    }
    let prefix = text[..length].to_ascii_lowercase();
    let raw = rules.raw && matches!(prefix.as_str(), "r" | "rb" | "br");
    // In a raw string, too, a backslash keeps the quote behind it from closing.
    let backslash = raw || rules.backslash || prefix == "e" && rules.escape_prefix;
    let (string, closed) = string(rest, rules, backslash);
    let is_prefix = matches!(prefix.as_str(), "r" | "rb" | "br" | "b" | "e" | "n" | "x" | "u")
        || prefix.starts_with('_');
    if is_prefix {
        (Kind::Constant, length + string, closed)
    } else {
        (Kind::Word { quoted: false }, length, true)
    }
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '$')).unwrap_or(text.len())
}

/// A number with its exponent and suffix. Digits that a word follows are one constant with it.
fn number_length(text: &str) -> usize {
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let c = bytes[at];
        let sign = matches!(c, b'+' | b'-')
            && at > 0
            && matches!(bytes[at - 1], b'e' | b'E')
            && !text.starts_with("0x")
            && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        if !(c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_') || sign) {
            break;
        }
        at += 1;
    }
    at
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::{Dialect, Kind, pieces};

    /// Constants are written between guillemets, parameters as `¿`.
    #[track_caller]
    fn check(dialect: Dialect, sql: &str, expected: &str) {
        let shown: String = pieces(sql, dialect)
            .iter()
            .map(|piece| match piece.kind {
                Kind::Constant => format!("«{}»", piece.text),
                Kind::Parameter => "¿".to_owned(),
                _ => piece.text.to_owned(),
            })
            .collect();
        assert_eq!(shown, expected, "{dialect:?}");
    }

    #[test]
    fn a_backslash_escapes_where_the_dialect_says_so() {
        let sql = r"a = 'x\' AND b = 'y'";
        for dialect in [Dialect::DuckDb, Dialect::Trino, Dialect::Postgres, Dialect::Generic] {
            check(dialect, sql, r"a = «'x\'» AND b = «'y'»");
        }
        for dialect in [Dialect::Spark, Dialect::BigQuery, Dialect::Snowflake, Dialect::MySql] {
            check(dialect, sql, r"a = «'x\' AND b = '»y«'»");
        }
        check(Dialect::Postgres, r"a = E'x\' y' b", r"a = «E'x\' y'» b");
        check(Dialect::Trino, r"a = 'it''s' b", r"a = «'it''s'» b");
    }

    #[test]
    fn each_dialect_has_its_own_strings() {
        check(Dialect::Spark, r#"a = "s" AND `b` = r'\d' "#, r#"a = «"s"» AND `b` = «r'\d'» "#);
        check(Dialect::Trino, r#""a" = 's'"#, r#""a" = «'s'»"#);
        check(Dialect::BigQuery, "a = '''it's''' # b 'c", "a = «'''it's'''» # b 'c");
        check(
            Dialect::Postgres,
            "a = $$it's$$ AND b = $t$x$$y$t$",
            "a = «$$it's$$» AND b = «$t$x$$y$t$»",
        );
        check(Dialect::MySql, "a = _utf8'x' AND b = x'41'", "a = «_utf8'x'» AND b = «x'41'»");
        check(Dialect::Snowflake, "a // 'b\n = 'c'", "a // 'b\n = «'c'»");
    }

    #[test]
    fn numbers_are_constants_and_names_with_digits_are_not() {
        check(
            Dialect::Spark,
            "t1.c2 = 1.5e-3 + .5 - 10L * 0xFF, 7",
            "t1.c2 = «1.5e-3» + «.5» - «10L» * «0xFF», «7»",
        );
    }

    #[test]
    fn parameters_have_no_value() {
        check(
            Dialect::Databricks,
            "a = :p AND b = ? AND c = ${v} AND d = {{ x }} AND e = %(y)s AND f = @z AND g = $1",
            "a = ¿ AND b = ¿ AND c = ¿ AND d = ¿ AND e = ¿ AND f = ¿ AND g = ¿",
        );
        check(Dialect::Snowflake, "v:a.b::int = 1", "v:a.b::int = «1»");
    }

    #[test]
    fn pieces_make_up_the_text() {
        for sql in
            ["'open", "/* open", "a $", "$x", "\"open", "{{ open", "é'ü", "'\\", "$$open", "e'\\"]
        {
            for dialect in [Dialect::Spark, Dialect::Postgres, Dialect::BigQuery] {
                let text: String = pieces(sql, dialect).iter().map(|piece| piece.text).collect();
                assert_eq!(text, sql);
            }
        }
    }
}
