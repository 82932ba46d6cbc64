//! The actors: thin shells that translate messages to inputs, store events, and carry out actions.

pub mod archive;
pub mod dispatcher;
mod durable_file;
pub mod effects;
mod error_text;
pub mod event_writer;
pub mod gateway;
pub mod job_master;
pub mod launch;
pub mod ledger;
pub mod operator_coordinator;
pub mod output;
mod panic_watch;
pub mod recovery_reports;
pub mod resource_manager;
mod run_directory;
pub mod runner;
pub mod shuffle_service;
pub mod store_runner;
pub mod task;
mod task_context;
pub mod task_executor;
mod user_code;
pub mod watch;
pub mod worker;

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod test_program;
