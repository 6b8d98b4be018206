//! The world `scorer`: which joins matter most.

#![no_std]

extern crate alloc;

use alloc::{format, vec::Vec};
use core::marker::PhantomData;

use self::bindings::exports::lakebed::policy::{scoring, types};
use lakebed_guest_core::{Install, Plugin, PluginError};

#[doc(hidden)]
pub use lakebed_guest_core::__install;

#[doc(hidden)]
pub mod bindings {
    wit_bindgen::generate!({
        world: "scorer",
        path: "../../../wit",
        pub_export_macro: true,
        default_bindings_module: "lakebed_guest_scorer::bindings",
    });
}

/// Raw statistics of every edge of one window, one entry per edge in each list.
pub use self::scoring::EdgeColumns as Edges;

impl Edges {
    /// Returns the number of edges.
    #[must_use]
    pub fn count(&self) -> usize {
        self.frequency.len()
    }

    fn check(&self) -> Result<(), PluginError> {
        let expected = self.count();
        let lists = [
            ("rows-product-mean", self.rows_product_mean.len()),
            ("cost-ms-mean", self.cost_ms_mean.len()),
            ("bytes-mean", self.bytes_mean.len()),
            ("confidence", self.confidence.len()),
        ];
        match lists.into_iter().find(|(_, length)| *length != expected) {
            None => Ok(()),
            Some((name, length)) => Err(PluginError::InvalidInput(format!(
                "list `{name}` has {length} entries, expected {expected} as in `frequency`"
            ))),
        }
    }
}

/// Scores the edges of a join graph.
pub trait Scorer: Plugin {
    /// Returns one finite score per edge, in the order of the edges; higher is more important. The
    /// lists have one length.
    ///
    /// # Errors
    /// Returns what keeps the edges from being scored.
    fn score(&self, edges: &Edges) -> Result<Vec<f64>, PluginError>;
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Component<P>(PhantomData<P>);

lakebed_guest_core::__shared!(self::bindings::exports::lakebed::policy);

impl<P: Scorer + Install> scoring::Guest for Component<P> {
    fn score(edges: Edges) -> Result<Vec<f64>, types::PluginError> {
        edges.check()?;
        Ok(P::with(|plugin| plugin.score(&edges))?)
    }
}

/// Makes a [`Scorer`] the component's scorer.
#[macro_export]
macro_rules! export_scorer {
    ($plugin:ident) => {
        $crate::__install!($plugin);
        const _: () = {
            type Exported = $crate::Component<$plugin>;
    $crate::bindings::export!(Exported with_types_in $crate::bindings);
        };
    };
}
