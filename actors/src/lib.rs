//! The actors: thin shells that translate messages to inputs, store events, and carry out actions.

pub mod effects;
mod error_text;
pub mod gateway;
pub mod launch;
pub mod ledger;
pub mod output;
pub mod runner;
pub mod shuffle_service;
pub mod task;
mod task_context;
pub mod task_executor;
mod user_code;
pub mod watch;
pub mod worker;

#[cfg(test)]
mod simulated;
