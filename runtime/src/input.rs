//! What a `JobMaster` hears.

use std::sync::Arc;

use regrow_protocol::{
    DataDirectoryId, Envelope, Epoch, ExecutionAttemptId, FinishRecord, Inventory, JobVertexId,
    Split, TaskFailure, ToJobMaster, WorkerDescription, WorkerId,
};

use crate::Lsn;

/// Something that happened to a job from outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A connection to a worker is open; nothing is known of it yet.
    WorkerConnected {
        /// Which one.
        worker: WorkerId,
    },
    /// A worker says what it is and what it holds of the run. May come again at any time.
    WorkerRegistered {
        /// What it is.
        worker: WorkerDescription,
        /// What it holds.
        inventory: Inventory,
    },
    /// A shuffle service reported all partitions of the run in one data directory.
    PartitionsReported {
        /// Whose process serves the directory.
        worker: WorkerId,
        /// Which directory.
        data_directory: DataDirectoryId,
        /// The finish record of each sealed attempt.
        finished: Vec<FinishRecord>,
    },
    /// The connection to a worker closed; it may come back.
    WorkerDisconnected {
        /// Which one.
        worker: WorkerId,
    },
    /// A worker is about to stop: it takes no attempt any more, and what it keeps is kept on. Its slots
    /// are not this run's any longer.
    WorkerLeaving {
        /// Which one.
        worker: WorkerId,
    },
    /// A worker's process is certainly gone.
    WorkerLost {
        /// Which one.
        worker: WorkerId,
    },
    /// A new process keeps the data directory of a worker, whose own process is certainly gone. Told
    /// before anything else of the new one.
    WorkerReplaced {
        /// Who is gone.
        worker: WorkerId,
        /// The directory.
        data_directory: DataDirectoryId,
        /// The worker that the new process is.
        by: WorkerId,
    },
    /// The `ResourceManager` grants slots of a worker to this run.
    SlotsGranted {
        /// Whose.
        worker: WorkerId,
        /// How many.
        count: u32,
    },
    /// A worker reports a finished attempt.
    TaskFinished {
        /// Who ran it.
        worker: WorkerId,
        /// Where its outputs lie.
        data_directory: DataDirectoryId,
        /// The proof.
        record: Arc<FinishRecord>,
    },
    /// A worker reports an attempt that ended without a result.
    TaskFailed {
        /// Who ran it.
        worker: WorkerId,
        /// Which one.
        attempt: ExecutionAttemptId,
        /// Why.
        failure: TaskFailure,
    },
    /// A worker refused a command of a former master.
    CommandRefused {
        /// Who refused it.
        worker: WorkerId,
    },
    /// An attempt of a source wants a split.
    SplitRequested {
        /// Who runs it.
        worker: WorkerId,
        /// Who asks.
        attempt: ExecutionAttemptId,
        /// Number of the request within the attempt.
        request: u64,
    },
    /// The discovery of a source's splits ended.
    SplitsDiscovered {
        /// Whose.
        vertex: JobVertexId,
        /// The splits, numbered from 0; or why there are none.
        result: Result<Vec<Split>, String>,
    },
    /// The hidden directories beside the outputs were made, or could not be.
    OutputPrepared {
        /// Per sink, in order, its staging directory; or what went wrong, with what to do.
        result: Result<Vec<String>, String>,
    },
    /// The staged files of all winners were looked at, or could not be.
    StagedFilesVerified {
        /// The attempts whose files are missing or wrong, which run again; or what went wrong: the
        /// job fails.
        result: Result<Vec<ExecutionAttemptId>, String>,
    },
    /// The commit ended.
    CommitEnded {
        /// Success, or what went wrong, with what to do: the job fails.
        result: Result<(), String>,
    },
    /// The user asked to cancel.
    CancelRequested,
    /// All events up to a position are on stable storage.
    Persisted {
        /// The position after the newest of them.
        upto: Lsn,
    },
    /// The log cannot be written; what is buffered waits.
    LogDegraded {
        /// What went wrong.
        reason: String,
    },
    /// The log was reopened after a failure: a full snapshot must be recorded first.
    LogReopened,
    /// The log has grown out of proportion: a full snapshot may replace what is before it.
    SnapshotWanted,
    /// A moment asked for by [`Action::WakeAt`](crate::Action::WakeAt) has come.
    Woken,
}

impl Input {
    /// What a worker said, to the life `epoch` of its run; none if it says nothing to that life.
    ///
    /// A report is judged by its attempt, whatever the epoch of its envelope. What a worker says
    /// that it holds answers a question: to the life before, it may have said so before it began or
    /// sealed what that life told it next. It says so again to the life that asks next.
    pub fn reported(envelope: Envelope<ToJobMaster>, epoch: Epoch) -> Option<Self> {
        let answers = envelope.epoch >= epoch;
        Some(match envelope.message {
            // Asked of whoever knows all runs; that this one is led is said by `JobMasterStarted`.
            ToJobMaster::RunHeld { .. } => return None,
            ToJobMaster::Registered { .. } | ToJobMaster::AllPartitionsWithMetrics { .. }
                if !answers =>
            {
                return None;
            }
            ToJobMaster::Registered { worker, inventory } => {
                Self::WorkerRegistered { worker, inventory }
            }
            ToJobMaster::AllPartitionsWithMetrics { worker, data_directory, finished } => {
                Self::PartitionsReported { worker, data_directory, finished }
            }
            ToJobMaster::TaskFinished { worker, data_directory, record } => {
                Self::TaskFinished { worker, data_directory, record }
            }
            ToJobMaster::TaskFailed { worker, attempt, failure } => {
                Self::TaskFailed { worker, attempt, failure }
            }
            ToJobMaster::CommandRefused { worker } => Self::CommandRefused { worker },
            ToJobMaster::SplitRequested { worker, attempt, request } => {
                Self::SplitRequested { worker, attempt, request }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use regrow_protocol::RunId;

    use super::*;

    #[test]
    fn rule_5_3_what_was_said_to_the_life_before_is_no_answer_to_this_one() {
        let worker = WorkerId::from_bits(1);
        let said = |message, life| {
            let envelope =
                Envelope { run: RunId::from_bits(1), epoch: Epoch::new(1, life), message };
            Input::reported(envelope, Epoch::new(1, 1)).is_some()
        };
        let held = ToJobMaster::AllPartitionsWithMetrics {
            worker,
            data_directory: DataDirectoryId::from_bits(1),
            finished: Vec::new(),
        };
        assert!(!said(held.clone(), 0) && said(held, 1));
        let attempt = ExecutionAttemptId {
            run: RunId::from_bits(1),
            vertex: JobVertexId(0),
            subtask: 0,
            epoch: Epoch::new(1, 0),
            number: 0,
        };
        let failure = TaskFailure::Cancelled;
        assert!(said(ToJobMaster::TaskFailed { worker, attempt, failure }, 0));
    }
}
