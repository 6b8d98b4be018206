//! Statements that are nobody's workload, told by their text.

use lakebed_model::{QueryRecord, SkipCounts};

/// Why a statement is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exclusion {
    /// It asks for a plan.
    Explain,
    /// It asks for or changes what is known of tables, or keeps them up, rather than reading rows.
    Metadata,
    /// It is Lakebed's.
    Own,
}

impl Exclusion {
    /// Counts a statement.
    pub(crate) const fn count(self, skipped: &mut SkipCounts) {
        match self {
            Self::Explain => skipped.explain += 1,
            Self::Metadata => skipped.metadata += 1,
            Self::Own => skipped.own += 1,
        }
    }
}

/// First words of statements that read no rows of anybody's, in the dialects of all sources.
const METADATA: [&str; 31] = [
    "SHOW", "DESCRIBE", "DESC", "USE", "SET", "RESET", "UNSET", "LIST", "LS", "ANALYZE", "REFRESH",
    "MSCK", "REPAIR", "VACUUM", "OPTIMIZE", "REORG", "GRANT", "REVOKE", "DENY", "KILL", "BEGIN",
    "START", "COMMIT", "ROLLBACK", "UNCACHE", "CLEAR", "COMMENT", "ALTER", "DROP", "PRAGMA",
    "CALL",
];

/// A comment with this beginning marks statements that Lakebed sends to engines.
const OWN_MARK: &str = "lakebed";
/// The folder of Lakebed's own records in a lake.
const OWN_FOLDER: &str = "_lakebed";

/// Judges a statement's text.
pub(crate) fn of_text(sql: &str) -> Option<Exclusion> {
    let mut rest = sql.trim_start();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '(' || c == ';');
        if let Some(comment) = rest.strip_prefix("/*") {
            if is_own_mark(comment) {
                return Some(Exclusion::Own);
            }
            rest = comment.split_once("*/")?.1;
        } else if let Some(comment) = rest.strip_prefix("--") {
            if is_own_mark(comment) {
                return Some(Exclusion::Own);
            }
            rest = comment.split_once('\n')?.1;
        } else {
            break;
        }
    }
    let verb = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    // A single word is a name rather than a statement.
    if verb.is_empty() || rest.len() == verb.len() {
        return None;
    }
    if verb.eq_ignore_ascii_case("EXPLAIN") {
        return Some(Exclusion::Explain);
    }
    METADATA.iter().any(|known| verb.eq_ignore_ascii_case(known)).then_some(Exclusion::Metadata)
}

/// Tells whether a statement reads nothing but Lakebed's own records.
pub(crate) fn reads_own_records(record: &QueryRecord) -> bool {
    let is_own = |text: &str| text.split(['/', '.', '`']).any(|part| part == OWN_FOLDER);
    !record.scans.is_empty()
        && record.scans.iter().all(|scan| {
            scan.location.as_deref().is_some_and(is_own)
                || scan.table.as_ref().is_some_and(|table| is_own(table.as_str()))
        })
}

fn is_own_mark(comment: &str) -> bool {
    let word = comment.trim_start().get(..OWN_MARK.len());
    word.is_some_and(|word| word.eq_ignore_ascii_case(OWN_MARK))
}

#[cfg(test)]
mod tests {
    use super::{Exclusion, of_text};

    #[track_caller]
    fn check(sql: &str, expected: Option<Exclusion>) {
        assert_eq!(of_text(sql), expected, "{sql}");
    }

    #[test]
    fn statements_are_told_by_their_first_word() {
        check("SELECT 1 FROM t", None);
        check("with show as (select 1) select * from show", None);
        check("explain select 1", Some(Exclusion::Explain));
        check("  (EXPLAIN FORMATTED SELECT 1)", Some(Exclusion::Explain));
        check("show tables in sales", Some(Exclusion::Metadata));
        check("DESCRIBE TABLE t", Some(Exclusion::Metadata));
        check("SET spark.sql.shuffle.partitions=4", Some(Exclusion::Metadata));
        check("OPTIMIZE t FULL", Some(Exclusion::Metadata));
        check("ANALYZE TABLE t COMPUTE STATISTICS", Some(Exclusion::Metadata));
        check("INSERT INTO t SELECT 1", None);
        check("settings_report", None);
        check("show", None);
        check("", None);
    }

    #[test]
    fn comments_before_the_first_word_do_not_hide_it() {
        check("/* nightly */ -- job 7\n EXPLAIN SELECT 1", Some(Exclusion::Explain));
        check("-- only a comment", None);
        check("/* open", None);
    }

    #[test]
    fn a_mark_of_ours_in_the_first_comment_counts() {
        check("/* lakebed sample */ SELECT 1 FROM t", Some(Exclusion::Own));
        check("-- Lakebed\nSELECT 1 FROM t", Some(Exclusion::Own));
        check("SELECT 1 FROM lakebed_orders /* lakebed */", None);
        check("/* é */ SELECT 1 FROM t", None);
    }
}
