//! The law that every chain keeps: compacting in pieces, in any order and again, is compacting once.

use std::sync::Arc;

use arrow::{
    array::{
        ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array,
    },
    compute::{concat_batches, take_record_batch},
};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

use crate::testing::{NOW_SECONDS, compact, rows};

const CHAIN: &str =
    "ageoff=ts,600,n=count,total=sum,paid=sum,low=min,high=max,name=min,label=max,ts=max";

/// A row: key, count, total, decimal, float, text, time.
type Row =
    (Option<u8>, Option<i64>, Option<i32>, Option<i32>, Option<f64>, Option<String>, Option<i64>);

fn row() -> impl Strategy<Value = Row> {
    let float = prop_oneof![
        Just(f64::NAN),
        Just(-f64::NAN),
        Just(0.0),
        Just(-0.0),
        Just(f64::INFINITY),
        any::<f64>(),
    ];
    // Some rows are older than the 600 s that the chain keeps.
    let time = NOW_SECONDS - 900..=NOW_SECONDS + 5;
    (
        proptest::option::of(0..5_u8),
        proptest::option::of(0..9_i64),
        any::<Option<i32>>(),
        any::<Option<i32>>(),
        proptest::option::of(float),
        proptest::option::of("[ab五]{0,3}"),
        proptest::option::of(time),
    )
}

fn table(rows: &[Row]) -> RecordBatch {
    let floats = || Arc::new(rows.iter().map(|row| row.4).collect::<Float64Array>()) as ArrayRef;
    let texts = || Arc::new(rows.iter().map(|row| row.5.as_deref()).collect::<StringArray>());
    let paid = rows.iter().map(|row| row.3.map(i128::from)).collect::<Decimal128Array>();
    crate::testing::batch(vec![
        ("k", Arc::new(rows.iter().map(|row| row.0.map(i64::from)).collect::<Int64Array>())),
        ("n", Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>())),
        ("total", Arc::new(rows.iter().map(|row| row.2.map(i64::from)).collect::<Int64Array>())),
        ("paid", Arc::new(paid.with_precision_and_scale(20, 2).unwrap())),
        ("low", floats()),
        ("high", floats()),
        ("name", texts()),
        ("label", texts()),
        ("ts", Arc::new(rows.iter().map(|row| row.6).collect::<Int64Array>())),
    ])
}

fn compacted(batches: &[RecordBatch]) -> RecordBatch {
    let schema = batches[0].schema();
    concat_batches(&schema, &compact(CHAIN, &["k"], batches).unwrap()).unwrap()
}

/// Cuts a table at the given rows.
fn cut(table: &RecordBatch, cuts: &[usize]) -> Vec<RecordBatch> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (table.num_rows() + 1)).collect();
    ends.push(table.num_rows());
    ends.sort_unstable();
    let mut start = 0;
    let mut pieces = Vec::new();
    for end in ends {
        pieces.push(table.slice(start, end - start));
        start = end;
    }
    pieces
}

proptest! {
    #[test]
    fn any_order_split_and_repetition_gives_the_same_rows(
        rows_in in proptest::collection::vec(row(), 0..60),
        cuts in proptest::collection::vec(any::<usize>(), 0..6),
        shuffle in proptest::collection::vec(any::<u32>(), 60),
    ) {
        let whole = table(&rows_in);
        let once = rows(&[compacted(std::slice::from_ref(&whole))]);

        let mut order: Vec<u32> = (0..u32::try_from(rows_in.len()).unwrap()).collect();
        order.sort_by_key(|row| shuffle[*row as usize]);
        let shuffled = take_record_batch(&whole, &UInt32Array::from(order)).unwrap();
        let pieces = cut(&shuffled, &cuts);
        assert_eq!(rows(&[compacted(&pieces)]), once, "one run over many batches");

        let parts: Vec<RecordBatch> =
            pieces.iter().map(|piece| compacted(std::slice::from_ref(piece))).collect();
        let merged = compacted(&parts);
        assert_eq!(rows(std::slice::from_ref(&merged)), once, "a run over the results of runs");

        // Some pieces compacted before, others new.
        let mixed = [&parts[..parts.len() / 2], &pieces[parts.len() / 2..]].concat();
        assert_eq!(rows(&[compacted(&mixed)]), once, "a run over results and new rows");

        assert_eq!(rows(&[compacted(&[merged])]), once, "a second run over the result");
    }
}

/// A group that ends just before, at and after the end of a batch, and one that fills many.
#[test]
fn groups_are_whole_across_batch_boundaries() {
    for rows_in_group in [8_191, 8_192, 8_193, 30_000] {
        let ones = || Arc::new(Int64Array::from(vec![1; rows_in_group])) as ArrayRef;
        let keys = || Arc::new(Int64Array::from(vec![7; rows_in_group])) as ArrayRef;
        let group = crate::testing::batch(vec![("k", keys()), ("v", ones())]);
        let pieces: Vec<RecordBatch> = (0..rows_in_group)
            .step_by(8_192)
            .map(|start| group.slice(start, 8_192.min(rows_in_group - start)))
            .collect();
        let folded = compact(",v=sum", &["k"], &pieces).unwrap();
        assert_eq!(rows(&folded), [format!("7 {rows_in_group}")]);
    }
}
