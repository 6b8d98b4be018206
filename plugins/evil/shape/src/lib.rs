//! A component with the names of a scorer's exports, whose `score` has another type.
#![no_std]
#![expect(unreachable_pub, reason = "the export macro leaves a public static in a private place")]

extern crate alloc;

use alloc::{string::String, vec::Vec};

// Brings the allocator.
use lakebed_guest_core as _;

use self::bindings::exports::lakebed::policy::{metadata, scoring, types::PluginError};

#[doc(hidden)]
pub mod bindings {
    wit_bindgen::generate!({
        inline: "
            package lakebed:policy@0.1.0;
            interface types {
                variant plugin-error {
                    invalid-config(string),
                    invalid-input(string),
                    unsupported(string),
                    internal(string),
                }
            }
            interface metadata {
                use types.{plugin-error};
                record description { name: string, version: string, doc: string }
                describe: func() -> description;
                configure: func(config: string) -> result<_, plugin-error>;
            }
            interface scoring {
                score: func(frequency: list<f64>) -> list<f64>;
            }
            world scorer {
                export types;
                export metadata;
                export scoring;
            }
        ",
        pub_export_macro: true,
    });
}

struct Misshapen;

impl metadata::Guest for Misshapen {
    fn describe() -> metadata::Description {
        metadata::Description { name: "shape".into(), version: "0.1.0".into(), doc: String::new() }
    }

    fn configure(_: String) -> Result<(), PluginError> {
        Ok(())
    }
}

impl scoring::Guest for Misshapen {
    fn score(frequency: Vec<f64>) -> Vec<f64> {
        frequency
    }
}

bindings::export!(Misshapen with_types_in bindings);
