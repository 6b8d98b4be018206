//! The SQL dialects that are told apart.

use std::any::TypeId;

use datafusion_sql::sqlparser::dialect as parser;

use super::LineageError;

/// A dialect of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// What most engines agree on.
    Generic,
    /// Spark SQL.
    Spark,
    /// Databricks SQL.
    Databricks,
    /// Snowflake.
    Snowflake,
    /// BigQuery.
    BigQuery,
    /// Redshift.
    Redshift,
    /// DuckDB.
    DuckDb,
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    MySql,
    /// Trino and Athena.
    Trino,
    /// Hive.
    Hive,
}

const NAMES: [(&str, Dialect); 14] = [
    ("generic", Dialect::Generic),
    ("trino", Dialect::Trino),
    ("athena", Dialect::Trino),
    ("spark", Dialect::Spark),
    ("databricks", Dialect::Databricks),
    ("snowflake", Dialect::Snowflake),
    ("bigquery", Dialect::BigQuery),
    ("redshift", Dialect::Redshift),
    ("duckdb", Dialect::DuckDb),
    ("postgres", Dialect::Postgres),
    ("postgresql", Dialect::Postgres),
    ("mysql", Dialect::MySql),
    ("mariadb", Dialect::MySql),
    ("hive", Dialect::Hive),
];

impl Dialect {
    /// Finds a dialect by its name in any case.
    ///
    /// # Errors
    /// Fails with the names that exist when there is no such dialect.
    pub fn parse(name: &str) -> Result<Self, LineageError> {
        NAMES
            .iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known))
            .map(|(_, dialect)| *dialect)
            .ok_or_else(|| LineageError::UnknownDialect {
                dialect: name.to_owned(),
                known: NAMES.map(|(known, _)| known).join(", "),
            })
    }

    /// Returns the parser's rules.
    pub(super) fn rules(self) -> Box<dyn parser::Dialect> {
        match self {
            Self::Generic | Self::Trino => Box::new(parser::GenericDialect {}),
            Self::MySql => Box::new(parser::MySqlDialect {}),
            Self::Spark => Box::new(parser::SparkSqlDialect {}),
            Self::Databricks => Box::new(parser::DatabricksDialect {}),
            Self::Snowflake => Box::new(parser::SnowflakeDialect {}),
            Self::BigQuery => Box::new(parser::BigQueryDialect {}),
            Self::Redshift => Box::new(parser::RedshiftSqlDialect {}),
            Self::DuckDb => Box::new(parser::DuckDbDialect {}),
            Self::Postgres => Box::new(parser::PostgreSqlDialect {}),
            Self::Hive => Box::new(parser::HiveDialect {}),
        }
    }

    /// Returns the tokenizer's rules, where they differ from the parser's.
    pub(super) fn token_rules(self) -> Box<dyn parser::Dialect> {
        match self {
            Self::Spark | Self::Databricks | Self::Hive => Box::new(SparkTokens),
            other => other.rules(),
        }
    }

    /// Tells whether double quotes stand around strings rather than names.
    pub(super) const fn double_quotes_are_strings(self) -> bool {
        matches!(self, Self::Spark | Self::Databricks | Self::Hive | Self::BigQuery | Self::MySql)
    }

    /// Tells whether quoted names keep their case. Unquoted names never do.
    pub(super) fn quoted_names_keep_case(self, name: &str) -> bool {
        match self {
            Self::Postgres => true,
            // An upper-case name in quotes is the same as the name without.
            Self::Snowflake => name.chars().any(char::is_lowercase),
            _ => false,
        }
    }
}

/// Spark's literals: strings have backslash escapes, which the parser's own rules do not know.
#[derive(Debug)]
struct SparkTokens;

impl parser::Dialect for SparkTokens {
    fn dialect(&self) -> TypeId {
        TypeId::of::<parser::DatabricksDialect>()
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        c == '`'
    }

    fn is_identifier_start(&self, c: char) -> bool {
        c.is_alphabetic() || c == '_'
    }

    fn is_identifier_part(&self, c: char) -> bool {
        c.is_alphanumeric() || c == '_'
    }

    fn supports_numeric_prefix(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        true
    }

    fn ignores_wildcard_escapes(&self) -> bool {
        true
    }
}
