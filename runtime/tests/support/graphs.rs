//! Random job graphs.

use std::collections::BTreeSet;

use regrow_protocol::{JobVertexId, RunId, SubmissionId};
use regrow_runtime::{
    CoordinatorKind, Determinacy, Distribution, JobEdge, JobGraph, JobSubmission, JobVertex,
    Parallelism, SinkSpec,
};

use super::rng::Rng;

pub(crate) const RUN: RunId = RunId::from_bits(7);

pub(crate) fn submission(rng: &mut Rng) -> JobSubmission {
    let graph = graph(rng);
    graph.validate().unwrap();
    JobSubmission {
        job: "job".parse().unwrap(),
        run: RUN,
        submission: SubmissionId::from_bits(1),
        job_name: "job".to_owned(),
        arguments: Vec::new(),
        graph,
        ledger: None,
        settings: Vec::new(),
    }
}

fn coordinator(rng: &mut Rng) -> CoordinatorKind {
    if rng.chance(50) { CoordinatorKind::Source } else { CoordinatorKind::OneListingSource }
}

/// The vertices that depend on what `vertex` wrote, and itself.
pub(crate) fn dependents(graph: &JobGraph, vertex: JobVertexId) -> BTreeSet<JobVertexId> {
    let mut found = BTreeSet::from([vertex]);
    // An edge may stand before those that lead to it.
    for _ in &graph.edges {
        let reached = graph.edges.iter().filter(|edge| found.contains(&edge.producer));
        let reached: Vec<JobVertexId> = reached.map(|edge| edge.consumer).collect();
        found.extend(reached);
    }
    found
}

fn graph(rng: &mut Rng) -> JobGraph {
    let mut graph = JobGraph::default();
    let count = 1 + u32::try_from(rng.below(4)).unwrap();
    for id in 0..count {
        let mut source = true;
        for producer in 0..id {
            if rng.chance(if producer + 1 == id { 70 } else { 20 }) {
                let distribution = match rng.below(4) {
                    0 => Distribution::Pointwise,
                    1 => Distribution::Broadcast,
                    _ => Distribution::AllToAll,
                };
                source &= distribution == Distribution::Broadcast;
                let (producer, consumer) = (JobVertexId(producer), JobVertexId(id));
                graph.edges.push(JobEdge { producer, consumer, distribution });
            }
        }
        let determinacy =
            if rng.chance(75) { Determinacy::Determinate } else { Determinacy::Indeterminate };
        let fixed = Parallelism::Fixed(1 + u32::try_from(rng.below(4)).unwrap());
        graph.vertices.push(JobVertex {
            name: format!("v{id}"),
            parallelism: if rng.chance(50) { fixed } else { Parallelism::Decided },
            coordinator: (source && rng.chance(60)).then(|| coordinator(rng)),
            determinacy,
        });
    }
    if rng.chance(40) {
        let vertex = JobVertexId(count - 1);
        graph.sinks.push(SinkSpec { vertex, directory: "/out".to_owned(), overwrite: false });
    }
    graph
}
