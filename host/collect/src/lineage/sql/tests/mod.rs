mod definitions;
mod dialects;
mod fuzz;
mod peers;
mod repeats;
mod sqlglot;
mod tiers;
mod tpc;

use std::{collections::BTreeMap, fmt::Write as _};

use lakebed_model::JoinUse;

use super::{Dialect, LineageTier, lineage};
use crate::{Catalog, ColumnType, EmptyCatalog};

type Tables = BTreeMap<String, Vec<(String, ColumnType)>>;

/// The tables of TPC-H, with the columns that the tests use.
pub(crate) fn tpch() -> Tables {
    const TABLES: [(&str, &str); 8] = [
        ("region", "r_regionkey:i r_name:t"),
        ("nation", "n_nationkey:i n_name:t n_regionkey:i"),
        ("supplier", "s_suppkey:i s_name:t s_nationkey:i"),
        ("customer", "c_custkey:i c_name:t c_nationkey:i c_phone:t c_acctbal:m c_mktsegment:t"),
        ("part", "p_partkey:i p_name:t p_type:t p_size:i p_brand:t p_container:t"),
        ("partsupp", "ps_partkey:i ps_suppkey:i ps_availqty:i ps_supplycost:m"),
        (
            "orders",
            "o_orderkey:i o_custkey:i o_orderstatus:t o_totalprice:m o_orderdate:d \
             o_orderpriority:t",
        ),
        (
            "lineitem",
            "l_orderkey:i l_partkey:i l_suppkey:i l_linenumber:i l_quantity:m l_extendedprice:m \
             l_discount:m l_tax:m l_returnflag:t l_linestatus:t l_shipdate:d l_commitdate:d \
             l_receiptdate:d l_shipmode:t",
        ),
    ];
    let column = |text: &str| {
        let (name, kind) = text.split_once(':').unwrap();
        let kind = match kind {
            "i" => ColumnType::Integer,
            "m" => ColumnType::Decimal { scale: 2 },
            "d" => ColumnType::Date,
            _ => ColumnType::Text,
        };
        (name.to_owned(), kind)
    };
    TABLES
        .into_iter()
        .map(|(table, columns)| {
            (table.to_owned(), columns.split_whitespace().map(column).collect())
        })
        .collect()
}

/// Tables of integers: `s.orders(id,customer)`.
fn tables(schema: &[&str]) -> Tables {
    let table = |text: &&str| {
        let (name, columns) = text.trim_end_matches(')').split_once('(').unwrap();
        let columns = columns.split(',').map(|c| (c.trim().to_owned(), ColumnType::Integer));
        (name.to_owned(), columns.collect())
    };
    schema.iter().map(table).collect()
}

/// One text per edge, `a.x=b.y,a.z=b.z kind`, sorted.
fn edges_of(joins: &[JoinUse]) -> Vec<String> {
    let mut edges: Vec<String> = joins
        .iter()
        .map(|join| {
            let (left, right) = (&join.left, &join.right);
            let pairs: Vec<String> =
                join.pairs.iter().map(|(l, r)| format!("{left}.{l}={right}.{r}")).collect();
            format!("{} {}", pairs.join(","), join.kind.as_str())
        })
        .collect();
    edges.sort();
    edges
}

/// One line per edge, then one per scan with its filters; inferred ones are marked by `~`.
fn shown(sql: &str, dialect: Dialect, catalog: &dyn Catalog) -> String {
    let lineage = match lineage(sql, dialect, catalog) {
        Ok(lineage) => lineage,
        Err(error) => return error.to_string(),
    };
    let mut text = String::new();
    for join in &lineage.joins {
        let pairs: Vec<String> = join.pairs.iter().map(|(l, r)| format!("{l}={r}")).collect();
        let (left, right, kind) = (&join.left, &join.right, join.kind.as_str());
        let _ = write!(text, "{left}–{right} {} {kind}", pairs.join(","));
        if join.confidence < lineage.confidence {
            let _ = write!(text, " {:.2}", join.confidence);
        }
        text.push('\n');
    }
    for scan in &lineage.scans {
        let _ = write!(text, "{} {:?}", scan.table.as_ref().unwrap(), scan.columns);
        for filter in &scan.filters {
            let range = filter.range.as_ref().map_or("?".to_owned(), ToString::to_string);
            let mark = if filter.inferred { "~" } else { "" };
            let (column, operator) = (&filter.column.column, filter.operator.as_str());
            let _ = write!(text, " {mark}{column} {operator} {range};");
        }
        text.push('\n');
    }
    for loss in &lineage.losses {
        let _ = writeln!(text, "lost: {loss}");
    }
    if lineage.tier != LineageTier::Resolved {
        let _ = writeln!(text, "{}", lineage.tier.as_str());
    }
    text
}

fn resolved(sql: &str) -> String {
    shown(sql, Dialect::Spark, &tpch())
}

fn stubbed(sql: &str) -> String {
    shown(sql, Dialect::Generic, &EmptyCatalog)
}

#[test]
fn a_comma_join_is_an_edge_and_its_filter_is_inferred_across() {
    insta::assert_snapshot!(resolved(
        "SELECT c_mktsegment, sum(o_totalprice) s FROM customer, orders \
         WHERE c_custkey = o_custkey AND c_custkey BETWEEN 100 AND 199 GROUP BY c_mktsegment"
    ), @r#"
        customer–orders c_custkey=o_custkey inner
        customer ["c_custkey", "c_mktsegment"] c_custkey range [100, 199];
        orders ["o_custkey", "o_totalprice"] ~o_custkey range [100, 199];
        "#);
}

#[test]
fn lineage_goes_through_cte_alias_and_group_key() {
    insta::assert_snapshot!(resolved(
        "WITH k AS (SELECT l_orderkey AS k, sum(l_quantity) q FROM lineitem GROUP BY l_orderkey \
         HAVING sum(l_quantity) > 250) \
         SELECT count(*) FROM k JOIN orders ON k.k = o_orderkey JOIN customer ON c_custkey = o_custkey"
    ), @r#"
        lineitem–orders l_orderkey=o_orderkey inner
        customer–orders c_custkey=o_custkey inner
        lineitem ["l_orderkey", "l_quantity"]
        orders ["o_orderkey", "o_custkey"]
        customer ["c_custkey"]
        "#);
}

#[test]
fn exists_and_in_become_semi_and_anti_joins() {
    insta::assert_snapshot!(resolved(
        "SELECT count(*) FROM customer c WHERE NOT EXISTS \
         (SELECT 1 FROM orders o WHERE o.o_custkey = c.c_custkey) AND c_nationkey IN \
         (SELECT n_nationkey FROM nation WHERE n_name = 'CANADA')"
    ), @r#"
        customer–orders c_custkey=o_custkey left_anti
        customer–nation c_nationkey=n_nationkey left_semi
        customer ["c_custkey", "c_nationkey"]
        orders ["o_custkey"]
        nation ["n_nationkey", "n_name"] n_name equal ['CANADA', 'CANADA'];
        "#);
}

#[test]
fn composite_keys_are_one_edge() {
    insta::assert_snapshot!(resolved(
        "SELECT 1 FROM lineitem JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey"
    ), @r#"
        lineitem–partsupp l_partkey=ps_partkey,l_suppkey=ps_suppkey inner
        lineitem ["l_partkey", "l_suppkey"]
        partsupp ["ps_partkey", "ps_suppkey"]
        "#);
}

#[test]
fn outer_self_cast_and_null_safe_joins_are_edges() {
    insta::assert_snapshot!(resolved(
        "SELECT 1 FROM orders o LEFT JOIN customer c ON o.o_custkey = c.c_custkey AND c.c_acctbal > 5.00"
    ), @r#"
        customer–orders c_custkey=o_custkey right_outer
        orders ["o_custkey"]
        customer ["c_custkey", "c_acctbal"] c_acctbal range (5.00, ∞);
        "#);
    insta::assert_snapshot!(resolved(
        "SELECT 1 FROM lineitem a JOIN lineitem b ON a.l_orderkey = b.l_orderkey AND a.l_linenumber < b.l_linenumber"
    ), @r#"
        lineitem–lineitem l_orderkey=l_orderkey inner
        lineitem ["l_orderkey", "l_linenumber"]
        lineitem ["l_orderkey", "l_linenumber"]
        "#);
    insta::assert_snapshot!(resolved(
        "SELECT 1 FROM lineitem JOIN orders ON CAST(l_orderkey AS STRING) = CAST(o_orderkey AS STRING)"
    ), @r#"
        lineitem–orders l_orderkey=o_orderkey inner
        lineitem ["l_orderkey"]
        orders ["o_orderkey"]
        "#);
    insta::assert_snapshot!(resolved(
        "SELECT 1 FROM lineitem JOIN orders ON l_orderkey <=> o_orderkey"
    ), @r#"
        lineitem–orders l_orderkey=o_orderkey inner
        lineitem ["l_orderkey"]
        orders ["o_orderkey"]
        "#);
}

#[test]
fn computed_keys_and_disjunctions_make_no_edge() {
    insta::assert_snapshot!(resolved(
        "SELECT 1 FROM lineitem JOIN orders ON l_orderkey + 1 = o_orderkey"
    ), @r#"
        lineitem ["l_orderkey"]
        orders ["o_orderkey"]
        "#);
    insta::assert_snapshot!(resolved(
        "SELECT 1 FROM lineitem JOIN orders ON l_orderkey = o_orderkey OR l_quantity > 5"
    ), @r#"
        lineitem ["l_orderkey", "l_quantity"]
        orders ["o_orderkey"]
        "#);
}

#[test]
fn a_union_fans_out_with_half_the_confidence_each() {
    insta::assert_snapshot!(resolved(
        "SELECT count(*) FROM (SELECT o_orderkey AS id FROM orders UNION ALL \
         SELECT ps_partkey AS id FROM partsupp) u JOIN lineitem ON u.id = l_orderkey"
    ), @r#"
        lineitem–orders l_orderkey=o_orderkey inner 0.50
        lineitem–partsupp l_orderkey=ps_partkey inner 0.50
        orders ["o_orderkey"]
        partsupp ["ps_partkey"]
        lineitem ["l_orderkey"]
        "#);
}

#[test]
fn filters_have_the_type_of_their_column_and_constants_are_folded() {
    insta::assert_snapshot!(resolved(
        "SELECT 1 FROM lineitem WHERE l_shipdate >= DATE'1994-01-01' \
         AND l_shipdate < DATE'1994-01-01' + INTERVAL '1' YEAR AND l_receiptdate < '1995-06-17' \
         AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24 AND l_shipmode IN ('MAIL', 'AIR')"
    ), @r#"
        lineitem ["l_quantity", "l_discount", "l_shipdate", "l_receiptdate", "l_shipmode"] l_discount range [0.05, 0.07]; l_quantity range (-∞, 24.00); l_receiptdate range (-∞, 1995-06-17); l_shipdate range [1994-01-01, 1995-01-01); l_shipmode in ['AIR', 'MAIL'];
        "#);
    insta::assert_snapshot!(resolved(
        "SELECT 1 FROM part WHERE p_name LIKE 'forest%' AND p_type LIKE '%BRASS' AND p_size <> 5 \
         AND (p_brand = 'B1' OR p_brand = 'B7') AND p_container IS NOT NULL"
    ), @r#"
        part ["p_name", "p_type", "p_size", "p_brand", "p_container"] p_brand in ['B1', 'B7']; p_name prefix ['forest', 'foresu'); p_size other ?; p_type other ?;
        "#);
}

#[test]
fn filters_above_windows_and_aggregates_reach_the_group_key_only() {
    insta::assert_snapshot!(resolved(
        "SELECT count(*) FROM (SELECT *, row_number() OVER (PARTITION BY l_orderkey ORDER BY \
         l_linenumber) rn FROM lineitem) x JOIN orders ON x.l_orderkey = o_orderkey \
         WHERE rn = 1 AND x.l_orderkey < 100"
    ), @r#"
        lineitem–orders l_orderkey=o_orderkey inner
        lineitem ["l_orderkey", "l_linenumber"] l_orderkey range (-∞, 100);
        orders ["o_orderkey"] ~o_orderkey range (-∞, 100);
        "#);
}

#[test]
fn unknown_tables_get_schemas_from_qualified_columns() {
    insta::assert_snapshot!(stubbed(
        "SELECT a.x, sum(b.amount) FROM shop.a AS a JOIN shop.b b ON a.id = b.a_id \
         WHERE b.day >= DATE '2024-01-01' AND a.kind = 'k' GROUP BY a.x"
    ), @r#"
        shop.a–shop.b id=a_id inner
        shop.a ["id", "kind", "x"] kind equal ['k', 'k'];
        shop.b ["a_id", "day", "amount"] day range [2024-01-01, ∞);
        stub_schemas
        "#);
}

#[test]
fn unknown_tables_get_unqualified_columns_where_they_stand_alone() {
    insta::assert_snapshot!(stubbed(
        "SELECT region, my_udf(total) FROM sales WHERE region = 'N' AND ts > 5 \
         AND id IN (SELECT sale_id FROM returns)"
    ), @r#"
        returns–sales sale_id=id left_semi
        sales ["region", "ts", "id", "total"] region equal ['N', 'N']; ts range (5, ∞);
        returns ["sale_id"]
        stub_schemas
        "#);
}

#[test]
fn a_column_that_could_belong_to_two_unknown_tables_is_lost_and_the_rest_is_not() {
    insta::assert_snapshot!(
        stubbed("SELECT 1 FROM a JOIN b ON a.id = b.id WHERE price > 5 AND a.x = 1"),
        @r#"
            a–b id=id inner
            a ["id", "x"] x equal [1, 1];
            b ["id"]
            lost: resolve column `price`: it could belong to any of a, b, whose schemas are unknown
            stub_schemas
            "#
    );
}

#[test]
fn an_unqualified_column_goes_to_the_only_unknown_table() {
    insta::assert_snapshot!(resolved(
        "SELECT 1 FROM orders JOIN promo ON o_custkey = promo_customer WHERE promo_kind = 'x'"
    ), @r#"
        orders–promo o_custkey=promo_customer inner
        orders ["o_custkey"]
        promo ["promo_customer", "promo_kind"] promo_kind equal ['x', 'x'];
        stub_schemas
        "#);
}

#[test]
fn statements_that_write_are_read_by_what_they_read() {
    insta::assert_snapshot!(resolved(
        "MERGE INTO orders t USING customer s ON t.o_custkey = s.c_custkey WHEN MATCHED THEN DELETE"
    ), @r#"
        customer–orders c_custkey=o_custkey inner
        orders ["o_custkey"]
        customer ["c_custkey"]
        "#);
    insta::assert_snapshot!(resolved("DELETE FROM orders WHERE o_orderkey < 7"), @r#"
        orders ["o_orderkey"] o_orderkey range (-∞, 7);
        "#);
    insta::assert_snapshot!(resolved("SHOW TABLES"), @"find a query in `SHOW TABLES`: it reads no table");
    insta::assert_snapshot!(resolved("SELECT 1"), @"find a query in `SELECT`: it reads no table");
}

#[test]
fn dialects_keep_their_own_spelling() {
    for (dialect, sql) in [
        (
            Dialect::Spark,
            "SELECT `O`.`o_custkey` FROM `ORDERS` `O` LEFT SEMI JOIN `customer` c ON `O`.`O_CUSTKEY` = c.c_custkey",
        ),
        (
            Dialect::Databricks,
            "SELECT 1 FROM orders VERSION AS OF 3 SEMI JOIN customer ON o_custkey = c_custkey",
        ),
        (
            Dialect::Snowflake,
            "SELECT O.O_CUSTKEY FROM \"ORDERS\" O WHERE O_CUSTKEY IN (SELECT C_CUSTKEY FROM CUSTOMER)",
        ),
        (
            Dialect::BigQuery,
            "SELECT 1 FROM `orders` o WHERE EXISTS (SELECT 1 FROM customer c WHERE c.c_custkey = o.o_custkey)",
        ),
        (
            Dialect::Redshift,
            "SELECT 1 FROM orders WHERE o_custkey IN (SELECT c_custkey FROM customer)",
        ),
        (
            Dialect::DuckDb,
            "FROM orders SELECT 1 WHERE o_custkey IN (SELECT c_custkey FROM customer)",
        ),
        (
            Dialect::Postgres,
            "SELECT 1::int FROM orders WHERE o_custkey = ANY (SELECT c_custkey FROM customer)",
        ),
        (
            Dialect::parse("Trino").unwrap(),
            "SELECT 1 FROM orders WHERE o_custkey IN (SELECT c_custkey FROM customer)",
        ),
    ] {
        let lineage =
            lineage(sql, dialect, &tpch()).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let edges: Vec<String> = lineage
            .joins
            .iter()
            .map(|join| {
                format!("{} {} {:?} {}", join.left, join.right, join.pairs, join.kind.as_str())
            })
            .collect();
        assert_eq!(edges, [r#"customer orders [("c_custkey", "o_custkey")] left_semi"#], "{sql}");
    }
}

#[test]
fn an_unknown_dialect_is_refused_with_the_known_ones() {
    assert_eq!(
        Dialect::parse("tsql").unwrap_err().to_string(),
        "parse SQL of dialect `tsql`: unknown dialect, expected one of generic, trino, athena, \
         spark, databricks, snowflake, bigquery, redshift, duckdb, postgres, postgresql, mysql, \
         mariadb, hive"
    );
}

#[test]
fn a_filter_on_one_branch_of_a_union_is_not_inferred_for_what_it_joins() {
    for sql in [
        "SELECT 1 FROM (SELECT id FROM a WHERE id = 1 UNION ALL SELECT id FROM a) u \
         JOIN d ON u.id = d.id",
        "WITH RECURSIVE u AS (SELECT id, up FROM a WHERE id = 1 UNION ALL \
         SELECT b.id, b.up FROM a b JOIN u ON b.id = u.up) SELECT 1 FROM u JOIN d ON u.id = d.id",
    ] {
        let schema = tables(&["a(id,up)", "d(id)"]);
        let found = lineage(sql, Dialect::Postgres, &schema).unwrap();
        let filtered: Vec<&str> = found
            .scans
            .iter()
            .filter(|scan| !scan.filters.is_empty())
            .filter_map(|scan| scan.table.as_ref().map(lakebed_model::TableName::as_str))
            .collect();
        assert_eq!(filtered, ["a"], "{sql}");
    }
}

#[test]
fn a_table_whose_name_is_not_in_the_text_is_none() {
    for sql in [
        "SELECT 1 FROM a JOIN IDENTIFIER($t) b ON a.k = b.k",
        "SELECT 1 FROM @stage/x.csv s JOIN a ON s.$1 = a.k",
    ] {
        let found = lineage(sql, Dialect::Snowflake, &EmptyCatalog).unwrap();
        assert!(found.joins.is_empty(), "{sql} {:?}", found.joins);
        let tables: Vec<_> = found.scans.iter().filter_map(|scan| scan.table.as_ref()).collect();
        assert_eq!(tables, [&lakebed_model::TableName::new("a")], "{sql}");
    }
}
