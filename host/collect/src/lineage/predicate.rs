//! From the predicates on one scan to one filter per column.

use std::{cmp::Ordering, collections::BTreeMap};

use lakebed_model::{Bound, ColumnRef, FilterOperator, FilterUse, Literal, TableName, ValueRange};

/// What a predicate asks of one column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Test {
    operator: FilterOperator,
    range: Option<ValueRange>,
}

/// A condition on the rows of one scan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Predicate {
    /// One column against constants.
    Column(String, Test),
    /// All hold.
    And(Vec<Self>),
    /// At least one holds.
    Or(Vec<Self>),
    /// Nothing that narrows values: `IS NOT NULL`, `TRUE`.
    Always,
    /// Something else about these columns.
    Opaque(Vec<String>),
}

impl Test {
    /// `= value` or `<=> value`.
    pub(crate) fn equal(value: Literal) -> Self {
        Self { operator: FilterOperator::Equal, range: Some(ValueRange::point(value)) }
    }

    /// `IN (values)`: from the smallest to the largest; opaque when they do not compare.
    pub(crate) fn one_of(values: Vec<Literal>) -> Self {
        let range = values
            .into_iter()
            .map(|value| Some(ValueRange::point(value)))
            .reduce(|a, b| hull(a.as_ref()?, b.as_ref()?))
            .flatten();
        match range {
            None => Self::other(),
            range => Self { operator: FilterOperator::In, range },
        }
    }

    /// `> value` or `>= value`.
    pub(crate) fn at_least(value: Literal, inclusive: bool) -> Self {
        let range = ValueRange { low: Some(Bound { value, inclusive }), high: None };
        Self { operator: FilterOperator::Range, range: Some(range) }
    }

    /// `< value` or `<= value`.
    pub(crate) fn at_most(value: Literal, inclusive: bool) -> Self {
        let range = ValueRange { low: None, high: Some(Bound { value, inclusive }) };
        Self { operator: FilterOperator::Range, range: Some(range) }
    }

    /// Starts with a prefix: from the prefix to the first text that no longer has it.
    pub(crate) fn prefix(prefix: &str) -> Self {
        let low = Some(Bound { value: Literal::Text(prefix.to_owned()), inclusive: true });
        let high =
            successor(prefix).map(|text| Bound { value: Literal::Text(text), inclusive: false });
        Self { operator: FilterOperator::Prefix, range: Some(ValueRange { low, high }) }
    }

    /// `IS NULL`.
    pub(crate) const fn is_null() -> Self {
        Self { operator: FilterOperator::IsNull, range: None }
    }

    /// A comparison with values that the text does not have: parameters.
    pub(crate) const fn unknown(operator: FilterOperator) -> Self {
        Self { operator, range: None }
    }

    /// Anything else.
    pub(crate) const fn other() -> Self {
        Self { operator: FilterOperator::Other, range: None }
    }

    /// Tells whether the values that pass are known.
    pub(crate) const fn is_sharp(&self) -> bool {
        self.range.is_some()
    }

    /// Both hold. A test whose values are unknown only narrows further, so the known one stands.
    fn and(self, other: Self) -> Self {
        // The variants are declared from the sharpest to the vaguest.
        let operator = self.operator.min(other.operator);
        let range = match (self.range, other.range) {
            (Some(a), Some(b)) => Some(a.intersect(&b)),
            (one, None) | (None, one) => one,
        };
        Self { operator, range }
    }

    /// One of them holds: the smallest range that covers both, if both are known.
    fn or(self, other: Self) -> Self {
        let range = match (&self.range, &other.range) {
            (Some(a), Some(b)) => hull(a, b),
            _ => None,
        };
        let points = [self.operator, other.operator]
            .iter()
            .all(|operator| matches!(operator, FilterOperator::Equal | FilterOperator::In));
        match range {
            None => Self::other(),
            range if points => Self { operator: FilterOperator::In, range },
            range => Self { operator: FilterOperator::Range, range },
        }
    }
}

impl Predicate {
    /// All hold; conjunctions inside are no level of their own.
    pub(crate) fn all(parts: Vec<Self>) -> Self {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Self::And(inner) if flat.is_empty() => flat = inner,
                Self::And(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::And(flat)
    }

    /// At least one holds; disjunctions inside are no level of their own.
    pub(crate) fn any(parts: Vec<Self>) -> Self {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Self::Or(inner) if flat.is_empty() => flat = inner,
                Self::Or(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::Or(flat)
    }

    /// The negation. Only `IS NULL` and `IS NOT NULL` negate to something sharp.
    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Column(_, Test { operator: FilterOperator::IsNull, .. }) => Self::Always,
            other => Self::Opaque(other.columns()),
        }
    }

    /// Lists the columns that are mentioned.
    pub(crate) fn columns(&self) -> Vec<String> {
        match self {
            Self::Column(column, _) => vec![column.clone()],
            Self::And(parts) | Self::Or(parts) => parts.iter().flat_map(Self::columns).collect(),
            Self::Always => Vec::new(),
            Self::Opaque(columns) => columns.clone(),
        }
    }

    /// Gives the test that each mentioned column must pass for the predicate to hold.
    pub(crate) fn tests(&self) -> BTreeMap<String, Test> {
        match self {
            Self::Column(column, test) => BTreeMap::from([(column.clone(), test.clone())]),
            Self::Always => BTreeMap::new(),
            Self::Opaque(columns) => {
                columns.iter().map(|column| (column.clone(), Test::other())).collect()
            }
            Self::And(parts) => conjunction(parts),
            Self::Or(parts) => either(&parts.iter().map(Self::tests).collect::<Vec<_>>()),
        }
    }
}

/// Gives the test that each mentioned column must pass for all of some predicates to hold.
pub(crate) fn conjunction(parts: &[Predicate]) -> BTreeMap<String, Test> {
    let mut tests: BTreeMap<String, Test> = BTreeMap::new();
    for (column, test) in parts.iter().flat_map(Predicate::tests) {
        let merged = match tests.remove(&column) {
            Some(known) => known.and(test),
            None => test,
        };
        tests.insert(column, merged);
    }
    tests
}

/// A column is narrowed by a disjunction only when every branch narrows it.
fn either(branches: &[BTreeMap<String, Test>]) -> BTreeMap<String, Test> {
    let mut tests = BTreeMap::new();
    for column in branches.iter().flat_map(BTreeMap::keys) {
        let test = branches
            .iter()
            .map(|branch| branch.get(column).cloned())
            .reduce(|a, b| Some(a?.or(b?)))
            .flatten()
            .unwrap_or_else(Test::other);
        tests.insert(column.clone(), test);
    }
    tests
}

/// Turns the predicates of one scan into one filter per column, by column name.
pub(crate) fn filters(table: &TableName, predicates: Vec<Predicate>) -> Vec<FilterUse> {
    Predicate::And(predicates)
        .tests()
        .into_iter()
        .map(|(column, test)| FilterUse {
            column: ColumnRef { table: table.clone(), column },
            operator: test.operator,
            range: test.range,
            inferred: false,
        })
        .collect()
}

fn hull(a: &ValueRange, b: &ValueRange) -> Option<ValueRange> {
    Some(ValueRange {
        low: outer(a.low.as_ref(), b.low.as_ref(), Ordering::Less)?,
        high: outer(a.high.as_ref(), b.high.as_ref(), Ordering::Greater)?,
    })
}

/// The end that lies further out; outer `None` when the two do not compare.
fn outer(a: Option<&Bound>, b: Option<&Bound>, wanted: Ordering) -> Option<Option<Bound>> {
    let (Some(a), Some(b)) = (a, b) else { return Some(None) };
    Some(Some(match a.value.compare(&b.value)? {
        Ordering::Equal => Bound { value: a.value.clone(), inclusive: a.inclusive || b.inclusive },
        order if order == wanted => a.clone(),
        _ => b.clone(),
    }))
}

/// The first text after all texts with the prefix, or none when there is no such text.
fn successor(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        if let Some(next) = next_char(last) {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

fn next_char(c: char) -> Option<char> {
    // The code points between are surrogates, which are no characters.
    if c == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(c) + 1) }
}

#[cfg(test)]
mod tests {
    use super::{Predicate, Test, filters};
    use lakebed_model::{Literal, TableName};

    fn column(name: &str, test: Test) -> Predicate {
        Predicate::Column(name.to_owned(), test)
    }

    fn int(value: i64) -> Literal {
        Literal::Integer(value)
    }

    #[track_caller]
    fn check(predicates: Vec<Predicate>, expected: &[&str]) {
        let found: Vec<String> = filters(&TableName::new("t"), predicates)
            .iter()
            .map(|filter| {
                let range = filter.range.as_ref().map_or("?".to_owned(), ToString::to_string);
                format!("{} {} {range}", filter.column.column, filter.operator.as_str())
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn comparisons_of_one_column_merge_into_the_intersection() {
        check(
            vec![
                column("a", Test::at_least(int(10), true)),
                Predicate::Always,
                column("a", Test::at_most(int(20), false)),
                column("b", Test::equal(int(3))),
            ],
            &["a range [10, 20)", "b equal [3, 3]"],
        );
    }

    #[test]
    fn lists_span_from_the_smallest_to_the_largest() {
        check(vec![column("a", Test::one_of(vec![int(7), int(-1), int(3)]))], &["a in [-1, 7]"]);
        check(
            vec![column("a", Test::one_of(vec![int(7), Literal::Boolean(true)]))],
            &["a other ?"],
        );
    }

    #[test]
    fn a_disjunction_narrows_a_column_only_in_all_branches() {
        let (a, b) = (|v| column("a", Test::equal(int(v))), |v| column("b", Test::equal(int(v))));
        check(vec![Predicate::Or(vec![a(1), a(5)])], &["a in [1, 5]"]);
        check(vec![Predicate::Or(vec![a(1), b(5)])], &["a other ?", "b other ?"]);
        check(
            vec![Predicate::Or(vec![
                Predicate::And(vec![a(1), b(5)]),
                column("a", Test::at_least(int(3), true)),
            ])],
            &["a range [1, ∞)", "b other ?"],
        );
        check(vec![Predicate::Or(vec![a(1), Predicate::Always])], &["a other ?"]);
    }

    #[test]
    fn a_prefix_ends_before_the_first_text_without_it() {
        check(vec![column("a", Test::prefix("fore"))], &["a prefix ['fore', 'forf')"]);
        check(vec![column("a", Test::prefix("a\u{10ffff}"))], &["a prefix ['a\u{10ffff}', 'b')"]);
    }

    #[test]
    fn negations_are_opaque_but_for_nulls() {
        check(vec![column("a", Test::equal(int(1))).negated()], &["a other ?"]);
        check(vec![column("a", Test::is_null()).negated()], &[]);
        check(vec![column("a", Test::is_null())], &["a is_null ?"]);
    }

    #[test]
    fn an_opaque_condition_does_not_widen_a_known_range() {
        check(
            vec![Predicate::Opaque(vec!["a".to_owned()]), column("a", Test::at_most(int(9), true))],
            &["a range (-∞, 9]"],
        );
    }
}
