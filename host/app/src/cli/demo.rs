//! `lakebed demo [--scale-factor F] [--dir DIR] [--keep]`

use std::path::PathBuf;

use clap::Args;
use lakebed_model::Bytes;

use super::{
    Global, Output, graph,
    output::{Align, parse_summary},
    plan, set_up,
};
use crate::{
    config::Config,
    error::Error,
    experiment::{
        demo::{DemoReport, run as run_demo, templates},
        replay::{now, ratio},
    },
};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// TPC-H scale factor; the log's key ranges are those of 0.1
    #[arg(long, default_value_t = 0.1, value_name = "F")]
    scale_factor: f64,
    /// Put the lake into this folder and leave it there
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Leave the lake in its temporary folder
    #[arg(long)]
    keep: bool,
}

pub(super) async fn run(
    global: &Global,
    arguments: Arguments,
    output: &mut Output,
) -> Result<(), Error> {
    let started = now();
    if !(0.001..=100.0).contains(&arguments.scale_factor) {
        return Err(Error::Usage {
            what: format!("generate TPC-H at scale factor {}", arguments.scale_factor),
            help: "choose a scale factor between 0.001 and 100".to_owned(),
        });
    }
    let (folder, temporary) = folder(&arguments)?;
    let mut config = Config::load(global.config.as_deref())?;
    config.lake.folder = Some(folder.clone());
    config.tables.clear();
    let mut pipeline = set_up(config, global).await?;
    let mut report = Box::pin(run_demo(&mut pipeline, &folder, arguments.scale_factor)).await?;
    report.view.folder = temporary.is_none().then(|| folder.display().to_string());
    if output.is_json() {
        output.document(&report.view)?;
    } else {
        print(&report, output)?;
        output.line(format!("{:.1} s in all", started.elapsed().as_secs_f64()))?;
        match &temporary {
            None => output.line(format!("the lake is in {}", folder.display()))?,
            Some(_) => output.line("the lake is gone; --dir DIR keeps it")?,
        }
    }
    let changed = report.view.queries.iter().filter(|query| !query.same_result).count();
    if changed > 0 || !report.view.compaction.same_rows {
        return Err(Error::Mismatch {
            what: format!(
                "the demo: {changed} of {} answers changed, compactions equal: {}",
                report.view.queries.len(),
                report.view.compaction.same_rows
            ),
        });
    }
    Ok(())
}

/// The folder for the lake, and what deletes it at the end unless it is to stay.
fn folder(arguments: &Arguments) -> Result<(PathBuf, Option<tempfile::TempDir>), Error> {
    if let Some(dir) = &arguments.dir {
        let fail = |source| Error::File { action: "create", path: dir.clone(), source };
        std::fs::create_dir_all(dir).map_err(fail)?;
        return Ok((std::path::absolute(dir).map_err(fail)?, None));
    }
    let fail = |source| Error::File { action: "create", path: std::env::temp_dir(), source };
    let temporary = tempfile::Builder::new().prefix("lakebed-demo-").tempdir().map_err(fail)?;
    let path = temporary.path().to_owned();
    if arguments.keep {
        return Ok((temporary.keep(), None));
    }
    Ok((path, Some(temporary)))
}

fn print(report: &DemoReport, output: &mut Output) -> Result<(), Error> {
    output.line("── What the Spark event log says\n")?;
    output.line(parse_summary(&report.workload.report))?;
    graph::print_edges(&report.graph, output)?;
    output.line("\n── The plan\n")?;
    plan::print_plan(&report.plan, output)?;
    output.line("\n── The same queries before and after, measured\n")?;
    print_queries(report, output)?;
    output.line("\n── Drift: a later log brings a new join\n")?;
    super::drift::print_drift(&report.drift, output)?;
    for action in &report.replan.actions {
        output.line(format!("• {}", action.because))?;
    }
    output.line("\n── Iterator compaction: the native filter and the same filter as a guest\n")?;
    let compaction = &report.view.compaction;
    output.line(format!(
        "{}\n{} rows became {} (native, {} ms) and {} (WebAssembly, {} ms): {}",
        compaction.iterators,
        compaction.rows_in,
        compaction.rows_native,
        compaction.ms_native,
        compaction.rows_wasm,
        compaction.ms_wasm,
        if compaction.same_rows { "the same rows" } else { "NOT the same rows" }
    ))?;
    output.line("")?;
    print_headline(report, output)
}

fn print_queries(report: &DemoReport, output: &mut Output) -> Result<(), Error> {
    let rows = templates(report)
        .into_iter()
        .map(|template| {
            vec![
                template.label,
                template.runs.to_string(),
                format!("{} → {}", template.files_before, template.files_after),
                format!(
                    "{:.0} %",
                    100.0 * (1.0 - ratio(template.files_after, template.files_total))
                ),
                format!("{} → {}", template.bytes_before, template.bytes_after),
                format!("{} → {}", template.ms_before, template.ms_after),
                if template.different == 0 { "yes" } else { "NO" }.to_owned(),
            ]
        })
        .collect();
    let header = [
        ("statement", Align::Left),
        ("runs", Align::Right),
        ("files read", Align::Right),
        ("skipped", Align::Right),
        ("bytes read", Align::Right),
        ("ms", Align::Right),
        ("same answer", Align::Left),
    ];
    output.table(&header, rows)
}

fn print_headline(report: &DemoReport, output: &mut Output) -> Result<(), Error> {
    let view = &report.view;
    let sum = |figure: fn(&crate::view::DemoQueryView) -> u64| -> u64 {
        view.queries.iter().map(figure).sum()
    };
    let rewritten: u64 = view.tables.iter().map(|table| table.rewritten_bytes).sum();
    let (bytes_before, bytes_after) = (sum(|q| q.bytes_before), sum(|q| q.bytes_after));
    let same = view.queries.iter().filter(|query| query.same_result).count();
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let rows = vec![
        vec![
            "files skipped (mean over statements)".to_owned(),
            percent(view.skipping_rate_before),
            percent(view.skipping_rate_after),
        ],
        vec![
            "  of statements with joins".to_owned(),
            String::new(),
            percent(view.skipping_rate_after_joins),
        ],
        vec![
            "bytes read".to_owned(),
            Bytes(bytes_before).to_string(),
            format!("{} ({})", Bytes(bytes_after), percent(view.bytes_ratio)),
        ],
        vec![
            "time of all statements".to_owned(),
            format!("{} ms", sum(|q| q.ms_before)),
            format!("{} ms", sum(|q| q.ms_after)),
        ],
        vec!["bytes rewritten once".to_owned(), String::new(), Bytes(rewritten).to_string()],
        vec![
            "equal answers".to_owned(),
            String::new(),
            format!("{same} of {}", view.queries.len()),
        ],
    ];
    let title = format!("{} statements", view.queries.len());
    let header = [(title.as_str(), Align::Left), ("before", Align::Right), ("after", Align::Right)];
    output.table(&header, rows)
}
