//! `lakebed compact TABLE --iterators STRING` or `--chain FILE.toml`

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use lakebed_compact::{ChainConfig, ColumnFold, CompactError, FilterSpec, Fold, NullRule, Step};
use lakebed_layout::{CompactOptions, CompactReport, LayoutError, compact};
use lakebed_model::TableName;
use serde::Deserialize;
use serde_json::json;

use super::Output;
use crate::{config::parse_duration_ms, error::Error, pipeline::Pipeline};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The table
    table: String,
    /// Iterators in string form: `<filter>,<aggregation>`, for instance
    /// `ageoff='updated_at','86400','q'=SUM`
    #[arg(
        long,
        value_name = "STRING",
        conflicts_with = "chain",
        required_unless_present = "chain"
    )]
    iterators: Option<String>,
    /// Iterators from a TOML file
    #[arg(long, value_name = "FILE")]
    chain: Option<PathBuf>,
    /// Columns that identify a row, for aggregations (else [compact.row_keys] of the configuration)
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    row_keys: Vec<String>,
}

/// A chain file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainFile {
    #[serde(default)]
    row_keys: Vec<String>,
    iterator: Vec<IteratorEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum IteratorEntry {
    AgeOff {
        filter: AgeOffName,
        column: String,
        period: String,
        #[serde(default)]
        nulls: Nulls,
    },
    Plugin {
        plugin: String,
        #[serde(default)]
        config: toml::Table,
    },
    Aggregate {
        aggregate: BTreeMap<String, FoldEntry>,
    },
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum AgeOffName {
    #[serde(rename = "age-off")]
    AgeOff,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Nulls {
    #[default]
    Drop,
    Keep,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum FoldEntry {
    Native(String),
    Plugin {
        plugin: String,
        #[serde(default)]
        config: toml::Table,
    },
}

pub(super) async fn run(
    pipeline: &Pipeline,
    arguments: Arguments,
    output: &mut Output,
) -> Result<(), Error> {
    let table = pipeline.lake.named(&arguments.table);
    pipeline.lake.location(&table)?;
    let (chain, mut row_keys) = match (&arguments.iterators, &arguments.chain) {
        (Some(text), _) => (parse_string(&table, text)?, Vec::new()),
        (None, Some(path)) => read_chain(path)?,
        (None, None) => (ChainConfig::default(), Vec::new()),
    };
    if !arguments.row_keys.is_empty() {
        row_keys = arguments.row_keys;
    } else if row_keys.is_empty() {
        row_keys =
            pipeline.config.compact.row_keys.get(&arguments.table).cloned().unwrap_or_default();
    }
    let options = CompactOptions {
        chain,
        row_keys,
        default_file_size: pipeline.config.file_size()?,
        now: pipeline.now,
    };
    let rows = pipeline.progress.rewrites(pipeline.lake.meter());
    let report = compact(&pipeline.lake, &pipeline.lake, &table, &options).await?;
    drop(rows);
    print(&report, output)
}

fn parse_string(table: &TableName, text: &str) -> Result<ChainConfig, Error> {
    text.parse().map_err(|error: lakebed_compact::SyntaxError| {
        tracing::error!("in the iterators\n{}", error.caret(text));
        Error::Layout(LayoutError::Chain {
            table: table.to_string(),
            source: Box::new(CompactError::Syntax(error)),
        })
    })
}

fn read_chain(path: &PathBuf) -> Result<(ChainConfig, Vec<String>), Error> {
    let content = |reason: String| Error::Content { path: path.clone(), reason };
    let text = std::fs::read_to_string(path).map_err(|source| Error::File {
        action: "read iterators",
        path: path.clone(),
        source,
    })?;
    let file: ChainFile = toml::from_str(&text).map_err(|error| content(error.to_string()))?;
    let steps = file.iterator.into_iter().map(step).collect::<Result<_, _>>().map_err(content)?;
    Ok((ChainConfig { steps }, file.row_keys))
}

fn step(entry: IteratorEntry) -> Result<Step, String> {
    Ok(match entry {
        IteratorEntry::AgeOff { filter: AgeOffName::AgeOff, column, period, nulls } => {
            Step::Filter(FilterSpec::AgeOff {
                column,
                period_seconds: parse_duration_ms(&period)? / 1_000,
                nulls: match nulls {
                    Nulls::Drop => NullRule::Drop,
                    Nulls::Keep => NullRule::Keep,
                },
            })
        }
        IteratorEntry::Plugin { plugin, config } => {
            Step::Filter(FilterSpec::Plugin { name: plugin, config_json: json(&config)? })
        }
        IteratorEntry::Aggregate { aggregate } => Step::Aggregate(
            aggregate
                .into_iter()
                .map(|(column, entry)| Ok(ColumnFold { column, fold: fold(entry)? }))
                .collect::<Result<_, String>>()?,
        ),
    })
}

fn fold(entry: FoldEntry) -> Result<Fold, String> {
    match entry {
        FoldEntry::Native(name) => Fold::native(&name).ok_or_else(|| {
            format!(
                "`{name}` is no aggregation: expected one of {}",
                lakebed_compact::ALL_FOLDS.join(", ")
            )
        }),
        FoldEntry::Plugin { plugin, config } => {
            Ok(Fold::Plugin { name: plugin, config_json: json(&config)? })
        }
    }
}

fn json(table: &toml::Table) -> Result<String, String> {
    serde_json::to_string(table).map_err(|error| error.to_string())
}

fn print(report: &CompactReport, output: &mut Output) -> Result<(), Error> {
    for warning in &report.warnings {
        tracing::warn!("{warning}");
    }
    if output.is_json() {
        let steps: Vec<_> = report
            .steps
            .iter()
            .map(|step| {
                json!({
                    "name": step.name, "rows_in": step.rows_in, "rows_out": step.rows_out,
                    "null_rows_dropped": step.null_rows_dropped,
                })
            })
            .collect();
        return output.document(&json!({
            "table": report.table.as_str(),
            "version": report.version,
            "committed": report.committed,
            "rows_in": report.rows_in,
            "rows_out": report.rows_out,
            "files_in": report.files_in,
            "bytes_in": report.bytes_in.0,
            "files_out": report.files_out,
            "bytes_out": report.bytes_out.0,
            "steps": steps,
            "warnings": report.warnings,
        }));
    }
    for step in &report.steps {
        output.line(format!("{}: {} rows in, {} out", step.name, step.rows_in, step.rows_out))?;
    }
    if !report.committed {
        return output.line(format!("{}: nothing to do, no commit", report.table));
    }
    output.line(format!(
        "{}: {} rows became {}, {} files ({}) became {} ({}) in version {}",
        report.table,
        report.rows_in,
        report.rows_out,
        report.files_in,
        report.bytes_in,
        report.files_out,
        report.bytes_out,
        report.version
    ))
}
