//! Why a job graph is refused.

use regrow_protocol::{DataSetId, JobVertexId};
use thiserror::Error;

use super::JobGraph;

/// The graph cannot be run: refuse the job and show this to who built it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GraphError {
    /// There is nothing to run.
    #[error("the job has no vertices: read at least one source")]
    NoVertices,
    /// The graph is larger than a log record should be.
    #[error(
        "the job has {found} {what}, and at most {max} are allowed: split it into several jobs"
    )]
    TooMany {
        /// Vertices, edges or sinks.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        max: usize,
    },
    /// A parallelism is zero or beyond all reason.
    #[error(
        "vertex {vertex} ({name}) has parallelism {found}: use 1 to {max}, or leave it undecided",
        max = JobGraph::PARALLELISM_MAX
    )]
    Parallelism {
        /// Whose.
        vertex: JobVertexId,
        /// Its name.
        name: String,
        /// What it was to be.
        found: u32,
    },
    /// An edge names a vertex that is not there.
    #[error("edge {edge} names vertex {vertex}, but the job has only {vertices} vertices")]
    UnknownEdgeEnd {
        /// Which edge.
        edge: DataSetId,
        /// What it names.
        vertex: JobVertexId,
        /// How many vertices there are.
        vertices: usize,
    },
    /// An edge does not lead forward, so that the graph may have a cycle.
    #[error(
        "edge {edge} leads from vertex {producer} to vertex {consumer}: \
         a vertex may read only vertices before it"
    )]
    NotForward {
        /// Which edge.
        edge: DataSetId,
        /// Who writes it.
        producer: JobVertexId,
        /// Who reads it.
        consumer: JobVertexId,
    },
    /// A vertex has both splits and an input that is divided among its subtasks.
    #[error(
        "vertex {vertex} ({name}) reads splits and edge {edge}: a vertex that reads splits can \
         have no inputs but broadcast ones"
    )]
    CoordinatorWithInputs {
        /// Which one.
        vertex: JobVertexId,
        /// Its name.
        name: String,
        /// The first such edge.
        edge: DataSetId,
    },
    /// A sink belongs to a vertex that is not there.
    #[error("sink {sink} names vertex {vertex}, but the job has only {vertices} vertices")]
    UnknownSinkVertex {
        /// Index of the sink.
        sink: usize,
        /// What it names.
        vertex: JobVertexId,
        /// How many vertices there are.
        vertices: usize,
    },
    /// A sink's directory would mean something else in another process.
    #[error("sink {sink} writes to {directory:?}: give an absolute path")]
    RelativeDirectory {
        /// Index of the sink.
        sink: usize,
        /// Where it would write.
        directory: String,
    },
    /// Two sinks would publish files of the same names.
    #[error("sinks {first} and {second} both write to {directory:?}: give each its own directory")]
    SharedDirectory {
        /// Index of one sink.
        first: usize,
        /// Index of the other.
        second: usize,
        /// Where both would write.
        directory: String,
    },
}
