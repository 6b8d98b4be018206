//! A chain as written, before any table has been looked at.

use std::{fmt, num::NonZeroU32, str::FromStr};

use super::{SyntaxError, parse_string_form};
use crate::{FoldFactory, InvalidRule, MapFold, fold};

/// The steps of a chain in the order they were written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ChainConfig {
    /// Filters, then at most one aggregation.
    pub steps: Vec<Step>,
}

/// One step of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// Drops rows.
    Filter(FilterSpec),
    /// Folds the rows that share all row keys into one; must be the last step.
    Aggregate(Vec<ColumnFold>),
    /// Keeps, of the rows that share all row keys, the one that is last in the order of some columns;
    /// in place of an aggregation.
    LatestBy {
        /// The columns that order rows, the most significant first. Ties go by the other columns.
        columns: Vec<String>,
        /// A column of truth values: if the latest row's is true, no row of its key stays.
        delete_marker: Option<String>,
    },
}

/// Which rows a filter step drops.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FilterSpec {
    /// Drops rows whose age has reached a period.
    AgeOff {
        /// The column that holds a row's time.
        column: String,
        /// The age at which a row goes, in seconds.
        period_seconds: u64,
        /// What happens to rows without a time.
        nulls: NullRule,
    },
    /// Drops rows that somebody may not see.
    Visibility {
        /// The column that holds a row's label, an access expression.
        column: String,
        /// Sets of authorizations; a row stays if each of them sees it.
        authorizations: Vec<Vec<String>>,
        /// What happens to rows whose label is no access expression.
        invalid: InvalidRule,
        /// What happens to rows without a label.
        nulls: NullRule,
    },
    /// Drops the rows for which a condition in SQL does not hold.
    Predicate {
        /// The condition on a row that stays.
        keep: String,
    },
    /// Drops the rows that a plugin does not select.
    Plugin {
        /// The plugin's name in the configuration.
        name: String,
        /// The plugin's own settings as a JSON document.
        config_json: String,
    },
}

/// What a filter does with a row whose value is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NullRule {
    /// The row is dropped and counted apart. The string form always means this.
    Drop,
    /// The row is kept for ever.
    Keep,
}

/// How one column of the rows that share a key becomes one value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnFold {
    /// The column, exactly as the table spells it.
    pub column: String,
    /// The fold.
    pub fold: Fold,
}

/// A way to make one value of many.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Adds the values.
    Sum,
    /// Counts rows, adding up the counts that earlier compactions left; see [`Count`](crate::Count).
    Count,
    /// Keeps the smallest value.
    Min,
    /// Keeps the largest value.
    Max,
    /// Adds up sums and counts, for an average; see [`Average`](crate::Average).
    Average,
    /// Keeps the value of the row that is first in the order of another column.
    First {
        /// That column, which must be folded by `min`.
        by: String,
    },
    /// Keeps the value of the row that is last in the order of another column.
    Last {
        /// That column, which must be folded by `max`.
        by: String,
    },
    /// Keeps the largest elements of lists; see [`Top`](crate::Top).
    Top {
        /// How many.
        count: NonZeroU32,
    },
    /// Folds maps key by key; see [`MapFold`](crate::MapFold).
    Map(MapFold),
    /// Hands the values to a plugin.
    Plugin {
        /// The plugin's name in the configuration.
        name: String,
        /// The plugin's own settings as a JSON document.
        config_json: String,
    },
}

impl Fold {
    /// Returns the fold's name: a native one's, or the plugin's.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Sum => fold::SUM,
            Self::Count => fold::COUNT,
            Self::Min => fold::MIN,
            Self::Max => fold::MAX,
            Self::Average => fold::AVG,
            Self::First { .. } => fold::FIRST,
            Self::Last { .. } => fold::LAST,
            Self::Top { .. } => fold::TOP,
            Self::Map(map) => FoldFactory::name(map),
            Self::Plugin { name, .. } => name,
        }
    }

    /// Finds a native fold that needs nothing but its name, in any case.
    #[must_use]
    pub fn native(name: &str) -> Option<Self> {
        let maps = [MapFold::Sum, MapFold::Count, MapFold::Min, MapFold::Max].map(Self::Map);
        let plain = [Self::Sum, Self::Count, Self::Min, Self::Max, Self::Average];
        let mut all = plain.into_iter().chain(maps);
        all.find(|fold| fold.name().eq_ignore_ascii_case(name))
    }

    /// Finds a fold of the string form by its name, in any case.
    pub(crate) fn in_string_form(name: &str) -> Option<Self> {
        Self::native(name).filter(Self::is_in_string_form)
    }

    const fn is_in_string_form(&self) -> bool {
        matches!(self, Self::Sum | Self::Count | Self::Min | Self::Max)
    }
}

impl ChainConfig {
    /// Tells whether the chain has no step at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Writes the chain in the string form, if the form can say it.
    ///
    /// It cannot say a plugin, a fold but the first four, another filter than age-off or a second one, or an age-off that keeps
    /// nulls. What is written
    /// parses back to the same chain.
    #[must_use]
    pub fn to_string_form(&self) -> Option<String> {
        let (filter, folds) = match self.steps.as_slice() {
            [] => (None, None),
            [Step::Filter(filter)] => (Some(filter), None),
            [Step::Aggregate(folds)] => (None, Some(folds)),
            [Step::Filter(filter), Step::Aggregate(folds)] => (Some(filter), Some(folds)),
            _ => return None,
        };
        let mut text = match filter {
            None => String::new(),
            Some(FilterSpec::AgeOff { column, period_seconds, nulls: NullRule::Drop })
                if i64::try_from(*period_seconds).is_ok() =>
            {
                format!("ageoff={},'{period_seconds}'", Quoted(column))
            }
            Some(_) => return None,
        };
        text.push(',');
        // The form cannot tell an aggregation of nothing from no aggregation.
        if folds.is_some_and(Vec::is_empty) {
            return None;
        }
        for (index, ColumnFold { column, fold }) in folds.into_iter().flatten().enumerate() {
            if !fold.is_in_string_form() {
                return None;
            }
            if index > 0 {
                text.push(',');
            }
            text.push_str(&format!("{}={}", Quoted(column), fold.name()));
        }
        Some(text)
    }
}

impl FromStr for ChainConfig {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        parse_string_form(text)
    }
}

/// A name in the quotes of the string form.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.replace('\'', "''"))
    }
}
