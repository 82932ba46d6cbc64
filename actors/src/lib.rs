//! The actors: thin shells that translate messages to inputs, store events, and carry out actions.

pub mod launch;
pub mod task;
