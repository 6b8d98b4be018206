//! How names are compared.

use datafusion_sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

/// Returns the form of a name by which it is compared: lower case unless quoted. Quoted names were
/// brought to the dialect's case when the text was read.
pub(super) fn key(name: &Ident) -> String {
    match name.quote_style {
        None => name.value.to_lowercase(),
        Some(_) => name.value.clone(),
    }
}

/// Returns the parts of an object's name, outermost first.
pub(super) fn keys(name: &ObjectName) -> Vec<String> {
    name.0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(name) => key(name),
            ObjectNamePart::Function(function) => key(&function.name),
        })
        .collect()
}

/// Writes a table's name; a part with a dot inside is quoted, so that it stays one part.
pub(in super::super) fn table_text<'p>(parts: impl IntoIterator<Item = &'p str>) -> String {
    let quoted = |part: &str| {
        if part.contains('.') { format!("\"{part}\"") } else { part.to_owned() }
    };
    parts.into_iter().map(quoted).collect::<Vec<_>>().join(".")
}

/// Writes an object's name as [`table_text`] does.
pub(in super::super) fn text_of(name: &ObjectName) -> String {
    table_text(keys(name).iter().map(String::as_str))
}
