//! What a job consists of (Flink: `JobGraph`).

mod graph_error;
mod validation;

use regrow_protocol::{DataSetId, JobVertexId, StableHasher};
use serde::{Deserialize, Serialize};

pub use graph_error::GraphError;

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
    /// Hands out splits on request that are good only for the listing that named them, and for the
    /// master that made it (signed links, cursors of a query). All of the vertex runs again, upon a
    /// new listing, when the master is lost before the vertex is complete, or output of it is lost
    /// that is still needed.
    OneListingSource,
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

    /// A hash that is the same wherever the same builder runs with the same arguments.
    ///
    /// It covers, in this order and each list with its length: the vertices (name, parallelism,
    /// coordinator, determinacy), the edges (producer, consumer, distribution) and the vertex of
    /// each sink. Not where the sinks publish: only the `JobMaster`'s directories count, and a
    /// worker that was started elsewhere would make another absolute path of a relative one.
    pub fn hash(&self) -> u64 {
        let mut hasher = StableHasher::new("job graph");
        hasher.number(self.vertices.len() as u64);
        for vertex in &self.vertices {
            hash_vertex(&mut hasher, vertex);
        }
        hasher.number(self.edges.len() as u64);
        for edge in &self.edges {
            hasher.number(u64::from(edge.producer.0));
            hasher.number(u64::from(edge.consumer.0));
            hasher.number(match edge.distribution {
                Distribution::AllToAll => 0,
                Distribution::Pointwise => 1,
                Distribution::Broadcast => 2,
            });
        }
        hasher.number(self.sinks.len() as u64);
        for sink in &self.sinks {
            hasher.number(u64::from(sink.vertex.0));
        }
        hasher.finish()
    }

    fn data_sets(&self) -> impl Iterator<Item = (DataSetId, &JobEdge)> + '_ {
        (0..).map(DataSetId).zip(&self.edges)
    }
}

/// An undecided parallelism is hashed as zero, which no fixed one can be.
fn hash_vertex(hasher: &mut StableHasher, vertex: &JobVertex) {
    hasher.bytes(vertex.name.as_bytes());
    hasher.number(match vertex.parallelism {
        Parallelism::Decided => 0,
        Parallelism::Fixed(parallelism) => u64::from(parallelism),
    });
    hasher.number(match vertex.coordinator {
        None => 0,
        Some(CoordinatorKind::Source) => 1,
        Some(CoordinatorKind::OneListingSource) => 2,
    });
    hasher.number(match vertex.determinacy {
        Determinacy::Determinate => 0,
        Determinacy::Indeterminate => 1,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> JobGraph {
        let vertex = |name: &str, parallelism, coordinator| JobVertex {
            name: name.to_owned(),
            parallelism,
            coordinator,
            determinacy: Determinacy::Determinate,
        };
        JobGraph {
            vertices: vec![
                vertex("read", Parallelism::Decided, Some(CoordinatorKind::Source)),
                vertex("count", Parallelism::Fixed(4), None),
            ],
            edges: vec![JobEdge {
                producer: JobVertexId(0),
                consumer: JobVertexId(1),
                distribution: Distribution::AllToAll,
            }],
            sinks: vec![SinkSpec {
                vertex: JobVertexId(1),
                directory: "/out".to_owned(),
                overwrite: false,
            }],
        }
    }

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(graph().hash(), 12_484_912_461_847_024_305);
    }

    #[test]
    fn the_hash_tells_what_differs() {
        let changes: [fn(&mut JobGraph); 8] = [
            |graph| graph.vertices[0].name.push('s'),
            |graph| graph.vertices[1].parallelism = Parallelism::Fixed(5),
            |graph| graph.vertices[0].coordinator = None,
            |graph| graph.vertices[0].coordinator = Some(CoordinatorKind::OneListingSource),
            |graph| graph.vertices[1].determinacy = Determinacy::Indeterminate,
            |graph| graph.edges[0].distribution = Distribution::Broadcast,
            |graph| graph.edges.clear(),
            |graph| graph.sinks[0].vertex = JobVertexId(0),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let mut other = graph();
            change(&mut other);
            assert_ne!(other.hash(), graph().hash(), "change {index}");
        }
    }

    #[test]
    fn a_worker_started_elsewhere_has_the_same_hash() {
        let mut elsewhere = graph();
        elsewhere.sinks[0].directory = "/srv/out".to_owned();
        assert_eq!(elsewhere.hash(), graph().hash());
    }
}
