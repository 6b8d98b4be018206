//! An iterator chain as part of a task: the same content as [`ChainConfig`], as plain data that
//! crosses a process border.

use std::num::NonZeroU32;

use lakebed_compact::{ChainConfig, ColumnFold, FilterSpec, Fold, InvalidRule, NullRule, Step};
use serde::{Deserialize, Serialize};

/// A chain and what it is run with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IteratorTask {
    /// The steps.
    pub steps: Vec<IteratorStep>,
    /// Columns that identify a row.
    pub row_keys: Vec<String>,
    /// The job's one `now`, epoch milliseconds.
    pub now_epoch_ms: i64,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IteratorStep {
    /// Age-off.
    AgeOff {
        /// The column with the rows' times.
        column: String,
        /// The age at which a row goes.
        period_seconds: u64,
        /// Whether rows without a time stay.
        keep_nulls: bool,
    },
    /// Visibility.
    Visibility {
        /// The column with the rows' labels.
        column: String,
        /// Sets of authorizations, each of which must see a row.
        authorizations: Vec<Vec<String>>,
        /// Whether rows whose label is no access expression are dropped; else they end the job.
        drop_invalid: bool,
        /// Whether rows without a label stay.
        keep_nulls: bool,
    },
    /// A condition in SQL.
    Predicate {
        /// The condition on a row that stays.
        keep: String,
    },
    /// The latest row of each key.
    LatestBy {
        /// The columns that order rows.
        columns: Vec<String>,
        /// The column that marks deleted rows.
        delete_marker: Option<String>,
    },
    /// A filter plugin.
    FilterPlugin {
        /// Its name.
        name: String,
        /// Its settings.
        config_json: String,
    },
    /// An aggregation: a fold per column.
    Aggregate(Vec<IteratorFold>),
}

/// How one column folds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IteratorFold {
    /// The column.
    pub column: String,
    /// A native fold's name, or a plugin's.
    pub fold: String,
    /// A plugin's settings; none for a native fold.
    pub config_json: Option<String>,
    /// The column that `first` and `last` go by.
    #[serde(default)]
    pub by: Option<String>,
    /// How many elements `top` keeps.
    #[serde(default)]
    pub count: Option<NonZeroU32>,
}

impl IteratorTask {
    /// Describes a chain.
    #[must_use]
    pub fn new(chain: &ChainConfig, row_keys: &[String], now_epoch_ms: i64) -> Self {
        let steps = chain
            .steps
            .iter()
            .map(|step| match step {
                Step::Filter(FilterSpec::AgeOff { column, period_seconds, nulls }) => {
                    IteratorStep::AgeOff {
                        column: column.clone(),
                        period_seconds: *period_seconds,
                        keep_nulls: *nulls == NullRule::Keep,
                    }
                }
                Step::Filter(FilterSpec::Visibility { column, authorizations, invalid, nulls }) => {
                    IteratorStep::Visibility {
                        column: column.clone(),
                        authorizations: authorizations.clone(),
                        drop_invalid: *invalid == InvalidRule::Drop,
                        keep_nulls: *nulls == NullRule::Keep,
                    }
                }
                Step::Filter(FilterSpec::Predicate { keep }) => {
                    IteratorStep::Predicate { keep: keep.clone() }
                }
                Step::LatestBy { columns, delete_marker } => IteratorStep::LatestBy {
                    columns: columns.clone(),
                    delete_marker: delete_marker.clone(),
                },
                Step::Filter(FilterSpec::Plugin { name, config_json }) => {
                    IteratorStep::FilterPlugin {
                        name: name.clone(),
                        config_json: config_json.clone(),
                    }
                }
                Step::Aggregate(folds) => {
                    IteratorStep::Aggregate(folds.iter().map(IteratorFold::new).collect())
                }
            })
            .collect();
        Self { steps, row_keys: row_keys.to_vec(), now_epoch_ms }
    }

    /// Gives the chain back.
    #[must_use]
    pub fn chain(&self) -> ChainConfig {
        let steps = self
            .steps
            .iter()
            .map(|step| match step {
                IteratorStep::AgeOff { column, period_seconds, keep_nulls } => {
                    Step::Filter(FilterSpec::AgeOff {
                        column: column.clone(),
                        period_seconds: *period_seconds,
                        nulls: null_rule(*keep_nulls),
                    })
                }
                IteratorStep::Visibility { column, authorizations, drop_invalid, keep_nulls } => {
                    Step::Filter(FilterSpec::Visibility {
                        column: column.clone(),
                        authorizations: authorizations.clone(),
                        invalid: if *drop_invalid { InvalidRule::Drop } else { InvalidRule::Fail },
                        nulls: null_rule(*keep_nulls),
                    })
                }
                IteratorStep::Predicate { keep } => {
                    Step::Filter(FilterSpec::Predicate { keep: keep.clone() })
                }
                IteratorStep::LatestBy { columns, delete_marker } => Step::LatestBy {
                    columns: columns.clone(),
                    delete_marker: delete_marker.clone(),
                },
                IteratorStep::FilterPlugin { name, config_json } => {
                    Step::Filter(FilterSpec::Plugin {
                        name: name.clone(),
                        config_json: config_json.clone(),
                    })
                }
                IteratorStep::Aggregate(folds) => {
                    Step::Aggregate(folds.iter().map(IteratorFold::fold).collect())
                }
            })
            .collect();
        ChainConfig { steps }
    }
}

const fn null_rule(keep: bool) -> NullRule {
    if keep { NullRule::Keep } else { NullRule::Drop }
}

impl IteratorFold {
    fn new(fold: &ColumnFold) -> Self {
        let (mut config_json, mut by, mut count) = (None, None, None);
        match &fold.fold {
            Fold::Plugin { config_json: settings, .. } => config_json = Some(settings.clone()),
            Fold::First { by: order } | Fold::Last { by: order } => by = Some(order.clone()),
            Fold::Top { count: elements } => count = Some(*elements),
            Fold::Sum | Fold::Count | Fold::Min | Fold::Max | Fold::Average | Fold::Map(_) => {}
        }
        let name = fold.fold.name().to_owned();
        Self { column: fold.column.clone(), fold: name, config_json, by, count }
    }

    fn fold(&self) -> ColumnFold {
        let native = match (self.fold.as_str(), &self.config_json, &self.by, self.count) {
            (_, Some(_), ..) => None,
            ("first", None, Some(by), _) => Some(Fold::First { by: by.clone() }),
            ("last", None, Some(by), _) => Some(Fold::Last { by: by.clone() }),
            ("top", None, _, Some(count)) => Some(Fold::Top { count }),
            (name, None, ..) => Fold::native(name),
        };
        let fold = native.unwrap_or_else(|| Fold::Plugin {
            name: self.fold.clone(),
            config_json: self.config_json.clone().unwrap_or_default(),
        });
        ColumnFold { column: self.column.clone(), fold }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use lakebed_compact::{
        ChainConfig, ColumnFold, FilterSpec, Fold, InvalidRule, MapFold, NullRule, Step,
    };

    use super::IteratorTask;

    #[test]
    fn chains_cross_a_process_border_unchanged() {
        let mut chain: ChainConfig = "ageoff='t','86400','q'=SUM,'p'=max".parse().unwrap();
        let Some(Step::Aggregate(folds)) = chain.steps.last_mut() else { panic!("no aggregation") };
        folds.push(ColumnFold {
            column: "r".into(),
            fold: Fold::Plugin { name: "sum".into(), config_json: "{}".into() },
        });
        chain.steps.insert(
            0,
            Step::Filter(FilterSpec::Visibility {
                column: "v".into(),
                authorizations: vec![vec!["a".into()], Vec::new()],
                invalid: InvalidRule::Drop,
                nulls: NullRule::Keep,
            }),
        );
        chain.steps.insert(0, Step::Filter(FilterSpec::Predicate { keep: "q > 0".into() }));
        let Some(Step::Aggregate(folds)) = chain.steps.last_mut() else { panic!("no aggregation") };
        for fold in [
            Fold::First { by: "p".into() },
            Fold::Last { by: "p".into() },
            Fold::Top { count: NonZeroU32::MIN },
            Fold::Average,
            Fold::Map(MapFold::Min),
        ] {
            folds.push(ColumnFold { column: fold.name().into(), fold });
        }
        let latest = |marker: Option<&str>| Step::LatestBy {
            columns: vec!["t".into(), "u".into()],
            delete_marker: marker.map(Into::into),
        };
        chain.steps.extend([latest(None), latest(Some("gone"))]);
        let task = IteratorTask::new(&chain, &["k".into()], 5);
        let text = serde_json::to_string(&task).unwrap();
        let back: IteratorTask = serde_json::from_str(&text).unwrap();
        assert_eq!((back.chain(), back.row_keys), (chain, vec!["k".to_owned()]));
    }
}
