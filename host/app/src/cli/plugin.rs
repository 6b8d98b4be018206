//! `lakebed plugin list · check · inspect`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lakebed_sandbox::{Inspection, World};
use serde::Serialize;

use super::{Output, output::Align};
use crate::{
    error::Error,
    pipeline::{Pipeline, blocking},
};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the shipped plugins and which of them the configuration uses
    List,
    /// Admit a component as the host would: imports, world, description, configuration
    Check {
        /// The component
        file: PathBuf,
        /// The world it is for; without it, every world it exports
        #[arg(long, value_name = "WORLD")]
        world: Option<String>,
        /// Its configuration, a JSON object
        #[arg(long, value_name = "JSON", default_value = "{}")]
        settings: String,
    },
    /// Show digest, size, worlds, imports and exports without running anything
    Inspect {
        /// The component
        file: PathBuf,
    },
}

#[derive(Debug, Serialize)]
struct ListedView {
    name: String,
    world: String,
    version: String,
    digest: String,
    in_use: bool,
    doc: String,
}

#[derive(Debug, Serialize)]
struct InspectionView {
    digest: String,
    size_bytes: usize,
    worlds: Vec<String>,
    imports: Vec<String>,
    exports: Vec<String>,
}

pub(super) async fn run(
    pipeline: &Pipeline,
    arguments: Arguments,
    output: &mut Output,
) -> Result<(), Error> {
    match arguments.verb {
        Verb::List => list(pipeline, output).await,
        Verb::Check { file, world, settings } => {
            check(pipeline, file, world.as_deref(), settings, output).await
        }
        Verb::Inspect { file } => {
            let inspection = inspect(pipeline, file).await?;
            let view = InspectionView {
                digest: inspection.digest,
                size_bytes: inspection.size_bytes,
                worlds: inspection.worlds.iter().map(ToString::to_string).collect(),
                imports: inspection.imports,
                exports: inspection.exports,
            };
            if output.is_json() {
                return output.document(&view);
            }
            output.line(format!("digest   {}", view.digest))?;
            output.line(format!("size     {} bytes", view.size_bytes))?;
            output.line(format!("worlds   {}", or_none(&view.worlds)))?;
            output.line(format!("imports  {}", or_none(&view.imports)))?;
            output.line(format!("exports  {}", or_none(&view.exports)))
        }
    }
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

async fn list(pipeline: &Pipeline, output: &mut Output) -> Result<(), Error> {
    let chosen = &pipeline.config.plugins;
    let in_use = [&chosen.scorer, &chosen.cost_model, &chosen.drift_meter];
    let mut views = Vec::new();
    for guest in lakebed_bundle::guests() {
        let world = World::parse(guest.world).ok_or_else(|| Error::Usage {
            what: format!("load plugin `{}`: no world `{}`", guest.name, guest.world),
            help: "rebuild Lakebed".to_owned(),
        })?;
        let sandbox = pipeline.plugins.sandbox().clone();
        let settings = example_settings(guest.name);
        let plugin = blocking("loading plugins", move || {
            Ok(sandbox.admit(world, guest.name, guest.wasm, settings)?)
        })
        .await?;
        let short = guest.name.strip_prefix(&format!("{}-", guest.world));
        views.push(ListedView {
            name: guest.name.to_owned(),
            world: guest.world.to_owned(),
            version: plugin.version().to_owned(),
            digest: plugin.digest().to_owned(),
            in_use: in_use.iter().any(|n| n.as_str() == guest.name || Some(n.as_str()) == short),
            doc: first_sentence(plugin.doc()),
        });
    }
    if output.is_json() {
        return output.document(&views);
    }
    let rows = views
        .into_iter()
        .map(|view| {
            let digest = view.digest.chars().take(19).collect();
            let mark = if view.in_use { "yes" } else { "" };
            vec![view.name, view.version, digest, mark.to_owned(), view.doc]
        })
        .collect();
    let header = [
        ("plugin", Align::Left),
        ("version", Align::Left),
        ("digest", Align::Left),
        ("in use", Align::Left),
        ("what it does", Align::Left),
    ];
    output.table(&header, rows)
}

fn first_sentence(doc: &str) -> String {
    let line = doc.lines().next().unwrap_or_default();
    let end = line.find(['.', ':', ';']).unwrap_or(line.len());
    line[..end].to_owned()
}

/// A filter has no defaults for its column; listing it needs some.
fn example_settings(guest: &str) -> &'static str {
    match guest {
        "row-filter-age-off" => r#"{"column":"updated_at","period_seconds":86400}"#,
        "row-filter-hash-sample" => r#"{"column":"user_id","keep_per_million":100000}"#,
        "row-filter-visibility" => r#"{"column":"label","authorizations":["red"]}"#,
        _ => "{}",
    }
}

fn read(file: &PathBuf) -> Result<Vec<u8>, Error> {
    std::fs::read(file).map_err(|source| Error::File {
        action: "read plugin",
        path: file.clone(),
        source,
    })
}

async fn inspect(pipeline: &Pipeline, file: PathBuf) -> Result<Inspection, Error> {
    let wasm = read(&file)?;
    let sandbox = pipeline.plugins.sandbox().clone();
    let label = file.display().to_string();
    blocking("inspecting", move || Ok(sandbox.inspect(&label, &wasm)?)).await
}

async fn check(
    pipeline: &Pipeline,
    file: PathBuf,
    world: Option<&str>,
    settings: String,
    output: &mut Output,
) -> Result<(), Error> {
    let worlds = match world {
        Some(name) => vec![World::parse(name).ok_or_else(|| unknown_world(name))?],
        None => inspect(pipeline, file.clone()).await?.worlds,
    };
    // A component without a world of ours is refused with what it exports instead.
    let worlds = if worlds.is_empty() { vec![World::Scorer] } else { worlds };
    let wasm = read(&file)?;
    for world in worlds {
        let sandbox = pipeline.plugins.sandbox().clone();
        let (label, wasm, settings) = (file.display().to_string(), wasm.clone(), settings.clone());
        let plugin =
            blocking("checking", move || Ok(sandbox.admit(world, &label, &wasm, &settings)?))
                .await?;
        if output.is_json() {
            output.json_line(&crate::view::PluginView::with_world(&plugin))?;
        } else {
            output.line(format!(
                "ok: {} {} is a {world}, imports nothing, {}",
                plugin.name(),
                plugin.version(),
                plugin.digest()
            ))?;
        }
    }
    Ok(())
}

fn unknown_world(name: &str) -> Error {
    let known: Vec<&str> = World::ALL.into_iter().map(World::as_str).collect();
    Error::Usage {
        what: format!("check for world `{name}`: there is no such world"),
        help: format!("worlds are: {}", known.join(", ")),
    }
}
