//! Scores depend on how often the instance was called.
#![no_std]

extern crate alloc;

use core::sync::atomic::{AtomicU32, Ordering};

static CALLS: AtomicU32 = AtomicU32::new(0);

evil::attack!("counter", |edges| {
    let calls = CALLS.fetch_add(1, Ordering::Relaxed);
    alloc::vec![f64::from(calls); edges.count()]
});
