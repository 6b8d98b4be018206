//! From what a guest returned to what the host may use.
//!
//! A guest is free to return anything its types allow. These checks are the only way from there to a
//! public type, so that a stage never sees a list of another length, a NaN, or an offset outside of its
//! data.

use crate::{
    ColumnType, OwnedColumn,
    columns::{Column, ColumnValues},
    limits::MESSAGE_BYTES,
};

/// What is wrong with a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Flaw {
    /// Another number of values.
    Length { expected: usize, got: usize },
    /// A NaN or an infinity.
    NotFinite { index: usize, value: f64 },
    /// Something else, as a noun phrase.
    Other(String),
}

/// Checks that there are `expected` values and each is finite.
pub(crate) fn finite(values: &[f64], expected: usize) -> Result<(), Flaw> {
    if values.len() != expected {
        return Err(Flaw::Length { expected, got: values.len() });
    }
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(index) => Err(Flaw::NotFinite { index, value: values[index] }),
    }
}

/// Checks that a bitmap is for `row_count` rows and clear behind them.
pub(crate) fn bitmap(bytes: &[u8], row_count: usize) -> Result<(), Flaw> {
    let expected = row_count.div_ceil(8);
    if bytes.len() != expected {
        return Err(Flaw::Other(format!(
            "a bitmap of {} bytes, expected {expected} for {row_count} rows",
            bytes.len()
        )));
    }
    let tail = row_count % 8;
    match bytes.last() {
        Some(last) if tail != 0 && last >> tail != 0 => {
            Err(Flaw::Other(format!("a bitmap with bits set after the last of {row_count} rows")))
        }
        _ => Ok(()),
    }
}

/// Checks that a column that came from a guest has the expected type and rows, and is well formed.
pub(crate) fn column(
    column: &OwnedColumn,
    expected: ColumnType,
    row_count: usize,
) -> Result<(), Flaw> {
    let found = column.values.column_type();
    if found != expected {
        return Err(Flaw::Other(format!(
            "a column of type {}, expected {}",
            found.as_str(),
            expected.as_str()
        )));
    }
    layout(&column.as_column(), row_count)?;
    match column.values.as_values() {
        ColumnValues::Text { offsets, data } => {
            var_bytes(offsets, data)?;
            utf8(offsets, data)
        }
        ColumnValues::Binary { offsets, data } => var_bytes(offsets, data),
        _ => Ok(()),
    }
}

/// Checks that a column has `row_count` rows.
pub(crate) fn layout(column: &Column<'_>, row_count: usize) -> Result<(), Flaw> {
    let got = match column.values {
        ColumnValues::S64(values) => values.len(),
        ColumnValues::S32(values) => values.len(),
        ColumnValues::F64(values) => values.len(),
        ColumnValues::F32(values) => values.len(),
        ColumnValues::U8(values) => values.len(),
        ColumnValues::Bits(bytes) => {
            bitmap(bytes, row_count)?;
            row_count
        }
        ColumnValues::Text { offsets, .. } | ColumnValues::Binary { offsets, .. } => {
            if offsets.len() != row_count + 1 {
                return Err(Flaw::Other(format!(
                    "{} offsets, expected {} for {row_count} rows",
                    offsets.len(),
                    row_count + 1
                )));
            }
            row_count
        }
    };
    if got != row_count {
        return Err(Flaw::Length { expected: row_count, got });
    }
    column.validity.map_or(Ok(()), |validity| bitmap(validity, row_count))
}

/// Checks that offsets run from 0 to the end of the data and never fall.
fn var_bytes(offsets: &[i32], data: &[u8]) -> Result<(), Flaw> {
    let ends = (offsets.first().copied(), offsets.last().map(|&last| usize::try_from(last)));
    let ordered = offsets.is_sorted();
    match ends {
        (Some(0), Some(Ok(last))) if ordered && last == data.len() => Ok(()),
        _ => Err(Flaw::Other(format!(
            "offsets that do not rise from 0 to the {} bytes of their data",
            data.len()
        ))),
    }
}

/// Checks that every value is UTF-8. The offsets are known to be in range.
fn utf8(offsets: &[i32], data: &[u8]) -> Result<(), Flaw> {
    let text = std::str::from_utf8(data)
        .map_err(|error| Flaw::Other(format!("text that is no UTF-8: {error}")))?;
    let split = offsets
        .iter()
        .filter_map(|&offset| usize::try_from(offset).ok())
        .find(|&offset| !text.is_char_boundary(offset));
    match split {
        None => Ok(()),
        Some(offset) => Err(Flaw::Other(format!("text cut within a character at byte {offset}"))),
    }
}

/// Cuts a text of a guest to a length that fits an error, and escapes what a terminal would obey.
pub(crate) fn message(text: &str) -> String {
    let mut kept = String::new();
    for character in text.chars() {
        let before = kept.len();
        if character.is_control() {
            kept.extend(character.escape_default());
        } else {
            kept.push(character);
        }
        if kept.len() > MESSAGE_BYTES {
            kept.truncate(before);
            kept.push('…');
            break;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{Flaw, bitmap, column, finite, message};
    use crate::{ColumnType, OwnedColumn, OwnedValues, OwnedVarBytes, limits::MESSAGE_BYTES};

    #[test]
    fn finite_values_of_the_right_number_pass_and_others_name_the_place() {
        assert_eq!(finite(&[0.0, -1.0], 2), Ok(()));
        assert_eq!(finite(&[0.0], 2), Err(Flaw::Length { expected: 2, got: 1 }));
        assert!(matches!(
            finite(&[0.0, f64::NAN], 2),
            Err(Flaw::NotFinite { index: 1, value }) if value.is_nan()
        ));
    }

    #[test]
    fn bitmap_needs_its_bytes_and_a_clear_tail() {
        assert_eq!(bitmap(&[0xff, 0b111], 11), Ok(()));
        assert_eq!(bitmap(&[0xff], 8), Ok(()));
        assert_eq!(bitmap(&[], 0), Ok(()));
        assert!(bitmap(&[0xff, 0b1000], 11).is_err());
        assert!(bitmap(&[0xff, 0], 8).is_err());
    }

    #[track_caller]
    fn check_text(offsets: &[i32], data: &[u8], expected: Option<&str>) {
        let text = OwnedVarBytes { offsets: offsets.to_vec(), data: data.to_vec() };
        let values = OwnedColumn { values: OwnedValues::Text(text), validity: None };
        let flaw = column(&values, ColumnType::Text, 2).err();
        let reason = flaw.map(|flaw| match flaw {
            Flaw::Other(reason) => reason,
            other => format!("{other:?}"),
        });
        assert_eq!(reason.as_deref(), expected);
    }

    #[test]
    fn text_needs_rising_offsets_in_range_and_whole_characters() {
        check_text(&[0, 2, 3], "éa".as_bytes(), None);
        let rising = Some("offsets that do not rise from 0 to the 3 bytes of their data");
        check_text(&[0, 2, 1], "éa".as_bytes(), rising);
        check_text(&[1, 2, 3], "éa".as_bytes(), rising);
        check_text(&[0, 2, 9], "éa".as_bytes(), rising);
        check_text(&[0, -1, 3], "éa".as_bytes(), rising);
        check_text(&[0, 1, 3], "éa".as_bytes(), Some("text cut within a character at byte 1"));
        check_text(&[0, 3], "éa".as_bytes(), Some("2 offsets, expected 3 for 2 rows"));
        check_text(
            &[0, 1, 2],
            &[b'a', 0xff],
            Some("text that is no UTF-8: invalid utf-8 sequence of 1 bytes from index 1"),
        );
    }

    #[test]
    fn message_is_cut_and_keeps_no_control_character() {
        assert_eq!(message("a\u{1b}[2J\nb"), "a\\u{1b}[2J\\nb");
        let long = message(&"é".repeat(MESSAGE_BYTES));
        assert_eq!(long.chars().count(), MESSAGE_BYTES / 2 + 1);
        assert!(long.ends_with('…'));
    }
}
