//! Lines of a log, decompressed by what the bytes say, one at a time.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, ErrorKind},
    path::{Path, PathBuf},
};

use super::LogPath;
use crate::CollectError;

const BUFFER_BYTES: usize = 64 * 1024;

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
    open: Option<(PathBuf, Box<dyn BufRead>)>,
    line: Vec<u8>,
    truncated: bool,
}

impl Lines {
    /// Starts before the first line; nothing is opened yet.
    pub(crate) fn open(log: &LogPath) -> Self {
        Self {
            parts: log.parts.clone().into_iter(),
            open: None,
            line: Vec::new(),
            truncated: false,
        }
    }

    /// Tells whether a compressed part ended in the middle of a frame.
    pub(crate) const fn truncated(&self) -> bool {
        self.truncated
    }

    /// Reads the next line; `None` after the last.
    ///
    /// # Errors
    /// Fails when a part cannot be opened, read or decompressed. A part that ends in the middle of
    /// a compressed frame ends after its last whole line.
    pub(crate) fn next_line(&mut self) -> Result<Option<Line<'_>>, CollectError> {
        loop {
            let (path, mut reader) = match self.open.take() {
                Some(open) => open,
                None => match self.parts.next() {
                    Some(path) => {
                        let reader = open_part(&path)?;
                        (path, reader)
                    }
                    None => return Ok(None),
                },
            };
            self.line.clear();
            match reader.read_until(b'\n', &mut self.line) {
                Ok(0) => {}
                Ok(_) => {
                    self.open = Some((path, reader));
                    return Ok(Some(match self.line.strip_suffix(b"\n") {
                        Some(line) => Line::Whole(line.strip_suffix(b"\r").unwrap_or(line)),
                        None => Line::Unfinished(&self.line),
                    }));
                }
                // A writer that is still alive, or died, leaves its frame open.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => self.truncated = true,
                Err(source) => return Err(CollectError::Io { path, source }),
            }
        }
    }
}

fn open_part(path: &Path) -> Result<Box<dyn BufRead>, CollectError> {
    let failed = |source: io::Error| CollectError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let mut raw = BufReader::with_capacity(BUFFER_BYTES, file);
    let head = raw.fill_buf().map_err(failed)?;
    match Codec::of(head) {
        Codec::Plain => Ok(Box::new(raw)),
        Codec::Zstd => {
            let decoder = zstd::stream::read::Decoder::with_buffer(raw).map_err(failed)?;
            Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder)))
        }
        Codec::Gzip => {
            let decoder = flate2::bufread::MultiGzDecoder::new(raw);
            Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder)))
        }
        Codec::Unsupported(codec) => {
            Err(CollectError::UnsupportedCodec { path: path.to_owned(), codec })
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Codec {
    Plain,
    Zstd,
    Gzip,
    Unsupported(&'static str),
}

impl Codec {
    /// Magic numbers: RFC 8878 §3.1.1 (zstd), RFC 1952 §2.3.1 (gzip), lz4-java `LZ4Block`, the LZ4
    /// and snappy frame formats, snappy-java's own header, and LZF's `ZV`.
    fn of(head: &[u8]) -> Self {
        const UNSUPPORTED: [(&[u8], &str); 5] = [
            (b"LZ4Block", "lz4 (LZ4Block stream)"),
            (&[0x04, 0x22, 0x4d, 0x18], "lz4 (frame)"),
            (b"\x82SNAPPY\0", "snappy (snappy-java stream)"),
            (b"\xff\x06\0\0sNaPpY", "snappy (frame)"),
            (b"ZV", "lzf"),
        ];
        if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            return Self::Zstd;
        }
        if head.starts_with(&[0x1f, 0x8b]) {
            return Self::Gzip;
        }
        UNSUPPORTED
            .iter()
            .find(|(magic, _)| head.starts_with(magic))
            .map_or(Self::Plain, |(_, codec)| Self::Unsupported(codec))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::{Line, Lines, LogPath};

    /// Writes the parts to files and returns the lines, the unfinished one marked by `~`, and
    /// whether the log was truncated.
    fn lines_of(parts: &[&[u8]]) -> (Vec<String>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = (0..parts.len()).map(|i| folder.path().join(i.to_string())).collect();
        for (path, bytes) in paths.iter().zip(parts) {
            std::fs::write(path, bytes).unwrap();
        }
        let log = LogPath { root: folder.path().to_owned(), parts: paths, named_by_caller: true };
        let mut lines = Lines::open(&log);
        let mut texts = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            texts.push(match line {
                Line::Whole(line) => String::from_utf8(line.to_vec()).unwrap(),
                Line::Unfinished(line) => format!("~{}", String::from_utf8(line.to_vec()).unwrap()),
            });
        }
        (texts, lines.truncated())
    }

    fn zstd(text: &str) -> Vec<u8> {
        zstd::encode_all(text.as_bytes(), 1).unwrap()
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[track_caller]
    fn check(parts: &[&[u8]], expected: &[&str], truncated: bool) {
        let (lines, cut) = lines_of(parts);
        assert_eq!(lines, expected);
        assert_eq!(cut, truncated);
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
    fn concatenated_zstd_frames_are_one_stream() {
        check(&[&[zstd("a\nb"), zstd("c\n")].concat()], &["a", "bc"], false);
    }

    #[test]
    fn a_cut_frame_keeps_the_whole_lines_before_the_cut() {
        let text: String =
            (0..20_000).map(|i| format!("line {i} {}\n", i * 7919 % 10007)).collect();
        for bytes in [zstd(&text), gzip(&text)] {
            let (lines, truncated) = lines_of(&[&bytes[..bytes.len() / 2]]);
            assert!(truncated);
            assert!(lines.len() > 1_000, "{} lines", lines.len());
            let expected: Vec<&str> = text.lines().take(lines.len()).collect();
            assert_eq!(lines, expected);
        }
    }
}
