//! The world `drift-meter`: how far has the workload moved?

#![no_std]

extern crate alloc;

use alloc::{format, vec::Vec};
use core::marker::PhantomData;

use self::bindings::exports::lakebed::policy::{drift, types};
use lakebed_guest_core::{Install, Plugin, PluginError};

#[doc(hidden)]
pub use lakebed_guest_core::__install;

#[doc(hidden)]
pub mod bindings {
    wit_bindgen::generate!({
        world: "drift-meter",
        path: "../../../wit",
        pub_export_macro: true,
        default_bindings_module: "lakebed_guest_drift_meter::bindings",
    });
}

/// A distance and what each edge adds to it.
pub use self::drift::Reading;

/// Measures the drift between two windows.
pub trait DriftMeter: Plugin {
    /// Compares the scores of two windows over the union of their edges, 0 where one lacks an edge.
    /// The slices have one length.
    ///
    /// # Errors
    /// Returns what keeps the windows from being compared.
    fn measure(&self, before: &[f64], after: &[f64]) -> Result<Reading, PluginError>;
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Component<P>(PhantomData<P>);

lakebed_guest_core::__shared!(self::bindings::exports::lakebed::policy);

impl<P: DriftMeter + Install> drift::Guest for Component<P> {
    fn measure(before: Vec<f64>, after: Vec<f64>) -> Result<Reading, types::PluginError> {
        if before.len() != after.len() {
            return Err(PluginError::InvalidInput(format!(
                "`after` has {} entries, expected {} as in `before`",
                after.len(),
                before.len()
            ))
            .into());
        }
        Ok(P::with(|plugin| plugin.measure(&before, &after))?)
    }
}

/// Makes a [`DriftMeter`] the component's drift meter.
#[macro_export]
macro_rules! export_drift_meter {
    ($plugin:ident) => {
        $crate::__install!($plugin);
        const _: () = {
            type Exported = $crate::Component<$plugin>;
    $crate::bindings::export!(Exported with_types_in $crate::bindings);
        };
    };
}
