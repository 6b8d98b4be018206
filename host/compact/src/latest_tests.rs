//! The latest row, first and last, maps, averages and lists: any order of compactions is one.

use std::{num::NonZeroUsize, sync::Arc};

use arrow::{
    array::{
        ArrayRef, BooleanArray, Int64Array, Int64Builder, ListArray, MapBuilder, RecordBatch,
        StringArray, StringBuilder, StructArray,
    },
    compute::concat_batches,
    datatypes::{DataType, Field, Int64Type},
};
use proptest::prelude::{Strategy, any, proptest};

use crate::{
    Chain, ChainConfig, ColumnFold, CompactError, Fold, MapFold, NoPlugins, Step, StepCounts,
    testing::{now, rows},
};

/// A row: key, order, value, delete marker, map entry, list.
type Row = (u8, Option<i64>, Option<String>, Option<bool>, Option<(u8, i32)>, Vec<i16>);

fn row() -> impl Strategy<Value = Row> {
    (
        0..4_u8,
        proptest::option::of(0..5_i64),
        proptest::option::of("[ab]{0,2}"),
        any::<Option<bool>>(),
        any::<Option<(u8, i32)>>().prop_map(|entry| entry.map(|(key, value)| (key % 3, value))),
        proptest::collection::vec(any::<i16>(), 0..4),
    )
}

fn table(rows: &[Row]) -> RecordBatch {
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    for row in rows {
        if let Some((key, value)) = row.4 {
            maps.keys().append_value(format!("k{key}"));
            maps.values().append_value(i64::from(value));
        }
        maps.append(row.4.is_some()).unwrap();
    }
    let lists = rows.iter().map(|row| Some(row.5.iter().map(|one| Some(i64::from(*one)))));
    let order = || Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>()) as ArrayRef;
    let counts: ArrayRef = Arc::new(Int64Array::new_null(rows.len()));
    let fields = ["sum", "count"].map(|name| Field::new(name, DataType::Int64, true));
    let pairs = StructArray::new(fields.to_vec().into(), vec![order(), counts], None);
    crate::testing::batch(vec![
        ("k", Arc::new(rows.iter().map(|row| i64::from(row.0)).collect::<Int64Array>())),
        ("t", order()),
        ("v", Arc::new(rows.iter().map(|row| row.2.as_deref()).collect::<StringArray>())),
        ("gone", Arc::new(rows.iter().map(|row| row.3).collect::<BooleanArray>())),
        ("m", Arc::new(maps.finish())),
        ("l", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))),
        ("a", Arc::new(pairs)),
    ])
}

fn fold(column: &str, fold: Fold) -> ColumnFold {
    ColumnFold { column: column.to_owned(), fold }
}

fn folds() -> Step {
    Step::Aggregate(vec![
        fold("t", Fold::Max),
        fold("v", Fold::Last { by: "t".to_owned() }),
        fold("gone", Fold::Last { by: "t".to_owned() }),
        fold("m", Fold::Map(MapFold::Sum)),
        fold("l", Fold::Top { count: std::num::NonZeroU32::new(3).unwrap() }),
        fold("a", Fold::Average),
    ])
}

fn latest(delete_marker: Option<&str>) -> Step {
    let delete_marker = delete_marker.map(str::to_owned);
    Step::LatestBy { columns: vec!["t".to_owned()], delete_marker }
}

fn compact(
    step: &Step,
    batches: &[RecordBatch],
) -> Result<(RecordBatch, Vec<StepCounts>), CompactError> {
    let schema = batches[0].schema();
    let config = ChainConfig { steps: vec![step.clone()] };
    let chain = Chain::validate(&config, &schema, &["k".to_owned()])?;
    let mut run = chain.bind(now(), &NoPlugins)?.start(NonZeroUsize::new(3).unwrap())?;
    for batch in batches {
        assert!(run.push(batch)?.is_none());
    }
    let folded = run.finish()?;
    let counts = folded.counts().to_vec();
    let batches = folded.collect::<Result<Vec<_>, _>>()?;
    Ok((concat_batches(&schema, &batches).unwrap(), counts))
}

fn compacted(step: &Step, batches: &[RecordBatch]) -> RecordBatch {
    compact(step, batches).unwrap().0
}

/// What the latest row of each key is, found the slow way.
fn naive_latest(rows_in: &[Row]) -> Vec<String> {
    let mut keys: Vec<u8> = rows_in.iter().map(|row| row.0).collect();
    keys.sort_unstable();
    keys.dedup();
    let latest = |key: &u8| {
        let of_key = rows_in.iter().filter(|row| row.0 == *key);
        let best = of_key.max_by_key(|row| (row.1, row.2.clone(), row.3)).unwrap();
        (best.3 != Some(true)).then(|| rows(&[without_nested(&table(std::slice::from_ref(best)))]))
    };
    keys.iter().filter_map(latest).flatten().collect()
}

fn without_nested(batch: &RecordBatch) -> RecordBatch {
    batch.project(&[0, 1, 2, 3]).unwrap()
}

proptest! {
    #[test]
    fn any_tree_of_compactions_is_one(
        rows_in in proptest::collection::vec(row(), 1..40),
        cut in any::<usize>(),
        other_cut in any::<usize>(),
    ) {
        let mut turned = rows_in.clone();
        turned.rotate_left(other_cut % rows_in.len());
        let (left, right) = turned.split_at(cut % rows_in.len());
        for (step, columns) in [(folds(), 0..7), (latest(None), 0..4)] {
            let columns: Vec<usize> = columns.collect();
            let of = |rows: &[Row]| table(rows).project(&columns).unwrap();
            let once = compacted(&step, &[of(&rows_in)]);
            let parts = [compacted(&step, &[of(left)]), compacted(&step, &[of(right)])];
            assert_eq!(rows(&[compacted(&step, &parts)]), rows(std::slice::from_ref(&once)));
            let mixed = [of(left), parts[1].clone()];
            assert_eq!(rows(&[compacted(&step, &mixed)]), rows(std::slice::from_ref(&once)));
            let again = compacted(&step, std::slice::from_ref(&once));
            assert_eq!(rows(&[again]), rows(&[once]));
        }
        let step = latest(Some("gone"));
        let pieces = [without_nested(&table(left)), without_nested(&table(right))];
        assert_eq!(rows(&[compacted(&step, &pieces)]), naive_latest(&rows_in));
    }
}

#[test]
fn deleted_keys_are_counted_apart_from_folded_rows() {
    let row = |key, order, gone| (key, Some(order), None, gone, None, Vec::new());
    let rows_in =
        [row(1, 1, None), row(1, 2, Some(true)), row(2, 5, Some(false)), row(2, 4, Some(true))];
    let (left, counts) =
        compact(&latest(Some("gone")), &[without_nested(&table(&rows_in))]).unwrap();
    assert_eq!(rows(&[left]), ["2 5 null false"]);
    let shown: Vec<(&str, u64, u64)> =
        counts.iter().map(|step| (step.name.as_str(), step.rows_in, step.rows_out)).collect();
    assert_eq!(shown, [("latest-by", 4, 2), ("delete-markers", 2, 1)]);
}

#[test]
fn a_first_value_keeps_the_order_that_it_won_by() {
    let row = |order, value: &str| (1, Some(order), Some(value.to_owned()), None, None, Vec::new());
    let step = Step::Aggregate(vec![
        fold("t", Fold::Min),
        fold("v", Fold::First { by: "t".to_owned() }),
        fold("gone", Fold::Max),
    ]);
    let of = |rows: &[Row]| without_nested(&table(rows));
    let before = compacted(&step, &[of(&[row(4, "4"), row(2, "2")])]);
    let after = compacted(&step, &[before, of(&[row(3, "3")])]);
    assert_eq!(rows(&[after]), ["1 2 2 null"]);
}

#[test]
fn orders_that_would_be_lost_and_columns_that_do_not_fit_are_refused() {
    let refused = |step: Step| {
        let columns = table(&[(1, None, None, None, None, Vec::new())]);
        compact(&step, &[columns]).unwrap_err().to_string()
    };
    let last_by = |by: &str, order: Fold| {
        let rest = ["gone", "m", "l", "a"].map(|column| match column {
            "gone" => fold(column, Fold::Max),
            "m" => fold(column, Fold::Map(MapFold::Max)),
            "l" => fold(column, Fold::Top { count: std::num::NonZeroU32::MIN }),
            _ => fold(column, Fold::Average),
        });
        let mut folds = vec![fold("t", order), fold("v", Fold::Last { by: by.to_owned() })];
        folds.extend(rest);
        refused(Step::Aggregate(folds))
    };
    insta::assert_snapshot!(last_by("t", Fold::Min), @r#"last of column "v" goes by "t", which must be folded by max: what won must keep the value it won by"#);
    insta::assert_snapshot!(last_by("T", Fold::Max), @r#"last column "T" is not in the table: columns are "k", "t", "v", "gone", "m", "l", "a"; did you mean "t"?"#);
    let by =
        |column: &str| Step::LatestBy { columns: vec![column.to_owned()], delete_marker: None };
    insta::assert_snapshot!(refused(by("k")), @r#"latest-by column "k" is a row key or named twice"#);
    insta::assert_snapshot!(refused(Step::LatestBy { columns: vec![], delete_marker: None }), @"latest-by needs the columns that order rows");
    assert!(refused(by("t")).starts_with("latest-by is not defined for column \"m\" of type Map"));
    let step = Step::Aggregate(vec![fold("t", Fold::Map(MapFold::Sum))]);
    insta::assert_snapshot!(refused(step), @r#"map_sum is not defined for column "t" of type Int64: it takes maps whose keys can be grouped"#);
}
