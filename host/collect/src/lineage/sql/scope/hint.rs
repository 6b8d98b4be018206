//! Join hints: what a statement asks of the engine.

use std::collections::BTreeMap;

use datafusion_sql::sqlparser::{
    ast::Select,
    keywords::Keyword,
    tokenizer::{Location, Token, TokenWithSpan, Whitespace},
};
use lakebed_model::JoinStrategy;

/// Relations that hints name, by the place of the `SELECT` that they stand behind.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Hints(BTreeMap<Location, Vec<(String, JoinStrategy)>>);

impl Hints {
    /// Collects the hints of a text.
    pub(in super::super) fn read(tokens: &[TokenWithSpan]) -> Self {
        let mut hints = Self::default();
        let mut select = None;
        for token in tokens {
            match (&token.token, select) {
                (Token::Word(word), _) => {
                    select = (word.keyword == Keyword::SELECT).then_some(token.span.start);
                }
                (Token::Whitespace(Whitespace::MultiLineComment(text)), Some(at)) => {
                    if let Some(text) = text.strip_prefix('+') {
                        hints.0.entry(at).or_default().extend(parse(text));
                    }
                }
                (Token::Whitespace(_), _) => {}
                _ => select = None,
            }
        }
        hints
    }

    /// Returns the hints of a query.
    pub(super) fn of(&self, select: &Select) -> Vec<(String, JoinStrategy)> {
        self.0.get(&select.select_token.0.span.start).cloned().unwrap_or_default()
    }
}

/// Reads `BROADCAST(a, b), MERGE(c)`.
fn parse(text: &str) -> Vec<(String, JoinStrategy)> {
    let mut found = Vec::new();
    for hint in text.split(')') {
        let Some((name, relations)) = hint.split_once('(') else { continue };
        let name = name.trim_matches([',', ' ', '\n', '\t']).to_ascii_lowercase();
        let strategy = match name.as_str() {
            "broadcast" | "broadcastjoin" | "mapjoin" => JoinStrategy::Broadcast,
            "merge" | "shuffle_merge" | "mergejoin" => JoinStrategy::SortMerge,
            "shuffle_hash" => JoinStrategy::ShuffleHash,
            _ => continue,
        };
        for relation in relations.split(',') {
            // The last part is the relation's own name.
            let name = relation.trim().rsplit('.').next().unwrap_or_default();
            found.push((name.trim_matches(['`', '"']).to_lowercase(), strategy));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{JoinStrategy, parse};

    #[test]
    fn hints_name_relations_and_a_strategy() {
        assert_eq!(
            parse(" BROADCAST(a, db.b), merge(`C`) REPARTITION(3) "),
            [
                ("a".to_owned(), JoinStrategy::Broadcast),
                ("b".to_owned(), JoinStrategy::Broadcast),
                ("c".to_owned(), JoinStrategy::SortMerge),
            ]
        );
    }
}
