//! Identity of a statement without its constants, and its text without them.

mod lexer;

use std::fmt::Write as _;

use lakebed_model::{JoinUse, ScanUse};
use sha2::{Digest, Sha256};

use crate::lineage::sql::Dialect;
use lexer::{Kind, Piece, pieces};

/// Fingerprints a statement's text of unknown dialect, by the rules of Databricks.
#[must_use]
pub fn of_sql(sql: &str) -> String {
    of_sql_in(sql, Dialect::Databricks)
}

/// Fingerprints a statement's text: letter case, white space, comments and constants do not count,
/// and a list of constants counts like a single one.
///
/// Any text has a fingerprint, also one that no parser accepts.
#[must_use]
pub fn of_sql_in(sql: &str, dialect: Dialect) -> String {
    hex(&normalized(&pieces(sql, dialect)))
}

/// Returns a statement's text with `?` for each constant and without comments, to be shown where the
/// statement could not be read.
///
/// A text whose quotes do not match has unclear borders: it ends before its first constant or quoted
/// name.
#[must_use]
pub fn redacted(sql: &str, dialect: Dialect) -> String {
    let pieces = pieces(sql, dialect);
    let unclear = pieces.iter().any(|piece| !piece.closed);
    let mut out = String::new();
    for piece in &pieces {
        let is_quoted =
            matches!(piece.kind, Kind::Constant | Kind::Word { quoted: true }) || !piece.closed;
        if unclear && is_quoted {
            out.push('…');
            break;
        }
        match piece.kind {
            Kind::Space => {
                if !out.is_empty() && !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            Kind::Constant | Kind::Parameter => out.push('?'),
            // What is a string and what a name is not known without a dialect.
            Kind::Word { quoted: true } if dialect == Dialect::Generic && !is_name(piece.text) => {
                out.push('?');
            }
            // The folder of a table may be called after somebody.
            Kind::Word { quoted: true } if piece.text.contains(['/', '@', ':']) => out.push('?'),
            Kind::Word { .. } | Kind::Symbol => out.push_str(piece.text),
        }
    }
    out.trim_end().to_owned()
}

/// Tells whether a quoted text is what names look like.
fn is_name(quoted: &str) -> bool {
    let inner = quoted.trim_matches(['"', '`']);
    !inner.is_empty()
        && !inner.starts_with(|c: char| c.is_ascii_digit())
        && inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Fingerprints a statement that is known by its plan only: joins, scans, and which columns are
/// compared how.
pub(crate) fn of_lineage(joins: &[JoinUse], scans: &[ScanUse]) -> String {
    let mut lines: Vec<String> = joins
        .iter()
        .map(|join| {
            let (left, right, kind) = (&join.left, &join.right, join.kind.as_str());
            format!("join {left} {right} {:?} {kind}", join.pairs)
        })
        .collect();
    for scan in scans {
        let name = scan.table.as_ref().map_or("", |table| table.as_str());
        let mut line = format!("scan {name} {:?}", scan.columns);
        for filter in &scan.filters {
            let _ = write!(line, " {} {}", filter.column.column, filter.operator.as_str());
        }
        lines.push(line);
    }
    lines.sort_unstable();
    hex(&lines.join("\n"))
}

fn normalized(pieces: &[Piece<'_>]) -> String {
    let mut words: Vec<String> = Vec::new();
    for piece in pieces {
        let word = match piece.kind {
            Kind::Space => continue,
            Kind::Symbol if piece.text == ";" => continue,
            Kind::Word { quoted: true } => piece.text.trim_matches(['"', '`']).to_lowercase(),
            Kind::Word { quoted: false } => piece.text.to_lowercase(),
            Kind::Constant | Kind::Parameter => {
                drop_sign(&mut words);
                "?".to_owned()
            }
            Kind::Symbol => piece.text.to_owned(),
        };
        words.push(word);
        shorten_list(&mut words);
    }
    words.join(" ")
}

/// Drops the sign of a number: of a minus that has no left operand.
fn drop_sign(words: &mut Vec<String>) {
    let [.., before, sign] = &words[..] else { return };
    let opens = matches!(before.as_str(), "(" | "," | "=" | "<" | ">" | "and" | "between" | "in");
    if opens && matches!(sign.as_str(), "-" | "+") {
        words.pop();
    }
}

/// Makes lists of constants, of typed ones and of tuples, of any length the same.
fn shorten_list(words: &mut Vec<String>) {
    let is = |word: &String, text: &str| word == text;
    let repeats = match &words[..] {
        [.., a, comma, b] if is(a, "?") && is(comma, ",") && is(b, "?") => 2,
        [.., kind, a, comma, same, b]
            if is(a, "?")
                && is(comma, ",")
                && is(b, "?")
                && kind == same
                && matches!(kind.as_str(), "date" | "timestamp" | "time" | "datetime") =>
        {
            3
        }
        [.., open, a, close, comma, open_too, b, close_too]
            if is(open, "(")
                && is(a, "?")
                && is(close, ")")
                && is(comma, ",")
                && is(open_too, "(")
                && is(b, "?")
                && is(close_too, ")") =>
        {
            4
        }
        _ => 0,
    };
    words.truncate(words.len() - repeats);
}

fn hex(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::{Dialect, of_sql, of_sql_in, redacted};

    #[track_caller]
    fn check_same(a: &str, b: &str, same: bool) {
        assert_eq!(of_sql(a) == of_sql(b), same, "{a} | {b}");
    }

    #[test]
    fn constants_case_space_and_comments_do_not_count() {
        check_same("SELECT a FROM t WHERE b = 1", "select  A from T where B = 22 -- note", true);
        check_same("SELECT a FROM t WHERE b = 'x'", "SELECT a FROM t WHERE b = 'y';", true);
        check_same("SELECT a FROM t WHERE b IN (1, 2)", "SELECT a FROM t WHERE b IN (7,8,9)", true);
    }

    #[test]
    fn lists_of_any_length_are_the_same() {
        check_same("a IN (1)", "a IN (-7, 8, 9)", true);
        check_same("(a, b) IN ((1, 'x'))", "(a, b) IN ((1, 'y'), (2, 'z'))", true);
        check_same("d IN (DATE '2024-01-01')", "d IN (DATE '2024-01-02', DATE '2024-01-03')", true);
        check_same("a IN (1, b)", "a IN (1, b, c)", false);
        check_same("a - 1", "a + 1", false);
        check_same("a = -1", "a = 1", true);
    }

    #[test]
    fn literals_end_where_the_dialect_says() {
        let (a, b) = (r"p = 'end\' AND m = 'm1@x.test'", r"p = 'start\' AND m = 'm2@x.test'");
        assert_eq!(of_sql_in(a, Dialect::DuckDb), of_sql_in(b, Dialect::DuckDb));
        assert_eq!(redacted(a, Dialect::DuckDb), "p = ? AND m = ?");
        // By Spark's rules the quotes of this text do not match.
        assert_eq!(redacted(a, Dialect::Spark), "p = …");
    }

    #[test]
    fn a_redacted_text_has_names_and_no_constants() {
        assert_eq!(
            redacted(
                "SELECT a1, -- 'secret'\n 'x' FROM `t` WHERE b = 5 AND c = \"s\" /* u */ LIMIT 3",
                Dialect::Spark
            ),
            "SELECT a1, ? FROM `t` WHERE b = ? AND c = ? LIMIT ?"
        );
        assert_eq!(redacted("SELECT \"a b\" FROM \"t\"", Dialect::Generic), "SELECT ? FROM \"t\"");
        assert_eq!(redacted("SELECT 'it's secret'", Dialect::Trino), "SELECT …");
    }

    #[test]
    fn columns_and_operators_count() {
        check_same("SELECT a FROM t WHERE b = 1", "SELECT a FROM t WHERE c = 1", false);
        check_same("SELECT a FROM t WHERE b < 1", "SELECT a FROM t WHERE b > 1", false);
    }

    #[test]
    fn a_cut_statement_still_has_a_fingerprint() {
        check_same("SELECT a FROM t WHERE b = 'x1", "select a from t where b = 'x2", true);
        assert_eq!(of_sql("SELECT 'cut").len(), 64);
    }

    /// Expected value: `printf 'select ?' | sha256sum`.
    #[test]
    fn a_fingerprint_is_the_sha256_of_the_normalized_text() {
        assert_eq!(
            of_sql("SELECT 1"),
            "e1c71d1661ae46e09b7aaec1c390957f0d6260410df4e4bc71b9c8d681021471"
        );
    }
}
