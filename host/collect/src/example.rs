//! A statement as an example in a report: without constants and names of users.

use datafusion_sql::sqlparser::{
    dialect::DatabricksDialect,
    keywords::Keyword,
    tokenizer::{Token, Tokenizer},
};

use crate::source::{Reading, Statement};

/// Longer examples are cut.
const MAX_CHARS: usize = 240;
/// Longer texts are not looked at: an example shows their beginning only.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Shows a statement: its masked text, or its id where the log has no text.
pub(crate) fn of(statement: &Statement) -> String {
    let record = &statement.record;
    let names = match statement.reading {
        // A word of text that is no statement need not be a name.
        Reading::Unread { .. } => Names::Masked,
        Reading::Full | Reading::Partial { .. } => Names::Shown,
    };
    record.sql.as_deref().map_or_else(|| record.id.clone(), |sql| masked(sql, names))
}

/// What becomes of words that are no keywords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Shown,
    Masked,
}

/// Replaces constants by `?`; drops comments, and quoted names that may be paths or people.
///
/// Of text that no tokenizer accepts only the words before the first quote are shown: behind it
/// nobody knows what is a constant.
fn masked(sql: &str, names: Names) -> String {
    let sql = &sql[..sql.floor_char_boundary(MAX_TEXT_BYTES)];
    let tokens = Tokenizer::new(&DatabricksDialect {}, sql).tokenize();
    let mut words = Vec::new();
    match tokens {
        Ok(tokens) => words.extend(tokens.iter().filter_map(|token| word(token, names))),
        Err(_) => {
            let known = sql.split(['\'', '"', '`', '$', '-', '/']).next().unwrap_or_default();
            let tokens = Tokenizer::new(&DatabricksDialect {}, known).tokenize();
            let tokens = tokens.unwrap_or_default();
            words.extend(tokens.iter().filter_map(|token| word(token, names)));
            words.push("…".to_owned());
        }
    }
    let text = words.join(" ");
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}

fn word(token: &Token, names: Names) -> Option<String> {
    match token {
        Token::Whitespace(_) | Token::EOF => None,
        Token::Word(word) if names == Names::Masked && word.keyword == Keyword::NoKeyword => {
            Some("_".to_owned())
        }
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.clone()),
        Token::Word(word) if word.value.chars().all(|c| c.is_alphanumeric() || c == '_') => {
            Some(token.to_string())
        }
        // Operators and punctuation hold nothing; whatever else there is may be a constant.
        other => {
            let text = other.to_string();
            let is_punctuation = text.chars().all(|c| c.is_ascii_punctuation() && c != '\'');
            Some(if is_punctuation { text } else { "?".to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, masked};

    #[track_caller]
    fn check(sql: &str, expected: &str) {
        assert_eq!(masked(sql, Names::Shown), expected);
    }

    #[test]
    fn constants_comments_and_quoted_paths_are_masked() {
        check(
            "SELECT a.x, 17 FROM a -- for bob\n WHERE mail = 'bob@x.test' AND n >= 1.5e3 AND b = x'ff'",
            "SELECT a . x , ? FROM a WHERE mail = ? AND n >= ? AND b = ?",
        );
        check("SELECT `k` FROM delta.`/lake/bob/t`", "SELECT `k` FROM delta . ?");
        check("SELECT \"bob said\" FROM t WHERE r = r'bob'", "SELECT ? FROM t WHERE r = r ?");
        check("SELECT ${who}, :who, ? FROM t", "SELECT $ { who } , : who , ? FROM t");
    }

    #[test]
    fn text_that_is_cut_in_a_constant_shows_what_is_before_it() {
        check("SELECT x FROM t WHERE mail = 'bob@x.te", "SELECT x FROM t WHERE mail = …");
    }

    #[test]
    fn words_of_text_that_is_no_statement_are_masked() {
        let text = "SELECT k FROM people WHERE bob x7 \"mail\"";
        assert_eq!(masked(text, Names::Masked), "SELECT _ FROM _ WHERE _ _ ?");
    }

    #[test]
    fn long_texts_are_cut() {
        let long = format!("SELECT {} FROM t", "column_name, ".repeat(100));
        let long = masked(&long, Names::Shown);
        assert_eq!(long.chars().count(), 242);
        assert!(long.ends_with(" …"));
    }
}
