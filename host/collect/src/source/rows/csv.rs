//! Rows as CSV, RFC 4180: quoted fields may hold line breaks, as SQL does.
//!
//! Records are cut here, by whether quotes are balanced, and split into fields by the `csv` crate:
//! a parser left alone would take everything behind one lost quote for a single field. A line that
//! begins no record is counted, and the next line is tried.

use std::{
    collections::{BTreeSet, VecDeque},
    ops::ControlFlow,
};

use super::{
    Damage, Row,
    form::{Extent, Sink},
};
use crate::{
    CollectError,
    source::{
        LogPath,
        lines::{Line, Lines, Place},
    },
};

/// No statement is longer; what is, lost a quote.
const RECORD_LINES: usize = 20_000;
const RECORD_BYTES: usize = 4 << 20;

struct Table {
    lines: Lines,
    number: u64,
    /// Lines that are read but belong to no record yet.
    pending: VecDeque<(u64, Vec<u8>, Place)>,
    delimiter: u8,
    header: Vec<String>,
}

/// Returns the names in the header.
pub(super) fn header(log: &LogPath, extent: Extent) -> Result<BTreeSet<String>, CollectError> {
    let table = Table::open(log, extent)?;
    Ok(table.header.into_iter().filter(|name| !name.is_empty()).collect())
}

/// Reads the records behind the header.
pub(super) fn each(
    log: &LogPath,
    extent: Extent,
    sink: &mut Sink<'_>,
) -> Result<Damage, CollectError> {
    let mut table = Table::open(log, extent)?;
    let mut damage = Damage::default();
    while table.more()? {
        let (place, line) = (table.pending[0].0, &table.pending[0].1);
        if line.iter().all(u8::is_ascii_whitespace) {
            table.pending.pop_front();
            continue;
        }
        let length = table.record_length()?;
        if let Some(row) = length.and_then(|length| table.record(length, place)) {
            table.pending.drain(..length.unwrap_or(1));
            if sink(row) == ControlFlow::Break(()) {
                return Ok(damage);
            }
        } else {
            tracing::debug!(log = %log.root.display(), line = place, "no record of the header");
            if let Some(lost) = table.pending.pop_front() {
                damage.lost.add_damage(table.lines.damage_at(lost.2, "no record of the header"));
            }
            damage.malformed += 1;
        }
    }
    table.lines.count_damage(&mut damage.lost);
    Ok(damage)
}

impl Table {
    fn open(log: &LogPath, extent: Extent) -> Result<Self, CollectError> {
        let mut table = Self {
            lines: extent.open(log),
            number: 0,
            pending: VecDeque::new(),
            delimiter: b',',
            header: Vec::new(),
        };
        while table.more()? {
            let Some((_, line, _)) = table.pending.pop_front() else { break };
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let occurrences = |delimiter: u8| line.iter().filter(|b| **b == delimiter).count();
            table.delimiter = [b',', b'\t', b';']
                .into_iter()
                .rev()
                .max_by_key(|d| occurrences(*d))
                .unwrap_or(b',');
            let names = fields(line, table.delimiter, Quotes::Doubled).unwrap_or_default();
            table.header = names.iter().map(|name| name.trim().to_lowercase()).collect();
            break;
        }
        Ok(table)
    }

    /// Makes sure that a line is pending; `false` behind the last one.
    fn more(&mut self) -> Result<bool, CollectError> {
        Ok(!self.pending.is_empty() || self.fetch()?)
    }

    fn fetch(&mut self) -> Result<bool, CollectError> {
        let Some(Line::Whole(line) | Line::Unfinished(line)) = self.lines.next_line()? else {
            return Ok(false);
        };
        let line = line.to_vec();
        self.number += 1;
        self.pending.push_back((self.number, line, self.lines.place()));
        Ok(true)
    }

    /// Counts the lines of the record that the first pending line begins: until its quotes are
    /// balanced. `None` if they never are.
    fn record_length(&mut self) -> Result<Option<usize>, CollectError> {
        let (mut length, mut bytes, mut open) = (0, 0, false);
        loop {
            if length == self.pending.len() && !self.fetch()? {
                return Ok(None);
            }
            let line = &self.pending[length].1;
            open ^= line.iter().filter(|byte| **byte == b'"').count() % 2 == 1;
            (length, bytes) = (length + 1, bytes + line.len());
            if !open {
                return Ok(Some(length));
            }
            if length == RECORD_LINES || bytes > RECORD_BYTES {
                return Ok(None);
            }
        }
    }

    /// Splits the first pending lines; `None` unless they have a field for every name.
    fn record(&self, length: usize, place: u64) -> Option<Row> {
        let lines: Vec<&[u8]> =
            self.pending.iter().take(length).map(|(_, line, _)| line.as_slice()).collect();
        let text = lines.join(&b'\n');
        // Spark writes `\"` in a field where everybody else writes `""`.
        let escaped = text.windows(2).any(|pair| pair == b"\\\"")
            && !text.windows(2).any(|pair| pair == b"\"\"");
        let ways: &[Quotes] =
            if escaped { &[Quotes::Escaped, Quotes::Doubled] } else { &[Quotes::Doubled] };
        let is_strict = |quotes: &&Quotes| {
            matches!(quotes, Quotes::Escaped) || closes_fields(&text, self.delimiter)
        };
        let fields = ways.iter().filter(is_strict).find_map(|quotes| {
            fields(&text, self.delimiter, *quotes)
                .filter(|fields| fields.len() == self.header.len())
        })?;
        Some(Row::of_texts(self.header.iter().cloned().zip(fields), place))
    }
}

/// Tells whether every quoted field ends where a field may end. Where one does not, a quote was
/// lost before, and the record would reach into the next one.
fn closes_fields(record: &[u8], delimiter: u8) -> bool {
    let mut rest = record;
    loop {
        if let Some(quoted) = rest.strip_prefix(b"\"") {
            rest = quoted;
            loop {
                let Some(at) = rest.iter().position(|byte| *byte == b'"') else { return false };
                rest = &rest[at + 1..];
                match rest.strip_prefix(b"\"") {
                    Some(after) => rest = after,
                    None => break,
                }
            }
            if !(rest.is_empty() || rest[0] == delimiter) {
                return false;
            }
        }
        match rest.iter().position(|byte| *byte == delimiter) {
            Some(at) => rest = &rest[at + 1..],
            None => return true,
        }
    }
}

#[derive(Clone, Copy)]
enum Quotes {
    Doubled,
    Escaped,
}

/// Splits one record; `None` if it is not exactly one.
fn fields(record: &[u8], delimiter: u8, quotes: Quotes) -> Option<Vec<String>> {
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).delimiter(delimiter);
    if matches!(quotes, Quotes::Escaped) {
        builder.double_quote(false).escape(Some(b'\\'));
    }
    let mut reader = builder.from_reader(record);
    let mut records = reader.byte_records();
    let only = records.next()?.ok()?;
    if records.next().is_some() {
        return None;
    }
    Some(only.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect())
}
