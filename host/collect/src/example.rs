//! A statement as an example in a report: without constants and names of users.

use datafusion_sql::sqlparser::{
    dialect::DatabricksDialect,
    tokenizer::{Token, Tokenizer},
};
use lakebed_model::QueryRecord;

/// Longer examples are cut.
const MAX_CHARS: usize = 240;
/// Longer texts are not looked at: an example shows their beginning only.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Shows a statement: its masked text, or its id where the log has no text.
pub(crate) fn of(record: &QueryRecord) -> String {
    record.sql.as_deref().map_or_else(|| record.id.clone(), masked)
}

/// Replaces constants by `?`; drops comments, and quoted names that may be paths or people.
///
/// Of text that no tokenizer accepts only the words before the first quote are shown: behind it
/// nobody knows what is a constant.
fn masked(sql: &str) -> String {
    let sql = &sql[..sql.floor_char_boundary(MAX_TEXT_BYTES)];
    let tokens = Tokenizer::new(&DatabricksDialect {}, sql).tokenize();
    let mut words = Vec::new();
    match tokens {
        Ok(tokens) => words.extend(tokens.iter().filter_map(word)),
        Err(_) => {
            let known = sql.split(['\'', '"', '`', '$', '-', '/']).next().unwrap_or_default();
            let tokens = Tokenizer::new(&DatabricksDialect {}, known).tokenize();
            words.extend(tokens.unwrap_or_default().iter().filter_map(word));
            words.push("…".to_owned());
        }
    }
    let text = words.join(" ");
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}

fn word(token: &Token) -> Option<String> {
    match token {
        Token::Whitespace(_) | Token::EOF => None,
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
    use super::masked;

    #[track_caller]
    fn check(sql: &str, expected: &str) {
        assert_eq!(masked(sql), expected);
    }

    #[test]
    fn constants_comments_and_quoted_paths_are_masked() {
        check(
            "SELECT a.x, 17 FROM a -- for bob\n WHERE mail = 'bob@x.test' AND n >= 1.5e3 AND b = x'ff'",
            "SELECT a . x , ? FROM a WHERE mail = ? AND n >= ? AND b = ?",
        );
        check("SELECT `k` FROM delta.`/home/bob/t`", "SELECT `k` FROM delta . ?");
        check("SELECT \"bob said\" FROM t WHERE r = r'bob'", "SELECT ? FROM t WHERE r = r ?");
        check("SELECT ${who}, :who, ? FROM t", "SELECT $ { who } , : who , ? FROM t");
    }

    #[test]
    fn text_that_is_cut_in_a_constant_shows_what_is_before_it() {
        check("SELECT x FROM t WHERE mail = 'bob@x.te", "SELECT x FROM t WHERE mail = …");
    }

    #[test]
    fn long_texts_are_cut() {
        let long = masked(&format!("SELECT {} FROM t", "column_name, ".repeat(100)));
        assert_eq!(long.chars().count(), 242);
        assert!(long.ends_with(" …"));
    }
}
