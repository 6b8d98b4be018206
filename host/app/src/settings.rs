//! The table `[settings]` of `lakebed.toml`: names and values as `SET` takes them.

use std::{fmt, ops::Range};

use lakebed_layout::{ClusteringSettings, LayoutError};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use toml::Spanned;

/// `[settings]`: names, quoted or as dotted keys, with a string, a number or a truth value each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SettingsSection {
    /// What clustering goes by.
    pub clustering: ClusteringSettings,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    name: String,
    value: String,
    name_at: Range<usize>,
    value_at: Range<usize>,
}

/// A setting that cannot be used, and where in the text it stands.
#[derive(Debug)]
pub(crate) struct RefusedSetting {
    pub(crate) at: usize,
    pub(crate) nearest: Option<String>,
    pub(crate) message: String,
}

impl SettingsSection {
    /// Sets what is written.
    pub(crate) fn evaluate(&mut self) -> Result<(), RefusedSetting> {
        for entry in &self.entries {
            let refused = |error: LayoutError| {
                let message = error.to_string();
                match error {
                    LayoutError::UnknownSetting { nearest, .. } => {
                        RefusedSetting { at: entry.name_at.start, nearest: Some(nearest), message }
                    }
                    _ => RefusedSetting { at: entry.value_at.start, nearest: None, message },
                }
            };
            self.clustering.set(&entry.name, &entry.value).map_err(refused)?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for SettingsSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut section = Self::default();
        if let Node::Table(children) = Node::deserialize(deserializer)? {
            flatten("", children, &mut section.entries);
        }
        Ok(section)
    }
}

/// A value, or what lies under the first part of dotted keys.
pub(crate) enum Node {
    Value(String),
    Table(Vec<(Spanned<String>, Spanned<Self>)>),
}

/// Dotted keys are nested tables to TOML.
fn flatten(prefix: &str, children: Vec<(Spanned<String>, Spanned<Node>)>, out: &mut Vec<Entry>) {
    for (key, child) in children {
        let (name_at, value_at) = (key.span(), child.span());
        let name = format!("{prefix}{}", key.get_ref());
        match child.into_inner() {
            Node::Value(value) => out.push(Entry { name, value, name_at, value_at }),
            Node::Table(children) => flatten(&format!("{name}."), children, out),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number, true or false")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Value(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Value(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Value(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Value(value.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut children = Vec::new();
        while let Some(key) = map.next_key()? {
            children.push((key, map.next_value()?));
        }
        Ok(Node::Table(children))
    }
}
