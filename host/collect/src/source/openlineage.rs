//! OpenLineage run events.
//!
//! 1. The events of one run are one statement: it starts with the first, ends with `COMPLETE`, and
//!    has what any of them tells.
//! 2. The `sql` facet gives joins and filters. Where there is none, or it cannot be read, column
//!    lineage with the subtypes `JOIN` and `FILTER` tells which columns were compared: filters of
//!    unknown operator, and an edge where exactly two columns of two tables are join keys.
//! 3. Columns that merely feed one output are never taken for compared: they may come from
//!    `COALESCE` or `UNION`.
//!
//! A dataset is called by its symlink of type `TABLE`, else by its own name, or its path.

use std::{collections::BTreeMap, ops::ControlFlow};

use lakebed_model::{ColumnRef, FilterOperator, FilterUse, Instant, ParseReport, TableName};

use super::{
    LogHead, LogPath, LogSource, Statement,
    rows::{
        Entry, LeftOut, Reader, Refusal, Row, RowSource, Stated, TableFacts, Unit, check_columns,
        each, only_pair,
    },
};
use crate::{Catalog, CollectError};

/// OpenLineage run events.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenLineage;

/// Name and columns; its rows are events, not statements.
static EVENTS: RowSource = RowSource {
    name: "openlineage",
    dialect: "generic",
    recognizes: |head| ["eventtime", "run", "job"].iter().all(|name| head.has(name)),
    required: &[&["run"], &["eventtime"]],
    entry: |_| Err(Refusal::Malformed),
};

/// What the events of one run tell.
#[derive(Debug, Default)]
struct Run {
    place: u64,
    times: Vec<Instant>,
    ended: bool,
    failed: bool,
    sql: Option<String>,
    dialect: Option<String>,
    tables: BTreeMap<String, TableFacts>,
    keys: Vec<(TableName, String)>,
    filtered: Vec<ColumnRef>,
}

impl LogSource for OpenLineage {
    fn name(&self) -> &'static str {
        EVENTS.name
    }

    fn recognizes(&self, head: &LogHead) -> bool {
        (EVENTS.recognizes)(head)
    }

    fn read(
        &self,
        log: &LogPath,
        catalog: &dyn Catalog,
        sink: &mut dyn FnMut(Statement),
    ) -> Result<ParseReport, CollectError> {
        let form = LogHead::of(log)?.form;
        let mut report = ParseReport::default();
        let mut runs: BTreeMap<String, Run> = BTreeMap::new();
        let damage = each(form, log, &mut |event| {
            let id = event.row("run").and_then(|run| run.text("runid"));
            let time = event.instant("eventtime", Unit::Seconds);
            match (id, time) {
                (Some(id), Some(time)) => runs.entry(id).or_default().add(&event, time),
                // Events of datasets and of jobs tell of no run.
                _ if event.has("dataset") || (event.has("job") && !event.has("run")) => {}
                _ => report.malformed_lines += 1,
            }
            ControlFlow::Continue(())
        })?;
        damage.count(&mut report);
        if runs.is_empty() {
            check_columns(&EVENTS, form, log)?;
            let events = [("malformed lines".to_owned(), report.malformed_lines)].into();
            return Err(CollectError::NoSqlStatements { path: log.root.clone(), events });
        }
        let mut entries = Vec::new();
        for (id, run) in runs {
            match run.entry(id) {
                Ok(entry) => entries.push(entry),
                Err(left_out) => left_out.count(&mut report),
            }
        }
        let (source, dialect, log_name) = (EVENTS.name, EVENTS.dialect, String::new());
        Reader { source, dialect, log_name, catalog, report: &mut report, sink }.read(entries);
        Ok(report)
    }
}

impl Run {
    fn add(&mut self, event: &Row, time: Instant) {
        self.place = if self.times.is_empty() { event.place() } else { self.place };
        self.times.push(time);
        match event.word("eventtype").as_deref() {
            Some("complete") => self.ended = true,
            Some("fail" | "abort") => self.failed = true,
            _ => {}
        }
        let facets =
            |name: &str| event.row(name).and_then(|row| row.row("facets")).unwrap_or_default();
        let (job, run) = (facets("job"), facets("run"));
        if let Some(sql) = job.row("sql") {
            self.sql = sql.text("query").or(self.sql.take());
            self.dialect = sql.word("dialect").or(self.dialect.take());
        }
        let engines = [
            job.row("jobtype").and_then(|kind| kind.word("integration")),
            run.row("processing_engine").and_then(|engine| engine.word("name")),
        ];
        if let Some(engine) = engines.into_iter().flatten().next() {
            self.dialect.get_or_insert(engine);
        }
        let mut names = BTreeMap::new();
        let (inputs, outputs) = (event.rows("inputs"), event.rows("outputs"));
        for dataset in inputs.iter().chain(&outputs) {
            names.extend(identity(dataset).zip(table_name(dataset)));
        }
        for input in &inputs {
            let Some(name) = table_name(input) else { continue };
            let statistics =
                input.row("inputfacets").and_then(|facets| facets.row("inputstatistics"));
            let statistics = statistics.unwrap_or_default();
            let facts = self.tables.entry(name.clone()).or_default();
            facts.name = name;
            facts.bytes_read = statistics.count("size").or(facts.bytes_read);
            facts.files_read = statistics.count("filecount").or(facts.files_read);
            facts.rows_out = statistics.count("rowcount").or(facts.rows_out);
        }
        for output in &outputs {
            let lineage = output.row("facets").and_then(|facets| facets.row("columnlineage"));
            if let Some(lineage) = lineage {
                self.add_lineage(&lineage, &names);
            }
        }
    }

    /// Notes the columns that were join keys or filtered, whatever output they belong to.
    fn add_lineage(&mut self, lineage: &Row, names: &BTreeMap<(String, String), String>) {
        let fields = lineage.row("fields").unwrap_or_default();
        let of_fields = fields.members().flat_map(|(_, field)| field.rows("inputfields"));
        for input in of_fields.chain(lineage.rows("dataset")) {
            let Some((identity, field)) = identity(&input).zip(input.word("field")) else {
                continue;
            };
            let table = names.get(&identity).cloned().or_else(|| table_name(&input));
            let Some(table) = table.map(TableName::new) else { continue };
            for transformation in input.rows("transformations") {
                match transformation.word("subtype").as_deref() {
                    Some("join") => self.keys.push((table.clone(), field.clone())),
                    Some("filter") => {
                        self.filtered
                            .push(ColumnRef { table: table.clone(), column: field.clone() });
                    }
                    _ => {}
                }
            }
        }
    }

    fn entry(mut self, id: String) -> Result<Entry, LeftOut> {
        if self.failed {
            return Err(LeftOut::Failed);
        }
        let is_empty = self.sql.is_none() && self.keys.is_empty() && self.filtered.is_empty();
        if is_empty && self.tables.is_empty() {
            return Err(LeftOut::System);
        }
        self.times.sort_unstable();
        self.filtered.sort();
        self.filtered.dedup();
        let mut stated = Stated::default();
        let unknown = |column| FilterUse {
            column,
            operator: FilterOperator::Other,
            range: None,
            inferred: false,
        };
        stated.filters = self.filtered.into_iter().map(unknown).collect();
        only_pair(self.keys, &mut stated);
        let (first, last) = (self.times.first(), self.times.last());
        let elapsed = first.zip(last).map(|(first, last)| last.epoch_ms() - first.epoch_ms());
        let spans = self.ended && self.times.len() > 1;
        Ok(Entry {
            id: Some(id),
            place: self.place,
            started_at: first.copied().unwrap_or_default(),
            sql: self.sql,
            // Engines without a dialect of their own here speak what most do.
            dialect: self.dialect.filter(|name| crate::lineage::sql::Dialect::parse(name).is_ok()),
            duration_ms: elapsed.filter(|_| spans).and_then(|ms| u64::try_from(ms).ok()),
            running: !self.ended,
            tables: self.tables.into_values().collect(),
            stated,
            ..Entry::default()
        })
    }
}

/// What events call a dataset by.
fn identity(dataset: &Row) -> Option<(String, String)> {
    Some((dataset.text("namespace").unwrap_or_default(), dataset.text("name")?))
}

fn table_name(dataset: &Row) -> Option<String> {
    let symlinks = dataset.row("facets").and_then(|facets| facets.row("symlinks"));
    let identifiers = symlinks.map(|symlinks| symlinks.rows("identifiers")).unwrap_or_default();
    let table =
        identifiers.iter().find(|link| link.word("type").is_none_or(|kind| kind == "table"));
    if let Some(name) = table.and_then(|link| link.word("name")) {
        return Some(name);
    }
    let (namespace, name) = identity(dataset)?;
    if !name.contains('/') {
        return Some(name.to_lowercase());
    }
    Some(match namespace.contains("://") {
        true => format!("{}/{}", namespace.trim_end_matches('/'), name.trim_start_matches('/')),
        false => name,
    })
}
