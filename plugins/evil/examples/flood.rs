//! `score` returns far more than there are edges.
#![no_std]

extern crate alloc;

evil::attack!("flood", |_| alloc::vec![0.5; 2_000_000]);
