//! What can be said of a component without running any of it.

use std::sync::Arc;

use crate::{
    NotComponent, Sandbox, SandboxError, World,
    registry::{self, Compiled},
};

/// A component seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// `sha256:` and the digest of the bytes.
    pub digest: String,
    /// The size of the component.
    pub size_bytes: usize,
    /// The worlds whose interface it exports.
    pub worlds: Vec<World>,
    /// Everything it imports; a plugin that is to be admitted imports nothing.
    pub imports: Vec<String>,
    /// Everything it exports.
    pub exports: Vec<String>,
}

impl Sandbox {
    /// Looks at a component: compiles it and reads its types. Imports are no error here.
    ///
    /// # Errors
    /// Returns [`SandboxError::TooLarge`], [`SandboxError::NotComponent`] or
    /// [`SandboxError::Invalid`].
    pub fn inspect(&self, label: &str, wasm: &[u8]) -> Result<Inspection, SandboxError> {
        let (digest, compiled) = self.compile(label, wasm)?;
        Ok(Inspection {
            digest,
            size_bytes: wasm.len(),
            worlds: compiled.worlds.clone(),
            imports: compiled.imports.clone(),
            exports: compiled.exports.clone(),
        })
    }

    pub(crate) fn compile(
        &self,
        label: &str,
        wasm: &[u8],
    ) -> Result<(String, Arc<Compiled>), SandboxError> {
        let limit_bytes = self.limits.component_bytes;
        let plugin = || label.to_owned();
        if wasm.len() > limit_bytes {
            let size_bytes = wasm.len();
            return Err(SandboxError::TooLarge { plugin: plugin(), size_bytes, limit_bytes });
        }
        if let Some(found) = not_component(wasm) {
            return Err(SandboxError::NotComponent { plugin: plugin(), found });
        }
        let digest = registry::digest(wasm);
        match self.host.registry.compiled(&self.host.engine, &digest, wasm) {
            Ok(compiled) => Ok((digest, compiled)),
            Err(error) => {
                Err(SandboxError::Invalid { plugin: plugin(), reason: format!("{error:#}") })
            }
        }
    }
}

/// Tells what bytes are, unless they begin as a component does.
fn not_component(wasm: &[u8]) -> Option<NotComponent> {
    const COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";
    const CORE_MODULE: [u8; 8] = *b"\0asm\x01\0\0\0";
    const ELF: [u8; 4] = *b"\x7fELF";
    if wasm.starts_with(&COMPONENT) {
        None
    } else if wasm.starts_with(&CORE_MODULE) {
        Some(NotComponent::CoreModule)
    } else if wasm.starts_with(&ELF) {
        Some(NotComponent::Precompiled)
    } else if wasm.trim_ascii_start().starts_with(b"(") {
        Some(NotComponent::Text)
    } else {
        Some(NotComponent::Unknown)
    }
}
