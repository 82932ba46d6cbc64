//! What a recovery keeps and what it runs again: one pure function of log and findings.

use std::{collections::BTreeMap, sync::Arc};

use regrow_protocol::{ExecutionVertexId, FinishRecord, JobVertexId, WorkerId};

use super::{
    executions::Executions,
    input_ids::InputIds,
    partition_tracker::PartitionTracker,
    proofs::Proofs,
    recorded::Recorded,
    reset_plan::{Surroundings, plan_resets},
    verdict::{Verdict, judge},
};
use crate::{
    CoordinatorDelta, Fate, FateLine, NO_CHECKPOINT, OperatorCoordinator, RecoveryDecision,
    ResetReason, VertexReset,
};

/// What workers reported during the wait.
pub(super) struct Findings<'a> {
    pub(super) tracker: &'a PartitionTracker,
    pub(super) proofs: &'a Proofs,
    /// Former workers that did not come back.
    pub(super) lost_workers: Vec<WorkerId>,
}

/// A decision, and what it says of each subtask.
pub(super) struct Reconciliation {
    pub(super) decision: RecoveryDecision,
    pub(super) lines: Vec<FateLine>,
}

/// Decides what to keep.
pub(super) fn reconcile(recorded: &Recorded, findings: &Findings<'_>) -> Reconciliation {
    let mut trial = Trial {
        state: recorded.duplicate(),
        findings,
        input_ids: InputIds::default(),
        decision: RecoveryDecision::default(),
    };
    trial.decision.lost_workers.clone_from(&findings.lost_workers);
    trial.note_attempt_numbers();
    for vertex in recorded.vertices() {
        trial.accept_proofs(vertex);
    }
    trial.forget_listings();
    trial.reset_what_is_missing();
    trial.return_splits();
    trial.reset_for_splits_left();
    let lines = trial.lines(recorded);
    Reconciliation { decision: trial.decision, lines }
}

/// A copy of the recorded state on which the parts of the decision are tried, one after the other.
struct Trial<'a> {
    state: Recorded,
    findings: &'a Findings<'a>,
    input_ids: InputIds,
    decision: RecoveryDecision,
}

impl Trial<'_> {
    fn note_attempt_numbers(&mut self) {
        for (subtask, number) in self.findings.proofs.highest_numbers() {
            let next = self.state.subtask(subtask).map(|record| record.next_attempt);
            if next.is_some_and(|next| next <= number) {
                self.decision.attempt_numbers.push((subtask, number));
                self.state.facts.raise_next_attempt(subtask, number.saturating_add(1));
            }
        }
    }

    fn accept_proofs(&mut self, vertex: JobVertexId) {
        for subtask in self.state.subtasks(vertex) {
            if self.state.finish(subtask).is_none() {
                self.accept_best_proof(subtask);
            }
        }
    }

    /// Counts the newest proof for a subtask that counts.
    fn accept_best_proof(&mut self, subtask: ExecutionVertexId) {
        for proof in self.findings.proofs.of(subtask) {
            let verdict = judge(&self.state, self.findings.tracker, &self.input_ids, proof);
            let Verdict::Counts { claim } = verdict else { continue };
            let found = (proof.worker, proof.data_directory, Arc::clone(&proof.record));
            self.add(RecoveryDecision { found: vec![found], ..RecoveryDecision::default() });
            if let Some(delta) = claim {
                self.add_delta(subtask.vertex, delta);
            }
            return;
        }
    }

    /// What was listed for one master alone is kept if all of it was read, and else read again from
    /// a listing of this one.
    fn forget_listings(&mut self) {
        let vertices: Vec<JobVertexId> = self.state.coordinators.vertices().collect();
        for vertex in vertices {
            if self.state.coordinators.can_repeat(vertex) || self.has_read_all(vertex) {
                continue;
            }
            let all = self.state.subtasks(vertex);
            self.reset(all.map(|it| (it, ResetReason::ListingForgotten)).collect());
            let delta = self.state.coordinators.get(vertex).and_then(OperatorCoordinator::forget);
            if let Some(delta) = delta {
                self.add_delta(vertex, delta);
            }
        }
    }

    /// Whether the accepted attempts of a source read all of its splits.
    fn has_read_all(&self, vertex: JobVertexId) -> bool {
        let Some(coordinator) = self.state.coordinators.get(vertex) else { return true };
        let holds = |record: &FinishRecord| coordinator.holds(record.attempt, &record.splits);
        coordinator.is_exhausted()
            && self.state.is_complete(vertex)
            && self.state.subtasks(vertex).all(|it| self.state.accepted(it).is_some_and(holds))
    }

    fn reset_what_is_missing(&mut self) {
        let mut seeds = Vec::new();
        for (subtask, finish) in self.state.finishes() {
            let record = &finish.record;
            let coordinator = self.state.coordinators.get(subtask.vertex);
            if coordinator.is_some_and(|it| !it.holds(record.attempt, &record.splits)) {
                seeds.push((subtask, ResetReason::SplitsLeft));
            } else if !self.findings.tracker.is_available(&self.state, subtask)
                && self.state.is_needed(subtask)
            {
                seeds.push((subtask, ResetReason::OutputMissing));
            }
        }
        self.reset(seeds);
    }

    /// Splits of attempts that do not count go back to whoever hands them out.
    fn return_splits(&mut self) {
        let unfinished = |subtask: &ExecutionVertexId| self.state.finish(*subtask).is_none();
        let subtasks: Vec<_> = self.state.all_subtasks().filter(unfinished).collect();
        for subtask in subtasks {
            self.reset_coordinator(subtask, None);
        }
    }

    /// A source is complete only when nothing is left to hand out.
    fn reset_for_splits_left(&mut self) {
        let vertices: Vec<JobVertexId> = self.state.coordinators.vertices().collect();
        for vertex in vertices {
            let Some(coordinator) = self.state.coordinators.get(vertex) else { continue };
            if coordinator.is_exhausted() || !self.state.is_complete(vertex) {
                continue;
            }
            // One that is bound to the splits it read before would leave the rest unread.
            let free = |it: &ExecutionVertexId| coordinator.pinned(it.subtask).is_none();
            let chosen = self.state.subtasks(vertex).find(free);
            self.reset(chosen.map(|it| (it, ResetReason::SplitsLeft)).into_iter().collect());
        }
    }

    fn reset(&mut self, seeds: Vec<(ExecutionVertexId, ResetReason)>) {
        let surroundings = Surroundings {
            recorded: &self.state,
            tracker: self.findings.tracker,
            executions: &Executions::default(),
        };
        for reset in plan_resets(surroundings, seeds) {
            let accepted = self.state.accepted(reset.subtask).map(|record| record.attempt);
            let subtask = reset.subtask;
            let pinned = accepted.filter(|_| reset.reason != ResetReason::SplitsLeft);
            self.add(RecoveryDecision { resets: vec![reset], ..RecoveryDecision::default() });
            if self.state.coordinators.get(subtask.vertex).is_some() {
                self.reset_coordinator(subtask, pinned);
            }
        }
    }

    fn reset_coordinator(
        &mut self,
        subtask: ExecutionVertexId,
        finished: Option<regrow_protocol::ExecutionAttemptId>,
    ) {
        let Some(coordinator) = self.state.coordinators.get(subtask.vertex) else { return };
        if let Some(delta) = coordinator.subtask_reset(subtask.subtask, NO_CHECKPOINT, finished) {
            self.add_delta(subtask.vertex, delta);
        }
    }

    fn add_delta(&mut self, vertex: JobVertexId, delta: CoordinatorDelta) {
        let number = self.state.coordinators.next_number(vertex);
        let deltas = vec![(vertex, number, delta)];
        self.add(RecoveryDecision { deltas, ..RecoveryDecision::default() });
    }

    /// Tries a part of the decision and keeps it.
    fn add(&mut self, part: RecoveryDecision) {
        self.state.try_out(&part);
        self.decision.found.extend(part.found);
        self.decision.resets.extend(part.resets);
        self.decision.deltas.extend(part.deltas);
    }

    fn lines(&self, before: &Recorded) -> Vec<FateLine> {
        let resets: BTreeMap<ExecutionVertexId, &VertexReset> =
            self.decision.resets.iter().map(|reset| (reset.subtask, reset)).collect();
        let mut lines = Vec::new();
        for subtask in before.all_subtasks() {
            lines.push(self.line(before, subtask, resets.get(&subtask).copied()));
        }
        lines
    }

    fn line(
        &self,
        before: &Recorded,
        subtask: ExecutionVertexId,
        reset: Option<&VertexReset>,
    ) -> FateLine {
        let kept = self.state.accepted(subtask).map(|record| record.attempt);
        let logged = before.accepted(subtask).map(|record| record.attempt);
        let (attempt, fate, reason) = match (reset, kept, logged) {
            (Some(reset), ..) => (logged, Fate::Rerun, reset.reason.describe()),
            (None, Some(kept), Some(_)) => (Some(kept), Fate::KeptLog, "finished, as the log says"),
            (None, Some(kept), None) => {
                (Some(kept), Fate::KeptFile, "finished, as its finish record proves")
            }
            (None, None, _) => (None, Fate::Rerun, "had not finished"),
        };
        FateLine { subtask, attempt, fate, reason: reason.to_owned() }
    }
}
