//! Why no plan can be made.

use lakebed_model::TableName;

use crate::{CostError, search::ProblemError};

/// A failure of this crate; the text fits after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Two pieces of evidence are of the same table.
    #[error("plan {table}: its evidence is given twice, expected once per table")]
    DuplicateEvidence {
        /// The table.
        table: TableName,
    },
    /// A sample's columns do not line up.
    #[error(
        "use the sample of {table}: column `{column}` has {found} values, expected {expected} as the sample has rows"
    )]
    UnevenSample {
        /// The table.
        table: TableName,
        /// The column.
        column: String,
        /// Rows of the sample.
        expected: usize,
        /// Values of the column.
        found: usize,
    },
    /// The discount rate makes no sense.
    #[error(
        "plan with discount rate {discount_rate}: expected a finite rate per window of at least 0"
    )]
    DiscountRate {
        /// The rate given.
        discount_rate: f64,
    },
    /// The cost model itself failed.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// The cost model gave too few or too many values.
    #[error(
        "use the values of cost model `{model}`: {found} values for {expected} candidates, expected one per candidate"
    )]
    ValueCount {
        /// Name of the cost model.
        model: String,
        /// Candidates given.
        expected: usize,
        /// Values returned.
        found: usize,
    },
    /// The cost model gave a value that is no number.
    #[error(
        "use the value of cost model `{model}` for {table} by ({columns}): {npv} is not finite"
    )]
    ValueNotFinite {
        /// Name of the cost model.
        model: String,
        /// The candidate's table.
        table: TableName,
        /// The candidate's columns.
        columns: String,
        /// The value returned.
        npv: f64,
    },
    /// The options do not make a search problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// A search returned a plan that breaks its own contract.
    #[error("use the answer of search `{search}`, which breaks its contract")]
    Search {
        /// Name of the search.
        search: String,
        /// What is wrong with the answer.
        #[source]
        breach: crate::contract::Breach,
    },
}
