//! Statements that were seen before, with other constants.
//!
//! Joins do not depend on constants; the values of filters do. The plan of the first statement of a
//! fingerprint says which scans there are, and the scope walk of that same statement says the same of
//! their filters, or it does not. Where it does, the walk alone reads later statements, which is many
//! times faster than planning them; where it does not, each is planned.

use lakebed_model::ScanUse;

use super::{SqlLineage, analyze::Analyzed, scope::Walked};

/// What stays the same over all statements of a fingerprint.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    lineage: SqlLineage,
    /// For each scan of the plan the walk's scan whose filters it has.
    scans: Vec<usize>,
}

impl Shape {
    /// Keeps what a statement tells about others like it; `None` when plan and walk differ.
    pub(super) fn of(analyzed: &Analyzed) -> Option<Self> {
        let Analyzed { lineage, walked } = analyzed;
        if walked.cut || lineage.scans.len() != walked.scans.len() {
            return None;
        }
        let mut free: Vec<usize> = (0..walked.scans.len()).collect();
        let mut scans = Vec::with_capacity(free.len());
        for scan in &lineage.scans {
            let fits = |index: &usize| same_filters(scan, &walked.scans[*index]);
            // Of two scans with the same filters today, the one that reads the same columns has the
            // same filters tomorrow.
            let best = free
                .iter()
                .position(|index| fits(index) && same_columns(scan, &walked.scans[*index]))
                .or_else(|| free.iter().position(fits))?;
            scans.push(free.remove(best));
        }
        Some(Self { lineage: lineage.clone(), scans })
    }

    /// Gives the lineage of another statement of the fingerprint, from its walk.
    pub(super) fn with_constants(&self, walked: &Walked) -> Option<SqlLineage> {
        if walked.scans.len() != self.scans.len() {
            return None;
        }
        let mut lineage = self.lineage.clone();
        for (scan, index) in lineage.scans.iter_mut().zip(&self.scans) {
            let from = walked.scans.get(*index)?;
            if from.table != scan.table {
                return None;
            }
            scan.filters.clone_from(&from.filters);
        }
        Some(lineage)
    }
}

fn same_filters(planned: &ScanUse, walked: &ScanUse) -> bool {
    planned.table == walked.table && planned.filters == walked.filters
}

fn same_columns(planned: &ScanUse, walked: &ScanUse) -> bool {
    planned.columns.len() == walked.columns.len()
        && planned.columns.iter().all(|column| walked.columns.contains(column))
}
