//! A scorer built with `std`, which reads the clock: its component asks the host for WASI.
#![expect(unreachable_pub, reason = "the export macro leaves a public static in a private place")]

use std::time::SystemTime;

use self::bindings::exports::lakebed::policy::{metadata, scoring, types::PluginError};

#[doc(hidden)]
pub mod bindings {
    wit_bindgen::generate!({
        world: "scorer",
        path: "../../../wit",
        pub_export_macro: true,
    });
}

struct Clocked;

impl metadata::Guest for Clocked {
    fn describe() -> metadata::Description {
        metadata::Description { name: "wasi".into(), version: "0.1.0".into(), doc: String::new() }
    }

    fn configure(_: String) -> Result<(), PluginError> {
        Ok(())
    }
}

impl scoring::Guest for Clocked {
    #[expect(clippy::disallowed_methods, reason = "it is what the guest is refused for")]
    fn score(edges: scoring::EdgeColumns) -> Result<Vec<f64>, PluginError> {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_err(|error| PluginError::Internal(error.to_string()))?;
        Ok(vec![now.as_secs_f64(); edges.frequency.len()])
    }
}

bindings::export!(Clocked with_types_in bindings);
