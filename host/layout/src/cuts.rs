//! Weighted cuts as a table keeps them: a metadata domain of ours and a tag on each file. Pure.
//!
//! To every other engine the table is clustered by `delta.clustering` and nothing more. A domain whose
//! columns are not the table's clustering columns, because another engine changed those since, is
//! ignored until the columns fit again or new cuts are set.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    LayoutError, TableSnapshot,
    action::DomainMetadata,
    columns::{join_name, split_name},
    ddl::physical_names,
};

/// The metadata domain that holds a table's cuts.
pub const DOMAIN: &str = "lakebed.layout";
/// Tag with the cuts that a file was written with.
pub(crate) const TAG: &str = "LAKEBED_CUTS";

/// The version of the domain's format that this engine writes and understands.
const FORMAT: u32 = 1;
/// Columns a table is cut by at least: one column is a plain order.
const MIN_COLUMNS: usize = 2;

/// Weighted cuts of a table's clustering columns ([`lakebed_plan::cuts`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cuts {
    /// The columns, the outermost first.
    pub columns: Vec<String>,
    /// Parts of each column: proportions, which are scaled to the files of a rewrite.
    pub parts: Vec<u32>,
}

/// The domain's configuration.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    version: u32,
    /// Paths of physical names.
    columns: Vec<Vec<String>>,
    parts: Vec<u32>,
}

impl Cuts {
    /// Checks the parts that a plan has for clustering columns; none without parts.
    ///
    /// # Errors
    /// Fails when there is not one part of at least 1 for each of at least two columns.
    pub fn checked(
        table: &str,
        columns: &[String],
        parts: &[u32],
    ) -> Result<Option<Self>, LayoutError> {
        if parts.is_empty() {
            return Ok(None);
        }
        let cuts = Self { columns: columns.to_vec(), parts: parts.to_vec() };
        if !cuts.is_sound() {
            return Err(LayoutError::Cuts {
                table: table.to_owned(),
                parts: parts.to_vec(),
                columns: columns.join(", "),
            });
        }
        Ok(Some(cuts))
    }

    /// Builds the domain of a table.
    pub(crate) fn domain(&self, snapshot: &TableSnapshot) -> DomainMetadata {
        let physical = physical_names(snapshot, &self.columns);
        let columns = physical.iter().map(|name| split_name(name)).collect();
        let stored = Stored { version: FORMAT, columns, parts: self.parts.clone() };
        DomainMetadata {
            domain: DOMAIN.to_owned(),
            configuration: serde_json::to_string(&stored).unwrap_or_default(),
            removed: false,
        }
    }

    /// Returns the tag of a file that was written with these cuts.
    pub(crate) fn tag(&self) -> String {
        let cuts: Vec<_> = self.columns.iter().zip(&self.parts).collect();
        serde_json::to_string(&cuts).unwrap_or_default()
    }

    /// Tells whether these are cuts of exactly some columns.
    pub(crate) fn fit(&self, cluster_by: &[String]) -> bool {
        let set = |columns: &[String]| columns.iter().cloned().collect::<BTreeSet<_>>();
        set(&self.columns) == set(cluster_by)
    }

    fn is_sound(&self) -> bool {
        self.columns.len() >= MIN_COLUMNS
            && self.columns.len() <= crate::ddl::MAX_COLUMNS
            && self.columns.len() == self.parts.len()
            && self.parts.iter().all(|parts| *parts > 0)
    }
}

/// Builds the action that takes a table's cuts away.
pub(crate) fn tombstone(domain: &DomainMetadata) -> DomainMetadata {
    DomainMetadata { removed: true, ..domain.clone() }
}

/// Reads a table's cuts; an error says why those that are stored are not followed.
pub(crate) fn read(snapshot: &TableSnapshot) -> Option<Result<Cuts, String>> {
    let domain = snapshot.cuts_domain.as_ref().filter(|domain| !domain.removed)?;
    let stored: Stored = match serde_json::from_str(&domain.configuration) {
        Ok(stored) => stored,
        Err(error) => return Some(Err(format!("they cannot be read ({error})"))),
    };
    if stored.version != FORMAT {
        return Some(Err(format!(
            "their format has version {}, this engine knows {FORMAT}",
            stored.version
        )));
    }
    let keys = snapshot.cluster_by();
    let physical = physical_names(snapshot, &keys);
    let names: Vec<String> = stored.columns.iter().map(|path| join_name(path)).collect();
    let logical = |name: &String| {
        let position = physical.iter().position(|known| known == name)?;
        Some(keys[position].clone())
    };
    let columns: Option<Vec<String>> = names.iter().map(logical).collect();
    let cuts = columns.map(|columns| Cuts { columns, parts: stored.parts });
    Some(match cuts.filter(|cuts| cuts.fit(&keys)) {
        Some(cuts) if cuts.is_sound() => Ok(cuts),
        Some(Cuts { columns, parts }) => Err(format!(
            "{parts:?} are not one number above 0 for each of ({})",
            columns.join(", ")
        )),
        None => Err(format!(
            "they are of the columns ({}), the table is clustered by ({})",
            names.join(", "),
            physical.join(", ")
        )),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Schema};

    use super::{Cuts, DOMAIN, tombstone};
    use crate::{
        TableSnapshot,
        action::DomainMetadata,
        ddl,
        testing::{mapped_field, snapshot},
    };

    fn names(columns: &[&str]) -> Vec<String> {
        columns.iter().map(|column| (*column).to_owned()).collect()
    }

    fn cuts(columns: &[&str], parts: &[u32]) -> Cuts {
        Cuts { columns: names(columns), parts: parts.to_vec() }
    }

    fn with_domain(keys: &[&str], configuration: &str) -> TableSnapshot {
        let domain = DomainMetadata {
            domain: DOMAIN.to_owned(),
            configuration: configuration.to_owned(),
            removed: false,
        };
        TableSnapshot { cuts_domain: Some(domain), ..snapshot(keys, vec![]) }
    }

    #[test]
    fn domain_holds_paths_and_parts_and_is_read_back() {
        let table = snapshot(&["a", "b"], vec![]);
        let made = cuts(&["b", "a"], &[25, 4]).domain(&table);
        assert_eq!(made.configuration, r#"{"version":1,"columns":[["b"],["a"]],"parts":[25,4]}"#);
        let table = with_domain(&["a", "b"], &made.configuration);
        assert_eq!(table.cuts(), Some(cuts(&["b", "a"], &[25, 4])));
        assert_eq!(table.layout().to_string(), "clustered by (b in 25 parts, a in 4)");
        let gone = TableSnapshot { cuts_domain: Some(tombstone(&made)), ..table };
        assert_eq!((gone.cuts(), gone.ignored_cuts()), (None, None));
    }

    #[test]
    fn columns_keep_their_cuts_when_they_are_renamed() {
        let mut table =
            with_domain(&[], r#"{"version":1,"columns":[["col-2"],["col-1"]],"parts":[9,3]}"#);
        table.schema = Arc::new(Schema::new(vec![
            mapped_field("x", DataType::Int64, 1),
            mapped_field("y", DataType::Int64, 2),
        ]));
        table.properties = [("delta.columnMapping.mode".to_owned(), "name".to_owned())].into();
        table.clustering = Some(ddl::domain(&names(&["x", "y"])));
        assert_eq!(table.cuts(), Some(cuts(&["y", "x"], &[9, 3])));
        let domain = table.cuts().unwrap().domain(&table);
        assert_eq!(Some(domain), table.cuts_domain);
    }

    #[track_caller]
    fn check_ignored(keys: &[&str], configuration: &str, why: &str) {
        let table = with_domain(keys, configuration);
        assert_eq!(table.cuts(), None);
        let found = table.ignored_cuts().unwrap();
        assert!(found.starts_with(why), "{found}");
        assert_eq!(table.layout(), lakebed_plan::Layout::clustered(names(keys)));
    }

    #[test]
    fn cuts_that_do_not_fit_the_table_are_ignored_with_the_reason() {
        let of_a_b = r#"{"version":1,"columns":[["a"],["b"]],"parts":[25,4]}"#;
        let other = "they are of the columns (a, b), the table is clustered by ";
        check_ignored(&["a", "s"], of_a_b, &format!("{other}(a, s)"));
        check_ignored(&["a"], of_a_b, &format!("{other}(a)"));
        check_ignored(&["a", "b", "s"], of_a_b, &format!("{other}(a, b, s)"));
        check_ignored(&[], of_a_b, &format!("{other}()"));
        let parts =
            |parts: &str| format!(r#"{{"version":1,"columns":[["a"],["b"]],"parts":{parts}}}"#);
        check_ignored(
            &["a", "b"],
            &parts("[25]"),
            "[25] are not one number above 0 for each of (a, b)",
        );
        check_ignored(&["a", "b"], &parts("[25,0]"), "[25, 0] are not one number above 0");
        let newer = r#"{"version":2,"columns":[["a"],["b"]],"parts":[25,4]}"#;
        check_ignored(&["a", "b"], newer, "their format has version 2, this engine knows 1");
        check_ignored(&["a", "b"], "{}", "they cannot be read (missing field");
    }

    #[test]
    fn parts_of_a_plan_must_be_those_of_its_columns() {
        let check = |columns: &[&str], parts: &[u32]| {
            Cuts::checked("t", &names(columns), parts).map_err(|error| error.to_string())
        };
        assert_eq!(check(&["a", "b"], &[]), Ok(None));
        assert_eq!(check(&["a", "b"], &[5, 2]), Ok(Some(cuts(&["a", "b"], &[5, 2]))));
        for (columns, parts) in
            [(&["a"][..], &[5][..]), (&["a", "b"], &[5]), (&["a", "b"], &[5, 0])]
        {
            let text = check(columns, parts).unwrap_err();
            let start = format!("cut table `t` by ({}) into {parts:?} parts: ", columns.join(", "));
            assert!(text.starts_with(&start), "{text}");
        }
    }
}
