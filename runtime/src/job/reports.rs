//! What workers say of attempts.

use std::{collections::BTreeMap, sync::Arc};

use regrow_protocol::{
    DataDirectoryId, ExecutionAttemptId, FinishRecord, JobVertexId, TaskFailure, WorkerId,
};

use super::{
    Job, Phase,
    held::HeldAction,
    proofs::{Proof, ProofSource},
};
use crate::{Action, Decision, Distribution, Flush, JobEvent, Lsn, NO_CHECKPOINT, ResetReason};

impl Job {
    pub(super) fn task_finished(
        &mut self,
        worker: WorkerId,
        data_directory: DataDirectoryId,
        record: Arc<FinishRecord>,
        out: &mut Decision,
    ) {
        let attempt = record.attempt;
        self.former.remove(&attempt);
        let proof = |record| Proof { worker, data_directory, record, source: ProofSource::Report };
        if !matches!(self.phase, Phase::Active) {
            self.tracker.add(data_directory, attempt);
            self.proofs.add(proof(record));
            return;
        }
        if let Some(holder) = self.executions.wound_down(&attempt) {
            self.workers.add_free(holder, 1);
        }
        let is_current = self.executions.of_attempt(&attempt).is_some();
        let coordinator = self.recorded.coordinators.get(attempt.vertex);
        let splits_known = coordinator.is_none_or(|it| it.holds(attempt, &record.splits));
        if is_current && splits_known && !self.is_ending() {
            let lsn = self.accept(worker, data_directory, record, out);
            self.hold_acceptance(lsn, worker, attempt, out);
            return;
        }
        if is_current {
            self.reset(vec![(attempt.execution_vertex(), ResetReason::Cancelled)], out);
        }
        self.tracker.add(data_directory, attempt);
        self.proofs.add(proof(record));
        self.settle_proofs(out);
    }

    /// Counts a finish: records it and lets everything follow that waited for it.
    pub(super) fn accept(
        &mut self,
        worker: WorkerId,
        data_directory: DataDirectoryId,
        record: Arc<FinishRecord>,
        out: &mut Decision,
    ) -> Lsn {
        let attempt = record.attempt;
        let subtask = attempt.execution_vertex();
        if let Some(execution) = self.executions.remove(subtask) {
            self.workers.add_free(execution.worker, 1);
        }
        self.ready.remove(&subtask);
        self.failed_on.remove(&subtask);
        self.delayed.retain(|(_, delayed)| *delayed != subtask);
        let event = JobEvent::ExecutionVertexFinished { worker, data_directory, record };
        let lsn = self.record(event, out);
        self.note_keeper(data_directory, out);
        self.tracker.add(data_directory, attempt);
        self.after_finish(attempt, lsn, out);
        lsn
    }

    fn after_finish(&mut self, attempt: ExecutionAttemptId, lsn: Lsn, out: &mut Decision) {
        let subtask = attempt.execution_vertex();
        let vertex = subtask.vertex;
        let complete = self.recorded.is_complete(vertex);
        let consumers: Vec<(JobVertexId, Distribution)> = self
            .recorded
            .graph()
            .outputs(vertex)
            .map(|(_, edge)| (edge.consumer, edge.distribution))
            .collect();
        if consumers.is_empty() {
            self.unshown.insert(lsn, vertex);
            out.flush = out.flush.max(Flush::Soon);
        }
        for (consumer, distribution) in consumers {
            let pointwise = distribution == Distribution::Pointwise;
            if complete && !pointwise {
                self.refresh_ready(consumer);
            }
            let readers = if pointwise { self.recorded.consumers(subtask) } else { Vec::new() };
            for reader in readers {
                self.refresh_subtask(reader);
            }
        }
        self.snapshot_coordinator(vertex, complete, out);
        if complete {
            self.look_for_plans = true;
            self.hold_release_of_inputs(vertex, out);
        }
    }

    /// Snapshots a coordinator when its vertex is complete or the pause has passed.
    fn snapshot_coordinator(&mut self, vertex: JobVertexId, complete: bool, out: &mut Decision) {
        let Some(coordinator) = self.recorded.coordinators.get(vertex) else { return };
        let last = *self.snapshots.entry(vertex).or_insert(self.now);
        let due = self.now.since(last) >= self.options.snapshot_min_pause;
        if !(complete || due) || !coordinator.supports_batch_snapshot() {
            return;
        }
        let state = coordinator.checkpoint_coordinator(NO_CHECKPOINT);
        let last_delta = self.recorded.coordinators.next_number(vertex) - 1;
        self.snapshots.insert(vertex, self.now);
        self.record(JobEvent::CoordinatorSnapshot { vertex, last_delta, state }, out);
    }

    /// Once a complete vertex is durably so, its inputs are not needed.
    pub(super) fn hold_release_of_inputs(&mut self, vertex: JobVertexId, out: &mut Decision) {
        if !self.recorded.is_complete(vertex) {
            return;
        }
        let lsn = self.recorded.vertex(vertex).last_finish;
        let producers: Vec<JobVertexId> =
            self.recorded.graph().inputs(vertex).map(|(_, edge)| edge.producer).collect();
        for producer in producers {
            self.hold(lsn, Flush::Whenever, HeldAction::ReleaseOutputs(producer), out);
        }
    }

    /// Releases the outputs of a vertex whose consumers are all complete.
    pub(super) fn release_outputs(&mut self, vertex: JobVertexId, out: &mut Decision) {
        let graph = self.recorded.graph();
        let wanted = |(_, edge): (_, &crate::JobEdge)| !self.recorded.is_complete(edge.consumer);
        if graph.outputs(vertex).any(wanted) {
            return;
        }
        let mut by_directory = BTreeMap::<_, Vec<_>>::new();
        for subtask in self.recorded.subtasks(vertex) {
            let Some(finish) = self.recorded.finish(subtask) else { continue };
            let (place, attempt) = (finish.data_directory, finish.record.attempt);
            if self.tracker.holds(place, &attempt) {
                by_directory.entry(place).or_default().push(attempt);
            }
        }
        for (data_directory, attempts) in by_directory {
            self.release(data_directory, attempts, Lsn(0), out);
        }
    }

    pub(super) fn task_failed(
        &mut self,
        attempt: ExecutionAttemptId,
        failure: &TaskFailure,
        out: &mut Decision,
    ) {
        self.former.remove(&attempt);
        if let Some(holder) = self.executions.wound_down(&attempt) {
            self.workers.add_free(holder, 1);
        }
        let Some(execution) = self.executions.of_attempt(&attempt) else { return };
        let (subtask, worker) = (attempt.execution_vertex(), execution.worker);
        self.executions.remove(subtask);
        self.workers.add_free(worker, 1);
        self.return_splits_of(attempt, out);
        let name = self.recorded.graph().vertices[subtask.vertex.0 as usize].name.clone();
        match failure {
            TaskFailure::Task { .. } | TaskFailure::Panicked { .. } => {
                let failed_on = self.failed_on.entry(subtask).or_default();
                failed_on.retain(|before| *before != worker);
                failed_on.push(worker);
                let message = failure.to_string();
                self.reset_failed(subtask, message, out);
            }
            TaskFailure::Unrecoverable { message } => {
                self.fail(format!("task {subtask} ({name}) failed: {message}"), out);
            }
            TaskFailure::InputLost { partition, reason } => {
                self.reset_after_input_loss(subtask, partition, reason, out);
            }
            TaskFailure::InputUnreachable { partition, reason } => {
                self.reset_after_unreachable_input(subtask, partition, reason, out);
            }
            TaskFailure::Cancelled => {
                self.reset_ended(subtask, ResetReason::Cancelled, out);
            }
        }
    }

    pub(super) fn split_requested(
        &mut self,
        worker: WorkerId,
        attempt: ExecutionAttemptId,
        request: u64,
        out: &mut Decision,
    ) {
        let active = matches!(self.phase, Phase::Active) && !self.is_ending();
        if !active || self.executions.of_attempt(&attempt).is_none() {
            return;
        }
        let vertex = attempt.vertex;
        let Some(coordinator) = self.recorded.coordinators.get(vertex) else { return };
        let reply = coordinator.handle_event(attempt, request);
        let barrier = self.recorded.coordinators.barrier(vertex);
        if let Some(delta) = reply.delta {
            self.record_delta(vertex, delta, out);
        }
        let split = reply.split;
        let action = Action::AnswerSplitRequest { worker, attempt, request, split };
        self.hold_action(barrier, Flush::Now, action, out);
    }
}
