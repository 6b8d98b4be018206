//! From bytes to a plugin that can be called.

use std::{fmt, sync::Arc};

use crate::{
    CallLimits, Sandbox, SandboxError, World,
    engine::Host,
    front::{Description, Prepared},
    limits::{DOC_BYTES, NAME_BYTES, VERSION_BYTES},
    linker,
};

/// An admitted plugin. Cheap to clone; clones are the same plugin.
#[derive(Clone)]
pub struct Plugin(Arc<Inner>);

struct Inner {
    host: Arc<Host>,
    limits: CallLimits,
    label: Arc<str>,
    world: World,
    description: Description,
    digest: String,
    config: String,
    prepared: Prepared,
}

impl Sandbox {
    /// Admits the bytes of a component as a plugin of a world, under a label that errors name it by.
    /// `config` is the plugin's configuration, a JSON object.
    ///
    /// The checks, in this order: size; that it is a component; that it compiles; that it imports
    /// nothing; that it exports the world; that `describe` answers within its limits; that `configure`
    /// accepts the configuration.
    ///
    /// # Errors
    /// Returns what the plugin failed at.
    pub fn admit(
        &self,
        world: World,
        label: &str,
        wasm: &[u8],
        config: &str,
    ) -> Result<Plugin, SandboxError> {
        let (digest, compiled) = self.compile(label, wasm)?;
        let plugin = || label.to_owned();
        if !compiled.imports.is_empty() {
            return Err(SandboxError::Imports {
                plugin: plugin(),
                imports: compiled.imports.clone(),
            });
        }
        if !compiled.worlds.contains(&world) {
            return Err(SandboxError::WrongWorld {
                plugin: plugin(),
                wanted: world,
                found: compiled.worlds.clone(),
                exports: compiled.exports.clone(),
            });
        }
        if config.len() > self.limits.config_bytes {
            return Err(SandboxError::ConfigTooLong {
                plugin: plugin(),
                size_bytes: config.len(),
                limit_bytes: self.limits.config_bytes,
            });
        }
        let prepared = linker::link(&self.host.engine, &compiled.component)
            .and_then(|linked| Prepared::new(world, linked))
            .map_err(|error| SandboxError::WrongShape {
                plugin: plugin(),
                world,
                reason: format!("{error:#}"),
            })?;
        let label: Arc<str> = label.into();
        let description = prepared.try_out(&self.host, &label, self.limits, config)?;
        check_description(&label, &description)?;
        tracing::debug!(plugin = %label, %world, %digest, size_bytes = wasm.len(), "plugin admitted");
        Ok(Plugin(Arc::new(Inner {
            host: Arc::clone(&self.host),
            limits: self.limits,
            label,
            world,
            description,
            digest,
            config: config.to_owned(),
            prepared,
        })))
    }
}

impl Plugin {
    /// Returns the name that the plugin gives itself.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.description.name
    }

    /// Returns the version that the plugin gives itself.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.0.description.version
    }

    /// Returns what the plugin says about itself.
    #[must_use]
    pub fn doc(&self) -> &str {
        &self.0.description.doc
    }

    /// Returns `sha256:` and the digest of the component.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.0.digest
    }

    /// Returns the world that the plugin was admitted for.
    #[must_use]
    pub fn world(&self) -> World {
        self.0.world
    }

    /// Returns the label that errors name the plugin by.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.0.label
    }

    /// Returns the configuration that each of its instances gets.
    #[must_use]
    pub fn config(&self) -> &str {
        &self.0.config
    }

    pub(crate) fn prepared(&self) -> &Prepared {
        &self.0.prepared
    }

    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.0.host
    }

    pub(crate) fn shared_label(&self) -> &Arc<str> {
        &self.0.label
    }

    pub(crate) fn limits(&self) -> CallLimits {
        self.0.limits
    }

    /// Says that the plugin was admitted for another world than a call is of.
    pub(crate) fn of_other_world(&self, wanted: World) -> SandboxError {
        SandboxError::WrongWorld {
            plugin: self.label().into(),
            wanted,
            found: vec![self.world()],
            exports: Vec::new(),
        }
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("label", &self.0.label)
            .field("world", &self.0.world)
            .field("name", &self.name())
            .field("version", &self.version())
            .field("digest", &self.0.digest)
            .field("config", &self.0.config)
            .finish_non_exhaustive()
    }
}

/// Checks what `wit/types.wit` asks of a description, so that it can be printed and logged as it is.
fn check_description(label: &str, description: &Description) -> Result<(), SandboxError> {
    let refuse = |field: &'static str, reason: String| {
        Err(SandboxError::Description { plugin: label.into(), field, reason })
    };
    let length = |text: &str, least: usize, most: usize| {
        if (least..=most).contains(&text.len()) {
            None
        } else {
            Some(format!("has {} bytes, expected {least} to {most}", text.len()))
        }
    };
    let Description { name, version, doc } = description;
    if let Some(reason) = length(name, 1, NAME_BYTES) {
        return refuse("name", reason);
    }
    if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        return refuse("name", "has other characters than a-z, 0-9 and `-`".into());
    }
    if let Some(reason) = length(version, 1, VERSION_BYTES) {
        return refuse("version", reason);
    }
    if !version.bytes().all(|b| b.is_ascii_alphanumeric() || b".-+".contains(&b)) {
        return refuse(
            "version",
            "has other characters than letters, digits, `.`, `-` and `+`".into(),
        );
    }
    if let Some(reason) = length(doc, 0, DOC_BYTES) {
        return refuse("documentation", reason);
    }
    if doc.chars().any(|c| c.is_control() && c != '\n') {
        return refuse("documentation", "has control characters".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_description;
    use crate::front::Description;

    #[track_caller]
    fn check(name: &str, version: &str, doc: &str, expected: Option<&str>) {
        let description =
            Description { name: name.into(), version: version.into(), doc: doc.into() };
        let found = check_description("p", &description).err().map(|error| error.to_string());
        let expected = expected.map(|text| format!("admit plugin `p`: the {text}"));
        assert_eq!(found, expected);
    }

    #[test]
    fn description_is_refused_when_it_cannot_be_printed_safely() {
        check("ajlo-jis", "0.1.0+x", "Two\nlines.", None);
        check("", "1", "", Some("name it gives itself has 0 bytes, expected 1 to 64"));
        let characters = "name it gives itself has other characters than a-z, 0-9 and `-`";
        check("Ajlo", "1", "", Some(characters));
        let characters =
            "version it gives itself has other characters than letters, digits, `.`, `-` and `+`";
        check("a", "1 2", "", Some(characters));
        check("a", "1", "\u{1b}[2J", Some("documentation it gives itself has control characters"));
        let long = "x".repeat(4097);
        let expected = "documentation it gives itself has 4097 bytes, expected 0 to 4096";
        check("a", "1", &long, Some(expected));
    }
}
