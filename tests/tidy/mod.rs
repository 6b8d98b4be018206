//! The rules of the house that a person forgets and a compiler does not know.
//!
//! Each rule is a function of text, tried on made-up text that breaks it, and one test that holds
//! it against the project. A failure names file and line and says what to do. Nothing here runs a
//! stage, and nothing here knows git: what lies in the folders is what is checked.

mod documents;
mod edges;
mod machine_paths;
mod manifest;
mod report;
mod source;
mod tree;
mod wit_lock;
mod words;
mod worlds;
