//! Reproducible experiments: each drives the same pipeline a user does.

pub mod demo;
pub mod replay;
pub mod tpch;
