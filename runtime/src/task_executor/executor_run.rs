//! What a worker keeps of one run.

use std::{collections::BTreeMap, sync::Arc};

use regrow_protocol::{ExecutionAttemptId, ExecutionVertexId, FinishRecord, TaskFailure};

use crate::Timestamp;

/// What a worker keeps of one run.
#[derive(Debug, Default)]
pub(super) struct ExecutorRun {
    /// Since when the master is lost.
    pub(super) lost_at: Option<Timestamp>,
    /// Finishes that no master has answered.
    pub(super) unacknowledged: BTreeMap<ExecutionAttemptId, Arc<FinishRecord>>,
    /// The newest attempt of each subtask that the followed master spoke of: grows with the
    /// subtasks that run here, and is cleared with each new master, whose attempts are others.
    pub(super) known: BTreeMap<ExecutionVertexId, (u32, Known)>,
}

/// What became of an attempt that is not in a slot any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It started once, so it never starts again.
    Started,
    /// It started, and ended without a result; who asks for it again did not hear of that.
    Failed(TaskFailure),
    /// It was cancelled or refused before it started.
    NeverStarts,
}

impl ExecutorRun {
    /// Notes what becomes of an attempt of the followed master.
    pub(super) fn note(&mut self, attempt: ExecutionAttemptId, known: Known) {
        let newest = self.known.get(&attempt.execution_vertex()).map(|(number, _)| *number);
        if newest.is_none_or(|number| number <= attempt.number) {
            self.known.insert(attempt.execution_vertex(), (attempt.number, known));
        }
    }

    /// What is known of an attempt of the followed master; one below the newest of its subtask
    /// never starts.
    pub(super) fn knowledge(&self, attempt: ExecutionAttemptId) -> Option<Known> {
        let (number, known) = self.known.get(&attempt.execution_vertex())?;
        match number.cmp(&attempt.number) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Equal => Some(known.clone()),
            std::cmp::Ordering::Greater => Some(Known::NeverStarts),
        }
    }
}
