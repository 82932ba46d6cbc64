//! Ids of what a job consists of and of what runs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Epoch, RunId};

/// Index of a vertex (a stage) in its job graph, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobVertexId(pub u32);

/// Index of an intermediate data set in its job graph, from 0: one output of one vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DataSetId(pub u32);

/// One parallel subtask of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExecutionVertexId {
    /// Its vertex.
    pub vertex: JobVertexId,
    /// 0-based.
    pub subtask: u32,
}

/// One try at running one subtask. Never used twice, also when the tail of the log was lost,
/// because it holds the epoch that dispatched it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExecutionAttemptId {
    /// The run it belongs to.
    pub run: RunId,
    /// Its vertex.
    pub vertex: JobVertexId,
    /// 0-based.
    pub subtask: u32,
    /// The life of the `JobMaster` that dispatched it.
    pub epoch: Epoch,
    /// 0 for the first try of the subtask, growing over all epochs.
    pub number: u32,
}

impl ExecutionAttemptId {
    /// What it tries to run.
    pub const fn execution_vertex(&self) -> ExecutionVertexId {
        ExecutionVertexId { vertex: self.vertex, subtask: self.subtask }
    }
}

/// The output of one attempt for one data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartitionId {
    /// Who produced it.
    pub attempt: ExecutionAttemptId,
    /// For which data set.
    pub data_set: DataSetId,
}

/// Hash of the decided parallelism and input ranges of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PlanId(pub u64);

/// Hash over (subtask, generation) of the producers that an attempt reads of one data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InputId(pub u64);

impl fmt::Display for JobVertexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for DataSetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for ExecutionVertexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.vertex, self.subtask)
    }
}

/// `stage/subtask#number@epoch`, without the run.
impl fmt::Display for ExecutionAttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}@{}", self.vertex, self.subtask, self.number, self.epoch)
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of data set {}", self.attempt, self.data_set)
    }
}
