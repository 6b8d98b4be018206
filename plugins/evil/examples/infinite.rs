//! The first score is infinite.
#![no_std]

extern crate alloc;

evil::attack!("infinite", |edges| {
    let mut scores = alloc::vec![0.5; edges.count()];
    scores[0] = f64::NEG_INFINITY;
    scores
});
