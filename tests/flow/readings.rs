//! What a query says that it read.

use lakebed_lake::ScanCost;
use lakebed_model::TableName;

use crate::support::{empty_lake, runtime, small_lake};

#[test]
fn a_query_tells_what_it_read_of_each_table() {
    let folder = small_lake().to_string_lossy();
    let run = |sql: &str| {
        runtime(async {
            let mut lake = empty_lake();
            lake.add_lake(&folder).await.expect("the small lake");
            Box::pin(lake.session().run(sql)).await.expect("a query that runs")
        })
    };
    let outcome = run("SELECT sum(o_totalprice), sum(a.l_quantity), sum(b.l_tax) FROM orders \
         JOIN lineitem a ON a.l_orderkey = o_orderkey JOIN lineitem b ON b.l_orderkey = o_orderkey");
    let of = |table: &str| outcome.tables[&TableName::new(table)];
    assert_eq!((of("orders").files_read, of("orders").files_total), (30, 30));
    // Scanned twice: every file counts twice.
    assert_eq!((of("lineitem").files_read, of("lineitem").files_total), (200, 200));
    assert!(of("orders").bytes_read > 0 && of("lineitem").bytes_read > of("orders").bytes_read);
    let sum = outcome.tables.values().fold(ScanCost::default(), |sum, cost| sum.plus(*cost));
    assert_eq!((sum, outcome.tables.len()), (outcome.cost, 2));

    let nothing = run("SELECT count(o_custkey) FROM orders WHERE o_orderkey < 0");
    let cost = nothing.tables[&TableName::new("orders")];
    assert_eq!((cost.files_read, cost.files_total, cost.bytes_read), (0, 30, 0));
}
