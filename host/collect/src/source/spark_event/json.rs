//! A reader for the JSON of event lines.
//!
//! `serde_json` gives up at 128 nested values, which a plan of 60 operators exceeds; its feature
//! that lifts the limit would be switched on for the whole workspace. This reader hands out values
//! one by one, borrows strings where it can, and skips what nobody asks for without recursion.

use std::borrow::Cow;

/// Nested values beyond this are refused, so that no line can exhaust the stack.
const MAX_DEPTH: usize = 1_000;

/// Where a line stops being the JSON that was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed {
    /// Position in the line, in bytes.
    pub(super) at: usize,
    /// What should stand there.
    pub(super) expected: &'static str,
}

type Read<T> = Result<T, Malformed>;

/// A position in a line.
#[derive(Debug, Clone)]
pub(super) struct Json<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Json<'a> {
    /// Starts at the beginning of a line.
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// Reads an object; `member` gets each name and must read or skip the value.
    pub(super) fn object(
        &mut self,
        member: &mut dyn FnMut(&mut Self, &str) -> Read<()>,
    ) -> Read<()> {
        self.sequence(b'{', b'}', &mut |json| {
            let name = json.string()?;
            json.expect(b':', "`:`")?;
            member(json, &name)
        })
    }

    /// Reads an array; `element` must read or skip each value.
    pub(super) fn array(&mut self, element: &mut dyn FnMut(&mut Self) -> Read<()>) -> Read<()> {
        self.sequence(b'[', b']', element)
    }

    /// Goes to the value of an object's first member of this name; `false` without one.
    pub(super) fn seek(&mut self, wanted: &str) -> Read<bool> {
        self.expect(b'{', "an object")?;
        if self.peek() == Some(b'}') {
            return Ok(false);
        }
        loop {
            let is_wanted = self.string()? == wanted;
            self.expect(b':', "`:`")?;
            if is_wanted {
                return Ok(true);
            }
            self.skip()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => return Ok(false),
                _ => return self.fail("`,` or `}`"),
            }
        }
    }

    /// Reads a string.
    pub(super) fn string(&mut self) -> Read<Cow<'a, str>> {
        let start = self.at;
        let (raw, escaped) = self.raw_string()?;
        if !escaped {
            return Ok(Cow::Borrowed(raw));
        }
        unescape(raw)
            .map(Cow::Owned)
            .ok_or(Malformed { at: start, expected: "a valid escape sequence" })
    }

    /// Passes over a string and returns what stands between its quotes, and whether it has escapes.
    fn raw_string(&mut self) -> Read<(&'a str, bool)> {
        self.expect(b'"', "a string")?;
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        loop {
            let rest = bytes.get(self.at..).unwrap_or_default();
            let Some(offset) = memchr::memchr2(b'"', b'\\', rest) else {
                self.at = bytes.len();
                return self.fail("the end of a string");
            };
            self.at += offset;
            if bytes[self.at] == b'"' {
                let raw = &self.text[start..self.at];
                self.at += 1;
                return Ok((raw, escaped));
            }
            escaped = true;
            self.at += 2;
        }
    }

    /// Reads a value as an integer: a number, or a string that holds one. Anything else is `None`.
    pub(super) fn integer(&mut self) -> Read<Option<i64>> {
        match self.peek() {
            Some(b'"') => Ok(self.string()?.parse().ok()),
            Some(b'-' | b'0'..=b'9') => {
                let start = self.at;
                self.skip()?;
                Ok(self.text[start..self.at].parse().ok())
            }
            _ => {
                self.skip()?;
                Ok(None)
            }
        }
    }

    /// Reads a string, or skips any other value.
    pub(super) fn text(&mut self) -> Read<Option<Cow<'a, str>>> {
        if self.peek() == Some(b'"') {
            return self.string().map(Some);
        }
        self.skip()?;
        Ok(None)
    }

    /// Tells whether an array comes next.
    pub(super) fn is_array(&mut self) -> bool {
        self.peek() == Some(b'[')
    }

    /// Reads a string of at most `limit` bytes, or skips any other value.
    pub(super) fn text_within(&mut self, limit: usize) -> Read<Option<Cow<'a, str>>> {
        if self.peek() != Some(b'"') {
            return self.text();
        }
        let before = self.clone();
        if self.raw_string()?.0.len() > limit {
            return Ok(None);
        }
        *self = before;
        self.text()
    }

    /// Tells whether an object comes next.
    pub(super) fn is_object(&mut self) -> bool {
        self.peek() == Some(b'{')
    }

    /// Skips one value of any kind.
    pub(super) fn skip(&mut self) -> Read<()> {
        let bytes = self.text.as_bytes();
        let mut open = 0_usize;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.raw_string()?;
                }
                Some(b'{' | b'[') => {
                    open += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') if open > 0 => {
                    open -= 1;
                    self.at += 1;
                }
                Some(b',' | b':') if open > 0 => self.at += 1,
                Some(b'-' | b'0'..=b'9' | b'a'..=b'z') => {
                    while bytes.get(self.at).is_some_and(|byte| {
                        matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.')
                    }) {
                        self.at += 1;
                    }
                }
                _ => return self.fail("a value"),
            }
            if open == 0 {
                return Ok(());
            }
        }
    }

    /// Checks that nothing but white space is left.
    pub(super) fn end(&mut self) -> Read<()> {
        if self.peek().is_none() { Ok(()) } else { self.fail("the end of the line") }
    }

    fn sequence(
        &mut self,
        open: u8,
        close: u8,
        item: &mut dyn FnMut(&mut Self) -> Read<()>,
    ) -> Read<()> {
        self.expect(open, if open == b'{' { "an object" } else { "an array" })?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail("at most 1000 nested values");
        }
        if self.peek() != Some(close) {
            loop {
                item(self)?;
                match self.peek() {
                    Some(b',') => self.at += 1,
                    _ => break,
                }
            }
        }
        self.depth -= 1;
        self.expect(close, if close == b'}' { "`,` or `}`" } else { "`,` or `]`" })
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Read<()> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        self.fail(expected)
    }

    const fn fail<T>(&self, expected: &'static str) -> Read<T> {
        Err(Malformed { at: self.at, expected })
    }
}

fn unescape(raw: &str) -> Option<String> {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let code = *rest.as_bytes().get(at + 1)?;
        // No escape is longer than a byte, so what follows starts a character.
        rest = rest.get(at + 2..)?;
        match code {
            b'n' => out.push('\n'),
            b't' => out.push('\t'),
            b'r' => out.push('\r'),
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'"' | b'\\' | b'/' => out.push(char::from(code)),
            b'u' => rest = unescape_unicode(rest, &mut out)?,
            _ => return None,
        }
    }
    out.push_str(rest);
    Some(out)
}

/// Reads four hexadecimal digits, and the second half of a surrogate pair; a lone half is replaced.
fn unescape_unicode<'a>(rest: &'a str, out: &mut String) -> Option<&'a str> {
    let unit = |text: &str| u16::from_str_radix(text.get(..4)?, 16).ok();
    let first = unit(rest)?;
    let rest = &rest[4..];
    let second =
        rest.strip_prefix("\\u").and_then(unit).filter(|_| (0xd800..0xdc00).contains(&first));
    match second.map(|second| char::decode_utf16([first, second]).next()) {
        Some(Some(Ok(c))) => {
            out.push(c);
            Some(&rest[6..])
        }
        _ => {
            out.push(char::from_u32(u32::from(first)).unwrap_or(char::REPLACEMENT_CHARACTER));
            Some(rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*};

    use super::{Json, Malformed, unescape};
    use crate::source::fuzz;

    /// Reads `{"a": integer, "b": text, …}` and shows what was found.
    fn read(text: &str) -> Result<(Option<i64>, Option<String>), Malformed> {
        let (mut a, mut b) = (None, None);
        let mut json = Json::new(text);
        json.object(&mut |json, name| match name {
            "a" => json.integer().map(|value| a = value),
            "b" => json.text().map(|value| b = value.map(|text| text.into_owned())),
            _ => json.skip(),
        })?;
        json.end()?;
        Ok((a, b))
    }

    #[test]
    fn wanted_members_are_read_and_others_skipped() {
        let text = r#"{"x":[{"a":9,"y":"]}"},null,true,-1.5e3],"a":"12","b":"q\"\u00e9\n","z":{}}"#;
        assert_eq!(read(text), Ok((Some(12), Some("q\"é\n".to_owned()))));
        assert_eq!(read(r#"{"a":null,"b":[1]}"#), Ok((None, None)));
    }

    #[test]
    fn malformed_text_is_refused_with_its_position() {
        assert_eq!(read(r#"{"a":1"#), Err(Malformed { at: 6, expected: "`,` or `}`" }));
        assert_eq!(read(r#"{"b":"cut"#).unwrap_err().expected, "the end of a string");
        assert_eq!(read(r#"{"a":1} x"#), Err(Malformed { at: 8, expected: "the end of the line" }));
        assert_eq!(read("[]").unwrap_err().expected, "an object");
        assert_eq!(read(r#"{"x":[1,_2]}"#), Err(Malformed { at: 8, expected: "a value" }));
    }

    #[test]
    fn a_member_is_found_wherever_it_stands() {
        let seek = |text: &str| {
            let mut json = Json::new(text);
            Ok(if json.seek("b")? { json.text()?.map(|text| text.into_owned()) } else { None })
        };
        assert_eq!(seek(r#"{"a":{"b":"inner"},"b":"x"}"#), Ok(Some("x".to_owned())));
        assert_eq!(seek(r#" { "b" : "x", broken"#), Ok(Some("x".to_owned())));
        assert_eq!(seek(r#"{"a":1}"#), Ok(None));
        assert_eq!(seek("{}"), Ok(None));
        assert_eq!(seek("7"), Err(Malformed { at: 0, expected: "an object" }));
        assert_eq!(seek(r#"{"a":1"#), Err(Malformed { at: 6, expected: "`,` or `}`" }));
    }

    #[test]
    fn a_string_that_ends_in_a_backslash_is_refused() {
        assert_eq!(Json::new("\"a\\").skip().unwrap_err().expected, "the end of a string");
        assert_eq!(Json::new("\"a\\é\"").skip(), Ok(()));
    }

    #[test]
    fn surrogate_pairs_are_joined_and_lone_halves_replaced() {
        assert_eq!(unescape(r"\ud83d\ude00").as_deref(), Some("😀"));
        assert_eq!(unescape(r"\ud83dx").as_deref(), Some("\u{fffd}x"));
        assert_eq!(unescape(r"\q"), None);
    }

    #[test]
    fn deep_nesting_is_refused_when_read_and_passed_when_skipped() {
        fn descend(json: &mut Json<'_>) -> Result<(), Malformed> {
            json.array(&mut descend)
        }
        let deep = format!("{}{}", "[".repeat(2_000), "]".repeat(2_000));
        assert_eq!(
            descend(&mut Json::new(&deep)).unwrap_err().expected,
            "at most 1000 nested values"
        );
        assert_eq!(Json::new(&deep).skip(), Ok(()));
    }

    /// JSON values of any shape, as serde_json writes them.
    fn values() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            ".{0,20}".prop_map(Into::into),
        ];
        leaf.prop_recursive(6, 40, 6, |inner| {
            prop_oneof![
                collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                collection::btree_map(".{0,8}", inner, 0..6)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    #[test]
    fn whatever_serde_json_writes_is_read_back() {
        fuzz::run(&(values(), ".{0,30}"), |(value, text)| {
            let line = serde_json::json!({ "x": value, "b": text, "a": 7 }).to_string();
            prop_assert_eq!(read(&line), Ok((Some(7), Some(text))));
            let mut json = Json::new(&line);
            prop_assert_eq!(json.seek("b"), Ok(true));
            Ok(())
        });
    }

    #[test]
    fn no_text_makes_the_reader_panic_and_positions_are_inside() {
        let edits = collection::vec((any::<prop::sample::Index>(), any::<char>()), 0..4);
        fuzz::run(&(values(), edits), |(value, edits)| {
            let mut text: Vec<char> =
                serde_json::json!({ "b": value }).to_string().chars().collect();
            for (at, character) in edits {
                let index = at.index(text.len());
                text[index] = character;
            }
            let text: String = text.into_iter().collect();
            if let Err(problem) = read(&text) {
                prop_assert!(problem.at <= text.len() + 1, "{problem:?}");
                prop_assert!(
                    serde_json::from_str::<serde_json::Value>(&text).is_err() || edited_b(&text)
                );
            }
            let mut json = Json::new(&text);
            let _ = json.skip().and_then(|()| json.end());
            Ok(())
        });
    }

    /// The members `a` and `b` may be anything; only then may valid JSON be refused here.
    fn edited_b(text: &str) -> bool {
        !text.starts_with("{\"b\":")
    }
}
