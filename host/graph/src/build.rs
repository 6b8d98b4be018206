//! Counts edges and filters of a workload.
//!
//! 1. Row counts per table and statement: the most rows that one of the statement's scans of the
//!    table let out, else the table's own as given, else the most that any scan of the window let out.
//! 2. Per statement and edge, one observation: the product of the two tables' rows, its time, its
//!    scans' bytes, its best confidence.
//! 3. Per edge, the means over its observations; per filter, the statements that have it.
//! 4. A figure that nothing tells of an edge is the mean of the edges that know theirs, so that it
//!    neither lifts the edge nor sinks it; the edge says so.

use std::collections::{BTreeMap, BTreeSet};

use lakebed_model::{
    FilterOperator, FilterUse, JoinKind, JoinStrategy, JoinUse, QueryRecord, QueryStatus,
    TableName, Workload,
};

use crate::{EdgeKey, EdgeNotes, EdgeStats, Figure, FilterStats};

/// What a workload yields before it is linked to a graph.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) statements: u64,
    pub(crate) tables: Vec<TableName>,
    pub(crate) edges: Vec<EdgeStats>,
    pub(crate) filters: Vec<FilterStats>,
}

/// Counts a workload; statements that failed are nobody's evidence and are left out.
pub(crate) fn tally(workload: &Workload, rows: &BTreeMap<TableName, u64>) -> Tally {
    let records: Vec<&QueryRecord> =
        workload.records.iter().filter(|record| record.status != QueryStatus::Failed).collect();
    let known_rows = {
        let mut known = rows_seen(records.iter().copied());
        known.extend(rows.iter().map(|(table, rows)| (table.clone(), *rows)));
        known
    };
    let scans = records.iter().flat_map(|record| &record.scans);
    let mut tables: BTreeSet<TableName> = scans.filter_map(|scan| scan.table.clone()).collect();
    let mut edges: BTreeMap<EdgeKey, EdgeTally> = BTreeMap::new();
    let mut filters: BTreeMap<(TableName, String, FilterOperator), FilterTally> = BTreeMap::new();
    for record in &records {
        for join in &record.joins {
            tables.extend([join.left.clone(), join.right.clone()]);
        }
        tally_joins(record, workload.weight(record), &known_rows, &mut edges);
        tally_filters(record, &mut filters);
    }
    let mut edges: Vec<EdgeStats> =
        edges.into_iter().map(|(key, tally)| tally.finish(key)).collect();
    assume_unknown(&mut edges);
    Tally {
        statements: records.len() as u64,
        tables: tables.into_iter().collect(),
        edges,
        filters: finish_filters(filters),
    }
}

#[derive(Debug, Default)]
struct EdgeTally {
    kinds: BTreeMap<JoinKind, u64>,
    strategies: BTreeMap<JoinStrategy, u64>,
    planned_strategies: BTreeMap<JoinStrategy, u64>,
    rows_products: Vec<f64>,
    costs_ms: Vec<u64>,
    bytes: Vec<u64>,
    confidences: Vec<f64>,
    weight: f64,
    queries: Vec<String>,
    notes: EdgeNotes,
}

#[derive(Debug, Default)]
struct FilterTally {
    frequency: u64,
    inferred: u64,
}

impl EdgeTally {
    fn count(&mut self, join: &JoinUse) {
        *self.kinds.entry(join.kind).or_default() += 1;
        if let Some(strategy) = join.strategy {
            *self.strategies.entry(strategy).or_default() += 1;
        }
        if let Some(strategy) = join.planned_strategy {
            *self.planned_strategies.entry(strategy).or_default() += 1;
        }
        if let Some(hint) = join.hint {
            *self.notes.hints.entry(hint).or_default() += 1;
        }
        self.notes.cast += u64::from(join.notes.cast);
        self.notes.null_safe += u64::from(join.notes.null_safe);
        self.notes.expressions.extend(join.notes.expressions.iter().cloned());
        if let Some(bytes) = join.notes.spill_bytes {
            let spilled = self.notes.spill_bytes.get_or_insert(0);
            *spilled = spilled.saturating_add(bytes);
        }
    }

    fn finish(mut self, key: EdgeKey) -> EdgeStats {
        self.queries.sort_unstable();
        let rows_product = mean(self.rows_products.iter().copied());
        let cost_ms = mean(self.costs_ms.iter().map(|&cost| cost as f64));
        let bytes = mean(self.bytes.iter().map(|&bytes| bytes as f64));
        let known =
            [(Figure::RowsProduct, rows_product), (Figure::Cost, cost_ms), (Figure::Bytes, bytes)];
        EdgeStats {
            left: key.left,
            right: key.right,
            pairs: key.pairs,
            kinds: self.kinds,
            strategies: self.strategies,
            planned_strategies: self.planned_strategies,
            frequency: self.queries.len() as u64,
            weight: self.weight,
            rows_product_mean: rows_product.unwrap_or(0.0),
            cost_ms_mean: cost_ms.unwrap_or(0.0),
            bytes_mean: bytes.unwrap_or(0.0),
            assumed: known
                .into_iter()
                .filter_map(|(figure, value)| value.is_none().then_some(figure))
                .collect(),
            confidence: mean(self.confidences.iter().copied()).unwrap_or(0.0),
            queries: self.queries,
            notes: self.notes,
        }
    }
}

fn tally_joins(
    record: &QueryRecord,
    weight: f64,
    known_rows: &BTreeMap<TableName, u64>,
    edges: &mut BTreeMap<EdgeKey, EdgeTally>,
) {
    let counted = rows_seen([record]);
    let rows_of = |table: &TableName| {
        counted.get(table).or_else(|| known_rows.get(table)).map(|rows| *rows as f64)
    };
    let mut confidences: BTreeMap<EdgeKey, f64> = BTreeMap::new();
    for join in record.joins.iter().filter(|join| !join.pairs.is_empty()) {
        let mut pairs = join.pairs.clone();
        pairs.sort_unstable();
        pairs.dedup();
        let key = EdgeKey { left: join.left.clone(), right: join.right.clone(), pairs };
        edges.entry(key.clone()).or_default().count(join);
        let best = confidences.entry(key).or_insert(join.confidence);
        *best = best.max(join.confidence);
    }
    for (key, confidence) in confidences {
        let bytes = bytes_of(record, &key);
        let rows = rows_of(&key.left).zip(rows_of(&key.right));
        let tally = edges.entry(key).or_default();
        tally.queries.push(record.id.clone());
        tally.weight += weight;
        tally.confidences.push(confidence);
        tally.rows_products.extend(rows.map(|(left, right)| left * right));
        tally.costs_ms.extend(record.duration_ms);
        tally.bytes.extend(bytes);
    }
}

/// Sums what the scans of the edge's tables read; `None` if none of them tells.
fn bytes_of(record: &QueryRecord, key: &EdgeKey) -> Option<u64> {
    record
        .scans
        .iter()
        .filter(|scan| scan.table.as_ref().is_some_and(|t| *t == key.left || *t == key.right))
        .filter_map(|scan| scan.bytes_read)
        .reduce(u64::saturating_add)
}

fn tally_filters(
    record: &QueryRecord,
    filters: &mut BTreeMap<(TableName, String, FilterOperator), FilterTally>,
) {
    let mut stated: BTreeMap<(&TableName, &str, FilterOperator), bool> = BTreeMap::new();
    for FilterUse { column, operator, inferred, .. } in record.filters() {
        let own = stated.entry((&column.table, column.column.as_str(), *operator)).or_insert(false);
        *own |= !inferred;
    }
    for ((table, column, operator), own) in stated {
        let tally = filters.entry((table.clone(), column.to_owned(), operator)).or_default();
        tally.frequency += 1;
        tally.inferred += u64::from(!own);
    }
}

fn finish_filters(
    filters: BTreeMap<(TableName, String, FilterOperator), FilterTally>,
) -> Vec<FilterStats> {
    let mut filters: Vec<FilterStats> = filters
        .into_iter()
        .map(|((table, column, operator), FilterTally { frequency, inferred })| FilterStats {
            table,
            column,
            operator,
            frequency,
            inferred,
        })
        .collect();
    filters.sort_by(|a, b| {
        b.frequency
            .cmp(&a.frequency)
            .then_with(|| (&a.table, &a.column, a.operator).cmp(&(&b.table, &b.column, b.operator)))
    });
    filters
}

/// Lists the tables whose scans tell their rows, with the most rows that one scan let out.
fn rows_seen<'r>(records: impl IntoIterator<Item = &'r QueryRecord>) -> BTreeMap<TableName, u64> {
    let mut seen: BTreeMap<TableName, u64> = BTreeMap::new();
    for scan in records.into_iter().flat_map(|record| &record.scans) {
        if let (Some(table), Some(rows)) = (&scan.table, scan.rows_out) {
            let most = seen.entry(table.clone()).or_default();
            *most = (*most).max(rows);
        }
    }
    seen
}

/// Gives the edges that do not know a figure the mean of those that do; 0 where none does.
///
/// The mean of D is geometric, because scores compare its logarithm.
fn assume_unknown(edges: &mut [EdgeStats]) {
    type ValueOf = fn(&mut EdgeStats) -> &mut f64;
    let figures: [(Figure, ValueOf); 3] = [
        (Figure::RowsProduct, |edge| &mut edge.rows_product_mean),
        (Figure::Cost, |edge| &mut edge.cost_ms_mean),
        (Figure::Bytes, |edge| &mut edge.bytes_mean),
    ];
    for (figure, value) in figures {
        let is_log = figure == Figure::RowsProduct;
        let known: Vec<f64> = edges
            .iter_mut()
            .filter(|edge| !edge.assumed.contains(&figure))
            .map(|edge| *value(edge))
            .map(|known| if is_log { known.ln_1p() } else { known })
            .collect();
        let unknown = edges.len() - known.len();
        let Some(mean) = mean(known.into_iter()).filter(|_| unknown > 0) else { continue };
        tracing::warn!(
            figure = figure.as_str(),
            "{unknown} of {} joins do not tell it: the mean of the others stands in",
            edges.len()
        );
        let mean = if is_log { mean.exp_m1() } else { mean };
        for edge in edges.iter_mut().filter(|edge| edge.assumed.contains(&figure)) {
            *value(edge) = mean;
        }
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| values.sum::<f64>() / count as f64)
}
