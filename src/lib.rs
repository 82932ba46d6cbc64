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

mod accumulators;
mod aggregation;
mod byte_count;
mod cancel_check;
mod chain;
mod cli;
mod collect;
mod data_set;
mod environment;
mod exchange;
mod job;
mod job_arguments;
mod job_result;
mod jobs;
mod join;
mod key_table;
mod keyed_data_set;
mod local_runner;
mod nearest;
mod operators;
pub mod prelude;
mod program;
mod program_factory;
mod record;
mod registered_job;
mod run_error;
mod run_request;
mod sinks;
mod sort;
mod sources;
mod spill;
mod split_mix;
#[cfg(test)]
mod test_context;
#[cfg(test)]
mod test_job;
#[cfg(test)]
mod word_count_tests;

pub use accumulators::{Accumulator, Accumulators, ResultError};
pub use aggregation::{KeyOf, Number};
pub use chain::{Chain, ChainStart, Consume, DiscoverSplits};
pub use collect::COLLECTED_BYTES_MAX;
pub use data_set::DataSet;
pub use environment::Environment;
pub use job::Job;
pub use job_result::JobResult;
pub use join::{Inner, Join, JoinOn, LeftOuter};
pub use keyed_data_set::KeyedDataSet;
pub use local_runner::{LocalRunner, local};
pub use operators::{Emitter, PartitionFunction, TextEmitter};
pub use program::{Program, built_in_program, program};
pub use record::{Record, RecordError};
pub use regrow_actors::launch::{CancelHandle, LaunchError, RunUpdate};
pub use regrow_protocol::{ACCUMULATOR_BYTES_MAX, JobId, RunId};
pub use regrow_runtime::{Determinacy, JobState, JobStatus, RecoveryReport, VertexStatus};
pub use run_error::RunError;
pub use sinks::{CsvOptions, Sinks, Written};
pub use sort::{KeyParts, SortKey};
pub use sources::{
    CsvFormat, CsvSource, Listing, RecordSource, Source, SourceError, SourceSplit, SplitProgress,
    SplitReader, TextSource,
};

/// Compiles and runs what the guide and the README show.
#[cfg(doctest)]
mod shown {
    #[doc = include_str!("../docs/guide.md")]
    struct Guide;
    #[doc = include_str!("../README.md")]
    struct Readme;
}
