//! One operator of a physical plan.

use std::collections::BTreeMap;

/// An operator as `sparkPlanInfo` describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PlanNode {
    /// `nodeName`, for example `Scan parquet spark_catalog.default.orders`.
    pub(crate) name: String,
    /// `simpleString`: the operator with its arguments, cut after 25 fields.
    pub(crate) text: String,
    /// The inputs; subqueries follow them.
    pub(crate) children: Vec<Self>,
    /// What a scan says about its files and filters.
    pub(crate) metadata: BTreeMap<String, String>,
    /// The accumulators that count what the operator did.
    pub(crate) metrics: Vec<Metric>,
}

/// A named accumulator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metric {
    /// For example `number of output rows`.
    pub(crate) name: String,
    /// The accumulator's id, unique in the application.
    pub(crate) id: u64,
}

impl PlanNode {
    /// Returns the operator's first word without the prefix of an accelerator.
    pub(crate) fn operator(&self) -> &str {
        let word = self.name.split([' ', '(', '[']).next().unwrap_or_default();
        ["Photon", "Gpu", "Comet"]
            .iter()
            .find_map(|prefix| word.strip_prefix(prefix))
            .filter(|rest| !rest.is_empty())
            .unwrap_or(word)
    }

    /// Returns the accumulator of a metric.
    pub(crate) fn metric(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| {
            self.metrics.iter().find(|metric| metric.name == *name).map(|metric| metric.id)
        })
    }

    /// Tells whether a child is a subquery of an expression rather than an input.
    pub(crate) fn is_subquery(&self) -> bool {
        matches!(
            self.operator(),
            "Subquery" | "SubqueryBroadcast" | "SubqueryAdaptiveBroadcast" | "ReusedSubquery"
        )
    }

    /// Iterates over the inputs, without subqueries.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(|child| !child.is_subquery())
    }

    /// Iterates over the operator and everything below it.
    pub(crate) fn descendants(&self) -> impl Iterator<Item = &Self> {
        let mut stack = vec![self];
        std::iter::from_fn(move || {
            let node = stack.pop()?;
            stack.extend(node.children.iter().rev());
            Some(node)
        })
    }
}
