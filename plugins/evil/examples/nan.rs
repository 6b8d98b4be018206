//! The last score is not a number.
#![no_std]

extern crate alloc;

evil::attack!("nan", |edges| {
    let mut scores = alloc::vec![0.5; edges.count()];
    scores[edges.count() - 1] = f64::NAN;
    scores
});
