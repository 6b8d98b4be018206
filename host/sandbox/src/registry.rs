//! Compiled components by the digest of their bytes.
//!
//! The digest is the identity: two plugins of one name and version with other bytes are two entries,
//! and the same bytes under two names, or for two tenants, are compiled once. Compiled code has no state.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError},
};

use sha2::{Digest, Sha256};
use wasmtime::{Engine, component::Component};

use crate::{World, linker};

/// A compiled component and what is known of it without running it.
pub(crate) struct Compiled {
    pub(crate) component: Component,
    pub(crate) imports: Vec<String>,
    pub(crate) exports: Vec<String>,
    pub(crate) worlds: Vec<World>,
}

/// The components compiled last.
pub(crate) struct Registry {
    capacity: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_digest: BTreeMap<String, Entry>,
    uses: u64,
}

struct Entry {
    compiled: Arc<Compiled>,
    last_use: u64,
}

impl Registry {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, entries: Mutex::default() }
    }

    /// Returns the compiled component of these bytes, which it compiles if it is new.
    pub(crate) fn compiled(
        &self,
        engine: &Engine,
        digest: &str,
        wasm: &[u8],
    ) -> wasmtime::Result<Arc<Compiled>> {
        if let Some(known) = self.find(digest) {
            return Ok(known);
        }
        // Not under the lock: one tenant's large component does not hold up another's admission.
        let component = Component::from_binary(engine, wasm)?;
        let exports = linker::exports(engine, &component);
        let compiled = Arc::new(Compiled {
            imports: linker::imports(engine, &component),
            worlds: World::of_exports(&exports),
            exports,
            component,
        });
        self.keep(digest, &compiled);
        Ok(compiled)
    }

    fn find(&self, digest: &str) -> Option<Arc<Compiled>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.uses += 1;
        let uses = entries.uses;
        let entry = entries.by_digest.get_mut(digest)?;
        entry.last_use = uses;
        Some(Arc::clone(&entry.compiled))
    }

    /// Keeps a component, and lets go of the one that was not used for longest. Plugins admitted from
    /// it keep their own reference.
    fn keep(&self, digest: &str, compiled: &Arc<Compiled>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let last_use = entries.uses;
        let entry = Entry { compiled: Arc::clone(compiled), last_use };
        entries.by_digest.insert(digest.to_owned(), entry);
        while entries.by_digest.len() > self.capacity {
            let oldest = entries.by_digest.iter().min_by_key(|(_, entry)| entry.last_use);
            let Some(digest) = oldest.map(|(digest, _)| digest.clone()) else { break };
            entries.by_digest.remove(&digest);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).by_digest.len()
    }
}

/// Returns `sha256:` and the hexadecimal digest of the bytes.
pub(crate) fn digest(wasm: &[u8]) -> String {
    let mut text = String::from("sha256:");
    for byte in Sha256::digest(wasm) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn digest_is_that_of_the_standard_for_abc() {
        let expected = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(b"abc"), expected);
    }
}
