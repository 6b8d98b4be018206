//! The command line: one file per verb, each parses, calls the pipeline and prints a view.

mod apply;
mod collect;
mod compact;
mod demo;
mod drift;
mod experiment;
mod explain;
mod graph;
mod interrupt;
mod output;
mod plan;
mod plugin;
mod sql;
mod usage;
mod watch;

use std::{path::PathBuf, process::ExitCode};

use clap::{ArgAction, Args, Parser, Subcommand, error::ErrorKind};
use lakebed_model::Bytes;

pub use output::Output;

use crate::{
    config::{Config, is_url, no_color, parse_duration_ms},
    error::Error,
    pipeline::Pipeline,
    progress::{Progress, Verbosity},
};

/// Stack of the engine's threads: guests run on their caller's stack.
const THREAD_STACK_BYTES: usize = 8 << 20;

/// Lays out Delta lakes by what their queries really do.
#[derive(Debug, Parser)]
#[command(name = "lakebed", version, about, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// Options of every verb.
#[derive(Debug, Clone, Args)]
struct Global {
    /// Print one JSON document (or JSON lines, where a verb says so) on standard output
    #[arg(long, global = true)]
    json: bool,
    /// Read this configuration instead of `lakebed.toml`
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Take the tables from the subfolders of this folder, a path or a URL (overrides the configuration)
    #[arg(long, global = true, value_name = "FOLDER")]
    lake: Option<PathBuf>,
    /// Memory of sorts, joins and rewrites before they spill to disk, such as `4GiB` (a quarter of
    /// the machine's by default)
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size)]
    memory_limit: Option<Bytes>,
    /// Folder that sorts, joins and rewrites spill to (the system's for temporary files by default)
    #[arg(long, global = true, value_name = "FOLDER")]
    spill_dir: Option<PathBuf>,
    /// Log more (`-v` stages, `-vv` decisions)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// No progress bars, errors only
    #[arg(short, long, global = true)]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the main job end to end on generated TPC-H tables and a real Spark event log
    Demo(demo::Arguments),
    /// Read query history into normalized records (with --json: JSON lines, the parse report last)
    Collect(collect::Arguments),
    /// Show which joins and filters the history holds, with F, D, C and score
    Graph(graph::Arguments),
    /// Plan layouts for the lake's tables within budgets, with reasons
    Plan(plan::Arguments),
    /// Carry out a plan, or print its statements
    Apply(apply::Arguments),
    /// The loop: compare the newest window with the one before, plan, apply within budget, verify
    Watch(watch::Arguments),
    /// Measure how far the joins of two histories are apart
    Drift(drift::Arguments),
    /// Tell which files and bytes a predicate reads now, or would under other keys
    Explain(explain::Arguments),
    /// Run statements: SELECT, ALTER TABLE … CLUSTER BY, OPTIMIZE [FULL], DESCRIBE DETAIL / HISTORY
    Sql(sql::Arguments),
    /// Compact a table with filters and aggregations
    Compact(compact::Arguments),
    /// List, check and inspect plugins
    Plugin(plugin::Arguments),
    /// Measure what Lakebed promises, on this machine
    Experiment(experiment::Arguments),
}

/// Runs the program and turns its result into an exit code.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            // The arguments could not be read, so this one is looked for by hand.
            let json = std::env::args_os().any(|argument| argument == "--json");
            if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                let _ = error.print();
            }
            return failed(&usage::error(&error), json);
        }
    };
    start_logging(&cli.global);
    let json = cli.global.json;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(THREAD_STACK_BYTES)
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(Box::pin(run(cli))),
        Err(error) => Err(Error::Output(error)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, json),
    }
}

fn failed(error: &Error, json: bool) -> ExitCode {
    output::print_error(error, json);
    ExitCode::from(error.remedy().0.exit_code())
}

#[expect(clippy::future_not_send, reason = "an experiment is awaited where it was started")]
async fn run(cli: Cli) -> Result<(), Error> {
    let Cli { global, verb } = cli;
    let mut output = Output::new(global.json);
    match verb {
        Verb::Demo(arguments) => Box::pin(demo::run(&global, arguments, &mut output)).await,
        Verb::Collect(arguments) => {
            collect::run(&pipeline(&global).await?, arguments, &mut output).await
        }
        Verb::Graph(arguments) => {
            graph::run(&pipeline(&global).await?, arguments, &mut output).await
        }
        Verb::Plan(arguments) => {
            Box::pin(plan::run(&pipeline(&global).await?, arguments, &mut output)).await
        }
        Verb::Apply(arguments) => {
            Box::pin(apply::run(&pipeline(&global).await?, arguments, &mut output)).await
        }
        Verb::Watch(arguments) => {
            Box::pin(watch::run(&mut pipeline(&global).await?, arguments, &mut output)).await
        }
        Verb::Drift(arguments) => {
            drift::run(&pipeline(&global).await?, arguments, &mut output).await
        }
        Verb::Explain(arguments) => {
            Box::pin(explain::run(&pipeline(&global).await?, arguments, &mut output)).await
        }
        Verb::Sql(arguments) => {
            Box::pin(sql::run(&pipeline(&global).await?, arguments, &mut output)).await
        }
        Verb::Compact(arguments) => {
            Box::pin(compact::run(&pipeline(&global).await?, arguments, &mut output)).await
        }
        Verb::Plugin(arguments) => {
            plugin::run(&pipeline(&global).await?, arguments, &mut output).await
        }
        Verb::Experiment(arguments) => experiment::run(arguments, &mut output).await,
    }
}

/// Sets up the pipeline as the options and the configuration say.
async fn pipeline(global: &Global) -> Result<Pipeline, Error> {
    let mut config = Config::load(global.config.as_deref())?;
    if let Some(folder) = &global.lake {
        config.lake.folder = Some(match is_url(&folder.to_string_lossy()) {
            true => folder.clone(),
            false => std::path::absolute(folder).map_err(|source| Error::File {
                action: "open lake",
                path: folder.clone(),
                source,
            })?,
        });
    }
    set_up(config, global).await
}

/// Sets up the pipeline of a configuration, and lets Ctrl-C stop what it writes.
async fn set_up(mut config: Config, global: &Global) -> Result<Pipeline, Error> {
    if let Some(memory) = global.memory_limit {
        config.engine.memory = Some(format!("{}B", memory.0));
    }
    if let Some(folder) = &global.spill_dir {
        config.engine.spill_folder = Some(std::path::absolute(folder).map_err(|source| {
            Error::File { action: "open folder to spill to", path: folder.clone(), source }
        })?);
    }
    let pipeline = Pipeline::new(config, progress(global)).await?;
    tokio::spawn(interrupt::watch(std::sync::Arc::clone(pipeline.lake.meter())));
    Ok(pipeline)
}

fn progress(global: &Global) -> Progress {
    Progress::new(if global.quiet { Verbosity::Quiet } else { Verbosity::Shown })
}

fn start_logging(global: &Global) {
    use tracing_subscriber::{EnvFilter, fmt};
    let level = match (global.quiet, global.verbose) {
        // What fails in a dependency comes back as an error of ours.
        (true, _) => "lakebed=error",
        (false, 0) => "lakebed=warn",
        (false, 1) => {
            "lakebed=info,lakebed_collect=info,lakebed_graph=info,lakebed_plan=info,lakebed_layout=info,lakebed_lake=info,warn"
        }
        (false, _) => {
            "lakebed=debug,lakebed_collect=debug,lakebed_graph=debug,lakebed_plan=debug,lakebed_layout=debug,lakebed_lake=debug,lakebed_sandbox=debug,warn"
        }
    };
    let _ = fmt()
        .with_env_filter(EnvFilter::new(level))
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false)
        .with_ansi(!no_color() && std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .try_init();
}

fn parse_size(text: &str) -> Result<Bytes, String> {
    Bytes::parse(text)
}

fn parse_window(text: &str) -> Result<u64, String> {
    parse_duration_ms(text)
}

/// The logs a verb reads, and how.
#[derive(Debug, Clone, Args)]
struct Sources {
    /// Query logs of any format that `collect` reads: Spark event logs in any of Spark's codecs, exports
    /// of Databricks, Snowflake, Trino, Athena, BigQuery, Redshift, DuckDB and OpenLineage as JSON, CSV
    /// or Parquet, rows of `ts` and `sql`, a lake where `lakebed sql` ran; files, folders of many,
    /// patterns, URLs (`s3://…`), or `-` for standard input
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<PathBuf>,
    /// Read the logs as this format instead of recognizing it
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Keep the statements of this long before the window's end, such as `7d`
    #[arg(long, visible_alias = "since", value_name = "DURATION", value_parser = parse_window)]
    window: Option<u64>,
    /// End the window this long before the newest statement
    #[arg(long, default_value = "0s", value_name = "DURATION", value_parser = parse_window, hide_default_value = true)]
    slide: u64,
    /// Let a statement this long before the window's end count half in the scores of joins
    #[arg(long, value_name = "DURATION", value_parser = parse_window)]
    half_life: Option<u64>,
    /// Fail (exit code 2) unless every line and every statement could be read
    #[arg(long)]
    strict: bool,
    /// Leave constants and names of people out of what is printed and stored
    #[arg(long)]
    redact: bool,
}

impl Sources {
    fn options(&self) -> lakebed_collect::CollectOptions {
        lakebed_collect::CollectOptions {
            format: self.format.clone(),
            window_ms: self.window,
            slide_ms: self.slide,
            half_life_ms: self.half_life,
            threads: None,
            redact: self.redact,
        }
    }

    /// Refuses a history that was not read in full, when that was asked for.
    fn check(&self, report: &lakebed_model::ParseReport) -> Result<(), Error> {
        if !self.strict || report.is_complete() {
            return Ok(());
        }
        Err(Error::Usage {
            what: format!("read all of the history: {}", output::losses(report).join(", ")),
            help: "mend the logs, or use what could be read by leaving out --strict".to_owned(),
        })
    }
}
