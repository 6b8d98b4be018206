//! Rows as they are held: decimals of up to 18 digits in 64 bits instead of 128, as files have them.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, AsArray, Decimal64Array, Decimal128Array, RecordBatch, RecordBatchOptions,
    },
    datatypes::{DataType, Decimal64Type, Decimal128Type, Field, Fields, Schema, SchemaRef},
    error::ArrowError,
};
use lakebed_layout::ordinal::NARROW_DIGITS;

/// Returns the schema of held rows.
pub(crate) fn narrow_schema(schema: &Schema) -> SchemaRef {
    let narrow = |field: &Arc<Field>| match field.data_type() {
        DataType::Decimal128(digits, scale) if *digits <= NARROW_DIGITS => {
            let data_type = DataType::Decimal64(*digits, *scale);
            Arc::new(field.as_ref().clone().with_data_type(data_type))
        }
        _ => Arc::clone(field),
    };
    Arc::new(Schema::new(schema.fields().iter().map(narrow).collect::<Fields>()))
}

/// Gives rows the types in which they are held.
///
/// # Errors
/// Fails when a decimal has more digits than its column.
pub(crate) fn narrow(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns
        .map(|(column, field)| match (column.data_type(), field.data_type()) {
            (DataType::Decimal128(..), DataType::Decimal64(digits, scale)) => {
                let wide = column.as_primitive::<Decimal128Type>();
                let narrow: Decimal64Array = wide.try_unary::<_, Decimal64Type, _>(|value| {
                    i64::try_from(value).map_err(|_| {
                        ArrowError::InvalidArgumentError(format!(
                            "column `{}` holds the unscaled value {value}, which has more than \
                             {digits} digits",
                            field.name()
                        ))
                    })
                })?;
                Ok(Arc::new(narrow.with_precision_and_scale(*digits, *scale)?) as ArrayRef)
            }
            _ => Ok(ArrayRef::clone(column)),
        })
        .collect::<Result<Vec<_>, ArrowError>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// Gives held values the type of their column again.
pub(crate) fn widen(values: ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    match (values.data_type(), data_type) {
        (DataType::Decimal64(..), DataType::Decimal128(digits, scale)) => {
            let narrow = values.as_primitive::<Decimal64Type>();
            let wide: Decimal128Array = narrow.unary::<_, Decimal128Type>(i128::from);
            Ok(Arc::new(wide.with_precision_and_scale(*digits, *scale)?))
        }
        _ => Ok(values),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Decimal128Array, RecordBatch};

    use super::{narrow, narrow_schema, widen};

    fn batch(values: Vec<Option<i128>>, digits: u8) -> RecordBatch {
        let column = Decimal128Array::from(values).with_precision_and_scale(digits, 2).unwrap();
        RecordBatch::try_from_iter([("d", Arc::new(column) as ArrayRef)]).unwrap()
    }

    #[track_caller]
    fn check(values: Vec<Option<i128>>, digits: u8) {
        let batch = batch(values, digits);
        let held = narrow(&batch, &narrow_schema(&batch.schema())).unwrap();
        let back = widen(ArrayRef::clone(held.column(0)), batch.column(0).data_type()).unwrap();
        assert_eq!(&back, batch.column(0));
    }

    #[test]
    fn decimals_come_back_as_they_were() {
        check(
            vec![Some(-999_999_999_999_999_999), None, Some(0), Some(999_999_999_999_999_999)],
            18,
        );
        check(vec![Some(-1), Some(12_345)], 5);
        check(vec![Some(-(10_i128.pow(37))), None, Some(10_i128.pow(37))], 38);
    }

    #[test]
    fn decimal_beyond_its_column_is_named() {
        let batch = batch(vec![Some(10_i128.pow(30))], 18);
        let error = narrow(&batch, &narrow_schema(&batch.schema())).unwrap_err().to_string();
        assert!(
            error.contains("column `d` holds the unscaled value 1000000000000000000000000000000"),
            "{error}"
        );
    }
}
