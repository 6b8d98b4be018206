//! The SQL statements of ours: read here, run by the caller.
//!
//! Everything that starts with `SELECT`, `WITH` or `VALUES` is a query for the engine; so are the
//! queries and predicates inside the other statements, which stay text.

mod reader;
mod types;

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Field};

use lakebed_model::TableName;

use crate::{LayoutError, columns::join_name};
use reader::Reader;

/// A table as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableReference {
    /// A name of the lake.
    Name(String),
    /// `` delta.`url` ``.
    Location(String),
}

/// A column of a table to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Whether it may be null.
    pub nullable: bool,
    /// `COMMENT`
    pub comment: Option<String>,
}

impl ColumnDefinition {
    /// Turns the definition into a field of a schema.
    #[must_use]
    pub fn into_field(self) -> Field {
        let field = Field::new(self.name, self.data_type, self.nullable);
        match self.comment {
            Some(comment) => field.with_metadata([("comment".to_owned(), comment)].into()),
            None => field,
        }
    }
}

/// `CREATE TABLE [IF NOT EXISTS] t [(columns)] [USING delta] [clauses] [AS query]`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CreateTable {
    /// Do nothing where the table exists.
    pub if_not_exists: bool,
    /// The columns; empty where a query gives them.
    pub columns: Vec<ColumnDefinition>,
    /// `PARTITIONED BY`: parsed so that it can be refused.
    pub partitioned_by: Vec<String>,
    /// `CLUSTER BY`, as dotted names.
    pub cluster_by: Vec<String>,
    /// `COMMENT`
    pub comment: Option<String>,
    /// `LOCATION`
    pub location: Option<String>,
    /// `TBLPROPERTIES`
    pub properties: BTreeMap<String, String>,
    /// The query of a CTAS.
    pub query: Option<String>,
}

/// What OPTIMIZE was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OptimizeClauses {
    /// `FULL`
    pub full: bool,
    /// `WHERE`: parsed so that it can be refused.
    pub predicate: Option<String>,
    /// `ZORDER BY`: parsed so that it can be refused.
    pub zorder_by: Vec<String>,
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// `CREATE TABLE`
    CreateTable {
        /// The table.
        table: TableReference,
        /// Everything else.
        create: Box<CreateTable>,
    },
    /// `ALTER TABLE t CLUSTER BY (a, b)`; no columns for `CLUSTER BY NONE`.
    ClusterBy {
        /// The table.
        table: TableReference,
        /// The columns.
        columns: Vec<String>,
    },
    /// `ALTER TABLE t SET TBLPROPERTIES ('key' = 'value', …)`
    SetProperties {
        /// The table.
        table: TableReference,
        /// The properties.
        properties: BTreeMap<String, String>,
    },
    /// `ALTER TABLE t DROP COLUMN a`: parsed so that it can be refused.
    DropColumn {
        /// The table.
        table: TableReference,
        /// The column.
        column: String,
    },
    /// `OPTIMIZE t [FULL]`
    Optimize {
        /// The table.
        table: TableReference,
        /// What was asked for.
        clauses: OptimizeClauses,
    },
    /// `ANALYZE TABLE t COMPUTE [DELTA] STATISTICS [FOR ALL COLUMNS]`
    Analyze {
        /// The table.
        table: TableReference,
    },
    /// `INSERT INTO t [(columns)] query`
    Insert {
        /// The table.
        table: TableReference,
        /// The columns that the query gives; all in order where there is no list.
        columns: Option<Vec<String>>,
        /// `VALUES …` or `SELECT …`
        query: String,
    },
    /// `DELETE FROM t [[AS] alias] [WHERE predicate]`
    Delete {
        /// The table.
        table: TableReference,
        /// Its name in the predicate.
        alias: Option<String>,
        /// The predicate; all rows where there is none.
        predicate: Option<String>,
    },
    /// `VACUUM t [RETAIN n HOURS] [DRY RUN]`
    Vacuum {
        /// The table.
        table: TableReference,
        /// `RETAIN`, in hours.
        retain_hours: Option<u64>,
        /// `DRY RUN`
        dry_run: bool,
    },
    /// `SET key = value`, `SET key`, `SET`
    Set {
        /// The setting; all of them where there is none.
        key: Option<String>,
        /// Its new value; it is only shown where there is none.
        value: Option<String>,
    },
    /// `RESET key`, `RESET`
    Reset {
        /// The setting; all of them where there is none.
        key: Option<String>,
    },
    /// `DESCRIBE DETAIL t`
    DescribeDetail {
        /// The table.
        table: TableReference,
    },
    /// `DESCRIBE HISTORY t`
    DescribeHistory {
        /// The table.
        table: TableReference,
    },
    /// A query.
    Query {
        /// Its text.
        sql: String,
    },
}

impl OptimizeClauses {
    /// Refuses what Delta's OPTIMIZE does not take on such a table, or this one on none.
    ///
    /// # Errors
    /// Fails with Delta's error class.
    pub fn check(&self, table: &TableName) -> Result<(), LayoutError> {
        let refuse = |statement: String, class, reason: &str| {
            let table = table.to_string();
            Err(LayoutError::NotAllowed { statement, table, class, reason: reason.to_owned() })
        };
        if let Some(predicate) = &self.predicate {
            return refuse(
                format!("run OPTIMIZE … WHERE {predicate}"),
                "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
                "files are chosen by what they need, not by a predicate: leave WHERE out",
            );
        }
        if !self.zorder_by.is_empty() {
            let columns = self.zorder_by.join(", ");
            return refuse(
                format!("run OPTIMIZE … ZORDER BY ({columns})"),
                "DELTA_CLUSTERING_WITH_ZORDER_BY",
                "the columns are the table's: set them with ALTER TABLE … CLUSTER BY (…)",
            );
        }
        Ok(())
    }
}

impl Statement {
    /// Parses one statement; a final semicolon is allowed.
    ///
    /// # Errors
    /// Fails with the byte position, what was expected and what was found.
    pub fn parse(text: &str) -> Result<Self, LayoutError> {
        let mut reader = Reader::new(text);
        let start = reader.peek();
        let statement = match start.keyword().as_deref() {
            Some("SELECT" | "WITH" | "VALUES" | "(") => {
                return Ok(Self::Query { sql: reader.rest().to_owned() });
            }
            Some("CREATE") => create(&mut reader)?,
            Some("ALTER") => alter(&mut reader)?,
            Some("OPTIMIZE") => optimize(&mut reader)?,
            Some("ANALYZE") => analyze(&mut reader)?,
            Some("INSERT") => insert(&mut reader)?,
            Some("DELETE") => delete(&mut reader)?,
            Some("VACUUM") => vacuum(&mut reader)?,
            Some("SET") => {
                reader.expect(&["SET"])?;
                set(reader.rest())
            }
            Some("RESET") => {
                reader.expect(&["RESET"])?;
                let key = reader.rest();
                Self::Reset { key: (!key.is_empty()).then(|| unquoted(key)) }
            }
            Some("DESCRIBE" | "DESC") => {
                reader.next_token();
                let detail = reader.accept("DETAIL");
                if !detail {
                    reader.expect_one_of("HISTORY", "DETAIL or HISTORY")?;
                }
                let table = reader.table()?;
                if detail {
                    Self::DescribeDetail { table }
                } else {
                    Self::DescribeHistory { table }
                }
            }
            _ => {
                return Err(start.unexpected(
                    "SELECT, CREATE TABLE, ALTER TABLE, INSERT INTO, DELETE FROM, OPTIMIZE, \
                     ANALYZE TABLE, VACUUM, DESCRIBE, SET or RESET",
                ));
            }
        };
        reader.end()?;
        Ok(statement)
    }
}

fn create(reader: &mut Reader<'_>) -> Result<Statement, LayoutError> {
    reader.expect(&["CREATE", "TABLE"])?;
    let if_not_exists = reader.accept_all(&["IF", "NOT", "EXISTS"]);
    let table = reader.table()?;
    let mut create = CreateTable { if_not_exists, ..CreateTable::default() };
    if reader.peek().keyword().as_deref() == Some("(") {
        create.columns = reader.list(types::column)?;
    }
    loop {
        let clause = reader.peek();
        match clause.keyword().as_deref() {
            Some("USING") => {
                reader.next_token();
                reader.expect_one_of("DELTA", "DELTA")?;
            }
            Some("PARTITIONED") => {
                reader.expect(&["PARTITIONED", "BY"])?;
                create.partitioned_by = reader.list(column_name)?;
            }
            Some("CLUSTER") => {
                reader.expect(&["CLUSTER", "BY"])?;
                create.cluster_by = cluster_columns(reader)?;
            }
            Some("COMMENT") => {
                reader.next_token();
                create.comment = Some(reader.text("a text")?);
            }
            Some("LOCATION") => {
                reader.next_token();
                create.location = Some(reader.text("a path or URL between apostrophes")?);
            }
            Some("TBLPROPERTIES") => {
                reader.next_token();
                create.properties = properties(reader)?;
            }
            Some("AS") if create.columns.is_empty() => {
                reader.next_token();
                create.query = Some(reader.some_rest("a query")?);
                break;
            }
            Some("SELECT" | "WITH" | "VALUES") if create.columns.is_empty() => {
                create.query = Some(reader.rest().to_owned());
                break;
            }
            None if create.columns.is_empty() => {
                return Err(clause.unexpected("columns between ( and ), or AS and a query"));
            }
            Some(";") | None => break,
            Some(_) => {
                return Err(clause.unexpected(
                    "USING DELTA, CLUSTER BY, COMMENT, LOCATION, TBLPROPERTIES or AS and a query",
                ));
            }
        }
    }
    Ok(Statement::CreateTable { table, create: Box::new(create) })
}

fn alter(reader: &mut Reader<'_>) -> Result<Statement, LayoutError> {
    reader.expect(&["ALTER", "TABLE"])?;
    let table = reader.table()?;
    let action = reader.next_token();
    match action.keyword().as_deref() {
        Some("CLUSTER") => {
            reader.expect(&["BY"])?;
            let columns = cluster_columns(reader)?;
            Ok(Statement::ClusterBy { table, columns })
        }
        Some("SET") => {
            reader.expect(&["TBLPROPERTIES"])?;
            Ok(Statement::SetProperties { table, properties: properties(reader)? })
        }
        Some("DROP") => {
            if !reader.accept("COLUMN") {
                reader.expect_one_of("COLUMNS", "COLUMN")?;
            }
            let column = if reader.peek().keyword().as_deref() == Some("(") {
                reader.list(column_name)?.join(", ")
            } else {
                column_name(reader)?
            };
            Ok(Statement::DropColumn { table, column })
        }
        _ => Err(action.unexpected("CLUSTER BY or SET TBLPROPERTIES")),
    }
}

fn optimize(reader: &mut Reader<'_>) -> Result<Statement, LayoutError> {
    reader.expect(&["OPTIMIZE"])?;
    let table = reader.table()?;
    let mut clauses = OptimizeClauses { full: reader.accept("FULL"), ..Default::default() };
    if reader.accept("WHERE") {
        clauses.predicate = Some(reader.some_rest("a predicate")?);
    }
    if reader.accept_all(&["ZORDER", "BY"]) {
        clauses.zorder_by = reader.list(column_name)?;
    }
    Ok(Statement::Optimize { table, clauses })
}

fn analyze(reader: &mut Reader<'_>) -> Result<Statement, LayoutError> {
    reader.expect(&["ANALYZE", "TABLE"])?;
    let table = reader.table()?;
    reader.expect(&["COMPUTE"])?;
    reader.accept("DELTA");
    reader.expect(&["STATISTICS"])?;
    if reader.accept("FOR") {
        reader.expect(&["ALL", "COLUMNS"])?;
    }
    Ok(Statement::Analyze { table })
}

fn insert(reader: &mut Reader<'_>) -> Result<Statement, LayoutError> {
    reader.expect(&["INSERT"])?;
    reader.expect_one_of("INTO", "INTO; rows are added, DELETE FROM takes those away that go")?;
    reader.accept("TABLE");
    let table = reader.table()?;
    let clause = reader.peek();
    if matches!(clause.keyword().as_deref(), Some("PARTITION" | "REPLACE" | "BY" | "AS" | "IF")) {
        return Err(clause.unexpected("columns between ( and ), VALUES or a query"));
    }
    // `INSERT INTO t (SELECT …)` begins like a list of columns.
    let is_list = reader.peek().keyword().as_deref() == Some("(") && {
        let mut ahead = Reader::new(reader.rest_ahead());
        ahead.next_token();
        !matches!(ahead.peek().keyword().as_deref(), Some("SELECT" | "WITH" | "VALUES" | "("))
    };
    let name = |reader: &mut Reader<'_>| reader.name("a column name");
    let columns = if is_list { Some(reader.list(name)?) } else { None };
    Ok(Statement::Insert { table, columns, query: reader.some_rest("VALUES or a query")? })
}

fn delete(reader: &mut Reader<'_>) -> Result<Statement, LayoutError> {
    const EXPECTED: &str = "WHERE and a predicate, a name for the table, or the end";
    reader.expect(&["DELETE", "FROM"])?;
    let table = reader.table()?;
    let named = reader.accept("AS");
    let next = reader.peek();
    let alias = match next.keyword().as_deref() {
        Some("WHERE" | ";") if !named => None,
        _ if !named && next.is_end() => None,
        // Clauses of other engines.
        Some(
            "WHERE" | "USING" | "ORDER" | "LIMIT" | "RETURNING" | "VERSION" | "TIMESTAMP" | "FOR",
        ) => {
            return Err(next.unexpected(EXPECTED));
        }
        _ => Some(reader.name(EXPECTED)?),
    };
    let predicate = reader.accept("WHERE");
    let predicate = if predicate { Some(reader.some_rest("a predicate")?) } else { None };
    Ok(Statement::Delete { table, alias, predicate })
}

fn vacuum(reader: &mut Reader<'_>) -> Result<Statement, LayoutError> {
    reader.expect(&["VACUUM"])?;
    let table = reader.table()?;
    let mut retain_hours = None;
    if reader.accept("RETAIN") {
        retain_hours = Some(reader.number("a number of hours")?);
        reader.expect(&["HOURS"])?;
    }
    let dry_run = reader.accept_all(&["DRY", "RUN"]);
    Ok(Statement::Vacuum { table, retain_hours, dry_run })
}

fn set(text: &str) -> Statement {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key.trim(), Some(unquoted(value.trim()))),
        None => (text.trim(), None),
    };
    Statement::Set { key: (!key.is_empty()).then(|| unquoted(key)), value }
}

/// Takes the marks around a whole value away.
fn unquoted(text: &str) -> String {
    let inner =
        ['`', '\'', '"'].iter().find_map(|mark| text.strip_prefix(*mark)?.strip_suffix(*mark));
    inner.unwrap_or(text).to_owned()
}

fn column_name(reader: &mut Reader<'_>) -> Result<String, LayoutError> {
    Ok(join_name(&reader.dotted_name("a column name")?))
}

fn cluster_columns(reader: &mut Reader<'_>) -> Result<Vec<String>, LayoutError> {
    if reader.accept("NONE") {
        return Ok(Vec::new());
    }
    let next = reader.peek();
    if next.keyword().as_deref() != Some("(") {
        return Err(next.unexpected("( or NONE"));
    }
    reader.list(column_name)
}

fn properties(reader: &mut Reader<'_>) -> Result<BTreeMap<String, String>, LayoutError> {
    let pairs = reader.list(|reader| {
        let quoted = reader.peek();
        let key = match reader.text("a property's name") {
            Ok(key) => key,
            // Spark takes bare dotted names as well.
            Err(_) if quoted.keyword().is_some() => {
                reader.step_back(&quoted);
                reader.dotted_name("a property's name")?.join(".")
            }
            Err(error) => return Err(error),
        };
        reader.accept("=");
        let value = reader.next_token();
        if value.text.is_empty() && value.keyword().is_some() {
            return Err(value.unexpected("a value"));
        }
        Ok((key, value.text))
    })?;
    Ok(pairs.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, TimeUnit};

    use super::{OptimizeClauses, Statement, TableReference};

    fn name(text: &str) -> TableReference {
        TableReference::Name(text.into())
    }

    #[track_caller]
    fn check(sql: &str, expected: Statement) {
        assert_eq!(Statement::parse(sql).unwrap(), expected);
    }

    #[track_caller]
    fn refuse(sql: &str, message: &str) {
        assert_eq!(Statement::parse(sql).unwrap_err().to_string(), message);
    }

    #[test]
    fn statements_parse() {
        check(
            "ALTER TABLE db.t CLUSTER BY (a, `odd ``name`, s.x);",
            Statement::ClusterBy {
                table: name("db.t"),
                columns: vec!["a".into(), "`odd ``name`".into(), "s.x".into()],
            },
        );
        check(
            "alter table t cluster by none",
            Statement::ClusterBy { table: name("t"), columns: vec![] },
        );
        let full = OptimizeClauses { full: true, ..OptimizeClauses::default() };
        check(
            "OPTIMIZE delta.`/lake/t` FULL",
            Statement::Optimize {
                table: TableReference::Location("/lake/t".into()),
                clauses: full,
            },
        );
        check("optimize t", Statement::Optimize { table: name("t"), clauses: Default::default() });
        check("DESCRIBE DETAIL t", Statement::DescribeDetail { table: name("t") });
        check("desc history t;", Statement::DescribeHistory { table: name("t") });
        check("  SELECT 1; ", Statement::Query { sql: "SELECT 1".into() });
        check("-- why\n/* not */ VALUES (1)", Statement::Query { sql: "VALUES (1)".into() });
        for text in [
            "ANALYZE TABLE t COMPUTE STATISTICS",
            "analyze table t compute delta statistics for all columns",
        ] {
            check(text, Statement::Analyze { table: name("t") });
        }
        check(
            "VACUUM t RETAIN 24 HOURS DRY RUN",
            Statement::Vacuum { table: name("t"), retain_hours: Some(24), dry_run: true },
        );
        check(
            "VACUUM t",
            Statement::Vacuum { table: name("t"), retain_hours: None, dry_run: false },
        );
    }

    #[test]
    fn clauses_that_will_be_refused_are_read() {
        let Statement::Optimize { clauses, .. } =
            Statement::parse("OPTIMIZE t WHERE a > 1").unwrap()
        else {
            panic!("an OPTIMIZE")
        };
        assert_eq!(clauses.predicate.as_deref(), Some("a > 1"));
        let Statement::Optimize { clauses, .. } =
            Statement::parse("OPTIMIZE t ZORDER BY (a, s.x)").unwrap()
        else {
            panic!("an OPTIMIZE")
        };
        assert_eq!(clauses.zorder_by, ["a", "s.x"]);
        check(
            "ALTER TABLE t DROP COLUMN a",
            Statement::DropColumn { table: name("t"), column: "a".into() },
        );
    }

    #[test]
    fn rows_and_predicates_stay_text() {
        let insert = |columns: Option<&[&str]>, query: &str| Statement::Insert {
            table: name("t"),
            columns: columns.map(|names| names.iter().map(|&name| name.to_owned()).collect()),
            query: query.into(),
        };
        check("INSERT INTO t VALUES (1, ';')", insert(None, "VALUES (1, ';')"));
        check("insert into table t (a, b) SELECT 1, 2;", insert(Some(&["a", "b"]), "SELECT 1, 2"));
        check("INSERT INTO t (SELECT 1)", insert(None, "(SELECT 1)"));
        let delete = |alias: Option<&str>, predicate: Option<&str>| Statement::Delete {
            table: name("t"),
            alias: alias.map(ToOwned::to_owned),
            predicate: predicate.map(ToOwned::to_owned),
        };
        check("DELETE FROM t WHERE a = 'x' OR b < 2;", delete(None, Some("a = 'x' OR b < 2")));
        check("DELETE FROM t", delete(None, None));
        check("DELETE FROM t;", delete(None, None));
        check("delete from t as x where x.a = 1", delete(Some("x"), Some("x.a = 1")));
        check("DELETE FROM t `WHERE` WHERE a = 1", delete(Some("WHERE"), Some("a = 1")));
        check("DELETE FROM t x;", delete(Some("x"), None));
    }

    #[test]
    fn clauses_of_other_engines_are_refused_with_their_place() {
        refuse(
            "INSERT OVERWRITE t SELECT 1",
            "parse statement at byte 7: expected INTO; rows are added, DELETE FROM takes those away that go, found `OVERWRITE`",
        );
        refuse(
            "INSERT INTO t PARTITION (p = 1) SELECT 1",
            "parse statement at byte 14: expected columns between ( and ), VALUES or a query, found `PARTITION`",
        );
        for (sql, at, found) in [
            ("DELETE FROM t LIMIT 5", 14, "`LIMIT`"),
            ("DELETE FROM t AS", 16, "the end of the statement"),
            ("DELETE FROM t AS WHERE a = 1", 17, "`WHERE`"),
        ] {
            refuse(
                sql,
                &format!(
                    "parse statement at byte {at}: expected WHERE and a predicate, a name for the table, or the end, found {found}"
                ),
            );
        }
    }

    #[test]
    fn settings_are_read_as_spark_reads_them() {
        let set = |key: Option<&str>, value: Option<&str>| Statement::Set {
            key: key.map(ToOwned::to_owned),
            value: value.map(ToOwned::to_owned),
        };
        check("SET a.b-c.d = FALSE;", set(Some("a.b-c.d"), Some("FALSE")));
        check("SET a.b='x y'", set(Some("a.b"), Some("x y")));
        check("SET a.b", set(Some("a.b"), None));
        check("SET", set(None, None));
        check("RESET", Statement::Reset { key: None });
        check("RESET `a.b`", Statement::Reset { key: Some("a.b".into()) });
    }

    #[test]
    fn tables_are_created_from_columns_or_from_a_query() {
        let sql = "CREATE TABLE IF NOT EXISTS db.t (a BIGINT NOT NULL COMMENT 'it''s a', \
                   b DECIMAL(12,2), c STRUCT<x: INT, y: ARRAY<STRING>>, d TIMESTAMP_NTZ, \
                   m MAP<STRING, DOUBLE>) USING delta CLUSTER BY (a, c.x) \
                   TBLPROPERTIES ('k' = 'v', delta.appendOnly = true) LOCATION '/lake/t' COMMENT \"all\"";
        let Statement::CreateTable { table, create } = Statement::parse(sql).unwrap() else {
            panic!("a CREATE TABLE")
        };
        assert_eq!((table, create.if_not_exists), (name("db.t"), true));
        let columns: Vec<String> = create
            .columns
            .iter()
            .map(|column| format!("{} {} {}", column.name, column.data_type, column.nullable))
            .collect();
        assert_eq!(
            columns,
            [
                "a Int64 false",
                "b Decimal128(12, 2) true",
                "c Struct(\"x\": Int32, \"y\": List(Utf8, field: 'element')) true",
                "d Timestamp(µs) true",
                "m Map(\"key_value\": non-null Struct(\"key\": non-null Utf8, \"value\": Float64), unsorted) true",
            ]
        );
        assert_eq!(create.columns[0].comment.as_deref(), Some("it's a"));
        assert_eq!(create.columns[3].data_type, DataType::Timestamp(TimeUnit::Microsecond, None));
        assert_eq!(create.cluster_by, ["a", "c.x"]);
        assert_eq!(create.properties["delta.appendOnly"], "true");
        assert_eq!(create.location.as_deref(), Some("/lake/t"));
        assert_eq!((create.comment.as_deref(), create.query), (Some("all"), None));

        let sql = "create table t cluster by (a) as select 1 as a;";
        let Statement::CreateTable { create, .. } = Statement::parse(sql).unwrap() else {
            panic!("a CREATE TABLE")
        };
        assert_eq!((create.query.as_deref(), create.columns.len()), (Some("select 1 as a"), 0));
    }

    #[test]
    fn errors_name_position_expectation_and_finding() {
        refuse(
            "OPTIMIZE t FULLY",
            "parse statement at byte 11: expected the end of the statement, found `FULLY`",
        );
        refuse(
            "ALTER TABLE t CLUSTER BY a",
            "parse statement at byte 25: expected ( or NONE, found `a`",
        );
        refuse(
            "ALTER TABLE t CLUSTER BY (a",
            "parse statement at byte 27: expected , or ), found the end of the statement",
        );
        refuse(
            "DROP TABLE t",
            "parse statement at byte 0: expected SELECT, CREATE TABLE, ALTER TABLE, INSERT INTO, \
             DELETE FROM, OPTIMIZE, ANALYZE TABLE, VACUUM, DESCRIBE, SET or RESET, found `DROP`",
        );
        refuse(
            "CREATE TABLE t (a NUMBER)",
            "parse statement at byte 18: expected a data type, such as BIGINT, DECIMAL(10,2), STRING or DATE, found `NUMBER`",
        );
        refuse(
            "CREATE TABLE t (a DECIMAL(5,9))",
            "parse statement at byte 26: expected 1 to 38 digits, of which at most all after the point, found `5`",
        );
        refuse(
            "CREATE TABLE t",
            "parse statement at byte 14: expected columns between ( and ), or AS and a query, found the end of the statement",
        );
        refuse(
            "INSERT INTO t",
            "parse statement at byte 13: expected VALUES or a query, found the end of the statement",
        );
    }
}
