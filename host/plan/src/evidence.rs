//! What is known of a table when its layout is planned.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use lakebed_model::{Bytes, FileView, Literal, TableName};

/// How a table's rows are laid out over its files. On one Delta table the two exclude each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Layout {
    /// Clustering columns; their order means something to the rewriter only where there are cuts.
    pub cluster_by: Vec<String>,
    /// Parts of each clustering column ([`crate::cuts`]); empty where all have the same resolution.
    pub cuts: Vec<u32>,
    /// Directory partition columns.
    pub partition_by: Vec<String>,
}

impl Layout {
    /// Builds a layout clustered by these columns.
    #[must_use]
    pub const fn clustered(columns: Vec<String>) -> Self {
        Self { cluster_by: columns, cuts: Vec::new(), partition_by: Vec::new() }
    }

    /// Builds a layout of weighted cuts: columns and their parts, the outermost first.
    #[must_use]
    pub const fn cut(columns: Vec<String>, parts: Vec<u32>) -> Self {
        Self { cluster_by: columns, cuts: parts, partition_by: Vec::new() }
    }

    /// Tells whether both layouts place rows in the same way: the same sets of columns, or the same
    /// cuts in the same order.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        let set = |columns: &[String]| columns.iter().cloned().collect::<BTreeSet<_>>();
        let has_same_keys = if self.cuts.is_empty() && other.cuts.is_empty() {
            set(&self.cluster_by) == set(&other.cluster_by)
        } else {
            (&self.cluster_by, &self.cuts) == (&other.cluster_by, &other.cuts)
        };
        has_same_keys && set(&self.partition_by) == set(&other.partition_by)
    }

    /// Lists the clustering columns, with their parts where they are cut.
    #[must_use]
    pub fn keys(&self) -> String {
        let mut keys = self.cluster_by.clone();
        for (position, (key, parts)) in keys.iter_mut().zip(&self.cuts).enumerate() {
            *key = format!("{key} in {parts}{}", if position == 0 { " parts" } else { "" });
        }
        keys.join(", ")
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.cluster_by.is_empty(), self.partition_by.is_empty()) {
            (true, true) => f.write_str("no layout"),
            (false, _) => write!(f, "clustered by ({})", self.keys()),
            (true, false) => write!(f, "partitioned by ({})", self.partition_by.join(", ")),
        }
    }
}

/// Rows of a table drawn uniformly, column by column; entry `i` of every column is of the same row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableSample {
    /// Values by column name; `None` is null.
    pub columns: BTreeMap<String, Vec<Option<Literal>>>,
    /// How many rows were drawn; the length of every column.
    pub rows: usize,
}

impl TableSample {
    /// Drops every second row.
    pub fn thin(&mut self) {
        for values in self.columns.values_mut() {
            let mut index = 0_usize;
            values.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        self.rows = self.rows.div_ceil(2);
    }
}

/// What is known of a workload's tables.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LakeEvidence {
    /// The tables that may get another layout.
    pub tables: Vec<TableEvidence>,
    /// Tables of the lake that stay as they are whatever the workload says, and why.
    pub left_out: BTreeMap<TableName, String>,
}

impl From<Vec<TableEvidence>> for LakeEvidence {
    fn from(tables: Vec<TableEvidence>) -> Self {
        Self { tables, left_out: BTreeMap::new() }
    }
}

/// A table's snapshot as the planner sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct TableEvidence {
    /// The table.
    pub table: TableName,
    /// The snapshot's version.
    pub version: u64,
    /// The layout the table declares now.
    pub current: Layout,
    /// Size of the live files.
    pub bytes: Bytes,
    /// Live rows.
    pub rows: u64,
    /// The live files with their statistics.
    pub files: Vec<FileView>,
    /// How many files a rewrite would give.
    pub target_files: u64,
    /// Columns that may be clustering keys: their type can be ordered and has file statistics.
    pub eligible_columns: BTreeSet<String>,
    /// A uniform sample of the eligible columns.
    pub sample: TableSample,
    /// Bytes of files that do not follow the declared clustering columns yet.
    pub pending: Bytes,
    /// Why the table must not be rewritten, if so: fits after "the table is protected:".
    pub protected: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lakebed_model::Literal;

    use super::{Layout, TableSample};

    fn names(columns: &[&str]) -> Vec<String> {
        columns.iter().map(|&column| column.to_owned()).collect()
    }

    #[test]
    fn cuts_make_the_order_of_columns_part_of_the_layout() {
        let (ab, ba) = (names(&["a", "b"]), names(&["b", "a"]));
        assert!(Layout::clustered(ab.clone()).is_same_as(&Layout::clustered(ba.clone())));
        let cut = Layout::cut(ab.clone(), vec![25, 4]);
        assert_eq!(cut.to_string(), "clustered by (a in 25 parts, b in 4)");
        assert!(cut.is_same_as(&cut.clone()));
        for other in [
            Layout::clustered(ab.clone()),
            Layout::cut(ba, vec![4, 25]),
            Layout::cut(ab, vec![24, 4]),
        ] {
            assert!(!cut.is_same_as(&other) && !other.is_same_as(&cut), "{other}");
        }
    }

    #[test]
    fn thinning_keeps_rows_together() {
        let values = |range: std::ops::Range<i64>| range.map(|n| Some(Literal::Integer(n)));
        let mut sample = TableSample {
            columns: BTreeMap::from([
                ("a".to_owned(), values(0..5).collect()),
                ("b".to_owned(), values(10..15).collect()),
            ]),
            rows: 5,
        };
        sample.thin();
        let numbers = |column: &str| format!("{:?}", sample.columns[column]);
        assert_eq!(sample.rows, 3);
        let kept = |numbers: [i64; 3]| format!("{:?}", numbers.map(|n| Some(Literal::Integer(n))));
        assert_eq!(numbers("a"), kept([0, 2, 4]));
        assert_eq!(numbers("b"), kept([10, 12, 14]));
    }
}
