//! The columns that an operator gives to the one above.

use std::collections::BTreeMap;

use crate::lineage::origin::Origin;

use super::text::Attribute;

/// A column of an operator's output.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// Its name and id.
    pub(super) attribute: Attribute,
    /// The base columns it comes from; `None` where the plan does not show that.
    pub(super) origin: Option<Origin>,
}

/// An operator's output.
#[derive(Debug, Clone, Default)]
pub(super) struct Output {
    /// The columns that are known.
    pub(super) columns: Vec<Column>,
    /// Whether these are all, in order.
    pub(super) exact: bool,
    /// The scan whose rows these are, filtered at most.
    pub(super) scan: Option<usize>,
}

/// Where the ids that an operator may use come from. The same id can mean different things in
/// different parts of a plan: a union has the ids of its first branch.
pub(super) struct Scope(BTreeMap<u64, Origin>);

impl Scope {
    /// The scope of an operator with these inputs; of two that list an id the first gives it.
    pub(super) fn new<'o>(inputs: impl IntoIterator<Item = &'o Output>) -> Self {
        let mut origins = BTreeMap::new();
        for column in inputs.into_iter().flat_map(|input| &input.columns) {
            if let Some(origin) = &column.origin {
                origins.entry(column.attribute.id).or_insert_with(|| origin.clone());
            }
        }
        Self(origins)
    }

    /// Returns the origin of an id.
    pub(super) fn get(&self, id: u64) -> Option<&Origin> {
        self.0.get(&id)
    }
}

/// The output of an operator with one input.
pub(super) fn first(inputs: Vec<Output>) -> Output {
    inputs.into_iter().next().unwrap_or_default()
}

/// The outputs side by side.
pub(super) fn concatenated(inputs: Vec<Output>) -> Output {
    let exact = !inputs.is_empty() && inputs.iter().all(|input| input.exact);
    let columns = inputs.into_iter().flat_map(|input| input.columns).collect();
    Output { columns, exact, scan: None }
}
