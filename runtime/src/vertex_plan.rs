//! What is decided when a vertex is initialized.

use regrow_protocol::{PlanId, SubpartitionRange};
use serde::{Deserialize, Serialize};

/// Parallelism and input ranges of a vertex, decided once and logged (`JobVertexInitialized`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VertexPlan {
    /// Hash of all the rest.
    pub id: PlanId,
    /// Number of subtasks; at least 1.
    pub parallelism: u32,
    /// For each input edge, in the order of the edges, what each subtask reads; the inner list has
    /// one entry, valid for all, where all subtasks read the same.
    pub inputs: Vec<Vec<InputRange>>,
    /// For each output data set of the vertex, in order, into how many subpartitions it is divided.
    pub output_subpartitions: Vec<u32>,
}

/// What one subtask reads of one data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRange {
    /// First producer subtask.
    pub producers_start: u32,
    /// One after the last producer subtask.
    pub producers_end: u32,
    /// Which subpartitions of each.
    pub subpartitions: SubpartitionRange,
}
