//! The world `drift-meter`.

use super::{
    live::{Live, Prepared},
    wire::arguments,
};
use crate::{
    Plugin, SandboxError, World,
    bindings::drift_meter::DriftMeter,
    checked::{self, Flaw},
};

/// How far a workload has moved.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The distance of the two windows; finite and at least 0.
    pub distance: f64,
    /// What each edge adds to the picture, in the order of the edges; finite.
    pub parts: Vec<f64>,
}

impl Plugin {
    /// Compares the scores of two windows over the union of their edges, 0 where a window lacks one,
    /// in a fresh instance.
    ///
    /// # Errors
    /// Returns [`SandboxError::Argument`] when the lists differ in length or hold a NaN or infinity,
    /// and what the plugin failed at.
    pub fn measure(&self, before: &[f64], after: &[f64]) -> Result<Reading, SandboxError> {
        const FUNCTION: &str = "measure";
        let Prepared::DriftMeter(prepared) = self.prepared() else {
            return Err(self.of_other_world(World::DriftMeter));
        };
        let lists = [("before", before), ("after", after)];
        let edge_count = arguments(self.label(), FUNCTION, &lists)?;
        let mut live = Live::<DriftMeter>::start(self, prepared)?;
        let reading = live.call(FUNCTION, size_of_val(before), |bindings, store| {
            bindings.lakebed_policy_drift().call_measure(store, before, after)
        })?;
        live.check(FUNCTION, distance(reading.distance))?;
        live.check(FUNCTION, checked::finite(&reading.parts, edge_count))?;
        Ok(Reading { distance: reading.distance, parts: reading.parts })
    }
}

fn distance(distance: f64) -> Result<(), Flaw> {
    if distance.is_finite() && distance >= 0.0 {
        Ok(())
    } else {
        Err(Flaw::Other(format!("the distance {distance}, expected a finite one of at least 0")))
    }
}
