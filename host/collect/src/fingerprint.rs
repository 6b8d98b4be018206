//! Identity of a statement without its constants.

use std::fmt::Write as _;

use datafusion_sql::sqlparser::{
    dialect::DatabricksDialect,
    tokenizer::{Token, Tokenizer},
};
use lakebed_model::{JoinUse, ScanUse};
use sha2::{Digest, Sha256};

/// Fingerprints a statement's text: letter case, white space, comments and constants do not count,
/// and a list of constants counts like a single one.
///
/// Text that no tokenizer accepts (cut in the middle of a string, for example) is fingerprinted by
/// its words, with digits blanked.
#[must_use]
pub fn of_sql(sql: &str) -> String {
    match Tokenizer::new(&DatabricksDialect {}, sql).tokenize() {
        Ok(tokens) => hex(&normalized(&tokens)),
        Err(_) => hex(&words(sql)),
    }
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

fn normalized(tokens: &[Token]) -> String {
    let mut words: Vec<String> = Vec::new();
    for token in tokens {
        let word = match token {
            Token::Whitespace(_) | Token::EOF | Token::SemiColon => continue,
            Token::Word(word) => word.value.to_lowercase(),
            token if is_constant(token) => "?".to_owned(),
            other => other.to_string(),
        };
        // `?, ?` becomes `?`, so that IN lists of any length are one statement.
        let repeats = word == "?"
            && matches!(words.as_slice(), [.., before, comma] if before == "?" && comma == ",");
        if repeats {
            words.pop();
        } else {
            words.push(word);
        }
    }
    words.join(" ")
}

const fn is_constant(token: &Token) -> bool {
    matches!(
        token,
        Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::TripleSingleQuotedString(_)
            | Token::TripleDoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::SingleQuotedRawStringLiteral(_)
            | Token::DoubleQuotedRawStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::Placeholder(_)
    )
}

fn words(sql: &str) -> String {
    let blanked: String = sql
        .chars()
        .map(|c| if c.is_ascii_digit() { '?' } else { c.to_ascii_lowercase() })
        .collect();
    blanked.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn hex(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::of_sql;

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
