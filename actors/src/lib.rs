//! The actors: thin shells that translate messages to inputs, store events, and carry out actions.

pub mod effects;
mod error_text;
pub mod gateway;
pub mod launch;
pub mod output;
pub mod task;
pub mod watch;
