//! Statistics of a file under construction, as the protocol's `stats` text.
//!
//! Own code rather than the Parquet footer's, because footers truncate strings at 64 bytes, round
//! decimals through floats in deltalake's reader, and count fields where Delta counts leaves.

use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, StructArray, make_array},
    buffer::NullBuffer,
    datatypes::{DataType, Float32Type, Float64Type, Schema, TimeUnit},
};
use datafusion::{
    common::ScalarValue,
    error::Result,
    functions_aggregate::min_max::{MaxAccumulator, MinAccumulator},
    logical_expr::Accumulator,
};
use lakebed_layout::{
    ColumnMapping, TableSnapshot,
    columns::{self, join_name},
    ddl::{self, StatsColumns},
};
use lakebed_model::{Instant, Literal};

/// Characters of a string bound: delta-spark's `stringPrefixLength`.
const PREFIX_CHARS: usize = 32;

#[derive(Debug, Clone)]
struct Leaf {
    path: Vec<String>,
    /// The path under which the statistics stand.
    physical: Vec<String>,
    /// Smallest and largest value so far; none where the type has no bounds.
    bounds: Option<(ScalarValue, ScalarValue)>,
    /// Whether a NaN was seen, which engines put above every number.
    has_nan: bool,
    null_count: u64,
}

/// Collects statistics over the batches of one file.
#[derive(Debug, Clone)]
pub(crate) struct StatsCollector {
    leaves: Vec<Leaf>,
    rows: u64,
}

impl StatsCollector {
    /// Prepares for the first `indexed` leaf columns and every column named.
    pub(crate) fn new(
        schema: &Schema,
        indexed: usize,
        named: &[String],
        mapping: ColumnMapping,
    ) -> Result<Self> {
        let leaves = chosen_leaves(schema, indexed, named)
            .filter_map(|path| {
                let data_type = columns::column_type(schema, &join_name(&path))?;
                let physical = mapping.physical_path(schema, &path)?;
                Some((path, physical, data_type))
            })
            .map(|(path, physical, data_type)| {
                let bounds = if ddl::is_orderable(&data_type) {
                    let none = ScalarValue::try_from(&data_type)?;
                    Some((none.clone(), none))
                } else {
                    None
                };
                Ok(Leaf { path, physical, bounds, has_nan: false, null_count: 0 })
            })
            .collect::<Result<_>>()?;
        Ok(Self { leaves, rows: 0 })
    }

    /// Takes in a batch.
    pub(crate) fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        self.add_rows(batch.num_rows());
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            self.update_column(field.name(), column)?;
        }
        Ok(())
    }

    /// Counts rows whose values come column by column.
    pub(crate) fn add_rows(&mut self, rows: usize) {
        self.rows += u64::try_from(rows).unwrap_or(u64::MAX);
    }

    /// Returns how many rows were counted.
    pub(crate) const fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes in values of one column, by the table's name for it.
    pub(crate) fn update_column(&mut self, name: &str, column: &ArrayRef) -> Result<()> {
        for leaf in
            self.leaves.iter_mut().filter(|leaf| leaf.path.first().is_some_and(|p| p == name))
        {
            let Some(values) = nested_array(column, &leaf.path[1..]) else { continue };
            leaf.null_count += u64::try_from(values.null_count()).unwrap_or(u64::MAX);
            leaf.has_nan |= has_nan(&values);
            if let Some((least, largest)) = &mut leaf.bounds {
                let mut min = MinAccumulator::try_new(values.data_type())?;
                let mut max = MaxAccumulator::try_new(values.data_type())?;
                min.update_batch(&[least.to_array()?])?;
                min.update_batch(std::slice::from_ref(&values))?;
                max.update_batch(&[largest.to_array()?])?;
                max.update_batch(std::slice::from_ref(&values))?;
                (*least, *largest) = (min.evaluate()?, max.evaluate()?);
            }
        }
        Ok(())
    }

    /// Takes in values of one column of which only those that bound the others are at hand, and how
    /// many more are null.
    pub(crate) fn update_bounds(
        &mut self,
        name: &str,
        bounds: Option<&ArrayRef>,
        nulls: usize,
    ) -> Result<()> {
        if let Some(bounds) = bounds {
            self.update_column(name, bounds)?;
        }
        for leaf in self.leaves.iter_mut().filter(|leaf| *leaf.path == [name]) {
            leaf.null_count += u64::try_from(nulls).unwrap_or(u64::MAX);
        }
        Ok(())
    }

    /// Takes in what another collector of the same columns saw.
    pub(crate) fn merge(&mut self, other: Self) -> Result<()> {
        self.rows += other.rows;
        for (leaf, other) in self.leaves.iter_mut().zip(other.leaves) {
            leaf.null_count += other.null_count;
            leaf.has_nan |= other.has_nan;
            if let (Some((least, largest)), Some((low, high))) = (&mut leaf.bounds, other.bounds) {
                let mut min = MinAccumulator::try_new(&least.data_type())?;
                let mut max = MaxAccumulator::try_new(&largest.data_type())?;
                for value in [&*least, &low] {
                    min.update_batch(&[value.to_array()?])?;
                }
                for value in [&*largest, &high] {
                    max.update_batch(&[value.to_array()?])?;
                }
                (*least, *largest) = (min.evaluate()?, max.evaluate()?);
            }
        }
        Ok(())
    }

    /// Renders the statistics of a file of which some rows are hidden, and were not taken in: its
    /// `numRecords` counts them, its bounds may be looser than they could be.
    pub(crate) fn finish_with_hidden(mut self, hidden: u64) -> Result<String> {
        self.rows += hidden;
        let stats = self.finish()?;
        Ok(if hidden > 0 { with_loose_bounds(&stats) } else { stats })
    }

    /// Renders the statistics.
    pub(crate) fn finish(self) -> Result<String> {
        let mut mins = Object::default();
        let mut maxs = Object::default();
        let mut nulls = Object::default();
        for leaf in &self.leaves {
            nulls.set(&leaf.physical, leaf.null_count.to_string());
            if let Some((min, max)) = &leaf.bounds {
                if let Some(text) = render(min, Side::Min) {
                    mins.set(&leaf.physical, text);
                }
                if let Some(text) = render(max, Side::Max).filter(|_| !leaf.has_nan) {
                    maxs.set(&leaf.physical, text);
                }
            }
        }
        Ok(format!(
            "{{\"numRecords\":{},\"minValues\":{},\"maxValues\":{},\"nullCount\":{}}}",
            self.rows,
            mins.render(),
            maxs.render(),
            nulls.render()
        ))
    }
}

/// Lists the leaf columns that statistics must tell of, as the statistics name them.
pub(crate) fn stated_leaves(snapshot: &TableSnapshot) -> Vec<Vec<String>> {
    let StatsColumns { leading, named } = ddl::stats_columns(snapshot);
    chosen_leaves(&snapshot.schema, leading, &named)
        .filter_map(|path| snapshot.column_mapping().physical_path(&snapshot.schema, &path))
        .collect()
}

/// The first `indexed` leaf columns and every column named.
fn chosen_leaves(
    schema: &Schema,
    indexed: usize,
    named: &[String],
) -> impl Iterator<Item = Vec<String>> {
    let is_chosen = move |(position, path): &(usize, Vec<String>)| {
        *position < indexed || named.contains(&join_name(path))
    };
    columns::leaves(schema).into_iter().enumerate().filter(is_chosen).map(|(_, path)| path)
}

/// The bounds of a file stay true of fewer rows, but are not those of its visible rows any more.
///
/// The text is edited, not parsed: digits beyond a double's would be lost.
pub(crate) fn with_loose_bounds(stats: &str) -> String {
    if stats.contains("\"tightBounds\"") {
        return stats.replace("\"tightBounds\":true", "\"tightBounds\":false");
    }
    match stats.trim_end().strip_suffix('}') {
        Some("{") => "{\"tightBounds\":false}".to_owned(),
        Some(inner) => format!("{inner},\"tightBounds\":false}}"),
        None => stats.to_owned(),
    }
}

/// A NaN of either sign; with its sign bit set it would sort below every number here.
fn has_nan(values: &ArrayRef) -> bool {
    match values.data_type() {
        DataType::Float32 => values.as_primitive::<Float32Type>().iter().flatten().any(f32::is_nan),
        DataType::Float64 => values.as_primitive::<Float64Type>().iter().flatten().any(f64::is_nan),
        _ => false,
    }
}

/// Finds a leaf's values; a null struct makes its leaves null.
pub(crate) fn leaf_array(batch: &RecordBatch, path: &[String]) -> Option<ArrayRef> {
    let (first, rest) = path.split_first()?;
    nested_array(batch.column_by_name(first)?, rest)
}

fn nested_array(column: &ArrayRef, path: &[String]) -> Option<ArrayRef> {
    let mut array = ArrayRef::clone(column);
    for name in path {
        let parent: &StructArray = array.as_struct_opt()?;
        let child = parent.column_by_name(name)?;
        let nulls = NullBuffer::union(parent.nulls(), child.nulls());
        array = make_array(child.to_data().into_builder().nulls(nulls).build().ok()?);
    }
    Some(array)
}

/// A JSON object that keeps the order of the schema.
#[derive(Debug, Default)]
struct Object(Vec<(String, Node)>);

#[derive(Debug)]
enum Node {
    Text(String),
    Nested(Object),
}

impl Object {
    fn set(&mut self, path: &[String], text: String) {
        let Some((first, rest)) = path.split_first() else { return };
        if rest.is_empty() {
            self.0.push((first.clone(), Node::Text(text)));
            return;
        }
        if let Some((_, Node::Nested(object))) = self.0.iter_mut().find(|(name, _)| name == first) {
            object.set(rest, text);
            return;
        }
        let mut object = Self::default();
        object.set(rest, text);
        self.0.push((first.clone(), Node::Nested(object)));
    }

    fn render(&self) -> String {
        let fields: Vec<String> = self
            .0
            .iter()
            .map(|(name, node)| {
                let value = match node {
                    Node::Text(text) => text.clone(),
                    Node::Nested(object) => object.render(),
                };
                format!("{}:{value}", quoted(name))
            })
            .collect();
        format!("{{{}}}", fields.join(","))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Min,
    Max,
}

/// Renders a bound as JSON; `None` where no bound can be stated.
///
/// Infinities and NaN are no JSON. Zeros bound both signs. Timestamps have milliseconds in
/// statistics: minima round down, maxima up. Years that need a sign or a fifth digit are read
/// differently from engine to engine.
fn render(value: &ScalarValue, side: Side) -> Option<String> {
    if value.is_null() {
        return None;
    }
    Some(match value {
        ScalarValue::Float32(Some(v)) => float(f64::from(*v), &v.to_string(), side)?,
        ScalarValue::Float64(Some(v)) => float(*v, &v.to_string(), side)?,
        ScalarValue::Date32(Some(days)) => {
            quoted(&with_four_digit_year(Literal::Date(*days).to_string())?)
        }
        ScalarValue::Decimal128(Some(unscaled), _, scale) => {
            let scale = u8::try_from(*scale).ok()?;
            Literal::Decimal { unscaled: *unscaled, scale }.to_string()
        }
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => quoted(&prefix(text, side)),
        ScalarValue::TimestampSecond(..)
        | ScalarValue::TimestampMillisecond(..)
        | ScalarValue::TimestampMicrosecond(..)
        | ScalarValue::TimestampNanosecond(..) => timestamp(value, side)?,
        number if number.data_type().is_integer() => number.to_string(),
        _ => return None,
    })
}

fn float(value: f64, text: &str, side: Side) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let zero = value.abs() < f64::MIN_POSITIVE && value.abs().to_bits() == 0;
    Some(match (zero, side) {
        (true, Side::Min) => "-0.0".to_owned(),
        (true, Side::Max) => "0.0".to_owned(),
        (false, _) if text.contains(['.', 'e']) => text.to_owned(),
        (false, _) => format!("{text}.0"),
    })
}

fn timestamp(value: &ScalarValue, side: Side) -> Option<String> {
    let DataType::Timestamp(_, zone) = value.data_type() else { return None };
    let micros = value.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, zone.clone())).ok()?;
    let ScalarValue::TimestampMicrosecond(Some(micros), _) = micros else { return None };
    let ms = match side {
        Side::Min => micros.div_euclid(1_000),
        Side::Max => micros.checked_add(999)?.div_euclid(1_000),
    };
    let mut text = with_four_digit_year(Instant::from_epoch_ms(ms).to_rfc3339())?;
    if zone.is_none() {
        text.truncate(text.len() - 1);
    }
    Some(quoted(&text))
}

/// Lets a date or a time pass that begins with a plain year.
fn with_four_digit_year(text: String) -> Option<String> {
    (text.find('-') == Some(4)).then_some(text)
}

/// Cuts a string bound: a minimum stays a lower bound when cut, a maximum needs a larger tail.
fn prefix(text: &str, side: Side) -> String {
    let Some((cut, next)) = text.char_indices().nth(PREFIX_CHARS) else { return text.to_owned() };
    match side {
        Side::Min => text[..cut].to_owned(),
        Side::Max if next == char::MAX => text.to_owned(),
        Side::Max => format!("{}{}", &text[..cut], char::MAX),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array,
        Float64Array, Int64Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
    };

    use lakebed_layout::ColumnMapping;

    use super::StatsCollector;

    #[track_caller]
    fn check(column: ArrayRef, expected: &str) {
        let batch = RecordBatch::try_from_iter([("c", column)]).unwrap();
        let mut stats = StatsCollector::new(&batch.schema(), 32, &[], ColumnMapping::None).unwrap();
        stats.update(&batch).unwrap();
        let text = stats.finish().unwrap();
        assert_eq!(text, expected);
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
    }

    #[test]
    fn bounds_of_every_kind() {
        check(
            Arc::new(Int64Array::from(vec![Some(3), None, Some(-1)])),
            r#"{"numRecords":3,"minValues":{"c":-1},"maxValues":{"c":3},"nullCount":{"c":1}}"#,
        );
        check(
            Arc::new(Date32Array::from(vec![8766, 8767])),
            r#"{"numRecords":2,"minValues":{"c":"1994-01-01"},"maxValues":{"c":"1994-01-02"},"nullCount":{"c":0}}"#,
        );
        check(
            Arc::new(
                Decimal128Array::from(vec![-5, 1234]).with_precision_and_scale(15, 2).unwrap(),
            ),
            r#"{"numRecords":2,"minValues":{"c":-0.05},"maxValues":{"c":12.34},"nullCount":{"c":0}}"#,
        );
        check(
            Arc::new(TimestampMicrosecondArray::from(vec![-1_500, 1_500]).with_timezone("UTC")),
            r#"{"numRecords":2,"minValues":{"c":"1969-12-31T23:59:59.998Z"},"maxValues":{"c":"1970-01-01T00:00:00.002Z"},"nullCount":{"c":0}}"#,
        );
    }

    #[test]
    fn zeros_bound_both_signs_and_nan_bounds_nothing() {
        check(
            Arc::new(Float64Array::from(vec![0.0, 0.0])),
            r#"{"numRecords":2,"minValues":{"c":-0.0},"maxValues":{"c":0.0},"nullCount":{"c":0}}"#,
        );
        check(
            Arc::new(Float64Array::from(vec![1.0, f64::NAN])),
            r#"{"numRecords":2,"minValues":{"c":1.0},"maxValues":{},"nullCount":{"c":0}}"#,
        );
    }

    #[test]
    fn infinities_and_nan_of_either_sign_are_no_bounds() {
        check(
            Arc::new(Float64Array::from(vec![Some(f64::INFINITY), Some(1.5), None])),
            r#"{"numRecords":3,"minValues":{"c":1.5},"maxValues":{},"nullCount":{"c":1}}"#,
        );
        check(
            Arc::new(Float64Array::from(vec![f64::NEG_INFINITY, -2.0])),
            r#"{"numRecords":2,"minValues":{},"maxValues":{"c":-2.0},"nullCount":{"c":0}}"#,
        );
        check(
            Arc::new(Float64Array::from(vec![-f64::NAN, 3.0])),
            r#"{"numRecords":2,"minValues":{},"maxValues":{},"nullCount":{"c":0}}"#,
        );
        check(
            Arc::new(Float32Array::from(vec![f32::NAN, 1.0])),
            r#"{"numRecords":2,"minValues":{"c":1.0},"maxValues":{},"nullCount":{"c":0}}"#,
        );
        check(
            Arc::new(Float64Array::from(vec![Some(f64::NAN), None])),
            r#"{"numRecords":2,"minValues":{},"maxValues":{},"nullCount":{"c":1}}"#,
        );
    }

    #[test]
    fn decimals_keep_every_digit() {
        let widest = 99_999_999_999_999_999_999_999_999_999_999_999_999i128;
        let decimals = Decimal128Array::from(vec![-widest, widest, -1]);
        check(
            Arc::new(decimals.with_precision_and_scale(38, 10).unwrap()),
            r#"{"numRecords":3,"minValues":{"c":-9999999999999999999999999999.9999999999},"maxValues":{"c":9999999999999999999999999999.9999999999},"nullCount":{"c":0}}"#,
        );
    }

    #[test]
    fn instants_before_the_epoch_and_without_a_fraction_have_three_digits() {
        check(
            Arc::new(TimestampMicrosecondArray::from(vec![-62_135_596_800_000_000, -1, 0])),
            r#"{"numRecords":3,"minValues":{"c":"0001-01-01T00:00:00.000"},"maxValues":{"c":"1970-01-01T00:00:00.000"},"nullCount":{"c":0}}"#,
        );
        check(
            Arc::new(TimestampMicrosecondArray::from(vec![0, 300_000_000_000_000_000])),
            r#"{"numRecords":2,"minValues":{"c":"1970-01-01T00:00:00.000"},"maxValues":{},"nullCount":{"c":0}}"#,
        );
        check(
            Arc::new(Date32Array::from(vec![-719_529, 10_000_000])),
            r#"{"numRecords":2,"minValues":{},"maxValues":{},"nullCount":{"c":0}}"#,
        );
    }

    #[test]
    fn bytes_have_no_bounds() {
        check(
            Arc::new(BinaryArray::from_vec(vec![&[0, 255], &[128]])),
            r#"{"numRecords":2,"minValues":{},"maxValues":{},"nullCount":{"c":0}}"#,
        );
    }

    #[test]
    fn listed_columns_have_statistics_wherever_they_stand() {
        let columns = ["a", "b", "z.z"].map(|name| {
            let column: ArrayRef = Arc::new(Int64Array::from(vec![7]));
            (name, column)
        });
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let named = ["`z.z`".to_owned()];
        let mut stats =
            StatsCollector::new(&batch.schema(), 1, &named, ColumnMapping::None).unwrap();
        stats.update(&batch).unwrap();
        assert_eq!(
            stats.finish().unwrap(),
            r#"{"numRecords":1,"minValues":{"a":7,"z.z":7},"maxValues":{"a":7,"z.z":7},"nullCount":{"a":0,"z.z":0}}"#
        );
    }

    #[test]
    fn long_strings_are_cut_to_bounds() {
        let long = "ä".repeat(40);
        let cut = "ä".repeat(32);
        check(
            Arc::new(StringArray::from(vec![long.as_str()])),
            &format!(
                r#"{{"numRecords":1,"minValues":{{"c":"{cut}"}},"maxValues":{{"c":"{cut}{}"}},"nullCount":{{"c":0}}}}"#,
                char::MAX
            ),
        );
    }

    #[test]
    fn booleans_have_no_bounds_and_structs_have_nested_ones() {
        check(
            Arc::new(BooleanArray::from(vec![true])),
            r#"{"numRecords":1,"minValues":{},"maxValues":{},"nullCount":{"c":0}}"#,
        );
        let leaf: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let field = arrow::datatypes::Field::new("x", leaf.data_type().clone(), true);
        let nested =
            StructArray::new(vec![field].into(), vec![leaf], Some(vec![false, true].into()));
        check(
            Arc::new(nested),
            r#"{"numRecords":2,"minValues":{"c":{"x":2}},"maxValues":{"c":{"x":2}},"nullCount":{"c":{"x":1}}}"#,
        );
    }

    #[test]
    fn bounds_become_loose_and_digits_stay() {
        let stats = r#"{"numRecords":2,"minValues":{"d":9999999999999999999999.12}}"#;
        assert_eq!(
            super::with_loose_bounds(stats),
            r#"{"numRecords":2,"minValues":{"d":9999999999999999999999.12},"tightBounds":false}"#
        );
        assert_eq!(super::with_loose_bounds(r#"{"tightBounds":true}"#), r#"{"tightBounds":false}"#);
        assert_eq!(super::with_loose_bounds("{}"), r#"{"tightBounds":false}"#);
    }
}
