//! Running subtasks again.

use std::time::Duration;

use regrow_protocol::{ExecutionAttemptId, ExecutionVertexId, PartitionId, WorkerId};

use super::{
    Job, LOSSES_MAX, Phase,
    executions::ExecutionStage,
    reset_plan::{Surroundings, plan_resets},
};
use crate::{Action, Decision, JobEvent, NO_CHECKPOINT, ResetReason, VertexReset};

/// Least wait of an attempt whose input could not be reached; doubles with each loss.
const UNREACHABLE_PAUSE_MIN: Duration = Duration::from_millis(100);

/// Longest wait of an attempt whose input could not be reached.
const UNREACHABLE_PAUSE_MAX: Duration = Duration::from_secs(10);

impl Job {
    /// Resets `seeds` and all that follows from them (recovery.md 5.6, 5.8).
    pub(super) fn reset(
        &mut self,
        seeds: Vec<(ExecutionVertexId, ResetReason)>,
        out: &mut Decision,
    ) {
        let surroundings = Surroundings {
            recorded: &self.recorded,
            tracker: &self.tracker,
            executions: &self.executions,
        };
        let resets = plan_resets(surroundings, seeds);
        self.carry_out(resets, out);
    }

    fn carry_out(&mut self, resets: Vec<VertexReset>, out: &mut Decision) {
        if resets.is_empty() {
            return;
        }
        let subtasks: Vec<(ExecutionVertexId, ResetReason)> =
            resets.iter().map(|reset| (reset.subtask, reset.reason.clone())).collect();
        let mut void = Vec::new();
        for (subtask, reason) in &subtasks {
            self.stop(*subtask, out);
            let Some(finish) = self.recorded.finish(*subtask) else { continue };
            let (place, attempt) = (finish.data_directory, finish.record.attempt);
            self.reset_coordinator(attempt, reason, out);
            void.push((place, attempt, reason.clone()));
        }
        let too_many = resets.iter().find(|reset| reset.losses >= LOSSES_MAX).cloned();
        let pauses: Vec<(ExecutionVertexId, Option<Duration>)> =
            resets.iter().map(|reset| (reset.subtask, self.restart_pause(reset))).collect();
        let lsn = self.record(JobEvent::ExecutionVerticesReset { resets }, out);
        // What may come back is not released.
        void.retain(|(_, _, reason)| *reason != ResetReason::OutputMissing);
        for (place, attempt, _) in void {
            self.release(place, vec![attempt], lsn, out);
        }
        if let Some(reset) = too_many {
            self.fail(too_many_losses(&reset), out);
            return;
        }
        for (subtask, pause) in pauses {
            if let Some(pause) = pause {
                self.delayed.insert((self.now.after(pause), subtask));
            } else {
                self.refresh_subtask(subtask);
            }
        }
    }

    /// How long a reset subtask waits before it may run.
    fn restart_pause(&self, reset: &VertexReset) -> Option<Duration> {
        match &reset.reason {
            ResetReason::Failed { .. } => Some(self.options.restart_delay),
            ResetReason::InputUnreachable { .. } => {
                let first = self.options.restart_delay.max(UNREACHABLE_PAUSE_MIN);
                let doubled = first.saturating_mul(1 << reset.losses.saturating_sub(1).min(16));
                Some(doubled.min(UNREACHABLE_PAUSE_MAX.max(first)))
            }
            ResetReason::WorkerLost
            | ResetReason::PartitionLost { .. }
            | ResetReason::OutputMissing
            | ResetReason::InputChanged
            | ResetReason::InputLost
            | ResetReason::Cancelled
            | ResetReason::SplitsLeft
            | ResetReason::StagedFileLost
            | ResetReason::ListingForgotten => None,
        }
    }

    /// Ends the current attempt of a subtask, if there is one.
    pub(super) fn stop(&mut self, subtask: ExecutionVertexId, out: &mut Decision) {
        if self.withdraw(subtask) {
            return;
        }
        let Some(execution) = self.executions.remove(subtask) else { return };
        debug_assert_eq!(execution.stage, ExecutionStage::Sent, "held ones are withdrawn");
        self.return_splits_of(execution.attempt, out);
        self.executions.wind_down(&execution);
        let (worker, attempt) = (execution.worker, execution.attempt);
        out.actions.push(Action::CancelTask { worker, attempt });
    }

    /// The splits of an attempt that will not count go back.
    pub(super) fn return_splits_of(&mut self, attempt: ExecutionAttemptId, out: &mut Decision) {
        let Some(coordinator) = self.recorded.coordinators.get(attempt.vertex) else { return };
        if let Some(delta) = coordinator.subtask_failed(attempt) {
            self.record_delta(attempt.vertex, delta, out);
        }
    }

    /// The splits of a finished attempt that is reset stay pinned to its subtask, or all splits are
    /// forgotten.
    fn reset_coordinator(
        &mut self,
        attempt: ExecutionAttemptId,
        reason: &ResetReason,
        out: &mut Decision,
    ) {
        let Some(coordinator) = self.recorded.coordinators.get(attempt.vertex) else { return };
        let finished = (*reason != ResetReason::SplitsLeft).then_some(attempt);
        let delta = coordinator.subtask_reset(attempt.subtask, NO_CHECKPOINT, finished);
        if let Some(delta) = delta {
            self.record_delta(attempt.vertex, delta, out);
        }
    }

    /// An attempt failed by itself.
    pub(super) fn reset_failed(
        &mut self,
        subtask: ExecutionVertexId,
        message: String,
        out: &mut Decision,
    ) {
        if self.is_ending() {
            return;
        }
        let charged = self.recorded.subtask(subtask).map_or(0, |record| record.charged_failures);
        if charged >= self.options.restart_attempts {
            let name = &self.recorded.graph().vertices[subtask.vertex.0 as usize].name;
            let tries = charged + 1;
            let error =
                format!("task {subtask} ({name}) failed {tries} times; the last: {message}");
            self.fail(error, out);
            return;
        }
        self.reset_ended(subtask, ResetReason::Failed { message }, out);
    }

    /// Records the reset of a subtask whose attempt has ended and is already forgotten.
    pub(super) fn reset_ended(
        &mut self,
        subtask: ExecutionVertexId,
        reason: ResetReason,
        out: &mut Decision,
    ) {
        if self.is_ending() {
            return;
        }
        let Some(record) = self.recorded.subtask(subtask) else { return };
        let (charged, lost) = (reason.charged_failures(), reason.losses());
        let reset = VertexReset {
            subtask,
            generation: record.generation,
            next_attempt: record.next_attempt.saturating_add(1),
            charged_failures: record.charged_failures.saturating_add(charged),
            losses: record.losses.saturating_add(lost),
            reason,
        };
        self.carry_out(vec![reset], out);
    }

    /// An attempt could not read a partition: its producer runs again, nobody is charged.
    pub(super) fn reset_after_input_loss(
        &mut self,
        subtask: ExecutionVertexId,
        partition: &PartitionId,
        reason: &str,
        out: &mut Decision,
    ) {
        self.reset_ended(subtask, ResetReason::InputLost, out);
        let producer = partition.attempt.execution_vertex();
        let Some(finish) = self.recorded.finish(producer) else { return };
        let place = finish.data_directory;
        if finish.record.attempt != partition.attempt || self.is_ending() {
            return;
        }
        self.tracker.remove(place, &partition.attempt);
        let message = reason.to_owned();
        self.reset(vec![(producer, ResetReason::PartitionLost { message })], out);
        self.check_directory(place, out);
    }

    /// An attempt could not reach a partition: it runs again after a pause, and whoever serves the
    /// partition is asked for it. Nothing is lost as long as its holder counts as there.
    pub(super) fn reset_after_unreachable_input(
        &mut self,
        subtask: ExecutionVertexId,
        partition: &PartitionId,
        reason: &str,
        out: &mut Decision,
    ) {
        let message = format!("partition {partition}: {reason}");
        self.reset_ended(subtask, ResetReason::InputUnreachable { message }, out);
        let producer = partition.attempt.execution_vertex();
        let Some(finish) = self.recorded.finish(producer) else { return };
        let place = finish.data_directory;
        if finish.record.attempt == partition.attempt && !self.is_ending() {
            self.check_directory(place, out);
        }
    }

    /// A worker takes no attempt any more; those that it was not told of yet go elsewhere.
    pub(super) fn worker_leaving(&mut self, worker: WorkerId) {
        self.workers.leave(worker);
        for attempt in self.executions.on_worker(worker) {
            let subtask = attempt.execution_vertex();
            if self.withdraw(subtask) {
                self.refresh_subtask(subtask);
            }
        }
    }

    /// A worker will not come back.
    pub(super) fn worker_lost(&mut self, worker: WorkerId, out: &mut Decision) {
        let wrote = self.workers.description(worker).map(|worker| worker.data_directory);
        let unserved = self.workers.remove(worker);
        self.former.retain(|_, holder| *holder != worker);
        for directory in &unserved {
            self.tracker.lose(*directory);
        }
        if !matches!(self.phase, Phase::Active) {
            return;
        }
        let used = self.recorded.facts.workers.get(&worker).is_some_and(|used| !used.lost);
        if used {
            self.record(JobEvent::WorkerLost { worker }, out);
        }
        self.executions.forget_winding(worker);
        for attempt in self.executions.on_worker(worker) {
            let subtask = attempt.execution_vertex();
            if self.withdraw(subtask) {
                self.refresh_subtask(subtask);
                continue;
            }
            self.executions.remove(subtask);
            self.return_splits_of(attempt, out);
            self.reset_ended(subtask, ResetReason::WorkerLost, out);
        }
        if self.is_ending() {
            return;
        }
        let lost = self.recorded.finishes().filter(|(subtask, finish)| {
            unserved.contains(&finish.data_directory)
                && !self.tracker.is_available(&self.recorded, *subtask)
                && self.recorded.is_needed(*subtask)
        });
        let seeds = lost.map(|(subtask, _)| (subtask, ResetReason::OutputMissing)).collect();
        self.reset(seeds, out);
        // Who keeps what it wrote may hold finishes of which it did not live to tell.
        if let Some(data_directory) = wrote {
            self.check_directory(data_directory, out);
        }
    }

    /// Workers whose connection was closed longer than the grace are lost.
    pub(super) fn lose_workers_after_grace(&mut self, out: &mut Decision) {
        let grace = u64::try_from(self.options.reconnect_grace.as_millis()).unwrap_or(u64::MAX);
        let Some(deadline) = self.now.0.checked_sub(grace) else { return };
        for worker in self.workers.disconnected_until(crate::Timestamp(deadline)) {
            self.worker_lost(worker, out);
        }
    }
}

/// Why a job ends one of whose subtasks lost too much.
fn too_many_losses(reset: &VertexReset) -> String {
    let VertexReset { subtask, reason, .. } = reset;
    let why = reason.describe();
    let detail = reason.message().map_or_else(String::new, |message| format!(" ({message})"));
    format!(
        "task {subtask} lost its worker, its output or the way to an input {LOSSES_MAX} times; \
         the last: {why}{detail}"
    )
}
