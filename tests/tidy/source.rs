//! Rust text without what a rule must not look at: comments, literals, test code.
//!
//! What is taken out becomes spaces, so lines keep their numbers. This is no parser; it knows
//! comments, literals, brackets and `#[cfg(test)]`, which is what the rules need.

use super::tree::{TextFile, name, parent};

/// What becomes of the contents of string and character literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Literals {
    Keep,
    Blank,
}

/// Blanks comments, nested ones too.
pub(crate) fn without_comments(text: &str, literals: Literals) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let (length, visible) = match rest {
            ['/', '/', ..] => (line_comment(rest), false),
            ['/', '*', ..] => (block_comment(rest), false),
            ['"', ..] => (string(rest, raw_hashes(&chars[..at])), literals == Literals::Keep),
            ['\'', ..] => (character(rest), literals == Literals::Keep),
            _ => (1, true),
        };
        for (index, c) in rest[..length].iter().enumerate() {
            // The quotes stay, so that what follows a literal does not join what precedes it.
            let edge = matches!(rest[0], '"' | '\'') && (index == 0 || index + 1 == length);
            kept.push(if visible || edge || *c == '\n' { *c } else { ' ' });
        }
        at += length;
    }
    kept
}

fn line_comment(rest: &[char]) -> usize {
    rest.iter().position(|c| *c == '\n').unwrap_or(rest.len())
}

fn block_comment(rest: &[char]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => (at, depth) = (at + 2, depth + 1),
            ['*', '/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Returns the number of `#` of the raw string that starts after `before`, `None` if it is not raw.
fn raw_hashes(before: &[char]) -> Option<usize> {
    let hashes = before.iter().rev().take_while(|c| **c == '#').count();
    let mut prefix = before[..before.len() - hashes].iter().rev();
    if prefix.next() != Some(&'r') {
        return None;
    }
    let mut previous = prefix.next();
    if matches!(previous, Some('b' | 'c')) {
        previous = prefix.next();
    }
    previous.is_none_or(|c| !is_name(*c)).then_some(hashes)
}

fn string(rest: &[char], raw_hashes: Option<usize>) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match (rest[at], raw_hashes) {
            ('\\', None) => at += 2,
            ('"', None) => return at + 1,
            ('"', Some(hashes))
                if rest[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes =>
            {
                return at + 1;
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// Returns the length of a character literal, or 1 for the quote of a lifetime.
fn character(rest: &[char]) -> usize {
    match rest {
        [_, '\\', _, tail @ ..] => {
            tail.iter().position(|c| *c == '\'').map_or(rest.len(), |end| end + 4)
        }
        [_, _, '\'', ..] => 3,
        _ => 1,
    }
}

const TEST_MARK: &str = "#[cfg(test)]";

/// Blanks the items behind `#[cfg(test)]` in text without comments and literals.
pub(crate) fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut from = 0;
    for (start, end) in test_items(code) {
        kept.push_str(&code[from..start]);
        kept.extend(code[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        from = end;
    }
    kept.push_str(&code[from..]);
    kept
}

/// Returns from where to where the test items go.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let mut items = Vec::new();
    let mut from = 0;
    while let Some(found) = code[from..].find(TEST_MARK) {
        let start = from + found;
        let end = item_end(code, start + TEST_MARK.len());
        items.push((start, end));
        from = end;
    }
    items
}

fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code[from..].bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && byte == b'}' {
                    return from + offset + 1;
                }
            }
            b';' if depth == 0 => return from + offset + 1,
            _ => {}
        }
    }
    code.len()
}

/// Returns the code of a project that is in its products: without comments, literals, test items,
/// and without the files that are test modules.
pub(crate) fn product_code(files: &[TextFile]) -> Vec<TextFile> {
    let code: Vec<TextFile> = files.iter().map(blanked).collect();
    let tests: Vec<String> = code.iter().flat_map(test_modules).collect();
    let is_test = |path: &str| {
        tests.iter().any(|module| {
            path.strip_prefix(module.as_str())
                .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        })
    };
    let product = code.iter().filter(|file| !is_test(&file.path));
    product.map(|file| TextFile::new(file.path.as_str(), without_tests(&file.text))).collect()
}

/// Returns a file without comments and literals.
pub(crate) fn blanked(file: &TextFile) -> TextFile {
    TextFile::new(file.path.as_str(), without_comments(&file.text, Literals::Blank))
}

/// Returns the paths, without `.rs`, of the modules that a file declares for tests only.
fn test_modules(file: &TextFile) -> Vec<String> {
    let folder = match name(&file.path) {
        "mod.rs" | "lib.rs" | "main.rs" => parent(&file.path).to_owned(),
        _ => file.path.trim_end_matches(".rs").to_owned(),
    };
    let items = test_items(&file.text).into_iter();
    items
        .filter_map(|(start, end)| file.text[start..end].trim_end().strip_suffix(';'))
        .filter_map(|item| item.rsplit_once(' '))
        .filter(|(before, _)| before.trim_end().ends_with("mod"))
        .map(|(_, module)| format!("{folder}/{module}"))
        .collect()
}

/// Returns the numbers of the lines that hold a word. Where the word begins or ends like a name, it
/// is not found within a longer name; a word that ends with `_` stands for all names of that start.
pub(crate) fn lines_with(text: &str, word: &str) -> Vec<usize> {
    let numbered = text.lines().enumerate();
    numbered.filter(|(_, line)| holds(line, word)).map(|(index, _)| index + 1).collect()
}

/// Tells whether a text holds a word, as [`lines_with`] understands it.
pub(crate) fn holds(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        let opens = !word.starts_with(is_name) || !before.is_some_and(is_name);
        let closes = word.ends_with('_') || !word.ends_with(is_name) || !after.is_some_and(is_name);
        opens && closes
    })
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::{Literals, holds, lines_with, product_code, without_comments, without_tests};
    use crate::tidy::tree::TextFile;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(without_comments(text, Literals::Blank), expected);
    }

    #[test]
    fn comments_become_spaces_and_lines_stay() {
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */\nd */ e", "a             \n     e");
        check("a /", "a /");
    }

    #[test]
    fn literals_become_spaces_between_their_quotes() {
        check(r#"f("a\"b", c)"#, r#"f("    ", c)"#);
        check(r##"r#"a"b"# + "//""##, r##"r#"   "# + "  ""##);
        check(r#"bar"\"" + x"#, r#"bar"  " + x"#);
        check(r#"r"\" + x"#, r#"r" " + x"#);
    }

    #[test]
    fn lifetimes_are_no_character_literals() {
        check("&'a str, '\"', '\\'', '\\u{41}', x", "&'a str, ' ', '  ', '      ', x");
    }

    #[test]
    fn literals_stay_when_asked_for() {
        assert_eq!(without_comments("f(\"a\") // \"b\"", Literals::Keep), "f(\"a\")       ");
    }

    #[test]
    fn test_items_become_spaces() {
        let code = "a;\n#[cfg(test)]\nmod tests { fn b() { c } }\nd;";
        assert_eq!(without_tests(code).split_whitespace().collect::<Vec<_>>(), ["a;", "d;"]);
        assert_eq!(lines_with(&without_tests(code), "d"), [4]);
        assert_eq!(without_tests("#[cfg(test)] fn a(b: [u8; 2]) {} c").trim(), "c");
        assert_eq!(without_tests("#[cfg(test)] use a; b").trim(), "b");
    }

    #[test]
    fn files_of_test_modules_are_not_in_the_product() {
        let files = [
            TextFile::new("x/src/lib.rs", "mod a;\n#[cfg(test)]\nmod tests;\n"),
            TextFile::new("x/src/a.rs", "#[cfg(test)]\npub(crate) mod inner;\nmod testing;"),
            TextFile::new("x/src/a/inner.rs", "b"),
            TextFile::new("x/src/a/testing.rs", "b"),
            TextFile::new("x/src/tests/mod.rs", "b"),
            TextFile::new("x/src/tests/more.rs", "b"),
        ];
        let product: Vec<String> = product_code(&files).into_iter().map(|file| file.path).collect();
        assert_eq!(product, ["x/src/lib.rs", "x/src/a.rs", "x/src/a/testing.rs"]);
    }

    #[test]
    fn words_are_found_whole() {
        assert!(holds("derive(Serialize)", "Serialize"));
        assert!(!holds("Serialized", "Serialize"));
        assert!(!holds("eprintln!()", "println!"));
        assert!(holds("use datafusion_expr::Expr;", "datafusion_"));
        assert_eq!(lines_with("a\nb a\nab", "a"), [1, 2]);
    }
}
