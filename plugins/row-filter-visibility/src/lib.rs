//! Keeps the rows that somebody may see.
//!
//! A label is an access expression as in Apache Accumulo: authorizations joined by `&` or by `|`, with
//! parentheses where both stand; bare (`A`–`Z`, `a`–`z`, `0`–`9`, `_ - . : /`) or between quotes, in
//! which `\"` and `\\` are escapes. An empty label is seen by all. A label is read to its end whatever
//! its parts say, so whether it is valid never depends on who looks; levels of parentheses lie on
//! the heap. Each distinct label is read once.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec,
    vec::Vec,
};
use core::cell::RefCell;

use lakebed_guest::{Batch, Plugin, PluginError, Values, VarBytes, kernels, row_filter::RowFilter};
use serde::Deserialize;

/// Labels that are remembered from batch to batch; with more, they are read again.
const LABELS_MAX: usize = 1 << 12;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    column: String,
    authorizations: Vec<String>,
    #[serde(default)]
    invalid: Invalid,
    #[serde(default)]
    nulls: Nulls,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Invalid {
    #[default]
    Fail,
    Drop,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Nulls {
    #[default]
    Drop,
    Keep,
}

#[derive(Debug)]
struct Visibility {
    column: String,
    authorizations: BTreeSet<String>,
    invalid: Invalid,
    nulls: Nulls,
    known: RefCell<BTreeMap<Vec<u8>, bool>>,
}

impl Plugin for Visibility {
    const NAME: &'static str = "visibility";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DOC: &'static str = "Keeps the rows whose label somebody may see. Settings: column; \
        authorizations, a list; invalid: fail (default) or drop; nulls: drop (default) or keep.";
    type Settings = Settings;

    fn configure(settings: Settings) -> Result<Self, PluginError> {
        let Settings { column, authorizations, invalid, nulls } = settings;
        if let Some(refused) =
            authorizations.iter().find(|one| one.is_empty() || one.chars().any(is_unreadable))
        {
            return Err(PluginError::InvalidConfig(format!(
                "authorization {refused:?} is empty or has a control character or U+FFFD"
            )));
        }
        let authorizations = authorizations.into_iter().collect();
        Ok(Self { column, authorizations, invalid, nulls, known: RefCell::default() })
    }
}

impl RowFilter for Visibility {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn select(&self, _now_seconds: i64, batch: &Batch) -> Result<Vec<u8>, PluginError> {
        let [column] = batch.columns.as_slice() else {
            return Err(PluginError::InvalidInput(format!(
                "the batch has {} columns, expected 1",
                batch.columns.len()
            )));
        };
        let (Values::Text(labels) | Values::Binary(labels)) = &column.values else {
            return Err(PluginError::Unsupported(format!(
                "column `{}` has type {:?}, expected Text or Binary",
                self.column,
                column.values.column_type()
            )));
        };
        let validity = column.validity(batch.rows);
        let mut kept = Vec::with_capacity(batch.rows);
        for row in 0..batch.rows {
            // What stands at a null row is unspecified, so it is not read.
            let is_null = validity.is_some_and(|validity| !validity.get(row));
            kept.push(if is_null {
                matches!(self.nulls, Nulls::Keep)
            } else {
                self.judge(label(labels, row)?)?
            });
        }
        Ok(kernels::pack(&kept, |keep| keep))
    }
}

impl Visibility {
    fn judge(&self, label: &[u8]) -> Result<bool, PluginError> {
        let mut known = self.known.borrow_mut();
        if let Some(answer) = known.get(label) {
            return Ok(*answer);
        }
        let read = core::str::from_utf8(label)
            .map_err(|error| error.valid_up_to())
            .and_then(|text| Reader { text, at: 0 }.is_visible(&self.authorizations));
        let answer = match (read, self.invalid) {
            (Ok(visible), _) => visible,
            (Err(_), Invalid::Drop) => false,
            (Err(byte), Invalid::Fail) => {
                let shown: String = String::from_utf8_lossy(label).chars().take(80).collect();
                return Err(PluginError::InvalidInput(format!(
                    "label {shown:?} is no access expression at byte {byte}"
                )));
            }
        };
        if known.len() >= LABELS_MAX {
            known.clear();
        }
        known.insert(label.to_vec(), answer);
        Ok(answer)
    }
}

fn label(labels: &VarBytes, row: usize) -> Result<&[u8], PluginError> {
    let place = |end: i32| usize::try_from(end).unwrap_or(usize::MAX);
    let (start, end) = (place(labels.offsets[row]), place(labels.offsets[row + 1]));
    labels
        .data
        .get(start..end)
        .ok_or_else(|| PluginError::InvalidInput("offsets leave the column's bytes".into()))
}

fn is_unreadable(character: char) -> bool {
    character.is_control() || character == '\u{FFFD}'
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

struct Reader<'l> {
    text: &'l str,
    at: usize,
}

impl Reader<'_> {
    /// Reads the whole label; an error is the byte where it breaks the grammar.
    fn is_visible(&mut self, authorizations: &BTreeSet<String>) -> Result<bool, usize> {
        if self.text.is_empty() {
            return Ok(true);
        }
        let mut outer: Vec<Level> = Vec::new();
        let mut level = Level::default();
        loop {
            if self.peek() == Some(b'(') {
                self.at += 1;
                outer.push(core::mem::take(&mut level));
                continue;
            }
            let token = self.token()?;
            level.add(authorizations.contains(token.as_str()));
            // Behind an operand: its level ends, or goes on with an operator.
            loop {
                match self.peek() {
                    None if outer.is_empty() => return Ok(level.value),
                    Some(b')') => {
                        let mut around = outer.pop().ok_or(self.at)?;
                        self.at += 1;
                        around.add(level.value);
                        level = around;
                    }
                    Some(operator @ (b'&' | b'|'))
                        if *level.operator.get_or_insert(operator) == operator =>
                    {
                        self.at += 1;
                        break;
                    }
                    _ => return Err(self.at),
                }
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn token(&mut self) -> Result<String, usize> {
        let rest = &self.text[self.at..];
        if let Some(quoted) = rest.strip_prefix('"') {
            return self.quoted(quoted);
        }
        let is_bare = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/')
        };
        let length = rest.bytes().take_while(|byte| is_bare(byte)).count();
        if length == 0 {
            return Err(self.at);
        }
        self.at += length;
        Ok(rest[..length].into())
    }

    fn quoted(&mut self, quoted: &str) -> Result<String, usize> {
        let mut token = String::new();
        let mut characters = quoted.char_indices();
        while let Some((place, character)) = characters.next() {
            match character {
                '"' if token.is_empty() => return Err(self.at + 1),
                '"' => {
                    self.at += place + 2;
                    return Ok(token);
                }
                '\\' => match characters.next() {
                    Some((_, escaped @ ('"' | '\\'))) => token.push(escaped),
                    _ => return Err(self.at + place + 1),
                },
                unreadable if is_unreadable(unreadable) => return Err(self.at + place + 1),
                other => token.push(other),
            }
        }
        Err(self.at)
    }
}

lakebed_guest::export_row_filter!(Visibility);
