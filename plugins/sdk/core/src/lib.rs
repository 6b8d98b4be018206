//! What guests of all worlds share: the plugin itself, columns, kernels, and what `std` would have
//! brought with imports. Use it through `lakebed-guest`.
#![cfg_attr(not(test), no_std)]

#[doc(hidden)]
pub extern crate alloc;

mod bits;
mod columns;
mod glue;
pub mod kernels;
mod plugin;
#[cfg(target_arch = "wasm32")]
mod runtime;

pub use bits::Bits;
pub use columns::{Batch, Column, ColumnType, Values, VarBytes};
#[doc(hidden)]
pub use plugin::{Install, Slot};
pub use plugin::{NoSettings, Plugin, PluginError};
