//! Reproducible experiments: each drives the same pipeline a user does.

pub mod ajlo;
pub mod collect;
pub mod demo;
mod dice;
pub mod drift;
pub mod iterators;
mod lakes;
mod paper;
pub mod planner;
pub mod plot;
pub mod replay;
pub mod report;
pub mod shipped;
pub mod simulation;
mod templates;
pub mod tpch;
pub mod tpch22;
pub mod windows;

use std::{future::Future, pin::Pin};

pub use report::{ExperimentReport, Goal, Machine};

use crate::error::Error;

/// How an experiment is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExperimentSettings {
    /// Whether a smaller input is enough, to see that it works.
    pub quick: bool,
    /// What random choices start from.
    pub seed: u64,
}

/// The work of an experiment.
pub type Running<'e> = Pin<Box<dyn Future<Output = Result<ExperimentReport, Error>> + 'e>>;

/// Something that is measured by running it.
///
/// Implementers must report only what they measured in this run, must leave out (with a note) what
/// could not be measured, and must clean up after themselves.
pub trait Experiment: Send + Sync + std::fmt::Debug {
    /// Returns the name that `lakebed experiment` takes.
    fn name(&self) -> &'static str;

    /// Says in one line what is measured.
    fn about(&self) -> &'static str;

    /// Runs it; fails when what it measures fails, never because a goal is missed.
    fn run(&self, settings: ExperimentSettings) -> Running<'_>;
}

/// All experiments, by name.
pub static ALL_EXPERIMENTS: &[&dyn Experiment] = &[
    &ajlo::Ajlo,
    &collect::CollectSpeed,
    &drift::DriftRules,
    &iterators::Iterators,
    &planner::PlannerQuality,
    &simulation::Simulation,
    &tpch22::Tpch22,
    &windows::Windows,
];
