//! A chain that fits its table.
//!
//! Rules, in the order they are checked:
//! 1. Filters stand before the aggregation, and there is at most one aggregation. Filtering first
//!    is the one order that can be run file by file; what it costs is told as a [`Warning`]: the old
//!    contributions of a living group vanish one by one.
//! 2. Named columns exist, spelled exactly as in the table, and their types fit.
//! 3. Rows whose labels differ are never folded into one: the columns of visibility filters are row keys.
//! 4. With an aggregation there are row keys, they are not folded themselves, and every other column
//!    is folded; or, with the latest row, none is. The columns keep the table's order and types whatever order the folds are written in.

use std::{collections::BTreeMap, sync::Arc};

use arrow::datatypes::{DataType, Schema, SchemaRef};
use lakebed_model::Instant;

use crate::{
    AgeOff, BoundChain, ChainConfig, ColumnFold, CompactError, FilterSpec, Fold, Plugins, Step,
    Visibility, Warning,
    bind::{bind, native_factory},
    filter::{AGE_OFF, PREDICATE, VISIBILITY},
    fold::WinningRows,
    group_table::GroupTable,
};

/// The name of the step that keeps the latest row.
pub(crate) const LATEST_BY: &str = "latest-by";

/// A chain that was checked against one table's columns and row keys.
#[derive(Debug, Clone)]
pub struct Chain {
    pub(crate) schema: SchemaRef,
    pub(crate) filters: Vec<FilterSpec>,
    pub(crate) aggregation: Option<Aggregation>,
    warnings: Vec<Warning>,
}

/// Which columns identify a row, and what becomes of the others; positions are in the table's schema.
#[derive(Debug, Clone)]
pub(crate) struct Aggregation {
    pub(crate) row_keys: Vec<usize>,
    pub(crate) folding: ColumnFolding,
}

/// What becomes of the columns that are no row keys.
#[derive(Debug, Clone)]
pub(crate) enum ColumnFolding {
    /// Each is folded by itself, in the table's order.
    Each(Vec<(usize, Fold)>),
    /// The latest row gives all of them.
    Latest(LatestRow),
}

/// Which row is the latest.
#[derive(Debug, Clone)]
pub(crate) struct LatestRow {
    /// All columns but the row keys, in the order in which rows are compared.
    pub(crate) columns: Vec<usize>,
    /// Where in `columns` the delete marker stands.
    pub(crate) delete_marker: Option<usize>,
}

impl Chain {
    /// Checks a chain against a table.
    ///
    /// `row_keys` are the columns whose values together identify a row: the table's row keys, then
    /// what else must not be merged, such as sort keys and partition columns. They are looked at
    /// only if the chain has an aggregation.
    ///
    /// # Errors
    /// Returns the first rule that the chain breaks.
    pub fn validate(
        config: &ChainConfig,
        schema: &Schema,
        row_keys: &[String],
    ) -> Result<Self, CompactError> {
        let (filters, folds) = split_steps(&config.steps)?;
        for filter in &filters {
            validate_filter(filter, schema)?;
        }
        let mut row_keys = row_keys.to_vec();
        if !row_keys.is_empty() {
            for label in filters.iter().filter_map(FilterSpec::label_column) {
                if !row_keys.contains(label) {
                    row_keys.push(label.clone());
                }
            }
        }
        let aggregation = folds
            .map(|step| match step {
                Folds::Each(folds) => validate_aggregation(folds, schema, &row_keys),
                Folds::Latest { by, delete_marker } => {
                    validate_latest(by, delete_marker, schema, &row_keys)
                }
            })
            .transpose()?;
        let warnings = warnings(&filters, aggregation.as_ref(), schema);
        Ok(Self { schema: Arc::new(schema.clone()), filters, aggregation, warnings })
    }

    /// Makes the chain runnable for one job: plugins are found, and every step gets the one `now`.
    ///
    /// # Errors
    /// Returns an error if a plugin is missing or names a column that the table does not have.
    pub fn bind(&self, now: Instant, plugins: &dyn Plugins) -> Result<BoundChain, CompactError> {
        bind(self, now, plugins)
    }

    /// Returns the columns of the table, which are those of the result.
    #[must_use]
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the filters in the order they run.
    #[must_use]
    pub fn filters(&self) -> &[FilterSpec] {
        &self.filters
    }

    /// Tells whether rows are folded, so that all rows of a key must be in one run.
    #[must_use]
    pub const fn is_aggregating(&self) -> bool {
        self.aggregation.is_some()
    }

    /// Returns what the chain's owner should know.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

impl FilterSpec {
    /// Returns the filter's name: a native one's, or the plugin's.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::AgeOff { .. } => AGE_OFF,
            Self::Visibility { .. } => VISIBILITY,
            Self::Predicate { .. } => PREDICATE,
            Self::Plugin { name, .. } => name,
        }
    }

    /// Returns the column of labels, if the filter reads one.
    const fn label_column(&self) -> Option<&String> {
        match self {
            Self::Visibility { column, .. } => Some(column),
            _ => None,
        }
    }
}

/// Finds a column by its exact name.
pub(crate) fn column_index(
    schema: &Schema,
    column: &str,
    used_by: &str,
) -> Result<usize, CompactError> {
    schema.fields().iter().position(|field| field.name() == column).ok_or_else(|| {
        CompactError::UnknownColumn {
            used_by: used_by.to_owned(),
            column: column.to_owned(),
            known: schema.fields().iter().map(|field| field.name().clone()).collect(),
            nearest: nearest(schema, column),
        }
    })
}

/// Finds the column that was probably meant: at most one letter in three is wrong.
fn nearest(schema: &Schema, wanted: &str) -> Option<String> {
    let lower = wanted.to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&lower, &name.to_lowercase());
    let closest =
        schema.fields().iter().map(|field| field.name()).min_by_key(|name| distance(name))?;
    let letters_wrong_max = (wanted.chars().count() / 3).max(1);
    (distance(closest) <= letters_wrong_max).then(|| closest.clone())
}

/// The folding step of a chain.
#[derive(Clone, Copy)]
enum Folds<'c> {
    Each(&'c [ColumnFold]),
    Latest { by: &'c [String], delete_marker: Option<&'c String> },
}

fn split_steps(steps: &[Step]) -> Result<(Vec<FilterSpec>, Option<Folds<'_>>), CompactError> {
    let mut filters = Vec::new();
    let mut aggregation: Option<(usize, Folds<'_>)> = None;
    for (step, written) in (1..).zip(steps) {
        match (written, aggregation) {
            (Step::Filter(filter), None) => filters.push(filter.clone()),
            (Step::Filter(filter), Some((aggregation_step, _))) => {
                return Err(CompactError::FilterAfterAggregation {
                    step,
                    filter: filter.name().to_owned(),
                    aggregation_step,
                });
            }
            (Step::Aggregate(folds), None) => aggregation = Some((step, Folds::Each(folds))),
            (Step::LatestBy { columns, delete_marker }, None) => {
                let delete_marker = delete_marker.as_ref();
                aggregation = Some((step, Folds::Latest { by: columns, delete_marker }));
            }
            (Step::Aggregate(_) | Step::LatestBy { .. }, Some((first_step, _))) => {
                return Err(CompactError::SecondAggregation { step, first_step });
            }
        }
    }
    Ok((filters, aggregation.map(|(_, folds)| folds)))
}

fn validate_filter(filter: &FilterSpec, schema: &Schema) -> Result<(), CompactError> {
    match filter {
        FilterSpec::AgeOff { column, .. } => {
            // The keyword of the string form, by which users know the filter.
            let field = schema.field(column_index(schema, column, "ageoff")?);
            if AgeOff::accepts(field.data_type()) {
                return Ok(());
            }
            let (column, data_type) = (column.clone(), field.data_type().clone());
            Err(CompactError::AgeOffType { column, data_type })
        }
        FilterSpec::Visibility { column, authorizations, .. } => {
            let field = schema.field(column_index(schema, column, VISIBILITY)?);
            if !Visibility::accepts(field.data_type()) {
                let (column, data_type) = (column.clone(), field.data_type().clone());
                return Err(CompactError::VisibilityType { column, data_type });
            }
            match Visibility::refused_authorization(authorizations) {
                None => Ok(()),
                Some((authorization, fault)) => Err(CompactError::Authorization {
                    column: column.clone(),
                    authorization: authorization.to_owned(),
                    fault,
                }),
            }
        }
        FilterSpec::Predicate { .. } | FilterSpec::Plugin { .. } => Ok(()),
    }
}

fn validate_aggregation(
    folds: &[ColumnFold],
    schema: &Schema,
    row_keys: &[String],
) -> Result<Aggregation, CompactError> {
    let row_keys = validate_row_keys(schema, row_keys)?;
    let mut by_column: BTreeMap<usize, &Fold> = BTreeMap::new();
    for ColumnFold { column, fold } in folds {
        let index = column_index(schema, column, "aggregation")?;
        if row_keys.contains(&index) {
            return Err(CompactError::RowKeyFolded { column: column.clone() });
        }
        if let Some(first) = by_column.insert(index, fold) {
            return Err(CompactError::RepeatedFold {
                column: column.clone(),
                first: first.name().to_owned(),
                second: fold.name().to_owned(),
            });
        }
        if let Some(factory) = native_factory(fold) {
            factory.open(schema.field(index))?;
        }
    }
    let missing: Vec<String> = (0..schema.fields().len())
        .filter(|index| !row_keys.contains(index) && !by_column.contains_key(index))
        .map(|index| schema.field(index).name().clone())
        .collect();
    if !missing.is_empty() {
        return Err(CompactError::MissingFolds { columns: missing });
    }
    for (index, fold) in &by_column {
        validate_order(*index, fold, &by_column, schema)?;
    }
    let folds = by_column.into_iter().map(|(index, fold)| (index, fold.clone())).collect();
    Ok(Aggregation { row_keys, folding: ColumnFolding::Each(folds) })
}

/// Checks that the value which ordered the rows stays with the one that it made win.
fn validate_order(
    index: usize,
    fold: &Fold,
    folds: &BTreeMap<usize, &Fold>,
    schema: &Schema,
) -> Result<(), CompactError> {
    let (by, needed) = match fold {
        Fold::First { by } => (by, Fold::Min),
        Fold::Last { by } => (by, Fold::Max),
        _ => return Ok(()),
    };
    let order = column_index(schema, by, fold.name())?;
    if folds.get(&order).is_some_and(|found| **found == needed) {
        return Ok(());
    }
    Err(CompactError::OrderNotKept {
        fold: fold.name().to_owned(),
        column: schema.field(index).name().clone(),
        by: by.clone(),
        needed: needed.name().to_owned(),
    })
}

fn validate_latest(
    by: &[String],
    delete_marker: Option<&String>,
    schema: &Schema,
    row_keys: &[String],
) -> Result<Aggregation, CompactError> {
    let row_keys = validate_row_keys(schema, row_keys)?;
    let mut columns = Vec::with_capacity(schema.fields().len());
    for column in by {
        let index = column_index(schema, column, LATEST_BY)?;
        if row_keys.contains(&index) || columns.contains(&index) {
            return Err(CompactError::LatestByKey { column: column.clone() });
        }
        columns.push(index);
    }
    if columns.is_empty() {
        return Err(CompactError::LatestByNothing);
    }
    for index in 0..schema.fields().len() {
        if !row_keys.contains(&index) && !columns.contains(&index) {
            columns.push(index);
        }
    }
    for index in &columns {
        WinningRows::check(LATEST_BY, schema.field(*index))?;
    }
    let delete_marker = match delete_marker {
        None => None,
        Some(column) => {
            let index = column_index(schema, column, "delete_marker")?;
            let data_type = schema.field(index).data_type();
            let place = columns.iter().position(|other| *other == index);
            if data_type != &DataType::Boolean || place.is_none() {
                let (column, data_type) = (column.clone(), data_type.clone());
                return Err(CompactError::DeleteMarker { column, data_type });
            }
            place
        }
    };
    let folding = ColumnFolding::Latest(LatestRow { columns, delete_marker });
    Ok(Aggregation { row_keys, folding })
}

fn validate_row_keys(schema: &Schema, row_keys: &[String]) -> Result<Vec<usize>, CompactError> {
    if row_keys.is_empty() {
        return Err(CompactError::NoRowKeys);
    }
    let mut indices = Vec::with_capacity(row_keys.len());
    for column in row_keys {
        let index = column_index(schema, column, "row key")?;
        if indices.contains(&index) {
            return Err(CompactError::RepeatedRowKey { column: column.clone() });
        }
        let data_type = schema.field(index).data_type();
        if !GroupTable::accepts(data_type) {
            return Err(CompactError::RowKeyType {
                column: column.clone(),
                data_type: data_type.clone(),
            });
        }
        indices.push(index);
    }
    Ok(indices)
}

fn warnings(
    filters: &[FilterSpec],
    aggregation: Option<&Aggregation>,
    schema: &Schema,
) -> Vec<Warning> {
    let Some(Aggregation { row_keys, folding }) = aggregation else { return Vec::new() };
    let folds = match folding {
        ColumnFolding::Each(folds) => folds.as_slice(),
        ColumnFolding::Latest(_) => &[],
    };
    let is_row_key = |column: &str| row_keys.iter().any(|key| schema.field(*key).name() == column);
    let aging = filters.iter().filter_map(|filter| match filter {
        FilterSpec::AgeOff { column, .. } if !is_row_key(column) => {
            Some(Warning::AgeOffOutsideKeys { column: column.clone() })
        }
        _ => None,
    });
    let folding = folds.iter().filter_map(|(index, fold)| {
        let column = schema.field(*index).name().clone();
        match (fold, schema.field(*index).data_type()) {
            (Fold::Sum, DataType::Float32 | DataType::Float64) => {
                Some(Warning::FloatSum { column })
            }
            (Fold::Count, _) => Some(Warning::CountTakesValues { column }),
            _ => None,
        }
    });
    aging.chain(folding).collect()
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};

    use super::Chain;
    use crate::{
        ChainConfig, ColumnFold, FilterSpec, Fold, InvalidRule, NoPlugins, NullRule, Step,
        testing::now,
    };

    fn schema() -> Schema {
        let column = |name: &str, data_type| Field::new(name, data_type, true);
        Schema::new(vec![
            column("RowKey", DataType::Utf8),
            column("ts", DataType::Int64),
            column("count", DataType::Int64),
            column("price", DataType::Float64),
            Field::new("units", DataType::Int32, false),
        ])
    }

    fn validate(chain: &str, row_keys: &[&str]) -> Result<Chain, String> {
        let config: ChainConfig = chain.parse().unwrap();
        validate_config(&config, row_keys)
    }

    fn validate_config(config: &ChainConfig, row_keys: &[&str]) -> Result<Chain, String> {
        let row_keys: Vec<String> = row_keys.iter().map(|key| (*key).to_owned()).collect();
        Chain::validate(config, &schema(), &row_keys).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check_refused(chain: &str, row_keys: &[&str], expected: &str) {
        assert_eq!(validate(chain, row_keys).expect_err(chain), expected);
    }

    #[test]
    fn columns_fold_in_table_order_whatever_order_they_are_written_in() {
        let chain = validate(",units=max,price=min,count=sum,ts=max", &["RowKey"]).unwrap();
        let bound = chain.bind(now(), &NoPlugins).unwrap();
        let folds: Vec<(usize, &str)> =
            bound.folds().map(|(index, fold)| (index, fold.name())).collect();
        assert_eq!(folds, [(1, "max"), (2, "sum"), (3, "min"), (4, "max")]);
        assert_eq!(bound.row_keys().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_filter_alone_needs_no_row_keys() {
        let chain = validate("ageoff=ts,5,", &[]).unwrap();
        assert!(!chain.is_aggregating());
        assert_eq!(chain.filters()[0].name(), "age-off");
    }

    #[test]
    fn unknown_columns_are_refused_with_the_nearest_name() {
        let known = "columns are \"RowKey\", \"ts\", \"count\", \"price\", \"units\"";
        check_refused(
            "ageoff=Ts,5,",
            &[],
            &format!("ageoff column \"Ts\" is not in the table: {known}; did you mean \"ts\"?"),
        );
        check_refused(
            ",prise=sum",
            &["RowKey"],
            &format!(
                "aggregation column \"prise\" is not in the table: {known}; did you mean \"price\"?"
            ),
        );
        check_refused(
            ",price=sum",
            &["tenant"],
            &format!("row key column \"tenant\" is not in the table: {known}"),
        );
    }

    #[test]
    fn types_that_do_not_fit_are_refused() {
        check_refused(
            "ageoff=price,5,",
            &[],
            "ageoff column \"price\" has type Float64: need an integer (seconds), Timestamp or Date",
        );
        check_refused(
            ",RowKey=sum",
            &["ts"],
            "sum is not defined for column \"RowKey\" of type Utf8: it takes integers, decimals and floats",
        );
        check_refused(
            ",units=count",
            &["RowKey"],
            "count needs a nullable Int64 column (null = one row not yet counted): column \"units\" is NOT NULL Int32; write 1 per row and use 'units'=sum, or make it a nullable Int64",
        );
        check_refused(
            ",price=count",
            &["RowKey"],
            "count needs a nullable Int64 column (null = one row not yet counted): column \"price\" is Float64; write 1 per row and use 'price'=sum, or make it a nullable Int64",
        );
    }

    #[test]
    fn every_column_is_a_row_key_or_folded_but_never_both() {
        check_refused(
            ",count=sum,units=sum",
            &["RowKey"],
            "columns without aggregation: \"ts\", \"price\"; with any aggregation every column that is no row key needs one",
        );
        check_refused(
            ",count=sum,ts=max",
            &["RowKey", "ts"],
            "column \"ts\" is a row key and cannot have an aggregation",
        );
        check_refused(",count=sum", &[], "aggregation needs row keys: set row_keys");
        check_refused(",count=sum", &["ts", "ts"], "row key \"ts\" is named twice");
    }

    #[test]
    fn rows_cannot_be_grouped_by_maps() {
        let entries = Field::new(
            "entries",
            DataType::Struct(
                vec![
                    Field::new("key", DataType::Utf8, false),
                    Field::new("value", DataType::Int64, true),
                ]
                .into(),
            ),
            false,
        );
        let map = DataType::Map(entries.into(), false);
        let schema = Schema::new(vec![Field::new("tags", map, true)]);
        let config = ChainConfig { steps: vec![Step::Aggregate(Vec::new())] };
        let error = Chain::validate(&config, &schema, &["tags".to_owned()]).unwrap_err();
        assert!(error.to_string().starts_with("row key \"tags\" has type Map("), "{error}");
        assert!(error.to_string().ends_with(", by which rows cannot be grouped"), "{error}");
    }

    #[test]
    fn steps_out_of_order_are_refused() {
        let age_off = Step::Filter(FilterSpec::AgeOff {
            column: "ts".to_owned(),
            period_seconds: 1,
            nulls: NullRule::Keep,
        });
        let aggregate = Step::Aggregate(vec![]);
        let refused = |steps: &[&Step]| {
            let steps = steps.iter().map(|step| (*step).clone()).collect();
            validate_config(&ChainConfig { steps }, &["RowKey"]).unwrap_err()
        };
        assert_eq!(
            refused(&[&age_off, &aggregate, &age_off]),
            "step 3 (age-off) follows the aggregation in step 2: filters must come before it"
        );
        assert_eq!(
            refused(&[&aggregate, &aggregate]),
            "step 2 is a second aggregation after step 1: a chain has at most one"
        );
    }

    #[test]
    fn a_column_folded_twice_is_refused() {
        let fold = |fold| ColumnFold { column: "ts".to_owned(), fold };
        let steps = vec![Step::Aggregate(vec![fold(Fold::Min), fold(Fold::Max)])];
        assert_eq!(
            validate_config(&ChainConfig { steps }, &["RowKey"]).unwrap_err(),
            "column \"ts\" has two aggregations (min and max)"
        );
    }

    fn visibility(column: &str, authorizations: &[&str]) -> Step {
        let set = authorizations.iter().map(|one| (*one).to_owned()).collect();
        Step::Filter(FilterSpec::Visibility {
            column: column.to_owned(),
            authorizations: vec![set],
            invalid: InvalidRule::Fail,
            nulls: NullRule::Drop,
        })
    }

    #[test]
    fn visibility_is_checked_before_rows_are_read() {
        let refused = |step| validate_config(&ChainConfig { steps: vec![step] }, &[]).unwrap_err();
        assert_eq!(
            refused(visibility("price", &[])),
            "visibility column \"price\" has type Float64: need STRING or BINARY"
        );
        assert_eq!(
            refused(visibility("RowKey", &["a", ""])),
            "authorization \"\" for visibility column \"RowKey\" is empty"
        );
        assert_eq!(
            refused(visibility("RowKey", &["a\n"])),
            "authorization \"a\\n\" for visibility column \"RowKey\" has a control character or U+FFFD"
        );
        assert!(
            refused(visibility("label", &[])).starts_with("visibility column \"label\" is not")
        );
    }

    #[test]
    fn rows_with_different_labels_are_not_folded_together() {
        let config: ChainConfig = ",count=sum,price=max,units=sum".parse().unwrap();
        let label = visibility("RowKey", &["a"]);
        let steps = [vec![label.clone(), label], config.steps].concat();
        let chain = validate_config(&ChainConfig { steps }, &["ts"]).unwrap();
        let bound = chain.bind(now(), &NoPlugins).unwrap();
        assert_eq!(bound.row_keys().collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn surprising_chains_are_allowed_with_a_warning() {
        let chain = ",count=count,price=sum,units=sum,ts=max";
        let warnings = |chain: String, row_keys: &[&str]| {
            let chain = validate(&chain, row_keys).unwrap();
            chain.warnings().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        insta::assert_snapshot!(warnings(format!("ageoff=ts,5{chain}"), &["RowKey"]).join("\n"), @r#"
        rows age off by "ts", which is no row key: totals will depend on when compactions run; to avoid this make a bucket of it, such as its day, a row key
        count adds up the values in "count" and counts each null as one row: read it as sum(coalesce("count", 1))
        sum of floating-point column "price": the last digits will depend on which files are compacted together
        "#);
        let by_time = "ageoff=ts,5,count=sum,price=max,units=sum".to_owned();
        assert!(warnings(by_time, &["RowKey", "ts"]).is_empty());
    }

    #[test]
    fn plugins_that_are_not_there_are_refused_when_the_chain_is_bound() {
        let name = "keep-odd".to_owned();
        let filter = FilterSpec::Plugin { name, config_json: "{}".to_owned() };
        let config = ChainConfig { steps: vec![Step::Filter(filter)] };
        let error = validate_config(&config, &[]).unwrap().bind(now(), &NoPlugins).unwrap_err();
        assert_eq!(error.to_string(), "plugin \"keep-odd\" is not configured");
    }
}
