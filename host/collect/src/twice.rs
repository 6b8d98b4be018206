//! Executions that two views of one engine both tell of.
//!
//! Snowflake's `COLUMN_QUERY_PRUNING_HISTORY` counts, by hour, the executions that `QUERY_HISTORY` lists
//! with their text, and has no query ids. So each counted execution is looked for among the listed ones
//! of its hour: one that reads the same columns of the same tables, and that no other was found to be.
//! What is not found, such as a statement whose text nobody could read, stays.

use std::collections::BTreeMap;

use lakebed_model::{ColumnRef, ScanUse};

use crate::source::{SNOWFLAKE, SNOWFLAKE_PRUNING, Statement};

const HOUR_MS: i64 = 3_600_000;

/// Drops the counted executions that are listed too, and returns how many.
pub(crate) fn drop_counted(statements: &mut Vec<Statement>) -> u64 {
    let hour = |statement: &Statement| statement.record.started_at.epoch_ms().div_euclid(HOUR_MS);
    let mut listed: BTreeMap<i64, Vec<Vec<ScanUse>>> = BTreeMap::new();
    for statement in statements.iter().filter(|statement| statement.record.source == SNOWFLAKE) {
        listed.entry(hour(statement)).or_default().push(statement.record.scans.clone());
    }
    if listed.is_empty() {
        return 0;
    }
    let before = statements.len();
    statements.retain(|statement| {
        if statement.record.source != SNOWFLAKE_PRUNING {
            return true;
        }
        let Some(others) = listed.get_mut(&hour(statement)) else { return true };
        let twin = others.iter().position(|other| tells_as_much(other, &statement.record.scans));
        twin.map(|twin| others.swap_remove(twin)).is_none()
    });
    (before - statements.len()) as u64
}

/// Tells whether scans read all tables that others read, and ask of all columns that those ask of.
fn tells_as_much(listed: &[ScanUse], counted: &[ScanUse]) -> bool {
    let asks = |column: &ColumnRef, scan: &ScanUse| {
        scan.filters.iter().any(|filter| filter.column.column == column.column)
    };
    counted.iter().all(|scan| {
        let Some(table) = &scan.table else { return false };
        let same = listed.iter().filter(|other| {
            other.table.as_ref().is_some_and(|other| names_same(other.as_str(), table.as_str()))
        });
        let same: Vec<&ScanUse> = same.collect();
        !same.is_empty()
            && scan
                .filters
                .iter()
                .all(|filter| same.iter().any(|other| asks(&filter.column, other)))
    })
}

/// Tells whether two names may be one table's: one may lack its catalog and schema.
fn names_same(one: &str, other: &str) -> bool {
    let (long, short) = if one.len() < other.len() { (other, one) } else { (one, other) };
    long == short || long.strip_suffix(short).is_some_and(|rest| rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::{SNOWFLAKE, SNOWFLAKE_PRUNING, Statement, drop_counted};
    use crate::source::tests::statement_at;
    use lakebed_model::{ColumnRef, FilterOperator, FilterUse, ScanUse, TableName};

    fn statement(source: &str, at_ms: i64, table: &str, filtered: &[&str]) -> Statement {
        let mut statement = statement_at(at_ms);
        let filter = |column: &&str| FilterUse {
            column: ColumnRef::new(table, *column),
            operator: FilterOperator::Other,
            range: None,
            inferred: false,
        };
        statement.record.source = source.to_owned();
        statement.record.scans = vec![ScanUse {
            table: Some(TableName::new(table)),
            filters: filtered.iter().map(filter).collect(),
            ..ScanUse::default()
        }];
        statement
    }

    #[test]
    fn an_execution_that_is_listed_and_counted_counts_once() {
        let listed = |at, table, filtered| statement(SNOWFLAKE, at, table, filtered);
        let counted = |at, table, filtered| statement(SNOWFLAKE_PRUNING, at, table, filtered);
        let mut all = vec![
            listed(1_000, "db.s.orders", &["day", "customer"]),
            listed(2_000, "orders", &["day"]),
            counted(0, "db.s.orders", &["day"]),
            counted(0, "db.s.orders", &["day"]),
            // A third execution of that hour is not listed.
            counted(0, "db.s.orders", &["day"]),
            // Another column, another hour, another table.
            counted(0, "db.s.orders", &["status"]),
            counted(3_600_000, "db.s.orders", &["day"]),
            counted(0, "db.s.reorders", &["day"]),
        ];
        assert_eq!(drop_counted(&mut all), 2);
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn counted_executions_stay_where_nothing_is_listed() {
        let mut all = vec![statement(SNOWFLAKE_PRUNING, 0, "t", &["a"])];
        assert_eq!(drop_counted(&mut all), 0);
        let mut all = vec![
            statement("databricks", 0, "t", &["a"]),
            statement(SNOWFLAKE_PRUNING, 0, "t", &["a"]),
        ];
        assert_eq!((drop_counted(&mut all), all.len()), (0, 2));
    }
}
