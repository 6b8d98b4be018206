//! The molds of a history: which statements came before, and what the planner said of them.

use std::collections::{BTreeMap, BTreeSet};

use datafusion_sql::sqlparser::{ast::Query, tokenizer::Location};

use super::{
    analyze::{MAX_PLANNED_TOKENS, Verdict},
    depth::Depth,
    lifted::Lifted,
    mold::Mold,
    scope::Hints,
};

/// Texts without constants that are remembered before all are forgotten.
const MAX_TEXTS: usize = 8_192;

/// Tokens of all syntax trees that are kept before all are forgotten; a token's part of a tree takes
/// a few hundred bytes.
const MAX_TOKENS: usize = 100_000;

/// Trees of one text that differ in constants which have to be the same, and verdicts of one tree.
const MAX_VARIANTS: usize = 32;

/// What is known of a text without constants.
enum Known {
    /// It came once: most of a history that never repeats does, and needs no tree.
    Once,
    /// Its constants and its tree do not fit together: it is parsed each time.
    Unfit,
    /// Trees, with the verdict for each pattern of equal constants.
    Molds(Vec<(Mold, BTreeMap<Vec<usize>, Verdict>)>),
}

/// The statements that came before.
#[derive(Default)]
pub(super) struct Repeats {
    by_text: BTreeMap<[u8; 32], Known>,
    tokens: usize,
}

impl Repeats {
    /// Finds the mold of a text and the planner's verdict of it.
    pub(super) fn find(&mut self, lifted: &Lifted<'_>) -> Option<(&mut Mold, &Verdict)> {
        let Known::Molds(molds) = self.by_text.get_mut(&lifted.key)? else { return None };
        molds.iter_mut().find_map(|(mold, verdicts)| {
            // Longer ones than the planner takes would not have been planned.
            let tokens = mold.depth.tokens + 2 * lifted.value_count();
            let pattern = mold.pattern(&lifted.constants)?;
            let verdict = verdicts.get(&pattern)?;
            (tokens <= MAX_PLANNED_TOKENS).then_some((mold, verdict))
        })
    }

    /// Tells whether a text came before, so that its tree is worth keeping, and notes that it came.
    pub(super) fn is_known(&mut self, lifted: &Lifted<'_>) -> bool {
        if let Some(known) = self.by_text.get(&lifted.key) {
            return !matches!(known, Known::Unfit);
        }
        if self.by_text.len() >= MAX_TEXTS {
            self.forget();
        }
        self.by_text.insert(lifted.key, Known::Once);
        false
    }

    /// Keeps a statement's tree and the planner's verdict.
    pub(super) fn keep(
        &mut self,
        sql: &str,
        lifted: &Lifted<'_>,
        parsed: &BTreeSet<Location>,
        tree: (Query, Hints, Depth),
        verdict: Verdict,
    ) {
        let tokens = tree.2.tokens;
        if tokens > MAX_PLANNED_TOKENS {
            return;
        }
        if self.tokens + tokens > MAX_TOKENS {
            self.forget();
        }
        let known = self.by_text.entry(lifted.key).or_insert(Known::Once);
        if let Known::Molds(molds) = known {
            let same = molds.iter_mut().find_map(|(mold, verdicts)| {
                mold.pattern(&lifted.constants).map(|pattern| (pattern, verdicts))
            });
            if let Some((pattern, verdicts)) = same {
                if verdicts.len() < MAX_VARIANTS {
                    verdicts.insert(pattern, verdict);
                }
                return;
            }
            if molds.len() >= MAX_VARIANTS {
                return;
            }
        }
        let mold = Mold::of(sql, lifted, parsed, tree);
        let Some((mold, pattern)) = mold.and_then(|mold| {
            let pattern = mold.pattern(&lifted.constants)?;
            Some((mold, pattern))
        }) else {
            *known = Known::Unfit;
            return;
        };
        let molded = (mold, BTreeMap::from([(pattern, verdict)]));
        match known {
            Known::Molds(molds) => molds.push(molded),
            _ => *known = Known::Molds(vec![molded]),
        }
        self.tokens += tokens;
    }

    fn forget(&mut self) {
        self.by_text.clear();
        self.tokens = 0;
    }
}
