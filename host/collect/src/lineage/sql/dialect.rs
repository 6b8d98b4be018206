//! The SQL dialects that are told apart.

use datafusion_sql::sqlparser::dialect as parser;

use super::LineageError;

/// A dialect of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// What most engines agree on; also Trino and Athena.
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
    /// Hive.
    Hive,
}

const NAMES: [(&str, Dialect); 12] = [
    ("generic", Dialect::Generic),
    ("trino", Dialect::Generic),
    ("athena", Dialect::Generic),
    ("spark", Dialect::Spark),
    ("databricks", Dialect::Databricks),
    ("snowflake", Dialect::Snowflake),
    ("bigquery", Dialect::BigQuery),
    ("redshift", Dialect::Redshift),
    ("duckdb", Dialect::DuckDb),
    ("postgres", Dialect::Postgres),
    ("postgresql", Dialect::Postgres),
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
    pub(crate) fn rules(self) -> Box<dyn parser::Dialect> {
        match self {
            Self::Generic => Box::new(parser::GenericDialect {}),
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
