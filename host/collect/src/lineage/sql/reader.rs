//! Reading a history: many statements, most of which were seen before.

use std::{collections::BTreeMap, fmt};

use datafusion_sql::sqlparser::ast::{Query, Statement};
use lakebed_model::Instant;
use sha2::{Digest, Sha256};

use super::{
    Dialect, LineageError, LineageTier, SqlLineage,
    analyze::analyze,
    definitions::{Defines, Definitions},
    rewrite::{self, Text},
    scope,
    shapes::Shape,
};
use crate::{Catalog, fingerprint};

/// Texts and shapes that are remembered before all are forgotten: memory stays bounded whatever the
/// history.
const MAX_REMEMBERED: usize = 8_192;

/// A statement's text and where it comes from.
#[derive(Debug, Clone, Copy)]
pub struct SqlText<'t> {
    /// The text, one statement or several.
    pub sql: &'t str,
    /// Its dialect.
    pub dialect: Dialect,
    /// The session that ran it, where the log knows: temporary tables hold within it.
    pub session: Option<&'t str>,
    /// When it started: a view means what its newest definition until then says.
    pub at: Instant,
}

/// How statements were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReaderCounts {
    /// Planned, or read by their scopes where the planner refused.
    pub planned: u64,
    /// Read with the plan of an earlier statement that differs in constants only.
    pub repeated: u64,
    /// Not read again: the same text was.
    pub same: u64,
}

/// Reads the statements of a history, in the order they ran.
///
/// It remembers the views and temporary tables that statements define, and the plans of statements
/// that come again with other constants. The joins of such a plan stand, the filters' values are
/// read anew.
pub struct LineageReader<'c> {
    catalog: &'c dyn Catalog,
    definitions: Definitions,
    texts: BTreeMap<[u8; 32], Result<SqlLineage, LineageError>>,
    /// Texts so far, to tell those without a session apart.
    text_count: u64,
    shapes: BTreeMap<(Dialect, String), Option<Shape>>,
    counts: ReaderCounts,
}

impl fmt::Debug for LineageReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineageReader").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl<'c> LineageReader<'c> {
    /// Makes a reader that knows the catalog's tables.
    #[must_use]
    pub fn new(catalog: &'c dyn Catalog) -> Self {
        Self {
            catalog,
            definitions: Definitions::default(),
            texts: BTreeMap::new(),
            text_count: 0,
            shapes: BTreeMap::new(),
            counts: ReaderCounts::default(),
        }
    }

    /// Says how the statements so far were read.
    #[must_use]
    pub const fn counts(&self) -> ReaderCounts {
        self.counts
    }

    /// Reads a text.
    ///
    /// # Errors
    /// Fails when no statement in the text parses, when it nests too deeply, and when it reads no
    /// table.
    pub fn read(&mut self, text: &SqlText<'_>) -> Result<SqlLineage, LineageError> {
        let key = identity(text);
        if let Some(known) = self.texts.get(&key)
            && !self.means_a_definition(known, text)
        {
            self.counts.same += 1;
            return known.clone();
        }
        let tokens = Text::read(text.sql, text.dialect)?;
        self.text_count += 1;
        let session = match text.session {
            Some(session) => format!("session {session}"),
            // Within one text temporary tables hold even where the session is not known.
            None => format!("text {}", self.text_count),
        };
        let (found, defined) =
            tokens.depth.with_stack(|| self.read_tokens(&tokens, text, &session));
        if text.session.is_none() {
            self.definitions.forget(&session);
        }
        // What a text means by a definition, or defines itself, is worked out each time.
        if !defined {
            if self.texts.len() >= MAX_REMEMBERED {
                self.texts.clear();
            }
            self.texts.insert(key, found.clone());
        }
        found
    }

    /// Tells whether a name that was a table's may be a view's by now.
    fn means_a_definition(
        &self,
        known: &Result<SqlLineage, LineageError>,
        text: &SqlText<'_>,
    ) -> bool {
        let session = text.session.map(|session| format!("session {session}")).unwrap_or_default();
        known.iter().flat_map(|lineage| &lineage.scans).any(|scan| {
            let table = scan.table.as_ref();
            table.is_some_and(|table| self.definitions.has(table.as_str(), &session, text.at))
        })
    }

    /// Reads the statements of a text; tells also whether definitions had a part in it.
    fn read_tokens(
        &mut self,
        tokens: &Text,
        text: &SqlText<'_>,
        session: &str,
    ) -> (Result<SqlLineage, LineageError>, bool) {
        let (statements, failures) = tokens.statements();
        let is_single = statements.len() == 1 && failures.is_empty();
        let mut all = SqlLineage { tier: LineageTier::Resolved, ..SqlLineage::unread() };
        let mut defined = false;
        for statement in statements {
            let one = self.read_statement(statement, tokens, text, session, is_single);
            let Read { lineage, by_definition } = one;
            defined |= by_definition;
            let Some(mut one) = lineage else { continue };
            all.joins.append(&mut one.joins);
            all.scans.append(&mut one.scans);
            all.computed_keys.append(&mut one.computed_keys);
            all.losses.append(&mut one.losses);
            all.tier = all.tier.max(one.tier);
        }
        if all.scans.is_empty() {
            let error = failures
                .into_iter()
                .next()
                .unwrap_or_else(|| LineageError::NoQuery { statement: first_words(text.sql) });
            return (Err(error), defined);
        }
        all.losses.extend(failures.iter().map(ToString::to_string));
        all.confidence = all.tier.confidence();
        (Ok(all), defined)
    }

    fn read_statement(
        &mut self,
        statement: Statement,
        tokens: &Text,
        text: &SqlText<'_>,
        session: &str,
        is_single: bool,
    ) -> Read {
        let before = self.definitions.count();
        self.definitions.drop_by(&statement, session, text.at);
        let defines = Defines::of(&statement);
        let Some(mut query) = rewrite::query_of(statement) else {
            return Read { lineage: None, by_definition: self.definitions.count() > before };
        };
        let expanded = self.definitions.expand(&mut query, session, text.at);
        rewrite::respell(&mut query);
        let by_definition = expanded || defines.is_some();
        let definition = defines.map(|defines| (defines, query.clone()));
        let lineage = self.read_query(&mut query, tokens, text, is_single && !expanded);
        if let Some((defines, query)) = definition {
            self.definitions.add(defines, query, session, text.at);
        }
        Read { lineage: Some(lineage), by_definition }
    }

    fn read_query(
        &mut self,
        query: &mut Query,
        tokens: &Text,
        text: &SqlText<'_>,
        may_repeat: bool,
    ) -> SqlLineage {
        let (dialect, hints) = (text.dialect, &tokens.hints);
        let key = may_repeat.then(|| (dialect, fingerprint::of_sql_in(text.sql, dialect)));
        if let Some(Some(shape)) = key.as_ref().and_then(|key| self.shapes.get(key)) {
            let walked = scope::walk(query, dialect, self.catalog, hints);
            if let Some(lineage) = shape.with_constants(&walked) {
                self.counts.repeated += 1;
                return lineage;
            }
        }
        let analyzed = analyze(query, dialect, self.catalog, hints, tokens.depth.tokens);
        self.counts.planned += 1;
        if let Some(key) = key {
            if self.shapes.len() >= MAX_REMEMBERED {
                self.shapes.clear();
            }
            self.shapes.insert(key, Shape::of(&analyzed));
        }
        analyzed.lineage
    }
}

/// What one statement of a text gave.
struct Read {
    lineage: Option<SqlLineage>,
    /// Whether it uses, makes or drops a definition.
    by_definition: bool,
}

fn identity(text: &SqlText<'_>) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(format!("{:?} ", text.dialect).as_bytes());
    digest.update(text.sql.as_bytes());
    digest.finalize().into()
}

/// The first words, as long as they are words and no constants.
fn first_words(sql: &str) -> String {
    let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_alphabetic());
    sql.split_whitespace().take(2).take_while(is_word).collect::<Vec<_>>().join(" ")
}
