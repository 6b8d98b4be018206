//! What the planner must know of a table: statistics of its files and a sample of its rows.

use std::collections::{BTreeMap, BTreeSet};

use arrow::{
    array::{Array, ArrayRef, AsArray},
    compute::cast,
    datatypes::{
        DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimeUnit,
        TimestampMicrosecondType,
    },
};
use datafusion::{common::Column, error::Result, logical_expr::Expr};
use futures::StreamExt;
use lakebed_layout::{
    FileSizing, Lake, TableSnapshot, action::AddFile, columns::join_name, ddl, input_file,
    pending_bytes,
};
use lakebed_model::{Bytes, ColumnSpan, FileView, Literal, TableName};
use lakebed_plan::{TableEvidence, TableSample};
use serde_json::Value;

use crate::{
    DeltaLake, LakeError,
    rewrite::{ScanRequest, every_nth},
    session,
};

/// How much of a table is sampled.
#[derive(Debug, Clone, Copy)]
pub struct SampleOptions {
    /// Rows per file that a rewrite would give; 50 are needed for an error under 0.05 (measured on
    /// synthetic lineitem, 600 000 rows over 100 files). Borders of cuts are the better known the
    /// more there are: `lakebed experiment simulation` measures what is left.
    pub rows_per_target_file: u64,
    /// Rows of a sample at least, where the table has them: all of a small table.
    pub rows_min: u64,
    /// Most rows of a sample.
    pub rows_max: u64,
    /// Most files that are read.
    pub files_max: usize,
    /// Size of a file where the table does not say.
    pub default_file_size: FileSizing,
}

impl Default for SampleOptions {
    fn default() -> Self {
        Self {
            rows_per_target_file: 200,
            rows_min: 16_384,
            rows_max: 200_000,
            files_max: 400,
            default_file_size: FileSizing::Adaptive,
        }
    }
}

impl DeltaLake {
    /// Reads a table's evidence: statistics from its log, a sample of the columns in `interesting`.
    ///
    /// # Errors
    /// Fails when the table cannot be read.
    pub async fn evidence(
        &self,
        table: &TableName,
        interesting: &BTreeSet<String>,
        options: &SampleOptions,
    ) -> Result<TableEvidence, LakeError> {
        let snapshot = self.snapshot(table).await?;
        let protected = snapshot.write_refusal();
        let target = snapshot.target_file_size(options.default_file_size);
        let pending = pending_bytes(&snapshot, target)?;
        let eligible_columns = eligible_columns(&snapshot);
        let target_files = snapshot.bytes().0.div_ceil(target.0.max(1)).max(1);
        let columns: Vec<String> = eligible_columns.intersection(interesting).cloned().collect();
        let sample =
            self.sample(&snapshot, &columns, target_files, options).await.map_err(|source| {
                LakeError::Engine { action: "sample", table: table.to_string(), source }
            })?;
        Ok(TableEvidence {
            table: table.clone(),
            version: snapshot.version,
            current: snapshot.layout(),
            bytes: snapshot.bytes(),
            rows: snapshot.rows().unwrap_or(0),
            files: snapshot.files.iter().map(|file| file_view(file, &snapshot)).collect(),
            target_files,
            eligible_columns,
            sample,
            pending,
            protected,
        })
    }

    /// Takes every n-th row of files spread evenly over the table.
    async fn sample(
        &self,
        snapshot: &TableSnapshot,
        columns: &[String],
        target_files: u64,
        options: &SampleOptions,
    ) -> Result<TableSample> {
        if columns.is_empty() || snapshot.files.is_empty() {
            return Ok(TableSample::default());
        }
        let skip = snapshot.files.len().div_ceil(options.files_max.max(1)).max(1);
        let inputs: Vec<_> = snapshot.files.iter().step_by(skip).map(input_file).collect();
        let rows: u64 = inputs.iter().filter_map(|input| input.live_rows).sum();
        let wanted = options.rows_per_target_file * target_files;
        let wanted = wanted.max(options.rows_min).min(options.rows_max);
        let step = (rows / wanted).max(1);
        // Every n-th row of rows in another order would be another sample, and give another plan.
        let context = session::in_order(self);
        let request = ScanRequest {
            table: &snapshot.table,
            version: snapshot.version,
            inputs: &inputs,
            reader: snapshot.reader(),
            column_mapping: snapshot.column_mapping(),
            row_tracking: None,
        };
        let scan = self.scan_files(&context, request).await?;
        let expressions: Vec<Expr> =
            columns.iter().map(|name| Expr::Column(Column::new_unqualified(name))).collect();
        let mut stream = context.read_table(scan)?.select(expressions)?.execute_stream().await?;
        let mut sample = TableSample {
            columns: columns.iter().map(|name| (name.clone(), Vec::new())).collect(),
            rows: 0,
        };
        let mut seen = 0;
        let mut step = step;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            let picked = every_nth(&batch, seen, step);
            seen += u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
            sample.rows += picked.len();
            for (name, column) in columns.iter().zip(batch.columns()) {
                let taken = arrow::compute::take(column, &picked, None)?;
                if let Some(values) = sample.columns.get_mut(name) {
                    values.extend(literals(&taken)?);
                }
            }
            // Files without a row count make the table longer than it seemed.
            while sample.rows as u64 > wanted.saturating_mul(4) {
                step *= 2;
                sample.thin();
            }
        }
        tracing::debug!(table = %snapshot.table, rows = sample.rows, files = inputs.len(), "sampled");
        Ok(sample)
    }
}

/// Top-level columns that may be clustering keys.
fn eligible_columns(snapshot: &TableSnapshot) -> BTreeSet<String> {
    snapshot
        .schema
        .fields()
        .iter()
        .filter(|field| ddl::is_orderable(field.data_type()))
        .map(|field| field.name().clone())
        // A name that needs back-ticks is none that a query log gives us in that spelling.
        .filter(|name| join_name(std::slice::from_ref(name)) == *name)
        .filter(|name| ddl::has_statistics(snapshot, name))
        .collect()
}

/// Reads a file's statistics into spans.
fn file_view(file: &AddFile, snapshot: &TableSnapshot) -> FileView {
    let mapping = snapshot.column_mapping();
    let stats: Value =
        file.stats.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut spans = BTreeMap::new();
    for field in snapshot.schema.fields() {
        let name = mapping.physical_name(field);
        let bound = |side: &str| literal(stats.get(side)?.get(name)?, field.data_type());
        let null_count = stats.get("nullCount").and_then(|n| n.get(name)).and_then(Value::as_u64);
        let span = ColumnSpan {
            min: bound("minValues"),
            max: bound("maxValues").map(|max| above_truncation(max, field.data_type())),
            null_count,
        };
        if span.min.is_some() || span.max.is_some() || span.null_count.is_some() {
            spans.insert(field.name().clone(), span);
        }
    }
    FileView {
        path: file.path.clone(),
        size: Bytes(file.size),
        rows: stats.get("numRecords").and_then(Value::as_u64),
        deleted_rows: file.deleted_rows(),
        spans,
    }
}

/// Statistics hold timestamps in milliseconds, cut: the true maximum may be 999 µs later.
fn above_truncation(max: Literal, data_type: &DataType) -> Literal {
    match (max, data_type) {
        (Literal::Timestamp(micros), DataType::Timestamp(..)) => {
            Literal::Timestamp(micros.saturating_add(999))
        }
        (other, _) => other,
    }
}

fn literal(value: &Value, data_type: &DataType) -> Option<Literal> {
    match data_type {
        DataType::Date32 => Literal::parse_date(value.as_str()?),
        DataType::Timestamp(..) => Literal::parse_timestamp(value.as_str()?),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            Some(Literal::Text(value.as_str()?.to_owned()))
        }
        DataType::Decimal128(_, scale) => {
            Literal::parse_decimal(&value.to_string(), u8::try_from(*scale).ok()?)
        }
        DataType::Float32 | DataType::Float64 => value.as_f64().map(Literal::Float),
        other if other.is_integer() => value.as_i64().map(Literal::Integer),
        _ => None,
    }
}

/// Turns a column into literals; types without an order become nulls.
fn literals(column: &ArrayRef) -> Result<Vec<Option<Literal>>> {
    fn each<T>(
        values: impl Iterator<Item = Option<T>>,
        literal: impl Fn(T) -> Literal,
    ) -> Vec<Option<Literal>> {
        values.map(|value| value.map(&literal)).collect()
    }
    Ok(match column.data_type() {
        DataType::Date32 => each(column.as_primitive::<Date32Type>().iter(), Literal::Date),
        DataType::Timestamp(_, zone) => {
            let micros = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
            each(micros.as_primitive::<TimestampMicrosecondType>().iter(), Literal::Timestamp)
        }
        DataType::Decimal128(_, scale) => {
            let scale = u8::try_from(*scale).unwrap_or(0);
            each(column.as_primitive::<Decimal128Type>().iter(), |unscaled| Literal::Decimal {
                unscaled,
                scale,
            })
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let text = cast(column, &DataType::Utf8)?;
            each(text.as_string::<i32>().iter(), |value| Literal::Text(value.to_owned()))
        }
        float if float.is_floating() => {
            let floats = cast(column, &DataType::Float64)?;
            each(floats.as_primitive::<Float64Type>().iter(), Literal::Float)
        }
        integer if integer.is_integer() => {
            let integers = cast(column, &DataType::Int64)?;
            each(integers.as_primitive::<Int64Type>().iter(), Literal::Integer)
        }
        _ => vec![None; column.len()],
    })
}
