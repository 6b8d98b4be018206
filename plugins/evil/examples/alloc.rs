//! `score` allocates without end.
#![no_std]

extern crate alloc;

use alloc::vec::Vec;

evil::attack!("alloc", |_| {
    let mut hoard = Vec::new();
    loop {
        hoard.push(core::hint::black_box(Vec::<u8>::with_capacity(1 << 20)));
    }
});
