//! What is known decides how sure lineage is; what cannot be told is left out.

use super::{Dialect, LineageTier, edges_of, lineage, tables};
use crate::{EmptyCatalog, lineage::sql::SqlLineage};

fn read(sql: &str, schema: &[&str]) -> SqlLineage {
    lineage(sql, Dialect::Spark, &tables(schema)).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

#[track_caller]
fn check(sql: &str, schema: &[&str], tier: LineageTier, expected: &[&str]) {
    let found = read(sql, schema);
    assert_eq!(
        (found.tier, edges_of(&found.joins)),
        (tier, expected.iter().map(|e| (*e).to_owned()).collect()),
        "{:?}",
        found.losses
    );
    assert!((found.confidence - tier.confidence()).abs() < f64::EPSILON);
}

#[test]
fn each_tier_has_its_own_confidence() {
    let schema = ["a(id,x)", "b(id,x)"];
    let edges = ["a.id=b.id inner"];
    check("SELECT a.x FROM a JOIN b ON a.id = b.id", &schema, LineageTier::Resolved, &edges);
    check(
        "SELECT my_own(a.x) FROM a JOIN b ON a.id = b.id",
        &schema,
        LineageTier::StubFunctions,
        &edges,
    );
    check(
        "SELECT a.x FROM a JOIN b ON a.id = b.id",
        &schema[..1],
        LineageTier::StubSchemas,
        &edges,
    );
    // The planner does not know this join; its scopes are read all the same.
    check(
        "SELECT a.x FROM a JOIN b ON a.id = b.id JOIN c.d.e.f g ON g.id = a.id",
        &schema,
        LineageTier::Scoped,
        &["a.id=b.id inner", "a.id=c.d.e.f.id inner"],
    );
}

#[test]
fn a_name_is_the_only_tables_that_can_have_it() {
    // Known in one table: no other can have it, or the text would be refused by its engine.
    let sql = "SELECT 1 FROM a JOIN b ON a.id = b.id WHERE x = 5";
    let filters = |found: &SqlLineage| -> Vec<String> {
        found.scans.iter().flat_map(|s| &s.filters).map(|f| f.column.to_string()).collect()
    };
    assert_eq!(filters(&read(sql, &["a(id,x)", "b(id)"])), ["a.x"]);
    assert_eq!(filters(&read(sql, &["a(id,x)"])), ["a.x"]);
    assert_eq!(filters(&read(sql, &["a(id)"])), ["b.x"]);
    // Mentioned with its table elsewhere in the text.
    let sql = "SELECT b.x FROM a JOIN b ON a.id = b.id WHERE x = 5";
    assert_eq!(filters(&read(sql, &[])), ["b.x"]);
    let sql = "SELECT 1 FROM a JOIN b ON a.id = b.id WHERE x = 5";
    let found = read(sql, &[]);
    assert!(filters(&found).is_empty());
    assert_eq!(found.losses.len(), 1);
    // A table that stands there twice cannot have a name without qualifier.
    let sql = "SELECT 1 FROM e JOIN e m ON e.boss = m.id JOIN d ON d.id = e.dept WHERE name = 5";
    assert_eq!(filters(&read(sql, &[])), ["d.name"]);
}

#[test]
fn a_lost_key_loses_its_edge_and_no_other() {
    let sql = "SELECT 1 FROM a JOIN b ON j = b.id JOIN c ON c.k = b.k";
    let found = read(sql, &[]);
    assert_eq!(edges_of(&found.joins), ["b.k=c.k inner"]);
    assert_eq!(
        found.losses,
        ["resolve column `j`: it could belong to any of a, b, whose schemas are unknown"]
    );
}

#[test]
fn using_and_natural_joins_chain() {
    let sql = "SELECT 1 FROM a JOIN b USING (k) JOIN c USING (k)";
    let schema = ["a(k,x)", "b(k,y)", "c(k,z)"];
    check(sql, &schema, LineageTier::Resolved, &["a.k=b.k inner", "a.k=c.k inner"]);
    let natural = "SELECT 1 FROM a NATURAL JOIN b";
    check(natural, &["a(k,j,x)", "b(k,j,y)"], LineageTier::Resolved, &["a.j=b.j,a.k=b.k inner"]);
}

#[test]
fn outer_kinds_are_kept_and_residual_conditions_are_no_keys() {
    check(
        "SELECT 1 FROM a LEFT JOIN b ON a.id = b.id AND a.x = 5 FULL JOIN c ON c.id = b.id",
        &["a(id,x)", "b(id)", "c(id)"],
        LineageTier::Resolved,
        &["a.id=b.id left_outer", "b.id=c.id full_outer"],
    );
    check(
        "SELECT 1 FROM a, b WHERE (a.id = b.id AND a.x = 1) OR (a.id = b.id AND a.x = 2)",
        &["a(id,x)", "b(id)"],
        LineageTier::Resolved,
        &["a.id=b.id inner"],
    );
    check(
        "SELECT 1 FROM a, b WHERE a.id = b.id OR a.x = 2",
        &["a(id,x)", "b(id)"],
        LineageTier::Resolved,
        &[],
    );
}

#[test]
fn statements_that_do_not_parse_say_why_without_their_constants() {
    let error = lineage("SELEC 'secret' FROM t", Dialect::Spark, &EmptyCatalog).unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}

/// The walk alone and the planner tell the same of statements that both can read.
#[test]
fn the_planner_and_the_scopes_agree() {
    use crate::lineage::sql::{rewrite, scope};
    let schema = tables(&["a(id,x,k)", "b(id,x,k)", "c(id,x,k)", "d(id,x,k)"]);
    for sql in [
        "SELECT a.x FROM a, b, c WHERE a.id = b.id AND b.k = c.k AND a.x BETWEEN 1 AND 5",
        "SELECT 1 FROM a LEFT JOIN b ON a.id = b.id AND b.x > 4 WHERE a.k IN (3, 1, 2)",
        "SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.id AND b.x = 3)",
        "SELECT 1 FROM a WHERE a.id NOT IN (SELECT id FROM b WHERE x < 3) AND a.x = 7",
        "WITH q AS (SELECT id, max(x) m FROM a GROUP BY id) SELECT 1 FROM q JOIN b ON q.id = b.id",
        "SELECT 1 FROM (SELECT id FROM a UNION ALL SELECT k FROM b) u JOIN c ON u.id = c.id",
        "SELECT 1 FROM a x JOIN a y ON x.id = y.k WHERE x.k = 5",
        "SELECT 1 FROM a JOIN b ON a.id = b.id AND a.k = b.k WHERE a.id >= 10 AND a.id < 20",
        "SELECT 1 FROM a WHERE x > (SELECT avg(b.x) FROM b WHERE b.id = a.id)",
        "SELECT 1 FROM (SELECT a.id, a.x FROM a JOIN b ON a.k = b.k) s JOIN c ON s.id = c.id \
         WHERE s.x = 3 OR s.x = 4",
        "SELECT count(*) FROM a JOIN b USING (id) RIGHT JOIN c ON c.k = a.k WHERE c.x = 1",
        "SELECT 1 FROM a SEMI JOIN b ON a.id = b.id ANTI JOIN c ON a.k = c.k",
    ] {
        let planned = lineage(sql, Dialect::Spark, &schema).unwrap();
        assert_eq!(planned.tier, LineageTier::Resolved, "{sql}");
        let mut query =
            rewrite::parse(sql, Dialect::Spark).unwrap().into_iter().find_map(rewrite::query_of);
        let query = query.as_mut().unwrap();
        rewrite::respell(query);
        let survey = scope::Survey::of(query);
        let hints = scope::Hints::default();
        let walked = scope::walk(query, Dialect::Spark, &schema, &hints, &survey);
        assert_eq!(edges_of(&planned.joins), edges_of(&walked.joins), "{sql}");
        let filters = |scans: &[lakebed_model::ScanUse]| {
            let mut filters: Vec<String> = scans
                .iter()
                .flat_map(|s| &s.filters)
                .map(|f| format!("{} {:?} {:?} {}", f.column, f.operator, f.range, f.inferred))
                .collect();
            filters.sort();
            filters
        };
        assert_eq!(filters(&planned.scans), filters(&walked.scans), "{sql}");
    }
}
