//! The one call: evidence in, plan out.

use std::collections::{BTreeMap, BTreeSet};

use lakebed_graph::JoinGraph;
use lakebed_model::{Bytes, TableName, Workload};

use crate::{
    CandidateFacts, CostModel, LakeEvidence, Layout, LayoutPlan, LoggedScan, PlanError,
    PlannedAction, Rejection, Savings, Search, Settings, TableEvidence,
    benefit::{BenefitModel, Replay, Resamples, Simulate},
    candidates::{
        Candidate, ColumnUse, RefusedColumn, column_uses, interesting_columns, key_sets,
        least_skipped_by_cuts, promising_cuts, saving_alone, without_superfluous,
    },
    contract,
    cost::{rewrite_bytes, storage_bytes},
    even::{bytes_of_statements, mean_share, most_even, prefer_even},
    explain::Story,
    identity, logged_scans,
    search::{PlanOption, Problem, Solution, TableOptions},
};

/// Plans the layouts of a lake's tables for a workload.
///
/// The graph must be that of the workload; when it is scored, better edges' columns come first. A
/// candidate is taken only if its net present value and the low end of its saving are above 0.
///
/// # Errors
/// Fails when evidence is contradictory, a setting makes no sense, the cost model fails or does not
/// return one finite value per candidate, or the search breaks its contract.
pub fn plan(
    graph: &JoinGraph,
    workload: &Workload,
    lake: &LakeEvidence,
    cost: &dyn CostModel,
    search: &dyn Search,
    settings: &Settings,
) -> Result<LayoutPlan, PlanError> {
    check_inputs(&lake.tables, settings)?;
    let scans = logged_scans(workload);
    let mut evidence: Vec<&TableEvidence> = lake.tables.iter().collect();
    evidence.sort_by(|a, b| a.table.cmp(&b.table));
    let totals = bytes_of_statements(&scans, &evidence);
    let mut prospects: Vec<Prospect<'_>> = evidence
        .iter()
        .map(|evidence| {
            let scans = scans.get(&evidence.table).map_or(&[][..], Vec::as_slice);
            Prospect::new(evidence, scans, graph, &totals)
        })
        .collect();
    value(&mut prospects, cost, settings)?;
    let offered: Vec<Vec<Candidate>> = prospects.iter().map(Prospect::offered).collect();
    let problem = problem(&prospects, &offered, settings)?;
    let solution = search.search(&problem);
    contract::check_solution(&problem, &solution)
        .map_err(|breach| PlanError::Search { search: search.name().to_owned(), breach })?;
    let solution = with_set_aside(solution, &prospects, &offered);
    let chosen: Vec<Option<&Candidate>> = offered
        .iter()
        .zip(&solution.choices)
        .map(|(offered, choice)| choice.checked_sub(1).map(|index| &offered[index]))
        .collect();
    let mut rejected = absent_tables(graph, &evidence, &lake.left_out);
    let left = [
        ("rewrite", rest(settings.rewrite_budget, &prospects, &chosen, rewrite_bytes)),
        ("storage", rest(settings.storage_budget, &prospects, &chosen, storage_bytes)),
    ];
    for (prospect, chosen) in prospects.iter().zip(&chosen) {
        rejected.extend(prospect.rejections(graph, *chosen, &left, settings));
    }
    rejected.sort_by(|a, b| (&a.table, &a.to).cmp(&(&b.table, &b.to)));
    let plan = LayoutPlan {
        id: String::new(),
        snapshot_versions: evidence.iter().map(|e| (e.table.clone(), e.version)).collect(),
        window: workload.window,
        settings: *settings,
        cost_model: cost.name().to_owned(),
        search: search.name().to_owned(),
        npv_bytes: solution.npv,
        upper_bound_bytes: solution.upper_bound,
        gap: gap(&solution),
        proven: solution.proven,
        nodes: solution.nodes,
        actions: actions(graph, &prospects, &chosen),
        rejected,
    };
    tracing::info!(
        tables = prospects.len(),
        actions = plan.actions.len(),
        npv_bytes = plan.npv_bytes,
        gap = plan.gap,
        proven = plan.proven,
        nodes = plan.nodes,
        "layout planned"
    );
    Ok(LayoutPlan { id: identity::identify(&plan), ..plan })
}

/// A table with all that may become of it.
#[derive(Debug)]
struct Prospect<'a> {
    evidence: &'a TableEvidence,
    uses: BTreeMap<String, ColumnUse>,
    /// Statements that scan the table.
    statements: u64,
    /// Why the table is left as it is whatever its candidates.
    obstacle: Option<String>,
    candidates: Vec<Candidate>,
    refused: Vec<RefusedColumn>,
}

impl<'a> Prospect<'a> {
    fn new(
        evidence: &'a TableEvidence,
        scans: &'a [LoggedScan],
        graph: &JoinGraph,
        totals: &BTreeMap<usize, f64>,
    ) -> Self {
        let uses = column_uses(evidence, scans, graph);
        let resamples = Resamples::new(scans);
        let mut prospect = Self {
            evidence,
            statements: resamples.statements() as u64,
            obstacle: obstacle(evidence, scans, &uses),
            uses,
            candidates: Vec::new(),
            refused: Vec::new(),
        };
        if prospect.obstacle.is_none() {
            prospect.simulate(scans, &resamples, totals);
        }
        prospect
    }

    fn simulate(
        &mut self,
        scans: &[LoggedScan],
        resamples: &Resamples,
        totals: &BTreeMap<usize, f64>,
    ) {
        let what_if = Simulate.prepare(self.evidence, scans);
        let now = Replay.prepare(self.evidence, scans).readings(&self.evidence.current);
        let now_bytes: f64 = now.iter().map(|reading| reading.bytes).sum();
        let (columns, refused) = interesting_columns(self.evidence, &self.uses, |column| {
            saving_alone(what_if.as_ref(), now_bytes, column)
        });
        self.refused = refused;
        let unskipped = self.evidence.bytes.as_f64() * scans.len() as f64;
        let candidate = |layout: Layout| {
            let then = what_if.readings(&layout);
            Candidate {
                layout,
                estimate: resamples.estimate(&now, &then),
                mean_share: mean_share(scans, totals, &now, &then),
                skipped_bytes: unskipped - then.iter().map(|reading| reading.bytes).sum::<f64>(),
                npv: 0.0,
            }
        };
        self.candidates =
            key_sets(&columns).into_iter().map(|keys| candidate(Layout::clustered(keys))).collect();
        let weights: Vec<f64> = scans
            .iter()
            .map(|scan| 1.0 / totals.get(&scan.statement).map_or(1.0, |total| total.max(1.0)))
            .collect();
        self.candidates.extend(declared_cuts(self.evidence, &columns).map(candidate));
        // A layout that every engine keeps, or that is there already, is worth the simulator's error.
        let least = least_skipped_by_cuts(&self.candidates);
        for shapes in promising_cuts(what_if.as_ref(), &columns, &weights) {
            let cut: Vec<Candidate> = shapes.into_iter().map(candidate).collect();
            let even = most_even(&cut).filter(|even| even.skipped_bytes > least);
            self.candidates.extend(even.cloned());
        }
        tracing::debug!(
            table = %self.evidence.table,
            scans = scans.len(),
            candidates = self.candidates.len(),
            "candidates simulated"
        );
    }

    /// Lists the candidates that the search may choose from.
    ///
    /// Savings are measured against the files as they lie, which may not follow the declared keys
    /// yet; so a candidate must also save more than finishing the declared layout would.
    fn offered(&self) -> Vec<Candidate> {
        without_superfluous(prefer_even(self.worthwhile()))
    }

    /// Lists the candidates that pay, and save more than the declared layout would; that one itself
    /// too while files do not follow it yet.
    fn worthwhile(&self) -> Vec<Candidate> {
        let declared = self.candidates.iter().find(|candidate| self.is_current(candidate));
        let least = declared.map_or(0.0, |candidate| candidate.estimate.expected_bytes.max(0.0));
        self.candidates
            .iter()
            .filter(|candidate| {
                let saves = candidate.estimate.expected_bytes;
                candidate.npv > 0.0
                    && candidate.estimate.low_bytes > 0.0
                    && (saves > least || self.is_unfinished(candidate))
            })
            .cloned()
            .collect()
    }

    fn is_unfinished(&self, candidate: &Candidate) -> bool {
        self.is_current(candidate) && self.evidence.pending > Bytes(0)
    }

    fn is_current(&self, candidate: &Candidate) -> bool {
        candidate.layout.is_same_as(&self.evidence.current)
    }

    fn story<'s>(&'s self, graph: &'s JoinGraph) -> Story<'s> {
        Story {
            table: &self.evidence.table,
            graph,
            uses: &self.uses,
            statements: self.statements,
            files_now: self.evidence.files.len() as u64,
            files_then: self.evidence.target_files,
            rewrite_bytes: rewrite_bytes(self.evidence),
            storage_bytes: storage_bytes(self.evidence),
        }
    }

    fn rejections(
        &self,
        graph: &JoinGraph,
        chosen: Option<&Candidate>,
        left: &[(&str, Option<Bytes>)],
        settings: &Settings,
    ) -> Vec<Rejection> {
        let reject =
            |to: Layout, why: String| Rejection { table: self.evidence.table.clone(), to, why };
        if let Some(why) = &self.obstacle {
            return vec![reject(self.evidence.current.clone(), why.clone())];
        }
        let mut rejections: Vec<Rejection> = self
            .refused
            .iter()
            .map(|refused| {
                reject(Layout::clustered(vec![refused.column.clone()]), refused.why.clone())
            })
            .collect();
        let is_other =
            |candidate: &&Candidate| chosen.is_none_or(|chosen| chosen.layout != candidate.layout);
        let best = self.candidates.iter().filter(is_other).max_by(|a, b| {
            let size = |candidate: &Candidate| std::cmp::Reverse(candidate.keys().len());
            a.npv.total_cmp(&b.npv).then_with(|| size(a).cmp(&size(b)))
        });
        if let Some(best) = best {
            let story = self.story(graph);
            let why = if self.is_current(best) && !self.is_unfinished(best) {
                format!("already {}: OPTIMIZE keeps it that way", self.evidence.current)
            } else if let Some(why) = story.worthless(best, settings) {
                why
            } else if let Some(chosen) = chosen {
                story.second_to(best, chosen)
            } else {
                story.over_budget(left)
            };
            rejections.push(reject(best.layout.clone(), why));
        }
        rejections
    }
}

/// Returns the cuts that a table has, when they are of columns that are looked at.
fn declared_cuts(evidence: &TableEvidence, columns: &[String]) -> Option<Layout> {
    let current = &evidence.current;
    let is_known = current.cluster_by.iter().all(|key| columns.contains(key));
    (!current.cuts.is_empty() && is_known).then(|| current.clone())
}

/// Says why a table cannot gain from any layout.
fn obstacle(
    evidence: &TableEvidence,
    scans: &[LoggedScan],
    uses: &BTreeMap<String, ColumnUse>,
) -> Option<String> {
    if let Some(why) = &evidence.protected {
        return Some(format!("the table is protected: {why}"));
    }
    if !evidence.current.partition_by.is_empty() {
        return Some(format!(
            "{}: clustering and partitioning exclude each other",
            evidence.current
        ));
    }
    if evidence.files.is_empty() {
        return Some("empty: no file to lay out".to_owned());
    }
    if scans.is_empty() && uses.is_empty() {
        return Some("no statement of the window reads it".to_owned());
    }
    if evidence.files.len() == 1 && evidence.target_files <= 1 {
        return Some("one file: nothing to skip".to_owned());
    }
    uses.is_empty().then(|| "no statement filters or joins it by a column".to_owned())
}

fn check_inputs(evidence: &[TableEvidence], settings: &Settings) -> Result<(), PlanError> {
    let discount_rate = settings.discount_rate;
    if !discount_rate.is_finite() || discount_rate < 0.0 {
        return Err(PlanError::DiscountRate { discount_rate });
    }
    let mut seen = BTreeSet::new();
    for TableEvidence { table, sample, .. } in evidence {
        if !seen.insert(table) {
            return Err(PlanError::DuplicateEvidence { table: table.clone() });
        }
        let uneven = sample.columns.iter().find(|(_, values)| values.len() != sample.rows);
        if let Some((column, values)) = uneven {
            return Err(PlanError::UnevenSample {
                table: table.clone(),
                column: column.clone(),
                expected: sample.rows,
                found: values.len(),
            });
        }
    }
    Ok(())
}

/// Asks the cost model for the value of all candidates at once.
fn value(
    prospects: &mut [Prospect<'_>],
    cost: &dyn CostModel,
    settings: &Settings,
) -> Result<(), PlanError> {
    let facts: Vec<CandidateFacts> = prospects
        .iter()
        .flat_map(|prospect| {
            prospect.candidates.iter().map(|candidate| CandidateFacts {
                saves_bytes_per_window: candidate.estimate.expected_bytes,
                rewrite_bytes: rewrite_bytes(prospect.evidence).as_f64(),
                storage_bytes: storage_bytes(prospect.evidence).as_f64(),
            })
        })
        .collect();
    let values =
        if facts.is_empty() { Vec::new() } else { cost.net_present_values(&facts, settings)? };
    if values.len() != facts.len() {
        return Err(PlanError::ValueCount {
            model: cost.name().to_owned(),
            expected: facts.len(),
            found: values.len(),
        });
    }
    let mut values = values.into_iter();
    for prospect in prospects {
        for (candidate, npv) in prospect.candidates.iter_mut().zip(values.by_ref()) {
            if !npv.is_finite() {
                return Err(PlanError::ValueNotFinite {
                    model: cost.name().to_owned(),
                    table: prospect.evidence.table.clone(),
                    columns: candidate.layout.keys(),
                    npv,
                });
            }
            candidate.npv = npv;
        }
    }
    Ok(())
}

fn problem(
    prospects: &[Prospect<'_>],
    offered: &[Vec<Candidate>],
    settings: &Settings,
) -> Result<Problem, PlanError> {
    let tables = prospects
        .iter()
        .zip(offered)
        .map(|(prospect, offered)| TableOptions {
            table: prospect.evidence.table.clone(),
            options: std::iter::once(PlanOption::default())
                .chain(offered.iter().map(|candidate| PlanOption {
                    npv: candidate.npv,
                    rewrite_bytes: rewrite_bytes(prospect.evidence),
                    storage_bytes: storage_bytes(prospect.evidence),
                }))
                .collect(),
        })
        .collect();
    // Ranges are carried over joins before the simulation, so each table's saving already counts
    // what its join partners ask of it, and no value is left to a pair.
    let bonds = Vec::new();
    Ok(Problem::new(tables, bonds, settings.rewrite_budget, settings.storage_budget)?)
}

/// Returns what chosen candidates leave of a budget.
fn rest(
    budget: Option<Bytes>,
    prospects: &[Prospect<'_>],
    chosen: &[Option<&Candidate>],
    cost: fn(&TableEvidence) -> Bytes,
) -> Option<Bytes> {
    let spent: Bytes = prospects
        .iter()
        .zip(chosen)
        .filter(|(_, chosen)| chosen.is_some())
        .map(|(prospect, _)| cost(prospect.evidence))
        .sum();
    budget.map(|budget| Bytes(budget.0.saturating_sub(spent.0)))
}

/// Counts into the bound what candidates were worth that the search was not offered.
///
/// A table's best worthwhile candidate may be worth more than any offered one, because an equal one
/// was preferred; then nothing is proven, and no plan is worth more than the bound and these
/// differences together.
fn with_set_aside(
    solution: Solution,
    prospects: &[Prospect<'_>],
    offered: &[Vec<Candidate>],
) -> Solution {
    let best = |candidates: &[Candidate]| {
        candidates.iter().map(|candidate| candidate.npv).fold(0.0, f64::max)
    };
    let set_aside: f64 = prospects
        .iter()
        .zip(offered)
        .map(|(prospect, offered)| (best(&prospect.worthwhile()) - best(offered)).max(0.0))
        .sum();
    Solution {
        upper_bound: solution.upper_bound + set_aside,
        proven: solution.proven && set_aside <= 0.0,
        ..solution
    }
}

fn gap(solution: &Solution) -> f64 {
    if solution.proven || solution.upper_bound <= 0.0 {
        0.0
    } else {
        ((solution.upper_bound - solution.npv) / solution.upper_bound).max(0.0)
    }
}

fn absent_tables(
    graph: &JoinGraph,
    evidence: &[&TableEvidence],
    left_out: &BTreeMap<TableName, String>,
) -> Vec<Rejection> {
    graph
        .tables()
        .iter()
        .filter(|table| evidence.binary_search_by(|known| known.table.cmp(table)).is_err())
        .map(|table| Rejection {
            table: table.clone(),
            to: Layout::default(),
            why: left_out.get(table).cloned().unwrap_or_else(|| "not in the lake".to_owned()),
        })
        .collect()
}

fn actions(
    graph: &JoinGraph,
    prospects: &[Prospect<'_>],
    chosen: &[Option<&Candidate>],
) -> Vec<PlannedAction> {
    let taken: BTreeMap<&TableName, (&Prospect<'_>, &Candidate)> = prospects
        .iter()
        .zip(chosen)
        .filter_map(|(prospect, chosen)| Some((&prospect.evidence.table, (prospect, (*chosen)?))))
        .collect();
    let groups = groups(graph, &taken);
    let mut actions: Vec<PlannedAction> = taken
        .iter()
        .map(|(table, (prospect, candidate))| {
            let story = prospect.story(graph);
            let saved = &candidate.estimate;
            PlannedAction {
                table: (*table).clone(),
                from: prospect.evidence.current.clone(),
                to: candidate.layout.clone(),
                group: groups[table],
                rewrite_bytes: story.rewrite_bytes,
                storage_bytes: story.storage_bytes,
                saves: Savings {
                    expected: Bytes::from_f64(saved.expected_bytes),
                    low: Bytes::from_f64(saved.low_bytes),
                    high: Bytes::from_f64(saved.high_bytes),
                },
                npv_bytes: candidate.npv,
                break_even_queries: story.break_even_queries(saved),
                because: story.because(candidate),
            }
        })
        .collect();
    actions.sort_by(|a, b| (a.group, &a.table).cmp(&(b.group, &b.table)));
    actions
}

/// Numbers groups of tables, by their first names: a join with a key on both sides unites them.
fn groups<'a>(
    graph: &JoinGraph,
    taken: &BTreeMap<&'a TableName, (&Prospect<'_>, &Candidate)>,
) -> BTreeMap<&'a TableName, u32> {
    let mut leader: BTreeMap<&TableName, &TableName> =
        taken.keys().map(|&table| (table, table)).collect();
    let has_key = |table: &TableName, column: &String| {
        taken.get(table).is_some_and(|(_, candidate)| candidate.keys().contains(column))
    };
    for edge in graph.edges() {
        let (left, right) = (&edge.stats.left, &edge.stats.right);
        let is_served = edge.stats.pairs.iter().any(|(a, b)| has_key(left, a) && has_key(right, b));
        if !is_served {
            continue;
        }
        let (a, b) = (leader[left], leader[right]);
        let (first, second) = (a.min(b), a.max(b));
        for current in leader.values_mut().filter(|current| **current == second) {
            *current = first;
        }
    }
    let mut numbers: BTreeMap<&TableName, u32> = BTreeMap::new();
    leader
        .into_iter()
        .map(|(table, leader)| {
            let next = u32::try_from(numbers.len() + 1).unwrap_or(u32::MAX);
            (table, *numbers.entry(leader).or_insert(next))
        })
        .collect()
}

#[cfg(test)]
mod tests;
