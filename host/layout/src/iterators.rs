//! An iterator chain as part of a task: the same content as [`ChainConfig`], as plain data that
//! crosses a process border.

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
    /// `sum`, `count`, `min`, `max`, or a plugin's name.
    pub fold: String,
    /// A plugin's settings; none for a native fold.
    pub config_json: Option<String>,
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
        let config_json = match &fold.fold {
            Fold::Plugin { config_json, .. } => Some(config_json.clone()),
            Fold::Sum | Fold::Count | Fold::Min | Fold::Max => None,
        };
        Self { column: fold.column.clone(), fold: fold.fold.name().to_owned(), config_json }
    }

    fn fold(&self) -> ColumnFold {
        let native = if self.config_json.is_none() { Fold::native(&self.fold) } else { None };
        let fold = native.unwrap_or_else(|| Fold::Plugin {
            name: self.fold.clone(),
            config_json: self.config_json.clone().unwrap_or_default(),
        });
        ColumnFold { column: self.column.clone(), fold }
    }
}

#[cfg(test)]
mod tests {
    use lakebed_compact::{ChainConfig, ColumnFold, FilterSpec, Fold, InvalidRule, NullRule, Step};

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
        let task = IteratorTask::new(&chain, &["k".into()], 5);
        let text = serde_json::to_string(&task).unwrap();
        let back: IteratorTask = serde_json::from_str(&text).unwrap();
        assert_eq!((back.chain(), back.row_keys), (chain, vec!["k".to_owned()]));
    }
}
