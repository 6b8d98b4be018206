//! `score` returns one number too many.
#![no_std]

extern crate alloc;

evil::attack!("long", |edges| alloc::vec![0.5; edges.count() + 1]);
