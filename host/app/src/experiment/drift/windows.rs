//! Six windows of statements on TPC-H tables: what changes between them is declared.
//!
//! The templates and their weights are those of the event logs under `examples/logs`: joins on
//! ranges of keys; from the third window on joins of lineitem with partsupp, a new join column; in
//! the fifth a surge of date filters; the sixth has the first one's mix again.

use std::fmt::Write as _;

use lakebed_plan::SplitMix64;

/// Windows of one run.
pub(super) const WINDOWS: usize = 6;

/// Mixes of statements that differ: keys, a new join, dates.
pub(super) const MIXES: usize = 3;

/// The mix that each window has; window 2 repeats window 1 and window 4 window 3, with weights that
/// differ by a statement or two.
pub(super) const MIX_OF: [usize; WINDOWS] = [0, 0, 1, 1, 2, 0];

/// Weights of the templates Q01 to Q11, per window.
const WEIGHTS: [[usize; 11]; WINDOWS] = [
    [6, 6, 4, 5, 5, 3, 3, 3, 2, 3, 0],
    [7, 5, 4, 5, 5, 3, 3, 3, 2, 3, 0],
    [3, 3, 2, 3, 2, 2, 2, 2, 2, 2, 17],
    [2, 3, 2, 3, 2, 2, 2, 2, 2, 2, 18],
    [2, 2, 2, 2, 2, 1, 1, 10, 8, 10, 0],
    [6, 6, 4, 5, 5, 3, 3, 3, 2, 3, 0],
];

/// Whether a window's mix is another than the one's before it; the first has none before it.
pub(super) fn is_changed(window: usize) -> bool {
    window > 0 && MIX_OF[window] != MIX_OF[window - 1]
}

/// Draws a window of statements as JSON lines of `ts` and `sql`.
pub(super) fn draw(
    random: &mut SplitMix64,
    window: usize,
    statements: usize,
    scale_factor: f64,
) -> String {
    let total: usize = WEIGHTS[window].iter().sum();
    let mut lines = String::new();
    for index in 0..statements {
        let mut left = random.below(total);
        let template = WEIGHTS[window].iter().position(|&weight| {
            let is_it = left < weight;
            left = left.saturating_sub(weight);
            is_it
        });
        let sql = statement(random, template.unwrap_or(0), scale_factor);
        // One statement a second, a window a day.
        let ts = 1_700_000_000_000 + window * 86_400_000 + index * 1_000;
        let line = serde_json::json!({ "ts": ts, "sql": sql, "dialect": "spark" });
        let _ = writeln!(lines, "{line}");
    }
    lines
}

fn statement(random: &mut SplitMix64, template: usize, scale_factor: f64) -> String {
    let keys = |per_unit: f64| lakebed_model::Bytes::from_f64(per_unit * scale_factor).0.max(20);
    let (orders, customers, parts) = (keys(6e6), keys(150e3), keys(200e3));
    let year = 1993 + random.below(5);
    let quarter = random.below(4);
    let (next_year, next_month) =
        if quarter == 3 { (year + 1, 1) } else { (year, quarter * 3 + 4) };
    let mut range = |column: &str, count: u64, percent: u64| {
        let width = count * percent / 100;
        let start = 1 + random.below(usize::try_from(count - width).unwrap_or(1)) as u64;
        format!("{column} BETWEEN {start} AND {}", start + width.max(1) - 1)
    };
    match template {
        0 => format!(
            "SELECT o_orderpriority, count(*), sum(l_extendedprice) FROM orders \
             JOIN lineitem ON o_orderkey = l_orderkey WHERE {} GROUP BY o_orderpriority",
            range("o_orderkey", orders, 20)
        ),
        1 => format!(
            "SELECT l_returnflag, sum(l_extendedprice) FROM lineitem \
             JOIN orders ON l_orderkey = o_orderkey WHERE {} GROUP BY l_returnflag",
            range("l_orderkey", orders, 20)
        ),
        2 => format!(
            "SELECT c_mktsegment, sum(o_totalprice) FROM customer, orders \
             WHERE c_custkey = o_custkey AND {} GROUP BY c_mktsegment",
            range("c_custkey", customers, 20)
        ),
        3 => format!(
            "SELECT c_mktsegment, count(*) FROM customer JOIN orders ON c_custkey = o_custkey \
             JOIN lineitem ON l_orderkey = o_orderkey WHERE {} GROUP BY c_mktsegment",
            range("o_orderkey", orders, 20)
        ),
        4 => format!(
            "SELECT count(*), sum(l_quantity) FROM orders JOIN lineitem ON o_orderkey = l_orderkey \
             WHERE {} AND l_quantity > 40",
            range("o_orderkey", orders, 5)
        ),
        5 => format!(
            "SELECT c_nationkey, sum(l_extendedprice) FROM customer \
             JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey \
             WHERE {} GROUP BY c_nationkey",
            range("o_custkey", customers, 20)
        ),
        6 => format!(
            "SELECT s_nationkey, sum(l_extendedprice) FROM lineitem \
             JOIN orders ON l_orderkey = o_orderkey JOIN supplier ON l_suppkey = s_suppkey \
             WHERE {} GROUP BY s_nationkey",
            range("l_orderkey", orders, 20)
        ),
        7 => format!(
            "SELECT sum(l_extendedprice) FROM lineitem WHERE l_shipdate >= DATE '{year}-01-01' \
             AND l_shipdate < DATE '{}-01-01' AND l_quantity < 24",
            year + 1
        ),
        8 => format!(
            "SELECT o_orderpriority, count(*) FROM orders \
             WHERE o_orderdate >= DATE '{year}-{:02}-01' \
             AND o_orderdate < DATE '{next_year}-{next_month:02}-01' GROUP BY o_orderpriority",
            quarter * 3 + 1
        ),
        9 => format!(
            "SELECT l_returnflag, sum(l_quantity) FROM lineitem \
             WHERE l_shipdate <= DATE '1995-{:02}-15' GROUP BY l_returnflag",
            1 + random.below(12)
        ),
        _ => format!(
            "SELECT sum(l_quantity) FROM lineitem \
             JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey WHERE {}",
            range("l_partkey", parts, 20)
        ),
    }
}

#[cfg(test)]
mod tests {
    use lakebed_plan::SplitMix64;

    use super::{MIX_OF, MIXES, WINDOWS, draw, is_changed};

    #[test]
    fn three_of_five_windows_are_changed_ones() {
        let changed: Vec<usize> = (0..WINDOWS).filter(|&window| is_changed(window)).collect();
        assert_eq!(changed, [2, 4, 5]);
        assert!(MIX_OF.iter().all(|&mix| mix < MIXES));
    }

    #[test]
    fn the_new_join_comes_with_the_third_window() {
        let mut random = SplitMix64::new(1);
        let joins = |random: &mut SplitMix64, window| {
            draw(random, window, 200, 0.1).matches("partsupp").count()
        };
        assert_eq!((joins(&mut random, 0), joins(&mut random, 4)), (0, 0));
        assert!((60..110).contains(&joins(&mut random, 2)));
    }
}
