//! What each dialect writes in its own way.

use super::{Dialect, LineageTier, edges_of, lineage};
use crate::EmptyCatalog;

/// Checks the edges of a statement on tables of unknown schema; it must not be a matter of scopes
/// alone unless said.
#[track_caller]
fn check(dialect: Dialect, sql: &str, expected: &[&str]) {
    let found = lineage(sql, dialect, &EmptyCatalog).unwrap_or_else(|e| panic!("{sql}: {e}"));
    assert_eq!(edges_of(&found.joins), expected, "{sql}\n{:?} {:?}", found.tier, found.losses);
}

#[track_caller]
fn check_filters(dialect: Dialect, sql: &str, expected: &[&str]) {
    let found = lineage(sql, dialect, &EmptyCatalog).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let filters: Vec<String> = found
        .scans
        .iter()
        .flat_map(|scan| &scan.filters)
        .map(|filter| {
            let range = filter.range.as_ref().map_or("?".to_owned(), ToString::to_string);
            format!("{} {} {range}", filter.column, filter.operator.as_str())
        })
        .collect();
    assert_eq!(filters, expected, "{sql}\n{:?} {:?}", found.tier, found.losses);
}

const ALL: [Dialect; 11] = [
    Dialect::Generic,
    Dialect::Spark,
    Dialect::Databricks,
    Dialect::Snowflake,
    Dialect::BigQuery,
    Dialect::Redshift,
    Dialect::DuckDb,
    Dialect::Postgres,
    Dialect::MySql,
    Dialect::Trino,
    Dialect::Hive,
];

#[test]
fn what_all_dialects_share_is_read_in_each() {
    for dialect in ALL {
        check(
            dialect,
            "WITH q AS (SELECT a.id, a.k FROM a WHERE a.day = '2024-01-01') \
             SELECT q.id, count(*) FROM q JOIN b ON q.id = b.id LEFT JOIN c ON c.k = q.k \
             WHERE b.x IN (SELECT y FROM d) GROUP BY q.id ORDER BY 2 DESC LIMIT 5",
            &["a.id=b.id inner", "a.k=c.k left_outer", "b.x=d.y left_semi"],
        );
        check(
            dialect,
            "INSERT INTO t SELECT a.x FROM a JOIN b ON a.id = b.id",
            &["a.id=b.id inner"],
        );
        check(
            dialect,
            "CREATE TABLE t AS SELECT a.x FROM a JOIN b ON a.id = b.id",
            &["a.id=b.id inner"],
        );
    }
}

#[test]
fn spark_and_databricks() {
    for dialect in [Dialect::Spark, Dialect::Databricks] {
        check(
            dialect,
            "SELECT a.id, x FROM a JOIN b ON a.id = b.id LATERAL VIEW explode(a.xs) v AS x \
             WHERE x = 5 DISTRIBUTE BY a.id SORT BY x",
            &["a.id=b.id inner"],
        );
        check(
            dialect,
            "INSERT OVERWRITE TABLE t PARTITION (d = '1') SELECT a.x FROM a JOIN b ON a.id = b.id",
            &["a.id=b.id inner"],
        );
        check(
            dialect,
            "MERGE INTO t USING (SELECT id, x FROM s) u ON t.id = u.id AND t.d = u.x \
             WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            &["s.id=t.id,s.x=t.d inner"],
        );
        check(
            dialect,
            "SELECT * FROM (SELECT id, kind, v FROM s) PIVOT (sum(v) FOR kind IN ('a' AS a, 'b' AS b)) p \
             JOIN t ON p.id = t.id AND p.a = t.a",
            &["s.id=t.id inner"],
        );
        check_filters(
            dialect,
            "SELECT 1 FROM a WHERE d >= :low AND k = ? AND x = 5 AND y = '{{ ds }}'",
            &["a.d range ?", "a.k equal ?", "a.x equal [5, 5]", "a.y equal ?"],
        );
    }
    check(Dialect::Databricks, "SELECT 1 FROM a JOIN b ON a.v:id::int = b.id", &[]);
}

#[test]
fn snowflake() {
    check(
        Dialect::Snowflake,
        "SELECT a.id, f.value FROM a, LATERAL FLATTEN(input => a.items) f JOIN b ON a.id = b.id",
        &["a.id=b.id inner"],
    );
    check(
        Dialect::Snowflake,
        "SELECT \"A\".\"ID\" FROM A JOIN \"B\" ON A.ID = B.\"ID\" \
         QUALIFY row_number() OVER (PARTITION BY A.ID ORDER BY B.T) = 1",
        &["a.id=b.id inner"],
    );
    check_filters(
        Dialect::Snowflake,
        "SELECT upper(x) AS u, k AS kk FROM a WHERE kk = 5",
        &["a.k equal [5, 5]"],
    );
    check(
        Dialect::Snowflake,
        "SELECT 1 FROM a ASOF JOIN b MATCH_CONDITION (a.t >= b.t) ON a.k = b.k",
        &["a.k=b.k inner"],
    );
    check(
        Dialect::Snowflake,
        "SELECT DATEDIFF(day, a.t, b.t) FROM a JOIN b ON a.id = b.id",
        &["a.id=b.id inner"],
    );
}

#[test]
fn bigquery() {
    check(
        Dialect::BigQuery,
        "SELECT a.id FROM `p.d.a` a, UNNEST(a.items) AS item JOIN `p.d.b` b ON a.id = b.id \
         AND item.k = b.k",
        &["p.d.a.id=p.d.b.id inner"],
    );
    check(
        Dialect::BigQuery,
        "SELECT * EXCEPT (x) FROM d.a JOIN d.b USING (id)",
        &["d.a.id=d.b.id inner"],
    );
    check_filters(
        Dialect::BigQuery,
        "SELECT 1 FROM d.a WHERE x = \"s\" AND y > @p",
        &["d.a.x equal ['s', 's']", "d.a.y range ?"],
    );
}

#[test]
fn duckdb() {
    check(
        Dialect::DuckDb,
        "SELECT 1 FROM a ASOF JOIN b ON a.k = b.k AND a.t >= b.t",
        &["a.k=b.k inner"],
    );
    check(
        Dialect::DuckDb,
        "SELECT 1 FROM a POSITIONAL JOIN b JOIN c ON a.k = c.k",
        &["a.k=c.k inner"],
    );
    check(Dialect::DuckDb, "FROM a SEMI JOIN b USING (k) SELECT x", &["a.k=b.k left_semi"]);
    check(Dialect::DuckDb, "FROM a JOIN b ON a.k = b.k", &["a.k=b.k inner"]);
    check(Dialect::DuckDb, "SELECT a.x AS y FROM a JOIN b ON y = b.y", &["a.x=b.y inner"]);
}

#[test]
fn postgres_redshift_mysql() {
    for dialect in [Dialect::Postgres, Dialect::Redshift] {
        check(
            dialect,
            "DELETE FROM a USING b, c WHERE a.id = b.id AND b.k = c.k",
            &["a.id=b.id inner", "b.k=c.k inner"],
        );
        check(
            dialect,
            "UPDATE a SET x = (SELECT max(y) FROM d WHERE d.k = a.k) FROM b WHERE a.id = b.id",
            &["a.id=b.id inner", "a.k=d.k left_outer"],
        );
        check_filters(
            dialect,
            "SELECT 1 FROM a WHERE x = $1 AND y = 3 AND z::date >= '2024-01-01'::date",
            &["a.x equal ?", "a.y equal [3, 3]", "a.z range [2024-01-01, ∞)"],
        );
    }
    check(
        Dialect::Postgres,
        "SELECT 1 FROM a CROSS JOIN LATERAL (SELECT x FROM b WHERE b.id = a.id) l JOIN c ON l.x = c.x",
        &["a.id=b.id inner", "b.x=c.x inner"],
    );
    check(
        Dialect::MySql,
        "SELECT `a`.`x` FROM `a` STRAIGHT_JOIN `b` ON `a`.`id` = `b`.`id` WHERE a.y = \"s\"",
        &["a.id=b.id inner"],
    );
}

#[test]
fn trino() {
    check(
        Dialect::Trino,
        "SELECT 1 FROM hive.s.a CROSS JOIN UNNEST(a.xs) AS u (x) JOIN hive.s.b ON a.id = b.id \
         AND u.x = b.x",
        &["hive.s.a.id=hive.s.b.id inner"],
    );
    check(
        Dialect::Trino,
        "SELECT 1 FROM \"a\" JOIN \"b\" ON \"a\".\"ID\" = \"b\".\"id\" WHERE try_cast(a.x AS bigint) = 5",
        &["a.id=b.id inner"],
    );
}

#[test]
fn subqueries_in_all_places() {
    let kinds = [
        ("a.id IN (SELECT b.id FROM b)", "a.id=b.id left_semi"),
        ("a.id NOT IN (SELECT b.id FROM b)", "a.id=b.id left_anti"),
        ("NOT a.id IN (SELECT b.id FROM b)", "a.id=b.id left_anti"),
        ("a.id = ANY (SELECT b.id FROM b)", "a.id=b.id left_semi"),
        ("EXISTS (SELECT 1 FROM b WHERE b.id = a.id)", "a.id=b.id left_semi"),
        ("NOT EXISTS (SELECT 1 FROM b WHERE b.id = a.id)", "a.id=b.id left_anti"),
        ("a.x = 1 OR EXISTS (SELECT 1 FROM b WHERE b.id = a.id)", "a.id=b.id existence"),
        ("a.x > (SELECT avg(b.x) FROM b WHERE b.id = a.id)", "a.id=b.id inner"),
        ("(a.id, a.k) IN (SELECT b.id, b.k FROM b)", "a.id=b.id,a.k=b.k left_semi"),
    ];
    for (condition, edge) in kinds {
        check(Dialect::Postgres, &format!("SELECT 1 FROM a WHERE {condition}"), &[edge]);
    }
}

#[test]
fn what_the_planner_refuses_is_read_by_its_scopes() {
    let sql = "SELECT 1 FROM a.b.c.d x JOIN e ON x.id = e.id WHERE x.day >= DATE '2024-01-01'";
    let found = lineage(sql, Dialect::Spark, &EmptyCatalog).unwrap();
    assert_eq!(found.tier, LineageTier::Scoped);
    assert_eq!(edges_of(&found.joins), ["a.b.c.d.id=e.id inner"]);
    assert!((found.joins[0].confidence - 0.5).abs() < 1e-9);
    assert_eq!(found.losses.len(), 1, "{:?}", found.losses);
    check_filters(Dialect::Spark, sql, &["a.b.c.d.day range [2024-01-01, ∞)"]);
}
