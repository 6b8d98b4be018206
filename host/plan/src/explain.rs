//! Sentences: why a table gets a layout, and why one is not taken.

use std::collections::BTreeMap;

use lakebed_graph::JoinGraph;
use lakebed_model::{Bytes, TableName};

use crate::{
    BenefitEstimate, Settings,
    candidates::{Candidate, ColumnUse},
};

/// What a sentence about one table can draw on.
#[derive(Debug)]
pub(crate) struct Story<'a> {
    pub(crate) table: &'a TableName,
    pub(crate) graph: &'a JoinGraph,
    pub(crate) uses: &'a BTreeMap<String, ColumnUse>,
    /// Statements that scan the table.
    pub(crate) statements: u64,
    pub(crate) files_now: u64,
    pub(crate) files_then: u64,
    pub(crate) rewrite_bytes: Bytes,
    pub(crate) storage_bytes: Bytes,
}

impl Story<'_> {
    /// Says why a candidate is taken.
    pub(crate) fn because(&self, chosen: &Candidate) -> String {
        let mut reasons: Vec<String> = Vec::new();
        for key in chosen.keys() {
            reasons.extend(self.join_reason(key));
        }
        for key in chosen.keys() {
            reasons.extend(self.range_reason(key));
        }
        if let Some(first) = reasons.first_mut() {
            let (count, rest) = first.split_once(' ').unwrap_or((first, ""));
            *first = format!("{count} of {} statements {rest}", self.graph.statements());
        }
        let saved = &chosen.estimate;
        let queries = self.break_even_queries(saved);
        format!(
            "cluster {} by ({}): {}; {}, which saves {} per window ({} to {}); the rewrite of {} \
             pays for itself after {queries} {}",
            self.table,
            chosen.layout.keys(),
            listed(&reasons),
            self.reading(saved),
            Bytes::from_f64(saved.expected_bytes),
            Bytes::from_f64(saved.low_bytes),
            Bytes::from_f64(saved.high_bytes),
            self.rewrite_bytes,
            if queries == 1 { "statement" } else { "statements" },
        )
    }

    /// Counts the statements on the table that save what the rewrite reads.
    pub(crate) fn break_even_queries(&self, saved: &BenefitEstimate) -> u64 {
        let per_statement = saved.expected_bytes / self.statements.max(1) as f64;
        Bytes::from_f64((self.rewrite_bytes.as_f64() / per_statement).ceil()).0.max(1)
    }

    /// Says why a candidate is worth nothing, or returns `None` if it is worth something.
    pub(crate) fn worthless(&self, candidate: &Candidate, settings: &Settings) -> Option<String> {
        let saved = &candidate.estimate;
        if saved.expected_bytes <= 0.0 {
            return Some(format!("saves nothing: {}", self.reading(saved)));
        }
        if saved.low_bytes <= 0.0 {
            return Some(format!(
                "saves {} per window, but may as well save nothing: between {} and {} for \
                 statements like the window's",
                signed(saved.expected_bytes),
                signed(saved.low_bytes),
                signed(saved.high_bytes),
            ));
        }
        (candidate.npv <= 0.0).then(|| {
            format!(
                "saves {} per window, over {} windows less than it costs: {} to rewrite and {} of \
                 old files until VACUUM; net present value {}",
                signed(saved.expected_bytes),
                settings.horizon_windows,
                self.rewrite_bytes,
                self.storage_bytes,
                signed(candidate.npv),
            )
        })
    }

    /// Says why a worthwhile candidate did not get its share of the budgets.
    pub(crate) fn over_budget(&self, left: &[(&str, Option<Bytes>)]) -> String {
        let needs = [self.rewrite_bytes, self.storage_bytes];
        let short: Vec<String> = left
            .iter()
            .zip(needs)
            .filter_map(|((name, left), needs)| {
                let left = (*left)?;
                (needs > left).then(|| format!("needs {needs} of the {name} budget, {left} left"))
            })
            .collect();
        if short.is_empty() {
            "worth less than what the budgets are spent on".to_owned()
        } else {
            format!("over budget: {}", short.join("; "))
        }
    }

    /// Says why a set of keys is second to the chosen one.
    pub(crate) fn second_to(&self, candidate: &Candidate, chosen: &Candidate) -> String {
        let other = format!(
            "saves {} per window, ({}) saves {}",
            signed(candidate.estimate.expected_bytes),
            chosen.layout.keys(),
            signed(chosen.estimate.expected_bytes),
        );
        let is_better = candidate.npv > chosen.npv;
        if is_better && chosen.mean_share > candidate.mean_share {
            return format!(
                "{other}: the same within the sample's error, but spread over more statements \
                 ({:.1} % of a statement's bytes on average against {:.1} %)",
                100.0 * chosen.mean_share,
                100.0 * candidate.mean_share,
            );
        }
        if is_better && candidate.keys().len() > chosen.keys().len() {
            format!("{other} with fewer keys: the difference is within the sample's noise")
        } else {
            other
        }
    }

    fn join_reason(&self, key: &str) -> Option<String> {
        let edges = self.graph.edges_of(self.table);
        let edge =
            edges.into_iter().find(|edge| edge.stats.columns_of(self.table).contains(&key))?;
        let partner = edge.stats.partner(self.table)?;
        let partner = if partner == self.table { "itself" } else { partner.as_str() };
        let verb = if edge.stats.frequency == 1 { "joins" } else { "join" };
        Some(format!("{} {verb} it to {partner} on {key}", edge.stats.frequency))
    }

    fn range_reason(&self, key: &str) -> Option<String> {
        let ColumnUse { ranged, inferred, .. } = self.uses.get(key)?;
        let verb = if *ranged == 1 { "filters" } else { "filter" };
        match (*ranged, *inferred) {
            (0, _) => None,
            (all, 0) => Some(format!("{all} {verb} {key}")),
            (all, by_join) if by_join == all => Some(format!("{all} {verb} {key} through a join")),
            (all, by_join) => {
                Some(format!("{all} {verb} {key} ({by_join} of them through a join)"))
            }
        }
    }

    fn reading(&self, saved: &BenefitEstimate) -> String {
        let (now, then) = (files(saved.files_read_now), files(saved.files_read_then));
        if self.files_now == self.files_then {
            format!("a scan reads {then} of {} files on average instead of {now}", self.files_then)
        } else {
            format!(
                "a scan reads {then} of {} files on average instead of {now} of {}",
                self.files_then, self.files_now
            )
        }
    }
}

/// Prints a mean number of files: whole when large, with a digit when small.
fn files(mean: f64) -> String {
    if mean >= 10.0 { format!("{mean:.0}") } else { format!("{mean:.1}") }
}

/// Prints bytes that may be negative.
fn signed(bytes: f64) -> String {
    let size = Bytes::from_f64(bytes.abs());
    if bytes < 0.0 && size > Bytes(0) { format!("−{size}") } else { size.to_string() }
}

fn listed(reasons: &[String]) -> String {
    match reasons {
        [] => "its statements skip files by them".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
