//! Time travel: `t VERSION AS OF 3`, `t TIMESTAMP AS OF '2026-11-30'` and `t@v3` in a query.
//!
//! The engine's parser knows none of them in Spark's dialect, so each is replaced by a name of its
//! own, which the session opens at that version.

use datafusion::{
    common::TableReference,
    error::{DataFusionError, Result},
    sql::sqlparser::{
        dialect::SparkSqlDialect,
        keywords::RESERVED_FOR_TABLE_ALIAS,
        tokenizer::{Token, Tokenizer},
    },
};
use lakebed_model::{Instant, Literal};

/// Which state of a table is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// This one.
    Number(u64),
    /// The newest at this instant.
    At(Instant),
}

/// A table at a version, and the name it has in the rewritten query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Versioned {
    pub(crate) name: String,
    pub(crate) table: TableReference,
    pub(crate) version: Version,
}

/// Replaces every table at a version by a name.
pub(crate) fn rewrite(sql: &str) -> Result<(String, Vec<Versioned>)> {
    let dialect = SparkSqlDialect {};
    let tokens = Tokenizer::new(&dialect, sql)
        .with_unescape(false)
        .tokenize()
        .map_err(|error| DataFusionError::SQL(Box::new(error.into()), None))?;
    let mut query = Query { out: Vec::new(), found: Vec::new() };
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        let travel = as_of(rest)?.or_else(|| at_sign(rest));
        match travel.and_then(|travel| Some((query.take_name()?, travel))) {
            Some((parts, (version, length))) => {
                at += length;
                query.put(parts, version, &tokens[at..]);
            }
            None => {
                query.out.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    if query.found.is_empty() {
        return Ok((sql.to_owned(), query.found));
    }
    Ok((query.out.iter().map(ToString::to_string).collect(), query.found))
}

struct Query {
    out: Vec<Token>,
    found: Vec<Versioned>,
}

impl Query {
    /// Takes the dotted name at the end back.
    fn take_name(&mut self) -> Option<Vec<String>> {
        let mut end = self.out.len();
        while end > 0 && matches!(self.out[end - 1], Token::Whitespace(_)) {
            end -= 1;
        }
        let mut parts = Vec::new();
        let mut start = end;
        while let Some(Token::Word(word)) = start.checked_sub(1).map(|i| &self.out[i]) {
            parts.insert(0, word.value.replace("``", "`"));
            start -= 1;
            if start == 0 || self.out[start - 1] != Token::Period {
                break;
            }
            start -= 1;
        }
        if parts.is_empty() {
            return None;
        }
        self.out.truncate(start);
        Some(parts)
    }

    fn put(&mut self, parts: Vec<String>, version: Version, rest: &[Token]) {
        let short = parts.last().cloned().unwrap_or_default();
        let suffix = match version {
            Version::Number(number) => format!("v{number}"),
            Version::At(instant) => instant.to_rfc3339(),
        };
        let name = format!("{}@{suffix}", parts.join("."));
        self.out.push(Token::make_word(&name, Some('`')));
        if !has_alias(rest) {
            // Columns are asked for by the table's own name.
            let alias = Token::make_word(&short, Some('`'));
            self.out.extend([blank(), Token::make_keyword("AS"), blank(), alias]);
        }
        let table = match parts.as_slice() {
            [schema, table] => TableReference::partial(schema.as_str(), table.as_str()),
            [catalog, schema, table] => {
                TableReference::full(catalog.as_str(), schema.as_str(), table.as_str())
            }
            _ => TableReference::bare(parts.join(".")),
        };
        if !self.found.iter().any(|known| known.name == name) {
            self.found.push(Versioned { name, table, version });
        }
    }
}

const fn blank() -> Token {
    Token::Whitespace(datafusion::sql::sqlparser::tokenizer::Whitespace::Space)
}

fn has_alias(rest: &[Token]) -> bool {
    let next = rest.iter().find(|token| !matches!(token, Token::Whitespace(_)));
    match next {
        Some(Token::Word(word)) if word.quote_style.is_none() => {
            word.value.eq_ignore_ascii_case("AS")
                || !RESERVED_FOR_TABLE_ALIAS.contains(&word.keyword)
        }
        Some(Token::Word(_)) => true,
        _ => false,
    }
}

/// Reads `[FOR] VERSION AS OF 3` or `[FOR] TIMESTAMP AS OF '…'`: the version and the length.
fn as_of(tokens: &[Token]) -> Result<Option<(Version, usize)>> {
    let solid: Vec<(usize, &Token)> = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| !matches!(token, Token::Whitespace(_)))
        .take(6)
        .collect();
    let word = |index: usize| match solid.get(index) {
        Some((_, Token::Word(word))) if word.quote_style.is_none() => word.value.to_uppercase(),
        _ => String::new(),
    };
    let start = usize::from(word(0) == "FOR");
    let is_version = match word(start).as_str() {
        "VERSION" | "SYSTEM_VERSION" => true,
        "TIMESTAMP" | "SYSTEM_TIME" => false,
        _ => return Ok(None),
    };
    if solid.first().is_none_or(|(first, _)| *first != 0)
        || word(start + 1) != "AS"
        || word(start + 2) != "OF"
    {
        return Ok(None);
    }
    let mut value_at = start + 3;
    if !is_version && matches!(word(value_at).as_str(), "TIMESTAMP" | "DATE") {
        value_at += 1;
    }
    let text = match solid.get(value_at) {
        Some((_, Token::Number(text, _) | Token::SingleQuotedString(text))) => text.clone(),
        Some((_, Token::DoubleQuotedString(text))) => text.clone(),
        _ => return Ok(None),
    };
    let version = if is_version {
        text.parse().ok().map(Version::Number)
    } else {
        instant(&text).map(Version::At)
    };
    let version = version.ok_or_else(|| {
        DataFusionError::Plan(format!(
            "AS OF `{text}`: expected a version number or an instant such as 2026-11-30 08:00:00"
        ))
    })?;
    Ok(Some((version, solid[value_at].0 + 1)))
}

/// Reads `@v3` and `@20261130080000000`.
fn at_sign(tokens: &[Token]) -> Option<(Version, usize)> {
    let [Token::AtSign, value, ..] = tokens else { return None };
    match value {
        Token::Word(word) if word.quote_style.is_none() => {
            let digits = word.value.strip_prefix(['v', 'V'])?;
            Some((Version::Number(digits.parse().ok()?), 2))
        }
        Token::Number(digits, _) if digits.len() == 17 => {
            let part = |from: usize, to: usize| &digits[from..to];
            let text = format!(
                "{}-{}-{} {}:{}:{}.{}",
                part(0, 4),
                part(4, 6),
                part(6, 8),
                part(8, 10),
                part(10, 12),
                part(12, 14),
                part(14, 17)
            );
            Some((Version::At(instant(&text)?), 2))
        }
        _ => None,
    }
}

/// Reads a date or a timestamp, in UTC where it has no zone.
fn instant(text: &str) -> Option<Instant> {
    const DAY_MS: i64 = 86_400_000;
    match Literal::parse_date(text) {
        Some(Literal::Date(days)) => Some(Instant::from_epoch_ms(i64::from(days) * DAY_MS)),
        _ => match Literal::parse_timestamp(text)? {
            Literal::Timestamp(micros) => Some(Instant::from_epoch_ms(micros.div_euclid(1_000))),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use lakebed_model::Instant;

    use super::{Version, rewrite};

    #[track_caller]
    fn check(sql: &str, rewritten: &str, versions: &[(&str, &str, Version)]) {
        let (text, found) = rewrite(sql).unwrap();
        assert_eq!(text, rewritten);
        let found: Vec<(String, String, Version)> =
            found.iter().map(|v| (v.name.clone(), v.table.to_string(), v.version)).collect();
        let expected: Vec<(String, String, Version)> = versions
            .iter()
            .map(|(name, table, version)| ((*name).to_owned(), (*table).to_owned(), *version))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn versions_become_names() {
        let three = Version::Number(3);
        check(
            "SELECT t.a FROM t VERSION AS OF 3 WHERE t.a = 'VERSION AS OF 4'",
            "SELECT t.a FROM `t@v3` AS `t` WHERE t.a = 'VERSION AS OF 4'",
            &[("t@v3", "t", three)],
        );
        check(
            "SELECT * FROM db.t FOR VERSION AS OF '3' AS x JOIN t@v3 y ON x.a = y.a",
            "SELECT * FROM `db.t@v3` AS x JOIN `t@v3` y ON x.a = y.a",
            &[("db.t@v3", "db.t", three), ("t@v3", "t", three)],
        );
        check(
            "select count(*) from delta.`/lake/t` timestamp as of '1970-01-02'",
            "select count(*) from `delta./lake/t@1970-01-02T00:00:00.000Z` AS `/lake/t`",
            &[(
                "delta./lake/t@1970-01-02T00:00:00.000Z",
                "delta./lake/t",
                Version::At(Instant::from_epoch_ms(86_400_000)),
            )],
        );
    }

    #[test]
    fn other_queries_stay_as_they_are() {
        for sql in ["SELECT version AS of FROM t", "SELECT 1 -- t VERSION AS OF 3", "SELECT a@b"] {
            check(sql, sql, &[]);
        }
        let error = rewrite("SELECT * FROM t VERSION AS OF 'x'").unwrap_err().to_string();
        assert!(error.contains("AS OF `x`: expected a version number or an instant"), "{error}");
    }
}
