//! The world `cost-model`: is a rewrite worth it?

#![no_std]

extern crate alloc;

use alloc::{format, vec::Vec};
use core::marker::PhantomData;

use self::bindings::exports::lakebed::policy::{pricing, types};
use lakebed_guest_core::{Install, Plugin, PluginError};

#[doc(hidden)]
pub use lakebed_guest_core::__install;

#[doc(hidden)]
pub mod bindings {
    wit_bindgen::generate!({
        world: "cost-model",
        path: "../../../wit",
        pub_export_macro: true,
        default_bindings_module: "lakebed_guest_cost_model::bindings",
    });
}

/// Candidates in bytes, one entry per candidate in each list; and what their value depends on.
pub use self::pricing::{CandidateColumns as Candidates, Settings};

impl Candidates {
    /// Returns the number of candidates.
    #[must_use]
    pub fn count(&self) -> usize {
        self.saves_bytes_per_window.len()
    }

    fn check(&self) -> Result<(), PluginError> {
        let expected = self.count();
        let lists = [
            ("rewrite-bytes", self.rewrite_bytes.len()),
            ("storage-bytes", self.storage_bytes.len()),
        ];
        match lists.into_iter().find(|(_, length)| *length != expected) {
            None => Ok(()),
            Some((name, length)) => Err(PluginError::InvalidInput(format!(
                "list `{name}` has {length} entries, expected {expected} as in `saves-bytes-per-window`"
            ))),
        }
    }
}

/// Prices layout candidates.
pub trait CostModel: Plugin {
    /// Returns one finite net present value per candidate, in bytes and in their order. The lists
    /// have one length.
    ///
    /// # Errors
    /// Returns what keeps the candidates from being priced.
    fn net_present_values(
        &self,
        candidates: &Candidates,
        settings: Settings,
    ) -> Result<Vec<f64>, PluginError>;
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Component<P>(PhantomData<P>);

lakebed_guest_core::__shared!(self::bindings::exports::lakebed::policy);

impl<P: CostModel + Install> pricing::Guest for Component<P> {
    fn net_present_value(
        candidates: Candidates,
        settings: Settings,
    ) -> Result<Vec<f64>, types::PluginError> {
        candidates.check()?;
        Ok(P::with(|plugin| plugin.net_present_values(&candidates, settings))?)
    }
}

/// Makes a [`CostModel`] the component's cost model.
#[macro_export]
macro_rules! export_cost_model {
    ($plugin:ident) => {
        $crate::__install!($plugin);
        const _: () = {
            type Exported = $crate::Component<$plugin>;
    $crate::bindings::export!(Exported with_types_in $crate::bindings);
        };
    };
}
