//! What a job consists of (Flink: `JobGraph`).

use regrow_protocol::{DataSetId, JobVertexId};
use serde::{Deserialize, Serialize};

/// A job as data: vertices and the edges between them. What the operators do lives in the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobGraph {
    /// Vertices; [`JobVertexId`] is the index. A vertex reads only vertices before it.
    pub vertices: Vec<JobVertex>,
    /// Edges, all blocking; [`DataSetId`] is the index: each edge has a data set of its own.
    pub edges: Vec<JobEdge>,
    /// Sinks; a vertex may have several.
    pub sinks: Vec<SinkSpec>,
}

/// A chain of operators that runs as one task per subtask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobVertex {
    /// For people.
    pub name: String,
    /// How many subtasks.
    pub parallelism: Parallelism,
    /// Who hands out its input, for a source with splits.
    pub coordinator: Option<CoordinatorKind>,
    /// Whether running it again on the same input gives the same records per subpartition.
    pub determinacy: Determinacy,
}

/// How many subtasks a vertex has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Parallelism {
    /// As the user said.
    Fixed(u32),
    /// Decided when its inputs are finished.
    Decided,
}

/// Which coordinator a vertex has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CoordinatorKind {
    /// Hands out splits on request.
    Source,
}

/// Whether a vertex gives the same records per subpartition for the same input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Determinacy {
    /// It does.
    Determinate,
    /// It may not: who read its output must read it again after a re-run.
    Indeterminate,
}

/// One data set: what flows from one vertex to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEdge {
    /// Who writes it.
    pub producer: JobVertexId,
    /// Who reads it.
    pub consumer: JobVertexId,
    /// Who reads what.
    pub distribution: Distribution,
}

/// Who reads what of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Distribution {
    /// Each consumer reads a range of subpartitions of all producers.
    AllToAll,
    /// Each consumer reads some producers, each producer is read by some consumers.
    Pointwise,
    /// Each consumer reads all.
    Broadcast,
}

/// Where a vertex publishes files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkSpec {
    /// Who writes.
    pub vertex: JobVertexId,
    /// The output directory, absolute.
    pub directory: String,
    /// Whether files that are there may be replaced and removed.
    pub overwrite: bool,
}

impl JobGraph {
    /// The edges that `vertex` reads, in the order of the graph.
    pub fn inputs(&self, vertex: JobVertexId) -> impl Iterator<Item = (DataSetId, &JobEdge)> + '_ {
        self.data_sets().filter(move |(_, edge)| edge.consumer == vertex)
    }

    /// The edges that `vertex` writes, in the order of the graph.
    pub fn outputs(&self, vertex: JobVertexId) -> impl Iterator<Item = (DataSetId, &JobEdge)> + '_ {
        self.data_sets().filter(move |(_, edge)| edge.producer == vertex)
    }

    fn data_sets(&self) -> impl Iterator<Item = (DataSetId, &JobEdge)> + '_ {
        (0..).map(DataSetId).zip(&self.edges)
    }
}
