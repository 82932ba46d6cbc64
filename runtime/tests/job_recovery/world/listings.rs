//! Sources whose splits are good for one listing: what the model knows, and what must hold.

use std::collections::{BTreeMap, BTreeSet};

use regrow_protocol::{
    Epoch, ExecutionAttemptId, ExecutionVertexId, FinishRecord, JobVertexId, Split, SplitId,
};
use regrow_runtime::{CoordinatorDelta, CoordinatorKind, JobEvent};

use super::{Faults, World, oracles::accepted};
use crate::graphs::dependents;

/// The listings that were made; the payload of a split is the number of its listing.
#[derive(Default)]
pub(super) struct Listings {
    made: u8,
    dispatched: BTreeSet<ExecutionAttemptId>,
    /// Attempts that depend on a listing that was forgotten.
    void: BTreeSet<ExecutionAttemptId>,
}

/// A listing as events tell of it.
struct Listed {
    epoch: Epoch,
    splits: Vec<Split>,
}

impl Listings {
    pub(super) fn note_dispatch(&mut self, attempt: ExecutionAttemptId) {
        self.dispatched.insert(attempt);
    }

    pub(super) fn is_void(&self, attempt: &ExecutionAttemptId) -> bool {
        self.void.contains(attempt)
    }
}

impl World {
    /// The input of a source as it is listed now.
    pub(super) fn list(&mut self, vertex: JobVertexId) -> Vec<Split> {
        let mut count = u32::try_from(self.submission.graph.edges.len()).unwrap() * 2;
        let mut payload = Vec::new();
        if self.has_one_listing(vertex) {
            self.listings.made += 1;
            count += u32::from(self.listings.made % 3);
            payload.push(self.listings.made);
        }
        let split = |id| Split { id: SplitId(id), size_bytes: 9 << 20, payload: payload.clone() };
        (0..count).map(split).collect()
    }

    fn has_one_listing(&self, vertex: JobVertexId) -> bool {
        let vertex = &self.submission.graph.vertices[vertex.0 as usize];
        vertex.coordinator == Some(CoordinatorKind::OneListingSource)
    }

    fn events(&self) -> impl DoubleEndedIterator<Item = &JobEvent> + Clone {
        self.stored.iter().chain(&self.buffer)
    }

    /// Who asks gets splits of the newest listing, which this very master had made.
    pub(super) fn check_answer(&self, attempt: ExecutionAttemptId, split: Option<&Split>) {
        let Some(split) = split.filter(|_| self.has_one_listing(attempt.vertex)) else { return };
        let listed = listed(self.events(), attempt.vertex).unwrap();
        assert_eq!(listed.epoch, self.epoch, "5.6: {attempt} gets a split of a dead master");
        assert!(listed.splits.contains(split), "5.6: {attempt} gets a split of an older listing");
    }

    /// Nobody runs before this very master had the source listed.
    pub(super) fn check_listed(&self, attempt: ExecutionAttemptId) {
        if self.has_one_listing(attempt.vertex) {
            let listed = listed(self.events(), attempt.vertex);
            let present = listed.is_some_and(|listed| listed.epoch == self.epoch);
            assert!(present, "5.6: {attempt} runs before its source is listed");
        }
    }

    /// Checks what an event, the newest one, says of listings.
    pub(super) fn check_listings(&mut self, event: &JobEvent) {
        match event {
            JobEvent::RecoveryDecided(decision) => {
                let count = self.submission.graph.vertices.len();
                for vertex in (0..).map(JobVertexId).take(count) {
                    self.check_decision(vertex);
                }
                for (vertex, _, delta) in &decision.deltas {
                    self.note_forgotten(*vertex, delta);
                }
            }
            JobEvent::CoordinatorChanged { vertex, delta, .. } => {
                if let CoordinatorDelta::ListingForgotten { .. } = delta {
                    assert_eq!(self.faults, Faults::All, "5.6: nothing was lost");
                    self.seen.lost_listings += 1;
                }
                self.note_forgotten(*vertex, delta);
            }
            _ => {}
        }
    }

    /// A new master keeps a listing iff all of it was read.
    fn check_decision(&mut self, vertex: JobVertexId) {
        let failed = |event: &JobEvent| matches!(event, JobEvent::FailureDecided { .. });
        if !self.has_one_listing(vertex) || self.events().any(failed) {
            return;
        }
        let newest = self.events().count() - 1;
        let Some(before) = listed(self.events().take(newest), vertex) else { return };
        let finished = accepted(self.events().take(newest));
        if listed(self.events(), vertex).is_some() {
            let kept = accepted(self.events());
            assert!(
                self.is_whole(vertex, &before, &kept),
                "5.6: {vertex} is kept and not complete"
            );
            self.seen.kept_listings += 1;
            return;
        }
        self.seen.void_listings += 1;
        let mut provable = finished;
        for (attempt, record) in self.disks.values().flatten() {
            if attempt.vertex == vertex && attempt.epoch == before.epoch {
                provable.insert(attempt.execution_vertex(), record.clone());
            }
        }
        let whole = self.is_whole(vertex, &before, &provable);
        assert!(self.faults == Faults::All || !whole, "5.6: {vertex} was completely finished");
    }

    /// Whether all subtasks of a vertex are finished, with all splits of a listing.
    fn is_whole(
        &self,
        vertex: JobVertexId,
        listed: &Listed,
        finished: &BTreeMap<ExecutionVertexId, FinishRecord>,
    ) -> bool {
        let mut plans = self.events().rev().filter_map(|event| match event {
            JobEvent::JobVertexInitialized { vertex: planned, plan } if *planned == vertex => {
                Some(plan.parallelism)
            }
            _ => None,
        });
        let Some(parallelism) = plans.next() else { return false };
        let all: Vec<&FinishRecord> =
            finished.values().filter(|record| record.attempt.vertex == vertex).collect();
        let read: BTreeSet<SplitId> =
            all.iter().flat_map(|record| record.splits.iter().copied()).collect();
        all.len() == parallelism as usize && read.len() == listed.splits.len()
    }

    /// What depends on a forgotten listing must run again.
    fn note_forgotten(&mut self, vertex: JobVertexId, delta: &CoordinatorDelta) {
        if !matches!(delta, CoordinatorDelta::ListingForgotten { .. }) {
            return;
        }
        let dependents = dependents(&self.submission.graph, vertex);
        self.sealed.retain(|subtask| !dependents.contains(&subtask.vertex));
        let Listings { dispatched, void, .. } = &mut self.listings;
        void.extend(dispatched.iter().filter(|attempt| dependents.contains(&attempt.vertex)));
    }

    /// All that counts of a vertex was read of its last listing; returns how many splits that had.
    pub(super) fn check_last_listing(
        &self,
        vertex: JobVertexId,
        accepted: &BTreeMap<ExecutionVertexId, FinishRecord>,
    ) -> usize {
        let last = listed(&self.stored, vertex).unwrap();
        for record in accepted.values().filter(|record| record.attempt.vertex == vertex) {
            assert_eq!(record.attempt.epoch, last.epoch, "5.6: of an older listing");
            for split in self.contents.splits(&record.attempt) {
                assert!(last.splits.contains(split), "5.6: {split:?} is of an older listing");
            }
        }
        last.splits.len()
    }
}

/// The listing of a vertex that is in force after `events`.
fn listed<'a>(
    events: impl IntoIterator<Item = &'a JobEvent>,
    vertex: JobVertexId,
) -> Option<Listed> {
    let mut present = None;
    let mut apply = |delta: &CoordinatorDelta| match delta {
        CoordinatorDelta::ListingMade { epoch, splits, .. } => {
            present = Some(Listed { epoch: *epoch, splits: splits.clone() });
        }
        CoordinatorDelta::ListingForgotten { .. } => present = None,
        _ => {}
    };
    for event in events {
        match event {
            JobEvent::CoordinatorChanged { vertex: changed, delta, .. } if *changed == vertex => {
                apply(delta);
            }
            JobEvent::RecoveryDecided(decision) => {
                let deltas = decision.deltas.iter().filter(|(changed, ..)| *changed == vertex);
                deltas.for_each(|(_, _, delta)| apply(delta));
            }
            _ => {}
        }
    }
    present
}
