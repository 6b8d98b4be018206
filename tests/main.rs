//! Tests that need more than one crate, or none: one binary, one module per subject.

mod tidy;
