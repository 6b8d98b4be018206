//! Plugins that misbehave, and what the run says of them.

use std::{num::NonZeroUsize, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, BooleanArray, Int32Array, RecordBatch},
    datatypes::{DataType, Field, Schema},
};

use crate::{
    Chain, ChainConfig, ColumnFold, CompactError, FilterSpec, Fold, FoldFactory, GroupFold,
    Plugins, RowFilter, Step,
    testing::{full_text, integers, now, rows, texts},
};

/// A plugin that can be told to misbehave.
#[derive(Debug, Clone)]
struct Odd {
    columns: Vec<String>,
    behavior: &'static str,
}

impl RowFilter for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn keep(&self, batch: &RecordBatch) -> Result<BooleanArray, CompactError> {
        let rows = if self.behavior == "short" { 0 } else { batch.num_rows() };
        let column = batch.column(0);
        Ok((0..rows).map(|row| Some(column.is_valid(row))).collect())
    }
}

impl FoldFactory for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn open(&self, _column: &Field) -> Result<Box<dyn GroupFold>, CompactError> {
        Ok(Box::new(self.clone()))
    }
}

impl GroupFold for Odd {
    fn update(&mut self, _: &ArrayRef, _: &[u32], _: usize) -> Result<(), CompactError> {
        match self.behavior {
            "trap" => {
                let source = "out of fuel after 3 rows".into();
                Err(CompactError::Plugin { plugin: "odd".to_owned(), source })
            }
            _ => Ok(()),
        }
    }

    fn evaluate(&mut self) -> Result<ArrayRef, CompactError> {
        Ok(match self.behavior {
            "short" => integers([None::<i64>; 0]),
            "wrong-type" => texts(["x"]),
            _ => Arc::new(Int32Array::new_null(1)),
        })
    }

    fn size_bytes(&self) -> usize {
        0
    }
}

impl Plugins for Odd {
    fn filter(
        &self,
        _: &str,
        _: &str,
        _: lakebed_model::Instant,
    ) -> Result<Arc<dyn RowFilter>, CompactError> {
        Ok(Arc::new(self.clone()))
    }

    fn fold(&self, _: &str, _: &str) -> Result<Arc<dyn FoldFactory>, CompactError> {
        Ok(Arc::new(self.clone()))
    }
}

/// Runs one row through a plugin; the value column is a NOT NULL Int32.
fn run_plugin(step: Step, behavior: &'static str, column: &str) -> Result<Vec<String>, String> {
    let schema = Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("v", DataType::Int32, false),
    ]);
    let columns: Vec<ArrayRef> = vec![integers([1]), Arc::new(Int32Array::from(vec![5]))];
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap();
    let chain =
        Chain::validate(&ChainConfig { steps: vec![step] }, &schema, &["k".to_owned()]).unwrap();
    let attempt = || {
        let odd = Odd { columns: vec![column.to_owned()], behavior };
        let mut run = chain.bind(now(), &odd)?.start(NonZeroUsize::MIN)?;
        let mut batches: Vec<RecordBatch> = run.push(&batch)?.into_iter().collect();
        for folded in run.finish()? {
            batches.push(folded?);
        }
        Ok(rows(&batches))
    };
    attempt().map_err(|error: CompactError| full_text(&error))
}

#[test]
fn plugin_filters_are_checked_before_they_are_believed() {
    let step =
        || Step::Filter(FilterSpec::Plugin { name: "odd".to_owned(), config_json: String::new() });
    assert_eq!(run_plugin(step(), "good", "v"), Ok(vec!["1 5".to_owned()]));
    let refused = |behavior, column| run_plugin(step(), behavior, column).unwrap_err();
    assert_eq!(refused("short", "v"), "filter \"odd\" answered for 0 rows: expected 1");
    assert_eq!(
        refused("good", "K"),
        "odd column \"K\" is not in the table: columns are \"k\", \"v\"; did you mean \"k\"?"
    );
}

#[test]
fn plugin_folds_are_checked_before_they_are_believed() {
    let refused = |behavior| {
        let fold = Fold::Plugin { name: "odd".to_owned(), config_json: String::new() };
        let step = Step::Aggregate(vec![ColumnFold { column: "v".to_owned(), fold }]);
        run_plugin(step, behavior, "v").unwrap_err()
    };
    assert_eq!(refused("short"), "fold \"odd\" gave 0 results for column \"v\": expected 1");
    assert_eq!(refused("wrong-type"), "fold \"odd\" gave Utf8 for column \"v\": expected Int32");
    assert_eq!(refused("nulls"), "fold \"odd\" gave 1 nulls for column \"v\", which is NOT NULL");
    assert_eq!(refused("trap"), "run plugin \"odd\"\ncaused by: out of fuel after 3 rows");
}
