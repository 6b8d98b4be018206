//! What the command says to bad input, in full, and with which exit code.

mod configuration;
mod experiment;
mod logs;
mod statements;
mod usage;
