//! The world `row-filter`: which rows does a compaction keep?

#![no_std]

extern crate alloc;

use alloc::{string::String, vec::Vec};
use core::marker::PhantomData;

use self::bindings::exports::lakebed::policy::{selection, types};
use lakebed_guest_core::{Batch, Install, Plugin, PluginError};

#[doc(hidden)]
pub use lakebed_guest_core::__install;

#[doc(hidden)]
pub mod bindings {
    wit_bindgen::generate!({
        world: "row-filter",
        path: "../../../wit",
        pub_export_macro: true,
        default_bindings_module: "lakebed_guest_row_filter::bindings",
    });
}

/// Filters rows.
pub trait RowFilter: Plugin {
    /// Names the columns that [`RowFilter::select`] needs, in the order it needs them.
    fn columns(&self) -> Vec<String>;

    /// Returns a bitmap of the batch's rows in which a set bit keeps the row and bits after the last
    /// are zero. Must depend on nothing but the row and `now_seconds`. All columns have the batch's
    /// rows.
    ///
    /// # Errors
    /// Returns what keeps the rows from being judged.
    fn select(&self, now_seconds: i64, batch: &Batch) -> Result<Vec<u8>, PluginError>;
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Component<P>(PhantomData<P>);

lakebed_guest_core::__shared!(self::bindings::exports::lakebed::policy);
lakebed_guest_core::__columns!(self::bindings::exports::lakebed::policy::columns);

impl<P: RowFilter + Install> selection::Guest for Component<P> {
    fn columns() -> Vec<String> {
        P::with(|plugin| Ok(plugin.columns())).unwrap_or_default()
    }

    fn select(now_seconds: i64, batch: selection::Batch) -> Result<Vec<u8>, types::PluginError> {
        let batch = Batch {
            rows: batch.rows as usize,
            columns: batch.columns.into_iter().map(Into::into).collect(),
        };
        batch.check()?;
        Ok(P::with(|plugin| plugin.select(now_seconds, &batch))?)
    }
}

/// Makes a [`RowFilter`] the component's row filter.
#[macro_export]
macro_rules! export_row_filter {
    ($plugin:ident) => {
        $crate::__install!($plugin);
        const _: () = {
            type Exported = $crate::Component<$plugin>;
    $crate::bindings::export!(Exported with_types_in $crate::bindings);
        };
    };
}
