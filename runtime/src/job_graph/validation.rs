//! What makes a job graph one that can be run.

use std::{collections::BTreeMap, path::Path};

use regrow_protocol::{DataSetId, JobVertexId};

use super::{Distribution, GraphError, JobEdge, JobGraph, JobVertex, Parallelism};

impl JobGraph {
    /// Most subtasks of a vertex: each is a few hundred bytes of log and of memory.
    pub const PARALLELISM_MAX: u32 = 100_000;
    /// Most vertices, and most sinks, of a job: the graph is one record of the log.
    pub const VERTICES_MAX: usize = 10_000;
    /// Most edges of a job.
    pub const EDGES_MAX: usize = 100_000;
    /// Most splits of one source: discovery is one record of the log, snapshots hold them all.
    pub const SPLITS_MAX: u32 = 1_000_000;

    /// Checks that the graph can be run. All else in this crate relies on it.
    ///
    /// # Errors
    /// The first fault that was found: refuse the job.
    pub fn validate(&self) -> Result<(), GraphError> {
        if self.vertices.is_empty() {
            return Err(GraphError::NoVertices);
        }
        at_most("vertices", self.vertices.len(), Self::VERTICES_MAX)?;
        at_most("edges", self.edges.len(), Self::EDGES_MAX)?;
        at_most("sinks", self.sinks.len(), Self::VERTICES_MAX)?;
        for (id, vertex) in (0..).map(JobVertexId).zip(&self.vertices) {
            check_parallelism(id, vertex)?;
        }
        for (id, edge) in self.data_sets() {
            self.check_edge(id, edge)?;
        }
        self.check_sinks()
    }

    fn check_edge(&self, id: DataSetId, edge: &JobEdge) -> Result<(), GraphError> {
        let vertices = self.vertices.len();
        for vertex in [edge.producer, edge.consumer] {
            if self.vertex(vertex).is_none() {
                return Err(GraphError::UnknownEdgeEnd { edge: id, vertex, vertices });
            }
        }
        if edge.producer >= edge.consumer {
            let JobEdge { producer, consumer, distribution: _ } = *edge;
            return Err(GraphError::NotForward { edge: id, producer, consumer });
        }
        // What is broadcast is no part of the input that the coordinator hands out.
        let is_divided = edge.distribution != Distribution::Broadcast;
        match self.vertex(edge.consumer) {
            Some(vertex) if vertex.coordinator.is_some() && is_divided => {
                Err(GraphError::CoordinatorWithInputs {
                    vertex: edge.consumer,
                    name: vertex.name.clone(),
                    edge: id,
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_sinks(&self) -> Result<(), GraphError> {
        let mut directories = BTreeMap::new();
        for (index, sink) in self.sinks.iter().enumerate() {
            if self.vertex(sink.vertex).is_none() {
                let vertices = self.vertices.len();
                return Err(GraphError::UnknownSinkVertex {
                    sink: index,
                    vertex: sink.vertex,
                    vertices,
                });
            }
            // As a path, so that `/out` and `/out/` are the same.
            let path = Path::new(&sink.directory);
            let directory = sink.directory.clone();
            if !path.is_absolute() {
                return Err(GraphError::RelativeDirectory { sink: index, directory });
            }
            if let Some(first) = directories.insert(path, index) {
                return Err(GraphError::SharedDirectory { first, second: index, directory });
            }
        }
        Ok(())
    }

    fn vertex(&self, vertex: JobVertexId) -> Option<&JobVertex> {
        self.vertices.get(usize::try_from(vertex.0).ok()?)
    }
}

fn check_parallelism(id: JobVertexId, vertex: &JobVertex) -> Result<(), GraphError> {
    match vertex.parallelism {
        Parallelism::Fixed(found) if !(1..=JobGraph::PARALLELISM_MAX).contains(&found) => {
            Err(GraphError::Parallelism { vertex: id, name: vertex.name.clone(), found })
        }
        Parallelism::Fixed(_) | Parallelism::Decided => Ok(()),
    }
}

const fn at_most(what: &'static str, found: usize, max: usize) -> Result<(), GraphError> {
    if found > max {
        return Err(GraphError::TooMany { what, found, max });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CoordinatorKind, Determinacy, SinkSpec};

    fn vertex(parallelism: Parallelism) -> JobVertex {
        JobVertex {
            name: "words".to_owned(),
            parallelism,
            coordinator: None,
            determinacy: Determinacy::Determinate,
        }
    }

    fn edge(producer: u32, consumer: u32) -> JobEdge {
        JobEdge {
            producer: JobVertexId(producer),
            consumer: JobVertexId(consumer),
            distribution: Distribution::Pointwise,
        }
    }

    fn sink(vertex: u32, directory: &str) -> SinkSpec {
        let directory = directory.to_owned();
        SinkSpec { vertex: JobVertexId(vertex), directory, overwrite: false }
    }

    /// A decided source, read pointwise by a vertex of fixed parallelism.
    fn graph() -> JobGraph {
        let mut source = vertex(Parallelism::Decided);
        source.coordinator = Some(CoordinatorKind::Source);
        JobGraph {
            vertices: vec![source, vertex(Parallelism::Fixed(4))],
            edges: vec![edge(0, 1)],
            sinks: vec![sink(1, "/out/a"), sink(1, "/out/b")],
        }
    }

    #[test]
    fn a_decided_source_may_feed_a_fixed_vertex_pointwise() {
        assert_eq!(graph().validate(), Ok(()));
    }

    #[test]
    fn a_source_without_splits_is_legal() {
        let graph = JobGraph { vertices: vec![vertex(Parallelism::Fixed(1))], ..<_>::default() };
        assert_eq!(graph.validate(), Ok(()));
    }

    #[test]
    fn an_empty_graph_is_refused() {
        assert_eq!(JobGraph::default().validate(), Err(GraphError::NoVertices));
    }

    #[test]
    fn too_many_vertices_are_refused() {
        let vertices = vec![vertex(Parallelism::Decided); JobGraph::VERTICES_MAX + 1];
        let error = JobGraph { vertices, ..JobGraph::default() }.validate().unwrap_err();
        assert_eq!(error, GraphError::TooMany { what: "vertices", found: 10_001, max: 10_000 });
    }

    #[test]
    fn parallelism_is_within_its_limits() {
        for (parallelism, legal) in [(0, false), (1, true), (100_000, true), (100_001, false)] {
            let mut graph = graph();
            graph.vertices[1].parallelism = Parallelism::Fixed(parallelism);
            assert_eq!(graph.validate().is_ok(), legal, "{parallelism}");
        }
    }

    #[test]
    fn an_edge_leads_forward_between_vertices_that_exist() {
        for (producer, consumer) in [(1, 0), (1, 1), (0, 2), (7, 8)] {
            let mut graph = graph();
            graph.edges.push(edge(producer, consumer));
            let error = graph.validate().unwrap_err();
            assert_eq!(
                matches!(error, GraphError::NotForward { .. }),
                consumer < 2,
                "{producer} to {consumer}: {error}"
            );
        }
    }

    #[test]
    fn a_vertex_that_reads_splits_has_no_inputs_but_broadcast_ones() {
        let mut graph = graph();
        graph.vertices[1].coordinator = Some(CoordinatorKind::Source);
        graph.edges[0].distribution = Distribution::Broadcast;
        assert_eq!(graph.validate(), Ok(()));
        graph.edges.push(edge(0, 1));
        let error = graph.validate().unwrap_err();
        assert_eq!(
            error.to_string(),
            "vertex 1 (words) reads splits and edge 1: a vertex that reads splits can have no \
             inputs but broadcast ones"
        );
    }

    #[test]
    fn a_sink_has_a_vertex_and_a_directory_of_its_own() {
        for (second, expected) in [
            (sink(2, "/out/b"), "sink 2 names vertex 2, but the job has only 2 vertices"),
            (sink(1, "out"), "sink 2 writes to \"out\": give an absolute path"),
            (
                sink(0, "/out//a/"),
                "sinks 0 and 2 both write to \"/out//a/\": give each its own directory",
            ),
        ] {
            let mut graph = graph();
            graph.sinks.push(second);
            assert_eq!(graph.validate().unwrap_err().to_string(), expected);
        }
    }
}
