//! A history without constants and names of people.
//!
//! 1. Of a statement's text, constants become `?`, comments go, and so do quoted names that may be
//!    paths or addresses.
//! 2. Where a constant begins and ends depends on the dialect. A history whose dialect is not certain
//!    is read by the rules of all; text that they cut differently, or that none can cut, goes as a
//!    whole.
//! 3. Of filters the values go, of scans the folder. Columns, tables and operators stay: they are what
//!    a layout is planned by.

use lakebed_model::QueryRecord;

use crate::{fingerprint::redacted, lineage::sql::Dialect, source::ALL_SOURCES};

/// Takes out of a record what `--redact` promises is never stored.
pub(crate) fn record(record: &mut QueryRecord) {
    let source = ALL_SOURCES.iter().find(|source| source.name() == record.source);
    let dialect = source.and_then(|source| source.dialect());
    record.sql = record.sql.take().and_then(|sql| text(&sql, dialect));
    for scan in &mut record.scans {
        scan.location = None;
        for filter in &mut scan.filters {
            filter.range = None;
        }
    }
}

/// Returns a statement's text without its constants; `None` where nobody can tell what is one.
#[must_use]
pub fn text(sql: &str, dialect: Option<Dialect>) -> Option<String> {
    match dialect {
        Some(dialect) if dialect != Dialect::Generic => Some(redacted(sql, dialect)),
        _ => {
            // Each cuts constants in another way: by backslashes or not, with double quotes or not.
            let ways = [Dialect::Spark, Dialect::Snowflake, Dialect::BigQuery, Dialect::Postgres];
            let mut texts = ways.map(|dialect| redacted(sql, dialect)).into_iter();
            let first = texts.next()?;
            texts.all(|other| other == first).then_some(first)
        }
    }
}

/// Masks what the reason of a failure may quote from a statement: what stands in quotes, numbers in
/// the planner's messages, and a token that is no keyword.
pub(crate) fn reason(message: &str) -> String {
    let (before, after) = match message.split_once("found: ") {
        Some((before, found)) => (format!("{before}found: "), known_token(found)),
        None => (message.to_owned(), String::new()),
    };
    let quoted = without_quoted(&before);
    let planned = quoted.starts_with("plan SQL") && !quoted.contains("stub schemas");
    let text = if planned { without_numbers(&quoted) } else { quoted };
    format!("{text}{after}")
}

/// Keeps a token that is a keyword, punctuation, or the end.
fn known_token(found: &str) -> String {
    use datafusion_sql::sqlparser::keywords::ALL_KEYWORDS;
    let token = found.trim();
    let is_keyword = ALL_KEYWORDS.binary_search(&token.to_ascii_uppercase().as_str()).is_ok();
    let is_punctuation =
        token.chars().all(|c| c.is_ascii_punctuation() && !matches!(c, '\'' | '"' | '`'));
    if token == "EOF" || is_keyword || is_punctuation { found.to_owned() } else { "?".to_owned() }
}

/// Replaces `'…'` and `"…"`, and everything behind a quote that is not closed.
fn without_quoted(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['\'', '"']) {
        let quote = &rest[start..=start];
        kept.push_str(&rest[..start]);
        kept.push('?');
        rest = rest[start + 1..].split_once(quote).map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

fn without_numbers(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let (mut in_name, mut in_number) = (false, false);
    for c in text.chars() {
        in_name = c.is_alphabetic() || c == '_' || (in_name && c.is_ascii_digit());
        let is_digit = c.is_ascii_digit() && !in_name;
        if !is_digit {
            kept.push(c);
        } else if !in_number {
            kept.push('?');
        }
        in_number = is_digit;
    }
    kept
}

/// Shows the beginning of a text that is nobody knows what: words without digits and signs of
/// addresses, at most so many characters.
pub(crate) fn glimpse(text: &str, characters: usize) -> String {
    let words = without_quoted_values(text);
    let shown = words.chars().take(characters);
    shown.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn without_quoted_values(text: &str) -> String {
    let is_part = |c: char| !(c.is_whitespace() || ",;\t|{}[]:\"".contains(c));
    let mut shown = String::with_capacity(text.len());
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if is_part(c) {
            word.push(c);
            continue;
        }
        let is_name = word.chars().all(|c| c.is_alphabetic() || "_-=<>#/()".contains(c));
        shown.push_str(if is_name { &word } else { "?" });
        word.clear();
        shown.push(c);
    }
    shown.pop();
    shown
}

#[cfg(test)]
mod tests {
    use super::{Dialect, glimpse, reason, text};

    #[track_caller]
    fn check(sql: &str, dialect: Option<Dialect>, expected: Option<&str>) {
        assert_eq!(text(sql, dialect).as_deref(), expected, "{sql}");
    }

    #[test]
    fn constants_comments_and_quoted_paths_go() {
        check(
            "SELECT a.x, 17 -- for ada\nFROM a /* ada */ WHERE mail = 'ada@x.test' AND n >= 1.5e3",
            Some(Dialect::Spark),
            Some("SELECT a.x, ? FROM a WHERE mail = ? AND n >= ?"),
        );
        check(
            "SELECT `k y` FROM delta.`s3://b/home/ada/t` WHERE d = DATE '2024-01-01'",
            Some(Dialect::Spark),
            Some("SELECT `k y` FROM delta.? WHERE d = DATE ?"),
        );
        check("SELECT \"Ada said\" FROM t", Some(Dialect::Spark), Some("SELECT ? FROM t"));
        let total = "SELECT \"Total due\" FROM t";
        check(total, Some(Dialect::Snowflake), Some(total));
    }

    /// Peer case arc#648: whether a backslash escapes depends on the dialect.
    #[test]
    fn arc_648_a_backslash_ends_a_constant_or_not_as_the_dialect_has_it() {
        let sql = "SELECT 1 FROM a WHERE a.p = 'end\\' AND a.mail = 'm1@x.test'";
        check(sql, Some(Dialect::DuckDb), Some("SELECT ? FROM a WHERE a.p = ? AND a.mail = ?"));
        check(sql, Some(Dialect::Postgres), Some("SELECT ? FROM a WHERE a.p = ? AND a.mail = ?"));
        // By these rules the text is cut in a constant: it ends before the first one.
        check(sql, Some(Dialect::Spark), Some("SELECT …"));
        check(sql, None, None);
        let escaped = "SELECT 1 FROM a WHERE p = 'it\\'s m1' AND q = 'x'";
        check(escaped, Some(Dialect::Spark), Some("SELECT ? FROM a WHERE p = ? AND q = ?"));
        check(escaped, None, None);
    }

    #[test]
    fn text_of_an_uncertain_dialect_stays_only_where_all_agree() {
        check("SELECT a FROM t WHERE b = 'x'", None, Some("SELECT a FROM t WHERE b = ?"));
        check("SELECT \"ada\" FROM t", Some(Dialect::Generic), None);
        check("SELECT 'it\\'s', 'x\\'ada' FROM t", None, None);
    }

    #[test]
    fn reasons_quote_nothing_of_a_statement() {
        for (message, expected) in [
            (
                "parse SQL at line 1, column 12: Expected: identifier, found: EOF",
                "parse SQL at line 1, column 12: Expected: identifier, found: EOF",
            ),
            (
                "parse SQL at line 3, column 2: Expected: end of statement, found: 'm1@x.test'",
                "parse SQL at line 3, column 2: Expected: end of statement, found: ?",
            ),
            (
                "parse SQL at line 1, column 1: Expected: ), found: m1",
                "parse SQL at line 1, column 1: Expected: ), found: ?",
            ),
            (
                "parse SQL at line 1, column 1: Expected: ), found: SELECT",
                "parse SQL at line 1, column 1: Expected: ), found: SELECT",
            ),
            (
                "plan SQL: cannot cast Utf8(\"ada\") and Int64(4711)",
                "plan SQL: cannot cast Utf8(?) and Int64(?)",
            ),
            ("plan SQL: cut in 'ada", "plan SQL: cut in ?"),
        ] {
            assert_eq!(reason(message), expected);
        }
    }

    #[test]
    fn a_glimpse_shows_words_without_values() {
        assert_eq!(glimpse("allow-unwrap-in-tests = true", 60), "allow-unwrap-in-tests = true");
        assert_eq!(glimpse("ada@x.test,SELECT 4711,x", 60), "?,SELECT ?,x");
        assert_eq!(glimpse("a,b", 60), "a,b");
        assert_eq!(glimpse("PAR1\u{15}x", 60), "?");
    }
}
