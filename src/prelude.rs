//! What a program of jobs needs, for `use regrow::prelude::*`.

pub use crate::{
    Accumulator, CancelHandle, Chain, CsvOptions, DataSet, Emitter, Environment, Job, JobResult,
    JobState, PartitionFunction, Program, Record, RunError, Sinks, TextEmitter, Written,
};
