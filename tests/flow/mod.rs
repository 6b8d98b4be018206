//! From query history to clustered tables, through the command.

mod apply;
mod demo;
mod graph;
mod history;
mod own_history;
mod plan;
mod privacy;
mod readings;
mod records;
mod watch;

use serde_json::Value;

use crate::support::{Run, lakebed, project};

const W1: &str = "examples/logs/w1";
const W3: &str = "examples/logs/w3";
const W1_FLIPS: &str = "tests/data/logs/w1-flips";

/// Runs a verb on one of the project's logs in a folder.
#[track_caller]
fn on_log(folder: &std::path::Path, verb: &str, log: &str, more: &[&str]) -> Run {
    let log = project(log).to_string_lossy().into_owned();
    let mut arguments = vec![verb, log.as_str()];
    arguments.extend(more);
    lakebed(folder, &arguments)
}

/// Returns a list of names as one text.
fn names(value: &Value) -> String {
    let names = value.as_array().into_iter().flatten();
    names.filter_map(Value::as_str).collect::<Vec<_>>().join(",")
}

/// Returns `table keys` for every action of a plan.
fn actions(plan: &Value) -> Vec<String> {
    let actions = plan["actions"].as_array().into_iter().flatten();
    let action = |action: &Value| {
        let table = action["table"].as_str().unwrap_or_default();
        format!("{table} {}", names(&action["to"]["cluster_by"]))
    };
    actions.map(action).collect()
}
