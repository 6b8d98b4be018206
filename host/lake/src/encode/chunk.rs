//! From flat values to the bytes of a column chunk and its description.

use std::{io, ops::Range};

use parquet::{
    basic::{
        BoundaryOrder, Compression, ConvertedType, Encoding, EncodingMask, PageType, ZstdLevel,
    },
    column::{
        page::{CompressedPage, Page, PageWriter},
        writer::ColumnCloseResult,
    },
    data_type::ByteArray,
    errors::{ParquetError, Result},
    file::{
        metadata::{
            ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats,
        },
        page_index::column_index::ColumnIndexMetaData,
        statistics::{Statistics, ValueStatistics},
        writer::{SerializedPageWriter, TrackedWrite},
    },
    schema::types::ColumnDescPtr,
};

use super::{
    dictionary::dictionary,
    hybrid,
    values::{FlatColumn, Value, Values},
};

/// Most bytes of a data page before compression, the Parquet writers' usual limit.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Bytes to which bounds of text are cut in the footer and in page indexes, the Parquet crate's default.
const BOUND_BYTES: usize = 64;

/// An encoded column of a row group.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Its pages, the dictionary first.
    pub(crate) bytes: Vec<u8>,
    /// What the footer and the page index say of it.
    pub(crate) close: ColumnCloseResult,
    /// Rows with the smallest and the largest value; none where no row has a value.
    pub(crate) extremes: Option<[usize; 2]>,
}

/// Encodes column chunks, one after the other.
pub(crate) struct ChunkWriter {
    compressor: zstd::bulk::Compressor<'static>,
    level: ZstdLevel,
    page_rows: usize,
}

/// One data page, compressed.
struct DataPage {
    rows: usize,
    /// Bytes before compression.
    raw_bytes: usize,
    bytes: Vec<u8>,
}

/// Bounds and nulls of one page.
struct PageBounds<T> {
    extremes: Option<(T, T)>,
    nulls: usize,
}

impl ChunkWriter {
    /// Makes a writer of pages of so many rows.
    ///
    /// # Errors
    /// Fails when the compressor cannot be set up.
    pub(crate) fn new(level: ZstdLevel, page_rows: usize) -> io::Result<Self> {
        let compressor = zstd::bulk::Compressor::new(level.compression_level())?;
        Ok(Self { compressor, level, page_rows: page_rows.max(1) })
    }

    /// Encodes one column; `descriptor` is of its leaf in the file's schema.
    ///
    /// # Errors
    /// Fails when the compressor does, and when a page has more bytes than the format can say.
    pub(crate) fn encode(
        &mut self,
        column: &FlatColumn,
        descriptor: &ColumnDescPtr,
    ) -> Result<Chunk> {
        let part = ColumnPart { valid: column.valid.as_deref(), rows: column.rows, descriptor };
        let mut chunk = match &column.values {
            Values::Int32(values) => self.typed(values, part),
            Values::Int64(values) => self.typed(values, part),
            Values::Bytes { data, ends } => {
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let values: Vec<&[u8]> =
                    starts.zip(ends).map(|(start, end)| &data[start..*end]).collect();
                self.typed(&values, part)
            }
        }?;
        chunk.extremes = chunk.extremes.and_then(|values| column.rows_of(values));
        Ok(chunk)
    }

    fn typed<T: Stated>(&mut self, values: &[T], part: ColumnPart<'_>) -> Result<Chunk> {
        let coded = dictionary(values);
        // Of a dictionary, the values are compared once, and then only their ranks.
        let ranks = coded.as_ref().map(|coded| (coded, coded.ranks()));
        let extremes_of = |range: &Range<usize>| match &ranks {
            None => T::min_and_max(&values[range.clone()]),
            Some((coded, (ranks, ordered))) => {
                let ranks = coded.codes[range.clone()].iter().map(|code| ranks[*code as usize]);
                let (low, high) = ranks.fold((u32::MAX, None), |(low, high), rank| {
                    (low.min(rank), high.max(Some(rank)))
                });
                let value = |rank: u32| coded.values[ordered[rank as usize] as usize];
                high.map(|high| (value(low), value(high)))
            }
        };
        let pages = part.pages(values, coded.is_none(), self.page_rows);
        let mut chunk = Assembly::new(part.descriptor);
        if let Some(coded) = &coded {
            let mut raw = Vec::new();
            coded.values.iter().for_each(|value| value.put_plain(&mut raw));
            chunk.dictionary(coded.values.len(), raw.len(), self.compress(&raw)?)?;
        }
        let mut bounds = Vec::with_capacity(pages.len());
        for PageRange { rows, values: range } in pages {
            let of_page = &values[range.clone()];
            let mut raw = Vec::new();
            if part.descriptor.max_def_level() > 0 {
                part.put_levels(rows.clone(), &mut raw);
            }
            match &coded {
                None => of_page.iter().for_each(|value| value.put_plain(&mut raw)),
                Some(coded) => {
                    raw.push(coded.bits().to_le_bytes()[0]);
                    hybrid::encode(&coded.codes[range.clone()], coded.bits(), &mut raw);
                }
            }
            let page =
                DataPage { rows: rows.len(), raw_bytes: raw.len(), bytes: self.compress(&raw)? };
            chunk.page(page, coded.is_some())?;
            let nulls = rows.len() - range.len();
            bounds.push(PageBounds { extremes: extremes_of(&range), nulls });
        }
        let pages = || bounds.iter().filter_map(|page| page.extremes);
        let extremes = pages().map(|(min, _)| min).min().zip(pages().map(|(_, max)| max).max());
        let mut chunk = chunk.finish(&bounds, extremes, self.level)?;
        let place = |wanted: T| values.iter().position(|value| *value == wanted);
        chunk.extremes = extremes.and_then(|(min, max)| Some([place(min)?, place(max)?]));
        Ok(chunk)
    }

    fn compress(&mut self, raw: &[u8]) -> Result<Vec<u8>> {
        Ok(self.compressor.compress(raw)?)
    }
}

/// What is said of a column besides its values.
#[derive(Clone, Copy)]
struct ColumnPart<'c> {
    valid: Option<&'c [bool]>,
    rows: usize,
    descriptor: &'c ColumnDescPtr,
}

/// The rows of a page, and which of the values are theirs.
struct PageRange {
    rows: Range<usize>,
    values: Range<usize>,
}

impl ColumnPart<'_> {
    /// Divides the rows into pages, by rows and, where values are stored as they are, by bytes.
    fn pages<T: Value>(&self, values: &[T], is_plain: bool, page_rows: usize) -> Vec<PageRange> {
        let mut pages = Vec::with_capacity(self.rows / page_rows + 1);
        let mut page = PageRange { rows: 0..0, values: 0..0 };
        let mut bytes = 0;
        for row in 0..self.rows {
            let has_value = self.valid.is_none_or(|valid| valid[row]);
            let more =
                if has_value && is_plain { values[page.values.end].plain_bytes() } else { 0 };
            let is_full = bytes + more > PAGE_BYTES_MAX && !page.rows.is_empty();
            if is_full || page.rows.len() == page_rows {
                let next = PageRange { rows: row..row, values: page.values.end..page.values.end };
                pages.push(std::mem::replace(&mut page, next));
                bytes = 0;
            }
            bytes += more;
            page.rows.end = row + 1;
            page.values.end += usize::from(has_value);
        }
        if !page.rows.is_empty() {
            pages.push(page);
        }
        pages
    }

    /// Writes the definition levels of a page: one where a row has a value.
    fn put_levels(&self, rows: Range<usize>, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        match self.valid {
            Some(valid) => {
                let levels: Vec<u32> = valid[rows].iter().map(|valid| u32::from(*valid)).collect();
                hybrid::encode(&levels, 1, out);
            }
            None => hybrid::repeat(1, rows.len(), 1, out),
        }
        let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// A chunk while its pages come.
struct Assembly<'c> {
    descriptor: &'c ColumnDescPtr,
    sink: TrackedWrite<Vec<u8>>,
    pages: OffsetIndexBuilder,
    encodings: Vec<Encoding>,
    page_count: usize,
    coded: bool,
    rows: usize,
    raw_bytes: usize,
    data_offset: Option<u64>,
}

impl<'c> Assembly<'c> {
    fn new(descriptor: &'c ColumnDescPtr) -> Self {
        Self {
            descriptor,
            sink: TrackedWrite::new(Vec::new()),
            pages: OffsetIndexBuilder::new(),
            encodings: vec![Encoding::RLE],
            page_count: 0,
            coded: false,
            rows: 0,
            raw_bytes: 0,
            data_offset: None,
        }
    }

    fn dictionary(&mut self, values: usize, raw_bytes: usize, bytes: Vec<u8>) -> Result<()> {
        self.coded = true;
        let page = Page::DictionaryPage {
            buf: bytes.into(),
            num_values: number(values)?,
            encoding: Encoding::PLAIN_DICTIONARY,
            is_sorted: false,
        };
        let written = SerializedPageWriter::new(&mut self.sink)
            .write_page(CompressedPage::new(page, raw_bytes))?;
        self.raw_bytes += written.uncompressed_size;
        Ok(())
    }

    fn page(&mut self, page: DataPage, is_coded: bool) -> Result<()> {
        let encoding = if is_coded { Encoding::PLAIN_DICTIONARY } else { Encoding::PLAIN };
        let data = Page::DataPage {
            buf: page.bytes.into(),
            num_values: number(page.rows)?,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let written = SerializedPageWriter::new(&mut self.sink)
            .write_page(CompressedPage::new(data, page.raw_bytes))?;
        self.raw_bytes += written.uncompressed_size;
        self.data_offset.get_or_insert(written.offset);
        self.pages.append_offset_and_size(offset(written.offset), number(written.compressed_size)?);
        self.pages.append_row_count(offset(page.rows as u64));
        self.page_count += 1;
        self.rows += page.rows;
        Ok(())
    }

    fn finish<T: Stated>(
        mut self,
        bounds: &[PageBounds<T>],
        extremes: Option<(T, T)>,
        level: ZstdLevel,
    ) -> Result<Chunk> {
        let nulls: usize = bounds.iter().map(|page| page.nulls).sum();
        let data_encoding = if self.coded { Encoding::PLAIN_DICTIONARY } else { Encoding::PLAIN };
        self.encodings.push(data_encoding);
        let stats = |page_type, encoding, count: usize| {
            Ok::<_, ParquetError>(PageEncodingStats { page_type, encoding, count: number(count)? })
        };
        let mut page_stats = Vec::new();
        if self.coded {
            page_stats.push(stats(PageType::DICTIONARY_PAGE, Encoding::PLAIN_DICTIONARY, 1)?);
        }
        page_stats.push(stats(PageType::DATA_PAGE, data_encoding, self.page_count)?);
        let bytes = self.sink.into_inner()?;
        let metadata = ColumnChunkMetaData::builder(ColumnDescPtr::clone(self.descriptor))
            .set_compression(Compression::ZSTD(level))
            .set_encodings_mask(EncodingMask::new_from_encodings(self.encodings.iter()))
            .set_page_encoding_stats(page_stats)
            .set_total_compressed_size(offset(bytes.len() as u64))
            .set_total_uncompressed_size(offset(self.raw_bytes as u64))
            .set_num_values(offset(self.rows as u64))
            .set_data_page_offset(offset(self.data_offset.unwrap_or(0)))
            .set_dictionary_page_offset(self.coded.then_some(0))
            .set_statistics(T::statistics(extremes, nulls as u64, self.descriptor))
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: Some(column_index(bounds, self.descriptor)?),
            offset_index: Some(self.pages.build()),
        };
        Ok(Chunk { bytes, close, extremes: None })
    }
}

/// A value that bounds are stated of.
trait Stated: Value {
    /// Returns the statistics of a chunk.
    fn statistics(
        extremes: Option<(Self, Self)>,
        nulls: u64,
        descriptor: &ColumnDescPtr,
    ) -> Statistics;

    /// Returns a lower bound as page indexes have it.
    fn lower_bound(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put_bytes(&mut bytes);
        bytes
    }

    /// Returns an upper bound as page indexes have it.
    fn upper_bound(&self, _is_text: bool) -> Vec<u8> {
        self.lower_bound()
    }
}

impl Stated for i32 {
    fn statistics(extremes: Option<(Self, Self)>, nulls: u64, _: &ColumnDescPtr) -> Statistics {
        let (min, max) = extremes.unzip();
        let stated = ValueStatistics::new(min, max, None, Some(nulls), false);
        Statistics::Int32(stated.with_backwards_compatible_min_max(true))
    }
}

impl Stated for i64 {
    fn statistics(extremes: Option<(Self, Self)>, nulls: u64, _: &ColumnDescPtr) -> Statistics {
        let (min, max) = extremes.unzip();
        let stated = ValueStatistics::new(min, max, None, Some(nulls), false);
        Statistics::Int64(stated.with_backwards_compatible_min_max(true))
    }
}

impl Stated for &[u8] {
    fn statistics(
        extremes: Option<(Self, Self)>,
        nulls: u64,
        descriptor: &ColumnDescPtr,
    ) -> Statistics {
        let bounds = extremes.map(|(min, max)| {
            let (low, high) = (min.lower_bound(), max.upper_bound(is_text(descriptor)));
            ((low == min, high == max), (ByteArray::from(low), ByteArray::from(high)))
        });
        let ((min_is_exact, max_is_exact), bounds) = match bounds {
            Some((exact, bounds)) => (exact, Some(bounds)),
            None => ((false, false), None),
        };
        let (min, max) = bounds.unzip();
        let stated = ValueStatistics::new(min, max, None, Some(nulls), false)
            .with_min_is_exact(min_is_exact)
            .with_max_is_exact(max_is_exact);
        Statistics::ByteArray(stated)
    }

    fn lower_bound(&self) -> Vec<u8> {
        cut(self).to_vec()
    }

    fn upper_bound(&self, is_text: bool) -> Vec<u8> {
        let kept = cut(self);
        let above = match kept.len() == self.len() {
            true => Some(kept.to_vec()),
            false if is_text => next_text(kept),
            false => next_bytes(kept),
        };
        above.unwrap_or_else(|| self.to_vec())
    }
}

fn is_text(descriptor: &ColumnDescPtr) -> bool {
    descriptor.converted_type() == ConvertedType::UTF8
}

/// Cuts a long value, never within a character: continuation bytes go with their first.
fn cut(value: &[u8]) -> &[u8] {
    if value.len() <= BOUND_BYTES {
        return value;
    }
    let is_start = |at: &usize| value[*at] & 0xC0 != 0x80;
    let end = (1..=BOUND_BYTES).rev().find(is_start).unwrap_or(BOUND_BYTES);
    &value[..end]
}

/// Returns the shortest text above all that begin so; none where every character is the last one.
fn next_text(prefix: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(prefix).ok()?;
    let next = |character: char| match character {
        '\u{D7FF}' => Some('\u{E000}'),
        other => char::from_u32(u32::from(other) + 1),
    };
    let (at, above) =
        text.char_indices().rev().find_map(|(at, character)| Some((at, next(character)?)))?;
    Some(format!("{}{above}", &text[..at]).into_bytes())
}

/// Returns the shortest bytes above all that begin so; none where every byte is the last one.
fn next_bytes(prefix: &[u8]) -> Option<Vec<u8>> {
    let at = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut above = prefix[..=at].to_vec();
    above[at] += 1;
    Some(above)
}

fn column_index<T: Stated>(
    pages: &[PageBounds<T>],
    descriptor: &ColumnDescPtr,
) -> Result<ColumnIndexMetaData> {
    let mut index = ColumnIndexBuilder::new(descriptor.physical_type());
    for page in pages {
        let (low, high) = page.extremes.map_or_else(Default::default, |(min, max)| {
            (min.lower_bound(), max.upper_bound(is_text(descriptor)))
        });
        index.append(page.extremes.is_none(), low, high, offset(page.nulls as u64));
    }
    let bounds: Vec<&(T, T)> = pages.iter().filter_map(|page| page.extremes.as_ref()).collect();
    let ascends = bounds.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1);
    let descends = bounds.windows(2).all(|pair| pair[0].0 >= pair[1].0 && pair[0].1 >= pair[1].1);
    index.set_boundary_order(match (ascends, descends) {
        (true, _) => BoundaryOrder::ASCENDING,
        (false, true) => BoundaryOrder::DESCENDING,
        (false, false) => BoundaryOrder::UNORDERED,
    });
    index.build()
}

/// Gives a count the width that page headers have.
fn number<N: TryFrom<usize>>(count: usize) -> Result<N> {
    N::try_from(count).map_err(|_| {
        ParquetError::General(format!("a page of {count} bytes or values is too long"))
    })
}

/// Gives a count or a place in memory the width that the footer has.
fn offset(place: u64) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}
