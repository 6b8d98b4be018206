//! `lakebed explain TABLE --where SQL [--under a,b]`

use std::collections::BTreeSet;

use clap::Args;
use lakebed_layout::{Lake, ddl};
use lakebed_model::{Bytes, FileView};
use lakebed_plan::{
    Layout, LoggedScan, TableEvidence,
    benefit::{BenefitModel, Reading, Replay, Simulate},
};
use serde::Serialize;

use super::{Output, output::Align};
use crate::{
    error::Error,
    pipeline::{Pipeline, quoted},
};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The table
    table: String,
    /// The predicate, as it would stand after WHERE
    #[arg(long = "where", value_name = "SQL")]
    predicate: String,
    /// Also predict what it would read if the table were clustered by these columns
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    under: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ExplainView {
    table: String,
    predicate: String,
    ranges: Vec<RangeView>,
    /// Columns that must be null.
    nulls: Vec<String>,
    phases: Vec<PhaseView>,
}

#[derive(Debug, Serialize)]
struct RangeView {
    column: String,
    range: String,
}

#[derive(Debug, Serialize)]
struct PhaseView {
    phase: &'static str,
    files: u64,
    bytes: u64,
    /// Whether a query ran, the log was read, or a sample was simulated.
    basis: &'static str,
}

pub(super) async fn run(
    pipeline: &Pipeline,
    arguments: Arguments,
    output: &mut Output,
) -> Result<(), Error> {
    let table = pipeline.lake.named(&arguments.table);
    let snapshot = pipeline.lake.snapshot(&table).await?;
    let under = ddl::resolved(&snapshot, &arguments.under, ddl::KeyTypes::Plain)?;
    let (scan, nulls) = pipeline.predicate(&table, &arguments.predicate).await?;
    let columns: BTreeSet<String> =
        scan.ranges.keys().cloned().chain(under.iter().cloned()).collect();
    let options = pipeline.sample_options()?;
    let evidence = pipeline.lake.evidence(&table, &columns, &options).await?;
    let with_nulls = holding_nulls(&evidence, &nulls);
    let sql =
        format!("SELECT count(*) FROM {} WHERE {}", quoted(table.as_str()), arguments.predicate);
    let counted = Box::pin(pipeline.lake.session().run(&sql)).await;
    let measured = counted.map_err(|source| Error::Predicate {
        predicate: arguments.predicate.clone(),
        table: arguments.table.clone(),
        source: Box::new(source),
    })?;
    let measured = measured.cost;

    let mut phases = vec![
        PhaseView {
            phase: "in the table",
            files: u64::try_from(evidence.files.len()).unwrap_or(u64::MAX),
            bytes: evidence.bytes.0,
            basis: "log",
        },
        phase(
            "left by file statistics",
            "log",
            reading(&Replay, &with_nulls, &scan, &evidence.current),
        ),
        PhaseView {
            phase: "read by the engine",
            files: measured.files_read,
            bytes: measured.bytes_read,
            basis: "measured",
        },
    ];
    if !under.is_empty() {
        let simulated = reading(&Simulate, &evidence, &scan, &Layout::clustered(under));
        let basis = if nulls.is_empty() {
            "simulated on a sample"
        } else {
            "simulated on a sample, without the null tests"
        };
        phases.push(phase("left under the other keys", basis, simulated));
    }
    let view = ExplainView {
        table: arguments.table,
        predicate: arguments.predicate,
        ranges: scan
            .ranges
            .iter()
            .map(|(column, range)| RangeView {
                column: column.clone(),
                range: range.range.to_string(),
            })
            .collect(),
        nulls: nulls.into_iter().collect(),
        phases,
    };
    print(&view, output)
}

fn reading(
    model: &dyn BenefitModel,
    evidence: &TableEvidence,
    scan: &LoggedScan,
    layout: &Layout,
) -> Reading {
    let scans = [scan.clone()];
    model.prepare(evidence, &scans).readings(layout).first().copied().unwrap_or_default()
}

fn phase(phase: &'static str, basis: &'static str, reading: Reading) -> PhaseView {
    PhaseView {
        phase,
        files: Bytes::from_f64(reading.files.ceil()).0,
        bytes: Bytes::from_f64(reading.bytes).0,
        basis,
    }
}

/// Keeps the files that may hold a null in every one of some columns.
fn holding_nulls(evidence: &TableEvidence, nulls: &BTreeSet<String>) -> TableEvidence {
    let may_hold = |file: &FileView, column: &String| {
        file.spans.get(column).and_then(|span| span.null_count) != Some(0)
    };
    let mut kept = evidence.clone();
    kept.files.retain(|file| nulls.iter().all(|column| may_hold(file, column)));
    kept
}

fn print(view: &ExplainView, output: &mut Output) -> Result<(), Error> {
    if output.is_json() {
        return output.document(view);
    }
    if view.ranges.is_empty() && view.nulls.is_empty() {
        output.line("no column is compared with constants: file statistics cannot help")?;
    }
    for column in &view.nulls {
        output.line(format!("{column} is null"))?;
    }
    for range in &view.ranges {
        output.line(format!("{} in {}", range.column, range.range))?;
    }
    let rows = view
        .phases
        .iter()
        .map(|phase| {
            vec![
                phase.phase.to_owned(),
                phase.files.to_string(),
                Bytes(phase.bytes).to_string(),
                phase.basis.to_owned(),
            ]
        })
        .collect();
    let header = [
        ("files", Align::Left),
        ("count", Align::Right),
        ("bytes", Align::Right),
        ("how known", Align::Left),
    ];
    output.table(&header, rows)
}
