//! From the key pairs of one join to edges between base tables.

use std::collections::BTreeMap;

use lakebed_model::{JoinKind, JoinStrategy, JoinUse, TableName};

use super::origin::Origin;

/// What one join node says about all its edges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JoinTraits {
    /// The logical kind, as the join's left and right side see it.
    pub(crate) kind: JoinKind,
    /// How the engine ran it.
    pub(crate) strategy: Option<JoinStrategy>,
    /// How sure the reader is, before the shares of unions.
    pub(crate) confidence: f64,
}

/// The key pairs between two tables, with the share of rows that each connects.
#[derive(Default)]
struct Keys {
    pairs: Vec<(String, String)>,
    shares: Vec<f64>,
}

/// Groups the key pairs of one join by the tables they connect: one edge per pair of tables.
///
/// A pair with a computed side makes no edge. A key that comes from several branches of a union
/// fans out to an edge per branch, each with the product of the shares as confidence.
pub(crate) fn edges(pairs: &[(Origin, Origin)], traits: JoinTraits) -> Vec<JoinUse> {
    let mut groups: BTreeMap<(TableName, TableName), Keys> = BTreeMap::new();
    for (left, right) in pairs {
        for a in left.sources() {
            for b in right.sources() {
                let tables = (a.column.table.clone(), b.column.table.clone());
                let keys = groups.entry(tables).or_default();
                keys.pairs.push((a.column.column.clone(), b.column.column.clone()));
                keys.shares.push(a.share * b.share);
            }
        }
    }
    groups
        .into_iter()
        .map(|((left, right), Keys { pairs, shares })| {
            oriented(JoinUse {
                left,
                right,
                pairs,
                kind: traits.kind,
                strategy: traits.strategy,
                planned_strategy: None,
                hint: None,
                confidence: traits.confidence * shares.into_iter().fold(1.0, f64::min),
            })
        })
        .collect()
}

/// Puts the table whose name sorts first on the left, and sorts the pairs.
///
/// When sides swap, a left outer join becomes a right outer one; semi and anti joins keep their
/// kind, which then no longer tells whose rows survive. Of the two ways to write a self join the
/// one with the smaller pairs is taken.
pub(crate) fn oriented(mut join: JoinUse) -> JoinUse {
    normalize(&mut join.pairs);
    let mut swapped: Vec<(String, String)> =
        join.pairs.iter().map(|(a, b)| (b.clone(), a.clone())).collect();
    normalize(&mut swapped);
    let swaps = join.left > join.right || (join.left == join.right && swapped < join.pairs);
    if swaps {
        std::mem::swap(&mut join.left, &mut join.right);
        join.pairs = swapped;
        join.kind = match join.kind {
            JoinKind::LeftOuter => JoinKind::RightOuter,
            JoinKind::RightOuter => JoinKind::LeftOuter,
            same => same,
        };
    }
    join
}

fn normalize(pairs: &mut Vec<(String, String)>) {
    pairs.sort();
    pairs.dedup();
}

#[cfg(test)]
mod tests {
    use super::{JoinTraits, Origin, edges};
    use lakebed_model::{ColumnRef, JoinKind, JoinUse};

    fn origin(column: &str) -> Origin {
        match column.split_once('.') {
            Some((table, column)) => Origin::base(ColumnRef::new(table, column), 0),
            None => Origin::derived(),
        }
    }

    fn text(join: &JoinUse) -> String {
        format!("{} {} {:?} {}", join.left, join.right, join.pairs, join.kind.as_str())
    }

    #[track_caller]
    fn check(pairs: &[(&str, &str)], kind: JoinKind, expected: &[&str]) {
        let pairs: Vec<_> = pairs.iter().map(|(l, r)| (origin(l), origin(r))).collect();
        let traits = JoinTraits { kind, strategy: None, confidence: 1.0 };
        let found: Vec<String> = edges(&pairs, traits).iter().map(text).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn pairs_between_the_same_two_tables_are_one_edge() {
        check(
            &[("l.sk", "ps.sk"), ("l.pk", "ps.pk")],
            JoinKind::Inner,
            &[r#"l ps [("pk", "pk"), ("sk", "sk")] inner"#],
        );
    }

    #[test]
    fn one_join_with_keys_of_two_table_pairs_gives_two_edges() {
        check(
            &[("d.week", "d.week"), ("inv.date", "d.date")],
            JoinKind::Inner,
            &[r#"d d [("week", "week")] inner"#, r#"d inv [("date", "date")] inner"#],
        );
    }

    #[test]
    fn swapped_sides_mirror_outer_joins_and_keep_semi_joins() {
        check(&[("b.x", "a.y")], JoinKind::LeftOuter, &[r#"a b [("y", "x")] right_outer"#]);
        check(&[("b.x", "a.y")], JoinKind::LeftAnti, &[r#"a b [("y", "x")] left_anti"#]);
        check(&[("a.x", "b.y")], JoinKind::LeftOuter, &[r#"a b [("x", "y")] left_outer"#]);
    }

    #[test]
    fn a_self_join_is_the_same_edge_either_way_round() {
        check(&[("e.mgr", "e.id")], JoinKind::LeftOuter, &[r#"e e [("id", "mgr")] right_outer"#]);
        check(&[("e.id", "e.mgr")], JoinKind::RightOuter, &[r#"e e [("id", "mgr")] right_outer"#]);
    }

    #[test]
    fn a_computed_key_makes_no_edge() {
        check(&[("computed", "a.y")], JoinKind::Inner, &[]);
    }

    #[test]
    fn a_union_fans_out_with_split_confidence() {
        let union = Origin::union(&[origin("a.x"), origin("b.x")]);
        let traits = JoinTraits { kind: JoinKind::Inner, strategy: None, confidence: 0.8 };
        let found = edges(&[(union, origin("c.y"))], traits);
        let shown: Vec<String> =
            found.iter().map(|j| format!("{} {:.2}", text(j), j.confidence)).collect();
        assert_eq!(shown, [r#"a c [("x", "y")] inner 0.40"#, r#"b c [("x", "y")] inner 0.40"#]);
    }
}
