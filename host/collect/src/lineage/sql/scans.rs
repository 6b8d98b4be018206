//! The scans of a statement, what they read and what is asked of them.

use std::collections::{BTreeMap, BTreeSet};

use lakebed_model::{ColumnRef, JoinKind, ScanUse, TableName};

use crate::{
    ColumnType,
    lineage::{
        origin::Origin,
        predicate::{Predicate, Test, conjunction, filters},
    },
};

/// A column of a scanned table.
#[derive(Debug)]
struct Column {
    name: String,
    kind: Option<ColumnType>,
    is_read: bool,
    /// Whether the catalog does not know it.
    is_grown: bool,
}

#[derive(Debug)]
struct Scan {
    table: TableName,
    columns: Vec<Column>,
    by_name: BTreeMap<String, usize>,
    predicates: Vec<Predicate>,
}

/// An equality of two scanned columns: a filter on the first holds for the second too.
#[derive(Debug)]
struct Implication {
    from: (usize, String),
    to: (usize, String),
}

/// The scans, in the order they were found.
#[derive(Debug, Default)]
pub(super) struct Scans {
    list: Vec<Scan>,
    implications: Vec<Implication>,
}

impl Scans {
    /// Adds a scan of a table, with the origins of its columns where they are known.
    pub(super) fn add(
        &mut self,
        table: &str,
        columns: Option<&[(String, ColumnType)]>,
    ) -> (usize, Option<Vec<(String, Origin)>>) {
        let index = self.list.len();
        let table = TableName::new(table);
        let origins = columns.map(|columns| {
            let origin = |(name, _): &(String, ColumnType)| {
                let column = ColumnRef { table: table.clone(), column: name.clone() };
                (name.clone(), Origin::base(column, index))
            };
            columns.iter().map(origin).collect()
        });
        let columns = columns.unwrap_or_default().iter().map(|(name, kind)| Column {
            name: name.clone(),
            kind: Some(*kind),
            is_read: false,
            is_grown: false,
        });
        self.list.push(Scan::new(table, columns.collect(), Vec::new()));
        (index, origins)
    }

    /// Adds a scan that is known to read exactly these columns.
    pub(super) fn add_read(
        &mut self,
        table: TableName,
        columns: Vec<(String, ColumnType)>,
        predicates: Vec<Predicate>,
    ) -> usize {
        let columns = columns.into_iter().map(|(name, kind)| Column {
            name,
            kind: Some(kind),
            is_read: true,
            is_grown: false,
        });
        self.list.push(Scan::new(table, columns.collect(), predicates));
        self.list.len() - 1
    }

    /// Adds a column that the catalog does not know, if it is not there yet.
    pub(super) fn grow(&mut self, scan: usize, name: &str, kind: Option<ColumnType>) -> Origin {
        let scan_ref = &mut self.list[scan];
        match scan_ref.by_name.get(name) {
            Some(index) => scan_ref.columns[*index].is_read = true,
            None => {
                scan_ref.by_name.insert(name.to_owned(), scan_ref.columns.len());
                let name = name.to_owned();
                scan_ref.columns.push(Column { name, kind, is_read: true, is_grown: true });
            }
        }
        let column = ColumnRef { table: scan_ref.table.clone(), column: name.to_owned() };
        Origin::base(column, scan)
    }

    /// Notes that the base columns of an origin are read.
    pub(super) fn read(&mut self, origin: &Origin) {
        for source in origin.sources() {
            let Some(scan) = self.list.get_mut(source.scan) else { continue };
            // A field of a struct column is read with the column.
            let name = &source.column.column;
            let index = scan.by_name.get(name).or_else(|| {
                let (column, _) = name.split_once('.')?;
                scan.by_name.get(column)
            });
            if let Some(index) = index {
                scan.columns[*index].is_read = true;
            }
        }
    }

    /// Returns the name of a scan's table.
    pub(super) fn name(&self, scan: usize) -> &str {
        self.list[scan].table.as_str()
    }

    /// Returns the type of a scan's column, where it is known.
    pub(super) fn kind(&self, scan: usize, column: &str) -> Option<ColumnType> {
        let scan = self.list.get(scan)?;
        scan.columns[*scan.by_name.get(column)?].kind
    }

    /// Asks something of a scan.
    pub(super) fn push(&mut self, scan: usize, predicate: Predicate) {
        if let Some(scan) = self.list.get_mut(scan) {
            scan.predicates.push(predicate);
        }
    }

    /// Notes that a join equates two columns.
    pub(super) fn imply(&mut self, left: &Origin, right: &Origin, kind: JoinKind) {
        let (left_to_right, right_to_left) = match kind {
            JoinKind::Inner | JoinKind::LeftSemi => (true, true),
            JoinKind::LeftOuter | JoinKind::LeftAnti => (true, false),
            JoinKind::RightOuter => (false, true),
            JoinKind::FullOuter | JoinKind::Existence => (false, false),
        };
        let (Some(left), Some(right)) = (left.single(), right.single()) else { return };
        // A filter on one branch of a union says nothing of what the others give.
        let left_to_right = left_to_right && !left.several;
        let right_to_left = right_to_left && !right.several;
        let left = (left.scan, left.column.column.clone());
        let right = (right.scan, right.column.column.clone());
        if left_to_right {
            self.implications.push(Implication { from: left.clone(), to: right.clone() });
        }
        if right_to_left {
            self.implications.push(Implication { from: right, to: left });
        }
    }

    /// Lists the columns that the catalog does not know, by table.
    pub(super) fn needed(&self) -> BTreeMap<String, Vec<(String, Option<ColumnType>)>> {
        let mut needed: BTreeMap<String, Vec<(String, Option<ColumnType>)>> = BTreeMap::new();
        for scan in &self.list {
            let columns = needed.entry(scan.table.as_str().to_owned()).or_default();
            let known: BTreeSet<String> = columns.iter().map(|(name, _)| name.clone()).collect();
            for column in scan.columns.iter().filter(|column| column.is_grown) {
                if !known.contains(&column.name) {
                    columns.push((column.name.clone(), column.kind));
                }
            }
        }
        needed.retain(|_, columns| !columns.is_empty());
        needed
    }

    /// Lists the columns that the text compares with something.
    pub(super) fn stated(&self) -> BTreeSet<ColumnRef> {
        self.list
            .iter()
            .flat_map(|scan| {
                let columns = scan.predicates.iter().flat_map(Predicate::columns);
                columns.map(|column| ColumnRef { table: scan.table.clone(), column })
            })
            .collect()
    }

    /// Carries filters over join keys, as engines do that derive constraints.
    ///
    /// The planner's own rule does so only for filters above a join; one that a subquery states
    /// below it stays on its side. A chain of joins is followed to its end.
    pub(super) fn infer(&mut self) {
        if self.implications.is_empty() {
            return;
        }
        let mut tests: Vec<BTreeMap<String, Test>> = self.list.iter().map(Scan::tests).collect();
        for _ in 0..self.implications.len() {
            let mut changed = false;
            for Implication { from, to } in &self.implications {
                if tests[to.0].contains_key(&to.1) {
                    continue;
                }
                let Some(test) = tests[from.0].get(&from.1).cloned() else { continue };
                tests[to.0].insert(to.1.clone(), test.clone());
                self.list[to.0].predicates.push(Predicate::Column(to.1.clone(), test));
                changed = true;
            }
            if !changed {
                break;
            }
        }
    }

    /// Turns the scans into facts; filters on columns that were not `stated` are inferred.
    pub(super) fn into_uses(self, stated: &BTreeSet<ColumnRef>) -> Vec<ScanUse> {
        self.list.into_iter().map(|scan| scan.into_use(stated)).collect()
    }
}

impl Scan {
    fn new(table: TableName, columns: Vec<Column>, predicates: Vec<Predicate>) -> Self {
        let names = columns.iter().enumerate();
        let by_name = names.map(|(index, column)| (column.name.clone(), index)).collect();
        Self { table, columns, by_name, predicates }
    }

    /// Returns what the scan's predicates ask of its columns, where they know the values.
    fn tests(&self) -> BTreeMap<String, Test> {
        if self.predicates.is_empty() {
            return BTreeMap::new();
        }
        let all = conjunction(&self.predicates);
        all.into_iter().filter(|(_, test)| test.is_sharp()).collect()
    }

    fn into_use(self, stated: &BTreeSet<ColumnRef>) -> ScanUse {
        let mut filters = filters(&self.table, self.predicates);
        for filter in &mut filters {
            filter.inferred = !stated.contains(&filter.column);
        }
        let read = self.columns.into_iter().filter(|column| column.is_read);
        ScanUse {
            table: Some(self.table),
            columns: read.map(|column| column.name).collect(),
            filters,
            ..ScanUse::default()
        }
    }
}
