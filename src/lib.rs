//! Regrow runs batch dataflow jobs whose coordinator may die at any moment.
//!
//! A program names its jobs and leaves the rest to the command line:
//! ```no_run
//! use std::{path::PathBuf, process::ExitCode};
//!
//! #[derive(clap::Args, serde::Serialize, serde::Deserialize)]
//! struct WordCount {
//!     #[arg(long)]
//!     input: PathBuf,
//!     #[arg(long)]
//!     output: PathBuf,
//! }
//!
//! fn main() -> ExitCode {
//!     regrow::program()
//!         .job("wordcount", |env, args: WordCount| {
//!             env.read_text(&args.input)
//!                 .flat_map(|line, out| {
//!                     line.split_whitespace().for_each(|word| out.emit(word.to_lowercase()));
//!                 })
//!                 .count_by_key()
//!                 .write_csv(&args.output)
//!         })
//!         .run()
//! }
//! ```
//!
//! Invariants:
//! - A chain of operators is one concrete type: no dynamic call and no allocation per record.
//! - Builders do no input or output, and the same arguments give the same job graph.
//! - Memory of a task is bounded by its grant: what is larger goes to its output or to disk.

mod byte_count;
mod chain;
mod cli;
mod combine;
mod counted_input;
mod csv_record;
mod csv_sink;
mod data_set;
mod emitter;
mod environment;
mod flat_map;
mod job_arguments;
mod jobs;
mod key_counter;
mod nearest;
mod partition_writer;
mod program;
mod program_factory;
mod record;
mod registered_job;
mod sorted_counts;
mod staged_output;
#[cfg(test)]
mod test_context;
mod text_source;
#[cfg(test)]
mod word_count_tests;

pub use chain::{Chain, ChainInput, Consume, DiscoverSplits};
pub use counted_input::CountedInput;
pub use csv_record::{CsvLines, CsvRecord};
pub use data_set::{DataSet, Written};
pub use emitter::Emitter;
pub use environment::Environment;
pub use flat_map::FlatMap;
pub use program::{Program, built_in_program, program};
pub use record::Record;
pub use text_source::TextSource;
