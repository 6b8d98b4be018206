//! What our encoder writes is read by the crate's reader, and described as the crate describes it.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, AsArray, BinaryArray, Date32Array, Decimal64Array, Decimal128Array,
        Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray,
        TimestampMicrosecondArray,
    },
    compute::concat_batches,
    datatypes::{DataType, Decimal64Type, Schema},
};
use bytes::Bytes;
use parquet::{
    arrow::{
        ArrowSchemaConverter, ArrowWriter,
        arrow_reader::{
            ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
            RowSelector,
        },
    },
    basic::{Compression, Encoding, ZstdLevel},
    file::{
        metadata::{PageIndexPolicy, ParquetMetaData},
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedFileWriter,
    },
};

use super::{ChunkWriter, FlatColumn, Place, Placed};

const PAGE_ROWS: usize = 1_000;

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .build()
}

/// Decimals are held in 64 bits, and written for readers of 128.
fn held(column: &ArrayRef) -> ArrayRef {
    let DataType::Decimal128(digits, scale) = *column.data_type() else {
        return Arc::clone(column);
    };
    let wide = column.as_primitive::<arrow::datatypes::Decimal128Type>();
    let narrow: Decimal64Array =
        wide.unary::<_, Decimal64Type>(|value| i64::try_from(value).unwrap());
    Arc::new(narrow.with_precision_and_scale(digits, scale).unwrap())
}

/// Writes columns by our encoder into a file of one row group.
fn written(batch: &RecordBatch) -> Bytes {
    let schema = ArrowSchemaConverter::new().convert(&batch.schema()).unwrap();
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema.root_schema_ptr(), Arc::new(properties()))
            .unwrap();
    let mut encoder = ChunkWriter::new(ZstdLevel::default(), PAGE_ROWS).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for (column, leaf) in batch.columns().iter().zip(schema.columns()) {
        // The rows lie in two arrays, and not in order.
        let held = held(column);
        let middle = held.len() / 3;
        let parts = [held.slice(0, middle), held.slice(middle, held.len() - middle)];
        let sources: Vec<&dyn Array> = parts.iter().rev().map(AsRef::as_ref).collect();
        let places: Vec<Place> = (0..held.len())
            .map(|row| match row < middle {
                true => Place { batch: 1, row: u32::try_from(row).unwrap() },
                false => Place { batch: 0, row: u32::try_from(row - middle).unwrap() },
            })
            .collect();
        let flat = FlatColumn::gather(&sources, &Placed::new(places), leaf)
            .expect("a type that is encoded here");
        let chunk = encoder.encode(&flat, leaf).unwrap();
        group.append_column(&Bytes::from(chunk.bytes), chunk.close).unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap().into()
}

fn metadata(file: &Bytes) -> ParquetMetaData {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    ArrowReaderMetadata::load(file, options).unwrap().metadata().as_ref().clone()
}

fn read(file: &Bytes, schema: &Arc<Schema>, selection: Option<RowSelection>) -> RecordBatch {
    let options = ArrowReaderOptions::new()
        .with_page_index_policy(PageIndexPolicy::Required)
        .with_schema(Arc::clone(schema));
    let mut reader =
        ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options).unwrap();
    if let Some(selection) = selection {
        reader = reader.with_row_selection(selection);
    }
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    concat_batches(schema, &batches).unwrap()
}

#[track_caller]
fn check(columns: Vec<ArrayRef>) {
    let named = columns.into_iter().enumerate().map(|(at, c)| (format!("c{at}"), c, true));
    let batch = RecordBatch::try_from_iter_with_nullable(named).unwrap();
    let file = written(&batch);
    assert_eq!(read(&file, &batch.schema(), None), batch);
    // A page in the middle, found through the page index.
    if batch.num_rows() > 2_600 {
        let selection =
            vec![RowSelector::skip(2_100), RowSelector::select(500), RowSelector::skip(1)];
        let part = read(&file, &batch.schema(), Some(selection.into()));
        assert_eq!(part, batch.slice(2_100, 500));
    }
    let mut theirs = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties())).unwrap();
    theirs.write(&batch).unwrap();
    let theirs = Bytes::from(theirs.into_inner().unwrap());
    let (ours, theirs) = (metadata(&file), metadata(&theirs));
    for (ours, theirs) in ours.row_group(0).columns().iter().zip(theirs.row_group(0).columns()) {
        assert_eq!(ours.statistics(), theirs.statistics(), "{}", ours.column_path());
        assert_eq!(ours.num_values(), theirs.num_values());
    }
    let (our_index, their_index) = (ours.column_index().unwrap(), theirs.column_index().unwrap());
    let (our_pages, their_pages) = (ours.offset_index().unwrap(), theirs.offset_index().unwrap());
    for column in 0..batch.num_columns() {
        let rows = |pages: &parquet::file::page_index::offset_index::OffsetIndexMetaData| {
            pages.page_locations().iter().map(|page| page.first_row_index).collect::<Vec<_>>()
        };
        assert_eq!(rows(&our_pages[0][column]), rows(&their_pages[0][column]));
        let (ours, theirs) = (&our_index[0][column], &their_index[0][column]);
        assert_eq!(ours.null_counts(), theirs.null_counts());
        assert_eq!(ours.get_boundary_order(), theirs.get_boundary_order());
    }
}

/// About one row of seven is null.
fn with_nulls<T>(values: impl Iterator<Item = T>) -> Vec<Option<T>> {
    values.enumerate().map(|(row, value)| (row % 7 != 3).then_some(value)).collect()
}

fn scattered(rows: i64) -> impl Iterator<Item = i64> {
    (0..rows).map(|row| row.wrapping_mul(6_364_136_223_846_793_005) >> 20)
}

#[test]
fn integers_of_every_width() {
    for rows in [1, 999, 1_000, 1_001, 5_000] {
        let narrow = || scattered(rows).map(|value| i8::try_from(value % 100).unwrap());
        check(vec![
            Arc::new(Int64Array::from_iter_values(scattered(rows))),
            Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row / 10))),
            Arc::new(Int64Array::from(with_nulls(scattered(rows)))),
            Arc::new(Int32Array::from_iter_values(narrow().map(i32::from))),
            Arc::new(Int16Array::from_iter_values(narrow().map(i16::from))),
            Arc::new(Int8Array::from(with_nulls(narrow()))),
            Arc::new(Date32Array::from_iter_values(narrow().map(i32::from))),
        ]);
    }
}

#[test]
fn instants_and_decimals() {
    let rows = 3_000;
    let decimals = |digits: u8, most: i128| -> ArrayRef {
        let values = scattered(rows).map(|value| i128::from(value) % most);
        let array = Decimal128Array::from(with_nulls(values));
        Arc::new(array.with_precision_and_scale(digits, 2).unwrap())
    };
    check(vec![
        Arc::new(TimestampMicrosecondArray::from_iter_values(scattered(rows)).with_timezone("UTC")),
        Arc::new(TimestampMicrosecondArray::from(with_nulls(scattered(rows)))),
        decimals(9, 999_999_999),
        decimals(5, 99_999),
        decimals(18, 999_999_999_999_999_999),
    ]);
}

#[test]
fn text_and_bytes() {
    let rows = 4_000;
    let modes = ["RAIL", "AIR", "", "REG AIR"];
    let mode = |row: usize| modes[row * 7 % 4];
    let ones = |row: usize| vec![0xFF; row % 90];
    let long = |row: i64| format!("{}{row}", "é".repeat(40));
    let comments = || scattered(rows).map(|value| format!("comment {value}"));
    check(vec![
        Arc::new(StringArray::from_iter_values((0..4_000).map(mode))),
        Arc::new(StringArray::from(with_nulls((0..4_000).map(mode)))),
        Arc::new(StringArray::from_iter_values(comments())),
        Arc::new(StringArray::from_iter_values((0..rows).map(long))),
        Arc::new(BinaryArray::from_iter_values((0..4_000).map(ones))),
        Arc::new(BinaryArray::from(with_nulls((0..rows).map(|_| &b"\x00\xFF"[..])))),
    ]);
}

#[test]
fn columns_without_values() {
    check(vec![
        Arc::new(Int64Array::from(vec![None; 2_500])),
        Arc::new(StringArray::from(vec![None::<&str>; 2_500])),
    ]);
    // A page of nulls between others.
    let values: Vec<Option<i64>> =
        (0..3_000).map(|row| (row / 1_000 != 1).then_some(row)).collect();
    check(vec![Arc::new(Int64Array::from(values))]);
}

#[test]
fn columns_that_cannot_have_nulls_have_no_levels() {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..2_500));
    let batch = RecordBatch::try_from_iter_with_nullable([("c", column, false)]).unwrap();
    assert_eq!(read(&written(&batch), &batch.schema(), None), batch);
}

#[test]
fn few_values_have_a_dictionary_and_many_have_none() {
    let few: ArrayRef = Arc::new(Int64Array::from_iter_values((0..50_000).map(|row| row % 50)));
    let many: ArrayRef = Arc::new(Int64Array::from_iter_values(scattered(50_000)));
    let none: ArrayRef = Arc::new(Int64Array::from(vec![None; 50_000]));
    let columns = [("few", few, true), ("many", many, true), ("none", none, true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let metadata = metadata(&written(&batch));
    let has_dictionary: Vec<bool> = metadata
        .row_group(0)
        .columns()
        .iter()
        .map(|column| {
            let is_coded = column.encodings().any(|e| e == Encoding::PLAIN_DICTIONARY);
            assert_eq!(is_coded, column.dictionary_page_offset().is_some());
            is_coded
        })
        .collect();
    assert_eq!(has_dictionary, [true, false, false]);
    // 50 values need 6 bits each.
    assert!(metadata.row_group(0).column(0).uncompressed_size() < 50_000 * 6 / 8 + 2_000);
}

#[test]
fn long_text_fills_a_page_before_its_rows_do() {
    let texts = (0..3_000).map(|row| format!("{row:05}{}", "x".repeat(3_000)));
    let column: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let batch = RecordBatch::try_from_iter_with_nullable([("c", column, true)]).unwrap();
    let file = written(&batch);
    assert_eq!(read(&file, &batch.schema(), None), batch);
    let pages = metadata(&file).offset_index().unwrap()[0][0].page_locations().len();
    assert_eq!(pages, 9, "9 MB in pages of at most 1 MiB");
}
