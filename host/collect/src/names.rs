//! Table names, as short as they are unique in the workload.
//!
//! Sources name a table as fully as the log does: `spark_catalog.default.orders`, or the folder
//! `gs://lake/tpch/orders` when the scan has no catalog name. Here
//! 1. a folder that some scan also calls by a catalog name gets that name,
//! 2. a name that could be short for exactly one other (`orders` beside `sales.orders`) is that one,
//! 3. every full name is cut to its last part, and names that would then collide keep one part more.

use std::collections::{BTreeMap, BTreeSet};

use lakebed_model::{QueryRecord, TableName};

use crate::source::Statement;

/// Renames the tables of all statements.
pub(crate) fn shorten(statements: &mut [Statement]) {
    let by_location = names_of_locations(statements);
    let full = |name: &TableName| -> TableName {
        by_location.get(name.as_str()).cloned().unwrap_or_else(|| name.clone())
    };
    let mut all = BTreeSet::new();
    for statement in statements.iter_mut() {
        rename(&mut statement.record, &full);
        collect_names(&statement.record, &mut all);
    }
    let short = short_names(&all);
    for statement in statements {
        rename(&mut statement.record, &|name| {
            short.get(name).cloned().unwrap_or_else(|| name.clone())
        });
    }
}

/// Maps folders to the catalog name that a scan of the same folder has.
fn names_of_locations(statements: &[Statement]) -> BTreeMap<String, TableName> {
    let mut names = BTreeMap::new();
    for scan in statements.iter().flat_map(|statement| &statement.record.scans) {
        if let (Some(table), Some(location)) = (&scan.table, &scan.location)
            && table.as_str() != location
        {
            names.entry(location.clone()).or_insert_with(|| table.clone());
        }
    }
    names
}

fn collect_names(record: &QueryRecord, into: &mut BTreeSet<TableName>) {
    for join in &record.joins {
        into.extend([join.left.clone(), join.right.clone()]);
    }
    into.extend(record.scans.iter().filter_map(|scan| scan.table.clone()));
}

fn rename(record: &mut QueryRecord, to: &dyn Fn(&TableName) -> TableName) {
    for scan in &mut record.scans {
        scan.table = scan.table.as_ref().map(to);
        for filter in &mut scan.filters {
            filter.column.table = to(&filter.column.table);
        }
    }
    let joins = std::mem::take(&mut record.joins);
    record.joins = joins
        .into_iter()
        .map(|mut join| {
            join.left = to(&join.left);
            join.right = to(&join.right);
            // The order of full names need not be the order of short ones.
            crate::lineage::edge::oriented(join)
        })
        .collect();
}

fn short_names(all: &BTreeSet<TableName>) -> BTreeMap<TableName, TableName> {
    let mut by_last_part: BTreeMap<String, Vec<&TableName>> = BTreeMap::new();
    for name in all {
        by_last_part.entry(last_parts(name.as_str(), 1)).or_default().push(name);
    }
    let full: BTreeMap<&TableName, &TableName> = by_last_part
        .values()
        .flat_map(|alike| alike.iter().map(|name| (*name, spelled_out(name, alike))))
        .collect();
    let distinct: BTreeSet<&TableName> = full.values().copied().collect();
    let mut kept_parts: BTreeMap<&TableName, usize> =
        distinct.into_iter().map(|name| (name, 1)).collect();
    loop {
        let mut by_short: BTreeMap<String, Vec<&TableName>> = BTreeMap::new();
        for (name, parts) in &kept_parts {
            by_short.entry(last_parts(name.as_str(), *parts)).or_default().push(*name);
        }
        let longer: Vec<&TableName> = by_short
            .into_values()
            .filter(|names| names.len() > 1)
            .flatten()
            .filter(|name| kept_parts[*name] < parts_of(name.as_str()).len())
            .collect();
        if longer.is_empty() {
            break;
        }
        for name in longer {
            *kept_parts.entry(name).or_insert(1) += 1;
        }
    }
    full.into_iter()
        .map(|(name, full)| {
            (name.clone(), TableName::new(unquoted(last_parts(full.as_str(), kept_parts[full]))))
        })
        .collect()
}

/// Finds the only longest name that a name could be short for; the name itself otherwise.
fn spelled_out<'n>(name: &'n TableName, alike: &[&'n TableName]) -> &'n TableName {
    let is_short_for = |short: &TableName, long: &TableName| {
        short != long && parts_of(long.as_str()).ends_with(&parts_of(short.as_str()))
    };
    let longest: Vec<&'n TableName> = alike
        .iter()
        .copied()
        .filter(|long| is_short_for(name, long))
        .filter(|long| !alike.iter().any(|longer| is_short_for(long, longer)))
        .collect();
    if let [only] = longest[..] { only } else { name }
}

fn last_parts(name: &str, count: usize) -> String {
    let parts = parts_of(name);
    parts[parts.len().saturating_sub(count)..].join(".")
}

/// Splits a folder at its slashes, a catalog name at its dots outside quotes.
fn parts_of(name: &str) -> Vec<&str> {
    if name.contains('/') {
        return name.split('/').filter(|part| !part.is_empty()).collect();
    }
    let mut quoted = false;
    name.split(|c| {
        quoted ^= c == '"';
        c == '.' && !quoted
    })
    .filter(|part| !part.is_empty())
    .collect()
}

/// Takes the quotes off a name of one part: nothing is left to tell it apart from.
fn unquoted(name: String) -> String {
    match name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) if !inner.contains('"') => inner.to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::{BTreeSet, TableName, short_names};

    #[track_caller]
    fn check(full: &[&str], expected: &[&str]) {
        let all: BTreeSet<TableName> = full.iter().map(|name| TableName::new(*name)).collect();
        let short = short_names(&all);
        let names: Vec<String> =
            full.iter().map(|name| short[&TableName::new(*name)].to_string()).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn unique_names_lose_catalog_schema_and_folder() {
        check(
            &["spark_catalog.default.orders", "gs://lake/sf3k/catalog_sales", "customer"],
            &["orders", "catalog_sales", "customer"],
        );
    }

    #[test]
    fn a_dot_in_quotes_separates_nothing() {
        check(&[r#"s."1.2.Orders""#, "t.orders"], &["1.2.Orders", "orders"]);
        check(&[r#"s."a.b""#, r#"t."a.b""#], &[r#"s."a.b""#, r#"t."a.b""#]);
    }

    #[test]
    fn names_that_would_collide_keep_their_schema() {
        check(&["a.sales.orders", "a.web.orders"], &["sales.orders", "web.orders"]);
        check(&["s3://a/sales/orders", "s3://a/web/orders"], &["sales.orders", "web.orders"]);
        check(&["x.sales.orders", "y.sales.orders"], &["x.sales.orders", "y.sales.orders"]);
    }

    #[test]
    fn a_short_name_is_the_only_table_it_can_be_short_for() {
        check(&["orders", "db.orders"], &["orders", "orders"]);
        check(&["orders", "db.orders", "main.db.orders"], &["orders", "orders", "orders"]);
        check(&["orders", "a.orders", "b.orders"], &["orders", "a.orders", "b.orders"]);
    }
}
