//! `lakebed experiment NAME [--quick] [--seed N] [--out DIR]`

use std::path::{Path, PathBuf};

use clap::Args;

use super::{Output, output::Align};
use crate::{
    error::Error,
    experiment::{
        ALL_EXPERIMENTS, Experiment, ExperimentReport, ExperimentSettings, Machine,
        report::{plot_file, shown, wanted},
    },
    view::ExperimentView,
};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Which one: ajlo, collect, drift, iterators, planner, simulation, tpch22, windows
    #[arg(value_name = "NAME")]
    name: String,
    /// Use a small input, to see that it works: the figures say little
    #[arg(long)]
    quick: bool,
    /// Start random choices from this number
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Write the table (NAME.md), the raw numbers (NAME.json) and plots (NAME-….svg) into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[expect(clippy::future_not_send, reason = "an experiment is awaited where it was started")]
pub(super) async fn run(arguments: Arguments, output: &mut Output) -> Result<(), Error> {
    let experiment = find(&arguments.name)?;
    let settings = ExperimentSettings { quick: arguments.quick, seed: arguments.seed };
    let report = experiment.run(settings).await?;
    let machine = Machine::here();
    let view = ExperimentView::new(experiment.name(), settings, machine, &report);
    if let Some(folder) = &arguments.out {
        let table = report.markdown(experiment.name(), machine);
        write(folder, &format!("{}.md", experiment.name()), &table)?;
        let numbers = serde_json::to_string_pretty(&view).map_err(std::io::Error::from)?;
        write(folder, &format!("{}.json", experiment.name()), &(numbers + "\n"))?;
        for plot in &report.plots {
            write(folder, &plot_file(experiment.name(), plot), &plot.svg())?;
        }
    }
    if output.is_json() { output.document(&view) } else { print(&report, output) }
}

fn find(name: &str) -> Result<&'static dyn Experiment, Error> {
    let found = ALL_EXPERIMENTS.iter().find(|experiment| experiment.name() == name);
    found.copied().ok_or_else(|| Error::Usage {
        what: format!("run experiment `{name}`: there is no such experiment"),
        help: format!(
            "choose one of: {}",
            ALL_EXPERIMENTS
                .iter()
                .map(|experiment| format!("{} ({})", experiment.name(), experiment.about()))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    })
}

fn write(folder: &Path, file: &str, text: &str) -> Result<(), Error> {
    let path = folder.join(file);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
    written.map_err(|source| Error::File { action: "write", path, source })
}

fn print(report: &ExperimentReport, output: &mut Output) -> Result<(), Error> {
    let rows = report
        .figures
        .iter()
        .map(|(figure, value)| {
            let goal = report.goals.iter().find(|goal| goal.figure() == *figure);
            let met = goal.and_then(|goal| report.is_met(*goal));
            vec![
                (*figure).to_owned(),
                shown(*value),
                goal.map_or_else(String::new, |goal| wanted(*goal)),
                met.map_or("", |met| if met { "yes" } else { "NO" }).to_owned(),
            ]
        })
        .collect();
    let header = [
        ("figure", Align::Left),
        ("value", Align::Right),
        ("goal", Align::Right),
        ("met", Align::Left),
    ];
    output.table(&header, rows)?;
    for note in &report.notes {
        output.line(format!("note: {note}"))?;
    }
    Ok(())
}
