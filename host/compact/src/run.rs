//! Pushes batches through a chain.
//!
//! Filters run batch by batch. With an aggregation the surviving rows are folded at once, so that
//! memory grows with the number of groups ([`ChainRun::size_bytes`]) and not of rows, and leave at
//! the end in key order. Without one they leave as they come.

use std::{fmt, num::NonZeroUsize, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, BooleanArray, StructArray},
    compute::{cast, filter_record_batch},
    datatypes::{Field, Schema},
    record_batch::RecordBatch,
};

use crate::{
    BoundChain, CompactError, GroupFold, Warning,
    bind::{BoundAggregation, BoundFilter, BoundFold, BoundFolding},
    chain::LATEST_BY,
    fold::{End, WinningRows},
    folded::{Folded, FoldedBatches, assemble, check_result, in_group},
    group_table::GroupTable,
};

/// The name under which the aggregation is counted.
const AGGREGATE: &str = "aggregate";
/// The name under which the rows of deleted keys are counted.
const DELETE_MARKERS: &str = "delete-markers";

/// How many rows a step saw and let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepCounts {
    /// The step's name.
    pub name: String,
    /// Rows that reached the step.
    pub rows_in: u64,
    /// Rows that left it; for an aggregation, one per group.
    pub rows_out: u64,
    /// Rows among the dropped that a filter could not judge because their value is null.
    pub null_rows_dropped: u64,
}

/// One pass over a set of rows. After an error it is of no use any more.
pub struct ChainRun {
    chain: BoundChain,
    batch_rows_max: NonZeroUsize,
    counts: Vec<StepCounts>,
    folding: Option<Folding>,
    warnings: Vec<Warning>,
}

struct Folding {
    table: GroupTable,
    state: FoldingState,
    /// The group of each row of the batch at hand.
    groups: Vec<u32>,
}

/// What is kept of the columns that are no row keys.
enum FoldingState {
    /// In the order of the aggregation's folds.
    Each(Vec<Box<dyn GroupFold>>),
    Latest(WinningRows),
}

impl ChainRun {
    pub(crate) fn new(
        chain: BoundChain,
        batch_rows_max: NonZeroUsize,
    ) -> Result<Self, CompactError> {
        let folding = chain
            .aggregation
            .as_ref()
            .map(|aggregation| Folding::new(aggregation, &chain.schema))
            .transpose()?;
        let latest =
            chain.aggregation.as_ref().and_then(|aggregation| match &aggregation.folding {
                BoundFolding::Latest(latest) => Some(latest),
                BoundFolding::Each(_) => None,
            });
        let deletes = latest.is_some_and(|latest| latest.delete_marker.is_some());
        let names = chain.filters.iter().map(|bound| bound.filter.name());
        let counts = names
            .chain(folding.as_ref().map(Folding::name))
            .chain(deletes.then_some(DELETE_MARKERS))
            .map(|name| StepCounts {
                name: name.to_owned(),
                rows_in: 0,
                rows_out: 0,
                null_rows_dropped: 0,
            })
            .collect();
        Ok(Self { chain, batch_rows_max, counts, folding, warnings: Vec::new() })
    }

    /// Takes a batch with the table's columns, and returns the rows that leave the chain now.
    ///
    /// Nothing leaves when the chain aggregates or when no row of the batch stays.
    ///
    /// # Errors
    /// Returns an error if the batch has other columns, or if a filter or a fold fails.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<Option<RecordBatch>, CompactError> {
        check_columns(&self.chain.schema, &batch.schema())?;
        let mut rows = batch.clone();
        for (step, bound) in self.chain.filters.iter().enumerate() {
            let counts = &mut self.counts[step];
            if counts.rows_in == 0 && rows.num_rows() > 0 {
                self.warnings.extend(doubt(bound, &rows)?);
            }
            rows = apply_filter(bound, &rows, counts)?;
        }
        if rows.num_rows() == 0 {
            return Ok(None);
        }
        match (&mut self.folding, &self.chain.aggregation) {
            (Some(folding), Some(aggregation)) => {
                folding.absorb(aggregation, &rows)?;
                // It follows the filters.
                if let Some(counts) = self.counts.get_mut(self.chain.filters.len()) {
                    counts.rows_in += rows.num_rows() as u64;
                    counts.rows_out = folding.table.len() as u64;
                }
                Ok(None)
            }
            _ => {
                let columns = rows.columns().to_vec();
                assemble(&self.chain.schema, columns, rows.num_rows()).map(Some)
            }
        }
    }

    /// Returns the counts so far, step by step; unequal ends tell that the chain changed something.
    #[must_use]
    pub fn counts(&self) -> &[StepCounts] {
        &self.counts
    }

    /// Returns what the rows so far give reason to ask the chain's owner.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns the memory that the groups hold; zero without an aggregation.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.folding.as_ref().map_or(0, |folding| {
            folding.table.size_bytes()
                + folding.groups.capacity() * size_of::<u32>()
                + folding.state.size_bytes()
        })
    }

    /// Ends the run and returns the folded rows, sorted by row keys (nulls last); without an
    /// aggregation there are none left.
    ///
    /// # Errors
    /// Returns an error if a result does not fit its column, naming the column and the row key.
    pub fn finish(mut self) -> Result<FoldedBatches, CompactError> {
        let state_bytes = self.size_bytes();
        let rows_in = self.counts.first().map_or(0, |counts| counts.rows_in);
        let groups = self.folding.as_ref().map_or(0, |folding| folding.table.len());
        let schema = Arc::clone(&self.chain.schema);
        let folded = match (self.folding.take(), self.chain.aggregation.take()) {
            (Some(mut folding), Some(aggregation)) => {
                let results = folding.results(&aggregation, &schema)?;
                let mut folded = Folded::new(folding.table, aggregation, results);
                if let Some(counts) = self.counts.get_mut(self.chain.filters.len() + 1) {
                    counts.rows_in = folded.row_count() as u64;
                    folded.drop_deleted();
                    counts.rows_out = folded.row_count() as u64;
                }
                Some(folded)
            }
            _ => None,
        };
        let rows_out = self.counts.last().map_or(0, |counts| counts.rows_out);
        tracing::debug!(rows_in, rows_out, groups, state_bytes, "chain run finished");
        Ok(FoldedBatches::new(schema, self.batch_rows_max, folded, self.counts))
    }
}

impl Folding {
    const fn name(&self) -> &'static str {
        match self.state {
            FoldingState::Each(_) => AGGREGATE,
            FoldingState::Latest(_) => LATEST_BY,
        }
    }

    fn new(aggregation: &BoundAggregation, schema: &Schema) -> Result<Self, CompactError> {
        let key_types = aggregation.row_keys.iter().map(|key| schema.field(*key).data_type());
        let state = match &aggregation.folding {
            BoundFolding::Each(folds) => FoldingState::Each(
                folds
                    .iter()
                    .map(|fold| fold.factory.open(schema.field(fold.column)))
                    .collect::<Result<_, _>>()?,
            ),
            BoundFolding::Latest(latest) => {
                let columns = latest.columns.iter();
                let types: Vec<_> =
                    columns.map(|index| schema.field(*index).data_type().clone()).collect();
                FoldingState::Latest(WinningRows::new(&types, End::Last)?)
            }
        };
        Ok(Self { table: GroupTable::new(key_types)?, state, groups: Vec::new() })
    }

    fn absorb(
        &mut self,
        aggregation: &BoundAggregation,
        rows: &RecordBatch,
    ) -> Result<(), CompactError> {
        let keys: Vec<ArrayRef> =
            aggregation.row_keys.iter().map(|key| Arc::clone(rows.column(*key))).collect();
        self.table.assign(&keys, &mut self.groups)?;
        let total_groups = self.table.len();
        match (&mut self.state, &aggregation.folding) {
            (FoldingState::Each(folds), BoundFolding::Each(bound)) => {
                for (fold, bound) in folds.iter_mut().zip(bound) {
                    fold.update(&fold_values(bound, rows)?, &self.groups, total_groups)?;
                }
                Ok(())
            }
            (FoldingState::Latest(winners), BoundFolding::Latest(latest)) => {
                let columns: Vec<ArrayRef> =
                    latest.columns.iter().map(|index| Arc::clone(rows.column(*index))).collect();
                winners.update(&columns, &self.groups, total_groups)
            }
            _ => unreachable!("the state was made for this folding"),
        }
    }

    /// Evaluates every fold and checks what it gives.
    fn results(
        &mut self,
        aggregation: &BoundAggregation,
        schema: &Schema,
    ) -> Result<Vec<ArrayRef>, CompactError> {
        let (folds, bound) = match (&mut self.state, &aggregation.folding) {
            (FoldingState::Each(folds), BoundFolding::Each(bound)) => (folds, bound),
            (FoldingState::Latest(winners), BoundFolding::Latest(latest)) => {
                let columns = winners.take_columns()?.into_iter().zip(&latest.columns);
                // The row format forgets encodings such as dictionaries.
                let encode = |(column, index): (ArrayRef, &usize)| {
                    cast(&column, schema.field(*index).data_type())
                        .map_err(CompactError::arrow("encode the latest rows as the table does"))
                };
                return columns.map(encode).collect();
            }
            _ => unreachable!("the state was made for this folding"),
        };
        let mut results = Vec::with_capacity(folds.len());
        for (fold, BoundFold { column, factory, .. }) in folds.iter_mut().zip(bound) {
            let result = fold.evaluate().map_err(|error| match error.group() {
                Some(group) => in_group(&self.table, aggregation, schema, group, error),
                None => error,
            })?;
            check_result(&result, factory.name(), schema.field(*column), self.table.len())?;
            results.push(result);
        }
        Ok(results)
    }
}

impl FoldingState {
    fn size_bytes(&self) -> usize {
        match self {
            Self::Each(folds) => folds.iter().map(|fold| fold.size_bytes()).sum(),
            Self::Latest(winners) => winners.size_bytes(),
        }
    }
}

/// Returns what a fold is given: its own column, or a struct of it and the others it reads.
fn fold_values(bound: &BoundFold, rows: &RecordBatch) -> Result<ArrayRef, CompactError> {
    let own = rows.column(bound.column);
    if bound.others.is_empty() {
        return Ok(Arc::clone(own));
    }
    let schema = rows.schema();
    let places = std::iter::once(&bound.column).chain(&bound.others);
    let pairs = places.map(|index| (schema.field(*index), Arc::clone(rows.column(*index))));
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) =
        pairs.map(|(field, column)| (field.clone(), column)).unzip();
    let values = StructArray::try_new(fields.into(), columns, None)
        .map_err(CompactError::arrow("put the columns of a fold together"))?;
    Ok(Arc::new(values))
}

impl fmt::Debug for ChainRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainRun")
            .field("counts", &self.counts)
            .field("size_bytes", &self.size_bytes())
            .finish_non_exhaustive()
    }
}

fn apply_filter(
    bound: &BoundFilter,
    rows: &RecordBatch,
    counts: &mut StepCounts,
) -> Result<RecordBatch, CompactError> {
    let answer = bound.filter.keep(&project(bound, rows)?)?;
    if answer.len() != rows.num_rows() {
        return Err(CompactError::FilterLength {
            filter: bound.filter.name().to_owned(),
            expected_rows: rows.num_rows(),
            found_rows: answer.len(),
        });
    }
    let kept = answer.true_count();
    counts.rows_in += rows.num_rows() as u64;
    counts.rows_out += kept as u64;
    counts.null_rows_dropped += answer.null_count() as u64;
    if kept == rows.num_rows() {
        return Ok(rows.clone());
    }
    select(rows, &answer)
}

fn select(rows: &RecordBatch, answer: &BooleanArray) -> Result<RecordBatch, CompactError> {
    filter_record_batch(rows, answer).map_err(CompactError::arrow("drop filtered rows"))
}

fn doubt(bound: &BoundFilter, rows: &RecordBatch) -> Result<Option<Warning>, CompactError> {
    let warning = bound.filter.doubt(&project(bound, rows)?);
    if let Some(warning) = &warning {
        tracing::warn!(column = warning.column(), "{warning}");
    }
    Ok(warning)
}

fn project(bound: &BoundFilter, rows: &RecordBatch) -> Result<RecordBatch, CompactError> {
    rows.project(&bound.columns).map_err(CompactError::arrow("select a filter's columns"))
}

/// Compares names and types; whether nulls are allowed is checked where batches are assembled.
fn check_columns(expected: &Schema, found: &Schema) -> Result<(), CompactError> {
    let describe = |field: Option<&Arc<Field>>| {
        field.map_or_else(
            || "no further column".to_owned(),
            |field| format!("column \"{}\" of type {}", field.name(), field.data_type()),
        )
    };
    let (expected, found) = (expected.fields(), found.fields());
    for index in 0..expected.len().max(found.len()) {
        let (wanted, given) = (expected.get(index), found.get(index));
        let is_same = wanted
            .zip(given)
            .is_some_and(|(a, b)| a.name() == b.name() && a.data_type() == b.data_type());
        if !is_same {
            return Err(CompactError::BatchSchema {
                expected: describe(wanted),
                found: describe(given),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroUsize, sync::Arc};

    use arrow::{
        array::{ArrayRef, DictionaryArray, RecordBatch},
        datatypes::Int8Type,
    };

    use super::StepCounts;
    use crate::{
        Chain, ChainConfig, FilterSpec, NoPlugins, NullRule, Step, Warning,
        testing::{batch, compact, full_text, integers, now, rows, start, texts},
    };

    #[track_caller]
    fn check(chain: &str, row_keys: &[&str], batches: &[RecordBatch], expected: &[&str]) {
        assert_eq!(rows(&compact(chain, row_keys, batches).unwrap()), expected);
    }

    fn keyed(keys: &[&str], times: &[i64], values: &[i64]) -> RecordBatch {
        batch(vec![
            ("key", texts(keys.iter().copied())),
            ("ts", integers(times.iter().copied())),
            ("value", integers(values.iter().copied())),
        ])
    }

    #[test]
    fn an_empty_chain_lets_duplicates_be() {
        let batches = [batch(vec![("k", integers([1, 2]))]), batch(vec![("k", integers([2, 3]))])];
        check("", &["k"], &batches, &["1", "2", "2", "3"]);
    }

    #[test]
    fn rows_with_equal_keys_fold_across_batches() {
        let keys = &["a", "b"];
        let table = |a: [i64; 3], b: [i64; 3], value: [i64; 3]| {
            batch(vec![("a", integers(a)), ("b", integers(b)), ("v", integers(value))])
        };
        let batches = [
            table([1, 2, 3], [10, 12, 13], [100, 200, 300]),
            table([3, 2, 1], [13, 12, 11], [3_000, 2_000, 1_000]),
        ];
        let expected = ["1 10 100", "1 11 1000", "2 12 2000", "3 13 3000"];
        check(",v=max", keys, &batches, &expected);
    }

    #[test]
    fn age_off_runs_before_the_aggregation() {
        // Now is 1000 s and the period 500 s: the row at 500 goes, the one at 501 stays.
        let batches = [
            keyed(&["A", "A", "B"], &[501, 500, 3], &[10, 20, 30]),
            keyed(&["D", "B", "D"], &[900, 4, 1_000], &[10, 40, 20]),
        ];
        let expected = ["A 501 10", "D 1000 30"];
        check("ageoff=ts,500,ts=max,value=sum", &["key"], &batches, &expected);
    }

    #[test]
    fn groups_of_every_shape_come_out_once_and_in_order() {
        for keys in ["", "A", "AB", "AAB", "ABB", "AABCC", "ABBC", "CBABC"] {
            let keys: Vec<&str> = keys.split("").filter(|key| !key.is_empty()).collect();
            let ones = vec![1; keys.len()];
            let mut groups = keys.clone();
            groups.sort_unstable();
            groups.dedup();
            let expected: Vec<String> = groups
                .iter()
                .map(|group| {
                    format!("{group} 1 {}", keys.iter().filter(|key| *key == group).count())
                })
                .collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            check(",ts=min,value=sum", &["key"], &[keyed(&keys, &ones, &ones)], &expected);
        }
    }

    #[test]
    fn counts_tell_what_each_step_dropped_and_why() {
        let rows = batch(vec![
            ("k", integers([1, 1, 1, 2, 2])),
            ("ts", integers([Some(999), None, Some(1), Some(999), Some(999)])),
        ]);
        let mut run = start("ageoff=ts,10,ts=max", &["k"], &rows, 8192).unwrap();
        assert_eq!(run.push(&rows).unwrap(), None);
        assert_eq!(run.push(&rows.slice(0, 1)).unwrap(), None);
        let counts = |name: &str, rows_in, rows_out, null_rows_dropped| StepCounts {
            name: name.to_owned(),
            rows_in,
            rows_out,
            null_rows_dropped,
        };
        assert_eq!(run.counts(), [counts("age-off", 6, 4, 1), counts("aggregate", 4, 2, 0)]);
        assert!(run.size_bytes() > 0);
        assert_eq!(run.finish().unwrap().row_count(), 2);
    }

    #[test]
    fn a_run_whose_rows_all_go_ends_without_batches() {
        let rows = keyed(&["A"], &[1], &[1]);
        for chain in ["ageoff=ts,1", "ageoff=ts,1,ts=max,value=sum"] {
            let mut run = start(chain, &["key"], &rows, 8192).unwrap();
            assert_eq!(run.push(&rows).unwrap(), None);
            assert_eq!(run.finish().unwrap().count(), 0);
        }
    }

    #[test]
    fn a_key_stays_when_its_sum_is_zero() {
        let batches = [keyed(&["A", "A"], &[1, 1], &[10, -10])];
        check(",ts=max,value=sum", &["key"], &batches, &["A 1 0"]);
    }

    #[test]
    fn folded_batches_are_no_larger_than_asked_and_sorted_with_nulls_last() {
        let keys = integers((0..25).rev().map(|key| (key > 0).then_some(key)));
        let rows_in = batch(vec![("v", integers(vec![1; 25])), ("k", keys)]);
        let mut run = start(",v=sum", &["k"], &rows_in, 10).unwrap();
        run.push(&rows_in).unwrap();
        let batches: Vec<RecordBatch> = run.finish().unwrap().map(Result::unwrap).collect();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [10, 10, 5]);
        let mut expected: Vec<String> = (1..25).map(|key| format!("1 {key}")).collect();
        expected.push("1 null".to_owned());
        assert_eq!(rows(&batches), expected);
        assert_eq!(batches[0].schema(), rows_in.schema());
    }

    #[test]
    fn keys_keep_the_encoding_of_their_column() {
        let keys: DictionaryArray<Int8Type> =
            vec![Some("b"), None, Some("a"), Some("b")].into_iter().collect();
        let rows_in =
            batch(vec![("k", Arc::new(keys) as ArrayRef), ("n", integers([None::<i64>; 4]))]);
        let folded = compact(",n=count", &["k"], std::slice::from_ref(&rows_in)).unwrap();
        assert_eq!(rows(&folded), ["a 1", "b 2", "null 1"]);
        assert_eq!(folded[0].schema(), rows_in.schema());
    }

    #[test]
    fn overflow_names_the_column_and_the_row_key() {
        let rows = batch(vec![
            ("tenant", texts(["x", "y", "y"])),
            ("day", integers([Some(1), None, None])),
            ("q", integers([1, i64::MAX, 1])),
        ]);
        let error = compact(",q=sum", &["tenant", "day"], &[rows]).unwrap_err();
        insta::assert_snapshot!(full_text(&error), @r#"
        fold the rows with row key tenant=y, day=null
        caused by: sum of column "q" does not fit Int64 in 1 of 2 groups: the first result is 9223372036854775808
        "#);
    }

    #[test]
    fn batches_with_other_columns_are_refused() {
        let table = keyed(&["A"], &[1], &[1]);
        let refused = |rows: &RecordBatch| {
            let mut run = start("ageoff=ts,1", &[], &table, 8192).unwrap();
            run.push(rows).unwrap_err().to_string()
        };
        assert_eq!(
            refused(&table.project(&[0, 2]).unwrap()),
            "batch does not have the table's columns: expected column \"ts\" of type Int64, found column \"value\" of type Int64"
        );
        assert_eq!(
            refused(&table.project(&[0, 1]).unwrap()),
            "batch does not have the table's columns: expected column \"value\" of type Int64, found no further column"
        );
    }

    #[test]
    fn milliseconds_in_a_column_of_seconds_are_reported_once() {
        let rows = batch(vec![("ts", integers([1_800_000_000_000]))]);
        let mut run = start("ageoff=ts,1", &[], &rows, 8192).unwrap();
        assert!(run.push(&rows).unwrap().is_some());
        assert!(run.push(&rows).unwrap().is_some());
        assert_eq!(run.warnings(), [Warning::FarFuture { column: "ts".to_owned() }]);
    }

    #[test]
    fn kept_nulls_pass_the_age_off() {
        let steps = vec![Step::Filter(FilterSpec::AgeOff {
            column: "ts".to_owned(),
            period_seconds: 1,
            nulls: NullRule::Keep,
        })];
        let table = batch(vec![("ts", integers([None, Some(1)]))]);
        let chain = Chain::validate(&ChainConfig { steps }, &table.schema(), &[]).unwrap();
        let mut run = chain.bind(now(), &NoPlugins).unwrap().start(NonZeroUsize::MIN).unwrap();
        assert_eq!(rows(&[run.push(&table).unwrap().unwrap()]), ["null"]);
    }
}
