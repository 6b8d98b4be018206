//! A reading of a statement by its scopes alone, without a planner.
//!
//! The walk knows which relations each name may refer to: common tables hide tables only below
//! where they are defined, an alias hides them only in its own `FROM`, inner queries see outer
//! ones, siblings do not see each other. It gives three things:
//! 1. the columns that tables of unknown schema must have, all at once, for the planner;
//! 2. the names whose owner cannot be told, which are left out rather than guessed;
//! 3. joins and filters, which stand where the planner refuses the statement.
//!
//! A name without qualifier belongs to the only relation in reach that is known to have it, else to
//! the only one that may have it. Where several may, it is unresolved.

mod children;
mod condition;
mod constant;
mod emit;
mod from;
mod hint;
mod name;
mod predicate;
mod relation;
mod resolve;
mod select;
mod survey;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use datafusion_sql::sqlparser::{
    ast::{Expr, Query},
    tokenizer::Location,
};
use lakebed_model::{JoinUse, ScanUse};

pub(super) use hint::Hints;
pub(super) use name::{table_text, text_of};
pub(super) use survey::Survey;

use super::{ComputedKey, Dialect, scans::Scans};
use crate::{Catalog, ColumnType, lineage::predicate::Predicate};
use relation::{Env, Frame};

/// Relations that one statement may visit: chained common tables, each used twice by the next, would
/// otherwise double with every link.
const MAX_VISITS: usize = 20_000;

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// Joins between base columns.
    pub(super) joins: Vec<JoinUse>,
    /// Scans with their filters.
    pub(super) scans: Vec<ScanUse>,
    /// Tables by name with the columns that the catalog does not know but the statement needs.
    pub(super) needed: BTreeMap<String, Vec<(String, Option<ColumnType>)>>,
    /// Names without a certain owner, each with the reason.
    pub(super) unresolved: BTreeMap<String, String>,
    /// Where those names stand.
    pub(super) unresolved_at: BTreeSet<Location>,
    /// Where aliases of the select list stand for their values, which the planner does not know.
    pub(super) aliased: BTreeMap<Location, Expr>,
    /// Equalities with a computed side.
    pub(super) computed: Vec<ComputedKey>,
    /// Whether a column is compared with a constant that only a planner could work out.
    pub(super) open_constants: bool,
    /// Whether the statement visits more relations than any real one, so that parts are missing.
    pub(super) cut: bool,
}

impl Walked {
    /// The names of all columns that are read, of whichever table.
    pub(super) fn columns_read(&self) -> BTreeSet<String> {
        self.scans.iter().flat_map(|scan| scan.columns.iter().cloned()).collect()
    }
}

/// Walks a query.
pub(super) fn walk(
    query: &Query,
    dialect: Dialect,
    catalog: &dyn Catalog,
    hints: &Hints,
    survey: &Survey,
) -> Walked {
    let first = Walk::run(query, dialect, catalog, hints, survey, BTreeMap::new());
    if first.unresolved.is_empty() {
        return first;
    }
    // A column that is mentioned with its table in one place has that owner in all others.
    let known = first
        .needed
        .iter()
        .map(|(table, columns)| {
            (table.clone(), columns.iter().map(|(column, _)| column.clone()).collect())
        })
        .collect();
    Walk::run(query, dialect, catalog, hints, survey, known)
}

/// The state of a walk over a query that lives for `'q`.
struct Walk<'q, 'c> {
    dialect: Dialect,
    catalog: &'c dyn Catalog,
    hints: &'c Hints,
    survey: &'c Survey,
    /// Columns that tables were found to have elsewhere in the statement.
    mentioned: BTreeMap<String, BTreeSet<String>>,
    scans: Scans,
    joins: Vec<JoinUse>,
    computed: Vec<ComputedKey>,
    unresolved: BTreeMap<String, String>,
    unresolved_at: BTreeSet<Location>,
    aliased: BTreeMap<Location, Expr>,
    /// The common tables in reach.
    env: Env<'q>,
    /// The `FROM` clauses in reach, outermost first.
    frames: Vec<Frame<'q>>,
    /// Key pairs between a subquery and what encloses it, one list per open subquery.
    correlated: Vec<Vec<relation::Pair>>,
    /// Parameters of lambdas in reach.
    parameters: Vec<String>,
    /// Whether both sides of the equality at hand are names without qualifier.
    both_bare: bool,
    /// Select aliases that are being read, so that `x AS x` comes to an end.
    open_aliases: Vec<String>,
    /// What disjunctions over several tables ask of each of them, although the text does not say so.
    implied: Vec<(usize, Predicate)>,
    open_constants: bool,
    visits: usize,
}

impl<'q, 'c> Walk<'q, 'c> {
    fn run(
        query: &'q Query,
        dialect: Dialect,
        catalog: &'c dyn Catalog,
        hints: &'c Hints,
        survey: &'c Survey,
        mentioned: BTreeMap<String, BTreeSet<String>>,
    ) -> Walked {
        let mut walk = Self {
            dialect,
            catalog,
            hints,
            survey,
            mentioned,
            scans: Scans::default(),
            joins: Vec::new(),
            computed: Vec::new(),
            unresolved: BTreeMap::new(),
            unresolved_at: BTreeSet::new(),
            aliased: BTreeMap::new(),
            env: Env::default(),
            frames: Vec::new(),
            correlated: vec![Vec::new()],
            parameters: Vec::new(),
            both_bare: false,
            open_aliases: Vec::new(),
            implied: Vec::new(),
            open_constants: false,
            visits: 0,
        };
        let rows = walk.query(query);
        for output in &rows.outputs {
            walk.scans.read(&output.value.origin);
        }
        let needed = walk.scans.needed();
        let stated = walk.scans.stated();
        for (scan, predicate) in std::mem::take(&mut walk.implied) {
            walk.scans.push(scan, predicate);
        }
        walk.scans.infer();
        Walked {
            joins: walk.joins,
            scans: walk.scans.into_uses(&stated),
            needed,
            unresolved: walk.unresolved,
            unresolved_at: walk.unresolved_at,
            aliased: walk.aliased,
            computed: walk.computed,
            open_constants: walk.open_constants,
            cut: walk.visits > MAX_VISITS,
        }
    }
}
