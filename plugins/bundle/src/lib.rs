//! The guests of `plugins/`, compiled and embedded.
//!
//! The host loads them as it loads a user's: as bytes of a component, through the sandbox. Nothing
//! here runs them. Under clippy both lists are empty.

include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// A compiled guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guest {
    /// The name of its folder, for example `scorer-ajlo-jis`; of an attack, the name of its file or folder.
    pub name: &'static str,
    /// The world it exports, for example `scorer`.
    pub world: &'static str,
    /// The component.
    pub wasm: &'static [u8],
}

/// Returns the guests that Lakebed ships, sorted by name.
#[must_use]
pub fn guests() -> &'static [Guest] {
    SHIPPED
}

/// Returns the hostile guests, for tests of the sandbox.
#[must_use]
pub fn evil() -> &'static [Guest] {
    EVIL
}

/// Returns the shipped guest of a name.
#[must_use]
pub fn guest(name: &str) -> Option<&'static Guest> {
    SHIPPED.iter().find(|guest| guest.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{evil, guest, guests};

    #[test]
    fn every_world_has_a_shipped_guest_whose_name_begins_with_it() {
        let worlds: BTreeSet<&str> = guests().iter().map(|guest| guest.world).collect();
        let expected = ["aggregator", "cost-model", "drift-meter", "row-filter", "scorer"];
        assert_eq!(worlds, BTreeSet::from(expected));
        for guest in guests() {
            assert!(guest.name.starts_with(guest.world), "{}", guest.name);
        }
    }

    #[test]
    fn every_guest_is_a_component_without_paths_of_the_machine_that_built_it() {
        let home = env!("CARGO_MANIFEST_DIR").as_bytes();
        for guest in guests().iter().chain(evil()) {
            assert_eq!(guest.wasm[..8], *b"\0asm\x0d\0\x01\0", "{}", guest.name);
            let folder = &home[..home.len() - "/bundle".len()];
            let mentions = guest.wasm.windows(folder.len()).any(|window| window == folder);
            assert!(!mentions, "{} names {}", guest.name, env!("CARGO_MANIFEST_DIR"));
        }
    }

    #[test]
    fn guest_is_found_by_name_and_an_attack_is_not_shipped() {
        assert_eq!(guest("scorer-ajlo-jis").map(|guest| guest.world), Some("scorer"));
        assert_eq!(guest("trap"), None);
    }
}
