//! Where the values of a column come from.

use lakebed_model::ColumnRef;

/// A base column that a value may come from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    /// The base column.
    pub(crate) column: ColumnRef,
    /// The scan that reads it, by index into the statement's scans.
    pub(crate) scan: usize,
    /// The share of the value's branches (of a union) that come from here, 0 to 1.
    pub(crate) share: f64,
}

/// The base columns that a value may come from; none for a computed value.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Origin(Vec<Source>);

impl Origin {
    /// The origin of a computed value.
    pub(crate) const fn derived() -> Self {
        Self(Vec::new())
    }

    /// The origin of a column as its scan gives it.
    pub(crate) fn base(column: ColumnRef, scan: usize) -> Self {
        Self(vec![Source { column, scan, share: 1.0 }])
    }

    /// Lists the base columns.
    pub(crate) fn sources(&self) -> &[Source] {
        &self.0
    }

    /// Lists the base columns as origins of their own, each with its share.
    pub(crate) fn each(&self) -> Vec<Self> {
        self.0.iter().map(|source| Self(vec![source.clone()])).collect()
    }

    /// Returns the base column when there is exactly one and every value comes from it.
    pub(crate) fn single(&self) -> Option<&Source> {
        match self.0.as_slice() {
            [only] if only.share >= 1.0 => Some(only),
            _ => None,
        }
    }

    /// Steps into a field of a struct column.
    pub(crate) fn field(mut self, path: &str) -> Self {
        for source in &mut self.0 {
            source.column.column = format!("{}.{path}", source.column.column);
        }
        self
    }

    /// Joins the origins of one column over the branches of a union; each branch weighs the same.
    pub(crate) fn union(branches: &[Self]) -> Self {
        let weight = 1.0 / branches.len().max(1) as f64;
        let mut sources: Vec<Source> = Vec::new();
        for source in branches.iter().flat_map(|branch| &branch.0) {
            match sources.iter_mut().find(|known| known.column == source.column) {
                Some(known) => known.share = (known.share + source.share * weight).min(1.0),
                None => sources.push(Source { share: source.share * weight, ..source.clone() }),
            }
        }
        Self(sources)
    }
}

#[cfg(test)]
mod tests {
    use super::{ColumnRef, Origin};

    #[test]
    fn a_union_splits_the_share_between_its_branches() {
        let a = Origin::base(ColumnRef::new("a", "x"), 0);
        let b = Origin::base(ColumnRef::new("b", "y"), 1);
        let union = Origin::union(&[a.clone(), b]);
        let shares: Vec<(String, f64)> =
            union.sources().iter().map(|s| (s.column.to_string(), s.share)).collect();
        assert_eq!(shares, [("a.x".to_owned(), 0.5), ("b.y".to_owned(), 0.5)]);
        assert!(union.single().is_none());
        assert!(Origin::union(&[a.clone(), a.clone()]).single().is_some());
        assert!(Origin::union(&[a, Origin::derived()]).single().is_none());
    }
}
