//! Names of columns: as statements spell them, as paths, and as files carry them. Pure.
//!
//! A path is written with dots; a part that holds a dot or a back-tick stands in back-ticks, so that
//! the column `` `z.z` `` and the field `z.z` of a struct are never confused. delta-spark spells the
//! names in `ZCUBE_ZORDER_BY` and `delta.dataSkippingStatsColumns` the same way.
//!
//! Column mapping (PROTOCOL.md, "Column Mapping"): statements and tags use logical names; files,
//! statistics and the `delta.clustering` domain use physical ones, which a rename leaves alone.

use arrow::datatypes::{DataType, Field, Fields, Schema};
use serde::{Deserialize, Serialize};

/// Field metadata with the name that files use.
const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";
/// Field metadata with the number that files use.
const FIELD_ID: &str = "delta.columnMapping.id";

/// How a table's columns are found in its files: `delta.columnMapping.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnMapping {
    /// By their names.
    #[default]
    None,
    /// By their physical names.
    Name,
    /// By their field ids.
    Id,
}

impl ColumnMapping {
    /// Returns the name that files, statistics and domains use for a field.
    #[must_use]
    pub fn physical_name(self, field: &Field) -> &str {
        match self {
            Self::None => field.name(),
            Self::Name | Self::Id => field.metadata().get(PHYSICAL_NAME).unwrap_or(field.name()),
        }
    }

    /// Returns the id that files carry for a field.
    #[must_use]
    pub fn field_id(self, field: &Field) -> Option<i32> {
        match self {
            Self::None => None,
            Self::Name | Self::Id => field.metadata().get(FIELD_ID)?.parse().ok(),
        }
    }

    /// Translates a path of physical names; `None` when there is no such column.
    #[must_use]
    pub fn logical_path(self, schema: &Schema, path: &[String]) -> Option<Vec<String>> {
        let mut fields: &Fields = schema.fields();
        let mut logical = Vec::with_capacity(path.len());
        for (depth, name) in path.iter().enumerate() {
            let field = fields.iter().find(|field| self.physical_name(field) == name)?;
            logical.push(field.name().clone());
            match field.data_type() {
                DataType::Struct(children) => fields = children,
                _ if depth + 1 == path.len() => {}
                _ => return None,
            }
        }
        Some(logical)
    }

    /// Translates a path of logical names; `None` when there is no such column.
    #[must_use]
    pub fn physical_path(self, schema: &Schema, path: &[String]) -> Option<Vec<String>> {
        let fields = fields_along(schema, path)?;
        Some(fields.into_iter().map(|field| self.physical_name(field).to_owned()).collect())
    }
}

/// Finds the fields from a column down to the last part of a path.
fn fields_along<'s>(schema: &'s Schema, path: &[String]) -> Option<Vec<&'s Field>> {
    let mut fields: &'s Fields = schema.fields();
    let mut found = Vec::with_capacity(path.len());
    for (depth, name) in path.iter().enumerate() {
        let field = fields.find(name)?.1;
        found.push(field.as_ref());
        match field.data_type() {
            DataType::Struct(children) => fields = children,
            _ if depth + 1 == path.len() => {}
            _ => return None,
        }
    }
    Some(found)
}

/// Finds the type of a column by its name.
#[must_use]
pub fn column_type(schema: &Schema, name: &str) -> Option<DataType> {
    Some(fields_along(schema, &split_name(name))?.last()?.data_type().clone())
}

/// Lists all fields outside lists and maps, depth first, each under its name.
pub(crate) fn fields(schema: &Schema) -> impl Iterator<Item = (String, &Field)> {
    fn collect<'s>(fields: &'s Fields, prefix: &[String], out: &mut Vec<(String, &'s Field)>) {
        for field in fields {
            let path = [prefix, std::slice::from_ref(field.name())].concat();
            out.push((join_name(&path), field.as_ref()));
            if let DataType::Struct(children) = field.data_type() {
                collect(children, &path, out);
            }
        }
    }
    let mut out = Vec::new();
    collect(schema.fields(), &[], &mut out);
    out.into_iter()
}

/// Lists the columns with statistics that a column consists of: itself, or the fields of a struct.
pub(crate) fn leaves_of(schema: &Schema, name: &str) -> Vec<Vec<String>> {
    let path = split_name(name);
    leaves(schema).into_iter().filter(|leaf| leaf.starts_with(&path)).collect()
}

/// Lists the columns that can have statistics: every field that is no struct, depth first.
#[must_use]
pub fn leaves(schema: &Schema) -> Vec<Vec<String>> {
    fn collect(fields: &Fields, prefix: &[String], out: &mut Vec<Vec<String>>) {
        for field in fields {
            let mut path = prefix.to_vec();
            path.push(field.name().clone());
            match field.data_type() {
                DataType::Struct(children) => collect(children, &path, out),
                _ => out.push(path),
            }
        }
    }
    let mut out = Vec::new();
    collect(schema.fields(), &[], &mut out);
    out
}

/// Writes a path as one name.
#[must_use]
pub fn join_name(path: &[String]) -> String {
    let parts: Vec<String> = path
        .iter()
        .map(|part| {
            if part.contains(['.', '`', ',']) {
                format!("`{}`", part.replace('`', "``"))
            } else {
                part.clone()
            }
        })
        .collect();
    parts.join(".")
}

/// Reads a name into its path.
#[must_use]
pub fn split_name(name: &str) -> Vec<String> {
    parse_list(name).into_iter().next().unwrap_or_default()
}

/// Reads names with commas between them, as in `delta.dataSkippingStatsColumns`.
#[must_use]
pub fn parse_list(text: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let mut path = Vec::new();
    let mut characters = text.chars().peekable();
    let mut part = Part::default();
    while let Some(character) = characters.next() {
        match character {
            '`' if part.quoted && characters.peek() == Some(&'`') => {
                characters.next();
                part.text.push('`');
            }
            '`' => {
                part.quoted = !part.quoted;
                part.kept = true;
            }
            '.' if !part.quoted => path.extend(part.take()),
            ',' if !part.quoted => {
                path.extend(part.take());
                paths.push(std::mem::take(&mut path));
            }
            space if !part.quoted && space.is_whitespace() && part.ignores_spaces() => {}
            other => part.text.push(other),
        }
    }
    path.extend(part.take());
    paths.push(path);
    paths.retain(|path| !path.is_empty());
    paths
}

/// A part of a name while it is read.
#[derive(Debug, Default)]
struct Part {
    text: String,
    quoted: bool,
    /// Whether it stands in back-ticks, which keep its spaces.
    kept: bool,
}

impl Part {
    /// Outside back-ticks, spaces count only within a name.
    fn ignores_spaces(&self) -> bool {
        self.kept || self.text.is_empty()
    }

    fn take(&mut self) -> Option<String> {
        let Self { text, quoted: _, kept } = std::mem::take(self);
        let text = if kept { text } else { text.trim_end().to_owned() };
        (kept || !text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Schema};

    use super::{ColumnMapping, column_type, join_name, leaves, parse_list, split_name};
    use crate::testing::mapped_field as mapped;

    fn strings(path: &[&str]) -> Vec<String> {
        path.iter().map(|part| (*part).to_owned()).collect()
    }

    /// delta-rs#2849.
    #[test]
    fn lists_are_read_as_identifiers() {
        let parsed = parse_list("x, `z.z`,`a,b`,`q``t` , s.`in ner`.c");
        let expected: Vec<Vec<String>> =
            [&["x"][..], &["z.z"], &["a,b"], &["q`t"], &["s", "in ner", "c"]]
                .into_iter()
                .map(strings)
                .collect();
        assert_eq!(parsed, expected);
        for path in parsed {
            assert_eq!(split_name(&join_name(&path)), path, "a name survives a round trip");
        }
        assert_eq!(parse_list(""), Vec::<Vec<String>>::new());
        assert_eq!(parse_list(" , ,a"), [strings(&["a"])]);
    }

    #[test]
    fn physical_paths_follow_structs() {
        let inner = mapped("code", DataType::Int32, 2);
        let schema = Schema::new(vec![
            mapped("who", DataType::Struct(vec![inner].into()), 1),
            mapped("a.b", DataType::Int64, 3),
        ]);
        let physical = |mapping: ColumnMapping, name: &str| {
            mapping.physical_path(&schema, &split_name(name)).map(|path| join_name(&path))
        };
        assert_eq!(physical(ColumnMapping::Name, "who.code").as_deref(), Some("col-1.col-2"));
        assert_eq!(physical(ColumnMapping::None, "who.code").as_deref(), Some("who.code"));
        assert_eq!(physical(ColumnMapping::Id, "`a.b`").as_deref(), Some("col-3"));
        assert_eq!(physical(ColumnMapping::Id, "a.b"), None);
        assert_eq!(physical(ColumnMapping::Id, "who.code.x"), None);
        let logical = |mapping: ColumnMapping, name: &str| {
            mapping.logical_path(&schema, &split_name(name)).map(|path| join_name(&path))
        };
        assert_eq!(logical(ColumnMapping::Name, "col-1.col-2").as_deref(), Some("who.code"));
        assert_eq!(logical(ColumnMapping::Id, "col-3").as_deref(), Some("`a.b`"));
        assert_eq!(logical(ColumnMapping::None, "who.code").as_deref(), Some("who.code"));
        assert_eq!(logical(ColumnMapping::Name, "who.code"), None);
        assert_eq!(logical(ColumnMapping::Name, "col-1.col-2.x"), None);
        assert_eq!(column_type(&schema, "who.code"), Some(DataType::Int32));
        assert_eq!(leaves(&schema), [strings(&["who", "code"]), strings(&["a.b"])]);
    }
}
