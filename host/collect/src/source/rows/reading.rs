//! From entries to statements: text to lineage, and the export's figures to scans.

use lakebed_model::{
    ColumnRef, FilterUse, JoinUse, ParseReport, QueryRecord, QueryStatus, ScanUse, TableName,
};

use super::{Entry, LeftOut, Stated, TableFacts};
use crate::{
    Catalog, fingerprint,
    lineage::{
        edge,
        sql::{ComputedKey, Dialect, LineageError, LineageReader, SqlLineage, SqlText},
    },
    source::{Reading, Statement, exclude},
};

/// Reads the entries of one log.
pub(crate) struct Reader<'r> {
    /// The source's name, which records carry.
    pub(crate) source: &'static str,
    /// The dialect of rows that name none.
    pub(crate) dialect: &'static str,
    /// What stands before a row's place where a row has no id.
    pub(crate) log_name: String,
    pub(crate) catalog: &'r dyn Catalog,
    pub(crate) report: &'r mut ParseReport,
    pub(crate) sink: &'r mut dyn FnMut(Statement),
}

/// Confidence in a statement of which only tables and columns are told.
const STATED_CONFIDENCE: f64 = 0.5;

/// What is known of a statement's tables.
struct Known {
    joins: Vec<JoinUse>,
    scans: Vec<ScanUse>,
    confidence: f64,
    reading: Reading,
}

impl Reader<'_> {
    /// Reads all entries, the oldest first: exports come in any order.
    pub(crate) fn read(&mut self, mut entries: Vec<Entry>) {
        entries.sort_by_key(|entry| (entry.started_at, entry.place));
        let mut lineage = LineageReader::new(self.catalog);
        for entry in entries {
            self.read_one(entry, &mut lineage);
        }
    }

    fn read_one(&mut self, entry: Entry, lineage: &mut LineageReader<'_>) {
        let excluded = entry.sql.as_deref().and_then(exclude::of_text);
        if let Some(left_out) = excluded.map(LeftOut::from) {
            if left_out == LeftOut::Metadata {
                // It may end a temporary table or a view, or set up one without reading a table.
                let _ = self.lineage(&entry, lineage);
            }
            return left_out.count(self.report);
        }
        let known = match self.known(&entry, lineage) {
            Ok(known) => known,
            Err(left_out) => return left_out.count(self.report),
        };
        let tables = || known.scans.iter().filter_map(|scan| scan.table.as_ref());
        if tables().next().is_some()
            && tables().all(|table| exclude::is_about_engine(table.as_str()))
        {
            return LeftOut::Metadata.count(self.report);
        }
        let fingerprint = match &entry.sql {
            Some(sql) => {
                fingerprint::of_sql_in(sql, self.dialect(&entry).unwrap_or(Dialect::Generic))
            }
            None => fingerprint::of_lineage(&known.joins, &known.scans),
        };
        let id = entry.id.unwrap_or_else(|| format!("{}:{}", self.log_name, entry.place));
        let record = QueryRecord {
            id,
            started_at: entry.started_at,
            source: self.source.to_owned(),
            sql: entry.sql,
            fingerprint,
            duration_ms: entry.duration_ms,
            status: if entry.running { QueryStatus::Unknown } else { QueryStatus::Finished },
            joins: known.joins,
            scans: known.scans,
            confidence: known.confidence,
        };
        (self.sink)(Statement { record, reading: known.reading });
    }

    /// Reads the text; where that fails, takes what the export states.
    fn known(&self, entry: &Entry, lineage: &mut LineageReader<'_>) -> Result<Known, LeftOut> {
        let reason = match self.lineage(entry, lineage) {
            None => "the history has no text of it".to_owned(),
            Some(Ok(lineage)) => return Ok(with_facts(lineage, entry)),
            Some(Err(LineageError::NoQuery { .. })) => return Err(LeftOut::System),
            Some(Err(error)) => error.to_string(),
        };
        let Stated { joins, filters, losses } = &entry.stated;
        if entry.tables.is_empty() && joins.is_empty() && filters.is_empty() {
            let reading = match losses.first() {
                Some(loss) => Reading::Unread { reason: loss.clone() },
                None => Reading::Unread { reason },
            };
            return Ok(Known { joins: Vec::new(), scans: Vec::new(), confidence: 0.0, reading });
        }
        let losses = if losses.is_empty() { vec![reason] } else { losses.clone() };
        let confidence = joins.iter().map(|join| join.confidence).reduce(f64::min);
        let confidence = confidence.unwrap_or(STATED_CONFIDENCE);
        let scans = stated_scans(&entry.tables, joins, filters);
        let reading = Reading::Partial { losses };
        Ok(Known { joins: joins.clone(), scans, confidence, reading })
    }

    /// Reads the text in its session at its time; `None` where there is none.
    fn lineage(
        &self,
        entry: &Entry,
        lineage: &mut LineageReader<'_>,
    ) -> Option<Result<SqlLineage, LineageError>> {
        let sql = entry.sql.as_deref()?;
        let session = entry.session.as_deref();
        let read = |dialect| lineage.read(&SqlText { sql, dialect, session, at: entry.started_at });
        Some(self.dialect(entry).and_then(read))
    }

    fn dialect(&self, entry: &Entry) -> Result<Dialect, LineageError> {
        Dialect::parse(entry.dialect.as_deref().unwrap_or(self.dialect))
    }
}

/// Names tables in full and gives scans the figures that are certainly theirs.
fn with_facts(lineage: SqlLineage, entry: &Entry) -> Known {
    let full = |table: &TableName| full_name(table, entry);
    let without_edge = without_edge(&lineage);
    let mut scans = lineage.scans;
    for scan in &mut scans {
        scan.table = scan.table.as_ref().map(full);
        for filter in &mut scan.filters {
            filter.column.table = full(&filter.column.table);
        }
    }
    let joins = lineage
        .joins
        .into_iter()
        .map(|join| {
            let (left, right) = (full(&join.left), full(&join.right));
            edge::oriented(JoinUse { left, right, ..join })
        })
        .collect();
    for facts in &entry.tables {
        let is_of = |scan: &&mut ScanUse| {
            scan.table.as_ref().is_some_and(|table| is_short_for(table.as_str(), &facts.name))
        };
        // A table that is scanned twice is listed once: nothing tells which scan read what.
        let mut own = scans.iter_mut().filter(is_of);
        if let (Some(only), None) = (own.next(), own.next()) {
            set_facts(only, facts);
        }
    }
    if let [only] = scans.as_mut_slice() {
        set_facts(only, &entry.total);
    }
    let reading = match [lineage.losses, without_edge].concat() {
        losses if losses.is_empty() => Reading::Full,
        losses => Reading::Partial { losses },
    };
    Known { joins, scans, confidence: lineage.confidence, reading }
}

/// Says which joins were seen that give no edge, because all that they compare is computed.
fn without_edge(lineage: &SqlLineage) -> Vec<String> {
    let has_edge = |key: &&ComputedKey| {
        lineage.joins.iter().any(|join| {
            let (left, right) = (&key.left.table, &key.right.table);
            (&join.left, &join.right) == (left, right) || (&join.left, &join.right) == (right, left)
        })
    };
    let side = |column: &ColumnRef, function: Option<&str>| match function {
        Some(function) => format!("{function} of `{column}`"),
        None => format!("`{column}`"),
    };
    let keys = lineage.computed_keys.iter().filter(|key| !has_edge(key));
    keys.map(|key| {
        let left = side(&key.left, key.left_function.as_deref());
        let right = side(&key.right, key.right_function.as_deref());
        format!("make an edge of a computed key: {left} is compared with {right}")
    })
    .collect()
}

fn set_facts(scan: &mut ScanUse, facts: &TableFacts) {
    scan.bytes_read = scan.bytes_read.or(facts.bytes_read);
    scan.files_read = scan.files_read.or(facts.files_read);
    scan.rows_out = scan.rows_out.or(facts.rows_out);
}

/// Spells a name out: as the only table listed that it can be short for, else in the statement's
/// own namespace.
fn full_name(table: &TableName, entry: &Entry) -> TableName {
    let name = table.as_str();
    if name.contains('/') {
        return table.clone();
    }
    let mut listed = entry.tables.iter().filter(|facts| is_short_for(name, &facts.name));
    if let (Some(only), None) = (listed.next(), listed.next()) {
        return TableName::new(only.name.clone());
    }
    let parts = name.split('.').count();
    let missing = entry.namespace.len().saturating_sub(parts - 1);
    // Of a name with a schema only the catalog can be missing, and only if it is known.
    let missing = if entry.namespace.len() + 1 < parts { 0 } else { missing };
    let prefix = entry.namespace[..missing].iter().map(String::as_str);
    TableName::new(prefix.chain([name]).collect::<Vec<_>>().join("."))
}

fn is_short_for(name: &str, full: &str) -> bool {
    full == name || full.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
}

/// Makes a scan of every table that is listed, joined or filtered.
fn stated_scans(tables: &[TableFacts], joins: &[JoinUse], filters: &[FilterUse]) -> Vec<ScanUse> {
    let mut scans: Vec<ScanUse> = tables
        .iter()
        .map(|facts| {
            let table = Some(TableName::new(facts.name.clone()));
            let mut scan = ScanUse { table, columns: facts.columns.clone(), ..ScanUse::default() };
            set_facts(&mut scan, facts);
            scan
        })
        .collect();
    let joined = joins.iter().flat_map(|join| [&join.left, &join.right]);
    for table in joined.chain(filters.iter().map(|filter| &filter.column.table)) {
        if !scans.iter().any(|scan| scan.table.as_ref() == Some(table)) {
            scans.push(ScanUse { table: Some(table.clone()), ..ScanUse::default() });
        }
    }
    for filter in filters {
        let is_of = |scan: &&mut ScanUse| scan.table.as_ref() == Some(&filter.column.table);
        if let Some(scan) = scans.iter_mut().find(is_of) {
            scan.filters.push(filter.clone());
        }
    }
    scans
}
