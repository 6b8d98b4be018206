//! `score` never returns.
#![no_std]

extern crate alloc;

use core::hint::black_box;

evil::attack!("spin", |edges| {
    let mut rounds = edges.count();
    while black_box(rounds) != usize::MAX {
        rounds = black_box(rounds) / 2;
    }
    alloc::vec![]
});
