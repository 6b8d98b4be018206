//! `score` calls itself without end.
#![no_std]

extern crate alloc;

/// Keeps nothing in memory, so that the engine's own stack is what runs out.
#[inline(never)]
fn deeper(depth: f64) -> f64 {
    if depth < 0.0 { 0.0 } else { deeper(depth + 1.0) * depth + 1.0 }
}

evil::attack!("recurse", |edges| alloc::vec![deeper(edges.frequency[0])]);
