//! What is changed in the tokens, before the parser sees them.
//!
//! Time travel stands in other places in each dialect and lineage does not need it; strings with
//! templates become parameters; `POSITIONAL JOIN` states no equality, as a cross join.

use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{Dialect, template};

/// Rewrites tokens.
pub(super) fn respelled(tokens: Vec<TokenWithSpan>, dialect: Dialect) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    let matched = (0..tokens.len()).any(|at| match &tokens[at].token {
        Token::Word(word) => word.value.eq_ignore_ascii_case("match_condition"),
        _ => false,
    });
    let mut lists_tables = is_word(&tokens, 0, "update");
    let merges = is_word(&tokens, 0, "merge");
    let mut depth = 0_usize;
    while at < tokens.len() {
        let starts = matches!(tokens[at].token, Token::Word(_) | Token::AtSign);
        if let Some((end, action)) = merges.then(|| star_action(&tokens, at)).flatten() {
            out.extend(
                action.into_iter().map(|token| TokenWithSpan { token, ..tokens[at].clone() }),
            );
            at = end;
            continue;
        }
        if let Some((end, view)) = starts.then(|| lateral_view(&tokens, at)).flatten() {
            out.extend(view.into_iter().map(|token| TokenWithSpan { token, ..tokens[at].clone() }));
            at = end;
            continue;
        }
        if starts && let Some(end) = time_travel(&tokens, at) {
            at = end;
            continue;
        }
        // Spark's raw strings: the parser knows them in other dialects only.
        let is_raw = starts
            && is_word(&tokens[..=at], at, "r")
            && matches!(
                tokens.get(at + 1).map(|next| &next.token),
                Some(Token::SingleQuotedString(_) | Token::DoubleQuotedString(_))
            );
        if is_raw {
            at += 1;
            continue;
        }
        let mut token = tokens[at].clone();
        fold_case(&mut token, dialect);
        match &mut token.token {
            Token::SingleQuotedString(text) if template::is_templated(text) && !is_typed(&out) => {
                token.token = Token::Placeholder("?".to_owned());
            }
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            // MySQL's `UPDATE a, b SET …`.
            Token::Comma if lists_tables && depth == 0 => {
                out.push(TokenWithSpan { token: Token::make_keyword("CROSS"), ..token.clone() });
                token.token = Token::make_keyword("JOIN");
            }
            Token::Question if !ends_value(&out) => {
                token.token = Token::Placeholder("?".to_owned());
            }
            Token::Word(word) if word.quote_style.is_none() => {
                lists_tables &= !word.value.eq_ignore_ascii_case("set");
                if word.value.eq_ignore_ascii_case("positional") && is_word(&tokens, at + 1, "join")
                {
                    token.token = Token::make_keyword("CROSS");
                } else if word.value.eq_ignore_ascii_case("asof") && !matched {
                    // DuckDB states the order within `ON`; the join's keys stand there as ever.
                    at += 1;
                    continue;
                } else if word.value.starts_with('@') && !lists_tables {
                    token.token = Token::Placeholder("?".to_owned());
                } else if let Some(end) = delta_version(&word.value) {
                    word.value.truncate(end);
                }
            }
            _ => {}
        }
        out.push(token);
        at += 1;
    }
    out
}

/// `UPDATE SET *` and `INSERT *` of a `MERGE`, which the parser does not know: what rows become does
/// not matter here.
fn star_action(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, Vec<Token>)> {
    if matches!(tokens[at].token, Token::Whitespace(_)) {
        return None;
    }
    let star = |from: usize| {
        significant(tokens, from).filter(|at| tokens[*at].token == Token::Mul).map(|at| at + 1)
    };
    if is_word(tokens, at, "update") {
        let set = significant(tokens, at + 1).filter(|at| is_word(tokens, *at, "set"))?;
        return Some((star(set + 1)?, vec![Token::make_keyword("DELETE")]));
    }
    if is_word(tokens, at, "insert") {
        let end = star(at + 1)?;
        let row = [
            Token::make_keyword("INSERT"),
            Token::make_keyword("VALUES"),
            Token::LParen,
            Token::make_keyword("NULL"),
            Token::RParen,
        ];
        return Some((end, row.into()));
    }
    None
}

/// `LATERAL VIEW explode(xs) t AS x` before a join, where the parser knows it behind all joins only: a
/// table of computed columns.
fn lateral_view(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, Vec<Token>)> {
    const JOINS: [&str; 9] =
        ["join", "inner", "cross", "left", "right", "full", "semi", "anti", "natural"];
    if !is_word(tokens, at, "lateral") {
        return None;
    }
    let view = significant(tokens, at + 1).filter(|at| is_word(tokens, *at, "view"))?;
    let open = (view..tokens.len()).find(|at| tokens[*at].token == Token::LParen)?;
    let ends_here = |at: usize| {
        is_word(tokens, at, "lateral") || JOINS.iter().any(|word| is_word(tokens, at, word))
    };
    let name_at = |from: usize| {
        let at = significant(tokens, from).filter(|at| !ends_here(*at))?;
        matches!(tokens[at].token, Token::Word(_)).then_some(at)
    };
    let mut end = end_of_group(tokens, open);
    let alias = name_at(end).filter(|at| !is_word(tokens, *at, "as"));
    end = alias.map_or(end, |at| at + 1);
    if is_word(tokens, end, "as") {
        end = significant(tokens, end)? + 1;
    }
    let mut columns = Vec::new();
    while let Some(column) = name_at(end) {
        columns.push(tokens[column].token.clone());
        end = column + 1;
        match significant(tokens, end) {
            Some(comma) if tokens[comma].token == Token::Comma => end = comma + 1,
            _ => break,
        }
    }
    let is_before_join = JOINS.iter().any(|word| is_word(tokens, end, word));
    let next = significant(tokens, end)?;
    if !is_before_join && lateral_view(tokens, next).is_none() {
        return None;
    }
    if columns.is_empty() {
        columns = ["pos", "col", "key", "value"].map(|name| Token::make_word(name, None)).into();
    }
    let mut out = ["CROSS", "JOIN"].map(Token::make_keyword).to_vec();
    out.extend([Token::LParen, Token::make_keyword("SELECT")]);
    for (index, column) in columns.into_iter().enumerate() {
        if index > 0 {
            out.push(Token::Comma);
        }
        out.push(Token::SingleQuotedString(String::new()));
        out.extend([Token::make_keyword("AS"), column]);
    }
    out.push(Token::RParen);
    out.extend(alias.map(|at| tokens[at].token.clone()));
    Some((end, out))
}

fn fold_case(token: &mut TokenWithSpan, dialect: Dialect) {
    if let Token::Word(word) = &mut token.token
        && word.quote_style.is_some()
        && !dialect.quoted_names_keep_case(&word.value)
    {
        word.value = word.value.to_lowercase();
    }
}

/// Where `@v12` of `orders@v12` starts.
fn delta_version(name: &str) -> Option<usize> {
    let at = name.rfind("@v").or_else(|| name.rfind("@V"))?;
    let digits = &name[at + 2..];
    (at > 0 && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(at)
}

/// Returns the end of a time-travel clause that starts here.
fn time_travel(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let next = |at: usize| significant(tokens, at);
    let start = if is_word(tokens, at, "for") { next(at + 1)? } else { at };
    let clocks = ["system_time", "system_version", "version", "timestamp"];
    if clocks.iter().any(|clock| is_word(tokens, start, clock)) {
        let word_as = next(start + 1).filter(|at| is_word(tokens, *at, "as"))?;
        let word_of = next(word_as + 1).filter(|at| is_word(tokens, *at, "of"))?;
        return Some(end_of_operand(tokens, word_of + 1));
    }
    // Snowflake's `AT (OFFSET => -60)`, Delta's `orders@v12` as tokens of its own.
    if is_word(tokens, at, "at") || is_word(tokens, at, "before") {
        let open = next(at + 1).filter(|at| tokens[*at].token == Token::LParen)?;
        let kind = next(open + 1)?;
        let kinds = ["offset", "timestamp", "statement", "stream"];
        if kinds.iter().any(|word| is_word(tokens, kind, word))
            && next(kind + 1).is_some_and(|at| tokens[at].token == Token::RArrow)
        {
            return Some(end_of_group(tokens, open));
        }
    }
    if tokens[at].token == Token::AtSign
        && let Some(Token::Word(word)) = tokens.get(at + 1).map(|token| &token.token)
        && delta_version(&format!("t@{}", word.value)).is_some()
    {
        return Some(at + 2);
    }
    None
}

/// The end of `TIMESTAMP '…' - INTERVAL 1 DAY`, `f(…)`, `'…'`, `12`.
fn end_of_operand(tokens: &[TokenWithSpan], from: usize) -> usize {
    let Some(mut at) = significant(tokens, from) else { return tokens.len() };
    if let Token::Word(word) = &tokens[at].token {
        let takes_value = ["timestamp", "date", "interval"];
        let takes_value = takes_value.iter().any(|name| word.value.eq_ignore_ascii_case(name));
        let is_interval = word.value.eq_ignore_ascii_case("interval");
        if takes_value
            && let Some(value) = significant(tokens, at + 1)
            && !matches!(tokens[value].token, Token::LParen)
        {
            at = value;
            if is_interval && let Some(unit) = significant(tokens, at + 1) {
                at = unit;
            }
        }
    }
    let mut end = match tokens[at].token {
        Token::LParen => end_of_group(tokens, at),
        _ => at + 1,
    };
    if let Some(open) = significant(tokens, end)
        && tokens[open].token == Token::LParen
        && matches!(tokens[at].token, Token::Word(_))
    {
        end = end_of_group(tokens, open);
    }
    match significant(tokens, end) {
        Some(sign) if matches!(tokens[sign].token, Token::Plus | Token::Minus) => {
            end_of_operand(tokens, sign + 1)
        }
        _ => end,
    }
}

fn end_of_group(tokens: &[TokenWithSpan], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth -= 1;
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

fn significant(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    (from..tokens.len()).find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
}

fn is_word(tokens: &[TokenWithSpan], at: usize, word: &str) -> bool {
    significant(tokens, at).is_some_and(|at| match &tokens[at].token {
        Token::Word(found) => found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word),
        _ => false,
    })
}

/// Tells whether the text so far ends with `DATE` or another word that needs a plain string.
fn is_typed(tokens: &[TokenWithSpan]) -> bool {
    let last = tokens.iter().rev().find(|t| !matches!(t.token, Token::Whitespace(_)));
    matches!(last.map(|t| &t.token), Some(Token::Word(word))
        if ["date", "time", "timestamp", "datetime", "interval"]
            .iter()
            .any(|name| word.value.eq_ignore_ascii_case(name)))
}

/// Tells whether the text so far ends with a value, so that an operator may follow.
fn ends_value(tokens: &[TokenWithSpan]) -> bool {
    use datafusion_sql::sqlparser::keywords::Keyword;
    let last = tokens.iter().rev().find(|t| !matches!(t.token, Token::Whitespace(_)));
    match last.map(|token| &token.token) {
        Some(Token::Word(word)) => word.keyword == Keyword::NoKeyword,
        Some(
            Token::RParen
            | Token::RBracket
            | Token::SingleQuotedString(_)
            | Token::Number(..)
            | Token::Placeholder(_),
        ) => true,
        _ => false,
    }
}
