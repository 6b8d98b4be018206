//! Statements, tables and predicates that make no sense.

use std::path::Path;

use crate::support::{
    Numbers, clustered_table, command_line, lakebed, lakebed_with, small_lake, stable,
};

/// Runs a verb on the small lake and shows how it failed.
#[track_caller]
fn failure(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let lake = small_lake().display().to_string();
    let mut all = vec!["--lake", lake.as_str()];
    all.extend(arguments);
    let text = lakebed(folder.path(), &all).failure();
    stable(&text, Path::new(&lake))
}

#[test]
fn unknown_table_is_refused_with_the_tables_there_are() {
    let expected = "exit code 2
error: failed to find table `ordrs`: the lake has customer, lineitem, nation, orders, part, partsupp, region, supplier
help: name a table of the lake, or set [lake] folder or [tables] in lakebed.toml
";
    for arguments in [
        ["sql", "OPTIMIZE ordrs"].as_slice(),
        &["sql", "ALTER TABLE ordrs CLUSTER BY (a)"],
        &["sql", "DESCRIBE HISTORY ordrs"],
        &["sql", "SELECT * FROM ordrs"],
        &["explain", "ordrs", "--where", "a = 1"],
        &["compact", "ordrs", "--iterators", "ageoff='a','1',"],
    ] {
        assert_eq!(failure(arguments), expected, "{arguments:?}");
    }
}

#[test]
fn lake_without_tables_says_so() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(lakebed(folder.path(), &["sql", "OPTIMIZE orders"]).failure(), @r"
    exit code 2
    error: failed to find table `orders`: the lake has no tables
    help: name a table of the lake, or set [lake] folder or [tables] in lakebed.toml
    ");
    insta::assert_snapshot!(lakebed(folder.path(), &["--lake", "nope", "sql", "SELECT 1"]).failure().replace(&folder.path().display().to_string(), "<folder>"), @r"
    exit code 2
    error: failed to open lake at `<folder>/nope/`: No such file or directory (os error 2)
    help: give a folder or a URL such as file:///lake/orders
    ");
}

#[test]
fn statement_that_is_none_is_refused_with_position_and_expectation() {
    insta::assert_snapshot!(failure(&["sql", "TRUNCATE orders"]), @r"
    exit code 2
    error: failed to parse statement at byte 0: expected SELECT, CREATE TABLE, ALTER TABLE, INSERT INTO, DELETE FROM, OPTIMIZE, ANALYZE TABLE, VACUUM, DESCRIBE, SET or RESET, found `TRUNCATE`
    help: correct the statement or choose other columns
    ");
    insta::assert_snapshot!(failure(&["sql", "OPTIMIZE orders ZORDER BY (o_orderkey)"]), @r"
    exit code 2
    error: failed to run OPTIMIZE … ZORDER BY (o_orderkey) on table `orders` [DELTA_CLUSTERING_WITH_ZORDER_BY]: the columns are the table's: set them with ALTER TABLE … CLUSTER BY (…)
    help: correct the statement or choose other columns
    ");
}

#[test]
fn query_that_does_not_parse_is_refused_with_its_place() {
    insta::assert_snapshot!(failure(&["sql", "SELECT o_orderkey FROM orders WHERE"]), @r#"
    exit code 2
    error: failed to run query `SELECT o_orderkey FROM orders WHERE`
    caused by: SQL error: ParserError("Expected: an expression, found: EOF")
    caused by: sql parser error: Expected: an expression, found: EOF
    help: correct the query, or check the tables it names
    "#);
}

#[test]
fn query_with_an_unknown_column_names_it() {
    insta::assert_snapshot!(failure(&["sql", "SELECT o_orderky FROM orders"]), @r"
    exit code 2
    error: failed to run query `SELECT o_orderky FROM orders`
    caused by: No field named o_orderky. Did you mean 'orders.o_orderkey'? Valid fields are orders.o_orderkey, orders.o_custkey, orders.o_orderstatus, orders.o_totalprice, orders.o_orderdate, orders.o_orderpriority, orders.o_clerk, orders.o_shippriority, orders.o_comment.
    help: correct the query, or check the tables it names
    ");
}

#[test]
fn predicate_that_does_not_parse_is_refused_with_its_place() {
    insta::assert_snapshot!(failure(&["explain", "orders", "--where", "o_orderkey BETWEEN"]), @r"
    exit code 2
    error: failed to read predicate `o_orderkey BETWEEN`: parse SQL at line 1, column 48: Expected: an expression, found: EOF
    help: write it as it would stand after WHERE
    ");
}

#[test]
fn predicate_with_an_unknown_column_names_the_nearest() {
    insta::assert_snapshot!(failure(&["explain", "orders", "--where", "o_orderky = 1"]), @r"
    exit code 2
    error: failed to run predicate `o_orderky = 1` on table `orders`
    caused by: run query `SELECT count(*) FROM `orders` WHERE o_orderky = 1`
    caused by: No field named o_orderky. Did you mean 'orders.o_orderkey'? Valid fields are orders.o_orderkey, orders.o_custkey, orders.o_orderstatus, orders.o_totalprice, orders.o_orderdate, orders.o_orderpriority, orders.o_clerk, orders.o_shippriority, orders.o_comment.
    help: correct the query, or check the tables it names
    ");
}

#[test]
fn clustering_columns_are_checked_with_deltas_error_classes() {
    insta::assert_snapshot!(failure(&["sql", "ALTER TABLE region CLUSTER BY (r_nme)"]), @r"
    exit code 2
    error: failed to cluster table `region` by `r_nme` [DELTA_COLUMN_NOT_FOUND_IN_SCHEMA]: the table has no such column; it has r_regionkey, r_name, r_comment
    help: correct the statement or choose other columns
    ");
    insta::assert_snapshot!(failure(&["sql", "ALTER TABLE region CLUSTER BY (r_name, r_name)"]), @r"
    exit code 2
    error: failed to cluster table `region` by `r_name` twice [DELTA_DUPLICATE_COLUMNS_FOUND]
    help: correct the statement or choose other columns
    ");
    insta::assert_snapshot!(failure(&["sql", "OPTIMIZE region FULL"]), @r"
    exit code 2
    error: failed to run OPTIMIZE `region` FULL [DELTA_OPTIMIZE_FULL_NOT_SUPPORTED]: the table has no clustering columns; set some with ALTER TABLE region CLUSTER BY (…)
    help: correct the statement or choose other columns
    ");
    let five =
        "ALTER TABLE orders CLUSTER BY (o_orderkey, o_custkey, o_orderdate, o_clerk, o_comment)";
    insta::assert_snapshot!(failure(&["sql", five]), @r"
    exit code 2
    error: failed to cluster table `orders` by 5 columns [DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS]: at most 4 are allowed
    help: correct the statement or choose other columns
    ");
}

/// A folder that looks like a table but has no version is an error of the input: trying again is no use.
#[test]
fn folder_without_a_version_is_no_table() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("t").join("_delta_log")).unwrap();
    let text = lakebed(folder.path(), &["--lake", ".", "sql", "OPTIMIZE t"]).failure();
    insta::assert_snapshot!(stable(&text, folder.path()), @r"
    exit code 2
    error: failed to find table `t`: file://<folder>/t/ holds no Delta table
    help: name a table of the lake, or set [lake] folder or [tables] in lakebed.toml
    ");
}

/// The text of the cause is the Delta kernel's; that it is one line, whatever the environment, is ours.
#[test]
fn damaged_log_of_a_table_is_an_error_of_the_input() {
    let lake = clustered_table("one-key");
    let log = lake.path().join("one-key").join("_delta_log");
    let fail = || {
        let mut run = command_line(lake.path(), &["--lake", ".", "sql", "OPTIMIZE `one-key`"]);
        stable(&lakebed_with(run.env("RUST_BACKTRACE", "1")).failure(), lake.path())
    };
    let commit = log.join(format!("{:020}.json", 5));
    std::fs::write(&commit, "no JSON\n").unwrap();
    insta::assert_snapshot!(fail(), @r"
    exit code 2
    error: failed to read table `one-key` at file://<folder>/one-key/: its log is damaged
    caused by: Json error: Encountered unexpected 'o' whilst parsing literal
    help: restore the files of the table's log
    ");
    std::fs::remove_file(commit).unwrap();
    std::fs::remove_file(log.join(format!("{:020}.json", 2))).unwrap();
    let text = fail();
    let start = "exit code 2\nerror: failed to read table `one-key` at file://<folder>/one-key/: its log is damaged\ncaused by: ";
    assert!(text.starts_with(start) && text.contains("found gap"), "{text}");
}

/// A bound lifted over the join would take away the null that makes NOT IN unknown.
#[test]
fn not_in_over_a_null_answers_nothing() {
    let lake = tempfile::tempdir().unwrap();
    let sql = "select a from (select * from (values (1), (2)) t(a) where a < 5 limit 10) x \
               where a not in (select b from (values (3), (null)) u(b))";
    let run = lakebed(lake.path(), &["--json", "sql", sql]);
    assert!(run.json_lines().is_empty());
}

#[test]
fn table_is_found_by_any_name_that_spark_would_take() {
    let folder = tempfile::tempdir().unwrap();
    let lake = small_lake();
    let path = lake.join("region").display().to_string();
    for table in [
        "region",
        "Region",
        "`REGION`",
        "default.region",
        "spark_catalog.default.region",
        &format!("delta.`{path}`"),
        &format!("delta.`file://{path}`"),
    ] {
        let sql = format!("SELECT count(*) AS n FROM {table}");
        let options = ["--lake", &lake.display().to_string(), "--json", "sql", &sql];
        let rows = lakebed(folder.path(), &options).json_lines();
        assert_eq!(rows, [serde_json::json!({"n": 5})], "{table}");
    }
    let both =
        format!("SELECT count(*) AS n FROM delta.`{path}` a JOIN region USING (r_regionkey)");
    let options = ["--lake", &lake.display().to_string(), "sql", &both];
    let text = lakebed(folder.path(), &options).succeeded().stdout.clone();
    assert!(text.contains("| 5 |") && text.contains("2 of 2 files read"), "{text}");
    let detail = ["--lake", &lake.display().to_string(), "sql", "DESCRIBE DETAIL Region"];
    lakebed(folder.path(), &detail).succeeded();
}

#[test]
fn query_beyond_the_engines_memory_says_what_to_raise() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("lakebed.toml"), "[engine]\nmemory = \"64KiB\"\n").unwrap();
    let lake = small_lake().display().to_string();
    let sql = "SELECT count(*) FROM lineitem a JOIN lineitem b ON a.l_comment = b.l_comment";
    let text = lakebed(folder.path(), &["--lake", &lake, "sql", sql]).failure();
    assert!(text.starts_with("exit code 3\nerror: failed to run query `SELECT count(*)"), "{text}");
    assert!(text.contains("Resources exhausted"), "{text}");
    let help = "help: raise --memory-limit, or lower threads under [engine] in lakebed.toml";
    assert!(text.contains(help), "{text}");
}

#[test]
fn predicate_on_nulls_skips_files_without_any() {
    let lake = tempfile::tempdir().unwrap();
    // 4 files without nulls.
    Numbers::create(lake.path(), 4, 100);
    let options = ["--lake", ".", "explain", "t", "--where", "k IS NULL", "--json"];
    let view = lakebed(lake.path(), &options).json();
    assert_eq!(view["nulls"], serde_json::json!(["k"]));
    assert_eq!((&view["phases"][0]["files"], &view["phases"][1]["files"]), (&4.into(), &0.into()));
    assert_eq!(view["phases"][2]["files"], 0, "and the engine agrees");
}

/// What a subquery asks of its own scans is not asked of the table.
#[test]
fn predicate_with_a_subquery_narrows_its_own_table_only() {
    let folder = tempfile::tempdir().unwrap();
    let lake = small_lake().display().to_string();
    let explain = |predicate: &str| {
        let options = ["--lake", &lake, "explain", "Orders", "--where", predicate, "--json"];
        let view = lakebed(folder.path(), &options).json();
        (view["ranges"].clone(), view["nulls"].clone(), view["phases"][1]["files"].clone())
    };
    let (ranges, nulls, _) = explain(
        "o_orderkey < 10 AND o_custkey IN (SELECT c_custkey FROM customer WHERE c_custkey < 100)",
    );
    let columns: Vec<&str> =
        ranges.as_array().unwrap().iter().filter_map(|range| range["column"].as_str()).collect();
    assert!(columns.contains(&"o_orderkey") && !columns.contains(&"c_custkey"), "{ranges}");
    assert_eq!(nulls, serde_json::json!([]));
    let (_, nulls, left) = explain(
        "o_orderkey < 10 AND NOT EXISTS (SELECT 1 FROM orders x WHERE x.o_custkey IS NULL)",
    );
    assert_eq!((nulls, left), (serde_json::json!([]), 30.into()));
}

#[test]
fn columns_are_found_whatever_the_case_of_their_letters() {
    let lake = tempfile::tempdir().unwrap();
    Numbers::create(lake.path(), 2, 100);
    let sql = |statement: &str| lakebed(lake.path(), &["--lake", ".", "--json", "sql", statement]);
    sql("ALTER TABLE default.T CLUSTER BY (K)").succeeded();
    assert_eq!(
        sql("DESCRIBE DETAIL spark_catalog.default.t").json()["clusteringColumns"],
        serde_json::json!(["k"])
    );
    let text = sql("ALTER TABLE t CLUSTER BY (k, K)").failure();
    assert!(text.contains("by `k` twice [DELTA_DUPLICATE_COLUMNS_FOUND]"), "{text}");
    let options = ["--lake", ".", "explain", "t", "--where", "k < 5", "--under", "K"];
    lakebed(lake.path(), &options).succeeded();
}

#[test]
fn location_without_a_table_is_an_error_of_the_input() {
    let folder = tempfile::tempdir().unwrap();
    for statement in ["SELECT * FROM delta.`/nope`", "OPTIMIZE delta.`/nope`"] {
        let text = lakebed(folder.path(), &["sql", statement]).failure();
        let expected =
            "exit code 2\nerror: failed to find table `/nope`: there is nothing at file:///nope/\n";
        assert!(text.starts_with(expected), "{text}");
    }
}
