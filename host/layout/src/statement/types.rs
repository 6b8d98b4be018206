//! Spark's names of data types, as Arrow types that Delta stores.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, TimeUnit};

use crate::LayoutError;

use super::{ColumnDefinition, reader::Reader};

/// The default of `DECIMAL`, as in Spark.
const DECIMAL: (u8, i8) = (10, 0);
/// Most digits of a decimal.
const MAX_PRECISION: u8 = 38;

/// Reads `name TYPE [NOT NULL] [COMMENT 'text']`.
pub(super) fn column(reader: &mut Reader<'_>) -> Result<ColumnDefinition, LayoutError> {
    let name = reader.name("a column name")?;
    definition(reader, name)
}

fn definition(reader: &mut Reader<'_>, name: String) -> Result<ColumnDefinition, LayoutError> {
    let data_type = data_type(reader)?;
    let nullable = !reader.accept_all(&["NOT", "NULL"]);
    let comment = if reader.accept("COMMENT") { Some(reader.text("a text")?) } else { None };
    Ok(ColumnDefinition { name, data_type, nullable, comment })
}

/// Reads a data type.
pub(super) fn data_type(reader: &mut Reader<'_>) -> Result<DataType, LayoutError> {
    const EXPECTED: &str = "a data type, such as BIGINT, DECIMAL(10,2), STRING or DATE";
    let token = reader.next_token();
    Ok(match token.keyword().as_deref() {
        Some("BOOLEAN") => DataType::Boolean,
        Some("BYTE" | "TINYINT") => DataType::Int8,
        Some("SHORT" | "SMALLINT") => DataType::Int16,
        Some("INT" | "INTEGER") => DataType::Int32,
        Some("LONG" | "BIGINT") => DataType::Int64,
        Some("FLOAT" | "REAL") => DataType::Float32,
        Some("DOUBLE") => DataType::Float64,
        Some("STRING") => DataType::Utf8,
        Some("BINARY") => DataType::Binary,
        Some("DATE") => DataType::Date32,
        Some("TIMESTAMP" | "TIMESTAMP_LTZ") => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
        Some("TIMESTAMP_NTZ") => DataType::Timestamp(TimeUnit::Microsecond, None),
        Some("DECIMAL" | "DEC" | "NUMERIC") => decimal(reader)?,
        Some("ARRAY") => {
            reader.expect(&["<"])?;
            let element = data_type(reader)?;
            reader.expect(&[">"])?;
            DataType::List(Arc::new(Field::new("element", element, true)))
        }
        Some("MAP") => {
            reader.expect(&["<"])?;
            let key = data_type(reader)?;
            reader.expect(&[","])?;
            let value = data_type(reader)?;
            reader.expect(&[">"])?;
            let entries =
                Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)]);
            let entries = Field::new("key_value", DataType::Struct(entries), false);
            DataType::Map(Arc::new(entries), false)
        }
        Some("STRUCT") => DataType::Struct(fields(reader)?),
        _ => return Err(token.unexpected(EXPECTED)),
    })
}

fn fields(reader: &mut Reader<'_>) -> Result<Fields, LayoutError> {
    reader.expect(&["<"])?;
    let mut fields: Vec<Field> = Vec::new();
    loop {
        let name = reader.name("a field name")?;
        reader.accept(":");
        fields.push(definition(reader, name)?.into_field());
        if !reader.accept(",") {
            break;
        }
    }
    reader.expect_one_of(">", ", or >")?;
    Ok(fields.into())
}

fn decimal(reader: &mut Reader<'_>) -> Result<DataType, LayoutError> {
    let (mut precision, mut scale) = DECIMAL;
    if reader.accept("(") {
        let digits = reader.peek();
        precision = reader.number("the number of digits")?;
        scale = if reader.accept(",") { reader.number("the digits after the point")? } else { 0 };
        reader.expect(&[")"])?;
        let fits = (1..=MAX_PRECISION).contains(&precision)
            && u8::try_from(scale).is_ok_and(|scale| scale <= precision);
        if !fits {
            return Err(digits.unexpected("1 to 38 digits, of which at most all after the point"));
        }
    }
    Ok(DataType::Decimal128(precision, scale))
}
