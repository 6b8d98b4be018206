//! `lakebed compact TABLE --iterators STRING` or `--chain FILE.toml`

use std::{collections::BTreeMap, num::NonZeroU32, path::PathBuf};

use clap::Args;
use lakebed_compact::{
    ChainConfig, ColumnFold, CompactError, FilterSpec, Fold, InvalidRule, NullRule, Step,
};
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
    iterator: Vec<toml::Table>,
}

/// `filter = "age-off"`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgeOffEntry {
    column: String,
    period: String,
    #[serde(default)]
    nulls: Nulls,
}

/// `filter = "visibility"`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VisibilityEntry {
    column: String,
    authorizations: Authorizations,
    #[serde(default)]
    invalid: Invalid,
    #[serde(default)]
    nulls: Nulls,
}

/// `filter = "predicate"`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PredicateEntry {
    keep: String,
}

/// `latest_by = ["COLUMN"]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LatestEntry {
    latest_by: Columns,
    delete_marker: Option<String>,
}

/// One column, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a column, or a list of columns")]
enum Columns {
    One(String),
    Several(Vec<String>),
}

/// `plugin = "NAME"`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginEntry {
    plugin: String,
    #[serde(default)]
    config: toml::Table,
}

/// `aggregate = { COLUMN = "FOLD" }`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AggregateEntry {
    aggregate: BTreeMap<String, FoldEntry>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Nulls {
    #[default]
    Drop,
    Keep,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Invalid {
    #[default]
    Fail,
    Drop,
}

/// One set of authorizations, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a list of authorizations, or a list of such lists")]
enum Authorizations {
    One(Vec<String>),
    Several(Vec<Vec<String>>),
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "an aggregation's name, { first = \"COLUMN\" }, { last = \"COLUMN\" }, { top = N }, or { plugin = \"NAME\" }"
)]
enum FoldEntry {
    Native(String),
    First {
        first: String,
    },
    Last {
        last: String,
    },
    Top {
        top: NonZeroU32,
    },
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
    let steps: Result<Vec<Step>, String> = (1..)
        .zip(file.iterator)
        .map(|(number, entry)| {
            step(entry).map_err(|reason| format!("iterator {number}: {}", reason.trim_end()))
        })
        .collect();
    Ok((ChainConfig { steps: steps.map_err(content)? }, file.row_keys))
}

fn step(mut entry: toml::Table) -> Result<Step, String> {
    if entry.contains_key("plugin") {
        let PluginEntry { plugin, config } = fields(entry)?;
        return Ok(Step::Filter(FilterSpec::Plugin { name: plugin, config_json: json(&config)? }));
    }
    if entry.contains_key("latest_by") {
        let LatestEntry { latest_by, delete_marker } = fields(entry)?;
        let columns = match latest_by {
            Columns::One(column) => vec![column],
            Columns::Several(columns) => columns,
        };
        return Ok(Step::LatestBy { columns, delete_marker });
    }
    if entry.contains_key("aggregate") {
        let AggregateEntry { aggregate } = fields(entry)?;
        let folds = aggregate.into_iter();
        let folds = folds.map(|(column, entry)| Ok(ColumnFold { column, fold: fold(entry)? }));
        return Ok(Step::Aggregate(folds.collect::<Result<_, String>>()?));
    }
    let known = lakebed_compact::ALL_FILTERS.join("`, `");
    let name = match entry.remove("filter") {
        Some(toml::Value::String(name)) => name,
        Some(other) => return Err(format!("filter is {other}, expected one of `{known}`")),
        None => {
            return Err(format!(
                "expected one of filter = (`{known}`), plugin = \"NAME\", aggregate = {{ … }}, latest_by = \"COLUMN\""
            ));
        }
    };
    let null_rule = |nulls| match nulls {
        Nulls::Drop => NullRule::Drop,
        Nulls::Keep => NullRule::Keep,
    };
    Ok(Step::Filter(match name.as_str() {
        "age-off" => {
            let AgeOffEntry { column, period, nulls } = fields(entry)?;
            let period_seconds = parse_duration_ms(&period)? / 1_000;
            FilterSpec::AgeOff { column, period_seconds, nulls: null_rule(nulls) }
        }
        "predicate" => {
            let PredicateEntry { keep } = fields(entry)?;
            FilterSpec::Predicate { keep }
        }
        "visibility" => {
            let VisibilityEntry { column, authorizations, invalid, nulls } = fields(entry)?;
            let authorizations = match authorizations {
                Authorizations::One(set) => vec![set],
                Authorizations::Several(sets) => sets,
            };
            let invalid = match invalid {
                Invalid::Fail => InvalidRule::Fail,
                Invalid::Drop => InvalidRule::Drop,
            };
            FilterSpec::Visibility { column, authorizations, invalid, nulls: null_rule(nulls) }
        }
        other => return Err(format!("`{other}` is no filter: expected one of `{known}`")),
    }))
}

/// Reads what an iterator's table says besides its kind.
fn fields<T: serde::de::DeserializeOwned>(entry: toml::Table) -> Result<T, String> {
    entry.try_into().map_err(|error: toml::de::Error| error.to_string())
}

fn fold(entry: FoldEntry) -> Result<Fold, String> {
    match entry {
        FoldEntry::First { first } => Ok(Fold::First { by: first }),
        FoldEntry::Last { last } => Ok(Fold::Last { by: last }),
        FoldEntry::Top { top } => Ok(Fold::Top { count: top }),
        FoldEntry::Native(name) => Fold::native(&name).ok_or_else(|| {
            if ["first", "last", "top"].contains(&name.as_str()) {
                return format!("`{name}` needs more: write {{ first = \"COLUMN\" }}, {{ last = \"COLUMN\" }} or {{ top = N }}");
            }
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
