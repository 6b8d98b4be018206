//! `iterators`: what filters and folds cost a compaction, native and as guests.
//!
//! 1. Two tables, four files each, every file sorted by key: narrow rows (key, ts, value, label of 50
//!    kinds), and rows of 20 columns. Each key has two rows.
//! 2. Each chain compacts a table that is as written, a few times; the middle time counts. Plain
//!    compaction is the same with a chain of no steps: it reads, writes and discards.
//! 3. A ratio is a chain's time over that of plain compaction of the same table; a guest's is over
//!    that of the native iterator. What native and guest leave is compared.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch, StringArray},
    datatypes::{DataType, Field, Schema},
};
use lakebed_compact::{ChainConfig, ColumnFold, FilterSpec, Fold, InvalidRule, NullRule, Step};
use lakebed_lake::NewTable;
use lakebed_layout::{CompactOptions, CompactReport, compact};
use lakebed_model::{Instant, TableName};
use lakebed_sandbox::World;
use serde_json::json;

use super::{
    Experiment, ExperimentReport, ExperimentSettings, Goal, Running,
    dice::Dice,
    lakes::OwnLake,
    plot::{Plot, Series, Shape},
    replay::now,
    report::markdown_table,
};
use crate::{error::Error, pipeline::blocking};

const ROWS: usize = 20_000_000;
const WIDE_ROWS: usize = 2_000_000;
const QUICK_SHARE: usize = 200;
const FILES: usize = 4;
const RUNS: usize = 3;
const LABELS: usize = 50;
/// Columns beside the four of narrow rows.
const MORE_COLUMNS: usize = 16;
/// Seconds that rows are spread over, back from now.
const SPREAD_SECONDS: usize = 1_000_000;
/// The age at which a row goes: one in ten is older.
const PERIOD_SECONDS: u64 = 900_000;

/// The experiment.
#[derive(Debug, Clone, Copy)]
pub struct Iterators;

impl Experiment for Iterators {
    fn name(&self) -> &'static str {
        "iterators"
    }

    fn about(&self) -> &'static str {
        "what filters and folds cost a compaction, native and as guests"
    }

    fn run(&self, settings: ExperimentSettings) -> Running<'_> {
        Box::pin(measure(settings))
    }
}

/// The names of a table's figures.
struct Names {
    table: &'static str,
    rows_per_second: &'static str,
    age_off: [&'static str; 2],
    visibility: &'static str,
    fold: [&'static str; 2],
}

const NARROW: Names = Names {
    table: "narrow",
    rows_per_second: "narrow_plain_rows_per_second",
    age_off: ["narrow_age_off_ratio", "narrow_age_off_wasm_ratio"],
    visibility: "narrow_visibility_ratio",
    fold: ["narrow_sum_ratio", "narrow_sum_wasm_ratio"],
};
const WIDE: Names = Names {
    table: "wide",
    rows_per_second: "wide_plain_rows_per_second",
    age_off: ["wide_age_off_ratio", "wide_age_off_wasm_ratio"],
    visibility: "wide_visibility_ratio",
    fold: ["wide_sum_ratio", "wide_sum_wasm_ratio"],
};

/// One chain's middle time, and what it did.
struct Timed {
    seconds: f64,
    report: CompactReport,
}

async fn measure(settings: ExperimentSettings) -> Result<ExperimentReport, Error> {
    let share = if settings.quick { QUICK_SHARE } else { 1 };
    let mut report = ExperimentReport::default();
    for (names, rows, more) in [(&NARROW, ROWS, 0), (&WIDE, WIDE_ROWS, MORE_COLUMNS)] {
        Box::pin(measure_table(names, rows / share, more, settings, &mut report)).await?;
    }
    report.measured("rows_narrow", in_units(ROWS / share));
    report.measured("rows_wide", in_units(WIDE_ROWS / share));
    report.goals = vec![
        Goal::AtMost("narrow_age_off_ratio", 1.05),
        Goal::AtMost("narrow_age_off_wasm_ratio", 1.10),
        Goal::AtMost("narrow_visibility_ratio", 1.10),
        Goal::AtMost("narrow_sum_ratio", 1.15),
        Goal::AtMost("narrow_sum_wasm_ratio", 1.10),
    ];
    Ok(report)
}

async fn measure_table(
    names: &Names,
    rows: usize,
    more: usize,
    settings: ExperimentSettings,
    report: &mut ExperimentReport,
) -> Result<(), Error> {
    let mut lake = OwnLake::empty().await?;
    write_table(&mut lake, rows, more, settings.seed).await?;
    let runs = if settings.quick { 1 } else { RUNS };
    let plain = time(&lake, runs, Vec::new()).await?;
    let age_off = time(&lake, runs, vec![age_off()]).await?;
    let age_off_wasm = time(&lake, runs, vec![age_off_guest()]).await?;
    let visibility = time(&lake, runs, vec![visibility()]).await?;
    let fold = time(&lake, runs, vec![folds(more, Fold::Sum)]).await?;
    let guest = Fold::Plugin { name: "aggregator-sum".to_owned(), config_json: "{}".to_owned() };
    let fold_wasm = time(&lake, runs, vec![folds(more, guest)]).await?;
    for (native, guest) in [(&age_off, &age_off_wasm), (&fold, &fold_wasm)] {
        if native.report.rows_out != guest.report.rows_out {
            let (native, guest) = (native.report.rows_out, guest.report.rows_out);
            return Err(Error::Mismatch {
                what: format!("a guest left {guest} rows where the native iterator left {native}"),
            });
        }
    }
    report.measured(names.rows_per_second, in_units(rows) / plain.seconds);
    report.measured(names.age_off[0], age_off.seconds / plain.seconds);
    report.measured(names.age_off[1], age_off_wasm.seconds / age_off.seconds);
    report.measured(names.visibility, visibility.seconds / plain.seconds);
    report.measured(names.fold[0], fold.seconds / plain.seconds);
    report.measured(names.fold[1], fold_wasm.seconds / fold.seconds);
    let all = [
        ("plain", &plain),
        ("age-off", &age_off),
        ("age-off, guest", &age_off_wasm),
        ("visibility", &visibility),
        ("sum by key", &fold),
        ("sum by key, guest", &fold_wasm),
    ];
    let lines: Vec<Vec<String>> = all
        .iter()
        .map(|(name, timed)| {
            vec![
                (*name).to_owned(),
                timed.report.rows_out.to_string(),
                format!("{:.3}", timed.seconds),
                format!("{:.1}", timed.seconds * 1e9 / in_units(rows)),
                format!("{:.3}", timed.seconds / plain.seconds),
            ]
        })
        .collect();
    let header = ["chain", "rows left", "seconds", "ns a row", "× plain"];
    let table = markdown_table(&header, &lines);
    report.sections.push(format!("## {}: {rows} rows\n\n{table}", names.table));
    let chains = all.iter().map(|(name, _)| (*name).to_owned()).collect();
    let seconds = all.iter().map(|(_, timed)| timed.seconds).collect();
    report.plots.push(Plot {
        name: names.table.to_owned(),
        title: format!("Compaction of {rows} {} rows", names.table),
        x_label: "chain".to_owned(),
        y_label: "seconds".to_owned(),
        shape: Shape::Bars(chains, vec![Series::new("seconds", seconds)]),
        goal: None,
    });
    Ok(())
}

fn table_name() -> TableName {
    TableName::new("readings")
}

/// Compacts copies of a table, and returns the middle time.
async fn time(lake: &OwnLake, runs: usize, steps: Vec<Step>) -> Result<Timed, Error> {
    let mut all = Vec::with_capacity(runs);
    for _ in 0..runs {
        let copy = Box::pin(lake.copy()).await?;
        compile_guests(&copy).await?;
        let options = CompactOptions {
            chain: ChainConfig { steps: steps.clone() },
            row_keys: vec!["key".to_owned()],
            default_file_size: copy.pipeline.config.file_size()?,
            now: lake.pipeline.now,
        };
        let tables = &copy.pipeline.lake;
        let started = now();
        let report = Box::pin(compact(tables, tables, &table_name(), &options)).await?;
        all.push(Timed { seconds: started.elapsed().as_secs_f64(), report });
    }
    all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(all.swap_remove(runs / 2))
}

/// Compiles the guests beforehand, so that runs compare iterators and not a compiler.
async fn compile_guests(lake: &OwnLake) -> Result<(), Error> {
    let plugins = lake.pipeline.plugins.clone();
    blocking("loading plugins", move || {
        let settings = r#"{"column":"ts","period_seconds":1}"#;
        plugins.load(World::RowFilter, "row-filter-age-off", Some(settings))?;
        plugins.load(World::Aggregator, "aggregator-sum", Some("{}")).map(drop)
    })
    .await
}

fn age_off() -> Step {
    Step::Filter(FilterSpec::AgeOff {
        column: "ts".to_owned(),
        period_seconds: PERIOD_SECONDS,
        nulls: NullRule::Drop,
    })
}

fn age_off_guest() -> Step {
    let config = json!({"column": "ts", "period_seconds": PERIOD_SECONDS});
    Step::Filter(FilterSpec::Plugin {
        name: "row-filter-age-off".to_owned(),
        config_json: config.to_string(),
    })
}

/// Sees four labels in five.
fn visibility() -> Step {
    Step::Filter(FilterSpec::Visibility {
        column: "label".to_owned(),
        authorizations: vec![vec!["red".to_owned(), "blue".to_owned()]],
        invalid: InvalidRule::Fail,
        nulls: NullRule::Drop,
    })
}

fn folds(more: usize, value: Fold) -> Step {
    let fold = |column: &str, fold| ColumnFold { column: column.to_owned(), fold };
    let rest = (0..more).map(|number| fold(&more_name(number), Fold::Max));
    let first = [fold("ts", Fold::Max), fold("value", value), fold("label", Fold::Min)];
    Step::Aggregate(first.into_iter().chain(rest).collect())
}

fn more_name(number: usize) -> String {
    format!("c{number:02}")
}

async fn write_table(lake: &mut OwnLake, rows: usize, more: usize, seed: u64) -> Result<(), Error> {
    let instant = lake.pipeline.now;
    let mut dice = Dice::new(seed);
    let location = lake.folder().join("readings").to_string_lossy().into_owned();
    let per_file = rows / FILES;
    let mut first = Some(NewTable {
        name: table_name(),
        location,
        schema: schema(more),
        cluster_by: vec!["key".to_owned()],
        ..NewTable::default()
    });
    for file in 0..FILES {
        let batch = readings(file, per_file, more, instant, &mut dice)?;
        match first.take() {
            Some(new) => {
                let files = vec![vec![batch]];
                Box::pin(lake.pipeline.lake.create_table(new, files, None, instant)).await?;
            }
            None => {
                let tables = &lake.pipeline.lake;
                Box::pin(tables.append(&table_name(), vec![batch], instant)).await?;
            }
        }
    }
    Ok(())
}

fn schema(more: usize) -> Arc<Schema> {
    let number = |name: &str| Field::new(name, DataType::Int64, true);
    let mut fields = vec![
        number("key"),
        number("ts"),
        number("value"),
        Field::new("label", DataType::Utf8, true),
    ];
    fields.extend((0..more).map(|place| number(&more_name(place))));
    Arc::new(Schema::new(fields))
}

/// A file's rows by key: keys of two neighboring files are the same, so each is met twice.
fn readings(
    file: usize,
    rows: usize,
    more: usize,
    now: Instant,
    dice: &mut Dice,
) -> Result<RecordBatch, Error> {
    let now_seconds = now.epoch_ms().div_euclid(1_000);
    let labels: Vec<String> = (0..LABELS)
        .map(|number| match number % 5 {
            0 => format!("red&\"hidden {number}\""),
            1 => format!("(red|green)&(blue|\"group {number}\")"),
            _ => format!("red|\"group {number}\""),
        })
        .collect();
    let first_key = file / 2 * rows;
    let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    let keys = Int64Array::from_iter_values((0..rows).map(|row| number(first_key + row)));
    let ages: Vec<i64> = (0..rows).map(|_| number(dice.below(SPREAD_SECONDS))).collect();
    let times = Int64Array::from_iter_values(ages.into_iter().map(|age| now_seconds - age));
    let mut numbers = |sides: usize| -> ArrayRef {
        let drawn: Vec<i64> = (0..rows).map(|_| number(dice.below(sides))).collect();
        Arc::new(Int64Array::from(drawn))
    };
    let values = numbers(1_000_000);
    let rest: Vec<ArrayRef> = (0..more).map(|place| numbers(1 << (place + 4))).collect();
    let drawn: Vec<&str> = (0..rows).map(|_| dice.one_of(&labels).as_str()).collect();
    let mut columns: Vec<ArrayRef> =
        vec![Arc::new(keys), Arc::new(times), values, Arc::new(StringArray::from(drawn))];
    columns.extend(rest);
    Ok(RecordBatch::try_new(schema(more), columns)?)
}

#[expect(clippy::cast_precision_loss, reason = "counts of rows are below 2^53")]
fn in_units(count: usize) -> f64 {
    count as f64
}
