//! Statements of any depth: bounded before they are parsed, and given the stack they need.
//!
//! Parser, planner and the dropping of a syntax tree recurse once per level of nesting, and once per
//! link of a flat chain of `OR`s. A machine-made filter has hundreds of the one and thousands of the
//! other. So nesting beyond [`MAX_DEPTH`] is refused from the tokens alone, and everything from the
//! parser to the drop runs on a stack whose size follows from the tokens.

use datafusion_sql::sqlparser::{
    keywords::Keyword,
    tokenizer::{Token, TokenWithSpan},
};

/// The deepest nesting that is read. People write about ten levels, generators a few hundred.
pub(super) const MAX_DEPTH: usize = 1_000;

/// Tokens beyond which a statement is not read at all.
pub(super) const MAX_TOKENS: usize = 1_000_000;

/// Stack for one level of nesting: the parser's frames, measured with 900 parentheses at 11 KiB a
/// level without optimization, with room for the planner's.
const LEVEL_BYTES: usize = 64 << 10;

/// Stack for one link of a chain: the frames that visit and drop a tree.
const LINK_BYTES: usize = 1 << 10;

/// Stack for a statement without any depth.
const BASE_BYTES: usize = 512 << 10;

/// How deep a statement nests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Depth {
    /// Open brackets, and words that wait for an operand.
    pub(super) levels: usize,
    /// Tokens, which bound every chain.
    pub(super) tokens: usize,
}

impl Depth {
    /// Measures a text.
    pub(super) fn of(tokens: &[TokenWithSpan]) -> Self {
        let (mut open, mut run, mut levels, mut count) = (0_usize, 0_usize, 0_usize, 0_usize);
        for token in tokens {
            match &token.token {
                Token::Whitespace(_) => continue,
                Token::LParen | Token::LBracket | Token::LBrace => {
                    open += 1;
                    run = 0;
                }
                Token::RParen | Token::RBracket | Token::RBrace => {
                    open = open.saturating_sub(1);
                    run = 0;
                }
                Token::Word(word) if word.keyword == Keyword::CASE => {
                    open += 1;
                    run += 1;
                }
                Token::Word(word) if word.keyword == Keyword::END => {
                    open = open.saturating_sub(1);
                    run = 0;
                }
                Token::Word(word) if word.keyword == Keyword::NoKeyword => run = 0,
                Token::Number(..) | Token::Comma | Token::SemiColon => run = 0,
                _ => run += 1,
            }
            count += 1;
            levels = levels.max(open + run);
        }
        Self { levels, tokens: count }
    }

    /// Tells whether the statement can be read.
    pub(super) const fn is_bounded(self) -> bool {
        self.levels <= MAX_DEPTH && self.tokens <= MAX_TOKENS
    }

    /// Runs something on a stack that is large enough for the statement.
    pub(super) fn with_stack<T>(self, run: impl FnOnce() -> T) -> T {
        let bytes = BASE_BYTES + self.levels * LEVEL_BYTES + self.tokens * LINK_BYTES;
        stacker::maybe_grow(bytes, bytes, run)
    }
}
