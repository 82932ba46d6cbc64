//! The attempts that are under way.

use std::collections::BTreeMap;

use regrow_protocol::{ExecutionAttemptId, ExecutionVertexId, JobVertexId, PinnedSplits, WorkerId};

/// The current attempts of a job, and those that were told to stop and still hold a slot.
#[derive(Debug, Default)]
pub(super) struct Executions {
    current: BTreeMap<ExecutionVertexId, Execution>,
    winding_down: BTreeMap<ExecutionAttemptId, Winding>,
    /// The ticket at which the newest connection of each worker opened: what was sent before it may
    /// be lost, and what was sent since is heard on it, or lost with it.
    connected: BTreeMap<WorkerId, u64>,
    /// Current attempts per vertex, for screens.
    per_vertex: BTreeMap<JobVertexId, u32>,
    tickets: u64,
}

/// A current attempt of a subtask.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    pub(super) attempt: ExecutionAttemptId,
    pub(super) worker: WorkerId,
    pub(super) stage: ExecutionStage,
    pub(super) splits: PinnedSplits,
    /// Distinguishes a dispatch from an earlier one of the same attempt that was never sent; of one
    /// that was sent, it says when.
    pub(super) ticket: u64,
}

/// An attempt that was told to stop and still holds its slot.
#[derive(Clone, Copy, Debug)]
struct Winding {
    worker: WorkerId,
    /// When it was sent.
    ticket: u64,
}

/// How far an attempt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExecutionStage {
    /// Its dispatch waits for records.
    Held,
    /// It was sent to its worker.
    Sent,
}

impl Executions {
    /// A ticket that no execution has.
    pub(super) fn next_ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    pub(super) fn insert(&mut self, execution: Execution) {
        let subtask = execution.attempt.execution_vertex();
        *self.per_vertex.entry(subtask.vertex).or_default() += 1;
        self.current.insert(subtask, execution);
    }

    pub(super) fn get(&self, subtask: ExecutionVertexId) -> Option<&Execution> {
        self.current.get(&subtask)
    }

    /// The execution of exactly this attempt, while it is current.
    pub(super) fn of_attempt(&self, attempt: &ExecutionAttemptId) -> Option<&Execution> {
        self.get(attempt.execution_vertex()).filter(|execution| execution.attempt == *attempt)
    }

    pub(super) fn mark_sent(&mut self, attempt: &ExecutionAttemptId) {
        let ticket = self.next_ticket();
        if let Some(execution) = self.current.get_mut(&attempt.execution_vertex()) {
            execution.stage = ExecutionStage::Sent;
            execution.ticket = ticket;
        }
    }

    /// A connection to a worker is open.
    pub(super) fn connected(&mut self, worker: WorkerId) {
        let ticket = self.next_ticket();
        self.connected.insert(worker, ticket);
    }

    /// Whether something was sent to a worker before its newest connection: an inventory that comes
    /// on that connection tells whether it arrived.
    fn may_be_lost(&self, worker: WorkerId, ticket: u64) -> bool {
        self.connected.get(&worker).is_some_and(|connected| ticket < *connected)
    }

    pub(super) fn remove(&mut self, subtask: ExecutionVertexId) -> Option<Execution> {
        let execution = self.current.remove(&subtask)?;
        if let Some(count) = self.per_vertex.get_mut(&subtask.vertex) {
            *count -= 1;
        }
        Some(execution)
    }

    /// An attempt was told to stop; its slot is not free yet.
    pub(super) fn wind_down(&mut self, execution: &Execution) {
        let Execution { attempt, worker, ticket, .. } = execution;
        self.winding_down.insert(*attempt, Winding { worker: *worker, ticket: *ticket });
    }

    /// An attempt that was told to stop has ended; returns whose slot is free now.
    pub(super) fn wound_down(&mut self, attempt: &ExecutionAttemptId) -> Option<WorkerId> {
        self.winding_down.remove(attempt).map(|winding| winding.worker)
    }

    /// Forgets what wound down on a worker that is gone.
    pub(super) fn forget_winding(&mut self, worker: WorkerId) {
        self.winding_down.retain(|_, winding| winding.worker != worker);
        self.connected.remove(&worker);
    }

    /// The current attempts on a worker.
    pub(super) fn on_worker(&self, worker: WorkerId) -> Vec<ExecutionAttemptId> {
        let here = self.current.values().filter(|execution| execution.worker == worker);
        here.map(|execution| execution.attempt).collect()
    }

    /// The current attempts that a worker was told of before its newest connection.
    pub(super) fn perhaps_unheard_by(&self, worker: WorkerId) -> Vec<ExecutionAttemptId> {
        let told = |execution: &&Execution| {
            execution.worker == worker
                && execution.stage == ExecutionStage::Sent
                && self.may_be_lost(worker, execution.ticket)
        };
        self.current.values().filter(told).map(|execution| execution.attempt).collect()
    }

    /// The attempts that a worker was told of before its newest connection, and that were told to
    /// stop.
    pub(super) fn perhaps_ended_on(&self, worker: WorkerId) -> Vec<ExecutionAttemptId> {
        let here = self.winding_down.iter().filter(|(_, winding)| {
            winding.worker == worker && self.may_be_lost(worker, winding.ticket)
        });
        here.map(|(attempt, _)| *attempt).collect()
    }

    /// All subtasks that have a current attempt.
    pub(super) fn subtasks(&self) -> Vec<ExecutionVertexId> {
        self.current.keys().copied().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.current.len()
    }

    /// Whether nothing runs and nothing winds down.
    pub(super) fn is_quiet(&self) -> bool {
        self.current.is_empty() && self.winding_down.is_empty()
    }

    /// Whether anything was sent to a worker and has not ended.
    pub(super) fn any_sent(&self) -> bool {
        self.current.values().any(|execution| execution.stage == ExecutionStage::Sent)
    }

    pub(super) fn count(&self, vertex: JobVertexId) -> u32 {
        self.per_vertex.get(&vertex).copied().unwrap_or(0)
    }
}
