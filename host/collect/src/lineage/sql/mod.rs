//! Lineage from a statement's text, through DataFusion's planner.
//!
//! 1. The text is parsed in its dialect and rewritten to what the planner accepts; views and
//!    temporary tables that were defined earlier are put in the place of their names.
//! 2. Its scopes are walked (`scope`): which columns tables of unknown schema must have, and which
//!    names belong to nobody for certain. Those are left out rather than guessed.
//! 3. It is planned against the [`Catalog`], with stub schemas from the walk and stubs for functions
//!    nobody knows.
//! 4. A chosen list of optimizer rules turns comma joins, `EXISTS` and `IN` into joins and pushes
//!    filters to scans. Rules that would delete or disguise an edge are not in the list.
//! 5. The plan is walked with a map from each column to its base columns. Where the planner refuses
//!    the statement, what the scopes alone say stands, with less confidence.
//!
//! Nothing is executed and no file is opened.

mod analyze;
mod bounded;
mod chains;
mod compared;
mod context;
mod definitions;
mod depth;
mod dialect;
mod error;
mod functions;
mod lifted;
mod mold;
mod optimize;
mod predicate;
mod reader;
mod repeats;
mod resolve;
mod rewrite;
mod scans;
mod scope;
mod stubs;
mod template;
#[cfg(test)]
pub(crate) mod tests;
mod tokens;
mod types;

use lakebed_model::{ColumnRef, Instant, JoinUse, ScanUse};

pub(crate) use compared::compared_columns;
pub use dialect::Dialect;
pub use error::LineageError;
pub use reader::{LineageReader, ReaderCounts, SqlText};

use crate::Catalog;

/// How sure a statement's lineage is, from the surest to the vaguest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineageTier {
    /// Planned; all tables, columns and functions are known.
    Resolved,
    /// Planned; some functions were stubs.
    StubFunctions,
    /// Planned; schemas of some tables were grown from the statement.
    StubSchemas,
    /// Not planned: read by its scopes alone.
    Scoped,
}

impl LineageTier {
    /// Returns the confidence in lineage of this tier, 0 to 1.
    #[must_use]
    pub const fn confidence(self) -> f64 {
        match self {
            Self::Resolved => 1.0,
            Self::StubFunctions => 0.9,
            Self::StubSchemas => 0.8,
            Self::Scoped => 0.5,
        }
    }

    /// Returns the tier's name in machine output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resolved => "resolved",
            Self::StubFunctions => "stub_functions",
            Self::StubSchemas => "stub_schemas",
            Self::Scoped => "scoped",
        }
    }
}

/// An equality with a computed side, `year(a.born) = b.year`: evidence, but no edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedKey {
    /// The base column of the left side.
    pub left: ColumnRef,
    /// What computes the left side's value from its column, if anything does.
    pub left_function: Option<String>,
    /// The base column of the right side.
    pub right: ColumnRef,
    /// What computes the right side's value from its column, if anything does.
    pub right_function: Option<String>,
}

/// What a statement does to base tables.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlLineage {
    /// Equality joins between base columns.
    pub joins: Vec<JoinUse>,
    /// Scans of base tables with the filters that reach them.
    pub scans: Vec<ScanUse>,
    /// Equalities with a computed side.
    pub computed_keys: Vec<ComputedKey>,
    /// What could not be read, each with its reason and without constants; joins or filters may be
    /// missing.
    pub losses: Vec<String>,
    /// How the statement was read.
    pub tier: LineageTier,
    /// The tier's confidence.
    pub confidence: f64,
}

impl SqlLineage {
    /// The lineage of a statement that could not be read.
    pub(crate) const fn unread() -> Self {
        Self {
            joins: Vec::new(),
            scans: Vec::new(),
            computed_keys: Vec::new(),
            losses: Vec::new(),
            tier: LineageTier::Scoped,
            confidence: 0.0,
        }
    }
}

/// Reads the lineage of one statement, or of several separated by semicolons.
///
/// Table names are as the statement spells them, in lower case unless the dialect keeps case. For a
/// whole history use a [`LineageReader`], which remembers views and statements it has seen.
///
/// # Errors
/// Fails when the text does not parse, nests too deeply, or reads no table.
pub fn lineage(
    sql: &str,
    dialect: Dialect,
    catalog: &dyn Catalog,
) -> Result<SqlLineage, LineageError> {
    let text = SqlText { sql, dialect, session: None, at: Instant::default() };
    LineageReader::new(catalog).read(&text)
}
