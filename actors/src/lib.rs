//! The actors: thin shells that translate messages to inputs, store events, and carry out actions.

mod actor_thread;
pub mod archive;
pub mod cluster;
mod dispatcher;
mod durable_file;
mod effects;
mod event_writer;
pub mod gateway;
mod hand_over;
mod job_master;
pub mod launch;
mod ledger;
mod net;
mod operator_coordinator;
mod output;
mod panic_watch;
mod random_bits;
pub mod recovery_reports;
mod refusals;
mod resource_manager;
mod run_directory;
pub mod runner;
mod shuffle_service;
mod store_runner;
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
