//! Lineage from a statement's text, through DataFusion's planner.
//!
//! 1. The text is parsed in its dialect and rewritten to what the planner accepts.
//! 2. It is planned against the [`Catalog`]. A table that the catalog does not know gets a stub
//!    schema, which grows by the columns that the planner misses until the plan stands; functions
//!    nobody knows are stubs too.
//! 3. A chosen list of optimizer rules turns comma joins, `EXISTS` and `IN` into joins and pushes
//!    filters to scans. Rules that would delete or disguise an edge are not in the list.
//! 4. The plan is walked with a map from each column to its base columns.
//!
//! Nothing is executed and no file is opened.

mod compared;
mod context;
mod dialect;
mod functions;
mod optimize;
mod predicate;
mod resolve;
mod rewrite;
mod stubs;
#[cfg(test)]
pub(crate) mod tests;
mod types;

use lakebed_model::{JoinUse, ScanUse};

pub(crate) use compared::compared_columns;
pub use dialect::Dialect;

use crate::Catalog;

/// How a statement's tables were known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineageTier {
    /// All tables and columns are in the catalog.
    Resolved,
    /// Schemas, columns or functions were stubs, grown from the statement.
    Stubbed,
}

impl LineageTier {
    /// Returns the confidence in lineage of this tier, 0 to 1.
    #[must_use]
    pub const fn confidence(self) -> f64 {
        match self {
            Self::Resolved => 1.0,
            Self::Stubbed => 0.8,
        }
    }
}

/// What a statement does to base tables.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlLineage {
    /// Equality joins between base columns.
    pub joins: Vec<JoinUse>,
    /// Scans of base tables with the filters that reach them.
    pub scans: Vec<ScanUse>,
    /// How the tables were known.
    pub tier: LineageTier,
    /// The tier's confidence.
    pub confidence: f64,
}

impl SqlLineage {
    /// The lineage of a statement that could not be read.
    pub(crate) const fn unread() -> Self {
        Self { joins: Vec::new(), scans: Vec::new(), tier: LineageTier::Stubbed, confidence: 0.0 }
    }
}

/// Why a statement has no lineage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineageError {
    /// The text is no statement of its dialect.
    #[error("parse SQL at line {line}, column {column}: {message}")]
    Parse {
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: u64,
        /// What was expected and found.
        message: String,
    },
    /// The dialect does not exist.
    #[error("parse SQL of dialect `{dialect}`: unknown dialect, expected one of {known}")]
    UnknownDialect {
        /// The dialect as given.
        dialect: String,
        /// The dialects that exist.
        known: String,
    },
    /// The statement reads no table.
    #[error("find a query in `{statement}`: it reads no table")]
    NoQuery {
        /// The statement's first words.
        statement: String,
    },
    /// A column without qualifier could belong to several tables of unknown schema.
    #[error(
        "resolve column `{column}`: it could belong to any of {tables}, whose schemas are unknown"
    )]
    AmbiguousColumn {
        /// The column.
        column: String,
        /// The tables it could belong to.
        tables: String,
    },
    /// The planner cannot plan the statement.
    #[error("plan SQL: {message}")]
    Plan {
        /// What the planner said, first line.
        message: String,
    },
    /// The statement misses more columns than any real one.
    #[error("plan SQL: gave up after growing stub schemas {limit} times")]
    TooManyStubs {
        /// The bound.
        limit: usize,
    },
}

/// Reads the lineage of one statement, or of several separated by semicolons.
///
/// Table names are as the statement spells them, in lower case unless the dialect keeps case.
///
/// # Errors
/// Fails when the text does not parse, reads no table, or cannot be planned.
pub fn lineage(
    sql: &str,
    dialect: Dialect,
    catalog: &dyn Catalog,
) -> Result<SqlLineage, LineageError> {
    let queries = rewrite::queries(sql, dialect)?;
    let mut all = SqlLineage {
        joins: Vec::new(),
        scans: Vec::new(),
        tier: LineageTier::Resolved,
        confidence: 0.0,
    };
    for query in queries {
        let planned = stubs::plan(&query, catalog)?;
        let mut one = resolve::lineage(&planned)?;
        all.joins.append(&mut one.joins);
        all.scans.append(&mut one.scans);
        all.tier = all.tier.max(one.tier);
    }
    if all.scans.is_empty() {
        return Err(LineageError::NoQuery { statement: first_words(sql) });
    }
    all.confidence = all.tier.confidence();
    Ok(all)
}

fn first_words(sql: &str) -> String {
    sql.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}
