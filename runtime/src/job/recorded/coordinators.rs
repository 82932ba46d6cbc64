//! The recorded state of all coordinators of a job.

use std::collections::{BTreeMap, BTreeSet};

use regrow_protocol::{Epoch, JobVertexId};
use serde::{Deserialize, Serialize};

use super::SnapshotError;
use crate::{
    CoordinatorDelta, CoordinatorKind, JobGraph, Lsn, NO_CHECKPOINT, OneListingCoordinator,
    OperatorCoordinator, SourceCoordinator,
};

/// The coordinators of a job, by vertex.
pub(in crate::job) struct Coordinators(BTreeMap<JobVertexId, Coordinator>);

/// One coordinator with its place in the log.
struct Coordinator {
    state: Box<dyn OperatorCoordinator>,
    /// Number of the last change applied; 0 for none.
    last_delta: u64,
    /// Position after the last change after which nothing may go out before it is durable.
    barrier: Lsn,
    /// The vertices that depend on its splits, where those are not the same for every master.
    dependents: BTreeSet<JobVertexId>,
}

/// A coordinator within a snapshot.
#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct CoordinatorState {
    last_delta: u64,
    barrier: Lsn,
    #[serde(with = "serde_bytes")]
    state: Vec<u8>,
}

impl Coordinators {
    pub(super) fn new(graph: &JobGraph) -> Self {
        let kinds = (0..).map(JobVertexId).zip(&graph.vertices);
        Self(
            kinds
                .filter_map(|(id, vertex)| {
                    Some((id, Coordinator::new(vertex.coordinator?, graph, id)))
                })
                .collect(),
        )
    }

    pub(super) fn equal(&self, other: &Self) -> bool {
        self.checkpoint() == other.checkpoint()
    }

    pub(super) fn checkpoint(&self) -> Vec<(JobVertexId, CoordinatorState)> {
        let state = |coordinator: &Coordinator| CoordinatorState {
            last_delta: coordinator.last_delta,
            barrier: coordinator.barrier,
            state: coordinator.state.checkpoint_coordinator(NO_CHECKPOINT),
        };
        self.0.iter().map(|(vertex, coordinator)| (*vertex, state(coordinator))).collect()
    }

    pub(super) fn restore(
        &mut self,
        states: Vec<(JobVertexId, CoordinatorState)>,
    ) -> Result<(), SnapshotError> {
        for (vertex, saved) in states {
            let Some(coordinator) = self.0.get_mut(&vertex) else { continue };
            coordinator
                .state
                .reset_to_checkpoint(NO_CHECKPOINT, &saved.state)
                .map_err(|reason| SnapshotError::Coordinator { vertex, reason })?;
            coordinator.last_delta = saved.last_delta;
            coordinator.barrier = saved.barrier;
        }
        Ok(())
    }

    /// Applies a change, unless a snapshot already includes it.
    pub(super) fn apply(
        &mut self,
        vertex: JobVertexId,
        number: u64,
        delta: &CoordinatorDelta,
        lsn: Lsn,
    ) {
        let Some(coordinator) = self.0.get_mut(&vertex) else { return };
        if number <= coordinator.last_delta {
            return;
        }
        coordinator.state.apply_delta(delta);
        coordinator.last_delta = number;
        match delta {
            CoordinatorDelta::SplitsAssigned { .. } => {}
            CoordinatorDelta::SplitsDiscovered { .. }
            | CoordinatorDelta::ListingMade { .. }
            | CoordinatorDelta::ListingForgotten { .. }
            | CoordinatorDelta::SplitsReturned { .. }
            | CoordinatorDelta::SubtaskReset { .. } => coordinator.barrier = lsn,
        }
    }

    /// Takes a recorded snapshot: live it changes nothing, in replay nothing after the same changes.
    pub(super) fn reset(&mut self, vertex: JobVertexId, last_delta: u64, state: &[u8]) {
        let Some(coordinator) = self.0.get_mut(&vertex) else { return };
        if last_delta <= coordinator.last_delta {
            return;
        }
        if coordinator.state.reset_to_checkpoint(NO_CHECKPOINT, state).is_ok() {
            coordinator.last_delta = last_delta;
        }
    }

    /// The coordinator of a vertex, if it has one.
    pub(in crate::job) fn get(&self, vertex: JobVertexId) -> Option<&dyn OperatorCoordinator> {
        self.0.get(&vertex).map(|coordinator| &*coordinator.state)
    }

    /// The number that the next change of a coordinator gets.
    pub(in crate::job) fn next_number(&self, vertex: JobVertexId) -> u64 {
        self.0.get(&vertex).map_or(1, |coordinator| coordinator.last_delta + 1)
    }

    /// What must be durable before an answer of the coordinator goes out.
    pub(in crate::job) fn barrier(&self, vertex: JobVertexId) -> Lsn {
        self.0.get(&vertex).map_or(Lsn(0), |coordinator| coordinator.barrier)
    }

    /// Whether a vertex can be run again in part: on the splits that were read before, if any.
    pub(in crate::job) fn can_repeat(&self, vertex: JobVertexId) -> bool {
        self.get(vertex).is_none_or(OperatorCoordinator::supports_batch_snapshot)
    }

    /// Whether an attempt of `vertex` in `epoch` may depend on what the sources are reading now.
    pub(in crate::job) fn may_depend(&self, vertex: JobVertexId, epoch: Epoch) -> bool {
        let mut sources = self.0.values().filter(|it| it.dependents.contains(&vertex));
        sources.all(|source| source.state.may_have_been_read_in(epoch))
    }

    /// The vertices that have a coordinator.
    pub(in crate::job) fn vertices(&self) -> impl Iterator<Item = JobVertexId> + '_ {
        self.0.keys().copied()
    }
}

impl Coordinator {
    fn new(kind: CoordinatorKind, graph: &JobGraph, vertex: JobVertexId) -> Self {
        let state: Box<dyn OperatorCoordinator> = match kind {
            CoordinatorKind::Source => Box::new(SourceCoordinator::new()),
            CoordinatorKind::OneListingSource => Box::new(OneListingCoordinator::new()),
        };
        let dependents = if state.supports_batch_snapshot() {
            BTreeSet::new()
        } else {
            dependents(graph, vertex)
        };
        Self { state, last_delta: 0, barrier: Lsn(0), dependents }
    }
}

/// The vertices that read `vertex`, or read who reads it, and so on.
fn dependents(graph: &JobGraph, vertex: JobVertexId) -> BTreeSet<JobVertexId> {
    let mut edges: Vec<_> = graph.edges.iter().map(|edge| (edge.consumer, edge.producer)).collect();
    // A vertex reads only vertices before it: what is known of them is final.
    edges.sort_unstable();
    let mut dependents = BTreeSet::new();
    for (consumer, producer) in edges {
        if producer == vertex || dependents.contains(&producer) {
            dependents.insert(consumer);
        }
    }
    dependents
}
