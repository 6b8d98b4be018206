//! Lineage from the physical plan that Spark writes into its event log.
//!
//! 1. The tree `sparkPlanInfo` is walked from the leaves up. A scan binds each expression id
//!    (`l_orderkey#11L`) to its base column; projections and aggregates bind the ids of their
//!    aliases to what the aliased expression comes from, or to nothing when it is computed.
//! 2. A reused exchange lists new ids: they are bound by position to the output of its child.
//! 3. A join's keys are looked up in that map. An id that the tree does not define (the aliases of
//!    a final aggregate are not in it) is looked up in the plan's long description.
//! 4. What the engine adds for itself is no workload: dynamic pruning and Bloom filter subqueries
//!    are passed over, and work that is reused counts once.
//!
//! Ids are unique in one execution only, so every execution has its own map.

mod catalyst;
mod node;
mod pushed;
mod scan;
#[cfg(test)]
mod tests;
mod text;
mod walk;

pub(crate) use node::{Metric, PlanNode};
pub(crate) use walk::{PlanLineage, PlanScan, read};
