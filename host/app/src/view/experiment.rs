//! `experiment --json`

use std::collections::BTreeMap;

use serde::Serialize;

use crate::experiment::{ExperimentReport, ExperimentSettings, Goal, Machine};

/// `experiment NAME --json`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentView {
    experiment: String,
    seed: u64,
    quick: bool,
    machine: MachineView,
    figures: BTreeMap<String, f64>,
    goals: Vec<GoalView>,
    notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct MachineView {
    cores: usize,
    memory_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct GoalView {
    figure: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<f64>,
    /// Null when the figure was not measured.
    met: Option<bool>,
}

impl ExperimentView {
    /// Shows what an experiment found.
    #[must_use]
    pub fn new(
        name: &str,
        settings: ExperimentSettings,
        machine: Machine,
        report: &ExperimentReport,
    ) -> Self {
        let goal = |goal: &Goal| GoalView {
            figure: goal.figure().to_owned(),
            at_least: if let Goal::AtLeast(_, least) = goal { Some(*least) } else { None },
            at_most: if let Goal::AtMost(_, most) = goal { Some(*most) } else { None },
            met: report.is_met(*goal),
        };
        Self {
            experiment: name.to_owned(),
            seed: settings.seed,
            quick: settings.quick,
            machine: MachineView { cores: machine.cores, memory_bytes: machine.memory.0 },
            figures: report
                .figures
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect(),
            goals: report.goals.iter().map(goal).collect(),
            notes: report.notes.clone(),
        }
    }
}
