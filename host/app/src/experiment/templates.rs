//! The orders workload's statements, drawn anew: Q01 to Q10 after the paper's description, and Q11.
//!
//! The paper gives no texts. What its figures imply: Q01–Q07 join large tables and bound a join key
//! to about a fifth of its values (one file in five is read), Q08–Q10 filter by dates alone. The logs
//! in `examples/logs` are of the same templates and weights.

use std::fmt::Write as _;

use super::dice::Dice;

/// Statements of each template in a window, Q01 first.
pub(super) type Weights = [usize; 11];

/// Joins by order key and customer key, some dates: as in the logs w1 and w6.
pub(super) const ORDER_KEYS: Weights = [6, 6, 4, 5, 5, 3, 3, 3, 2, 3, 0];
/// A new join, of lineitem and partsupp, takes the lead: as in the log w3.
pub(super) const PART_KEYS: Weights = [3, 3, 2, 3, 2, 2, 2, 2, 2, 2, 17];
/// Dates take the lead: as in the log w5.
pub(super) const DATES: Weights = [2, 2, 2, 2, 2, 1, 1, 10, 8, 10, 0];
/// Each of the paper's ten once.
pub(super) const TEN: Weights = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0];

/// Order keys, of which a quarter is used, and the other keys at scale factor 1.
const ORDER_KEYS_OF_ONE: f64 = 6_000_000.0;
const CUSTOMERS_OF_ONE: f64 = 150_000.0;
const PARTS_OF_ONE: f64 = 200_000.0;

/// Draws a window's statements in the order in which they run: the template's number and the text.
pub(super) fn window(
    weights: &Weights,
    scale_factor: f64,
    dice: &mut Dice,
) -> Vec<(usize, String)> {
    let mut templates: Vec<usize> = weights
        .iter()
        .enumerate()
        .flat_map(|(index, count)| std::iter::repeat_n(index + 1, *count))
        .collect();
    dice.shuffle(&mut templates);
    templates.into_iter().map(|number| (number, statement(number, scale_factor, dice))).collect()
}

/// Renders statements as a log of rows with `ts` and `sql`.
pub(super) fn as_log<'s>(statements: impl Iterator<Item = &'s str>) -> String {
    let mut lines = String::new();
    for (number, sql) in statements.enumerate() {
        // A statement's time is its number in seconds: one window, in order.
        let line = serde_json::json!({ "ts": number * 1_000, "sql": sql, "dialect": "spark" });
        let _ = writeln!(lines, "{line}");
    }
    lines
}

/// Draws one statement of a template, by its number from 1 to 11.
pub(super) fn statement(number: usize, scale_factor: f64, dice: &mut Dice) -> String {
    let mut keys = |column: &str, of_one: f64, share: f64| {
        let all = whole(of_one * scale_factor);
        let width = whole(of_one * scale_factor * share).max(1);
        let first = 1 + dice.below(all.saturating_sub(width).max(1));
        format!("{column} BETWEEN {first} AND {}", first + width - 1)
    };
    let mut orders = |column: &str, share: f64| keys(column, ORDER_KEYS_OF_ONE, share);
    match number {
        1 => format!(
            "SELECT o_orderpriority, count(*) AS n, sum(l_extendedprice) AS s FROM orders o \
             JOIN lineitem l ON o.o_orderkey = l.l_orderkey WHERE {} GROUP BY o_orderpriority",
            orders("o.o_orderkey", 0.2)
        ),
        2 => format!(
            "SELECT l_returnflag, sum(l_extendedprice * (1 - l_discount)) AS r FROM lineitem \
             JOIN orders ON l_orderkey = o_orderkey WHERE {} GROUP BY l_returnflag",
            orders("l_orderkey", 0.2)
        ),
        3 => format!(
            "SELECT c_mktsegment, sum(o_totalprice) AS s FROM customer, orders \
             WHERE c_custkey = o_custkey AND {} GROUP BY c_mktsegment",
            keys("c_custkey", CUSTOMERS_OF_ONE, 0.2)
        ),
        4 => format!(
            "SELECT c_mktsegment, count(*) AS n FROM customer JOIN orders \
             ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey \
             WHERE {} GROUP BY c_mktsegment",
            orders("o_orderkey", 0.2)
        ),
        5 => format!(
            "SELECT count(*) AS n, sum(l_quantity) AS q FROM orders JOIN lineitem \
             ON o_orderkey = l_orderkey WHERE {} AND l_quantity > 40",
            orders("o_orderkey", 0.05)
        ),
        6 => format!(
            "WITH spend AS (SELECT o_custkey AS ck, o_orderkey AS ok FROM orders WHERE {}) \
             SELECT c_nationkey, sum(l_extendedprice) AS s FROM customer c \
             JOIN spend ON c.c_custkey = spend.ck JOIN lineitem ON l_orderkey = spend.ok \
             GROUP BY c_nationkey",
            keys("o_custkey", CUSTOMERS_OF_ONE, 0.2)
        ),
        7 => format!(
            "SELECT s_nationkey, sum(l_extendedprice) AS s FROM lineitem \
             JOIN orders ON l_orderkey = o_orderkey JOIN supplier ON l_suppkey = s_suppkey \
             WHERE {} GROUP BY s_nationkey",
            orders("l_orderkey", 0.2)
        ),
        8 => {
            let year = 1993 + dice.below(5);
            format!(
                "SELECT sum(l_extendedprice * l_discount) AS r FROM lineitem \
                 WHERE l_shipdate >= DATE'{year}-01-01' AND l_shipdate < DATE'{}-01-01' \
                 AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
                year + 1
            )
        }
        9 => {
            let (year, quarter) = (1993 + dice.below(5), dice.below(4));
            let first = format!("DATE'{year}-{:02}-01'", quarter * 3 + 1);
            format!(
                "SELECT o_orderpriority, count(*) AS n FROM orders WHERE o_orderdate >= {first} \
                 AND o_orderdate < add_months({first}, 3) GROUP BY o_orderpriority"
            )
        }
        10 => format!(
            "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS q, avg(l_discount) AS d \
             FROM lineitem WHERE l_shipdate <= DATE'1995-{:02}-15' \
             GROUP BY l_returnflag, l_linestatus",
            1 + dice.below(12)
        ),
        _ => format!(
            "SELECT ps_availqty > 5000 AS big, sum(l_quantity) AS q FROM lineitem JOIN partsupp \
             ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey WHERE {} \
             GROUP BY ps_availqty > 5000",
            keys("l_partkey", PARTS_OF_ONE, 0.2)
        ),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "keys are few millions, and not negative"
)]
fn whole(number: f64) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use super::{Dice, ORDER_KEYS, PART_KEYS, as_log, window};

    #[test]
    fn a_window_holds_its_templates_as_often_as_they_weigh() {
        let drawn = window(&ORDER_KEYS, 0.1, &mut Dice::new(1));
        assert_eq!(drawn.len(), 40);
        for (index, count) in ORDER_KEYS.iter().enumerate() {
            assert_eq!(drawn.iter().filter(|(number, _)| *number == index + 1).count(), *count);
        }
        assert_eq!(drawn, window(&ORDER_KEYS, 0.1, &mut Dice::new(1)));
        assert_ne!(drawn, window(&ORDER_KEYS, 0.1, &mut Dice::new(2)));
        assert_eq!(window(&PART_KEYS, 0.1, &mut Dice::new(1)).len(), 40);
    }

    #[test]
    fn ranges_cover_their_share_of_the_keys_of_a_scale_factor() {
        let drawn = window(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0.1, &mut Dice::new(9));
        let words: Vec<&str> = drawn[0].1.split_whitespace().collect();
        let between = words.iter().position(|word| *word == "BETWEEN").unwrap();
        let end = |at: usize| words[between + at].parse::<u64>().unwrap();
        assert_eq!(end(3) - end(1) + 1, 120_000);
        assert!(end(3) < 600_000);
        assert!(as_log(std::iter::once("SELECT 1")).starts_with("{\"dialect\":\"spark\""));
    }
}
