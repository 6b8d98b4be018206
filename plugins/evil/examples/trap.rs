//! `score` runs into `unreachable`.
#![no_std]

extern crate alloc;

evil::attack!("trap", |_| core::arch::wasm32::unreachable());
