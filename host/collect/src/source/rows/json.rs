//! Rows as JSON: lines, arrays, and objects that hold the list.
//!
//! Values are read as they stream by; an array of any length is never held as a whole.

use std::{fmt, io::BufReader, ops::ControlFlow};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{
    Damage, Row,
    form::{Extent, Sink},
    stream::Stream,
};
use crate::{
    CollectError,
    source::{LogPath, lines::Line},
};

/// Members under which tools print the rows: Athena's and Databricks' commands, Trino's Kafka
/// listener, OpenLineage's batches, and `queries` of many scripts.
const WRAPPERS: [&str; 6] =
    ["queryexecutions", "queryexecution", "queries", "res", "eventpayload", "events"];

/// Reads one value a line; a line that is no JSON is counted, the others are read.
pub(super) fn each_line(
    log: &LogPath,
    extent: Extent,
    sink: &mut Sink<'_>,
) -> Result<Damage, CollectError> {
    let mut lines = extent.open(log);
    let mut damage = Damage::default();
    let mut number = 0;
    while let Some(line) = lines.next_line()? {
        number += 1;
        let (line, unfinished) = match line {
            Line::Whole(line) => (line, false),
            Line::Unfinished(line) => (line, true),
        };
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match value_of(line, number, sink) {
            Parsed::Rows { malformed } => damage.malformed += malformed,
            Parsed::Stopped => return Ok(damage),
            Parsed::Nothing if unfinished => damage.truncated = true,
            Parsed::Nothing => {
                damage.malformed += 1;
                damage.lost.add_damage(lines.damage_here("no JSON object"));
            }
        }
    }
    lines.count_damage(&mut damage.lost);
    Ok(damage)
}

enum Parsed {
    Rows { malformed: u64 },
    Stopped,
    Nothing,
}

fn value_of(text: &[u8], number: u64, sink: &mut Sink<'_>) -> Parsed {
    // Bytes that are no UTF-8 are somebody's literal: the row is worth more than they are.
    let text = String::from_utf8_lossy(text);
    let mut parser = serde_json::Deserializer::from_str(&text);
    let mut rows =
        Rows { sink, place: Place::Line(number), depth: 0, found: 0, malformed: 0, stopped: false };
    let parsed = rows.by_ref().deserialize(&mut parser).and_then(|()| parser.end());
    match parsed {
        _ if rows.stopped => Parsed::Stopped,
        Ok(()) => Parsed::Rows { malformed: rows.malformed },
        Err(_) => Parsed::Nothing,
    }
}

/// Reads documents that span lines, one after the other.
///
/// Behind a value that is no JSON no parser finds its way, but tools that print arrays put one row
/// on a line: from the damaged line on, lines that hold an object are rows.
pub(super) fn each_element(
    log: &LogPath,
    extent: Extent,
    sink: &mut Sink<'_>,
) -> Result<Damage, CollectError> {
    let mut stream = Stream::open(log, extent);
    let mut damage = Damage::default();
    let damaged_line = {
        let mut parser = serde_json::Deserializer::from_reader(BufReader::new(&mut stream));
        let mut rows = Rows {
            sink: &mut *sink,
            place: Place::Ordinal,
            depth: 0,
            found: 0,
            malformed: 0,
            stopped: false,
        };
        let outcome = loop {
            match parser.end() {
                Ok(()) => break None,
                Err(error) if error.is_eof() || error.is_io() => break Some(error),
                Err(_) => {}
            }
            if let Err(error) = rows.by_ref().deserialize(&mut parser) {
                break Some(error);
            }
        };
        damage.malformed += rows.malformed;
        if rows.stopped {
            return Ok(damage);
        }
        outcome
    };
    if let Some(failure) = stream.failure() {
        return Err(failure);
    }
    stream.count_damage(&mut damage.lost);
    match damaged_line {
        None => {}
        Some(error) if error.is_eof() => damage.truncated = true,
        Some(error) => {
            let line = error.line() as u64;
            tracing::debug!(log = %log.root.display(), line, "no JSON");
            damage.malformed += 1;
            damage.truncated |= !resume(log, extent, line, sink)?;
        }
    }
    Ok(damage)
}

/// Reads the rows of the lines after a damaged one; tells whether there are any.
fn resume(
    log: &LogPath,
    extent: Extent,
    after: u64,
    sink: &mut Sink<'_>,
) -> Result<bool, CollectError> {
    let mut lines = extent.open(log);
    let (mut number, mut found) = (0, false);
    while let Some(Line::Whole(line) | Line::Unfinished(line)) = lines.next_line()? {
        number += 1;
        if number <= after {
            continue;
        }
        let line = line.trim_ascii();
        let line = line.strip_prefix(b",").unwrap_or(line).trim_ascii();
        let line = line.strip_suffix(b"]").unwrap_or(line).trim_ascii();
        let line = line.strip_suffix(b",").unwrap_or(line).trim_ascii();
        if line.starts_with(b"{") {
            match value_of(line, number, sink) {
                Parsed::Rows { .. } => found = true,
                Parsed::Stopped => return Ok(true),
                Parsed::Nothing => {}
            }
        }
    }
    Ok(found)
}

#[derive(Clone, Copy)]
enum Place {
    /// All rows are of this line.
    Line(u64),
    /// Rows are numbered as they come.
    Ordinal,
}

/// Hands the objects of a value to the sink.
struct Rows<'r, 's> {
    sink: &'r mut Sink<'s>,
    place: Place,
    depth: usize,
    found: u64,
    malformed: u64,
    stopped: bool,
}

impl<'r, 's> Rows<'r, 's> {
    const fn by_ref(&mut self) -> Seed<'_, 'r, 's> {
        Seed(self)
    }

    fn give(&mut self, fields: Map<String, Value>) -> bool {
        self.found += 1;
        let place = match self.place {
            Place::Line(line) => line,
            Place::Ordinal => self.found,
        };
        self.stopped = (self.sink)(Row::of_object(fields, place)) == ControlFlow::Break(());
        !self.stopped
    }
}

struct Seed<'a, 'r, 's>(&'a mut Rows<'r, 's>);

impl<'de> DeserializeSeed<'de> for Seed<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.0.depth += 1;
        while list.next_element_seed(Seed(self.0))?.is_some() {}
        self.0.depth -= 1;
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut fields = Map::new();
        let before = self.0.found;
        while let Some(name) = members.next_key::<String>()? {
            let name = name.to_lowercase();
            if self.0.depth == 0 && WRAPPERS.contains(&name.as_str()) {
                self.0.depth += 1;
                members.next_value_seed(Seed(self.0))?;
                self.0.depth -= 1;
            } else {
                fields.insert(name, members.next_value::<Value>()?);
            }
        }
        if self.0.found == before && !fields.is_empty() && !self.0.give(fields) {
            return Err(serde::de::Error::custom("enough"));
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.no_row()
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.no_row()
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.no_row()
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.no_row()
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        self.no_row()
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.no_row()
    }
}

impl Seed<'_, '_, '_> {
    /// A value that is no object is no row.
    fn no_row<E>(self) -> Result<(), E> {
        self.0.malformed += 1;
        Ok(())
    }
}
