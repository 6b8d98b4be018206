//! From a chain's names to running code.

use std::{num::NonZeroUsize, sync::Arc};

use arrow::datatypes::SchemaRef;
use lakebed_model::Instant;

use crate::{
    AgeOff, Chain, ChainRun, CompactError, Count, Extreme, FilterSpec, Fold, FoldFactory,
    RowFilter, Sum, Visibility, chain::column_index,
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
    pub(crate) folds: Vec<(usize, Arc<dyn FoldFactory>)>,
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
            .flat_map(|aggregation| &aggregation.folds)
            .map(|(index, factory)| (*index, factory))
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
        let mut folds = Vec::with_capacity(checked.folds.len());
        for (index, fold) in &checked.folds {
            let factory = match fold {
                Fold::Plugin { name, config_json } => plugins.fold(name, config_json)?,
                native => native_factory(native).expect("every fold but a plugin is native"),
            };
            folds.push((*index, factory));
        }
        aggregation = Some(BoundAggregation { row_keys: checked.row_keys.clone(), folds });
    }
    Ok(BoundChain { schema: Arc::clone(&chain.schema), filters, aggregation })
}

/// Returns the code of a native fold; a plugin has none here.
pub(crate) fn native_factory(fold: &Fold) -> Option<Arc<dyn FoldFactory>> {
    match fold {
        Fold::Sum => Some(Arc::new(Sum)),
        Fold::Count => Some(Arc::new(Count)),
        Fold::Min => Some(Arc::new(Extreme::Min)),
        Fold::Max => Some(Arc::new(Extreme::Max)),
        Fold::Plugin { .. } => None,
    }
}
