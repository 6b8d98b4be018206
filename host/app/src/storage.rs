//! The table `[storage]` of `lakebed.toml`: options of object stores, of all or of single buckets.

use std::ops::Range;

use lakebed_lake::{OptionRefusal, StoreOptions};
use serde::{Deserialize, Deserializer};

use crate::settings::{Node, RefusedSetting};

/// First parts of variables of the environment that are options, as the clouds' own tools read them.
const VARIABLES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// `[storage]`: options by name, and tables of options by bucket.
#[derive(Debug, Clone, Default)]
pub struct StorageSection {
    entries: Vec<Entry>,
}

#[derive(Clone)]
struct Entry {
    place: Option<(String, Range<usize>)>,
    name: String,
    name_at: Range<usize>,
    value: String,
}

/// Values may be secrets.
impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

impl StorageSection {
    /// Checks the options that are written.
    pub(crate) fn check(&self) -> Result<(), RefusedSetting> {
        self.set_in(&mut StoreOptions::default())
    }

    /// Joins what is written with variables of the environment: what is written wins.
    #[must_use]
    pub fn options(&self, variables: impl Iterator<Item = (String, String)>) -> StoreOptions {
        let mut options = StoreOptions::default();
        let mut named: Vec<(String, String)> = variables
            .filter(|(name, value)| {
                VARIABLES.iter().any(|start| name.starts_with(start)) && !value.is_empty()
            })
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .filter(|(name, _)| StoreOptions::is_known(name))
            .collect();
        named.sort();
        for (name, value) in named {
            // What is known is not refused.
            let _ = options.set(None, &name, &value);
        }
        // Checked when the file was read.
        let _ = self.set_in(&mut options);
        options
    }

    fn set_in(&self, options: &mut StoreOptions) -> Result<(), RefusedSetting> {
        for entry in &self.entries {
            let place = entry.place.as_ref().map(|(place, _)| place.as_str());
            options.set(place, &entry.name, &entry.value).map_err(|refusal| {
                let message = refusal.to_string();
                let name = &entry.name;
                match (refusal, &entry.place) {
                    (OptionRefusal::Place, Some((place, at))) => RefusedSetting {
                        at: at.start,
                        nearest: None,
                        message: format!("use options for `{place}`: {message}"),
                    },
                    (OptionRefusal::Unknown { known }, _) => RefusedSetting {
                        at: entry.name_at.start,
                        nearest: nearest(name, known),
                        message: format!("set `{name}`: {message}"),
                    },
                    (OptionRefusal::Place, None) => {
                        RefusedSetting { at: entry.name_at.start, nearest: None, message }
                    }
                }
            })?;
        }
        Ok(())
    }
}

fn nearest(name: &str, known: &[&str]) -> Option<String> {
    let distances = known.iter().map(|known| (strsim::damerau_levenshtein(name, known), *known));
    let (distance, nearest) = distances.min()?;
    (distance <= nearest.len() / 2).then(|| nearest.to_owned())
}

impl<'de> Deserialize<'de> for StorageSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut section = Self::default();
        let Node::Table(children) = Node::deserialize(deserializer)? else { return Ok(section) };
        for (key, child) in children {
            let (name, name_at) = (key.get_ref().clone(), key.span());
            match child.into_inner() {
                Node::Value(value) => {
                    section.entries.push(Entry { place: None, name, name_at, value });
                }
                Node::Table(options) => {
                    for (option, value) in options {
                        let place = Some((name.clone(), name_at.clone()));
                        let (name, name_at) = (option.get_ref().clone(), option.span());
                        // A table deeper down is no option; its name is refused as one.
                        let value = match value.into_inner() {
                            Node::Value(value) => value,
                            Node::Table(_) => String::new(),
                        };
                        section.entries.push(Entry { place, name, name_at, value });
                    }
                }
            }
        }
        Ok(section)
    }
}
