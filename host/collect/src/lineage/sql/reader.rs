//! Reading a history: many statements, most of which were seen before.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use datafusion_sql::sqlparser::{
    ast::{Query, Statement},
    tokenizer::Location,
};
use lakebed_model::Instant;
use sha2::{Digest, Sha256};

use super::{
    Dialect, LineageError, LineageTier, SqlLineage,
    analyze::{Analyzed, analyze, judged},
    definitions::{Defines, Definitions},
    lifted::Lifted,
    mold::Mold,
    repeats::Repeats,
    rewrite::{self, Text},
    scope,
};
use crate::Catalog;

/// Texts that are remembered before all are forgotten: memory stays bounded whatever the
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
    /// Read with the syntax tree of an earlier statement that differs in constants only.
    pub repeated: u64,
    /// Not read again: the same text was.
    pub same: u64,
}

/// Reads the statements of a history, in the order they ran.
///
/// It remembers the views and temporary tables that statements define, and the syntax trees of
/// statements that come again with other constants: these are neither parsed nor planned again.
pub struct LineageReader<'c> {
    catalog: &'c dyn Catalog,
    definitions: Definitions,
    texts: BTreeMap<[u8; 32], Result<SqlLineage, LineageError>>,
    /// Texts so far, to tell those without a session apart.
    text_count: u64,
    repeats: Repeats,
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
            repeats: Repeats::default(),
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
        let lifted = Lifted::of(text.sql, text.dialect);
        if let Some(lineage) = lifted.as_ref().and_then(|lifted| self.repeated(text, lifted)) {
            self.counts.repeated += 1;
            let found = Ok(lineage);
            self.remember(key, &found);
            return found;
        }
        let tokens = Text::read(text.sql, text.dialect)?;
        self.text_count += 1;
        let session = match text.session {
            Some(session) => format!("session {session}"),
            // Within one text temporary tables hold even where the session is not known.
            None => format!("text {}", self.text_count),
        };
        let (found, defined) =
            tokens.depth.with_stack(|| self.read_tokens(&tokens, lifted.as_ref(), text, &session));
        if text.session.is_none() {
            self.definitions.forget(&session);
        }
        // What a text means by a definition, or defines itself, is worked out each time.
        if !defined {
            self.remember(key, &found);
        }
        found
    }

    fn remember(&mut self, key: [u8; 32], found: &Result<SqlLineage, LineageError>) {
        if self.texts.len() >= MAX_REMEMBERED {
            self.texts.clear();
        }
        self.texts.insert(key, found.clone());
    }

    /// Reads a statement that came before with other constants.
    fn repeated(&mut self, text: &SqlText<'_>, lifted: &Lifted<'_>) -> Option<SqlLineage> {
        let catalog = self.catalog;
        let (mold, verdict) = self.repeats.find(lifted)?;
        let lineage = mold.depth.with_stack(|| {
            mold.fill(&lifted.constants);
            let walked =
                scope::walk(mold.query(), text.dialect, catalog, &mold.hints, &mold.survey);
            let is_settled = !walked.open_constants && !walked.cut && !walked.scans.is_empty();
            is_settled.then(|| judged(&walked, verdict))
        })?;
        (!self.is_defined(&lineage, text)).then_some(lineage)
    }

    /// Tells whether a name that was a table's may be a view's by now.
    fn means_a_definition(
        &self,
        known: &Result<SqlLineage, LineageError>,
        text: &SqlText<'_>,
    ) -> bool {
        known.iter().any(|lineage| self.is_defined(lineage, text))
    }

    fn is_defined(&self, lineage: &SqlLineage, text: &SqlText<'_>) -> bool {
        let session = text.session.map(|session| format!("session {session}")).unwrap_or_default();
        lineage.scans.iter().any(|scan| {
            let table = scan.table.as_ref();
            table.is_some_and(|table| self.definitions.has(table.as_str(), &session, text.at))
        })
    }

    /// Reads the statements of a text; tells also whether definitions had a part in it.
    fn read_tokens(
        &mut self,
        tokens: &Text,
        lifted: Option<&Lifted<'_>>,
        text: &SqlText<'_>,
        session: &str,
    ) -> (Result<SqlLineage, LineageError>, bool) {
        let (statements, failures) = tokens.statements();
        let lifted = lifted.filter(|_| statements.len() == 1 && failures.is_empty());
        let mut all = SqlLineage { tier: LineageTier::Resolved, ..SqlLineage::unread() };
        let mut defined = false;
        for statement in statements {
            let one = self.read_statement(statement, tokens, lifted, text, session);
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
        lifted: Option<&Lifted<'_>>,
        text: &SqlText<'_>,
        session: &str,
    ) -> Read {
        let before = self.definitions.count();
        self.definitions.drop_by(&statement, session, text.at);
        let defines = Defines::of(&statement);
        let repeats = lifted.filter(|_| defines.is_none() && self.definitions.count() == before);
        let repeats = repeats.filter(|lifted| self.repeats.is_known(lifted));
        let repeats = repeats.map(|lifted| (lifted, Mold::places(&statement)));
        let Some(mut query) = rewrite::query_of(statement) else {
            return Read { lineage: None, by_definition: self.definitions.count() > before };
        };
        let levels = self.definitions.expand(&mut query, session, text.at);
        let expanded = levels > 0;
        rewrite::respell(&mut query);
        let by_definition = expanded || defines.is_some();
        let definition = defines.map(|defines| (defines, query.clone()));
        let repeats = repeats.filter(|_| !expanded);
        let lineage = self.read_query(&mut query, tokens, repeats, text);
        if let Some((defines, query)) = definition {
            self.definitions.add(defines, query, levels, session, text.at);
        }
        Read { lineage: Some(lineage), by_definition }
    }

    /// Reads a query, and keeps its tree where such a text came before.
    fn read_query(
        &mut self,
        query: &mut Query,
        tokens: &Text,
        repeats: Option<(&Lifted<'_>, BTreeSet<Location>)>,
        text: &SqlText<'_>,
    ) -> SqlLineage {
        let kept = repeats.map(|(lifted, parsed)| (lifted, parsed, query.clone()));
        let Analyzed { lineage, verdict } =
            analyze(query, text.dialect, self.catalog, &tokens.hints, tokens.depth);
        self.counts.planned += 1;
        if let (Some((lifted, parsed, query)), Some(verdict)) = (kept, verdict) {
            let tree = (query, tokens.hints.clone(), tokens.depth);
            self.repeats.keep(text.sql, lifted, &parsed, tree, verdict);
        }
        lineage
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
