//! Lineage from the physical plan that Spark writes into its event log.
//!
//! 1. The tree `sparkPlanInfo` has every operator with its accumulators, but cuts long lists; the
//!    long text has the lists but no accumulators. Each fills the other ([`attach`]); either alone
//!    is read as it is.
//! 2. The tree is walked from the leaves up, without recursion. A scan binds each expression id
//!    (`l_orderkey#11L`) to its base column; projections and aggregates bind the ids of their
//!    aliases to what the aliased expression passes on, or to nothing when it is computed.
//! 3. An operator looks ids up in the output of its inputs first: a union has the ids of its first
//!    branch, a cached table those of another plan. A reused exchange lists new ids: they are bound
//!    by position to the output of the exchange that it names.
//! 4. An id that the tree does not define (the aliases of a final aggregate are not in it) is
//!    looked up in the plan's long text. A join key that nothing defines is a loss, not a guess.
//! 5. What the engine adds for itself is no workload: dynamic pruning and Bloom filter subqueries
//!    are passed over, and work that is reused counts once.
//!
//! Constants are printed without quotes, so brackets are counted and lists that do not add up are
//! not used. Ids are unique in one execution only, so every execution has its own map. Reasons of
//! losses hold names of operators and nothing else of a plan.

mod attach;
mod catalyst;
mod explain;
mod expression;
mod join;
mod node;
mod operators;
mod output;
mod pushed;
mod scan;
#[cfg(test)]
mod tests;
mod text;
mod walk;

pub(crate) use node::{Metric, NodeId, PlanNode, PlanTree};
pub(crate) use walk::{PlanLineage, PlanScan, Whole};

use walk::Reading;

/// Reads a plan from its tree and its long text, of which either may be missing.
pub(crate) fn read(tree: &PlanTree, description: &str) -> PlanLineage {
    walk::walk(&prepared(tree, description), description, Reading::Final)
}

/// Reads the plan as first made, where the long text of adaptive execution shows that too.
pub(crate) fn read_first(description: &str) -> Option<PlanLineage> {
    let long = explain::read(description);
    let shows_both = (0..long.len()).any(|id| !long.node(id).first_children.is_empty());
    shows_both.then(|| walk::walk(&long, description, Reading::First))
}

fn prepared(tree: &PlanTree, description: &str) -> PlanTree {
    let mut own = tree.clone();
    let joins = (0..tree.len()).any(|id| join::joining(tree.node(id)).is_some());
    // Most plans of a log are the engine's own small ones: what their text adds serves joins only.
    if joins || tree.is_empty() || tree.is_cut {
        let long = explain::read(description);
        if (tree.is_empty() || tree.is_cut) && !long.is_empty() {
            return long;
        }
        attach::attach(&mut own, &long);
    }
    own.link_reused();
    own
}
