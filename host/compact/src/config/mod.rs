//! What a user may ask for, and its string form.

mod steps;
mod string;
mod syntax_error;

pub use steps::{ChainConfig, ColumnFold, FilterSpec, Fold, NullRule, Step};
pub use string::parse_string_form;
pub use syntax_error::SyntaxError;
