//! Access expressions: who may see a row.
//!
//! ```text
//! access     := [expression]                      empty: everybody
//! expression := operand {"&" operand} | operand {"|" operand}
//! operand    := token | "(" expression ")"
//! token      := 1*( letter | digit | "_" | "-" | "." | ":" | "/" )
//!             | '"' 1*( any character but '"' and '\' | '\"' | '\\' ) '"'
//! ```
//!
//! The grammar is Apache Accumulo's (SPECIFICATION.md of accumulo-access). `&` and `|` never stand beside
//! each other without parentheses, so nothing takes precedence. An expression is read to its end
//! whatever its parts say: whether it is valid never depends on who looks. Parentheses are counted on
//! the heap, so no depth of them overflows a stack.

use std::{borrow::Cow, collections::BTreeSet};

/// Control characters and what stands for an unreadable one are in no authorization.
const UNREADABLE: char = '\u{FFFD}';

/// Where an expression breaks the grammar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at position {position}")]
pub struct ExpressionError {
    /// Characters before the place.
    pub position: usize,
    /// What is wrong there.
    pub reason: String,
}

/// What one level of parentheses says so far.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    operator: Option<u8>,
    value: bool,
}

impl Level {
    fn add(&mut self, operand: bool) {
        self.value = match self.operator {
            None => operand,
            Some(b'&') => self.value & operand,
            Some(_) => self.value | operand,
        };
    }
}

/// Tells whether somebody with all of these authorizations may see what has this label.
///
/// # Errors
/// Returns the first place where the label is no access expression.
pub(super) fn is_visible(
    label: &str,
    authorizations: &BTreeSet<String>,
) -> Result<bool, ExpressionError> {
    if label.is_empty() {
        return Ok(true);
    }
    let mut reader = Reader { label, at: 0 };
    let mut outer: Vec<Level> = Vec::new();
    let mut level = Level::default();
    loop {
        if reader.peek() == Some(b'(') {
            reader.at += 1;
            outer.push(std::mem::take(&mut level));
            continue;
        }
        let token = reader.token()?;
        level.add(authorizations.contains(token.as_ref()));
        // Behind an operand: its level ends, or goes on with an operator.
        loop {
            match reader.peek() {
                None if outer.is_empty() => return Ok(level.value),
                None => return Err(reader.error("expected `)`, found the end")),
                Some(b')') => {
                    let Some(mut around) = outer.pop() else { return Err(reader.unexpected()) };
                    reader.at += 1;
                    around.add(level.value);
                    level = around;
                }
                Some(operator @ (b'&' | b'|')) => {
                    if *level.operator.get_or_insert(operator) != operator {
                        return Err(reader.error("`&` and `|` need parentheses between them"));
                    }
                    reader.at += 1;
                    break;
                }
                Some(_) => return Err(reader.unexpected()),
            }
        }
    }
}

/// Tells what is wrong with an authorization, if anything.
pub(super) fn authorization_fault(authorization: &str) -> Option<&'static str> {
    if authorization.is_empty() {
        return Some("is empty");
    }
    authorization.contains(is_unreadable).then_some("has a control character or U+FFFD")
}

fn is_unreadable(character: char) -> bool {
    character.is_control() || character == UNREADABLE
}

const fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/')
}

struct Reader<'l> {
    label: &'l str,
    /// Bytes read.
    at: usize,
}

impl<'l> Reader<'l> {
    fn peek(&self) -> Option<u8> {
        self.label.as_bytes().get(self.at).copied()
    }

    fn token(&mut self) -> Result<Cow<'l, str>, ExpressionError> {
        if self.peek() == Some(b'"') {
            return self.quoted();
        }
        let rest = &self.label[self.at..];
        let length = rest.bytes().take_while(|byte| is_bare(*byte)).count();
        if length == 0 {
            let found = self.found();
            return Err(self.error(format!("expected an authorization or `(`, found {found}")));
        }
        self.at += length;
        Ok(Cow::Borrowed(&rest[..length]))
    }

    fn quoted(&mut self) -> Result<Cow<'l, str>, ExpressionError> {
        let opened = self.at;
        let inner = opened + 1;
        let mut token = Cow::Borrowed("");
        let mut copied = inner;
        let mut characters = self.label[inner..].char_indices();
        while let Some((place, character)) = characters.next() {
            let place = inner + place;
            match character {
                '"' => {
                    extend(&mut token, &self.label[copied..place]);
                    if token.is_empty() {
                        return Err(self.error("nothing between the quotes"));
                    }
                    self.at = place + 1;
                    return Ok(token);
                }
                '\\' => {
                    let Some((_, escaped @ ('"' | '\\'))) = characters.next() else {
                        self.at = place;
                        return Err(self.error("a backslash stands only before `\"` and `\\`"));
                    };
                    extend(&mut token, &self.label[copied..place]);
                    token.to_mut().push(escaped);
                    copied = place + 2;
                }
                unreadable if is_unreadable(unreadable) => {
                    self.at = place;
                    return Err(self.error("a control character or U+FFFD between quotes"));
                }
                _ => {}
            }
        }
        Err(self.error("the quote is not closed"))
    }

    fn unexpected(&self) -> ExpressionError {
        let found = self.found();
        self.error(format!("expected `&`, `|`, `)` or the end, found {found}"))
    }

    fn found(&self) -> String {
        let character = self.label[self.at..].chars().next();
        character.map_or_else(|| "the end".to_owned(), |c| format!("`{}`", c.escape_debug()))
    }

    fn error(&self, reason: impl Into<String>) -> ExpressionError {
        ExpressionError { position: self.label[..self.at].chars().count(), reason: reason.into() }
    }
}

/// Appends without copying the first part.
fn extend<'l>(token: &mut Cow<'l, str>, part: &'l str) {
    if token.is_empty() {
        *token = Cow::Borrowed(part);
    } else {
        token.to_mut().push_str(part);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::is_visible;

    fn set(authorizations: &[&str]) -> BTreeSet<String> {
        authorizations.iter().map(|one| (*one).to_owned()).collect()
    }

    #[track_caller]
    fn check_refused(label: &str, expected: &str) {
        // Whoever looks, and whatever a part already says.
        for authorizations in [set(&[]), set(&["a", "A", "b", "B"])] {
            let error = is_visible(label, &authorizations).unwrap_err();
            assert_eq!(error.to_string(), expected, "{label}");
        }
    }

    #[test]
    fn places_that_break_the_grammar_are_named() {
        check_refused("a|b&c", "`&` and `|` need parentheses between them at position 3");
        check_refused("a&b|c", "`&` and `|` need parentheses between them at position 3");
        check_refused("(a|b", "expected `)`, found the end at position 4");
        check_refused("((a|b)(c)", "expected `&`, `|`, `)` or the end, found `(` at position 6");
        check_refused("a)", "expected `&`, `|`, `)` or the end, found `)` at position 1");
        check_refused("#", "expected an authorization or `(`, found `#` at position 0");
        check_refused("()", "expected an authorization or `(`, found `)` at position 1");
        check_refused("a&", "expected an authorization or `(`, found the end at position 2");
        check_refused("A&\"\"", "nothing between the quotes at position 2");
        check_refused("A|(bad", "expected `)`, found the end at position 6");
        check_refused("\"\\9\"", "a backslash stands only before `\"` and `\\` at position 1");
        check_refused("\"五\"&\"四", "the quote is not closed at position 4");
        check_refused("五", "expected an authorization or `(`, found `五` at position 0");
        check_refused(" a", "expected an authorization or `(`, found ` ` at position 0");
        check_refused("\n", "expected an authorization or `(`, found `\\n` at position 0");
        check_refused("\"a\u{7}\"", "a control character or U+FFFD between quotes at position 2");
    }

    #[test]
    fn escapes_are_undone_once() {
        let authorizations = set(&["A#C", "A\"C", "A\\C", "五", " "]);
        for label in ["\"A\\\"C\"&\"A\\\\C\"", "\"A#C\"", "\"五\"|x", "\" \"", "\"A\\\"C\""] {
            assert_eq!(is_visible(label, &authorizations), Ok(true), "{label}");
        }
        assert_eq!(is_visible("\"A\\\\\\\"C\"", &authorizations), Ok(false));
    }

    #[test]
    fn no_depth_of_parentheses_overflows_the_stack() {
        let depth = 1 << 20;
        let label = format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(is_visible(&label, &set(&["a"])), Ok(true));
        let error = is_visible(&"(".repeat(depth), &set(&[])).unwrap_err();
        assert_eq!(error.position, depth);
    }

    /// A tree of the grammar, to write and to judge without the reader.
    #[derive(Debug, Clone)]
    enum Tree {
        Token(String),
        Both(Vec<Self>),
        Either(Vec<Self>),
    }

    impl Tree {
        fn text(&self) -> String {
            let joined = |parts: &[Self], operator: &str| {
                let parts: Vec<String> = parts
                    .iter()
                    .map(|part| match part {
                        Self::Token(_) => part.text(),
                        _ => format!("({})", part.text()),
                    })
                    .collect();
                parts.join(operator)
            };
            match self {
                Self::Token(token) if token.bytes().all(super::is_bare) => token.clone(),
                Self::Token(token) => {
                    format!("\"{}\"", token.replace('\\', "\\\\").replace('"', "\\\""))
                }
                Self::Both(parts) => joined(parts, "&"),
                Self::Either(parts) => joined(parts, "|"),
            }
        }

        fn holds(&self, authorizations: &BTreeSet<String>) -> bool {
            match self {
                Self::Token(token) => authorizations.contains(token),
                Self::Both(parts) => parts.iter().all(|part| part.holds(authorizations)),
                Self::Either(parts) => parts.iter().any(|part| part.holds(authorizations)),
            }
        }
    }

    fn trees() -> impl Strategy<Value = Tree> {
        let token = prop_oneof!["[abc]", "[a-z_./:-]{1,4}", "[a-c\"\\\\ 五]{1,3}"];
        token.prop_map(Tree::Token).prop_recursive(6, 64, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..4).prop_map(Tree::Both),
                prop::collection::vec(inner, 1..4).prop_map(Tree::Either),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_the_grammar_makes_is_judged_as_its_tree(
            tree in trees(),
            held in prop::collection::btree_set("[abc]", 0..4),
        ) {
            prop_assert_eq!(is_visible(&tree.text(), &held), Ok(tree.holds(&held)));
        }

        #[test]
        fn no_text_panics_and_validity_depends_on_nobody(text in "[ab()&|\"\\\\ 五]{0,24}|\\PC*") {
            let nobody = is_visible(&text, &set(&[])).map(|_| ());
            let somebody = is_visible(&text, &set(&["a", "b"])).map(|_| ());
            prop_assert_eq!(nobody, somebody);
        }
    }
}
