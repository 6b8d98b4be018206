//! Lines of a log, decompressed by what the bytes say, one at a time.
//!
//! Nothing here can take more memory than the longest line that is read ([`MAX_LINE_BYTES`]), and no
//! damage ends the reading: what is lost is told by [`Lines::count_damage`], with its place.

use std::{
    fs::File,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use lakebed_model::{Damage, ParseReport};

use super::{
    LogPath,
    codec::{Ahead, Decoded, Raw, Unreadable, decoder},
    statement::Access,
};
use crate::CollectError;

/// Longer lines are passed over and counted. Spark's longest events hold a plan as text and as a
/// tree; texts of 25 million characters have been seen.
pub(crate) const MAX_LINE_BYTES: usize = (32 << 20) - LEAST_ROOM_BYTES;
/// What lines are found in, unless they are longer.
const BUFFER_BYTES: usize = 512 * 1024;
/// With less room behind the begun line, it is moved to the front.
const LEAST_ROOM_BYTES: usize = 32 * 1024;

/// One line, without its line break.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// A line that ends with a line break.
    Whole(&'a [u8]),
    /// The last line of a file that ends without one: whole or cut, who knows.
    Unfinished(&'a [u8]),
}

/// The lines of all parts of a log.
pub(crate) struct Lines {
    parts: std::vec::IntoIter<PathBuf>,
    access: Access,
    /// Whether only the log's head is wanted, and the stream is to be read again.
    peeks: bool,
    open: Option<Decoded>,
    /// The part that is open, or was last.
    part: PathBuf,
    buffer: Vec<u8>,
    /// The bytes that no line was made of yet.
    start: usize,
    end: usize,
    /// Up to where no line break stands.
    searched: usize,
    /// Whether the bytes up to the next line break belong to a line that is lost.
    losing: bool,
    /// The place of the next line in its part.
    next: Place,
    /// The place of the last line.
    last: Place,
    max_line_bytes: usize,
    damage: Vec<Damage>,
    damaged: u64,
    over_limit: u64,
    truncated: bool,
}

/// Where a line begins: its number from 1, and its first byte from 0, in the decompressed part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    line: u64,
    offset: u64,
}

const BEGINNING: Place = Place { line: 1, offset: 0 };

impl Lines {
    /// Starts before the first line; nothing is opened yet.
    pub(crate) fn open(log: &LogPath) -> Self {
        let mut lines = Self::peek(log);
        lines.peeks = false;
        lines
    }

    /// Starts before the first line of a log that will be opened again.
    pub(crate) fn peek(log: &LogPath) -> Self {
        Self {
            parts: log.parts.clone().into_iter(),
            access: log.access.clone(),
            peeks: true,
            open: None,
            part: PathBuf::new(),
            buffer: Vec::new(),
            start: 0,
            end: 0,
            searched: 0,
            losing: false,
            next: BEGINNING,
            last: BEGINNING,
            max_line_bytes: MAX_LINE_BYTES,
            damage: Vec::new(),
            damaged: 0,
            over_limit: 0,
            truncated: false,
        }
    }

    /// Describes the line that was given last as damage.
    pub(crate) fn damage_here(&self, what: &str) -> Damage {
        self.damage_at(self.last, what)
    }

    /// Returns where the line begins that was given last.
    pub(crate) const fn place(&self) -> Place {
        self.last
    }

    /// Adds what could not be read so far to a report: cuts, damaged stretches, endless lines.
    pub(crate) fn count_damage(&self, report: &mut ParseReport) {
        report.truncated |= self.truncated;
        report.damaged_stretches += self.damaged;
        report.over_limit_lines += self.over_limit;
        for damage in &self.damage {
            report.add_damage(damage.clone());
        }
    }

    /// Reads the next line; `None` after the last.
    ///
    /// # Errors
    /// Fails when a part cannot be opened or the file system fails. A part that is damaged or cut is
    /// no error.
    pub(crate) fn next_line(&mut self) -> Result<Option<Line<'_>>, CollectError> {
        let Some((from, to, is_whole)) = self.next_range()? else { return Ok(None) };
        let line = &self.buffer[from..to];
        Ok(Some(match is_whole {
            true => Line::Whole(line.strip_suffix(b"\r").unwrap_or(line)),
            false => Line::Unfinished(line),
        }))
    }

    /// Finds the next line in the buffer, and fills the buffer until there is one.
    fn next_range(&mut self) -> Result<Option<(usize, usize, bool)>, CollectError> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..self.end]) {
                let to = self.searched + at;
                if let Some(from) = self.take_line(to, to + 1) {
                    return Ok(Some((from, to, true)));
                }
                continue;
            }
            self.searched = self.end;
            if self.losing {
                self.pass_lost();
            } else if self.end - self.start >= self.max_line_bytes {
                self.over_limit += 1;
                self.lose(&format!("line over the limit of {} bytes", self.max_line_bytes));
            }
            if self.open.is_none() && !self.open_next()? {
                return Ok(None);
            }
            match self.fill() {
                Ok(0) => {
                    self.open = None;
                    let to = self.end;
                    let is_empty = self.start == to;
                    if let Some(from) = self.take_line(to, to)
                        && !is_empty
                    {
                        return Ok(Some((from, to, false)));
                    }
                }
                Ok(_) => {}
                // A writer that is still alive, or died, leaves its frame open.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    self.truncated = true;
                    self.note_damage(self.next, "cut");
                    self.lose_quietly();
                }
                Err(error) if error.get_ref().is_some_and(|cause| cause.is::<Unreadable>()) => {
                    return Err(CollectError::Io { path: self.part.clone(), source: error });
                }
                Err(error) => {
                    self.damaged += 1;
                    self.lose(&error.to_string());
                }
            }
        }
    }

    /// Ends a line: returns where it starts, or `None` when it is one that is lost.
    fn take_line(&mut self, to: usize, next: usize) -> Option<usize> {
        let from = self.start;
        self.last = self.next;
        self.next.line += 1;
        self.next.offset += size(next - from);
        (self.start, self.searched) = (next, next);
        let was_lost = std::mem::take(&mut self.losing);
        debug_assert!(from <= to, "a line ends where it begins or later");
        (!was_lost).then_some(from)
    }

    fn lose(&mut self, what: &str) {
        self.note_damage(self.next, what);
        self.lose_quietly();
    }

    /// Gives the line up that is being read.
    fn lose_quietly(&mut self) {
        self.losing = true;
        self.pass_lost();
    }

    fn pass_lost(&mut self) {
        self.next.offset += size(self.end - self.start);
        (self.start, self.searched, self.end) = (0, 0, 0);
    }

    fn note_damage(&mut self, place: Place, what: &str) {
        if self.damage.len() < ParseReport::MAX_PLACES {
            let damage = self.damage_at(place, what);
            self.damage.push(damage);
        }
    }

    /// Describes a line of this part as damage.
    pub(crate) fn damage_at(&self, place: Place, what: &str) -> Damage {
        let file = self.part.file_name().map(|name| name.to_string_lossy().into_owned());
        Damage {
            file: file.unwrap_or_default(),
            line: place.line,
            offset_bytes: place.offset,
            what: what.to_owned(),
        }
    }

    /// Decompresses more bytes behind those that no line was made of yet.
    fn fill(&mut self) -> io::Result<usize> {
        // Decoders give little at a time; the begun line is moved once in many calls.
        if self.buffer.len() - self.end < LEAST_ROOM_BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.searched -= self.start;
            self.start = 0;
            if self.end < LEAST_ROOM_BYTES && self.buffer.len() > 4 * BUFFER_BYTES {
                self.buffer.truncate(BUFFER_BYTES);
                self.buffer.shrink_to_fit();
            }
            if self.buffer.len() - self.end < LEAST_ROOM_BYTES {
                self.buffer.resize(BUFFER_BYTES.max(2 * self.buffer.len()), 0);
            }
        }
        let Some(open) = &mut self.open else { return Ok(0) };
        let count = open.read(&mut self.buffer[self.end..])?;
        self.end += count;
        Ok(count)
    }

    /// Opens the next part; `false` when there is none.
    fn open_next(&mut self) -> Result<bool, CollectError> {
        let Some(path) = self.parts.next() else { return Ok(false) };
        (self.next, self.losing) = (BEGINNING, false);
        let file = match &self.access.stream {
            Some(stream) => stream.read(self.peeks),
            None => File::open(&path).map(|file| Box::new(file) as _),
        };
        let failed = |source| CollectError::Io { path: path.clone(), source };
        let decoded = decoder(Raw::new(file.map_err(failed)?)).map_err(failed)?;
        let decoded = decoded
            .map_err(|codec| CollectError::UnsupportedCodec { path: path.clone(), codec })?;
        self.open = Some(match self.access.ahead && !self.peeks {
            true => Ahead::of(decoded),
            false => decoded,
        });
        self.part = path;
        Ok(true)
    }
}

fn size(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Counts the bytes that the files of logs hold when they are decompressed.
///
/// # Errors
/// Fails when a file cannot be opened or read.
pub fn decompressed_bytes(path: &Path) -> Result<u64, CollectError> {
    let mut total = 0;
    for log in super::discover::logs_under(path)? {
        let mut lines = Lines::open(&log);
        while lines.open.is_some() || lines.open_next()? {
            match lines.fill() {
                Ok(0) => lines.open = None,
                Ok(count) => total += size(count),
                Err(error) if error.get_ref().is_some_and(|cause| cause.is::<Unreadable>()) => {
                    return Err(CollectError::Io { path: lines.part, source: error });
                }
                Err(_) => {}
            }
            (lines.start, lines.searched, lines.end) = (0, 0, 0);
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::{Line, Lines, LogPath};
    use lakebed_model::ParseReport;

    /// Writes the parts to files and returns the lines, the unfinished one marked by `~`, and what
    /// the report says.
    fn lines_of(parts: &[&[u8]], max_line_bytes: usize) -> (Vec<String>, ParseReport) {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = (0..parts.len()).map(|i| folder.path().join(i.to_string())).collect();
        for (path, bytes) in paths.iter().zip(parts) {
            std::fs::write(path, bytes).unwrap();
        }
        let log = LogPath { parts: paths, ..LogPath::file(folder.path().to_owned()) };
        let mut lines = Lines::open(&log);
        lines.max_line_bytes = max_line_bytes;
        let mut texts = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            texts.push(match line {
                Line::Whole(line) => String::from_utf8(line.to_vec()).unwrap(),
                Line::Unfinished(line) => format!("~{}", String::from_utf8(line.to_vec()).unwrap()),
            });
        }
        let mut report = ParseReport::default();
        lines.count_damage(&mut report);
        (texts, report)
    }

    fn zstd(text: &str) -> Vec<u8> {
        zstd::encode_all(text.as_bytes(), 1).unwrap()
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn many_lines() -> String {
        (0..20_000).map(|i| format!("line {i} {}\n", i * 7919 % 10007)).collect()
    }

    #[track_caller]
    fn check(parts: &[&[u8]], expected: &[&str], truncated: bool) {
        let (lines, report) = lines_of(parts, 1 << 20);
        assert_eq!(lines, expected);
        assert_eq!(report.truncated, truncated);
        assert_eq!(report.damage.len(), usize::from(truncated));
    }

    #[test]
    fn parts_of_any_codec_follow_one_another() {
        check(
            &[b"a\r\nb\n", &zstd("c\nd\n"), &gzip("e\n"), b"", b"f"],
            &["a", "b", "c", "d", "e", "~f"],
            false,
        );
    }

    #[test]
    fn concatenated_frames_are_one_stream() {
        check(&[&[zstd("a\nb"), zstd("c\n")].concat()], &["a", "bc"], false);
        check(&[&[gzip("a\nb"), gzip("c\n")].concat()], &["a", "bc"], false);
    }

    #[test]
    fn empty_lines_are_lines() {
        check(&[b"\n\na\n\n"], &["", "", "a", ""], false);
    }

    #[test]
    fn a_cut_frame_keeps_the_whole_lines_before_the_cut() {
        let text = many_lines();
        for bytes in [zstd(&text), gzip(&text)] {
            let (lines, report) = lines_of(&[&bytes[..bytes.len() / 2]], 1 << 20);
            assert!(report.truncated);
            assert!(lines.len() > 1_000, "{} lines", lines.len());
            let expected: Vec<&str> = text.lines().take(lines.len()).collect();
            assert_eq!(lines, expected);
            let [cut] = &report.damage[..] else { panic!("{report:?}") };
            assert_eq!((cut.line, cut.what.as_str()), (lines.len() as u64 + 1, "cut"));
            let before: usize = lines.iter().map(|line| line.len() + 1).sum();
            assert_eq!(cut.offset_bytes, before as u64);
        }
    }

    #[test]
    fn a_damaged_stream_keeps_the_lines_before_and_the_parts_behind() {
        let text = many_lines();
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(text.as_bytes()).unwrap();
        for mut bytes in [encoder.finish().unwrap(), gzip(&text)] {
            let middle = bytes.len() / 2;
            bytes[middle..middle + 40].fill(0xff);
            let (lines, report) = lines_of(&[&bytes, b"behind\n"], 1 << 20);
            assert_eq!((report.damaged_stretches, report.truncated), (1, false), "{report:?}");
            assert_eq!(lines.last().unwrap(), "behind");
            assert!(lines.len() > 1_000, "{} lines", lines.len());
            assert_eq!(lines[..1_000], text.lines().take(1_000).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_line_over_the_limit_is_counted_with_its_place_and_its_neighbors_are_read() {
        let long = "x".repeat(3_000_000);
        let text = format!("before\n{long}\nafter\n");
        for bytes in [text.clone().into_bytes(), zstd(&text)] {
            let (lines, report) = lines_of(&[&bytes], 1 << 20);
            assert_eq!(lines, ["before", "after"]);
            assert_eq!(report.over_limit_lines, 1);
            let [place] = &report.damage[..] else { panic!("{report:?}") };
            assert_eq!((place.line, place.offset_bytes), (2, 7));
            assert_eq!(place.what, "line over the limit of 1048576 bytes");
        }
        let (lines, report) = lines_of(&[text.as_bytes()], 4 << 20);
        assert_eq!((lines.len(), report.over_limit_lines), (3, 0));
    }

    #[test]
    fn places_count_lines_and_bytes_of_each_part() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "ab\r\n\ncd\n").unwrap();
        let mut lines = Lines::open(&LogPath::file(path));
        let mut places = Vec::new();
        while lines.next_line().unwrap().is_some() {
            let place = lines.damage_here("here");
            places.push((place.file, place.line, place.offset_bytes));
        }
        let at = |line, offset| ("log".to_owned(), line, offset);
        assert_eq!(places, [at(1, 0), at(2, 4), at(3, 5)]);
    }
}
