//! Everything that can go wrong in this crate.

use arrow::{
    datatypes::{DataType, Field},
    error::ArrowError,
};

use crate::{ExpressionError, SyntaxError};

/// Why a chain cannot be used, or a run cannot go on. Any of them ends the job without a commit.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// The string form does not follow its grammar.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The chain names a column that the table does not have.
    #[error("{used_by} column \"{column}\" is not in the table: columns are {}{}", list(known), did_you_mean(nearest.as_deref()))]
    UnknownColumn {
        /// What names it: `ageoff`, `aggregation`, `row key`, or a plugin.
        used_by: String,
        /// The name as written.
        column: String,
        /// The table's columns.
        known: Vec<String>,
        /// The column that was perhaps meant.
        nearest: Option<String>,
    },
    /// The age-off's column holds no time.
    #[error(
        "ageoff column \"{column}\" has type {data_type}: need an integer (seconds), Timestamp or Date"
    )]
    AgeOffType {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// The visibility filter's column holds no text.
    #[error("visibility column \"{column}\" has type {data_type}: need STRING or BINARY")]
    VisibilityType {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// Nobody can have such an authorization.
    #[error("authorization \"{}\" for visibility column \"{column}\" {fault}", authorization.escape_debug())]
    Authorization {
        /// The column.
        column: String,
        /// The authorization.
        authorization: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// A row's label is no access expression.
    #[error("label \"{}\" of column \"{column}\" is no access expression", label.escape_debug())]
    Label {
        /// The column.
        column: String,
        /// The label, or its beginning.
        label: String,
        /// Where it breaks the grammar.
        #[source]
        source: ExpressionError,
    },
    /// A fold is not defined for the type of its column.
    #[error("{fold} is not defined for column \"{column}\" of type {data_type}: it takes {takes}")]
    FoldType {
        /// The fold's name.
        fold: String,
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
        /// The types that would do.
        takes: &'static str,
    },
    /// The column cannot tell a row not yet counted from a count.
    #[error(
        "count needs a nullable Int64 column (null = one row not yet counted): column \"{column}\" is {}{data_type}; write 1 per row and use '{column}'=sum, or make it a nullable Int64",
        if *is_nullable { "" } else { "NOT NULL " }
    )]
    CountColumn {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
        /// Whether it may hold nulls.
        is_nullable: bool,
    },
    /// A filter stands after the aggregation.
    #[error(
        "step {step} ({filter}) follows the aggregation in step {aggregation_step}: filters must come before it"
    )]
    FilterAfterAggregation {
        /// The filter's place in the chain, from 1.
        step: usize,
        /// The filter's name.
        filter: String,
        /// The aggregation's place in the chain, from 1.
        aggregation_step: usize,
    },
    /// The chain has two aggregations.
    #[error("step {step} is a second aggregation after step {first_step}: a chain has at most one")]
    SecondAggregation {
        /// The second's place in the chain, from 1.
        step: usize,
        /// The first's place in the chain, from 1.
        first_step: usize,
    },
    /// There is nothing to group by.
    #[error("aggregation needs row keys: set row_keys")]
    NoRowKeys,
    /// A row key is named twice.
    #[error("row key \"{column}\" is named twice")]
    RepeatedRowKey {
        /// The column.
        column: String,
    },
    /// Rows cannot be grouped by a column of this type.
    #[error("row key \"{column}\" has type {data_type}, by which rows cannot be grouped")]
    RowKeyType {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// A row key is to be folded.
    #[error("column \"{column}\" is a row key and cannot have an aggregation")]
    RowKeyFolded {
        /// The column.
        column: String,
    },
    /// A column has two folds.
    #[error("column \"{column}\" has two aggregations ({first} and {second})")]
    RepeatedFold {
        /// The column.
        column: String,
        /// The first fold's name.
        first: String,
        /// The second fold's name.
        second: String,
    },
    /// Columns are left without a fold.
    #[error(
        "columns without aggregation: {}; with any aggregation every column that is no row key needs one",
        list(columns)
    )]
    MissingFolds {
        /// The columns, in the table's order.
        columns: Vec<String>,
    },
    /// The value that ordered the rows would be lost, and with it the order of what comes later.
    #[error(
        "{fold} of column \"{column}\" goes by \"{by}\", which must be folded by {needed}: what won must keep the value it won by"
    )]
    OrderNotKept {
        /// The fold's name.
        fold: String,
        /// The column.
        column: String,
        /// The column that orders the rows.
        by: String,
        /// How that one must be folded.
        needed: String,
    },
    /// The latest row is to be found by a row key, or twice by one column.
    #[error("latest-by column \"{column}\" is a row key or named twice")]
    LatestByKey {
        /// The column.
        column: String,
    },
    /// Nothing says which row is the latest.
    #[error("latest-by needs the columns that order rows")]
    LatestByNothing,
    /// The column cannot mark deleted rows.
    #[error(
        "delete_marker column \"{column}\" has type {data_type}: need a BOOLEAN that is no row key"
    )]
    DeleteMarker {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// A condition in SQL cannot be used.
    #[error("predicate \"{}\" cannot be used", predicate.escape_debug())]
    Predicate {
        /// The condition.
        predicate: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This engine does not evaluate SQL.
    #[error("predicate \"{}\" needs an engine that evaluates SQL", predicate.escape_debug())]
    NoSql {
        /// The condition.
        predicate: String,
    },
    /// A result does not fit the column's type. The inputs stay as they are.
    #[error(
        "{fold} of column \"{column}\" does not fit {data_type} in {overflowed_groups} of {total_groups} groups: the first result is {result}"
    )]
    Overflow {
        /// The fold's name.
        fold: &'static str,
        /// The column.
        column: String,
        /// The column's type.
        data_type: DataType,
        /// The first result that does not fit.
        result: String,
        /// The group of that result.
        group: u32,
        /// How many groups have such a result.
        overflowed_groups: usize,
        /// How many groups there are.
        total_groups: usize,
    },
    /// A group's rows cannot be folded.
    #[error("fold the rows with row key {key}")]
    InGroup {
        /// The row key: names and values.
        key: String,
        /// Why.
        #[source]
        source: Box<Self>,
    },
    /// A batch does not have the columns that the chain was validated for.
    #[error("batch does not have the table's columns: expected {expected}, found {found}")]
    BatchSchema {
        /// The column at the first difference, as the chain knows it.
        expected: String,
        /// The column at the first difference, as the batch has it.
        found: String,
    },
    /// A filter answered for another number of rows than it was asked about.
    #[error("filter \"{filter}\" answered for {found_rows} rows: expected {expected_rows}")]
    FilterLength {
        /// The filter's name.
        filter: String,
        /// Rows in the batch.
        expected_rows: usize,
        /// Rows in the answer.
        found_rows: usize,
    },
    /// A fold gave another number of results than there are groups.
    #[error(
        "fold \"{fold}\" gave {found_groups} results for column \"{column}\": expected {expected_groups}"
    )]
    FoldLength {
        /// The fold's name.
        fold: String,
        /// The column.
        column: String,
        /// Groups there are.
        expected_groups: usize,
        /// Results it gave.
        found_groups: usize,
    },
    /// A fold gave results of another type than its column has.
    #[error("fold \"{fold}\" gave {found} for column \"{column}\": expected {expected}")]
    FoldResultType {
        /// The fold's name.
        fold: String,
        /// The column.
        column: String,
        /// The column's type.
        expected: DataType,
        /// The results' type.
        found: DataType,
    },
    /// A fold gave nulls for a column that may not hold any.
    #[error("fold \"{fold}\" gave {null_groups} nulls for column \"{column}\", which is NOT NULL")]
    NullResult {
        /// The fold's name.
        fold: String,
        /// The column.
        column: String,
        /// How many results are null.
        null_groups: usize,
    },
    /// There are more groups than group numbers.
    #[error("more than {limit} groups in one run: split the key range")]
    TooManyGroups {
        /// The largest number of groups.
        limit: u32,
    },
    /// A plugin is named that is not there.
    #[error("plugin \"{plugin}\" is not configured")]
    UnknownPlugin {
        /// The plugin's name.
        plugin: String,
    },
    /// A plugin failed, or did something that it must not.
    #[error("run plugin \"{plugin}\"")]
    Plugin {
        /// The plugin's name.
        plugin: String,
        /// What happened.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Arrow refused an operation.
    #[error("{action}")]
    Arrow {
        /// What was attempted.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: ArrowError,
    },
}

impl CompactError {
    /// Names what was attempted when Arrow failed; for [`Result::map_err`].
    pub(crate) fn arrow(action: &'static str) -> impl FnOnce(ArrowError) -> Self {
        move |source| Self::Arrow { action, source }
    }

    /// Refuses a fold for the type of a column; `takes` says which types would do.
    pub(crate) fn fold_type(fold: &str, column: &Field, takes: &'static str) -> Self {
        Self::FoldType {
            fold: fold.to_owned(),
            column: column.name().clone(),
            data_type: column.data_type().clone(),
            takes,
        }
    }

    /// Returns the group whose rows the error is about, where it is about one.
    pub(crate) const fn group(&self) -> Option<u32> {
        match self {
            Self::Overflow { group, .. } => Some(*group),
            _ => None,
        }
    }
}

fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default()
}
