//! Spark's integer literals: an `INT` where a function wants one.
//!
//! In Spark `3` is an `INT`, in DataFusion a 64-bit integer, so that `add_months(d, 3)` finds no
//! function. A literal argument that fits 32 bits becomes one where every signature of the function
//! that could take this many arguments wants 32 bits at its place.

use arrow::datatypes::DataType;
use datafusion::{
    common::{DFSchema, ScalarValue, config::ConfigOptions, tree_node::Transformed},
    error::Result,
    logical_expr::{Expr, TypeSignature, expr::ScalarFunction, expr_rewriter::FunctionRewrite},
};

/// The rewrite.
#[derive(Debug, Default)]
pub(crate) struct SparkIntegers;

impl FunctionRewrite for SparkIntegers {
    fn name(&self) -> &'static str {
        "lakebed_spark_integers"
    }

    fn rewrite(
        &self,
        expression: Expr,
        _schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let Expr::ScalarFunction(call) = expression else { return Ok(Transformed::no(expression)) };
        let ScalarFunction { func, args } = call;
        let signatures = exact_signatures(&func.signature().type_signature, args.len());
        if signatures.is_empty() {
            return Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })));
        }
        let mut changed = false;
        let args = args
            .into_iter()
            .enumerate()
            .map(|(position, argument)| {
                let wants_int = signatures.iter().all(|types| types[position] == DataType::Int32);
                match &argument {
                    Expr::Literal(ScalarValue::Int64(Some(value)), metadata) if wants_int => {
                        let Ok(value) = i32::try_from(*value) else { return argument };
                        changed = true;
                        Expr::Literal(ScalarValue::Int32(Some(value)), metadata.clone())
                    }
                    _ => argument,
                }
            })
            .collect();
        drop(signatures);
        let call = Expr::ScalarFunction(ScalarFunction { func, args });
        Ok(if changed { Transformed::yes(call) } else { Transformed::no(call) })
    }
}

fn exact_signatures(signature: &TypeSignature, arguments: usize) -> Vec<&Vec<DataType>> {
    match signature {
        TypeSignature::Exact(types) if types.len() == arguments => vec![types],
        TypeSignature::OneOf(alternatives) => alternatives
            .iter()
            .flat_map(|alternative| exact_signatures(alternative, arguments))
            .collect(),
        _ => Vec::new(),
    }
}
