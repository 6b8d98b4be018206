//! Statements that are nobody's workload, told by their first words or by the tables they read.

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

/// First words of statements about names, rights, sessions and storage, in the dialects of all
/// sources.
const ABOUT_METADATA: &str = "\
    ABORT ADD ALTER ANALYZE ATTACH BEGIN CALL CANCEL CHECKPOINT CLEAR CLOSE COMMENT COMMIT DEALLOCATE \
    DECLARE DENY DESC DESCRIBE DETACH DROP END EXPORT FETCH FORCE FSCK GET GRANT IMPORT INSTALL KILL \
    LIST LOAD LOCK LS MSCK OPTIMIZE PRAGMA PUT REFRESH REINDEX REMOVE REORG REPAIR RESET RESTORE \
    REVOKE RM ROLLBACK SAVEPOINT SET SHOW START SUMMARIZE TRUNCATE UNCACHE UNDROP UNLOCK UNSET USE \
    VACUUM";

/// What `CREATE` makes without a query.
const MADE_WITHOUT_QUERY: &str = "\
    AGGREGATE CATALOG CONNECTION CREDENTIAL DATABASE DOMAIN EXTENSION FILE FUNCTION GROUP \
    INDEX INTEGRATION LIBRARY LOCATION MACRO MASKING NETWORK PIPE POLICY PROCEDURE PUBLICATION \
    RESOURCE ROLE ROW SCHEMA SECRET SECURITY SEQUENCE SERVER SHARE STAGE STORAGE STREAM TAG TASK \
    TRIGGER TYPE USER VOLUME WAREHOUSE";

const MODIFIERS: [&str; 7] = ["OR", "REPLACE", "TEMP", "TEMPORARY", "IF", "NOT", "EXISTS"];

/// A comment by which Lakebed marks what it runs on other engines.
const OWN_MARK: &str = "lakebed";
/// The folder of Lakebed's own records in a lake.
const OWN_FOLDER: &str = "_lakebed";

/// Tells from a statement's first words that it is nobody's workload.
pub(crate) fn of_text(sql: &str) -> Option<Exclusion> {
    let (rest, is_marked) = without_comments(sql);
    if is_marked {
        return Some(Exclusion::Own);
    }
    let mut words = rest
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_uppercase);
    let first = words.next()?;
    if first == "EXPLAIN" {
        return Some(Exclusion::Explain);
    }
    let is_listed = |list: &str, word: &str| list.split_whitespace().any(|listed| listed == word);
    if is_listed(ABOUT_METADATA, &first) {
        return Some(Exclusion::Metadata);
    }
    if first != "CREATE" {
        return None;
    }
    let made = words.find(|word| !MODIFIERS.contains(&word.as_str()))?;
    let reads =
        |word: &str| rest.split_whitespace().any(|own| own.to_ascii_uppercase().contains(word));
    let makes_nothing = is_listed(MADE_WITHOUT_QUERY, &made) || !(reads("SELECT") || reads("FROM"));
    makes_nothing.then_some(Exclusion::Metadata)
}

/// Returns a statement from its first word on, and whether Lakebed's mark stands before it.
pub(crate) fn without_comments(sql: &str) -> (&str, bool) {
    let mut rest = sql;
    let mut is_marked = false;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';' || c == '(');
        let (comment, after) = if let Some(text) = rest.strip_prefix("--") {
            text.split_once('\n').unwrap_or((text, ""))
        } else if let Some(text) = rest.strip_prefix("/*") {
            text.split_once("*/").unwrap_or((text, ""))
        } else {
            return (rest, is_marked);
        };
        is_marked |= comment.trim().eq_ignore_ascii_case(OWN_MARK);
        rest = after;
    }
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

/// Tells whether a table holds an engine's own metadata.
pub(crate) fn is_about_engine(table: &str) -> bool {
    const SCHEMAS: [&str; 8] = [
        "information_schema",
        "account_usage",
        "organization_usage",
        "pg_catalog",
        "pg_internal",
        "duckdb_logs",
        "sys",
        OWN_FOLDER,
    ];
    const PREFIXES: [&str; 9] =
        ["system.", "pg_", "svv_", "svl_", "stl_", "stv_", "svcs_", "sys_", "duckdb_"];
    let parts: Vec<&str> = table.split(['.', '/']).collect();
    let last = parts.last().copied().unwrap_or_default();
    parts.len() > 1 && parts[..parts.len() - 1].iter().any(|part| SCHEMAS.contains(part))
        || PREFIXES[1..].iter().any(|prefix| last.starts_with(prefix))
        || table.starts_with(PREFIXES[0])
}

#[cfg(test)]
mod tests {
    use super::{Exclusion, is_about_engine, of_text};

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
        check("USE WAREHOUSE w", Some(Exclusion::Metadata));
        check("TRUNCATE TABLE t", Some(Exclusion::Metadata));
        check("create or replace user u password = 'p'", Some(Exclusion::Metadata));
        check("CREATE EXTERNAL TABLE t (a int) LOCATION 's3://b/t'", Some(Exclusion::Metadata));
        check("CREATE EXTERNAL TABLE t AS\nSELECT a FROM u", None);
        check("CREATE OR REPLACE TEMP TABLE t AS SELECT 1 FROM u", None);
        check("( WITH a AS (SELECT 1) SELECT * FROM a)", None);
        check("settings_report", None);
        check("COMMIT", Some(Exclusion::Metadata));
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
        check("/* lakebed */ SELECT 1 FROM t", Some(Exclusion::Own));
        check("/* nightly */ -- lakebed\n SELECT 1 FROM t", Some(Exclusion::Own));
        // Somebody's name for something of theirs.
        check("/* lakebed costs */ SELECT 1 FROM t", None);
        check("-- Lakebed\nSELECT 1 FROM t", Some(Exclusion::Own));
        check("SELECT 1 FROM lakebed_orders /* lakebed */", None);
        check("/* é */ SELECT 1 FROM t", None);
    }

    #[test]
    fn tables_of_engines_are_told_from_tables_of_people() {
        for table in [
            "information_schema.columns",
            "snowflake.account_usage.query_history",
            "system.query.history",
            "svv_tables",
            "pg_catalog.pg_class",
            "/lake/_lakebed/statements",
            "duckdb_tables",
        ] {
            assert!(is_about_engine(table), "{table}");
        }
        for table in ["orders", "sales.orders", "sys", "metadata.runs", "sales.sysadmin"] {
            assert!(!is_about_engine(table), "{table}");
        }
    }
}
