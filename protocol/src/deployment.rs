//! What a worker must know to run one attempt.

use std::{net::SocketAddr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    DataDirectoryId, DataSetId, ExecutionAttemptId, InputId, JobId, PartitionId, PlanId, Split,
};

/// All that a worker needs to run one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDeployment {
    /// What to run.
    pub attempt: ExecutionAttemptId,
    /// The job it belongs to.
    pub job: JobId,
    /// Name under which the program registered the job.
    pub job_name: String,
    /// Arguments of the job, as its builder reads them.
    #[serde(with = "serde_bytes")]
    pub arguments: Vec<u8>,
    /// Hash of the graph that the `JobMaster` schedules; the worker's builder must make the same.
    pub graph_hash: u64,
    /// Number of subtasks of the vertex.
    pub parallelism: u32,
    /// Plan of the vertex.
    pub plan: PlanId,
    /// What it reads, one per input edge, in the order of the edges.
    pub inputs: Vec<InputGate>,
    /// What it produces, one per data set of the vertex.
    pub outputs: Vec<OutputSpec>,
    /// Where its sinks stage their files, one per sink of the vertex.
    pub sinks: Vec<SinkTarget>,
    /// Where its splits come from, for a vertex that has a coordinator.
    pub splits: PinnedSplits,
    /// File to which the attempt appends a line at its start and one at its end.
    pub ledger: Option<String>,
    /// Memory that the attempt may take for sorting, aggregation, joins and outputs.
    pub memory_bytes: u64,
    /// Where data directories that it reads of are served to other hosts; those of its own host it
    /// reads directly. Empty where all directories are on one host.
    #[serde(default)]
    pub locations: Vec<DirectoryLocation>,
}

/// Where a data directory is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryLocation {
    /// Which one.
    pub data_directory: DataDirectoryId,
    /// By whoever listens there.
    pub address: SocketAddr,
}

/// Where an attempt of a source gets its splits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PinnedSplits {
    /// The vertex reads no splits.
    None,
    /// It asks for one after the other.
    OnRequest,
    /// It reads exactly these, because an earlier attempt whose output was lost had read them.
    Exactly(Vec<Split>),
}

/// A half-open range of subpartitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SubpartitionRange {
    /// First.
    pub start: u32,
    /// One after the last; equal to `start` for an empty range.
    pub end: u32,
}

/// One input of an attempt: the same range of subpartitions of several producers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputGate {
    /// The data set it reads.
    pub data_set: DataSetId,
    /// Names what is read, whoever produced it.
    pub input: InputId,
    /// Which subpartitions of each producer.
    pub subpartitions: SubpartitionRange,
    /// The producers, ascending by subtask. Shared among the consumers of an all-to-all edge.
    pub producers: Arc<[ProducerPartition]>,
}

/// A finished partition and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProducerPartition {
    /// Which one.
    pub partition: PartitionId,
    /// The data directory that holds it.
    pub data_directory: DataDirectoryId,
}

/// One output of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSpec {
    /// The data set it produces.
    pub data_set: DataSetId,
    /// Into how many subpartitions it divides its records; at least 1.
    pub subpartitions: u32,
}

/// Where a sink stages its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkTarget {
    /// Index of the sink within its job, from 0.
    pub sink: u32,
    /// The hidden directory of the run beside the output; it exists before the first dispatch, and
    /// a task never makes it.
    pub staging_directory: String,
}
