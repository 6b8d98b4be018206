//! Where the values of a column come from.

use lakebed_model::ColumnRef;

/// Columns that an expression reads, beyond which the rest is forgotten.
const MAX_INPUTS: usize = 8;

/// A base column that a value may come from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    /// The base column.
    pub(crate) column: ColumnRef,
    /// The scan that reads it, by index into the statement's scans.
    pub(crate) scan: usize,
    /// The share of the value's branches (of a union) that come from here, 0 to 1.
    pub(crate) share: f64,
    /// Whether the value was cast on its way.
    pub(crate) cast: bool,
    /// Whether other scans give values of the column too, as other branches of a union do: what
    /// holds for this scan's rows need not hold for all.
    pub(crate) several: bool,
}

/// The base columns that a value may come from; none for a computed value.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Origin {
    sources: Vec<Source>,
    /// The base columns that a computed value is made of, where they are known.
    inputs: Vec<ColumnRef>,
}

impl Origin {
    /// The origin of a computed value.
    pub(crate) const fn derived() -> Self {
        Self { sources: Vec::new(), inputs: Vec::new() }
    }

    /// The origin of a column as its scan gives it.
    pub(crate) fn base(column: ColumnRef, scan: usize) -> Self {
        let source = Source { column, scan, share: 1.0, cast: false, several: false };
        Self { sources: vec![source], inputs: Vec::new() }
    }

    /// The origin of a value that is computed from others row by row.
    pub(crate) fn computed<'o>(from: impl IntoIterator<Item = &'o Self>) -> Self {
        let mut inputs: Vec<ColumnRef> = Vec::new();
        for origin in from {
            let columns = origin.sources.iter().map(|source| &source.column).chain(&origin.inputs);
            for column in columns {
                if inputs.len() < MAX_INPUTS && !inputs.contains(column) {
                    inputs.push(column.clone());
                }
            }
        }
        Self { sources: Vec::new(), inputs }
    }

    /// Lists the base columns.
    pub(crate) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Lists the base columns that a computed value is made of; none for a column as it is.
    pub(crate) fn inputs(&self) -> &[ColumnRef] {
        &self.inputs
    }

    /// Lists the base columns as origins of their own, each with its share.
    pub(crate) fn each(&self) -> Vec<Self> {
        let alone = |source: &Source| Self { sources: vec![source.clone()], inputs: Vec::new() };
        self.sources.iter().map(alone).collect()
    }

    /// Returns the base column when there is exactly one and every value comes from it.
    pub(crate) fn single(&self) -> Option<&Source> {
        match self.sources.as_slice() {
            [only] if only.share >= 1.0 => Some(only),
            _ => None,
        }
    }

    /// Steps into a field of a struct column.
    pub(crate) fn field(mut self, path: &str) -> Self {
        for source in &mut self.sources {
            source.column.column = format!("{}.{path}", source.column.column);
        }
        self
    }

    /// The same values in another type.
    pub(crate) fn cast(mut self) -> Self {
        for source in &mut self.sources {
            source.cast = true;
        }
        self
    }

    /// Joins the origins of one column over the branches of a union; each branch weighs the same.
    pub(crate) fn union(branches: &[Self]) -> Self {
        let weight = 1.0 / branches.len().max(1) as f64;
        let mut sources: Vec<Source> = Vec::new();
        for source in branches.iter().flat_map(|branch| &branch.sources) {
            match sources.iter_mut().find(|known| known.column == source.column) {
                Some(known) => {
                    known.share = (known.share + source.share * weight).min(1.0);
                    known.cast |= source.cast;
                    known.several |= source.several || known.scan != source.scan;
                }
                None => sources.push(Source { share: source.share * weight, ..source.clone() }),
            }
        }
        let inputs = Self::computed(branches.iter().filter(|branch| branch.sources.is_empty()));
        Self { sources, ..inputs }
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
        assert!(Origin::union(&[a.clone(), a.clone()]).single().is_some_and(|one| !one.several));
        let again = Origin::base(ColumnRef::new("a", "x"), 2);
        assert!(Origin::union(&[a.clone(), again]).single().is_some_and(|one| one.several));
        assert!(Origin::union(&[a, Origin::derived()]).single().is_none());
    }

    #[test]
    fn a_computed_value_knows_what_it_is_made_of() {
        let a = Origin::base(ColumnRef::new("a", "x"), 0);
        let sum = Origin::computed([&a, &a, &Origin::derived()]);
        assert!(sum.sources().is_empty());
        assert_eq!(sum.inputs(), [ColumnRef::new("a", "x")]);
        assert_eq!(Origin::computed([&sum]).inputs(), sum.inputs());
    }

    #[test]
    fn a_cast_keeps_the_column_and_says_so() {
        let cast = Origin::base(ColumnRef::new("a", "x"), 0).cast();
        assert!(cast.single().is_some_and(|source| source.cast));
    }
}
