//! Faults that comparable tools had, each named after its report: the edges that must be there, and
//! those that must not.

use super::{Dialect, Tables, edges_of, lineage, tables};
use crate::{
    EmptyCatalog,
    lineage::sql::{LineageReader, SqlText},
};
use lakebed_model::{Instant, JoinStrategy};

/// Edges as `left.column=right.column kind`, in the order of their text.
#[track_caller]
fn check(dialect: Dialect, sql: &str, schema: &[&str], expected: &[&str]) {
    check_in(dialect, sql, &tables(schema), expected);
}

#[track_caller]
fn check_in(dialect: Dialect, sql: &str, tables: &Tables, expected: &[&str]) {
    let found = lineage(sql, dialect, tables).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let edges = edges_of(&found.joins);
    assert_eq!(edges, expected, "{sql}\n{:?} {:?}", found.tier, found.losses);
}

/// datafusion-sqlparser-rs#1504: the word is no alias, and the join is no inner one.
#[test]
fn sqlparser_1504_bare_semi_and_anti_joins_are_no_aliases() {
    for (word, kind) in [("ANTI", "left_anti"), ("SEMI", "left_semi")] {
        let sql = format!("SELECT 1 FROM t1 {word} JOIN t2 ON t1.id = t2.id");
        let expected = [format!("t1.id=t2.id {kind}")];
        for dialect in [Dialect::DuckDb, Dialect::Spark, Dialect::Databricks] {
            check(dialect, &sql, &[], &expected.each_ref().map(String::as_str));
            check(dialect, &sql, &["t1(id)", "t2(id)"], &expected.each_ref().map(String::as_str));
        }
    }
}

/// polyglot#68: a correlated name without qualifier is the outer query's.
#[test]
fn polyglot_68_correlation_without_qualifiers_needs_a_schema() {
    let sql = "SELECT o_pri FROM orders WHERE EXISTS (SELECT 1 FROM line WHERE l_okey = o_key)";
    let schema = ["orders(o_key,o_pri)", "line(l_okey)"];
    check(Dialect::Postgres, sql, &schema, &["line.l_okey=orders.o_key left_semi"]);
    let found = lineage(sql, Dialect::Postgres, &EmptyCatalog).unwrap();
    assert!(found.joins.is_empty(), "{:?}", found.joins);
    assert_eq!(
        found.losses,
        [
            "resolve column `l_okey`: it could belong to line or to an outer query",
            "resolve column `o_key`: it could belong to line or to an outer query",
        ]
    );
    // One known side does not say whose the other is, the qualifier does.
    let sql = "SELECT 1 FROM orders o WHERE EXISTS (SELECT 1 FROM line l WHERE l.okey = o.k)";
    check(Dialect::Postgres, sql, &[], &["line.okey=orders.k left_semi"]);
}

/// sqlglot#2692: an alias hides a common table in its own `FROM` only.
#[test]
fn sqlglot_2692_an_alias_hides_a_common_table_in_its_own_from_only() {
    let sql = "WITH q AS (SELECT a FROM y) SELECT 1 FROM x AS q JOIN z ON q.a = z.a \
               WHERE q.b IN (SELECT a FROM q)";
    let expected = ["x.a=z.a inner", "x.b=y.a left_semi"];
    check(Dialect::Postgres, sql, &[], &expected);
    check(Dialect::Postgres, sql, &["x(a,b)", "y(a)", "z(a)"], &expected);
    // And a common table hides a table below where it is defined, not above.
    let sql = "SELECT 1 FROM q JOIN (WITH q AS (SELECT a FROM y) SELECT a FROM q) r ON q.a = r.a";
    check(Dialect::Postgres, sql, &[], &["q.a=y.a inner"]);
    // A definition does not see itself without the word RECURSIVE.
    let sql = "WITH q AS (SELECT a FROM q) SELECT 1 FROM q JOIN z ON q.a = z.a";
    check(Dialect::Postgres, sql, &[], &["q.a=z.a inner"]);
}

/// datafusion-sqlparser-rs#305, datafusion#1434: depth and length never end the process.
#[test]
fn sqlparser_305_deep_and_long_filters_are_read_or_refused() {
    let deep: String = (2..=400).map(|n| format!(" OR a.s = {n})")).collect();
    let sql = format!("SELECT 1 FROM a JOIN b ON a.k = b.k WHERE {}a.s = 1{deep}", "(".repeat(399));
    check(Dialect::Postgres, &sql, &[], &["a.k=b.k inner"]);
    let terms: Vec<String> = (1..=20_000).map(|n| format!("a.s = {n}")).collect();
    let sql = format!("SELECT 1 FROM a JOIN b ON a.k = b.k WHERE {}", terms.join(" OR "));
    check(Dialect::Postgres, &sql, &[], &["a.k=b.k inner"]);
    let found = lineage(&sql, Dialect::Postgres, &EmptyCatalog).unwrap();
    let filter = &found.scans[0].filters[0];
    assert_eq!(filter.range.as_ref().unwrap().to_string(), "[1, 20000]");
    let terms: Vec<String> = (1..=5_000).map(|n| format!("a.c{n} < b.d{n}")).collect();
    let sql = format!("SELECT 1 FROM a JOIN b ON a.k = b.k WHERE {}", terms.join(" OR "));
    check(Dialect::Postgres, &sql, &[], &["a.k=b.k inner"]);
    let sql = format!("SELECT 1 FROM a JOIN b ON a.k = b.k WHERE {}", "(".repeat(5_000));
    let error = lineage(&sql, Dialect::Postgres, &EmptyCatalog).unwrap_err();
    assert!(error.to_string().contains("too deep"), "{error}");
    // The next statement is read.
    check(Dialect::Postgres, "SELECT 1 FROM a JOIN b ON a.k = b.k", &[], &["a.k=b.k inner"]);
}

/// sqlglot#7332, polyglot#411.
#[test]
fn sqlglot_7332_union_by_name_goes_by_name() {
    let sql = "SELECT 1 FROM (SELECT id, k FROM a UNION ALL BY NAME SELECT k, id, z FROM b) u \
               JOIN d ON u.k = d.k JOIN e ON u.z = e.z";
    let expected = ["a.k=d.k inner", "b.k=d.k inner", "b.z=e.z inner"];
    check(Dialect::DuckDb, sql, &[], &expected);
    check(Dialect::DuckDb, sql, &["a(id,k)", "b(k,id,z)", "d(k)", "e(z)"], &expected);
}

/// sqlglot#210: a struct's field is a path in a column, not a column of a table.
#[test]
fn sqlglot_210_a_struct_path_is_no_table() {
    let sql = "SELECT 1 FROM ds.orders JOIN ds.cust ON ship.addr.cid = cust.id";
    let expected = ["ds.cust.id=ds.orders.ship.addr.cid inner"];
    check(Dialect::BigQuery, sql, &["ds.orders(ship)", "ds.cust(id)"], &expected);
    let sql = "SELECT 1 FROM ds.orders o JOIN ds.cust c ON o.ship.cid = c.id";
    check(Dialect::BigQuery, sql, &[], &["ds.cust.id=ds.orders.ship.cid inner"]);
    // Without a schema the column may be either table's.
    let sql = "SELECT 1 FROM ds.orders JOIN ds.cust ON ship.addr.cid = cust.id";
    let found = lineage(sql, Dialect::BigQuery, &EmptyCatalog).unwrap();
    assert!(found.joins.is_empty());
    let tables: Vec<_> = found.scans.iter().map(|s| s.table.clone().unwrap().to_string()).collect();
    assert_eq!(tables, ["ds.orders", "ds.cust"]);
    assert_eq!(found.losses.len(), 1, "{:?}", found.losses);
}

/// arc#648: literals end where the dialect says.
#[test]
fn arc_648_a_backslash_is_no_escape_everywhere() {
    let sql = r"SELECT 1 FROM a JOIN b ON a.k = b.k WHERE a.p = 'end\' AND a.mail = 'm1@x.test'";
    let found = lineage(sql, Dialect::DuckDb, &EmptyCatalog).unwrap();
    assert_eq!(edges_of(&found.joins), ["a.k=b.k inner"]);
    let filters: Vec<&str> =
        found.scans[0].filters.iter().map(|f| f.column.column.as_str()).collect();
    assert_eq!(filters, ["mail", "p"]);
    assert!(!crate::redacted(sql, Dialect::DuckDb).contains("x.test"));
    // In Spark the same text is cut short: an error, which does not show it.
    let error = lineage(sql, Dialect::Spark, &EmptyCatalog).unwrap_err().to_string();
    assert!(!error.contains("x.test") && !error.contains("m1"), "{error}");
}

/// sqlglot#7279: a table and its alias are two instances.
#[test]
fn sqlglot_7279_a_qualified_reference_stays_with_the_bare_table() {
    let sql = "SELECT 1 FROM s.a JOIN s.b ON s.b.id = s.a.id JOIN s.b AS x ON x.pid = s.a.pid";
    let expected = ["s.a.id=s.b.id inner", "s.a.pid=s.b.pid inner"];
    check(Dialect::Postgres, sql, &[], &expected);
    check(Dialect::Postgres, sql, &["s.a(id,pid)", "s.b(id,pid)"], &expected);
}

/// sqlglot#4502: an alias of the select list in `ON`.
#[test]
fn sqlglot_4502_a_select_alias_in_on_is_an_expression_key() {
    let sql = "SELECT YEAR(u.born) AS yr FROM users u JOIN ly ON yr = ly.y";
    let found = lineage(sql, Dialect::Snowflake, &EmptyCatalog).unwrap();
    assert!(found.joins.is_empty(), "a computed key is no edge: {:?}", found.joins);
    let [key] = &found.computed_keys[..] else { panic!("{:?}", found.computed_keys) };
    assert_eq!((key.left.to_string(), key.right.to_string()), ("users.born".into(), "ly.y".into()));
    assert_eq!((key.left_function.as_deref(), key.right_function.as_deref()), (Some("year"), None));
    // A plain alias is the column itself.
    let sql = "SELECT u.born AS yr FROM users u JOIN ly ON yr = ly.y";
    check(Dialect::Snowflake, sql, &[], &["ly.y=users.born inner"]);
    // In Postgres such a name can only be a column.
    let found = lineage(sql, Dialect::Postgres, &EmptyCatalog).unwrap();
    assert!(found.joins.is_empty() && found.computed_keys.is_empty());
}

/// polyglot#244: a recursive definition is read once.
#[test]
fn polyglot_244_a_recursive_definition_comes_to_an_end() {
    let sql = "WITH RECURSIVE up AS (SELECT id, boss FROM emp WHERE id = 1 UNION ALL \
               SELECT e.id, e.boss FROM emp e JOIN up ON e.id = up.boss) \
               SELECT 1 FROM up JOIN dept ON up.id = dept.head";
    let expected = ["dept.head=emp.id inner", "emp.boss=emp.id inner"];
    check(Dialect::Postgres, sql, &[], &expected);
    check(Dialect::Postgres, sql, &["emp(id,boss)", "dept(head)"], &expected);
}

/// datahub#7102, #11625, sqllineage#35: temporary tables hold within their session.
#[test]
fn datahub_7102_temporary_tables_are_their_sessions_own() {
    let mut reader = LineageReader::new(&EmptyCatalog);
    let mut read = |session: Option<&str>, at: i64, sql: &str| {
        let at = Instant::from_epoch_ms(at);
        let found = reader.read(&SqlText { sql, dialect: Dialect::Postgres, session, at });
        edges_of(&found.unwrap().joins)
    };
    read(Some("s1"), 1, "CREATE TEMP TABLE tmp AS SELECT id AS k FROM src");
    read(Some("s2"), 2, "CREATE TEMP TABLE tmp AS SELECT x AS k FROM other");
    let join = "SELECT 1 FROM tmp JOIN dim ON tmp.k = dim.k";
    assert_eq!(read(Some("s1"), 3, join), ["dim.k=src.id inner"]);
    assert_eq!(read(Some("s2"), 3, join), ["dim.k=other.x inner"]);
    assert_eq!(read(Some("s3"), 3, join), ["dim.k=tmp.k inner"]);
    assert_eq!(read(None, 3, join), ["dim.k=tmp.k inner"]);
    // Made anew, it means the new definition from then on.
    read(Some("s1"), 5, "CREATE TEMP TABLE tmp AS SELECT y AS k FROM third");
    assert_eq!(read(Some("s1"), 4, join), ["dim.k=src.id inner"]);
    assert_eq!(read(Some("s1"), 6, join), ["dim.k=third.y inner"]);
    read(Some("s1"), 7, "DROP TABLE tmp; SELECT 1 FROM src");
    assert_eq!(read(Some("s1"), 8, join), ["dim.k=tmp.k inner"]);
}

/// sqllineage#787, datafusion-sqlparser-rs#971: a dot in quotes separates in BigQuery alone.
#[test]
fn sqllineage_787_a_dot_in_quotes_is_part_of_a_name() {
    let sql = r#"SELECT 1 FROM "1.2.Orders" o JOIN c ON o.cid = c.id"#;
    check(Dialect::Postgres, sql, &[], &[r#""1.2.Orders".cid=c.id inner"#]);
    let sql = "SELECT 1 FROM `p-1.d.orders` o JOIN `p-1`.`d`.c ON o.cid = c.id";
    check(Dialect::BigQuery, sql, &[], &["p-1.d.c.id=p-1.d.orders.cid inner"]);
}

/// sqlglot#8383, SQLMesh#3557: the right side of a semi join is gone behind its `ON`.
#[test]
fn sqlglot_8383_a_semi_join_hides_its_right_side() {
    let sql = "SELECT s.c FROM (SELECT * FROM y LEFT SEMI JOIN x ON b = a) s JOIN d ON s.c = d.c";
    let expected = ["d.c=y.c inner", "x.a=y.b left_semi"];
    check(Dialect::Spark, sql, &["y(b,c)", "x(a,c)", "d(c)"], &expected);
}

/// sqlglot#7075, datafusion-sqlparser-rs#1667, #2155.
#[test]
fn sqlglot_7075_time_travel_stands_where_the_dialect_puts_it() {
    for (dialect, sql) in [
        (
            Dialect::BigQuery,
            "SELECT 1 FROM d.o AS x FOR SYSTEM_TIME AS OF '2024-01-01' JOIN d.c y ON x.cid = y.id",
        ),
        (Dialect::Databricks, "SELECT 1 FROM d.o VERSION AS OF 10 AS x JOIN d.c y ON x.cid = y.id"),
        (
            Dialect::Spark,
            "SELECT 1 FROM d.o TIMESTAMP AS OF '2024-01-01' x JOIN d.c y ON x.cid = y.id",
        ),
        (Dialect::Snowflake, "SELECT 1 FROM d.o AT(OFFSET => -60) x JOIN d.c y ON x.cid = y.id"),
        (Dialect::Trino, "SELECT 1 FROM d.o FOR VERSION AS OF 7 AS x JOIN d.c y ON x.cid = y.id"),
    ] {
        check(dialect, sql, &[], &["d.c.id=d.o.cid inner"]);
    }
}

/// sqlglot#7727: what an unpivot makes is made of the columns it lists.
#[test]
fn sqlglot_7727_unpivot_makes_columns() {
    let sql = "SELECT 1 FROM (SELECT id, jan, feb FROM sales) UNPIVOT (amt FOR mon IN (jan, feb)) \
               AS u JOIN cal c ON u.mon = c.mon AND u.id = c.id JOIN lim ON u.amt = lim.amt";
    let expected = ["cal.id=sales.id inner", "lim.amt=sales.feb inner", "lim.amt=sales.jan inner"];
    check(Dialect::Databricks, sql, &[], &expected);
}

/// sqllineage#713: parentheses in `FROM` hide no table.
#[test]
fn sqllineage_713_nested_joins_keep_their_tables() {
    let sql = "WITH c1 AS (SELECT k FROM t1) SELECT 1 FROM ((t2 AS b JOIN c1 AS c ON (b.k = c.k)) \
               JOIN t3 ON (t3.j = b.j))";
    check(Dialect::MySql, sql, &[], &["t1.k=t2.k inner", "t2.j=t3.j inner"]);
}

/// sqlglot#1934, trino#25148: every branch of a union counts.
#[test]
fn sqlglot_1934_all_branches_of_a_union_are_followed() {
    let sql = "SELECT 1 FROM (SELECT ca AS c FROM a UNION ALL SELECT cb FROM b UNION ALL \
               SELECT cc FROM e) u JOIN d ON u.c = d.id";
    let expected = ["a.ca=d.id inner", "b.cb=d.id inner", "d.id=e.cc inner"];
    check(Dialect::Postgres, sql, &[], &expected);
}

/// polyglot#386: the right side of `EXCEPT` gives no values. That it decides which rows stay is an
/// anti join, and said so.
#[test]
fn polyglot_386_the_right_side_of_except_is_no_source() {
    let sql = "SELECT 1 FROM (SELECT id FROM a EXCEPT SELECT rid FROM b) u JOIN d ON u.id = d.id";
    check(Dialect::Postgres, sql, &[], &["a.id=b.rid left_anti", "a.id=d.id inner"]);
}

/// sqllineage#487, #669.
#[test]
fn sqllineage_487_updates_join_what_they_read() {
    let sql = "UPDATE tgt SET email = s.email FROM src s WHERE s.id = tgt.id AND s.ok = 'y'";
    check(Dialect::Postgres, sql, &[], &["src.id=tgt.id inner"]);
    let found = lineage(sql, Dialect::Postgres, &EmptyCatalog).unwrap();
    let filters: Vec<String> =
        found.scans.iter().flat_map(|s| &s.filters).map(|f| f.column.to_string()).collect();
    assert_eq!(filters, ["src.ok"]);
    let sql = "UPDATE t1, t2 SET t1.a = t2.a WHERE t1.id = t2.id";
    check(Dialect::MySql, sql, &[], &["t1.id=t2.id inner"]);
}

/// sqlglot#7043: `QUALIFY` is neither a join nor a filter.
#[test]
fn sqlglot_7043_qualify_beside_group_by() {
    let sql = "SELECT o.cid, c.seg, sum(o.amt) AS s FROM o JOIN c ON o.cid = c.id \
               GROUP BY o.cid, c.seg QUALIFY row_number() OVER (PARTITION BY c.seg \
               ORDER BY sum(o.amt)) = 1";
    check(Dialect::Snowflake, sql, &[], &["c.id=o.cid inner"]);
    let found = lineage(sql, Dialect::Snowflake, &EmptyCatalog).unwrap();
    assert!(found.scans.iter().all(|scan| scan.filters.is_empty()), "{:?}", found.scans);
}

/// A broadcast hint is kept with the join it asks for, and with no other.
#[test]
fn hints_are_kept_as_facts() {
    let sql = "SELECT /*+ BROADCAST(c) */ 1 FROM o JOIN cust c ON o.cid = c.id JOIN p ON p.k = o.k";
    let found = lineage(sql, Dialect::Spark, &EmptyCatalog).unwrap();
    let hints: Vec<(String, Option<JoinStrategy>)> =
        found.joins.iter().map(|join| (join.left.to_string(), join.hint)).collect();
    assert_eq!(hints, [("cust".to_owned(), Some(JoinStrategy::Broadcast)), ("o".to_owned(), None)]);
}
