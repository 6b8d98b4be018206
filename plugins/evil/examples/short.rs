//! `score` returns one number too few.
#![no_std]

extern crate alloc;

evil::attack!("short", |edges| alloc::vec![0.5; edges.count() - 1]);
