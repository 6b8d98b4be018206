//! Templating braces: what a text generator would have filled in.
//!
//! `{{ … }}` and `${…}` become a name where a table is named, else a parameter; `{% … %}` and
//! `{# … #}` are removed. Inside strings and comments they stay; the reader of constants knows them.

use std::borrow::Cow;

/// A character that starts a string or a quoted name, with the one that ends it.
const QUOTES: [char; 3] = ['\'', '"', '`'];

/// Replaces templates.
pub(super) fn replaced(sql: &str) -> Cow<'_, str> {
    if !["{{", "{%", "{#", "${", "%("].iter().any(|mark| sql.contains(mark)) {
        return Cow::Borrowed(sql);
    }
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = quoted_length(rest) {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
        } else if let Some((template, length)) = template(rest) {
            let breaks = rest[..length].matches('\n').count();
            match template {
                Template::Value(inner) if names_a_table(&out, &rest[length..]) => {
                    out.push_str(&name_of(inner));
                }
                Template::Value(_) => out.push_str(" ? "),
                Template::Nothing => out.push(' '),
            }
            // Positions in later lines stay right.
            out.extend(std::iter::repeat_n('\n', breaks));
            rest = &rest[length..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    Cow::Owned(out)
}

/// Tells whether a string holds a template, so that its value is not in the text.
pub(super) fn is_templated(text: &str) -> bool {
    [("{{", "}}"), ("${", "}"), ("%(", ")s")]
        .iter()
        .any(|(open, close)| text.find(open).is_some_and(|at| text[at..].contains(close)))
}

enum Template<'t> {
    Value(&'t str),
    Nothing,
}

fn template(text: &str) -> Option<(Template<'_>, usize)> {
    let between = |open: &str, close: &str| {
        let inner = text.strip_prefix(open)?;
        let end = inner.find(close)?;
        Some((&inner[..end], open.len() + end + close.len()))
    };
    if let Some((inner, length)) = between("{{", "}}").or_else(|| between("${", "}")) {
        return Some((Template::Value(inner), length));
    }
    if let Some((_, length)) = between("{%", "%}").or_else(|| between("{#", "#}")) {
        return Some((Template::Nothing, length));
    }
    let (name, length) = between("%(", ")s")?;
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    plain.then_some((Template::Value(name), length))
}

/// The length of a string, a quoted name or a comment that starts here.
fn quoted_length(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    if let Some(rest) = text.strip_prefix("--") {
        return Some(2 + rest.find('\n').unwrap_or(rest.len()));
    }
    if let Some(rest) = text.strip_prefix("/*") {
        return Some(rest.find("*/").map_or(text.len(), |end| end + 4));
    }
    if !QUOTES.contains(&first) {
        return None;
    }
    let rest = &text[1..];
    Some(rest.find(first).map_or(text.len(), |end| end + 2))
}

/// Tells whether what stands between two pieces of text is part of a table's name.
fn names_a_table(before: &str, after: &str) -> bool {
    let trimmed = before.trim_end();
    if after.starts_with('.') || trimmed.ends_with('.') && trimmed.len() == before.len() {
        return true;
    }
    if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
        return true;
    }
    let last = trimmed.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next();
    let last = last.unwrap_or_default().to_ascii_lowercase();
    matches!(last.as_str(), "from" | "join" | "into" | "update" | "table" | "using" | "view")
}

/// Makes a name of a template: of `ref('a')` and `source('s', 'a')` what they name.
fn name_of(inner: &str) -> String {
    let quoted: Vec<&str> = inner.split(['\'', '"']).skip(1).step_by(2).collect();
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
    };
    if quoted.is_empty() {
        let name = plain(inner.trim());
        return if name.is_empty() { "template".to_owned() } else { name };
    }
    quoted.into_iter().map(plain).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::{is_templated, replaced};

    #[track_caller]
    fn check(sql: &str, expected: &str) {
        assert_eq!(replaced(sql), expected);
    }

    #[test]
    fn templates_name_tables_or_stand_for_values() {
        check("SELECT 1 FROM {{ ref('a') }} WHERE x = {{ y }}", "SELECT 1 FROM a WHERE x =  ? ");
        check("SELECT 1 FROM ${db}.a JOIN {{source('s','b')}} b", "SELECT 1 FROM db.a JOIN s.b b");
        check("WHERE x > %(low)s AND y = '{{ ds }}'", "WHERE x >  ?  AND y = '{{ ds }}'");
        check("{% if a %}SELECT 1{# no #} -- {{x}}", " SELECT 1  -- {{x}}");
        check("SELECT a % (b) FROM t", "SELECT a % (b) FROM t");
        check("SELECT {{ cut", "SELECT {{ cut");
        assert!(is_templated("{{ ds }}") && is_templated("x-${d}") && !is_templated("{a}"));
    }
}
