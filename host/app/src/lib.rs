//! Lakebed lays out Delta lakes by what their queries really do.
//!
//! This crate is wiring and faces: [`pipeline`] is the whole program in one function, [`plugged`]
//! lets sandboxed guests stand in for the stages' formulas, [`cli`] and [`view`] are what people and
//! scripts see. No algorithm lives here.
//!
//! Span: one per stage, named as its crate.

pub mod catalog;
pub mod cli;
pub mod config;
pub mod error;
pub mod experiment;
pub mod logs;
pub mod pipeline;
pub mod plugged;
pub mod progress;
pub mod records;
pub mod settings;
pub mod storage;
pub mod view;
pub mod watch;
