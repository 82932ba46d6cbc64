//! The actors: thin shells that translate messages to inputs, store events, and carry out actions.

pub mod gateway;
pub mod launch;
pub mod task;
pub mod watch;
