//! Streams: row filters and aggregators.

use super::{evil, shipped};
use crate::{
    AggregatorStream, Batch, Column, ColumnType, ColumnValues, EmitTo, OwnedColumn, OwnedValues,
    SandboxError,
};

const NOW: i64 = 100_000;

#[track_caller]
fn check_filter(config: &str, column: Column<'_>, row_count: u32, expected: &[u8]) {
    let plugin = shipped("row-filter-age-off", config);
    let mut stream = plugin.row_filter_stream().expect("a stream");
    assert_eq!(stream.columns(), ["updated_at"]);
    let batch = Batch { row_count, columns: &[column] };
    assert_eq!(stream.select(NOW, &batch), Ok(expected.to_vec()));
    assert_eq!(stream.select(NOW, &batch), Ok(expected.to_vec()), "the stream goes on");
}

fn integers(values: &[i64]) -> Column<'_> {
    Column { values: ColumnValues::S64(values), validity: None }
}

const DAY: &str = r#"{"column":"updated_at","period_seconds":86400}"#;

#[test]
fn row_filter_age_off_drops_a_row_of_exactly_the_period_and_keeps_the_future() {
    // Ages: 86 400, 86 399, 0, −1, and the extremes of the type.
    let values = [13_600, 13_601, NOW, NOW + 1, i64::MIN, i64::MAX];
    check_filter(DAY, integers(&values), 6, &[0b10_1110]);
    check_filter(DAY, integers(&[]), 0, &[]);
}

#[test]
fn row_filter_age_off_judges_more_rows_than_a_round_of_its_kernel() {
    let values: Vec<i64> = (0..19).map(|row| 13_600 + row % 2).collect();
    check_filter(DAY, integers(&values), 19, &[0b1010_1010, 0b1010_1010, 0b010]);
}

#[test]
fn row_filter_age_off_converts_units_exactly() {
    let unit =
        |unit: &str| format!(r#"{{"column":"updated_at","period_seconds":86400,"unit":"{unit}"}}"#);
    let micros = [13_600_000_000, 13_600_000_001, i64::MIN];
    check_filter(&unit("us"), integers(&micros), 3, &[0b010]);
    // Day 0 began 100 000 s ago and day 1 13 600 s ago.
    let days = Column { values: ColumnValues::S32(&[0, 1, -1]), validity: None };
    check_filter(&unit("d"), days, 3, &[0b010]);
    // Nothing that fits nanoseconds is as old as 2⁶² seconds.
    let eternal = r#"{"column":"updated_at","period_seconds":4611686018427387904,"unit":"ns"}"#;
    check_filter(eternal, integers(&[i64::MIN, 0, i64::MAX]), 3, &[0b111]);
}

#[test]
fn row_filter_age_off_drops_nulls_unless_told_to_keep_them() {
    // All are old but rows 1 and 3; rows 3 and 4 are null.
    let values = [0, NOW, 0, NOW, 0];
    let column = Column { values: ColumnValues::S64(&values), validity: Some(&[0b0_0111]) };
    check_filter(DAY, column, 5, &[0b0_0010]);
    let keep = r#"{"column":"updated_at","period_seconds":86400,"nulls":"keep"}"#;
    check_filter(keep, column, 5, &[0b1_1010]);
}

#[test]
fn row_filter_age_off_refuses_text_and_a_batch_of_other_columns() {
    let mut stream = shipped("row-filter-age-off", DAY).row_filter_stream().expect("a stream");
    let refused = stream.select(NOW, &Batch { row_count: 0, columns: &[] });
    insta::assert_snapshot!(
        refused.expect_err("no columns").to_string(),
        @"call `select` of plugin `row-filter-age-off`: argument `batch` has 0 columns, expected the 1 that the plugin asked for"
    );
    let short = Batch { row_count: 2, columns: &[integers(&[1])] };
    insta::assert_snapshot!(
        stream.select(NOW, &short).expect_err("one value of two").to_string(),
        @"call `select` of plugin `row-filter-age-off`: argument `column 0` has 1 values, expected 2"
    );
    let text =
        Column { values: ColumnValues::Text { offsets: &[0, 1], data: b"x" }, validity: None };
    let refused = stream.select(NOW, &Batch { row_count: 1, columns: &[text] });
    insta::assert_snapshot!(
        refused.expect_err("text has no age").to_string(),
        @"call `select` of plugin `row-filter-age-off`: it reports unsupported: column `updated_at` has type Text, expected S64 or S32"
    );
    let ended = stream.select(NOW, &Batch { row_count: 1, columns: &[integers(&[NOW])] });
    insta::assert_snapshot!(
        ended.expect_err("the stream ended").to_string(),
        @"call `select` of plugin `row-filter-age-off`: the stream ended with an earlier error"
    );
}

#[test]
fn bits_after_the_last_row_are_refused() {
    let mut stream = evil("tail").expect("admitted").row_filter_stream().expect("a stream");
    assert_eq!(
        stream.select(NOW, &Batch { row_count: 8, columns: &[integers(&[0; 8])] }),
        Ok(vec![0xff]),
        "eight rows have no tail"
    );
    let refused = stream.select(NOW, &Batch { row_count: 9, columns: &[integers(&[0; 9])] });
    insta::assert_snapshot!(
        refused.expect_err("bits 9 to 15 are set").to_string(),
        @"call `select` of plugin `tail`: it gave a bitmap with bits set after the last of 9 rows"
    );
}

fn sums(column_type: ColumnType) -> AggregatorStream {
    shipped("aggregator-sum", "{}").aggregator_stream(&[column_type]).expect("a stream")
}

fn owned(values: OwnedValues, validity: Option<Vec<u8>>) -> OwnedColumn {
    OwnedColumn { values, validity }
}

#[test]
fn aggregator_sum_skips_nulls_and_filtered_rows_and_leaves_empty_groups_null() {
    let mut stream = sums(ColumnType::S64);
    let column =
        Column { values: ColumnValues::S64(&[1, 2, 4, 8, 16]), validity: Some(&[0b1_1011]) };
    stream.update(&[column], &[0, 1, 0, 0, 2], None, 4).expect("rows");
    stream.update(&[integers(&[100, 200])], &[0, 1], Some(&[0b10]), 4).expect("rows");
    let expected = owned(OwnedValues::S64(vec![9, 202, 16, 0]), Some(vec![0b0111]));
    assert_eq!(stream.evaluate(EmitTo::All), Ok(expected));
    assert_eq!(stream.evaluate(EmitTo::All), Ok(owned(OwnedValues::S64(vec![]), None)));
}

#[test]
fn aggregator_sum_emits_first_groups_and_renumbers_the_rest() {
    let mut stream = sums(ColumnType::F64);
    let doubles = |values| Column { values: ColumnValues::F64(values), validity: None };
    stream.update(&[doubles(&[0.5, 1.5, 2.5])], &[0, 1, 2], None, 3).expect("rows");
    let first = owned(OwnedValues::F64(vec![0.5, 1.5]), None);
    assert_eq!(stream.evaluate(EmitTo::First(2)), Ok(first));
    stream.update(&[doubles(&[4.0])], &[0], None, 1).expect("rows");
    let refused = stream.evaluate(EmitTo::First(2));
    insta::assert_snapshot!(
        refused.expect_err("one group is left").to_string(),
        @"call `accumulator.evaluate` of plugin `aggregator-sum`: argument `emit` is the first 2, expected at most 1"
    );
    assert_eq!(stream.evaluate(EmitTo::All), Ok(owned(OwnedValues::F64(vec![6.5]), None)));
}

#[test]
fn aggregator_sum_of_parts_is_the_sum_of_the_whole_beyond_64_bits() {
    let (mut left, mut right) = (sums(ColumnType::S64), sums(ColumnType::S64));
    left.update(&[integers(&[i64::MAX, i64::MAX, -7])], &[0, 0, 2], None, 3).expect("rows");
    right.update(&[integers(&[i64::MIN, i64::MIN, 5])], &[0, 0, 1], None, 2).expect("rows");
    for (part, groups) in
        [(left.state(EmitTo::All), [0, 1, 2].as_slice()), (right.state(EmitTo::All), &[0, 1])]
    {
        let part = part.expect("a state");
        let columns: Vec<Column<'_>> = part.iter().map(OwnedColumn::as_column).collect();
        left.merge(&columns, groups, 3).expect("merged");
    }
    // 2 · (2⁶³ − 1) − 2 · 2⁶³ = −2.
    let expected = owned(OwnedValues::S64(vec![-2, 5, -7]), None);
    assert_eq!(left.evaluate(EmitTo::All), Ok(expected));
}

#[test]
fn aggregator_sum_names_the_group_whose_sum_does_not_fit() {
    let mut stream = sums(ColumnType::S64);
    stream.update(&[integers(&[1, i64::MAX, 1])], &[0, 1, 1], None, 2).expect("rows");
    insta::assert_snapshot!(
        stream.evaluate(EmitTo::All).expect_err("2⁶³ does not fit").to_string(),
        @"call `accumulator.evaluate` of plugin `aggregator-sum`: it reports invalid input: the sum of group 1 is 9223372036854775808, expected at most 64 bits"
    );
    assert!(matches!(stream.evaluate(EmitTo::All), Err(SandboxError::Ended { .. })));
    assert_eq!(stream.size_bytes(), 0);
}

#[test]
fn aggregator_sum_refuses_text_and_arguments_that_do_not_fit() {
    let plugin = shipped("aggregator-sum", "{}");
    insta::assert_snapshot!(
        plugin.aggregator_stream(&[ColumnType::Text]).expect_err("no sum of text").to_string(),
        @"call `describe-fold` of plugin `aggregator-sum`: it reports unsupported: a sum over columns of types [Text], expected one of S64 or F64"
    );
    let mut stream = sums(ColumnType::S64);
    let mut refused = |column, groups: &[u32], group_count| {
        stream.update(&[column], groups, None, group_count).expect_err("refused").to_string()
    };
    insta::assert_snapshot!(
        refused(integers(&[1]), &[3], 3),
        @"call `accumulator.update-batch` of plugin `aggregator-sum`: argument `groups` has group 3, expected all below 3"
    );
    let doubles = Column { values: ColumnValues::F64(&[1.0]), validity: None };
    insta::assert_snapshot!(
        refused(doubles, &[0], 1),
        @"call `accumulator.update-batch` of plugin `aggregator-sum`: argument `columns` have the types (f64), expected (s64)"
    );
    assert!(stream.size_bytes() >= 64 << 10, "an instance has at least a page of memory");
}

#[test]
fn text_with_offsets_outside_of_its_data_is_refused() {
    let plugin = evil("offsets").expect("admitted");
    let mut stream = plugin.aggregator_stream(&[ColumnType::S64]).expect("a stream");
    stream.update(&[integers(&[1, 2])], &[0, 1], None, 2).expect("rows");
    insta::assert_snapshot!(
        stream.evaluate(EmitTo::All).expect_err("offset 2²⁰ of 5 bytes").to_string(),
        @"call `accumulator.evaluate` of plugin `offsets`: it gave offsets that do not rise from 0 to the 5 bytes of their data"
    );
}
