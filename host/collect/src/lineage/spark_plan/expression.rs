//! What an expression passes on unchanged.

use crate::lineage::origin::Origin;

use super::text::{self, Attribute, attribute, call, mentioned, nested_field, split_top};

/// Casts around one column beyond which nobody looks for it.
const MAX_CASTS: usize = 32;

/// An expression that passes one column on, or computes something new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Passed<'t> {
    /// A column, or a field of one.
    Column {
        /// The column.
        attribute: Attribute,
        /// The path to the field.
        path: Option<&'t str>,
        /// Whether it is cast.
        cast: bool,
    },
    /// Something new, made of these.
    Computed(Vec<Attribute>),
}

impl Passed<'_> {
    /// Gives the origin of the expression, from those of the columns that it reads; `None` where
    /// the origin of the column that it passes on is not known.
    pub(super) fn origin(
        &self,
        lookup: &mut dyn FnMut(&Attribute) -> Option<Origin>,
    ) -> Option<Origin> {
        match self {
            Self::Column { attribute, path, cast } => {
                let mut origin = lookup(attribute)?;
                if let Some(path) = path {
                    origin = origin.field(path);
                }
                Some(if *cast { origin.cast() } else { origin })
            }
            Self::Computed(attributes) => {
                let origins: Vec<Origin> = attributes.iter().filter_map(lookup).collect();
                Some(Origin::computed(&origins))
            }
        }
    }
}

/// Reads an expression.
pub(super) fn passed(expression: &str) -> Passed<'_> {
    let (mut inner, mut cast) = (expression.trim(), false);
    for _ in 0..MAX_CASTS {
        if let Some(attribute) = attribute(inner) {
            return Passed::Column { attribute, path: None, cast };
        }
        if let Some((attribute, path)) = nested_field(inner) {
            return Passed::Column { attribute, path: Some(path), cast };
        }
        match call(inner).and_then(|(name, arguments)| passed_argument(name, arguments)) {
            Some((argument, is_cast)) => {
                inner = argument.trim();
                cast |= is_cast;
            }
            None => break,
        }
    }
    match text::padded(inner) {
        Some(attribute) => Passed::Column { attribute, path: None, cast: true },
        None => Passed::Computed(mentioned(expression)),
    }
}

/// The argument that a function gives back as it is or in another type.
fn passed_argument<'t>(name: &str, arguments: &'t str) -> Option<(&'t str, bool)> {
    match name {
        "cast" | "try_cast" | "ansi_cast" => Some((arguments.rsplit_once(" as ")?.0, true)),
        "knownfloatingpointnormalized"
        | "normalizenanandzero"
        | "knownnotnull"
        | "promote_precision" => Some((arguments, false)),
        _ => None,
    }
}

/// Rewrites how Spark spells a null-safe equality: `coalesce(a, 0) = coalesce(b, 0)` and
/// `isnull(a) = isnull(b)` become `a = b`. Tells whether it did.
pub(super) fn null_safe<'t>(pairs: Vec<(&'t str, &'t str)>) -> (Vec<(&'t str, &'t str)>, bool) {
    let flags: Vec<(&str, &str)> =
        pairs.iter().filter_map(|(l, r)| Some((is_null(l)?, is_null(r)?))).collect();
    let mut found = Vec::new();
    let mut rewritten: Vec<(&str, &str)> = Vec::with_capacity(pairs.len());
    for &(left, right) in &pairs {
        match (defaulted(left), defaulted(right)) {
            (Some(l), Some(r)) if flags.contains(&(l, r)) => {
                found.push((l, r));
                rewritten.push((l, r));
            }
            _ => rewritten.push((left, right)),
        }
    }
    rewritten.retain(|(l, r)| match (is_null(l), is_null(r)) {
        (Some(l), Some(r)) => !found.contains(&(l, r)),
        _ => true,
    });
    (rewritten, !found.is_empty())
}

fn is_null(text: &str) -> Option<&str> {
    call(text).filter(|(name, _)| *name == "isnull").map(|(_, argument)| argument.trim())
}

/// `coalesce(a#1, 0)`: the column of a coalesce with a constant.
fn defaulted(text: &str) -> Option<&str> {
    let (_, arguments) = call(text).filter(|(name, _)| *name == "coalesce")?;
    let parts = split_top(arguments);
    let (first, rest) = parts.split_first()?;
    rest.iter().all(|constant| !constant.contains('#')).then_some(*first)
}

#[cfg(test)]
mod tests {
    use super::{Passed, null_safe, passed};

    #[track_caller]
    fn check(expression: &str, expected: &str) {
        let shown = match passed(expression) {
            Passed::Column { attribute, path, cast } => {
                let path = path.map_or(String::new(), |path| format!(".{path}"));
                let cast = if cast { " cast" } else { "" };
                format!("{}#{}{path}{cast}", attribute.name, attribute.id)
            }
            Passed::Computed(of) => {
                let of: Vec<String> = of.iter().map(|a| format!("{}#{}", a.name, a.id)).collect();
                format!("computed {}", of.join(" "))
            }
        };
        assert_eq!(shown, expected, "{expression}");
    }

    #[test]
    fn columns_fields_and_casts_are_passed_on() {
        check("a#1L", "a#1");
        check("address#7.home.city", "address#7.home.city");
        check("cast(cast(a#1 as int) as bigint)", "a#1 cast");
        check("knownfloatingpointnormalized(normalizenanandzero(x#3))", "x#3");
        check("static_invoke(CharVarcharCodegenUtils.readSidePadding(c#4, 10))", "c#4 cast");
        check(
            "staticinvoke(class org.apache.spark.sql.catalyst.util.CharVarcharCodegenUtils, \
             StringType, readSidePadding, c#4, 10, true, false, true)",
            "c#4 cast",
        );
    }

    #[test]
    fn everything_else_is_computed_from_what_it_mentions() {
        check("(a#1 + 1)", "computed a#1");
        check("year(born#5)", "computed born#5");
        check("coalesce(a#1, 0)", "computed a#1");
        check("concat(a#1, b#2)", "computed a#1 b#2");
        check("5", "computed ");
        check(&format!("{}a#1{}", "cast(".repeat(40), " as int)".repeat(40)), "computed a#1");
    }

    #[test]
    fn a_null_safe_equality_is_one_pair() {
        let pairs = vec![
            ("coalesce(a#1L, 0)", "coalesce(b#2L, 0)"),
            ("isnull(a#1L)", "isnull(b#2L)"),
            ("c#3", "d#4"),
        ];
        assert_eq!(null_safe(pairs), (vec![("a#1L", "b#2L"), ("c#3", "d#4")], true));
        let own = vec![("coalesce(a#1L, 0)", "b#2L"), ("isnull(x#1L)", "isnull(b#2L)")];
        assert_eq!(null_safe(own.clone()), (own, false));
    }
}
