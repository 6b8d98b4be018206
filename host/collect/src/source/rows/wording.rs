//! What the first words of a statement say: many are no queries, and parsers need not know them.

use super::LeftOut;

/// First words of statements about names, rights, sessions and storage.
const ABOUT_METADATA: &str = "\
    ABORT ADD ALTER ANALYZE ATTACH BEGIN CALL CANCEL CHECKPOINT CLOSE COMMENT COMMIT DEALLOCATE \
    DECLARE DENY DESC DESCRIBE DETACH DROP END EXPORT FETCH FORCE FSCK GET GRANT IMPORT INSTALL KILL \
    LIST LOAD LOCK LS MSCK OPTIMIZE PRAGMA PUT REFRESH REINDEX REMOVE REORG RESET RESTORE REVOKE RM \
    ROLLBACK SAVEPOINT SET SHOW START SUMMARIZE TRUNCATE UNCACHE UNDROP UNLOCK UNSET USE VACUUM";

/// What `CREATE` makes without a query.
const MADE_WITHOUT_QUERY: &str = "\
    AGGREGATE CATALOG CONNECTION CREDENTIAL DATABASE DOMAIN EXTENSION FILE FUNCTION GROUP \
    INDEX INTEGRATION LIBRARY LOCATION MACRO MASKING NETWORK PIPE POLICY PROCEDURE PUBLICATION \
    RESOURCE ROLE ROW SCHEMA SECRET SECURITY SEQUENCE SERVER SHARE STAGE STORAGE STREAM TAG TASK \
    TRIGGER TYPE USER VOLUME WAREHOUSE";

const MODIFIERS: [&str; 7] = ["OR", "REPLACE", "TEMP", "TEMPORARY", "IF", "NOT", "EXISTS"];

/// A comment by which Lakebed marks what it runs on other engines.
const OWN_MARK: &str = "lakebed";

/// Tells from a statement's first words that it is nobody's workload.
pub(super) fn left_out(sql: &str) -> Option<LeftOut> {
    let (rest, is_marked) = without_comments(sql);
    if is_marked {
        return Some(LeftOut::Own);
    }
    let mut words = rest
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_uppercase);
    let first = words.next()?;
    if first == "EXPLAIN" {
        return Some(LeftOut::Explained);
    }
    let is_listed = |list: &str, word: &str| list.split_whitespace().any(|listed| listed == word);
    if is_listed(ABOUT_METADATA, &first) {
        return Some(LeftOut::Metadata);
    }
    let made = words.find(|word| !MODIFIERS.contains(&word.as_str()))?;
    let reads =
        |word: &str| rest.split_whitespace().any(|own| own.to_ascii_uppercase().contains(word));
    let makes_nothing = is_listed(MADE_WITHOUT_QUERY, &made) || !(reads("SELECT") || reads("FROM"));
    (first == "CREATE" && makes_nothing).then_some(LeftOut::Metadata)
}

/// Returns a statement from its first word on, and whether Lakebed's mark stands before it.
fn without_comments(sql: &str) -> (&str, bool) {
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

/// Tells whether a table holds an engine's own metadata.
pub(super) fn is_about_engine(table: &str) -> bool {
    const SCHEMAS: [&str; 8] = [
        "information_schema",
        "account_usage",
        "organization_usage",
        "pg_catalog",
        "pg_internal",
        "duckdb_logs",
        "sys",
        "_lakebed",
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
    use super::{LeftOut, is_about_engine, left_out};

    #[track_caller]
    fn check(sql: &str, expected: Option<LeftOut>) {
        assert_eq!(left_out(sql), expected, "{sql}");
    }

    #[test]
    fn first_words_tell_what_is_no_query() {
        check("SELECT 1 FROM t", None);
        check("( WITH a AS (SELECT 1) SELECT * FROM a)", None);
        check("/* report */ -- daily\nselect 1 from t", None);
        check("CREATE OR REPLACE TEMP TABLE t AS SELECT 1 FROM u", None);
        check("explain select 1 from t", Some(LeftOut::Explained));
        check("-- x\nSHOW TBLPROPERTIES t", Some(LeftOut::Metadata));
        check("USE WAREHOUSE w", Some(LeftOut::Metadata));
        check("create or replace user u password = 'p'", Some(LeftOut::Metadata));
        check("CREATE EXTERNAL TABLE t (a int) LOCATION 's3://b/t'", Some(LeftOut::Metadata));
        check("CREATE EXTERNAL TABLE t AS\nSELECT a FROM u", None);
        check("", None);
        check("/* unclosed", None);
    }

    #[test]
    fn statements_of_ours_are_marked() {
        check("/* lakebed */ SELECT 1 FROM t", Some(LeftOut::Own));
        check("-- lakebed\nSELECT 1 FROM t", Some(LeftOut::Own));
        check("/* lakebed costs */ SELECT 1 FROM t", None);
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
