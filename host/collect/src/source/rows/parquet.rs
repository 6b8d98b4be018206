//! Rows as Parquet.

use std::{collections::BTreeSet, fs::File, io, ops::ControlFlow};

use ::parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use arrow::{
    array::{Array, AsArray, StructArray},
    datatypes::DataType,
    util::display::{ArrayFormatter, FormatOptions},
};
use serde_json::{Map, Value};

use super::{Damage, Row, form::Sink};
use crate::{CollectError, source::LogPath};

const BATCH_ROWS: usize = 1_024;

/// Returns the columns' names.
pub(super) fn columns(log: &LogPath) -> Result<BTreeSet<String>, CollectError> {
    let mut names = BTreeSet::new();
    for part in &log.parts {
        let failed = |error| CollectError::Io { path: part.clone(), source: error };
        let builder = builder(part).map_err(failed)?;
        names.extend(builder.schema().fields().iter().map(|field| field.name().to_lowercase()));
    }
    Ok(names)
}

/// Reads all rows; a page that cannot be read ends its file, which then counts as cut.
pub(super) fn each(log: &LogPath, sink: &mut Sink<'_>) -> Result<Damage, CollectError> {
    let mut damage = Damage::default();
    let mut place = 0;
    for part in &log.parts {
        let failed = |source| CollectError::Io { path: part.clone(), source };
        let reader = builder(part).and_then(|builder| opened(builder.with_batch_size(BATCH_ROWS)));
        for batch in reader.map_err(failed)? {
            let Ok(batch) = batch else {
                damage.truncated = true;
                break;
            };
            let rows = StructArray::from(batch);
            for index in 0..rows.len() {
                place += 1;
                match value(&rows, index) {
                    Some(Value::Object(fields)) => {
                        if sink(Row::of_object(lower_case(fields), place)) == ControlFlow::Break(())
                        {
                            return Ok(damage);
                        }
                    }
                    _ => damage.malformed += 1,
                }
            }
        }
    }
    Ok(damage)
}

fn builder(part: &std::path::Path) -> io::Result<ParquetRecordBatchReaderBuilder<File>> {
    ParquetRecordBatchReaderBuilder::try_new(File::open(part)?).map_err(io::Error::other)
}

fn opened(builder: ParquetRecordBatchReaderBuilder<File>) -> io::Result<ParquetRecordBatchReader> {
    builder.build().map_err(io::Error::other)
}

fn lower_case(fields: Map<String, Value>) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect()
}

/// Turns one value into JSON; numbers and instants become text, which getters parse. `None` if the
/// value cannot be shown.
fn value(array: &dyn Array, index: usize) -> Option<Value> {
    if array.is_null(index) {
        return Some(Value::Null);
    }
    match array.data_type() {
        DataType::Struct(_) => {
            let group = array.as_struct();
            let member =
                |(name, column): (&str, &dyn Array)| Some((name.to_owned(), value(column, index)?));
            let columns = group.columns().iter().map(|column| &**column);
            group
                .column_names()
                .into_iter()
                .zip(columns)
                .map(member)
                .collect::<Option<Map<_, _>>>()
                .map(Value::Object)
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>().value(index);
            (0..list.len())
                .map(|at| value(&*list, at))
                .collect::<Option<Vec<_>>>()
                .map(Value::Array)
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>().value(index);
            (0..list.len())
                .map(|at| value(&*list, at))
                .collect::<Option<Vec<_>>>()
                .map(Value::Array)
        }
        _ => {
            let formatter = ArrayFormatter::try_new(array, &FormatOptions::default()).ok()?;
            let text = formatter.value(index).try_to_string().ok()?;
            Some(Value::String(text))
        }
    }
}
