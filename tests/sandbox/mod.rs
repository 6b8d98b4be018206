//! Hostile and misplaced guests as a user's configuration would name them.

mod configured;
mod pipeline;
