//! Functions: DataFusion's, and stubs for those that it does not know.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use datafusion_common::{Result, arrow::datatypes::DataType, not_impl_err};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, WindowUDF, function::AccumulatorArgs,
};

/// Everything that DataFusion's function crates offer, by name and alias.
pub(super) struct Functions {
    pub(super) scalar: BTreeMap<String, Arc<ScalarUDF>>,
    pub(super) aggregate: BTreeMap<String, Arc<AggregateUDF>>,
    pub(super) window: BTreeMap<String, Arc<WindowUDF>>,
}

/// The functions, built once.
pub(super) static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
    let mut functions =
        Functions { scalar: BTreeMap::new(), aggregate: BTreeMap::new(), window: BTreeMap::new() };
    for function in datafusion_functions::all_default_functions() {
        for name in names(function.name(), function.aliases()) {
            functions.scalar.insert(name, Arc::clone(&function));
        }
    }
    for function in datafusion_functions_aggregate::all_default_aggregate_functions() {
        for name in names(function.name(), function.aliases()) {
            functions.aggregate.insert(name, Arc::clone(&function));
        }
    }
    for function in datafusion_functions_window::all_default_window_functions() {
        for name in names(function.name(), function.aliases()) {
            functions.window.insert(name, Arc::clone(&function));
        }
    }
    functions
});

/// Aggregates of other engines; an unknown function that is not listed is taken for a scalar one.
const FOREIGN_AGGREGATES: [&str; 22] = [
    "any_value",
    "approx_percentile",
    "approx_count_distinct",
    "approx_set",
    "arbitrary",
    "collect_list",
    "collect_set",
    "count_if",
    "countif",
    "every",
    "listagg",
    "max_by",
    "min_by",
    "mode",
    "percentile",
    "percentile_approx",
    "some",
    "group_concat",
    "object_agg",
    "skewness",
    "kurtosis",
    "try_sum",
];

/// Tells whether a function of this name folds rows, though DataFusion does not know it.
pub(super) fn is_foreign_aggregate(name: &str) -> bool {
    FOREIGN_AGGREGATES.contains(&name)
}

fn names(name: &str, aliases: &[String]) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(aliases.iter().cloned()).collect()
}

/// A function of unknown meaning: it takes anything and gives the type of its first argument.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct StubFunction {
    name: String,
    signature: Signature,
}

impl StubFunction {
    /// Makes a stub of the given name.
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), signature: Signature::variadic_any(Volatility::Immutable) }
    }

    fn type_of(arguments: &[DataType]) -> DataType {
        arguments.first().cloned().unwrap_or(DataType::Utf8)
    }
}

impl ScalarUDFImpl for StubFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(Self::type_of(arguments))
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        not_impl_err!("a stub function is planned, never run")
    }
}

impl AggregateUDFImpl for StubFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(Self::type_of(arguments))
    }

    fn accumulator(&self, _arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        not_impl_err!("a stub function is planned, never run")
    }
}
