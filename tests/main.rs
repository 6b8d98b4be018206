//! Tests that need more than one crate, or none: one binary, one module per subject.
//!
//! `cfg(test)` holds anyway; it tells clippy that helpers may unwrap as tests may.

#[cfg(test)]
mod cli;
#[cfg(test)]
mod compact;
#[cfg(test)]
mod flow;
#[cfg(test)]
mod layout;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod storage;
#[cfg(test)]
mod support;
mod tidy;
