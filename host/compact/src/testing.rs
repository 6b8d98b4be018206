//! Small tables, and rows as text, for the tests of this crate.

use std::{num::NonZeroUsize, sync::Arc};

use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch, StringArray},
    util::display::array_value_to_string,
};
use lakebed_model::Instant;

use crate::{Chain, ChainConfig, ChainRun, CompactError, NoPlugins};

/// The `now` of every test run, in seconds.
pub(crate) const NOW_SECONDS: i64 = 1_000;

pub(crate) fn now() -> Instant {
    Instant::from_epoch_ms(NOW_SECONDS * 1_000)
}

pub(crate) fn integers(values: impl IntoIterator<Item = impl Into<Option<i64>>>) -> ArrayRef {
    Arc::new(values.into_iter().map(Into::into).collect::<Int64Array>())
}

pub(crate) fn texts<'a>(values: impl IntoIterator<Item = impl Into<Option<&'a str>>>) -> ArrayRef {
    Arc::new(values.into_iter().map(Into::into).collect::<StringArray>())
}

/// A batch whose columns all may hold nulls.
pub(crate) fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap()
}

pub(crate) fn start(
    chain: &str,
    row_keys: &[&str],
    sample: &RecordBatch,
    batch_rows_max: usize,
) -> Result<ChainRun, CompactError> {
    let config: ChainConfig = chain.parse()?;
    let row_keys: Vec<String> = row_keys.iter().map(|key| (*key).to_owned()).collect();
    let chain = Chain::validate(&config, &sample.schema(), &row_keys)?;
    chain.bind(now(), &NoPlugins)?.start(NonZeroUsize::new(batch_rows_max).unwrap())
}

/// Runs a chain over batches of one table.
pub(crate) fn compact(
    chain: &str,
    row_keys: &[&str],
    batches: &[RecordBatch],
) -> Result<Vec<RecordBatch>, CompactError> {
    let mut run = start(chain, row_keys, &batches[0], 8192)?;
    let mut rows = Vec::new();
    for batch in batches {
        rows.extend(run.push(batch)?);
    }
    rows.extend(run.finish()?.collect::<Result<Vec<_>, _>>()?);
    Ok(rows)
}

/// Renders each row as its values with spaces between; nulls as `null`.
pub(crate) fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let row = |batch: &RecordBatch, row: usize| {
        let values: Vec<String> = batch
            .columns()
            .iter()
            .map(|column| match column.is_null(row) {
                true => "null".to_owned(),
                false => array_value_to_string(column, row).unwrap(),
            })
            .collect();
        values.join(" ")
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |at| row(batch, at))).collect()
}

/// Renders an error with its causes, as the command line does.
pub(crate) fn full_text(error: &CompactError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!("\ncaused by: {error}"));
        cause = error.source();
    }
    text
}
