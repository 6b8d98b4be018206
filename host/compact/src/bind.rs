//! From a chain's names to running code.

use std::{num::NonZeroUsize, sync::Arc};

use arrow::datatypes::SchemaRef;
use lakebed_model::Instant;

use crate::{
    AgeOff, Average, Chain, ChainRun, CompactError, Count, End, Extreme, FilterSpec, FirstLast,
    Fold, FoldFactory, RowFilter, Sum, Top, Visibility,
    chain::{ColumnFolding, LatestRow, column_index},
};

/// Finds the plugins that a chain names.
///
/// Implementers hand out filters and folds that obey the rules of [`RowFilter`] and [`FoldFactory`]
/// and answer every fault of a plugin with an error.
pub trait Plugins {
    /// Opens a plugin as a filter for a job whose one instant is `now`.
    ///
    /// # Errors
    /// Returns an error if there is no such plugin, or if it refuses its settings.
    fn filter(
        &self,
        name: &str,
        config_json: &str,
        now: Instant,
    ) -> Result<Arc<dyn RowFilter>, CompactError>;

    /// Makes a filter of a condition in SQL on the columns of a table.
    ///
    /// # Errors
    /// Returns an error if the condition is none, or if nothing here evaluates SQL.
    fn predicate(
        &self,
        keep: &str,
        _schema: &SchemaRef,
    ) -> Result<Arc<dyn RowFilter>, CompactError> {
        Err(CompactError::NoSql { predicate: keep.to_owned() })
    }

    /// Opens a plugin as a fold.
    ///
    /// # Errors
    /// Returns an error if there is no such plugin, or if it refuses its settings.
    fn fold(&self, name: &str, config_json: &str) -> Result<Arc<dyn FoldFactory>, CompactError>;
}

/// No plugins at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPlugins;

impl Plugins for NoPlugins {
    fn filter(
        &self,
        name: &str,
        _config_json: &str,
        _now: Instant,
    ) -> Result<Arc<dyn RowFilter>, CompactError> {
        Err(CompactError::UnknownPlugin { plugin: name.to_owned() })
    }

    fn fold(&self, name: &str, _config_json: &str) -> Result<Arc<dyn FoldFactory>, CompactError> {
        Err(CompactError::UnknownPlugin { plugin: name.to_owned() })
    }
}

/// A chain with its code and its `now`: starts any number of runs that agree with one another.
#[derive(Debug, Clone)]
pub struct BoundChain {
    pub(crate) schema: SchemaRef,
    pub(crate) filters: Vec<BoundFilter>,
    pub(crate) aggregation: Option<BoundAggregation>,
}

/// A filter with the positions of its columns in the table's schema.
#[derive(Debug, Clone)]
pub(crate) struct BoundFilter {
    pub(crate) filter: Arc<dyn RowFilter>,
    pub(crate) columns: Vec<usize>,
}

/// Row keys and folds by their positions in the table's schema.
#[derive(Debug, Clone)]
pub(crate) struct BoundAggregation {
    pub(crate) row_keys: Vec<usize>,
    pub(crate) folding: BoundFolding,
}

/// What becomes of the columns that are no row keys.
#[derive(Debug, Clone)]
pub(crate) enum BoundFolding {
    Each(Vec<BoundFold>),
    Latest(LatestRow),
}

/// A fold with the positions of its columns.
#[derive(Debug, Clone)]
pub(crate) struct BoundFold {
    pub(crate) column: usize,
    pub(crate) others: Vec<usize>,
    pub(crate) factory: Arc<dyn FoldFactory>,
}

impl BoundAggregation {
    /// Returns the columns that come out beside the row keys, in the order of the results.
    pub(crate) fn result_columns(&self) -> Vec<usize> {
        match &self.folding {
            BoundFolding::Each(folds) => folds.iter().map(|fold| fold.column).collect(),
            BoundFolding::Latest(latest) => latest.columns.clone(),
        }
    }
}

impl BoundChain {
    /// Starts a run whose folded batches have at most `batch_rows_max` rows.
    ///
    /// With an aggregation all rows of a key must go through the same run; ranges of keys that do
    /// not overlap can be run apart.
    ///
    /// # Errors
    /// Returns an error if a fold refuses its column.
    pub fn start(&self, batch_rows_max: NonZeroUsize) -> Result<ChainRun, CompactError> {
        ChainRun::new(self.clone(), batch_rows_max)
    }

    /// Returns the columns of the table, which are those of the result.
    #[must_use]
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Iterates over the filters in the order they run.
    pub fn filters(&self) -> impl ExactSizeIterator<Item = &Arc<dyn RowFilter>> {
        self.filters.iter().map(|bound| &bound.filter)
    }

    /// Tells whether rows are folded, so that all rows of a key must be in one run.
    #[must_use]
    pub const fn is_aggregating(&self) -> bool {
        self.aggregation.is_some()
    }

    /// Iterates over the positions of the row keys in the schema; there are none without aggregation.
    pub fn row_keys(&self) -> impl Iterator<Item = usize> + '_ {
        self.aggregation.iter().flat_map(|aggregation| aggregation.row_keys.iter().copied())
    }

    /// Iterates over the folded columns, by their positions in the schema.
    pub fn folds(&self) -> impl Iterator<Item = (usize, &Arc<dyn FoldFactory>)> {
        self.aggregation
            .iter()
            .flat_map(|aggregation| match &aggregation.folding {
                BoundFolding::Each(folds) => folds.as_slice(),
                BoundFolding::Latest(_) => &[],
            })
            .map(|fold| (fold.column, &fold.factory))
    }
}

pub(crate) fn bind(
    chain: &Chain,
    now: Instant,
    plugins: &dyn Plugins,
) -> Result<BoundChain, CompactError> {
    let mut filters = Vec::with_capacity(chain.filters.len());
    for spec in &chain.filters {
        let filter: Arc<dyn RowFilter> = match spec {
            FilterSpec::AgeOff { column, period_seconds, nulls } => {
                Arc::new(AgeOff::new(column.clone(), *period_seconds, *nulls, now))
            }
            FilterSpec::Visibility { column, authorizations, invalid, nulls } => {
                Arc::new(Visibility::new(column.clone(), authorizations, *invalid, *nulls))
            }
            FilterSpec::Predicate { keep } => plugins.predicate(keep, &chain.schema)?,
            FilterSpec::Plugin { name, config_json } => plugins.filter(name, config_json, now)?,
        };
        let columns = filter
            .columns()
            .iter()
            .map(|column| column_index(&chain.schema, column, filter.name()))
            .collect::<Result<_, _>>()?;
        filters.push(BoundFilter { filter, columns });
    }
    let mut aggregation = None;
    if let Some(checked) = &chain.aggregation {
        let folding = match &checked.folding {
            ColumnFolding::Latest(latest) => BoundFolding::Latest(latest.clone()),
            ColumnFolding::Each(folds) => {
                let folds = folds.iter();
                let bound = folds.map(|(index, fold)| bind_fold(chain, *index, fold, plugins));
                BoundFolding::Each(bound.collect::<Result<_, _>>()?)
            }
        };
        aggregation = Some(BoundAggregation { row_keys: checked.row_keys.clone(), folding });
    }
    Ok(BoundChain { schema: Arc::clone(&chain.schema), filters, aggregation })
}

fn bind_fold(
    chain: &Chain,
    column: usize,
    fold: &Fold,
    plugins: &dyn Plugins,
) -> Result<BoundFold, CompactError> {
    let factory = match fold {
        Fold::Plugin { name, config_json } => plugins.fold(name, config_json)?,
        native => native_factory(native).expect("every fold but a plugin is native"),
    };
    let others = factory
        .other_columns()
        .iter()
        .map(|other| column_index(&chain.schema, other, factory.name()))
        .collect::<Result<_, _>>()?;
    Ok(BoundFold { column, others, factory })
}

/// Returns the code of a native fold; a plugin has none here.
pub(crate) fn native_factory(fold: &Fold) -> Option<Arc<dyn FoldFactory>> {
    match fold {
        Fold::Sum => Some(Arc::new(Sum)),
        Fold::Count => Some(Arc::new(Count)),
        Fold::Min => Some(Arc::new(Extreme::Min)),
        Fold::Max => Some(Arc::new(Extreme::Max)),
        Fold::Average => Some(Arc::new(Average)),
        Fold::First { by } => Some(Arc::new(FirstLast { end: End::First, by: by.clone() })),
        Fold::Last { by } => Some(Arc::new(FirstLast { end: End::Last, by: by.clone() })),
        Fold::Top { count } => {
            let count = NonZeroUsize::try_from(*count).unwrap_or(NonZeroUsize::MAX);
            Some(Arc::new(Top { count }))
        }
        Fold::Map(map) => Some(Arc::new(*map)),
        Fold::Plugin { .. } => None,
    }
}
