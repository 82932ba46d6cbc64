//! What a program of jobs needs, for `use regrow::prelude::*`.

pub use crate::{
    Accumulator, CancelHandle, Chain, CsvFormat, CsvOptions, DataSet, Emitter, Environment, Job,
    JobResult, JobState, KeyOf, KeyParts, KeyedDataSet, LocalRunner, PartitionFunction, Program,
    Record, RunError, RunUpdate, Sinks, SortKey, Source, SourceError, SourceSplit, SplitProgress,
    SplitReader, TextEmitter, Written,
};
